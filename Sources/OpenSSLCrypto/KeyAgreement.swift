import COpenSSL

/// A Diffie-Hellman group this project agrees keys in.
package enum AgreementCurve: Sendable, CaseIterable {
    /// NIST P-256 (FIPS 186-5): public keys are 65-byte uncompressed points (SEC 1 section 2.3.3).
    case p256
    /// RFC 7748: public keys are 32-byte u-coordinates.
    case x25519

    package var publicKeyByteCount: Int {
        switch self {
        case .p256: 65
        case .x25519: 32
        }
    }

    /// P-256 gives the point's x-coordinate.
    package static let sharedSecretByteCount = 32
    package static let privateKeyByteCount = 32
}

/// A peer's public key, parsed and found acceptable.
///
/// Many threads may agree with it at once.
package final class AgreementPublicKey: @unchecked Sendable {
    // @unchecked is sound because the EVP_PKEY is never changed after `init`; agreements only take a
    // counted reference to it (openssl-threads(7)).
    fileprivate let key: OpaquePointer

    package let curve: AgreementCurve
    package let rawBytes: [UInt8]

    /// Parses a key that ``init(validating:curve:)`` accepted before.
    ///
    /// Still refuses what has the wrong form or is no point of the curve, but leaves out the costly checks.
    ///
    /// - Warning: For bytes from outside use ``init(validating:curve:)``.
    package init(validatedBefore rawBytes: [UInt8], curve: AgreementCurve) throws {
        guard rawBytes.count == curve.publicKeyByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "a \(curve) public key", expected: curve.publicKeyByteCount, actual: rawBytes.count)
        }
        let parsed: OpaquePointer?
        switch curve {
        case .p256:
            // OpenSSL would also take hybrid points (0x06, 0x07) of this length.
            guard rawBytes[0] == 0x04 else {
                throw OpenSSLError.unacceptablePublicKey(
                    why: "a P-256 key must be an uncompressed point, which starts with 0x04")
            }
            parsed = sendgate_p256_key_like(try P256Pattern.shared.get(), rawBytes)
        case .x25519:
            parsed = EVP_PKEY_new_raw_public_key_ex(nil, "X25519", nil, rawBytes, rawBytes.count)
        }
        guard let parsed else {
            ERR_clear_error()
            throw OpenSSLError.unacceptablePublicKey(why: "it is not a point of the curve")
        }
        key = parsed
        self.curve = curve
        self.rawBytes = rawBytes
    }

    /// Parses a key from outside and checks everything that could weaken an agreement with it.
    ///
    /// P-256: on the curve, of the group's order, not the identity (`EVP_PKEY_public_check`). X25519: the
    /// canonical spelling, and not of low order, which OpenSSL notices only in an agreement: so one is made.
    package convenience init(validating rawBytes: [UInt8], curve: AgreementCurve) throws {
        try self.init(validatedBefore: rawBytes, curve: curve)
        switch curve {
        case .p256:
            guard let context = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
                throw OpenSSLError.lastFailure(of: "check the public key")
            }
            defer { EVP_PKEY_CTX_free(context) }
            guard EVP_PKEY_public_check(context) == 1 else {
                ERR_clear_error()
                throw OpenSSLError.unacceptablePublicKey(
                    why: "it fails the checks of SP 800-56A section 5.6.2.3")
            }
        case .x25519:
            guard Self.isCanonicalX25519(rawBytes) else {
                throw OpenSSLError.unacceptablePublicKey(why: "the u-coordinate is not below 2^255 - 19")
            }
            do {
                _ = try AgreementPrivateKey.generate(curve: .x25519).sharedSecret(with: self)
            } catch {
                throw OpenSSLError.unacceptablePublicKey(
                    why: "it has low order: every agreement with it gives zeros")
            }
        }
    }

    deinit { EVP_PKEY_free(key) }

    /// Whether a little-endian u-coordinate is below 2²⁵⁵−19. RFC 7748 lets receivers reduce a larger one;
    /// the owner of such a key would compute other bytes for it than it sent, and open nothing.
    private static func isCanonicalX25519(_ rawBytes: [UInt8]) -> Bool {
        if rawBytes[31] != 0x7f { return rawBytes[31] < 0x7f }
        return rawBytes[1..<31].contains { $0 != 0xff } || rawBytes[0] < 0xed
    }
}

/// A private agreement key, for the device's side: vectors, demonstrations, fault finding.
///
/// The gateway holds none: what it seals with is made for one message by ``EphemeralAgreement``.
package final class AgreementPrivateKey: @unchecked Sendable {
    // @unchecked is sound for the same reason as in AgreementPublicKey.
    private let key: OpaquePointer

    package let publicKey: AgreementPublicKey

    /// - Parameters:
    ///   - rawBytes: 32 bytes: the P-256 scalar, big-endian, or the X25519 key of RFC 7748.
    ///   - publicKey: The key's own public half, in the curve's raw form.
    package init(rawBytes: SecretBytes, publicKey: [UInt8], curve: AgreementCurve) throws {
        guard rawBytes.count == AgreementCurve.privateKeyByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "a \(curve) private key", expected: AgreementCurve.privateKeyByteCount,
                actual: rawBytes.count)
        }
        let publicKey = try AgreementPublicKey(validatedBefore: publicKey, curve: curve)
        let parsed = rawBytes.withUnsafeBytes { raw in
            switch curve {
            case .p256: sendgate_p256_key_new(publicKey.rawBytes, publicKey.rawBytes.count, raw.bytePointer)
            case .x25519: EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, raw.bytePointer, raw.count)
            }
        }
        guard let parsed else { throw OpenSSLError.lastFailure(of: "read the private key") }
        self.key = parsed
        self.publicKey = publicKey
        // Two halves that do not belong together would agree on different secrets than their owner expects.
        guard let context = EVP_PKEY_CTX_new_from_pkey(nil, parsed, nil) else {
            throw OpenSSLError.lastFailure(of: "check the key pair")
        }
        defer { EVP_PKEY_CTX_free(context) }
        switch curve {
        case .p256:
            guard EVP_PKEY_pairwise_check(context) == 1 else {
                throw OpenSSLError.lastFailure(of: "match the key pair")
            }
        case .x25519:
            var derived = [UInt8](repeating: 0, count: 32)
            var count = derived.count
            guard EVP_PKEY_get_raw_public_key(parsed, &derived, &count) == 1, derived == publicKey.rawBytes
            else {
                throw OpenSSLError.failed(
                    operation: "match the key pair", reason: "the public key is another one's")
            }
        }
    }

    private init(owning key: OpaquePointer, publicKey: AgreementPublicKey) {
        self.key = key
        self.publicKey = publicKey
    }

    package static func generate(curve: AgreementCurve) throws -> AgreementPrivateKey {
        let generation = try KeyGeneration.context(for: curve)
        defer { EVP_PKEY_CTX_free(generation) }
        let key = try KeyGeneration.generate(in: generation)
        do {
            var raw = [UInt8](repeating: 0, count: curve.publicKeyByteCount)
            try raw.withUnsafeMutableBytes {
                try KeyGeneration.writePublicKey(of: key, curve: curve, into: $0)
            }
            return AgreementPrivateKey(
                owning: key, publicKey: try AgreementPublicKey(validatedBefore: raw, curve: curve))
        } catch {
            EVP_PKEY_free(key)
            throw error
        }
    }

    deinit { EVP_PKEY_free(key) }

    /// - Returns: 32 bytes, before any key derivation.
    package func sharedSecret(with peer: AgreementPublicKey) throws -> SecretBytes {
        precondition(peer.curve == publicKey.curve, "keys of two curves cannot agree")
        return try SecretBytes(byteCount: AgreementCurve.sharedSecretByteCount) {
            try KeyGeneration.agree(key, with: peer, into: $0)
        }
    }
}

/// Makes a fresh key pair for one message and agrees with a peer's key, again and again.
///
/// Ephemeral private keys come from OpenSSL's key generation, are used once and freed (OpenSSL zeroes
/// them); they cannot be injected. One thread at a time: the pointer inside keeps it from being `Sendable`.
package struct EphemeralAgreement: ~Copyable {
    package let curve: AgreementCurve
    // A bare pointer, as a private noncopyable type in here cannot be destroyed from an optimised other
    // module (Swift 6.3.1: the linker misses its metadata).
    private let generation: OpaquePointer

    package init(curve: AgreementCurve) throws {
        generation = try KeyGeneration.context(for: curve)
        self.curve = curve
    }

    deinit { EVP_PKEY_CTX_free(generation) }

    /// - Parameters:
    ///   - peer: A key of this curve.
    ///   - publicKey: Receives the ephemeral public key: 65 bytes for P-256, 32 for X25519.
    ///   - sharedSecret: Receives 32 bytes, before any key derivation. The caller zeroes them.
    package mutating func agree(
        with peer: AgreementPublicKey, publicKey: UnsafeMutableRawBufferPointer,
        sharedSecret: UnsafeMutableRawBufferPointer
    ) throws {
        precondition(peer.curve == curve, "keys of two curves cannot agree")
        let key = try KeyGeneration.generate(in: generation)
        defer { EVP_PKEY_free(key) }
        try KeyGeneration.writePublicKey(of: key, curve: curve, into: publicKey)
        try KeyGeneration.agree(key, with: peer, into: sharedSecret)
    }
}

/// A P-256 key that others are copied from, so that the curve is set up once per process.
private struct P256Pattern: @unchecked Sendable {
    // @unchecked is sound because the key is never changed, freed or handed out: `EVP_PKEY_dup` only reads
    // it (openssl-threads(7)).
    private let key: OpaquePointer?

    static let shared = P256Pattern()

    private init() {
        // Any point will do; this is the curve's base point (SEC 2 section 2.4.2).
        let basePoint: [UInt8] = [
            0x04,
            0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
            0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96,
            0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16,
            0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
        ]
        key = sendgate_p256_key_new(basePoint, basePoint.count, nil)
    }

    func get() throws -> OpaquePointer {
        guard let key else {
            throw OpenSSLError.failed(operation: "set up P-256", reason: "no loaded provider offers it")
        }
        return key
    }
}

/// OpenSSL's key generation and agreement, without anything of their own.
private enum KeyGeneration {
    /// Set up once, used for many keys. The caller frees it.
    static func context(for curve: AgreementCurve) throws -> OpaquePointer {
        let context: OpaquePointer?
        switch curve {
        case .p256: context = sendgate_p256_generation_new()
        case .x25519:
            context = EVP_PKEY_CTX_new_from_name(nil, "X25519", nil)
            if let context, EVP_PKEY_keygen_init(context) != 1 {
                EVP_PKEY_CTX_free(context)
                throw OpenSSLError.lastFailure(of: "prepare key generation")
            }
        }
        guard let context else { throw OpenSSLError.lastFailure(of: "prepare key generation") }
        return context
    }

    /// The caller frees the key.
    static func generate(in context: OpaquePointer) throws -> OpaquePointer {
        var key: OpaquePointer?
        guard EVP_PKEY_keygen(context, &key) == 1, let key else {
            throw OpenSSLError.lastFailure(of: "generate a key")
        }
        return key
    }

    static func writePublicKey(
        of key: OpaquePointer, curve: AgreementCurve, into output: UnsafeMutableRawBufferPointer
    ) throws {
        precondition(output.count == curve.publicKeyByteCount)
        let start = output.baseAddress!.assumingMemoryBound(to: UInt8.self)
        var count = output.count
        let written =
            switch curve {
            case .p256: sendgate_p256_public_point(key, start)
            case .x25519: EVP_PKEY_get_raw_public_key(key, start, &count)
            }
        guard written == 1, count == output.count else {
            throw OpenSSLError.lastFailure(of: "write the public key")
        }
    }

    static func agree(
        _ key: OpaquePointer, with peer: AgreementPublicKey, into sharedSecret: UnsafeMutableRawBufferPointer
    ) throws {
        precondition(sharedSecret.count == AgreementCurve.sharedSecretByteCount)
        guard let derivation = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
            throw OpenSSLError.lastFailure(of: "prepare the agreement")
        }
        defer { EVP_PKEY_CTX_free(derivation) }
        var count = sharedSecret.count
        // The peer was validated when it was registered, so the last argument asks for no second check.
        guard EVP_PKEY_derive_init(derivation) == 1,
            EVP_PKEY_derive_set_peer_ex(derivation, peer.key, 0) == 1,
            EVP_PKEY_derive(derivation, sharedSecret.baseAddress?.assumingMemoryBound(to: UInt8.self), &count)
                == 1,
            count == sharedSecret.count
        else { throw OpenSSLError.lastFailure(of: "agree on a secret") }
    }
}
