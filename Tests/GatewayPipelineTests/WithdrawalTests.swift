import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

/// A no without a yes before it is a record too, and only a new yes ends it.
@Suite struct WithdrawalTests {
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    private func request(_ method: String, _ path: String, _ body: JSONObject) async throws {
        let reply = try await gate.call("product", method, "/v1/recipients/u_1" + path, body)
        try #require(reply.status == 200, "\(path): \(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    private func choose(
        _ state: String, _ scope: String = "marketing", on channel: String? = "email",
        at place: String? = nil,
        source: String = "in_app_settings"
    ) async throws {
        var body: JSONObject = ["state": .string(state), "source": .string(source)]
        if let channel { body["channel"] = .string(channel) }
        if let place { body[channel == "push" ? "device" : "address"] = .string(place) }
        try await request("PUT", "/preferences/\(scope)", body)
    }

    private func address(_ id: String, _ value: String, _ kind: String = "email") async throws {
        try await request(
            "PUT", "/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
    }

    private func consent(
        _ id: String, to purpose: String = "marketing", under notice: String? = nil,
        on channel: String = "email", at place: String? = "a0", by method: String = "in_app_toggle",
        saidSecondsAgo age: Int64 = 0
    ) throws -> JSONObject {
        let shown = notice ?? (method == "existing_customer" ? method : "promo")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == shown && $0.key.language == "en" })
        return [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel),
            "address": place.map { .string($0) } ?? .null, "method": .string(method), "jurisdiction": "DE",
            "event_time": .string(gate.clock.now().advanced(bySeconds: -age).rfc3339),
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
    }

    /// Reason and detail of an offer by e-mail.
    private func verdict() async throws -> String {
        gate.clock.advance(seconds: 8 * 86_400)
        var send = try await gate.promo("x-\(gate.clock.now().milliseconds)", to: "u_1")
        send["channel"] = "email"
        let reply = try await gate.call("marketing", "POST", "/v1/sends", send)
        return [reply["reason"], reply["detail"]].compactMap(\.self).joined(separator: " ")
    }

    private func standing() async throws -> [String: String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        return (answer.json["standing"]?.arrayValue ?? []).reduce(into: [:]) {
            let scope = [$1["purpose"], $1["channel"], $1["address"]].compactMap { $0?.stringValue }
            $0[scope.joined(separator: " ")] = $1["state"]?.stringValue
        }
    }

    @Test(arguments: ["withdrawn", "stop", "refused"])
    func `a no to marketing ends what only marketing asks for besides`(_ no: String) async throws {
        try await gate.register("u_1")
        try await request(
            "POST", "/consents", try consent("c1", on: "push", at: nil).removing("address"))
        try await request(
            "POST", "/consents",
            try consent("c2", to: "partner_offers", under: "partner_offers", on: "push", at: nil)
                .removing("address"))
        #expect(try await standing()["partner_offers push"] == "given")
        switch no {
        case "withdrawn": try await request("POST", "/consents/c1/withdraw", [:])
        case "stop": try await request("POST", "/consents/c1/withdraw", ["reply": "STOP"])
        default:
            var refusal = try consent("c3", on: "push", at: nil).removing("address")
            refusal["state"] = "refused"
            try await request("POST", "/consents", refusal)
        }
        #expect(try await standing()["partner_offers push"] == "withdrawn")
    }

    @Test func `who may record a step-up switches nothing else on`() async throws {
        try await gate.register("u_1")
        try await choose("user_off", on: "push", at: "d_1")
        for scope in ["marketing", "social", "transactional"] {
            for state in ["user_on", "user_off", "default"] {
                let reply = try await gate.call(
                    "security", "PUT", "/v1/recipients/u_1/preferences/\(scope)",
                    ["state": .string(state), "source": "in_app_step_up", "channel": "push"])
                #expect(reply["type"] == "urn:sendgate:problem:assertion_not_permitted", "\(reply.json)")
            }
        }
        let off = try await gate.call(
            "security", "PUT", "/v1/recipients/u_1/preferences/security",
            ["state": "user_off", "source": "in_app_step_up", "channel": "push"])
        #expect(off.status == 200, "\(off.json)")
    }

    @Test func `a link outlives its address, and its no is then to the whole channel`() async throws {
        try await gate.register("u_1", region: "US", zone: "America/New_York")
        try await address("e1", "somebody@example.com")
        #expect(try await verdict().hasPrefix("allowed"))
        let gone = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/e1")
        try #require(gone.status == 200, "\(gone.json)")
        try await choose("user_off", at: "e1", source: "unsubscribe_link")
        try await address("e1", "somebody@example.com")
        #expect(try await !verdict().hasPrefix("allowed"))
        // Anything else said of an address that is not there is a mistake.
        let mistaken = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "email", "address": "e9"])
        #expect(mistaken.status == 404)
    }

    enum No: String, CaseIterable {
        case linkAtTheAddress, linkForTheAccount, offAtTheAddress, offForTheAccount, everyChannel
    }

    enum Restart: String, CaseIterable {
        case defaultThenOn, onAtOnce, registeredAgain, addressPutAgain, addressUnderAnotherName
        case anotherValue, anotherMailbox
    }

    @Test(arguments: No.allCases, Restart.allCases)
    func `where silence is no refusal, a no without a consent ends marketing until there is a new yes`(
        no: No, restart: Restart
    ) async throws {
        try await gate.register("u_1", region: "US", device: nil)
        try await address("a0", "ada@example.org")
        try #require(try await verdict() == "allowed")
        switch no {
        case .linkAtTheAddress: try await choose("user_off", at: "a0", source: "unsubscribe_link")
        case .linkForTheAccount: try await choose("user_off", source: "unsubscribe_link")
        case .offAtTheAddress: try await choose("user_off", at: "a0")
        case .offForTheAccount: try await choose("user_off")
        case .everyChannel: try await choose("user_off", on: nil)
        }
        let isOfAddress = [.linkAtTheAddress, .offAtTheAddress].contains(no)
        try #require(try await verdict() == "no_marketing_opt_in withdrawn")

        for place in ["a0", nil] {
            switch restart {
            case .onAtOnce: break
            default: try await choose("default", at: place)
            }
            try await choose("user_on", at: place)
        }
        switch restart {
        case .defaultThenOn, .onAtOnce: break
        case .registeredAgain: try await gate.register("u_1", region: "US", device: nil)
        case .addressPutAgain:
            let gone = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/a0")
            try #require(gone.status == 200)
            try await address("a0", "ADA@example.org")
        case .addressUnderAnotherName:
            let gone = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/a0")
            try #require(gone.status == 200)
            try await address("new", "ada@example.org")
        case .anotherValue: try await address("a0", "ada@example.com")
        case .anotherMailbox:
            // Said of one address it is not said of another that stands beside it.
            if isOfAddress { return }
            let gone = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/a0")
            try #require(gone.status == 200)
            try await address("b0", "ada@example.com")
        }
        let place =
            switch restart {
            case .addressUnderAnotherName: "new"
            case .anotherMailbox: "b0"
            default: "a0"
            }
        #expect(try await verdict() == "no_marketing_opt_in withdrawn")
        // A sale is the company's word, and a yes from before the no is late.
        let sale = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            consent("sale", at: place, by: "existing_customer"))
        #expect(sale.status == 409, "\(sale.json)")
        #expect(try await verdict() == "no_marketing_opt_in withdrawn")
        try await request("POST", "/consents", try consent("yes", at: place))
        #expect(try await verdict() == "allowed")
    }

    @Test(arguments: ["withdrawn", "link", "off", "refused"])
    func `a no that ends a yes goes along to the next value of the address`(_ no: String) async throws {
        try await gate.register("u_1", region: "US", device: nil)
        try await address("a0", "ada@example.org")
        try await request("POST", "/consents", try consent("yes"))
        switch no {
        case "withdrawn": try await request("POST", "/consents/yes/withdraw", [:])
        case "link": try await choose("user_off", at: "a0", source: "unsubscribe_link")
        case "off": try await choose("user_off", at: "a0")
        default:
            var refusal = try consent("no")
            refusal["state"] = "refused"
            try await request("POST", "/consents", refusal)
        }
        // What the phone says is no word to this consent.
        try await choose("user_on", at: "a0")
        try #require(try await verdict().hasPrefix("no_marketing_opt_in"))
        try await address("a0", "ada@example.com")
        #expect(try await standing()["marketing email a0"] == "withdrawn")
        #expect(try await verdict() == "no_marketing_opt_in withdrawn")
    }

    @Test func `a late grant does not outlive a withdrawal whose time was wrong, and the answer says so`()
        async throws
    {
        try await gate.register("u_1", device: nil)
        try await address("a0", "ada@example.org")
        try await request("POST", "/consents", try consent("g"))
        gate.clock.advance(seconds: 10)
        let withdrawn = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/g/withdraw",
            ["event_time": .string(gate.clock.now().advanced(bySeconds: -3600).rfc3339)])
        try #require(withdrawn.status == 200 && withdrawn["effect"] == nil, "\(withdrawn.json)")
        gate.clock.advance(seconds: 10)
        let late = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents", consent("late", saidSecondsAgo: 12))
        #expect(late["effect"] == "none" && late["why"] == "newer_word", "\(late.json)")
        #expect(try await standing()["marketing email a0"] == "withdrawn")
        try await request("POST", "/consents", try consent("new"))
        #expect(try await standing()["marketing email a0"] == "given")
    }

    @Test(arguments: ["user_off", "default"])
    func `an act about marketing ends what only marketing asks for, on its channel, and nothing else`(
        state: String
    ) async throws {
        try await gate.register("u_1")
        try await address("a0", "ada@example.org")
        try await address("n0", "+4790000000", "sms")
        for consent in [
            try consent("m"), try consent("push", on: "push", at: nil),
            try consent("text", under: "sms_marketing", on: "sms", at: "n0", by: "written_consent"),
            try consent("partners", to: "partner_offers", under: "partner_offers"),
            try consent("social", to: "social", under: "social"),
            try consent("service", to: "transactional", under: "sms_service", on: "sms", at: "n0"),
        ] { try await request("POST", "/consents", consent) }
        try await choose(state)
        var standing = try await standing()
        #expect(standing["marketing email a0"] == "withdrawn")
        #expect(standing["partner_offers email a0"] == "withdrawn")
        #expect(standing["marketing push"] == "given" && standing["marketing sms n0"] == "given")
        try await choose(state, on: "sms")
        try await choose(state, on: "push")
        standing = try await self.standing()
        #expect(standing["marketing push"] == "withdrawn" && standing["marketing sms n0"] == "withdrawn")
        #expect(standing["social email a0"] == "given" && standing["transactional sms n0"] == "given")
        // Another category's act is not about marketing, nor is its default an end to consent.
        try await request("POST", "/consents", try consent("again"))
        try await choose("default", "social")
        standing = try await self.standing()
        #expect(standing["social email a0"] == "given" && standing["marketing email a0"] == "given")
    }

    /// Acts of a day in any order at two mailboxes, where silence is no refusal, against a few lines of what must hold.
    @Test(arguments: [UInt64(20_261_122), 7, 8])
    func `whatever is said after a no, only a grant from after it lets an offer out`(seed: UInt64)
        async throws
    {
        var numbers = SeededNumbers(seed: seed)
        func pick<Value>(_ values: [Value]) -> Value { values[Int(numbers.next() % UInt64(values.count))] }
        var outcomes: [String: Int] = [:]
        for person in 0..<40 {
            let user = "u_\(person)"
            try await gate.register(user, region: "US", device: nil)
            // By mailbox: when the last no that covers it was received, and when the newest grant was given.
            var no: [String: Instant] = [:]
            var yes: [String: Instant] = [:]
            func put(_ path: String, _ method: String, _ body: JSONObject) async throws
                -> GatewayHarness.Reply
            {
                gate.clock.advance(seconds: 60)
                return try await gate.call("product", method, "/v1/recipients/\(user)" + path, body)
            }
            for (id, value) in [("a0", "\(user)@example.org"), ("a1", "\(user)@example.com")] {
                let reply = try await put(
                    "/addresses/\(id)", "PUT",
                    ["kind": "email", "value": .string(value), "verified_at": "2026-11-21T00:00:00Z"])
                try #require(reply.status == 200, "\(reply.json)")
            }
            var grants: [(id: String, place: String)] = []
            var acts: [String] = []
            for number in 0..<Int(4 + numbers.next() % 10) {
                let place = pick(["a0", "a1", nil])
                let covered = place.map { [$0] } ?? ["a0", "a1"]
                switch numbers.next() % 8 {
                case 0...3:
                    let state = pick(["user_off", "user_off", "default", "user_on"])
                    let source = pick(["in_app_settings", "unsubscribe_link"])
                    var body: JSONObject = [
                        "state": .string(state), "source": .string(source), "channel": "email",
                    ]
                    if let place { body["address"] = .string(place) }
                    let reply = try await put("/preferences/marketing", "PUT", body)
                    try #require(reply.status == 200, "\(reply.json)")
                    if state != "user_on" { for place in covered { no[place] = gate.clock.now() } }
                    acts.append("\(state) \(place ?? "account")")
                case 4, 5:
                    let place = pick(["a0", "a1"])
                    gate.clock.advance(seconds: 60)
                    let age = Int64(numbers.next() % 1200)
                    var body = try consent("g\(number)", at: place, saidSecondsAgo: age)
                    body["id"] = .string("\(user)-g\(number)")
                    let reply = try await gate.call(
                        "product", "POST", "/v1/recipients/\(user)/consents", body)
                    try #require(reply.status == 200, "\(reply.json)")
                    let said = gate.clock.now().advanced(bySeconds: -age)
                    yes[place] = max(yes[place] ?? said, said)
                    grants.append(("\(user)-g\(number)", place))
                    acts.append("grant \(place) \(age) s ago")
                case 6:
                    guard !grants.isEmpty else { continue }
                    let grant = pick(grants)
                    gate.clock.advance(seconds: 60)
                    let age = Int64(numbers.next() % 2400)
                    let at = gate.clock.now().advanced(bySeconds: -age).rfc3339
                    let reply = try await put(
                        "/consents/\(grant.id)/withdraw", "POST", ["event_time": .string(at)])
                    try #require(reply.status == 200, "\(reply.json)")
                    if reply["effect"] == nil { no[grant.place] = gate.clock.now() }
                    acts.append("withdraw \(grant) \(age) s ago: \(reply["why"] ?? "ended")")
                default:
                    gate.clock.advance(seconds: 60)
                    let place = pick(["a0", "a1"])
                    var body = try consent("s\(number)", at: place, by: "existing_customer")
                    body["id"] = .string("\(user)-s\(number)")
                    let reply = try await gate.call(
                        "product", "POST", "/v1/recipients/\(user)/consents", body)
                    #expect(reply.status == 200 || reply.status == 409, "\(reply.json)")
                    acts.append("sale \(place) \(reply.status)")
                }
            }
            var send = try await gate.promo("x-\(user)", to: user)
            send["channel"] = "email"
            let reply = try await gate.call("marketing", "POST", "/v1/sends", send)
            for delivery in reply.json["deliveries"]?.arrayValue ?? [] {
                let place = try #require(delivery["destination"]?.stringValue)
                let reason = try #require(delivery["reason"]?.stringValue)
                outcomes[reason, default: 0] += 1
                guard reason == "allowed", let no = no[place] else { continue }
                #expect(yes[place].map { $0 > no } == true, "\(user) \(place): \(acts)")
            }
        }
        #expect(
            outcomes["allowed", default: 0] > 8 && outcomes["no_marketing_opt_in", default: 0] > 20,
            "\(outcomes)")
    }
}

extension JSONObject {
    fileprivate func removing(_ name: String) -> JSONObject {
        var object = self
        object[name] = nil
        return object
    }
}
