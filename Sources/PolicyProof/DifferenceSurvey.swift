import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary

/// One thing that is not in favour.
struct Disfavour {
    var words: String
    /// The name of the fact. Circumstances of one fact exclude each other.
    var fact: String
    var apply: (inout Facts) -> Void
}

/// A place, as both bundles see it.
struct Place {
    var name: String
    var moment: Instant
    var account: RegionObservation?
    var devices: [RegionObservation]?
    /// Whether the telephone is elsewhere than the account.
    var isTravelling = false

    init(
        name: String, moment: Instant, account: RegionObservation? = nil,
        devices: [RegionObservation]? = nil, isTravelling: Bool = false
    ) {
        self.name = name
        self.moment = moment
        self.account = account
        self.devices = devices
        self.isTravelling = isTravelling
    }

    /// At home there.
    init(of code: RegionCode, at moment: Instant, _ when: String = "") {
        let seen = Self.seen(code, moment)
        self.init(name: code.description + when, moment: moment, account: seen, devices: [seen])
    }

    /// With an account elsewhere.
    init(of code: RegionCode, from home: RegionCode, at moment: Instant, _ when: String = "") {
        let telephone = code == .unknown ? "a telephone nobody located" : "a telephone in \(code)"
        self.init(
            name: "\(home) with \(telephone)\(when)", moment: moment, account: Self.seen(home, moment),
            devices: [Self.seen(code, moment)], isTravelling: true)
    }

    static func seen(_ code: RegionCode, _ moment: Instant) -> RegionObservation {
        RegionObservation(code: code, source: .kyc, observedAt: moment)
    }
}

struct Survey {
    let old: CompiledPolicy
    let new: CompiledPolicy
    private let pairs: [Pair]
    private let requests: [Pair: [AttestedRequest]]
    /// One of each kind of ``pairs`` that a place can tell from another.
    private let kinds: [Pair]
    /// Known and in favour, wherever the recipient is.
    private let favourable: Facts
    /// Circumstances of facts that ``named(_:)`` has no words for.
    private var unnamed: [Disfavour] = []
    private var places: [Place] = []
    /// Where accounts are, beside which telephones elsewhere are looked at.
    private var homes: [RegionCode] = []
    /// Days on which a row of either bundle begins or ends to count; empty where no row, table or regime differs.
    private var begins: [CalendarDate] = []
    /// Regions whose rows are the same in both.
    private var others: [RegionCode] = []
    /// Names of the places at home when all rows are in force.
    private var everywhere: Set<String> = []
    var stateCount = 0
    private var found: [Key: (types: Set<TypeID>, channels: Set<Channel>, callers: Set<CallerName>)] = [:]
    private var order: [Key] = []

    private struct Key: Hashable {
        var places: [String]
        var circumstances: [String]
        var isCritical: Bool
        var before: PolicyDifference.Result
        var after: PolicyDifference.Result
        /// Keeps types apart that are reached in other ways.
        var group: Int
    }

    private struct Pair: Hashable {
        var old: CompiledRule
        var new: CompiledRule
    }

    /// What both bundles make of a place.
    private struct Laws: Hashable {
        var old: Jurisdiction
        var new: Jurisdiction
    }

    /// What of a way of asking bears on the law of a place.
    private struct Kind: Hashable {
        var channels: [Channel]
        var categories: [GateVocabulary.Category]
        var tables: [ByRegime<PermissionRule>]
        var bringCodes: [Bool]

        init(_ pair: Pair) {
            channels = [pair.old.channel, pair.new.channel]
            categories = [pair.old.category, pair.new.category]
            tables = [pair.old.permission, pair.new.permission]
            bringCodes = [pair.old.flags.contains(.codeText), pair.new.flags.contains(.codeText)]
        }
    }

    init(old: CompiledPolicy, new: CompiledPolicy) {
        self.old = old
        self.new = new
        let space = FactSpace(bundle: new.bundle)
        favourable = space.favourable
        (pairs, requests) = Self.pairs(old, new)
        kinds = Dictionary(grouping: pairs, by: { Kind($0) }).values.map { $0[0] }
        let days = [old, new].flatMap { policy in
            [policy.bundle.effectiveFrom] + policy.bundle.regions.permissionRows.compactMap(\.from)
                + policy.bundle.regions.codeTextRows.flatMap { [$0.from] + ($0.until.map { [$0] } ?? []) }
        }
        guard let day = days.max() else { preconditionFailure("two bundles without a day") }
        // Noon of the first day on which everything both say holds.
        let now = day.instant.advanced(bySeconds: 43_200)
        let codes = Set(old.bundle.regions.regions.keys).union(new.bundle.regions.regions.keys)
            .union(old.bundle.regions.permissionRows.map(\.region))
            .union(new.bundle.regions.permissionRows.map(\.region))
            .union([old, new].flatMap { $0.bundle.regions.codeTextRows.flatMap(\.regions) })
        var places = codes.map { Place(of: $0, at: now) }.sorted { $0.name < $1.name }
        places.append(Place(name: "an unknown place", moment: now))
        // Where freshness changes, a place is known under one bundle and stale under the other.
        for source in RegionSource.allCases {
            let days = [old, new].map { ($0.bundle.regions.freshnessDays[source] ?? nil) ?? 36_500 }
            guard days[0] != days[1], let weak = codes.first(where: { $0.description == "US" }) else {
                continue
            }
            let age = Int64(min(days[0], days[1]) + 1)
            let observation = RegionObservation(
                code: weak, source: source, observedAt: now.advanced(bySeconds: -age * 86_400))
            places.append(
                Place(
                    name: "US as told by `\(source.rawValue)` \(age) days ago", moment: now,
                    account: observation, devices: [observation]))
        }
        everywhere = Set(places.map(\.name))
        self.places = places
        // A row that says what its regime says anyhow is felt beside an account under another.
        let abroad = codes.union([.unknown]).sorted { $0.packed < $1.packed }
        let rows = editedRows
        begins = old.bundle.regions == new.bundle.regions && areTablesAlike ? [] : Set(days).sorted()
        homes = accountRegions(among: abroad, at: [now] + begins.map(\.instant))
        for home in homes {
            self.places += abroad.filter { $0 != home }.map { Place(of: $0, from: home, at: now) }
        }
        self.places.append(
            Place(
                name: "an account without a region", moment: now,
                account: Place.seen(.unknown, now), devices: [], isTravelling: true)
        )
        let isEdited = { (code: RegionCode) in rows.contains(code) || rows.contains(code.country) }
        self.places += abroad.filter(isEdited).flatMap { earlierPlaces($0, until: now) }
        others = abroad.filter { !isEdited($0) }
        let told = pairs.first.map { named($0).facts } ?? []
        unnamed = Facts.names.filter { !told.contains($0) && !Self.unvaried.contains($0) }
            .flatMap { Self.variations(of: $0, in: space) }
    }

    /// Facts without circumstances. A place sets the first three, every bundle weighs the fourth like
    /// `account_type_preference`, no gate reads the fifth, and every bundle refuses an unknown recipient.
    private static let unvaried: Set = [
        "account_region", "device_regions", "now", "destination_type_preference", "platform", "recipient",
    ]

    /// A circumstance for each value of a fact but the one in favour.
    private static func variations(of fact: String, in space: FactSpace) -> [Disfavour] {
        space.variations(of: fact).map { value, setting in
            let text = value.map {
                $0.stringValue ?? String(decoding: CanonicalJSON.write($0), as: UTF8.self)
            }
            return Disfavour(words: "with `\(fact)` \(text.map { "`\($0)`" } ?? "unknown")", fact: fact) {
                facts in
                var others = facts
                setting(&others)
                facts = facts.taking(fact, from: others) ?? facts
            }
        }
    }

    /// Of each regime a region without rows, and at each moment one that asks for the least: beside an account there it is
    /// seen what a telephone elsewhere adds.
    private func accountRegions(among codes: [RegionCode], at moments: [Instant]) -> [RegionCode] {
        let withRows = Set([old, new].flatMap { $0.bundle.regions.permissionRows.map(\.region.country) })
        var found: Set<RegionCode> = []
        for regime in Regime.allCases {
            let there = codes.filter { code in
                [old, new].allSatisfy { $0.bundle.regions.regions[code]?.regime == regime }
            }
            if let plain = there.first(where: { !withRows.contains($0) }) ?? there.first {
                found.insert(plain)
            }
            for moment in moments {
                for kind in kinds {
                    let least = there.min { one, other in
                        rules(of: one, at: moment, kind).lexicographicallyPrecedes(
                            rules(of: other, at: moment, kind))
                    }
                    if let least { found.insert(least) }
                }
            }
        }
        return found.sorted { $0.packed < $1.packed }
    }

    private func rules(of code: RegionCode, at moment: Instant, _ pair: Pair) -> [PermissionRule] {
        let laws = laws(of: Place(of: code, at: moment), pair)
        return [laws.old.rule, laws.new.rule]
    }

    /// Where one bundle has another row than the other.
    private var editedRows: Set<RegionCode> {
        /// Where and when a text may bring a code, one element for each region of a row.
        struct CodeText: Hashable {
            var region: RegionCode
            var from: CalendarDate
            var until: CalendarDate?
        }
        func codeTexts(_ policy: CompiledPolicy) -> Set<CodeText> {
            Set(
                policy.bundle.regions.codeTextRows.flatMap { row in
                    row.regions.map { CodeText(region: $0, from: row.from, until: row.until) }
                })
        }
        func rows(_ policy: CompiledPolicy) -> Set<PermissionRow> {
            Set(
                policy.bundle.regions.permissionRows.map { row in
                    var row = row
                    row.rationale = Rationale(because: "", law: [], reviewed: .first)
                    return row
                })
        }
        return Set(rows(old).symmetricDifference(rows(new)).map(\.region))
            .union(codeTexts(old).symmetricDifference(codeTexts(new)).map(\.region))
    }

    private var areTablesAlike: Bool { pairs.allSatisfy { $0.old.permission == $0.new.permission } }

    /// A place in each span of days before all rows are in force in which something is asked there otherwise than it is then.
    private func earlierPlaces(_ code: RegionCode, until end: Instant) -> [Place] {
        let accounts = [nil] + homes.filter { $0 != code }.map(Optional.some)
        return accounts.flatMap { earlierPlaces(code, from: $0, until: end) }
    }

    /// - Parameter home: Where the account is; `nil` for there as well.
    private func earlierPlaces(_ code: RegionCode, from home: RegionCode?, until end: Instant) -> [Place] {
        guard !begins.isEmpty else { return [] }
        func place(_ moment: Instant, _ when: String = "") -> Place {
            home.map { Place(of: code, from: $0, at: moment, when) } ?? Place(of: code, at: moment, when)
        }
        func moment(of first: CalendarDate?) -> Instant {
            first?.instant ?? begins[0].instant.advanced(bySeconds: -43_200)
        }
        // What both ask alike is `nil`, so that a row of both ends no span.
        func differences(at moment: Instant) -> [Laws?] {
            kinds.map { kind in
                let laws = laws(of: place(moment), kind)
                return laws.old == laws.new ? nil : laws
            }
        }
        let last = differences(at: end)
        // Days with the same differences are one span, which is looked at on its first.
        var spans: [(first: CalendarDate?, differences: [Laws?])] = []
        for day in [nil] + begins.map(Optional.some) {
            let found = differences(at: moment(of: day))
            if spans.last?.differences != found { spans.append((day, found)) }
        }
        return zip(spans, spans.dropFirst()).compactMap { span, next in
            guard span.differences.contains(where: { $0 != nil }), span.differences != last,
                let until = next.first
            else { return nil }
            return place(
                moment(of: span.first),
                span.first.map { " between \($0) and \(until)" } ?? " before \(until)")
        }
    }

    private func laws(of place: Place, _ pair: Pair) -> Laws {
        let facts = ready(in: place)
        return Laws(
            old: old.jurisdiction(of: facts, under: pair.old),
            new: new.jurisdiction(of: facts, under: pair.new))
    }

    /// Every way of asking that the bundles can tell from another, and the requests of each.
    private static func pairs(
        _ old: CompiledPolicy, _ new: CompiledPolicy
    ) -> (pairs: [Pair], requests: [Pair: [AttestedRequest]]) {
        let types = Set(old.types.map(\.id)).union(new.types.map(\.id)).sorted()
        let callers = Set(old.bundle.callers.keys).union(new.bundle.callers.keys).sorted()
        var requests: [Pair: [AttestedRequest]] = [:]
        var pairs: [Pair] = []
        for type in types {
            for channel in Channel.allCases {
                for caller in callers {
                    for critical in [false, true] {
                        let request = AttestedRequest(
                            caller: caller, type: type, channel: channel, critical: critical)
                        let pair = Pair(old: old.rule(for: request), new: new.rule(for: request))
                        if requests[pair] == nil { pairs.append(pair) }
                        requests[pair, default: []].append(request)
                    }
                }
            }
        }
        return (pairs, requests)
    }

    mutating func run() {
        compareAll()
        // What is felt when all rows are in force is told of that day alone; what is felt on no such day, of any other.
        guard found.isEmpty, let now = places.first?.moment else { return }
        places = others.flatMap { earlierPlaces($0, until: now) }
        compareAll()
    }

    private mutating func compareAll() {
        for (group, pair) in pairs.enumerated() { compare(pair, requests[pair] ?? [], group) }
    }

    private mutating func compare(_ pair: Pair, _ requests: [AttestedRequest], _ group: Int) {
        var byLaws: [Laws: [Place]] = [:]
        // People at home come first, and stand for a traveller under the same laws.
        for place in places {
            let laws = laws(of: place, pair)
            if place.isTravelling, byLaws[laws]?[0].isTravelling == false { continue }
            byLaws[laws, default: []].append(place)
        }
        for (laws, places) in byLaws.sorted(by: { $0.value[0].name < $1.value[0].name }) {
            if pair.old == pair.new, laws.old == laws.new { continue }
            compare(requests, places.map(\.name), ready(in: places[0]), named(pair).all + unnamed, group)
        }
    }

    /// The fewest circumstances that show a difference: none, each alone, each two that show none alone.
    private mutating func compare(
        _ requests: [AttestedRequest], _ places: [String], _ ready: Facts, _ circumstances: [Disfavour],
        _ group: Int
    ) {
        func note(_ words: [String], _ before: PolicyDifference.Result, _ after: PolicyDifference.Result) {
            let key = Key(
                places: places, circumstances: words, isCritical: requests[0].critical, before: before,
                after: after, group: group)
            if found[key] == nil {
                order.append(key)
                found[key] = ([], [], [])
            }
            for request in requests {
                found[key]?.types.insert(request.type)
                found[key]?.channels.insert(request.channel)
                found[key]?.callers.insert(request.caller)
            }
        }
        let base = decide(requests[0], ready)
        if base.before != base.after { note([], base.before, base.after) }
        var quiet: [Int] = []
        for (index, circumstance) in circumstances.enumerated() {
            var facts = ready
            circumstance.apply(&facts)
            let (before, after) = decide(requests[0], facts)
            if before == after {
                quiet.append(index)
            } else if (before, after) != base {
                note([circumstance.words], before, after)
            }
        }
        guard base.before == base.after else { return }
        for (position, first) in quiet.enumerated() {
            for second in quiet[(position + 1)...]
            where circumstances[first].fact != circumstances[second].fact {
                var facts = ready
                circumstances[first].apply(&facts)
                circumstances[second].apply(&facts)
                let (before, after) = decide(requests[0], facts)
                if before != after {
                    note([circumstances[first].words, circumstances[second].words], before, after)
                }
            }
        }
    }

    private mutating func decide(
        _ request: AttestedRequest, _ facts: Facts
    ) -> (before: PolicyDifference.Result, after: PolicyDifference.Result) {
        stateCount += 1
        return (
            PolicyDifference.Result(CompliancePolicy.decide(request, given: facts, under: old)),
            PolicyDifference.Result(CompliancePolicy.decide(request, given: facts, under: new))
        )
    }

    /// Changes that differ in the type, the place or the circumstance alone are one.
    var merged: [PolicyDifference.Change] {
        var changes = order.compactMap { key -> PolicyDifference.Change? in
            guard let sends = found[key] else { return nil }
            return PolicyDifference.Change(
                types: sends.types.sorted(), channels: Channel.allCases.filter(sends.channels.contains),
                callers: sends.callers.sorted(), isCritical: key.isCritical, places: key.places,
                circumstances: key.circumstances.isEmpty
                    ? [] : [key.circumstances.joined(separator: " and ")],
                before: key.before, after: key.after)
        }
        changes = Self.joined(changes, \.types)
        changes = Self.joined(changes, \.places)
        changes = Self.joined(changes, \.circumstances)
        for index in changes.indices
        where Set(changes[index].places) == everywhere {
            changes[index].places = []
        }
        return changes.sorted { $0.rank.lexicographicallyPrecedes($1.rank) }
    }

    /// Joins changes that are equal but for one list. "In no circumstance" joins no other.
    private static func joined<Element: Hashable & Comparable>(
        _ changes: [PolicyDifference.Change],
        _ list: WritableKeyPath<PolicyDifference.Change, [Element]>
    ) -> [PolicyDifference.Change] {
        var order: [PolicyDifference.Change] = []
        var elements: [PolicyDifference.Change: Set<Element>] = [:]
        var untouched: [PolicyDifference.Change] = []
        for change in changes {
            if change[keyPath: list].isEmpty {
                untouched.append(change)
                continue
            }
            var rest = change
            rest[keyPath: list] = []
            if elements[rest] == nil { order.append(rest) }
            elements[rest, default: []].formUnion(change[keyPath: list])
        }
        return untouched
            + order.map { rest in
                var change = rest
                change[keyPath: list] = elements[rest, default: []].sorted()
                return change
            }
    }

    // MARK: Facts

    private func ready(in place: Place) -> Facts {
        var facts = favourable
        facts.now = place.moment
        facts.due = place.moment
        facts.expiry = place.moment.advanced(bySeconds: 7 * 86_400)
        facts.accountRegion = place.account
        facts.deviceRegions = place.devices
        // The strongest there is, so that what is weaker is a circumstance.
        facts.consent = ConsentFact(state: .given, method: .writtenConsent)
        facts.purposeConsent = facts.consent
        facts.ownRequest = ConsentFact(state: .neverAsked)
        facts.platform = .ios
        facts.quietHours = .off
        facts.sizes = PayloadSizes(sealed: 256, generic: 128, full: 128)
        return facts
    }

    /// - Returns: The circumstances, and the facts that they are about, those included that this pair has none of.
    private func named(_ pair: Pair) -> (all: [Disfavour], facts: Set<String>) {
        typealias Words = (words: String, apply: (inout Facts) -> Void)
        func when(_ words: String, _ apply: @escaping (inout Facts) -> Void) -> Words { (words, apply) }
        var all: [Disfavour] = []
        var facts: Set<String> = []
        func axis(_ fact: String, _ several: [Words]) {
            all += several.map { Disfavour(words: $0.words, fact: fact, apply: $0.apply) }
            facts.insert(fact)
        }
        func axis(_ fact: String, _ several: Words...) { axis(fact, several) }
        func window(_ facts: Facts) -> Instant {
            guard let now = facts.now else { preconditionFailure("facts of a place have no time") }
            return now.advanced(bySeconds: 3600)
        }
        var consents = ConsentState.allCases.filter { $0 != .given }.map { state in
            when("with consent `\(state.rawValue)`") { $0.consent = ConsentFact(state: state) }
        }
        for method in ConsentMethod.allCases where method != .writtenConsent {
            consents.append(
                when("with consent by `\(method.rawValue)`") {
                    $0.consent = ConsentFact(state: .given, method: method)
                })
        }
        consents.append(when("with nothing known of consent") { $0.consent = nil })
        axis("consent", consents)
        axis(
            "purpose_consent",
            when("without the type's own consent") { $0.purposeConsent = ConsentFact(state: .neverAsked) })
        axis(
            "own_request",
            when("at the recipient's own request") {
                $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle)
            })
        axis("withheld", when("for who takes part in what it is withheld from") { $0.withheld = true })
        axis("age", when("for a minor") { $0.age = .minor }, when("at an unknown age") { $0.age = nil })
        axis(
            "fallback",
            when("as the fallback of an own push") { $0.fallback = .replacesOwnSend },
            when("as the fallback of somebody else's push") { $0.fallback = .mismatch })
        axis(
            "repetition",
            when("told before") { $0.repetition = .alreadySent },
            when("acknowledged before") { $0.repetition = .acknowledged })
        axis("push_enabled", when("with push switched off") { $0.pushEnabled = false })
        axis(
            "account_preference",
            when("with the category switched on") { $0.accountPreference = .userOn },
            when("with the category switched off") { $0.accountPreference = .userOff },
            when("with the category switched off by step-up") { $0.accountPreference = .userOffStepUp })
        axis(
            "destination_preference",
            when("with the category switched off on this device") { $0.destinationPreference = .userOff })
        axis(
            "account_type_preference",
            when("with the type switched off") { $0.accountTypePreference = .userOff })
        axis(
            "os_permission",
            when("blocked by the phone") { $0.osPermission = .denied },
            when("before the phone was asked") { $0.osPermission = .notDetermined },
            when("delivered quietly by the phone") { $0.osPermission = .provisional })
        axis(
            "quiet_hours",
            when("inside quiet hours") { $0.quietHours = .inside(endsAt: window($0)) },
            when("with quiet hours and no zone") { $0.quietHours = .zoneMissing },
            when("with quiet hours somewhere and no zone") {
                $0.quietHours = .insideSomewhere(endsAt: window($0))
            })
        axis("due", when("at its own time of day") { $0.due = window($0) })
        axis(
            "type_count",
            Set([pair.old.typeCap, pair.new.typeCap]).subtracting([0]).sorted().map { cap in
                when("after \(cap) of the type") { $0.typeCount = Int(cap) }
            })
        axis(
            "category_count",
            Set([pair.old.categoryCap, pair.new.categoryCap]).subtracting([0]).sorted().map { cap in
                when("after \(cap) of the category") { $0.categoryCount = Int(cap) }
            })
        axis(
            "everything_count",
            Set([pair.old.everythingCap, pair.new.everythingCap]).subtracting([0]).sorted().map { cap in
                when("after \(cap) of everything") { $0.everythingCount = Int(cap) }
            })
        axis(
            "device_key",
            DeviceKeyFact.allCases.filter { $0 != .usable }.map { key in
                when("with device key `\(key.rawValue)`") { $0.deviceKey = key }
            })
        axis(
            "privacy",
            when("with generic texts chosen") { $0.privacy = .generic },
            when("with hidden texts chosen") { $0.privacy = .hidden })
        axis("critical_alerts", when("without the critical-alerts entitlement") { $0.criticalAlerts = false })
        axis("params", when("with params that do not fit") { $0.params = .invalid })
        axis(
            "sizes",
            Set([pair.old.payloadByteCountMax, pair.new.payloadByteCountMax]).sorted().map { most in
                let size = Int(most) + 1
                return when("with \(size) bytes") {
                    $0.sizes = PayloadSizes(sealed: size, generic: size, full: size)
                }
            })
        axis(
            "destination",
            when("to an address nobody proved") { $0.destination = .unverified },
            when("to an address that another person verified since") { $0.destination = .contested })
        axis("expiry", when("after its expiry") { $0.expiry = $0.now?.advanced(bySeconds: -1) })
        return (all, facts)
    }
}
