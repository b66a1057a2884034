import CanonicalJSON
package import GateRecords
import GateVocabulary

/// Compares how many gates the decisions of a trail were asked.
///
/// The length of a trace chooses the gates that a replay asks, and the gateway writes it: a gateway could leave a gate out of
/// one decision and say so in its trace. But every build of one version asks all its decisions the same gates. So all traces
/// under `start` entries of one version have one length, across restarts, and a trace with another length is reported.
package struct GateRuns: Sendable {
    /// Two entries of one version that were decided by different gates.
    package struct Break: Hashable, Sendable {
        package var gateCount: Int
        package var earlierIndex: UInt64
        package var earlierGateCount: Int
    }

    /// An entry with a decision, and how many gates that was asked.
    private typealias Decided = (index: UInt64, gateCount: Int)

    /// The newest under the present version.
    private var last: Decided?
    private var version: String?
    /// The first under each version.
    private var firsts: [String: Decided] = [:]

    package init() {}

    /// - Parameter entry: The next one.
    package mutating func follow(_ entry: TrailEntry) -> Break? {
        if entry.kind == .start {
            version = (try? entry.knownBody(StartEntry.self))?.version
            last = version.flatMap { firsts[$0] }
        }
        for count in entry.gateCounts {
            if let last, last.gateCount != count {
                return Break(
                    gateCount: count, earlierIndex: last.index, earlierGateCount: last.gateCount)
            }
            if last == nil, let version { firsts[version] = (entry.index, count) }
            last = (entry.index, count)
        }
        return nil
    }
}

/// An entry that this build cannot read, or not all of it. It is no damage: a newer sendgate wrote it.
package struct NewerEntry: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Sign: Hashable, Sendable {
        /// It holds the results of so many gates, more than this build has.
        case gates(Int)
        /// The `start` before it names a later version than that of this build, which does not know its kind.
        case version(BuildVersion, reader: BuildVersion)
        /// Its envelope says a later format.
        case format(Int64)
    }

    package var index: UInt64
    package var sign: Sign

    package init(index: UInt64, sign: Sign) { (self.index, self.sign) = (index, sign) }

    package var message: String {
        let what =
            switch sign {
            case .gates(let count): GateRevision.newer(count)
            case .version(let writer, let reader):
                "a newer sendgate wrote it, version \(writer) where this build is \(reader)"
            case .format(let format): TrailEntryError.newerFormat(format).message
            }
        return "entry \(index) cannot be read: \(what)"
    }

    package var description: String { message }

    /// The next step.
    package static let hint = GateRevision.newerHint
}

/// The version of a build, as a `start` entry names it: three numbers.
package struct BuildVersion: Comparable, Hashable, Sendable, CustomStringConvertible {
    private let numbers: [Int]

    /// - Returns: `nil` for a text of another form, which is later than none.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part in
            part.utf8.allSatisfy { $0.isDigit } ? Int(part) : nil
        }
        guard parts.count == 3, numbers.count == 3 else { return nil }
        self.numbers = numbers
    }

    package var description: String { numbers.map { "\($0)" }.joined(separator: ".") }

    package static func < (left: Self, right: Self) -> Bool {
        left.numbers.lexicographicallyPrecedes(right.numbers)
    }
}

extension TrailEntry {
    /// How many gates each of its decisions was asked, as far as it has any: the lengths of their traces.
    var gateCounts: [Int] {
        let deliveries = members["deliveries"]?.arrayValue ?? []
        let decisions = deliveries.map { $0["decision"] } + [members["decision"]]
        return decisions.compactMap { $0?["trace"]?.arrayValue?.count }
    }

    /// Set when it holds the results of gates that this build does not have.
    package var newer: NewerEntry? {
        guard let most = gateCounts.max(), most > GateRevision.newest.gateCount else { return nil }
        return NewerEntry(index: index, sign: .gates(most))
    }

    /// Whether a violation is what an added gate brings with it: a trace with more results, or a fact that this build does not
    /// know (decision SG-0035). Anything else is wrong in a newer entry as well.
    func isOfAddedGate(_ violation: Violation) -> Bool {
        var tokens = violation.pointer?.tokens[...] ?? []
        var members = members
        if tokens.count == 4, tokens[0] == "deliveries", let place = Int(tokens[1]),
            let delivery = members["deliveries"]?.arrayValue?[place].objectValue
        {
            members = delivery
            tokens = tokens.dropFirst(2)
        }
        guard tokens.count == 2, let outer = tokens.first, let inner = tokens.last else { return false }
        switch outer {
        case "decision":
            let trace = members["decision"]?["trace"]
            return inner == "trace" && trace.map { Self.laterTrace.violations(of: $0).isEmpty } ?? false
        case "facts": return !Facts.objectShape.members.contains { CodeUnits.equal($0.name, inner) }
        default: return false
        }
    }

    /// The trace of a build with more gates than this one. A result is as short there as here.
    private static let laterTrace = Shape.list(
        of: .text(byteCountMax: GateResult.nameByteCountMax),
        countMin: Int(GateRevision.newest.gateCount) + 1, countMax: Int(UInt8.max))
}
