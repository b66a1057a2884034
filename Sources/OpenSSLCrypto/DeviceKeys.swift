package import GateVocabulary
package import SealedFormat

/// A device's public key that passed the checks of its curve, as the store keeps it.
package struct DevicePublicKey: Hashable, Sendable {
    package let suite: SealingSuite
    /// 65 bytes for P-256, starting with 0x04; 32 for X25519.
    package let rawBytes: [UInt8]
    /// SHA-256 of ``rawBytes``: what messages are bound to.
    package let digest: SHA256Digest

    /// Takes a key from outside. Done once, when the device registers it, as it costs about as much as
    /// sealing a message.
    ///
    /// - Throws: ``OpenSSLError/wrongByteCount(what:expected:actual:)`` or
    ///   ``OpenSSLError/unacceptablePublicKey(why:)``.
    package init(validating rawBytes: [UInt8], suite: SealingSuite) throws {
        _ = try AgreementPublicKey(validating: rawBytes, curve: suite.curve)
        self.init(rawBytes: rawBytes, suite: suite)
    }

    /// Takes a key back from the gateway's store, where it arrived through ``init(validating:suite:)``.
    ///
    /// - Warning: Checks nothing. Bytes that are no point of the curve are found when ``DeviceSealingKey`` parses them; a key of
    ///   low order is found when a message is sealed to it.
    package init(validatedBefore rawBytes: [UInt8], suite: SealingSuite) {
        self.init(rawBytes: rawBytes, suite: suite)
    }

    private init(rawBytes: [UInt8], suite: SealingSuite) {
        self.suite = suite
        self.rawBytes = rawBytes
        digest = SHA256.digest(rawBytes)
    }
}

/// A device's public key, parsed and ready to seal to, on any thread.
///
/// Parsing costs about a twentieth of sealing a short message.
package final class DeviceSealingKey: Sendable {
    package let publicKey: DevicePublicKey
    let agreement: AgreementPublicKey

    package init(_ publicKey: DevicePublicKey) throws {
        self.publicKey = publicKey
        agreement = try AgreementPublicKey(validatedBefore: publicKey.rawBytes, curve: publicKey.suite.curve)
    }
}

/// The gateway's origin key: it signs the content of sealed messages (inside the seal) and of open pushes, so that an app can tell
/// that they come from this gateway.
package struct OriginSigner: Sendable {
    /// 8 bytes; an app chooses the public key to verify with by it.
    package let keyID: [UInt8]
    package let privateKey: Ed25519PrivateKey

    package init(keyID: [UInt8], privateKey: Ed25519PrivateKey) throws(SealedFormatError) {
        guard keyID.count == SealedLimits.originKeyIDByteCount else {
            throw .wrongByteCount(
                of: "an origin key id", expected: SealedLimits.originKeyIDByteCount, actual: keyID.count)
        }
        self.keyID = keyID
        self.privateKey = privateKey
    }

    /// Signs what an open push shows and leads to.
    ///
    /// - Parameters:
    ///   - app: The app's bundle or package name, 1 to 1,024 bytes.
    ///   - device: The device's id as its owner registered it, 1 to 1,024 bytes.
    ///   - expiresAt: Unix seconds, ten digits.
    /// - Returns: ``OriginMark/text``, ``OriginMark/characterCount`` bytes.
    /// - Throws: ``SealedFormatError`` for what the format cannot carry.
    package func mark(
        _ content: OpenPushContent, app: String, device: DestinationID, messageID: MessageID,
        expiresAt: UInt64
    ) throws -> [UInt8] {
        let statement = try OpenPushStatement.bytes(
            originKeyID: keyID, app: app, device: device.text, messageID: messageID.bytes,
            expiresAt: expiresAt, content: content)
        return try OriginMark(
            originKeyID: keyID, messageID: messageID.bytes, expiresAt: expiresAt,
            signature: privateKey.sign(statement)
        ).text
    }
}

extension SealingSuite {
    package var curve: AgreementCurve {
        switch self {
        case .p256: .p256
        case .x25519: .x25519
        }
    }

    package var aead: AEADAlgorithm {
        switch self {
        case .p256: .aes256GCM
        case .x25519: .chaCha20Poly1305
        }
    }
}
