import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing
import WireProtocol

/// A notice that a law obliges us to send is owed until a message that discharges it was promised, and what is owed
/// past its time, or failed everywhere, raises the alarm.
@Suite struct DutyTests {
    /// Raises what is overdue, as the gateway does every minute.
    private struct OverdueOperation: EngineOperation {
        let finished: @Sendable () -> Void
        var caller: CallerName? { nil }
        var lane: EngineLane { .security }
        var scans: Bool { true }
        func perform(in batch: Batch) throws -> Completion {
            _ = try batch.raiseOverdueDuties()
            return { [finished] _ in finished() }
        }
        func refuse(_ failure: EngineFailure) { Issue.record("refused: \(failure)") }
    }

    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    private func alarms(afterHours hours: Int64) async -> [String] {
        gate.clock.advance(seconds: hours * 3600)
        await withCheckedContinuation { continuation in
            gate.engine.submit(OverdueOperation { continuation.resume() })
        }
        await gate.settle()
        return gate.alarms.all
    }

    /// What `/metrics` counts as unreached, by type, without those that it counts none of.
    private func unreached() async -> [String: String] {
        let page = await gate.ask("auditor", "GET", "/metrics")
        let samples = String(decoding: page.body, as: UTF8.self).matches(
            of: /(?m)^sendgate_mandatory_unreached_total\{type="([^"]+)"\} (\d+)$/)
        return Dictionary(samples.map { (String($0.1), String($0.2)) }) { "\($0) \($1)" }.filter {
            $0.value != "0"
        }
    }

    private func registerWithMailbox() async throws {
        try await gate.register("u_1")
        let now = gate.clock.now().rfc3339
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/e_1",
            ["kind": "email", "value": "a@example.org", "verified_at": .string(now)])
        try #require(reply.status < 300, "\(reply.json)")
    }

    private func breach(
        _ id: String, by channel: String, incident: String = "11111111-5c1b-4e52-9a1f-3f6f3d1f7a10"
    ) async throws -> GatewayHarness.Reply {
        var send = try await gate.example("privacy.breach_notice", id, to: "u_1", as: "security")
        send["channel"] = .string(channel)
        var params = try #require(send["params"]?.objectValue)
        params["incident_id"] = .string(incident)
        send["params"] = .object(params)
        return try await gate.call("security", "POST", "/v1/sends", send)
    }

    @Test
    func `a push that says only that something happened leaves the duty owed, and the answer says by what`()
        async throws
    {
        try await registerWithMailbox()
        let push = try await breach("a", by: "push")
        #expect(push.status == 202 && push.json["owed"] == ["email", "letter"], "\(push.json)")
        // The same id is answered the same, from the entry.
        let again = try await breach("a", by: "push")
        #expect(again.json["replayed"] == true && again.json["owed"] == ["email", "letter"])
        let bytes = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        let entries = try bytes.map { try CanonicalJSON.read($0) }
        #expect(entries.filter { $0["kind"] == "send" }.map { $0["owed"] } == [["email", "letter"]])
        // Nothing is raised before its time is over, and then once.
        #expect(await alarms(afterHours: 23) == [])
        #expect(await unreached() == [:])
        let raised = await alarms(afterHours: 2)
        #expect(await unreached() == ["privacy.breach_notice": "1"])
        #expect(raised.count == 1 && raised[0].contains("must go by letter"), "\(raised)")
        #expect(await alarms(afterHours: 48).count == 1)
        #expect(await unreached() == ["privacy.breach_notice": "1"])
        let events = try await gate.call("security", "GET", "/v1/sends/\(push["send_id"] ?? "")")
        #expect(
            events.json["events"]?.arrayValue?.contains { $0["event"] == "mandatory_unreached" } == true)
    }

    @Test(arguments: [["push", "email"], ["email", "push"]])
    func `the e-mail does the duty, before the push or after it`(channels: [String]) async throws {
        try await registerWithMailbox()
        for (number, channel) in channels.enumerated() {
            let reply = try await breach("s\(number)", by: channel)
            try #require(reply.status == 202, "\(reply.json)")
            let owed: [String] = number == 0 && channel == "push" ? ["email", "letter"] : []
            let found = (reply.json["owed"]?.arrayValue ?? []).compactMap(\.stringValue)
            #expect(found == owed, "\(reply.json)")
        }
        #expect(await alarms(afterHours: 72) == [])
    }

    @Test func `of two incidents each is a duty of its own`() async throws {
        try await registerWithMailbox()
        _ = try await breach("a", by: "push")
        let other = "22222222-5c1b-4e52-9a1f-3f6f3d1f7a10"
        #expect(try await breach("b", by: "email", incident: other).json["owed"] == nil)
        #expect(await alarms(afterHours: 25).count == 1)
    }

    @Test func `a card that is blocked again is a duty of its own`() async throws {
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        _ = try await gate.addKey("u_1")
        func block(_ id: String, at device: String, event: Int) async throws -> GatewayHarness.Reply {
            var send = try await gate.example("card.blocked", id, to: "u_1", as: "security")
            send["recipient"] = ["user": "u_1", "device": .string(device)]
            var params = try #require(send["params"]?.objectValue)
            params["event_id"] = .string("22222222-5c1b-4e52-9a1f-3f6f3d1f7a1\(event)")
            send["params"] = .object(params)
            return try await gate.call("security", "POST", "/v1/sends", send)
        }
        let first = try await block("a", at: "d_1", event: 1)
        try #require(first.status == 202 && first.json["owed"] == nil, "\(first.json)")
        // Of the same block the stand-in on the other phone leaves nothing owed, of the next block it does.
        #expect(try await block("b", at: "d_2", event: 1).json["owed"] == nil)
        let second = try await block("c", at: "d_2", event: 2)
        #expect(second.json["owed"] == ["push", "email", "sms", "phone"], "\(second.json)")
        for delivery in try await gate.claim(.security) {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        #expect(await alarms(afterHours: 2).count == 1)
    }

    @Test func `a stand-in that waits goes on when the device gets a key, and nobody is alarmed`()
        async throws
    {
        try await gate.register("u_1")
        let send = try await gate.example("card.blocked", "a", to: "u_1", as: "security")
        let reply = try await gate.call("security", "POST", "/v1/sends", send)
        try #require(reply["reason"] == "generic_only", "\(reply.json)")
        _ = try await gate.addKey("u_1")
        await gate.settle()
        #expect(gate.alarms.all == [])
        // Nor when its turn comes so late that it is decided again.
        gate.clock.advance(seconds: 600)
        #expect(try await gate.claim(.security).count == 1)
        #expect(gate.alarms.all == [])
    }

    @Test func `a cut text that waits goes on when the recipient lets notifications show everything`()
        async throws
    {
        try await gate.register("u_1")
        let send = try await gate.example("order.shipped", "a", to: "u_1", as: "payments")
        #expect(gate.policy.type(TypeID("order.shipped"))?.body.push == .full)
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        try #require(reply.status == 202, "\(reply.json)")
        let full = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1",
            [
                "region": "DE", "region_source": "kyc", "age": "adult", "privacy": "full",
                "time_zone": "Europe/Berlin",
            ])
        try #require(full.status == 200, "\(full.json)")
        #expect(try await gate.claim().count == 1)
    }

    @Test func `a stand-in without a key is not the notice, and a sealed body is`() async throws {
        try await gate.register("u_1")
        let generic = try await gate.example("card.blocked", "a", to: "u_1", as: "security")
        let owed = try await gate.call("security", "POST", "/v1/sends", generic)
        #expect(owed["reason"] == "generic_only", "\(owed.json)")
        #expect(owed.json["owed"] == ["push", "email", "sms", "phone"])
        for delivery in try await gate.claim(.security) {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        _ = try await gate.addKey("u_1")
        let sealed = try await gate.example("card.blocked", "b", to: "u_1", as: "security")
        let done = try await gate.call("security", "POST", "/v1/sends", sealed)
        #expect(done.status == 202 && done.json["owed"] == nil, "\(done.json)")
        #expect(await alarms(afterHours: 2) == [])
    }

    @Test func `a send that is wrong itself owes nothing, and one that nobody can get owes it at once`()
        async throws
    {
        try await gate.register("u_1", osPermission: "denied")
        var wrong = try await gate.example("privacy.breach_notice", "a", to: "u_1", as: "security")
        wrong["params"] = [:]
        let refused = try await gate.call("security", "POST", "/v1/sends", wrong)
        #expect(refused["reason"] == "invalid_params" && refused.json["owed"] == nil)
        let unreached = try await breach("b", by: "push")
        #expect(unreached.status == 403 && unreached.json["owed"] == ["email", "letter"])
        await gate.settle()
        #expect(gate.alarms.all.count == 1)
        #expect(await alarms(afterHours: 48).count == 1)
    }

    @Test
    func `who cancels the only send has nothing to be alarmed of, and who is forgotten is owed nothing`()
        async throws
    {
        try await registerWithMailbox()
        let push = try await breach("a", by: "push")
        let id = try #require(push["send_id"])
        #expect(try await gate.call("security", "POST", "/v1/sends/\(id)/cancel").status == 200)
        #expect(await alarms(afterHours: 48) == [])
        _ = try await breach("b", by: "push")
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status < 300)
        #expect(await alarms(afterHours: 48) == [])
    }

    @Test(arguments: ["failed", "token_gone", "expired"])
    func `a receipt that the provider refused it raises the alarm once, unless somebody saw it elsewhere`(
        event: String
    ) async throws {
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        _ = try await gate.addKey("u_1")
        _ = try await gate.addKey("u_1", device: "d_2")
        let send = try await gate.example("transaction.failed", "a", to: "u_1", as: "payments")
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 202 && reply.json["owed"] == nil, "\(reply.json)")
        func receipt(_ device: String, _ event: String) async throws -> [String] {
            let reply = try await gate.call(
                "product", "POST", "/v1/receipts",
                [
                    "send": .string(reply["send_id"] ?? ""), "destination": .string(device),
                    "event": .string(event), "at": .string(gate.clock.now().rfc3339),
                ])
            #expect(reply.status == 200, "\(reply.json)")
            await gate.settle()
            return gate.alarms.all
        }
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        // One device may still have it.
        #expect(try await receipt("d_1", event) == [])
        let raised = try await receipt("d_2", event)
        #expect(raised.count == 1 && raised[0].contains("must go by email"), "\(raised)")
        #expect(try await receipt("d_2", event).count == 1)
    }

    @Test func `a receipt that one device refused raises nothing while another message waits`() async throws {
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        for device in ["d_1", "d_2"] { _ = try await gate.addKey("u_1", device: device) }
        let send = try await gate.example("transaction.failed", "a", to: "u_1", as: "payments")
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        let deliveries = try await gate.claim()
        try #require(deliveries.count == 2)
        for delivery in deliveries {
            let isFirst = delivery.destination.text == "d_1"
            try await gate.gateway.report(
                delivery.message,
                isFirst ? .accepted(status: 200, byProvider: false) : .notWritten("refused"),
                retryAt: isFirst ? nil : gate.clock.now().advanced(bySeconds: 60))
        }
        let receipt = try await gate.call(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(reply["send_id"] ?? ""), "destination": "d_1", "event": "failed",
                "at": .string(gate.clock.now().rfc3339),
            ])
        #expect(receipt.status == 200, "\(receipt.json)")
        await gate.settle()
        #expect(gate.alarms.all == [])
    }

    @Test func `a receipt failed of a notice somebody saw raises nothing`() async throws {
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let send = try await gate.example("transaction.failed", "a", to: "u_1", as: "payments")
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        for event in ["user_observed", "failed"] {
            let receipt = try await gate.call(
                "product", "POST", "/v1/receipts",
                [
                    "send": .string(reply["send_id"] ?? ""), "destination": "d_1", "event": .string(event),
                    "at": .string(gate.clock.now().rfc3339),
                ])
            #expect(receipt.status == 200, "\(receipt.json)")
        }
        await gate.settle()
        #expect(gate.alarms.all == [])
    }

    @Test func `a producer reads which channels discharge a duty before it sends`() async throws {
        let type = try await gate.call("security", "GET", "/v1/types/privacy.breach_notice")
        #expect(type.json["mandatory"] == true && type.json["discharged_by"] == ["email", "letter"])
        let other = try await gate.call("payments", "GET", "/v1/types/transfer.received")
        #expect(other.json["mandatory"] == false && other.json["discharged_by"] == nil)
    }

    @Test func `marketing sends nothing social, and the social feed nothing that sells`() async throws {
        try await gate.register("u_1")
        let mention = try await gate.example("social.mention", "a", to: "u_1", as: "social")
        #expect(
            try await gate.call("marketing", "POST", "/v1/sends", mention)["reason"]
                == "caller_not_permitted")
        #expect(
            try await gate.call("social", "POST", "/v1/sends", mention)["reason"] != "caller_not_permitted")
        let offer = try await gate.promo("b", to: "u_1")
        #expect(
            try await gate.call("social", "POST", "/v1/sends", offer)["reason"] == "caller_not_permitted")
    }
}
