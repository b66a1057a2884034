package import GateVocabulary

/// Decides whether one send may go on to one destination.
///
/// Pure: equal arguments give equal decisions on every machine, which is what lets the audit trail replay
/// them. Denies when a rule denies, and when a rule lacks a fact it needs.
///
/// - Parameters:
///   - request: Asked by a caller the kernel vouched for.
///   - facts: One consistent snapshot. `facts.now` is the only clock a rule may see.
///   - policy: A bundle that was checked; its digest is recorded beside the decision.
/// - Returns: Outcome, reason and the result of all thirteen gates.
package func decide(
    _ request: AttestedRequest, given facts: Facts, under policy: CompiledPolicy
) -> Decision {
    let behaviour = policy.behaviour(for: request)
    return decide(given: facts, in: policy.territory(of: facts, under: behaviour), under: behaviour)
}

/// The same, once the bundle has been asked everything it can say about the request and the place.
///
/// Allocates nothing. Every gate is asked, whatever the ones before it found; then the first that rejects
/// or suppresses decides, and only where there is none the first that defers or digests, so that nothing
/// is promised for later that would be refused then.
package func decide(
    given facts: Facts, in territory: Territory, under behaviour: Behaviour
) -> Decision {
    var notes: DecisionNotes = []
    var trace = Trace()
    let form = payloadForm(given: facts, under: behaviour)
    let hours = quietHoursGate(facts, behaviour)
    let quietHours = behaviour.passing(.mandatoryPassesQuietHours, hours, noting: &notes)

    trace[.expiry] = expiryGate(facts, waiting: quietHours.reason == .quietHoursDeferred)
    trace[.type] = typeGate(facts, behaviour)
    trace[.caller] = callerGate(behaviour)
    trace[.critical] = criticalGate(behaviour)
    trace[.fallback] = fallbackGate(facts, behaviour)
    trace[.destination] = destinationGate(facts)
    trace[.permission] = permissionGate(facts, territory, behaviour)
    trace[.preferences] = behaviour.passing(
        .mandatoryPassesPreferences, preferencesGate(facts, territory, behaviour), noting: &notes)
    trace[.osPermission] = osPermissionGate(facts, behaviour)
    trace[.quietHours] = quietHours
    trace[.caps] = behaviour.passing(.mandatoryPassesCaps, capsGate(facts, behaviour), noting: &notes)
    trace[.deviceKey] = deviceKeyGate(facts, behaviour)
    trace[.size] = sizeGate(facts, behaviour, form: form)

    return conclude(trace, notes: notes, form: form, given: facts, under: behaviour)
}

/// Finds the gate that decides, and says what a promise carries.
private func conclude(
    _ trace: Trace, notes: DecisionNotes, form: BodyForm, given facts: Facts, under behaviour: Behaviour
) -> Decision {
    var deciding = GateResult.pass
    var outcome = Outcome.forward
    for index in UInt8(0)..<UInt8(13) {
        let result = trace[Gate(rawValue: index)!]
        guard result.verdict == .fail, let reason = result.reason else { continue }
        let here = reason.outcome
        if !here.isPromise {
            return Decision(
                outcome: here, reason: reason, detail: result.detail, notBefore: nil, form: .never,
                interruption: .passive, notes: [], trace: trace)
        }
        // `forward` here is generic_only: it decides only when nothing waits.
        if deciding.verdict == .pass || (outcome == .forward && here != .forward) {
            deciding = result
            outcome = here
        }
    }
    var notBefore: Instant?
    if outcome == .defer, case .inside(let end) = facts.quietHours { notBefore = end }
    var notes = notes
    var interruption = behaviour.interruption
    if behaviour.isCriticalPermitted, behaviour.channel == .push {
        if facts.criticalAlerts == true {
            interruption = .critical
        } else {
            interruption = .timeSensitive
            notes.insert(.criticalDowngraded)
        }
    }
    return Decision(
        outcome: outcome, reason: deciding.reason ?? .allowed, detail: deciding.detail,
        notBefore: notBefore, form: form, interruption: interruption, notes: notes, trace: trace)
}

/// What the payload would carry.
///
/// `privacy` speaks of what others may see, so it narrows a clear text and leaves a sealed one alone:
/// inside the seal the app itself obeys it.
private func payloadForm(given facts: Facts, under behaviour: Behaviour) -> BodyForm {
    switch behaviour.body {
    case .sealed:
        let fallsBack = behaviour.marks.contains(.genericWithoutKey)
        guard let key = facts.deviceKey, key != .usable, fallsBack else { return .sealed }
        return .generic
    case .full:
        // Nobody's choice known: personal content stays off the screen, open content says nothing of anybody.
        let privacy = facts.privacy ?? (behaviour.sensitivity == .open ? .full : .generic)
        switch (behaviour.sensitivity, privacy) {
        case (.open, .full), (.open, .generic), (.personal, .full): return .full
        case (.open, .hidden), (.personal, .generic), (.personal, .hidden), (.high, _): return .generic
        }
    case .generic: return .generic
    case .never: return .never
    }
}

extension Behaviour {
    /// A mandatory notice passes what would have stopped it, and the decision says that it did. A fact
    /// that nobody needs to know any more is not missing.
    fileprivate func passing(
        _ mark: Marks, _ result: GateResult, noting notes: inout DecisionNotes
    ) -> GateResult {
        guard result.verdict == .fail, marks.contains(mark) else { return result }
        if result.reason != .factMissing { notes.insert(.mandatoryPassed) }
        return .pass
    }
}
