import COpenSSL

/// An AEAD this project seals with. Both take a 32-byte key and a 12-byte nonce and add a 16-byte tag.
package enum AEADAlgorithm: Sendable, CaseIterable {
    /// NIST SP 800-38D.
    case aes256GCM
    /// RFC 8439.
    case chaCha20Poly1305

    package static let keyByteCount = 32
    package static let nonceByteCount = 12
    package static let tagByteCount = 16

    fileprivate func withCipher<Result>(_ body: (OpaquePointer) throws -> Result) throws -> Result {
        switch self {
        case .aes256GCM: try body(FetchedCipher.aes256GCM.get())
        case .chaCha20Poly1305: try body(FetchedCipher.chaCha20Poly1305.get())
        }
    }
}

/// A cipher's implementation, looked up once per process: looking it up by name per message costs more
/// than sealing a short one.
private struct FetchedCipher: @unchecked Sendable {
    // @unchecked is sound because an EVP_CIPHER that was fetched is immutable and is never freed here;
    // OpenSSL counts references to it with atomics (openssl-threads(7)).
    private let cipher: OpaquePointer?
    private let name: String

    private init(_ name: String) {
        self.name = name
        cipher = EVP_CIPHER_fetch(nil, name, nil)
    }

    static let aes256GCM = FetchedCipher("AES-256-GCM")
    static let chaCha20Poly1305 = FetchedCipher("ChaCha20-Poly1305")

    func get() throws -> OpaquePointer {
        guard let cipher else {
            throw OpenSSLError.failed(operation: "find \(name)", reason: "no loaded provider offers it")
        }
        return cipher
    }
}

/// Seals many messages, each under its own key, on one reused context.
///
/// One thread at a time: the pointer inside keeps it from being `Sendable`.
///
/// - Warning: The caller answers for never using one (key, nonce) pair twice. For data at rest use
///   ``AES256GCMKey``, which draws its nonces itself.
package struct AEADSealing: ~Copyable {
    private let context: OpaquePointer

    package init(_ algorithm: AEADAlgorithm) throws {
        guard let context = EVP_CIPHER_CTX_new() else {
            throw OpenSSLError.lastFailure(of: "make a cipher context")
        }
        do {
            let started = try algorithm.withCipher { EVP_EncryptInit_ex2(context, $0, nil, nil, nil) }
            guard started == 1 else { throw OpenSSLError.lastFailure(of: "start the cipher") }
        } catch {
            EVP_CIPHER_CTX_free(context)
            throw error
        }
        self.context = context
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes, never used before with this key.
    ///   - output: `plaintext.count` + 16 bytes: ciphertext ‖ tag.
    package mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws {
        precondition(key.count == AEADAlgorithm.keyByteCount && nonce.count == AEADAlgorithm.nonceByteCount)
        precondition(output.count == plaintext.count + AEADAlgorithm.tagByteCount)
        let start = output.baseAddress!.assumingMemoryBound(to: UInt8.self)
        var written: Int32 = 0
        guard EVP_EncryptInit_ex2(context, nil, key.bytePointer, nonce.bytePointer, nil) == 1,
            aad.isEmpty || EVP_EncryptUpdate(context, nil, &written, aad.bytePointer, Int32(aad.count)) == 1,
            plaintext.isEmpty
                || EVP_EncryptUpdate(context, start, &written, plaintext.bytePointer, Int32(plaintext.count))
                    == 1,
            EVP_EncryptFinal_ex(context, start + plaintext.count, &written) == 1,
            sendgate_aead_get_tag(context, start + plaintext.count) == 1
        else { throw OpenSSLError.lastFailure(of: "seal") }
    }
}

/// AES-256-GCM for data at rest. Sealed bytes are nonce[12] ‖ ciphertext ‖ tag[16].
///
/// Nonces are random, so one key must seal fewer than 2³² messages (NIST SP 800-38D section 8.3);
/// `KeyLifecycle` rotates long before that.
package struct AES256GCMKey: Sendable {
    /// How much longer sealed bytes are than their plaintext.
    package static let overheadByteCount = AEADAlgorithm.nonceByteCount + AEADAlgorithm.tagByteCount

    private let secret: SecretBytes

    /// - Parameter secret: Exactly 32 bytes.
    package init(_ secret: SecretBytes) throws {
        guard secret.count == AEADAlgorithm.keyByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an AES-256 key", expected: AEADAlgorithm.keyByteCount, actual: secret.count)
        }
        self.secret = secret
    }

    /// - Parameter aad: What the bytes belong to; ``open(_:aad:)`` needs the same.
    package func seal(_ plaintext: [UInt8], aad: [UInt8]) throws -> [UInt8] {
        var sealing = try AEADSealing(.aes256GCM)
        return try [UInt8](
            unsafeUninitializedCapacity: plaintext.count + Self.overheadByteCount
        ) { buffer, count in
            let output = UnsafeMutableRawBufferPointer(
                start: buffer.baseAddress, count: plaintext.count + Self.overheadByteCount)
            let nonce = UnsafeMutableRawBufferPointer(rebasing: output[..<AEADAlgorithm.nonceByteCount])
            try SecureRandom.fill(nonce)
            try plaintext.withUnsafeBytes { plaintext in
                try aad.withUnsafeBytes { aad in
                    try secret.withUnsafeBytes { key in
                        try sealing.seal(
                            plaintext, aad: aad, key: key, nonce: UnsafeRawBufferPointer(nonce),
                            into: UnsafeMutableRawBufferPointer(
                                rebasing: output[AEADAlgorithm.nonceByteCount...]))
                    }
                }
            }
            count = output.count
        }
    }

    /// - Throws: ``OpenSSLError/authenticationFailed`` for every input that ``seal(_:aad:)`` did not make
    ///   with this key and `aad`, too short ones included.
    package func open(_ sealed: [UInt8], aad: [UInt8]) throws -> [UInt8] {
        let plaintextCount = sealed.count - Self.overheadByteCount
        guard plaintextCount >= 0, sealed.count <= Int(Int32.max) else {
            throw OpenSSLError.authenticationFailed
        }
        guard let context = EVP_CIPHER_CTX_new() else {
            throw OpenSSLError.lastFailure(of: "make a cipher context")
        }
        defer { EVP_CIPHER_CTX_free(context) }
        return try sealed.withUnsafeBytes { sealed in
            let nonce = sealed.bytePointer!
            let ciphertext = nonce + AEADAlgorithm.nonceByteCount
            let started = try secret.withUnsafeBytes { key in
                try AEADAlgorithm.aes256GCM.withCipher {
                    EVP_DecryptInit_ex2(context, $0, key.bytePointer, nonce, nil)
                }
            }
            guard started == 1 else { throw OpenSSLError.lastFailure(of: "start the cipher") }
            return try aad.withUnsafeBytes { aad in
                try [UInt8](unsafeUninitializedCapacity: max(plaintextCount, 1)) { plaintext, count in
                    var written: Int32 = 0
                    guard
                        aad.isEmpty
                            || EVP_DecryptUpdate(context, nil, &written, aad.bytePointer, Int32(aad.count))
                                == 1,
                        plaintextCount == 0
                            || EVP_DecryptUpdate(
                                context, plaintext.baseAddress, &written, ciphertext, Int32(plaintextCount))
                                == 1,
                        sendgate_gcm_set_tag(context, ciphertext + plaintextCount) == 1,
                        EVP_DecryptFinal_ex(context, plaintext.baseAddress! + plaintextCount, &written) == 1
                    else {
                        // What was decrypted before the tag was checked must not outlive the refusal.
                        OPENSSL_cleanse(plaintext.baseAddress, plaintextCount)
                        ERR_clear_error()
                        throw OpenSSLError.authenticationFailed
                    }
                    count = plaintextCount
                }
            }
        }
    }
}

extension UnsafeRawBufferPointer {
    var bytePointer: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}
