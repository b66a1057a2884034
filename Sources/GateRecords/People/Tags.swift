package import GateVocabulary
import OpenSSLCrypto

extension Subject {
    /// What stands in the trail for a text that a caller or a recipient chose (handbook, "Audit format"):
    /// HMAC-SHA256(K_s, "sendgate/tag/v1\0" ‖ kind ‖ 0x00 ‖ text), first 16 bytes.
    package func tag(_ kind: TagKind, _ text: String) -> Tag {
        let code = hashedTagKey.code { add in
            add(kind.rawValue)
            add(text)
        }.leading
        return Tag(high: code.high, low: code.low)
    }
}

extension Subject {
    /// The tag of a phone number or a mailbox in its canonical form: consents, choices and objections are about it, whatever
    /// the owner calls it and however it is written.
    package func addressTag(_ address: AddressKey) -> Tag {
        tag(.address, "\(address.channel.rawValue)\0\(address.value)")
    }
}

/// What a tag stands for; equal texts of different kinds have different tags. Each is all that is hashed before the text.
package enum TagKind: String, Sendable {
    case request = "sendgate/tag/v1\0request\0"
    case device = "sendgate/tag/v1\0device\0"
    case address = "sendgate/tag/v1\0address\0"
    case collapseKey = "sendgate/tag/v1\0collapse_key\0"
    case deepLink = "sendgate/tag/v1\0deep_link\0"
    case consent = "sendgate/tag/v1\0consent\0"
    case event = "sendgate/tag/v1\0event\0"
    case type = "sendgate/tag/v1\0type\0"
    case unsubscribe = "sendgate/tag/v1\0unsubscribe\0"
}
