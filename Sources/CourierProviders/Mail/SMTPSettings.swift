package import CourierModel
import NIOCore
import SealedFormat

/// How long to wait for a relay's reply.
struct SMTPTimeouts: Sendable {
    let scale: Double

    /// - Parameter deadline: Of the mail.
    func milliseconds(_ stage: SMTPStage, by deadline: NIODeadline?) -> Int64 {
        let whole = max(1, Int64(Double(stage.replySeconds) * 1000 * scale))
        guard let deadline else { return whole }
        return max(1, min(whole, (deadline - .now()).nanoseconds / 1_000_000))
    }
}

/// How the courier signs in to a relay.
enum SMTPSignIn: Sendable, Hashable {
    case none
    /// RFC 4616.
    case plain(user: String, password: [UInt8])
    /// https://developers.google.com/gmail/imap/xoauth2-protocol; Microsoft's is the same. Somebody else renews the token.
    case xoauth2(user: String, token: [UInt8])

    /// Reads the credential. A line break at its end is not part of it.
    init(_ configuration: MailConfiguration) throws(CredentialError) {
        guard let user = configuration.username, let file = configuration.password else {
            self = .none
            return
        }
        self =
            switch configuration.authentication {
            // A password is UTF-8 (RFC 4616, section 2), an access token ASCII (RFC 6750, section 2.1).
            case .plain: .plain(user: user, password: try file.readLine(.utf8))
            case .xoauth2: .xoauth2(user: user, token: try file.readLine())
            }
        guard response.utf8.count <= Self.responseBytesMax else {
            throw CredentialError(
                path: file.path,
                why: "makes \(response.utf8.count) bytes of AUTH, and relays take \(Self.responseBytesMax)",
                hint: "check that this is the right file")
        }
    }

    /// Longest line of an authentication exchange without its CRLF, in bytes (RFC 4954, section 4: 12,288 octets).
    private static let responseBytesMax = 12_286

    var mechanism: String? {
        switch self {
        case .none: nil
        case .plain: "PLAIN"
        case .xoauth2: "XOAUTH2"
        }
    }

    /// The initial response of the AUTH command, in Base64 (RFC 4954, section 4).
    var response: String {
        switch self {
        case .none: ""
        case .plain(let user, let password): Base64.encode(Array("\0\(user)\0".utf8) + password)
        case .xoauth2(let user, let token):
            Base64.encode(Array("user=\(user)\u{1}auth=Bearer ".utf8) + token + [1, 1])
        }
    }
}

extension SMTPSignIn: CustomStringConvertible, CustomDebugStringConvertible {
    /// Without user and secret.
    var description: String { mechanism ?? "none" }
    var debugDescription: String { description }
}

extension CredentialFile {
    /// The bytes that a credential's line may consist of.
    package enum LineEncoding: Sendable {
        case ascii, utf8
    }

    /// A password or a token: one line of printable characters. A line break at its end is not part of it.
    package func readLine(_ encoding: LineEncoding = .ascii) throws(CredentialError) -> [UInt8] {
        func refusal(_ why: String, _ hint: String = "check that this is the right file") -> CredentialError {
            CredentialError(path: path, why: why, hint: hint)
        }
        var bytes = try read()
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            throw refusal("begins with a byte order mark", "save it as plain text without one")
        }
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw refusal("is not one line of printable characters")
        }
        switch encoding {
        case .ascii where bytes.contains { $0 >= 0x80 }: throw refusal("has characters outside ASCII")
        case .utf8 where String(validating: bytes, as: UTF8.self) == nil: throw refusal("is not UTF-8")
        case .ascii, .utf8: return bytes
        }
    }
}
