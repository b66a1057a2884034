import GateTestKit
package import GateVocabulary

@testable package import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// Random sends with random facts, read off the pages by hand: it shares no list of values with the proof, whose
/// enumeration could leave out what the gates tell apart.
///
/// Every number is taken from both sides of what it is compared with: counts around their caps, moments around expiry,
/// due time, ends of consents and days on which a row begins, sizes around what a channel takes, ages of a place around the
/// days it counts. Most facts are in favour, or nothing but refusals would come out.
package struct RandomSends {
    private var numbers: SeededNumbers
    private let kinds: [Kind]
    private let usual: [Kind]
    /// Around these the clock is set: the day the bundle takes effect, and each day a row begins or ends.
    private let moments: [Instant]
    private let places: [RegionCode]
    private let freshDays: [RegionSource: Int]
    /// How often each value beside a limit was given out.
    package private(set) var edges: [String: Int] = [:]

    private struct Kind {
        var request: AttestedRequest
        var typeCap: Int
        var categoryCap: Int
        var everythingCap: Int
        var ttlMilliseconds: Int64
        var byteCountMax: Int
    }

    package init(_ bundle: PolicyBundle, seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
        let callers = bundle.callers.keys.sorted() + [.gateway, CallerName("nobody.known")]
        var kinds: [Kind] = []
        var usual: [Kind] = []
        for id in bundle.types.keys.sorted() + [TypeID("no.such.type")] {
            let type = bundle.types[id]
            for caller in callers {
                let rule = bundle.callers[caller]
                let isListed =
                    rule.map { rule in
                        rule.grants.contains(.send)
                            && type.map { rule.types.categories.contains($0.category) } == true
                            && rule.types.only?.contains(id) != false && !rule.types.except.contains(id)
                    } ?? (caller == .gateway && Self.isSummary(id, in: bundle))
                for channel in Channel.allCases {
                    for critical in [false, true] {
                        let kind = Kind(
                            request: AttestedRequest(
                                caller: caller, type: id, channel: channel, critical: critical),
                            typeCap: bundle.limits.types[id]?.count
                                ?? type.flatMap { bundle.limits.tiers[$0.tier]?.count } ?? 3,
                            categoryCap: type.flatMap { bundle.limits.categories[$0.category]?.count } ?? 2,
                            everythingCap: bundle.limits.everything?.count ?? 4,
                            ttlMilliseconds: (type?.ttlSeconds ?? 3_600) * 1000,
                            byteCountMax: bundle.channels.rules[channel].payloadByteCountMax)
                        kinds.append(kind)
                        let mayBeCritical = bundle.critical.contains {
                            $0.type == id && $0.callers.contains(caller)
                        }
                        if isListed, type?.isEnabled == true, type?.body[channel] != .never,
                            !critical || mayBeCritical
                        {
                            usual.append(kind)
                        }
                    }
                }
            }
        }
        self.kinds = kinds
        self.usual = usual
        let texts = bundle.regions.codeTextRows
        let days = Set(
            bundle.regions.permissionRows.compactMap { $0.from?.instant } + texts.map(\.from.instant)
                + texts.compactMap { $0.until?.instant })
        moments = [bundle.effectiveFrom.instant] + days.sorted()
        let rows = bundle.regions.permissionRows.map(\.region)
        places =
            (Set(bundle.regions.regions.keys).union(rows)).sorted { $0.packed < $1.packed }
            // Parts of countries with and without a row of their own, and codes that no page of the bundle has.
            + ["US-CA", "US-PR", "CA-QC", "NO-03", "ZZ", "XX"].map { RegionCode($0)! }
        freshDays = bundle.regions.freshnessDays.compactMapValues(\.self)
    }

    private static func isSummary(_ id: TypeID, in bundle: PolicyBundle) -> Bool {
        bundle.categories.values.contains { $0.summary == id }
            || bundle.types.values.contains { $0.ownSummary == id }
    }

    package mutating func next() -> (AttestedRequest, Facts) {
        let kind = isRare() ? pick(kinds) : pick(usual)
        var facts = Facts()
        let now = moment()
        facts.now = now
        setTimes(kind, now, &facts)
        facts.params = isRare() ? maybe(ParamsFact.allCases) : .valid
        facts.fallback = isRare() ? maybe(FallbackFact.allCases) : .notFallback
        facts.repetition = isRare() ? maybe(RepetitionFact.allCases) : .first
        facts.recipient = isRare() ? maybe(RecipientFact.allCases) : .registered
        facts.age = isRare() ? maybe(AgeFact.allCases) : .adult
        facts.privacy = isRare() ? maybe(PrivacyLevel.allCases) : .full
        facts.accountRegion = isRare() ? nil : place(now, isRare() ? pick(RegionSource.allCases) : .kyc)
        facts.deviceRegions =
            isRare() ? nil : (0..<(isRare() ? numbers.next() % 5 : 1)).map { _ in place(now, .device) }
        facts.consent = consent(now, usually: .writtenConsent)
        facts.purposeConsent = consent(now, usually: .writtenConsent)
        facts.ownRequest = isRare() ? consent(now, usually: .inAppToggle) : nil
        facts.withheld = isRare() ? pick([true, nil]) : false
        facts.pushEnabled = isRare() ? pick([false, nil]) : true
        facts.accountPreference = isRare() ? maybe(PreferenceState.allCases) : pick([.default, .userOn])
        facts.destinationPreference = isRare() ? maybe(PreferenceState.allCases) : .default
        facts.accountTypePreference = isRare() ? maybe(PreferenceState.allCases) : .default
        facts.destinationTypePreference = isRare() ? maybe(PreferenceState.allCases) : .default
        facts.destination = isRare() ? maybe(DestinationFact.allCases) : .active
        facts.platform = isRare() ? nil : pick(Platform.allCases)
        facts.osPermission = isRare() ? maybe(OSPermission.allCases) : .granted
        facts.criticalAlerts = isRare() ? pick([false, nil]) : true
        facts.deviceKey = isRare() ? maybe(DeviceKeyFact.allCases) : .usable
        facts.sizes =
            isRare() && isRare()
            ? nil
            : PayloadSizes(
                sealed: size(kind.byteCountMax), generic: size(kind.byteCountMax),
                full: size(kind.byteCountMax))
        facts.typeCount = count("type", around: kind.typeCap)
        facts.categoryCount = count("category", around: kind.categoryCap)
        facts.everythingCount = count("everything", around: kind.everythingCap)
        // What is relative to the clock stays where it is when the clock is lost.
        if numbers.next() % 64 == 0 { facts.now = nil }
        return (kind.request, facts)
    }

    /// Life, due time and quiet hours, each to the millisecond before, at and after what it is compared with.
    private mutating func setTimes(_ kind: Kind, _ now: Instant, _ facts: inout Facts) {
        let life = kind.ttlMilliseconds
        let expiry = isRare() ? edge("expiry", [-60_000, -1, 0, 1, 59_000, 60_000, 61_000]) : life
        let wait = isRare() ? edge("due", [-1, 0, 1, expiry - 1, expiry, expiry + 1, expiry / 2]) : 0
        facts.expiry = isRare() && isRare() ? nil : now.advanced(byMilliseconds: expiry)
        facts.due = isRare() && isRare() ? nil : now.advanced(byMilliseconds: wait)
        guard isRare() else {
            facts.quietHours = pick([.off, .outside])
            return
        }
        switch numbers.next() % 8 {
        case 0: facts.quietHours = nil
        case 1: facts.quietHours = .zoneMissing
        default:
            let end = edge(
                "quiet",
                [0, 1, 59_000, 60_000, 61_000, wait - 1, wait, wait + 1, expiry - 1, expiry, expiry + 1])
            facts.quietHours = .inside(endsAt: now.advanced(byMilliseconds: end))
        }
    }

    private mutating func moment() -> Instant {
        let begin = pick(moments)
        return isRare()
            ? begin.advanced(byMilliseconds: edge("day", [-1, 0, 1]))
            : begin.advanced(bySeconds: Int64(numbers.next() % (400 * 86_400)))
    }

    private mutating func place(_ now: Instant, _ source: RegionSource) -> RegionObservation {
        let code = isRare() ? pick(places) : RegionCode("NO")!
        var age = Int64(numbers.next() % 86_400_000)
        if let days = freshDays[source], isRare() {
            age = Int64(days) * 86_400_000 + edge("place", [-1, 0, 1])
        }
        return RegionObservation(code: code, source: source, observedAt: now.advanced(byMilliseconds: -age))
    }

    private mutating func consent(_ now: Instant, usually method: ConsentMethod) -> ConsentFact? {
        guard isRare() else { return ConsentFact(state: .given, method: method) }
        if isRare() { return nil }
        let state = isRare() ? pick(ConsentState.allCases) : pick([.given, .neverAsked])
        // Method and end belong to a given consent; with another state they must not count.
        let end: Instant? =
            isRare()
            ? nil : now.advanced(byMilliseconds: edge("consent", [-86_400_000, -1, 0, 1, 86_400_000]))
        return ConsentFact(
            state: state, method: isRare() ? nil : pick(ConsentMethod.allCases), expiresAt: end)
    }

    private mutating func count(_ name: String, around cap: Int) -> Int? {
        if isRare() && isRare() { return nil }
        guard isRare() else { return 0 }
        return max(0, cap + Int(edge(name, [-1, 0, 1, Int64(Int32.max)])))
    }

    private mutating func size(_ most: Int) -> Int? {
        guard isRare() else { return most / 2 }
        return isRare() ? nil : most + Int(edge("size", [-1, 0, 1]))
    }

    private mutating func edge(_ name: String, _ offsets: [Int64]) -> Int64 {
        let index = Int(numbers.next() % UInt64(offsets.count))
        edges["\(name) \(index)", default: 0] += 1
        return offsets[index]
    }

    private mutating func isRare() -> Bool { numbers.next() % 8 == 0 }
    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int(numbers.next() % UInt64(values.count))]
    }
    private mutating func maybe<Value>(_ values: [Value]) -> Value? {
        let index = Int(numbers.next() % UInt64(values.count + 1))
        return index < values.count ? values[index] : nil
    }
}
