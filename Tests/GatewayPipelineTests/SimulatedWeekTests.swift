import CanonicalJSON
import CompliancePolicy
import Foundation
import GateRecords
import GateTestKit
import GateVocabulary
import SQLiteStore
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// A week of traffic whose true figures the generator keeps by itself, held against everything that tells figures.
@Suite struct SimulatedWeekTests {
    @Test(arguments: [(1, 3), (2, 4), (3, 5), (4, nil)] as [(UInt64, Int?)])
    func `what is told of a week is what happened in it`(seed: UInt64, spikeDay: Int?) async throws {
        let week = try await SimulatedWeek(seed: seed, spikeDay: spikeDay)
        for day in 0..<7 { try await week.live(day) }
        try await week.drift()
        let gate = week.gate

        // People, before an audit changes anything.
        let count = PersonCount(store: gate.store, policy: gate.inForce, clock: gate.clock)
        while try !count.advance() {}
        var people = Exposition()
        count.write(to: &people)
        let counted = Self.samples(people.text, of: ["persons", "opted_in_persons"])
        #expect(counted["persons"] == Int64(week.people.count))
        #expect(counted["opted_in_persons marketing push"] == Int64(week.optedInCount))
        #expect((1..<week.people.count).contains(week.optedInCount))

        // Drifts: each person's own, what the run says, and what is ordered.
        let first = try await week.audit()
        try await week.mend()
        let second = try await week.audit()
        #expect(first.resolvedCount == 0 && first.recordedCount == first.foundCount)
        #expect(second.resolvedCount > 0 && second.recordedCount < second.foundCount)
        for kind in DriftKind.allCases {
            #expect(first.found[kind]?.isEmpty == false, "nothing of \(kind) was injected")
        }

        // Reviews: one on the day of the spike, none in a week without.
        let reviews = try gate.entries("review").map { entry in
            "\(entry["category"]?.stringValue ?? "") \(entry["count"]?.integerValue ?? 0) \(entry["usual"]?.integerValue ?? 0)"
        }
        #expect(reviews == week.truth.reviews && reviews.count == (spikeDay == nil ? 0 : 1))

        // The metrics of the process, and those that the trail tells.
        let page = String(decoding: await gate.ask("auditor", "GET", "/metrics").body, as: UTF8.self)
        var expected = week.truth.samples
        let retries = expected.filter { $0.key.hasPrefix("hand_over_retries_total") }
        Self.compare(page, with: expected, week.truth)
        for key in retries.keys { expected[key] = nil }
        let told = try Self.fold(gate)
        Self.compare(told.page, with: expected, week.truth)
        #expect(told.days == week.truth.days)
        #expect(told.opened == week.truth.opened.mapValues { $0.sorted() })
        #expect(told.accepted == week.truth.accepted.mapValues { $0.sorted() })
        for family in [
            "decisions_total forward", "decisions_total suppress", "decisions_total reject",
            "hand_overs_total refused_by_hop", "hand_over_retries_total", "receipts_total failed",
            "disables_total os_permission", "disables_total push_switch", "drifts_total",
        ] {
            #expect(
                week.truth.counts.contains { $0.key.hasPrefix(family) && $0.value > 0 },
                "the week has nothing of \(family)")
        }
        let (all, soon) = (
            week.truth.sum("disables_total preference"),
            week.truth.sum("disables_after_send_total preference")
        )
        #expect(0 < soon && soon < all, "\(soon) of \(all)")
    }

    // MARK: What the product says

    private static let counters = [
        "decisions_total", "redecisions_total", "withdrawn_messages_total", "hand_overs_total",
        "hand_over_retries_total", "receipts_total", "taps_total", "disables_total",
        "disables_after_send_total",
        "reviews_total", "drifts_total", "mandatory_unreached_total",
    ]
    private static let histograms = ["time_to_accept_seconds", "time_to_open_seconds"]

    /// `family value value …` of every sample of some families; a sum of seconds in milliseconds.
    private static func samples(_ text: String, of families: [String]) -> [String: Int64] {
        var samples: [String: Int64] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            let series = line[..<space].dropFirst("sendgate_".count)
            let name = String(series.prefix { $0 != "{" })
            guard families.contains(name) else { continue }
            let labels = series.dropFirst(name.count + 1).dropLast().split(separator: ",").map { label in
                label.drop { $0 != "=" }.dropFirst().filter { $0 != "\"" }
            }
            let value = Double(line[line.index(after: space)...]) ?? .nan
            samples[([name] + labels.map { String($0) }).joined(separator: " ")] =
                Int64((name.hasSuffix("_seconds_sum") ? value * 1000 : value).rounded())
        }
        return samples
    }

    /// Holds a page of metrics against the true figures, each way.
    private static func compare(_ page: String, with expected: [String: Int64], _ truth: TrueFigures) {
        let counted = samples(page, of: counters).filter { $0.value > 0 }
        for key in Set(counted.keys).union(expected.keys) {
            #expect(counted[key] == expected[key], "\(key)")
        }
        var bucketCount = 0
        for (family, durations) in zip(histograms, [truth.accepted, truth.opened]) {
            let told = samples(page, of: ["_count", "_sum", "_bucket"].map { family + $0 })
            for (label, all) in durations {
                #expect(told["\(family)_count \(label)"] == Int64(all.count), "\(family) \(label)")
                #expect(told["\(family)_sum \(label)"] == all.reduce(0, +), "\(family) \(label)")
            }
            for (key, value) in told where key.hasPrefix("\(family)_bucket") {
                let parts = key.split(separator: " ")
                let bound = (Double(parts[2]) ?? .infinity) * 1000
                let all = durations[String(parts[1])] ?? []
                #expect(value == Int64(all.count { Double($0) <= bound }), "\(key)")
                bucketCount += 1
            }
        }
        #expect(bucketCount > 20)
    }

    private struct Told {
        var page: String
        var days: [String: Int] = [:]
        var opened: [String: [Int64]] = [:]
        var accepted: [String: [Int64]] = [:]
    }

    /// What the entries alone come to, as a report counts them.
    private static func fold(_ gate: GatewayHarness) throws -> Told {
        let counters = GatewayCounters()
        var (fold, told) = (TrailObservations(), Told(page: ""))
        for entry in try gate.store.read({ try $0.entries(from: 0, limit: 100_000) }) {
            let (time, _, observations) = try fold.observe(entry.bytes) { digest in
                digest == gate.policy.digest ? gate.policy : nil
            }
            counters.count(observations)
            for observation in observations {
                switch observation {
                case .decided(let reason, _, _, _):
                    told.days["\(time.rfc3339.prefix(10)) \(reason.outcome.name)", default: 0] += 1
                case .opened(let category?, _, let after):
                    told.opened[category.rawValue, default: []].append(after)
                case .ended(_, _, _, let tier, let waited?):
                    told.accepted[tier.rawValue, default: []].append(waited)
                default: break
                }
            }
        }
        #expect(fold.waitingCount == 0)
        told.opened = told.opened.mapValues { $0.sorted() }
        told.accepted = told.accepted.mapValues { $0.sorted() }
        var page = Exposition()
        counters.write(to: &page)
        told.page = page.text
        return told
    }
}

/// What happened, as it was made to happen.
private struct TrueFigures {
    /// `family value value …`
    var counts: [String: Int64] = [:]
    /// Milliseconds by category.
    var opened: [String: [Int64]] = [:]
    /// Milliseconds by tier.
    var accepted: [String: [Int64]] = [:]
    /// `day outcome`
    var days: [String: Int] = [:]
    /// `category count usual`
    var reviews: [String] = []
    /// `category day`
    private var disablesAfterSend: [String: Int] = [:]
    private var reviewed: Set<String> = []

    mutating func add(_ series: String...) { counts[series.joined(separator: " "), default: 0] += 1 }

    var samples: [String: Int64] { counts }

    func sum(_ prefix: String) -> Int64 {
        counts.filter { $0.key.hasPrefix(prefix) }.values.reduce(0, +)
    }

    /// A category was switched off within a day of a send of it: twenty on one day, and three times the mean of the seven
    /// before, are a spike.
    mutating func addDisableAfterSend(_ category: String, day: Int) {
        disablesAfterSend["\(category) \(day)", default: 0] += 1
        let count = disablesAfterSend["\(category) \(day)"] ?? 0
        let before = (1...7).reduce(0) { $0 + (disablesAfterSend["\(category) \(day - $1)"] ?? 0) }
        let mean = Double(before) / 7
        guard count >= 20, Double(count) > 3 * mean, reviewed.insert("\(category) \(day)").inserted else {
            return
        }
        reviews.append("\(category) \(count) \(Int(mean.rounded(.up)))")
        add("reviews_total", "disables_after_send", category)
    }
}

/// Makes the traffic, and writes down what it did.
private final class SimulatedWeek {
    enum Will { case consenting, never, muted, denied, pushOff }

    struct Person {
        let user: String
        var will: Will
        var app = "no.getdrop.app"
        var hasZone = true
        /// When something of a category was forwarded, by category.
        var forwards: [String: [Int64]] = [:]
        var registeredAt: Int64
        var lastSeen: Int64?
        /// When the provider last took a push for them.
        var lastAccepted: Int64?
        /// When they last opened a push or put one away.
        var lastHandled: Int64?
        var provider: (event: String, at: Int64)?
        var isProvisional = false
        /// `finding action category` that were injected through subscriptions.
        var subscriptionDrifts: Set<String> = []
        /// Sends that were handed over.
        var sends: [(id: String, category: String, handedOverAt: Int64)] = []
    }

    private struct Sent {
        var person: Int
        var category: String
        var tier: String
        var at: Int64
    }

    let gate: GatewayHarness
    private(set) var truth = TrueFigures()
    private(set) var people: [Person] = []
    private var random: SeededNumbers
    private let spikeDay: Int?
    private var number = 0
    private let start: Int64
    private let offer: JSONObject
    private static let staleDays: Int64 = 6
    private static let day: Int64 = 86_400_000
    /// Sends that were looked at once, and that were tapped once.
    private var looked: Set<String> = []
    private var tapped: Set<String> = []
    /// `user finding action category` of the newest audit.
    private var known: Set<String> = []

    private var now: Int64 { gate.clock.now().milliseconds }

    init(seed: UInt64, spikeDay: Int?) async throws {
        var settings = DriftSettings()
        settings.staleMilliseconds = Self.staleDays * Self.day
        settings.criticalAlertApps = ["no.getdrop.app"]
        gate = try GatewayHarness(at: "2026-11-23T06:00:00Z", keeping: .files(), drift: settings)
        random = SeededNumbers(seed: seed)
        self.spikeDay = spikeDay
        start = gate.clock.now().milliseconds
        offer = try await gate.example("promo.offer", "p", to: "u_0", as: "marketing")
        for number in 0..<160 {
            // The last two have another app, the two before no zone to read their quiet hours in.
            var person = Person(
                user: "u_\(number)", will: number < 110 ? .consenting : .never, registeredAt: now)
            if number >= 158 { person.app = "org.example.other" }
            if (156..<158).contains(number) { person.hasZone = false }
            try await register(person, permission: "granted")
            if person.will == .consenting { try await gate.consent(person.user) }
            people.append(person)
        }
    }

    private func register(_ person: Person, permission: String) async throws {
        guard !person.hasZone else {
            return try await gate.register(person.user, osPermission: permission, app: person.app)
        }
        let path = "/v1/recipients/\(person.user)"
        try await put(
            path,
            [
                "region": "DE", "age": "adult", "quiet_hours": ["start": "22:00", "end": "07:00"],
                "push_enabled": true,
            ])
        try await put(
            "\(path)/devices/d_1",
            [
                "platform": "ios", "app": .string(person.app),
                "token": .string(apnsToken("token-of-\(person.user)")),
                "os_permission": .string(permission),
            ])
    }

    private func put(_ target: String, _ body: JSONObject) async throws {
        let reply = try await gate.call("product", "PUT", target, body)
        try #require(reply.status == 200, "\(target) \(reply.json)")
    }

    private func wait(until milliseconds: Int64) { gate.clock.advance(milliseconds: milliseconds - now) }

    // MARK: A day

    func live(_ day: Int) async throws {
        // Seven minutes later each day: no wave is 24 hours after another to the second.
        let morning = start + Int64(day) * Self.day + Int64(day) * 420_000 + 3 * 3_600_000
        wait(until: morning)
        try await campaign(pick(day == spikeDay ? 110 : 25, of: { $0 < 156 }))
        try await pay(pick(20, of: { $0 < 156 }))
        try await refusals()
        wait(until: morning + 8 * 3_600_000)
        try await campaign(pick(12, of: { $0 < 156 }))
        wait(until: morning + 10 * 3_600_000)
        try await switchOff(isSpike: day == spikeDay)
    }

    private func pick(_ count: Int, of isWanted: (Int) -> Bool) -> [Int] {
        Array(people.indices.filter(isWanted).shuffled(using: &random).prefix(count))
    }

    /// An offer to each: refused for want of consent, by the phone, by the recipient, or over a limit.
    private func campaign(_ chosen: [Int]) async throws {
        for group in stride(from: 0, to: chosen.count, by: 30) {
            var sent: [String: Sent] = [:]
            for index in chosen[group..<min(group + 30, chosen.count)] {
                var body = offer
                number += 1
                body["id"] = .string("p\(number)")
                body["recipient"] = ["user": .string(people[index].user)]
                guard case .object(var params)? = body["params"] else { preconditionFailure("no parameters") }
                params["offer_id"] = .string(uuid())
                body["params"] = .object(params)
                let (outcome, reason) = marketing(people[index])
                try await send(
                    body, "marketing", "marketing", "promotional", to: index, outcome, reason, &sent)
            }
            try await deliver(sent)
        }
    }

    private func marketing(_ person: Person) -> (outcome: String, reason: String) {
        switch person.will {
        case .never, .muted: return ("reject", "no_gdpr_consent")
        case .pushOff: return ("suppress", "push_disabled")
        case .denied: return ("suppress", "blocked_at_os_level")
        case .consenting:
            let forwards = person.forwards["marketing"] ?? []
            let isCapped =
                forwards.contains { $0 > now - Self.day } || forwards.count { $0 > now - 7 * Self.day } >= 2
            return isCapped ? ("suppress", "frequency_cap") : ("forward", "allowed")
        }
    }

    /// A payment's receipt to each.
    private func pay(_ chosen: [Int]) async throws {
        var sent: [String: Sent] = [:]
        for index in chosen {
            let (outcome, reason) =
                switch people[index].will {
                case .pushOff: ("suppress", "push_disabled")
                case .denied: ("suppress", "blocked_at_os_level")
                // No device has a key.
                case .consenting, .never, .muted: ("forward", "generic_only")
                }
            try await send(
                remittance(to: people[index].user), "payments", "transactional", "important", to: index,
                outcome,
                reason, &sent)
        }
        try await deliver(sent)
    }

    private func remittance(to user: String) -> JSONObject {
        number += 1
        var body = GatewayHarness.remittance("t\(number)", to: user)
        guard case .object(var params)? = body["params"] else { preconditionFailure("no parameters") }
        params["transaction_id"] = .string(uuid())
        body["params"] = .object(params)
        return body
    }

    private func uuid() -> String {
        let digits = String(1_000_000_000_000 + random.next() % 1_000_000_000_000).dropFirst()
        return "0d4f5a3e-5c1b-4e52-9a1f-\(digits)"
    }

    /// A type of no bundle, and a recipient that is not registered.
    private func refusals() async throws {
        var sent: [String: Sent] = [:]
        var body = remittance(to: "u_0")
        body["type"] = "transaction.of_no_bundle"
        try await send(
            body, "payments", "unregistered", "unregistered", to: 0, "reject", "unknown_type", &sent)
        try await send(
            remittance(to: "u_nobody"), "payments", "transactional", "important", to: 0, "reject",
            "unknown_recipient", &sent)
    }

    private func send(
        _ body: JSONObject, _ caller: String, _ category: String, _ tier: String, to index: Int,
        _ outcome: String,
        _ reason: String, _ sent: inout [String: Sent]
    ) async throws {
        let reply = try await gate.call(caller, "POST", "/v1/sends", body)
        #expect(
            reply["reason"] == reason && reply["outcome"] == outcome, "\(people[index].user) \(reply.json)")
        truth.add("decisions_total", outcome, reason, category, tier, "push", caller)
        truth.days["\(gate.clock.now().rfc3339.prefix(10)) \(outcome)", default: 0] += 1
        guard outcome == "forward" else { return }
        let id = try #require(reply["send_id"], "\(reply.json)")
        people[index].forwards[category, default: []].append(now)
        sent[id] = Sent(person: index, category: category, tier: tier, at: now)
    }

    // MARK: Hand-overs and receipts

    private func deliver(_ sent: [String: Sent]) async throws {
        guard !sent.isEmpty else { return }
        gate.clock.advance(milliseconds: Int64.random(in: 200...20_000, using: &random))
        var firm: [Delivery] = []
        for delivery in try await gate.claim() {
            let send = try #require(sent[delivery.send.uuidText])
            guard Int.random(in: 0..<10, using: &random) == 0 else {
                firm.append(delivery)
                continue
            }
            truth.add("hand_over_retries_total", "busy", "push", send.tier)
            try await gate.gateway.report(
                delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                retryAt: gate.clock.now().advanced(bySeconds: 5))
        }
        gate.clock.advance(seconds: 5)
        firm += try await gate.claim()
        #expect(firm.count == sent.count)
        var handedOver: [String] = []
        for delivery in firm {
            let id = delivery.send.uuidText
            let send = try #require(sent[id])
            // A few take longer than the target of their tier.
            let isSlow = Int.random(in: 0..<20, using: &random) == 0
            gate.clock.advance(milliseconds: Int64.random(in: 1...(isSlow ? 90_000 : 200), using: &random))
            let (result, name): (HopResult, String) =
                switch Int.random(in: 0..<20, using: &random) {
                case 0: (.refused(status: 410, reason: nil), "refused_by_hop")
                case 1: (.ambiguous("no answer", mayRepeat: true), "ambiguous")
                case 2: (.seenBefore, "handed_over")
                default: (.accepted(status: 202, byProvider: false), "handed_over")
                }
            try await gate.gateway.report(delivery.message, result, retryAt: nil)
            truth.add("hand_overs_total", name, "push", send.category, send.tier)
            guard name == "handed_over" else { continue }
            truth.accepted[send.tier, default: []].append(now - send.at)
            people[send.person].sends.append((id, send.category, now))
            handedOver.append(id)
        }
        gate.clock.advance(seconds: 3_600)
        for id in handedOver { try await receipts(of: id, to: #require(sent[id]).person) }
    }

    private func receipts(of id: String, to index: Int) async throws {
        guard Int.random(in: 0..<8, using: &random) > 0 else { return }
        // In the order of their time, each within the hour since the hand-over.
        var after = Int64.random(in: 100...5_000, using: &random)
        let word = Int.random(in: 0..<12, using: &random) == 0 ? "failed" : "accepted_by_provider"
        try await receipt(word, of: id, to: index, after: after)
        guard word != "failed" else { return }
        for (action, chance) in [
            (nil, 3), ("badge_cleared", 12), ("opened", 5), ("dismissed", 9), ("opened", 9),
        ]
            as [(String?, Int)]
        where Int.random(in: 0..<chance, using: &random) == 0 {
            after += Int64.random(in: 1...600_000, using: &random)
            try await receipt("user_observed", action, of: id, to: index, after: after)
        }
    }

    private func receipt(
        _ event: String, _ action: String? = nil, of id: String, to index: Int, after: Int64
    ) async throws {
        let send = try #require(people[index].sends.last { $0.id == id })
        let at = Instant(milliseconds: send.handedOverAt + after)
        var body: JSONObject = [
            "send": .string(id), "destination": "d_1", "event": .string(event), "at": .string(at.rfc3339),
        ]
        if let action { body["action"] = .string(action) }
        let reply = try await gate.call("product", "POST", "/v1/receipts", body)
        #expect(reply.status == 200, "\(reply.json)")
        truth.add("receipts_total", event, send.category, "push")
        guard event == "user_observed" else {
            if event == "accepted_by_provider" {
                people[index].lastAccepted = max(people[index].lastAccepted ?? 0, at.milliseconds)
            }
            if people[index].provider.map({ $0.at <= at.milliseconds }) ?? true {
                people[index].provider = (event, at.milliseconds)
            }
            return
        }
        people[index].lastSeen = max(people[index].lastSeen ?? 0, at.milliseconds)
        if action == "opened" || action == "dismissed" {
            people[index].lastHandled = max(people[index].lastHandled ?? 0, at.milliseconds)
        }
        if action != "badge_cleared", looked.insert(id).inserted {
            truth.opened[send.category, default: []].append(after)
        }
        if action == "opened", tapped.insert(id).inserted { truth.add("taps_total", send.category, "push") }
    }

    // MARK: Switching off

    private func switchOff(isSpike: Bool) async throws {
        func wasSent(_ index: Int) -> Bool {
            people[index].forwards["marketing"]?.contains { $0 > now - Self.day } ?? false
        }
        func choose(_ count: Int, _ isWanted: (Int) -> Bool) -> [Int] {
            pick(count) { people[$0].will == .consenting && $0 < 156 && isWanted($0) }
        }
        let soon = choose(isSpike ? 24 : 1, wasSent)
        #expect(!isSpike || soon.count == 24)
        for index in soon + choose(1, { !wasSent($0) }) {
            try await put(
                "/v1/recipients/\(people[index].user)/preferences/marketing",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"])
            people[index].will = .muted
            disabled(index, by: "preference", of: ["marketing"])
        }
        for index in choose(1, { _ in true }) {
            try await register(people[index], permission: "denied")
            people[index].will = .denied
            people[index].registeredAt = now
            disabled(index, by: "os_permission", of: nil)
        }
        for index in choose(1, { _ in Int.random(in: 0..<2, using: &random) == 0 }) {
            try await put(
                "/v1/recipients/\(people[index].user)",
                ["region": "DE", "age": "adult", "time_zone": "Europe/Berlin", "push_enabled": false])
            people[index].will = .pushOff
            disabled(index, by: "push_switch", of: nil)
        }
    }

    /// - Parameter category: `nil` for everything: what was sent within the day has a part in it.
    private func disabled(_ index: Int, by means: String, of categories: [String]?) {
        let recent = Category.allCases.map(\.rawValue).filter { category in
            people[index].forwards[category]?.contains { $0 > now - Self.day } ?? false
        }
        for category in categories ?? (recent.isEmpty ? ["none"] : recent) {
            truth.add("disables_total", means, category)
            guard recent.contains(category) else { continue }
            truth.add("disables_after_send_total", means, category)
            truth.addDisableAfterSend(category, day: Int(now / Self.day))
        }
    }

    /// How many people would get marketing by push.
    var optedInCount: Int { people.count { $0.will == .consenting } }

    // MARK: Drift

    /// Sets sides apart in every way that an audit looks for.
    func drift() async throws {
        func some(_ will: Will, _ count: Int) -> [Int] {
            pick(count) { people[$0].will == will && $0 < 156 && people[$0].subscriptionDrifts.isEmpty }
        }
        for index in some(.muted, 4) + some(.never, 3) {
            try await subscribe(index, "marketing", true)
            people[index].subscriptionDrifts = ["subscribed_while_off repaired marketing"]
        }
        for index in some(.consenting, 3) {
            try await subscribe(index, "marketing", false)
            gate.clock.advance(seconds: 1)
            try await gate.consent(people[index].user, id: "again")
            people[index].subscriptionDrifts = ["unsubscribed_while_on repaired marketing"]
        }
        for index in some(.never, 4) {
            try await subscribe(index, "social", false)
            people[index].subscriptionDrifts = ["unsubscribed_while_on suppressed social"]
        }
        // Both sides agree.
        for index in some(.consenting, 3) { try await subscribe(index, "marketing", true) }
        for index in some(.muted, 1) { try await subscribe(index, "marketing", false) }
        for index in some(.never, 2) {
            try await register(people[index], permission: "provisional")
            people[index].isProvisional = true
            people[index].registeredAt = now
        }
        let old = people.indices.filter { people[$0].will == .denied && !people[$0].sends.isEmpty }.prefix(2)
        // What was put away had been shown; what was only seen may have been on the app's own screen.
        for (index, action) in zip(old, ["dismissed", nil]) {
            let send = people[index].sends[0]
            try await receipt(
                "user_observed", action, of: send.id, to: index, after: now - send.handedOverAt)
        }
        gate.clock.advance(seconds: 60)
    }

    private func subscribe(_ index: Int, _ category: String, _ isSubscribed: Bool) async throws {
        try await put(
            "/v1/recipients/\(people[index].user)/devices/d_1/subscriptions",
            ["categories": [category: .boolean(isSubscribed)]])
    }

    /// One of each of some kinds is no more.
    func mend() async throws {
        gate.clock.advance(seconds: 60)
        func first(_ drift: String) throws -> Int {
            try #require(people.firstIndex { $0.subscriptionDrifts == [drift] })
        }
        let repaired = try first("subscribed_while_off repaired marketing")
        try await subscribe(repaired, "marketing", false)
        people[repaired].subscriptionDrifts = []
        let suppressed = try first("unsubscribed_while_on suppressed social")
        try await subscribe(suppressed, "social", true)
        people[suppressed].subscriptionDrifts = []
        let denied = try #require(people.firstIndex { $0.will == .denied })
        try await register(people[denied], permission: "granted")
        people[denied].will = .consenting
        people[denied].registeredAt = now
    }

    /// What is true of a person now, as `finding action category`.
    private func drifts(of person: Person) -> Set<String> {
        var drifts = person.subscriptionDrifts
        if person.will == .denied {
            let isShown = person.lastHandled.map { $0 > person.registeredAt } ?? false
            drifts.insert(isShown ? "permission_outdated marked -" : "blocked_at_os marked -")
        }
        if person.isProvisional { drifts.insert("delivered_quietly marked -") }
        if person.app != "no.getdrop.app", !known.contains("\(person.user) not_entitled repaired -") {
            drifts.insert("not_entitled repaired -")
        }
        if !person.hasZone { drifts.insert("zone_missing marked -") }
        let heardAt = max(person.registeredAt, person.lastSeen ?? 0, person.lastAccepted ?? 0)
        if now - heardAt > Self.staleDays * Self.day { drifts.insert("token_stale marked -") }
        if let (event, at) = person.provider, event == "failed", at > person.registeredAt {
            drifts.insert("provider_refuses marked -")
        }
        return drifts
    }

    /// Audits, and holds all that is told of it against what is true.
    func audit() async throws -> DriftRun {
        let truths = Set(people.flatMap { person in drifts(of: person).map { "\(person.user) \($0)" } })
        func kind(_ drift: String) -> String { String(drift.split(separator: " ")[1]) }
        func action(_ drift: String) -> String { String(drift.split(separator: " ")[2]) }
        let (new, gone) = (truths.subtracting(known), known.subtracting(truths))
        for drift in new { truth.add("drifts_total", kind(drift), action(drift)) }
        for drift in gone { truth.add("drifts_total", kind(drift), "resolved") }
        let run = try await gate.audit(personCountMax: 64)
        #expect(run.examinedCount == Int64(people.count) && run.unreadableCount == 0)
        #expect(run.recordedCount == Int64(new.count + gone.count) && run.resolvedCount == Int64(gone.count))
        let expected = Dictionary(grouping: truths) { "\(kind($0)) \(action($0))" }.mapValues {
            Int64($0.count)
        }
        let found = run.found.flatMap { kind, actions in
            actions.map { ("\(kind.rawValue) \($0.key.rawValue)", $0.value) }
        }
        #expect(Dictionary(uniqueKeysWithValues: found) == expected)
        // Whose they are, by each person's own page.
        for person in people {
            let held = try await gate.call("auditor", "GET", "/v1/recipients/\(person.user)")
            let told = try #require(held.json["drifts"]?.arrayValue).map { drift in
                [person.user] + ["finding", "action", "category"].map { drift[$0]?.stringValue ?? "-" }
            }
            #expect(
                Set(told.map { $0.joined(separator: " ") })
                    == truths.filter { $0.hasPrefix("\(person.user) ") })
        }
        // And the pages that a delivery team works through.
        var (listed, target): ([String: Int64], String?) = ([:], "/v1/drift/findings?limit=50")
        while let page = target {
            let answer = try await gate.call("product", "GET", page)
            for row in answer.json["findings"]?.arrayValue ?? [] {
                let name = "\(row["finding"]?.stringValue ?? "-") \(row["action"]?.stringValue ?? "-")"
                listed[name, default: 0] += 1
            }
            target = answer.json["next"]?.stringValue.map { "/v1/drift/findings?limit=50&after=\($0)" }
        }
        #expect(listed == expected)
        known = truths
        return run
    }
}
