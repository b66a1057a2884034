import BundleModel
import CanonicalJSON
import GateVocabulary

/// Every value of every fact that a decision can tell from another, for one bundle.
///
/// An enum is taken whole, `nil` besides. A moment is taken before, at and after the moment it is compared with, a
/// count below and at its cap, a size as fitting and as too large. A region is taken from the whole list of the
/// bundle. Moments are set relative to `now`, so `now` is always set first.
struct FactSpace: Sendable {
    /// Puts one combination of values into the facts of its group.
    typealias Setting = @Sendable (inout Facts) -> Void

    /// Somewhere a person may be seen, as it is told at `now`.
    typealias Sighting = @Sendable (_ now: Instant) -> RegionObservation

    // Each list's first element is in favour of the send.
    let clocks: [Setting]
    let accountSightings: [Sighting]
    let deviceSightings: [Sighting]
    let accounts: [Setting]
    let devices: [Setting]

    init(bundle: PolicyBundle) {
        clocks = Self.clocks(of: bundle)
        accountSightings = Self.sightings(by: RegionSource.allCases, staleBy: .ip, in: bundle.regions)
        deviceSightings = Self.sightings(by: [.device], staleBy: .device, in: bundle.regions)
        accounts = accountSightings.map(Self.account) + [Self.account(nil)]
        devices = Self.lists(of: deviceSightings)
    }

    /// Every list, `now` first, for what the others say of time and place is relative to it.
    var dimensions: [[Setting]] {
        [
            clocks, accounts, devices, consents, purposes, requests, asides, switches, types, withholdings,
            times, repetitions, params, ends, systems,
            counts(typeCap: 1, categoryCap: 1, everythingCap: 1), contents(payloadByteCountMax: 1), flags,
        ]
    }

    /// Known and in favour, for every caller and type.
    var favourable: Facts {
        var facts = Facts()
        for settings in dimensions { settings[0](&facts) }
        return facts
    }

    /// Each value that one fact takes besides the one in favour while all others are, with what sets it; `nil` is unknown.
    func variations(of fact: String) -> [(value: JSONValue?, setting: Setting)] {
        let usual = favourable
        var seen: Set<Facts> = []
        return dimensions.joined().compactMap { setting in
            var facts = usual
            setting(&facts)
            guard facts != usual, facts.taking(fact, from: usual) == usual, seen.insert(facts).inserted else {
                return nil
            }
            return (facts.json[fact], setting)
        }
    }

    /// The moment everything else is set around.
    private static func base(_ facts: Facts) -> Instant {
        guard let now = facts.now else { preconditionFailure("facts were set before their `now`") }
        return now
    }

    /// A list for one fact.
    @inline(__always)
    private static func values<Value: Sendable>(
        _ values: [Value?], _ set: @escaping @Sendable (inout Facts, Value?) -> Void
    ) -> [Setting] {
        values.map { value in { facts in set(&facts, value) } }
    }

    /// A list for the facts of several, each value of one with each of the others.
    static func combinations(of lists: [[Setting]]) -> [Setting] {
        lists.dropFirst().reduce(lists[0]) { left, right in
            left.flatMap { first in
                right.map { second in
                    { @Sendable facts in
                        first(&facts)
                        second(&facts)
                    }
                }
            }
        }
    }

    // MARK: Place and permission

    /// `now`, which is known (``StateEnumeration`` says what is done about the other case): the day the bundle takes effect, and both sides of each later day on which one of its rows begins.
    private static func clocks(of bundle: PolicyBundle) -> [Setting] {
        let first = bundle.effectiveFrom.instant.advanced(bySeconds: 43_200)
        var moments = [first]
        let rows = bundle.regions.codeTextRows
        let days = Set(
            bundle.regions.permissionRows.compactMap { $0.from?.instant } + rows.map(\.from.instant)
                + rows.compactMap { $0.until?.instant })
        for day in days.sorted() where day > first { moments += [day.advanced(byMilliseconds: -1), day] }
        return moments.map { moment in { @Sendable (facts: inout Facts) in facts.now = moment } }
    }

    private static let norway = RegionCode("NO")!

    /// Norway first; then every code there is and the unknown one, seen a minute ago, and seen too long ago; then Norway
    /// by each source at its age limit and past it.
    private static func sightings(
        by sources: [RegionSource], staleBy ageing: RegionSource, in regions: RegionRules
    ) -> [Sighting] {
        func seen(_ code: RegionCode, _ source: RegionSource, secondsAgo: Int64) -> Sighting {
            { now in
                RegionObservation(
                    code: code, source: source, observedAt: now.advanced(bySeconds: -secondsAgo))
            }
        }
        let fresh = sources.contains(.kyc) ? .kyc : sources[0]
        let codes = Set(regions.regions.keys).union(regions.permissionRows.map(\.region))
            .union(regions.codeTextRows.flatMap(\.regions))
        let others = codes.sorted { $0.packed < $1.packed }.filter { $0 != norway } + [.unknown]
        var found = ([norway] + others).map { seen($0, fresh, secondsAgo: 60) }
        if regions.freshnessDays[ageing] ?? nil != nil {
            found += ([norway] + others).map { seen($0, ageing, secondsAgo: 3_651 * 86_400) }
        }
        for source in sources {
            guard let days = regions.freshnessDays[source] ?? nil else { continue }
            let limit = Int64(days) * 86_400
            found += [limit, limit + 1].map { seen(norway, source, secondsAgo: $0) }
        }
        return found
    }

    static func account(_ sighting: Sighting?) -> Setting {
        { facts in facts.accountRegion = sighting?(base(facts)) }
    }

    /// - Parameter sightings: `nil` for a list that is lost.
    static func devices(_ sightings: [Sighting]?) -> Setting {
        { facts in
            let now = base(facts)
            facts.deviceRegions = sightings?.map { $0(now) }
        }
    }

    /// One device anywhere, none, a lost list, and two. Longer lists are put together in ``EquivalenceClasses``, of the
    /// kinds that these fall into.
    private static func lists(of sightings: [Sighting]) -> [Setting] {
        let one = sightings.map { devices([$0]) }
        let two = zip(sightings.dropFirst(7), sightings.dropFirst(40)).map { devices([$0, $1]) }
        return one + [devices([]), devices(nil)] + two
    }

    /// Every state, by every method, ending before, at and after `now`, and never.
    private static func consentWords() -> [@Sendable (Instant) -> ConsentFact?] {
        var found: [@Sendable (Instant) -> ConsentFact?] = [
            { _ in ConsentFact(state: .given, method: .writtenConsent) }
        ]
        let methods: [ConsentMethod?] = ConsentMethod.allCases + [nil]
        let ends: [Int64?] = [nil, -1, 0, 1]
        for method in methods {
            for end in ends where !(method == .writtenConsent && end == nil) {
                found.append { now in
                    ConsentFact(
                        state: .given, method: method, expiresAt: end.map { now.advanced(byMilliseconds: $0) }
                    )
                }
            }
        }
        for state in ConsentState.allCases where state != .given {
            found.append { _ in ConsentFact(state: state) }
            // Method and end belong to a given consent; with another state they must not count.
            found.append { now in
                ConsentFact(
                    state: state, method: .writtenConsent, expiresAt: now.advanced(byMilliseconds: 1))
            }
        }
        found.append { _ in nil }
        return found
    }

    let consents: [Setting] = Self.consentWords().map { word in
        { @Sendable (facts: inout Facts) in facts.consent = word(Self.base(facts)) }
    }

    let purposes: [Setting] = Self.consentWords().map { word in
        { @Sendable (facts: inout Facts) in facts.purposeConsent = word(Self.base(facts)) }
    }

    /// What the recipient asked for besides.
    let requests: [Setting] = Self.consentWords().map { word in
        { @Sendable (facts: inout Facts) in facts.ownRequest = word(Self.base(facts)) }
    }

    /// What else permission hangs on: age, what the send replaces, and the phone's maker.
    let asides: [Setting] = {
        let fallbacks: [FallbackFact?] = [.notFallback, .replacesOwnSend, .mismatch, nil]
        let ages: [AgeFact?] = AgeFact.allCases + [nil]
        let platforms: [Platform?] = Platform.allCases + [nil]
        return fallbacks.flatMap { fallback in
            ages.flatMap { age in
                platforms.map { platform in
                    { @Sendable facts in
                        facts.fallback = fallback
                        facts.age = age
                        facts.platform = platform
                    }
                }
            }
        }
    }()

    // MARK: Choices

    /// The master switch with both preferences of the category.
    let switches: [Setting] = {
        let states: [PreferenceState?] = PreferenceState.allCases + [nil]
        return [true, false, nil].flatMap { (isEnabled: Bool?) in
            states.flatMap { account in
                states.map { destination in
                    { @Sendable facts in
                        facts.pushEnabled = isEnabled
                        facts.accountPreference = account
                        facts.destinationPreference = destination
                    }
                }
            }
        }
    }()

    /// Both preferences of the type.
    let types: [Setting] = {
        let states: [PreferenceState?] = PreferenceState.allCases + [nil]
        return states.flatMap { account in
            states.map { destination in
                { @Sendable facts in
                    facts.accountTypePreference = account
                    facts.destinationTypePreference = destination
                }
            }
        }
    }()

    /// Whether the recipient takes part in what the category is withheld from.
    let withholdings: [Setting] = Self.combinations(of: [
        Self.values([false, true, nil]) { $0.withheld = $1 }
    ])

    // MARK: Time, hours, caps

    /// Expiry, due time and quiet hours, each before, at and after what it is compared with. Milliseconds from `now`.
    let times: [Setting] = {
        let expiries: [Int64?] = [3_600_000, 0, -1, nil]
        let dues: [Int64?] = [0, -60_000, 1_800_000, 3_600_000, 3_600_001, nil]
        let hours: [@Sendable (Instant) -> QuietHoursFact?] = [
            { _ in .off }, { _ in .outside }, { _ in .zoneMissing }, { _ in nil },
            { .inside(endsAt: $0.advanced(byMilliseconds: 1_800_000)) },
            { .inside(endsAt: $0.advanced(byMilliseconds: 3_600_000)) },
            { .inside(endsAt: $0.advanced(byMilliseconds: 3_600_001)) },
            { .inside(endsAt: $0) },
            { .insideSomewhere(endsAt: $0.advanced(byMilliseconds: 1_800_000)) },
            { .insideSomewhere(endsAt: $0.advanced(byMilliseconds: 3_600_001)) },
        ]
        return expiries.flatMap { expiry in
            dues.flatMap { due in
                hours.map { quiet in
                    { @Sendable facts in
                        let now = Self.base(facts)
                        facts.expiry = expiry.map { now.advanced(byMilliseconds: $0) }
                        facts.due = due.map { now.advanced(byMilliseconds: $0) }
                        facts.quietHours = quiet(now)
                    }
                }
            }
        }
    }()

    let repetitions: [Setting] = Self.values([RepetitionFact.first, .alreadySent, .acknowledged, nil]) {
        $0.repetition = $1
    }

    /// None, one below the cap, the cap, one above it, and unknown, for the type, for its category and for everything.
    func counts(typeCap: Int, categoryCap: Int, everythingCap: Int) -> [Setting] {
        func around(_ cap: Int) -> [Int?] { [0, max(0, cap - 1), cap, cap + 1, nil] }
        // None is one below a cap of one, and nothing is one below no cap.
        let ofAll: [Int?] =
            everythingCap == 0 ? [0, nil] : [everythingCap - 1, everythingCap, everythingCap + 1, nil]
        return around(typeCap).flatMap { ofType in
            around(categoryCap).flatMap { ofCategory in
                ofAll.map { ofEverything in
                    { @Sendable facts in
                        facts.typeCount = ofType
                        facts.categoryCount = ofCategory
                        facts.everythingCount = ofEverything
                    }
                }
            }
        }
    }

    // MARK: The rest

    let params: [Setting] = Self.values([ParamsFact.valid, .invalid, nil]) { $0.params = $1 }

    /// The recipient and the destination.
    let ends: [Setting] = {
        let destinations: [DestinationFact?] =
            [.active] + DestinationFact.allCases.filter { $0 != .active } + [nil]
        return ([.registered, .unknown, nil] as [RecipientFact?]).flatMap { recipient in
            destinations.map { destination in
                { @Sendable facts in
                    facts.recipient = recipient
                    facts.destination = destination
                }
            }
        }
    }()

    let systems: [Setting] = Self.values(OSPermission.allCases + [nil]) { $0.osPermission = $1 }

    /// What leaves: the recipient's choice, the key, and whether each form fits.
    func contents(payloadByteCountMax most: Int) -> [Setting] {
        let levels: [PrivacyLevel?] = PrivacyLevel.allCases + [nil]
        let keys: [DeviceKeyFact?] = DeviceKeyFact.allCases + [nil]
        let lengths: [Int?] = [most, most + 1, nil]
        var sizes: [PayloadSizes?] = []
        for sealed in lengths {
            for generic in lengths {
                for full in lengths {
                    sizes.append(PayloadSizes(sealed: sealed, generic: generic, full: full))
                }
            }
        }
        sizes.append(nil)
        return levels.flatMap { level in
            keys.flatMap { key in
                sizes.map { size in
                    { @Sendable facts in
                        facts.privacy = level
                        facts.deviceKey = key
                        facts.sizes = size
                    }
                }
            }
        }
    }

    let flags: [Setting] = Self.values([true, false, nil]) { $0.criticalAlerts = $1 }
}
