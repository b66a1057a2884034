package import GateVocabulary
import OpenSSLCrypto

extension Subject {
    /// What stands in the trail for a text that a caller or a recipient chose (handbook, "Audit format"):
    /// HMAC-SHA256(K_s, "sendgate/tag/v1\0" ‖ kind ‖ 0x00 ‖ text), first 16 bytes.
    package func tag(_ kind: TagKind, _ text: String) -> Tag {
        let code = hashedTagKey.code { add in
            add("sendgate/tag/v1\0")
            add(kind.rawValue)
            add("\0")
            add(text)
        }.leading
        return Tag(high: code.high, low: code.low)
    }
}

extension Subject {
    /// What stands for a phone number or a mailbox: consents, choices and objections are about it, whatever the owner
    /// calls it. A mailbox is the same one in capitals.
    package func addressTag(_ channel: Channel, _ value: String) -> Tag {
        tag(.address, "\(channel.rawValue)\0\(value.lowercased())")
    }
}

/// What a tag stands for; equal texts of different kinds have different tags.
package enum TagKind: String, Sendable {
    case request
    case device
    case address
    case collapseKey = "collapse_key"
    case deepLink = "deep_link"
    case consent
    case event
    case type
    case unsubscribe
}
