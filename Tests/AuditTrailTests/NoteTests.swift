import AuditTrail
import GateRecords
import OpenSSLCrypto
import SealedFormat
import Testing

/// The example of `golang.org/x/mod/sumdb/note`, written by other people's code.
private let peterKey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
private let peterText =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
private let peterNote =
    peterText
    + "\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
private let enochLine =
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"

@Suite struct NoteTests {
    @Test func `a note that other software signed verifies`() throws {
        let key = try #require(NoteVerifierKey(parsing: peterKey))
        #expect(key.name == "PeterNeumann" && key.keyID == 0xC74F_20A3 && key.text == peterKey)
        let note = try SignedNote(parsing: Array(peterNote.utf8))
        #expect(note.bytes == Array(peterNote.utf8))
        #expect(try note.attestations(by: [key]) == [NoteAttestation(key: key)])
        // A second signature by an unknown signer changes nothing.
        let twice = try SignedNote(parsing: Array((peterNote + enochLine).utf8))
        #expect(try twice.attestations(by: [key]) == [NoteAttestation(key: key)])
    }

    @Test func `a seed other software uses gives the signature it gives`() throws {
        let seed = try #require(Base64.decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"))
        let key = try Ed25519PrivateKey(seed: SecretBytes(copying: Array(seed[1...])))
        let signer = try #require(NoteSigner(name: "PeterNeumann", key: key))
        #expect(signer.verifierKey.text == peterKey)
        let text = Array(peterText.utf8)
        #expect(SignedNote(text: text, signatures: [try signer.sign(text)]).bytes == Array(peterNote.utf8))
    }

    @Test func `one changed letter and the note is not believed`() throws {
        let key = try #require(NoteVerifierKey(parsing: peterKey))
        let changed = peterNote.replacing("problem,", with: "problem;")
        let note = try SignedNote(parsing: Array(changed.utf8))
        #expect(throws: NoteError.badSignature(keyName: "PeterNeumann")) { try note.attestations(by: [key]) }
        #expect(throws: NoteError.noKnownSignature) { try note.attestations(by: []) }
        // One good signature does not excuse a bad one by another known key.
        let forged = peterNote + "— PeterNeumann x08go/" + String(repeating: "A", count: 85) + "=\n"
        let both = try SignedNote(parsing: Array(forged.utf8))
        #expect(throws: NoteError.badSignature(keyName: "PeterNeumann")) { try both.attestations(by: [key]) }
    }

    @Test(arguments: [
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "PeterNeumann+c74f20a3+ARpc2Q==",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "PeterNeumann+c74f20a3", "",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ])
    func `a verifier key that is spelt wrongly is refused`(_ text: String) {
        #expect(NoteVerifierKey(parsing: text) == nil)
    }

    @Test(arguments: [
        "", "\n", "text\n", "text\n\n", "text\n\n— name", "text\n\n— name AAAA\n",
        "text\n\n- name AAAAAAAA\n",
        "text\n\n— name  AAAAAAAA\n", "text\n\n— na+me AAAAAAAA\n", "text\n\n— name AAAAAAAA\nmore\n",
        "text\r\n\n— name AAAAAAAA\n", "te\u{0}xt\n\n— name AAAAAAAA\n", "text\n— name AAAAAAAA\n",
        "text\n\n— name AAAAAAA\n", "text\n\n—\u{2003}name AAAAAAAA\n",
    ])
    func `what is not a signed note is refused`(_ text: String) {
        #expect(throws: NoteError.self) { try SignedNote(parsing: Array(text.utf8)) }
    }

    @Test func `a note that is not UTF-8, too long or too often signed is refused`() {
        let line = Array("— name AAAAAAAA\n".utf8)
        #expect(throws: NoteError.self) { try SignedNote(parsing: [0xFF, 0x0A, 0x0A] + line) }
        #expect(throws: NoteError.tooLong(byteCount: 131_073, byteCountMax: 131_072)) {
            try SignedNote(parsing: [UInt8](repeating: 0x61, count: 131_073))
        }
        #expect(throws: NoteError.malformed(line: 67, why: "more than 64 signatures")) {
            try SignedNote(parsing: Array("text\n\n".utf8) + (0..<65).flatMap { _ in line })
        }
    }

    @Test func `the text may contain empty lines`() throws {
        let note = try SignedNote(parsing: Array("a\n\nb\n\n— name AAAAAAAA\n".utf8))
        #expect(note.text == Array("a\n\nb\n".utf8))
    }
}

@Suite struct CheckpointTests {
    private let checkpoint = Checkpoint(
        origin: MemoryTrail.origin, size: 1, root: TreeHash.leaf([] as [UInt8]))

    /// The example of C2SP tlog-checkpoint.
    @Test func `a checkpoint's text is the specification's`() throws {
        let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
        let checkpoint = try Checkpoint(parsing: Array(text.utf8))
        #expect(checkpoint.origin == "example.com/behind-the-sofa")
        #expect(checkpoint.size == 20_852_163)
        #expect(checkpoint.noteText == Array(text.utf8))
        let extended = try Checkpoint(parsing: Array((text + "opaque\n").utf8))
        #expect(extended.noteText == Array((text + "opaque\n").utf8))
        #expect(extended != checkpoint)
    }

    @Test(arguments: [
        "", "o\n1\n", "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "o\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "o\n+1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "o\n-1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", "o\n1\nCsUYapGGPo4d\n",
        "o\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I\n",
        "o\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",
        "o\n9007199254740992\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "o\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n",
        "o\n0\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
    ])
    func `what is not a checkpoint is refused`(_ text: String) {
        #expect(throws: CheckpointError.self) { try Checkpoint(parsing: Array(text.utf8)) }
    }

    @Test func `a checkpoint is trusted by its trail's key and origin only`() throws {
        let bytes = try checkpoint.signed(by: [MemoryTrail.signer])
        let trusted = try TrustedCheckpoint(opening: bytes, trusting: MemoryTrail.trust)
        #expect(trusted.checkpoint == checkpoint)
        let origin = MemoryTrail.origin
        for other in ["other", origin.replacing("trail", with: "trial"), origin + "s", origin.uppercased()] {
            #expect(throws: CheckpointError.otherOrigin(expected: other, found: origin)) {
                try TrustedCheckpoint(
                    opening: bytes, trusting: TrailTrust(origin: other, keys: MemoryTrail.trust.keys))
            }
        }
        #expect(throws: CheckpointError.note(.noKnownSignature)) {
            try TrustedCheckpoint(opening: bytes, trusting: TrailTrust(origin: MemoryTrail.origin, keys: []))
        }
    }

    @Test func `a signature is by the key of its name and of its id, and by no other`() throws {
        let text = checkpoint.noteText
        let own = try MemoryTrail.signer.sign(text)
        var (otherName, otherID) = (own, own)
        otherName.name = "other.example/trail"
        otherID.keyID ^= 1
        for signature in [otherName, otherID] {
            let note = SignedNote(text: text, signatures: [signature])
            #expect(throws: CheckpointError.note(.noKnownSignature)) {
                try TrustedCheckpoint(opening: note.bytes, trusting: MemoryTrail.trust)
            }
        }
    }

    @Test func `a witness's cosignature is believed for its time, and never instead of the trail's`() throws {
        let witness = try Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 9, count: 32)))
        let key = try #require(
            NoteVerifierKey(name: "witness.test", algorithm: .cosignature, publicKey: witness.publicKey))
        #expect(NoteVerifierKey(parsing: key.text) == key)
        let text = checkpoint.noteText
        let seconds: UInt64 = 1_679_315_147
        let time = stride(from: 56, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: seconds >> UInt64($0))
        }
        let cosignature = NoteSignature(
            name: key.name, keyID: key.keyID,
            bytes: time + (try witness.sign(SignedNote.cosigned(text, atSeconds: seconds))))
        let trust = TrailTrust(origin: MemoryTrail.origin, keys: MemoryTrail.trust.keys + [key])

        let both = SignedNote(text: text, signatures: [cosignature, try MemoryTrail.signer.sign(text)])
        let trusted = try TrustedCheckpoint(opening: both.bytes, trusting: trust)
        #expect(trusted.attestations.map(\.cosignedAtSeconds) == [nil, seconds])

        let alone = SignedNote(text: text, signatures: [cosignature])
        #expect(throws: CheckpointError.notSignedByTrail) {
            try TrustedCheckpoint(opening: alone.bytes, trusting: trust)
        }
        var late = cosignature
        late.bytes[7] ^= 1
        let bent = SignedNote(text: text, signatures: [late, try MemoryTrail.signer.sign(text)])
        #expect(throws: CheckpointError.note(.badSignature(keyName: "witness.test"))) {
            try TrustedCheckpoint(opening: bent.bytes, trusting: trust)
        }
    }
}
