import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import RecipientModel
import SQLiteStore
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// A week of sends, receipts, switching off and drift, whose true figures the generator keeps by itself: `/metrics`, the
/// trail, the findings and the reviews must each have the same.
@Suite struct SimulatedWeekTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a week's figures are those of what happened, wherever they are read`(seed: UInt64) async throws {
        var week = try SimulatedWeek(seed: seed)
        try await week.run()
        let truth = week.figures

        let metrics = await Self.figures(
            ofMetrics: String(
                decoding: week.gate.ask("auditor", "GET", "/metrics").body, as: UTF8.self))
        #expect(metrics == truth, "seed \(seed): \(Self.differences(metrics, truth))")
        // Tries that failed are in no entry.
        let told = truth.filter { !$0.key.hasPrefix("hand_over_retries_total") }
        let trail = try Self.figures(ofTrailOf: week.gate)
        #expect(trail == told, "seed \(seed): \(Self.differences(trail, told))")

        // One day of seven, although on another as many switched off, all of them more than a day after their send.
        let reviews = try Self.entries(of: week.gate, "review").map { entry in
            ["category", "cause", "count", "since", "usual"].map { name in
                entry[name].map { $0.stringValue ?? "\($0.integerValue ?? -1)" } ?? "-"
            }.joined(separator: " ")
        }
        #expect(reviews == week.reviews, "seed \(seed)")
        #expect(week.reviews.count == 1)

        // Each family had something to be wrong about.
        for (family, _) in Self.families
        where !["redecisions_total", "withdrawn_messages_total"].contains(family) {
            #expect(truth.contains { $0.key.hasPrefix("\(family) ") }, "seed \(seed): nothing of \(family)")
        }
    }

    // MARK: Reading

    /// What is compared: a family's samples, added up over all labels but these.
    private static let families: [(name: String, labels: [String])] = [
        ("decisions_total", ["outcome", "category", "caller"]), ("redecisions_total", ["cause"]),
        ("withdrawn_messages_total", ["cause"]), ("hand_overs_total", ["result", "category"]),
        ("hand_over_retries_total", ["obstacle"]), ("receipts_total", ["event", "category"]),
        ("taps_total", ["category"]), ("disables_total", ["means", "category"]),
        ("disables_after_send_total", ["means", "category"]), ("reviews_total", ["cause", "category"]),
        ("drifts_total", ["finding", "action"]), ("time_to_open_seconds_sum", ["category"]),
        ("time_to_open_seconds_count", ["category"]), ("time_to_open_seconds_bucket", ["category", "le"]),
        ("time_to_accept_seconds_sum", ["tier"]), ("time_to_accept_seconds_count", ["tier"]),
    ]

    private static func figures(ofMetrics page: String) -> [String: Double] {
        var figures: [String: Double] = [:]
        for line in page.split(separator: "\n") where !line.hasPrefix("#") {
            guard let open = line.firstIndex(of: "{"), let close = line.lastIndex(of: "}"),
                let value = Double(line[line.index(after: close)...].drop { $0 == " " })
            else { continue }
            let name = line[..<open].dropFirst("sendgate_".count)
            guard let family = families.first(where: { $0.name == name }) else { continue }
            var labels: [String: String] = [:]
            for label in line[line.index(after: open)..<close].split(separator: ",") {
                let parts = label.split(separator: "=", maxSplits: 1)
                labels[String(parts[0])] = parts[1].filter { $0 != "\"" }
            }
            let key = ([family.name] + family.labels.map { labels[$0] ?? "?" }).joined(separator: " ")
            figures[key, default: 0] += value
        }
        return figures.filter { $0.value != 0 }
    }

    private static func figures(ofTrailOf gate: GatewayHarness) throws -> [String: Double] {
        var (tally, fold) = (Tally(), TrailObservations())
        for entry in try gate.store.read({ try $0.entries(from: 0, limit: 100_000) }) {
            let (_, _, observations) = try fold.observe(entry.bytes) {
                $0 == gate.policy.digest ? gate.policy : nil
            }
            for observation in observations {
                switch observation {
                case .decided(let reason, let type, _, let caller):
                    let category = type?.category.rawValue ?? "unregistered"
                    tally.add("decisions_total \(reason.outcome.name) \(category) \(caller.text)")
                case .decidedAgain(_, _, _, let cause): tally.add("redecisions_total \(cause.rawValue)")
                case .withdrawn(let cause, _): tally.add("withdrawn_messages_total \(cause.rawValue)")
                case .ended(let result, _, let category, let tier, let waited):
                    tally.add("hand_overs_total \(result.rawValue) \(category.rawValue)")
                    guard let waited else { continue }
                    tally.accepted(tier.rawValue, afterSeconds: Double(waited) / 1_000)
                case .receipt(let event, let category, _):
                    tally.add("receipts_total \(event.rawValue) \(category?.rawValue ?? "unregistered")")
                case .opened(let category, _, let after):
                    tally.opened(category?.rawValue ?? "unregistered", afterSeconds: Double(after) / 1_000)
                case .tapped(let category, _): tally.add("taps_total \(category?.rawValue ?? "unregistered")")
                case .disabled(let means, let category, let isAfterSend):
                    tally.add("disables_total \(means.rawValue) \(category?.rawValue ?? "none")")
                    guard isAfterSend else { continue }
                    tally.add("disables_after_send_total \(means.rawValue) \(category?.rawValue ?? "none")")
                case .review(let cause, let category):
                    tally.add("reviews_total \(cause.rawValue) \(category.rawValue)")
                case .drift(let finding, let action):
                    tally.add("drifts_total \(finding.rawValue) \(action.rawValue)")
                case .retried, .unreached: Issue.record("no entry tells \(observation)")
                }
            }
        }
        #expect(fold.waitingCount == 0)
        return tally.figures
    }

    private static func entries(of gate: GatewayHarness, _ kind: String) throws -> [JSONObject] {
        try gate.store.read { try $0.entries(from: 0, limit: 100_000) }.compactMap {
            let entry = try CanonicalJSON.read($0.bytes).objectValue
            return entry?["kind"]?.stringValue == kind ? entry : nil
        }
    }

    private static func differences(_ found: [String: Double], _ truth: [String: Double]) -> [String] {
        Set(found.keys).union(truth.keys).filter { found[$0] != truth[$0] }.sorted().map {
            "\($0) is \(found[$0] ?? 0) and was \(truth[$0] ?? 0)"
        }
    }
}

/// Figures under the names of `/metrics`, without its prefix.
private struct Tally {
    private(set) var figures: [String: Double] = [:]

    mutating func add(_ key: String, _ count: Double = 1) {
        if count != 0 { figures[key, default: 0] += count }
    }

    mutating func accepted(_ tier: String, afterSeconds seconds: Double) {
        add("time_to_accept_seconds_sum \(tier)", seconds)
        add("time_to_accept_seconds_count \(tier)")
    }

    mutating func opened(_ category: String, afterSeconds seconds: Double) {
        add("time_to_open_seconds_sum \(category)", seconds)
        add("time_to_open_seconds_count \(category)")
        for bound in [1, 10, 30, 60, 300, 900, 1_800, 3_600, 14_400, 43_200, 86_400, 259_200]
        where seconds <= Double(bound) { add("time_to_open_seconds_bucket \(category) \(bound)") }
        add("time_to_open_seconds_bucket \(category) +Inf")
    }
}

/// People, what they and the others do in seven days, and what is true of it.
///
/// Nothing here asks the gateway what happened: each act adds to ``figures`` what it means by the definitions of the
/// handbook's pages *Metrics* and *Drift*, and an answer that is another one ends the test.
private struct SimulatedWeek {
    /// What a person does in the week.
    enum Part: String, CaseIterable {
        /// Gets offers without having consented.
        case neverConsented
        /// Consents, gets offers and stays.
        case stays
        /// Switches marketing off within 24 hours of the first or of the second campaign.
        case leavesAfterFirst, leavesAfterSecond
        /// The same, more than 24 hours after the first: as many as on the spike's day, all on one day.
        case leavesLate
        /// The same, on the day of the third campaign.
        case leavesInSpike
        // One kind of drift each.
        case subscribedWhileOff, subscribedWithoutConsent, choseLater, undecidable
        case denied, deniedAndOff, provisional, zoneless, notEntitled, openedWhileDenied

        var peopleCount: Int {
            switch self {
            case .neverConsented, .leavesAfterFirst, .leavesAfterSecond: 4
            case .stays: 10
            case .leavesLate, .leavesInSpike: 24
            default: 3
            }
        }
        var consents: Bool { isMarketedTo && self != .neverConsented }
        var isMarketedTo: Bool {
            switch self {
            case .neverConsented, .stays, .leavesAfterFirst, .leavesAfterSecond, .leavesLate, .leavesInSpike:
                true
            default: false
            }
        }
        var permission: String {
            switch self {
            case .denied, .deniedAndOff: "denied"
            case .provisional: "provisional"
            default: "granted"
            }
        }
    }

    struct Person {
        let user: String
        let part: Part
        /// The first of its part does what ends its drift, the others do not.
        let endsDrift: Bool
        var getsMarketing = false
        var newestForward: [String: Int64] = [:]
        var seenAt: Int64 = 0
        var heardAt: Int64 = 0
        var provider: (event: String, at: Int64)?
        /// Findings of the account or of `d_1` that its part brings about, as ``finding`` writes them.
        var drifts: Set<String> = []
    }

    enum Act {
        case campaign(type: String, users: [String])
        case remittance(user: String)
        case receipt(
            send: String, user: String, category: String, event: String, action: String?, at: Int64,
            openedAfter: Int64?, isFirstTap: Bool)
        case switchOff(user: String, scope: String)
        case chooseSocial(user: String)
        case device(user: String, permission: String)
        case person(user: String, JSONObject, isPushSwitchedOff: Bool)
        case subscriptions(user: String, JSONObject)
        case drifts(user: String, Set<String>)
        case audit
    }

    static let day: Int64 = 86_400
    static let hour: Int64 = 3_600
    /// 06:00 in UTC, so that noon of a day in Berlin is no quiet hour.
    static let start = Instant.utc("2026-11-16T06:00:00Z")
    static let noon = 6 * hour
    /// A device that was not heard of for so long is stale; the second audit begins an hour before the week is over.
    static let staleSeconds = 6 * day

    let gate: GatewayHarness
    private var random: SeededNumbers
    private var tally = Tally()
    private var people: [String: Person] = [:]
    private var agenda: [(at: Int64, act: Act)] = []
    private var bodies: [String: JSONObject] = [:]
    private var sendCount = 0
    /// Times at which a category was switched off within 24 hours of a send of it, in seconds since 1970.
    private var disables: [String: [Int64]] = [:]
    /// Findings on record, by user.
    private var known: [String: Set<String>] = [:]

    var figures: [String: Double] { tally.figures }

    init(seed: UInt64) throws {
        var drift = DriftSettings()
        drift.staleMilliseconds = Self.staleSeconds * 1_000
        drift.criticalAlertApps = ["no.getdrop.app"]
        gate = try GatewayHarness(at: Self.start.rfc3339, drift: drift)
        random = SeededNumbers(seed: seed)
        var parts = Part.allCases.flatMap { part in (0..<part.peopleCount).map { (part, $0 == 0) } }
        parts.shuffle(using: &random)
        for (number, (part, endsDrift)) in parts.enumerated() {
            let user = "u_\(number)"
            people[user] = Person(user: user, part: part, endsDrift: endsDrift)
        }
        plan()
    }

    private func users(_ isPicked: (Part) -> Bool) -> [String] {
        people.values.filter { isPicked($0.part) }.map(\.user).sorted()
    }

    private mutating func pick(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }

    private mutating func at(_ seconds: Int64, _ act: Act) { agenda.append((seconds, act)) }

    // MARK: The plan

    private mutating func plan() {
        let (first, second) = (Self.noon, 2 * Self.day + Self.noon)
        let third = pick(4...5) * Self.day + Self.noon
        let marketed = users(\.isMarketedTo)
        at(first, .campaign(type: "promo.offer", users: marketed))
        at(
            second,
            .campaign(
                type: "promo.announcement",
                users: users { [.leavesAfterSecond, .leavesLate, .stays].contains($0) }))
        at(third, .campaign(type: "promo.offer", users: marketed))
        for user in marketed {
            let off = Act.switchOff(user: user, scope: "marketing")
            switch people[user]!.part {
            case .leavesAfterFirst: at(first + pick(600...86_340), off)
            case .leavesAfterSecond: at(second + pick(600...86_340), off)
            case .leavesLate: at(first + pick(86_460...90_000), off)
            // Until 23:00 in UTC.
            case .leavesInSpike: at(third + pick(600...39_600), off)
            default: break
            }
        }
        for number in 0..<40 {
            let user = marketed[Int(pick(0...Int64(marketed.count - 1)))]
            at(Int64(1 + number % 6) * Self.day + pick(0...20_000), .remittance(user: user))
        }
        for user in people.keys.sorted() { planDrift(of: people[user]!) }
        at(3 * Self.day + 14 * Self.hour, .audit)
        at(7 * Self.day - Self.hour, .audit)
    }

    private func finding(
        _ kind: String, _ action: String, category: String = "-", old: String, new: String = "-",
        device: String = "d_1"
    ) -> String { "\(kind) \(action) \(category) \(old) \(new) \(device)" }

    private mutating func planDrift(of person: Person) {
        let user = person.user
        let (early, late) = (Self.day + pick(0...3_000), 4 * Self.day + pick(0...Self.day))
        func then(_ drifts: String...) -> Act { .drifts(user: user, Set(drifts)) }
        let follow = finding(
            "unsubscribed_while_on", "repaired", category: "social", old: "unsubscribed", new: "subscribed")
        switch person.part {
        case .subscribedWhileOff:
            at(early, .switchOff(user: user, scope: "social"))
            at(early, .subscriptions(user: user, ["social": true]))
            at(
                early,
                then(
                    finding(
                        "subscribed_while_off", "repaired", category: "social", old: "subscribed",
                        new: "unsubscribed")))
            guard person.endsDrift else { return }
            at(late, .subscriptions(user: user, ["social": false]))
            at(late, then())
        case .subscribedWithoutConsent:
            at(early, .subscriptions(user: user, ["marketing": true]))
            at(
                early,
                then(
                    finding(
                        "subscribed_while_off", "repaired", category: "marketing", old: "subscribed",
                        new: "unsubscribed")))
        case .choseLater:
            at(early, .subscriptions(user: user, ["social": false]))
            at(early + Self.hour, .chooseSocial(user: user))
            at(early + Self.hour, then(follow))
            guard person.endsDrift else { return }
            at(late, .subscriptions(user: user, ["social": true]))
            at(late, then())
        case .undecidable:
            at(early, .subscriptions(user: user, ["social": false]))
            at(
                early,
                then(
                    finding(
                        "unsubscribed_while_on", "suppressed", category: "social", old: "default",
                        new: "user_off")))
            guard person.endsDrift else { return }
            at(late, .chooseSocial(user: user))
            at(late, then(follow))
        case .denied, .deniedAndOff, .provisional:
            let isProvisional = person.part == .provisional
            at(
                early,
                then(
                    finding(
                        isProvisional ? "delivered_quietly" : "blocked_at_os", "marked",
                        old: isProvisional ? "provisional" : "denied")))
            if person.part == .deniedAndOff {
                at(late, .person(user: user, ["push_enabled": false], isPushSwitchedOff: true))
                at(late, then())
            } else if person.endsDrift {
                at(late, .device(user: user, permission: "granted"))
                at(late, then())
            }
        case .zoneless:
            at(early, then(finding("zone_missing", "marked", old: "unknown", device: "-")))
            guard person.endsDrift else { return }
            at(
                late,
                .person(
                    user: user, ["time_zone": "Europe/Oslo", "quiet_hours": Self.quiet],
                    isPushSwitchedOff: false))
            at(late, then())
        case .notEntitled:
            at(early, then(finding("not_entitled", "repaired", old: "true", new: "false")))
            // The first audit has set the record to what is so.
            at(late, then())
        case .openedWhileDenied:
            at(2 * Self.day, .remittance(user: user))
            at(2 * Self.day + 3 * Self.hour, .device(user: user, permission: "denied"))
            at(2 * Self.day + 3 * Self.hour, then(finding("blocked_at_os", "marked", old: "denied")))
        case .neverConsented, .stays, .leavesAfterFirst, .leavesAfterSecond, .leavesLate, .leavesInSpike:
            break
        }
    }

    private static let quiet: JSONValue = ["start": "22:00", "end": "07:00"]

    // MARK: The week

    /// Seconds since ``start``.
    private var now: Int64 { (gate.clock.now().milliseconds - Self.start.milliseconds) / 1_000 }

    private func instant(_ seconds: Int64) -> Instant { Self.start.advanced(bySeconds: seconds) }

    mutating func run() async throws {
        for user in people.keys.sorted() { try await register(user) }
        while let index = agenda.indices.min(by: { (agenda[$0].at, $0) < (agenda[$1].at, $1) }) {
            let (due, act) = agenda.remove(at: index)
            if due > now { gate.clock.advance(seconds: due - now) }
            try await perform(act)
        }
    }

    private mutating func register(_ user: String) async throws {
        let part = people[user]!.part
        guard part != .zoneless else {
            return try await put("\(Self.path(user))", ["region": "DE", "quiet_hours": Self.quiet])
        }
        try await gate.register(
            user, osPermission: part.permission,
            app: part == .notEntitled ? "org.example.other" : "no.getdrop.app")
        people[user]!.seenAt = now
        people[user]!.heardAt = now
        guard part.consents else { return }
        let given = try await gate.consent(user)
        try #require(given.status < 300, "\(given.json)")
        people[user]!.getsMarketing = true
    }

    private static func path(_ user: String) -> String { "/v1/recipients/\(user)" }

    private func put(_ target: String, _ body: JSONObject) async throws {
        let reply = try await gate.call("product", "PUT", target, body)
        try #require(reply.status == 200, "\(reply.json)")
    }

    private mutating func perform(_ act: Act) async throws {
        switch act {
        case .campaign(let type, let users):
            for user in users {
                try await send(type, to: user, "marketing", isForwarded: people[user]!.getsMarketing)
            }
            try await handOver(tier: "promotional", category: "marketing")
        case .remittance(let user):
            try await send("transaction.remittance_sent", to: user, "payments", isForwarded: true)
            try await handOver(tier: "important", category: "transactional")
        case .receipt(
            let send, let user, let category, let event, let action, let moment, let openedAfter,
            let isFirstTap):
            var body: JSONObject = [
                "send": .string(send), "destination": "d_1", "event": .string(event),
                "at": .string(instant(moment).rfc3339),
            ]
            body["action"] = action.map { .string($0) }
            let reply = try await gate.call("product", "POST", "/v1/receipts", body)
            try #require(reply.status == 200 && reply.json["replayed"] == nil, "\(reply.json)")
            tally.add("receipts_total \(event) \(category)")
            if let openedAfter { tally.opened(category, afterSeconds: Double(openedAfter)) }
            if isFirstTap { tally.add("taps_total \(category)") }
            people[user]!.heardAt = max(people[user]!.heardAt, moment)
            if event != "user_observed", people[user]!.provider.map({ $0.at <= moment }) ?? true {
                people[user]!.provider = (event, moment)
            }
        case .switchOff(let user, let scope):
            try await choose(user, scope, "user_off")
            switchedOff(user, by: "preference", of: [scope])
            if scope == "marketing" { people[user]!.getsMarketing = false }
        case .chooseSocial(let user): try await choose(user, "social", "user_on")
        case .device(let user, let permission):
            try await gate.register(user, osPermission: permission)
            people[user]!.seenAt = now
            people[user]!.heardAt = now
            guard permission == "denied" else { return }
            let recent = people[user]!.newestForward.filter { now - $0.value <= Self.day }.keys.sorted()
            switchedOff(user, by: "os_permission", of: recent)
        case .person(let user, let change, let isPushSwitchedOff):
            var body = change
            body["region"] = "DE"
            try await put(Self.path(user), body)
            // Of those that do this, the gateway was given nothing to send.
            if isPushSwitchedOff { switchedOff(user, by: "push_switch", of: []) }
        case .subscriptions(let user, let categories):
            try await put(
                "\(Self.path(user))/devices/d_1/subscriptions", ["categories": .object(categories)])
        case .drifts(let user, let drifts): people[user]!.drifts = drifts
        case .audit: try await audit()
        }
    }

    private func choose(_ user: String, _ scope: String, _ state: String) async throws {
        try await put(
            "\(Self.path(user))/preferences/\(scope)",
            ["state": .string(state), "source": "in_app_settings", "channel": "push"])
    }

    /// - Parameter categories: None for a switch of everything by a person who was sent nothing in the day before.
    private mutating func switchedOff(_ user: String, by means: String, of categories: [String]) {
        if categories.isEmpty { tally.add("disables_total \(means) none") }
        for category in categories {
            tally.add("disables_total \(means) \(category)")
            guard let sent = people[user]!.newestForward[category], now - sent <= Self.day else { continue }
            tally.add("disables_after_send_total \(means) \(category)")
            disables[category, default: []].append(Self.start.seconds + now)
        }
    }

    // MARK: Sends

    private mutating func send(
        _ type: String, to user: String, _ caller: String, isForwarded: Bool
    ) async throws {
        sendCount += 1
        var body: JSONObject
        if let known = bodies[type] {
            body = known
        } else {
            body = try await gate.example(type, "example", to: user, as: caller)
            bodies[type] = body
        }
        body["id"] = .string("s\(sendCount)")
        body["recipient"] = ["user": .string(user)]
        if type == "transaction.remittance_sent", var params = body["params"]?.objectValue {
            // Each is about another remittance.
            let digits = String(sendCount)
            let padded = String(repeating: "0", count: 12 - digits.count) + digits
            params["transaction_id"] = .string("0d4f5a3e-5c1b-4e52-9a1f-\(padded)")
            body["params"] = .object(params)
        }
        let reply = try await gate.call(caller, "POST", "/v1/sends", body)
        // Without consent, or without it any more.
        let outcome = isForwarded ? "forward" : "reject"
        try #require(reply["outcome"] == outcome, "\(user), \(people[user]!.part): \(reply.json)")
        let category = caller == "marketing" ? "marketing" : "transactional"
        tally.add("decisions_total \(outcome) \(category) \(caller)")
        guard isForwarded else { return }
        people[user]!.newestForward[category] = now
        sentTo[try #require(reply["send_id"])] = (user, now)
    }

    /// Sends that are to be handed over.
    private var sentTo: [String: (user: String, at: Int64)] = [:]

    /// Hands over everything that was just sent, some of it at the second try and some of it not at all.
    private mutating func handOver(tier: String, category: String) async throws {
        gate.clock.advance(seconds: pick(1...20))
        var isSecondTry = false
        while !sentTo.isEmpty {
            let deliveries = try await gate.claim()
            try #require(!deliveries.isEmpty)
            for delivery in deliveries.sorted(by: {
                sentTo[$0.send.uuidText]!.user < sentTo[$1.send.uuidText]!.user
            }) {
                let send = delivery.send.uuidText
                let (user, sentAt) = try #require(sentTo[send])
                let isTaken = people[user]!.part == .openedWhileDenied
                switch isTaken ? 9 : pick(0...9) {
                case 0 where !isSecondTry:
                    try await gate.gateway.report(
                        delivery.message, .busy(status: 503, retryAfterMilliseconds: nil),
                        retryAt: gate.clock.now().advanced(bySeconds: 5))
                    tally.add("hand_over_retries_total busy")
                    continue
                case 1:
                    try await gate.gateway.report(delivery.message, .refused(status: 400), retryAt: nil)
                    tally.add("hand_overs_total refused_by_hop \(category)")
                default:
                    try await gate.gateway.report(delivery.message, .accepted(status: 202), retryAt: nil)
                    tally.add("hand_overs_total handed_over \(category)")
                    tally.accepted(tier, afterSeconds: Double(now - sentAt))
                    planReceipts(of: send, to: user, category)
                }
                sentTo[send] = nil
            }
            gate.clock.advance(seconds: 5)
            isSecondTry = true
        }
    }

    private mutating func planReceipts(of send: String, to user: String, _ category: String) {
        let taken = now
        func receipt(
            _ event: String, _ action: String?, _ moment: Int64, isLook: Bool = false,
            isFirstTap: Bool = false
        ) -> Act {
            .receipt(
                send: send, user: user, category: category, event: event, action: action, at: moment,
                openedAfter: isLook ? moment - taken : nil, isFirstTap: isFirstTap)
        }
        guard people[user]!.part != .openedWhileDenied else {
            at(taken + 7, receipt("accepted_by_provider", nil, taken + 7))
            // After the phone said that it shows nothing; the device says that again in no other way.
            let opened = 5 * Self.day + pick(0...3_600)
            at(opened, receipt("user_observed", "opened", opened, isLook: true, isFirstTap: true))
            at(opened, .drifts(user: user, [finding("permission_outdated", "marked", old: "denied")]))
            return
        }
        let provided = taken + pick(1...30)
        at(
            provided + pick(0...10),
            receipt(pick(0...7) == 0 ? "failed" : "accepted_by_provider", nil, provided))
        let first = taken + pick(41...18_000)
        // An app may report later than it happened.
        let reported = first + pick(0...600)
        switch pick(0...7) {
        case 0, 1:
            at(reported, receipt("user_observed", "opened", first, isLook: true, isFirstTap: true))
            // Opened again: neither another tap nor another time to open.
            let again = first + pick(1...500)
            if pick(0...1) == 0 { at(reported + 501, receipt("user_observed", "opened", again)) }
        case 2, 3:
            at(reported, receipt("user_observed", "dismissed", first, isLook: true))
            let later = first + pick(1...500)
            if pick(0...1) == 0 {
                at(reported + 501, receipt("user_observed", "opened", later, isFirstTap: true))
            }
        case 4: at(reported, receipt("user_observed", "badge_cleared", first))
        case 5: at(reported, receipt("user_observed", nil, first, isLook: true))
        default: break
        }
    }

    // MARK: Drift

    /// What is wrong of a person at this moment.
    private func drifts(of person: Person) -> Set<String> {
        var drifts = person.drifts
        guard person.part != .zoneless else { return drifts }
        if now - person.heardAt > Self.staleSeconds {
            drifts.insert(finding("token_stale", "marked", old: "active"))
        }
        if let (event, at) = person.provider, event == "failed", at > person.seenAt {
            drifts.insert(finding("provider_refuses", "marked", old: "active"))
        }
        return drifts
    }

    private mutating func audit() async throws {
        var (newCount, endedCount) = (0, 0)
        for person in people.values {
            let found = drifts(of: person)
            let before = known[person.user] ?? []
            for drift in found.subtracting(before) {
                newCount += 1
                let words = drift.split(separator: " ")
                tally.add("drifts_total \(words[0]) \(words[1])")
            }
            // One that is found otherwise than before is a new one, not one that ended.
            func about(_ drift: String) -> [Substring] {
                let words = drift.split(separator: " ")
                return [words[0], words[2], words[5]]
            }
            let places = Set(found.map(about))
            for drift in before where !places.contains(about(drift)) {
                endedCount += 1
                tally.add("drifts_total \(drift.split(separator: " ")[0]) resolved")
            }
            known[person.user] = found
        }
        let run = try await gate.audit(personCountMax: 17)
        #expect(run.foundCount == Int64(known.values.map(\.count).reduce(0, +)))
        #expect(run.resolvedCount == Int64(endedCount))
        #expect(run.recordedCount == Int64(newCount + endedCount))
        let told = try await gate.call("product", "GET", "/v1/drift")
        #expect(told.json["examined"]?.integerValue == Int64(people.count), "\(told.json)")
        #expect(told.json["recorded"]?.integerValue == Int64(newCount + endedCount), "\(told.json)")
        #expect(told.json["resolved"]?.integerValue == Int64(endedCount), "\(told.json)")

        let truth = Set(known.flatMap { user, drifts in drifts.map { "\(user) \($0)" } })
        let found = try await findings()
        #expect(found.count == Set(found).count)
        #expect(Set(found) == truth, "\(Set(found).symmetricDifference(truth).sorted())")
    }

    private func findings() async throws -> [String] {
        var users: [String: String] = [:]
        for user in people.keys {
            let subject = try gate.store.read { try $0.subject(of: UserID(user))?.id }
            users[try #require(subject).hexadecimal] = user
        }
        var (rows, after) = ([String](), "")
        while true {
            let page = try await gate.call("auditor", "GET", "/v1/drift/findings?limit=40\(after)")
            for row in try #require(page.json["findings"]?.arrayValue, "\(page.json)") {
                let user = users[row["subject"]?.stringValue ?? ""] ?? "?"
                rows.append(
                    ([user]
                        + ["finding", "action", "category", "old", "new", "device"].map {
                            row[$0]?.stringValue ?? "-"
                        }).joined(separator: " "))
            }
            guard let next = page.json["next"]?.stringValue else { return rows }
            after = "&after=\(next)"
        }
    }

    // MARK: Reviews

    /// `category cause count since usual` of each review that must be on record, by `disables_after_send` of the bundle's
    /// `limits.yaml`: at least 20 in a UTC day, and more than three times the mean of the seven days before.
    var reviews: [String] {
        disables.flatMap { category, times -> [String] in
            var (byDay, raised): ([Int64: Int64], Set<Int64>) = ([:], [])
            return times.sorted().compactMap { time in
                let day = time / Self.day
                byDay[day, default: 0] += 1
                let before = byDay.filter { (day - 7..<day).contains($0.key) }.values.reduce(0, +)
                guard let count = byDay[day], count >= 20, Double(count) > 3 * Double(before) / 7,
                    raised.insert(day).inserted
                else { return nil }
                let usual = Int64((Double(before) / 7).rounded(.up))
                return "\(category) disables_after_send \(count) \(day * Self.day * 1_000) \(usual)"
            }
        }.sorted()
    }
}
