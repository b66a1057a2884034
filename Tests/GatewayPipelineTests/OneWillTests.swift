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

/// Consent and preference are one will, and both are about a number or a mailbox, not about its name.
@Suite struct OneWillTests {
    private let gate: GatewayHarness

    init() throws {
        gate = try GatewayHarness()
    }

    private init(of gate: GatewayHarness) { self.gate = gate }

    @discardableResult
    private func address(_ id: String, _ kind: String, _ value: String, to user: String = "u_1") async throws
        -> GatewayHarness.Reply
    {
        try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
    }

    private func agree(
        _ id: String, to purpose: String = "marketing", under notice: String? = nil, on channel: String,
        for address: String? = nil, saidSecondsAgo age: Int64 = 0, method: String = "in_app_toggle",
        state: String = "given", answered status: Int = 200
    ) async throws {
        let shown = notice ?? (method == "existing_customer" ? method : "promo")
        let notice = try #require(
            gate.policy.bundle.notices.values.filter { $0.key.id == shown && $0.key.language == "en" }
                .max { $0.key.version < $1.key.version })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": .string(id), "purpose": .string(purpose), "channel": .string(channel),
                "address": address.map { .string($0) } ?? .null, "state": .string(state),
                "event_time": .string(gate.clock.now().advanced(bySeconds: -age).rfc3339),
                "method": .string(method), "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(reply.status == status, "\(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    private func choose(
        _ state: String, _ scope: String = "marketing", on channel: String?, at destination: String? = nil,
        source: String = "in_app_settings", by caller: String = "product"
    ) async throws {
        var body: JSONObject = ["state": .string(state), "source": .string(source)]
        if let channel { body["channel"] = .string(channel) }
        if let destination { body[channel == "push" ? "device" : "address"] = .string(destination) }
        let reply = try await gate.call(caller, "PUT", "/v1/recipients/u_1/preferences/\(scope)", body)
        try #require(reply.status == 200, "\(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    /// The reason and detail of one send; the marketing cap is a matter of its own.
    private func verdict(
        _ type: String = "promo.offer", by caller: String = "marketing", on channel: String
    ) async throws -> String {
        var send = try await gate.example(type, "x-\(gate.clock.now().milliseconds)", to: "u_1", as: caller)
        send["channel"] = .string(channel)
        let reply = try await gate.call(caller, "POST", "/v1/sends", send)
        gate.clock.advance(seconds: 8 * 86_400)
        return [reply["reason"], reply["detail"]].compactMap(\.self).joined(separator: " ")
    }

    // MARK: Addresses

    @Test(arguments: [("email", "a@example.org", "b@example.org"), ("sms", "+4790000000", "+4790000888")])
    func `consent stays with the address it was given for, whatever takes its name`(
        kind: String, own: String, other: String
    ) async throws {
        try await gate.register("u_1", device: nil)
        try await address("n", kind, own)
        try await agree("c1", on: kind, for: "n")
        try #require(try await verdict(on: kind) == "allowed")
        // Renamed by removal, and then over the same name.
        try #require(
            try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/n").status == 200)
        try #require(try await address("n", kind, other).status == 200)
        #expect(try await verdict(on: kind) == "no_gdpr_consent other_address")
        try #require(try await address("n", kind, own).status == 200)
        #expect(try await verdict(on: kind) == "allowed")
    }

    @Test(arguments: ["refused", "user_off", "default", "withdrawn"])
    func `a no under a name goes with the name to an address that was agreed to before`(_ no: String)
        async throws
    {
        try await gate.register("u_1", device: nil)
        try await address("n", "email", "a@example.org")
        try await agree("c1", on: "email", for: "n")
        gate.clock.advance(seconds: 1)
        try await address("n", "email", "b@example.org")
        try await agree("c2", on: "email", for: "n")
        try #require(try await verdict(on: "email") == "allowed")
        switch no {
        case "refused": try await agree("c3", on: "email", for: "n", state: "refused")
        case "withdrawn":
            let withdrawn = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents/c2/withdraw", ["method": "in_app_toggle"])
            try #require(withdrawn.status == 200, "\(withdrawn.json)")
        default: try await choose(no, on: "email", at: "n")
        }
        gate.clock.advance(seconds: 1)
        try await address("n", "email", "a@example.org")
        #expect(try await verdict(on: "email") == "no_gdpr_consent withdrawn")
        // A yes that is newer than the no stands.
        try await agree("c4", on: "email", for: "n")
        try #require(try await verdict(on: "email") == "allowed")
        try await address("n", "email", "b@example.org")
        try await address("n", "email", "a@example.org")
        #expect(try await verdict(on: "email") == "allowed")
    }

    @Test(arguments: ["transactional", "social.comment"])
    func `a preference against an address goes with its name, until a newer one is set there`(
        scope: String
    ) async throws {
        try await gate.register("u_1", device: nil)
        try await address("n", "email", "a@example.org")
        try await choose("user_off", scope, on: "email", at: "n")
        try await address("n", "email", "b@example.org")
        func chosen() async throws -> String? {
            let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
            return answer.json["preferences"]?.arrayValue?.first {
                $0["scope"]?.stringValue == scope && $0["channel"] == "email" && $0["destination"] == "n"
            }?["chosen"]?.stringValue
        }
        #expect(try await chosen() == "user_off")
        try await choose("user_on", scope, on: "email", at: "n")
        try await address("n", "email", "a@example.org")
        #expect(try await chosen() == "user_off")
        try await choose("user_on", scope, on: "email", at: "n")
        try await address("n", "email", "b@example.org")
        #expect(try await chosen() == "user_on")
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
        let (_, differences) = try EvidenceFoldTests.fold(stored.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        #expect(try EvidenceFoldTests.objections(to: stored.map(\.bytes), under: gate.policy) == [:])
    }

    @Test func `a yes counts on the channels its words are about`() async throws {
        try await gate.register("u_1")
        try await address("n_1", "sms", "+4790000001")
        try await agree("texts", under: "sms_marketing", on: "sms", for: "n_1", method: "written_consent")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "sms_marketing" })
        let push = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c_push", "purpose": "marketing", "channel": "push", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        #expect(push.status == 422 && push["type"] == "urn:sendgate:problem:other_purpose", "\(push.json)")
        #expect(
            push["detail"]?.contains("asks about marketing on sms, not about `marketing` on push") == true)
        // There was no text to say yes to for these e-mails.
        try await address("e_1", "email", "ada@example.com")
        var mention = try await gate.example("social.mention", "m_1", to: "u_1", as: "social")
        mention["channel"] = "email"
        #expect(
            try await gate.call("social", "POST", "/v1/sends", mention)["reason"] == "no_email_consent")
        try await agree("mentions", to: "social", under: "social", on: "email", for: "e_1")
        mention["id"] = "m_2"
        #expect(try await gate.call("social", "POST", "/v1/sends", mention).status == 202)
    }

    // MARK: Words

    /// A phone may tell of a yes days after a later bundle has let its words go.
    @Test func `a yes to words that were in force once is a yes to what they asked`() async throws {
        try await gate.register("u_1")
        let current = try #require(
            gate.policy.bundle.notices[Notice.Key(id: "promo", version: "3", language: "en")])
        var pages = try Repository.pages()
        let path = "notices/promo.99.en.txt"
        pages[path] = PolicyNode(json: .string(current.text + "\n"))
        var cover = try #require(pages["bundle.yaml"]?.json.objectValue)
        cover["files"] = .array((cover["files"]?.arrayValue ?? []) + [.string(path)])
        pages["bundle.yaml"] = PolicyNode(json: .object(cover))
        let other = CompiledPolicy(try PolicyBundle.read(documents: pages).get())
        let notice = try #require(other.notice(Notice.Key(id: "promo", version: "99", language: "en")))
        func consent(_ id: String, to purpose: String, sha256: String) async throws -> String {
            let reply = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents",
                [
                    "id": .string(id), "purpose": .string(purpose), "channel": "push", "state": "given",
                    "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                    "jurisdiction": "DE",
                    "notice": [
                        "id": "promo", "version": "99", "language": "en", "sha256": .string(sha256),
                    ],
                ])
            return reply.status == 200 ? "recorded" : reply["type"] ?? "\(reply.status)"
        }
        let unknown = "urn:sendgate:problem:unknown_notice"
        #expect(try await consent("c1", to: "marketing", sha256: notice.sha256) == unknown)
        try gate.store.write { try $0.archiveNotices(of: other) }
        #expect(try await consent("c1", to: "marketing", sha256: current.sha256) == unknown)
        #expect(
            try await consent("c1", to: "social", sha256: notice.sha256)
                == "urn:sendgate:problem:other_purpose")
        #expect(try await consent("c1", to: "marketing", sha256: notice.sha256) == "recorded")
        #expect(try await verdict(on: "push") == "allowed")
        let scope = try gate.store.read { try $0.archivedScope(of: notice.key, sha256: notice.sha256) }
        #expect(scope == other.scope(of: notice.key))
    }

    /// A state directory of a gateway that archived texts before they named their methods and their basis.
    @Test func `an archive without methods and basis is read as any ordinary method and plain consent`()
        throws
    {
        let key = Notice.Key(id: "old", version: "1", language: "en")
        try gate.store.write { $0.setSetting("notice abcd as old 1 en", to: "marketing push,sms") }
        let scope = try gate.store.read { try $0.archivedScope(of: key, sha256: "abcd") }
        #expect(
            scope
                == Notice.Scope(
                    purposes: [.marketing], channels: [.push, .sms], methods: Notice.ordinaryMethods,
                    basis: "consent"))
        try gate.store.write { $0.setSetting("notice abcd as old 1 en", to: "marketing push,fax") }
        #expect(throws: StoreError.self) {
            try gate.store.read { try $0.archivedScope(of: key, sha256: "abcd") }
        }
    }

    @Test func `nobody consents to what is asked for no more, under whatever text it once was`() async throws
    {
        try await gate.register("u_1")
        let hash = String(repeating: "ab", count: 32)
        try gate.store.write { $0.setSetting("notice \(hash) as gone 1 en", to: "leaflets push") }
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c1", "purpose": "leaflets", "channel": "push", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": ["id": "gone", "version": "1", "language": "en", "sha256": .string(hash)],
            ])
        #expect(reply["type"] == "urn:sendgate:problem:unknown_purpose", "\(reply.json)")
    }

    @Test func `only what is signed is written consent under the text to be signed`() async throws {
        try await gate.register("u_1", region: "US")
        try await address("n", "sms", "+12125550100")
        try await agree("tap", under: "sms_marketing", on: "sms", for: "n", answered: 422)
        try await agree("signed", under: "sms_marketing", on: "sms", for: "n", method: "written_consent")
    }

    /// The example of the handbook cites `promo` for the ordinary ways to agree; the two that a law ties to a text of their
    /// own are agreed to under that text only, whatever caller reports them and however old the word is.
    @Test func `each way to agree belongs to the notices that have it`() async throws {
        let gate = try GatewayHarness(edit: { pages in
            for (caller, method) in [("product", "paper_form"), ("product", "phone_call")] {
                guard case .object(var page)? = pages["callers.yaml"]?.json,
                    case .object(var callers)? = page["callers"], case .object(var rule)? = callers[caller],
                    case .object(var claims)? = rule["may_assert"],
                    case .array(let methods)? = claims["methods"], case .array(let grants)? = rule["grants"]
                else { return }
                claims["methods"] = .array(methods + [.string(method)])
                rule["may_assert"] = .object(claims)
                rule["grants"] = .array(
                    grants.contains("consents.import") ? grants : grants + ["consents.import"])
                callers[caller] = .object(rule)
                page["callers"] = .object(callers)
                pages["callers.yaml"] = PolicyNode(json: .object(page))
            }
        })
        try await gate.register("u_1", region: "US")
        for (id, kind, value) in [("m", "email", "a@example.org"), ("n", "sms", "+12125550100")] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(reply.status == 200)
        }
        var (taken, refused) = (0, 0)
        for notice in gate.policy.bundle.notices.values where notice.key.language == "en" {
            let scope = try #require(gate.policy.scope(of: notice.key))
            for method in ConsentMethod.allCases {
                // Said now, and imported.
                for age: Int64 in [0, 30 * 86_400] {
                    let channel = scope.channels[0]
                    let said = gate.clock.now().advanced(bySeconds: -age).rfc3339
                    var body: JSONObject = [
                        "id": .string("\(notice.key.id)-\(method)-\(age)"),
                        "purpose": .string(scope.purposes[0].text),
                        "channel": .string(channel.rawValue), "state": "given", "jurisdiction": "US",
                        "event_time": .string(said),
                        "method": .string(method.rawValue),
                        "notice": [
                            "id": .string(notice.key.id), "version": .string(notice.key.version),
                            "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                        ],
                    ]
                    if channel != .push { body["address"] = channel == .sms ? "n" : "m" }
                    let reply = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", body)
                    let isOwn = [
                        "sms_marketing": "written_consent", "existing_customer": "existing_customer",
                    ][notice.key.id]
                    let isListed =
                        isOwn.map { $0 == method.rawValue }
                        ?? !["written_consent", "existing_customer"].contains(method.rawValue)
                    if isListed {
                        taken += 1
                        #expect(reply.status == 200 || reply.status == 409, "\(body): \(reply.json)")
                    } else {
                        refused += 1
                        #expect(reply.status == 422 || reply.status == 409, "\(body): \(reply.json)")
                        #expect(reply.status == 409 || "\(reply.json)".contains("/method"), "\(reply.json)")
                    }
                    gate.clock.advance(seconds: 1)
                }
            }
        }
        #expect(taken > 100 && refused > 40, "\(taken) \(refused)")
    }

    // MARK: Sales

    @Test func `a sale permits e-mail where the recipient said nothing, and is no choice of theirs`()
        async throws
    {
        try await gate.register("u_1", device: nil)
        try await address("m", "email", "a@example.org")
        #expect(try await verdict(on: "email") == "no_gdpr_consent never_asked")
        try await agree("sale", on: "email", for: "m", method: "existing_customer")
        #expect(try await verdict(on: "email") == "allowed")
        let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        #expect(try gate.store.read { try $0.preferences(of: subject.id) }.isEmpty)
        #expect(try await shown("marketing", "email") == "on permitted")
        // A second sale says no more than the first.
        try await agree("again", on: "email", for: "m", method: "existing_customer")
        try await choose("user_off", on: "email", source: "unsubscribe_link")
        #expect(try await verdict(on: "email").hasPrefix("no_gdpr_consent"))
    }

    @Test func `the text for whoever bought something is agreed to by no tap, and can be said no to`()
        async throws
    {
        try await gate.register("u_1", device: nil)
        try await address("m", "email", "a@example.org")
        try await agree("tap", under: "existing_customer", on: "email", for: "m", answered: 422)
        try await agree(
            "sale", under: "existing_customer", on: "email", for: "m", method: "existing_customer")
        #expect(try await verdict(on: "email") == "allowed")
        try await agree("no", under: "existing_customer", on: "email", for: "m", state: "refused")
        #expect(try await verdict(on: "email") == "no_gdpr_consent refused")
    }

    @Test(arguments: ["refused", "unsubscribed", "objected", "muted the address"])
    func `a sale undoes no word of the recipient`(word: String) async throws {
        try await gate.register("u_1", device: nil)
        try await address("m", "email", "a@example.org")
        switch word {
        case "refused": try await agree("no", on: "email", for: "m", state: "refused")
        case "unsubscribed": try await choose("user_off", on: "email", source: "unsubscribe_link")
        case "objected": try await choose("user_off", on: nil)
        default: try await choose("user_off", on: "email", at: "m")
        }
        let before = try await verdict(on: "email")
        try #require(before != "allowed")
        try await agree("sale", on: "email", for: "m", method: "existing_customer", answered: 409)
        #expect(try await verdict(on: "email") == before)
        // Only they can say otherwise.
        try await agree("yes", on: "email", for: "m")
        #expect(try await verdict(on: "email") == "allowed")
    }

    @Test func `an objection to everything covers the mailbox that is registered after it`() async throws {
        try await gate.register("u_1", device: nil)
        try await choose("user_off", on: nil)
        try await address("new", "email", "new@example.org")
        try await agree("sale", on: "email", for: "new", method: "existing_customer", answered: 409)
        #expect(try await verdict(on: "email").hasPrefix("no_gdpr_consent"))
    }

    @Test func `a sale does not take the place of a yes, and is none to anything else`() async throws {
        try await gate.register("u_1")
        try await address("m", "email", "a@example.org")
        try await address("n", "sms", "+4790000000")
        try await agree("yes", on: "email", for: "m")
        try await agree("sale", on: "email", for: "m", method: "existing_customer", answered: 409)
        try await agree("push", on: "push", method: "existing_customer", answered: 422)
        try await agree(
            "text", under: "sms_marketing", on: "sms", for: "n", method: "existing_customer", answered: 422)
        try await agree(
            "help", to: "intervention", under: "intervention", on: "push", method: "existing_customer",
            answered: 422)
        #expect(try await verdict(on: "email") == "allowed")
    }

    @Test func `a sale is a yes to e-mail, whatever a notice asks for`() async throws {
        let careless = try GatewayHarness(
            edit: { pages in
                guard case .object(var page)? = pages["notices.yaml"]?.json,
                    case .object(var notices)? = page["notices"],
                    case .object(var notice)? = notices["existing_customer"]
                else {
                    Issue.record("there is no such notice")
                    return
                }
                notice["channels"] = ["email", "push", "sms"]
                notices["existing_customer"] = .object(notice)
                page["notices"] = .object(notices)
                pages["notices.yaml"] = PolicyNode(json: .object(page))
            }, isChecked: false)
        let other = OneWillTests(of: careless)
        try await careless.register("u_1")
        try await other.address("m", "email", "a@example.org")
        try await other.address("n", "sms", "+4790000000")
        try await other.agree("sale", on: "email", for: "m", method: "existing_customer")
        try await other.agree("push", on: "push", method: "existing_customer", answered: 422)
        try await other.agree("text", on: "sms", for: "n", method: "existing_customer", answered: 422)
    }

    @Test func `an objection follows the mailbox to its next name`() async throws {
        try await gate.register("u_1", region: "US", device: nil)
        try await address("e", "email", "Anna@example.org")
        try #require(try await verdict(on: "email") == "allowed")
        try await agree("c1", on: "email", for: "e", state: "refused")
        #expect(try await verdict(on: "email") == "no_marketing_opt_in refused")
        let twice = try await address("e2", "email", "anna@example.org")
        #expect(twice.status == 409, "\(twice.json)")
        try #require(
            try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/e").status == 200)
        try #require(try await address("e2", "email", "anna@example.org").status == 200)
        #expect(try await verdict(on: "email") == "no_marketing_opt_in refused")
    }

    @Test func `a consent elsewhere that was taken back is no consent elsewhere`() async throws {
        try await gate.register("u_1")
        try await address("e", "email", "a@example.org")
        try await agree("c1", on: "push")
        #expect(try await verdict(on: "email") == "no_gdpr_consent other_channel")
        try await choose("user_off", on: "push")
        #expect(try await verdict(on: "email") == "no_gdpr_consent never_asked")
    }

    // MARK: Yes and no

    @Test func `whoever unsubscribed from e-mail opts in again by consent`() async throws {
        try await gate.register("u_1", device: nil)
        try await address("e", "email", "a@example.org")
        try await agree("c1", on: "email", for: "e")
        #expect(try await chosen("marketing", "email", "e") == "user_on")
        try await choose("user_off", on: "email", source: "unsubscribe_link")
        #expect(try await verdict(on: "email") == "no_gdpr_consent withdrawn")
        try await agree("c2", on: "email", for: "e")
        #expect(try await verdict(on: "email") == "allowed")
    }

    @Test func `a yes for one mailbox takes back no objection for another`() async throws {
        try await gate.register("u_1", region: "US", device: nil)
        try await address("a", "email", "a@example.org")
        try await address("b", "email", "b@example.org")
        try await choose("user_off", on: "email")
        try await agree("c1", on: "email", for: "b")
        var promo = try await gate.promo("p1", to: "u_1")
        promo["channel"] = "email"
        let reply = try await gate.call("marketing", "POST", "/v1/sends", promo)
        let deliveries = (reply.json["deliveries"]?.arrayValue ?? []).compactMap(\.objectValue)
        let reasons = deliveries.reduce(into: [:]) {
            $0[$1["destination"]?.stringValue ?? ""] = $1["reason"]?.stringValue
        }
        #expect(reasons == ["a": "no_marketing_opt_in", "b": "allowed"], "\(reply.json)")
    }

    @Test func `an objection to everything that is told of late leaves what was agreed to since`()
        async throws
    {
        try await gate.register("u_1")
        try await address("a", "email", "a@example.org")
        try await address("b", "email", "b@example.org")
        try await agree("c1", on: "push")
        try await agree("c2", on: "email", for: "a")
        let late = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/c1/withdraw",
            [
                "every_channel": true,
                "event_time": .string(gate.clock.now().advanced(bySeconds: -3600).rfc3339),
            ])
        try #require(late.status == 200, "\(late.json)")
        // The consent it names ends, whatever the clocks say; the other was given since.
        #expect(try await chosen("marketing", "push") == "user_off")
        #expect(try await chosen("marketing", "email", "a") == "user_on")
        #expect(try await chosen("marketing", "email", "b") == "user_off")
        #expect(try await chosen("marketing", "email") == "default")
        #expect(try await chosen("marketing", "sms") == "user_off")
        #expect(try await verdict(on: "push") == "no_gdpr_consent withdrawn")
        #expect(try await verdict(on: "email") == "allowed")
        // The trail says when it was said, where that is not when it was told.
        let told = try gate.store.read { try $0.entries(from: 0, limit: 1000) }
            .map { try CanonicalJSON.read($0.bytes) }
            .filter { $0["kind"] == "preference" && $0["state"] == "user_off" }
        #expect(!told.isEmpty && told.allSatisfy { $0["event_time"] != nil })
    }

    @Test func `a STOP to service texts is heard where they need no consent`() async throws {
        try await gate.register("u_1", device: nil)
        try await address("n", "sms", "+4790000000")
        try await agree("c1", to: "transactional", under: "sms_service", on: "sms", for: "n")
        try #require(
            try await verdict("transaction.remittance_sent", by: "payments", on: "sms") == "allowed")
        let stop = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/c1/withdraw", ["method": "sms_keyword"])
        try #require(stop.status == 200, "\(stop.json)")
        gate.clock.advance(seconds: 1)
        #expect(
            try await verdict("transaction.remittance_sent", by: "payments", on: "sms")
                == "user_preference destination_off")
    }

    @Test(arguments: ["push", nil])
    func `a yes that is told of late does not outlive the no said after it`(channel: String?) async throws {
        try await gate.register("u_1")
        try await choose("user_off", on: channel)
        try await agree("late", on: "push", saidSecondsAgo: 3600)
        #expect(try await verdict(on: "push") == "no_gdpr_consent withdrawn")
        // A switch alone never creates consent, and a yes that is newer counts.
        try await choose("user_on", on: "push")
        #expect(try await verdict(on: "push") == "no_gdpr_consent withdrawn")
        try await agree("new", on: "push")
        #expect(try await verdict(on: "push") == "allowed")
    }

    @Test func `a late yes by e-mail is not revived by the switch`() async throws {
        try await gate.register("u_1", device: nil)
        try await address("e", "email", "a@example.org")
        try await choose("user_off", on: "email", source: "unsubscribe_link")
        try await agree("late", on: "email", for: "e", saidSecondsAgo: 3600)
        try await choose("user_on", on: "email")
        #expect(try await verdict(on: "email") == "no_gdpr_consent withdrawn")
    }

    @Test
    func `a late yes does not switch on what was switched off since, security behind its step-up least`()
        async throws
    {
        try await gate.register("u_1")
        try await address("n_1", "sms", "+4790000001")
        try await choose("user_off", "transactional", on: "sms")
        try await agree(
            "t", to: "transactional", under: "sms_service", on: "sms", for: "n_1", saidSecondsAgo: 3600)
        #expect(
            try await verdict("transaction.remittance_sent", by: "payments", on: "sms")
                == "user_preference account_off")
        try await choose("user_off", "security", on: "sms", source: "in_app_step_up", by: "security")
        try await agree(
            "s", to: "security", under: "sms_service", on: "sms", for: "n_1", saidSecondsAgo: 3600)
        #expect(
            try await verdict("security.new_login", by: "security", on: "sms")
                == "user_preference account_off")
    }

    private func chosen(
        _ scope: String, _ channel: String, _ destination: String? = nil
    ) async throws -> String? {
        try await row(scope, channel, destination)["chosen"]?.stringValue
    }

    // MARK: What is shown

    private func row(_ scope: String, _ channel: String, _ destination: String? = nil) async throws
        -> JSONObject
    {
        let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        let rows = (answer.json["preferences"]?.arrayValue ?? []).compactMap(\.objectValue)
        return try #require(
            rows.first {
                $0["scope"]?.stringValue == scope && $0["channel"]?.stringValue == channel
                    && $0["destination"]?.stringValue == destination
            })
    }

    /// What is shown, and what a send of the category comes to.
    private func shown(_ scope: String, _ channel: String) async throws -> String {
        let row = try await row(scope, channel)
        return [row["effective"], row["why"], row["detail"]].compactMap { $0?.stringValue }
            .joined(separator: " ")
    }

    @Test func `the master switch does not show security as off`() async throws {
        try await gate.register("u_1")
        var body: JSONObject = ["region": "DE", "region_source": "kyc", "age": "adult"]
        body["push_enabled"] = false
        try #require(try await gate.call("product", "PUT", "/v1/recipients/u_1", body).status == 200)
        #expect(try await shown("security", "push") == "on default")
        #expect(try await shown("transactional", "push") == "off push_disabled")
    }

    @Test func `the master switch of push is no reason for e-mail`() async throws {
        try await gate.register("u_1")
        try await address("e", "email", "a@example.org")
        let body: JSONObject = [
            "region": "DE", "region_source": "kyc", "age": "adult", "push_enabled": false,
        ]
        try #require(try await gate.call("product", "PUT", "/v1/recipients/u_1", body).status == 200)
        #expect(try await shown("marketing", "email") == "off no_gdpr_consent never_asked")
    }

    @Test func `what is off at the only device is switched on there`() async throws {
        try await gate.register("u_1")
        try await choose("user_off", "transactional", on: "push", at: "d_1")
        #expect(
            try await row("transactional", "push")["how_to_fix"] == "Switch it on at the device or address")
    }

    @Test func `a minor sees that offers are off, and why`() async throws {
        try await gate.register("u_1", age: "minor")
        try await agree("c1", on: "push")
        #expect(try await shown("marketing", "push") == "off minor")
    }

    @Test func `the law of the place is what is shown`() async throws {
        try await gate.register("u_1", region: "US", device: nil)
        try await address("e", "email", "a@example.org")
        try await address("n", "sms", "+12125550100")
        #expect(try await shown("marketing", "email") == "on permitted")
        #expect(try await shown("transactional", "sms") == "off no_sms_consent never_asked")
        #expect(try await shown("social", "email") == "off no_email_consent never_asked")
        try await gate.register("u_1", region: "DE", device: nil)
        #expect(try await shown("marketing", "email") == "off no_gdpr_consent never_asked")
        // The number still rings in the United States.
        #expect(try await shown("transactional", "sms") == "off no_sms_consent never_asked")
    }

    @Test func `a yes at an address is the recipient's choice, not the law's`() async throws {
        try await gate.register("u_1", device: nil)
        try await address("m", "email", "a@example.org")
        try await agree("yes", on: "email", for: "m")
        #expect(try await shown("marketing", "email") == "on chosen")
    }

    @Test func `a type that may be muted alone is shown before anybody muted it`() async throws {
        try await gate.register("u_1")
        let type = try #require(
            gate.policy.bundle.types.values.filter { $0.isMutableAlone && $0.isEnabled && $0.purpose == nil }
                .map(\.id.text).min())
        #expect(try await row(type, "push")["chosen"] == "default")
    }

    @Test func `what is missing is named: offers, or the purpose of the type`() async throws {
        try await gate.register("u_1")
        #expect(
            try await row("marketing", "push")["how_to_fix"] == "Give consent to offers on this channel")
        #expect(
            try await row("programme.tip", "push")["how_to_fix"]
                == "Give consent to `programme` on this channel")
    }

    // MARK: Taking back

    @Test func `only what left is gone, and what was taken back is so once`() async throws {
        try await gate.register("u_1")
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let path = "/v1/sends/\(try #require(sent["send_id"]))/cancel"
        let first = try await gate.call("payments", "POST", path)
        #expect(first.json["withdrawn"] == ["d_1"] && first.json["gone"] == [])
        let second = try await gate.call("payments", "POST", path)
        #expect(second.json["withdrawn"] == [] && second.json["gone"] == [])
    }

    @Test func `a text replaces a push of its own caller to the same person, and no other`() async throws {
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        try await address("n", "sms", "+4790000000")
        func sent(_ type: String, _ id: String, to user: String, as caller: String) async throws -> String {
            let push = try await gate.call(
                caller, "POST", "/v1/sends", gate.example(type, id, to: user, as: caller))
            return try #require(push["send_id"], "\(push.json)")
        }
        let own = try await sent("transaction.remittance_sent", "p1", to: "u_1", as: "payments")
        let anothers = try await sent("transaction.remittance_sent", "p2", to: "u_2", as: "payments")
        let security = try await sent("security.new_login", "p3", to: "u_1", as: "security")
        let nobodys = "8a8a8a8a-8a8a-4a8a-8a8a-8a8a8a8a8a8a"
        for (number, push) in [own, anothers, security, nobodys].enumerated() {
            var text = try await gate.example(
                "transaction.remittance_sent", "t\(number)", to: "u_1", as: "payments")
            text["channel"] = "sms"
            text["fallback_for"] = .string(push)
            let reply = try await gate.call("payments", "POST", "/v1/sends", text)
            #expect((reply["detail"] == "fallback_mismatch") == (push != own), "\(number): \(reply.json)")
        }
    }

    @Test func `only a push can be replaced by a text`() async throws {
        try await gate.register("u_1", device: nil)
        try await address("n", "sms", "+4790000000")
        var text = try await gate.example(
            "transaction.remittance_sent", "t1", to: "u_1", as: "payments")
        text["channel"] = "sms"
        let first = try await gate.call("payments", "POST", "/v1/sends", text)
        try #require(first.status == 202, "\(first.json)")
        text["id"] = "t2"
        text["fallback_for"] = .string(try #require(first["send_id"]))
        let second = try await gate.call("payments", "POST", "/v1/sends", text)
        #expect(second["reason"] == "sms_fallback_forbidden" && second["detail"] == "fallback_mismatch")
    }
}
