import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

/// A yes that an app reports after a newer no does not count, whichever way the no came and whatever had been said before.
@Suite struct LateYesTests {
    private let gate: GatewayHarness
    private let handler: LinkHandler

    init() async throws {
        gate = try ImportTests.gate()
        handler = LinkHandler(gate.gateway)
        try await register("u_1")
    }

    // MARK: Acts

    private func register(_ user: String) async throws {
        try await gate.register(user, device: user)
        try await address("m", "email", "a@example.org", of: user)
    }

    private func request(
        _ method: String, _ path: String, _ body: JSONObject, of user: String = "u_1",
        answered status: Int = 200
    ) async throws {
        let reply = try await gate.call("product", method, "/v1/recipients/\(user)\(path)", body)
        try #require(reply.status == status, "\(path): \(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    private func address(_ id: String, _ kind: String, _ value: String, of user: String = "u_1") async throws
    {
        try await request(
            "PUT", "/addresses/\(id)",
            [
                "kind": .string(kind), "value": .string(value),
                "verified_at": .string(gate.clock.now().rfc3339),
            ], of: user)
    }

    /// Reports a yes or a refusal of some moment.
    private func say(
        _ id: String, as state: String = "given", to purpose: String = "marketing",
        under notice: String = "promo",
        on channel: String, at place: String? = nil, saidAt moment: Instant,
        answered status: Int = 200
    ) async throws {
        let shown = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == notice && $0.key.language == "en" })
        var body: JSONObject = [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel),
            "state": .string(state), "method": "web_form", "jurisdiction": "DE",
            "event_time": .string(moment.rfc3339),
            "notice": [
                "id": .string(notice), "version": .string(shown.key.version), "language": "en",
                "sha256": .string(shown.sha256),
            ],
        ]
        if let place { body["address"] = .string(place) }
        try await request("POST", "/consents", body, answered: status)
    }

    private func choose(
        _ state: String, _ scope: String = "marketing", on channel: String?, at place: String? = nil,
        source: String = "in_app_settings", of user: String = "u_1"
    ) async throws {
        var body: JSONObject = ["state": .string(state), "source": .string(source)]
        if let channel { body["channel"] = .string(channel) }
        if let place { body["address"] = .string(place) }
        try await request("PUT", "/preferences/\(scope)", body, of: user)
    }

    /// Brings a choice of some moment over from another system.
    private func importChoice(
        _ state: String, _ scope: String, on channel: String, of destination: String? = nil,
        at moment: Instant
    ) async throws {
        var choice: JSONObject = [
            "scope": .string(scope), "source": "in_app_settings", "state": .string(state),
            "channel": .string(channel), "event_time": .string(moment.rfc3339),
        ]
        if let destination { choice[channel == "push" ? "device" : "address"] = .string(destination) }
        let reply = try await ImportTests.take(
            ["user": "u_1", "preferences": [.object(choice)]], into: gate)
        try #require(
            reply.status == 200 && reply.json["refused"]?.arrayValue?.isEmpty != false, "\(reply.json)")
        gate.clock.advance(seconds: 1)
    }

    private enum Question { case look, mute, undo }

    private func ask(_ question: Question, _ token: String) async throws -> LinkStanding {
        let answer: LinkAnswer = await withCheckedContinuation { continuation in
            let reply: @Sendable (LinkAnswer) -> Void = { continuation.resume(returning: $0) }
            switch question {
            case .look: handler.standing(of: token, reply: reply)
            case .mute: handler.mute(token, reply: reply)
            case .undo: handler.undo(token, reply: reply)
            }
        }
        switch answer {
        case .known(let standing), .tooLate(let standing): return standing
        case .unknown, .busy: return try #require(nil as LinkStanding?, "\(answer)")
        }
    }

    /// A message that is sent, an offer if no other, and the link in it.
    private func link(in send: JSONObject? = nil, by caller: String = "marketing") async throws -> String {
        let offer = try await gate.promo("first", to: "u_1")
        let reply = try await gate.call(caller, "POST", "/v1/sends", send ?? offer)
        let id = try #require(reply["send_id"].flatMap(SendID.init(uuidText:)), "\(reply.json)")
        let row = try #require(try gate.store.read { try $0.outbox(of: id) }.first)
        let found = try #require(
            String(decoding: row.body, as: UTF8.self).firstMatch(
                of: /https:\/\/example\.com\/u\/([A-Za-z0-9_-]+)/))
        gate.clock.advance(seconds: 1)
        return String(found.1)
    }

    /// Reports what the provider holds of social pushes, and audits it.
    private func report(isSubscribed: Bool) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/u_1/subscriptions",
            ["categories": ["social": .boolean(isSubscribed)]])
        try #require(reply.status == 200, "\(reply.json)")
        try await gate.audit()
        gate.clock.advance(seconds: 1)
    }

    // MARK: What became of it

    private func standing(_ purpose: String, on channel: String) async throws -> String? {
        let answer = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        return answer.json["standing"]?.arrayValue?.first {
            $0["purpose"]?.stringValue == purpose && $0["channel"]?.stringValue == channel
                && $0["state"]?.stringValue != nil
        }?["state"]?.stringValue
    }

    private func isOn(_ scope: String, on channel: String) async throws -> Bool {
        let state = try #require(try gate.store.read { try $0.state(of: $0.subject(of: UserID("u_1"))!.id) })
        let choices = state.preferences.filter { $0.scope == scope && $0.channel.rawValue == channel }
        return !choices.contains { $0.state.isOff }
    }

    /// What an auditor objects to in the trail.
    private func audit() throws {
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        let objections = try EvidenceFoldTests.objections(to: entries, under: gate.policy)
        #expect(objections == [:], "\(objections)")
        let (_, differences) = try EvidenceFoldTests.fold(entries, gate.policy)
        #expect(differences.isEmpty, "\(differences)")
    }

    private func isSent() async throws -> Bool {
        gate.clock.advance(seconds: 8 * 86_400)
        let id = "x-\(gate.clock.now().milliseconds)"
        let reply = try await gate.call("marketing", "POST", "/v1/sends", gate.promo(id, to: "u_1"))
        return reply["outcome"] == "forward"
    }

    private func hours(_ count: Int64) { gate.clock.advance(seconds: count * 3_600) }

    // MARK: Tests

    @Test(arguments: [false, true], [300, 7_200] as [Int64])
    func `a link used again is a no of its own, which only the first use can be taken back of`(
        isUsedAgain: Bool, seconds: Int64
    ) async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        let link = try await link()
        #expect(try await ask(.mute, link).undoableUntil != nil)
        gate.clock.advance(seconds: seconds)
        let between = gate.clock.now()
        gate.clock.advance(seconds: seconds)
        if isUsedAgain {
            let standing = try await ask(.mute, link)
            #expect(standing.isOff && (standing.undoableUntil != nil) == (seconds < 450))
            // What follows at once is the same word.
            let count = try gate.store.read { try $0.entryCount() }
            gate.clock.advance(seconds: 30)
            _ = try await ask(.mute, link)
            #expect(try gate.store.read { try $0.entryCount() } == count)
            if seconds > 450 { #expect(try await ask(.undo, link).isOff) }
        }
        hours(1)
        try await say("late", on: "push", saidAt: between)
        #expect(try await standing("marketing", on: "push") == (isUsedAgain ? "withdrawn" : "given"))
        try audit()
    }

    @Test func `two uses within minutes are taken back together`() async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        let link = try await link()
        for _ in 0..<2 {
            _ = try await ask(.mute, link)
            gate.clock.advance(seconds: 120)
        }
        #expect(try await !ask(.undo, link).isOff)
        #expect(try await isSent())
        try audit()
    }

    @Test(arguments: [false, true])
    func `another's no at the same mailbox is a no of its own each time`(isSaidAgain: Bool) async throws {
        try await register("u_2")
        try await say("c1", on: "email", at: "m", saidAt: gate.clock.now())
        try await choose("user_off", on: "email", at: "m", source: "unsubscribe_link", of: "u_2")
        #expect(try await standing("marketing", on: "email") == "withdrawn")
        hours(2)
        let between = gate.clock.now()
        hours(2)
        if isSaidAgain {
            try await choose("user_off", on: "email", at: "m", source: "unsubscribe_link", of: "u_2")
        }
        hours(1)
        try await say("late", on: "email", at: "m", saidAt: between)
        #expect(try await standing("marketing", on: "email") == (isSaidAgain ? "withdrawn" : "given"))
        try audit()
    }

    @Test(arguments: [false, true])
    func `what a link took back does not give back what an imported no ended`(isImported: Bool) async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        hours(1)
        let no = gate.clock.now()
        hours(1)
        let link = try await link()
        _ = try await ask(.mute, link)
        gate.clock.advance(seconds: 60)
        if isImported { try await importChoice("user_off", "marketing", on: "push", at: no) }
        _ = try await ask(.undo, link)
        #expect(try await isSent() == !isImported)
        try audit()
    }

    @Test(arguments: ["user_off", "default"], [-1, 1] as [Int64])
    func `an imported no under a mute ends what is older than it and nothing newer`(
        _ state: String, hoursLater: Int64
    ) async throws {
        hours(2)
        let no = gate.clock.now().advanced(bySeconds: hoursLater * 3_600)
        try await say("c1", on: "push", saidAt: gate.clock.now())
        hours(2)
        let link = try await link()
        _ = try await ask(.mute, link)
        gate.clock.advance(seconds: 60)
        try await importChoice(state, "marketing", on: "push", at: no)
        _ = try await ask(.undo, link)
        #expect(try await isSent() == (hoursLater < 0))
        try audit()
    }

    @Test func `repetitions use up no undo, and are few`() async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        let link = try await link()
        for _ in 0..<4 * 24 {
            _ = try await ask(.mute, link)
            gate.clock.advance(seconds: 900)
        }
        let mutes = try gate.entries("preference").filter { $0["source"] == "unsubscribe_link" }
        #expect((18...30).contains(mutes.count), "\(mutes.count)")
        hours(1)
        try await say("c2", on: "push", saidAt: gate.clock.now())
        #expect(try await ask(.mute, link).undoableUntil != nil)
        _ = try await ask(.undo, link)
        #expect(try await standing("marketing", on: "push") == "given")
        try audit()
    }

    @Test func `what a link took back leaves room for an older no of which nobody had told`() async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        // Nothing was ever chosen at the device itself.
        let link = try await link()
        _ = try await ask(.mute, link)
        gate.clock.advance(seconds: 60)
        let between = gate.clock.now()
        gate.clock.advance(seconds: 60)
        #expect(try await !ask(.undo, link).isOff)
        try await importChoice("user_off", "marketing", on: "push", of: "u_1", at: between)
        #expect(try await !isSent())
        try audit()
    }

    @Test(arguments: [false, true])
    func `a newer no goes with its name to an address that has an older one`(isCarried: Bool) async throws {
        try await say("old", as: "refused", on: "email", at: "m", saidAt: gate.clock.now())
        hours(1)
        // Removed and registered, so that the refusal stays with its address.
        let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/m")
        try #require(removed.status == 200, "\(removed.json)")
        try await address("m", "email", "b@example.org")
        hours(1)
        let between = gate.clock.now()
        hours(1)
        if isCarried { try await choose("user_off", on: "email", at: "m") }
        try await address("m", "email", "a@example.org")
        hours(1)
        try await say("late", on: "email", at: "m", saidAt: between)
        #expect(try await standing("marketing", on: "email") == (isCarried ? "withdrawn" : "given"))
        try audit()
    }

    @Test(arguments: [0, 2] as [Int64])
    func `what only marketing asks for is not agreed to before a no to marketing`(hoursBefore: Int64)
        async throws
    {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        hours(1)
        let early = gate.clock.now()
        hours(1)
        try await request("POST", "/consents/c1/withdraw", ["method": "in_app_toggle"])
        hours(1)
        try await say("c2", on: "push", saidAt: gate.clock.now())
        let isLate = hoursBefore > 0
        try await say(
            "p", to: "partner_offers", under: "partner_offers", on: "push",
            saidAt: isLate ? early : gate.clock.now(), answered: isLate ? 409 : 200)
        #expect(try await standing("partner_offers", on: "push") == (isLate ? nil : "given"))
        #expect(try await standing("marketing", on: "push") == "given")
        try audit()
    }

    @Test
    func
        `a no to marketing of which is told late ends what was agreed to before it, whatever stands of marketing`()
        async throws
    {
        let notice = "partner_offers"
        try await say("p", to: notice, under: notice, on: "push", saidAt: gate.clock.now())
        hours(1)
        let no = gate.clock.now()
        hours(1)
        try await say("c2", on: "push", saidAt: gate.clock.now())
        hours(1)
        try await say("c3", as: "refused", on: "push", saidAt: no)
        #expect(try await standing("partner_offers", on: "push") == "withdrawn")
        #expect(try await standing("marketing", on: "push") == "given")
        try audit()
    }

    private func stop(_ id: String) async throws {
        let stop = try await gate.call(
            "replies", "POST", "/v1/replies",
            [
                "id": .string(id), "channel": "sms", "from": "+4790000017", "text": "STOP",
                "received_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(stop.status == 200, "\(stop.json)")
        gate.clock.advance(seconds: 1)
    }

    @Test(arguments: [false, true], [false, true])
    func `STOP ends each yes of before it, whenever and to whatever it is told of`(
        isBefore: Bool, isCustomer: Bool
    ) async throws {
        try await address("n", "sms", "+4790000017")
        if isCustomer { try await say("c1", on: "sms", at: "n", saidAt: gate.clock.now()) }
        hours(1)
        let before = gate.clock.now()
        hours(1)
        try await stop("r1")
        hours(1)
        try await say(
            "s", to: "transactional", under: "sms_service", on: "sms", at: "n",
            saidAt: isBefore ? before : gate.clock.now(), answered: isBefore ? 409 : 200)
        #expect(try await standing("transactional", on: "sms") == (isBefore ? nil : "given"))
        try audit()
    }

    @Test func `STOP counts also minutes after another no`() async throws {
        try await address("n", "sms", "+4790000017")
        try await say("c1", on: "sms", at: "n", saidAt: gate.clock.now())
        try await choose("user_off", on: "sms", at: "n")
        gate.clock.advance(seconds: 120)
        let between = gate.clock.now()
        gate.clock.advance(seconds: 120)
        try await stop("r1")
        hours(1)
        try await say("late", on: "sms", at: "n", saidAt: between)
        #expect(try await standing("marketing", on: "sms") == "withdrawn")
        try audit()
    }

    @Test(arguments: [false, true], [180, 7_200] as [Int64])
    func `STOP is newer than an off that stands`(isStopped: Bool, seconds: Int64) async throws {
        try await address("n", "sms", "+4790000017")
        try await say(
            "c1", to: "transactional", under: "sms_service", on: "sms", at: "n", saidAt: gate.clock.now())
        try await choose("user_off", "transactional", on: "sms", at: "n")
        gate.clock.advance(seconds: seconds)
        let between = gate.clock.now()
        gate.clock.advance(seconds: seconds)
        if isStopped { try await stop("r1") }
        hours(1)
        try await importChoice("user_on", "transactional", on: "sms", of: "n", at: between)
        #expect(try await isOn("transactional", on: "sms") == !isStopped)
        try audit()
    }

    /// No consent counts there any more, and the law asks for none.
    @Test(arguments: [120, 7_200] as [Int64])
    func `STOP said again is of all that the first ended`(seconds: Int64) async throws {
        try await address("n", "sms", "+4790000017")
        try await say(
            "c1", to: "transactional", under: "sms_service", on: "sms", at: "n", saidAt: gate.clock.now())
        try await stop("r1")
        gate.clock.advance(seconds: seconds)
        let between = gate.clock.now()
        gate.clock.advance(seconds: seconds)
        try await stop("r2")
        hours(1)
        try await importChoice("user_on", "transactional", on: "sms", of: "n", at: between)
        #expect(try await !isOn("transactional", on: "sms"))
        try audit()
    }

    /// Registers the phone under another id.
    private func move(to id: String) async throws {
        try await request(
            "PUT", "/devices/\(id)",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-u_1-u_1")),
                "region": "DE", "time_zone": "Europe/Berlin", "os_permission": "granted",
                "critical_alerts": true,
            ])
    }

    @Test(arguments: ["in_app_settings", "unsubscribe_link", "link"])
    func `what was switched off at a phone is off at it under another id`(how: String) async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        if how == "link" {
            _ = try await ask(.mute, link())
        } else {
            let no: JSONObject = [
                "channel": "push", "source": .string(how), "state": "user_off", "device": "u_1",
            ]
            try await request("PUT", "/preferences/marketing", no)
        }
        hours(1)
        try await say("c2", on: "push", saidAt: gate.clock.now())
        try await move(to: "again")
        #expect(try await !isSent())
        let yes: JSONObject = [
            "channel": "push", "source": "in_app_settings", "state": "user_on", "device": "again",
        ]
        try await request("PUT", "/preferences/marketing", yes)
        #expect(try await isSent())
        try audit()
    }

    @Test func `a link to a device without a token is to the channel`() async throws {
        try await say("c1", on: "push", saidAt: gate.clock.now())
        let link = try await link()
        try await move(to: "again")
        #expect(try await ask(.mute, link).isOff)
        #expect(try await !isSent())
        try audit()
    }

    @Test func `a line may withdraw what it says was agreed to before a reply`() async throws {
        try await address("n", "sms", "+4790000017")
        let before = gate.clock.now()
        hours(1)
        try await stop("r1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "sms_service" && $0.key.language == "en" })
        let yes: JSONObject = [
            "id": "t1", "purpose": "transactional", "channel": "sms", "address": "n", "method": "web_form",
            "jurisdiction": "DE", "event_time": .string(before.rfc3339),
            "notice": [
                "id": "sms_service", "version": .string(notice.key.version), "language": "en",
                "sha256": .string(notice.sha256),
            ],
        ]
        let line: JSONObject = [
            "user": "u_1", "consents": [.object(yes)],
            "withdrawals": ["t1": ["event_time": .string(before.advanced(bySeconds: 60).rfc3339)]],
        ]
        let reply = try await ImportTests.take(line, into: gate)
        #expect(reply.status == 200 && reply.json["refused"]?.arrayValue?.isEmpty != false, "\(reply.json)")
        #expect(try await standing("transactional", on: "sms") == "withdrawn")
        try audit()
    }

    @Test func `a no is recorded again for as many of a mailbox as one step takes`() async throws {
        for number in 0..<StepContext.replyHolderCountMax + 5 { try await register("v_\(number)") }
        func object() async throws -> Int {
            let body: JSONObject = ["state": "user_off", "source": "in_app_settings"]
            return try await gate.call("product", "PUT", "/v1/recipients/u_1/preferences/marketing", body)
                .status
        }
        #expect(try await object() == 503)
        hours(1)
        #expect(try await object() == 200)
        let choices = try gate.entries("preference").filter { $0["source"] == "shared_address" }
        #expect(Set(choices.compactMap { $0["subject"] }).count == StepContext.replyHolderCountMax + 5)
        hours(1)
        #expect(try await object() == 200)
    }

    @Test(arguments: [false, true])
    func `what an audit switched off hides no yes that is newer than an imported no`(isOlder: Bool)
        async throws
    {
        let no = gate.clock.now()
        hours(1)
        let body: JSONObject = [
            "channel": "push", "source": "in_app_settings", "state": "user_on", "device": "u_1",
        ]
        try await request("PUT", "/preferences/social", body)
        hours(1)
        try await report(isSubscribed: false)
        try await importChoice(
            "user_off", "social", on: "push", of: "u_1", at: isOlder ? no : gate.clock.now())
        try await report(isSubscribed: true)
        #expect(try await isOn("social", on: "push") == isOlder)
        try audit()
    }

    @Test func `an audit ends what it switched off although a mute was taken back meanwhile`() async throws {
        let yes: JSONObject = [
            "channel": "push", "source": "in_app_settings", "state": "user_on", "device": "u_1",
        ]
        try await request("PUT", "/preferences/social", yes)
        var mention = try await gate.example("social.mention", "first", to: "u_1", as: "social")
        mention["channel"] = "push"
        let link = try await link(in: mention, by: "social")
        try await report(isSubscribed: false)
        _ = try await ask(.mute, link)
        gate.clock.advance(seconds: 60)
        _ = try await ask(.undo, link)
        hours(1)
        try await report(isSubscribed: true)
        #expect(try await isOn("social", on: "push"))
        try audit()
    }

    @Test func `an import that is repeated leaves what a link did to be taken back`() async throws {
        let no = gate.clock.now()
        gate.clock.advance(seconds: 60)
        try await importChoice("user_off", "marketing", on: "push", of: "u_1", at: no)
        hours(1)
        try await say("c1", on: "push", saidAt: gate.clock.now())
        let yes: JSONObject = [
            "channel": "push", "source": "in_app_settings", "state": "user_on", "device": "u_1",
        ]
        try await request("PUT", "/preferences/marketing", yes)
        let link = try await link()
        _ = try await ask(.mute, link)
        try await importChoice("user_off", "marketing", on: "push", of: "u_1", at: no)
        #expect(try await !ask(.undo, link).isOff)
        #expect(try await isSent())
        try audit()
    }

    @Test(arguments: [false, true])
    func `an objection is newer than an off that stands on another channel`(isObjected: Bool) async throws {
        try await choose("user_off", on: "email")
        try await say("c", on: "push", saidAt: gate.clock.now())
        hours(1)
        let between = gate.clock.now()
        hours(1)
        if isObjected { try await request("POST", "/consents/c/withdraw", ["every_channel": true]) }
        hours(1)
        try await importChoice("user_on", "marketing", on: "email", at: between)
        #expect(try await isOn("marketing", on: "email") == !isObjected)
        try audit()
    }

    @Test(arguments: [false, true])
    func `what an audit switched off is no word of the person's`(isSaid: Bool) async throws {
        let no = gate.clock.now()
        hours(1)
        try await report(isSubscribed: false)
        if isSaid { try await importChoice("user_off", "social", on: "push", of: "u_1", at: no) }
        try await report(isSubscribed: true)
        #expect(try await isOn("social", on: "push") == !isSaid)
        try audit()
    }
}
