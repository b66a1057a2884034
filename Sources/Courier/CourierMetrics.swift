package import CourierModel
import Synchronization

/// One family of the courier's `/metrics`, declared once: the text and the handbook's table follow from it.
package struct CourierMetric: Sendable, Hashable {
    package enum Kind: String, Sendable { case counter, gauge, histogram }

    package let name: String
    package let kind: Kind
    package let labels: [String]
    package let help: String

    private init(_ kind: Kind, _ name: String, _ labels: [String], _ help: String) {
        self.name = "sendgate_courier_\(name)"
        self.kind = kind
        self.labels = labels
        self.help = help
    }

    static let deliveries = CourierMetric(
        .counter, "deliveries_total", ["service", "app", "outcome"], "Orders answered, by their outcome.")
    static let seconds = CourierMetric(
        .histogram, "delivery_seconds", ["service"],
        "From an order to its answer, the provider's time included.")
    static let underWay = CourierMetric(.gauge, "deliveries_under_way", [], "Orders without an answer.")
    static let circuits = CourierMetric(
        .gauge, "circuit_open", ["service", "app"],
        "Whether the provider cannot take messages of the app for now.")
    static let alarms = CourierMetric(
        .gauge, "misconfigured", ["service", "app"],
        "Whether the configuration or a credential keeps the app's messages from going.")
    static let reloads = CourierMetric(
        .counter, "credential_reloads_total", ["result"],
        "Providers, and webhooks together, whose credentials were read again.")
    static let inbound = CourierMetric(
        .counter, "inbound_requests_total", ["status"], "Requests of webhooks, by the class of the answer.")

    /// The metrics in the order of `/metrics`.
    package static let all = [deliveries, seconds, underWay, circuits, alarms, reloads, inbound]
}

/// Counters of the courier since its start.
///
/// No label has anything of a person. An app that is not configured counts as `other`.
package final class CourierMetrics: Sendable {
    /// Upper bounds of the buckets, in milliseconds: a provider's usual answer, the gateway's ten seconds.
    static let boundsMilliseconds: [Int64] = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

    private struct Durations {
        var counts = [UInt64](repeating: 0, count: CourierMetrics.boundsMilliseconds.count + 1)
        var sumMilliseconds: Int64 = 0
    }

    private struct State {
        /// Counts by metric, then by the values of its labels.
        var counts: [CourierMetric: [[String]: UInt64]] = [:]
        var durations: [ProviderLane.Service: Durations] = [:]
    }

    private let lanes: Set<ProviderLane>
    private let state = Mutex(State())

    /// - Parameter lanes: Those of the configuration, whose apps have series of their own.
    package init(lanes: some Sequence<ProviderLane>) { self.lanes = Set(lanes) }

    package func delivered(_ outcome: DeliveryOutcome, by lane: ProviderLane, milliseconds: Int64) {
        state.withLock { state in
            Self.rise(.deliveries, labels(lane) + [outcome.name], &state)
            var durations = state.durations[lane.service] ?? Durations()
            let place = Self.boundsMilliseconds.firstIndex { milliseconds <= $0 }
            durations.counts[place ?? Self.boundsMilliseconds.count] += 1
            durations.sumMilliseconds += milliseconds
            state.durations[lane.service] = durations
        }
    }

    package func reloaded(isRefused: Bool) {
        state.withLock { Self.rise(.reloads, [isRefused ? "refused" : "done"], &$0) }
    }

    package func inbound(status: Int) {
        state.withLock { Self.rise(.inbound, ["\(status / 100)xx"], &$0) }
    }

    private static func rise(_ metric: CourierMetric, _ labels: [String], _ state: inout State) {
        state.counts[metric, default: [:]][labels, default: 0] += 1
    }

    private func labels(_ lane: ProviderLane) -> [String] {
        [lane.service.rawValue, lanes.contains(lane) ? lane.app ?? "" : "other"]
    }

    // MARK: The text format of Prometheus, version 0.0.4

    package func exposition(_ desk: DeliveryDesk) -> String {
        let state = state.withLock { $0 }
        let open = desk.openCircuits
        var text = ""
        for metric in CourierMetric.all {
            text += "# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            switch metric {
            case .underWay: text += "\(metric.name) \(desk.underWayCount)\n"
            case .circuits, .alarms:
                var samples: [[String]: Int] = [:]
                for lane in lanes.union(open.keys) {
                    let isRaised = open[lane].map { metric == .circuits || $0.isConfiguration } ?? false
                    samples[labels(lane), default: 0] |= isRaised ? 1 : 0
                }
                for values in samples.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
                    text += "\(metric.name)\(Self.braces(metric.labels, values)) \(samples[values]!)\n"
                }
            case .seconds:
                for service in ProviderLane.Service.allCases {
                    guard let durations = state.durations[service] else { continue }
                    text += Self.histogram(metric, service.rawValue, durations)
                }
            default:
                let counts = state.counts[metric] ?? [:]
                for values in counts.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
                    text += "\(metric.name)\(Self.braces(metric.labels, values)) \(counts[values]!)\n"
                }
            }
        }
        return text
    }

    private static func histogram(_ metric: CourierMetric, _ service: String, _ durations: Durations)
        -> String
    {
        var text = ""
        var count: UInt64 = 0
        for (index, inBucket) in durations.counts.enumerated() {
            count += inBucket
            let bound = index < boundsMilliseconds.count ? seconds(boundsMilliseconds[index]) : "+Inf"
            text += "\(metric.name)_bucket\(braces(["service", "le"], [service, bound])) \(count)\n"
        }
        let labels = braces(["service"], [service])
        text += "\(metric.name)_sum\(labels) \(seconds(durations.sumMilliseconds))\n"
        return text + "\(metric.name)_count\(labels) \(count)\n"
    }

    /// Milliseconds as seconds, without a floating point number in between.
    private static func seconds(_ milliseconds: Int64) -> String {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1_000)
        guard rest > 0 else { return "\(seconds)" }
        var digits = "\(1_000 + rest)".dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "\(seconds).\(digits)"
    }

    private static func braces(_ names: [String], _ values: [String]) -> String {
        guard !names.isEmpty else { return "" }
        let pairs = zip(names, values).map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                .replacing("\n", with: "\\n")
            return "\(name)=\"\(escaped)\""
        }
        return "{\(pairs.joined(separator: ","))}"
    }
}
