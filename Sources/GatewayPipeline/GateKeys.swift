package import GateVocabulary
package import OpenSSLCrypto
package import PayloadSealing
import SealedFormat

/// The gateway's own keys, as the engine uses them. Loaded by `KeyFiles`; private parts never leave memory.
package struct GateKeys: Sendable {
    /// Signs the content inside every envelope.
    package var origin: OriginSigner
    /// Turns caller-chosen ids and contents into lookup keys: HMAC under the `index` key.
    package var index: HMACKey

    package init(origin: OriginSigner, index: HMACKey) {
        self.origin = origin
        self.index = index
    }

    /// The idempotency key of a caller's id: 16 bytes.
    func idHash(_ id: RequestID, of caller: CallerName) -> [UInt8] {
        Self.idHash(id.text, of: caller, under: index)
    }

    /// The same of an id that a store has kept.
    package static func idHash(_ id: String, of caller: CallerName, under index: HMACKey) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(32 + caller.text.utf8.count + id.utf8.count)
        message.append(contentsOf: "sendgate/request-id/v1\0".utf8)
        message.append(contentsOf: caller.text.utf8)
        message.append(0)
        message.append(contentsOf: id.utf8)
        return Array(index.authenticate(message).prefix(16))
    }

    /// What two equal contents share: 32 bytes.
    func contentMAC(_ canonicalContent: [UInt8]) -> [UInt8] {
        index.authenticate("sendgate/content/v1\0".utf8 + canonicalContent)
    }

    /// What every spelling of one public key shares: 32 bytes.
    ///
    /// A point and its negative agree on the same secrets with anybody (SEC 1 section 3.3.1: the secret is an x
    /// coordinate), so a P-256 key counts by x. An X25519 key is a u coordinate, which has one spelling once it was
    /// validated.
    func fingerprint(ofKey publicKey: [UInt8], _ suite: SealingSuite) -> [UInt8] {
        let coordinate =
            switch suite {
            case .p256: Array(publicKey.dropFirst().prefix(32))
            case .x25519: publicKey
            }
        return index.authenticate(
            Array("sendgate/compromised-key/v1".utf8) + [0] + Array(suite.rawValue.utf8) + [0] + coordinate)
    }
}

extension Subject {
    /// What stands in the trail for a text somebody chose (handbook, "Audit format"):
    /// HMAC-SHA256(K_s, "sendgate/tag/v1\0" ‖ kind ‖ 0x00 ‖ text), first 16 bytes.
    package func tag(_ kind: TagKind, _ text: String) -> Tag {
        var message: [UInt8] = []
        message.reserveCapacity(32 + text.utf8.count)
        message.append(contentsOf: "sendgate/tag/v1\0".utf8)
        message.append(contentsOf: kind.rawValue.utf8)
        message.append(0)
        message.append(contentsOf: text.utf8)
        return HMACKey.code(of: message, under: tagKey).withUnsafeBytes { code in
            Tag(
                high: UInt64(bigEndian: code.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: code.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
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
}
