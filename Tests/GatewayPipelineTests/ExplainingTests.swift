import CanonicalJSON
import GateVocabulary
import SQLiteStore
import Testing

@testable import GateSteps
@testable import GatewayPipeline

/// To explain a send is to run its step and to drop what it did.
@Suite struct ExplainingTests {
    private func explained(
        _ send: JSONObject, as caller: String, in gate: GatewayHarness
    ) async throws -> GatewayHarness.Reply {
        var body = send
        body["id"] = nil
        body["caller"] = .string(caller)
        return try await gate.call("auditor", "POST", "/v1/sends/explain", body)
    }

    @Test func `what is explained is what is decided, and nothing is done`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "00:00", "end": "23:59"])
        for device in ["d_1", "d_2"] { try await gate.register("u_2", device: device) }
        _ = try await gate.addKey("u_2", device: "d_2")
        let sends = [
            ("payments", GatewayHarness.remittance("r1", to: "u_1")),
            ("payments", GatewayHarness.remittance("r2", to: "u_2")),
            ("marketing", try await gate.promo("p1", to: "u_2")),
            ("payments", try await gate.example("transfer.sent", "t1", to: "u_2", as: "payments")),
            ("payments", try await gate.example("transfer.sent", "t2", to: "u_2", as: "payments")),
            ("payments", GatewayHarness.remittance("r3", to: "nobody")),
        ]
        for (caller, send) in sends {
            func looks() throws -> [Int] {
                try gate.store.read { store in
                    let entries = try store.entries(from: 0, limit: 10_000).map(\.bytes)
                    let told = entries.filter { !String(decoding: $0, as: UTF8.self).contains("\"explain\"") }
                    return [told.count, try store.outboxDepth().rowCount]
                }
            }
            let before = try looks()
            let explained = try await explained(send, as: caller, in: gate)
            #expect(explained.status == 200, "\(explained.json)")
            #expect(try looks() == before)
            let decided = try await gate.call(caller, "POST", "/v1/sends", send)
            func decisions(_ reply: GatewayHarness.Reply) -> [[String]] {
                // A send that goes nowhere says so as a whole.
                let deliveries = reply.json["deliveries"]?.arrayValue ?? []
                return (deliveries.isEmpty ? [.object(reply.json)] : deliveries).map { delivery in
                    let decision = delivery["decision"] ?? delivery
                    return ["outcome", "reason", "detail"].map { decision[$0]?.stringValue ?? "" }
                }
            }
            #expect(decisions(explained) == decisions(decided), "\(explained.json) \(decided.json)")
            #expect(!decisions(decided).isEmpty)
        }
    }

    /// What the answer to a send says of its recipient.
    private struct Told: Hashable {
        var top: [JSONValue?]
        var deliveries: Set<[JSONValue?]>

        init(_ reply: GatewayHarness.Reply) {
            top = ["outcome", "reason"].map { reply.json[$0] } + [reply["detail"].map { .string($0) }]
            deliveries = Set(
                (reply.json["deliveries"]?.arrayValue ?? []).filter { $0["destination"] != nil }.map {
                    delivery in
                    ["destination", "outcome", "reason", "detail", "not_before"].map { delivery[$0] }
                })
        }
    }

    @Test func `a producer learns of its own send what the answer would say, and nothing more`() async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("quiet", quiet: ["start": "00:00", "end": "23:59"])
        for device in ["d_1", "d_2"] { try await gate.register("two", device: device) }
        _ = try await gate.addKey("two", device: "d_2")
        var misspelled = GatewayHarness.remittance("m", to: "two")
        misspelled["type"] = "transaction.remitance_sent"
        var critical = GatewayHarness.remittance("c", to: "two")
        critical["critical"] = true
        let sends = [
            ("payments", GatewayHarness.remittance("r1", to: "quiet")),
            ("payments", GatewayHarness.remittance("r2", to: "two")),
            ("payments", GatewayHarness.remittance("r3", to: "nobody")),
            ("marketing", try await gate.promo("p1", to: "two")),
            // Gates 1 to 3 refuse: nothing about the recipient, whoever they are.
            ("marketing", GatewayHarness.remittance("x1", to: "two")),
            ("payments", misspelled), ("payments", critical),
        ]
        var waiting = 0
        for (caller, send) in sends {
            var question = send
            question["id"] = nil
            let explained = try await gate.call(caller, "POST", "/v1/sends/explain", question)
            #expect(explained.status == 200, "\(explained.json)")
            let text = String(decoding: CanonicalJSON.write(.object(explained.json)), as: UTF8.self)
            // No member, and no clock of the person's.
            for word in ["\"facts\"", "\"gates\"", "\"form\"", "\"interruption\"", "\"notes\"", "Europe/"] {
                #expect(!text.contains(word), "\(word): \(text)")
            }
            // As `not_before` is told. Who may read people is told the same moment by the person's clock.
            if text.contains("\"not_before\"") {
                waiting += 1
                #expect(text.contains("(UTC)"), "\(text)")
                question["caller"] = .string(caller)
                let read = try await gate.call("auditor", "POST", "/v1/sends/explain", question)
                let told = String(decoding: CanonicalJSON.write(.object(read.json)), as: UTF8.self)
                #expect(told.contains("(Europe/Berlin)") && !told.contains("(UTC)"), "\(told)")
            }
            let decided = try await gate.call(caller, "POST", "/v1/sends", send)
            #expect(Told(explained) == Told(decided), "\(explained.json) \(decided.json)")
        }
        #expect(waiting == 1)
        // Another caller's send is not this one's to ask about.
        var question = GatewayHarness.remittance("r4", to: "two")
        question["id"] = nil
        question["caller"] = "payments"
        let refused = try await gate.call("marketing", "POST", "/v1/sends/explain", question)
        #expect(refused.status == 403 && refused["type"] == "urn:sendgate:problem:grant_missing")
    }

    @Test func `of a send that gates 1 to 3 refuse, the explanation is the same for everybody`() async throws
    {
        let gate = try GatewayHarness()
        for device in ["d_1", "d_2"] { try await gate.register("two", device: device) }
        var answers: Set<[UInt8]> = []
        for user in ["two", "nobody"] {
            var question = GatewayHarness.remittance("x", to: user)
            question["id"] = nil
            let reply = try await gate.call("marketing", "POST", "/v1/sends/explain", question)
            #expect(reply.status == 200 && reply["reason"] == "caller_not_permitted", "\(reply.json)")
            answers.insert(CanonicalJSON.write(.object(reply.json)))
        }
        #expect(answers.count == 1)
    }

    @Test func `to explain takes no room`() async throws {
        var limits = EngineLimits()
        limits.outboxRowCountMax = 4
        let gate = try GatewayHarness(limits: limits)
        for number in 1...6 { try await gate.register("u_1", device: "d_\(number)") }
        let send = GatewayHarness.remittance("r1", to: "u_1")
        #expect(try await gate.call("payments", "POST", "/v1/sends", send).status == 429)
        let explained = try await explained(send, as: "payments", in: gate)
        #expect(explained.status == 200 && explained.json["deliveries"]?.arrayValue?.count == 6)
    }
}
