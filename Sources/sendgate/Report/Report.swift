import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import GatewayPipeline

/// A part of a whole, as two counts: a rate of nothing is no rate.
struct Share: Hashable {
    var part: UInt64
    var of: UInt64

    /// Hundredths of a per cent, rounded to the nearest; `nil` of nothing.
    var perTenThousand: UInt64? { of > 0 ? (part * 10_000 + of / 2) / of : nil }

    /// `97.34 %`, or `–`.
    var text: String {
        guard let rate = perTenThousand else { return "–" }
        let hundredths = "\(100 + rate % 100)".dropFirst()
        return "\(rate / 100).\(hundredths) %"
    }

    var json: JSONValue {
        var object: JSONObject = ["part": .integer(Int64(part)), "of": .integer(Int64(of))]
        object["per_ten_thousand"] = perTenThousand.map { .integer(Int64($0)) }
        return .object(object)
    }
}

/// How notifications did in a period. Every figure has the meaning that the handbook's page "Metrics" gives it.
struct Report {
    /// Fewer accepted messages than 98 in 100 are an alarm (`alerts.yaml`).
    static let acceptedPerTenThousandMin: UInt64 = 9_800
    /// Below so many a single one says nothing.
    static let acceptedCountMin: UInt64 = 50
    /// One in twenty may take longer than its target.
    static let inTimePerTenThousandMin: UInt64 = 9_500

    struct Latency: Hashable {
        var count: UInt64
        var medianMilliseconds: Int64?
        var p90Milliseconds: Int64?
    }

    struct Day: Hashable {
        /// Of its beginning, in UTC.
        var start: Instant
        var outcomes: [Outcome: UInt64]
        var name: String { String(start.rfc3339.prefix(10)) }
    }

    var period: ReportPeriod
    var first: Instant?
    var last: Instant?
    var entryCount: UInt64
    /// By label of ``MetricFamily/decisions`` and value.
    var decisions: [(label: String, counts: [(value: String, count: UInt64)])]
    var decisionCount: UInt64
    var redecisions: [(value: String, count: UInt64)]
    var handOvers: [(value: String, count: UInt64)]
    var receipts: [(value: String, count: UInt64)]
    /// By channel, in the order of channels.
    var accepted: [(channel: Channel, share: Share)]
    var acceptedInAll: Share
    /// By channel: of the messages that providers spoke of, the share that they accepted, as receipts report it. Each
    /// message counts once.
    var acceptedByProviders: [(channel: Channel, share: Share)]
    var tapThrough: [(category: Category, share: Share)]
    var timeToOpen: [(category: Category, latency: Latency)]
    /// What was accepted within the target of its tier.
    var timeToAccept: [(tier: Tier, latency: Latency, inTime: Share)]
    var disables: [(value: String, count: UInt64)]
    /// Of the sends of the category that were forwarded.
    var disablesAfterSend: [(category: Category, share: Share)]
    var unreached: [(value: String, count: UInt64)]
    var reviews: [TrailFigures.Review]
    /// `nil` where people were not counted.
    var people: (count: UInt64, optedIn: [(category: Category, channel: Channel, share: Share)])?
    var days: [Day]
    var alarms: [String] = []

    /// How soon the next hop is to have a message (S3), in milliseconds.
    static func targetMilliseconds(of tier: Tier) -> Int64 {
        switch tier {
        case .critical: 10_000
        case .important: 60_000
        case .informational: 600_000
        case .promotional: 1_800_000
        }
    }

    init(_ figures: TrailFigures, _ samples: MetricSamples) {
        let ranked = Self.ranked
        period = figures.period
        (first, last, entryCount) = (figures.first, figures.last, figures.entryCount)
        decisions = ["outcome", "reason", "category", "tier", "channel", "caller"].map { label in
            (label, ranked(samples.sums(.decisions, by: label)))
        }
        decisionCount = samples.sum(.decisions)
        redecisions = ranked(samples.sums(.redecisions, by: "outcome"))
        handOvers = ranked(samples.sums(.handOvers, by: "result"))
        receipts = ranked(samples.sums(.receipts, by: "event"))
        func accepted(_ filter: [String: String]) -> Share {
            let taken = filter.merging(["result": HandOver.handedOver.rawValue]) { own, _ in own }
            return Share(
                part: samples.sum(.handOvers, where: taken), of: samples.sum(.handOvers, where: filter))
        }
        self.accepted = Channel.allCases.map { ($0, accepted(["channel": $0.rawValue])) }
        acceptedInAll = accepted([:])
        acceptedByProviders = Self.acceptedByProviders(figures, samples)
        func forwarded(_ category: Category) -> UInt64 {
            samples.sum(.decisions, where: ["outcome": "forward", "category": category.rawValue])
        }
        tapThrough = Category.allCases.map { category in
            let handedOver = samples.sum(
                .handOvers,
                where: ["result": HandOver.handedOver.rawValue, "category": category.rawValue])
            return (
                category,
                Share(part: samples.sum(.taps, where: ["category": category.rawValue]), of: handedOver)
            )
        }
        timeToOpen = Category.allCases.map { ($0, Latency(figures.timeToOpen[$0])) }
        timeToAccept = Tier.allCases.map { tier in
            let histogram = samples.histogram(.timeToAccept, tier.rawValue)
            return (
                tier, Latency(figures.timeToAccept[tier]),
                Share(
                    part: histogram.count(upTo: Self.targetMilliseconds(of: tier)), of: histogram.count)
            )
        }
        disables = ranked(samples.sums(.disables, by: "means"))
        disablesAfterSend = Category.allCases.map { category in
            (
                category,
                Share(
                    part: samples.sum(.disablesAfterSend, where: ["category": category.rawValue]),
                    of: forwarded(category))
            )
        }
        unreached = ranked(samples.sums(.unreached, by: "type"))
        reviews = figures.reviews
        people = Self.people(samples)
        days = figures.days.sorted { $0.key < $1.key }.map {
            Day(start: Instant(seconds: $0.key * 86_400), outcomes: $0.value)
        }
        alarms = findAlarms()
    }

    private static func ranked(_ counts: [String: UInt64]) -> [(value: String, count: UInt64)] {
        counts.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { ($0.key, $0.value) }
    }

    private static func acceptedByProviders(
        _ figures: TrailFigures, _ samples: MetricSamples
    ) -> [(channel: Channel, share: Share)] {
        func reported(_ event: SendEventKind, _ channel: Channel) -> UInt64 {
            samples.sum(.receipts, where: ["event": event.rawValue, "channel": channel.rawValue])
                - figures.providerOutcomes.uncountedCount(of: event, on: channel)
        }
        return Channel.allCases.map { channel in
            let taken = reported(.acceptedByProvider, channel)
            let refused = [SendEventKind.failed, .tokenGone, .expired].map { reported($0, channel) }
            return (channel, Share(part: taken, of: taken + refused.reduce(0, +)))
        }
    }

    private static func people(
        _ samples: MetricSamples
    ) -> (count: UInt64, optedIn: [(category: Category, channel: Channel, share: Share)])? {
        let persons = samples.sum(.persons)
        guard persons > 0 else { return nil }
        let optedIn = Category.allCases.flatMap { category in
            Channel.allCases.map { channel in
                (
                    category: category, channel: channel,
                    share: Share(
                        part: samples.sum(
                            .optedInPersons,
                            where: ["category": category.rawValue, "channel": channel.rawValue]),
                        of: samples.sum(.reachablePersons, where: ["channel": channel.rawValue]))
                )
            }
        }
        return (persons, optedIn)
    }

    /// Lines that were crossed: those of `alerts.yaml` that a period can cross, and every review.
    private func findAlarms() -> [String] {
        var alarms: [String] = []
        func isTooLittle(_ share: Share) -> Bool {
            guard let rate = share.perTenThousand else { return false }
            return share.of > Self.acceptedCountMin && rate < Self.acceptedPerTenThousandMin
        }
        for (channel, share) in accepted where isTooLittle(share) {
            alarms.append("\(share.text) of \(channel.rawValue) messages were accepted, fewer than 98 in 100")
        }
        for (channel, share) in acceptedByProviders where isTooLittle(share) {
            alarms.append(
                "providers accepted \(share.text) of the \(channel.rawValue) messages they spoke of, fewer than 98 in 100"
            )
        }
        for (tier, latency, share) in timeToAccept {
            guard let rate = share.perTenThousand, rate < Self.inTimePerTenThousandMin else { continue }
            alarms.append(
                "\(share.text) of \(tier.rawValue) messages were accepted within \(Self.words(Self.targetMilliseconds(of: tier))), fewer than 95 in 100 (\(latency.count) in all)"
            )
        }
        for (type, count) in unreached {
            alarms.append("\(count) times a notice of type `\(type)` that the law demands reached nobody")
        }
        for review in reviews {
            alarms.append(
                "\(review.count) switched `\(review.category.rawValue)` off on \(review.at.rfc3339.prefix(10)) within 24 hours of a send of it, \(review.usual) on a usual day"
            )
        }
        return alarms
    }

    /// `1.5 s`, `3 min`, `2 h`, `4 d`: two digits at least.
    static func words(_ milliseconds: Int64) -> String {
        func words(_ unit: Int64, _ name: String) -> String {
            let tenths = (milliseconds * 10 + unit / 2) / unit
            return tenths < 100 && tenths % 10 > 0
                ? "\(tenths / 10).\(tenths % 10) \(name)" : "\((tenths + 5) / 10) \(name)"
        }
        switch milliseconds {
        case ..<1_000: return "\(milliseconds) ms"
        case ..<60_000: return words(1_000, "s")
        case ..<3_600_000: return words(60_000, "min")
        case ..<172_800_000: return words(3_600_000, "h")
        default: return words(86_400_000, "d")
        }
    }
}

extension Report.Latency {
    fileprivate init(_ durations: Durations?) {
        self.init(
            count: durations?.count ?? 0, medianMilliseconds: durations?.milliseconds(atPercentile: 50),
            p90Milliseconds: durations?.milliseconds(atPercentile: 90))
    }

    var json: JSONObject {
        var object: JSONObject = ["count": .integer(Int64(count))]
        object["median_milliseconds"] = medianMilliseconds.map { .integer($0) }
        object["p90_milliseconds"] = p90Milliseconds.map { .integer($0) }
        return object
    }
}

// MARK: For a machine

extension Report {
    var json: JSONObject {
        func counts(_ counts: [(value: String, count: UInt64)]) -> JSONValue {
            .object(JSONObject(counts.map { ($0.value, .integer(Int64($0.count))) }))
        }
        var object: JSONObject = [
            "entries": .integer(Int64(entryCount)),
            "decisions": .object(
                JSONObject(
                    [("total", .integer(Int64(decisionCount)))]
                        + decisions.map { ("by_\($0.label)", counts($0.counts)) })),
            "redecisions": counts(redecisions), "hand_overs": counts(handOvers),
            "accepted": .object(
                JSONObject(
                    [("all", acceptedInAll.json)] + accepted.map { ($0.channel.rawValue, $0.share.json) })),
            "accepted_by_provider": .object(
                JSONObject(acceptedByProviders.map { ($0.channel.rawValue, $0.share.json) })),
            "receipts": counts(receipts),
            "tap_through": .object(
                JSONObject(tapThrough.map { ($0.category.rawValue, $0.share.json) })),
            "time_to_open": .object(
                JSONObject(timeToOpen.map { ($0.category.rawValue, .object($0.latency.json)) })),
            "time_to_accept": .object(
                JSONObject(
                    timeToAccept.map { tier, latency, inTime in
                        var object = latency.json
                        object["target_milliseconds"] = .integer(Self.targetMilliseconds(of: tier))
                        object["in_time"] = inTime.json
                        return (tier.rawValue, JSONValue.object(object))
                    })),
            "disables": counts(disables),
            "disables_after_send": .object(
                JSONObject(disablesAfterSend.map { ($0.category.rawValue, $0.share.json) })),
            "mandatory_unreached": counts(unreached),
            "reviews": .array(
                reviews.map { review in
                    [
                        "at": .string(review.at.rfc3339), "category": .string(review.category.rawValue),
                        "count": .integer(review.count), "usual": .integer(review.usual),
                    ]
                }),
            "days": .array(
                days.map { day in
                    .object(
                        JSONObject(
                            [("day", .string(day.name))]
                                + Outcome.allCases.map {
                                    ($0.name, .integer(Int64(day.outcomes[$0] ?? 0)))
                                }))
                }), "alarms": .array(alarms.map { .string($0) }),
        ]
        object["since"] = (period.since ?? first).map { .string($0.rfc3339) }
        object["until"] = (period.until ?? last).map { .string($0.rfc3339) }
        if let people {
            object["persons"] = .integer(Int64(people.count))
            object["opted_in"] = .object(
                JSONObject(
                    Category.allCases.map { category in
                        let row = people.optedIn.filter { $0.category == category }
                        return (
                            category.rawValue,
                            JSONValue.object(JSONObject(row.map { ($0.channel.rawValue, $0.share.json) }))
                        )
                    }))
        }
        return object
    }
}
