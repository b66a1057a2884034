import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing

/// One phone and one mailbox are one address in every spelling, wherever one comes in.
@Suite struct AddressSpellingTests {
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    @discardableResult
    private func address(
        _ id: String, _ kind: String, _ value: String, of user: String = "u_1", expecting status: Int = 200
    ) async throws -> GatewayHarness.Reply {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(reply.status == status, "\(value): \(reply.json)")
        return reply
    }

    private func agree(_ id: String, on channel: String, at place: String, of user: String = "u_1")
        async throws
    {
        let shown = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/consents",
            [
                "id": .string(id), "purpose": "marketing", "channel": .string(channel),
                "address": .string(place), "method": "web_form", "jurisdiction": "DE",
                "event_time": .string(gate.clock.now().rfc3339),
                "notice": [
                    "id": "promo", "version": .string(shown.key.version), "language": "en",
                    "sha256": .string(shown.sha256),
                ],
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    private func offer(_ id: String, on channel: String, to user: String = "u_1") async throws
        -> GatewayHarness.Reply
    {
        var send = try await gate.promo(id, to: user)
        send["channel"] = .string(channel)
        return try await gate.call("marketing", "POST", "/v1/sends", send)
    }

    private func reply(_ text: String, _ id: String, from: String, on channel: String = "sms") async throws
        -> GatewayHarness.Reply
    {
        try await gate.call(
            "replies", "POST", "/v1/replies",
            [
                "id": .string(id), "channel": .string(channel), "from": .string(from), "text": .string(text),
                "received_at": .string(gate.clock.now().rfc3339),
            ])
    }

    private func values(of user: String = "u_1") async throws -> [String] {
        let person = try await gate.call("product", "GET", "/v1/recipients/\(user)")
        return (person.json["addresses"]?.arrayValue ?? []).compactMap { $0["value"]?.stringValue }
    }

    /// What the trail alone implies is what the store has.
    private func expectFoldable() throws {
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        let (fold, differences) = try EvidenceFoldTests.fold(stored.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        for subject in fold.people.keys {
            #expect(fold.people[subject] == (try gate.store.read { try $0.state(of: subject) })?.evidence)
        }
    }

    @Test(arguments: [
        ("+4407700900359", "+447700900359", "+447700900359"),
        ("+447700900359", "+44 (0)7700 900359", "+447700900359"),
        ("+5215512340562", "+525512340562", "+525512340562"),
        ("+525512340562", "+5215512340562", "+525512340562"),
        ("+47 900 00 017", "4790000017", "+4790000017"),
        ("+4790000017", "tel:+47-900-00-017", "+4790000017"),
        ("+4790000017", "0047 ９００ ００ ０１７", "+4790000017"),
        ("+4790000017", "whatsapp:+4790000017", "+4790000017"),
        ("+4790000017", "sip:+4790000017@host.example;user=phone", "+4790000017"),
        ("+4790000017", "tel:90000017;phone-context=+47", "+4790000017"),
        ("+4790000017", "smsto:+4790000017", "+4790000017"),
        ("+4790000017", "\"Ola\" <+4790000017>", "+4790000017"),
        ("+4790000017", "+47_90000017", "+4790000017"),
    ])
    func `STOP from a number ends what was agreed to at it in another spelling`(
        registered: String, sender: String, canonical: String
    ) async throws {
        try await gate.register("u_1")
        try await address("n", "sms", registered)
        #expect(try await values() == [canonical])
        try await agree("m", on: "sms", at: "n")
        #expect(try await offer("x1", on: "sms").status == 202)
        let answer = try await reply("STOP", "r1", from: sender)
        #expect(answer.status == 200 && answer["effect"] == "withdrawn", "\(answer.json)")
        let refused = try await offer("x2", on: "sms")
        #expect(refused.status == 403 && refused["detail"] == "withdrawn", "\(refused.json)")
        #expect(try await gate.claim().isEmpty)
        // The carrier names the sender in another spelling the next time: it is the same reply.
        let again = try await reply("STOP", "r1", from: canonical)
        #expect(again.status == 200 && again.json["replayed"] == true, "\(again.json)")
        try expectFoldable()
    }

    @Test(arguments: [
        ("Ann@Bücher.example", "ann@xn--bcher-kva.example"), ("ann@x.org", "Ann Lee <ANN@X.ORG>"),
        ("\"ann\"@x.org", "ann@x.org"), ("ann@x.org.", "ann＠x.org"),
        ("ann@xn--bcher-kva.example", "ann@bu\u{308}cher.example."), ("ann@x.org", "Grp: ann@x.org;"),
        ("ann@x.org", "<mailto:ann@x.org>"), ("ann@x.org", "mailto:ann@x.org?subject=x"),
    ])
    func `a no by mail ends what was agreed to at the mailbox in another spelling`(
        registered: String, sender: String
    ) async throws {
        try await gate.register("u_1")
        try await address("e", "email", registered)
        try await agree("m", on: "email", at: "e")
        #expect(try await offer("x1", on: "email").status == 202)
        #expect(try await reply("Unsubscribe", "r1", from: sender, on: "email")["effect"] == "withdrawn")
        #expect(try await offer("x2", on: "email")["detail"] == "withdrawn")
        try expectFoldable()
    }

    @Test func `a number is the same one under another name, in another account, and when it comes back`()
        async throws
    {
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        try await address("n", "sms", "+4407700900359")
        let twice = try await address("o", "sms", "+447700900359", expecting: 409)
        #expect(twice["detail"]?.contains("`n`") == true, "\(twice.json)")
        try await address("n", "sms", "+44 7700 900359")
        try await agree("m1", on: "sms", at: "n")
        try await address("p", "sms", "+44 0 7700 900359", of: "u_2")
        try await agree("m2", on: "sms", at: "p", of: "u_2")
        #expect(try await reply("STOP", "r1", from: "447700900359")["effect"] == "withdrawn")
        for user in ["u_1", "u_2"] {
            #expect(try await offer("x-\(user)", on: "sms", to: user)["detail"] == "withdrawn", "\(user)")
        }
        // What the number took back holds for who registers it later, however it is written.
        gate.clock.advance(seconds: 60)
        try await gate.register("u_3")
        try await address("q", "sms", "tel:+44(0)7700900359", of: "u_3")
        let standing = try await gate.call("product", "GET", "/v1/recipients/u_3/consents")
        #expect("\(standing.json)".contains("withdrawn"), "\(standing.json)")
        try expectFoldable()
    }

    @Test(arguments: [
        "Drop", "60606", "07700900359", "", "+999123", "signal:+447700900359",
        "<+447700900359>, <+4790000017>", "+4790000017 or +4790000018", "\u{1F4DE}",
    ])
    func `a reply is never refused for its sender, and nobody's sender has no effect`(sender: String)
        async throws
    {
        try await gate.register("u_1")
        try await address("n", "sms", "+447700900359")
        try await agree("m", on: "sms", at: "n")
        let answer = try await reply("STOP", "r1", from: sender)
        #expect(answer.status == 200 && answer["effect"] == "none", "\(answer.json)")
        #expect(answer["why"] == "not_an_address" && answer.json["confirmation"] == nil, "\(answer.json)")
        let again = try await reply("STOP", "r1", from: sender)
        #expect(again["why"] == "not_an_address" && again.json["replayed"] == true, "\(again.json)")
        #expect(try await offer("x1", on: "sms").status == 202)
        #expect(try gate.entries("reply").count == 1)
    }

    @Test(arguments: [
        ("sms", "+999123456", "country code"), ("sms", "+47123456781234567", "15 digits"),
        ("sms", "+340612345678", "`+34`"), ("sms", "4790000000", "`+`"), ("sms", "nobody", "signs"),
        ("sms", "whatsapp:+4790000017", "signs"), ("sms", "\"Ola\" <+4790000017>", "signs"),
        ("email", "Grp: ann@x.org;", "nothing beside it"),
        ("email", "<mailto:ann@x.org>", "nothing beside it"),
        ("email", "Ann <ann@x.org>", "nothing beside it"), ("email", "josé@x.org", "ASCII"),
    ])
    func `an address that cannot be is refused at its member, with what to do`(
        kind: String, value: String, word: String
    ) async throws {
        try await gate.register("u_1")
        let refused = try await address("n", kind, value, expecting: 422)
        let violation = try #require(refused.json["violations"]?.arrayValue?.first, "\(refused.json)")
        #expect(violation["pointer"]?.stringValue == "/value", "\(refused.json)")
        #expect("\(refused.json)".contains(word), "\(refused.json)")
        #expect(try await values().isEmpty)
    }

    @Test func `where a number belongs is told of its canonical form`() async throws {
        try await gate.register("u_1")
        try await address("n", "sms", "+1 1 (212) 555-0100")
        let entry = try #require(try gate.entries("address").first)
        #expect(entry["number_prefix"]?.stringValue == "+1212", "\(entry)")
    }
}
