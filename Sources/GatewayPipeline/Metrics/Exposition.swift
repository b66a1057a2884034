/// Samples on their way into the text format of Prometheus, version 0.0.4.
///
/// Families come out in the order of ``MetricFamily/all``, each once with its help and type, and only those that have a
/// sample. The samples of one keep the order in which they were added.
package struct Exposition: Sendable {
    private var lines: [String: String] = [:]

    package init() {}

    /// - Parameter values: Of the family's labels, in their order.
    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ value: MetricValue) {
        precondition(family.kind != .histogram, "`\(family.name)` is a histogram")
        write(family.name, of: family, family.labels.map(\.name), values, value)
    }

    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ count: UInt64) {
        add(family, values, .count(count))
    }

    package mutating func add(_ family: MetricFamily, _ values: [String] = [], _ integer: Int) {
        add(family, values, .integer(Int64(integer)))
    }

    package mutating func add(_ family: MetricFamily, _ values: [String] = [], isTrue: Bool) {
        add(family, values, .integer(isTrue ? 1 : 0))
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

/// How often something took how long.
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

    package mutating func add(_ milliseconds: Int64) {
        counts[bounds.firstIndex { milliseconds <= $0 } ?? bounds.count] += 1
        sumMilliseconds &+= milliseconds
    }
}
