package import CourierModel
import NIOCore

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
        let secret = try file.readLine()
        self =
            switch configuration.authentication {
            case .plain: .plain(user: user, password: secret)
            case .xoauth2: .xoauth2(user: user, token: secret)
            }
    }

    var mechanism: String? {
        switch self {
        case .none: nil
        case .plain: "PLAIN"
        case .xoauth2: "XOAUTH2"
        }
    }

    var initialResponse: [UInt8] {
        switch self {
        case .none: []
        case .plain(let user, let password): Array("\0\(user)\0".utf8) + password
        case .xoauth2(let user, let token): Array("user=\(user)\u{1}auth=Bearer ".utf8) + token + [1, 1]
        }
    }
}

extension SMTPSignIn: CustomStringConvertible, CustomDebugStringConvertible {
    /// Without user and secret.
    var description: String { mechanism ?? "none" }
    var debugDescription: String { description }
}

extension CredentialFile {
    /// A password or a token: one line of printable bytes. A line break at its end is not part of it.
    package func readLine() throws(CredentialError) -> [UInt8] {
        var bytes = try read()
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw CredentialError(
                path: path, why: "is not one line of printable characters",
                hint: "check that this is the right file")
        }
        return bytes
    }
}
