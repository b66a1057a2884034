import Crypto
import GateVocabulary

/// A path whose requests carry `X-Sendgate-Signature: t=SECONDS,v1=HEX`, where `HEX` is HMAC-SHA256 over `SECONDS`, a dot and the
/// body. During a change of secrets a header may have several `v1`, and the courier several secrets.
package struct SignedWebhook: Sendable {
    package static let header = "x-sendgate-signature"
    /// How far the sender's clock may be off, in seconds, and how long a copied request can be used: five minutes, as Stripe's
    /// and Slack's receivers allow.
    package static let windowSeconds: Int64 = 300

    package var path: String
    /// Any of them is accepted. At least 32 bytes each is the configuration's to ask.
    package var secrets: [[UInt8]]

    package init(path: String, secrets: [[UInt8]]) {
        self.path = path
        self.secrets = secrets
    }

    /// - Returns: `nil` for a request that is signed and fresh.
    func refusal(of request: InboundRequest, at now: Instant) -> InboundResult? {
        guard let header = request.header(Self.header) else {
            return .refused(status: 403, reason: "the header \(Self.header) is missing")
        }
        let parts = header.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1) }
        let time = parts.first { $0.first == "t" }?.last.flatMap { Int64($0) }
        let signatures = parts.filter { $0.count == 2 && $0[0] == "v1" }
            .compactMap { Hexadecimal.decode(String($0[1])) }
        guard let time, !signatures.isEmpty, signatures.count <= 4 else {
            return .refused(status: 403, reason: "the header \(Self.header) is not `t=SECONDS,v1=HEX`")
        }
        let signed = Array("\(time).".utf8) + request.body
        let isGenuine = secrets.contains { secret in
            signatures.contains { Authentication.isSHA256($0, of: signed, under: secret) }
        }
        guard isGenuine else { return .refused(status: 403, reason: "the signature is wrong") }
        // Compared as a difference of two bounded numbers: the header's may be any 64 bits.
        guard (now.seconds - Self.windowSeconds...now.seconds + Self.windowSeconds).contains(time) else {
            return .refused(
                status: 403,
                reason: "the signature's time is more than \(Self.windowSeconds) s from this machine's")
        }
        return nil
    }
}

/// Message authentication codes, compared in a time that does not depend on where they differ.
enum Authentication {
    static func isSHA256(_ code: [UInt8], of bytes: [UInt8], under secret: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: SymmetricKey(data: secret))
    }

    /// SHA-1 is Twilio's choice. Its collisions do not break HMAC (RFC 6151 says the same of MD5, which is weaker).
    static func isSHA1(_ code: [UInt8], of bytes: [UInt8], under secret: [UInt8]) -> Bool {
        HMAC<Insecure.SHA1>.isValidAuthenticationCode(
            code, authenticating: bytes, using: SymmetricKey(data: secret))
    }
}
