import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

/// What the gateway makes of where a person's devices were seen, and of a send whose time is still to come.
@Suite struct PlaceAndTimeTests {
    private static let day: Int64 = 86_400

    private func mail(_ gate: GatewayHarness, _ id: String) async throws -> GatewayHarness.Reply {
        var promo = try await gate.promo(id, to: "u_1")
        promo["channel"] = "email"
        return try await gate.call("marketing", "POST", "/v1/sends", promo)
    }

    private func phone(_ gate: GatewayHarness, in region: String, placedDaysAgo age: Int64) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            [
                "platform": "android", "app": "no.getdrop.app", "token": "00aa", "region": .string(region),
                "region_source": "device",
                "region_at": .string(gate.clock.now().advanced(bySeconds: -age * Self.day).rfc3339),
                "time_zone": "America/New_York", "os_permission": "granted",
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    @Test
    func `a device in use whose place is old news makes the place unknown; one out of use says nothing`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", region: "US", zone: "America/New_York", device: nil)
        let address = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/e_1",
            [
                "kind": "email", "value": "ada@example.com",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(address.status == 200, "\(address.json)")
        // CAN-SPAM lets one write until the recipient objects; the Union does not.
        #expect(try await mail(gate, "at_home").status == 202)
        gate.clock.advance(seconds: 8 * Self.day)
        try await phone(gate, in: "DE", placedDaysAgo: 0)
        #expect(try await mail(gate, "in_germany")["reason"] == "no_gdpr_consent")
        try await phone(gate, in: "US", placedDaysAgo: 90)
        #expect(try await mail(gate, "seen_in_time").status == 202)
        gate.clock.advance(seconds: 8 * Self.day)
        try await phone(gate, in: "US", placedDaysAgo: 91)
        let unknown = try await mail(gate, "seen_too_long_ago")
        #expect(
            unknown["reason"] == "no_gdpr_consent" && unknown["detail"] == "region_unknown",
            "\(unknown.json)")
        gate.clock.advance(seconds: 90 * Self.day)
        #expect(try await mail(gate, "still_in_use")["detail"] == "region_unknown")
        gate.clock.advance(seconds: 1)
        #expect(try await mail(gate, "out_of_use").status == 202)
    }

    @Test func `until when a send waits is told as it stands now`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "20:00"])
        let send = try await gate.example("order.shipped", "o_1", to: "u_1", as: "payments")
        try #require(try await gate.call("payments", "POST", "/v1/sends", send).status == 202)
        func told() async throws -> String {
            let reply = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
            return try #require(reply.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue)
        }
        let first = "It came in quiet hours and was kept until they end."
        #expect(try await told() == "\(first) It waits for `d_1` until 21 Nov 2026 at 20:00 (Europe/Berlin).")
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "22:00"])
        #expect(try await told() == "\(first) It waits for `d_1` until 21 Nov 2026 at 22:00 (Europe/Berlin).")
    }

    @Test func `a wait is explained in Norwegian, by clocks that change that night`()
        async throws
    {
        // Clocks go from 02:00 to 03:00 in the night to 28 March 2027: the window ends at 08:00, which is 06:00 UTC.
        let gate = try GatewayHarness(at: "2027-03-27T22:30:00Z")
        try await gate.register(
            "u_1", region: "NO", zone: "Europe/Oslo", quiet: ["start": "22:00", "end": "08:00"])
        let body = try await gate.example("order.shipped", "o_1", to: "u_1", as: "payments")
        let waits = "Det kom i stilletiden og ble holdt tilbake til den er over."
        let until = "28. mars 2027 kl. 08.00 (Europe/Oslo)"
        var asked = body
        asked["caller"] = "payments"
        let explained = try await gate.call("auditor", "POST", "/v1/sends/explain?locale=nb", asked)
        #expect(explained["explanation"] == "\(waits) Det venter til \(until).", "\(explained.json)")
        #expect(explained["fix"] == "Det er ingenting å rette.", "\(explained.json)")
        let english = try await gate.call("auditor", "POST", "/v1/sends/explain", asked)
        #expect(english.json["fix"] == nil, "\(english.json)")
        let wrong = try await gate.call("auditor", "POST", "/v1/sends/explain?locale=norsk", asked)
        #expect(wrong.status == 422, "\(wrong.json)")
        let sent = try await gate.call("payments", "POST", "/v1/sends", body)
        try #require(sent.status == 202, "\(sent.json)")
        for locale in ["nb", "nb-NO", "nn"] {
            let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions?locale=\(locale)")
            #expect(
                told.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue
                    == "\(waits) Det venter for `d_1` til \(until).")
        }
        // Asked in a language that the bundle does not have, which gives its first one, and in none.
        let inFirst = " Det venter for `d_1` til \(until)."
        let inEnglish = " It waits for `d_1` until 28 Mar 2027 at 08:00 (Europe/Oslo)."
        for (query, end) in [("?locale=fr", inFirst), ("", inEnglish)] {
            let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions\(query)")
            let text = told.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue ?? ""
            #expect(text.hasSuffix(end), "\(query): \(text)")
        }
    }

    @Test func `a life that counts from due begins when quiet hours end, also when they grow meanwhile`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "20:00"])
        // An hour of use, asked for six hours before the window ends.
        var send = GatewayHarness.remittance("r_1", to: "u_1")
        send["ttl_seconds"] = 3600
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply["reason"] == "quiet_hours_deferred", "\(reply.json)")
        #expect(try notBefore(reply) == ["2026-11-21T19:00:00Z"])
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "22:30"])
        gate.clock.advance(seconds: 9 * 3600 + 1799)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(seconds: 1)
        // The first claim composes it, the next hands it over.
        _ = try await gate.claim()
        let deliveries = try await gate.claim()
        #expect(deliveries.map(\.expiresAt) == [.utc("2026-11-21T22:30:00Z")])
    }

    private func registerWithoutZone(
        _ gate: GatewayHarness, region: String?, deviceZone: String? = nil
    ) async throws {
        var person: JSONObject = [
            "age": "adult", "locale": "en", "quiet_hours": ["start": "21:00", "end": "08:00"],
        ]
        var device: JSONObject = [
            "platform": "ios", "app": "no.getdrop.app", "token": "00", "os_permission": "granted",
        ]
        if let region {
            (person["region"], person["region_source"]) = (.string(region), "kyc")
            device["region"] = .string(region)
        }
        for (path, body) in [("", person), ("/devices/d_1", device)] {
            let reply = try await gate.call("product", "PUT", "/v1/recipients/u_1\(path)", body)
            try #require(reply.status == 200, "\(reply.json)")
        }
        guard let deviceZone else { return }
        device["time_zone"] = .string(deviceZone)
        device["token"] = "0002"
        let reply = try await gate.call("product", "PUT", "/v1/recipients/u_1/devices/d_2", device)
        try #require(reply.status == 200, "\(reply.json)")
    }

    /// Nine in the evening has come where the row says, and eight in the morning is last there.
    @Test(arguments: [
        // 02:30Z is half past nine in New York, half past six in Los Angeles, and eight in Honolulu is 18:00Z.
        ("US", nil, "2026-11-22T02:30:00Z", "2026-11-22T18:00:00Z"),
        ("US", nil, "2026-11-21T19:00:00Z", nil), ("NO", nil, "2026-11-21T19:30:00Z", nil),
        ("NO", nil, "2026-11-21T20:30:00Z", "2026-11-22T07:00:00Z"),
        // A phone that tells its zone is where it is; the country is not asked.
        ("US", "America/New_York", "2026-11-22T02:30:00Z", "2026-11-22T13:00:00Z"),
        // Of whom nothing is known is under the GDPR: nine in Nicosia is the first, eight on the Azores the last.
        (nil, nil, "2026-11-21T18:59:00Z", nil), (nil, nil, "2026-11-21T19:00:00Z", "2026-11-22T09:00:00Z"),
        (nil, nil, "2026-11-22T08:59:00Z", "2026-11-22T09:00:00Z"), (nil, nil, "2026-11-22T09:00:00Z", nil),
        // In July too: Reykjavik and the Azores have the same hour then.
        (nil, nil, "2026-07-21T17:59:00Z", nil), (nil, nil, "2026-07-21T18:00:00Z", "2026-07-22T08:00:00Z"),
    ])
    func `quiet hours without a zone are kept wherever the recipient may be`(
        region: String?, zone: String?, now: String, end: String?
    ) async throws {
        let gate = try GatewayHarness(at: now)
        try await registerWithoutZone(gate, region: region, deviceZone: zone)
        var send = GatewayHarness.remittance("r_1", to: "u_1")
        send["recipient"] = ["user": "u_1", "device": "d_1"]
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        if let end {
            #expect(reply["reason"] == "quiet_hours_deferred" && reply["detail"] == "zone_unknown")
            #expect(try notBefore(reply) == [end], "\(reply.json)")
            // It is told, goes then, and security does not wait.
            let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
            #expect("\(told.json)".contains("time zone is not known"), "\(told.json)")
            gate.clock.advance(
                seconds: (Instant.utc(end).milliseconds - gate.clock.now().milliseconds) / 1000)
            _ = try await gate.claim()
            #expect(try await gate.claim().count == 1)
        } else {
            #expect(reply["outcome"] == "forward", "\(reply.json)")
        }
        let alert = try await gate.example("security.new_login", "s_1", to: "u_1", as: "security")
        #expect(try await gate.call("security", "POST", "/v1/sends", alert)["outcome"] == "forward")
        try await gate.consent("u_1")
        var promo = try await gate.promo("p_1", to: "u_1")
        promo["recipient"] = ["user": "u_1", "device": "d_1"]
        let offer = try await gate.call("marketing", "POST", "/v1/sends", promo)
        #expect(offer.status == 403 && offer["reason"] != "allowed", "\(offer.json)")
    }

    @Test func `a message whose hour passed while nobody took it expires all the same`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "06:00", "end": "20:00"])
        var send = GatewayHarness.remittance("r_1", to: "u_1")
        send["ttl_seconds"] = 3600
        try #require(try await gate.call("payments", "POST", "/v1/sends", send).status == 202)
        gate.clock.advance(seconds: 8 * 3600 + 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().isEmpty)
        let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
        #expect("\(told.json)".contains("withdrawn"), "\(told.json)")
    }

    @Test func `no window however long loses what counts from due, and none keeps what counts from arrival`()
        async throws
    {
        var (deferred, expired) = (0, 0)
        // Berlin's clock reads 13:00, so that each of these windows has just begun.
        for end in ["13:30", "18:00", "23:59", "00:00", "08:00", "12:59"] {
            // No type of the repository that waits for quiet hours counts from arrival, so one is made to.
            let gate = try GatewayHarness(edit: { pages in
                let path = "types/order.shipped.yaml"
                guard case .object(var page)? = pages[path]?.json else { return }
                page["ttl"] = ["hours": 1, "counts_from": "arrival"]
                pages[path] = PolicyNode(json: .object(page))
            })
            try await gate.register("u_1", quiet: ["start": "13:00", "end": .string(end)])
            for type in gate.policy.types where type.category == .transactional && type.isEnabled {
                guard type.purpose == nil, type.timing == nil,
                    !(type.mandatory?.passes ?? []).contains(.quietHours)
                else { continue }
                guard
                    let caller = GatewayHarness.users.keys.first(where: { caller in
                        let request = AttestedRequest(
                            caller: CallerName(caller), type: type.id, channel: .push, critical: false)
                        return gate.policy.rule(for: request).admits(params: .valid)
                    })
                else { continue }
                var body = try await gate.example(type.id.text, "\(type.id)", to: "u_1", as: caller)
                // Each send is about an event of its own, also where two types tell of one.
                if let name = type.dedupeBy, var params = body["params"]?.objectValue {
                    if case .string? = params[name] { params[name] = .string(UUID().uuidString.lowercased()) }
                    body["params"] = .object(params)
                }
                let reply = try await gate.call(caller, "POST", "/v1/sends", body)
                let window = LocalTime.quietHours(
                    QuietHours(startMinute: 780, endMinute: minutes(end)), at: gate.clock.now(),
                    zones: ["Europe/Berlin"])
                guard case .inside(let until) = window else {
                    Issue.record("\(end) is no window")
                    continue
                }
                let outlasts = until > gate.clock.now().advanced(bySeconds: type.ttlSeconds)
                if type.ttlCountsFrom == .arrival, outlasts {
                    expired += 1
                    #expect(reply["reason"] == "expires_before_due", "\(type.id) until \(end): \(reply.json)")
                } else {
                    deferred += 1
                    #expect(
                        reply["reason"] == "quiet_hours_deferred", "\(type.id) until \(end): \(reply.json)")
                }
            }
        }
        // Five of the six windows outlast an hour.
        #expect(deferred > 50 && expired >= 5, "\(deferred) deferred, \(expired) expired")
    }

    @Test func `a number tells the country of whom nothing else is known`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T19:30:00Z")
        try await registerWithoutZone(gate, region: nil)
        func send(_ id: String) async throws -> GatewayHarness.Reply {
            try await gate.call("payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: "u_1"))
        }
        #expect(try await send("r_1")["detail"] == "zone_unknown")
        let number = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/n_1",
            [
                "kind": "sms", "value": "+12125550100",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(number.status == 200, "\(number.json)")
        // Afternoon from New York to Honolulu.
        #expect(try await send("r_2")["outcome"] == "forward")
    }

    private func minutes(_ text: String) -> Int {
        let parts = text.split(separator: ":").compactMap { Int($0) }
        return parts[0] * 60 + parts[1]
    }

    @Test func `each device has its own eight o'clock`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", zone: "Europe/Oslo", device: "d_oslo")
        for (device, zone) in [("d_york", "America/New_York"), ("d_tokyo", "Asia/Tokyo"), ("d_home", nil)] {
            var body: JSONObject = [
                "platform": "ios", "app": "no.getdrop.app", "region": "DE", "os_permission": "granted",
            ]
            body["token"] = .string(device.utf8.map { String($0, radix: 16) }.joined())
            if let zone { body["time_zone"] = .string(zone) }
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/devices/\(device)", body)
            try #require(reply.status == 200, "\(reply.json)")
        }
        try await joinProgramme(gate)
        let reply = try await gate.call(
            "help", "POST", "/v1/sends",
            try await gate.example("briefing.daily", "b_1", to: "u_1", as: "help"))
        // In the order of the devices' names: home is where the account is, New York is still asleep at noon
        // in Greenwich, and Tokyo has its evening.
        #expect(
            try notBefore(reply) == [
                "2026-11-22T07:00:00Z", "2026-11-22T07:00:00Z", "2026-11-21T23:00:00Z",
                "2026-11-21T13:00:00Z",
            ], "\(reply.json)")
    }

    @Test(arguments: ["2026-11-21T13:00:00Z", "2026-11-21T13:41:00Z", "2026-11-21T15:59:59Z"])
    func `what is asked for inside its window goes at once, whoever it is for`(_ now: String) async throws {
        let gate = try GatewayHarness(at: now)
        for user in ["u_1", "u_2", "u_3"] {
            try await gate.register(user, zone: "Europe/Oslo")
            try await joinProgramme(gate, user)
            let reply = try await gate.call(
                "help", "POST", "/v1/sends",
                try await gate.example("reminder.goal", "g_\(user)", to: user, as: "help"))
            #expect(reply["outcome"] == "forward", "\(reply.json)")
        }
    }

    @Test func `quiet hours at the time a send is due are known when it arrives`() async throws {
        func promised(_ end: String) async throws -> GatewayHarness.Reply {
            let gate = try GatewayHarness()
            try await gate.register(
                "u_1", zone: "Europe/Oslo", quiet: ["start": "06:00", "end": .string(end)])
            try await joinProgramme(gate)
            return try await gate.call(
                "help", "POST", "/v1/sends",
                try await gate.example("briefing.daily", "b_1", to: "u_1", as: "help"))
        }
        let early = try await promised("07:59")
        #expect(early["reason"] == "scheduled" && early["detail"] == "send_time", "\(early.json)")
        #expect(try notBefore(early) == ["2026-11-22T07:00:00Z"], "\(early.json)")
        let late = try await promised("11:30")
        #expect(late["reason"] == "quiet_hours_deferred" && late["detail"] == nil, "\(late.json)")
        #expect(try notBefore(late) == ["2026-11-22T10:30:00Z"], "\(late.json)")
        // Longer than a briefing lives, which counts from when it may go out.
        let longer = try await promised("12:30")
        #expect(longer["reason"] == "quiet_hours_deferred" && longer["detail"] == nil, "\(longer.json)")
        #expect(try notBefore(longer) == ["2026-11-22T11:30:00Z"], "\(longer.json)")
    }

    @Test(arguments: [
        ("en", "It was due in quiet hours and was kept until they end."),
        ("nb", "Det skulle sendes i stilletiden og ble holdt tilbake til den er over."),
        ("bs", "Trebalo je biti poslano tokom tihih sati i zadržano je dok ne prođu."),
        ("sq", "Duhej të dërgohej në orët e qetësisë dhe u mbajt derisa ato të mbarojnë."),
    ])
    func `a send that came at another hour is not said to have come in quiet hours`(
        locale: String, sentence: String
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", zone: "Europe/Oslo", quiet: ["start": "06:00", "end": "11:30"])
        try await joinProgramme(gate)
        let send = try await gate.example("briefing.daily", "b_1", to: "u_1", as: "help")
        var asked = send
        asked["caller"] = "help"
        for caller in ["auditor", "help"] {
            let explained = try await gate.call(
                caller, "POST", "/v1/sends/explain?locale=\(locale)", asked)
            #expect(explained["reason"] == "quiet_hours_deferred", "\(explained.json)")
            #expect(explained["explanation"]?.hasPrefix(sentence) == true, "\(explained.json)")
        }
        #expect(try await gate.call("help", "POST", "/v1/sends", send)["reason"] == "quiet_hours_deferred")
        let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions?locale=\(locale)")
        let text = told.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue ?? ""
        #expect(text.hasPrefix(sentence), "\(text)")
    }

    private func joinProgramme(_ gate: GatewayHarness, _ user: String = "u_1") async throws {
        let notice = try #require(
            gate.policy.bundle.notices.values.filter {
                $0.key.id == "programme" && $0.key.language == "en"
            }
            .max { $0.key.version < $1.key.version })
        let consent = try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/consents",
            [
                "id": "c_1", "purpose": "programme", "channel": "push", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "NO",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(consent.status == 200, "\(consent.json)")
    }

    private func notBefore(_ reply: GatewayHarness.Reply) throws -> [String] {
        let deliveries = try #require(reply.json["deliveries"]?.arrayValue)
        return deliveries.compactMap { $0.objectValue?["not_before"]?.stringValue }
    }
}
