import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing

/// Consent, preference and permission as the socket tells them.
@Suite struct ConsentTests {
    private func records(_ gate: GatewayHarness, _ user: String, _ query: String = "") async throws
        -> [JSONObject]
    {
        let answer = try await gate.call("auditor", "GET", "/v1/recipients/\(user)/consents\(query)")
        #expect(answer.status == 200, "\(answer.json)")
        return (answer.json["records"]?.arrayValue ?? []).compactMap(\.objectValue)
    }

    private func standing(_ gate: GatewayHarness, _ user: String, _ query: String = "") async throws
        -> [String: String]
    {
        let answer = try await gate.call("auditor", "GET", "/v1/recipients/\(user)/consents\(query)")
        let rows = (answer.json["standing"]?.arrayValue ?? []).map { row in
            let key = ["purpose", "channel", "address"].compactMap { row[$0]?.stringValue }
            return (key.joined(separator: " "), row["state"]?.stringValue ?? "?")
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// The preference rows of one category and channel; the account's under "".
    private func effects(
        _ gate: GatewayHarness, _ user: String, _ scope: String, _ channel: String = "push"
    ) async throws -> [String: JSONObject] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/preferences")
        #expect(answer.status == 200)
        let rows = (answer.json["preferences"]?.arrayValue ?? []).compactMap(\.objectValue)
            .filter { $0["scope"]?.stringValue == scope && $0["channel"]?.stringValue == channel }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0["destination"]?.stringValue ?? "", $0) })
    }

    private func addAddress(
        _ gate: GatewayHarness, _ user: String, _ id: String, _ kind: String, _ value: String
    )
        async throws
    {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    /// Consent to marketing by e-mail, for one address.
    private func consentByMail(_ gate: GatewayHarness, _ user: String, _ address: String) async throws {
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/consents",
            [
                "id": "mail-1", "purpose": "marketing", "channel": "email", "address": .string(address),
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(reply.status < 300, "\(reply.json)")
    }

    @Test func `a reply that the bundle knows as a word of withdrawal is one, and another is not`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        func answer(_ reply: String) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents/c1/withdraw", ["reply": .string(reply)])
        }
        let questions = [
            "Do not stop", "non-stop", "stopped", "Stoppested?", "HELP", "yes", "the end", "ending",
            "\u{1F600}", "", " \n",
            "Who is this?", "nei", "S.T.R.O.P", "1", "unstop", "\u{405}TOP",
        ]
        for text in questions {
            let question = try await answer(text)
            #expect(question.status == 422, "\(text): \(question.json)")
            let violation = try #require(question.json["violations"]?.arrayValue?.first)
            #expect(violation["pointer"]?.stringValue == "/reply")
            #expect("\(violation)".contains("nothing was withdrawn"), "\(violation)")
        }
        #expect(
            try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p1", to: "u_1")).status == 202)
        gate.clock.advance(seconds: 1)
        #expect(try await answer(" Stop! \n").status == 200)
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p2", to: "u_1"))
        #expect(sent.status == 403 && sent["detail"] == "withdrawn", "\(sent.json)")
        let ledger = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        #expect("\(ledger.json)".contains("sms_keyword"), "\(ledger.json)")
    }

    @Test(arguments: [
        "stop\n", "STOP", "\u{FF33}\u{FF34}\u{FF2F}\u{FF30}", "\u{24C8}\u{24C9}\u{24C4}\u{24C5}", "optout",
        "opt out",
        "OPT-OUT", "Opt_Out", "stop please", "Please stop.", "STOP.", "Stopp", "stopp!!!", "\"stop\"",
        "\u{AB}Stop\u{BB}",
        "\u{1F6D1} STOP \u{1F6D1}", "\u{1F6D1}stop", "\t stop\r\n", "S T O P", "s.t.o.p",
        "ST\u{200B}OP", "sto\u{301}p", "quit", "End", "REVOKE", "cancel", "Unsubscribe me now", "stop all",
        "STOPALL",
        "Meld av", "Nei takk", "otka\u{17E}i", "Otkazi", "NDAL", "\u{C7}regjistro",
        "STOP calling it an offer", "'stop'",
    ])
    func `a reply that begins with a word of withdrawal is one, however it is written`(reply: String)
        async throws
    {
        let rule = try #require(try Repository.policy().bundle.channels.smsRevocation)
        #expect(rule.contains(reply))
    }

    @Test func `what somebody had consented to on a day is told with the very words they saw`() async throws {
        let gate = try GatewayHarness(at: "2025-11-01T10:00:00Z")
        try await gate.register("u_1")
        try await gate.consent("u_1", id: "c1")
        gate.clock.advance(seconds: 9 * 86_400)
        let withdrawn = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw", [:])
        #expect(withdrawn.status < 300, "\(withdrawn.json)")

        let then = "?as_of=2025-11-03T23:59:59Z"
        #expect(try await standing(gate, "u_1", then) == ["marketing push": "given"])
        #expect(try await standing(gate, "u_1") == ["marketing push": "withdrawn"])
        // What the gate had heard of before the person spoke is nothing.
        #expect(try await standing(gate, "u_1", "?known_at=2025-10-31T00:00:00Z") == [:])
        let record = try #require(try await records(gate, "u_1", then).first)
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        #expect(record["notice"]?["text"]?.stringValue == notice.text)
        #expect(record["notice"]?["sha256"]?.stringValue == notice.sha256)
        #expect(record["method"]?.stringValue == "in_app_toggle")
        #expect(record["jurisdiction"]?.stringValue == "DE")
        #expect(record["source"]?.stringValue == "product")
        #expect(record["lawful_basis"]?.stringValue?.contains("GDPR Art. 6(1)(a)") == true)
        // The ledger only grows, and each record names the one before it.
        let all = try await records(gate, "u_1")
        #expect(all.map { $0["state"]?.stringValue } == ["given", "withdrawn"])
        #expect(all[0]["previous_hash"]?.stringValue == "")
        #expect(all[1]["previous_hash"]?.stringValue?.utf8.count == 64)
        #expect(all[1]["withdraws"]?.stringValue == "c1")
        try await gate.consent("u_1", id: "c2")
        let next = try await records(gate, "u_1").last?["previous_hash"]?.stringValue
        #expect(next?.utf8.count == 64 && next != all[1]["previous_hash"]?.stringValue)
    }

    @Test func `a notice that was only shown is evidence and no answer`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1", id: "seen", state: "shown")
        #expect(try await standing(gate, "u_1") == ["marketing push": "never_asked"])
        #expect(try await records(gate, "u_1").map { $0["state"]?.stringValue } == ["shown"])
        #expect(try await effects(gate, "u_1", "marketing")[""]?["chosen"]?.stringValue == "default")
        // Shown again after a yes changes nothing either.
        gate.clock.advance(seconds: 60)
        try await gate.consent("u_1", id: "yes")
        gate.clock.advance(seconds: 60)
        try await gate.consent("u_1", id: "seen-again", state: "shown")
        #expect(try await standing(gate, "u_1") == ["marketing push": "given"])
        #expect(try await effects(gate, "u_1", "marketing")[""]?["effective"]?.stringValue == "on")
    }

    @Test func `a device is asked once`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: "not_determined")
        func mayPrompt() async throws -> Bool? {
            let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
            return answer.json["prompts"]?.arrayValue?.first?["may_prompt"]?.booleanValue
        }
        #expect(try await mayPrompt() == true)
        let prompt: JSONObject = ["device": "d_1"]
        #expect(
            try await gate.call("product", "POST", "/v1/recipients/u_1/permission-prompts", prompt).status
                < 300)
        #expect(try await mayPrompt() == false)
        let again = try await gate.call("product", "POST", "/v1/recipients/u_1/permission-prompts", prompt)
        #expect(again.status == 409)
        // Where the OS has its answer there is nothing to ask, prompted here or not.
        try await gate.register("u_2", osPermission: "granted")
        let other = try await gate.call("product", "GET", "/v1/recipients/u_2/preferences")
        #expect(other.json["prompts"]?.arrayValue?.first?["may_prompt"]?.booleanValue == false)
    }

    @Test(arguments: ["denied", "not_determined"])
    func `a phone that blocks notifications is told per category, with the way out`(permission: String)
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: permission)
        try await gate.consent("u_1")
        for category in Category.allCases {
            let rows = try await effects(gate, "u_1", category.rawValue)
            #expect(Set(rows.keys) == ["", "d_1"])
            for (_, row) in rows {
                #expect(row["effective"]?.stringValue == "off")
                #expect(row["why"]?.stringValue == "blocked_at_os_level")
                #expect(row["how_to_fix"]?.stringValue?.hasPrefix("Open Settings") == true)
            }
        }
        // A second phone that lets them through: the account is not blocked, the first phone is.
        let second = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_2",
            [
                "platform": "android", "app": "no.getdrop.app", "token": "00bb", "region": "DE",
                "time_zone": "Europe/Berlin", "os_permission": "provisional",
            ])
        #expect(second.status == 200, "\(second.json)")
        let rows = try await effects(gate, "u_1", "transactional")
        #expect(rows[""]?["effective"]?.stringValue == "on")
        #expect(rows["d_1"]?["why"]?.stringValue == "blocked_at_os_level")
        #expect(rows["d_2"]?["effective"]?.stringValue == "on")
    }

    @Test func `the most restrictive choice wins, and a row says which`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let type = try #require(
            gate.policy.bundle.types.values.filter {
                $0.isMutableAlone && $0.category == .transactional && $0.purpose == nil
            }
            .map(\.id.text).sorted().first)
        let category = try #require(gate.policy.bundle.types[TypeID(type)]).category.rawValue
        func set(_ scope: String, _ body: JSONObject) async throws {
            let reply = try await gate.call("product", "PUT", "/v1/recipients/u_1/preferences/\(scope)", body)
            try #require(reply.status < 300, "\(reply.json)")
        }
        try await set(type, ["state": "user_on", "source": "in_app_settings", "channel": "push"])
        #expect(try await effects(gate, "u_1", type)[""]?["effective"]?.stringValue == "on")
        try await set(category, ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        let row = try #require(try await effects(gate, "u_1", type)[""])
        #expect(row["chosen"]?.stringValue == "user_on")
        #expect(row["effective"]?.stringValue == "off")
        #expect(row["why"]?.stringValue == "user_preference")
        #expect(row["how_to_fix"]?.stringValue == "Switch on its category first")
        let device = try #require(try await effects(gate, "u_1", category)["d_1"])
        #expect(device["how_to_fix"]?.stringValue == "Switch it on for the account first")
    }

    @Test func `security goes off behind a second confirmation and no other way`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        func off(_ source: String, _ caller: String) async throws -> Int {
            try await gate.call(
                caller, "PUT", "/v1/recipients/u_1/preferences/security",
                ["state": "user_off", "source": .string(source), "channel": "push"]
            ).status
        }
        #expect(try await off("in_app_settings", "product") == 403)
        #expect(try await off("admin_override", "product") == 403)
        // The objection that names no channel is no way around it.
        let objection = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/security",
            ["state": "user_off", "source": "in_app_settings"])
        #expect(objection.status == 403)
        #expect(try await effects(gate, "u_1", "security")[""]?["effective"]?.stringValue == "on")
    }

    // MARK: Objections

    enum Objection: String, CaseIterable { case preference, withdrawal }

    @Test(arguments: Objection.allCases)
    func `an objection ends marketing on every channel in one step`(objection: Objection) async throws {
        let gate = try GatewayHarness(caps: "categories: {}")
        try await gate.register("u_1")
        try await addAddress(gate, "u_1", "a_mail", "email", "somebody@example.com")
        try await gate.consent("u_1", id: "push-1")
        try await consentByMail(gate, "u_1", "a_mail")
        // Given offers that wait on two channels, and a payment that waits on one.
        var mail = try await gate.promo("mail", to: "u_1")
        mail["channel"] = "email"
        let push = try await gate.call(
            "marketing", "POST", "/v1/sends", try await gate.promo("push", to: "u_1"))
        #expect(push.status == 202, "\(push.json)")
        let letter = try await gate.call("marketing", "POST", "/v1/sends", mail)
        #expect(letter.status == 202, "\(letter.json)")
        let payment = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("paid", to: "u_1"))
        #expect(payment.status == 202, "\(payment.json)")
        let before = try gate.store.read { try $0.entryCount() }

        // When the person objects.
        gate.clock.advance(seconds: 10)
        let reply =
            switch objection {
            case .preference:
                try await gate.call(
                    "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
                    ["state": "user_off", "source": "in_app_settings"])
            case .withdrawal:
                try await gate.call(
                    "product", "POST", "/v1/recipients/u_1/consents/push-1/withdraw",
                    ["every_channel": true])
            }
        #expect(reply.status < 300, "\(reply.json)")

        // Then nothing is left that could be offered, and the payment still waits.
        #expect(
            try await standing(gate, "u_1") == [
                "marketing push": "withdrawn", "marketing email": "withdrawn",
                "marketing email a_mail": "withdrawn", "marketing sms": "withdrawn",
                "partner_offers push": "withdrawn", "partner_offers email": "withdrawn",
                "partner_offers sms": "withdrawn",
            ])
        for channel in ["push", "sms", "email"] {
            let row = try #require(try await effects(gate, "u_1", "marketing", channel)[""])
            #expect(row["chosen"]?.stringValue == "user_off", "\(channel)")
        }
        let waiting = try gate.store.read { store in
            try store.outbox(of: try #require(try store.subject(of: UserID("u_1"))).id).map(
                \.request.type.text)
        }
        #expect(waiting == ["transaction.remittance_sent"])
        // One transaction: every entry of it has one time.
        let entries = try gate.store.read { try $0.entries(from: before, limit: 100) }
        #expect(Set(entries.map(\.time)).count == 1)
        let refused = try await gate.call(
            "marketing", "POST", "/v1/sends", try await gate.promo("again", to: "u_1"))
        #expect(refused.status == 403)
    }

    @Test func `only off may be said of every channel at once`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        for state in ["user_on", "default"] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
                ["state": .string(state), "source": "in_app_settings"])
            #expect(reply.status == 422, "\(reply.json)")
        }
        let device = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "device": "d_1"])
        #expect(device.status == 422)
    }

    @Test func `a zone that does not exist is refused with the name of the list it is not in`() async throws {
        let gate = try GatewayHarness()
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1",
            ["region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Mars/Olympus"])
        #expect(reply.status == 422)
        #expect(reply["detail"]?.contains("`Mars/Olympus` is no zone of tzdata") == true, "\(reply.json)")
    }
}
