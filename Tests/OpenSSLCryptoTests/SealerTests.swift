import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import Testing

/// A device's key pair and everything else that sealing to it takes.
private struct Scene {
    let privateKey: AgreementPrivateKey
    let key: DeviceSealingKey
    let origin: OriginSigner
    let keyID = KeyID(high: 1, low: 2)
    let expiresAt: UInt64 = 1_790_000_000

    init(_ suite: SealingSuite) throws {
        privateKey = try AgreementPrivateKey.generate(curve: suite.curve)
        key = try DeviceSealingKey(DevicePublicKey(validating: privateKey.publicKey.rawBytes, suite: suite))
        origin = try OriginSigner(keyID: Array(0..<8), privateKey: .generate())
    }

    func seal(
        _ content: [UInt8], with sealer: inout Sealer, purpose: SealingPurpose = .notification,
        app: String = "no.getdrop.app", device: String = "d_1",
        messageID: MessageID = MessageID(high: 3, low: 4),
        expiresAt: UInt64? = nil
    ) throws -> [UInt8] {
        try sealer.seal(
            content, to: key, purpose: purpose, app: app, device: DestinationID(device), keyID: keyID,
            messageID: messageID, expiresAt: expiresAt ?? self.expiresAt, origin: origin)
    }
}

@Suite struct SealerTests {
    @Test(arguments: SealingSuite.allCases)
    func `an envelope names its key, message and expiry and has the foretold length`(suite: SealingSuite)
        throws
    {
        let scene = try Scene(suite)
        var sealer = try Sealer()
        for count in [0, 1, 182, 183, 438, 439, 950, 951, 1974] {
            let bytes = try scene.seal([UInt8](repeating: 7, count: count), with: &sealer)
            #expect(bytes.count == SealedEnvelope.byteCount(contentByteCount: count, suite: suite))
            let envelope = try SealedEnvelope(decoding: bytes)
            #expect(envelope.suite == suite)
            #expect(envelope.keyID == scene.keyID.bytes)
            #expect(envelope.messageID == MessageID(high: 3, low: 4).bytes)
            #expect(envelope.expiresAt == scene.expiresAt)
        }
    }

    @Test(arguments: SealingSuite.allCases) func `equal contents are never sealed to equal bytes`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        var sealer = try Sealer()
        let envelopes = try (0..<50).map { _ in try SealedEnvelope(decoding: scene.seal([1], with: &sealer)) }
        #expect(Set(envelopes.map { Array($0.encapsulatedKey) }).count == 50)
        #expect(Set(envelopes.map { Array($0.ciphertext) }).count == 50)
    }

    @Test func `1,975 bytes are refused, and the next message is sealed as if nothing had been`() throws {
        let scene = try Scene(.p256)
        var sealer = try Sealer()
        #expect(throws: SealedFormatError.contentTooLong(byteCount: 1975, byteCountMax: 1974)) {
            try scene.seal([UInt8](repeating: 7, count: 1975), with: &sealer)
        }
        _ = try scene.seal([7], with: &sealer)
    }

    @Test func `what the info cannot carry is refused`() throws {
        let scene = try Scene(.p256)
        var sealer = try Sealer()
        #expect(throws: SealedFormatError.nameLength(of: "app", byteCount: 0, byteCountMax: 1024)) {
            try scene.seal([1], with: &sealer, app: "")
        }
        #expect(throws: SealedFormatError.nameLength(of: "device", byteCount: 2000, byteCountMax: 1024)) {
            try scene.seal([1], with: &sealer, device: String(repeating: "d", count: 2000))
        }
        #expect(throws: SealedFormatError.expiryOutOfRange(seconds: 1_790_000_000_000)) {
            try scene.seal([1], with: &sealer, expiresAt: 1_790_000_000_000)
        }
    }

    @Test(arguments: [0, 31, 33]) func `a challenge holds 32 bytes and nothing else`(count: Int) throws {
        let scene = try Scene(.p256)
        var sealer = try Sealer()
        #expect(
            throws: SealedFormatError.wrongByteCount(of: "a challenge's nonce", expected: 32, actual: count)
        ) {
            try scene.seal([UInt8](repeating: 0, count: count), with: &sealer, purpose: .challenge)
        }
        #expect(
            throws: SealedFormatError.wrongByteCount(of: "a challenge's nonce", expected: 32, actual: count)
        ) {
            try sealer.challenge(
                nonce: .random(byteCount: count), to: scene.key, app: "a", device: DestinationID("d"),
                keyID: scene.keyID, messageID: MessageID(high: 0, low: 0), expiresAt: scene.expiresAt,
                origin: scene.origin)
        }
    }

    @Test func `an origin key id has 8 bytes`() throws {
        let privateKey = try Ed25519PrivateKey.generate()
        #expect(throws: SealedFormatError.wrongByteCount(of: "an origin key id", expected: 8, actual: 9)) {
            try OriginSigner(keyID: Array(0..<9), privateKey: privateKey)
        }
    }

    @Test func `threads with a sealer each seal to one key at once`() async throws {
        for suite in SealingSuite.allCases {
            let scene = try Scene(suite)
            let encapsulatedKeys = try await withThrowingTaskGroup(of: [[UInt8]].self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        var sealer = try Sealer()
                        return try (0..<25).map { _ in
                            Array(
                                try SealedEnvelope(decoding: scene.seal([1, 2], with: &sealer))
                                    .encapsulatedKey)
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(encapsulatedKeys).count == 200)
        }
    }
}

@Suite struct DeviceKeyTests {
    @Test(arguments: SealingSuite.allCases) func `a registered key is known by its digest`(
        suite: SealingSuite
    ) throws {
        let raw = try AgreementPrivateKey.generate(curve: suite.curve).publicKey.rawBytes
        let key = try DevicePublicKey(validating: raw, suite: suite)
        #expect(key.rawBytes == raw)
        #expect(key.digest == SHA256.digest(raw))
        #expect(DevicePublicKey(validatedBefore: raw, suite: suite) == key)
        #expect(try DeviceSealingKey(key).publicKey == key)
    }

    @Test func `a key of the other suite is refused`() throws {
        let p256 = try AgreementPrivateKey.generate(curve: .p256).publicKey.rawBytes
        let x25519 = try AgreementPrivateKey.generate(curve: .x25519).publicKey.rawBytes
        #expect(throws: OpenSSLError.self) { try DevicePublicKey(validating: p256, suite: .x25519) }
        #expect(throws: OpenSSLError.self) { try DevicePublicKey(validating: x25519, suite: .p256) }
    }

    @Test func `a damaged key from the store is noticed when it is parsed`() throws {
        var raw = try AgreementPrivateKey.generate(curve: .p256).publicKey.rawBytes
        raw[64] ^= 1
        #expect(throws: OpenSSLError.unacceptablePublicKey(why: "it is not a point of the curve")) {
            try DeviceSealingKey(DevicePublicKey(validatedBefore: raw, suite: .p256))
        }
    }
}

@Suite struct PossessionTests {
    private func info(purpose: SealingPurpose = .challenge, messageID: UInt8 = 1) throws -> SealedInfo {
        try SealedInfo(
            purpose: purpose, suite: .p256, app: "app", device: "d", keyID: Array(0..<16),
            publicKeyDigest: Array(0..<32), messageID: [UInt8](repeating: messageID, count: 16),
            expiresAt: 1_790_000_000)
    }

    @Test func `the right proof is accepted and each changed byte is not`() throws {
        let nonce = try SecretBytes.random(byteCount: 32)
        let proof = Possession.proof(nonce: nonce, info: try info())
        #expect(proof.count == 32)
        #expect(Possession.isProved(by: proof, nonce: nonce, info: try info()))
        for index in proof.indices {
            var wrong = proof
            wrong[index] ^= 1
            #expect(!Possession.isProved(by: wrong, nonce: nonce, info: try info()))
        }
        for wrong in [[], Array(proof.dropLast()), proof + [0], nonce.withUnsafeBytes { Array($0) }] {
            #expect(!Possession.isProved(by: wrong, nonce: nonce, info: try info()))
        }
    }

    @Test func `a proof is good for one challenge only`() throws {
        let nonce = try SecretBytes.random(byteCount: 32)
        let proof = Possession.proof(nonce: nonce, info: try info())
        #expect(!Possession.isProved(by: proof, nonce: nonce, info: try info(messageID: 2)))
        #expect(!Possession.isProved(by: proof, nonce: try .random(byteCount: 32), info: try info()))
    }

    @Test func `a notification is no challenge, and a short nonce proves nothing`() throws {
        let nonce = try SecretBytes.random(byteCount: 32)
        let notification = try info(purpose: .notification)
        #expect(
            !Possession.isProved(
                by: Possession.proof(nonce: nonce, info: notification), nonce: nonce, info: notification))
        let short = SecretBytes(copying: [])
        #expect(
            !Possession.isProved(
                by: Possession.proof(nonce: short, info: try info()), nonce: short, info: try info()))
    }
}
