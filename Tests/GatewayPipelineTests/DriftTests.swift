import CanonicalJSON
import GateTestKit
import GateVocabulary
import GateRecords
import SQLiteStore
import Testing

@testable import GateSteps
@testable import GatewayPipeline

/// What the app, the provider and the operating system disagree about, and what an audit does about it.
@Suite struct DriftTests {
    private static let person = "/v1/recipients/u_1"

    private func subscribe(
        _ categories: JSONObject, at device: String = "d_1", _ gate: GatewayHarness, of user: String = "u_1"
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/devices/\(device)/subscriptions",
            ["categories": .object(categories)])
    }

    private func choose(
        _ gate: GatewayHarness, _ state: String, _ scope: String = "social", at device: String? = nil
    ) async throws {
        var body: JSONObject = ["channel": "push", "source": "in_app_settings", "state": .string(state)]
        if let device { body["device"] = .string(device) }
        let reply = try await gate.call("product", "PUT", "\(Self.person)/preferences/\(scope)", body)
        try #require(reply.status == 200, "\(reply.json)")
    }

    /// `finding action category old new` of what is held of a person, by their own page.
    private func drifts(_ gate: GatewayHarness, of user: String = "u_1") async throws -> [String] {
        let held = try await gate.call("auditor", "GET", "/v1/recipients/\(user)")
        return try #require(held.json["drifts"]?.arrayValue).map { drift in
            ["finding", "action", "category", "old", "new"].map { drift[$0]?.stringValue ?? "-" }
                .joined(separator: " ")
        }.sorted()
    }

    private static let week: Int64 = 7 * 86_400_000

    /// What the schedule of a run each week does now, and the run that is known then.
    private func look(_ gate: GatewayHarness, mayBeFirst: Bool) async throws -> DriftRun? {
        let failure = await withCheckedContinuation { continuation in
            gate.engine.beginDriftRun(intervalMilliseconds: Self.week, mayBeFirst: mayBeFirst) {
                continuation.resume(returning: $0)
            }
        }
        #expect(failure == nil)
        return try gate.store.read { try $0.driftRun() }
    }

    private func entries(_ gate: GatewayHarness) throws -> [String] {
        try gate.entries("drift").map { entry in
            ["finding", "action", "category", "old", "new"].map { entry[$0]?.stringValue ?? "-" }
                .joined(separator: " ")
        }
    }

    private func comment(
        _ id: String, _ gate: GatewayHarness, device: String? = nil
    ) async throws -> GatewayHarness.Reply {
        var send = try await gate.example("social.comment", id, to: "u_1", as: "social")
        if let device { send["recipient"] = ["user": "u_1", "device": .string(device)] }
        return try await gate.call("social", "POST", "/v1/sends", send)
    }

    // MARK: The provider

    @Test func `a subscription that outlived its switch is an order to the provider`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await choose(gate, "user_off")
        // There is no consent to marketing, which is off as well; what was not reported is not known.
        #expect(try await subscribe(["social": true, "marketing": true], gate).status == 200)
        let run = try await gate.audit()
        #expect(run.found == [.subscribedWhileOff: [.repaired: 2]] && run.recordedCount == 2)
        let told = [
            "subscribed_while_off repaired marketing subscribed unsubscribed",
            "subscribed_while_off repaired social subscribed unsubscribed",
        ]
        #expect(try await drifts(gate) == told)
        #expect(try entries(gate).sorted() == told)
        let orders = try await gate.call("product", "GET", "/v1/drift/findings")
        let rows = try #require(orders.json["findings"]?.arrayValue)
        #expect(
            rows.allSatisfy {
                $0["token"] == .string(apnsToken("token-of-u_1-d_1")) && $0["device"] == "d_1"
            }, "\(rows)")
        #expect(orders.json["next"] == nil)
        // Looking again finds it and writes nothing.
        let again = try await gate.audit()
        #expect(again.foundCount == 2 && again.recordedCount == 0)
        #expect(try entries(gate).count == 2)
        // The provider has followed.
        #expect(try await subscribe(["social": false, "marketing": false], gate).status == 200)
        let last = try await gate.audit()
        #expect(last.foundCount == 0 && last.resolvedCount == 2)
        #expect(try await drifts(gate).isEmpty)
    }

    @Test func `a choice that is newer than the provider's word is the one that counts`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        #expect(try await subscribe(["social": false], gate).status == 200)
        gate.clock.advance(milliseconds: 1)
        try await choose(gate, "user_on")
        try await gate.audit()
        #expect(
            try await drifts(gate) == ["unsubscribed_while_on repaired social unsubscribed subscribed"])
        #expect(try await comment("c1", gate)["outcome"] == "forward")
    }

    @Test func `where nobody can tell, the category goes to no device until somebody chooses`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        #expect(try await subscribe(["social": false], gate).status == 200)
        #expect(try await gate.audit().found == [.unsubscribedWhileOn: [.suppressed: 1]])
        #expect(try await drifts(gate) == ["unsubscribed_while_on suppressed social default user_off"])
        let held = try await comment("c1", gate, device: "d_1")
        #expect(held["reason"] == "user_preference" && held["detail"] == "destination_off", "\(held.json)")
        #expect(try await comment("c2", gate, device: "d_2")["outcome"] == "forward")
        // Other categories go there, security above all.
        #expect(try await gate.remit("r1")["outcome"] == "forward")
        #expect(try await gate.login(1)["outcome"] == "forward")
        let chosen = try await gate.call("product", "GET", "\(Self.person)/preferences")
        #expect("\(chosen.json)".contains("choose it again in the app"), "\(chosen.json)")
        // It counts as no switching off, and it stays when looked at again.
        #expect(try gate.entries("switch_off").isEmpty)
        #expect(try await gate.audit().recordedCount == 0)
        #expect(try await comment("c3", gate, device: "d_1")["outcome"] == "suppress")
        // Choosing, for the account even, ends it at once; the next audit tells the provider.
        gate.clock.advance(seconds: 1)
        try await choose(gate, "user_on")
        #expect(try await comment("c4", gate, device: "d_1")["outcome"] == "forward")
        try await gate.audit()
        #expect(
            try await drifts(gate) == ["unsubscribed_while_on repaired social unsubscribed subscribed"])
    }

    @Test func `what was chosen at a device comes back when the provider agrees`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await choose(gate, "user_on", at: "d_1")
        gate.clock.advance(seconds: 1)
        #expect(try await subscribe(["social": false], gate).status == 200)
        try await gate.audit()
        #expect(try await drifts(gate) == ["unsubscribed_while_on suppressed social user_on user_off"])
        #expect(try await gate.audit().recordedCount == 0)
        #expect(try await subscribe(["social": true], gate).status == 200)
        try await gate.audit()
        let state = try #require(
            try gate.store.read { try $0.state(of: $0.subject(of: UserID("u_1"))!.id) })
        let choice = try #require(state.preferences.first { $0.destination != nil })
        #expect(choice.state == .userOn && choice.source == .driftAudit)
        #expect(try await comment("c1", gate)["outcome"] == "forward")
        // What the audit put back is no newer word of the recipient's.
        gate.clock.advance(seconds: 1)
        #expect(try await subscribe(["social": false], gate).status == 200)
        try await gate.audit()
        #expect(try await drifts(gate) == ["unsubscribed_while_on suppressed social user_on user_off"])
        // An auditor finds what was put back in the history: the finding is resolved by an entry before it.
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        #expect(try EvidenceFoldTests.objections(to: entries, under: gate.policy) == [:])
    }

    @Test func `a yes said again is a choice, and newer than the provider's word`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        gate.clock.advance(seconds: 1)
        #expect(try await subscribe(["marketing": false], gate).status == 200)
        try await gate.audit()
        #expect(try await drifts(gate) == ["unsubscribed_while_on suppressed marketing default user_off"])
        func promo(_ id: String) async throws -> String? {
            try await gate.call(
                "marketing", "POST", "/v1/sends", try await gate.promo(id, to: "u_1"))["outcome"]
        }
        #expect(try await promo("p1") == "suppress")
        gate.clock.advance(seconds: 1)
        // The preference is what it was; the consent is not.
        try await gate.consent("u_1", id: "c2")
        #expect(try await promo("p2") == "forward")
        try await gate.audit()
        #expect(
            try await drifts(gate) == ["unsubscribed_while_on repaired marketing unsubscribed subscribed"])
    }

    @Test func `a message that waits for a suppressed device is taken out`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        #expect(try await subscribe(["social": false], gate).status == 200)
        let waiting = try await comment("c1", gate)
        try await gate.audit()
        let status = try await gate.call("social", "GET", "/v1/sends/\(waiting["send_id"] ?? "")")
        let events = try #require(status.json["events"]?.arrayValue)
        #expect(events.map { $0["event"] } == ["withdrawn"], "\(status.json)")
    }

    @Test func `an older word of the provider, one of the future and one about nobody are refused`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        #expect(try await subscribe(["social": true], gate).status == 200)
        func put(at seconds: Int64, _ device: String = "d_1") async throws -> Int {
            try await gate.call(
                "product", "PUT", "\(Self.person)/devices/\(device)/subscriptions",
                [
                    "categories": [:],
                    "observed_at": .string(gate.clock.now().advanced(bySeconds: seconds).rfc3339),
                ]
            ).status
        }
        #expect(try await put(at: -1) == 409)
        #expect(try await put(at: 1) == 422)
        #expect(try await put(at: 0, "d_9") == 404)
        #expect(try await put(at: 0) == 200)
        // No provider's state keeps a security notice back, so none is taken.
        #expect(try await subscribe(["security": false], gate).status == 422)
        // A device registered anew keeps what the provider said of it.
        #expect(try await subscribe(["social": true], gate).status == 200)
        try await gate.register("u_1")
        let held = try await gate.call("auditor", "GET", Self.person)
        let device = try #require(held.json["devices"]?.arrayValue?.first)
        #expect(device["subscriptions"]?["categories"]?["social"] == true, "\(held.json)")
    }

    // MARK: The operating system, zones, tokens

    @Test(arguments: [
        ("denied", ["blocked_at_os marked - denied -"]),
        ("provisional", ["delivered_quietly marked - provisional -"]), ("granted", []),
        ("not_determined", []),
    ])
    func `what the operating system does with push is marked`(permission: String, told: [String]) async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: permission)
        try await gate.audit()
        #expect(try await drifts(gate) == told)
        // A person who switched push off themselves is in no disagreement with their phone.
        _ = try await gate.call(
            "product", "PUT", Self.person,
            ["push_enabled": false, "region": "DE", "time_zone": "Europe/Berlin"])
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
    }

    @Test func `a push seen where the permission is denied makes the permission the one that is wrong`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let send = try await gate.remit("r1")
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        gate.clock.advance(seconds: 60)
        try await gate.register("u_1", osPermission: "denied")
        try await gate.audit()
        #expect(try await drifts(gate) == ["blocked_at_os marked - denied -"])
        gate.clock.advance(seconds: 60)
        let seen = try await gate.call(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(send["send_id"] ?? ""), "destination": "d_1", "event": "user_observed",
                "action": "opened", "at": .string(gate.clock.now().rfc3339),
            ])
        #expect(seen.status == 200, "\(seen.json)")
        let run = try await gate.audit()
        #expect(run.recordedCount == 2 && run.resolvedCount == 1)
        #expect(try await drifts(gate) == ["permission_outdated marked - denied -"])
        // A person who switched push off for the account is in no disagreement with a phone.
        _ = try await gate.call(
            "product", "PUT", Self.person,
            ["push_enabled": false, "region": "DE", "time_zone": "Europe/Berlin"])
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
    }

    @Test(arguments: ["badge_cleared", "seen"])
    func `what only the app tells of is a sign of the device and shows no push`(action: String) async throws {
        var settings = DriftSettings()
        settings.staleMilliseconds = 3_600_000
        let gate = try GatewayHarness(drift: settings)
        try await gate.register("u_1")
        let send = try await gate.remit("r1")
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        try await gate.register("u_1", osPermission: "denied")
        func observe(_ action: String) async throws {
            let reply = try await gate.call(
                "product", "POST", "/v1/receipts",
                [
                    "send": .string(send["send_id"] ?? ""), "destination": "d_1", "event": "user_observed",
                    "action": .string(action), "at": .string(gate.clock.now().rfc3339),
                ])
            #expect(reply.status == 200, "\(reply.json)")
        }
        gate.clock.advance(seconds: 3_601)
        try await observe(action)
        try await gate.audit()
        #expect(try await drifts(gate) == ["blocked_at_os marked - denied -"])
        gate.clock.advance(seconds: 1)
        try await observe("dismissed")
        try await gate.audit()
        #expect(try await drifts(gate) == ["permission_outdated marked - denied -"])
    }

    @Test func `critical alerts without the entitlement are taken off the device`() async throws {
        var settings = DriftSettings()
        settings.criticalAlertApps = ["no.getdrop.app"]
        let gate = try GatewayHarness(drift: settings)
        try await gate.register("u_1")
        try await gate.register("u_2", app: "org.example.other")
        let run = try await gate.audit()
        #expect(run.found == [.notEntitled: [.repaired: 1]])
        #expect(try await drifts(gate).isEmpty)
        #expect(try await drifts(gate, of: "u_2") == ["not_entitled repaired - true false"])
        let held = try await gate.call("auditor", "GET", "/v1/recipients/u_2")
        #expect(held.json["devices"]?.arrayValue?.first?["critical_alerts"] == false, "\(held.json)")
        // It is not set which apps are entitled: none is taken to lack it.
        let open = try GatewayHarness()
        try await open.register("u_2", app: "org.example.other")
        #expect(try await open.audit().foundCount == 0)
    }

    @Test func `quiet hours without a zone are marked until one is known everywhere`() async throws {
        let gate = try GatewayHarness()
        let quiet: JSONObject = ["start": "22:00", "end": "07:00"]
        _ = try await gate.call("product", "PUT", Self.person, ["quiet_hours": .object(quiet)])
        try await gate.audit()
        #expect(try await drifts(gate) == ["zone_missing marked - unknown -"])
        let device: JSONObject = [
            "platform": "android", "app": "no.getdrop.app", "token": "t1", "os_permission": "granted",
            "time_zone": "Europe/Oslo",
        ]
        _ = try await gate.call("product", "PUT", "\(Self.person)/devices/d_1", device)
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
        let other: JSONObject = [
            "platform": "android", "app": "no.getdrop.app", "token": "t2", "os_permission": "granted",
        ]
        _ = try await gate.call("product", "PUT", "\(Self.person)/devices/d_2", other)
        try await gate.audit()
        #expect(try await drifts(gate) == ["zone_missing marked - unknown -"])
        // Equal times are no quiet hours.
        _ = try await gate.call(
            "product", "PUT", Self.person, ["quiet_hours": ["start": "07:00", "end": "07:00"]])
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
    }

    @Test func `a device of which nothing was heard for long is marked and still pushed to`() async throws {
        var settings = DriftSettings()
        settings.staleMilliseconds = 3_600_000
        let gate = try GatewayHarness(drift: settings)
        try await gate.register("u_1")
        gate.clock.advance(seconds: 3_600)
        #expect(try await gate.audit().foundCount == 0)
        gate.clock.advance(milliseconds: 1)
        try await gate.audit()
        #expect(try await drifts(gate) == ["token_stale marked - active -"])
        #expect(try await gate.login(1)["outcome"] == "forward")
        // A receipt is a sign of life.
        let send = try await gate.remit("r1")
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        func report(_ event: String) async throws {
            gate.clock.advance(seconds: 1)
            let reply = try await gate.call(
                "product", "POST", "/v1/receipts",
                [
                    "send": .string(send["send_id"] ?? ""), "destination": "d_1", "event": .string(event),
                    "at": .string(gate.clock.now().rfc3339),
                ])
            #expect(reply.status == 200, "\(reply.json)")
        }
        try await report("accepted_by_provider")
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
        // The provider's newest word is a refusal.
        try await report("failed")
        try await gate.audit()
        #expect(try await drifts(gate) == ["provider_refuses marked - active -"])
        try await gate.register("u_1")
        try await gate.audit()
        #expect(try await drifts(gate).isEmpty)
    }

    @Test(arguments: [("failed", ["provider_refuses marked - active -"]), ("expired", [])])
    func `what the provider refused or gave up is no sign of the device`(event: String, told: [String])
        async throws
    {
        var settings = DriftSettings()
        settings.staleMilliseconds = 3_600_000
        let gate = try GatewayHarness(drift: settings)
        try await gate.register("u_1")
        gate.clock.advance(seconds: 3_601)
        let send = try await gate.remit("r1")
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
        }
        gate.clock.advance(seconds: 1)
        let reply = try await gate.call(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(send["send_id"] ?? ""), "destination": "d_1", "event": .string(event),
                "at": .string(gate.clock.now().rfc3339),
            ])
        #expect(reply.status == 200, "\(reply.json)")
        try await gate.audit()
        #expect(try await drifts(gate) == told + ["token_stale marked - active -"])
    }

    // MARK: Runs

    @Test func `a run that only counts changes nothing`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: "denied")
        #expect(try await subscribe(["social": false], gate).status == 200)
        let run = try await gate.audit(isDryRun: true)
        #expect(run.foundCount == 2 && run.recordedCount == 2)
        #expect(try entries(gate).isEmpty)
        #expect(try await drifts(gate).isEmpty)
        let told = try await gate.call("product", "GET", "/v1/drift")
        #expect(told.json["dry_run"] == true && told.json["finished_at"] != nil, "\(told.json)")
    }

    @Test func `a run ended in the middle goes on there, in another process, and repeats nothing`()
        async throws
    {
        var environment = EngineEnvironment()
        // It is drained here, before the next one begins.
        environment.isDrained = false
        let first = try GatewayHarness(environment: environment, keeping: .files())
        // Its end takes the folder away.
        defer { withExtendedLifetime(first) {} }
        for number in 0..<7 { try await first.register("u_\(number)", osPermission: "denied") }
        #expect(try await first.call("product", "GET", "/v1/drift").status == 404)
        let begun = try await first.call("product", "POST", "/v1/drift", [:])
        #expect(begun.status == 202 && begun.json["started_by"] == "product", "\(begun.json)")
        #expect(try await first.auditPiece(3)?.examinedCount == 3)
        #expect(try entries(first).count == 3)
        first.engine.drain()
        first.files.close()

        let second = try GatewayHarness(after: first, keeping: .folder(first.folder))
        // A second request now gets the run that is under way.
        let again = try await second.call("product", "POST", "/v1/drift", [:])
        #expect(again.json["started_at"] == begun.json["started_at"] && again.json["examined"] == 3)
        #expect(try await second.call("product", "POST", "/v1/drift", ["dry_run": true]).status == 409)
        #expect(try await second.auditPiece(3)?.examinedCount == 6)
        let run = try #require(try await second.auditPiece(3))
        #expect(!run.isUnderWay && run.examinedCount == 7 && run.recordedCount == 7)
        #expect(run.found == [.blockedAtOS: [.marked: 7]])
        #expect(try await second.auditPiece(3) == nil)
        #expect(try entries(second).count == 7)
        // A page at a time, everybody is told once.
        var (subjects, target) = (Set<String>(), "/v1/drift/findings?limit=2")
        var pageCount = 0
        while true {
            let page = try await second.call("auditor", "GET", target)
            for row in page.json["findings"]?.arrayValue ?? [] {
                let subject = try #require(row["subject"]?.stringValue)
                #expect(!subjects.contains(subject))
                subjects.insert(subject)
                #expect(row["token"] == nil)
            }
            pageCount += 1
            guard let next = page.json["next"]?.stringValue else { break }
            target = "/v1/drift/findings?limit=2&after=\(next)"
        }
        #expect(subjects.count == 7 && pageCount == 4)
    }

    @Test func `a week after the last run began the next one does`() async throws {
        let gate = try GatewayHarness()
        #expect(try await look(gate, mayBeFirst: false) == nil)
        let first = try #require(try await look(gate, mayBeFirst: true))
        #expect(first.startedBy.text == "gateway" && first.isUnderWay)
        gate.clock.advance(milliseconds: Self.week - 1)
        // One that is under way is not begun again, however long it takes.
        #expect(try await look(gate, mayBeFirst: true)?.startedAt == first.startedAt)
        #expect(try await gate.auditPiece(10)?.isUnderWay == false)
        #expect(try await look(gate, mayBeFirst: true)?.startedAt == first.startedAt)
        gate.clock.advance(milliseconds: 1)
        #expect(try await look(gate, mayBeFirst: false)?.startedAt == gate.clock.now())
    }

    @Test func `a run that only counts puts off no audit and is none`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // A count before the first audit: that one still waits until it may be the first.
        #expect(try await gate.audit(isDryRun: true).auditFinishedAt == nil)
        #expect(try await look(gate, mayBeFirst: false)?.isDryRun == true)
        let audit = try await gate.audit()
        for _ in 0..<2 {
            gate.clock.advance(milliseconds: Self.week / 2 - 1)
            let count = try await gate.audit(isDryRun: true)
            #expect(count.auditStartedAt == audit.startedAt && count.auditFinishedAt == audit.finishedAt)
            #expect(try await look(gate, mayBeFirst: true)?.isDryRun == true)
        }
        gate.clock.advance(milliseconds: 2)
        let next = try #require(try await look(gate, mayBeFirst: false))
        #expect(next.startedAt == gate.clock.now() && !next.isDryRun)
        // While it is under way, the one before is the last that finished.
        #expect(next.auditFinishedAt == audit.finishedAt && next.isUnderWay)
        let finished = try #require(try await gate.auditPiece(10))
        #expect(finished.auditFinishedAt == gate.clock.now())
    }

    @Test func `somebody erased has nothing to audit`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", osPermission: "denied")
        try await gate.audit()
        _ = try await gate.call("product", "DELETE", Self.person)
        let run = try await gate.audit()
        #expect(run.foundCount == 0 && run.recordedCount == 0)
    }
}
