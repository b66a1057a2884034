/// One family of `/metrics`, declared once: the text, the handbook's table and the tests follow from it.
///
/// Names follow the conventions of Prometheus ("Metric and label naming"): the prefix `sendgate_`, base units as the last
/// word, `_total` for what only rises.
package struct MetricFamily: Sendable {
    /// The metric types of Prometheus that are used here.
    package enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    package let name: String
    package let kind: Kind
    package let help: String
    package let labels: [MetricLabel]
    /// Upper bounds of a histogram's buckets, in milliseconds, rising; empty for any other kind.
    package let boundsMilliseconds: [Int64]

    init(
        _ kind: Kind, _ name: String, _ help: String, by labels: [MetricLabel] = [],
        boundsMilliseconds: [Int64] = []
    ) {
        precondition((kind == .histogram) != boundsMilliseconds.isEmpty, "`\(name)` has the wrong bounds")
        precondition(help.hasSuffix("."), "the help of `\(name)` is no sentence")
        self.kind = kind
        self.name = "sendgate_\(name)"
        self.help = help
        self.labels = labels
        self.boundsMilliseconds = boundsMilliseconds
    }
}

/// One label and every value that it can have. None of them is a person's, or was chosen by a caller.
package struct MetricLabel: Sendable {
    /// Where the values of a label come from, which bounds their number.
    package enum Values: Sendable {
        case closed([String])
        /// Names of the bundles in force since the start; names over the bound count as `other`.
        case registered(what: String, countMax: Int)
        /// A family with one series.
        case one(what: String)
    }

    package let name: String
    package let values: Values

    init(_ name: String, _ values: Values) {
        self.name = name
        self.values = values
    }

    init(_ name: String, _ values: [String]) { self.init(name, .closed(values)) }
}

/// A sample's value. Times are milliseconds inside and seconds outside; no floating point is in between.
package enum MetricValue: Sendable, Hashable {
    case count(UInt64)
    case integer(Int64)
    case milliseconds(Int64)

    /// The value in the text format.
    var text: String {
        switch self {
        case .count(let count): return "\(count)"
        case .integer(let integer): return "\(integer)"
        case .milliseconds(let milliseconds):
            let sign = milliseconds < 0 ? "-" : ""
            let (seconds, rest) = milliseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
            guard rest > 0 else { return "\(sign)\(seconds)" }
            var digits = "\(1000 + rest)".dropFirst()
            while digits.last == "0" { digits.removeLast() }
            return "\(sign)\(seconds).\(digits)"
        }
    }
}
