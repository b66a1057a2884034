import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import Testing

/// What the gateway makes of where a person's devices were seen, and of a send whose time is still to come.
@Suite struct PlaceAndTimeTests {
    private static let day: Int64 = 86_400

    private func mail(_ gate: GatewayHarness, _ id: String) async throws -> GatewayHarness.Reply {
        var promo = try await gate.promo(id, to: "u_1")
        promo["channel"] = "email"
        return try await gate.call("marketing", "POST", "/v1/sends", promo)
    }

    private func phone(_ gate: GatewayHarness, in region: String, placedDaysAgo age: Int64) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            [
                "platform": "android", "app": "no.getdrop.app", "token": "00aa", "region": .string(region),
                "region_source": "device",
                "region_at": .string(gate.clock.now().advanced(bySeconds: -age * Self.day).rfc3339),
                "time_zone": "America/New_York", "os_permission": "granted",
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    @Test
    func `a device in use whose place is old news makes the place unknown; one out of use says nothing`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", region: "US", zone: "America/New_York", device: nil)
        let address = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/e_1",
            [
                "kind": "email", "value": "ada@example.com",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(address.status == 200, "\(address.json)")
        // CAN-SPAM lets one write until somebody objects; the Union does not.
        #expect(try await mail(gate, "at_home").status == 202)
        gate.clock.advance(seconds: 8 * Self.day)
        try await phone(gate, in: "DE", placedDaysAgo: 0)
        #expect(try await mail(gate, "in_germany")["reason"] == "no_gdpr_consent")
        try await phone(gate, in: "US", placedDaysAgo: 90)
        #expect(try await mail(gate, "seen_in_time").status == 202)
        gate.clock.advance(seconds: 8 * Self.day)
        try await phone(gate, in: "US", placedDaysAgo: 91)
        let unknown = try await mail(gate, "seen_too_long_ago")
        #expect(
            unknown["reason"] == "no_gdpr_consent" && unknown["detail"] == "region_unknown",
            "\(unknown.json)")
        gate.clock.advance(seconds: 90 * Self.day)
        #expect(try await mail(gate, "still_in_use")["detail"] == "region_unknown")
        gate.clock.advance(seconds: 1)
        #expect(try await mail(gate, "out_of_use").status == 202)
    }

    @Test func `until when a send waits is told as it stands now`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "20:00"])
        let send = try await gate.example("order.shipped", "o_1", to: "u_1", as: "payments")
        try #require(try await gate.call("payments", "POST", "/v1/sends", send).status == 202)
        func told() async throws -> String {
            let reply = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
            return try #require(reply.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue)
        }
        let first = "It came in quiet hours and was kept until they end."
        #expect(try await told() == "\(first) It waits for `d_1` until 2026-11-21 19:00 UTC.")
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "22:00"])
        #expect(try await told() == "\(first) It waits for `d_1` until 2026-11-21 21:00 UTC.")
    }

    @Test func `quiet hours at the time a send is due are known when it arrives`() async throws {
        func promised(_ end: String) async throws -> GatewayHarness.Reply {
            let gate = try GatewayHarness()
            try await gate.register(
                "u_1", zone: "Europe/Oslo", quiet: ["start": "06:00", "end": .string(end)])
            let notice = try #require(
                gate.policy.bundle.notices.values.filter {
                    $0.key.id == "programme" && $0.key.language == "en"
                }
                .max { $0.key.version < $1.key.version })
            let consent = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents",
                [
                    "id": "c_1", "purpose": "programme", "channel": "push", "state": "given",
                    "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                    "jurisdiction": "NO",
                    "notice": [
                        "id": .string(notice.key.id), "version": .string(notice.key.version),
                        "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                    ],
                ])
            try #require(consent.status == 200, "\(consent.json)")
            return try await gate.call(
                "help", "POST", "/v1/sends",
                try await gate.example("briefing.daily", "b_1", to: "u_1", as: "help"))
        }
        func notBefore(_ reply: GatewayHarness.Reply) throws -> String? {
            let deliveries = try #require(reply.json["deliveries"]?.arrayValue)
            return deliveries.first?.objectValue?["not_before"]?.stringValue
        }
        let early = try await promised("07:59")
        #expect(early["detail"] == "send_time", "\(early.json)")
        #expect(try notBefore(early) == "2026-11-22T07:00:00Z", "\(early.json)")
        let late = try await promised("11:30")
        #expect(late["reason"] == "quiet_hours_deferred" && late["detail"] == nil, "\(late.json)")
        #expect(try notBefore(late) == "2026-11-22T10:30:00Z", "\(late.json)")
        let never = try await promised("12:30")
        #expect(never["reason"] == "expires_before_due", "\(never.json)")
    }
}
