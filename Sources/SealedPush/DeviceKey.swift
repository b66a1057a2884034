import SealedFormat

#if canImport(CryptoKit)
    public import CryptoKit
#else
    public import Crypto
#endif

// Only for `Data`, which HPKE's initializer takes.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The app's own record of one of its keys. Suite and private key of an envelope come from here, never
/// from the envelope.
///
/// A rotated key is kept until every message sealed to it has expired.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
public struct DeviceKey: Sendable {
    /// 32 lower-case hexadecimal digits, as the gateway answered when the key was registered (`key_id`).
    public let keyID: String
    /// The public key in the form that registration takes: 65 bytes for P-256, 32 for X25519.
    public let publicKey: [UInt8]
    /// The suite's name in the registration: `P256_SHA256_AES256GCM` or `X25519_SHA256_CHACHA20POLY1305`.
    public var suiteName: String { suite.rawValue }

    let suite: SealingSuite
    let publicKeyDigest: [UInt8]
    /// (encapsulated key, ciphertext, info) → plaintext. Holds the private key, of whatever kind.
    let openSeal: @Sendable (ArraySlice<UInt8>, ArraySlice<UInt8>, [UInt8]) throws -> [UInt8]

    /// A P-256 key: in memory, or in the Secure Enclave
    /// (`SecureEnclave.P256.KeyAgreement.PrivateKey` has this public key too).
    public init<PrivateKey: HPKEDiffieHellmanPrivateKey>(
        keyID: String, privateKey: PrivateKey
    ) throws(SealedPushError) where PrivateKey.PublicKey == P256.KeyAgreement.PublicKey {
        try self.init(
            keyID: keyID, suite: .p256, publicKey: Array(privateKey.publicKey.x963Representation),
            privateKey: privateKey, ciphersuite: .P256_SHA256_AES_GCM_256)
    }

    /// An X25519 key.
    public init<PrivateKey: HPKEDiffieHellmanPrivateKey>(
        keyID: String, privateKey: PrivateKey
    ) throws(SealedPushError) where PrivateKey.PublicKey == Curve25519.KeyAgreement.PublicKey {
        try self.init(
            keyID: keyID, suite: .x25519, publicKey: Array(privateKey.publicKey.rawRepresentation),
            privateKey: privateKey, ciphersuite: .Curve25519_SHA256_ChachaPoly)
    }

    private init<PrivateKey: HPKEDiffieHellmanPrivateKey>(
        keyID: String, suite: SealingSuite, publicKey: [UInt8], privateKey: PrivateKey,
        ciphersuite: HPKE.Ciphersuite
    ) throws(SealedPushError) {
        guard IdentifierText.bytes(hexadecimal: keyID)?.count == SealedLimits.identifierByteCount else {
            throw .malformedConfiguration(
                detail: "a key id is 32 lower-case hexadecimal digits, not `\(keyID)`")
        }
        self.keyID = keyID
        self.suite = suite
        self.publicKey = publicKey
        publicKeyDigest = Array(SHA256.hash(data: publicKey))
        openSeal = { encapsulatedKey, ciphertext, info in
            var recipient = try HPKE.Recipient(
                privateKey: privateKey, ciphersuite: ciphersuite, info: Data(info),
                encapsulatedKey: Data(encapsulatedKey))
            return Array(try recipient.open(ciphertext))
        }
    }
}

/// A gateway's public origin key. Apps learn it from a ``TrustedKeyset``.
package struct OriginKey: Sendable, Hashable {
    /// 16 lower-case hexadecimal digits.
    package let keyID: String
    /// An Ed25519 public key, 32 bytes.
    package let publicKey: [UInt8]

    package init(keyID: String, publicKey: [UInt8]) throws(SealedPushError) {
        guard IdentifierText.bytes(hexadecimal: keyID)?.count == SealedLimits.originKeyIDByteCount else {
            throw .malformedConfiguration(
                detail: "an origin key id is 16 lower-case hexadecimal digits, not `\(keyID)`")
        }
        guard publicKey.count == 32 else {
            throw .malformedConfiguration(
                detail: "an Ed25519 public key is 32 bytes, this one has \(publicKey.count)")
        }
        self.keyID = keyID
        self.publicKey = publicKey
    }
}
