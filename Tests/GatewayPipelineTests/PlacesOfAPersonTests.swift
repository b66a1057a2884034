import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import GatewayPipeline
import Testing

/// What the gateway takes for the places of a person: an account or a telephone without a region, and a text's number.
@Suite struct PlacesOfAPersonTests {
    private func number(_ gate: GatewayHarness, _ value: String) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/n_1",
            [
                "kind": "sms", "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    private func text(_ gate: GatewayHarness, _ id: String) async throws -> GatewayHarness.Reply {
        var send = try await gate.example("card.blocked", id, to: "u_1", as: "security")
        send["channel"] = "sms"
        return try await gate.call("security", "POST", "/v1/sends", send)
    }

    @Test func `a telephone without a region keeps no mandatory text from a European account`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", region: "GR", device: nil)
        try await number(gate, "+306912345678")
        let device = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            ["platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted"])
        try #require(device.status == 200, "\(device.json)")
        let reply = try await text(gate, "t_1")
        #expect(reply.status == 202, "\(reply.json)")
    }

    @Test func `an account without a region is in no place that is known`() async throws {
        let gate = try GatewayHarness()
        let account = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1",
            [
                "locale": "en", "time_zone": "Europe/Berlin", "age": "adult", "privacy": "generic",
                "push_enabled": true,
            ])
        try #require(account.status == 200, "\(account.json)")
        _ = try await gate.remit("r")
        let entries = try gate.entries().map { String(decoding: $0.bytes, as: UTF8.self) }
        let decided = try #require(entries.first { $0.contains(#""account_region":{"#) }, "\(entries)")
        #expect(decided.contains(#""ZZ""#), "\(decided)")
    }

    @Test func `a number of the United States is asked for its own consent, wherever its owner lives`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", region: "GR", device: nil)
        try await number(gate, "+12025550123")
        let reply = try await text(gate, "t_1")
        #expect(reply.status == 403 && reply["reason"] == "no_sms_consent", "\(reply.json)")
        #expect(reply["detail"] == "never_asked" && reply["who_can_fix"] == "recipient", "\(reply.json)")
        // An e-mail does not ring there.
        var mail = try await gate.example("card.blocked", "m_1", to: "u_1", as: "security")
        mail["channel"] = "email"
        let address = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/e_1",
            [
                "kind": "email", "value": "ada@example.com",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(address.status == 200, "\(address.json)")
        #expect(try await gate.call("security", "POST", "/v1/sends", mail).status == 202)
    }

    @Test func `a consent to account information ends after 180 days, and a longer one is refused`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first {
                $0.key.id == "account_information" && $0.key.language == "en"
            })
        func consent(_ id: String, expiresInDays days: Int64?) async throws -> GatewayHarness.Reply {
            var body: JSONObject = [
                "id": .string(id), "purpose": "account_information", "channel": "push", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ]
            if let days {
                body["expires_at"] = .string(gate.clock.now().advanced(bySeconds: days * 86_400).rfc3339)
            }
            return try await gate.call("product", "POST", "/v1/recipients/u_1/consents", body)
        }
        let longer = try await consent("c_0", expiresInDays: 181)
        #expect(longer.status == 422, "\(longer.json)")
        let first = try await consent("c_1", expiresInDays: nil)
        try #require(first.status == 200, "\(first.json)")
        let listed = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        let ends = gate.clock.now().advanced(bySeconds: 180 * 86_400).rfc3339
        #expect(
            String(decoding: CanonicalJSON.write(.object(listed.json)), as: UTF8.self).contains(ends),
            "\(listed.json)")
        // The same record again, after a lost answer, is the same.
        #expect(try await consent("c_1", expiresInDays: nil).status == 200)
    }
}
