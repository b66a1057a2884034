import AuditTrail
import CanonicalJSON
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore
import SealedFormat
import Synchronization
import Testing
import WireProtocol

/// The list of genuine keys over the socket: who puts it in force, what is refused, and what follows for the keys in it.
@Suite struct KeysetRouteTests {
    /// Another name than the keys' own, as an authority has one.
    struct Authority {
        let signer: NoteSigner

        init() throws {
            let key = try Ed25519PrivateKey.generate()
            signer = try #require(NoteSigner(name: "example.com/authority", key: key))
        }

        func note(_ keyset: Keyset) throws -> String {
            let note = SignedNote(text: keyset.text, signatures: [try signer.sign(keyset.text)])
            return String(decoding: note.bytes, as: UTF8.self)
        }
    }

    struct Scene {
        let authority: Authority
        let gate: GatewayHarness

        /// A gateway that pins an authority, and whose start found an origin and a trail key.
        init(pins: Bool = true) async throws {
            let authority = try Authority()
            self.authority = authority
            let found = try [KeyPurpose.origin, .trail].map { purpose in
                let publicKey = try Ed25519PrivateKey.generate().publicKey.rawBytes
                return GatewayKey(
                    id: "\(purpose)-\(Hexadecimal.encode(SHA256.digest(publicKey).bytes.prefix(8)))",
                    purpose: purpose, state: .preActivation, createdAt: Instant(milliseconds: 1),
                    changedAt: Instant(milliseconds: 1), publicKey: publicKey)
            }
            gate = try GatewayHarness(
                authorities: pins ? [authority.signer.verifierKey] : [],
                opening: { step, now in
                    try step.recordStart(step.policy, version: "test", keys: found, at: now)
                })
            try await gate.register("u_0")
        }

        var keyring: Keyring { get throws { try #require(try gate.store.read { try $0.keyring() }) } }

        /// The keys as they are, or as `change` would have them.
        func keyset(
            version: UInt64 = 1, gateway: String? = nil, expiresIn seconds: UInt64 = 86_400,
            _ change: (Keyset.Key) -> Keyset.Key? = { $0 }
        ) throws -> Keyset {
            let now = UInt64(gate.clock.now().milliseconds / 1000)
            return try Keyset(
                gateway: gateway ?? gate.library.origin, version: version, issuedAt: now - 60,
                expiresAt: now + seconds,
                keys: keyring.keys.compactMap { Keyset.Key($0) }.compactMap(change))
        }

        func put(_ note: String, by caller: String = "keys-team") async throws -> GatewayHarness.Reply {
            try await gate.call(caller, "PUT", "/v1/keyset", ["note": .string(note)])
        }

        /// Both callers bring it.
        func adopt(_ keyset: Keyset) async throws {
            let note = try authority.note(keyset)
            #expect(try await put(note).status == 202)
            #expect(try await put(note, by: "keys-witness").status == 200)
        }

        func addKey(_ purpose: String) async throws -> String {
            let added = try await gate.call("keys-team", "POST", "/v1/keys", ["purpose": .string(purpose)])
            #expect(added.status == 200)
            return try #require(added["key"])
        }

        func entries() throws -> [JSONObject] {
            try gate.store.read { try $0.entries(from: 0, limit: 1000) }.map {
                try #require(try CanonicalJSON.read($0.bytes).objectValue)
            }.filter { $0["kind"]?.stringValue == "keyset" }
        }
    }

    @Test func `two callers put a keyset in force, and both are in the trail`() async throws {
        let scene = try await Scene()
        #expect(try await scene.gate.call("auditor", "GET", "/v1/keyset").status == 404)
        let note = try scene.authority.note(scene.keyset())
        let proposed = try await scene.put(note)
        #expect(proposed.status == 202 && proposed["second_caller_by"] != nil)
        #expect(try await scene.put(note).status == 409, "the same caller is no second one")
        #expect(try await scene.gate.call("auditor", "GET", "/v1/keyset").status == 404)
        #expect(scene.gate.library.keysets.withLock { $0.isEmpty })
        let inForce = try await scene.put(note, by: "keys-witness")
        #expect(inForce.status == 200 && inForce["second_caller_by"] == nil)
        let served = await scene.gate.ask("payments", "GET", "/v1/keyset")
        #expect(served.status == 200 && served.body == Array(note.utf8))
        #expect(scene.gate.library.keysets.withLock { $0 } == [Array(note.utf8)])
        let entries = try scene.entries()
        #expect(entries.map { $0["event"]?.stringValue } == ["propose", "adopt"])
        #expect(entries.map { $0["caller"]?.stringValue } == ["keys-team", "keys-witness"])
        #expect(entries.last?["proposed_by"]?.stringValue == "keys-team")
        for entry in entries {
            #expect(entry["digest"]?.stringValue == Hexadecimal.encode(SHA256.digest(Array(note.utf8)).bytes))
            #expect(entry["version"] == 1)
        }
        // What is in force is not recorded again, whatever the caller.
        for caller in ["keys-team", "keys-witness"] {
            let again = try await scene.put(note, by: caller)
            #expect(again.status == 200 && again.json["replayed"] == true && again.json["trail"] == nil)
        }
        #expect(try scene.entries().count == 2)
        #expect(try scene.gate.store.read { try $0.keyset() } == scene.keyset())
    }

    @Test func `a proposal waits for an hour, and for its own bytes only`() async throws {
        let scene = try await Scene()
        let note = try scene.authority.note(scene.keyset())
        #expect(try await scene.put(note).status == 202)
        scene.gate.clock.advance(seconds: 3601)
        #expect(try await scene.put(note, by: "keys-witness").status == 202, "the first one is forgotten")
        let other = try scene.authority.note(scene.keyset(version: 2))
        #expect(try await scene.put(other).status == 202, "another note is a proposal of its own")
        #expect(try await scene.put(note).status == 202, "and takes the place of the one before")
        #expect(try await scene.gate.call("auditor", "GET", "/v1/keyset").status == 404)
    }

    @Test func `what the authority did not sign for this gateway is refused`() async throws {
        let scene = try await Scene()
        let stranger = try Authority()
        let good = try scene.authority.note(scene.keyset())
        let trailKey = try #require(
            NoteSigner(name: scene.authority.signer.verifierKey.name, key: scene.gate.origin))
        let text = try scene.keyset().text
        let byOrigin = SignedNote(text: text, signatures: [try trailKey.sign(text)])
        for (note, why) in [
            (try stranger.note(scene.keyset()), "trusted"),
            (String(decoding: byOrigin.bytes, as: UTF8.self), "trusted"),
            (good.replacing("version 1\n", with: "version 2\n"), "verify"),
            (try scene.authority.note(scene.keyset(gateway: "other.example.com")), "other.example.com"),
            (try scene.authority.note(scene.keyset(expiresIn: 0)), "expired"),
            (try scene.authority.note(scene.keyset { $0.purpose == .origin ? nil : $0 }), "origin-"),
            (
                try scene.authority.note(
                    scene.keyset {
                        var key = $0
                        if key.purpose == .trail { key.state = .suspended }
                        return key
                    }), "trail-"
            ),
            ("not a note", "malformed"), ("\n\n", "malformed"),
        ] {
            let answer = try await scene.put(note)
            #expect(answer.status == 409, "\(why)")
            #expect(answer["detail"]?.contains(why) == true, "\(why): \(answer["detail"] ?? "")")
        }
        #expect(try scene.entries().isEmpty)
        #expect(try await scene.put("").status == 422)
        #expect(try await scene.put("a\rb\n").status == 422)
        #expect(try await scene.put(String(repeating: "a", count: 40_001)).status == 422)
        #expect(try await scene.put(good, by: "payments").status == 403)
    }

    @Test func `without a pinned authority none is taken`() async throws {
        let scene = try await Scene(pins: false)
        let answer = try await scene.put(scene.authority.note(scene.keyset()))
        #expect(answer.status == 409 && answer["detail"]?.contains("`authority`") == true)
    }

    @Test func `versions only rise, and a compromised key does not come back`() async throws {
        let scene = try await Scene()
        try await scene.adopt(scene.keyset(version: 5))
        for version in [1, 5] as [UInt64] {
            let other = try scene.authority.note(scene.keyset(version: version, expiresIn: 99))
            let answer = try await scene.put(other)
            #expect(answer.status == 409 && answer["detail"]?.contains("only rise") == true)
        }
        let key = try await scene.addKey("origin")
        try await scene.adopt(scene.keyset(version: 6))
        #expect(try await scene.gate.call("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        let old = try #require(try scene.keyring.keys.first { $0.purpose == .origin })
        #expect(
            try await scene.gate.call(
                "keys-team", "POST", "/v1/keys/\(old.id)/revoke", ["cause": "compromised"]
            ).status == 200)
        try await scene.adopt(scene.keyset(version: 7))
        let back = try scene.authority.note(
            scene.keyset(version: 8) {
                var key = $0
                if key.state == .compromised { key.state = .deactivated }
                return key
            })
        let answer = try await scene.put(back)
        #expect(answer.status == 409 && answer["detail"]?.contains("believed again") == true)
    }

    @Test(arguments: ["origin", "trail"])
    func `a key that nobody would believe does not come into use`(purpose: String) async throws {
        let scene = try await Scene()
        // Before the first keyset no key is believed by it.
        let first = try await scene.addKey(purpose)
        #expect(try await scene.gate.call("keys-team", "POST", "/v1/keys/\(first)/promote").status == 200)
        try await scene.adopt(scene.keyset())
        let second = try await scene.addKey(purpose)
        for body in [[:], ["dry_run": true]] as [JSONObject] {
            let refused = try await scene.gate.call("keys-team", "POST", "/v1/keys/\(second)/promote", body)
            #expect(refused.status == 409 && refused["detail"]?.contains("keyset in force") == true)
        }
        let active = try scene.keyring.active(KeyPurpose(rawValue: purpose)!)?.id
        #expect(active == first)
        try await scene.adopt(scene.keyset(version: 2))
        #expect(try await scene.gate.call("keys-team", "POST", "/v1/keys/\(second)/promote").status == 200)
        // Link keys are believed by the gateway alone.
        let link = try await scene.addKey("link")
        #expect(try await scene.gate.call("keys-team", "POST", "/v1/keys/\(link)/promote").status == 200)
    }
}
