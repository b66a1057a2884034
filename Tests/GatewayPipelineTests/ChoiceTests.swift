import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateRecords
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import SealedFormat
import Testing
import WireProtocol

/// What a person chose, and who may say so.
@Suite struct ChoiceTests {
    @Test func `security is switched off by step-up, by whom the bundle trusts with it`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        func choose(_ caller: String, _ source: String) async throws -> GatewayHarness.Reply {
            try await gate.call(
                caller, "PUT", "/v1/recipients/u_1/preferences/security",
                ["state": "user_off", "source": .string(source), "channel": "push"])
        }
        // The caller that speaks for the recipient every day has no step-up, and the security team nothing else.
        #expect(try await choose("product", "in_app_settings").status == 403)
        #expect(try await choose("product", "in_app_step_up").status == 403)
        #expect(try await choose("security", "in_app_settings").status == 403)
        #expect(try await choose("marketing", "in_app_step_up").status == 403)
        let alert = try await gate.example("security.new_login", "s1", to: "u_1", as: "security")
        #expect(try await gate.call("security", "POST", "/v1/sends", alert).status == 202)
        let off = try await choose("security", "in_app_step_up")
        #expect(off.status == 200, "\(off.json)")
        var next = alert
        next["id"] = "s2"
        let silenced = try await gate.call("security", "POST", "/v1/sends", next)
        #expect(silenced.status == 403 && silenced["reason"] == "user_preference", "\(silenced.json)")
    }

    /// What `callers.yaml` lets a caller claim, a second time.
    @Test func `a caller claims the sources and the methods that the bundle gives it, and no other`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let methods = Set(ConsentMethod.allCases).subtracting([.paperForm, .phoneCall])
        let refusal = JSONValue.string("urn:sendgate:problem:assertion_not_permitted")
        for method in ConsentMethod.allCases {
            let reply = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents",
                [
                    "id": .string(method.rawValue), "purpose": "marketing", "channel": "push",
                    "state": "refused", "event_time": .string(gate.clock.now().rfc3339),
                    "method": .string(method.rawValue), "jurisdiction": "DE",
                    "notice": [
                        "id": .string(notice.key.id), "version": .string(notice.key.version),
                        "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                    ],
                ])
            #expect(
                (reply.json["type"] == refusal) == !methods.contains(method),
                "\(method): \(reply.json)")
        }
        // What only the gateway itself records, not even of a withdrawal.
        try await gate.consent("u_1")
        for path in ["", "/c1/withdraw"] {
            var body: JSONObject = path.isEmpty ? try gate.consentBody("c2") : [:]
            body["method"] = "shared_address"
            let reply = try await gate.call("product", "POST", "/v1/recipients/u_1/consents\(path)", body)
            let violation = try #require(reply.json["violations"]?.arrayValue?.first, "\(reply.json)")
            #expect(reply.status == 422 && violation["pointer"] == "/method", "\(reply.json)")
            let names = "\(violation)"
            #expect(names.contains("email_reply") && !names.contains("shared_address"), "\(violation)")
        }
        // What no grant of its own stands before.
        for (source, problem) in [
            ("in_app_settings", nil), ("os_settings_sync", nil), ("unsubscribe_link", nil),
            ("in_app_step_up", "grant_missing"), ("admin_override", "assertion_not_permitted"),
        ] as [(String, String?)] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/preferences/transactional",
                ["state": "user_off", "source": .string(source), "channel": "push"])
            #expect(
                reply["type"] == problem.map { "urn:sendgate:problem:\($0)" }, "\(source): \(reply.json)")
        }
    }

    @Test func `a consent's id stands for one record, down to the law it was asked under`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notices = gate.policy.bundle.notices.values.filter { $0.key.id == "promo" }
        let shown = try #require(notices.first { $0.key.language == "en" })
        let other = try #require(notices.first { $0.key.language == "nb" })
        func notice(_ notice: Notice) -> JSONValue {
            [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ]
        }
        let body: JSONObject = [
            "id": "c1", "purpose": "marketing", "channel": "push",
            "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle", "jurisdiction": "DE",
            "notice": notice(shown), "expires_at": "2027-01-01T00:00:00Z",
        ]
        func give(_ changes: JSONObject = [:]) async throws -> GatewayHarness.Reply {
            var changed = body
            for (key, value) in changes { changed[key] = value }
            return try await gate.call("product", "POST", "/v1/recipients/u_1/consents", changed)
        }
        #expect(try await give().status == 200)
        #expect(try await give().json["replayed"] == true)
        let changes: [JSONObject] = [
            ["jurisdiction": "NO"], ["method": "web_form"], ["expires_at": nil],
            ["expires_at": "2027-01-02T00:00:00Z"], ["notice": notice(other)], ["state": "refused"],
            ["event_time": "2026-11-21T11:59:59Z"],
        ]
        for change in changes {
            let reply = try await give(change)
            #expect(reply.status == 409, "\(change): \(reply.json)")
        }
        let consents = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        #expect(consents.json["records"]?.arrayValue?.count == 1, "\(consents.json)")
        for (id, value) in [("e1", "ada@example.org"), ("e2", "ada@example.com")] {
            let put = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": "email", "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(put.status == 200, "\(put.json)")
        }
        #expect(try await give(["id": "c2", "channel": "email", "address": "e1"]).status == 200)
        #expect(try await give(["id": "c2", "channel": "email", "address": "e2"]).status == 409)
    }

    @Test func `a consent that ended before it was given is no consent`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c1", "purpose": "marketing", "channel": "push", "event_time": "2026-11-21T11:00:00Z",
                "method": "in_app_toggle", "jurisdiction": "DE", "expires_at": "2026-11-21T11:00:00Z",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        #expect(reply.status == 422, "\(reply.json)")
        let violation = reply.json["violations"]?.arrayValue?.first?.objectValue
        #expect(violation?["pointer"]?.stringValue == "/expires_at")
    }

    @Test func `only what is muted alone has a switch of its own`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var switches: Set<Bool> = []
        for type in gate.policy.types.map(\.id) + [TypeID("no.such.type"), TypeID("Marketing")] {
            let isMutableAlone = gate.policy.type(type)?.isMutableAlone == true
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/preferences/\(type.text)",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"])
            if isMutableAlone {
                #expect(reply.status == 200, "\(type): \(reply.json)")
            } else {
                #expect(
                    reply.status >= 400 && reply["type"] == "urn:sendgate:problem:unknown_scope",
                    "\(type): \(reply.json)")
            }
            switches.insert(isMutableAlone)
        }
        #expect(switches.count == 2)
    }

    @Test func `what the person answered the prompt may come later, once, and is the permission then`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: "not_determined")
        func report(_ answer: String?) async throws -> GatewayHarness.Reply {
            var body: JSONObject = ["device": "d_1", "shown_at": "2026-11-21T11:59:00Z"]
            if let answer { body["answer"] = .string(answer) }
            return try await gate.call("product", "POST", "/v1/recipients/u_1/permission-prompts", body)
        }
        #expect(try await report(nil).status == 200)
        #expect(try await report(nil).status == 409)
        #expect(try await report("denied").status == 200)
        #expect(try await report("denied").status == 409)
        #expect(try await report("granted").status == 409)
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        let device = held.json["devices"]?.arrayValue?.first?.objectValue
        #expect(device?["os_permission"]?.stringValue == "denied", "\(held.json)")
        let prompts = try #require(held.json["permission_prompts"]?.arrayValue).compactMap(\.objectValue)
        #expect(prompts.map { $0["answer"]?.stringValue } == ["denied"])
        #expect(prompts.first?["shown_at"]?.stringValue == "2026-11-21T11:59:00Z")
        let alert = try await gate.call(
            "security", "POST", "/v1/sends",
            gate.example("security.new_login", "s1", to: "u_1", as: "security"))
        #expect(alert["reason"] == "blocked_at_os_level", "\(alert.json)")
    }

    @Test func `a phone that answers wrongly may answer again, and not for ever`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        func add() async throws -> (DeviceKeyPair, path: String, proof: String) {
            let pair = DeviceKeyPair()
            let added = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
                ["suite": "P256_SHA256_AES256GCM", "public_key": .string(Base64URL.encode(pair.publicKey))])
            let keyID = try #require(added["key_id"])
            let proof = try pair.proof(
                of: envelopeText(#require(added.json["challenge"]?.objectValue)), keyID: keyID,
                app: "no.getdrop.app", device: "d_1", origin: gate.origin.publicKey.rawBytes,
                now: gate.clock.now())
            return (pair, "/v1/recipients/u_1/devices/d_1/keys/\(keyID)/confirm", proof)
        }
        let wrong = Base64URL.encode([UInt8](repeating: 1, count: 32))
        let (_, path, proof) = try await add()
        for left in (1...4).reversed() {
            let reply = try await gate.call("product", "POST", path, ["proof": .string(wrong)])
            #expect(reply.status == 403 && reply["detail"]?.contains("\(left) more") == true, "\(reply.json)")
        }
        #expect(try await gate.call("product", "POST", path, ["proof": .string(proof)]).status == 200)

        let (_, burnt, late) = try await add()
        for _ in 1...5 {
            #expect(try await gate.call("product", "POST", burnt, ["proof": .string(wrong)]).status == 403)
        }
        let void = try await gate.call("product", "POST", burnt, ["proof": .string(late)])
        #expect(void.status == 409 && void["detail"]?.contains("register the key again") == true)
    }

    @Test func `every challenge has a nonce of its own`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let pair = DeviceKeyPair()
        var nonces: Set<[UInt8]> = []
        for _ in 0..<3 {
            let added = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/devices/d_1/keys",
                ["suite": "P256_SHA256_AES256GCM", "public_key": .string(Base64URL.encode(pair.publicKey))])
            let challenge = try #require(added.json["challenge"]?.objectValue, "\(added.json)")
            nonces.insert(try pair.nonce(of: challenge, app: "no.getdrop.app", device: "d_1"))
        }
        #expect(nonces.count == 3)
    }

    @Test func `a consent that has expired is called that wherever it is shown`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let given = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c1", "purpose": "marketing", "channel": "push", "event_time": "2026-11-21T12:00:00Z",
                "method": "in_app_toggle", "jurisdiction": "DE", "expires_at": "2026-11-21T13:00:00Z",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(given.status == 200, "\(given.json)")
        func shown() async throws -> (standing: String?, effective: String?, detail: String?) {
            let ledger = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
            let standing = ledger.json["standing"]?.arrayValue?.first?.objectValue
            let preferences = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
            let row = try #require(preferences.json["preferences"]?.arrayValue).compactMap(\.objectValue)
                .first { $0["scope"] == "marketing" && $0["channel"] == "push" && $0["destination"] == nil }
            return (
                standing?["state"]?.stringValue, row?["effective"]?.stringValue, row?["detail"]?.stringValue
            )
        }
        #expect(try await shown() == ("given", "on", nil))
        gate.clock.advance(seconds: 3_600)
        #expect(try await shown() == ("expired", "off", "expired"))
        let refused = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p1", to: "u_1"))
        #expect(refused["detail"] == "expired")
        // The ledger still says what held then.
        let then = try await gate.call(
            "product", "GET", "/v1/recipients/u_1/consents?as_of=2026-11-21T12:30:00Z")
        #expect(
            then.json["standing"]?.arrayValue?.first?.objectValue?["state"]?.stringValue == "given",
            "\(then.json)")
    }

    @Test func `everything decided about a person is told, page after page, with what became of it`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let promo = try await gate.promo("p0", to: "u_1")
        for number in 0..<5 {
            var send = promo
            send["id"] = .string("p\(number)")
            _ = try await gate.call("marketing", "POST", "/v1/sends", send)
        }
        let alert = try await gate.example("security.new_login", "s1", to: "u_1", as: "security")
        try #require(try await gate.call("security", "POST", "/v1/sends", alert).status == 202)
        var pages: [[String]] = []
        var before = ""
        repeat {
            let page = try await gate.call(
                "auditor", "GET", "/v1/recipients/u_1/decisions?limit=2\(before)")
            let rows = try #require(page.json["decisions"]?.arrayValue).compactMap(\.objectValue)
            pages.append(rows.compactMap { $0["send_id"]?.stringValue })
            before = page["next"].map { "&before=\($0)" } ?? ""
        } while !before.isEmpty && pages.count < 9
        #expect(pages.map(\.count) == [2, 2, 2])
        #expect(Set(pages.joined()).count == 6)
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        let rows = try #require(held.json["decisions"]?.arrayValue).compactMap(\.objectValue)
        #expect(rows.compactMap { $0["send_id"]?.stringValue } == Array(pages.joined()))
        #expect(held.json["decisions_next"] == nil)
        #expect(rows.first?["waiting"] == ["d_1"], "\(rows.first ?? [:])")
        let claimed = try await gate.claim(.security) + gate.claim()
        let delivery = try #require(claimed.first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        let later = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        let newest = later.json["decisions"]?.arrayValue?.first?.objectValue
        #expect(newest?["waiting"] == [])
        let events = newest?["events"]?.arrayValue?.compactMap { $0.objectValue?["event"]?.stringValue }
        #expect(events == ["handed_over"])
        let told = newest?["explanation"]?.stringValue ?? ""
        #expect(told.hasSuffix(" it was handed over for delivery to `d_1`."), "\(told)")
        let wrong = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions?before=x")
        #expect(wrong.status == 422)
    }

    @Test func `consent is recorded for what the notice asked about, and nothing else`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        func give(_ purpose: String, under id: String) async throws -> GatewayHarness.Reply {
            let notice = try #require(
                gate.policy.bundle.notices.values.first { $0.key.id == id && $0.key.language == "en" })
            return try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents",
                [
                    "id": .string("\(purpose)-\(id)"), "purpose": .string(purpose), "channel": "push",
                    "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                    "jurisdiction": "DE",
                    "notice": [
                        "id": .string(notice.key.id), "version": .string(notice.key.version),
                        "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                    ],
                ])
        }
        let wrong = try await give("marketing", under: "sms_service")
        #expect(wrong.status == 422 && wrong["type"] == "urn:sendgate:problem:other_purpose", "\(wrong.json)")
        #expect(wrong["detail"]?.contains("transactional, security") == true)
        let unknown = try await give("marketign", under: "promo")
        #expect(unknown.status == 422 && unknown["type"] == "urn:sendgate:problem:unknown_purpose")
        #expect(unknown["detail"]?.contains("marketing, partner_alert") == true, "\(unknown.json)")
        #expect(try await give("marketing", under: "promo").status == 200)
        #expect(try await give("intervention", under: "intervention").status == 200)
        #expect(try await give("intervention_any_time", under: "intervention_any_time").status == 200)
    }

    @Test(arguments: [("FR", false), ("US", true)])
    func `the end of a consent to warnings says whether they go on, and who says so`(
        _ region: String, _ isEnded: Bool
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", region: region)
        let put = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/n",
            [
                "kind": "sms", "value": .string(region == "FR" ? "+33612345678" : "+12025550123"),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(put.status == 200, "\(put.json)")
        var consent = try gate.consentBody("sec")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "sms_service" && $0.key.language == "en" })
        consent["purpose"] = "security"
        consent["channel"] = "sms"
        consent["address"] = "n"
        consent["method"] = "phone_call"
        consent["jurisdiction"] = .string(region)
        consent["notice"] = [
            "id": "sms_service", "version": .string(notice.key.version), "language": "en",
            "sha256": .string(notice.sha256),
        ]
        if gate.policy.caller(CallerName("product"))?.methods.contains(.phoneCall) != true {
            consent["method"] = "express_consent"
        }
        let given = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", consent)
        try #require(given.status == 200, "\(given.json)")
        gate.clock.advance(seconds: 1)
        let answer = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/sec/withdraw", [:])
        #expect(answer.status == 200, "\(answer.json)")
        #expect(answer["why"] == (isEnded ? nil : "not_optional"), "\(answer.json)")
        if !isEnded {
            let said = try #require(answer.json["not_optional"])
            #expect(said["law"]?.arrayValue?.isEmpty == false && said["can_change"] == "in_app_step_up")
        }
        var warning = try await gate.example("security.new_login", "s1", to: "u_1", as: "security")
        warning["channel"] = "sms"
        let sent = try await gate.call("security", "POST", "/v1/sends", warning)
        #expect(sent.status == (isEnded ? 403 : 202), "\(sent.json)")
        // Nothing that is shown says that an administrator chose.
        for path in ["/preferences", ""] {
            let shown = try await gate.call("product", "GET", "/v1/recipients/u_1\(path)")
            #expect(!"\(shown.json)".contains("admin_override"), "\(shown.json)")
        }
        #expect(try !"\(gate.entries())".contains("admin_override"))
    }

    @Test func `the reference's examples of explaining come out as they say`() async throws {
        let gate = try GatewayHarness()
        let inline = try #require(ExplainBody.example.objectValue)
        let waits = try await gate.call("auditor", "POST", "/v1/sends/explain", inline)
        let delivery = waits.json["deliveries"]?.arrayValue?.first?.objectValue
        #expect(delivery?["reason"]?.stringValue == "quiet_hours_deferred", "\(waits.json)")
        #expect(waits.json["params_violations"] == [])
    }
}
