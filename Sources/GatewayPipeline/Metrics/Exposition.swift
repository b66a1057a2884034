/// A target for samples of declared families.
package protocol SamplePage {
    /// - Parameter values: Of the family's labels, in their order.
    mutating func add(_ family: MetricFamily, _ values: [String], _ value: MetricValue)
    mutating func add(_ family: MetricFamily, _ values: [String], _ histogram: TimeHistogram)
}

extension SamplePage {
    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ count: UInt64) {
        add(family, values, .count(count))
    }

    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ integer: Int) {
        add(family, values, .integer(Int64(integer)))
    }

    package mutating func add(_ family: MetricFamily, _ values: [String] = [], isTrue: Bool) {
        add(family, values, .integer(isTrue ? 1 : 0))
    }
}

/// Samples as values, to be added up instead of printed.
package struct MetricSamples: SamplePage, Sendable {
    private var counts: [String: [(values: [String], count: UInt64)]] = [:]
    private var histograms: [String: [(values: [String], histogram: TimeHistogram)]] = [:]

    package init() {}

    package mutating func add(_ family: MetricFamily, _ values: [String], _ value: MetricValue) {
        guard case .count(let count) = value else { return }
        precondition(values.count == family.labels.count, "`\(family.name)` has other labels")
        counts[family.name, default: []].append((values, count))
    }

    package mutating func add(_ family: MetricFamily, _ values: [String], _ histogram: TimeHistogram) {
        histograms[family.name, default: []].append((values, histogram))
    }

    /// Counts of a family added up by one of its labels.
    ///
    /// - Parameter filter: Values that other labels must have.
    package func sums(
        _ family: MetricFamily, by label: String, where filter: [String: String] = [:]
    ) -> [String: UInt64] {
        let names = family.labels.map(\.name)
        guard let place = names.firstIndex(of: label) else {
            preconditionFailure("`\(family.name)` has no label `\(label)`")
        }
        var sums: [String: UInt64] = [:]
        for (values, count) in counts[family.name] ?? [] where Self.matches(values, names, filter) {
            sums[values[place], default: 0] += count
        }
        return sums
    }

    package func sum(_ family: MetricFamily, where filter: [String: String] = [:]) -> UInt64 {
        let names = family.labels.map(\.name)
        return (counts[family.name] ?? []).reduce(0) {
            $0 + (Self.matches($1.values, names, filter) ? $1.count : 0)
        }
    }

    /// The histogram of one value of the family's only label; empty where nothing was counted.
    package func histogram(_ family: MetricFamily, _ value: String) -> TimeHistogram {
        histograms[family.name]?.first { $0.values == [value] }?.histogram ?? TimeHistogram(of: family)
    }

    private static func matches(
        _ values: [String], _ names: [String], _ filter: [String: String]
    ) -> Bool {
        filter.allSatisfy { name, wanted in
            guard let place = names.firstIndex(of: name) else {
                preconditionFailure("there is no label `\(name)`")
            }
            return values[place] == wanted
        }
    }
}

/// Samples on their way into the text format of Prometheus, version 0.0.4.
///
/// Families come out in the order of ``MetricFamily/all``, each once with its help and type, and only those that have a
/// sample. The samples of one keep the order in which they were added.
package struct Exposition: SamplePage, Sendable {
    private var lines: [String: String] = [:]

    package init() {}

    /// - Parameter values: Of the family's labels, in their order.
    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ value: MetricValue) {
        precondition(family.kind != .histogram, "`\(family.name)` is a histogram")
        write(family.name, of: family, family.labels.map(\.name), values, value)
    }

    /// A histogram: buckets that include those below them, the sum, and how many there were.
    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ histogram: TimeHistogram) {
        precondition(family.boundsMilliseconds == histogram.bounds, "`\(family.name)` has other bounds")
        let names = family.labels.map(\.name)
        var count: UInt64 = 0
        for (index, inBucket) in histogram.counts.enumerated() {
            count += inBucket
            let bound =
                index < histogram.bounds.count
                ? MetricValue.milliseconds(histogram.bounds[index]).text : "+Inf"
            write("\(family.name)_bucket", of: family, names + ["le"], values + [bound], .count(count))
        }
        write("\(family.name)_sum", of: family, names, values, .milliseconds(histogram.sumMilliseconds))
        write("\(family.name)_count", of: family, names, values, .count(count))
    }

    private mutating func write(
        _ name: String, of family: MetricFamily, _ labels: [String], _ values: [String], _ value: MetricValue
    ) {
        precondition(labels.count == values.count, "`\(family.name)` has other labels")
        var line = name
        if !labels.isEmpty {
            line += "{"
            for (index, label) in labels.enumerated() {
                if index > 0 { line += "," }
                line += "\(label)=\"\(Self.escaped(values[index]))\""
            }
            line += "}"
        }
        lines[family.name, default: ""] += "\(line) \(value.text)\n"
    }

    /// A label's value between its quotes.
    static func escaped(_ value: String) -> String {
        guard value.utf8.contains(where: { $0 == 0x5C || $0 == 0x22 || $0 == 0x0A }) else { return value }
        return value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    package var text: String {
        var text = ""
        for family in MetricFamily.all {
            guard let samples = lines[family.name] else { continue }
            text += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
            text += samples
        }
        return text
    }
}

/// Counts of durations, by bucket.
package struct TimeHistogram: Sendable, Hashable {
    /// Milliseconds, rising.
    package let bounds: [Int64]
    /// One for each bound and one for all above; a time on a bound belongs below it.
    package private(set) var counts: [UInt64]
    package private(set) var sumMilliseconds: Int64 = 0

    package init(bounds: [Int64]) {
        self.bounds = bounds
        counts = [UInt64](repeating: 0, count: bounds.count + 1)
    }

    package init(of family: MetricFamily) { self.init(bounds: family.boundsMilliseconds) }

    package var isEmpty: Bool { counts.allSatisfy { $0 == 0 } }
    package var count: UInt64 { counts.reduce(0, +) }

    /// How many durations were at most this long.
    ///
    /// - Parameter bound: One of ``bounds``.
    package func count(upTo bound: Int64) -> UInt64 {
        guard let place = bounds.firstIndex(of: bound) else {
            preconditionFailure("\(bound) ms is no bound of the histogram")
        }
        return counts[...place].reduce(0, +)
    }

    package mutating func add(_ milliseconds: Int64) {
        counts[bounds.firstIndex { milliseconds <= $0 } ?? bounds.count] += 1
        sumMilliseconds &+= milliseconds
    }
}
