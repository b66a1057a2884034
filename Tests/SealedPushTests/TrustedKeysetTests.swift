import Crypto
import FoundationEssentials
import OpenSSLCrypto
import SealedFormat
import SealedPush
import Testing

/// What a phone believes of the gateway's keys: the authority's word and nothing else.
@Suite struct TrustedKeysetTests {
    private static let gateway = "gate.example.com/prod"
    private static let issuedAt: UInt64 = 1_789_000_000
    private static let expiresAt: UInt64 = 1_792_000_000

    /// A signer of notes.
    private struct Signer {
        let key = Curve25519.Signing.PrivateKey()
        var name = "example.com/authority"

        var keyText: NoteKeyText {
            let publicKey = Array(key.publicKey.rawRepresentation)
            let hashed = NoteKeyText.hashed(name: name, algorithm: 1, publicKey: publicKey)
            return NoteKeyText(
                name: name, keyID: NoteKeyText.keyID(digest: Array(Crypto.SHA256.hash(data: hashed))),
                algorithm: 1,
                publicKey: publicKey)
        }

        func authority() throws -> AuthorityKey { try AuthorityKey(keyText.text) }

        func signature(_ text: [UInt8]) throws -> NoteSignature {
            NoteSignature(name: name, keyID: keyText.keyID, bytes: Array(try key.signature(for: text)))
        }

        func note(_ keyset: Keyset) throws -> [UInt8] {
            SignedNote(text: keyset.text, signatures: [try signature(keyset.text)]).bytes
        }
    }

    private static func keyset(
        _ scene: Scene, version: UInt64 = 1, state: KeyState = .active, gateway: String = gateway
    ) throws -> Keyset {
        let origin = try scene.origin
        return try Keyset(
            gateway: gateway, version: version, issuedAt: issuedAt, expiresAt: expiresAt,
            keys: [.init(purpose: .origin, id: origin.keyID, state: state, publicKey: origin.publicKey)])
    }

    private static func trusted(
        _ note: [UInt8], by signers: [Signer], after earlier: TrustedKeyset? = nil, now: UInt64 = Scene.now
    ) throws -> TrustedKeyset {
        try TrustedKeyset(
            note: note, authorities: signers.map { try $0.authority() }, gateway: gateway, after: earlier,
            now: now)
    }

    private static func opener(_ scene: Scene, _ keyset: TrustedKeyset) throws -> SealedPushOpener {
        try SealedPushOpener(
            app: Scene.app, device: Scene.device, keys: [scene.deviceKey], keyset: keyset,
            seen: InMemorySeenMessages())
    }

    @Test(arguments: SealingSuite.allCases)
    func `a message of a listed origin opens`(suite: SealingSuite) throws {
        let (scene, authority) = (try Scene(suite), Signer())
        let keyset = try Self.trusted(authority.note(Self.keyset(scene)), by: [authority])
        #expect(keyset.version == 1 && keyset.expiresAt == Self.expiresAt)
        let opening = try Self.opener(scene, keyset).open(scene.seal([1, 2, 3]), now: Scene.now)
        #expect(opening.message.content == [1, 2, 3])
    }

    @Test(arguments: KeyState.allCases)
    func `an origin's state decides whether it is believed`(state: KeyState) throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let opener = try Self.opener(
            scene, Self.trusted(authority.note(Self.keyset(scene, state: state)), by: [authority]))
        let sealed = try scene.seal([1])
        if [.preActivation, .active, .deactivated].contains(state) {
            #expect(try opener.open(sealed, now: Scene.now).message.content == [1])
        } else {
            #expect(throws: SealedPushError.unknownOrigin(originKeyID: try scene.origin.keyID)) {
                try opener.open(sealed, now: Scene.now)
            }
        }
    }

    @Test func `a stolen origin key cannot bless its successor`() throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let current = try Self.trusted(authority.note(Self.keyset(scene)), by: [authority])
        let successor = try Scene(.p256)
        // Signed by the thief, under the authority's name, with their own key.
        let forged = try Signer().note(Self.keyset(successor, version: 2))
        #expect(throws: SealedPushError.self) { try Self.trusted(forged, by: [authority], after: current) }
        // By the origin key itself, with the authority's key id.
        let text = try Self.keyset(successor, version: 2).text
        let borrowed = SignedNote(
            text: text,
            signatures: [
                NoteSignature(
                    name: authority.name, keyID: authority.keyText.keyID,
                    bytes: try scene.originKey.sign(text))
            ])
        #expect(throws: SealedPushError.untrustedKeyset(detail: "no pinned authority signed it")) {
            try Self.trusted(borrowed.bytes, by: [authority], after: current)
        }
    }

    @Test func `no changed byte of a note is believed`() throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let note = try authority.note(Self.keyset(scene))
        for index in note.indices {
            var changed = note
            changed[index] ^= 1
            #expect(throws: SealedPushError.self, "byte \(index)") {
                try Self.trusted(changed, by: [authority])
            }
        }
        for count in [0, 1, note.count - 1] {
            #expect(throws: SealedPushError.self) { try Self.trusted(Array(note[..<count]), by: [authority]) }
        }
    }

    @Test func `a signature by an unknown key is passed over, and a false one by a pinned key is not`() throws
    {
        let (scene, authority, next) = (try Scene(.p256), Signer(), Signer(name: "example.com/next"))
        let text = try Self.keyset(scene).text
        let both = SignedNote(
            text: text, signatures: [try next.signature(text), try authority.signature(text)])
        #expect(try Self.trusted(both.bytes, by: [authority]).version == 1)
        #expect(try Self.trusted(both.bytes, by: [next, authority]).version == 1)
        let half = SignedNote(
            text: text,
            signatures: [try authority.signature(text), try next.signature(Array("other\n".utf8))])
        #expect(throws: SealedPushError.self) { try Self.trusted(half.bytes, by: [authority, next]) }
        #expect(throws: SealedPushError.self) { try Self.trusted(both.bytes, by: []) }
    }

    @Test func `versions only rise`() throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let second = try Self.trusted(authority.note(Self.keyset(scene, version: 2)), by: [authority])
        #expect(throws: SealedPushError.staleKeyset(version: 1, known: 2)) {
            try Self.trusted(authority.note(Self.keyset(scene)), by: [authority], after: second)
        }
        #expect(throws: SealedPushError.staleKeyset(version: 2, known: 2)) {
            try Self.trusted(
                authority.note(Self.keyset(scene, version: 2, state: .deactivated)), by: [authority],
                after: second
            )
        }
        #expect(
            try Self.trusted(second.note, by: [authority], after: second).version == 2,
            "the same one is no step back")
        #expect(
            try Self.trusted(authority.note(Self.keyset(scene, version: 9)), by: [authority], after: second)
                .version == 9)
    }

    @Test func `an expired one says nothing, whenever it expires`() throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let note = try authority.note(Self.keyset(scene))
        #expect(throws: SealedPushError.expiredKeyset(expiredAt: Self.expiresAt)) {
            try Self.trusted(note, by: [authority], now: Self.expiresAt)
        }
        // A keyset that was good when the app started.
        let opener = try Self.opener(scene, Self.trusted(note, by: [authority]))
        let sealed = try scene.seal([1], expiresAt: Self.expiresAt + 1000)
        #expect(try opener.open(sealed, now: Self.expiresAt - 1).message.content == [1])
        #expect(throws: SealedPushError.expiredKeyset(expiredAt: Self.expiresAt)) {
            try opener.open(sealed, now: Self.expiresAt)
        }
    }

    @Test func `another gateway's keyset is not this one's`() throws {
        let (scene, authority) = (try Scene(.p256), Signer())
        let other = try authority.note(Self.keyset(scene, gateway: "gate.example.com/test"))
        #expect(throws: SealedPushError.self) { try Self.trusted(other, by: [authority]) }
    }

    @Test(arguments: ["", "x", "example.com/authority+00000000+AQID", "a b+00000000+AA=="])
    func `what is no verifier key is refused`(_ text: String) {
        #expect(throws: SealedPushError.self) { try AuthorityKey(text) }
    }

    @Test func `a verifier key with another key's id is refused`() throws {
        let (one, other) = (Signer().keyText, Signer().keyText)
        let mixed = NoteKeyText(name: one.name, keyID: other.keyID, algorithm: 1, publicKey: one.publicKey)
        #expect(throws: SealedPushError.self) { try AuthorityKey(mixed.text) }
        let cosigner = NoteKeyText(name: one.name, keyID: one.keyID, algorithm: 4, publicKey: one.publicKey)
        #expect(throws: SealedPushError.self) { try AuthorityKey(cosigner.text) }
    }
}
