import Testing

@testable import CourierProviders

@Suite struct ProviderEndpointTests {
    @Test(arguments: [
        ("https://api.push.apple.com", "api.push.apple.com", 443, false),
        ("https://api.push.apple.com:2197/", "api.push.apple.com", 2_197, false),
        ("https://[2001:db8::1]:8443", "2001:db8::1", 8_443, false),
        ("https://192.0.2.1", "192.0.2.1", 443, false),
        ("http://localhost", "localhost", 80, true), ("http://127.0.0.1:8080", "127.0.0.1", 8_080, true),
        ("http://127.255.1.2", "127.255.1.2", 80, true), ("http://[::1]:1", "::1", 1, true),
    ])
    func `an address is read whole`(_ url: String, _ host: String, _ port: Int, _ isPlain: Bool) throws {
        let endpoint = try ProviderEndpoint(url: url)
        #expect((endpoint.host, endpoint.port, endpoint.isPlain) == (host, port, isPlain))
    }

    @Test(arguments: [
        ("http://api.push.apple.com", "without TLS only 127.0.0.1, ::1 and localhost are reached"),
        ("http://127.0.0.1.example.com", "without TLS only 127.0.0.1, ::1 and localhost are reached"),
        ("http://127.0.0.256", "without TLS only 127.0.0.1, ::1 and localhost are reached"),
        ("http://192.168.0.1", "without TLS only 127.0.0.1, ::1 and localhost are reached"),
        ("ftp://localhost", "it has to begin with https://"),
        ("localhost:443", "it has to begin with https://"),
        ("", "it has to begin with https://"),
        ("https://", "it has to be a host and perhaps a port, without a path"),
        ("https://a/b", "it has to be a host and perhaps a port, without a path"),
        ("https://user@a", "it has to be a host and perhaps a port, without a path"),
        ("https://a b", "it has to be a host and perhaps a port, without a path"),
        ("https://a\r\nb", "it has to be a host and perhaps a port, without a path"),
        ("https://a:0", "a port is between 1 and 65535"),
        ("https://a:65536", "a port is between 1 and 65535"),
    ])
    func `an address that cannot be used says why`(_ url: String, _ why: String) {
        #expect(throws: UnusableEndpoint(url: url, why: why)) { try ProviderEndpoint(url: url) }
    }
}
