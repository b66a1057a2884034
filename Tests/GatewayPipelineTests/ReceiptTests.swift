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
        (HopResult.accepted(status: 202, byProvider: false), "handed_over"), (.seenBefore, "handed_over"),
        (.refused(status: 400, reason: nil), "refused_by_hop"),
        (.ambiguous("cut", mayRepeat: true), "ambiguous"),
        (.busy(status: 503, retryAfterMilliseconds: nil, scope: .message), "expired_unsent"),
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
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
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
        #expect(
            "\(history.json)".contains("the recipient opened it or acted on it on `d_1` (opened)"),
            "\(history.json)")
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
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
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
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 60)
        #expect(try await receipt(gate, send, "token_gone").status == 200)
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
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 60)
        let seen = gate.clock.now()
        gate.clock.advance(seconds: 60)
        try await gate.register("u_1")
        #expect(try await receipt(gate, send, "token_gone", at: seen).status == 200)
        let promo = try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", "s1", to: "u_1", as: "security"))
        #expect(promo.status == 202, "\(promo.json)")
    }

    @Test func `a token registered after the message left stays, whenever the provider speaks`() async throws
    {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 60)
        try await gate.register("u_1")
        gate.clock.advance(seconds: 60)
        #expect(try await receipt(gate, send, "token_gone").status == 200)
        let login = try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", "s1", to: "u_1", as: "security"))
        #expect(login.status == 202, "\(login.json)")
        // What the provider says of a message to the token that is registered now still counts.
        for delivery in try await gate.claim(.security) {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        gate.clock.advance(seconds: 60)
        #expect(try await receipt(gate, #require(login["send_id"]), "token_gone").status == 200)
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(held.json["devices"]?.arrayValue?.first?.objectValue?["active"] == false, "\(held.json)")
    }

    // MARK: What comes twice, late, or about nothing

    private func receipts(_ gate: GatewayHarness) throws -> [JSONObject] {
        try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map {
            try CanonicalJSON.read($0.bytes)
        }
        .compactMap(\.objectValue).filter { $0["kind"] == "receipt" }
    }

    private func observe(
        _ gate: GatewayHarness, _ send: String, _ action: String?, after seconds: Int64,
        event: String = "user_observed"
    ) async throws -> GatewayHarness.Reply {
        var body: JSONObject = [
            "send": .string(send), "destination": "d_1", "event": .string(event),
            "at": .string(gate.clock.now().advanced(bySeconds: seconds).rfc3339),
        ]
        body["action"] = action.map { .string($0) }
        return try await gate.call("product", "POST", "/v1/receipts", body)
    }

    @Test func `what a person did is one of four, and the time to open is that of the first look`()
        async throws
    {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 100)
        let reports: [(action: String?, secondsAgo: Int64, act: String, openedAfter: Int64?)] = [
            ("badge_cleared", 95, "badge_cleared", nil), (nil, 90, "seen", 10_000),
            ("DISMISSED", 80, "dismissed", nil), ("view_transfer", 70, "tap", nil),
            ("opened", 60, "tap", nil),
        ]
        for report in reports {
            let reply = try await observe(gate, send, report.action, after: -report.secondsAgo)
            #expect(reply.status == 200, "\(reply.json)")
        }
        let entries = try receipts(gate)
        #expect(entries.map { $0["act"]?.stringValue } == reports.map(\.act))
        #expect(entries.map { $0["opened_after"]?.integerValue } == reports.map(\.openedAfter))
        let history = try await gate.call("product", "GET", "/v1/recipients/u_1/decisions")
        for sentence in [
            "the recipient saw it on `d_1`", "the recipient put it away on `d_1` (DISMISSED)",
            "the recipient opened it or acted on it on `d_1` (view_transfer)",
            "the recipient opened the app, which cleared it on `d_1`",
        ] { #expect("\(history.json)".contains(sentence), "\(sentence)") }
    }

    @Test func `the same receipt again is the first one, at any time, and another is another`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 60)
        let first = try await observe(gate, send, "opened", after: -30)
        #expect(first.status == 200 && first.json["replayed"] == nil, "\(first.json)")
        // The provider's word comes after the person's.
        #expect(try await observe(gate, send, nil, after: -40, event: "accepted_by_provider").status == 200)
        for _ in 0..<2 {
            let again = try await observe(gate, send, "opened", after: -30)
            #expect(
                again.json["replayed"] == true && again.json["trail"] == first.json["trail"], "\(again.json)")
        }
        #expect(try await events(gate, send) == ["handed_over", "user_observed", "accepted_by_provider"])
        // Another time, another word and another event are no repetition.
        #expect(try await observe(gate, send, "opened", after: -29).json["replayed"] == nil)
        #expect(try await observe(gate, send, "closed", after: -30).json["replayed"] == nil)
        #expect(try await observe(gate, send, nil, after: -30, event: "failed").json["replayed"] == nil)
        #expect(try receipts(gate).count == 5)
    }

    @Test func `a thousand receipts of one message are thirty-two`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 2_000)
        var statuses: [Int: Int] = [:]
        for number in 0..<1_000 as Range<Int64> {
            let reply = try await observe(gate, send, "opened", after: -number)
            statuses[reply.status, default: 0] += 1
        }
        #expect(statuses == [200: 32, 409: 968])
        #expect(try receipts(gate).count == 32)
        // What was taken is still answered.
        #expect(try await observe(gate, send, "opened", after: -31).json["replayed"] == true)
        // The provider's word has room of its own: a token that is gone is taken out whatever an app tells.
        #expect(try await observe(gate, send, nil, after: -1, event: "token_gone").status == 200)
        #expect(try receipts(gate).count == 33)
        for number in 1...2 as ClosedRange<Int64> {
            #expect(try await observe(gate, send, nil, after: -number, event: "failed").status == 200)
        }
        #expect(try receipts(gate).count == 35)
    }

    @Test func `a token that is gone is taken out however often the provider failed before`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        gate.clock.advance(seconds: 2_000)
        var statuses: [Int: Int] = [:]
        for number in 1...40 as ClosedRange<Int64> {
            let reply = try await observe(gate, send, nil, after: -number, event: "failed")
            statuses[reply.status, default: 0] += 1
        }
        #expect(statuses == [200: 32, 409: 8])
        #expect(try await observe(gate, send, nil, after: 0, event: "token_gone").status == 200)
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(held.json["devices"]?.arrayValue?.first?.objectValue?["active"] == false, "\(held.json)")
        // And what the person did still has its own.
        #expect(try await observe(gate, send, "opened", after: -1).status == 200)
        // A second of a kind is bounded as ever.
        #expect(try await observe(gate, send, nil, after: -1, event: "token_gone").status == 409)
        #expect(try receipts(gate).count == 34)
    }

    @Test func `a provider that gave it up is as one that refused it`() async throws {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        let reply = try await gate.call(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(send), "destination": "d_1", "event": "expired",
                "reason": "MessageTTLExceeded",
                "at": .string(gate.clock.now().rfc3339),
            ])
        #expect(reply.status == 200, "\(reply.json)")
        #expect(try await events(gate, send) == ["handed_over", "expired"])
        let history = try await gate.call("product", "GET", "/v1/recipients/u_1/decisions")
        #expect("\(history.json)".contains("the provider gave it up when its time was over for `d_1`"))
    }

    @Test func `nobody has seen what waits here or was taken back`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        // Kept for five minutes, for the acknowledgement that makes it needless.
        let waiting = try await gate.call(
            "payments", "POST", "/v1/sends",
            [
                "id": "w1", "type": "alert.payment_processing", "recipient": ["user": "u_1"],
                "params": [
                    "alertId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                    "paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a11",
                ],
            ])
        let send = try #require(waiting["send_id"], "\(waiting.json)")
        #expect(waiting["outcome"] == "defer")
        for event in ["accepted_by_provider", "failed", "token_gone", "expired", "user_observed"] {
            let reply = try await receipt(gate, send, event)
            #expect(reply.status == 409 && "\(reply.json)".contains("still waits here"), "\(reply.json)")
        }
        let cancelled = try await gate.call("payments", "POST", "/v1/sends/\(send)/cancel")
        #expect(cancelled.status == 200, "\(cancelled.json)")
        let reply = try await receipt(gate, send, "token_gone")
        #expect(reply.status == 409 && "\(reply.json)".contains("taken back"), "\(reply.json)")
        #expect(try receipts(gate).isEmpty)
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(held.json["devices"]?.arrayValue?.first?.objectValue?["active"] == true, "\(held.json)")
    }

    @Test func `nothing was seen of a send that was refused, and its device stays`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let refused = try await gate.call(
            "marketing", "POST", "/v1/sends",
            [
                "id": "p1", "type": "promo.offer", "recipient": ["user": "u_1"],
                "params": [
                    "offer_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "headline": "No fees this week",
                ],
            ])
        #expect(refused.status == 403, "\(refused.json)")
        let send = try #require(refused["send_id"])
        for event in ["accepted_by_provider", "failed", "token_gone", "expired", "user_observed"] {
            let reply = try await receipt(gate, send, event)
            #expect(reply.status == 409 && "\(reply.json)".contains("was not let through"), "\(reply.json)")
        }
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(held.json["devices"]?.arrayValue?.first?.objectValue?["active"] == true, "\(held.json)")
    }

    @Test func `a receipt about no send, another destination or somebody erased is one that finds nothing`()
        async throws
    {
        let gate = try GatewayHarness()
        let send = try await handOver(gate, .accepted(status: 200, byProvider: false))
        // A device of the same person, to which the send did not go.
        try await gate.register("u_1", device: "d_2")
        gate.clock.advance(seconds: 60)
        func report(
            _ send: String, at destination: String, _ event: String
        ) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "product", "POST", "/v1/receipts",
                [
                    "send": .string(send), "destination": .string(destination), "event": .string(event),
                    "at": .string(gate.clock.now().rfc3339),
                ])
        }
        func expectNothingFound(_ send: String, at destination: String) async throws {
            let before = try gate.store.read { try $0.entryCount() }
            for event in ["accepted_by_provider", "failed", "token_gone", "expired", "user_observed"] {
                let reply = try await report(send, at: destination, event)
                #expect(reply.status == 404, "\(reply.json)")
                #expect(reply["detail"] == "no send of this id went to this destination", "\(reply.json)")
            }
            #expect(try gate.store.read { try $0.entryCount() } == before)
        }
        try await expectNothingFound("0190b5a0-0000-7000-8000-000000000000", at: "d_1")
        try await expectNothingFound(send, at: "d_2")
        try await expectNothingFound(send, at: "d_9")
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        let devices = try #require(held.json["devices"]?.arrayValue)
        #expect(devices.count == 2 && devices.allSatisfy { $0["active"] == true }, "\(held.json)")
        // The send and its destination are the ones that a receipt finds, until the person is erased.
        #expect(try await report(send, at: "d_1", "accepted_by_provider").status == 200)
        #expect(try receipts(gate).count == 1)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        try await expectNothingFound(send, at: "d_1")
        // Who comes back under the same names is a new person.
        try await gate.register("u_1")
        try await expectNothingFound(send, at: "d_1")
        #expect(try receipts(gate).count == 1)
    }

    @Test func `receipts of two callers' sends show to each caller its own, whoever reports them`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let payment = try await gate.remit("r1")
        let comment = try await gate.call(
            "social", "POST", "/v1/sends",
            try await gate.example("social.comment", "c1", to: "u_1", as: "social"))
        let sends = [
            "payments": try #require(payment["send_id"], "\(payment.json)"),
            "social": try #require(comment["send_id"], "\(comment.json)"),
        ]
        let deliveries = try await gate.claim()
        try #require(deliveries.count == 2)
        for delivery in deliveries {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        gate.clock.advance(seconds: 60)
        let reported = ["payments": "accepted_by_provider", "social": "failed"]
        for (caller, event) in reported {
            #expect(try await receipt(gate, #require(sends[caller]), event).status == 200)
        }
        for (caller, other) in [("payments", "social"), ("social", "payments")] {
            let own = try #require(sends[caller])
            let status = try await gate.call(caller, "GET", "/v1/sends/\(own)")
            let told = (status.json["events"]?.arrayValue ?? []).compactMap { $0["event"]?.stringValue }
            #expect(told == ["handed_over", try #require(reported[caller])], "\(status.json)")
            let page = try await gate.call(caller, "GET", "/v1/events?after=0")
            let events = try #require(page.json["events"]?.arrayValue, "\(page.json)")
            #expect(events.compactMap { $0["event"]?.stringValue } == told, "\(page.json)")
            #expect(try await gate.call(caller, "GET", "/v1/sends/\(#require(sends[other]))").status == 404)
        }
    }

    /// What the relay has in its hands may be with the provider, whose word can come before the hop's.
    @Test func `a receipt may come before the hop's own answer`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let send = try #require(reply["send_id"])
        let delivery = try #require(try await gate.claim().first)
        #expect(try await receipt(gate, send, "accepted_by_provider").status == 200)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        #expect(try await events(gate, send) == ["accepted_by_provider", "handed_over"])
    }
}
