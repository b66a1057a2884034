/// HPKE (RFC 9180) in base mode with HKDF-SHA256, as far as sealing one message per key needs it: the
/// first sequence number, no exporter secret, no pre-shared key.
///
/// The suite's constants (labels, `psk_id_hash`) are computed once. Nothing here draws randomness: the
/// shared secret of the key agreement comes in, so vectors and production run the same code.
package struct HPKEBaseMode: ~Copyable {
    private let suite: HPKEAlgorithms
    private let emptySalt: HMACKey
    private var computation = HMACSHA256Computation()

    // Each is the constant prefix of one LabeledExtract or LabeledExpand (RFC 9180 section 4).
    private let eaePRK: [UInt8]
    private let sharedSecret: [UInt8]
    private let infoHash: [UInt8]
    private let secret: [UInt8]
    private let key: [UInt8]
    private let baseNonce: [UInt8]
    private let pskIDHash: [UInt8]

    package init(_ suite: HPKEAlgorithms) {
        self.suite = suite
        emptySalt = HMACKey(SecretBytes(copying: []))
        let kem = Array("KEM".utf8) + suite.kem.kemID.bigEndianBytes
        let hpke =
            Array("HPKE".utf8) + suite.kem.kemID.bigEndianBytes + [0x00, 0x01]
            + suite.aead.aeadID.bigEndianBytes
        let version = Array("HPKE-v1".utf8)
        func extract(_ suiteID: [UInt8], _ label: String) -> [UInt8] { version + suiteID + Array(label.utf8) }
        func expand(_ suiteID: [UInt8], _ label: String, _ count: Int) -> [UInt8] {
            UInt16(count).bigEndianBytes + version + suiteID + Array(label.utf8)
        }
        eaePRK = extract(kem, "eae_prk")
        sharedSecret = expand(kem, "shared_secret", Self.secretByteCount)
        infoHash = extract(hpke, "info_hash")
        secret = extract(hpke, "secret")
        key = expand(hpke, "key", AEADAlgorithm.keyByteCount)
        baseNonce = expand(hpke, "base_nonce", AEADAlgorithm.nonceByteCount)
        pskIDHash = HKDFSHA256.extract(salt: [], ikm: extract(hpke, "psk_id_hash"))
    }

    /// Nh of HKDF-SHA256, and Nsecret of both KEMs.
    package static let secretByteCount = 32

    /// `ExtractAndExpand` of DHKEM, RFC 9180 section 4.1.
    ///
    /// - Parameters:
    ///   - agreed: What the key agreement gave, 32 bytes.
    ///   - encapsulated: The ephemeral public key.
    ///   - recipient: The raw public key of the device.
    ///   - output: Receives the KEM's shared secret, 32 bytes. The caller zeroes it.
    package mutating func deriveSharedSecret(
        agreed: UnsafeRawBufferPointer, encapsulated: UnsafeRawBufferPointer, recipient: [UInt8],
        into output: UnsafeMutableRawBufferPointer
    ) {
        // eae_prk = LabeledExtract("", "eae_prk", dh)
        computation.start(emptySalt)
        computation.update(eaePRK)
        computation.update(agreed)
        computation.finish(into: output)
        // shared_secret = LabeledExpand(eae_prk, "shared_secret", enc ‖ pkRm, 32): one block of HKDF.
        computation.start(key: UnsafeRawBufferPointer(output))
        computation.update(sharedSecret)
        computation.update(encapsulated)
        computation.update(recipient)
        computation.updateLastBlockCounter()
        computation.finish(into: output)
    }

    /// `KeySchedule` of the base mode, RFC 9180 section 5.1.
    ///
    /// - Parameters:
    ///   - sharedSecret: 32 bytes, from ``deriveSharedSecret(agreed:encapsulated:recipient:into:)``.
    ///   - key: Receives the AEAD key, 32 bytes. The caller zeroes it.
    ///   - baseNonce: Receives 32 bytes, of which the first 12 are the base nonce; also the nonce of the
    ///     first message, as its sequence number is zero.
    package mutating func schedule(
        sharedSecret: UnsafeRawBufferPointer, info: [UInt8], key: UnsafeMutableRawBufferPointer,
        baseNonce: UnsafeMutableRawBufferPointer
    ) {
        withUnsafeTemporaryAllocation(byteCount: 2 * Self.secretByteCount, alignment: 8) { working in
            let infoHash = UnsafeMutableRawBufferPointer(rebasing: working[..<Self.secretByteCount])
            computation.start(emptySalt)
            computation.update(self.infoHash)
            computation.update(info)
            computation.finish(into: infoHash)

            // secret = LabeledExtract(shared_secret, "secret", psk = ""). It is kept in the memory of the base nonce, which is
            // written last: the key is expanded from it first, then the base nonce over it.
            let secret = baseNonce
            computation.start(key: sharedSecret)
            computation.update(self.secret)
            computation.finish(into: secret)

            expand(secret, self.key, infoHash: UnsafeRawBufferPointer(infoHash), into: key)
            expand(secret, self.baseNonce, infoHash: UnsafeRawBufferPointer(infoHash), into: baseNonce)
        }
    }

    /// LabeledExpand(secret, label, key_schedule_context), where the context is mode (0, base) ‖
    /// psk_id_hash ‖ info_hash. Every output is at most one block of HKDF.
    private mutating func expand(
        _ secret: UnsafeMutableRawBufferPointer, _ label: [UInt8], infoHash: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) {
        computation.start(key: UnsafeRawBufferPointer(secret))
        computation.update(label)
        withUnsafeBytes(of: UInt8(0)) { computation.update($0) }
        computation.update(pskIDHash)
        computation.update(infoHash)
        computation.updateLastBlockCounter()
        computation.finish(into: output)
    }
}

/// One combination of KEM and AEAD; the KDF is always HKDF-SHA256 (0x0001).
package struct HPKEAlgorithms: Hashable, Sendable {
    package let kem: AgreementCurve
    package let aead: AEADAlgorithm

    package init(kem: AgreementCurve, aead: AEADAlgorithm) {
        self.kem = kem
        self.aead = aead
    }
}

// The numbers of IANA's HPKE registry (RFC 9180 section 7).
extension AgreementCurve {
    package var kemID: UInt16 {
        switch self {
        case .p256: 0x0010
        case .x25519: 0x0020
        }
    }
}

extension AEADAlgorithm {
    package var aeadID: UInt16 {
        switch self {
        case .aes256GCM: 0x0002
        case .chaCha20Poly1305: 0x0003
        }
    }
}

extension UInt16 {
    fileprivate var bigEndianBytes: [UInt8] { [UInt8(self >> 8), UInt8(truncatingIfNeeded: self)] }
}

extension HMACSHA256Computation {
    /// HKDF's block counter (RFC 5869 section 2.3), which is 1 where one block is enough.
    fileprivate mutating func updateLastBlockCounter() {
        withUnsafeBytes(of: UInt8(1)) { update($0) }
    }
}
