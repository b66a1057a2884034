package import GateVocabulary

/// What a decision does, in the terms in which a statute forbids it.
package struct DecisionEffects: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    // Computed: the proof asks for them some ten million times a second, and a stored one is fetched through
    // its lazy initializer.

    /// The send goes out, now, later or in a summary.
    package static var promises: DecisionEffects { DecisionEffects(rawValue: 1 << 0) }
    /// The send goes out now.
    package static var forwards: DecisionEffects { DecisionEffects(rawValue: 1 << 1) }
    /// The send does not go out now.
    package static var withholds: DecisionEffects { DecisionEffects(rawValue: 1 << 2) }
    package static var stopsForPreferences: DecisionEffects { DecisionEffects(rawValue: 1 << 3) }
    /// Drops it or lets it wait, for the hour.
    package static var stopsForHours: DecisionEffects { DecisionEffects(rawValue: 1 << 4) }
    package static var stopsForCaps: DecisionEffects { DecisionEffects(rawValue: 1 << 5) }
    /// The text leaves in clear.
    package static var showsInFull: DecisionEffects { DecisionEffects(rawValue: 1 << 6) }
    package static var seals: DecisionEffects { DecisionEffects(rawValue: 1 << 7) }
    /// Carries the OS flag that breaks through Do Not Disturb.
    package static var raisesFlag: DecisionEffects { DecisionEffects(rawValue: 1 << 8) }
    /// Gives `no_marketing_opt_in` as its reason, which is the wrong one wherever European law applies.
    package static var deniesEuropeanLaw: DecisionEffects { DecisionEffects(rawValue: 1 << 9) }
    /// Promises the send for a moment after its expiry.
    package static var promisesTooLate: DecisionEffects { DecisionEffects(rawValue: 1 << 10) }
    /// Outcome and reason do not belong together, or the trace does not show who decided.
    package static var isUnexplained: DecisionEffects { DecisionEffects(rawValue: 1 << 11) }
    /// One gate's result depends on a fact that only another gate is declared to read.
    package static var looksElsewhere: DecisionEffects { DecisionEffects(rawValue: 1 << 12) }

    /// The constant or public words leave in place of the text.
    package static var shortens: DecisionEffects { DecisionEffects(rawValue: 1 << 13) }

    package static var count: Int { 14 }

    /// - Parameter expiry: Of the facts that were decided on.
    package init(of decision: Decision, expiry: Instant?) {
        var found: DecisionEffects = []
        switch decision.outcome {
        case .forward: found = [.promises, .forwards]
        case .defer:
            found = [.promises, .withholds]
            if let expiry, let start = decision.notBefore, start.milliseconds <= expiry.milliseconds {
                break
            }
            found.formUnion(.promisesTooLate)
        case .digest: found = [.promises, .withholds]
        case .suppress, .reject: found = .withholds
        }
        switch decision.reason {
        case .pushDisabled, .userPreference: found.formUnion(.stopsForPreferences)
        case .quietHoursDropped, .quietHoursZoneMissing, .quietHoursDeferred, .scheduled:
            found.formUnion(.stopsForHours)
        case .frequencyCap, .digested: found.formUnion(.stopsForCaps)
        case .noMarketingOptIn: found.formUnion(.deniesEuropeanLaw)
        default: break
        }
        switch decision.form {
        case .full: found.formUnion(.showsInFull)
        case .sealed: found.formUnion(.seals)
        case .generic: found.formUnion(.shortens)
        case .never: break
        }
        if case .critical = decision.interruption { found.formUnion(.raisesFlag) }
        if !Self.isExplained(decision) { found.formUnion(.isUnexplained) }
        self = found
    }

    private static func isExplained(_ decision: Decision) -> Bool {
        let carries = if case .never = decision.form { false } else { true }
        let promises: Bool
        switch decision.outcome {
        case .forward, .defer, .digest: promises = true
        case .suppress, .reject: promises = false
        }
        // What is refused carries nothing, and what is promised carries something.
        guard carries == promises else { return false }
        switch (decision.outcome, decision.reason.outcome) {
        case (.forward, .forward), (.defer, .defer), (.digest, .digest), (.suppress, .suppress),
            (.reject, .reject):
            return true
        default: return false
        }
    }
}
