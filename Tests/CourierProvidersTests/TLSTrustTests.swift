import Foundation
import NIOSSL
import Testing

@testable import CourierProviders

@Suite struct TLSTrustTests {
    @Test func `a trust file that is missing or has no certificate is refused with its path`() throws {
        #expect(
            throws: UnusableTrustFile(path: "/nowhere/ca.pem", why: "it cannot be read as PEM certificates")
        ) {
            try TLSTrust(file: "/nowhere/ca.pem")
        }
        let empty = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data("# no certificate\n".utf8).write(to: empty)
        defer { try? FileManager.default.removeItem(at: empty) }
        #expect(throws: UnusableTrustFile.self) { try TLSTrust(file: empty.path(percentEncoded: false)) }
    }

    @Test func `certificates and names are always verified, and nothing below TLS 1_2 is spoken`() throws {
        let configuration = try TLSTrust(file: nil).client(protocols: ["h2"])
        #expect(configuration.certificateVerification == .fullVerification)
        #expect(configuration.minimumTLSVersion == .tlsv12)
        #expect(configuration.applicationProtocols == ["h2"])
    }
}
