import AuditTrail
import CanonicalJSON
import Dispatch
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords
import SQLiteStore
import SealedFormat
import SealedPush
import Testing
import WireProtocol

/// The life of a device's key: proved before it is used, replaced by who holds the one before, ended by the security
/// team, and sealed to in one state only.
@Suite struct DeviceKeyTests {
    /// A key a device has registered, with what its owner answers to the challenge.
    private struct Registered {
        var pair: DeviceKeyPair
        var id: String
        var proof: String
        /// For the key in use before it, when there was one.
        var oldChallenge: String?
    }

    private static let app = "no.getdrop.app"

    private func gate(at time: String = "2026-11-21T12:00:00Z") async throws -> GatewayHarness {
        let gate = try GatewayHarness(at: time)
        try await gate.register("u_1")
        return gate
    }

    private func add(
        _ gate: GatewayHarness, _ pair: DeviceKeyPair = DeviceKeyPair(), to device: String = "d_1",
        of user: String = "u_1"
    ) async throws -> Registered {
        let reply = try await post(gate, pair, to: device, of: user)
        try #require(reply.status == 201, "\(reply.json)")
        let id = try #require(reply["key_id"])
        let challenge = try envelopeText(#require(reply.json["challenge"]?.objectValue))
        return Registered(
            pair: pair, id: id, proof: try proof(of: challenge, by: pair, id, device, gate),
            oldChallenge: try reply.json["old_key_challenge"]?.objectValue.map(envelopeText))
    }

    private func post(
        _ gate: GatewayHarness, _ pair: DeviceKeyPair, to device: String = "d_1", of user: String = "u_1"
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/devices/\(device)/keys",
            ["suite": "P256_SHA256_AES256GCM", "public_key": .string(Base64URL.encode(pair.publicKey))])
    }

    private func proof(
        of challenge: String, by pair: DeviceKeyPair, _ id: String, _ device: String, _ gate: GatewayHarness
    ) throws -> String {
        try pair.proof(
            of: challenge, keyID: id, app: Self.app, device: device, origin: gate.origin.publicKey.rawBytes,
            now: gate.clock.now())
    }

    private func confirm(
        _ gate: GatewayHarness, _ id: String, _ proof: String, old: String? = nil, at device: String = "d_1",
        of user: String = "u_1"
    ) async throws -> GatewayHarness.Reply {
        var body: JSONObject = ["proof": .string(proof)]
        if let old { body["old_key_proof"] = .string(old) }
        return try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/devices/\(device)/keys/\(id)/confirm", body)
    }

    /// What an auditor reads of one key.
    private func state(_ gate: GatewayHarness, _ id: String, of user: String = "u_1") async throws -> String?
    {
        let held = try await gate.call("auditor", "GET", "/v1/recipients/\(user)")
        return held.json["devices"]?.arrayValue?.flatMap { $0["keys"]?.arrayValue ?? [] }
            .first { $0["key_id"]?.stringValue == id }?["state"]?.stringValue
    }

    private func entries(_ gate: GatewayHarness) throws -> [JSONValue] {
        try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map { try CanonicalJSON.read($0.bytes) }
    }

    private func login(_ gate: GatewayHarness, _ id: String, to user: String = "u_1") async throws
        -> GatewayHarness.Reply
    {
        try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", id, to: user, as: "security"))
    }

    /// The keys that the destinations of a send were sealed to, by destination.
    private func keys(_ reply: GatewayHarness.Reply) throws -> [String: String] {
        try #require(reply.json["deliveries"]?.arrayValue, "\(reply.json)").reduce(into: [:]) {
            if let name = $1["destination"]?.stringValue { $0[name] = $1["key_id"]?.stringValue }
        }
    }

    /// The key that a sign-in notice to `d_1` is sealed to now.
    private func keyInUse(_ gate: GatewayHarness, _ send: String) async throws -> String? {
        try keys(try await login(gate, send))["d_1"]
    }

    private func sealed(_ delivery: Delivery) throws -> String? {
        try CanonicalJSON.read(delivery.body)["sendgate"]?.stringValue
    }

    // MARK: Every verb in every state

    enum State: String, CaseIterable {
        case preActivation = "pre_activation"
        case active, suspended, deactivated, compromised, destroyed
    }

    enum Verb: CaseIterable {
        case confirm, promote, suspend, resume, revokeCompromised, revokeLost, revokeRetired, destroy
    }

    /// Where each verb leads; a verb that is not here is refused and changes nothing.
    static let table: [State: [Verb: State]] = [
        .preActivation: [
            .confirm: .active, .promote: .active, .revokeCompromised: .compromised, .destroy: .destroyed,
        ],
        .active: [
            .suspend: .suspended, .revokeCompromised: .compromised, .revokeLost: .deactivated,
            .revokeRetired: .deactivated,
        ],
        .suspended: [
            .resume: .active, .revokeCompromised: .compromised, .revokeLost: .deactivated,
            .revokeRetired: .deactivated,
        ],
        .deactivated: [.revokeCompromised: .compromised, .destroy: .destroyed],
        .compromised: [.destroy: .destroyed],
        .destroyed: [:],
    ]

    private func perform(_ verb: Verb, on key: Registered, _ gate: GatewayHarness) async throws
        -> GatewayHarness.Reply
    {
        func ask(_ name: String, _ body: JSONObject? = nil) async throws -> GatewayHarness.Reply {
            try await gate.call("keys-team", "POST", "/v1/keys/\(key.id)/\(name)", body)
        }
        return switch verb {
        case .confirm: try await confirm(gate, key.id, key.proof)
        case .promote: try await ask("promote")
        case .resume: try await ask("resume")
        case .suspend: try await ask("suspend")
        case .revokeCompromised: try await ask("revoke", ["cause": "compromised"])
        case .revokeLost: try await ask("revoke", ["cause": "lost"])
        case .revokeRetired: try await ask("revoke", ["cause": "retired"])
        case .destroy: try await destroy(key, gate)
        }
    }

    /// Two callers ask for it; the answer is the second one's, or the first one's where it is refused.
    private func destroy(_ key: Registered, _ gate: GatewayHarness) async throws -> GatewayHarness.Reply {
        var reply = try await gate.call("keys-team", "POST", "/v1/keys/\(key.id)/destroy")
        if reply.status == 202 {
            reply = try await gate.call("keys-witness", "POST", "/v1/keys/\(key.id)/destroy")
        }
        return reply
    }

    /// A key in a state, by the shortest way there.
    private func key(in state: State, _ gate: GatewayHarness) async throws -> Registered {
        let key = try await add(gate)
        let way: [Verb] =
            switch state {
            case .preActivation: []
            case .active: [.confirm]
            case .suspended: [.confirm, .suspend]
            case .deactivated: [.confirm, .revokeLost]
            case .compromised: [.confirm, .revokeCompromised]
            case .destroyed: [.destroy]
            }
        for verb in way { try #require(try await perform(verb, on: key, gate).status == 200) }
        return key
    }

    @Test(arguments: State.allCases, Verb.allCases)
    func `a verb does to a key what the table says, and the next decision seals to an active one only`(
        state: State, verb: Verb
    ) async throws {
        let gate = try await gate()
        let key = try await key(in: state, gate)
        try #require(try await self.state(gate, key.id) == state.rawValue)
        let before = try entries(gate)
        let reply = try await perform(verb, on: key, gate)
        let after = try entries(gate).dropFirst(before.count)
        let next = Self.table[state]?[verb]
        if let next {
            #expect(reply.status == 200 && reply["state"] == next.rawValue, "\(reply.json)")
            // A destruction is proposed first.
            let states = verb == .destroy ? [state.rawValue, next.rawValue] : [next.rawValue]
            #expect(after.map { $0["key_id"]?.stringValue } == states.map { _ in key.id })
            #expect(after.map { $0["state"]?.stringValue } == states)
        } else {
            #expect(
                reply.status == 409 && reply["type"] == "urn:sendgate:problem:wrong_state", "\(reply.json)")
            #expect(after.isEmpty)
        }
        #expect(try await self.state(gate, key.id) == (next ?? state).rawValue)
        let id = try #require(KeyID(hexadecimal: key.id))
        let kept = try gate.store.read { try $0.deviceKey(id)?.publicKey }
        #expect(kept == ((next ?? state) == .destroyed ? [] : key.pair.publicKey))

        let send = try await login(gate, "after")
        let isSealed = (next ?? state) == .active
        #expect(send["reason"] == (isSealed ? "allowed" : "generic_only"), "\(send.json)")
        #expect(try keys(send)["d_1"] == (isSealed ? key.id : nil))
        let delivery = try #require(try await gate.claim(.security).first)
        #expect(try (sealed(delivery) != nil) == isSealed)
        // What is worthless without its content does not leave as a constant text either.
        let code = try await gate.call(
            "security", "POST", "/v1/sends", gate.example("2fa_code", "code", to: "u_1", as: "security"))
        #expect(code.status == (isSealed ? 202 : 403), "\(code.json)")
        #expect(code["reason"] == (isSealed ? "allowed" : "no_device_key"), "\(code.json)")
    }

    /// Event and cause of the newest entries about keys.
    private func why(_ gate: GatewayHarness, _ count: Int) throws -> [[String?]] {
        try entries(gate).filter { $0["kind"]?.stringValue == "device_key" }.suffix(count)
            .map { [$0["event"]?.stringValue, $0["cause"]?.stringValue] }
    }

    @Test(
        arguments: [
            (.preActivation, .confirm, "promote", nil), (.preActivation, .promote, "promote", nil),
            (.active, .suspend, "suspend", nil), (.suspended, .resume, "resume", nil),
            (.active, .revokeCompromised, "revoke", "compromised"),
            (.active, .revokeLost, "deactivate", "lost"),
            (.active, .revokeRetired, "deactivate", "retired"), (.deactivated, .destroy, "destroy", nil),
        ] as [(State, Verb, String, String?)])
    func `an entry says what happened to a key, and why`(
        state: State, verb: Verb, event: String, cause: String?
    ) async throws {
        let gate = try await gate()
        let key = try await key(in: state, gate)
        try #require(try await perform(verb, on: key, gate).status == 200)
        #expect(try why(gate, 1) == [[event, cause]])
        // What a checker makes of the entries knows it too.
        let last = try #require(try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.last)
        let read = try PersonChange.read(TrailEntry(reading: last.bytes))
        guard case .deviceKey(_, _, let transition)? = read?.change else {
            Issue.record("\(String(describing: read))")
            return
        }
        #expect(transition?.event.rawValue == event && transition?.cause?.rawValue == cause)
    }

    @Test func `two callers destroy a key within an hour, and both are in the trail`() async throws {
        let gate = try await gate()
        let key = try await key(in: .deactivated, gate)
        func ask(_ caller: String, dryRun: Bool = false) async throws -> GatewayHarness.Reply {
            try await gate.call(
                caller, "POST", "/v1/keys/\(key.id)/destroy", dryRun ? ["dry_run": true] : nil)
        }
        func expectProposed(_ reply: GatewayHarness.Reply) async throws {
            #expect(reply.status == 202 && reply["state"] == "deactivated", "\(reply.json)")
            let until = gate.clock.now().advanced(bySeconds: 3_600).rfc3339
            #expect(reply["second_caller_by"] == until, "\(reply.json)")
            #expect(try await state(gate, key.id) == "deactivated")
        }
        let dry = try await ask("keys-team", dryRun: true)
        #expect(dry.status == 200 && dry["state"] == "deactivated", "\(dry.json)")
        #expect(dry["second_caller_by"] != nil && dry.json["dry_run"] == true, "\(dry.json)")
        try await expectProposed(ask("keys-team"))
        #expect(try why(gate, 1) == [["propose_destruction", nil]])
        // The same caller is not the second, in a dry run as little as in earnest.
        for dryRun in [true, false] {
            let again = try await ask("keys-team", dryRun: dryRun)
            #expect(
                again.status == 409 && again["detail"]?.contains("another must ask") == true, "\(again.json)")
        }
        // After the hour another one begins anew.
        gate.clock.advance(seconds: 3_601)
        try await expectProposed(ask("keys-witness"))
        let other = try await ask("keys-team", dryRun: true)
        #expect(other.status == 200 && other["state"] == "destroyed", "\(other.json)")
        #expect(other["second_caller_by"] == nil)
        #expect(try await ask("keys-team").status == 200)
        let last = try #require(try entries(gate).last)
        #expect(last["event"] == "destroy" && last["caller"] == "keys-team", "\(last)")
        #expect(last["proposed_by"] == "keys-witness", "\(last)")
        #expect(try await state(gate, key.id) == "destroyed")
    }

    @Test func `a proposal to destroy a key that no second caller follows goes after its hour`() async throws
    {
        let gate = try await gate()
        let key = try await key(in: .deactivated, gate)
        try #require(try await gate.call("keys-team", "POST", "/v1/keys/\(key.id)/destroy").status == 202)
        let entryCount = try gate.store.read { try $0.entryCount() }
        for (seconds, count) in [(3_600, 1), (1, 0)] as [(Int64, Int)] {
            gate.clock.advance(seconds: seconds)
            await withCheckedContinuation { continuation in
                gate.engine.submit(DroppingOperation { continuation.resume() })
            }
            let names = try gate.store.read {
                try $0.settingNames(in: StepContext.destructionSettingNames, limit: 9)
            }
            #expect(names.count == count, "\(names) after \(seconds) s more")
        }
        #expect(try gate.store.read { try $0.entryCount() } == entryCount)
        #expect(try await gate.call("keys-witness", "POST", "/v1/keys/\(key.id)/destroy").status == 202)
    }

    @Test func `a proposal to destroy a key ends with any change of the key`() async throws {
        let gate = try await gate()
        let key = try await add(gate)
        let path = "/v1/keys/\(key.id)/destroy"
        try #require(try await gate.call("keys-team", "POST", path).status == 202)
        // Its challenge is open as before.
        #expect(try await confirm(gate, key.id, key.proof).status == 200)
        try #require(try await perform(.revokeLost, on: key, gate).status == 200)
        let second = try await gate.call("keys-witness", "POST", path)
        #expect(second.status == 202, "\(second.json)")
        #expect(try await gate.call("keys-team", "POST", path).status == 200)
    }

    @Test func `one caller erases a person, with keys that two would have to destroy`() async throws {
        let gate = try await gate()
        let key = try await key(in: .deactivated, gate)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        #expect(try await perform(.destroy, on: key, gate).status == 404)
    }

    @Test func `an entry of a replaced key says rotation, and one of a wrong proof nothing`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        #expect(try why(gate, 2) == [["add", nil], ["promote", nil]])
        let second = try await add(gate)
        try #require(try await confirm(gate, second.id, second.proof).status == 403)
        #expect(try why(gate, 2) == [["add", nil], [nil, nil]])
        try #require(try await perform(.promote, on: second, gate).status == 200)
        #expect(try why(gate, 2) == [["deactivate", "rotation"], ["promote", nil]])
        #expect(try await state(gate, first.id) == "deactivated")
    }

    @Test(arguments: Verb.allCases.filter { $0 != .confirm })
    func `a key nobody registered is 404 for every verb`(verb: Verb) async throws {
        let gate = try await gate()
        for id in ["5b1d9f0477aa4c318c02f3d190be6a55", "origin-1"] {
            let unknown = Registered(pair: DeviceKeyPair(), id: id, proof: "", oldChallenge: nil)
            #expect(try await perform(verb, on: unknown, gate).status == 404)
        }
    }

    // MARK: Replacing a key

    @Test func `a second key needs the first one's answer besides its own`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        let challenge = try #require(second.oldChallenge)
        let answer = try proof(of: challenge, by: first.pair, first.id, "d_1", gate)
        let third = try await add(gate)
        let otherAnswer = try proof(
            of: try #require(third.oldChallenge), by: first.pair, first.id, "d_1", gate)
        // Its own alone, the old one's alone, the old one's to another challenge, its own twice.
        for (own, old) in [
            (second.proof, nil), (answer, answer), (second.proof, otherAnswer), (second.proof, second.proof),
        ] {
            let refused = try await confirm(gate, second.id, own, old: old)
            #expect(
                refused.status == 403 && refused["type"] == "urn:sendgate:problem:proof_wrong",
                "\(refused.json)")
            #expect(try await keyInUse(gate, "\(own)\(old ?? "")") == first.id)
        }
        // Only the holder of the first key can make its answer.
        #expect(throws: SealedPushError.self) {
            try proof(of: challenge, by: second.pair, first.id, "d_1", gate)
        }
        let taken = try await confirm(gate, second.id, second.proof, old: answer)
        #expect(taken.status == 200 && taken["state"] == "active", "\(taken.json)")
        #expect(try await state(gate, first.id) == "deactivated")
        #expect(try await keyInUse(gate, "last") == second.id)
        #expect(
            try entries(gate).suffix(3).prefix(2).map { $0["state"]?.stringValue } == [
                "deactivated", "active",
            ])
    }

    @Test func `the security team's approval stands for the answer of the key before`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        #expect(second.oldChallenge != nil)
        #expect(try await perform(.promote, on: second, gate).status == 200)
        #expect(try await state(gate, first.id) == "deactivated")
        #expect(try await keyInUse(gate, "s1") == second.id)
        // The holder of the first alone cannot take it back without the second's answer.
        #expect(try await confirm(gate, second.id, second.proof).status == 409)
    }

    private func opened(_ envelope: String, by key: Registered, _ gate: GatewayHarness) throws -> (
        content: JSONValue, keyID: String
    ) {
        let opener = try key.pair.opener(
            keyID: key.id, app: Self.app, device: "d_1", origin: gate.origin.publicKey.rawBytes)
        let message = try opener.open(envelope, now: UInt64(gate.clock.now().seconds)).message
        return (try CanonicalJSON.read(message.content), message.keyID)
    }

    @Test(arguments: [Verb.confirm, .promote])
    func `the holder of a replaced key is told so by a message that only this key opens`(verb: Verb)
        async throws
    {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        #expect(try await gate.claim(.security).isEmpty)
        let second = try await add(gate)
        if verb == .confirm {
            let answer = try proof(
                of: try #require(second.oldChallenge), by: first.pair, first.id, "d_1", gate)
            try #require(try await confirm(gate, second.id, second.proof, old: answer).status == 200)
        } else {
            try #require(try await perform(.promote, on: second, gate).status == 200)
        }
        let deliveries = try await gate.claim(.security)
        #expect(deliveries.map(\.destination.text) == ["d_1"])
        let envelope = try #require(try deliveries.first.flatMap(sealed))
        let message = try opened(envelope, by: first, gate)
        #expect(message.content["type"] == "security.device_key_replaced" && message.keyID == first.id)
        #expect(throws: SealedPushError.self) { try opened(envelope, by: second, gate) }
        // It was decided while the first key was in use, and says so in its place of the trail.
        let told = try entries(gate).suffix(3)
        #expect(told.map { $0["kind"]?.stringValue } == ["send", "device_key", "device_key"])
        #expect(told.map { $0["state"]?.stringValue } == [nil, "deactivated", "active"])
        let send = try #require(told.first)
        #expect(send["caller"] == "gateway")
        #expect(send["deliveries"]?.arrayValue?.first?["key_id"]?.stringValue == first.id)
        #expect(try await keyInUse(gate, "after") == second.id)
    }

    /// Its holder may be the thief, or there may be none.
    @Test(arguments: [Verb.suspend, .revokeCompromised, .revokeLost, .revokeRetired])
    func `a key that was taken out of use before another came is told nothing`(verb: Verb) async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        try #require(try await perform(verb, on: first, gate).status == 200)
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        #expect(try await gate.claim(.security).isEmpty)
        #expect(try !entries(gate).contains { $0["kind"] == "send" })
    }

    /// One that waited would be sealed to the key that is in use when it is due.
    @Test func `a notice goes at once, in quiet hours too`() async throws {
        let gate = try await gate()
        try await gate.register("u_1", quiet: ["start": "00:00", "end": "23:59"])
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        let notice = try #require(try entries(gate).last { $0["kind"] == "send" })
        #expect(
            notice["deliveries"]?.arrayValue?.first?["decision"]?["outcome"] == "forward", "\(notice)")
        let envelope = try #require(try await gate.claim(.security).first.flatMap(sealed))
        #expect(try opened(envelope, by: first, gate).keyID == first.id)
    }

    @Test func `a notice that waits is taken back when the replaced key turns out to be compromised`()
        async throws
    {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        try #require(try await perform(.revokeCompromised, on: first, gate).status == 200)
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        #expect(try await gate.claim(.security).isEmpty)
    }

    @Test func `a phone whose system shows nothing gets no notice, and its key is replaced all the same`()
        async throws
    {
        let gate = try await gate()
        _ = try await key(in: .active, gate)
        try await gate.register("u_1", osPermission: "denied")
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        #expect(try await gate.claim(.security).isEmpty)
        let notice = try #require(try entries(gate).last { $0["kind"] == "send" })
        #expect(
            notice["deliveries"]?.arrayValue?.first?["decision"]?["reason"] == "blocked_at_os_level",
            "\(notice)")
        #expect(try await state(gate, second.id) == "active")
    }

    /// Registered while the device had no key yet, so that no older one was asked.
    @Test func `a key that waited does not replace one that came into use meanwhile`() async throws {
        let gate = try await gate()
        let waiting = try await add(gate)
        #expect(waiting.oldChallenge == nil)
        let owner = try await add(gate)
        #expect(try await confirm(gate, owner.id, owner.proof).status == 200)
        let refused = try await confirm(gate, waiting.id, waiting.proof)
        #expect(
            refused.status == 409 && refused["detail"]?.contains("register the key again") == true,
            "\(refused.json)")
        #expect(try await state(gate, owner.id) == "active")
        #expect(try await keyInUse(gate, "s1") == owner.id)
    }

    @Test func `the answer of a key that was itself replaced counts for nothing`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        let third = try await add(gate)
        let (toSecond, toThird) = (try #require(second.oldChallenge), try #require(third.oldChallenge))
        let answers = try (
            proof(of: toSecond, by: first.pair, first.id, "d_1", gate),
            proof(of: toThird, by: first.pair, first.id, "d_1", gate)
        )
        #expect(try await confirm(gate, second.id, second.proof, old: answers.0).status == 200)
        #expect(try await confirm(gate, third.id, third.proof, old: answers.1).status == 409)
        #expect(try await state(gate, second.id) == "active")
    }

    @Test func `while a key is suspended only the security team brings another into use`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let before = try await add(gate)
        let answer = try proof(
            of: try #require(before.oldChallenge), by: first.pair, first.id, "d_1", gate)
        try #require(try await perform(.suspend, on: first, gate).status == 200)
        let after = try await add(gate)
        #expect(after.oldChallenge == nil)
        #expect(try await confirm(gate, before.id, before.proof, old: answer).status == 409)
        let refused = try await confirm(gate, after.id, after.proof)
        #expect(
            refused.status == 409 && refused["detail"]?.contains("security team") == true, "\(refused.json)")
        #expect(try await login(gate, "s1")["reason"] == "generic_only")
        // Once it is revoked there is no key to ask.
        try #require(try await perform(.revokeLost, on: first, gate).status == 200)
        #expect(try await confirm(gate, after.id, after.proof).status == 200)
    }

    @Test func `a suspended key is not resumed while another of its device is in use`() async throws {
        let gate = try await gate()
        let first = try await key(in: .suspended, gate)
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        let before = try entries(gate).count
        for body in [["dry_run": true], nil] as [JSONObject?] {
            let refused = try await gate.call("keys-team", "POST", "/v1/keys/\(first.id)/resume", body)
            #expect(
                refused.status == 409 && refused["detail"]?.contains("`\(second.id)`") == true,
                "\(refused.json)")
        }
        #expect(try entries(gate).count == before)
        #expect(try await keyInUse(gate, "s1") == second.id)
        // Once that one is suspended, either may be resumed.
        try #require(try await perform(.suspend, on: second, gate).status == 200)
        #expect(try await perform(.resume, on: first, gate).status == 200)
        #expect(try await keyInUse(gate, "s2") == first.id)
        #expect(try await perform(.resume, on: second, gate).status == 409)
    }

    /// The other point with the same x: what opens for one key opens for the other.
    private static func negated(_ publicKey: [UInt8]) -> [UInt8] {
        // p = 2^256 - 2^224 + 2^192 + 2^96 - 1 (FIPS 186-4, D.1.2.3).
        let prime =
            [UInt8](repeating: 0xFF, count: 4) + [0, 0, 0, 1] + [UInt8](repeating: 0, count: 12)
            + [UInt8](repeating: 0xFF, count: 12)
        var (result, borrow) = ([UInt8](repeating: 0, count: 32), 0)
        for index in (0..<32).reversed() {
            let difference = Int(prime[index]) - Int(publicKey[33 + index]) - borrow
            result[index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        return Array(publicKey[..<33]) + result
    }

    @Test
    func `a public key that was compromised is nobody's any more, in either sign, also after an erasure`()
        async throws
    {
        let gate = try await gate()
        try await gate.register("u_1", device: "d_2")
        try await gate.register("u_2")
        let first = try await add(gate)
        // Registered elsewhere while that was not known, and not proved yet.
        let waiting = try await add(gate, first.pair, of: "u_2")
        try #require(try await confirm(gate, first.id, first.proof).status == 200)
        try #require(try await perform(.revokeCompromised, on: first, gate).status == 200)

        let late = try await confirm(gate, waiting.id, waiting.proof, of: "u_2")
        #expect(late.status == 409, "\(late.json)")
        #expect(late["detail"]?.contains("revoked as compromised") == true)
        let promoted = try await gate.call("keys-team", "POST", "/v1/keys/\(waiting.id)/promote")
        #expect(promoted.status == 409, "\(promoted.json)")
        func refused(_ publicKey: [UInt8], _ device: String, _ user: String) async throws {
            let reply = try await gate.call(
                "product", "POST", "/v1/recipients/\(user)/devices/\(device)/keys",
                ["suite": "P256_SHA256_AES256GCM", "public_key": .string(Base64URL.encode(publicKey))])
            #expect(reply.status == 409, "\(device) of \(user): \(reply.json)")
            #expect(reply["detail"]?.contains("make a new key pair") == true)
        }
        for publicKey in [first.pair.publicKey, Self.negated(first.pair.publicKey)] {
            try await refused(publicKey, "d_1", "u_1")
            try await refused(publicKey, "d_2", "u_1")
            try await refused(publicKey, "d_1", "u_2")
        }
        // The material destroyed, and the person erased.
        try #require(try await perform(.destroy, on: first, gate).status == 200)
        try await refused(first.pair.publicKey, "d_1", "u_1")
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
        try #require(erased.status == 200, "\(erased.json)")
        try await gate.register("u_1")
        try await refused(Self.negated(first.pair.publicKey), "d_1", "u_1")
        // Another pair is taken, also the negative of one that was not revoked.
        let other = DeviceKeyPair()
        let negative = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
            [
                "suite": "P256_SHA256_AES256GCM",
                "public_key": .string(Base64URL.encode(Self.negated(other.publicKey))),
            ])
        #expect(negative.status == 201, "\(negative.json)")
        #expect(try await post(gate, other, of: "u_2").status == 201)
    }

    @Test func `a key that is compromised under one id is compromised under all of a person's`() async throws
    {
        let gate = try await gate()
        try await gate.register("u_1", device: "d_2")
        let first = try await add(gate)
        let elsewhere = try await add(gate, first.pair, to: "d_2")
        try #require(try await confirm(gate, first.id, first.proof).status == 200)
        try #require(try await confirm(gate, elsewhere.id, elsewhere.proof, at: "d_2").status == 200)
        try #require(try await perform(.revokeCompromised, on: first, gate).status == 200)
        #expect(try await state(gate, elsewhere.id) == "compromised")
        let reply = try await login(gate, "s_1")
        #expect(try keys(reply).isEmpty && reply["reason"] == "generic_only", "\(reply.json)")
    }

    @Test(arguments: [Verb.revokeLost, .revokeRetired])
    func `a key that was lost or retired is no key that was compromised`(verb: Verb) async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        try #require(try await perform(verb, on: first, gate).status == 200)
        #expect(try await post(gate, first.pair).status == 201)
    }

    @Test func `a device has four keys that wait to be proved, and one more takes the place of the oldest`()
        async throws
    {
        let gate = try await gate()
        try await gate.register("u_1", device: "d_2")
        let elsewhere = try await add(gate, to: "d_2")
        var all: [Registered] = []
        // As fast as registrations are taken, and no longer than the other device's challenge lives.
        for _ in 0..<12 {
            all.append(try await add(gate))
            gate.clock.advance(seconds: 15)
        }
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        let keys = held.json["devices"]?.arrayValue?.flatMap { $0["keys"]?.arrayValue ?? [] } ?? []
        #expect(
            Set(keys.compactMap { $0["key_id"]?.stringValue })
                == Set(all.suffix(4).map(\.id) + [elsewhere.id]), "\(keys.count)")
        let displaced = try await confirm(gate, all[7].id, all[7].proof)
        #expect(displaced.status == 404, "\(displaced.json)")
        // The trail says what became of it.
        let last = try entries(gate).last {
            $0["kind"]?.stringValue == "device_key" && $0["key_id"]?.stringValue == all[7].id
        }
        #expect(last?["state"]?.stringValue == "destroyed")
        #expect(try await confirm(gate, all[8].id, all[8].proof).status == 200)
        #expect(try await confirm(gate, elsewhere.id, elsewhere.proof, at: "d_2").status == 200)
        // What is in use is no key that waits.
        for _ in 0..<5 {
            #expect(try await post(gate, DeviceKeyPair()).status == 201)
            gate.clock.advance(seconds: 15)
        }
        #expect(try await state(gate, all[8].id) == "active")
    }

    @Test
    func `of the keys that ended the newest are kept, and a compromised one is refused when it is let go of`()
        async throws
    {
        let gate = try await gate()
        let stolen = try await key(in: .compromised, gate)
        var all: [Registered] = []
        for _ in 0..<RecipientState.endedKeyCountMax + 2 {
            gate.clock.advance(seconds: 15)
            all.append(try await add(gate))
            try #require(try await perform(.promote, on: all[all.count - 1], gate).status == 200)
        }
        // The trail says that it is let go of, in the state that it was in.
        let last = try entries(gate).last {
            $0["kind"]?.stringValue == "device_key" && $0["key_id"]?.stringValue == stolen.id
        }
        #expect(
            last?["forgotten"] == true && last?["state"]?.stringValue == "compromised",
            "\(String(describing: last))")
        #expect(try await state(gate, stolen.id) == nil)
        #expect(try await perform(.destroy, on: stolen, gate).status == 404)
        gate.clock.advance(seconds: 15)
        let again = try await post(gate, stolen.pair)
        #expect(
            again.status == 409 && again["detail"]?.contains("revoked as compromised") == true,
            "\(again.json)")
        // Every other is there: the one in use, and those before it, of which one may yet turn out to be compromised.
        for key in all.dropLast() { #expect(try await state(gate, key.id) == "deactivated") }
        #expect(try await keyInUse(gate, "s1") == all.last?.id)
        #expect(try await perform(.revokeCompromised, on: all[0], gate).status == 200)
        // The next one lets go of the one that was registered first, and of no other.
        gate.clock.advance(seconds: 15)
        _ = try await add(gate)
        #expect(try await state(gate, all[0].id) == nil)
        for key in all.dropFirst().dropLast() { #expect(try await state(gate, key.id) == "deactivated") }
        gate.clock.advance(seconds: 15)
        #expect(try await post(gate, all[0].pair).status == 409)
    }

    @Test func `a device registers four keys a minute, however often it is asked to and put anew`()
        async throws
    {
        let gate = try await gate()
        let path = "/v1/recipients/u_1/devices/d_1"
        let entryCount = try entries(gate).count
        var statuses: [Int: Int] = [:]
        for _ in 0..<1_000 {
            let reply = try await post(gate, DeviceKeyPair())
            statuses[reply.status, default: 0] += 1
            if reply.status == 429 {
                #expect(reply["type"]?.hasSuffix("rate_limited") == true, "\(reply.json)")
                #expect((59...60).contains(reply.json["retry_after"]?.integerValue ?? 0), "\(reply.json)")
            }
            gate.clock.advance(milliseconds: 1)
        }
        #expect(statuses == [201: 4, 429: 996])
        #expect(try entries(gate).count == entryCount + 4)
        // The limit comes before the point is looked at, which costs a multiplication on the curve.
        let invalid = try await gate.call(
            "product", "POST", "\(path)/keys",
            [
                "suite": "P256_SHA256_AES256GCM",
                "public_key": .string(Base64URL.encode([4] + [UInt8](repeating: 1, count: 64))),
            ])
        #expect(invalid.status == 429, "\(invalid.json)")
        try await gate.register("u_1")
        #expect(try await post(gate, DeviceKeyPair()).status == 429)
        // Nor does a device that is taken out and put again begin anew.
        try #require(try await gate.call("product", "DELETE", path).status == 200)
        try await gate.register("u_1")
        #expect(try await post(gate, DeviceKeyPair()).status == 429)
        // Another device is another one's, and a minute later it goes on.
        try await gate.register("u_1", device: "d_2")
        _ = try await add(gate, to: "d_2")
        // What `Retry-After` says is long enough, and a second less is not.
        gate.clock.advance(seconds: 58)
        let early = try await post(gate, DeviceKeyPair())
        #expect(early.status == 429 && early.json["retry_after"]?.integerValue == 1, "\(early.json)")
        gate.clock.advance(seconds: 1)
        #expect(try await post(gate, DeviceKeyPair()).status == 201)
    }

    // MARK: The challenge

    @Test(arguments: [(0, 200), (299, 200), (300, 200), (301, 409), (86_400, 409)])
    func `a challenge is answered within five minutes or not at all`(seconds: Int64, status: Int) async throws
    {
        let gate = try await gate()
        let key = try await add(gate)
        gate.clock.advance(seconds: seconds)
        let reply = try await confirm(gate, key.id, key.proof)
        #expect(reply.status == status, "\(reply.json)")
        #expect(try await state(gate, key.id) == (status == 200 ? "active" : "pre_activation"))
        if status == 409 {
            #expect(reply["type"] == "urn:sendgate:problem:challenge_expired")
            #expect(try await login(gate, "s1")["reason"] == "generic_only")
        }
    }

    /// The engine's own guard refuses a clock that went back; the challenge does not lean on it.
    @Test(arguments: [(-300_000, false), (-1, false), (0, true), (300_000, true), (300_001, false)])
    func `a challenge is open from its registration to its end`(milliseconds: Int64, isOpen: Bool)
        async throws
    {
        let gate = try await gate()
        let now = gate.clock.now()
        let id = try #require(KeyID(hexadecimal: try await add(gate).id))
        let record = try #require(try gate.store.read { try $0.deviceKey(id) })
        let challenge = try #require(record.challenge)
        #expect(record.createdAt == now)
        #expect(record.isOpen(challenge, at: now.advanced(byMilliseconds: milliseconds)) == isOpen)
    }

    @Test func `an old key's answer is in time or late with the new one's`() async throws {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let second = try await add(gate)
        let answer = try proof(
            of: try #require(second.oldChallenge), by: first.pair, first.id, "d_1", gate)
        gate.clock.advance(seconds: 301)
        #expect(try await confirm(gate, second.id, second.proof, old: answer).status == 409)
        #expect(try await state(gate, first.id) == "active")
    }

    @Test func `an answer is for its own key, device and person, once`() async throws {
        let gate = try await gate()
        try await gate.register("u_1", device: "d_2")
        try await gate.register("u_2")
        let key = try await add(gate)
        let other = try await add(gate)
        let elsewhere = try await add(gate, to: "d_2")
        let theirs = try await add(gate, of: "u_2")
        // Another key's answer.
        for answer in [other.proof, elsewhere.proof, theirs.proof] {
            #expect(try await confirm(gate, key.id, answer).status == 403)
        }
        // The key under another device's path, and another person's.
        #expect(try await confirm(gate, key.id, key.proof, at: "d_2").status == 404)
        #expect(try await confirm(gate, key.id, key.proof, of: "u_2").status == 404)
        #expect(try await confirm(gate, theirs.id, theirs.proof, of: "u_1").status == 404)
        #expect(try await state(gate, key.id) == "pre_activation")
        // Its own, and no second time.
        #expect(try await confirm(gate, key.id, key.proof).status == 200)
        #expect(try await confirm(gate, key.id, key.proof).status == 409)
        #expect(try await state(gate, theirs.id, of: "u_2") == "pre_activation")
    }

    /// A challenge forgives four wrong answers, so each is answered wrongly four times and then rightly.
    @Test(arguments: [false, true])
    func `an answer with any one byte changed is refused, the old key's too`(isOld: Bool) async throws {
        let gate = try await gate()
        var inUse = try await key(in: .active, gate)
        for start in stride(from: 0, to: 32, by: 4) {
            gate.clock.advance(seconds: 60)
            let next = try await add(gate)
            let old = try proof(
                of: try #require(next.oldChallenge), by: inUse.pair, inUse.id, "d_1", gate)
            for place in start..<start + 4 {
                var bytes = try #require(Base64URL.decode(isOld ? old : next.proof))
                bytes[place] ^= 1 << UInt8(place % 8)
                let forged = Base64URL.encode(bytes)
                let reply = try await confirm(
                    gate, next.id, isOld ? next.proof : forged, old: isOld ? forged : old)
                #expect(reply.status == 403, "byte \(place): \(reply.json)")
            }
            #expect(try await state(gate, next.id) == "pre_activation")
            #expect(try await confirm(gate, next.id, next.proof, old: old).status == 200)
            inUse = next
        }
    }

    @Test func `an answer of another length is no answer`() async throws {
        let gate = try await gate()
        let key = try await add(gate)
        let bytes = try #require(Base64URL.decode(key.proof))
        for wrong in [[], Array(bytes.dropLast()), bytes + [0], bytes + bytes] {
            #expect(try await confirm(gate, key.id, Base64URL.encode(wrong)).status == 422)
        }
        #expect(try await confirm(gate, key.id, key.proof).status == 200)
    }

    @Test func `a key that nothing may be sealed to is refused before anything is kept`() async throws {
        let gate = try await gate()
        let good = DeviceKeyPair().publicKey
        var offCurve = good
        offCurve[64] ^= 1
        let zeros = [UInt8](repeating: 0, count: 32)
        let x25519 = "X25519_SHA256_CHACHA20POLY1305"
        let p256 = "P256_SHA256_AES256GCM"
        let wrong: [(name: String, suite: String, key: [UInt8])] = [
            ("off the curve", p256, offCurve), ("compressed, even", p256, [2] + good[1...32]),
            ("compressed, odd", p256, [3] + good[1...32]), ("hybrid, even", p256, [6] + good[1...]),
            ("hybrid, odd", p256, [7] + good[1...]), ("the point at infinity", p256, [0]),
            ("infinity, padded", p256, [UInt8](repeating: 0, count: 65)),
            ("66 bytes", p256, good + [0]), ("a key of the other suite", p256, [9] + zeros.dropLast()),
            ("a key of the other suite", x25519, good), ("low order, zero", x25519, zeros),
            ("low order, one", x25519, [1] + zeros.dropLast()),
            ("the prime itself", x25519, [0xED] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]),
            ("a second spelling", x25519, [9] + zeros.dropLast(2) + [0x80]),
        ]
        let count = try entries(gate).count
        for (name, suite, key) in wrong {
            let reply = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
                ["suite": .string(suite), "public_key": .string(Base64URL.encode(key))])
            #expect(reply.status == 422, "\(name) in \(suite): \(reply.json)")
        }
        let pem = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
            ["suite": .string(p256), "public_key": "-----BEGIN PUBLIC KEY-----\nMFkw\n"])
        #expect(pem.status == 422, "\(pem.json)")
        #expect(
            String(decoding: CanonicalJSON.write(.object(pem.json)), as: UTF8.self)
                .contains("send the raw 65 bytes"), "\(pem.json)")
        #expect(try entries(gate).count == count)
        let fine = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
            ["suite": .string(x25519), "public_key": .string(Base64URL.encode([9] + zeros.dropLast()))])
        #expect(fine.status == 201, "\(fine.json)")
    }

    // MARK: What is sealed to whom

    @Test func `a message is sealed to the key of its own device and person, and no other opens it`()
        async throws
    {
        let gate = try await gate()
        try await gate.register("u_1", device: "d_2")
        try await gate.register("u_2")
        let own = try await gate.addKey("u_1")
        let theirs = try await gate.addKey("u_2")
        let send = try await login(gate, "s1")
        #expect(try keys(send) == ["d_1": own.keyID])
        let deliveries = try await gate.claim(.security)
        #expect(deliveries.map(\.destination.text).sorted() == ["d_1", "d_2"])
        let without = try #require(deliveries.first { $0.destination.text == "d_2" })
        #expect(try sealed(without) == nil)
        let envelope = try #require(try deliveries.compactMap(sealed).first)
        func opener(_ pair: DeviceKeyPair, _ id: String, at device: String = "d_1") throws -> SealedPushOpener
        {
            try pair.opener(
                keyID: id, app: Self.app, device: device, origin: gate.origin.publicKey.rawBytes)
        }
        // What stands outside the seal is what the hop is told, and no more.
        let delivery = try #require(deliveries.first { $0.destination.text == "d_1" })
        let outside = try CanonicalJSON.read(Array(envelope.utf8))
        #expect(outside["exp"]?.integerValue == delivery.statedExpiry.seconds)
        #expect(outside["mid"]?.stringValue == delivery.message.uuidText)
        #expect(outside["kid"]?.stringValue == own.keyID)
        let now = UInt64(gate.clock.now().seconds)
        let opened = try opener(own.0, own.keyID).open(envelope, now: now).message
        #expect(String(decoding: opened.content, as: UTF8.self).contains("security.new_login"))
        for (pair, id, device) in [
            (theirs.0, theirs.keyID, "d_1"), (theirs.0, own.keyID, "d_1"), (own.0, own.keyID, "d_2"),
        ] {
            #expect(throws: SealedPushError.self) {
                try opener(pair, id, at: device).open(envelope, now: now)
            }
        }
        // The other person's key is theirs alone, under the same name of a device.
        let other = try await login(gate, "s2", to: "u_2")
        #expect(try keys(other) == ["d_1": theirs.keyID])
    }

    @Test(arguments: [(334, nil), (335, 365), (400, 365)] as [(Int64, Int64?)])
    func `an app is told inside the seal when its key is to be replaced`(days: Int64, end: Int64?)
        async throws
    {
        let gate = try await gate()
        let created = gate.clock.now()
        let key = try await key(in: .active, gate)
        gate.clock.advance(seconds: days * 86_400)
        let reply = try await login(gate, "s1")
        #expect(try keys(reply)["d_1"] == key.id, "\(reply.json)")
        let envelope = try #require(try await gate.claim(.security).first.flatMap(sealed))
        let opener = try key.pair.opener(
            keyID: key.id, app: Self.app, device: "d_1", origin: gate.origin.publicKey.rawBytes)
        let opened = try opener.open(envelope, now: UInt64(gate.clock.now().seconds)).message
        let content = try CanonicalJSON.read(Array(opened.content))
        #expect(
            content["rotate_key_by"]?.integerValue
                == end.map { created.advanced(bySeconds: $0 * 86_400).milliseconds }, "\(content)")
    }

    // MARK: What waits

    /// What takes a key out of use, each by the security team.
    static let endings: [Verb] = [.suspend, .revokeCompromised, .revokeLost, .revokeRetired]

    private func expectWithdrawn(_ send: GatewayHarness.Reply, _ gate: GatewayHarness) async throws {
        let status = try await gate.call("security", "GET", "/v1/sends/\(try #require(send["send_id"]))")
        let events = try #require(status.json["events"]?.arrayValue)
        #expect(events.map { $0["event"]?.stringValue } == ["withdrawn"], "\(status.json)")
    }

    @Test(arguments: endings)
    func `a sealed message that waits falls with its key, in the same transaction`(verb: Verb) async throws {
        let gate = try await gate()
        let key = try await key(in: .active, gate)
        let send = try await login(gate, "s1")
        try #require(try keys(send)["d_1"] == key.id)
        try #require(try await perform(verb, on: key, gate).status == 200)
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        #expect(try await gate.claim(.security).isEmpty)
        try await expectWithdrawn(send, gate)
    }

    /// Rotation loses nothing: the phone still has the key that the message was sealed to.
    @Test(arguments: [Verb.revokeCompromised, .revokeLost])
    func `a sealed message outlives the replacement of its key, and not what ends both`(verb: Verb)
        async throws
    {
        let gate = try await gate()
        let first = try await key(in: .active, gate)
        let send = try await login(gate, "s1")
        let second = try await add(gate)
        try #require(try await perform(.promote, on: second, gate).status == 200)
        // The other is what the first key's holder is told of the second.
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 2)
        gate.clock.advance(seconds: 61)
        let delivery = try #require(try await gate.claim(.security).first)
        #expect(try sealed(delivery) != nil)
        try await gate.gateway.report(
            delivery.message, .notWritten("refused"), retryAt: gate.clock.now().advanced(bySeconds: 1))
        // The older key known to others, or the phone lost with both.
        let ended = verb == .revokeCompromised ? first : second
        try #require(try await perform(verb, on: ended, gate).status == 200)
        gate.clock.advance(seconds: 2)
        #expect(try await gate.claim(.security).isEmpty)
        try await expectWithdrawn(send, gate)
    }

    @Test(arguments: endings, [false, true])
    func `a message under way goes no second time once its key ended, whatever key comes after`(
        verb: Verb, hasNext: Bool
    ) async throws {
        let gate = try await gate()
        let key = try await key(in: .active, gate)
        let send = try await login(gate, "s1")
        let delivery = try #require(try await gate.claim(.security).first)
        try #require(try await perform(verb, on: key, gate).status == 200)
        if hasNext { try #require(try await perform(.promote, on: add(gate), gate).status == 200) }
        // The hop turns out never to have had it.
        try await gate.gateway.report(
            delivery.message, .notWritten("refused"), retryAt: gate.clock.now().advanced(bySeconds: 1))
        gate.clock.advance(seconds: 2)
        #expect(try await gate.claim(.security).isEmpty)
        try await expectWithdrawn(send, gate)
    }

    @Test(arguments: endings)
    func `a message that waits for the morning is composed without the key that ended overnight`(verb: Verb)
        async throws
    {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        let key = try await key(in: .active, gate)
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        try #require(reply["outcome"] == "defer", "\(reply.json)")
        try #require(try await perform(verb, on: key, gate).status == 200)
        gate.clock.advance(seconds: 9 * 3600)
        _ = try await gate.claim()
        let delivery = try #require(try await gate.claim().first)
        #expect(try sealed(delivery) == nil)
    }

    /// Send, verb and send again in one batch: what stands before the verb loses its message, what stands after is
    /// decided without the key.
    @Test(arguments: endings)
    func `the next decision of the same batch knows what became of the key`(verb: Verb) async throws {
        let gate = try await gate()
        let key = try await key(in: .active, gate)
        let (one, two) = try await (
            gate.example("security.new_login", "before", to: "u_1", as: "security"),
            gate.example("security.new_login", "after", to: "u_1", as: "security")
        )
        let hold = HoldOperation()
        gate.engine.submit(hold)
        hold.entered.wait()
        let batches = gate.engine.load.batchCount
        func queued(_ count: Int) async {
            while gate.engine.load.queuedCount < count { await Task.yield() }
        }
        async let before = gate.call("security", "POST", "/v1/sends", one)
        await queued(1)
        async let changed = perform(verb, on: key, gate)
        await queued(2)
        async let after = gate.call("security", "POST", "/v1/sends", two)
        await queued(3)
        hold.release.signal()
        let (first, change, second) = try await (before, changed, after)
        await gate.settle()
        // The hold, the three together, and the settling.
        #expect(gate.engine.load.batchCount == batches + 3)
        try #require(change.status == 200, "\(change.json)")
        #expect(try keys(first)["d_1"] == key.id)
        #expect(second["reason"] == "generic_only", "\(second.json)")
        #expect(try keys(second)["d_1"] == nil)
        let deliveries = try await gate.claim(.security)
        #expect(deliveries.count == 1)
        #expect(try deliveries.compactMap(sealed) == [])
        try await expectWithdrawn(first, gate)
    }
}
