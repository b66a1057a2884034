import GateRecords
import SealedFormat
import AuditTrail
import BundleModel
import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore
import Testing
import WireProtocol

/// The gateway's own keys over the socket: who may change what, and what the trail and the private halves make of it.
@Suite struct GatewayKeyTests {
    /// A gateway whose start found one key of each purpose that rotates, over files that the data key seals.
    static func started(witness: Bool = false) async throws -> GatewayHarness {
        let found = Keyring.rotating.map { purpose in
            GatewayKey(
                id: purpose == .data ? "test" : "\(purpose)-1", purpose: purpose, state: .preActivation,
                createdAt: Instant(milliseconds: 1), changedAt: Instant(milliseconds: 1),
                publicKey: purpose.isAsymmetric ? Array(repeating: 3, count: 32) : nil)
        }
        let gate = try GatewayHarness(
            keeping: .files(),
            opening: { step, now in
                try step.recordStart(step.policy, version: "test", keys: found, at: now)
            })
        // Whatever is recorded first takes the start with it.
        try await gate.register("u_0")
        return gate
    }

    /// Whose signatures are taken is changed in the configuration, by its author, and not over the socket.
    @Test func `a start tells which pinned keys came and went since the one before`() async throws {
        let compliance = PinnedKey("policy-1+00000001+AQ", of: .compliance)
        let legal = PinnedKey("policy-2+00000002+AQ", of: .legal)
        let authority = PinnedKey("example.com/authority+00000003+AQ", of: nil)
        let gate = try GatewayHarness(opening: { step, now in
            for pins in [[compliance, authority], [compliance, authority], [authority, legal], []] {
                try step.recordStart(step.policy, version: "test", keys: [], pins: pins, at: now)
            }
        })
        try await gate.register("u_0")
        func pin(_ event: String, _ key: PinnedKey, _ purpose: String) -> JSONValue {
            var members: JSONObject = [
                "event": .string(event), "key": .string(key.key), "purpose": .string(purpose),
            ]
            if let role = key.role { members["role"] = .string(role.rawValue) }
            return .object(members)
        }
        let starts = try Self.entries(gate).filter { $0["kind"] == "start" }
        #expect(
            starts.map { $0["pins"] } == [
                [pin("pin", compliance, "policy"), pin("pin", authority, "authority")], nil,
                [pin("unpin", compliance, "policy"), pin("pin", legal, "policy")],
                [pin("unpin", authority, "authority"), pin("unpin", legal, "policy")],
            ])
    }

    private static func body(_ answer: Answer) throws -> JSONObject {
        try #require(try CanonicalJSON.read(answer.body).objectValue)
    }

    /// Makes a key and gives its id.
    static func add(_ purpose: String, to gate: GatewayHarness) async throws -> String {
        let answer = await gate.ask("keys-team", "POST", "/v1/keys", ["purpose": .string(purpose)])
        #expect(answer.status == 200)
        let body = try body(answer)
        #expect(body["state"]?.stringValue == "pre_activation")
        return try #require(body["key"]?.stringValue)
    }

    private static func entries(_ gate: GatewayHarness) throws -> [JSONObject] {
        try gate.store.read { try $0.entries(from: 0, limit: 1000) }.map {
            try #require(try CanonicalJSON.read($0.bytes).objectValue)
        }
    }

    @Test(arguments: Keyring.rotating)
    func `a key is added, promoted and followed, with an entry for each transition`(
        purpose: KeyPurpose
    ) async throws {
        let gate = try await Self.started()
        let key = try await Self.add(purpose.rawValue, to: gate)
        if purpose == .root {
            #expect(await gate.ask("keys-witness", "POST", "/v1/keys/\(key)/promote").status == 202)
        }
        let promoted = await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote")
        #expect(promoted.status == 200)
        #expect(try Self.body(promoted)["state"]?.stringValue == "active")
        let followed = try #require(gate.privateKeys.followed.last)
        #expect(followed.active(purpose)?.id == key)
        let old = purpose == .data ? "test" : "\(purpose)-1"
        #expect(followed[old]?.state == .deactivated)
        let entries = try Self.entries(gate).filter {
            $0["kind"]?.stringValue == "gateway_key" && $0["caller"]?.stringValue == "keys-team"
        }
        #expect(entries.map { $0["event"]?.stringValue } == ["add", "deactivate", "promote"])
        #expect(entries.map { $0["key"]?.stringValue } == [key, old, key])
        #expect(try gate.store.read { try $0.keyring() } == followed)
        #expect(purpose != .data || gate.store.dataKeyUse.key == key)
    }

    @Test func `the start's entry says which keys it found, once`() async throws {
        let gate = try await Self.started()
        _ = try await Self.add("origin", to: gate)
        let start = try #require(try Self.entries(gate).first { $0["kind"]?.stringValue == "start" })
        let found = try #require(start["keys"]?.arrayValue)
        #expect(found.compactMap { $0["key"]?.stringValue }.count == 5)
        #expect(found.allSatisfy { $0["state"]?.stringValue == "active" && $0["cause"] == "found" })
    }

    @Test func `a rotation that was begun is not begun twice`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("trail", to: gate)
        let second = await gate.ask("keys-team", "POST", "/v1/keys", ["purpose": "trail"])
        #expect(second.status == 409)
        #expect(String(decoding: second.body, as: UTF8.self).contains(key))
    }

    @Test func `a rotation of a key that another one has replaced makes no key`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("trail", to: gate)
        let addition: JSONObject = ["purpose": "trail", "replaces": "trail-1"]
        let asked = await gate.ask("keys-team", "POST", "/v1/keys", addition)
        #expect(asked.status == 409, "\(key) waits")
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        let again = await gate.ask("keys-team", "POST", "/v1/keys", addition)
        #expect(again.status == 409)
        let told = "`trail-1` is not the key that a new one would replace"
        #expect(String(decoding: again.body, as: UTF8.self).contains(told))
        #expect(gate.privateKeys.made.subtracting(gate.privateKeys.erased) == [key])
        let next = await gate.ask(
            "keys-team", "POST", "/v1/keys", ["purpose": "trail", "replaces": .string(key)])
        #expect(next.status == 200)
    }

    @Test(arguments: ["suspend", "revoke"])
    func `of two rotations at once while no key is in use the second makes no key`(verb: String) async throws
    {
        let gate = try await Self.started()
        let body: JSONObject = verb == "revoke" ? ["cause": "compromised"] : [:]
        let end = await gate.ask("keys-team", "POST", "/v1/keys/origin-1/\(verb)", body)
        #expect(end.status == 200)
        // Both saw the same keys before either made one.
        let addition: JSONObject = ["purpose": "origin", "replaces": "origin-1"]
        let first = await gate.ask("keys-team", "POST", "/v1/keys", addition)
        #expect(first.status == 200)
        let key = try #require(try Self.body(first)["key"]?.stringValue)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys", addition).status == 409)
        #expect(gate.privateKeys.made.subtracting(gate.privateKeys.erased) == [key])
    }

    @Test func `of many requests at once one makes a key, and no file is left of the others`() async throws {
        let gate = try await Self.started()
        let statuses = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await gate.ask("keys-team", "POST", "/v1/keys", ["purpose": "origin"]).status
                }
            }
            return await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(statuses.count { $0 == 200 } == 1)
        // What was made and came too late was erased; what is taken in stays.
        let kept = try #require(try gate.store.read { try $0.keyring() })
        #expect(gate.privateKeys.made.subtracting(gate.privateKeys.erased).count == 1)
        #expect(kept.keys.count { $0.purpose == .origin && $0.state == .preActivation } == 1)
    }

    @Test(arguments: ["index", "policy", "authority"])
    func `keys that change elsewhere are refused with the way there`(purpose: String) async throws {
        let gate = try await Self.started()
        let answer = await gate.ask("keys-team", "POST", "/v1/keys", ["purpose": .string(purpose)])
        #expect(answer.status == 409)
        #expect(try Self.entries(gate).allSatisfy { $0["kind"]?.stringValue != "gateway_key" })
    }

    @Test func `without an origin key nothing is sealed, and a resumed one seals again`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("origin", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/suspend").status == 200)
        #expect(throws: NoOriginKey.self) { try gate.gateKeys.origin() }
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 409)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/resume").status == 200)
        #expect(try gate.gateKeys.origin().keyID.count == 8)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/resume").status == 409)
    }

    @Test
    func `a suspended key is not promoted and one in use is not destroyed, and each refusal names the way`()
        async throws
    {
        let gate = try await Self.started()
        let key = try await Self.add("origin", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        func refused(_ verb: String, saying way: String) async throws {
            let count = try Self.entries(gate).count
            let answer = await gate.ask("keys-team", "POST", "/v1/keys/\(key)/\(verb)")
            #expect(answer.status == 409, "\(verb)")
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains(way), "\(text)")
            // Nothing is recorded, not even a proposal.
            #expect(try Self.entries(gate).count == count)
        }
        try await refused("destroy", saying: "`revoke` it first, or promote its successor")
        try await refused("promote", saying: "a key that is `active` cannot be the subject of `promote`")
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/suspend").status == 200)
        try await refused("promote", saying: "`resume` ends a suspension")
        try await refused("destroy", saying: "`revoke` it first, or promote its successor")
        #expect(try gate.store.read { try $0.keyring() }?[key]?.state == .suspended)
    }

    @Test(arguments: Keyring.rotating)
    func `a key that waits and whose file is gone is not promoted, and nothing is recorded`(
        purpose: KeyPurpose
    ) async throws {
        let gate = try await Self.started()
        let key = try await Self.add(purpose.rawValue, to: gate)
        gate.privateKeys.lose(key)
        try await Self.expectRefused("promote", of: key, because: purpose, by: gate)
        // Such a key may go, as its refusal says.
        for (caller, status) in [("keys-team", 202), ("keys-witness", 200)] {
            #expect(await gate.ask(caller, "POST", "/v1/keys/\(key)/destroy").status == status)
        }
    }

    @Test func `a root key whose file goes between its two callers is not promoted`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("root", to: gate)
        #expect(await gate.ask("keys-witness", "POST", "/v1/keys/\(key)/promote").status == 202)
        gate.privateKeys.lose(key)
        try await Self.expectRefused("promote", of: key, because: .root, by: gate)
    }

    @Test func `a root key that is kept apart gets no successor beside the keys that it opens`() async throws
    {
        let gate = try await Self.started()
        gate.privateKeys.keepRoot(at: "/media/vault/root")
        let made = gate.privateKeys.made
        for body in [["purpose": "root"], ["purpose": "root", "dry_run": true]] as [JSONObject] {
            let reply = try await gate.call("keys-team", "POST", "/v1/keys", body)
            #expect(reply.status == 409, "\(reply.json)")
            let detail = try #require(reply.json["detail"]?.stringValue)
            #expect(detail.contains("`/media/vault/root`") && detail.contains("`root_key`"), "\(detail)")
        }
        #expect(gate.privateKeys.made == made)
        // Other keys are made as before.
        _ = try await Self.add("data", to: gate)
    }

    @Test func `a suspended key whose file is gone is not resumed, and another takes its place`() async throws
    {
        let gate = try await Self.started()
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/suspend").status == 200)
        gate.privateKeys.lose("origin-1")
        try await Self.expectRefused("resume", of: "origin-1", because: .origin, by: gate)
        let next = try await Self.add("origin", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(next)/promote").status == 200)
    }

    private static func expectRefused(
        _ verb: String, of key: String, because purpose: KeyPurpose, by gate: GatewayHarness
    ) async throws {
        let (entries, keyring) = try gate.store.read { (try $0.entryCount(), try $0.keyring()) }
        let followed = gate.privateKeys.followed
        for body in [["dry_run": true], [:]] as [JSONObject] {
            let answer = await gate.ask("keys-team", "POST", "/v1/keys/\(key)/\(verb)", body)
            #expect(answer.status == 409)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains("`\(key)`") && text.contains(purpose.use), "\(text)")
        }
        #expect(try gate.store.read { try $0.entryCount() } == entries)
        #expect(try gate.store.read { try $0.keyring() } == keyring)
        #expect(gate.privateKeys.followed == followed)
    }

    @Test func `a dry run says what would be and changes nothing`() async throws {
        let gate = try await Self.started()
        let before = try gate.store.read { try $0.entryCount() }
        for (target, body, state) in [
            ("", ["purpose": "data", "dry_run": true], "pre_activation"),
            ("/origin-1/suspend", ["dry_run": true], "suspended"),
            ("/origin-1/revoke", ["cause": "compromised", "dry_run": true], "compromised"),
        ] as [(String, JSONObject, String)] {
            let answer = await gate.ask("keys-team", "POST", "/v1/keys\(target)", body)
            #expect(answer.status == 200)
            let told = try Self.body(answer)
            #expect(told["state"]?.stringValue == state && told["dry_run"] == true && told["trail"] == nil)
        }
        #expect(
            await gate.ask("keys-team", "POST", "/v1/keys/trail-1/suspend", ["dry_run": true]).status == 409)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/x/suspend", ["dry_run": true]).status == 404)
        #expect(try gate.store.read { try $0.entryCount() } == before)
        #expect(gate.privateKeys.followed.isEmpty)
    }

    @Test func `a dry run of what two callers must ask for says so, and counts for neither`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("origin", to: gate)
        func dry(_ caller: String) async throws -> JSONValue {
            let answer = await gate.ask(caller, "POST", "/v1/keys/\(key)/destroy", ["dry_run": true])
            try #require(answer.status == 200)
            return try .object(Self.body(answer))
        }
        for caller in ["keys-team", "keys-witness"] {
            let told = try await dry(caller)
            #expect(told["state"]?.stringValue == "pre_activation", "\(told)")
            #expect(told["second_caller_by"]?.stringValue != nil && told["dry_run"] == true, "\(told)")
        }
        try #require(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/destroy").status == 202)
        let second = try await dry("keys-witness")
        #expect(second["state"]?.stringValue == "destroyed" && second["second_caller_by"] == nil, "\(second)")
    }

    @Test func `two callers destroy a key, and both are in the trail`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("origin", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/destroy").status == 409)
        let proposed = await gate.ask("keys-team", "POST", "/v1/keys/origin-1/destroy")
        #expect(proposed.status == 202)
        #expect(try Self.body(proposed)["second_caller_by"] != nil)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/destroy").status == 409)
        #expect(gate.privateKeys.erased.isEmpty)
        let done = await gate.ask("keys-witness", "POST", "/v1/keys/origin-1/destroy")
        #expect(done.status == 200)
        #expect(try Self.body(done)["state"]?.stringValue == "destroyed")
        #expect(gate.privateKeys.erased == ["origin-1"])
        let last = try #require(try Self.entries(gate).last)
        #expect(last["event"]?.stringValue == "destroy" && last["caller"]?.stringValue == "keys-witness")
        #expect(last["proposed_by"]?.stringValue == "keys-team")
    }

    @Test func `two callers promote a root key, and both are in the trail`() async throws {
        let gate = try await Self.started()
        let key = try await Self.add("root", to: gate)
        let proposed = await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote")
        #expect(proposed.status == 202)
        #expect(try Self.body(proposed)["second_caller_by"] != nil)
        #expect(try Self.body(proposed)["state"] == "pre_activation")
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 409)
        #expect(gate.privateKeys.followed.last?.active(.root)?.id == "root-1")
        #expect(await gate.ask("keys-witness", "POST", "/v1/keys/\(key)/promote").status == 200)
        #expect(gate.privateKeys.followed.last?.active(.root)?.id == key)
        let entries = try Self.entries(gate).suffix(3)
        #expect(entries.map { $0["event"] } == ["propose_promotion", "deactivate", "promote"])
        #expect(entries.map { $0["proposed_by"] } == [nil, nil, "keys-team"])
        #expect(entries.last?["caller"] == "keys-witness")
    }

    /// A destroyed key whose file stays, or a root key that wraps nothing, would be found out by an alarm at best.
    @Test(arguments: [("origin", "destroy"), ("root", "destroy"), ("root", "promote")])
    func `what key files must follow is not recorded while they cannot be written`(
        purpose: String, verb: String
    ) async throws {
        let gate = try await Self.started()
        let key = try await Self.add(purpose, to: gate)
        func expectRefused(_ caller: String) async throws {
            let before = try gate.store.read { (try $0.entryCount(), try $0.keyring()) }
            gate.privateKeys.fail(.readOnly)
            for body in [["dry_run": true], [:]] as [JSONObject] {
                let answer = await gate.ask(caller, "POST", "/v1/keys/\(key)/\(verb)", body)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(answer.status == 503 && text.contains("nothing was recorded"), "\(text)")
                #expect(text.contains("make the key directory writable"), "\(text)")
            }
            gate.privateKeys.fail(nil)
            #expect(try gate.store.read { try $0.entryCount() } == before.0)
            #expect(try gate.store.read { try $0.keyring() } == before.1)
        }
        // For the first of the two callers as for the second.
        try await expectRefused("keys-team")
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/\(verb)").status == 202)
        try await expectRefused("keys-witness")
        #expect(await gate.ask("keys-witness", "POST", "/v1/keys/\(key)/\(verb)").status == 200)
        // What is followed in memory alone goes on: a stolen key is stopped whatever the disk does.
        gate.privateKeys.fail(.readOnly)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/suspend").status == 200)
    }

    @Test(arguments: [KeyPurpose.origin, .trail])
    func `a key that does not sign is found out before it comes into use`(purpose: KeyPurpose) async throws {
        let gate = try await Self.started()
        let key = try await Self.add(purpose.rawValue, to: gate)
        let before = try gate.store.read { (try $0.entryCount(), try $0.keyring()) }
        gate.privateKeys.fail(.mute)
        let answer = await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote")
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(answer.status == 503 && text.contains("nothing was recorded"), "\(text)")
        #expect(try gate.store.read { try $0.entryCount() } == before.0)
        #expect(try gate.store.read { try $0.keyring() } == before.1)
        gate.privateKeys.fail(nil)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
    }

    @Test(arguments: [("origin", "destroy"), ("root", "promote")])
    func `a change that is recorded and that key files do not follow is answered by no success`(
        purpose: String, verb: String
    ) async throws {
        let gate = try await Self.started()
        let key = try await Self.add(purpose, to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/\(verb)").status == 202)
        gate.privateKeys.fail(.stuck)
        let answer = await gate.ask("keys-witness", "POST", "/v1/keys/\(key)/\(verb)")
        let text = String(decoding: answer.body, as: UTF8.self)
        let state = verb == "destroy" ? "destroyed" : "active"
        #expect(answer.status == 503 && text.contains("`\(key)` is `\(state)` and recorded so"), "\(text)")
        #expect(try gate.store.read { try $0.keyring() }?[key]?.state.rawValue == state)
        await gate.settle()
        #expect(gate.alarms.all.contains { $0.contains("not wholly followed") })
        // A change of another key is done for all that.
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/suspend").status == 200)
        gate.privateKeys.fail(nil)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/origin-1/resume").status == 200)
        #expect(gate.privateKeys.erased == (verb == "destroy" ? [key] : []))
    }

    @Test func `rows are sealed anew in pieces, and then the old data key can go`() async throws {
        let gate = try await Self.started()
        try await gate.register("u1")
        try await gate.register("u2")
        let key = try await Self.add("data", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        let lag = try Self.body(await gate.ask("keys-team", "GET", "/v1/keys/lagging"))
        #expect(lag["data_key"]?.stringValue == key && lag["done"] == false)
        #expect(try #require(lag["rows"]?.integerValue) > 0)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/test/destroy").status == 409)
        var pieces = 0
        while true {
            let receipt = try gate.store.committing { step in step.reseal(rowCountMax: 2) }.receipt
            let resealing = try #require(receipt.resealing)
            #expect(resealing.key == key)
            pieces += 1
            if resealing.isDone { break }
        }
        #expect(pieces > 2)
        #expect(try gate.store.read { try $0.laggingRowCount() } == 0)
        #expect(try Self.body(await gate.ask("keys-team", "GET", "/v1/keys/lagging"))["rows"] == 0)
        let person = await gate.ask("auditor", "GET", "/v1/recipients/u1")
        #expect(person.status == 200)
    }
}
