import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

/// What is known of a send after it left: what the hop did, and what others report.
@Suite struct ReceiptTests {
    private func events(_ gate: GatewayHarness, _ send: String) async throws -> [String] {
        let status = try await gate.call("payments", "GET", "/v1/sends/\(send)")
        return try #require(status.json["events"]?.arrayValue).compactMap {
            $0.objectValue?["event"]?.stringValue
        }
    }

    /// One remittance, handed to the hop; `result` is what the hop makes of it.
    private func handOver(_ gate: GatewayHarness, _ result: HopResult) async throws -> String {
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(delivery.message, result, retryAt: nil)
        return try #require(reply["send_id"])
    }

    private func receipt(
        _ gate: GatewayHarness, _ send: String, _ event: String, at moment: Instant? = nil
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(send), "destination": "d_1", "event": .string(event),
                "at": .string((moment ?? gate.clock.now()).rfc3339),
            ])
    }

    @Test(arguments: [
        (HopResult.accepted(status: 202), "handed_over"), (.seenBefore, "handed_over"),
        (.refused(status: 400), "refused_by_hop"), (.ambiguous("cut"), "ambiguous"),
        (.busy(status: 503, retryAfterMilliseconds: nil), "expired_unsent"),
    ])
    func `what the hop did is never said of the provider`(result: HopResult, event: String) async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, result)
        #expect(try await events(gate, send) == [event])
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        let last = try #require(
            entries.last { String(decoding: $0.bytes, as: UTF8.self).contains("delivery") })
        let entry = try CanonicalJSON.read(last.bytes)
        #expect(entry["result"]?.stringValue == event)
        // Only who saw it says so.
        #expect(try await receipt(gate, send, "accepted_by_provider").status == 200)
        #expect(try await events(gate, send) == [event, "accepted_by_provider"])
    }

    @Test func `what the recipient did and what the provider said are told with the event`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200))
        func report(_ event: String, _ more: JSONObject) async throws -> Int {
            var body: JSONObject = [
                "send": .string(send), "destination": "d_1", "event": .string(event),
                "at": .string(gate.clock.now().rfc3339),
            ]
            for (key, value) in more { body[key] = value }
            return try await gate.call("product", "POST", "/v1/receipts", body).status
        }
        #expect(try await report("user_observed", ["action": "opened"]) == 200)
        #expect(try await report("failed", ["reason": "BadDeviceToken"]) == 200)
        let status = try await gate.call("payments", "GET", "/v1/sends/\(send)")
        let told = try #require(status.json["events"]?.arrayValue).map {
            [$0["event"]?.stringValue, $0["reason"]?.stringValue]
        }
        #expect(told == [["handed_over", nil], ["user_observed", "opened"], ["failed", "BadDeviceToken"]])
        let history = try await gate.call("product", "GET", "/v1/recipients/u_1/decisions")
        #expect("\(history.json)".contains("the recipient saw it on `d_1` (opened)"), "\(history.json)")
        // What would not be told is refused.
        #expect(try await report("failed", ["action": "opened"]) == 422)
        #expect(try await report("user_observed", ["reason": "x"]) == 422)
        #expect(try await report("accepted_by_provider", ["reason": "x"]) == 422)
    }

    @Test(arguments: [("compromised", "compromised"), ("lost", "deactivated"), ("retired", "deactivated")])
    func `a key ends as the cause of its revocation says`(cause: String, state: String) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (_, key) = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "keys-team", "POST", "/v1/keys/\(key)/revoke", ["cause": .string(cause)])
        #expect(reply.status == 200 && reply["state"] == state, "\(reply.json)")
        // Either way nothing more is sealed to it.
        let send = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(send["reason"] == "generic_only", "\(send.json)")
    }

    @Test func `a receipt from before its send is refused`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200))
        gate.clock.advance(seconds: 60)
        let early = try await receipt(
            gate, send, "user_observed", at: gate.clock.now().advanced(bySeconds: -61))
        #expect(early.status == 422, "\(early.json)")
        #expect(
            try await receipt(gate, send, "user_observed", at: gate.clock.now().advanced(bySeconds: -60))
                .status == 200)
    }

    @Test func `a token the provider forgot is forgotten here`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200))
        gate.clock.advance(seconds: 60)
        #expect(try await receipt(gate, send, "unregistered").status == 200)
        for named in [false, true] {
            var next = GatewayHarness.remittance("r2-\(named)", to: "u_1")
            if named { next["recipient"] = ["user": "u_1", "device": "d_1"] }
            next["params"] = [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a11",
            ]
            let reply = try await gate.call("payments", "POST", "/v1/sends", next)
            #expect(
                reply.status == 403 && reply["reason"] == "no_destination"
                    && reply["detail"] == "destination_inactive", "\(reply.json)")
        }
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(held.json["devices"]?.arrayValue?.first?.objectValue?["active"] == false, "\(held.json)")
    }

    @Test func `a token registered after the provider's own time stays`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200))
        gate.clock.advance(seconds: 60)
        let seen = gate.clock.now()
        gate.clock.advance(seconds: 60)
        try await gate.register("u_1")
        #expect(try await receipt(gate, send, "unregistered", at: seen).status == 200)
        let promo = try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", "s1", to: "u_1", as: "security"))
        #expect(promo.status == 202, "\(promo.json)")
    }
}
