package import GateVocabulary
package import SealedFormat

/// Seals contents to devices, one after another, on one thread.
///
/// Holds OpenSSL's contexts and working memory for both suites and uses them again for every message;
/// that is most of the difference between this and calling a library's HPKE. Make one per thread: being
/// neither copyable nor `Sendable`, it cannot be shared by accident.
///
/// Each message gets an ephemeral key of its own from OpenSSL's generator, so two calls with equal
/// arguments give different envelopes of equal length.
package struct Sealer: ~Copyable {
    private var p256: SuiteSealer
    private var x25519: SuiteSealer

    package init() throws {
        let p256 = try SuiteSealer(.p256)
        let x25519 = try SuiteSealer(.x25519)
        self.p256 = p256
        self.x25519 = x25519
    }

    /// Signs `content` with the origin key, pads it to its bucket, and seals it to one device key.
    ///
    /// - Parameters:
    ///   - content: At most 1,974 bytes; for ``SealingPurpose/challenge`` exactly 32.
    ///   - app: The app's bundle or package name, 1 to 1,024 bytes.
    ///   - device: The device's id as its owner registered it, 1 to 1,024 bytes.
    ///   - keyID: Of `key`.
    ///   - messageID: Never used before for another content to this device: the app drops a message whose id it has seen.
    ///   - expiresAt: Unix seconds, ten digits.
    /// - Returns: The envelope, whose length is ``SealedEnvelope/byteCount(contentByteCount:suite:)``.
    /// - Throws: ``SealedFormatError`` for what the format cannot carry, ``OpenSSLError`` for a failure of
    ///   the library. Nothing half-made is returned.
    package mutating func seal(
        _ content: [UInt8], to key: DeviceSealingKey, purpose: SealingPurpose, app: String,
        device: DestinationID, keyID: KeyID, messageID: MessageID, expiresAt: UInt64, origin: OriginSigner
    ) throws -> [UInt8] {
        let info = try SealedInfo(
            purpose: purpose, suite: key.publicKey.suite, app: app, device: device.text, keyID: keyID.bytes,
            publicKeyDigest: key.publicKey.digest.bytes, messageID: messageID.bytes, expiresAt: expiresAt)
        return try seal(content, to: key, info: info, origin: origin)
    }

    /// Seals a nonce, with which only the holder of the private half of `key` can make a proof; see ``Possession``.
    ///
    /// - Parameter nonce: 32 bytes, used for this challenge only.
    /// - Returns: The envelope for the device, and the info to check its proof against.
    package mutating func challenge(
        nonce: SecretBytes, to key: DeviceSealingKey, app: String, device: DestinationID, keyID: KeyID,
        messageID: MessageID, expiresAt: UInt64, origin: OriginSigner
    ) throws -> (envelope: [UInt8], info: SealedInfo) {
        var content = nonce.withUnsafeBytes { Array($0) }
        defer { content.zeroise() }
        let info = try SealedInfo(
            purpose: .challenge, suite: key.publicKey.suite, app: app, device: device.text,
            keyID: keyID.bytes,
            publicKeyDigest: key.publicKey.digest.bytes, messageID: messageID.bytes, expiresAt: expiresAt)
        return (try seal(content, to: key, info: info, origin: origin), info)
    }

    private mutating func seal(
        _ content: [UInt8], to key: DeviceSealingKey, info: SealedInfo, origin: OriginSigner
    ) throws -> [UInt8] {
        if info.purpose == .challenge, content.count != SealedLimits.nonceByteCount {
            throw SealedFormatError.wrongByteCount(
                of: "a challenge's nonce", expected: SealedLimits.nonceByteCount, actual: content.count)
        }
        let infoBytes = info.bytes
        var statement = try OriginStatement.bytes(
            infoDigest: SHA256.digest(infoBytes).bytes, originKeyID: origin.keyID, content: content)
        defer { statement.zeroise() }
        var plaintext = try SealedPlaintext(
            originKeyID: origin.keyID, signature: origin.privateKey.sign(statement), content: content
        ).bytes
        defer { plaintext.zeroise() }
        let sealed =
            switch info.suite {
            case .p256: try p256.seal(plaintext, to: key.agreement, info: infoBytes)
            case .x25519: try x25519.seal(plaintext, to: key.agreement, info: infoBytes)
            }
        let envelope = try SealedEnvelope(
            suite: info.suite, keyID: info.keyID, messageID: info.messageID, expiresAt: info.expiresAt,
            sealed: sealed
        ).bytes
        // The planning of the send has already used this length to decide that the payload fits its channel.
        let foretold = SealedEnvelope.byteCount(contentByteCount: content.count, suite: info.suite)
        precondition(
            envelope.count == foretold,
            "an envelope of \(envelope.count) bytes around \(content.count) of content was planned as \(foretold ?? -1)"
        )
        return envelope
    }
}

/// One suite's contexts and memory.
private struct SuiteSealer: ~Copyable {
    private let suite: SealingSuite
    private var agreement: EphemeralAgreement
    private var hpke: HPKEBaseMode
    private var aead: AEADSealing
    private var scratch: SecretScratch

    init(_ suite: SealingSuite) throws {
        // What can fail comes first: a noncopyable value cannot be left half made.
        let agreement = try EphemeralAgreement(curve: suite.curve)
        let aead = try AEADSealing(suite.aead)
        self.suite = suite
        self.agreement = agreement
        self.aead = aead
        scratch = SecretScratch(byteCount: 4 * HPKEBaseMode.secretByteCount)
        hpke = HPKEBaseMode(HPKEAlgorithms(kem: suite.curve, aead: suite.aead))
    }

    /// - Returns: enc ‖ ciphertext ‖ tag. The `aad` is empty: Tink's hybrid decryption cannot pass one, so
    ///   everything is bound through `info`.
    mutating func seal(_ plaintext: [UInt8], to recipient: AgreementPublicKey, info: [UInt8]) throws
        -> [UInt8]
    {
        let encapsulatedCount = suite.publicKeyByteCount
        let sealedCount = encapsulatedCount + plaintext.count + SealedLimits.tagByteCount
        return try [UInt8](unsafeUninitializedCapacity: sealedCount) { buffer, count in
            let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: sealedCount)
            let encapsulated = UnsafeMutableRawBufferPointer(rebasing: output[..<encapsulatedCount])
            try scratch.use { memory in
                let agreed = memory.quarter(0)
                let sharedSecret = memory.quarter(1)
                let key = memory.quarter(2)
                let baseNonce = memory.quarter(3)
                try agreement.agree(with: recipient, publicKey: encapsulated, sharedSecret: agreed)
                hpke.deriveSharedSecret(
                    agreed: UnsafeRawBufferPointer(agreed),
                    encapsulated: UnsafeRawBufferPointer(encapsulated),
                    recipient: recipient.rawBytes, into: sharedSecret)
                hpke.schedule(
                    sharedSecret: UnsafeRawBufferPointer(sharedSecret), info: info, key: key,
                    baseNonce: baseNonce)
                try plaintext.withUnsafeBytes { plaintext in
                    try aead.seal(
                        plaintext, aad: UnsafeRawBufferPointer(start: nil, count: 0),
                        key: UnsafeRawBufferPointer(key),
                        nonce: UnsafeRawBufferPointer(rebasing: baseNonce[..<AEADAlgorithm.nonceByteCount]),
                        into: UnsafeMutableRawBufferPointer(rebasing: output[encapsulatedCount...]))
                }
            }
            count = sealedCount
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func quarter(_ index: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            rebasing: self[
                (index * HPKEBaseMode.secretByteCount)..<((index + 1) * HPKEBaseMode.secretByteCount)])
    }
}
