import OpenSSLCrypto
import Testing

@Suite struct DigestTests {
    /// FIPS 180-4 examples, from the NIST CAVP page "Secure Hash Standard examples".
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `SHA-256 gives the standard's digests`(text: String, digest: String) {
        #expect(SHA256.digest(Array(text.utf8)).description == digest)
        #expect(SHA256.digest(Array(text.utf8)).bytes == hex(digest))
        #expect(SHA256.digest(Array(("#" + text).utf8).dropFirst()).bytes == hex(digest))
    }

    @Test func `a million times the letter a, hashed piece by piece, gives the standard's digest`() {
        var hasher = SHA256.Hasher()
        let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 1000)
        for _ in 0..<1000 { hasher.update(piece) }
        #expect(
            hasher.finalize().description
                == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func `where a message is cut does not change its digest`() {
        let message = (0..<150).map { UInt8($0) }
        let whole = SHA256.digest(message)
        for cut in 0...message.count {
            var hasher = SHA256.Hasher()
            hasher.update(message[..<cut])
            hasher.update(message[cut...])
            #expect(hasher.finalize() == whole, "cut at \(cut)")
        }
    }

    @Test func `a copied hasher goes its own way`() {
        var first = SHA256.Hasher()
        first.update(byte: 0x00)
        var second = first
        first.update(Array("left".utf8))
        second.update(Array("right".utf8))
        #expect(first.finalize() == SHA256.digest([0x00] + Array("left".utf8)))
        #expect(second.finalize() == SHA256.digest([0x00] + Array("right".utf8)))
        // Asking for the digest does not end the hashing.
        first.update(Array("er".utf8))
        #expect(first.finalize() == SHA256.digest([0x00] + Array("lefter".utf8)))
    }

    @Test func `a digest survives its bytes, and other counts are no digest`() throws {
        let digest = SHA256.digest([1, 2, 3])
        let again = try #require(SHA256Digest(bytes: digest.bytes))
        #expect(again == digest)
        #expect(Set([again, digest]).count == 1)
        #expect(SHA256Digest(bytes: digest.bytes.dropLast()) == nil)
        #expect(SHA256Digest(bytes: digest.bytes + [0]) == nil)
        #expect(digest != SHA256.digest([1, 2, 4]))
    }
}

@Suite struct HMACTests {
    /// RFC 4231 section 4: test cases 1, 2, 3, 6 and 7. Keys of 131 bytes are longer than a block.
    static let cases: [(key: [UInt8], data: [UInt8], code: String)] = [
        (
            [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131),
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131),
            Array(
                "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm."
                    .utf8),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
        ),
    ]

    @Test(arguments: 0..<5) func `HMAC-SHA256 gives the codes of RFC 4231`(index: Int) {
        let (key, data, code) = Self.cases[index]
        let prepared = HMACKey(SecretBytes(copying: key))
        #expect(prepared.authenticate(data) == hex(code))
        // The key is not used up.
        #expect(prepared.authenticate(data) == hex(code))
        if let text = String(validating: data, as: UTF8.self) {
            for split in 0...text.count {
                let parts = [text.prefix(split), text.dropFirst(split)].map(String.init)
                #expect(prepared.code { parts.forEach($0) }.bytes == hex(code))
            }
        }

        var computation = HMACSHA256Computation()
        var result = [UInt8](repeating: 0, count: 32)
        for round in 0..<2 {
            key.withUnsafeBytes { computation.start(key: $0) }
            if round == 1 { computation.start(prepared) }
            for byte in data { computation.update([byte]) }
            result.withUnsafeMutableBytes { computation.finish(into: $0) }
            #expect(result == hex(code))
        }
    }

    @Test func `texts of any length have the code of their bytes`() {
        let key = HMACKey(SecretBytes(copying: Array("Jefe".utf8)))
        for count in 0...130 {
            let text = String(repeating: "ä", count: count / 2) + String(repeating: "b", count: count % 2)
            #expect(key.code { $0(text) }.bytes == key.authenticate(Array(text.utf8)))
            let parts = [String(text.prefix(count / 3)), String(text.dropFirst(count / 3)), ""]
            #expect(key.code { parts.forEach($0) }.bytes == key.authenticate(Array(text.utf8)))
        }
    }

    @Test func `equal codes are equal, and one different byte or length is not`() {
        let code = HMACKey(SecretBytes(copying: [1])).authenticate([2])
        #expect(HMACKey.constantTimeEqual(code, code))
        #expect(HMACKey.constantTimeEqual([], []))
        for index in code.indices {
            var other = code
            other[index] ^= 0x80
            #expect(!HMACKey.constantTimeEqual(code, other))
        }
        #expect(!HMACKey.constantTimeEqual(code, code.dropLast()))
        #expect(HMACKey.constantTimeEqual(SecretBytes(copying: code), SecretBytes(copying: code)))
        #expect(!HMACKey.constantTimeEqual(SecretBytes(copying: code), SecretBytes(copying: [])))
    }
}

@Suite struct HKDFTests {
    struct Vector {
        var salt: [UInt8]
        var ikm: [UInt8]
        var info: [UInt8]
        var prk: String
        var okm: String
    }

    /// RFC 5869 appendix A.1 to A.3.
    static let vectors = [
        Vector(
            salt: Array(0x00...0x0c), ikm: [UInt8](repeating: 0x0b, count: 22), info: Array(0xf0...0xf9),
            prk: "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            okm: """
                3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865
                """),
        Vector(
            salt: Array(0x60...0xaf), ikm: Array(0x00...0x4f), info: Array(0xb0...0xff),
            prk: "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
            okm: """
                b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09
                da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
                """),
        Vector(
            salt: [], ikm: [UInt8](repeating: 0x0b, count: 22), info: [],
            prk: "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            okm: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ]

    @Test(arguments: 0..<3) func `HKDF-SHA256 gives the keys of RFC 5869`(index: Int) {
        let vector = Self.vectors[index]
        let prk = HKDFSHA256.extract(salt: vector.salt, ikm: vector.ikm)
        #expect(prk == hex(vector.prk))
        let okm = hex(vector.okm)
        #expect(HKDFSHA256.expand(prk: prk, info: vector.info, length: okm.count) == okm)
        // A shorter output is the beginning of the longer one.
        for length in 0...okm.count {
            #expect(HKDFSHA256.expand(prk: prk, info: vector.info, length: length) == Array(okm[..<length]))
        }
    }

    @Test func `the longest output has 255 blocks`() {
        let prk = HKDFSHA256.extract(salt: [], ikm: [1])
        #expect(HKDFSHA256.expand(prk: prk, info: [], length: HKDFSHA256.outputByteCountMax).count == 8160)
    }
}
