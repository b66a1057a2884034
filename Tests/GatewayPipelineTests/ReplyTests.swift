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

/// What a recipient answers takes consent back, and gives none.
@Suite struct ReplyTests {
    private static let number = "+4790000017"
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    private func put(_ path: String, _ body: JSONObject, of user: String = "u_1") async throws {
        let method = path == "/consents" ? "POST" : "PUT"
        let reply = try await gate.call("product", method, "/v1/recipients/\(user)\(path)", body)
        try #require(reply.status == 200, "\(path): \(reply.json)")
    }

    private func address(_ id: String, _ kind: String, _ value: String, of user: String = "u_1") async throws
    {
        try await put(
            "/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ], of: user)
    }

    private func agree(
        _ id: String, to purpose: String = "marketing", under notice: String = "promo", on channel: String,
        at place: String, of user: String = "u_1", saidAt moment: Instant? = nil, until end: Instant? = nil
    ) async throws {
        let shown = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == notice && $0.key.language == "en" })
        var body: JSONObject = [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel),
            "address": .string(place), "method": "web_form", "jurisdiction": "DE",
            "event_time": .string((moment ?? gate.clock.now()).rfc3339),
            "notice": [
                "id": .string(notice), "version": .string(shown.key.version), "language": "en",
                "sha256": .string(shown.sha256),
            ],
        ]
        if let end { body["expires_at"] = .string(end.rfc3339) }
        try await put("/consents", body, of: user)
    }

    /// A person who agreed to offers and to service messages at one number.
    private func customer(_ user: String = "u_1") async throws {
        try await gate.register(user)
        try await address("n", "sms", Self.number, of: user)
        try await agree("m", on: "sms", at: "n", of: user)
        try await agree("s", to: "transactional", under: "sms_service", on: "sms", at: "n", of: user)
    }

    private func offer(_ id: String, on channel: String = "sms", to user: String = "u_1") async throws
        -> GatewayHarness.Reply
    {
        var send = try await gate.promo(id, to: user)
        send["channel"] = .string(channel)
        return try await gate.call("marketing", "POST", "/v1/sends", send)
    }

    private func body(
        _ text: String, id: String = "r1", from: String = number, channel: String = "sms"
    ) -> JSONObject {
        [
            "id": .string(id), "channel": .string(channel), "from": .string(from), "text": .string(text),
            "received_at": .string(gate.clock.now().rfc3339),
        ]
    }

    private func reply(
        _ text: String, id: String = "r1", from: String = number, channel: String = "sms"
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "replies", "POST", "/v1/replies", body(text, id: id, from: from, channel: channel))
    }

    private func standing(_ user: String = "u_1") async throws -> [String: String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/consents")
        return (answer.json["standing"]?.arrayValue ?? []).reduce(into: [:]) {
            let scope = [$1["purpose"], $1["channel"], $1["address"]].compactMap { $0?.stringValue }
            $0[scope.joined(separator: " ")] = $1["state"]?.stringValue
        }
    }

    private func waiting() async throws -> Int {
        try await gate.claim().count
    }

    private func entries(of kind: String) throws -> [JSONValue] {
        try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map { try CanonicalJSON.read($0.bytes) }
            .filter { $0["kind"]?.stringValue == kind }
    }

    @Test func `STOP ends every consent of the number at once, and what waits on the strength of it`()
        async throws
    {
        try await customer()
        #expect(try await offer("x1").status == 202)
        let answer = try await reply("Stop!")
        #expect(answer.status == 200 && answer["effect"] == "withdrawn", "\(answer.json)")
        #expect(answer.json["why"] == nil && answer.json["replayed"] == nil)
        // Offers of partners are asked for by marketing only, and end with it.
        #expect(
            try await standing() == [
                "marketing sms n": "withdrawn", "partner_offers sms n": "withdrawn",
                "transactional sms n": "withdrawn",
            ])
        #expect(try await waiting() == 0)
        let refused = try await offer("x2")
        #expect(refused.status == 403 && refused["detail"] == "withdrawn", "\(refused.json)")
        let entry = try #require(try entries(of: "reply").first)
        #expect(entry["effect"] == "withdrawn" && entry["caller"] == "replies")
        #expect(entry["subjects"]?.arrayValue?.count == 1)
        // The entries alone say all of it.
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        let (fold, differences) = try EvidenceFoldTests.fold(stored.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        let objections = try EvidenceFoldTests.objections(to: stored.map(\.bytes), under: gate.policy)
        #expect(objections.isEmpty, "\(objections)")
        let subject = try #require(fold.people.keys.first)
        let state = try gate.store.read { try $0.state(of: subject) }
        #expect(fold.people[subject] == state?.evidence)
    }

    @Test func `STOP from a number of more people than one step stops is answered when it counts for all`()
        async throws
    {
        let count = StepContext.replyHolderCountMax + 5
        for number in 0..<count { try await customer("u_\(number)") }
        let first = try await reply("STOP")
        #expect(first.status == 503, "\(first.json)")
        #expect(try gate.entries("reply").isEmpty)
        let second = try await reply("STOP")
        #expect(second.status == 200 && second["effect"] == "withdrawn", "\(second.json)")
        for number in 0..<count {
            #expect(try await standing("u_\(number)")["marketing sms n"] == "withdrawn", "u_\(number)")
        }
        #expect(try #require(try gate.entries("reply").first)["subjects"]?.arrayValue?.count == 5)
        let again = try await reply("STOP")
        #expect(again.status == 200 && again.json["replayed"] == true, "\(again.json)")
        // Of one who agrees again, it counts the next time.
        gate.clock.advance(seconds: 1)
        try await agree("again", on: "sms", at: "n", of: "u_1")
        #expect(try await reply("STOP", id: "r2")["effect"] == "withdrawn")
        #expect(try await standing("u_1")["marketing sms n"] == "withdrawn")
    }

    @Test(arguments: [0, 52, 104])
    func `STOP that ends something for one of many is answered as a withdrawal, whoever is stopped first`(
        _ place: Int
    ) async throws {
        let count = StepContext.replyHolderCountMax + 5
        for number in 0..<count {
            try await gate.register("u_\(number)")
            try await address("n", "sms", Self.number, of: "u_\(number)")
        }
        // Of those who have the number, in the order in which a step takes them.
        let subjects = try gate.store.read { store in
            try (0..<count).compactMap { try store.subject(of: UserID("u_\($0)"))?.id }
        }
        let order = (0..<count).sorted { subjects[$0].bytes.lexicographicallyPrecedes(subjects[$1].bytes) }
        try await agree("m", on: "sms", at: "n", of: "u_\(order[place])")
        #expect(try await reply("STOP").status == 503)
        let answer = try await reply("STOP")
        #expect(answer.status == 200 && answer["effect"] == "withdrawn", "\(answer.json)")
    }

    /// An app that was offline reports it.
    @Test(arguments: [false, true])
    func `STOP said again is newer than a yes of between the two that is reported after it`(isSaidAgain: Bool)
        async throws
    {
        try await customer()
        _ = try await reply("STOP", id: "first")
        gate.clock.advance(seconds: 7_200)
        let yes = gate.clock.now()
        gate.clock.advance(seconds: 7_200)
        if isSaidAgain { _ = try await reply("STOP", id: "again") }
        gate.clock.advance(seconds: 3_600)
        try await agree("late", on: "sms", at: "n", saidAt: yes)
        let sent = try await offer("p1")
        #expect((sent.status == 202) == !isSaidAgain, "\(sent.json)")
        // What follows within minutes is the same word.
        func count() throws -> Int { try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.count }
        let before = try count()
        _ = try await reply("STOP", id: "third")
        let after = try count()
        _ = try await reply("STOP", id: "fourth")
        #expect(after - before > 1)
        #expect(try count() - after == 1)
    }

    @Test func `what STOP ended begins again with a consent and with no reply`() async throws {
        try await customer()
        _ = try await reply("STOP")
        for (index, word) in ["START", "UNSTOP", "YES", "HELP", "info", "JA", "", "thanks"].enumerated() {
            let answer = try await reply(word, id: "w\(index)")
            #expect(answer.status == 200 && answer["effect"] == "none", "\(word): \(answer.json)")
            #expect(answer["why"] == "not_a_withdrawal")
        }
        #expect(try await offer("x1")["detail"] == "withdrawn")
        gate.clock.advance(seconds: 1)
        try await agree("again", on: "sms", at: "n")
        #expect(try await offer("x2").status == 202)
    }

    @Test func `only what anyone may switch off is off, and other addresses keep what they had`() async throws
    {
        try await customer()
        try await address("other", "sms", "+4790000018")
        try await address("e", "email", "Somebody@Example.org")
        try await agree("o", on: "sms", at: "other")
        try await agree("e1", on: "email", at: "e")
        try await agree("sec", to: "security", under: "sms_service", on: "sms", at: "n")
        _ = try await reply("avslutt")
        let after = try await standing()
        #expect(after["security sms n"] == "withdrawn")
        #expect(after["marketing sms other"] == "given" && after["marketing email e"] == "given")
        let choices = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        let off = "\(choices.json)"
        #expect(off.contains("user_off"))
        // Germany asks for no consent to a warning, and a plain no does not switch it off.
        var warning = try await gate.example(
            "security.new_login", "s1", to: "u_1", as: "security")
        warning["channel"] = "sms"
        let sent = try await gate.call("security", "POST", "/v1/sends", warning)
        let reached = (sent.json["deliveries"]?.arrayValue ?? []).filter { $0["outcome"] == "forward" }
        #expect(sent.status == 202 && reached.count == 2, "\(sent.json)")
    }

    @Test func `a mailbox is told apart from a number, and is the same in capitals`() async throws {
        try await gate.register("u_1")
        try await address("e", "email", "Somebody@Example.org")
        try await agree("e1", on: "email", at: "e")
        #expect(try await offer("x1", on: "email").status == 202)
        let answer = try await reply(
            "Unsubscribe, please", from: "SOMEBODY@example.ORG", channel: "email")
        #expect(answer["effect"] == "withdrawn")
        #expect(try await standing()["marketing email e"] == "withdrawn")
        #expect(try await offer("x2", on: "email")["detail"] == "withdrawn")
    }

    @Test(arguments: [
        ("sms", number, "sms_keyword"), ("email", "kari@example.org", "email_reply"),
    ])
    func `the record of a withdrawal says by what kind of reply it came`(
        _ channel: String, _ sender: String, _ method: String
    ) async throws {
        try await gate.register("u_1")
        try await address("a", channel, sender)
        try await agree("given", on: channel, at: "a")
        #expect(try await reply("STOP", from: sender, channel: channel)["effect"] == "withdrawn")
        #expect(try await Set(withdrawnBy()) == [method])
        #expect(
            try Set(
                entries(of: "consent").filter { $0["state"] == "withdrawn" }.map {
                    $0["method"]?.stringValue
                }) == [method])
        // Reported by a caller, as it came.
        gate.clock.advance(seconds: 1)
        try await agree("again", on: channel, at: "a")
        gate.clock.advance(seconds: 1)
        let told = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/again/withdraw", ["reply": "STOP"])
        #expect(told.status == 200, "\(told.json)")
        #expect(try await Set(withdrawnBy()) == [method])
    }

    /// The methods of the withdrawals that the ledger of a person has, oldest first.
    private func withdrawnBy(_ user: String = "u_1") async throws -> [String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/consents")
        return (answer.json["records"]?.arrayValue ?? []).filter { $0["state"] == "withdrawn" }
            .compactMap { $0["method"]?.stringValue }
    }

    @Test func `everybody who registered the number is heard, one registered just now as well`() async throws
    {
        try await customer("u_1")
        try await customer("u_2")
        _ = try await reply("STOP")
        for user in ["u_1", "u_2"] { #expect(try await standing(user)["marketing sms n"] == "withdrawn") }
        #expect(try #require(try entries(of: "reply").first)["subjects"]?.arrayValue?.count == 2)
    }

    @Test func `a number that was removed, replaced or forgotten leads to nobody`() async throws {
        try await customer("u_1")
        try await customer("u_2")
        try await customer("u_3")
        try await address("n", "sms", "+4790000099", of: "u_1")
        try #require(
            try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/n").status == 200)
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_3").status == 200)
        let answer = try await reply("STOP")
        #expect(answer["effect"] == "none" && answer["why"] == "nothing_known_here", "\(answer.json)")
        #expect(try #require(try entries(of: "reply").first)["subjects"] == [])
    }

    @Test func `the answer says withdrawn where something ended, and else why nothing did`() async throws {
        try await customer()
        let unknown = try await reply("STOP", id: "a", from: "+4790009999")
        #expect(unknown.status == 200 && unknown["effect"] == "none", "\(unknown.json)")
        #expect(unknown["why"] == "nothing_known_here" && unknown.json["confirmation"] == nil)
        let known = try await reply("STOP", id: "b")
        #expect(known["effect"] == "withdrawn" && known["why"] == nil && known.json["confirmation"] != nil)
        // Everything has ended before, so there is nothing to confirm.
        let again = try await reply("STOP", id: "c")
        #expect(again["effect"] == "none" && again["why"] == "already_so", "\(again.json)")
        #expect(again.json["confirmation"] == nil)
        gate.clock.advance(seconds: 86_400)
        let later = try await reply("STOP", id: "d")
        #expect(later["why"] == "already_so" && later.json["confirmation"] == nil)
        let why = try entries(of: "reply").map { $0["why"]?.stringValue }
        #expect(why == ["nothing_known_here", nil, "already_so", "already_so"])
    }

    /// Whether a plain no to marketing by a reply stands at an address of a person.
    private func isOffByReply(_ place: String, of user: String = "u_1") async throws -> Bool {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/preferences")
        return answer.json["preferences"]?.arrayValue?.contains {
            $0["scope"] == "marketing" && $0["destination"]?.stringValue == place && $0["source"] == "reply"
                && $0["chosen"] == "user_off"
        } == true
    }

    @Test(arguments: ["nothing was ever said", "refused", "withdrawn", "off for the account", "run out"])
    func `nobody is told that they withdrew where nothing could have been sent, and the no is recorded`(
        _ before: String
    ) async throws {
        try await gate.register("u_1")
        try await address("n", "sms", Self.number)
        switch before {
        case "refused":
            try await agree("m", on: "sms", at: "n")
            gate.clock.advance(seconds: 1)
            try await put(
                "/preferences/marketing",
                ["state": "user_off", "source": "in_app_settings", "channel": "sms", "address": "n"])
        case "withdrawn":
            try await agree("m", on: "sms", at: "n")
            gate.clock.advance(seconds: 1)
            let withdrawn = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents/m/withdraw", [:])
            try #require(withdrawn.status == 200, "\(withdrawn.json)")
        case "off for the account":
            try await put("/preferences/marketing", ["state": "user_off", "source": "in_app_settings"])
        case "run out":
            try await agree("m", on: "sms", at: "n", until: gate.clock.now().advanced(bySeconds: 3_600))
            gate.clock.advance(seconds: 3_600)
        default: break
        }
        gate.clock.advance(seconds: 1)
        #expect(try await offer("x1").status == 403)
        let answer = try await reply("STOP")
        #expect(answer["effect"] == "none" && answer["why"] == "already_so", "\(answer.json)")
        #expect(answer.json["confirmation"] == nil, "\(answer.json)")
        let entry = try #require(try entries(of: "reply").first)
        #expect(entry["effect"] == "none" && entry["subjects"]?.arrayValue?.count == 1, "\(entry)")
        #expect(try await standing()["marketing sms n"] == "withdrawn")
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        let (_, differences) = try EvidenceFoldTests.fold(stored.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        // What they agree to afterwards ends with the next.
        gate.clock.advance(seconds: 1)
        try await agree("again", on: "sms", at: "n")
        #expect(try await reply("STOP", id: "r2")["effect"] == "withdrawn")
    }

    @Test(arguments: [("sms", "+4790000019"), ("email", "kari@example.org")], [true, false])
    func `nobody withdraws where nobody was ever asked, verified or not, and the no stays`(
        _ address: (channel: String, value: String), isVerified: Bool
    ) async throws {
        try await gate.register("u_1")
        var body: JSONObject = ["kind": .string(address.channel), "value": .string(address.value)]
        if isVerified { body["verified_at"] = .string(gate.clock.now().rfc3339) }
        try await put("/addresses/a", body)
        let answer = try await reply("STOP", from: address.value, channel: address.channel)
        #expect(answer["effect"] == "none" && answer["why"] == "already_so", "\(answer.json)")
        #expect(answer.json["confirmation"] == nil, "\(answer.json)")
        #expect(try await standing()["marketing \(address.channel) a"] == "withdrawn")
        #expect(try await offer("x", on: address.channel).status == 403)
    }

    @Test(arguments: [true, false])
    func `where no consent is asked, a no ends what goes to an address, and nothing goes to one not verified`(
        isVerified: Bool
    ) async throws {
        try await gate.register("u_1", region: "US", zone: "America/New_York")
        var body: JSONObject = ["kind": "email", "value": "kari@example.org"]
        if isVerified { body["verified_at"] = .string(gate.clock.now().rfc3339) }
        try await put("/addresses/a", body)
        let answer = try await reply("STOP", from: "kari@example.org", channel: "email")
        #expect(answer["effect"] == (isVerified ? "withdrawn" : "none"), "\(answer.json)")
        #expect(answer["why"] == (isVerified ? nil : "already_so"), "\(answer.json)")
    }

    @Test func `a choice by a reply is recorded where nothing ended, and one of several people is enough`()
        async throws
    {
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try await address("n", "sms", Self.number, of: user)
        }
        #expect(try await reply("STOP", id: "a")["why"] == "already_so")
        for user in ["u_1", "u_2"] { #expect(try await isOffByReply("n", of: user), "\(user)") }
        gate.clock.advance(seconds: 1)
        try await agree("m", on: "sms", at: "n", of: "u_2")
        #expect(try await reply("STOP", id: "b")["effect"] == "withdrawn")
        #expect(try await offer("x", to: "u_2").status == 403)
    }

    @Test func `where the law asks for no consent, a reply ends the offers that could be sent`() async throws
    {
        try await gate.register("u_1", region: "US-NY", zone: "America/New_York")
        try await address("e", "email", "kari@example.org")
        #expect(try await offer("x1", on: "email").status == 202)
        let answer = try await reply("unsubscribe", from: "kari@example.org", channel: "email")
        #expect(answer["effect"] == "withdrawn", "\(answer.json)")
        #expect(try await offer("x2", on: "email").status == 403)
        let again = try await reply("unsubscribe", id: "r2", from: "kari@example.org", channel: "email")
        #expect(again["why"] == "already_so", "\(again.json)")
    }

    @Test func `a carrier that tells it again gets the first answer, and nothing is recorded twice`()
        async throws
    {
        try await customer()
        let first = try await gate.call("replies", "POST", "/v1/replies", body("STOP"))
        let count = try gate.entries().count
        let moment = body("STOP")
        for _ in 0..<3 {
            let again = try await gate.call("replies", "POST", "/v1/replies", moment)
            #expect(again.json["replayed"] == true && again["effect"] == "withdrawn", "\(again.json)")
            #expect(again.json["trail"] == first.json["trail"])
        }
        #expect(try gate.entries().count == count)
        for other in [body("STOPP"), body("STOP", from: "+4790000018"), body("hello")] {
            let refused = try await gate.call("replies", "POST", "/v1/replies", other)
            #expect(refused["type"] == "urn:sendgate:problem:id_conflict", "\(refused.json)")
        }
        // Said again under another id it is recorded, and the ledger stays as long as it is.
        _ = try await reply("STOP", id: "r2")
        #expect(try gate.entries().count == count + 1)
        // Another caller's id is another id.
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        #expect(!stored.contains { String(decoding: $0.bytes, as: UTF8.self).contains("4790000017") })
    }

    @Test
    func `a word that came late counts from when it is heard, and so does one from a clock that is ahead`()
        async throws
    {
        try await customer()
        var late = body("STOP")
        late["received_at"] = .string(gate.clock.now().advanced(bySeconds: -400 * 86_400).rfc3339)
        #expect(try await gate.call("replies", "POST", "/v1/replies", late)["effect"] == "withdrawn")
        #expect(try await standing()["marketing sms n"] == "withdrawn")
        gate.clock.advance(seconds: 1)
        try await agree("again", on: "sms", at: "n")
        for (id, ahead) in [("r2", 1), ("r3", 3_600_000), ("r4", 250_000_000_000_000)] as [(String, Int64)] {
            var early = body("STOP", id: id)
            let stated = gate.clock.now().advanced(byMilliseconds: ahead)
            early["received_at"] = .string(stated.rfc3339)
            let answer = try await gate.call("replies", "POST", "/v1/replies", early)
            #expect(answer.status == 200, "\(answer.json)")
            #expect(answer["effect"] == (id == "r2" ? "withdrawn" : "none"))
            let entry = try #require(try entries(of: "reply").last)
            #expect(entry["at"]?.integerValue == gate.clock.now().milliseconds, "\(entry)")
            #expect(entry["stated_at"]?.integerValue == stated.milliseconds, "\(entry)")
        }
        #expect(try await standing()["marketing sms n"] == "withdrawn")
    }

    @Test func `no sender is refused for its spelling, and what is no address has nothing to end`()
        async throws
    {
        for (id, from) in [("r1", "Drop"), ("r2", "somebody@example.org"), ("r3", "2000")] {
            var reply = body("STOP", id: id)
            reply["from"] = .string(from)
            let answer = try await gate.call("replies", "POST", "/v1/replies", reply)
            #expect(answer.status == 200 && answer["effect"] == "none", "\(answer.json)")
            #expect(answer["why"] == "not_an_address", "\(answer.json)")
        }
    }

    @Test func `what is no reply is refused whole`() async throws {
        let bodies: [(inout JSONObject) -> Void] = [
            { $0["text"] = .string(String(repeating: "STOP ", count: 2_000)) },
            { $0["from"] = .string(String(repeating: "9", count: 999)) }, { $0["channel"] = "push" },
            { $0["to"] = "2000" },
            { $0["id"] = .string(String(repeating: "r", count: 129)) }, { $0["received_at"] = "now" },
        ]
        for change in bodies {
            var wrong = body("STOP")
            change(&wrong)
            #expect(try await gate.call("replies", "POST", "/v1/replies", wrong).status == 422, "\(wrong)")
        }
        #expect(try await gate.call("product", "POST", "/v1/replies", body("STOP")).status == 403)
        #expect(try entries(of: "reply").isEmpty)
    }

    @Test func `from the bundle's day on it ends every text that anyone may switch off`() async throws {
        for (time, state) in [("2027-01-30T23:59:59Z", "forward"), ("2027-01-31T00:00:00Z", "suppress")] {
            let gate = try GatewayHarness(at: time)
            try await gate.register("u_1")
            try #require(
                try await gate.call(
                    "product", "PUT", "/v1/recipients/u_1/addresses/n",
                    ["kind": "sms", "value": .string(Self.number), "verified_at": "2026-11-01T12:00:00Z"]
                ).status == 200)
            let answer = try await gate.call(
                "replies", "POST", "/v1/replies",
                [
                    "id": "r", "channel": "sms", "from": .string(Self.number), "text": "STOP",
                    "received_at": .string(time),
                ])
            // Before that day only what was agreed to ends, and marketing, and neither may go there.
            #expect(answer["effect"] == (state == "suppress" ? "withdrawn" : "none"), "\(answer.json)")
            var text = try await gate.example("statement.available", "s", to: "u_1", as: "payments")
            text["channel"] = "sms"
            let sent = try await gate.call("payments", "POST", "/v1/sends", text)
            #expect(sent["outcome"] == state, "\(time): \(sent.json)")
        }
    }

    /// Every word of the bundle, as people write it.
    @Test func `every word counts in any case, width and punctuation, and inside no other word`() throws {
        let rule = try #require(try Repository.policy().bundle.channels.smsRevocation)
        let title: (String) -> String = { $0.prefix(1).uppercased() + $0.dropFirst() }
        let wide: (String) -> String = { text in
            String(
                String.UnicodeScalarView(
                    text.unicodeScalars.map {
                        (0x21...0x7E).contains($0.value) ? Unicode.Scalar($0.value + 0xFEE0)! : $0
                    }))
        }
        let cases: [(String) -> String] = [{ $0 }, { $0.uppercased() }, title, wide]
        let frames: [(String) -> String] = [
            { $0 }, { "  \($0)" }, { "\"\($0)\"" }, { "\u{201C}\($0)\u{201D}" }, { "\u{AB}\($0)\u{BB}." },
            { "\($0)!" }, { "...\($0)" }, { "\($0), thanks" }, { "\($0)\nSent from my phone" },
            { "\t(\($0))" },
            { "\u{FEFF}\($0)" }, { "Re: \($0)" }, { "SV: RE: \($0)" }, { "Odg:\($0)" }, { "re[2]: \($0)" },
            { "\u{FF32}\u{FF25}\u{FF1A}\($0)" },
        ]
        var count = 0
        let words = rule.words.values.flatMap { $0 }
        for word in words {
            for written in cases {
                for framed in frames {
                    #expect(rule.contains(framed(written(word))), "\(framed(written(word)))")
                    count += 1
                }
            }
            #expect(!rule.contains("x" + word) && !rule.contains("no " + word), "\(word)")
        }
        #expect(count == words.count * cases.count * frames.count && words.count >= 23)
        // A phone set to Turkish writes another i, large and small.
        for text in [
            "UNSUBSCR\u{130}BE", "unsubscr\u{131}be", "OTKA\u{17D}\u{130}",
            // Composed and not: texts that read alike are answered alike.
            "St\u{F4}p", "Sto\u{302}p", "\u{160}top", "S\u{30C}top", "nd\u{E1}l", "nda\u{301}l", "ST\u{D6}P",
            "Cregjistro",
            "\u{10D}regjistro", "c\u{327}regjistro", "\u{E7}regjistro", "otkazi",
        ] {
            #expect(rule.contains(text), "\(text)")
        }
        for text in [
            "START", "UNSTOP", "YES", "HELP", "ja takk", "po", "da", "non-stop", "stopped", "weekend", "",
            "Re:", "Re: START", "Re: Offers: stop", "Info: stop", "2 stops", "2nd stop", "no 1 stop",
            "nonstop1",
            "when does the bus stop", "1", "1 1",
        ] { #expect(!rule.contains(text), "\(text)") }
    }

    @Test(
        arguments: [
            ("REMOVE", "en"), ("unsub", "en"), ("pls stop", "en"), ("BAJA", "es"), ("ARRET", "fr"),
            ("Arr\u{EA}t.", "fr"), ("TD", "zh"), ("td!", "zh"), ("End", "en"),
            ("please cancel all messages", "en"), ("CANCEL CANCEL", "en"), ("cancel, unsubscribe", "en"),
            ("do not text me", "en"), ("Don't text me please", "en"), ("td td", "zh"), ("BAJA BAJA", "es"),
            ("ta meg av n\u{E5}", "nb"), ("Antw: stop", "en"), ("VS: END", "en"),
            ("Cancel\nSent from my phone", "en"), ("\u{421}\u{422}\u{41E}\u{41F}", "ru"),
            ("\u{43E}\u{434}\u{458}\u{430}\u{432}\u{430}!", "bs"), ("\u{9000}\u{8BA2}", "zh"),
            ("Abmelden bitte", "de"),
            ("wypisz mnie", "pl"), ("B A J A", "es"), ("\u{FF22}\u{FF21}\u{FF2A}\u{FF21}", "es"),
            ("sluta", "sv"),
            ("AFMELD", "da"), ("Re: remove me", "en"), ("\u{3A3}\u{3A4}\u{39F}\u{3A0}", "en"),
            // As a phone without the letters, or in a hurry, writes them.
            ("arrete", "fr"), ("ARRETE!", "fr"), ("Arr\u{EA}te", "fr"), ("Arre\u{302}te", "fr"),
            ("ARRETER SVP", "fr"),
            ("desabonner", "fr"), ("aufhoren", "de"), ("AUFHOEREN", "de"), ("rezygnuje", "pl"),
            ("huy dang ky", "vi"), ("HU\u{1EF6}", "vi"), ("cik", "tr"), ("opriti", "ro"), ("nao quero", "pt"),
            // A number of a list, a key beside the right one, a carrier's form of the word.
            ("1 STOP", "en"), ("STOP1", "en"), ("1STOP", "en"), ("STOP 1", "en"), ("2. stop", "en"),
            ("STOP2END", "en"), ("(1) Stop please", "en"), ("[2]: stop", "en"), ("\u{FF11}STOP", "en"),
            ("\u{661} STOP", "en"), ("1. opt out", "en"), ("END1", "en"), ("1 CANCEL", "en"), ("Fin 1", "fr"),
            ("STOP.", "en"), ("STOP!", "en"), ("\"STOP\"", "en"), ("*STOP*", "en"), ("Stop please", "en"),
            ("STOP\u{1F621}", "en"), ("\u{1F6D1} STOP", "en"), ("S.T.O.P.", "en"),
        ] as [(String, String)])
    func `a word of any listed language that says nothing else is a withdrawal`(
        _ text: String, _ locale: String
    ) throws {
        let rule = try #require(try Repository.policy().bundle.channels.smsRevocation)
        #expect(rule.locale(of: text) == locale, "\(rule.locale(of: text) ?? "none")")
    }

    @Test(arguments: [
        "end of the month?", "End of the month it is", "Remove which card?", "cancel my card",
        "Delete my account",
        "Cancel the transfer to Ahmad", "the end", "Fin de mes?", "Ende der Woche", "aus Berlin",
        "Basta pasta", "no",
        "nei", "ne", "Unde e banca?", "ok", "baja california", "td bank", "What is TD?", "Sluttidspunkt?",
        "retail", "When does the bus stop?", "cancel 4512", "Cancel 2 cards", "End 2026",
        "arrete de me suivre",
    ])
    func `a sentence that begins with such a word is no withdrawal`(_ text: String) throws {
        let rule = try #require(try Repository.policy().bundle.channels.smsRevocation)
        #expect(rule.locale(of: text) == nil, "\(rule.locale(of: text) ?? "")")
    }

    /// Every word of the bundle, as a phone without its marks writes it.
    @Test func `every word counts without its marks, whichever way the marks are written`() throws {
        let rule = try #require(try Repository.policy().bundle.channels.smsRevocation)
        var count = 0
        for word in [rule.words, rule.aloneWords].flatMap(\.values).joined() {
            // Of Foundation's, which has Unicode's own tables: letters with marks after them, and without.
            let apart = word.decomposedStringWithCanonicalMapping
            let plain = String(
                String.UnicodeScalarView(
                    apart.unicodeScalars.filter { $0.properties.generalCategory != .nonspacingMark }))
            for written in [apart, plain, plain.uppercased(), word.precomposedStringWithCanonicalMapping] {
                #expect(rule.contains(written), "\(word) as \(written)")
            }
            if plain != word { count += 1 }
        }
        #expect(count > 20)
    }

    // MARK: An address that is not registered when its owner says no

    @Test func `what is taken back at a number that is removed stays so when it is registered again`()
        async throws
    {
        try await customer()
        let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/n")
        try #require(removed.status == 200)
        gate.clock.advance(seconds: 60)
        #expect(try await reply("STOP")["why"] == "nothing_known_here")
        gate.clock.advance(seconds: 60)
        try await address("n", "sms", Self.number)
        #expect(
            try await standing() == [
                "marketing sms n": "withdrawn", "partner_offers sms n": "withdrawn",
                "transactional sms n": "withdrawn",
            ])
        let refused = try await offer("x1")
        #expect(refused.status == 403 && refused["detail"] == "withdrawn", "\(refused.json)")
        // The same again changes nothing, and what is agreed to afterwards counts.
        gate.clock.advance(seconds: 60)
        try await agree("m2", on: "sms", at: "n")
        try await address("n", "sms", Self.number)
        #expect(try await offer("x2").status == 202)
    }

    @Test func `a number that took back what was agreed to at it is so under another name too`() async throws
    {
        try await customer()
        try await address("n", "sms", "+4790000018")
        #expect(try await reply("STOP")["why"] == "nothing_known_here")
        gate.clock.advance(seconds: 60)
        try await address("n", "sms", Self.number)
        #expect(try await offer("x1").status == 403)
        // Nobody said no at the other number.
        try await address("o", "sms", "+4790000018")
        try await agree("m3", on: "sms", at: "o")
        #expect(try await offer("x2").status == 202)
    }

    // MARK: The confirmation

    private func confirmation(_ reply: GatewayHarness.Reply) -> [String: String]? {
        guard let said = reply.json["confirmation"]?.objectValue else { return nil }
        return ["language", "text", "until"].reduce(into: [:]) { $0[$1] = said[$1]?.stringValue }
    }

    @Test(arguments: [
        ("STOP", "en", "unsubscribed"), ("please stop, now", "en", "unsubscribed"),
        ("Stopp!", "nb", "avmeldt"),
        ("meld av", "nb", "avmeldt"), ("Slutt", "nb", "avmeldt"), ("STANI!", "bs", "Odjavljeni"),
        ("Otkaži", "bs", "Odjavljeni"), ("ndalo", "sq", "\u{E7}regjistruat"),
        ("REMOVE", "en", "unsubscribed"),
        ("Afmeld", "nb", "avmeldt"), ("sluta", "nb", "avmeldt"), ("BAJA", "es", "baja"),
        ("\u{441}\u{442}\u{43E}\u{43F}", "ru", "\u{43D}\u{43E}\u{43C}\u{435}\u{440}"),
        ("\u{41E}\u{414}\u{408}\u{410}\u{412}\u{410}", "bs", "Odjavljeni"),
    ])
    func `a withdrawal is confirmed in the language of its word, to whoever said it`(
        text: String, language: String, word: String
    ) async throws {
        try await customer()
        let reply = try await reply(text)
        let said = try #require(confirmation(reply), "\(reply.json)")
        #expect(said["language"] == language && said["text"]?.contains(word) == true, "\(said)")
        #expect(said["text"]?.hasPrefix("\(gate.policy.bundle.brand): ") == true, "\(said)")
        #expect(said["until"] == gate.clock.now().advanced(bySeconds: 300).rfc3339)
    }

    /// The Russian word for "enough" in Latin letters is on no list, and says of no language that its writer reads it.
    @Test(arguments: [("sq", "sq"), ("sv", "nb"), ("hu", "nb"), (nil, "nb")] as [(String?, String)])
    func `a word of no certain language is confirmed in the person's, else in the bundle's first`(
        _ locale: String?, _ language: String
    ) async throws {
        let text = "hvatit"
        let rule = try #require(gate.policy.bundle.channels.smsRevocation)
        #expect(rule.contains(text) && rule.locale(of: text) == nil, "\(text)")
        try await customer()
        var person: JSONObject = ["region": "NO", "region_source": "kyc", "age": "adult"]
        person["locale"] = locale.map { .string($0) }
        try await put("", person)
        let first = body(text)
        let reply = try await gate.call("replies", "POST", "/v1/replies", first)
        #expect(
            reply["effect"] == "withdrawn" && confirmation(reply)?["language"] == language, "\(reply.json)")
        // The carrier tells it again, and the language stays.
        let again = try await gate.call("replies", "POST", "/v1/replies", first)
        #expect(confirmation(again) == confirmation(reply))
        // Two people with one number and two languages.
        gate.clock.advance(seconds: 1)
        try await customer("u_2")
        gate.clock.advance(seconds: 86_400)
        let shared = try await gate.call("replies", "POST", "/v1/replies", body(text, id: "r2"))
        #expect(confirmation(shared)?["language"] == "nb", "\(shared.json)")
    }

    @Test func `a number is sent one confirmation a day, whatever it says, and the same id the same one`()
        async throws
    {
        try await customer()
        func say(_ text: String, _ id: String, from: String = Self.number) async throws -> [String: String]? {
            let reply = try await gate.call("replies", "POST", "/v1/replies", body(text, id: id, from: from))
            #expect(reply.status == 200, "\(reply.json)")
            return confirmation(reply)
        }
        let first = body("stop", id: "r1")
        let told = confirmation(try await gate.call("replies", "POST", "/v1/replies", first))
        #expect(told?["language"] == "en")
        gate.clock.advance(seconds: 60)
        #expect(try await say("stopp", "r2") == nil)
        #expect(try await say("START", "r3") == nil)
        // The carrier tells it again, when it is too late to send: `until` is the first one's.
        gate.clock.advance(seconds: 3_600)
        let again = try await gate.call("replies", "POST", "/v1/replies", first)
        #expect(again.json["replayed"] == true && confirmation(again) == told, "\(again.json)")
        // Another number is another one, and nobody has it.
        #expect(try await say("stop", "r4", from: "+4790000018") == nil)
        gate.clock.advance(seconds: 86_400 - 3_660 - 1)
        try await agree("m2", on: "sms", at: "n")
        #expect(try await say("stop", "r5") == nil)
        gate.clock.advance(seconds: 1)
        try await agree("m3", on: "sms", at: "n")
        #expect(try await say("stopp", "r6")?["language"] == "nb")
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }
            .map { try CanonicalJSON.read($0.bytes) }.compactMap(\.objectValue).filter {
                $0["kind"] == "reply"
            }
        #expect(
            entries.map { $0["confirmation"]?.stringValue } == ["en", nil, nil, nil, nil, "nb"], "\(entries)"
        )
    }

    @Test func `what comes late is not confirmed, and neither is an e-mail`() async throws {
        for (secondsAgo, isConfirmed) in [(300, true), (301, false)] as [(Int64, Bool)] {
            let number = "+47900001\(secondsAgo)"
            let user = "u_\(secondsAgo)"
            try await gate.register(user)
            try await address("n", "sms", number, of: user)
            try await agree("m", on: "sms", at: "n", of: user)
            var late = body("stop", id: "l\(secondsAgo)", from: number)
            late["received_at"] = .string(gate.clock.now().advanced(bySeconds: -secondsAgo).rfc3339)
            let reply = try await gate.call("replies", "POST", "/v1/replies", late)
            #expect(reply["effect"] == "withdrawn")
            #expect((confirmation(reply) != nil) == isConfirmed, "\(reply.json)")
        }
        try await address("m", "email", "kari@example.org", of: "u_300")
        try await agree("e", on: "email", at: "m", of: "u_300")
        let mail = try await gate.call(
            "replies", "POST", "/v1/replies",
            body("stop", id: "m", from: "kari@example.org", channel: "email"))
        #expect(mail["effect"] == "withdrawn" && confirmation(mail) == nil, "\(mail.json)")
    }

    @Test func `a bundle's confirmation goes with its words`() throws {
        func diagnostics(_ words: JSONValue, _ confirmation: JSONValue?) throws -> String {
            var bundle = TestBundle.minimal.setting("channels.yaml", "sms", "revocation", "words", to: words)
            if let confirmation {
                bundle = bundle.setting(
                    "channels.yaml", "sms", "revocation", "confirmation", to: confirmation)
            }
            return bundle.diagnostics.map(\.description).joined(separator: "\n")
        }
        let words: JSONValue = ["en": ["stop", "quit"]]
        #expect(try diagnostics(words, nil) == "")
        #expect(try diagnostics(words, ["en": "You are out."]) == "")
        #expect(
            try diagnostics(words, ["en": "You are out.", "nb": "Du er ute."])
                .contains("in which no word takes consent back"))
        #expect(
            try diagnostics(["en": ["stop"], "nb": ["stopp"]], ["en": "You are out."])
                .contains("confirms nothing that was said in `nb`"))
        #expect(try diagnostics(["en": ["stop"], "nb": ["STOP!"]], nil).contains("has as well"))
        #expect(try diagnostics(["stop"], nil).contains("must be a mapping"))
        // A language without a confirmation has that of one which its readers read as well.
        var bundle = TestBundle.minimal.setting(
            "channels.yaml", "sms", "revocation", "words", to: ["en": ["stop"], "nb": ["stopp"]])
        bundle.set("channels.yaml", "sms", "revocation", "alone", to: ["da": ["afmeld"]])
        bundle.set(
            "channels.yaml", "sms", "revocation", "confirmation",
            to: ["en": "You are out.", "nb": "Du er ute."])
        #expect("\(bundle.diagnostics)".contains("confirms nothing that was said in `da`"))
        bundle.set("bundle.yaml", "languages", to: ["first": "en", "also_read": ["da": "nb"]])
        #expect(bundle.diagnostics == [], "\(bundle.diagnostics)")
    }
}
