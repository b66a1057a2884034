import AuditTrail
import CanonicalJSON
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing
import WireProtocol

/// Many device keys at once: a library with weak random numbers, an app that was copied, a suite that is not trusted any more.
@Suite struct DeviceKeysRevocationTests {
    private static let route = "/v1/device-keys/revoke"
    private static let beforeNoon = "2026-11-21T12:00:00.500Z"

    /// 70 people with a key each, every seventh with another app, and 3 more whose keys are a minute younger.
    private static func gate() async throws -> (gate: GatewayHarness, keys: [String: String]) {
        let gate = try GatewayHarness()
        var keys: [String: String] = [:]
        for number in 0..<73 {
            if number == 70 { gate.clock.advance(seconds: 60) }
            let user = "u_\(number)"
            let app = number % 7 == 0 ? "no.getdrop.other" : "no.getdrop.app"
            try await gate.register(user, app: app)
            keys[user] = try await gate.addKey(user, app: app).keyID
        }
        return (gate, keys)
    }

    /// Asks until there is no next piece.
    private static func revoke(
        _ gate: GatewayHarness, _ body: JSONObject
    ) async throws -> (examined: Int64, revoked: Int64, pieces: Int) {
        var (body, examined, revoked, pieces) = (body, Int64(0), Int64(0), 0)
        repeat {
            let reply = try await gate.call("keys-team", "POST", route, body)
            try #require(reply.status == 200, "\(reply.json)")
            examined += reply.json["examined"]?.integerValue ?? 0
            revoked += reply.json["revoked"]?.integerValue ?? 0
            body["after"] = reply.json["next"]
            pieces += 1
        } while body["after"] != nil
        return (examined, revoked, pieces)
    }

    private static func states(_ gate: GatewayHarness) throws -> [String: String] {
        var states: [String: String] = [:]
        for stored in try gate.store.read({ try $0.entries(from: 0, limit: 10_000) }) {
            let entry = try #require(try CanonicalJSON.read(stored.bytes).objectValue)
            guard entry["kind"]?.stringValue == "device_key", let key = entry["key_id"]?.stringValue else {
                continue
            }
            states[key] = entry["state"]?.stringValue
        }
        return states
    }

    @Test func `keys of one app are revoked with an entry each, and no other`() async throws {
        let (gate, keys) = try await Self.gate()
        let dry = try await Self.revoke(
            gate,
            [
                "cause": "compromised", "registered_before": .string(Self.beforeNoon),
                "app": "no.getdrop.other",
                "dry_run": true,
            ])
        #expect(dry.revoked == 10 && dry.examined == 73 && dry.pieces == 2)
        #expect(try Self.states(gate).values.allSatisfy { $0 == "active" })
        let before = try gate.store.read { try $0.entryCount() }
        let done = try await Self.revoke(
            gate,
            [
                "cause": "compromised", "registered_before": .string(Self.beforeNoon),
                "app": "no.getdrop.other",
            ])
        #expect(done.revoked == 10 && done.examined == 73)
        #expect(try gate.store.read { try $0.entryCount() } == before + 10)
        let states = try Self.states(gate)
        for (user, key) in keys {
            let number = try #require(Int(user.dropFirst(2)))
            #expect(states[key] == (number % 7 == 0 && number < 70 ? "compromised" : "active"), "\(user)")
        }
        // Begun again, it finds nothing that is left.
        let again = try await Self.revoke(
            gate,
            [
                "cause": "compromised", "registered_before": .string(Self.beforeNoon),
                "app": "no.getdrop.other",
            ])
        #expect(again.revoked == 0 && again.examined == 73)
    }

    @Test func `the keys of one person end without anybody looking up their ids, and those of others go on`()
        async throws
    {
        let (gate, keys) = try await Self.gate()
        let now = gate.clock.now().rfc3339
        func body(_ owner: JSONObject, dry: Bool = false) -> JSONObject {
            [
                "cause": "lost", "registered_before": .string(now), "recipient": .object(owner),
                "dry_run": .boolean(dry),
            ]
        }
        gate.clock.advance(seconds: 1)
        // Nothing is told of who is not there, nor of a device that is another's.
        for owner in [["user": "u_4711"], ["user": "u_3", "device": "d_9"]] as [JSONObject] {
            let none = try await Self.revoke(gate, body(owner))
            #expect(none.examined == 0 && none.revoked == 0 && none.pieces == 1)
        }
        let dry = try await Self.revoke(gate, body(["user": "u_3"], dry: true))
        #expect(dry.examined == 1 && dry.revoked == 1 && dry.pieces == 1)
        #expect(try Self.states(gate).values.allSatisfy { $0 == "active" })
        let done = try await Self.revoke(gate, body(["user": "u_3", "device": "d_1"]))
        #expect(done.revoked == 1)
        let states = try Self.states(gate)
        for (user, key) in keys {
            #expect(states[key] == (user == "u_3" ? "deactivated" : "active"), "\(user)")
        }
    }

    @Test func `keys of before a moment end, those of after it go on, and the next decision knows`()
        async throws
    {
        let (gate, keys) = try await Self.gate()
        let done = try await Self.revoke(
            gate, ["cause": "lost", "registered_before": .string(Self.beforeNoon)])
        #expect(done.revoked == 70)
        let states = try Self.states(gate)
        #expect(
            states.values.count { $0 == "deactivated" } == 70 && states.values.count { $0 == "active" } == 3)
        for (user, isSealed) in [("u_3", false), ("u_71", true)] {
            let send = try await gate.call(
                "security", "POST", "/v1/sends",
                gate.example("security.new_login", "s-\(user)", to: user, as: "security"))
            let delivery = try #require(send.json["deliveries"]?.arrayValue?.first)
            #expect((delivery["key_id"]?.stringValue == keys[user]) == isSealed, "\(send.json)")
        }
    }

    @Test func `a suite ends, and a later moment than now is refused`() async throws {
        let (gate, _) = try await Self.gate()
        let other = try await Self.revoke(
            gate,
            [
                "cause": "retired", "registered_before": .string(Self.beforeNoon),
                "suite": "X25519_SHA256_CHACHA20POLY1305",
            ])
        #expect(other.revoked == 0 && other.examined == 73)
        let future = try await gate.call(
            "keys-team", "POST", Self.route, ["cause": "lost", "registered_before": "2026-11-21T12:02:00Z"])
        #expect(future.status == 422, "\(future.json)")
        for body in [
            ["registered_before": .string(Self.beforeNoon)], ["cause": "lost"],
            ["cause": "stolen", "registered_before": .string(Self.beforeNoon)],
            ["cause": "lost", "registered_before": .string(Self.beforeNoon), "after": "zz"],
            ["cause": "lost", "registered_before": .string(Self.beforeNoon), "suite": "AES"],
        ] as [JSONObject] {
            #expect(try await gate.call("keys-team", "POST", Self.route, body).status == 422, "\(body)")
        }
        let product = try await gate.call(
            "product", "POST", Self.route, ["cause": "lost", "registered_before": .string(Self.beforeNoon)])
        #expect(product.status == 403)
    }
}
