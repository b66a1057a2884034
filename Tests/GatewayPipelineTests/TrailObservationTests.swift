import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SQLiteStore
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// What the trail tells is what the gateway counted.
@Suite struct TrailObservationTests {
    /// Families that the entries tell: all counters of sends and people but the tries that failed.
    private static let told: [MetricFamily] = [
        .decisions, .shadowDecisions, .redecisions, .withdrawals, .unreached, .handOvers, .timeToAccept,
        .receipts, .taps, .timeToOpen, .disables, .disablesAfterSend, .replies, .reviews, .drifts,
    ]

    private static func samples(_ text: String) -> Set<String> {
        Set(
            text.split(separator: "\n").map(String.init).filter { line in
                told.contains { line.hasPrefix("\($0.name){") || line.hasPrefix("\($0.name)_") }
            })
    }

    private func counted(_ gate: GatewayHarness) async -> Set<String> {
        Self.samples(String(decoding: await gate.ask("auditor", "GET", "/metrics").body, as: UTF8.self))
    }

    private func folded(
        _ gate: GatewayHarness, _ policies: [CompiledPolicy]
    ) throws -> (samples: Set<String>, waiting: Int) {
        let counters = GatewayCounters()
        var fold = TrailObservations()
        for entry in try gate.store.read({ try $0.entries(from: 0, limit: 100_000) }) {
            let (_, _, observations) = try fold.observe(entry.bytes) { digest in
                policies.first { $0.digest == digest }
            }
            counters.count(observations)
        }
        var page = Exposition()
        counters.write(
            to: &page,
            mandatory: gate.policy.bundle.types.values.filter { $0.mandatory != nil }.map(\.id).sorted())
        return (Self.samples(page.text), fold.waitingCount)
    }

    /// Hands over what is due, with every result, and reports what was seen of it.
    private func deliver(_ gate: GatewayHarness, _ random: inout SeededNumbers) async throws {
        var seen: [Delivery] = []
        for delivery in try await gate.claim() + gate.claim(.security) {
            gate.clock.advance(milliseconds: Int64.random(in: 0...90_000, using: &random))
            let now = gate.clock.now()
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                try await gate.gateway.report(
                    delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                    retryAt: now.advanced(bySeconds: 5))
            case 1:
                try await gate.gateway.report(
                    delivery.message, .refused(status: 410, reason: nil), retryAt: nil)
            case 2:
                try await gate.gateway.report(
                    delivery.message, .ambiguous("no answer", mayRepeat: true), retryAt: nil)
            case 3: try await gate.gateway.report(delivery.message, .notWritten("no hop"), retryAt: nil)
            default:
                try await gate.gateway.report(
                    delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
                seen.append(delivery)
            }
        }
        let events: [(String, String?)] = [
            ("accepted_by_provider", nil), ("failed", nil), ("user_observed", nil),
            ("user_observed", "opened"), ("user_observed", "dismissed"), ("user_observed", "opened"),
        ]
        for delivery in seen {
            for _ in 0..<3 {
                gate.clock.advance(seconds: Int64.random(in: 0...900, using: &random))
                let (event, action) = events.randomElement(using: &random)!
                var body: JSONObject = [
                    "send": .string(delivery.send.uuidText),
                    "destination": .string(delivery.destination.text),
                    "event": .string(event), "at": .string(gate.clock.now().rfc3339),
                ]
                if let action { body["action"] = .string(action) }
                _ = try await gate.call("product", "POST", "/v1/receipts", body)
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `the trail tells every count of the process that wrote it`(seed: UInt64) async throws {
        let gate = try GatewayHarness()
        var random = SeededNumbers(seed: seed)
        for round in 0..<12 {
            try await gate.register("u_1")
            _ = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance("extra\(round)", to: "u_1"))
            try await EvidenceFoldTests().live(gate, acts: 25, &random)
            try await deliver(gate, &random)
        }
        let counted = await counted(gate)
        let folded = try folded(gate, [gate.policy])
        #expect(folded.samples == counted, "\(folded.samples.symmetricDifference(counted).sorted())")
        #expect(folded.waiting == Int(try gate.store.read { try $0.outboxDepth().rowCount }))
        // Everything that is compared was counted.
        for family in [
            MetricFamily.decisions, .redecisions, .handOvers, .receipts, .disables, .timeToAccept,
        ] {
            #expect(
                counted.contains { $0.hasPrefix(family.name) && !$0.hasSuffix(" 0") },
                "nothing of \(family.name)")
        }
    }

    @Test func `what waited, was gathered, changed its category and ended is told alike`() async throws {
        let gate = try GatewayHarness(
            at: "2026-11-21T19:30:00Z", caps: DecidedAgainTests.oneAnHour)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        try await gate.register("u_2")
        for number in 0..<6 {
            for user in ["u_1", "u_2"] {
                _ = try await gate.call(
                    "payments", "POST", "/v1/sends",
                    DecidedAgainTests.transfer(number + (user == "u_1" ? 0 : 100), to: user))
            }
            gate.clock.advance(seconds: 600)
        }
        var random = SeededNumbers(seed: 9)
        for _ in 0..<16 {
            gate.clock.advance(seconds: 3_600)
            try await deliver(gate, &random)
        }
        let counted = await counted(gate)
        let folded = try folded(gate, [gate.policy])
        #expect(folded.samples == counted, "\(folded.samples.symmetricDifference(counted).sorted())")
        #expect(folded.waiting == Int(try gate.store.read { try $0.outboxDepth().rowCount }))
        #expect(counted.contains { $0.contains("cause=\"summarised\"") })
        #expect(counted.contains { $0.contains("cause=\"due\"") })
    }

    @Test func `an entry about a message that none before it speaks of is named`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        _ = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        var fold = TrailObservations()
        #expect(throws: TrailObservationError.unknownMessage(delivery.message)) {
            _ = try fold.observe(#require(entries.last)) { _ in gate.policy }
        }
        var other = TrailObservations()
        let send = try #require(
            entries.first { String(decoding: $0, as: UTF8.self).contains("\"kind\":\"send\"") })
        #expect(throws: TrailObservationError.policyUnknown(gate.policy.digest)) {
            _ = try other.observe(send) { _ in nil }
        }
    }
}

/// Many who switch something off soon after a send of it are a matter for a person.
@Suite struct DisableSpikeTests {
    private let rule: DisableSpikeRule

    init() throws {
        var rule = try #require(try Repository.policy().bundle.limits.disableSpike)
        (rule.count, rule.times) = (3, 2)
        self.rule = rule
    }

    private static let day: Int64 = 86_400

    private func instant(_ day: Int64, _ second: Int64 = 0) -> Instant {
        Instant(seconds: (20_000 + day) * Self.day + second)
    }

    @Test func `a day with more than so many times the week's mean is one, once`() {
        var days = DisableDays()
        // Two a day for seven days: fourteen, a mean of two.
        for day in 0..<7 as Range<Int64> {
            for second in 0..<2 as Range<Int64> {
                #expect(days.add(.marketing, at: instant(day, second), under: rule) == nil)
            }
        }
        for second in 0..<4 as Range<Int64> {
            #expect(days.add(.marketing, at: instant(7, second), under: rule) == nil, "\(second)")
        }
        let spike = days.add(.marketing, at: instant(7, 5), under: rule)
        #expect(spike == DisableDays.Spike(category: .marketing, day: 20_007, count: 5, usual: 2))
        #expect(days.add(.marketing, at: instant(7, Self.day - 1), under: rule) == nil)
        #expect(days.reviews(at: instant(7)).map(\.category) == [.marketing])
        #expect(days.reviews(at: instant(13, Self.day - 1)).count == 1)
        #expect(days.reviews(at: instant(14)).isEmpty)
        // Another category, another day.
        #expect(days.add(.social, at: instant(7, 6), under: rule) == nil)
        #expect(DisableDays(text: days.text) == days)
    }

    @Test func `a handful is none, and neither is anything without a rule`() {
        var days = DisableDays()
        #expect(days.add(.social, at: instant(0), under: rule) == nil)
        #expect(days.add(.social, at: instant(0), under: rule) == nil)
        #expect(days.add(.social, at: instant(0), under: rule)?.count == 3)
        var others = DisableDays()
        for _ in 0..<1_000 { #expect(others.add(.social, at: instant(0), under: nil) == nil) }
    }

    @Test func `days that are over do not grow what is kept, and a wrong text is none`() {
        var days = DisableDays()
        for day in 0..<400 as Range<Int64> { _ = days.add(.social, at: instant(day), under: nil) }
        #expect(days.categories[.social]?.byDay.count == DisableDays.usualDayCount + 1)
        for text in ["", "{}x", "[]", "{\"pigeon\":{}}", "{\"social\":{\"days\":{\"x\":1}}}"] {
            #expect(DisableDays(text: text) == nil, "\(text)")
        }
    }

    @Test func `the gateway records a review, once a day, over a restart`() async throws {
        let gate = try GatewayHarness(edit: Self.threeAreMany)
        try await switchOff(gate, 1...2)
        #expect(try reviews(gate).isEmpty)
        try await switchOff(gate, 3...5)
        let found = try reviews(gate)
        #expect(found.count == 1)
        #expect(found.first?["category"] == "marketing" && found.first?["count"] == 3)
        #expect(found.first?["usual"] == 0 && found.first?["cause"] == "disables_after_send")
        #expect(found.first?["subject"] == nil)
        await gate.settle()
        #expect(gate.alarms.all.contains { $0.contains("3 recipients have switched `marketing` off") })
        let stored = try gate.store.read { try $0.disableDays() }
        #expect(stored.reviews(at: gate.clock.now()).map(\.category) == [.marketing])
        #expect(stored.categories[.marketing]?.byDay.values.reduce(0, +) == 5)
        // What was sent longer ago, or was of another category, has no part in it.
        try await gate.register("u_20")
        _ = try await gate.addKey("u_20")
        try await gate.consent("u_20")
        _ = try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo("p20", to: "u_20"))
        try await setPreference(gate, "u_20", "social", "user_off")
        gate.clock.advance(seconds: Self.day + 1)
        try await setPreference(gate, "u_20", "marketing", "user_off")
        let after = try gate.store.read { try $0.disableDays() }
        #expect(after.categories == stored.categories)
        // The next day may have one of its own.
        try await switchOff(gate, 6...9)
        #expect(try reviews(gate).count == 2)
    }

    @Test func `one person alone raises no review, however often they switch`() async throws {
        let gate = try GatewayHarness(edit: Self.threeAreMany)
        // No `user_on` gives the consent back: off in effect from the first on.
        try await switchOff(gate, 1...1)
        for state in ["user_on", "user_off", "user_on", "user_off"] {
            try await setPreference(gate, "u_1", "marketing", state)
        }
        #expect(try entries(gate, "switch_off").count == 1)
        // A new consent does, so each is a switching off; the person is still one.
        for number in 2...5 {
            gate.clock.advance(seconds: 60)
            _ = try await gate.consent("u_1", id: "again\(number)")
            try await setPreference(gate, "u_1", "marketing", "user_off")
        }
        let found = try entries(gate, "switch_off")
        #expect(found.count == 5)
        #expect(found.map { $0["send_id"] != nil } == [true, false, false, false, false])
        // The switches of the account, and of the phone, are no way around it.
        try await pay(gate, 1)
        for permission in ["denied", "granted", "denied", "granted"] {
            try await gate.register("u_1", osPermission: permission)
        }
        #expect(try entries(gate, "switch_off").map { $0["send_id"] != nil }.count { $0 } == 2)
        let days = try gate.store.read { try $0.disableDays() }
        let counts = days.categories.mapValues { $0.byDay.values.reduce(0, +) }
        #expect(counts == [.marketing: 1, .transactional: 1])
        #expect(try reviews(gate).isEmpty)
        // On another day they count again.
        gate.clock.advance(seconds: Self.day)
        try await pay(gate, 2)
        try await setPreference(gate, "u_1", "transactional", "user_off")
        #expect(try entries(gate, "switch_off").last?["send_id"] != nil)
    }

    private func pay(_ gate: GatewayHarness, _ number: Int) async throws {
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", DecidedAgainTests.transfer(number, to: "u_1"))
        try #require(sent["outcome"] == "forward", "\(sent.json)")
    }

    @Test func `a day's people are remembered in a bound, and until the next`() {
        var days = DisableDays()
        func person(_ number: Int) -> SubjectID {
            SubjectID(high: UInt64(number) << 32, low: 0)
        }
        for number in 0..<1_000 {
            let isNew = days.addPerson(person(number), to: .social, at: instant(0))
            _ = days.add(.social, at: instant(0), under: nil)
            let isNewAgain = days.addPerson(person(number), to: .social, at: instant(0))
            #expect(isNew && !isNewAgain)
        }
        #expect(days.categories[.social]?.people.count == DisableDays.personCountMax)
        #expect(DisableDays(text: days.text) == days)
        let ofAnother = days.addPerson(person(999), to: .marketing, at: instant(0))
        let tomorrow = days.addPerson(person(999), to: .social, at: instant(1))
        #expect(ofAnother && tomorrow)
        #expect(days.categories[.social]?.people.count == 1)
    }

    private static func threeAreMany(_ pages: inout [String: PolicyNode]) {
        guard case .object(var page)? = pages["limits.yaml"]?.json else { return }
        page["disables_after_send"] = [
            "count": 3, "times": 2, "source": "a test", "because": "It is short.", "law": "none",
            "reviewed": "2026-11-02",
        ]
        pages["limits.yaml"] = PolicyNode(json: .object(page))
    }

    /// Each is sent an offer, and then switches marketing off.
    private func switchOff(_ gate: GatewayHarness, _ numbers: ClosedRange<Int>) async throws {
        for number in numbers {
            let user = "u_\(number)"
            try await gate.register(user)
            _ = try await gate.addKey(user)
            try await gate.consent(user)
            let sent = try await gate.call(
                "marketing", "POST", "/v1/sends", try await gate.promo("p\(number)", to: user))
            try #require(sent["outcome"] == "forward", "\(sent.json)")
            try await setPreference(gate, user, "marketing", "user_off")
        }
    }

    private func setPreference(
        _ gate: GatewayHarness, _ user: String, _ category: String, _ state: String
    ) async throws {
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/preferences/\(category)",
            ["state": .string(state), "source": "in_app_settings", "channel": "push"])
        try #require(reply.status == 200, "\(reply.json)")
    }

    private func reviews(_ gate: GatewayHarness) throws -> [JSONObject] { try entries(gate, "review") }

    private func entries(_ gate: GatewayHarness, _ kind: String) throws -> [JSONObject] {
        try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.compactMap { entry in
            let object = try CanonicalJSON.read(entry.bytes).objectValue
            return object?["kind"] == .string(kind) ? object : nil
        }
    }
}
