import AuditTrail
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import SendPlanning
import Testing

/// What a caller chose is in no entry but as a keyed tag, whatever the request and whatever became of it.
@Suite struct EntryContentTests {
    private static let canary = "kanarifugl"
    private static let uuid = "8a8a8a8a-8a8a-4a8a-8a8a-8a8a8a8a8a8a"

    private static func entries(_ gate: GatewayHarness) throws -> [[UInt8]] {
        try gate.store.read { try $0.entries(from: 0, limit: Int(try $0.entryCount())) }.map(\.bytes)
    }

    @Test(arguments: [true, false])
    func `a type nobody registered is a tag and a length`(isKnown: Bool) async throws {
        let gate = try GatewayHarness()
        if isKnown { try await gate.register("u_1") }
        var send = GatewayHarness.remittance("r1", to: "u_1")
        send["type"] = "kanarifugl: Ahmad Karimi owes NOK 500"
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 403 && reply["reason"] == "unknown_type", "\(reply.json)")
        let bytes = try #require(try Self.entries(gate).last)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(!text.contains(Self.canary) && !text.contains("Ahmad"), "\(text)")
        let request = try SendEntry.read(bytes).entry.request
        #expect(request.type == nil)
        #expect(request.typeByteCount == send["type"]?.stringValue?.utf8.count)
        #expect((request.typeTag != nil) == isKnown)
        #expect(replay(bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil }) == .same)
        // The answer to a repeat is made from that entry.
        let again = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(again["reason"] == "unknown_type" && again.json["replayed"] == true, "\(again.json)")
    }

    @Test func `nothing a caller chose is in an entry of any kind`() async throws {
        let gate = try GatewayHarness()
        let user = "\(Self.canary)-user"
        let device = "\(Self.canary)-device"
        try await gate.register(user, device: device)
        let address = "/v1/recipients/\(user)/addresses/\(Self.canary)-address"
        let phone: JSONObject = [
            "kind": "sms", "value": "+4790000000", "verified_at": "2026-11-01T12:00:00Z",
        ]
        #expect(try await gate.call("product", "PUT", address, phone).status == 200)
        _ = try await gate.addKey(user, device: device)
        #expect(try await gate.consent(user, id: "\(Self.canary)-consent").status == 200)
        #expect(
            try await gate.call(
                "product", "POST", "/v1/recipients/\(user)/consents/\(Self.canary)-consent/withdraw"
            ).status == 200)
        _ = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/preferences/\(Self.canary)",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        _ = try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/permission-prompts", ["device": .string(device)])

        func send(_ number: Int, _ change: (inout JSONObject) -> Void) async throws -> GatewayHarness.Reply {
            var body = GatewayHarness.remittance("\(Self.canary)-\(number)", to: user)
            body["collapse_key"] = .string("\(Self.canary)-key")
            body["deep_link"] = .string("drop://\(Self.canary)")
            body["locale"] = .string("nb-\(Self.canary.prefix(8))")
            change(&body)
            return try await gate.call("payments", "POST", "/v1/sends", body)
        }
        let sent = try await send(1) { _ in }
        #expect(sent.status == 202, "\(sent.json)")
        let refused: [(inout JSONObject) -> Void] = [
            { $0["type"] = .string(Self.canary) },
            { $0["deep_link"] = .string("https://\(Self.canary).example") },
            { $0["params"] = [Self.canary: 1, "amount": [Self.canary: 2]] },
            { $0["fallback_for"] = .string(Self.uuid) },
            { $0["recipient"] = ["user": .string(user), "device": .string("\(Self.canary)-other")] },
            { $0["recipient"] = ["user": .string("\(Self.canary)-nobody")] },
        ]
        for (number, change) in refused.enumerated() {
            #expect(try await send(number + 2, change).status == 403)
        }
        let id = try #require(sent["send_id"])
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(delivery.message, .accepted(status: 202), retryAt: nil)
        let receipt: JSONObject = [
            "send": .string(id), "destination": .string(device), "event": "user_observed",
            "action": .string(Self.canary), "at": .string(gate.clock.now().rfc3339),
        ]
        #expect(try await gate.call("product", "POST", "/v1/receipts", receipt).status == 200)
        _ = try await gate.call("payments", "POST", "/v1/sends/\(id)/cancel")
        _ = try await gate.call(
            "payments", "POST", "/v1/sends/acknowledge",
            [
                "type": .string(Self.canary), "recipient": ["user": .string(user)],
                "params": [Self.canary: .string(Self.canary)],
            ])
        _ = try await gate.call(Self.canary, "GET", "/v1/types")
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/\(user)").status == 200)

        var kinds: Set<String> = []
        for bytes in try Self.entries(gate) {
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains(Self.canary), "\(text)")
            #expect(!text.contains(Self.canary.prefix(8)), "\(text)")
            #expect(!text.contains(Self.uuid), "\(text)")
            #expect(EntrySchema.version1.violation(in: try TrailEntry(reading: bytes)) == nil)
            kinds.insert(try CanonicalJSON.read(bytes)["kind"]?.stringValue ?? "")
        }
        // The search sees what it should: what was done left its entries.
        #expect(
            kinds.isSuperset(of: [
                "recipient", "device", "address", "device_key", "consent", "permission_prompt", "send",
                "delivery",
                "receipt", "cancel", "unknown_peer", "erasure",
            ]), "\(kinds)")
    }
}
