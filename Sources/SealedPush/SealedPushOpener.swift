import SealedFormat

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One message that came from the gateway, to this app on this device, and was not changed.
public struct SealedMessage: Sendable, Hashable {
    /// What the gateway sealed: JSON in UTF-8, at most 1,974 bytes.
    public let content: [UInt8]
    /// A lower-case UUID; the same in receipts.
    public let messageID: String
    /// The id of the device's key that opened it, 32 hexadecimal digits: the one in use, or one before it.
    public let keyID: String
    /// Unix seconds; the message must not be shown afterwards.
    public let expiresAt: UInt64
}

/// What became of an envelope.
public enum Opening: Sendable, Hashable {
    /// Opened for the first time: show it.
    case opened(SealedMessage)
    /// The same envelope was opened before, by the extension or an earlier delivery: use it, but do not
    /// alert again.
    case alreadyOpened(SealedMessage)

    public var message: SealedMessage {
        switch self {
        case .opened(let message), .alreadyOpened(let message): message
        }
    }
}

/// Opens what sendgate sealed to this device, and proves to it that this device holds its keys.
///
///     let opener = try SealedPushOpener(
///         app: "no.getdrop.app", device: "d_1",
///         keys: [DeviceKey(keyID: keyID, privateKey: privateKey)],
///         keyset: TrustedKeyset(
///             note: stored, authorities: [pinned], gateway: "gate.example.com/prod", now: now),
///         seen: sharedSeenMessages)
///     switch try opener.open(envelope, now: UInt64(Date().timeIntervalSince1970)) {
///     case .opened(let message): show(message.content)
///     case .alreadyOpened: break
///     }
///
/// A value without state of its own: build one where it is needed. The record of seen messages is the
/// only thing that lasts.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
public struct SealedPushOpener: Sendable {
    let app: String
    let device: String
    private let keys: [[UInt8]: DeviceKey]
    let origins: [String: Curve25519.Signing.PublicKey]
    private let seen: any SeenMessages
    /// Unix seconds; `nil` for origins that no keyset vouches for.
    let keysetExpiresAt: UInt64?

    /// - Parameters:
    ///   - app: The bundle or package name the device was registered with; 1 to 1,024 bytes.
    ///   - device: The device id it was registered with; 1 to 1,024 bytes.
    ///   - keys: All that may still have messages under way.
    ///   - keyset: The newest one that was accepted here: the gateway keys to believe.
    ///   - seen: Shared with every process of the app that opens messages.
    public init(
        app: String, device: String, keys: [DeviceKey], keyset: TrustedKeyset, seen: any SeenMessages
    ) throws(SealedPushError) {
        var origins: [OriginKey] = []
        for key in keyset.origins { origins.append(try OriginKey(keyID: key.id, publicKey: key.publicKey)) }
        try self.init(
            app: app, device: device, keys: keys, origins: origins, keysetExpiresAt: keyset.expiresAt,
            seen: seen)
    }

    /// With origins that are believed as they are, for tests of everything else.
    package init(
        app: String, device: String, keys: [DeviceKey], origins: [OriginKey], keysetExpiresAt: UInt64? = nil,
        seen: any SeenMessages
    ) throws(SealedPushError) {
        for (field, name) in [("app", app), ("device", device)]
        where !(1...SealedLimits.nameByteCountMax).contains(name.utf8.count) {
            throw .malformedConfiguration(
                detail: "the name of the \(field) must have 1 to \(SealedLimits.nameByteCountMax) bytes")
        }
        var keysByID: [[UInt8]: DeviceKey] = [:]
        for key in keys {
            // `DeviceKey` checked the spelling.
            let keyID = IdentifierText.bytes(hexadecimal: key.keyID)!
            guard keysByID.updateValue(key, forKey: keyID) == nil else {
                throw .malformedConfiguration(detail: "two keys have the id `\(key.keyID)`")
            }
        }
        var originsByID: [String: Curve25519.Signing.PublicKey] = [:]
        for origin in origins {
            guard let publicKey = try? Curve25519.Signing.PublicKey(rawRepresentation: origin.publicKey)
            else {
                throw .malformedConfiguration(
                    detail: "the public key of origin `\(origin.keyID)` is not usable")
            }
            guard originsByID.updateValue(publicKey, forKey: origin.keyID) == nil else {
                throw .malformedConfiguration(detail: "two origin keys have the id `\(origin.keyID)`")
            }
        }
        self.app = app
        self.device = device
        self.keys = keysByID
        self.origins = originsByID
        self.keysetExpiresAt = keysetExpiresAt
        self.seen = seen
    }

    /// Opens a notification.
    ///
    /// - Parameters:
    ///   - envelope: The JSON text, byte for byte as it came.
    ///   - now: Unix seconds by the device's clock.
    public func open(_ envelope: [UInt8], now: UInt64) throws(SealedPushError) -> Opening {
        try openNotification(Self.parse(envelope), now: now)
    }

    /// Opens a notification; see ``open(_:now:)-([UInt8],_)``.
    public func open(_ envelope: String, now: UInt64) throws(SealedPushError) -> Opening {
        try open(Array(envelope.utf8), now: now)
    }

    /// Opens a notification whose envelope came as a parsed dictionary, as APNs hands it over. The
    /// parameters are its fields `v`, `s`, `kid`, `mid`, `exp` and `ct`.
    public func open(
        version: Int, suite: String, keyID: String, messageID: String, expiresAt: Int64, ciphertext: String,
        now: UInt64
    ) throws(SealedPushError) -> Opening {
        let envelope: SealedEnvelope
        do throws(SealedFormatError) {
            envelope = try SealedEnvelope(
                version: version, suite: suite, keyID: keyID, messageID: messageID, expiresAt: expiresAt,
                ciphertext: ciphertext)
        } catch { throw .malformedEnvelope(detail: error.description) }
        return try openNotification(envelope, now: now)
    }

    /// Answers a challenge: proves that this device can open what is sealed to the challenged key.
    ///
    /// The answer reveals nothing of what was opened, so a forged envelope handed to this method
    /// gains nothing. Answering twice gives the same bytes and is harmless.
    ///
    /// - Parameters:
    ///   - challenge: The envelope that registering the key returned.
    ///   - now: Unix seconds by the device's clock.
    /// - Returns: base64url of 32 bytes: `proof` for `POST …/keys/{key_id}/confirm`.
    public func proof(forChallenge challenge: [UInt8], now: UInt64) throws(SealedPushError) -> String {
        let (nonce, info) = try openSeal(Self.parse(challenge), purpose: .challenge, now: now)
        guard nonce.count == SealedLimits.nonceByteCount else {
            throw .malformedMessage(detail: "a challenge holds 32 bytes, this one \(nonce.count)")
        }
        let proof = HMAC<SHA256>.authenticationCode(
            for: PossessionStatement.bytes(info: info), using: SymmetricKey(data: nonce))
        return Base64URL.encode(Array(proof))
    }

    /// Answers a challenge; see ``proof(forChallenge:now:)-([UInt8],_)``.
    public func proof(forChallenge challenge: String, now: UInt64) throws(SealedPushError) -> String {
        try proof(forChallenge: Array(challenge.utf8), now: now)
    }

    private static func parse(_ envelope: [UInt8]) throws(SealedPushError) -> SealedEnvelope {
        do throws(SealedFormatError) { return try SealedEnvelope(decoding: envelope) } catch {
            throw .malformedEnvelope(detail: error.description)
        }
    }

    private func openNotification(_ envelope: SealedEnvelope, now: UInt64) throws(SealedPushError) -> Opening
    {
        let (content, _) = try openSeal(envelope, purpose: .notification, now: now)
        // The envelope's own expiry is a class that many messages share; the exact one is in the content.
        let exact = (try? JSONDecoder().decode(StatedExpiry.self, from: Data(content)))?.expiresAt
        let expiresAt = exact.map { min(UInt64(max(0, $0)) / 1000, envelope.expiresAt) } ?? envelope.expiresAt
        guard now < expiresAt else { throw .expired(expiredAt: expiresAt) }
        let message = SealedMessage(
            content: content, messageID: IdentifierText.uuid(envelope.messageID),
            keyID: IdentifierText.hexadecimal(envelope.keyID), expiresAt: expiresAt)
        switch try record(envelope.messageID, digestOf: envelope.bytes, until: envelope.expiresAt, now: now) {
        case .new: return .opened(message)
        case .same: return .alreadyOpened(message)
        case .different: throw .repeatedMessageID(messageID: message.messageID)
        }
    }

    /// Records a message that is proved genuine: if others were recorded, a forger could use up message ids.
    func record(
        _ messageID: [UInt8], digestOf bytes: [UInt8], until expiresAt: UInt64, now: UInt64
    ) throws(SealedPushError) -> SeenMessage {
        do {
            try seen.forgetExpired(now: now)
            return try seen.record(
                messageID: messageID, digest: Array(SHA256.hash(data: bytes)), expiresAt: expiresAt)
        } catch { throw .seenMessagesUnavailable(detail: String(describing: error)) }
    }

    private struct StatedExpiry: Decodable {
        /// Unix milliseconds.
        var expiresAt: Int64

        private enum CodingKeys: String, CodingKey { case expiresAt = "expires_at" }
    }

    /// Everything that must hold before a content is believed.
    private func openSeal(
        _ envelope: SealedEnvelope, purpose: SealingPurpose, now: UInt64
    ) throws(SealedPushError) -> (content: [UInt8], info: [UInt8]) {
        if let keysetExpiresAt, now >= keysetExpiresAt { throw .expiredKeyset(expiredAt: keysetExpiresAt) }
        guard let key = keys[envelope.keyID] else {
            throw .unknownKey(keyID: IdentifierText.hexadecimal(envelope.keyID))
        }
        guard envelope.suite == key.suite else { throw .suiteMismatch(keyID: key.keyID) }
        // `exp` is not yet proved; a changed one fails below, as it is part of the info.
        guard now < envelope.expiresAt else { throw .expired(expiredAt: envelope.expiresAt) }

        let info: [UInt8]
        do throws(SealedFormatError) {
            info = try SealedInfo(
                purpose: purpose, suite: key.suite, app: app, device: device, keyID: envelope.keyID,
                publicKeyDigest: key.publicKeyDigest, messageID: envelope.messageID,
                expiresAt: envelope.expiresAt
            ).bytes
        } catch { throw .malformedEnvelope(detail: error.description) }

        guard let bytes = try? key.openSeal(envelope.encapsulatedKey, envelope.ciphertext, info) else {
            throw .cannotOpen
        }
        let plaintext: SealedPlaintext
        let statement: [UInt8]
        do throws(SealedFormatError) {
            plaintext = try SealedPlaintext(decoding: bytes)
            statement = try OriginStatement.bytes(
                infoDigest: Array(SHA256.hash(data: info)), originKeyID: plaintext.originKeyID,
                content: plaintext.content)
        } catch { throw .malformedMessage(detail: error.description) }

        let originKeyID = IdentifierText.hexadecimal(plaintext.originKeyID)
        guard let origin = origins[originKeyID] else { throw .unknownOrigin(originKeyID: originKeyID) }
        guard origin.isValidSignature(plaintext.signature, for: statement) else {
            throw .forgedOrigin(originKeyID: originKeyID)
        }
        return (plaintext.content, info)
    }
}
