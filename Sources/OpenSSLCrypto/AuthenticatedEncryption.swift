import COpenSSL

/// An AEAD this project seals with. Each takes a 32-byte key and a 12-byte nonce and adds a 16-byte tag.
package enum AEADAlgorithm: Sendable, CaseIterable {
    /// NIST SP 800-38D.
    case aes256GCM
    /// RFC 8439.
    case chaCha20Poly1305

    package static let keyByteCount = 32
    package static let nonceByteCount = 12
    package static let tagByteCount = 16

    fileprivate var cipher: FetchedCipher {
        switch self {
        case .aes256GCM: .aes256GCM
        case .chaCha20Poly1305: .chaCha20Poly1305
        }
    }

    /// - Parameters:
    ///   - key: `nil` where the context has it already.
    ///   - context: Encrypts with one of these algorithms.
    ///   - output: The ciphertext and the tag fit there.
    @inline(__always)
    fileprivate static func seal(
        _ plaintext: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer, key: UnsafePointer<UInt8>?,
        nonce: UnsafeRawBufferPointer, on context: OpaquePointer, into output: UnsafeMutableRawPointer
    ) throws {
        let start = output.assumingMemoryBound(to: UInt8.self)
        var written: Int32 = 0
        guard EVP_EncryptInit_ex2(context, nil, key, nonce.bytePointer, nil) == 1,
            aad.isEmpty || EVP_EncryptUpdate(context, nil, &written, aad.bytePointer, Int32(aad.count)) == 1,
            plaintext.isEmpty
                || EVP_EncryptUpdate(context, start, &written, plaintext.bytePointer, Int32(plaintext.count))
                    == 1,
            EVP_EncryptFinal_ex(context, start + plaintext.count, &written) == 1,
            sendgate_aead_get_tag(context, start + plaintext.count) == 1
        else { throw OpenSSLError.lastFailure(of: "seal") }
    }
}

/// A cipher's implementation, looked up once per process: looking it up by name per message costs more
/// than sealing a short one.
struct FetchedCipher: @unchecked Sendable {
    // @unchecked is sound because an EVP_CIPHER that was fetched is immutable and is never freed here;
    // OpenSSL counts references to it with atomics (openssl-threads(7)).
    private let cipher: OpaquePointer?
    private let name: String

    private init(_ name: String) {
        self.name = name
        cipher = EVP_CIPHER_fetch(nil, name, nil)
    }

    static let aes256CBC = FetchedCipher("AES-256-CBC")
    static let aes256GCM = FetchedCipher("AES-256-GCM")
    static let chaCha20Poly1305 = FetchedCipher("ChaCha20-Poly1305")

    /// A context that `start` has started with the cipher. The caller frees it.
    func makeContext(
        _ start: (_ context: OpaquePointer, _ cipher: OpaquePointer) -> Int32
    ) throws -> OpaquePointer {
        guard let cipher else {
            throw OpenSSLError.failed(operation: "find \(name)", reason: "no loaded provider offers it")
        }
        guard let context = EVP_CIPHER_CTX_new() else {
            throw OpenSSLError.lastFailure(of: "make a cipher context")
        }
        guard start(context, cipher) == 1 else {
            let failure = OpenSSLError.lastFailure(of: "start the cipher")
            EVP_CIPHER_CTX_free(context)
            throw failure
        }
        return context
    }

    /// A context that has its key and encrypts. The caller frees it.
    ///
    /// - Parameters:
    ///   - key: Exactly 32 bytes.
    ///   - nonce: `nil` where each message brings its own.
    func makeEncryptingContext(_ key: SecretBytes, nonce: [UInt8]?) throws -> OpaquePointer {
        guard key.count == AEADAlgorithm.keyByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an AES-256 key", expected: AEADAlgorithm.keyByteCount, actual: key.count)
        }
        return try makeContext { context, cipher in
            key.withUnsafeBytes { EVP_EncryptInit_ex2(context, cipher, $0.bytePointer, nonce, nil) }
        }
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
        context = try algorithm.cipher.makeContext { EVP_EncryptInit_ex2($0, $1, nil, nil, nil) }
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
        try AEADAlgorithm.seal(
            plaintext, aad: aad, key: key.bytePointer, nonce: nonce, on: context, into: output.baseAddress!)
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
        let byteCount = plaintext.count + Self.overheadByteCount
        return try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: byteCount)
            try plaintext.withUnsafeBytes { plaintext in
                try aad.withUnsafeBytes { try AES256GCMContexts(self).seal(plaintext, aad: $0, into: output) }
            }
            count = byteCount
        }
    }

    /// - Throws: ``OpenSSLError/authenticationFailed`` for every input that ``seal(_:aad:)`` did not make
    ///   with this key and `aad`, too short ones included.
    package func open(_ sealed: [UInt8], aad: [UInt8]) throws -> [UInt8] {
        try aad.withUnsafeBytes { try AES256GCMContexts(self).open(sealed[...], aad: $0) }
    }

    fileprivate func withBytes<Result>(_ body: (UnsafePointer<UInt8>?) throws -> Result) rethrows -> Result {
        try secret.withUnsafeBytes { try body($0.bytePointer) }
    }
}

/// Seals and opens many texts under one key, which is expanded once for each direction.
///
/// The expanded key lies in OpenSSL's ordinary memory as long as this lives, so it is made for some work and not kept;
/// OpenSSL zeroes it at the end. One thread at a time: the pointers inside keep it from being `Sendable`.
package final class AES256GCMContexts {
    private let key: AES256GCMKey
    private var sealing: OpaquePointer?
    private var opening: OpaquePointer?

    package init(_ key: AES256GCMKey) { self.key = key }

    deinit {
        EVP_CIPHER_CTX_free(sealing)
        EVP_CIPHER_CTX_free(opening)
    }

    private func makeKeyedContext(
        _ start: (_ context: OpaquePointer, _ cipher: OpaquePointer, _ key: UnsafePointer<UInt8>?) -> Int32
    ) throws -> OpaquePointer {
        try FetchedCipher.aes256GCM.makeContext { context, cipher in
            key.withBytes { start(context, cipher, $0) }
        }
    }

    /// - Parameters:
    ///   - plaintext: At most 2³⁰ bytes.
    ///   - aad: What the bytes belong to; ``open(_:aad:)`` needs the same.
    ///   - output: As many bytes as the plaintext has and ``AES256GCMKey/overheadByteCount``.
    package func seal(
        _ plaintext: UnsafeRawBufferPointer, aad: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws {
        precondition(output.count == plaintext.count + AES256GCMKey.overheadByteCount)
        let context = try sealing ?? makeKeyedContext { EVP_EncryptInit_ex2($0, $1, $2, nil, nil) }
        sealing = context
        let nonce = UnsafeMutableRawBufferPointer(rebasing: output[..<AEADAlgorithm.nonceByteCount])
        try SecureRandom.fill(nonce)
        try AEADAlgorithm.seal(
            plaintext, aad: aad, key: nil, nonce: UnsafeRawBufferPointer(nonce), on: context,
            into: output.baseAddress! + nonce.count)
    }

    /// - Throws: ``OpenSSLError/authenticationFailed`` for every input that ``seal(_:aad:into:)`` did not make
    ///   with this key and `aad`, too short ones included.
    package func open(_ sealed: ArraySlice<UInt8>, aad: UnsafeRawBufferPointer) throws -> [UInt8] {
        let plaintextCount = sealed.count - AES256GCMKey.overheadByteCount
        guard plaintextCount >= 0, sealed.count <= Int(Int32.max) else {
            throw OpenSSLError.authenticationFailed
        }
        let context = try opening ?? makeKeyedContext { EVP_DecryptInit_ex2($0, $1, $2, nil, nil) }
        opening = context
        return try sealed.withUnsafeBytes { sealed in
            let nonce = sealed.bytePointer!
            let ciphertext = nonce + AEADAlgorithm.nonceByteCount
            guard EVP_DecryptInit_ex2(context, nil, nil, nonce, nil) == 1 else {
                throw OpenSSLError.lastFailure(of: "start the cipher")
            }
            return try [UInt8](unsafeUninitializedCapacity: max(plaintextCount, 1)) { plaintext, count in
                var written: Int32 = 0
                guard
                    aad.isEmpty
                        || EVP_DecryptUpdate(context, nil, &written, aad.bytePointer, Int32(aad.count)) == 1,
                    plaintextCount == 0
                        || EVP_DecryptUpdate(
                            context, plaintext.baseAddress, &written, ciphertext, Int32(plaintextCount)) == 1,
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

extension UnsafeRawBufferPointer {
    var bytePointer: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
    var bytePointer: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}
