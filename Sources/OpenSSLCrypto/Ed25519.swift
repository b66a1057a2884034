import COpenSSL

/// An Ed25519 signing key (RFC 8032), parsed once.
package final class Ed25519PrivateKey: @unchecked Sendable {
    // @unchecked is sound because an EVP_PKEY that is never changed may be used by many threads at once
    // (openssl-threads(7)): every signature gets a context of its own, and the key is never modified.
    private let key: OpaquePointer

    package static let seedByteCount = 32
    package static let signatureByteCount = 64

    package let publicKey: Ed25519PublicKey

    /// - Parameter seed: Exactly 32 bytes (RFC 8032 calls it the private key).
    package init(seed: SecretBytes) throws {
        guard seed.count == Self.seedByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an Ed25519 seed", expected: Self.seedByteCount, actual: seed.count)
        }
        let imported = seed.withUnsafeBytes {
            EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, $0.bytePointer, $0.count)
        }
        // OpenSSL 3.0 copies an imported seed into ordinary memory, and that of a duplicate into its secure heap
        // (``SecretMemory``). The import is overwritten as it is freed.
        let parsed = imported.flatMap { EVP_PKEY_dup($0) }
        EVP_PKEY_free(imported)
        guard let parsed else { throw OpenSSLError.lastFailure(of: "read the Ed25519 seed") }
        var raw = [UInt8](repeating: 0, count: Ed25519PublicKey.byteCount)
        var count = raw.count
        guard EVP_PKEY_get_raw_public_key(parsed, &raw, &count) == 1, count == raw.count else {
            EVP_PKEY_free(parsed)
            throw OpenSSLError.lastFailure(of: "derive the Ed25519 public key")
        }
        key = parsed
        publicKey = try Ed25519PublicKey(rawBytes: raw)
    }

    package static func generate() throws -> Ed25519PrivateKey {
        try Ed25519PrivateKey(seed: .random(byteCount: seedByteCount))
    }

    deinit { EVP_PKEY_free(key) }

    /// - Returns: 64 bytes. Equal messages give equal signatures; no randomness is used.
    package func sign(_ message: [UInt8]) throws -> [UInt8] {
        try message.withUnsafeBytes { message in
            try [UInt8](unsafeUninitializedCapacity: Self.signatureByteCount) { signature, count in
                try sign(
                    message,
                    into: UnsafeMutableRawBufferPointer(
                        start: signature.baseAddress, count: Self.signatureByteCount))
                count = Self.signatureByteCount
            }
        }
    }

    /// - Parameter signature: Room for exactly 64 bytes, outside `message`.
    package func sign(_ message: UnsafeRawBufferPointer, into signature: UnsafeMutableRawBufferPointer) throws
    {
        precondition(signature.count == Self.signatureByteCount)
        guard let context = EVP_MD_CTX_new() else {
            throw OpenSSLError.lastFailure(of: "make a signing context")
        }
        defer { EVP_MD_CTX_free(context) }
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(
                context, signature.baseAddress?.assumingMemoryBound(to: UInt8.self), &count,
                message.bytePointer, message.count) == 1,
            count == Self.signatureByteCount
        else { throw OpenSSLError.lastFailure(of: "sign") }
    }

    /// The 32-byte seed, for writing a key file; it is zeroed when `body` returns.
    package func withSeed<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
        try SecretBytes(byteCount: Self.seedByteCount) { buffer in
            var count = buffer.count
            guard
                EVP_PKEY_get_raw_private_key(
                    key, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), &count) == 1,
                count == buffer.count
            else { throw OpenSSLError.lastFailure(of: "export the Ed25519 seed") }
        }.withUnsafeBytes(body)
    }
}

/// An Ed25519 public key (RFC 8032): its 32 bytes are its identity.
package struct Ed25519PublicKey: Sendable, Hashable {
    package static let byteCount = 32

    package let rawBytes: [UInt8]

    /// - Parameter rawBytes: Exactly 32. A value that is no point of the curve is accepted here, as RFC
    ///   8032 checks it only when verifying, and then validates no signature.
    package init(rawBytes: [UInt8]) throws {
        guard rawBytes.count == Self.byteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an Ed25519 public key", expected: Self.byteCount, actual: rawBytes.count)
        }
        self.rawBytes = rawBytes
    }

    /// `false` for every signature that does not verify, whatever the cause.
    package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
        guard signature.count == Ed25519PrivateKey.signatureByteCount,
            let key = EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, rawBytes, rawBytes.count)
        else { return false }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let valid =
            EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        // A refused signature leaves its reason on the thread's queue, where the next failure would find it.
        ERR_clear_error()
        return valid
    }
}
