import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

/// Each act of a person, sent over the wire, and what becomes of consent and preference: the handbook's table a second
/// time, written by hand.
@Suite struct PersonActTests {
    private let gate: GatewayHarness

    init() throws {
        gate = try GatewayHarness()
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// The path below the person.
        var target: String
        var body: JSONObject
        /// What is other afterwards in the consents that stand, and in what was chosen.
        var standing: [String: String] = [:]
        var chosen: [String: String] = [:]
        var why: String?

        init(
            _ name: String, _ target: String, _ body: JSONObject, standing: [String: String] = [:],
            chosen: [String: String] = [:], why: String? = nil
        ) {
            testDescription = name
            self.target = target
            self.body = body
            self.standing = standing
            self.chosen = chosen
            self.why = why
        }

        /// A choice about marketing.
        static func choice(
            _ state: String, _ channel: String? = nil, at place: String? = nil,
            source: String = "in_app_settings", standing: [String: String] = [:],
            chosen: [String: String] = [:], why: String? = nil
        ) -> Row {
            var body: JSONObject = ["state": .string(state), "source": .string(source)]
            if let channel { body["channel"] = .string(channel) }
            if let place { body[channel == "push" ? "device" : "address"] = .string(place) }
            let link = source == "unsubscribe_link" ? "link " : ""
            return Row(
                "\(link)\(state) of \([channel, place].compactMap(\.self).joined(separator: " "))",
                "PUT preferences/marketing", body, standing: standing, chosen: chosen, why: why)
        }
    }

    /// Marketing is agreed to on push, for mailboxes `a0` and `a1` and the number `n0`; mailbox `a2` was never asked.
    static let rows: [Row] = [
        .choice(
            "user_off", "email", at: "a0", source: "unsubscribe_link", standing: ["email a0": "withdrawn"],
            chosen: ["email a0": "user_off"]),
        .choice(
            "user_off", "email", source: "unsubscribe_link",
            standing: ["email": "withdrawn", "email a0": "withdrawn", "email a1": "withdrawn"],
            chosen: ["email": "user_off"]),
        .choice(
            "user_off", "push", source: "unsubscribe_link", standing: ["push": "withdrawn"],
            chosen: ["push": "user_off"]),
        .choice(
            "user_off", "push", at: "d_1", source: "unsubscribe_link", standing: ["push": "withdrawn"],
            chosen: ["push d_1": "user_off"]),
        .choice(
            "user_off", "email", at: "a0", standing: ["email a0": "withdrawn"],
            chosen: ["email a0": "user_off"]),
        .choice(
            "user_off", "sms", at: "n0", standing: ["sms n0": "withdrawn"], chosen: ["sms n0": "user_off"]),
        .choice(
            "user_off", "email",
            standing: ["email": "withdrawn", "email a0": "withdrawn", "email a1": "withdrawn"],
            chosen: ["email": "user_off"]),
        .choice(
            "user_off", "email", at: "a2", standing: ["email a2": "withdrawn"],
            chosen: ["email a2": "user_off"]),
        .choice("user_off", "push", standing: ["push": "withdrawn"], chosen: ["push": "user_off"]),
        .choice("user_off", "push", at: "d_1", chosen: ["push d_1": "user_off"]),
        .choice(
            "default", "email", at: "a0", standing: ["email a0": "withdrawn"],
            chosen: ["email a0": "default"]),
        .choice(
            "default", "email",
            standing: ["email": "withdrawn", "email a0": "withdrawn", "email a1": "withdrawn"]),
        .choice("default", "sms", standing: ["sms": "withdrawn", "sms n0": "withdrawn"]),
        .choice("default", "email", at: "a2", standing: ["email a2": "withdrawn"]),
        .choice("default", "push", standing: ["push": "withdrawn"], chosen: ["push": "default"]),
        .choice("default", "push", at: "d_1", why: "already_so"),
        .choice("user_on", "email", chosen: ["email": "user_on"]),
        .choice("user_on", "email", at: "a0", why: "already_so"),
        .choice("user_on", "push", at: "d_1", chosen: ["push d_1": "user_on"]),
        .choice(
            "user_off",
            standing: [
                "push": "withdrawn", "sms": "withdrawn", "sms n0": "withdrawn", "email": "withdrawn",
                "email a0": "withdrawn", "email a1": "withdrawn",
            ], chosen: ["push": "user_off", "sms": "user_off", "email": "user_off"]),
        Row(
            "withdrawal", "POST consents/a0/withdraw", [:], standing: ["email a0": "withdrawn"],
            chosen: ["email a0": "user_off"]),
        Row(
            "withdrawal dated before the grant", "POST consents/a0/withdraw",
            ["event_time": "2026-11-21T11:00:00Z"], standing: ["email a0": "withdrawn"],
            chosen: ["email a0": "user_off"]),
        Row(
            "withdrawal of push", "POST consents/push/withdraw", ["event_time": "2026-11-21T11:00:00Z"],
            standing: ["push": "withdrawn"], chosen: ["push": "user_off"]),
        Row(
            "STOP", "POST consents/n0/withdraw", ["method": "sms_keyword"],
            standing: ["sms n0": "withdrawn"], chosen: ["sms n0": "user_off"]),
        Row(
            "STOP by e-mail", "POST consents/a0/withdraw", ["method": "email_reply"],
            standing: ["email a0": "withdrawn"], chosen: ["email a0": "user_off"]),
        Row(
            "withdrawal on every channel", "POST consents/a0/withdraw", ["every_channel": true],
            standing: [
                "push": "withdrawn", "sms": "withdrawn", "sms n0": "withdrawn", "email": "withdrawn",
                "email a0": "withdrawn", "email a1": "withdrawn",
            ], chosen: ["push": "user_off", "sms": "user_off", "email": "user_off", "email a0": "user_off"]),
        Row(
            "grant", "POST consents", ["id": "new", "channel": "email", "address": "a2"],
            standing: ["email a2": "given"], chosen: ["email a2": "user_on"]),
        Row("a second grant", "POST consents", ["id": "new", "channel": "email", "address": "a0"]),
        Row(
            "a grant repeated", "POST consents",
            ["id": "a0", "channel": "email", "address": "a0", "event_time": "2026-11-21T12:00:00Z"],
            why: "recorded_before"),
        Row(
            "sale", "POST consents",
            ["id": "new", "channel": "email", "address": "a2", "method": "existing_customer"],
            standing: ["email a2": "given"]),
        Row(
            "refusal", "POST consents",
            ["id": "new", "channel": "email", "address": "a0", "state": "refused"],
            standing: ["email a0": "refused"], chosen: ["email a0": "user_off"]),
        Row(
            "refusal by whoever was never asked", "POST consents",
            ["id": "new", "channel": "email", "address": "a2", "state": "refused"],
            standing: ["email a2": "refused"], chosen: ["email a2": "user_off"]),
        Row(
            "shown", "POST consents", ["id": "new", "channel": "push", "state": "shown"], why: "shown_only"),
    ]

    private func consent(_ members: JSONObject) throws -> JSONObject {
        let isSale = members["method"] == "existing_customer"
        let id = members["channel"] == "sms" ? "sms_marketing" : isSale ? "existing_customer" : "promo"
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == id && $0.key.language == "en" })
        var body: JSONObject = [
            "purpose": "marketing", "event_time": .string(gate.clock.now().rfc3339),
            "method": id == "sms_marketing" ? "written_consent" : "in_app_toggle", "jurisdiction": "DE",
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
        for (name, value) in members { body[name] = value }
        return body
    }

    private func agreeEverywhere() async throws {
        try await gate.register("u_1")
        for (id, kind, value) in [
            ("a0", "email", "a@example.org"), ("a1", "email", "b@example.org"),
            ("a2", "email", "c@example.org"), ("n0", "sms", "+4790000000"),
        ] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(reply.status == 200, "\(reply.json)")
        }
        let grants: [JSONObject] = [
            ["id": "push", "channel": "push"], ["id": "a0", "channel": "email", "address": "a0"],
            ["id": "a1", "channel": "email", "address": "a1"],
            ["id": "n0", "channel": "sms", "address": "n0"],
        ]
        for grant in grants {
            let reply = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", consent(grant))
            try #require(reply.status == 200 && reply["effect"] == nil, "\(reply.json)")
        }
    }

    private func standing() async throws -> [String: String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        return (answer.json["standing"]?.arrayValue ?? []).compactMap(\.objectValue).reduce(into: [:]) {
            let place = [$1["channel"], $1["address"]].compactMap { $0?.stringValue }.joined(separator: " ")
            $0[place] = $1["state"]?.stringValue
        }
    }

    private func chosen() async throws -> [String: String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        return (answer.json["preferences"]?.arrayValue ?? []).compactMap(\.objectValue)
            .filter { $0["scope"] == "marketing" }.reduce(into: [:]) {
                let place = [$1["channel"], $1["destination"]].compactMap { $0?.stringValue }
                    .joined(separator: " ")
                $0[place] = $1["chosen"]?.stringValue
            }
    }

    /// What an offer comes to at each place, the reason or `allowed`.
    private func verdicts(on channel: String) async throws -> [String: String] {
        gate.clock.advance(seconds: 8 * 86_400)
        var send = try await gate.promo("p-\(gate.clock.now().milliseconds)", to: "u_1")
        send["channel"] = .string(channel)
        let reply = try await gate.call("marketing", "POST", "/v1/sends", send)
        return (reply.json["deliveries"]?.arrayValue ?? []).compactMap(\.objectValue).reduce(into: [:]) {
            $0[$1["destination"]?.stringValue ?? ""] = $1["reason"]?.stringValue
        }
    }

    @Test(arguments: rows)
    func `an act changes what its line of the table says, and nothing else`(row: Row) async throws {
        try await agreeEverywhere()
        let before = (standing: try await standing(), chosen: try await chosen())
        try #require(
            before.standing == [
                "push": "given", "email a0": "given", "email a1": "given", "sms n0": "given",
            ])
        gate.clock.advance(seconds: 60)
        let parts = row.target.split(separator: " ").map(String.init)
        let reply = try await gate.call(
            "product", parts[0], "/v1/recipients/u_1/\(parts[1])",
            parts[1] == "consents" ? try consent(row.body) : row.body)
        try #require(reply.status == 200, "\(reply.json)")
        #expect(reply["effect"] == row.why.map { _ in "none" }, "\(reply.json)")
        #expect(reply["why"] == row.why, "\(reply.json)")
        let expected = (
            standing: before.standing.merging(row.standing) { $1 },
            chosen: before.chosen.merging(row.chosen) { $1 }
        )
        #expect(try await standing() == expected.standing)
        #expect(try await chosen() == expected.chosen)

        // Switching on everywhere brings back no consent that ended: what goes out has one that stands.
        gate.clock.advance(seconds: 60)
        for (place, _) in before.chosen {
            let words = place.split(separator: " ").map(String.init)
            var body: JSONObject = [
                "state": "user_on", "source": "in_app_settings", "channel": .string(words[0]),
            ]
            if words.count > 1 { body[words[0] == "push" ? "device" : "address"] = .string(words[1]) }
            let on = try await gate.call("product", "PUT", "/v1/recipients/u_1/preferences/marketing", body)
            try #require(on.status == 200, "\(on.json)")
        }
        #expect(try await standing() == expected.standing)
        for (channel, places) in [("push", ["d_1"]), ("email", ["a0", "a1", "a2"]), ("sms", ["n0"])] {
            let verdicts = try await verdicts(on: channel)
            for place in places {
                let scope = channel == "push" ? "push" : "\(channel) \(place)"
                let isGiven = expected.standing[scope] == "given"
                #expect(verdicts[place] == (isGiven ? "allowed" : "no_gdpr_consent"), "\(scope)")
            }
        }
    }

    @Test func `a withdrawal of an older record leaves the newer one, and says so`() async throws {
        try await agreeEverywhere()
        gate.clock.advance(seconds: 60)
        let newer = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents", consent(["id": "push-2", "channel": "push"]))
        try #require(newer.status == 200 && newer["effect"] == nil, "\(newer.json)")
        gate.clock.advance(seconds: 60)
        let old = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/push/withdraw",
            ["event_time": "2026-11-21T11:00:00Z"])
        #expect(old["effect"] == "none" && old["why"] == "newer_word", "\(old.json)")
        #expect(try await standing()["push"] == "given")
        // Without a time it is said now, and ends what stands.
        let now = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/push/withdraw", [:])
        #expect(now.status == 200 && now["effect"] == nil, "\(now.json)")
        #expect(try await standing()["push"] == "withdrawn")
        let again = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/push-2/withdraw", [:])
        #expect(again["effect"] == "none" && again["why"] == "already_so", "\(again.json)")
    }

    @Test func `a withdrawal dated before its grant is no state before the grant`() async throws {
        try await agreeEverywhere()
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/push/withdraw",
            ["event_time": "2026-11-21T11:00:00Z"])
        try #require(reply.status == 200, "\(reply.json)")
        let early = try await gate.call(
            "product", "GET", "/v1/recipients/u_1/consents?as_of=2026-11-21T11:30:00Z")
        #expect(early.json["standing"] == [], "\(early.json)")
        // The record keeps the time it was reported with.
        let all = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        let last = all.json["records"]?.arrayValue?.last?.objectValue
        #expect(last?["event_time"] == "2026-11-21T11:00:00Z" && last?["withdraws"] == "push", "\(all.json)")
    }

    /// What ended a consent ends also one that was given before it and is reported after it.
    @Test(arguments: [
        ("user_off", "a2", "in_app_settings"), ("default", "a2", "in_app_settings"),
        ("user_off", "a2", "unsubscribe_link"), ("default", nil, "in_app_settings"),
        ("user_off", nil, "in_app_settings"),
    ])
    func `a grant that is reported late does not outlive the act after it`(
        state: String, address: String?, source: String
    ) async throws {
        try await agreeEverywhere()
        gate.clock.advance(seconds: 60)
        var choice: JSONObject = [
            "state": .string(state), "source": .string(source), "channel": "email",
        ]
        if let address { choice["address"] = .string(address) }
        let said = try await gate.call("product", "PUT", "/v1/recipients/u_1/preferences/marketing", choice)
        try #require(said.status == 200, "\(said.json)")
        gate.clock.advance(seconds: 60)
        let late = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            consent([
                "id": "late", "channel": "email", "address": "a2", "event_time": "2026-11-21T12:00:30Z",
            ]))
        #expect(late.status == 200, "\(late.json)")
        #expect(try await standing()["email a2"] == "withdrawn")
        #expect(try await chosen()["email a2"] != "user_on")
    }

    @Test func `an unsubscribe link in a social e-mail ends the consent to social e-mails`() async throws {
        try await gate.register("u_1")
        try #require(
            try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/a0",
                [
                    "kind": "email", "value": "a@example.org",
                    "verified_at": .string(gate.clock.now().rfc3339),
                ]
            ).status == 200)
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "social" && $0.key.language == "en" })
        let grant = try consent([
            "id": "s", "purpose": "social", "channel": "email", "address": "a0",
            "notice": [
                "id": "social", "version": .string(notice.key.version), "language": "en",
                "sha256": .string(notice.sha256),
            ],
        ])
        try #require(
            try await gate.call("product", "POST", "/v1/recipients/u_1/consents", grant).status == 200)
        for source in ["in_app_settings", "unsubscribe_link"] {
            gate.clock.advance(seconds: 1)
            let off = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/preferences/social",
                ["state": "user_off", "source": .string(source), "channel": "email", "address": "a0"])
            try #require(off.status == 200, "\(off.json)")
            let expected = source == "unsubscribe_link" ? "withdrawn" : "given"
            #expect(try await standing()["email a0"] == expected, "\(source)")
        }
    }

    @Test func `the handbook has the table the code acts by`() throws {
        let text = try String(
            contentsOfFile: Repository.root + "/Sources/sendgate/Sendgate.docc/ConsentAndPreferences.md",
            encoding: .utf8)
        let found = text.split(separator: "\n").drop { $0 != "## The table" }.map(String.init)
            .prefix { $0 != "## When it was said" }.filter { $0.hasPrefix("| `") }
        let expected = PersonAct.allCases.flatMap { act in
            act.levels.map { level in
                let (marketing, other) = (
                    act.effect(at: level, on: .marketing), act.effect(at: level, on: .social)
                )
                let preference = marketing.preference.map { "`\($0.rawValue)`" } ?? "unchanged"
                let cells = [
                    "`\(act.rawValue)`", level.rawValue, marketing.consent.rawValue, other.consent.rawValue,
                    preference,
                ]
                return "| \(cells.joined(separator: " | ")) |"
            }
        }
        #expect(Array(found) == expected)
    }
}
