package import GateVocabulary
package import OpenSSLCrypto
package import SealedFormat

/// The `index` key: turns identifiers that callers and phones choose into look-up keys that do not reveal them.
package struct IndexKey: Sendable {
    /// Bytes of ``idHash(_:of:)``.
    static let idHashByteCount = 16

    private let key: HMACKey

    package init(_ key: HMACKey) { self.key = key }

    /// The idempotency key of a caller's id: 16 bytes.
    package func idHash(_ id: RequestID, of caller: CallerName) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(32 + caller.text.utf8.count + id.text.utf8.count)
        message.append(contentsOf: "sendgate/request-id/v1\0".utf8)
        message.append(contentsOf: caller.text.utf8)
        message.append(0)
        message.append(contentsOf: id.text.utf8)
        return Array(key.authenticate(message).prefix(Self.idHashByteCount))
    }

    /// The idempotency key of a send that was refused for its own shape, 16 bytes: of the id with this content alone, so that
    /// the id stays free for another.
    ///
    /// - Parameters:
    ///   - idHash: See ``idHash(_:of:)``.
    ///   - contentMAC: See ``contentMAC(_:)``.
    package func misshapenHash(_ idHash: [UInt8], content contentMAC: [UInt8]) -> [UInt8] {
        Array(
            key.authenticate(Array("sendgate/misshapen-request/v1\0".utf8) + idHash + contentMAC).prefix(16))
    }

    /// Hash of the id that a carrier gave a reply, 16 bytes. It is stored in no table that has hashes of sends.
    package func replyHash(_ id: RequestID, of caller: CallerName) -> [UInt8] {
        Array(
            key.authenticate(
                Array("sendgate/reply-id/v1\0".utf8) + Array(caller.text.utf8) + [0] + Array(id.text.utf8)
            ).prefix(16))
    }

    /// Hash of a number or a mailbox, 32 bytes: the same whichever person has registered it.
    package func addressHash(_ address: AddressKey) -> [UInt8] {
        key.authenticate(
            Array("sendgate/address/v1\0".utf8) + Array(address.channel.rawValue.utf8) + [0]
                + Array(address.value.utf8))
    }

    /// MAC of a content, 32 bytes: equal for equal contents.
    package func contentMAC(_ canonicalContent: [UInt8]) -> [UInt8] {
        key.authenticate("sendgate/content/v1\0".utf8 + canonicalContent)
    }

    /// Fingerprint of a public key, 32 bytes: equal for every encoding of one key.
    ///
    /// A point and its negative agree on the same secrets with any peer (SEC 1 section 3.3.1: the secret is an x
    /// coordinate), so a P-256 key counts by x. An X25519 key is a u coordinate, which has one encoding once it was
    /// validated.
    package func fingerprint(ofKey publicKey: [UInt8], _ suite: SealingSuite) -> [UInt8] {
        let coordinate =
            switch suite {
            case .p256: Array(publicKey.dropFirst().prefix(32))
            case .x25519: publicKey
            }
        return key.authenticate(
            Array("sendgate/compromised-key/v1".utf8) + [0] + Array(suite.rawValue.utf8) + [0] + coordinate)
    }
}
