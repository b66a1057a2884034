import COpenSSL

/// AES-256-CMAC (NIST SP 800-38B) under one key: CBC-MAC whose last block is masked, so that a whole message goes through
/// the cipher in one call and nothing is allocated.
///
/// The expanded key lies in OpenSSL's ordinary memory as long as this lives; OpenSSL zeroes it at the end. One thread at a
/// time: the pointer inside keeps it from being `Sendable`.
package struct AES256CMAC: ~Copyable {
    package static let blockByteCount = 16

    /// AES-256-CBC without padding.
    private let context: OpaquePointer
    /// The last block it gave, which it adds to the next one that it takes.
    private var chain: UInt128
    /// What a last block is masked with: K1 when it is whole, K2 when it was filled up.
    private let masks: SecretBytes

    /// - Parameter key: Exactly 32 bytes.
    package init(_ key: SecretBytes) throws {
        let context = try FetchedCipher.aes256CBC.makeEncryptingContext(key, nonce: Self.zero)
        guard EVP_CIPHER_CTX_set_padding(context, 0) == 1 else {
            EVP_CIPHER_CTX_free(context)
            throw OpenSSLError.lastFailure(of: "start the cipher")
        }
        self.context = context
        // L is the cipher of zeroes; K1 = L·x and K2 = L·x² in GF(2¹²⁸) (SP 800-38B, section 6.1).
        var last: UInt128 = 0
        masks = SecretBytes(byteCount: 2 * Self.blockByteCount) { masks in
            _ = masks.initializeMemory(as: UInt8.self, repeating: 0)
            last = Self.encrypt(context, masks.baseAddress!, byteCount: Self.blockByteCount)
            var mask = UInt128(bigEndian: last)
            for position in [0, Self.blockByteCount] {
                mask = mask << 1 ^ (mask >> 127) * 0x87
                masks.storeBytes(of: mask.bigEndian, toByteOffset: position, as: UInt128.self)
            }
        }
        chain = last
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    private static let zero = [UInt8](repeating: 0, count: blockByteCount)

    /// - Parameters:
    ///   - message: So many bytes, and room for one block more. Overwritten.
    ///   - byteCount: At most 2³⁰.
    /// - Returns: The code, its first byte the most significant.
    package mutating func code(of message: UnsafeMutableRawPointer, byteCount: Int) -> UInt128 {
        let blockByteCount = Self.blockByteCount
        let rest = byteCount % blockByteCount
        let isWhole = rest == 0 && byteCount > 0
        let end = isWhole ? byteCount : byteCount - rest + blockByteCount
        if !isWhole {
            message.storeBytes(of: 0x80, toByteOffset: byteCount, as: UInt8.self)
            for position in byteCount + 1..<end {
                message.storeBytes(of: 0, toByteOffset: position, as: UInt8.self)
            }
        }
        let mask = masks.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: isWhole ? 0 : blockByteCount, as: UInt128.self)
        }
        let last = message.loadUnaligned(fromByteOffset: end - blockByteCount, as: UInt128.self)
        message.storeBytes(of: last ^ mask, toByteOffset: end - blockByteCount, as: UInt128.self)
        // A message's chain begins with zeroes. The cipher's own goes on from the message before, which is taken off here:
        // that is a tenth of the cost of starting the cipher anew.
        let first = message.loadUnaligned(as: UInt128.self)
        message.storeBytes(of: first ^ chain, as: UInt128.self)
        chain = Self.encrypt(context, message, byteCount: end)
        return UInt128(bigEndian: chain)
    }

    /// Encrypts whole blocks in place.
    ///
    /// - Returns: The last block, as it lies in memory.
    private static func encrypt(
        _ context: OpaquePointer, _ message: UnsafeMutableRawPointer, byteCount: Int
    ) -> UInt128 {
        let bytes = message.assumingMemoryBound(to: UInt8.self)
        var written: Int32 = 0
        // A cipher that has its key, and is given whole blocks, has nothing to refuse.
        guard EVP_EncryptUpdate(context, bytes, &written, bytes, Int32(byteCount)) == 1,
            written == Int32(byteCount)
        else { fatalError("AES-256-CBC encrypted \(written) of \(byteCount) bytes") }
        return message.loadUnaligned(fromByteOffset: byteCount - blockByteCount, as: UInt128.self)
    }
}
