package import GateVocabulary
package import OpenSSLCrypto
import SealedFormat

/// The keys that authenticate unsubscribe links: one makes them, and all of them verify.
package struct LinkKeys: Sendable {
    /// One key, and the short id by which a link names it.
    package struct Key: Sendable {
        /// Identifies the key in a link: the first bytes of SHA-256 of its id.
        package let shortID: [UInt8]
        fileprivate let key: HMACKey

        package init(id: String, secret: SecretBytes) {
            shortID = Array(SHA256.digest(Array(id.utf8)).bytes.prefix(UnsubscribeToken.shortIDByteCount))
            key = HMACKey(secret)
        }
    }

    private let current: Key
    private let all: [Key]

    /// - Parameter older: Verify what an earlier ``current`` made; links live on in inboxes for years.
    package init(current: Key, older: [Key] = []) {
        self.current = current
        all = [current] + older
    }

    /// The token of a link's id.
    package func token(for id: Tag) -> String {
        var bytes = [UnsubscribeToken.version] + current.shortID + id.bytes
        bytes += current.key.authenticate(bytes)
        return Base64URL.encode(bytes)
    }

    /// The id in a token, without looking anything up.
    ///
    /// - Returns: `nil` for a token that none of the keys made: forged, cut short, or of another version.
    package func id(in token: String) -> Tag? {
        guard token.utf8.count == UnsubscribeToken.characterCount, let bytes = Base64URL.decode(token),
            bytes.count == UnsubscribeToken.byteCount, bytes[0] == UnsubscribeToken.version
        else { return nil }
        let shortID = Array(bytes[1..<UnsubscribeToken.idOffset])
        let authenticated = Array(bytes[..<UnsubscribeToken.codeOffset])
        let code = Array(bytes[UnsubscribeToken.codeOffset...])
        let isRight = all.contains {
            $0.shortID == shortID
                && HMACKey.constantTimeEqual($0.key.authenticate(authenticated), code)
        }
        return isRight ? Tag(bytes: bytes[UnsubscribeToken.idOffset..<UnsubscribeToken.codeOffset]) : nil
    }
}

/// How a token is laid out: base64url of `version ‖ short key id[8] ‖ link id[16] ‖ HMAC-SHA256[32]`, the code over all
/// before it.
package enum UnsubscribeToken {
    package static let version: UInt8 = 1
    static let shortIDByteCount = 8
    static let idOffset = 1 + shortIDByteCount
    static let codeOffset = idOffset + 16
    package static let byteCount = codeOffset + 32
    package static let characterCount = Base64URL.characterCount(byteCount: byteCount)
}
