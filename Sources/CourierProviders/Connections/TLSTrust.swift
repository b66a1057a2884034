package import NIOSSL

/// Whose certificates are believed: the system's store, and the certificates of one file beside it.
///
/// Verification of the chain and of the host's name is always on; no setting turns it off.
package struct TLSTrust: Sendable {
    private var certificates: [NIOSSLCertificate] = []

    /// - Parameter file: Path of a PEM file of further roots, for a private relay or a test.
    /// - Throws: ``UnusableTrustFile`` when the file cannot be read or has no certificate.
    package init(file: String?) throws(UnusableTrustFile) {
        guard let file else { return }
        do {
            certificates = try NIOSSLCertificate.fromPEMFile(file)
        } catch {
            throw UnusableTrustFile(path: file, why: "it cannot be read as PEM certificates")
        }
        guard !certificates.isEmpty else {
            throw UnusableTrustFile(path: file, why: "it has no certificate")
        }
    }

    /// Settings of a client's connection: TLS 1.2 and above, because Apple and Google accept nothing older.
    /// - Parameter protocols: Offered by ALPN (RFC 7301), the preferred one first; none for SMTP.
    package func client(protocols: [String]) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.certificateVerification = .fullVerification
        configuration.trustRoots = .default
        if !certificates.isEmpty { configuration.additionalTrustRoots = [.certificates(certificates)] }
        configuration.applicationProtocols = protocols
        return configuration
    }
}

/// A trust file that cannot be used.
package struct UnusableTrustFile: Error, Hashable, CustomStringConvertible {
    package var path: String
    package var why: String

    package var description: String { "the trust file `\(path)` cannot be used: \(why)" }
}
