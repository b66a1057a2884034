import COpenSSL

/// AES-256-GCM's authentication of bytes that are not encrypted (GMAC, NIST SP 800-38D section 3), always under the nonce
/// of twelve zeroes.
///
/// So it is no authenticator but a keyed universal hash: two values have the same code with a chance of their length in blocks
/// in 2¹²⁸, as long as no code is known.
///
/// - Warning: Two codes that are known give the hash key away. A code may only go into another authenticator.
///
/// The expanded key lies in OpenSSL's ordinary memory as long as this lives; OpenSSL zeroes it at the end. One thread at a
/// time: the pointer inside keeps it from being `Sendable`.
package struct AES256GMAC: ~Copyable {
    private let context: OpaquePointer

    /// - Parameter key: Exactly 32 bytes, for nothing else.
    package init(_ key: SecretBytes) throws {
        context = try FetchedCipher.aes256GCM.makeEncryptingContext(key, nonce: nil)
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    private static let nonce = [UInt8](repeating: 0, count: AEADAlgorithm.nonceByteCount)

    /// - Parameter bytes: At most 2³⁰.
    /// - Returns: The code, its first byte the most significant.
    package func code(of bytes: UnsafeRawBufferPointer) -> UInt128 {
        var code: UInt128 = 0
        var written: Int32 = 0
        // A cipher that has its key, and is given no text, has nothing to refuse.
        let isDone = withUnsafeMutableBytes(of: &code) { code in
            let code = code.baseAddress!.assumingMemoryBound(to: UInt8.self)
            return EVP_EncryptInit_ex2(context, nil, nil, Self.nonce, nil) == 1
                && (bytes.isEmpty
                    || EVP_EncryptUpdate(context, nil, &written, bytes.bytePointer, Int32(bytes.count)) == 1)
                && EVP_EncryptFinal_ex(context, code, &written) == 1
                && sendgate_aead_get_tag(context, code) == 1
        }
        guard isDone else { fatalError("AES-256-GMAC failed over \(bytes.count) bytes") }
        return UInt128(bigEndian: code)
    }
}
