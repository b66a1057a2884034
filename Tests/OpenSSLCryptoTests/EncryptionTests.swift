import Dispatch
import OpenSSLCrypto
import Synchronization
import Testing

@Suite struct AEADSealingTests {
    private func seal(
        _ algorithm: AEADAlgorithm, key: [UInt8], nonce: [UInt8], aad: [UInt8], plaintext: [UInt8],
        times: Int = 1
    ) throws -> [UInt8] {
        var sealing = try AEADSealing(algorithm)
        var output = [UInt8](repeating: 0, count: plaintext.count + 16)
        for _ in 0..<times {
            try output.withUnsafeMutableBytes { output in
                try plaintext.withUnsafeBytes { plaintext in
                    try aad.withUnsafeBytes { aad in
                        try key.withUnsafeBytes { key in
                            try nonce.withUnsafeBytes { nonce in
                                try sealing.seal(plaintext, aad: aad, key: key, nonce: nonce, into: output)
                            }
                        }
                    }
                }
            }
        }
        return output
    }

    /// "The Galois/Counter Mode of Operation" (McGrew, Viega), appendix B, test case 16.
    @Test(arguments: [1, 3]) func `AES-256-GCM gives the ciphertext of its specification`(times: Int) throws {
        let sealed = try seal(
            .aes256GCM, key: hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"),
            nonce: hex("cafebabefacedbaddecaf888"), aad: hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
            plaintext: hex(
                """
                d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
                """), times: times)
        #expect(
            sealed
                == hex(
                    """
                    522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
                    8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662
                    76fc6ece0f4e1768cddf8853bb2d551b
                    """))
    }

    /// RFC 8439 section 2.8.2.
    @Test(arguments: [1, 3]) func `ChaCha20-Poly1305 gives the ciphertext of RFC 8439`(times: Int) throws {
        let sealed = try seal(
            .chaCha20Poly1305, key: Array(0x80...0x9f), nonce: hex("070000004041424344454647"),
            aad: hex("50515253c0c1c2c3c4c5c6c7"),
            plaintext: Array(
                "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
                    .utf8), times: times)
        #expect(
            sealed
                == hex(
                    """
                    d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6
                    3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36
                    92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
                    3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691
                    """))
    }

    @Test func `an empty plaintext is a tag and nothing else`() throws {
        // The specification's test case 13: zero key, zero nonce.
        let sealed = try seal(
            .aes256GCM, key: [UInt8](repeating: 0, count: 32), nonce: [UInt8](repeating: 0, count: 12),
            aad: [],
            plaintext: [])
        #expect(sealed == hex("530f8afbc74536b9a963b4f1c4cb738b"))
    }
}

@Suite struct AES256GCMKeyTests {
    let key: AES256GCMKey

    init() throws {
        key = try AES256GCMKey(SecretBytes(copying: Array(0..<32)))
    }

    @Test(arguments: [0, 1, 15, 16, 17, 512, 70_000]) func `what is sealed opens again`(count: Int) throws {
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let sealed = try key.seal(plaintext, aad: [1, 2])
        #expect(sealed.count == count + AES256GCMKey.overheadByteCount)
        #expect(try key.open(sealed, aad: [1, 2]) == plaintext)
    }

    @Test(arguments: [0, 1, 512]) func `what is sealed is AES-256-GCM under the nonce in front of it`(
        count: Int
    ) throws {
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let aad: [UInt8] = [1, 2]
        let contexts = AES256GCMContexts(key)
        var sealing = try AEADSealing(.aes256GCM)
        for _ in 0..<3 {
            var sealed = [UInt8](repeating: 0, count: count + AES256GCMKey.overheadByteCount)
            var expected = [UInt8](repeating: 0, count: count + AEADAlgorithm.tagByteCount)
            try plaintext.withUnsafeBytes { plaintext in
                try aad.withUnsafeBytes { aad in
                    try sealed.withUnsafeMutableBytes { try contexts.seal(plaintext, aad: aad, into: $0) }
                    try Array(UInt8(0)..<32).withUnsafeBytes { key in
                        try Array(sealed.prefix(12)).withUnsafeBytes { nonce in
                            try expected.withUnsafeMutableBytes {
                                try sealing.seal(plaintext, aad: aad, key: key, nonce: nonce, into: $0)
                            }
                        }
                    }
                }
            }
            #expect(Array(sealed.dropFirst(12)) == expected)
        }
    }

    @Test func `the same plaintext is never sealed to the same bytes`() throws {
        let sealed = try (0..<100).map { _ in try key.seal([7], aad: []) }
        #expect(Set(sealed.map { Array($0.prefix(12)) }).count == 100)
    }

    @Test func `every changed bit, missing byte and added byte is refused`() throws {
        let sealed = try key.seal(Array("account 12345".utf8), aad: [9])
        for index in sealed.indices {
            for bit in 0..<8 {
                var changed = sealed
                changed[index] ^= 1 << UInt8(bit)
                #expect(throws: OpenSSLError.authenticationFailed) { try key.open(changed, aad: [9]) }
            }
        }
        for count in 0..<sealed.count {
            #expect(throws: OpenSSLError.authenticationFailed) {
                try key.open(Array(sealed.prefix(count)), aad: [9])
            }
        }
        #expect(throws: OpenSSLError.authenticationFailed) { try key.open(sealed + [0], aad: [9]) }
    }

    @Test func `another key or another context opens nothing`() throws {
        let sealed = try key.seal([1, 2, 3], aad: Array("row 1".utf8))
        #expect(throws: OpenSSLError.authenticationFailed) { try key.open(sealed, aad: Array("row 2".utf8)) }
        #expect(throws: OpenSSLError.authenticationFailed) { try key.open(sealed, aad: []) }
        let other = try AES256GCMKey(.random(byteCount: 32))
        #expect(throws: OpenSSLError.authenticationFailed) {
            try other.open(sealed, aad: Array("row 1".utf8))
        }
    }

    @Test(arguments: [0, 16, 31, 33]) func `a key of another length is refused`(count: Int) {
        #expect(throws: OpenSSLError.wrongByteCount(what: "an AES-256 key", expected: 32, actual: count)) {
            try AES256GCMKey(SecretBytes(copying: [UInt8](repeating: 1, count: count)))
        }
    }
}

@Suite struct SecretBytesTests {
    @Test func `a secret shows its length and nothing else`() {
        let secret = SecretBytes(copying: Array("hunter2".utf8))
        var dumped = ""
        dump(secret, to: &dumped)
        for text in [dumped, String(describing: secret), String(reflecting: secret), "\([secret])"] {
            #expect(!text.contains("hunter2") && !text.contains("104"))
        }
        #expect(dumped.contains("7"))
    }

    @Test func `bytes go in and come out unchanged`() {
        #expect(SecretBytes(copying: [3, 1, 2]).withUnsafeBytes { Array($0) } == [3, 1, 2])
        #expect(SecretBytes(copying: []).withUnsafeBytes { $0.count } == 0)
    }

    @Test func `random bytes have the asked length and do not repeat`() throws {
        let secrets = try (0..<50).map { _ in
            try SecretBytes.random(byteCount: 16).withUnsafeBytes { Array($0) }
        }
        #expect(Set(secrets).count == 50)
        #expect(secrets.allSatisfy { $0.count == 16 })
        #expect(try Set((0..<50).map { _ in try SecureRandom.bytes(16) }).count == 50)
        #expect(try SecureRandom.bytes(0).isEmpty)
    }

    @Test func `no random byte is given twice, however many are asked for at once`() throws {
        // Longer than the reserve in all, in pieces that do not divide it, from several threads.
        let found = Mutex<[[UInt8]]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { worker in
            let pieces = (0..<200).map { piece in
                Result { try SecureRandom.bytes(piece % 3 == 0 ? 100 : 13 + worker) }
            }
            found.withLock { found in
                found += pieces.compactMap { if case .success(let bytes) = $0 { bytes } else { nil } }
            }
        }
        let pieces = found.withLock(\.self)
        #expect(pieces.count == 1_600)
        // Eight equal bytes come up once in 2⁶⁴ pairs; none of them are zeros.
        var seen: Set<[UInt8]> = [[UInt8](repeating: 0, count: 8)]
        for piece in pieces {
            for start in stride(from: 0, through: piece.count - 8, by: 8) {
                #expect(seen.insert(Array(piece[start..<start + 8])).inserted)
            }
        }
        let numbers = try (0..<1_000).map { _ in try SecureRandom.number() } + SecureRandom.numbers(1_000)
        #expect(Set(numbers.flatMap { [$0.high, $0.low] }).count == 4_000)
    }

    @Test func `working memory starts as zeros every time, also after a throw`() {
        struct Stop: Error {}
        var scratch = SecretScratch(byteCount: 8)
        scratch.use { $0.copyBytes(from: [1, 2, 3, 4, 5, 6, 7, 8]) }
        #expect(scratch.use { Array($0) } == [UInt8](repeating: 0, count: 8))
        #expect(throws: Stop.self) {
            try scratch.use { memory in
                memory.copyBytes(from: [1, 2, 3])
                throw Stop()
            }
        }
        #expect(scratch.use { Array($0) } == [UInt8](repeating: 0, count: 8))
    }
}
