import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

/// A time that a caller states of something that happened: no later than now, to the millisecond, and what is dated
/// later leaves nothing.
@Suite struct StatedTimeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var method = "POST"
        var target: String
        var body: @Sendable (_ gate: GatewayHarness, _ send: String, _ time: JSONValue) -> JSONObject
    }

    private static let person = "/v1/recipients/u_1"

    /// Every body with a time of the past: `expires_at` of a consent is the only one that looks ahead.
    static let rows = [
        Row(testDescription: "event_time of a consent", target: person + "/consents") { gate, _, time in
            let notice = gate.policy.bundle.notices.values.first {
                $0.key.id == "promo" && $0.key.language == "en"
            }
            return [
                "id": "c2", "purpose": "marketing", "channel": "push", "state": "given", "event_time": time,
                "method": "in_app_toggle", "jurisdiction": "DE",
                "notice": [
                    "id": "promo", "version": .string(notice?.key.version ?? ""), "language": "en",
                    "sha256": .string(notice?.sha256 ?? ""),
                ],
            ]
        },
        Row(testDescription: "shown_at of a prompt", target: person + "/permission-prompts") { _, _, time in
            ["device": "d_1", "shown_at": time]
        },
        Row(testDescription: "at of a receipt", target: "/v1/receipts") { _, send, time in
            ["send": .string(send), "destination": "d_1", "event": "user_observed", "at": time]
        },
        Row(testDescription: "region_at of a person", method: "PUT", target: person) { _, _, time in
            [
                "region": "DE", "region_source": "kyc", "region_at": time, "locale": "en",
                "time_zone": "Europe/Berlin", "age": "adult", "privacy": "generic", "push_enabled": true,
            ]
        },
        Row(testDescription: "region_at of a device", method: "PUT", target: person + "/devices/d_1") {
            _, _, time in
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-u_1-d_1")),
                "region": "DE",
                "region_at": time, "time_zone": "Europe/Berlin", "os_permission": "granted",
                "critical_alerts": true,
            ]
        },
        Row(testDescription: "verified_at of an address", method: "PUT", target: person + "/addresses/a_1") {
            _, _, time in ["kind": "sms", "value": "+4790000000", "verified_at": time]
        },
    ]

    @Test(arguments: rows) func `nothing is said to have happened later than now`(_ row: Row) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let login = try await gate.example("transaction.failed", "t", to: "u_1", as: "payments")
        let send = try #require(try await gate.call("payments", "POST", "/v1/sends", login)["send_id"])
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        try await gate.register("u_1", osPermission: "not_determined")
        gate.clock.advance(seconds: 60)
        func ask(_ milliseconds: Int64) async throws -> GatewayHarness.Reply {
            let time = gate.clock.now().advanced(byMilliseconds: milliseconds).rfc3339
            return try await gate.call("product", row.method, row.target, row.body(gate, send, .string(time)))
        }
        let entryCount = try gate.entries().count
        for milliseconds: Int64 in [86_400_000, 1] {
            let early = try await ask(milliseconds)
            #expect(
                (400..<500).contains(early.status) && early["type"] == "urn:sendgate:problem:event_in_future",
                "\(early.json)")
            #expect(try gate.entries().count == entryCount)
        }
        #expect(try await ask(0).status == 200)
        #expect(try gate.entries().count > entryCount)
    }

    enum No: String, CaseIterable { case withdrawal, objection, refusal }

    /// The clock of a phone may be seconds or hours ahead, and a year that is none is a no all the same.
    @Test(arguments: No.allCases, [1, 10_800_000, 250_000_000_000_000])
    func `a no from a clock that is ahead counts from now, and what was stated is kept`(
        _ no: No, _ ahead: Int64
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        gate.clock.advance(seconds: 60)
        let stated = gate.clock.now().advanced(byMilliseconds: ahead)
        let time: JSONValue = .string(stated.rfc3339)
        func say() async throws -> GatewayHarness.Reply {
            switch no {
            case .withdrawal:
                return try await gate.call(
                    "product", "POST", Self.person + "/consents/c1/withdraw", ["event_time": time])
            case .objection:
                return try await gate.call(
                    "product", "POST", Self.person + "/consents/c1/withdraw",
                    ["event_time": time, "every_channel": true])
            case .refusal:
                var body = Self.rows[0].body(gate, "", time)
                body["state"] = "refused"
                return try await gate.call("product", "POST", Self.person + "/consents", body)
            }
        }
        let answer = try await say()
        #expect(answer.status == 200 && answer["effect"] == nil, "\(answer.json)")
        let refused = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p", to: "u_1"))
        #expect(refused.status == 403, "\(refused.json)")
        let entry = try #require(
            try gate.entries("consent").first { $0["stated_time"]?.integerValue == stated.milliseconds })
        #expect(entry["event_time"]?.integerValue == gate.clock.now().milliseconds, "\(entry)")
        let ledger = try await gate.call("product", "GET", Self.person + "/consents")
        #expect("\(ledger.json)".contains("stated_time"))
        // Reported again after a lost answer, a refusal is the same record.
        if no == .refusal {
            gate.clock.advance(seconds: 1)
            let again = try await say()
            #expect(again["why"] == "recorded_before", "\(again.json)")
        }
        // A yes of the moment after counts: nothing of the future stands against it.
        gate.clock.advance(seconds: 1)
        try await gate.consent("u_1", id: "c9")
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p2", to: "u_1"))
        #expect(sent.status == 202, "\(sent.json)")
    }
}
