import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// What a connection's errors say to an operator.
enum ConnectionFault {
    static func prefix(_ endpoint: ProviderEndpoint) -> String { "cannot connect to \(endpoint): " }

    static func words(_ error: any Error, _ endpoint: ProviderEndpoint) -> String {
        if let error = error as? NIOConnectionError {
            if error.connectionErrors.isEmpty, error.dnsAError != nil || error.dnsAAAAError != nil {
                return "cannot find \(endpoint.host): its name does not resolve"
            }
            return prefix(endpoint) + (error.connectionErrors.first.map { words($0.error) } ?? "no address")
        }
        return prefix(endpoint) + words(error)
    }

    /// Whether the next connection will fail alike until somebody changes the configuration, the trust, the clock or the resolver.
    static func needsOperator(_ error: any Error) -> Bool {
        switch error {
        case let error as NIOConnectionError:
            error.connectionErrors.isEmpty && (error.dnsAError != nil || error.dnsAAAAError != nil)
        case NIOSSLError.handshakeFailed(let why): isOfCertificate("\(why)")
        case NIOSSLError.unableToValidateCertificate: true
        case let error as NIOSSLExtraError: error == .failedToValidateHostname
        default: false
        }
    }

    private static func isOfCertificate(_ text: String) -> Bool { text.contains("CERTIFICATE_VERIFY_FAILED") }

    static func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "no answer to the first packet"
        case NIOSSLError.handshakeFailed(let why): "TLS failed: \(tls(why))"
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            "TLS failed: the certificate is for another name"
        case NIOSSLError.unableToValidateCertificate: "TLS failed: the certificate cannot be verified"
        case NIOSSLError.uncleanShutdown: "the connection was cut off"
        case let error as HTTPParserError: "the answer is not HTTP: \(error)"
        default: "\(error)"
        }
    }

    private static func tls(_ error: BoringSSLError) -> String {
        let text = "\(error)"
        if isOfCertificate(text) {
            return "the certificate is not trusted (expired, self-signed, or of an unknown authority)"
        }
        if text.contains("UNSUPPORTED_PROTOCOL") || text.contains("PROTOCOL_VERSION") {
            return "the server speaks nothing above TLS 1.1"
        }
        if text.contains("NO_APPLICATION_PROTOCOL") { return "the server does not offer the protocol" }
        return text
    }
}
