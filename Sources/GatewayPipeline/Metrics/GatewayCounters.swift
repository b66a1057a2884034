package import GateSteps
package import GateVocabulary
import Synchronization

/// Counts what committed steps told, since the process started (decision SG-0026).
///
/// Tables of fixed size, by the places of closed values: a send that is decided costs a search along a dozen callers and one
/// addition, and allocates nothing but at a caller's first send. The number of series is bounded whatever is sent: callers
/// and types past their bound count as `other`.
package final class GatewayCounters: Sendable {
    private let tables = Mutex(CounterTables())

    package init() {}

    /// Counts what one commit made durable. Call it once for each commit, in their order.
    package func count(_ steps: some Sequence<Observations>) {
        tables.withLock { tables in
            for step in steps {
                guard let first = step.first else { continue }
                tables.count(first)
                for observation in step.more { tables.count(observation) }
            }
        }
    }

    /// Counts the observations that an entry of the trail gives.
    package func count(_ observations: [Observation]) {
        tables.withLock { tables in
            for observation in observations { tables.count(observation) }
        }
    }

    /// - Parameter mandatory: Types whose alarm counts from 0: a series that began with its first alarm would show no rise.
    package func write(to page: inout some SamplePage, mandatory: [TypeID] = []) {
        var tables = tables.withLock { $0 }
        for type in mandatory { tables.know(type) }
        tables.write(to: &page)
    }
}

/// Counts by the places of the values of several labels.
struct CountTable: Sendable {
    private let sizes: [Int]
    private var counts: [UInt64]

    init(_ sizes: [Int]) {
        self.sizes = sizes
        counts = [UInt64](repeating: 0, count: sizes.reduce(1, *))
    }

    /// - Parameter family: Its closed labels are the axes; see ``MetricFamily/axes``.
    init(of family: MetricFamily) { self.init(family.axes.map(\.count)) }

    mutating func add(_ first: Int, _ second: Int, _ third: Int = 0, _ fourth: Int = 0) {
        var place = first * sizes[1] + second
        if sizes.count > 2 { place = place * sizes[2] + third }
        if sizes.count > 3 { place = place * sizes[3] + fourth }
        counts[place] += 1
    }

    /// Every count that is not 0, with the places of its values.
    ///
    /// - Parameter zeros: Gives those that are, too: of a small table whose rises an alert watches.
    func forEach(withZeros zeros: Bool = false, _ body: (_ places: [Int], _ count: UInt64) -> Void) {
        for (index, count) in counts.enumerated() where count > 0 || zeros {
            var places = [Int](repeating: 0, count: sizes.count)
            var rest = index
            for axis in sizes.indices.reversed() {
                places[axis] = rest % sizes[axis]
                rest /= sizes[axis]
            }
            body(places, count)
        }
    }
}

/// Names that are given places as they come, so many at most.
struct NamePlaces<Name: Hashable & Sendable>: Sendable {
    private(set) var names: [Name] = []
    private let countMax: Int
    private var newest = 0

    init(countMax: Int) { self.countMax = countMax }

    /// - Returns: The name's place; ``otherPlace`` once all places are taken.
    mutating func place(of name: Name) -> Int {
        // Sends of one caller come together.
        if newest < names.count, names[newest] == name { return newest }
        if let known = names.firstIndex(of: name) {
            newest = known
            return known
        }
        guard names.count < countMax else { return countMax }
        names.append(name)
        newest = names.count - 1
        return newest
    }

    var otherPlace: Int { countMax }
}

private struct CounterTables: Sendable {
    private static let reasons = Reason.allCases
    private static let categories = Category.allCases
    private static let tiers = Tier.allCases
    private static let channels = Channel.allCases
    private static let causes = WithdrawalCause.allCases
    private static let results = HandOver.allCases
    private static let obstacles = HandOverObstacle.allCases
    private static let events = SendEventKind.allCases
    private static let means = DisabledBy.allCases
    private static let replyEffects = ReplyEffect.allCases
    private static let reviewCauses = ReviewCause.allCases
    private static let driftKinds = DriftKind.allCases
    private static let driftActions = DriftAction.allCases
    /// Where a type that is in no bundle is counted.
    private static let unregistered = categories.count

    private var callers = NamePlaces<CallerName>(countMax: MetricLabel.callerCountMax)
    /// By caller: reason, category or none, tier or none, channel. The last is of those past the bound.
    private var decisions: [CountTable?] = Array(repeating: nil, count: MetricLabel.callerCountMax + 1)
    private var shadowDecisions = CountTable(of: .shadowDecisions)
    private var redecisions = CountTable(of: .redecisions)
    private var withdrawals = CountTable(of: .withdrawals)
    private var types = NamePlaces<TypeID>(countMax: MetricLabel.typeCountMax)
    private var unreached = [UInt64](repeating: 0, count: MetricLabel.typeCountMax + 1)
    private var handOvers = CountTable(of: .handOvers)
    private var retries = CountTable(of: .retries)
    private var timeToAccept = tiers.map { _ in TimeHistogram(of: .timeToAccept) }
    private var receipts = CountTable(of: .receipts)
    private var taps = CountTable(of: .taps)
    private var timeToOpen = (0...categories.count).map { _ in TimeHistogram(of: .timeToOpen) }
    private var disables = CountTable(of: .disables)
    private var disablesAfterSend = CountTable(of: .disablesAfterSend)
    private var replies = CountTable(of: .replies)
    private var reviews = CountTable(of: .reviews)
    private var drifts = CountTable(of: .drifts)

    private static func place<Value: Equatable>(of value: Value, in values: [Value]) -> Int {
        // The last of the reasons is `allowed`, which most are.
        values.lastIndex(of: value)!
    }

    private static func place(_ category: Category?) -> Int {
        category.map { place(of: $0, in: categories) } ?? unregistered
    }
    private static func place(_ tier: Tier) -> Int { place(of: tier, in: tiers) }
    private static func place(_ channel: Channel) -> Int { place(of: channel, in: channels) }

    mutating func know(_ type: TypeID) { _ = types.place(of: type) }

    mutating func count(_ observation: Observation) {
        switch observation {
        case .decided(let reason, let type, let channel, let caller):
            let place = callers.place(of: caller)
            if decisions[place] == nil { decisions[place] = CountTable(of: .decisions) }
            decisions[place]!.add(
                Self.place(of: reason, in: Self.reasons), Self.place(type?.category),
                type.map { Self.place($0.tier) } ?? Self.tiers.count, Self.place(channel))
        case .shadowed(let reason, let category, let channel):
            shadowDecisions.add(
                Self.place(of: reason, in: Self.reasons), Self.place(category), Self.place(channel))
        case .decidedAgain(let reason, let category, let tier, let cause):
            redecisions.add(
                Self.place(of: reason, in: Self.reasons), Self.place(category), Self.place(tier),
                Self.place(of: cause, in: Self.causes))
        case .withdrawn(let cause, let category):
            withdrawals.add(Self.place(of: cause, in: Self.causes), Self.place(category))
        case .unreached(let type): unreached[types.place(of: type)] += 1
        case .ended(let result, let channel, let category, let tier, let waited):
            handOvers.add(
                Self.place(of: result, in: Self.results), Self.place(channel), Self.place(category),
                Self.place(tier))
            if let waited { timeToAccept[Self.place(tier)].add(waited) }
        case .retried(let obstacle, let channel, let tier):
            retries.add(
                Self.place(of: obstacle, in: Self.obstacles), Self.place(channel), Self.place(tier))
        case .receipt(let event, let category, let channel):
            receipts.add(
                Self.place(of: event, in: Self.events), Self.place(category), Self.place(channel))
        case .opened(let category, _, let after): timeToOpen[Self.place(category)].add(after)
        case .tapped(let category, let channel): taps.add(Self.place(category), Self.place(channel))
        case .disabled(let means, let category, let isAfterSend):
            let place = Self.place(of: means, in: Self.means)
            disables.add(place, Self.place(category))
            if isAfterSend, let category { disablesAfterSend.add(place, Self.place(category)) }
        case .reply(let effect, let channel):
            replies.add(Self.place(of: effect, in: Self.replyEffects), Self.place(channel))
        case .review(let cause, let category):
            reviews.add(Self.place(of: cause, in: Self.reviewCauses), Self.place(category))
        case .drift(let kind, let action):
            drifts.add(
                Self.place(of: kind, in: Self.driftKinds), Self.place(of: action, in: Self.driftActions))
        }
    }

    func write(to page: inout some SamplePage) {
        for (place, table) in decisions.enumerated() {
            guard let table else { continue }
            let caller = place < callers.names.count ? callers.names[place].text : MetricLabel.other
            page.add(table, as: .decisions, of: caller)
        }
        page.add(shadowDecisions, as: .shadowDecisions)
        page.add(redecisions, as: .redecisions)
        page.add(withdrawals, as: .withdrawals)
        for (place, count) in unreached.enumerated() where count > 0 || place < types.names.count {
            page.add(
                .unreached, [place < types.names.count ? types.names[place].text : MetricLabel.other], count)
        }
        page.add(handOvers, as: .handOvers, withZeros: true)
        page.add(retries, as: .retries)
        page.add(timeToAccept, as: .timeToAccept)
        page.add(receipts, as: .receipts)
        page.add(taps, as: .taps)
        page.add(timeToOpen, as: .timeToOpen)
        page.add(disables, as: .disables)
        page.add(disablesAfterSend, as: .disablesAfterSend, withZeros: true)
        page.add(replies, as: .replies)
        page.add(reviews, as: .reviews, withZeros: true)
        page.add(drifts, as: .drifts)
    }
}

extension SamplePage {
    /// Adds the counts of a table whose axes are the family's closed labels, in their order. An outcome is no axis: it follows from
    /// the reason behind it.
    ///
    /// - Parameters:
    ///   - zeros: See ``CountTable/forEach(withZeros:_:)``.
    ///   - caller: The last label, of a family that has one.
    mutating func add(
        _ table: CountTable, as family: MetricFamily, of caller: String? = nil, withZeros zeros: Bool = false
    ) {
        let axes = family.axes
        table.forEach(withZeros: zeros) { places, count in
            var values = zip(axes, places).map { $0[$1] }
            if family.labels[0].name == MetricLabel.outcome.name {
                values.insert(Reason.allCases[places[0]].outcome.name, at: 0)
            }
            if let caller { values.append(caller) }
            add(family, values, count)
        }
    }

    /// Adds a histogram for each value of the family's label.
    fileprivate mutating func add(_ histograms: [TimeHistogram], as family: MetricFamily) {
        for (value, histogram) in zip(family.axes[0], histograms) where !histogram.isEmpty {
            add(family, [value], histogram)
        }
    }
}

extension MetricFamily {
    /// The values of the labels by which a table counts.
    fileprivate var axes: [[String]] {
        labels.compactMap { label in
            guard case .closed(let values) = label.values, label.name != MetricLabel.outcome.name else {
                return nil
            }
            return values
        }
    }
}
