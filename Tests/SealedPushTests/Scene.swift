import Crypto
import FoundationEssentials
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import SealedPush

/// A gateway that seals with OpenSSL and a device that opens with swift-crypto: two implementations that
/// share nothing but the bytes.
struct Scene {
    static let app = "no.getdrop.app"
    static let device = "d_1"
    static let keyID = KeyID(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF)
    static let messageID = MessageID(high: 0xF0E1_D2C3_B4A5_9687, low: 0x7869_5A4B_3C2D_1E0F)
    static let originKeyID: [UInt8] = [0x0A, 0x1B, 0x2C, 0x3D, 0x4E, 0x5F, 0x60, 0x71]
    static let now: UInt64 = 1_790_000_000
    static let expiresAt: UInt64 = 1_790_003_600

    let suite: SealingSuite
    let deviceKey: DeviceKey
    let sealingKey: DeviceSealingKey
    let originKey: Ed25519PrivateKey
    let signer: OriginSigner

    init(_ suite: SealingSuite) throws {
        self.suite = suite
        deviceKey = try Self.newDeviceKey(suite)
        sealingKey = try DeviceSealingKey(DevicePublicKey(validating: deviceKey.publicKey, suite: suite))
        originKey = try .generate()
        signer = try OriginSigner(keyID: Self.originKeyID, privateKey: originKey)
    }

    static func newDeviceKey(_ suite: SealingSuite, keyID: KeyID = keyID) throws -> DeviceKey {
        switch suite {
        case .p256: try DeviceKey(keyID: keyID.hexadecimal, privateKey: P256.KeyAgreement.PrivateKey())
        case .x25519:
            try DeviceKey(keyID: keyID.hexadecimal, privateKey: Curve25519.KeyAgreement.PrivateKey())
        }
    }

    var origin: OriginKey {
        get throws {
            try OriginKey(
                keyID: IdentifierText.hexadecimal(Self.originKeyID), publicKey: originKey.publicKey.rawBytes)
        }
    }

    func opener(
        app: String = app, device: String = device, keys: [DeviceKey]? = nil, origins: [OriginKey]? = nil,
        seen: any SeenMessages = InMemorySeenMessages()
    ) throws -> SealedPushOpener {
        try SealedPushOpener(
            app: app, device: device, keys: keys ?? [deviceKey], origins: origins ?? [origin], seen: seen)
    }

    func seal(
        _ content: [UInt8], purpose: SealingPurpose = .notification, messageID: MessageID = messageID,
        expiresAt: UInt64 = expiresAt, signer: OriginSigner? = nil
    ) throws -> [UInt8] {
        var sealer = try Sealer()
        return try sealer.seal(
            content, to: sealingKey, purpose: purpose, app: Self.app, device: DestinationID(Self.device),
            keyID: Self.keyID, messageID: messageID, expiresAt: expiresAt, origin: signer ?? self.signer)
    }

    func info(purpose: SealingPurpose = .notification, messageID: MessageID = messageID) throws -> SealedInfo
    {
        try SealedInfo(
            purpose: purpose, suite: suite, app: Self.app, device: Self.device, keyID: Self.keyID.bytes,
            publicKeyDigest: sealingKey.publicKey.digest.bytes, messageID: messageID.bytes,
            expiresAt: Self.expiresAt)
    }

    /// What a faulty gateway, or a thief of the public key, can seal: any plaintext at all.
    func sealRaw(_ plaintext: [UInt8], purpose: SealingPurpose = .notification) throws -> [UInt8] {
        let info = Data(try info(purpose: purpose).bytes)
        let sealed: [UInt8]
        switch suite {
        case .p256:
            var sender = try HPKE.Sender(
                recipientKey: P256.KeyAgreement.PublicKey(x963Representation: deviceKey.publicKey),
                ciphersuite: .P256_SHA256_AES_GCM_256, info: info)
            let ciphertext = try sender.seal(plaintext)
            sealed = Array(sender.encapsulatedKey) + Array(ciphertext)
        case .x25519:
            var sender = try HPKE.Sender(
                recipientKey: Curve25519.KeyAgreement.PublicKey(rawRepresentation: deviceKey.publicKey),
                ciphersuite: .Curve25519_SHA256_ChachaPoly, info: info)
            let ciphertext = try sender.seal(plaintext)
            sealed = Array(sender.encapsulatedKey) + Array(ciphertext)
        }
        return try SealedEnvelope(
            suite: suite, keyID: Self.keyID.bytes, messageID: Self.messageID.bytes, expiresAt: Self.expiresAt,
            sealed: sealed
        ).bytes
    }

    /// A plaintext that a genuine gateway would have made.
    func plaintext(_ content: [UInt8], purpose: SealingPurpose = .notification) throws -> [UInt8] {
        let statement = try OriginStatement.bytes(
            infoDigest: SHA256.digest(info(purpose: purpose).bytes).bytes, originKeyID: Self.originKeyID,
            content: content)
        return try SealedPlaintext(
            originKeyID: Self.originKeyID, signature: originKey.sign(statement), content: content
        ).bytes
    }
}
