/// Which gates a decision was asked: the first so many. Its trace has one result for each of them.
///
/// Gates are only ever added, at the end of the trace. A gate keeps its position for good; one that is given up answers
/// `not_applicable` from then on. So the length of a trace is its version, and an entry needs no other (decision SG-0035).
@usableFromInline
package struct GateRevision: Hashable, Comparable, Sendable {
    @usableFromInline package let gateCount: UInt8

    @inlinable
    package init(gateCount: UInt8) { self.gateCount = gateCount }

    /// The first thirteen, below which no trace is valid.
    @inlinable
    package static var first: GateRevision { GateRevision(gateCount: 13) }

    /// Every case of ``Gate``: what this build asks.
    @inlinable
    package static var newest: GateRevision { GateRevision(gateCount: 13) }

    @inlinable
    package static func < (left: GateRevision, right: GateRevision) -> Bool {
        left.gateCount < right.gateCount
    }
}

extension GateRevision {
    /// Why an entry with the results of so many gates, more than this build has, cannot be read.
    package static func newer(_ gateCount: Int) -> String {
        "a newer sendgate wrote it, with \(gateCount) gates where this build has \(newest.gateCount)"
    }

    /// The next step of a reader of such an entry.
    package static let newerHint = "use the version that the `start` entry before it names, or a newer one"
}
