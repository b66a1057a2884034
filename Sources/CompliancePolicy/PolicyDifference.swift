package import GateVocabulary

/// What another bundle would decide otherwise, in the fewest circumstances that show it.
///
/// Both bundles decide the same sends. Each starts from facts in which everything is known and in favour, and then
/// has one circumstance against it, or two; a difference is told with the smallest set of them. The sends stand for
/// all that the bundles know: every type × channel × caller × critical with another behaviour or in a place with
/// another law, and of the places one for each pair of laws: at home everywhere, with a telephone everywhere beside
/// an account under each regime, and where nobody knows the one or the other. What a bundle says besides (texts, times
/// to live, sending hours, grants) changes no decision on equal facts; ``edits`` names it, as it names every other edit.
package struct PolicyDifference: Sendable {
    /// How one decision came out: what a difference is a difference of.
    package struct Result: Hashable, Sendable {
        package var outcome: Outcome
        package var reason: Reason
        package var form: BodyForm
        package var interruption: Interruption

        init(_ decision: Decision) {
            outcome = decision.outcome
            reason = decision.reason
            form = decision.form
            interruption = decision.interruption
        }
    }

    /// Sends that come out otherwise, alike.
    package struct Change: Hashable, Sendable {
        package var types: [TypeID]
        package var channels: [Channel]
        package var callers: [CallerName]
        package var isCritical: Bool
        /// Region codes, or a place in words; empty for everywhere.
        package var places: [String]
        /// What is not in favour: any one of these is enough, and each may be two things at once. Empty when
        /// nothing has to be.
        package var circumstances: [String]
        package var before: Result
        package var after: Result
    }

    /// In the order of types, then of the number of circumstances.
    package let changes: [Change]
    /// Sends decided, by each bundle once.
    package let stateCount: Int
    /// Pages that are not the same; those that only change words are among them.
    package let pages: [String]
    /// Every value that is not the same, page by page. Empty exactly when both have one digest.
    package let edits: [PolicyEdit]
    /// Notices that have other words under the id and version they had.
    package let editedNotices: [PolicyProblem]

    package init(from old: CompiledPolicy, to new: CompiledPolicy) {
        var survey = Survey(old: old, new: new)
        survey.run()
        changes = survey.merged
        stateCount = survey.stateCount
        edits = PolicyEdit.all(from: old.bundle.documents, to: new.bundle.documents)
        pages = Set(edits.map(\.file)).sorted()
        editedNotices = new.bundle.editedNotices { key in old.bundle.notices[key]?.sha256 }
    }
}

extension PolicyDifference.Change {
    /// "`promo.offer` by push in DE: was rejected (no_gdpr_consent) where consent was never asked for, now forwarded".
    package var sentence: String {
        let what = Self.list(types.map(\.text), most: 4)
        let how = Self.list(channels.map(\.rawValue), most: 3)
        let asked = isCritical ? ", asked for as critical" : ""
        let whom = callers.isEmpty ? "" : " from \(Self.list(callers.map(\.text), most: 3))"
        let place = places.isEmpty ? "" : " in \(Self.list(places, most: 6))"
        let when = circumstances.isEmpty ? "" : ", \(Self.list(circumstances, most: 8, " or "))"
        return "\(what) by \(how)\(whom)\(asked)\(place)\(when): was \(words(before)), now \(words(after))"
    }

    private func words(_ result: PolicyDifference.Result) -> String {
        let verb =
            switch result.outcome {
            case .forward: "forwarded"
            case .defer: "kept for later"
            case .digest: "gathered into a summary"
            case .suppress: "not sent"
            case .reject: "refused"
            }
        guard before.outcome == after.outcome else { return "\(verb) (\(result.reason.rawValue))" }
        var text = "\(verb) (\(result.reason.rawValue)"
        if before.form != after.form { text += ", body \(result.form.rawValue)" }
        if before.interruption != after.interruption { text += ", \(result.interruption.rawValue)" }
        return text + ")"
    }

    private static func list(_ names: [String], most: Int, _ separator: String = ", ") -> String {
        guard names.count > most else { return names.joined(separator: separator) }
        return "\(names.prefix(most).joined(separator: separator)) and \(names.count - most) more"
    }
}

// MARK: - The survey

/// One thing that is not in favour.
private struct Disfavour {
    var words: String
    /// Circumstances of one axis exclude each other.
    var axis: Int
    var apply: (inout Facts) -> Void
}

/// A place, as both bundles see it.
private struct Place {
    var name: String
    var account: RegionObservation?
    var devices: [RegionObservation]?
    /// Whether the telephone is elsewhere than the account.
    var isTravelling = false
}

private struct Survey {
    let old: CompiledPolicy
    let new: CompiledPolicy
    let now: Instant
    let places: [Place]
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
        var old: Behaviour
        var new: Behaviour
    }

    init(old: CompiledPolicy, new: CompiledPolicy) {
        self.old = old
        self.new = new
        let days = [old, new].flatMap { policy in
            [policy.bundle.effectiveFrom] + policy.bundle.regions.permissionRows.compactMap(\.from)
        }
        guard let day = days.max() else { preconditionFailure("two bundles without a day") }
        // Noon of the first day on which everything both say holds.
        let now = day.instant.advanced(bySeconds: 43_200)
        self.now = now
        let codes = Set(old.bundle.regions.regions.keys).union(new.bundle.regions.regions.keys)
            .union(old.bundle.regions.permissionRows.map(\.region))
            .union(new.bundle.regions.permissionRows.map(\.region))
        func seen(_ code: RegionCode) -> RegionObservation {
            RegionObservation(code: code, source: .kyc, observedAt: now)
        }
        var places = codes.map { Place(name: $0.description, account: seen($0), devices: [seen($0)]) }
            .sorted { $0.name < $1.name }
        places.append(Place(name: "an unknown place"))
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
                    name: "US as told by `\(source.rawValue)` \(age) days ago", account: observation,
                    devices: [observation]))
        }
        // A row that says what its regime says anyhow is felt beside an account under another.
        let abroad = codes.union([.unknown]).sorted { $0.packed < $1.packed }
        let withoutRows = codes.subtracting(
            [old, new].flatMap { $0.bundle.regions.permissionRows.map(\.region.country) })
        for regime in Regime.allCases {
            func isThere(_ code: RegionCode) -> Bool {
                [old, new].allSatisfy { $0.bundle.regions.regions[code]?.regime == regime }
            }
            let homes = [withoutRows, codes].map { $0.filter(isThere).min { $0.packed < $1.packed } }
            for home in Set(homes.compactMap(\.self)).sorted(by: { $0.packed < $1.packed }) {
                places += abroad.filter { $0 != home }.map { code in
                    Place(
                        name: code == .unknown
                            ? "\(home) with a telephone nobody located"
                            : "\(home) with a telephone in \(code)",
                        account: seen(home), devices: [seen(code)], isTravelling: true)
                }
            }
        }
        places.append(
            Place(
                name: "an account without a region", account: seen(.unknown), devices: [], isTravelling: true)
        )
        self.places = places
    }

    mutating func run() {
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
                        let pair = Pair(old: old.behaviour(for: request), new: new.behaviour(for: request))
                        if requests[pair] == nil { pairs.append(pair) }
                        requests[pair, default: []].append(request)
                    }
                }
            }
        }
        for (group, pair) in pairs.enumerated() { compare(pair, requests[pair] ?? [], group) }
    }

    private mutating func compare(_ pair: Pair, _ requests: [AttestedRequest], _ group: Int) {
        struct Laws: Hashable {
            var old: Territory
            var new: Territory
        }
        var byLaws: [Laws: [Place]] = [:]
        // Those at home come first, and speak for a traveller with the same laws.
        for place in places {
            let facts = ready(in: place)
            let laws = Laws(
                old: old.territory(of: facts, under: pair.old), new: new.territory(of: facts, under: pair.new)
            )
            if place.isTravelling, byLaws[laws]?[0].isTravelling == false { continue }
            byLaws[laws, default: []].append(place)
        }
        for (laws, places) in byLaws.sorted(by: { $0.value[0].name < $1.value[0].name }) {
            if pair.old == pair.new, laws.old == laws.new { continue }
            compare(requests, places.map(\.name), ready(in: places[0]), circumstances(pair), group)
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
            where circumstances[first].axis != circumstances[second].axis {
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
        where changes[index].places.count == places.count(where: { !$0.isTravelling }) {
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
        var facts = Facts()
        facts.now = now
        facts.due = now
        facts.expiry = now.advanced(bySeconds: 7 * 86_400)
        facts.params = .valid
        facts.fallback = .notFallback
        facts.repetition = .first
        facts.recipient = .registered
        facts.age = .adult
        facts.accountRegion = place.account
        facts.deviceRegions = place.devices
        facts.privacy = .full
        // The strongest there is, so that what is weaker is a circumstance.
        facts.consent = ConsentFact(state: .given, method: .writtenConsent)
        facts.purposeConsent = facts.consent
        facts.ownRequest = ConsentFact(state: .neverAsked)
        facts.withheld = false
        facts.pushEnabled = true
        facts.accountPreference = .default
        facts.destinationPreference = .default
        facts.accountTypePreference = .default
        facts.destinationTypePreference = .default
        facts.quietHours = .off
        facts.destination = .active
        facts.platform = .ios
        facts.osPermission = .granted
        facts.criticalAlerts = true
        facts.deviceKey = .usable
        facts.sizes = PayloadSizes(sealed: 256, generic: 128, full: 128)
        facts.typeCount = 0
        facts.categoryCount = 0
        return facts
    }

    private func circumstances(_ pair: Pair) -> [Disfavour] {
        typealias Words = (words: String, apply: (inout Facts) -> Void)
        func when(_ words: String, _ apply: @escaping (inout Facts) -> Void) -> Words { (words, apply) }
        var all: [Disfavour] = []
        var axisCount = 0
        func axis(_ several: [Words]) {
            all += several.map { Disfavour(words: $0.words, axis: axisCount, apply: $0.apply) }
            axisCount += 1
        }
        let window = now.advanced(bySeconds: 3600)
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
        axis(consents)
        axis([
            when("without the type's own consent") { $0.purposeConsent = ConsentFact(state: .neverAsked) }
        ])
        axis([
            when("at the recipient's own request") {
                $0.ownRequest = ConsentFact(state: .given, method: .inAppToggle)
            }
        ])
        axis([when("for who takes part in what it is withheld from") { $0.withheld = true }])
        axis([when("for a minor") { $0.age = .minor }, when("at an unknown age") { $0.age = nil }])
        axis([
            when("as the fallback of an own push") { $0.fallback = .replacesOwnSend },
            when("as the fallback of somebody else's push") { $0.fallback = .mismatch },
        ])
        axis([
            when("told before") { $0.repetition = .alreadySent },
            when("acknowledged before") { $0.repetition = .acknowledged },
        ])
        axis([when("with push switched off") { $0.pushEnabled = false }])
        axis([
            when("with the category switched on") { $0.accountPreference = .userOn },
            when("with the category switched off") { $0.accountPreference = .userOff },
            when("with the category switched off by step-up") { $0.accountPreference = .userOffStepUp },
        ])
        axis([when("with the category switched off on this device") { $0.destinationPreference = .userOff }])
        axis([when("with the type switched off") { $0.accountTypePreference = .userOff }])
        axis([
            when("blocked by the phone") { $0.osPermission = .denied },
            when("before the phone was asked") { $0.osPermission = .notDetermined },
            when("delivered quietly by the phone") { $0.osPermission = .provisional },
        ])
        axis([
            when("inside quiet hours") { $0.quietHours = .inside(endsAt: window) },
            when("with quiet hours and no zone") { $0.quietHours = .zoneMissing },
        ])
        axis([when("at its own time of day") { $0.due = window }])
        axis(
            Set([pair.old.typeCap, pair.new.typeCap]).subtracting([0]).sorted().map { cap in
                when("after \(cap) of the type") { $0.typeCount = Int(cap) }
            })
        axis(
            Set([pair.old.categoryCap, pair.new.categoryCap]).subtracting([0]).sorted().map { cap in
                when("after \(cap) of the category") { $0.categoryCount = Int(cap) }
            })
        axis(
            DeviceKeyFact.allCases.filter { $0 != .usable }.map { key in
                when("with device key `\(key.rawValue)`") { $0.deviceKey = key }
            })
        axis([
            when("with generic texts chosen") { $0.privacy = .generic },
            when("with hidden texts chosen") { $0.privacy = .hidden },
        ])
        axis([when("without the critical-alerts entitlement") { $0.criticalAlerts = false }])
        axis([when("with params that do not fit") { $0.params = .invalid }])
        axis(
            Set([pair.old.payloadByteCountMax, pair.new.payloadByteCountMax]).sorted().map { most in
                let size = Int(most) + 1
                return when("with \(size) bytes") {
                    $0.sizes = PayloadSizes(sealed: size, generic: size, full: size)
                }
            })
        axis([when("to an address nobody proved") { $0.destination = .unverified }])
        axis([when("after its expiry") { $0.expiry = $0.now?.advanced(bySeconds: -1) }])
        return all
    }
}

extension PolicyDifference.Change {
    fileprivate var rank: [String] {
        [
            types.first?.text ?? "", String(circumstances.count), channels.first?.rawValue ?? "",
            places.first ?? "", circumstances.joined(separator: " "), isCritical ? "1" : "0",
            before.reason.rawValue, after.reason.rawValue, callers.first?.text ?? "",
        ]
    }
}
