import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Synchronization
import Testing

/// What an unsubscribe link does: from the message that carries it to the next send.
@Suite struct UnsubscribeTests {
    private let gate: GatewayHarness
    private let handler: LinkHandler

    init() throws { self.init(try GatewayHarness()) }

    private init(_ gate: GatewayHarness) {
        self.gate = gate
        handler = LinkHandler(gate.gateway)
    }

    private enum Question { case look, mute, undo }

    private func ask(_ question: Question, _ token: String) async -> LinkAnswer {
        await withCheckedContinuation { continuation in
            let reply: @Sendable (LinkAnswer) -> Void = { continuation.resume(returning: $0) }
            switch question {
            case .look: handler.standing(of: token, reply: reply)
            case .mute: handler.mute(token, reply: reply)
            case .undo: handler.undo(token, reply: reply)
            }
        }
    }

    /// Sends, and takes the link out of what waits for the relay.
    private func link(
        _ type: String = "promo.offer", by caller: String = "marketing", _ id: String = "s1",
        to user: String = "u_1", on channel: String = "push"
    ) async throws -> String? {
        var body = try await gate.example(type, id, to: user, as: caller)
        body["channel"] = .string(channel)
        let reply = try await gate.call(caller, "POST", "/v1/sends", body)
        try #require(reply.status == 202, "\(reply.json)")
        let send = try #require(reply["send_id"].flatMap(SendID.init(uuidText:)))
        let row = try #require(try gate.store.read { try $0.outbox(of: send) }.first)
        let text = String(decoding: row.body, as: UTF8.self)
        guard let found = text.firstMatch(of: /https:\/\/example\.com\/u\/([A-Za-z0-9_-]+)/) else {
            return nil
        }
        if channel == "email" {
            let headers = String(decoding: row.headers, as: UTF8.self)
            #expect(headers.contains(#""list-unsubscribe":"<\#(found.0)>""#), "\(headers)")
            #expect(headers.contains(#""list-unsubscribe-post":"List-Unsubscribe=One-Click""#))
        }
        return String(found.1)
    }

    private func verdict(_ id: String, to user: String = "u_1") async throws -> String? {
        try await gate.call("marketing", "POST", "/v1/sends", gate.promo(id, to: user))["reason"]
    }

    private var entryCount: UInt64 { get throws { try gate.store.read { try $0.entryCount() } } }

    private func state() throws -> RecipientState {
        try gate.store.read { store in
            let subject = try #require(try store.subject(of: UserID("u_1")))
            return try #require(try store.state(of: subject.id))
        }
    }

    /// What the trail alone says of a person.
    private func folded() throws -> RecipientState {
        var fold = EvidenceFold(under: gate.policy)
        for entry in try gate.store.read({ try $0.entries(from: 0, limit: Int.max) }) {
            let objection = try fold.objection(to: entry.bytes) { _ in gate.policy }
            #expect(objection == nil, "\(objection?.description ?? "")")
            try fold.apply(entry.bytes) { _ in gate.policy }
        }
        return try #require(fold.people[try state().subject])
    }

    private func registered() async throws -> String {
        try await gate.register("u_1")
        try await gate.consent("u_1")
        gate.clock.advance(seconds: 1)
        let link = try #require(try await link())
        gate.clock.advance(seconds: 1)
        return link
    }

    // MARK: Links

    @Test func `the link of a category at a destination is the same in every message`() async throws {
        let first = try await registered()
        gate.clock.advance(seconds: 8 * 86_400)
        #expect(try await link("promo.offer", "s2") == first)
        try await gate.register("u_2")
        try await gate.consent("u_2")
        #expect(try await link("promo.offer", "s3", to: "u_2") != first)
    }

    @Test func `marketing e-mail has the headers of one click, a text and a receipt have no link`()
        async throws
    {
        try await gate.register("u_1")
        for (id, kind, value) in [("m", "email", "ada@example.org"), ("n", "sms", "+4790000000")] {
            let address = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(address.status == 200)
            var consent = try gate.consentBody("c-\(id)")
            consent["channel"] = .string(kind)
            consent["address"] = .string(id)
            let given = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", consent)
            try #require(given.status == 200 || given.status == 201, "\(given.json)")
        }
        #expect(try await link("promo.offer", "e1", on: "email") != nil)
        gate.clock.advance(seconds: 8 * 86_400)
        #expect(try await link("promo.offer", "t1", on: "sms") == nil)
        #expect(try await link("transaction.failed", by: "payments", "p1") == nil)
    }

    // MARK: Muting

    @Test func `looking changes nothing, muting withdraws, and a second time changes nothing`() async throws {
        let link = try await registered()
        let before = try (entryCount, state())
        let standing = LinkStanding(
            category: .marketing, channel: .push, locale: "en", isOff: false, undoableUntil: nil)
        #expect(await ask(.look, link) == .known(standing))
        #expect(await ask(.look, link) == .known(standing))
        #expect(try (entryCount, state()) == before)

        let until = gate.clock.now().advanced(bySeconds: 900)
        let off = LinkStanding(
            category: .marketing, channel: .push, locale: "en", isOff: true, undoableUntil: until,
            // The device is in Berlin, in winter.
            utcOffsetSeconds: 3_600, wasMuted: true)
        #expect(await ask(.mute, link) == .known(off))
        let after = try (entryCount, state())
        #expect(after.0 > before.0)
        #expect(
            after.1.consentsInForce.fact(purpose: .marketing, channel: .push, address: nil).state
                == .withdrawn)
        let choice = try #require(after.1.preferences.first { $0.destination != nil })
        #expect(choice.state == .userOff && choice.source == .unsubscribeLink && choice.caller == .gateway)
        gate.clock.advance(seconds: 60)
        #expect(await ask(.mute, link) == .known(off))
        #expect(await ask(.look, link) == .known(off))
        #expect(try (entryCount, state()) == after)
        #expect(try folded() == after.1.evidence)
        #expect(try await verdict("s2") == "no_gdpr_consent")
    }

    @Test func `a link mutes one category at one channel and nothing else`() async throws {
        let link = try await registered()
        let before = try state()
        _ = await ask(.mute, link)
        let after = try state()
        let changed = after.preferences.filter { !before.preferences.contains($0) }
        #expect(changed.map(\.scope) == ["marketing"] && changed.map(\.channel) == [.push])
        #expect(
            after.consentsInForce.byScope.filter { before.consentsInForce.byScope[$0.key] != $0.value }.keys
                .allSatisfy {
                    $0.channel == .push
                })
    }

    @Test func `what waits is withdrawn with the mute`() async throws {
        let link = try await registered()
        let send = try #require(
            try gate.store.read { store in
                try store.subject(of: UserID("u_1")).flatMap { try store.outbox(of: $0.id).first }
            })
        // Offered to the relay and not taken yet.
        #expect(send.category == .marketing)
        _ = await ask(.mute, link)
        let left = try gate.store.read { store in try store.outbox(of: send.subject) }
        #expect(left.isEmpty)
    }

    @Test func `more at once than may be under way are told to come back`() async throws {
        let link = try await registered()
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        let (answers, answer) = AsyncStream.makeStream(of: LinkAnswer.self)
        for _ in 0..<LinkHandler.underWayCountMax { handler.mute(link) { answer.yield($0) } }
        #expect(await ask(.look, link) == .busy)
        #expect(await ask(.mute, link) == .busy)
        hold.release.signal()
        var seen: [LinkAnswer] = []
        for await one in answers {
            seen.append(one)
            if seen.count == LinkHandler.underWayCountMax { break }
        }
        #expect(Set(seen).count == 1 && seen[0] != .busy && seen[0] != .unknown)
        #expect(await ask(.look, link) == seen[0])
    }

    @Test func `what an app reported is the app's to take back`() async throws {
        let link = try await registered()
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "unsubscribe_link", "channel": "push", "device": "d_1"])
        try #require(reply.status == 200, "\(reply.json)")
        let muted = try state()
        guard case .tooLate = await ask(.undo, link) else {
            Issue.record("a choice that another reported was taken back")
            return
        }
        #expect(try state() == muted)
    }

    // MARK: Taking it back

    @Test func `undo restores what was, once`() async throws {
        let link = try await registered()
        let before = try state()
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 899)
        guard case .known(let standing) = await ask(.undo, link) else {
            Issue.record("the mute was not taken back")
            return
        }
        #expect(!standing.isOff && standing.undoableUntil == nil)
        #expect(standing.wasMuted && standing.isUndone)
        let after = try state()
        #expect(after.consentsInForce == before.consentsInForce)
        #expect(
            after.preferences.filter { $0.state != .default }
                == before.preferences.filter { $0.state != .default })
        #expect(try folded() == after.evidence)
        let shown = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        let states = shown.json["records"]?.arrayValue?.compactMap { $0["state"]?.stringValue } ?? []
        #expect(states.contains("undone") && states.first == "given", "\(states)")
        let count = try entryCount
        guard case .tooLate = await ask(.undo, link) else {
            Issue.record("the mute was taken back twice")
            return
        }
        #expect(try entryCount == count)
        gate.clock.advance(seconds: 8 * 86_400)
        #expect(try await verdict("s2") == "allowed")
        // A new mute is a new one.
        guard case .known(let again) = await ask(.mute, link) else {
            Issue.record("the link mutes no more")
            return
        }
        #expect(again.isOff && again.undoableUntil != nil)
    }

    @Test func `undo brings back the choice of the app, with its source and its time`() async throws {
        let link = try await registered()
        let chosen = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["channel": "push", "device": "d_1", "source": "in_app_settings", "state": "user_on"])
        try #require(chosen.status == 200, "\(chosen.json)")
        let choice = try #require(
            try state().preferences.first { $0.destination != nil && $0.state == .userOn })
        gate.clock.advance(seconds: 60)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 60)
        _ = await ask(.undo, link)
        let after = try #require(
            try state().preferences.first { $0.destination != nil && $0.state == .userOn })
        #expect(after.source == .inAppSettings && after.at == choice.at)
        #expect(try folded() == state().evidence)
    }

    /// Reports what the provider of notifications has the phone subscribed to.
    private func subscribe(marketing: Bool, at device: String = "d_1") async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/\(device)/subscriptions",
            ["categories": ["marketing": .boolean(marketing)]])
        try #require(reply.status == 200, "\(reply.json)")
    }

    @Test func `what an audit suppressed is not yet switched off, and is by the link`() async throws {
        let link = try await registered()
        try await subscribe(marketing: false)
        try await gate.audit()
        #expect(try state().preferences.contains { $0.isSuppression })
        guard case .known(let standing) = await ask(.look, link) else {
            Issue.record("the link is not known")
            return
        }
        #expect(!standing.isOff)
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 8 * 86_400)
        try await subscribe(marketing: true)
        try await gate.audit()
        #expect(try await verdict("s2") == "no_gdpr_consent")
    }

    @Test func `a suppression that was muted over comes back with the undo, and ends with the next audit`()
        async throws
    {
        let link = try await registered()
        try await subscribe(marketing: false)
        try await gate.audit()
        let suppression = try #require(try state().preferences.first { $0.isSuppression })
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        _ = await ask(.undo, link)
        #expect(try state().preferences.first { $0.isSuppression } == suppression)
        #expect(try folded() == state().evidence)
        gate.clock.advance(seconds: 8 * 86_400)
        try await subscribe(marketing: true)
        try await gate.audit()
        #expect(try await verdict("s2") == "allowed")
    }

    @Test(arguments: [false, true])
    func `to the next audit an undo is no newer choice`(isSuppressed: Bool) async throws {
        let link = try await registered()
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["channel": "push", "device": "d_1", "source": "in_app_settings", "state": "user_on"])
        try #require(reply.status == 200, "\(reply.json)")
        var chosen = try #require(try state().preferences.first { $0.destination != nil })
        gate.clock.advance(seconds: 1)
        try await subscribe(marketing: false)
        if isSuppressed { try await gate.audit() }
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        // The finding is resolved while the mute stands, and with it what the suppression was for.
        if isSuppressed { try await gate.audit() }
        try #require(try state().drifts.isEmpty)
        gate.clock.advance(seconds: 1)
        _ = await ask(.undo, link)
        // The undo is reported by the gateway; the choice is the app's.
        chosen.caller = .gateway
        #expect(try state().preferences.first { $0.destination != nil } == chosen)
        // The provider was asked after the choice and before the undo.
        try await gate.audit()
        #expect(try state().drifts.map(\.action) == [.suppressed])
        #expect(try state().preferences.contains { $0.isSuppression })
        #expect(try folded() == state().evidence)
    }

    @Test func `a suppression that a choice has ended does not come back with an undo`() async throws {
        let link = try await registered()
        try await subscribe(marketing: false)
        try await gate.audit()
        try #require(try state().preferences.contains { $0.isSuppression })
        gate.clock.advance(seconds: 1)
        // For the account; the finding is on record until the next audit.
        let chosen = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["channel": "push", "source": "in_app_settings", "state": "user_on"])
        try #require(chosen.status == 200, "\(chosen.json)")
        try #require(try state().drifts.contains { $0.action == .suppressed })
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        guard case .known(let standing) = await ask(.undo, link) else {
            Issue.record("the mute was not taken back")
            return
        }
        #expect(!standing.isOff)
        #expect(try !state().preferences.contains { $0.state.isOff })
        #expect(try folded() == state().evidence)
    }

    @Test(arguments: [false, true])
    func `an undo brings back no mute that was taken back before a suppression ended`(
        isEndedByAgreement: Bool
    ) async throws {
        let link = try await registered()
        try await subscribe(marketing: false)
        try await gate.audit()
        for question in [Question.mute, .undo] {
            gate.clock.advance(seconds: 1)
            _ = await ask(question, link)
        }
        try #require(try state().preferences.contains { $0.isSuppression })
        gate.clock.advance(seconds: 1)
        if isEndedByAgreement {
            try await subscribe(marketing: true)
            try await gate.audit()
            gate.clock.advance(seconds: 1)
            _ = await ask(.mute, link)
        } else {
            _ = await ask(.mute, link)
            try await gate.audit()
        }
        try #require(try !state().drifts.contains { $0.action == .suppressed })
        gate.clock.advance(seconds: 1)
        guard case .known(let standing) = await ask(.undo, link) else {
            Issue.record("the mute was not taken back")
            return
        }
        #expect(!standing.isOff)
        #expect(try !state().preferences.contains { $0.state.isOff })
        #expect(try folded() == state().evidence)
    }

    @Test func `an audit of another phone does not make an undo too late`() async throws {
        let link = try await registered()
        try await gate.register("u_1", device: "d_2")
        try await subscribe(marketing: false, at: "d_2")
        try await gate.audit()
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        try await subscribe(marketing: true, at: "d_2")
        try await gate.audit()
        gate.clock.advance(seconds: 1)
        guard case .known(let standing) = await ask(.undo, link) else {
            Issue.record("the audit made the undo too late")
            return
        }
        #expect(!standing.isOff)
    }

    @Test func `a link that is used back and forth leaves a bounded trail and ends switched off`()
        async throws
    {
        let link = try await registered()
        var counts: [UInt64] = []
        for _ in 0..<1_000 {
            _ = await ask(.mute, link)
            gate.clock.advance(milliseconds: 10)
            _ = await ask(.undo, link)
            gate.clock.advance(milliseconds: 10)
            counts.append(try entryCount)
        }
        #expect(counts[UnsubscribeLink.undoCountMax + 1] == counts.last)
        guard case .known(let standing) = await ask(.look, link) else {
            Issue.record("the link is not known")
            return
        }
        #expect(standing.isOff && standing.undoableUntil == nil)
        #expect(standing.wasMuted && !standing.isUndone)
        // A day later a mute can be taken back again.
        gate.clock.advance(seconds: 86_400)
        try await gate.consent("u_1", id: "c2")
        let chosen = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["channel": "push", "device": "d_1", "source": "in_app_settings", "state": "user_on"])
        try #require(chosen.status == 200, "\(chosen.json)")
        guard case .known(let chosenAgain) = await ask(.look, link) else {
            Issue.record("the link is not known")
            return
        }
        #expect(!chosenAgain.isOff && chosenAgain.wasMuted && !chosenAgain.isUndone)
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        guard case .known(let undone) = await ask(.undo, link) else {
            Issue.record("a day later nothing can be taken back")
            return
        }
        #expect(!undone.isOff)
    }

    @Test func `after fifteen minutes there is nothing to take back`() async throws {
        let link = try await registered()
        _ = await ask(.mute, link)
        let muted = try state()
        gate.clock.advance(seconds: 900)
        let count = try entryCount
        guard case .tooLate(let standing) = await ask(.undo, link) else {
            Issue.record("the mute was taken back too late")
            return
        }
        #expect(standing.isOff && standing.undoableUntil == nil)
        #expect(try state() == muted)
        #expect(try entryCount == count)
    }

    @Test(arguments: ["user_off", "user_on", "default"])
    func `a later choice ends what can be taken back`(state choice: String) async throws {
        let link = try await registered()
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": .string(choice), "source": "in_app_settings", "channel": "push"])
        try #require(reply.status == 200)
        let chosen = try state()
        guard case .tooLate = await ask(.undo, link) else {
            Issue.record("an older choice won")
            return
        }
        #expect(try state() == chosen)
    }

    @Test func `a later consent ends what can be taken back`() async throws {
        let link = try await registered()
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        try await gate.consent("u_1", id: "c2", state: "refused")
        let refused = try state()
        guard case .tooLate = await ask(.undo, link) else {
            Issue.record("a refusal was overruled")
            return
        }
        #expect(try state() == refused)
    }

    @Test(arguments: [("promo.offer", "marketing"), ("social.comment", "social")])
    func `a reply that says no ends what can be taken back`(type: String, caller: String) async throws {
        try await gate.register("u_1")
        let address = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/m",
            [
                "kind": "email", "value": "ada@example.org",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(address.status == 200)
        var consent = try gate.consentBody("c-m")
        consent["channel"] = "email"
        consent["address"] = "m"
        let name = type == "promo.offer" ? "promo" : "social"
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == name && $0.key.language == "en" })
        consent["purpose"] = .string(type == "promo.offer" ? "marketing" : "social")
        consent["notice"] = [
            "id": .string(notice.key.id), "version": .string(notice.key.version),
            "language": .string(notice.key.language), "sha256": .string(notice.sha256),
        ]
        let given = try await gate.call("product", "POST", "/v1/recipients/u_1/consents", consent)
        try #require(given.status == 200 || given.status == 201, "\(given.json)")
        gate.clock.advance(seconds: 1)
        let link = try #require(try await link(type, by: caller, on: "email"))
        gate.clock.advance(seconds: 1)
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        let reply = try await gate.call(
            "replies", "POST", "/v1/replies",
            [
                "id": "r1", "channel": "email", "from": "ada@example.org", "text": "unsubscribe",
                "received_at": .string(gate.clock.now().rfc3339),
            ])
        // The link had ended all that they had agreed to. Either way it is a no of its own.
        try #require(reply.status == 200, "\(reply.json)")
        #expect(reply["effect"] == "none" && reply["why"] == "already_so", "\(reply.json)")
        let stopped = try state()
        guard case .tooLate = await ask(.undo, link) else {
            Issue.record("a no by reply was overruled")
            return
        }
        #expect(try state() == stopped)
        #expect(try folded() == stopped.evidence)
    }

    @Test func `undo creates no consent that was not there`() async throws {
        let link = try await registered()
        // Their own no, before the link is used: it withdrew what there was.
        let withdrawn = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents/c1/withdraw", [:])
        try #require(withdrawn.status == 200 || withdrawn.status == 201, "\(withdrawn.json)")
        gate.clock.advance(seconds: 1)
        let before = try state()
        _ = await ask(.mute, link)
        gate.clock.advance(seconds: 1)
        _ = await ask(.undo, link)
        let after = try state()
        #expect(after.consentsInForce == before.consentsInForce)
        #expect(!after.consentsInForce.isGiven([.marketing], at: gate.clock.now()))
        #expect(try await verdict("s2") != "allowed")
    }

    @Test func `a place where nobody was ever asked is such a place again`() async throws {
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let second = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_2",
            [
                "platform": "android", "app": "no.getdrop.app", "token": "other", "region": "DE",
                "os_permission": "granted",
            ])
        try #require(second.status == 200)
        gate.clock.advance(seconds: 1)
        let link = try #require(try await link())
        let before = try state()
        _ = await ask(.mute, link)
        let muted = try state()
        #expect(
            muted.consentsInForce.byScope.count > before.consentsInForce.byScope.count
                || muted.consentsInForce != before.consentsInForce)
        gate.clock.advance(seconds: 1)
        _ = await ask(.undo, link)
        #expect(try state().consentsInForce == before.consentsInForce)
    }

    // MARK: Unknown people

    @Test func `a link of somebody erased is as unknown as one that never was`() async throws {
        let link = try await registered()
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
        try #require(erased.status == 200, "\(erased.json)")
        let count = try entryCount
        for question in [Question.look, .mute, .undo] {
            #expect(await ask(question, link) == .unknown)
            #expect(await ask(question, String(link.dropLast()) + "A") == .unknown)
            #expect(await ask(question, "nonsense") == .unknown)
        }
        #expect(try entryCount == count)
        // A person who comes back is a new one, with a link of their own.
        try await gate.register("u_1")
        try await gate.consent("u_1")
        #expect(try await self.link("promo.offer", "s9") != link)
        #expect(await ask(.look, link) == .unknown)
    }

    @Test func `every token that leads nowhere costs one read of the store, whatever is wrong with it`()
        async throws
    {
        let box = Mutex<CountingStore?>(nil)
        var environment = EngineEnvironment()
        environment.store = { store in
            let counting = CountingStore(store)
            box.withLock { $0 = counting }
            return counting
        }
        let gate = try GatewayHarness(environment: environment)
        let store = try #require(box.withLock { $0 })
        let tests = UnsubscribeTests(gate)
        let link = try await tests.registered()
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        await gate.settle()
        let ofNobody = gate.gateKeys.links.token(for: Tag(high: 1, low: 1))
        for question in [Question.look, .mute, .undo] {
            for token in [link, ofNobody, String(link.dropLast()) + "A", String(link.dropLast(4)), ""] {
                let before = store.counts
                #expect(await tests.ask(question, token) == .unknown)
                let after = store.counts
                #expect(after.reads - before.reads == 1, "\(question) \(token)")
                // Nothing of it waits in the engine's queue.
                #expect(after.linkLoads == before.linkLoads, "\(question) \(token)")
            }
        }
    }

    @Test func `a link outlives the device it was sent to`() async throws {
        let link = try await registered()
        let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/devices/d_1")
        try #require(removed.status == 200)
        guard case .known(let standing) = await ask(.mute, link) else {
            Issue.record("the link died with the device")
            return
        }
        #expect(standing.isOff)
        // Which device is not there any more, so the no is the account's.
        #expect(try state().preferences.contains { $0.destination == nil && $0.state == .userOff })
    }

    /// Where nothing goes any more, no page offers to stop what was stopped.
    @Test(arguments: ["push", "email"])
    func `the page of a mute stays one of a mute when its device or mailbox is gone`(
        _ channel: String
    ) async throws {
        try await share("u_1")
        try await gate.consent("u_1", id: "c-push")
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: channel))
        gate.clock.advance(seconds: 1)
        try await muted(token)
        gate.clock.advance(seconds: 1)
        let place = channel == "push" ? "devices/d_1" : "addresses/m"
        let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/\(place)")
        try #require(removed.status == 200, "\(removed.json)")
        guard case .known(let gone) = await ask(.look, token) else {
            Issue.record("the link died with its place")
            return
        }
        #expect(gone.isOff && gone.wasMuted && !gone.isUndone)
        let count = try entryCount
        try await muted(token)
        #expect(try entryCount == count)
        gate.clock.advance(seconds: UnsubscribeLink.undoSeconds)
        guard case .tooLate(let late) = await ask(.undo, token) else {
            Issue.record("the mute was taken back too late")
            return
        }
        #expect(late.isOff && late.wasMuted && !late.isUndone && late.undoableUntil == nil)
        try expectReplay()
    }

    // MARK: A mailbox of several people

    private func share(
        _ user: String, _ mailbox: String = "family@example.org", consents: Bool = true, region: String = "DE"
    ) async throws {
        try await gate.register(
            user, region: region, zone: region == "US" ? "America/New_York" : "Europe/Berlin")
        let put = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/addresses/m",
            [
                "kind": "email", "value": .string(mailbox),
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(put.status == 200, "\(put.json)")
        if consents { try await agree(user) }
    }

    private func agree(_ user: String, named name: String = "mail") async throws {
        var consent = try gate.consentBody("\(name)-\(user)")
        consent["channel"] = "email"
        consent["address"] = "m"
        let given = try await gate.call("product", "POST", "/v1/recipients/\(user)/consents", consent)
        try #require(given.status == 200, "\(given.json)")
    }

    private func mail(_ id: String, to user: String) async throws -> Int {
        var send = try await gate.promo(id, to: user)
        send["channel"] = "email"
        return try await gate.call("marketing", "POST", "/v1/sends", send).status
    }

    private func sources(_ user: String) async throws -> [String] {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/preferences")
        return (answer.json["preferences"]?.arrayValue ?? []).filter { $0["channel"] == "email" }
            .compactMap { $0["source"]?.stringValue }
    }

    /// How the withdrawals at the mailbox of a person came, and who reported them.
    private func withdrawals(_ user: String) async throws -> Set<String> {
        let answer = try await gate.call("product", "GET", "/v1/recipients/\(user)/consents")
        let records = (answer.json["records"]?.arrayValue ?? []).filter {
            $0["state"] == "withdrawn" && $0["address"] == "m"
        }
        return Set(
            records.map { "\($0["method"]?.stringValue ?? "") \($0["source"]?.stringValue ?? "")" })
    }

    /// A replay from the first entry finds no difference.
    private func expectReplay() throws {
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }
        let (_, differences) = try EvidenceFoldTests.fold(entries.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
    }

    @Test
    func `a link switches a mailbox off for everybody who has it, and undo gives each back what it took`()
        async throws
    {
        try await share("u_1")
        try await share("u_2")
        try await share("u_3")
        try await share("u_4", "other@example.org")
        gate.clock.advance(seconds: 1)
        let own = try await gate.call(
            "product", "PUT", "/v1/recipients/u_3/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "email", "address": "m"])
        #expect(own.status == 200)
        gate.clock.advance(seconds: 1)
        // A choice in the app is the person's own.
        #expect(try await mail("own", to: "u_2") == 202)
        gate.clock.advance(seconds: 8 * 86_400)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        gate.clock.advance(seconds: 1)
        try await muted(token)
        for user in ["u_1", "u_2", "u_3"] { #expect(try await mail("a-\(user)", to: user) == 403, "\(user)") }
        #expect(try await mail("a-4", to: "u_4") == 202)
        #expect(try await sources("u_1").contains("unsubscribe_link"))
        #expect(try await sources("u_2").contains("shared_address"))
        #expect(try await withdrawals("u_1") == ["web_form gateway"])
        #expect(try await withdrawals("u_2") == ["shared_address gateway"])
        let count = try entryCount
        _ = await ask(.mute, token)
        #expect(try entryCount == count)

        gate.clock.advance(seconds: 60)
        guard case .known(let after) = await ask(.undo, token) else {
            Issue.record("the undo was refused")
            return
        }
        #expect(!after.isOff)
        gate.clock.advance(seconds: 8 * 86_400)
        #expect(try await mail("b-1", to: "u_1") == 202)
        #expect(try await mail("b-2", to: "u_2") == 202)
        // What was said in the app before stands.
        #expect(try await mail("b-3", to: "u_3") == 403)
        try expectReplay()
    }

    @Test(arguments: ["replaced", "removed", "erased and registered anew"])
    func `a link reaches who has its mailbox now, whatever became of its own person's registration`(
        _ change: String
    ) async throws {
        try await share("u_1")
        try await share("u_2")
        try await share("u_3", "other@example.org")
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        let address = "/v1/recipients/u_1/addresses/m"
        switch change {
        case "replaced":
            try await share("u_1", "new@example.org", consents: false)
        case "removed":
            #expect(try await gate.call("product", "DELETE", address).status == 200)
        default:
            #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_2").status == 200)
            try await share("u_2")
            #expect(try await gate.call("product", "DELETE", address).status == 200)
        }
        gate.clock.advance(seconds: 8 * 86_400)
        try await muted(token)
        #expect(try await mail("a-2", to: "u_2") == 403)
        #expect(try await sources("u_2").contains("shared_address"))
        #expect(try await mail("a-3", to: "u_3") == 202)
        let count = try entryCount
        _ = await ask(.mute, token)
        #expect(try entryCount == count)

        gate.clock.advance(seconds: 60)
        let after = try await undone(token)
        #expect(!after.isOff)
        #expect(try await mail("b-2", to: "u_2") == 202)
        try expectReplay()
    }

    private func muted(_ token: String) async throws {
        guard case .known(let standing) = await ask(.mute, token) else {
            Issue.record("the link is unknown")
            return
        }
        #expect(standing.isOff)
    }

    @discardableResult private func undone(_ token: String) async throws -> LinkStanding {
        guard case .known(let standing) = await ask(.undo, token) else {
            throw RefusedUndo()
        }
        return standing
    }

    private struct RefusedUndo: Error {}

    /// A link of a week ago to the mailbox that `u_1` shares with `u_2`.
    private func linkToSharedMailbox(othersConsent: Bool = true) async throws -> String {
        try await share("u_1")
        try await share("u_2", consents: othersConsent)
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        gate.clock.advance(seconds: 8 * 86_400)
        return token
    }

    @Test(arguments: ["replaced", "removed", "registered again", "the other's registered again"])
    func `an undo gives back to each whom the mute took from, whatever became of their registrations`(
        _ change: String
    ) async throws {
        let token = try await linkToSharedMailbox()
        try await muted(token)
        #expect(try await mail("a-2", to: "u_2") == 403)
        gate.clock.advance(seconds: 60)
        let user = change == "the other's registered again" ? "u_2" : "u_1"
        if change == "replaced" {
            try await share(user, "new@example.org", consents: false)
        } else {
            let removed = try await gate.call("product", "DELETE", "/v1/recipients/\(user)/addresses/m")
            #expect(removed.status == 200)
            if change != "removed" { try await share(user, consents: false) }
        }
        gate.clock.advance(seconds: 60)
        try await undone(token)
        #expect(try await mail("b-2", to: "u_2") == 202)
        if change.hasSuffix("registered again") { #expect(try await mail("b-1", to: "u_1") == 202) }
        guard case .tooLate = await ask(.undo, token) else {
            Issue.record("it was taken back twice")
            return
        }
        try expectReplay()
    }

    @Test(arguments: [true, false])
    func `a second use takes from one who agreed in between, and its undo gives that back`(
        isUndoneBetween: Bool
    ) async throws {
        let token = try await linkToSharedMailbox(othersConsent: false)
        try await muted(token)
        gate.clock.advance(seconds: 60)
        if isUndoneBetween { try await undone(token) }
        gate.clock.advance(seconds: 60)
        try await agree("u_2")
        #expect(try await mail("a-2", to: "u_2") == 202)
        gate.clock.advance(seconds: 60)
        try await muted(token)
        #expect(try await mail("b-2", to: "u_2") == 403)
        gate.clock.advance(seconds: 60)
        try await undone(token)
        gate.clock.advance(seconds: 8 * 86_400)
        #expect(try await mail("c-1", to: "u_1") == 202)
        #expect(try await mail("c-2", to: "u_2") == 202)
        try expectReplay()
    }

    @Test(arguments: ["u_1", "u_2"])
    func `what one of them said themselves since stays, and the other gets theirs back`(_ speaker: String)
        async throws
    {
        let token = try await linkToSharedMailbox()
        try await muted(token)
        gate.clock.advance(seconds: 60)
        let own = try await gate.call(
            "product", "PUT", "/v1/recipients/\(speaker)/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "email", "address": "m"])
        #expect(own.status == 200, "\(own.json)")
        gate.clock.advance(seconds: 60)
        try await undone(token)
        for user in ["u_1", "u_2"] {
            #expect(try await mail("b-\(user)", to: user) == (user == speaker ? 403 : 202), "\(user)")
        }
        try expectReplay()
    }

    // MARK: A no that others said by the same mailbox

    enum SharedNo: CaseIterable {
        case link, reportedLink, objection, everyChannel, reply
    }

    /// Links of a week ago to two of three people with one mailbox.
    private func linksOfThree() async throws -> (String, String) {
        for user in ["u_1", "u_2", "u_3"] { try await share(user) }
        gate.clock.advance(seconds: 1)
        let first = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        let second = try #require(try await link("promo.offer", "s2", to: "u_2", on: "email"))
        gate.clock.advance(seconds: 8 * 86_400)
        return (first, second)
    }

    private func say(_ no: SharedNo, by user: String, _ link: String) async throws {
        let person = "/v1/recipients/\(user)"
        if no == .link { return try await muted(link) }
        let answer =
            switch no {
            case .link, .reportedLink:
                try await gate.call(
                    "product", "PUT", "\(person)/preferences/marketing",
                    ["state": "user_off", "source": "unsubscribe_link", "channel": "email", "address": "m"])
            case .objection:
                try await gate.call(
                    "product", "PUT", "\(person)/preferences/marketing",
                    ["state": "user_off", "source": "in_app_settings"])
            case .everyChannel:
                try await gate.call(
                    "product", "POST", "\(person)/consents/mail-\(user)/withdraw", ["every_channel": true])
            case .reply:
                try await gate.call(
                    "replies", "POST", "/v1/replies",
                    [
                        "id": "r-\(user)", "channel": "email", "from": "family@example.org", "text": "STOP",
                        "received_at": .string(gate.clock.now().rfc3339),
                    ])
            }
        try #require(answer.status == 200, "\(answer.json)")
    }

    @Test(arguments: SharedNo.allCases)
    func `an undo gives nothing back while somebody else's no by the mailbox stands`(_ no: SharedNo)
        async throws
    {
        let (first, second) = try await linksOfThree()
        try await muted(first)
        gate.clock.advance(seconds: 60)
        try await say(no, by: "u_2", second)
        gate.clock.advance(seconds: 60)
        guard case .tooLate(let standing) = await ask(.undo, first) else {
            Issue.record("a mute was taken back over another's no")
            return
        }
        #expect(standing.isOff && standing.undoableUntil == nil)
        for user in ["u_1", "u_2", "u_3"] { #expect(try await mail("a-\(user)", to: user) == 403, "\(user)") }
        guard no == .link else { return try expectReplay() }
        // Once the other's is taken back, the first can be.
        try await undone(second)
        #expect(try await mail("b-3", to: "u_3") == 403)
        try await undone(first)
        for user in ["u_1", "u_2", "u_3"] { #expect(try await mail("c-\(user)", to: user) == 202, "\(user)") }
        try expectReplay()
    }

    @Test(arguments: SharedNo.allCases, [true, false])
    func `a no by a mailbox holds for who registers it later, until they agree there`(
        _ no: SharedNo, isReturning: Bool
    ) async throws {
        try await share("u_1")
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        if isReturning {
            try await share("u_2")
            let left = try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/m")
            try #require(left.status == 200)
        }
        gate.clock.advance(seconds: 8 * 86_400)
        if no == .link {
            // Nobody has the mailbox when the no comes.
            let left = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/m")
            try #require(left.status == 200)
        }
        try await say(no, by: "u_1", token)
        gate.clock.advance(seconds: 60)
        let region = isReturning ? "DE" : "US"
        try await share("u_2", consents: false, region: region)
        #expect(try await mail("a-2", to: "u_2") == 403)
        #expect(try await sources("u_2").contains(no == .reply ? "reply" : "shared_address"))
        gate.clock.advance(seconds: 60)
        try await agree("u_2", named: "again")
        #expect(try await mail("b-2", to: "u_2") == 202)
        // What was agreed to after the no stands when the same mailbox is registered again.
        if no != .reply {
            let left = try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/m")
            try #require(left.status == 200)
            gate.clock.advance(seconds: 8 * 86_400)
            try await share("u_2", consents: false, region: region)
            #expect(try await mail("c-2", to: "u_2") == 202)
        }
        try expectReplay()
    }

    @Test func `the undo of a link gives back to who registered its mailbox since, too`() async throws {
        try await share("u_1")
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        gate.clock.advance(seconds: 8 * 86_400)
        try await muted(token)
        gate.clock.advance(seconds: 60)
        try await share("u_2", consents: false, region: "US")
        #expect(try await mail("a-2", to: "u_2") == 403)
        try await undone(token)
        #expect(try await mail("b-2", to: "u_2") == 202)
        try await share("u_3", consents: false, region: "US")
        #expect(try await mail("b-3", to: "u_3") == 202)
        try expectReplay()
    }

    @Test func `a link whose time is over takes nothing back of who registers its mailbox now`() async throws
    {
        try await share("u_1")
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        gate.clock.advance(seconds: 8 * 86_400)
        try await muted(token)
        gate.clock.advance(seconds: UnsubscribeLink.undoSeconds)
        try await share("u_2", consents: false, region: "US")
        guard case .tooLate = await ask(.undo, token) else {
            Issue.record("a mute was taken back too late")
            return
        }
        try await share("u_3", consents: false, region: "US")
        for user in ["u_2", "u_3"] { #expect(try await mail("a-\(user)", to: user) == 403, "\(user)") }
        try expectReplay()
    }

    @Test func `a mute that was repeated is taken back no more than the first, once another said no`()
        async throws
    {
        let (first, second) = try await linksOfThree()
        try await muted(first)
        gate.clock.advance(seconds: 5 * 60)
        try await agree("u_1", named: "again")
        gate.clock.advance(seconds: 5 * 60)
        try await muted(first)
        gate.clock.advance(seconds: 6 * 60)
        try await muted(second)
        gate.clock.advance(seconds: 2 * 60)
        guard case .tooLate = await ask(.undo, first) else {
            Issue.record("a mute was taken back over another's no")
            return
        }
        for user in ["u_1", "u_3"] { #expect(try await mail("a-\(user)", to: user) == 403, "\(user)") }
        try expectReplay()
    }

    @Test func `what a link switched off is listed no longer than it can be taken back`() async throws {
        let link = try await registered()
        _ = await ask(.mute, link)
        for (seconds, count) in [(899, 1), (1, 0)] as [(Int64, Int)] {
            gate.clock.advance(seconds: seconds)
            await withCheckedContinuation { continuation in
                gate.engine.submit(DroppingOperation { continuation.resume() })
            }
            let names = try gate.store.read {
                try $0.settingNames(in: StepContext.muteSettingNames, limit: 9)
            }
            #expect(names.count == count, "\(names) after \(seconds) s more")
        }
    }

    @Test(arguments: [
        "objection", "every_channel", "link reported", "link reported without its mailbox",
        "link reported among others", "choice in the app",
    ])
    func `a no that is about a mailbox ends it for everybody there, and a choice in the app for one`(
        _ act: String
    ) async throws {
        try await share("u_1")
        try await share("u_2")
        gate.clock.advance(seconds: 1)
        let preferences = "/v1/recipients/u_1/preferences/marketing"
        let answer =
            switch act {
            case "objection":
                try await gate.call(
                    "product", "PUT", preferences, ["state": "user_off", "source": "in_app_settings"])
            case "every_channel":
                try await gate.call(
                    "product", "POST", "/v1/recipients/u_1/consents/mail-u_1/withdraw",
                    ["every_channel": true]
                )
            case "link reported":
                try await gate.call(
                    "product", "PUT", preferences,
                    ["state": "user_off", "source": "unsubscribe_link", "channel": "email", "address": "m"])
            case "link reported without its mailbox":
                try await gate.call(
                    "product", "PUT", preferences,
                    ["state": "user_off", "source": "unsubscribe_link", "channel": "email"])
            case "link reported among others":
                try await gate.call(
                    "product", "PUT", "/v1/recipients/u_1/preferences",
                    [
                        "preferences": [
                            [
                                "scope": "social", "state": "user_off", "source": "in_app_settings",
                                "channel": "email",
                            ],
                            [
                                "scope": "marketing", "state": "user_off", "source": "unsubscribe_link",
                                "channel": "email",
                            ],
                        ]
                    ])
            default:
                try await gate.call(
                    "product", "PUT", preferences,
                    ["state": "user_off", "source": "in_app_settings", "channel": "email", "address": "m"])
            }
        #expect(answer.status == 200 && answer["effect"] == nil, "\(answer.json)")
        #expect(try await mail("a-1", to: "u_1") == 403)
        #expect(try await mail("a-2", to: "u_2") == (act == "choice in the app" ? 202 : 403))
        try expectReplay()
    }

    @Test
    func `a link to a mailbox of more people than one step changes counts for all before it is answered`()
        async throws
    {
        let count = StepContext.replyHolderCountMax + 5
        for number in 1...count { try await share("u_\(number)", consents: number == 1) }
        gate.clock.advance(seconds: 1)
        let token = try #require(try await link("promo.offer", "s1", to: "u_1", on: "email"))
        gate.clock.advance(seconds: 1)
        try await muted(token)
        for number in 2...count {
            #expect(try await sources("u_\(number)").contains("shared_address"), "u_\(number)")
        }
        gate.clock.advance(seconds: 60)
        try await undone(token)
        let states = try gate.store.read { store in
            try (1...count).compactMap { try store.subject(of: UserID("u_\($0)")) }
                .compactMap { try store.state(of: $0.id) }
        }
        #expect(states.count == count)
        #expect(states.allSatisfy { $0.preferences.allSatisfy { !$0.state.isOff } })
        try expectReplay()
    }
}

/// A store that counts how often it is read, and how often a step asks it for a link.
private final class CountingStore: GateStore {
    private let store: any GateStore
    private let state = Mutex((reads: 0, linkLoads: 0))

    init(_ store: any GateStore) { self.store = store }

    var counts: (reads: Int, linkLoads: Int) { state.withLock { $0 } }

    func load(_ asks: [Ask], into memory: GateMemory) throws {
        if asks.contains(where: { if case .unsubscribeLink = $0 { true } else { false } }) {
            self.state.withLock { $0.linkLoads += 1 }
        }
        try store.load(asks, into: memory)
    }
    func commit(_ changes: [Change]) throws -> CommitReceipt { try store.commit(changes) }
    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result {
        state.withLock { $0.reads += 1 }
        return try store.read(body)
    }
    func synchronize() throws { try store.synchronize() }
    func finishErasures() throws { try store.finishErasures() }
    var damages: [StoredDamage] { store.damages }
    func note(_ damage: StoredDamage) { store.note(damage) }
    func checkPages(countMax: Int) throws -> Bool { try store.checkPages(countMax: countMax) }
    var pageCheck: PageCheck { store.pageCheck }
    var dataKeyUse: DataKeyUse { store.dataKeyUse }
}
