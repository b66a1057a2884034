import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing
import WireProtocol

/// One event is told once, or not at all when a caller says that it is known.
@Suite struct DedupeTests {
    private func processing(
        _ id: String, payment: String = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"
    ) -> JSONObject {
        [
            "id": .string(id), "type": "alert.payment_processing", "recipient": ["user": "u_1"],
            "params": [
                "alertId": "11111111-5c1b-4e52-9a1f-3f6f3d1f7a10", "paymentId": .string(payment),
            ],
        ]
    }

    private let acknowledgement: JSONObject = [
        "type": "alert.payment_processing", "recipient": ["user": "u_1"],
        "params": ["paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
    ]

    private func gate() async throws -> GatewayHarness {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        return gate
    }

    @Test func `a second send of one payment is refused, another payment is not`() async throws {
        let gate = try await gate()
        #expect(try await gate.call("payments", "POST", "/v1/sends", processing("a")).status == 202)
        let again = try await gate.call("payments", "POST", "/v1/sends", processing("b"))
        #expect(again.status == 403 && again["reason"] == "repeated" && again["detail"] == "already_sent")
        let other = processing("c", payment: "22222222-5c1b-4e52-9a1f-3f6f3d1f7a10")
        #expect(try await gate.call("payments", "POST", "/v1/sends", other).status == 202)
    }

    @Test func `one caller's send, cancel and acknowledgement leave another's notice alone`() async throws {
        let gate = try GatewayHarness(edit: { pages in
            let path = "types/alert.payment_processing.yaml"
            guard case .object(var page)? = pages[path]?.json else {
                Issue.record("there is no \(path)")
                return
            }
            page["dedupe_scope"] = "caller"
            pages[path] = PolicyNode(json: .object(page))
        })
        try await gate.register("u_1")
        // Both may send the type, and each is refused a repeat of its own only.
        for caller in ["product", "payments"] {
            let sent = try await gate.call(caller, "POST", "/v1/sends", processing("a"))
            #expect(sent.status == 202, "\(sent.json)")
            let again = try await gate.call(caller, "POST", "/v1/sends", processing("b"))
            #expect(again["reason"] == "repeated" && again["detail"] == "already_sent", "\(again.json)")
        }
        let acknowledged = try await gate.call(
            "product", "POST", "/v1/sends/acknowledge", acknowledgement)
        #expect(acknowledged.json["withdrawn"]?.arrayValue?.count == 1, "\(acknowledged.json)")
        let own = try await gate.call("product", "POST", "/v1/sends", processing("c"))
        #expect(own["reason"] == "repeated" && own["detail"] == "acknowledged", "\(own.json)")
        let waiting = try gate.store.read { store in
            try store.outbox(of: try #require(try store.subject(of: UserID("u_1"))).id).map(
                \.request.caller.text)
        }
        #expect(waiting == ["payments"])
    }

    @Test func `the app's acknowledgement takes back what the payments service is about to tell`()
        async throws
    {
        let gate = try await gate()
        let sent = try await gate.call("payments", "POST", "/v1/sends", processing("a"))
        try #require(sent.status == 202, "\(sent.json)")
        let other = try await gate.call("product", "POST", "/v1/sends", processing("a"))
        #expect(other["reason"] == "repeated" && other["detail"] == "already_sent", "\(other.json)")
        #expect(other["who_can_fix"] == "producer")
        let acknowledged = try await gate.call(
            "product", "POST", "/v1/sends/acknowledge", acknowledgement)
        #expect(acknowledged.json["withdrawn"] == [.string(sent["send_id"] ?? "")], "\(acknowledged.json)")
        gate.clock.advance(seconds: 3600)
        _ = try await gate.claim()
        #expect(try await gate.claim().isEmpty)
        // Also when it comes first.
        let payment = "33333333-5c1b-4e52-9a1f-3f6f3d1f7a10"
        var early = acknowledgement
        early["params"] = ["paymentId": .string(payment)]
        try #require(try await gate.call("product", "POST", "/v1/sends/acknowledge", early).status == 200)
        let late = try await gate.call("payments", "POST", "/v1/sends", processing("b", payment: payment))
        #expect(late["reason"] == "repeated" && late["detail"] == "acknowledged", "\(late.json)")
    }

    @Test func `one caller's collapse key replaces no message of another's`() async throws {
        let gate = try await gate()
        _ = try await gate.addKey("u_1")
        for (number, caller) in ["product", "payments", "payments"].enumerated() {
            let id = "\(number)"
            var send = processing(id, payment: "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a1\(id)")
            send["collapse_key"] = "k"
            try #require(try await gate.call(caller, "POST", "/v1/sends", send).status == 202)
        }
        gate.clock.advance(seconds: 600)
        _ = try await gate.claim()
        let tags = try await gate.claim().map {
            try CanonicalJSON.readCanonical($0.headers)["apns-collapse-id"]?.stringValue ?? "none"
        }
        #expect(tags.count == 3 && Set(tags).count == 2 && !tags.contains("none"), "\(tags)")
    }

    @Test func `who may not send a type learns neither what was told nor when it is quiet`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T19:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        #expect(try await gate.call("payments", "POST", "/v1/sends", processing("a")).status == 202)
        gate.clock.advance(seconds: 2 * 3600)
        let told = try await gate.call("marketing", "POST", "/v1/sends", processing("b"))
        #expect(told["reason"] == "caller_not_permitted", "\(told.json)")
        // Five minutes from its arrival are too short a life for the recipient's quiet hours: help is told so,
        // marketing is not.
        var short = try await gate.example("intervention.venue_proximity", "c", to: "u_1", as: "help")
        #expect(
            try await gate.call("help", "POST", "/v1/sends", short)["reason"] == "expires_before_due")
        #expect(
            try await gate.call("marketing", "POST", "/v1/sends", short)["reason"] == "caller_not_permitted")
        short["params"] = ["no": "such"]
        short["id"] = "d"
        #expect(try await gate.call("help", "POST", "/v1/sends", short)["reason"] == "invalid_params")
    }

    @Test func `an acknowledgement takes back what waits`() async throws {
        let gate = try await gate()
        let sent = try await gate.call("payments", "POST", "/v1/sends", processing("a"))
        try #require(sent.status == 202, "\(sent.json)")
        let acknowledged = try await gate.call(
            "payments", "POST", "/v1/sends/acknowledge", acknowledgement)
        #expect(acknowledged.status == 200, "\(acknowledged.json)")
        #expect(acknowledged.json["withdrawn"] == [.string(sent["send_id"] ?? "")])
        gate.clock.advance(seconds: 3600)
        _ = try await gate.claim()
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `an acknowledgement that comes first is remembered`() async throws {
        let gate = try await gate()
        let acknowledged = try await gate.call(
            "payments", "POST", "/v1/sends/acknowledge", acknowledgement)
        #expect(acknowledged.status == 200 && acknowledged.json["withdrawn"] == [])
        let late = try await gate.call("payments", "POST", "/v1/sends", processing("a"))
        #expect(
            late.status == 403 && late["reason"] == "repeated" && late["detail"] == "acknowledged",
            "\(late.json)")
    }

    @Test func `who may not send a type cannot acknowledge it, and what has no event is refused`()
        async throws
    {
        let gate = try await gate()
        #expect(
            try await gate.call("marketing", "POST", "/v1/sends/acknowledge", acknowledgement).status == 403)
        var other = acknowledgement
        other["type"] = "transaction.remittance_sent"
        #expect(try await gate.call("payments", "POST", "/v1/sends/acknowledge", other).status == 422)
        other["type"] = "no.such.type"
        #expect(try await gate.call("payments", "POST", "/v1/sends/acknowledge", other).status == 404)
        other = acknowledgement
        other["recipient"] = ["user": "u_nobody"]
        #expect(try await gate.call("payments", "POST", "/v1/sends/acknowledge", other).status == 404)
    }

    @Test func `a large transfer is told in place of the transfer, whichever comes first`() async throws {
        let gate = try await gate()
        func transfer(_ type: String, _ id: String, _ transaction: String) async throws
            -> GatewayHarness.Reply
        {
            var send = GatewayHarness.remittance(id, to: "u_1")
            send["type"] = .string(type)
            send["params"] = [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                "transaction_id": .string(transaction),
            ]
            return try await gate.call("payments", "POST", "/v1/sends", send)
        }
        let (one, other) = ("0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a11")
        #expect(try await transfer("transfer.large", "a", one).status == 202)
        let again = try await transfer("transfer.sent", "b", one)
        #expect(again.status == 403 && again["detail"] == "already_sent", "\(again.json)")
        #expect(try await transfer("transfer.sent", "c", other).status == 202)
        #expect(try await transfer("transfer.large", "d", other).status == 403)
    }

    @Test
    func `of one transfer the notice and the warning are one on all channels, and each goes on several`()
        async throws
    {
        let gate = try await gate()
        try await gate.register("u_1")
        for (id, kind, value) in [("e", "email", "a@example.org"), ("n", "sms", "+4790000000")] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(reply.status == 200, "\(reply.json)")
        }
        var count = 0
        func transfer(
            _ type: String, _ event: Int, by channel: String, replacing send: String? = nil
        ) async throws -> GatewayHarness.Reply {
            count += 1
            var body = GatewayHarness.remittance("t\(count)", to: "u_1")
            body["type"] = .string("transfer.\(type)")
            body["channel"] = .string(channel)
            body["fallback_for"] = send.map { .string($0) }
            body["params"] = [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                "transaction_id": .string("0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a1\(event)"),
            ]
            return try await gate.call("payments", "POST", "/v1/sends", body)
        }
        let push = try await transfer("sent", 1, by: "push")
        try #require(push.status == 202, "\(push.json)")
        for channel in ["sms", "email"] {
            let warning = try await transfer("large", 1, by: channel)
            #expect(warning["reason"] == "repeated" && warning["detail"] == "already_sent", "\(warning.json)")
        }
        #expect(try await transfer("sent", 1, by: "email").status == 202)
        // The warning first, and then the notice elsewhere.
        try #require(try await transfer("large", 2, by: "email").status == 202)
        #expect(try await transfer("sent", 2, by: "push")["reason"] == "repeated")
        #expect(try await transfer("large", 2, by: "push").status == 202)
        // What takes the place of a push that failed is no second telling.
        let failed = try await transfer("sent", 3, by: "push")
        let instead = try await transfer("large", 3, by: "email", replacing: failed["send_id"])
        #expect(instead.status == 202, "\(instead.json)")
        // And what came to nothing was not told.
        let cancelled = try await transfer("sent", 4, by: "push")
        let path = "/v1/sends/\(try #require(cancelled["send_id"]))/cancel"
        try #require(try await gate.call("payments", "POST", path).status == 200)
        #expect(try await transfer("large", 4, by: "sms").status == 202)
    }

    @Test func `what came to nothing may be told again`() async throws {
        let gate = try await gate()
        let sent = try await gate.call("payments", "POST", "/v1/sends", processing("a"))
        let id = try #require(sent["send_id"])
        #expect(try await gate.call("payments", "POST", "/v1/sends/\(id)/cancel").status == 200)
        #expect(try await gate.call("payments", "POST", "/v1/sends", processing("b")).status == 202)
    }

    /// What the hop may say last of the only message, and whether it cannot have arrived.
    static let ends: [(HopResult, Bool)] = [
        (.accepted(status: 202, byProvider: false), false), (.seenBefore, false),
        (.ambiguous("reset", mayRepeat: true), false),
        (.refused(status: 410, reason: nil), true),
        (.busy(status: 503, retryAfterMilliseconds: nil, scope: .message), true),
        (.notWritten("refused"), true),
    ]

    @Test(arguments: ends, [false, true])
    func `what the hop never had may be told again, also by what had waited`(
        _ end: (result: HopResult, isUntold: Bool), _ waits: Bool
    ) async throws {
        let gate = try GatewayHarness(at: waits ? "2026-11-21T22:00:00Z" : "2026-11-21T12:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        func transfer(_ id: String) async throws -> GatewayHarness.Reply {
            var send = GatewayHarness.remittance(id, to: "u_1")
            send["type"] = "transfer.sent"
            return try await gate.call("payments", "POST", "/v1/sends", send)
        }
        let first = try await transfer("a")
        try #require(first["outcome"] == (waits ? "defer" : "forward"), "\(first.json)")
        if waits {
            gate.clock.advance(seconds: 9 * 3600)
            _ = try await gate.claim()
        }
        let delivery = try #require(try await gate.claim().first)
        #expect(try await transfer("b")["detail"] == "already_sent")
        try await gate.gateway.report(delivery.message, end.result, retryAt: nil)
        let again = try await transfer("c")
        #expect(again.status == (end.isUntold ? 202 : 403), "\(again.json)")
        #expect((again["detail"] == "already_sent") == !end.isUntold)
    }

    @Test func `a notice the law demands is told again and takes the place of the first`() async throws {
        let gate = try await gate()
        _ = try await gate.addKey("u_1")
        var tags: [String] = []
        for id in ["a", "b"] {
            let send = try await gate.example("transaction.failed", id, to: "u_1", as: "payments")
            #expect(try await gate.call("payments", "POST", "/v1/sends", send).status == 202)
        }
        for delivery in try await gate.claim() {
            let headers = try CanonicalJSON.readCanonical(delivery.headers)
            tags.append(headers["apns-collapse-id"]?.stringValue ?? "none")
        }
        #expect(tags.count == 2 && Set(tags).count == 1 && tags[0] != "none", "\(tags)")
    }

    @Test func `a mandatory notice that nobody can get raises the alarm and names the other way`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: "denied")
        let send = try await gate.example("transaction.failed", "a", to: "u_1", as: "payments")
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 403 && reply["reason"] == "blocked_at_os_level")
        await gate.settle()
        let alarms = gate.alarms.all
        #expect(alarms.count == 1 && alarms[0].contains("must go by email"), "\(alarms)")
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }
        let alarm = try entries.map { try CanonicalJSON.read($0.bytes) }.first {
            $0["kind"] == "mandatory_unreached"
        }
        #expect(alarm?["must_go_by"] == "email")
        // A send that was wrong itself is no alarm.
        var wrong = send
        wrong["id"] = "b"
        wrong["params"] = [:]
        #expect(try await gate.call("payments", "POST", "/v1/sends", wrong)["reason"] == "invalid_params")
        await gate.settle()
        #expect(gate.alarms.all.count == 1)
    }

    @Test func `what is removed in the batch of a send finds the send's message`() async throws {
        let gate = try await gate()
        _ = try await gate.addKey("u_1")
        let hold = HoldOperation()
        gate.engine.submit(hold)
        hold.entered.wait()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask {
                try await gate.call(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1")
                ).status
            }
            while gate.engine.load.queuedCount < 1 { await Task.yield() }
            group.addTask {
                try await gate.call("product", "DELETE", "/v1/recipients/u_1/devices/d_1").status
            }
            while gate.engine.load.queuedCount < 2 { await Task.yield() }
            hold.release.signal()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.sorted() == [200, 202])
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `one device of two that falls raises no alarm while the other is on its way`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"], device: "d_2")
        _ = try await gate.addKey("u_1")
        let send = try await gate.example("account.terms_change", "t1", to: "u_1", as: "payments")
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        try #require(reply["outcome"] == "defer", "\(reply.json)")
        // In the morning one of the two devices does not let the app show anything any more.
        gate.clock.advance(seconds: 9 * 3600)
        try await gate.register(
            "u_1", quiet: ["start": "21:00", "end": "08:00"], device: "d_2", osPermission: "denied")
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
        await gate.settle()
        #expect(gate.alarms.all == [])
    }
}
