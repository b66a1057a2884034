package import CanonicalJSON
package import GateVocabulary
package import OpenSSLCrypto
package import SealedFormat

/// A nonce to be sealed to a device key, whose owner then proves that they can open it.
package struct ChallengeOrder: Hashable, Sendable {
    package var key: KeyID
    var suite: SealingSuite
    /// A validated public key, in the encoding of its suite.
    var publicKey: [UInt8]
    package var app: String
    package var device: DestinationID
    package var message: MessageID
    package var expiresAt: Instant

    package var sealingKey: DeviceSealingKey {
        get throws { try DeviceSealingKey(DevicePublicKey(validatedBefore: publicKey, suite: suite)) }
    }

    /// What the envelope and the proof are bound to.
    package var info: SealedInfo {
        get throws {
            try SealedInfo(
                purpose: .challenge, suite: suite, app: app, device: device.text, keyID: key.bytes,
                publicKeyDigest: try sealingKey.publicKey.digest.bytes, messageID: message.bytes,
                expiresAt: UInt64(expiresAt.seconds))
        }
    }
}

/// A sealed nonce, and the one answer that proves it was opened.
package struct SealedChallenge {
    package var envelope: JSONObject
    /// 32 bytes.
    package var proof: [UInt8]

    package init(envelope: JSONObject, proof: [UInt8]) {
        self.envelope = envelope
        self.proof = proof
    }
}
