import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import Testing

/// A person who is quitting gambling is sold nothing, and the refusal does not show it.
@Suite struct WithheldTests {
    @Test func `whoever is in the programme gets no offer until they leave it`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        func offer(_ id: String) async throws -> GatewayHarness.Reply {
            try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo(id, to: "u_1"))
        }
        #expect(try await offer("p_1").status == 202)
        gate.clock.advance(seconds: 8 * 86_400)

        try await join(gate)
        let refused = try await offer("p_2")
        #expect(refused.status == 403 && refused["reason"] == "user_preference", "\(refused.json)")
        #expect(refused["detail"] == "account_off" && refused["who_can_fix"] == "nobody", "\(refused.json)")
        // What the producer reads is true, and the same for a person who switched it off.
        #expect(refused["title"] == "This is switched off for the recipient", "\(refused.json)")
        #expect(!refused.json.description.contains("programme"), "\(refused.json)")
        try await expectOwnWords(gate)

        gate.clock.advance(seconds: 60)
        let left = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/c_programme/withdraw", [:])
        try #require(left.status < 300, "\(left.json)")
        #expect(try await offer("p_3").status == 202)
    }

    @Test func `the programme ends with the consent to it`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        try await join(gate, until: gate.clock.now().advanced(bySeconds: 3_600))
        func offer(_ id: String) async throws -> GatewayHarness.Reply {
            try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo(id, to: "u_1"))
        }
        gate.clock.advance(seconds: 3_599)
        #expect(try await offer("p_1")["detail"] == "account_off")
        gate.clock.advance(seconds: 2)
        #expect(try await offer("p_2").status == 202)
    }

    private func join(_ gate: GatewayHarness, until end: Instant? = nil) async throws {
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "programme" && $0.key.language == "bs" })
        var body: JSONObject = [
            "id": "c_programme", "purpose": "programme", "channel": "push", "state": "given",
            "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
            "jurisdiction": "DE",
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
        if let end { body["expires_at"] = .string(end.rfc3339) }
        let joined = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", body)
        try #require(joined.status == 200, "\(joined.json)")
    }

    /// The person's own question, and the one of a caller that may read all that is held of them: no switch of theirs stopped it.
    private func expectOwnWords(_ gate: GatewayHarness) async throws {
        let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
        let newest = told.json["decisions"]?.arrayValue?.first
        let sentence = newest?["explanation"]?.stringValue ?? ""
        #expect(sentence.contains("takes part in a programme"), "\(told.json)")
        #expect(sentence.contains("switched nothing off"), "\(sentence)")
        let preferences = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        let row = preferences.json["preferences"]?.arrayValue?.first { row in
            let scope: [JSONValue?] = [row["scope"], row["channel"], row["destination"]]
            return scope == [.string("marketing"), .string("push"), nil]
        }
        #expect(row?["effective"]?.stringValue == "off", "\(preferences.json)")
        #expect(row?["why"]?.stringValue == "withheld", "\(preferences.json)")
        #expect(row?["how_to_fix"] == nil, "\(preferences.json)")
    }
}
