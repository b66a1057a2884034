import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import SQLiteStore
import Testing

@testable import GatewayPipeline

/// One-time codes as text messages: the second way of a code, asked for as a send of its own.
@Suite struct CodeTextTests {
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    private func registerWithNumber(region: String = "DE", number: String = "+4915112345678") async throws {
        try await gate.register("u_1", region: region)
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/n",
            ["kind": "sms", "value": .string(number), "verified_at": .string(gate.clock.now().rfc3339)])
        try #require(reply.status == 200, "\(reply.json)")
    }

    private func agreeToTexts() async throws {
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "sms_service" && $0.key.language == "en" })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c_1", "purpose": "security", "channel": "sms", "address": "n", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "express_consent",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(reply.status == 200, "\(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    private static let code = "48392017"

    private func code(
        _ type: String, _ id: String, on channel: String = "sms", replacing push: String? = nil
    ) async throws -> GatewayHarness.Reply {
        var body = try await gate.example(type, id, to: "u_1", as: "security")
        var params = body["params"]?.objectValue ?? JSONObject()
        params["code"] = .string(Self.code)
        if type == "security.payment_code" {
            params["amount"] = ["minor": 129_900, "currency": "NOK"]
            params["payee_name"] = "Kaffebrenneriet"
        }
        body["params"] = .object(params)
        body["channel"] = .string(channel)
        if let push { body["fallback_for"] = .string(push) }
        return try await gate.call("security", "POST", "/v1/sends", body)
    }

    @Test(arguments: ["2fa_code", "security.payment_code"])
    func `a code that no key could open goes as a text, as a send of its own`(type: String) async throws {
        try await registerWithNumber()
        try await agreeToTexts()
        // Given a phone without a key, a push of the code is refused, and nothing else is tried.
        let push = try await code(type, "p1", on: "push")
        #expect(push.status == 403 && push["reason"] == "no_device_key", "\(push.json)")
        #expect(try await gate.claim(.security).isEmpty)
        // When its sender asks for a text in its place.
        let text = try await code(type, "t1", replacing: push["send_id"])
        // Then one goes, with the code, and for a payment with amount and payee, in one segment and without a link.
        #expect(text.status == 202 && text["reason"] == "allowed", "\(text.json)")
        let deliveries = try await gate.claim(.security)
        let body = try #require(
            try deliveries.first.map { try CanonicalJSON.read($0.body).objectValue ?? JSONObject() })
        let said = try #require(body["text"]?.stringValue)
        #expect(deliveries.count == 1 && said.hasPrefix("Drop: ") && said.contains(Self.code), "\(said)")
        #expect(
            body["segments"]?.integerValue == 1 && !said.contains("://") && !said.contains("@"), "\(said)")
        if type == "security.payment_code" {
            #expect(said.contains("1,299.00") && said.contains("Kaffebrenneriet"), "\(said)")
        }
        // And no entry has it.
        let entries = try gate.store.read { try $0.entries(from: 0, limit: Int(try $0.entryCount())) }
        #expect(entries.count > 3)
        for entry in entries {
            let bytes = String(decoding: entry.bytes, as: UTF8.self)
            #expect(!bytes.contains(Self.code) && !bytes.contains("Kaffebrenneriet"))
        }
    }

    @Test func `a choice to hide everything on a lock screen empties no text that brings a code`()
        async throws
    {
        try await registerWithNumber()
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1",
            [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult", "privacy": "hidden", "push_enabled": true,
            ])
        try #require(reply.status == 200, "\(reply.json)")
        let text = try await code("2fa_code", "t1")
        #expect(text.status == 202, "\(text.json)")
        let delivery = try #require(try await gate.claim(.security).first)
        #expect(String(decoding: delivery.body, as: UTF8.self).contains(Self.code))
    }

    @Test func `a code in place of a push needs the number's own consent`() async throws {
        try await registerWithNumber()
        let push = try await code("2fa_code", "p1", on: "push")
        let text = try await code("2fa_code", "t1", replacing: push["send_id"])
        #expect(text["reason"] == "no_sms_consent" && text["detail"] == "never_asked", "\(text.json)")
    }

    @Test(arguments: ["2fa_code", "security.payment_code"])
    func `no code goes as a text to an account whose regulator forbids it`(type: String) async throws {
        try await registerWithNumber(region: "AE", number: "+971501234567")
        try await agreeToTexts()
        let push = try await code(type, "p1", on: "push")
        let text = try await code(type, "t1", replacing: push["send_id"])
        #expect(text.status == 403, "\(text.json)")
        #expect(text["reason"] == "channel_not_allowed" && text["detail"] == "region", "\(text.json)")
        #expect(text["who_can_fix"] == "producer")
    }

    @Test func `no code goes by e-mail`() async throws {
        try await registerWithNumber()
        let mail = try await code("2fa_code", "m1", on: "email")
        #expect(mail["reason"] == "channel_not_allowed" && mail["detail"] == nil, "\(mail.json)")
    }
}
