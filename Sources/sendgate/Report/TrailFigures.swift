import AuditTrail
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import Histogram

/// What the entries of a trail come to within a period: counted by the very tables that `/metrics` is written from.
///
/// Entries before the period are read for what they say of messages that end in it, and for the people. As large as the
/// outbox was, as the messages that ``ProviderOutcomes`` remembers, and as what is known of all recipients where those are
/// counted too.
struct TrailFigures {
    struct Review: Hashable {
        var at: Instant
        var category: Category
        /// Who switched off within 24 hours of a send, on that day until then.
        var count: Int64
        /// On a usual day.
        var usual: Int64
    }

    let period: ReportPeriod
    /// `nil` leaves people out.
    private var people: EvidenceFold?
    private var fold = TrailObservations()
    let counters = GatewayCounters()
    /// By day and outcome; days are counted from 1970, in UTC.
    private(set) var days: [Int64: [Outcome: UInt64]] = [:]
    private(set) var timeToOpen: [Category: Durations] = [:]
    private(set) var timeToAccept: [Tier: Durations] = [:]
    private(set) var reviews: [Review] = []
    var providerOutcomes = ProviderOutcomes()
    /// Entries in the period.
    private(set) var entryCount: UInt64 = 0
    private(set) var first: Instant?
    private(set) var last: Instant?
    /// The bundle in force at the end.
    private var policy: PolicyDigest?

    init(_ period: ReportPeriod, countsPeople: Bool) {
        self.period = period
        people = countsPeople ? EvidenceFold() : nil
    }

    /// Entries are given in their order, from the first of the trail.
    ///
    /// - Parameter isCounted: `false` of one that may be about a message whose send was pruned: it is followed as far as it goes.
    /// - Throws: What ``TrailObservations/observe(_:policies:)`` does.
    mutating func add(
        _ bytes: [UInt8], isCounted: Bool = true, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        guard isCounted else {
            do {
                _ = try fold.observe(bytes, policies: policies)
            } catch TrailObservationError.unknownMessage {}
            return try know(try TrailEntry(reading: bytes).kind, bytes, policies)
        }
        let (time, kind, observations) = try fold.observe(bytes, policies: policies)
        guard period.until.map({ time < $0 }) ?? true else { return }
        try know(kind, bytes, policies)
        guard period.contains(time) else { return }
        add(observations, at: time)
        if kind == .review { try addReview(bytes) }
        if kind == .receipt { providerOutcomes.add(try TrailEntry(reading: bytes).knownBody()) }
    }

    /// One entry of the period.
    mutating func add(_ observations: [Observation], at time: Instant) {
        entryCount += 1
        first = first ?? time
        last = time
        counters.count(observations)
        for observation in observations { count(observation, at: time) }
    }

    /// People, and the bundle that says what they would get.
    private mutating func know(
        _ kind: EntryKind, _ bytes: [UInt8], _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        switch kind {
        case .start: policy = try TrailEntry(reading: bytes).knownBody(StartEntry.self).policy
        case .policy: policy = try TrailEntry(reading: bytes).knownBody(PolicyEntry.self).policy
        case .recipient, .device, .address, .permissionPrompt, .deviceKey, .consent, .preference, .erasure,
            .imported:
            try people?.apply(bytes, policies: policies)
        default: break
        }
    }

    private mutating func count(_ observation: Observation, at time: Instant) {
        switch observation {
        case .decided(let reason, _, _, _):
            days[Int64(time.seconds) / 86_400, default: [:]][reason.outcome, default: 0] += 1
        case .opened(let category, _, let after):
            guard let category else { return }
            timeToOpen[category, default: Durations()].add(after)
        case .ended(_, _, _, let tier, let waited):
            if let waited { timeToAccept[tier, default: Durations()].add(waited) }
        default: break
        }
    }

    private mutating func addReview(_ bytes: [UInt8]) throws {
        let entry = try TrailEntry(reading: bytes)
        let review: ReviewEntry = try entry.knownBody()
        guard let category = review.category.known(Category.self) else { return }
        reviews.append(
            Review(at: entry.time, category: category, count: review.count, usual: review.usual))
    }

    /// Everything that was counted, and the people as they were at the end of the period.
    func samples(policies: (PolicyDigest) throws -> CompiledPolicy?) throws -> MetricSamples {
        var samples = MetricSamples()
        counters.write(to: &samples)
        guard let people, let policy = try policy.flatMap(policies), let now = period.until ?? last else {
            return samples
        }
        let loading = FactsLoading(policy: policy, now: now)
        var counts = OptInCounts()
        for subject in people.people.keys {
            if let person = people.snapshot(of: subject) { counts.add(person, facts: loading) }
        }
        counts.write(to: &samples)
        return samples
    }
}

/// A stretch of time: from ``since`` on, before ``until``.
struct ReportPeriod: Hashable {
    /// `nil`: from the first entry.
    var since: Instant?
    /// `nil`: to the last entry.
    var until: Instant?

    func contains(_ time: Instant) -> Bool {
        since.map { time >= $0 } ?? true && until.map { time < $0 } ?? true
    }
}

/// How long something took, to three digits, in bounded memory.
struct Durations {
    /// Up to 31 days; what took longer counts as that.
    private static let highestMilliseconds: UInt64 = 31 * 86_400_000
    private var histogram = Histogram<UInt64>(
        highestTrackableValue: Self.highestMilliseconds, numberOfSignificantValueDigits: .three)
    private(set) var count: UInt64 = 0

    mutating func add(_ milliseconds: Int64) {
        histogram.record(min(UInt64(max(0, milliseconds)), Self.highestMilliseconds))
        count += 1
    }

    /// `nil` where nothing was measured.
    func milliseconds(atPercentile percentile: Double) -> Int64? {
        count > 0 ? Int64(histogram.valueAtPercentile(percentile)) : nil
    }
}
