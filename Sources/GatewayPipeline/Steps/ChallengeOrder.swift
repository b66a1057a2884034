import CanonicalJSON
import GateVocabulary
import OpenSSLCrypto
import PayloadSealing
import SealedFormat

/// A nonce to be sealed to a device key, whose owner then proves that they can open it.
package struct ChallengeOrder: Hashable, Sendable {
    var key: KeyID
    var suite: SealingSuite
    /// A validated key, as its suite writes it.
    var publicKey: [UInt8]
    var app: String
    var device: DestinationID
    var message: MessageID
    var expiresAt: Instant

    var sealingKey: DeviceSealingKey {
        get throws { try DeviceSealingKey(DevicePublicKey(validatedBefore: publicKey, suite: suite)) }
    }

    /// What the envelope and the proof are bound to.
    var info: SealedInfo {
        get throws {
            try SealedInfo(
                purpose: .challenge, suite: suite, app: app, device: device.text, keyID: key.bytes,
                publicKeyDigest: try sealingKey.publicKey.digest.bytes, messageID: message.bytes,
                expiresAt: UInt64(expiresAt.seconds))
        }
    }
}

/// A sealed nonce, and the one answer that proves it was opened.
struct SealedChallenge {
    var envelope: JSONObject
    /// 32 bytes.
    var proof: [UInt8]
}
