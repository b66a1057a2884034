import OpenSSLCrypto
import Testing

@Suite struct GMACTests {
    private static func key(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 32) }

    private func code(of bytes: [UInt8], under mac: borrowing AES256GMAC) -> [UInt8] {
        let code = bytes.withUnsafeBytes { mac.code(of: $0) }
        return withUnsafeBytes(of: code.bigEndian) { Array($0) }
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", test case 13.
    @Test func `AES-256-GMAC of nothing under zeroes is the specification's`() throws {
        let mac = try AES256GMAC(SecretBytes(copying: Self.key(0)))
        #expect(code(of: [], under: mac) == hex("530f8afbc74536b9a963b4f1c4cb738b"))
    }

    @Test func `a code is the tag of GCM over bytes that are not encrypted, whatever came before`() throws {
        let mac = try AES256GMAC(SecretBytes(copying: Self.key(7)))
        var sealing = try AEADSealing(.aes256GCM)
        for count in [1, 5_000, 16, 17, 0, 65_536, 1_024] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            var tag = [UInt8](repeating: 0, count: AEADAlgorithm.tagByteCount)
            try bytes.withUnsafeBytes { bytes in
                try Self.key(7).withUnsafeBytes { key in
                    try [UInt8](repeating: 0, count: AEADAlgorithm.nonceByteCount).withUnsafeBytes { nonce in
                        try tag.withUnsafeMutableBytes {
                            try sealing.seal(
                                UnsafeRawBufferPointer(start: nil, count: 0), aad: bytes, key: key,
                                nonce: nonce,
                                into: $0)
                        }
                    }
                }
            }
            #expect(code(of: bytes, under: mac) == tag, "\(count) bytes")
        }
    }

    @Test func `a key has 32 bytes`() {
        #expect(throws: OpenSSLError.wrongByteCount(what: "an AES-256 key", expected: 32, actual: 16)) {
            _ = try AES256GMAC(SecretBytes(copying: [UInt8](repeating: 1, count: 16)))
        }
    }
}
