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
