// The types that a decision reads, and those it is made of, are used in another module, twenty million times in a proof.
// Without `@inlinable` each small member would be a call, and together they took longer than the gates; a type needs
// `@usableFromInline` for its members to be inlinable, and whatever its conformances name needs it then as well. The same
// holds in Axes, Facts, Gate, Instant and Reasons.

/// Outcome, reason and the result of every gate, for one send to one destination.
@usableFromInline
package struct Decision: Hashable, Sendable {
    @usableFromInline package var outcome: Outcome
    @usableFromInline package var reason: Reason
    @usableFromInline package var detail: Detail?
    /// Earliest time the send may go on, for a `defer`.
    @usableFromInline package var notBefore: Instant?
    /// What the payload may carry; `.never` unless the outcome is a promise.
    @usableFromInline package var form: BodyForm
    @usableFromInline package var interruption: Interruption
    @usableFromInline package var notes: DecisionNotes
    @usableFromInline package var trace: Trace

    @inlinable
    package init(
        outcome: Outcome, reason: Reason, detail: Detail?, notBefore: Instant?, form: BodyForm,
        interruption: Interruption, notes: DecisionNotes, trace: Trace
    ) {
        self.outcome = outcome
        self.reason = reason
        self.detail = detail
        self.notBefore = notBefore
        self.form = form
        self.interruption = interruption
        self.notes = notes
        self.trace = trace
    }

    /// The lowest gate that did not pass with the decision's reason; `nil` when every gate passed.
    package var decidingGate: Gate? { decidingPosition.flatMap { Gate(rawValue: UInt8($0)) } }

    /// The same by its position in the trace.
    package var decidingPosition: Int? {
        trace.positions.first {
            trace[position: $0].verdict == .fail && trace[position: $0].reason == reason
        }
    }
}

/// What one gate found.
@usableFromInline
package struct GateResult: Hashable, Sendable {
    /// Whether the gate let the send pass.
    @usableFromInline
    package enum Verdict: UInt8, Sendable, Hashable {
        case pass
        case fail
        case notApplicable

        package var name: String {
            switch self {
            case .pass: "pass"
            case .fail: "fail"
            case .notApplicable: "not_applicable"
            }
        }
    }

    @usableFromInline package var verdict: Verdict
    /// Set exactly when ``verdict`` is `fail`.
    @usableFromInline package var reason: Reason?
    @usableFromInline package var detail: Detail?

    @inlinable
    package init(verdict: Verdict, reason: Reason?, detail: Detail?) {
        self.verdict = verdict
        self.reason = reason
        self.detail = detail
    }

    // Computed: a stored static would be fetched through a lazy initializer thirteen times a decision.
    @inlinable
    package static var pass: GateResult { GateResult(verdict: .pass, reason: nil, detail: nil) }

    @inlinable
    package static var notApplicable: GateResult {
        GateResult(verdict: .notApplicable, reason: nil, detail: nil)
    }

    @inlinable
    package static func fail(_ reason: Reason, _ detail: Detail? = nil) -> GateResult {
        GateResult(verdict: .fail, reason: reason, detail: detail)
    }
}

/// The result of every gate that was asked, in order, held inline so that deciding allocates nothing.
@usableFromInline
package struct Trace: Hashable, Sendable {
    /// Room for gates to come. No stored byte depends on it.
    package static let gateCountMax = 16

    /// Beyond ``gateCount``, and only there, every result means nothing and is ``GateResult/notApplicable``.
    @usableFromInline
    var results: InlineArray<16, GateResult>
    @usableFromInline
    var gateCount: UInt8

    /// - Parameters:
    ///   - result: Of every gate.
    ///   - revision: Which gates there are.
    @inlinable
    @inline(__always)
    package init(_ result: GateResult = .notApplicable, of revision: GateRevision = .newest) {
        results = InlineArray(repeating: result)
        for position in Int(revision.gateCount)..<16 { results[position] = .notApplicable }
        gateCount = revision.gateCount
    }

    /// Which gates were asked.
    @inlinable
    package var revision: GateRevision { GateRevision(gateCount: gateCount) }

    /// The positions of the gates that were asked.
    @inlinable
    package var positions: Range<Int> { 0..<Int(gateCount) }

    /// A gate that was not asked is not applicable; only one that was is set.
    @inlinable
    package subscript(gate: Gate) -> GateResult {
        get { results[Int(gate.rawValue)] }
        set { results[Int(gate.rawValue)] = newValue }
    }

    /// - Parameter position: One of ``positions``.
    @inlinable
    package subscript(position position: Int) -> GateResult {
        get { results[position] }
        set {
            precondition(position < Int(gateCount), "a gate that was not asked has no result")
            results[position] = newValue
        }
    }

    /// Adds the result of the next gate.
    ///
    /// - Precondition: There are fewer than ``gateCountMax``.
    package mutating func append(_ result: GateResult) {
        results[Int(gateCount)] = result
        gateCount += 1
    }

    @inlinable
    package static func == (left: Trace, right: Trace) -> Bool {
        left.gateCount == right.gateCount
            && left.positions.allSatisfy { left.results[$0] == right.results[$0] }
    }

    @usableFromInline
    package func hash(into hasher: inout Hasher) {
        for position in positions { hasher.combine(results[position]) }
    }
}

/// How strongly the operating system is asked to interrupt (APNs `interruption-level`).
@usableFromInline
package enum Interruption: String, CaseIterable, Sendable, Hashable {
    case passive
    case active
    case timeSensitive = "time_sensitive"
    case critical
}

/// Things a decision wants remembered that are neither outcome nor reason.
@usableFromInline
package struct DecisionNotes: OptionSet, Hashable, Sendable {
    @usableFromInline package let rawValue: UInt8

    @inlinable
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Critical was asked and permitted, but the device has no entitlement or grant: an OS limit, not a policy one.
    @inlinable
    package static var criticalDowngraded: DecisionNotes { DecisionNotes(rawValue: 1) }
    /// A mandatory notice passed something the recipient had set.
    @inlinable
    package static var mandatoryPassed: DecisionNotes { DecisionNotes(rawValue: 2) }

    /// The send passed the recipient's quiet hours or a cap because the recipient asked for exactly that.
    @inlinable
    package static var atOwnRequest: DecisionNotes { DecisionNotes(rawValue: 4) }

    /// Another person has verified the number or mailbox since: a type that is not confidential goes there all the same.
    @inlinable
    package static var addressContested: DecisionNotes { DecisionNotes(rawValue: 8) }

    /// Each note with its name in the trail, in a fixed order.
    package static let names: [(note: DecisionNotes, name: String)] = [
        (.criticalDowngraded, "critical_downgraded"), (.mandatoryPassed, "mandatory_passed"),
        (.atOwnRequest, "at_own_request"), (.addressContested, "address_contested"),
    ]
}
