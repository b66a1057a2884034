import OpenSSLCrypto
import Testing

@Suite struct Ed25519Tests {
    /// RFC 8032 section 7.1, TEST 1 to 3.
    static let vectors: [(seed: String, publicKey: String, message: String, signature: String)] = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
            """
            e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b
            d25bf5f0595bbe24655141438e7a100b
            """
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
            """
            92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c
            387b2eaeb4302aeeb00d291612bb0c00
            """
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
            """
            6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659
            4a7c15e9716ed28dc027beceea1ec40a
            """
        ),
    ]

    @Test(arguments: 0..<3) func `signatures are those of RFC 8032`(index: Int) throws {
        let vector = Self.vectors[index]
        let key = try Ed25519PrivateKey(seed: SecretBytes(copying: hex(vector.seed)))
        #expect(key.publicKey.rawBytes == hex(vector.publicKey))
        #expect(try key.sign(hex(vector.message)) == hex(vector.signature))
        #expect(key.publicKey.isValid(signature: hex(vector.signature), for: hex(vector.message)))
        #expect(try key.withSeed { Array($0) } == hex(vector.seed))
    }

    @Test func `a changed signature, message or key does not verify`() throws {
        let key = try Ed25519PrivateKey.generate()
        let message = Array("checkpoint".utf8)
        let signature = try key.sign(message)
        #expect(key.publicKey.isValid(signature: signature, for: message))
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 1
            #expect(!key.publicKey.isValid(signature: changed, for: message), "byte \(index)")
        }
        #expect(!key.publicKey.isValid(signature: signature, for: message + [0]))
        #expect(!key.publicKey.isValid(signature: signature, for: []))
        #expect(!key.publicKey.isValid(signature: [], for: message))
        #expect(!key.publicKey.isValid(signature: signature + [0], for: message))
        #expect(try !Ed25519PrivateKey.generate().publicKey.isValid(signature: signature, for: message))
    }

    @Test func `bytes that are no point of the curve verify nothing`() throws {
        let notAPoint = try Ed25519PublicKey(rawBytes: [UInt8](repeating: 0xff, count: 32))
        #expect(!notAPoint.isValid(signature: [UInt8](repeating: 0, count: 64), for: []))
    }

    @Test(arguments: [0, 31, 33, 64]) func `a seed or public key of another length is refused`(count: Int) {
        let bytes = [UInt8](repeating: 1, count: count)
        #expect(throws: OpenSSLError.wrongByteCount(what: "an Ed25519 seed", expected: 32, actual: count)) {
            try Ed25519PrivateKey(seed: SecretBytes(copying: bytes))
        }
        #expect(
            throws: OpenSSLError.wrongByteCount(what: "an Ed25519 public key", expected: 32, actual: count)
        ) {
            try Ed25519PublicKey(rawBytes: bytes)
        }
    }

    @Test func `one key signs on many threads at once`() async throws {
        let key = try Ed25519PrivateKey.generate()
        let valid = try await withThrowingTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<50 {
                        let message = [UInt8(task), UInt8(round)]
                        guard key.publicKey.isValid(signature: try key.sign(message), for: message) else {
                            return false
                        }
                    }
                    return true
                }
            }
            return try await group.reduce(into: true) { $0 = $0 && $1 }
        }
        #expect(valid)
    }
}

@Suite struct OpenSSLErrorTests {
    @Test func `an error says what could not be done and why`() {
        #expect(
            OpenSSLError.wrongByteCount(what: "an AES-256 key", expected: 32, actual: 31).description
                == "an AES-256 key must be 32 bytes, this one has 31")
        #expect(
            OpenSSLError.failed(operation: "sign", reason: "no key").description == "cannot sign: no key")
    }
}
