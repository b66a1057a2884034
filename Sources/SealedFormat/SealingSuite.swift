/// The algorithms an envelope is sealed with. The raw value is its name in envelopes and key records.
package enum SealingSuite: String, Hashable, Sendable, CaseIterable {
    /// DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. The default: the Secure Enclave and the
    /// Android Keystore hold P-256 keys.
    case p256 = "P256_SHA256_AES256GCM"
    /// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305.
    case x25519 = "X25519_SHA256_CHACHA20POLY1305"

    // The numbers are IANA's HPKE registry (RFC 9180 section 7).
    package var kemID: UInt16 {
        switch self {
        case .p256: 0x0010
        case .x25519: 0x0020
        }
    }

    package var kdfID: UInt16 { 0x0001 }

    package var aeadID: UInt16 {
        switch self {
        case .p256: 0x0002
        case .x25519: 0x0003
        }
    }

    /// A raw public key's length, which is also that of the encapsulated key before the ciphertext: an
    /// uncompressed point for P-256 (SEC 1 section 2.3.3), a u-coordinate for X25519.
    package var publicKeyByteCount: Int {
        switch self {
        case .p256: 65
        case .x25519: 32
        }
    }
}

/// What a sealed message is for. Part of `info`, so one cannot pass for the other.
package enum SealingPurpose: UInt8, Hashable, Sendable, CaseIterable {
    case notification = 1
    /// Its content is a nonce of 32 bytes; the device answers with a proof, never with the nonce.
    case challenge = 2
}
