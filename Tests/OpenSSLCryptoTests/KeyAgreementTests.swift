import OpenSSLCrypto
import Testing

@Suite struct KeyAgreementTests {
    /// RFC 7748 section 6.1.
    @Test func `X25519 agrees on the secret of RFC 7748`() throws {
        let alice = try AgreementPrivateKey(
            rawBytes: SecretBytes(
                copying: hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")),
            publicKey: hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"), curve: .x25519
        )
        let bob = try AgreementPublicKey(
            validating: hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"),
            curve: .x25519)
        #expect(
            try alice.sharedSecret(with: bob).withUnsafeBytes { Array($0) }
                == hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"))
    }

    /// RFC 5903 section 8.1.
    @Test func `P-256 agrees on the secret of RFC 5903`() throws {
        let initiator = try AgreementPrivateKey(
            rawBytes: SecretBytes(
                copying: hex("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433")),
            publicKey: hex(
                """
                04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e5
                9ab1f45b33accf5f58389e0577b8990bb3
                """), curve: .p256)
        let responder = try AgreementPublicKey(
            validating: hex(
                """
                04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d
                6aac23f046ada30f8353e74f33039872ab
                """), curve: .p256)
        #expect(
            try initiator.sharedSecret(with: responder).withUnsafeBytes { Array($0) }
                == hex("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"))
    }

    @Test(arguments: AgreementCurve.allCases)
    func `the two ends of an ephemeral agreement find the same secret`(curve: AgreementCurve) throws {
        let device = try AgreementPrivateKey.generate(curve: curve)
        var ephemeral = try EphemeralAgreement(curve: curve)
        var seen: Set<[UInt8]> = []
        for _ in 0..<20 {
            var publicKey = [UInt8](repeating: 0, count: curve.publicKeyByteCount)
            var secret = [UInt8](repeating: 0, count: 32)
            try publicKey.withUnsafeMutableBytes { publicKey in
                try secret.withUnsafeMutableBytes { secret in
                    try ephemeral.agree(with: device.publicKey, publicKey: publicKey, sharedSecret: secret)
                }
            }
            let sender = try AgreementPublicKey(validating: publicKey, curve: curve)
            #expect(try device.sharedSecret(with: sender).withUnsafeBytes { Array($0) } == secret)
            #expect(seen.insert(publicKey).inserted, "an ephemeral key came twice")
        }
    }

    @Test func `halves of two different key pairs are refused`() throws {
        for curve in AgreementCurve.allCases {
            let raw = try SecretBytes.random(byteCount: 32)
            let other = try AgreementPrivateKey.generate(curve: curve).publicKey.rawBytes
            #expect(throws: OpenSSLError.self) {
                try AgreementPrivateKey(rawBytes: raw, publicKey: other, curve: curve)
            }
        }
    }

    @Test func `one public key serves many threads at once`() async throws {
        for curve in AgreementCurve.allCases {
            let device = try AgreementPrivateKey.generate(curve: curve)
            let matches = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        for _ in 0..<20 {
                            let other = try AgreementPrivateKey.generate(curve: curve)
                            let one = try other.sharedSecret(with: device.publicKey)
                            let two = try device.sharedSecret(with: other.publicKey)
                            guard HMACKey.constantTimeEqual(one, two) else { return false }
                        }
                        return true
                    }
                }
                return try await group.reduce(into: true) { $0 = $0 && $1 }
            }
            #expect(matches)
        }
    }
}

@Suite struct PublicKeyValidationTests {
    /// The base point of P-256 (SEC 2 section 2.4.2), as good a key as any.
    static let x = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    static let y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
    /// The field's prime.
    static let p = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"

    @Test func `an uncompressed point of the curve is accepted`() throws {
        let key = try AgreementPublicKey(validating: hex("04" + Self.x + Self.y), curve: .p256)
        #expect(key.rawBytes == hex("04" + Self.x + Self.y))
    }

    /// OpenSSL's own import takes compressed, hybrid and infinity encodings; devices must send one form.
    @Test(arguments: [
        ("compressed, even", "02" + x), ("compressed, odd", "03" + x), ("hybrid, even", "06" + x + y),
        ("hybrid, odd", "07" + x + y), ("the point at infinity", "00"), ("nothing", ""),
        ("infinity, padded", "00" + String(repeating: "00", count: 64)),
        ("not on the curve", "04" + x + String(y.dropLast()) + "4"),
        ("zeros", "04" + String(repeating: "00", count: 64)),
        ("x not below the prime", "04" + p + y), ("y not below the prime", "04" + x + p),
        ("without its first byte", x + y), ("one byte short", "04" + x + String(y.dropLast(2))),
        ("one byte long", "04" + x + y + "00"),
    ])
    func `any other P-256 encoding is refused`(name: String, key: String) {
        #expect(throws: OpenSSLError.self, "\(name)") {
            try AgreementPublicKey(validating: hex(key), curve: .p256)
        }
        #expect(throws: OpenSSLError.self, "\(name)") {
            try AgreementPublicKey(validatedBefore: hex(key), curve: .p256)
        }
    }

    /// The points of small order, little-endian: RFC 7748 section 6.1 and Bernstein's list at cr.yp.to/ecdh.html.
    @Test(arguments: [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ])
    func `an X25519 key of low order is refused`(key: String) {
        #expect(
            throws: OpenSSLError.unacceptablePublicKey(
                why: "it has low order: every agreement with it gives zeros")
        ) { try AgreementPublicKey(validating: hex(key), curve: .x25519) }
    }

    @Test(arguments: [
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0900000000000000000000000000000000000000000000000000000000000080",
    ])
    func `an X25519 key with a second spelling is refused`(key: String) {
        #expect(
            throws: OpenSSLError.unacceptablePublicKey(why: "the u-coordinate is not below 2^255 - 19")
        ) { try AgreementPublicKey(validating: hex(key), curve: .x25519) }
    }

    @Test func `the base point of X25519 is accepted, another length is not`() throws {
        let base = [9] + [UInt8](repeating: 0, count: 31)
        #expect(try AgreementPublicKey(validating: base, curve: .x25519).rawBytes == base)
        #expect(throws: OpenSSLError.wrongByteCount(what: "a x25519 public key", expected: 32, actual: 31)) {
            try AgreementPublicKey(validating: base.dropLast(), curve: .x25519)
        }
    }
}
