/// What one gate found.
package struct GateResult: Hashable, Sendable {
    package enum Verdict: UInt8, Sendable, Hashable {
        case pass
        case fail
        case notApplicable
    }

    package var verdict: Verdict
    /// Set exactly when ``verdict`` is `fail`.
    package var reason: Reason?
    package var detail: Detail?

    package init(verdict: Verdict, reason: Reason?, detail: Detail?) {
        self.verdict = verdict
        self.reason = reason
        self.detail = detail
    }

    // Computed: a stored static would be fetched through a lazy initializer thirteen times a decision.
    package static var pass: GateResult { GateResult(verdict: .pass, reason: nil, detail: nil) }

    package static var notApplicable: GateResult {
        GateResult(verdict: .notApplicable, reason: nil, detail: nil)
    }

    package static func fail(_ reason: Reason, _ detail: Detail? = nil) -> GateResult {
        GateResult(verdict: .fail, reason: reason, detail: detail)
    }
}

/// The result of every gate, in order, held inline so that deciding allocates nothing.
package struct Trace: Hashable, Sendable {
    private var results: InlineArray<13, GateResult>

    /// - Parameter results: In the order of the gates.
    package init(_ results: InlineArray<13, GateResult>) { self.results = results }

    package init() {
        results = InlineArray(repeating: .notApplicable)
    }

    package subscript(gate: Gate) -> GateResult {
        get { results[Int(gate.rawValue)] }
        set { results[Int(gate.rawValue)] = newValue }
    }

    package static func == (left: Trace, right: Trace) -> Bool {
        Gate.allCases.allSatisfy { left[$0] == right[$0] }
    }

    package func hash(into hasher: inout Hasher) {
        for gate in Gate.allCases { hasher.combine(self[gate]) }
    }
}

/// How strongly the operating system is asked to interrupt (APNs `interruption-level`).
package enum Interruption: String, CaseIterable, Sendable, Hashable {
    case passive
    case active
    case timeSensitive = "time_sensitive"
    case critical
}

/// Things a decision wants remembered that are neither outcome nor reason.
package struct DecisionNotes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Critical was asked and permitted, but the device has no entitlement or grant: an OS limit, not a policy one.
    package static var criticalDowngraded: DecisionNotes { DecisionNotes(rawValue: 1) }
    /// A mandatory notice passed something the recipient had set.
    package static var mandatoryPassed: DecisionNotes { DecisionNotes(rawValue: 2) }

    /// It passed the recipient's quiet hours or a cap because the recipient asked for exactly that.
    package static var atOwnRequest: DecisionNotes { DecisionNotes(rawValue: 4) }

    /// Each note with its name in the trail, in a fixed order.
    package static let names: [(note: DecisionNotes, name: String)] = [
        (.criticalDowngraded, "critical_downgraded"), (.mandatoryPassed, "mandatory_passed"),
        (.atOwnRequest, "at_own_request"),
    ]
}

/// Outcome, reason and the result of every gate, for one send to one destination.
package struct Decision: Hashable, Sendable {
    package var outcome: Outcome
    package var reason: Reason
    package var detail: Detail?
    /// Earliest time the send may go on, for a `defer`.
    package var notBefore: Instant?
    /// What the payload may carry; `.never` unless the outcome is a promise.
    package var form: BodyForm
    package var interruption: Interruption
    package var notes: DecisionNotes
    package var trace: Trace

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
    package var decidingGate: Gate? {
        Gate.allCases.first { trace[$0].verdict == .fail && trace[$0].reason == reason }
    }
}
