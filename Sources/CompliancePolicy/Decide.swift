import BundleModel
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
/// - Returns: Outcome, reason and the result of every gate.
package func decide(
    _ request: AttestedRequest, given facts: Facts, under policy: CompiledPolicy
) -> Decision {
    decide(given: facts, under: policy.rule(for: request), of: policy)
}

/// The same for a rule that the policy gave already.
package func decide(given facts: Facts, under rule: CompiledRule, of policy: CompiledPolicy) -> Decision {
    decide(given: facts, in: policy.jurisdiction(of: facts, under: rule), under: rule)
}

extension Decision {
    /// The decision on facts that differ in their ``Facts/sizes`` alone from those that this one was made on.
    ///
    /// No gate but gate 12 reads a size, so where that one finds the same, every gate does.
    package func again(given facts: Facts, under rule: CompiledRule, of policy: CompiledPolicy) -> Decision {
        sizeGate(facts, rule, form: payloadForm(given: facts, under: rule)) == trace[.size]
            ? self : decide(given: facts, under: rule, of: policy)
    }
}

/// The same as an earlier build decided, which asked fewer gates. A fact that only a later gate reads is not missing.
///
/// - Parameters:
///   - revision: Which gates are asked; at most ``LaterGates/newest``.
///   - gates: Where the gates after the first thirteen come from.
package func decide(
    _ request: AttestedRequest, given facts: Facts, under policy: CompiledPolicy,
    asking revision: GateRevision, of gates: any LaterGates.Type = BuiltGates.self
) -> Decision {
    precondition(revision >= .first && revision <= gates.newest, "a gate that is not there was asked")
    let rule = policy.rule(for: request)
    return decide(
        given: facts, in: policy.jurisdiction(of: facts, under: rule), under: rule, asking: revision,
        of: gates)
}

extension CompiledRule {
    /// Whether gates 1 to 3 let a send through: the ones that look at nothing about the recipient.
    package func admits(params: ParamsFact) -> Bool {
        typeGate(params, self).reason == nil && callerGate(self).reason == nil
            && criticalGate(self).reason == nil
    }

    /// Until when gate 9 makes a send wait: its own time of day or the end of the quiet hours; `nil` when it does not.
    package func waitsUntil(given facts: Facts) -> Instant? {
        var notes = DecisionNotes(rawValue: 0)
        return CompliancePolicy.waitsUntil(hours(facts, noting: &notes), facts, self)
    }
}

/// The results of gates 6 to 8 for a category, or a type that may be muted alone, at a destination: they are the same for
/// every send.
package struct Standing: Hashable, Sendable {
    package var permission: GateResult
    package var preferences: GateResult
    package var osPermission: GateResult
}

extension CompiledPolicy {
    /// - Parameter type: A type that may be muted alone; `nil` for its category as a whole.
    package func standing(
        of category: GateVocabulary.Category, type: TypeID? = nil, on channel: Channel, given facts: Facts
    ) -> Standing {
        let rule =
            type.map {
                self.rule(
                    for: AttestedRequest(caller: .gateway, type: $0, channel: channel, critical: false))
            } ?? self.rule(of: category, on: channel)
        let jurisdiction = jurisdiction(of: facts, under: rule)
        return Standing(
            permission: permissionGate(facts, jurisdiction, rule),
            preferences: preferencesGate(facts, jurisdiction, rule),
            osPermission: osPermissionGate(facts, rule))
    }
}

/// The same, once the bundle has been asked everything it can say about the request and the place.
///
/// Allocates nothing. Every gate is asked, whatever the ones before it found; then the first that rejects
/// or suppresses decides, and only where there is none the first that defers or digests, so that nothing
/// is promised for later that would be refused then.
///
/// One function for every revision: of two, the optimiser would inline the smaller functions into neither.
package func decide(
    given facts: Facts, in jurisdiction: Jurisdiction, under rule: CompiledRule,
    asking revision: GateRevision = .newest, of gates: any LaterGates.Type = BuiltGates.self
) -> Decision {
    var notes = DecisionNotes(rawValue: 0)
    let form = payloadForm(given: facts, under: rule)
    let preferences = rule.passing(
        .mandatoryPassesPreferences, preferencesGate(facts, jurisdiction, rule), noting: &notes)
    let quietHours = rule.hours(facts, noting: &notes)
    let caps = rule.passing(
        .mandatoryPassesCaps,
        rule.asked(.ownRequestPassesCaps, capsGate(facts, rule), facts, noting: &notes),
        noting: &notes)
    let waitsUntil = waitsUntil(quietHours, facts, rule)
    var decision = Decision(
        outcome: .forward, reason: .allowed, detail: nil, notBefore: nil, form: form,
        interruption: rule.interruption, notes: notes, trace: Trace(.pass, of: .first))
    decision.record(expiryGate(facts, rule, waitsUntil: waitsUntil), of: .expiry)
    decision.record(typeGate(facts.params, rule), of: .type)
    decision.record(callerGate(rule), of: .caller)
    decision.record(criticalGate(rule), of: .critical)
    decision.record(fallbackGate(facts, jurisdiction, rule), of: .fallback)
    decision.record(destinationGate(facts, rule), of: .destination)
    decision.record(permissionGate(facts, jurisdiction, rule), of: .permission)
    decision.record(preferences, of: .preferences)
    decision.record(osPermissionGate(facts, rule), of: .osPermission)
    decision.record(quietHours, of: .quietHours)
    decision.record(caps, of: .caps)
    decision.record(deviceKeyGate(facts, rule), of: .deviceKey)
    decision.record(sizeGate(facts, rule, form: form), of: .size)
    // In the order in which they came, so that what an earlier gate refuses keeps its reason.
    while decision.trace.revision < revision {
        decision.add(
            gates.result(at: decision.trace.positions.upperBound, facts, jurisdiction, rule))
    }
    decision.conclude(waitsUntil: waitsUntil, given: facts, under: rule)
    return decision
}

extension Decision {
    /// Writes down what a gate found. Every gate has passed until it says otherwise, which costs one comparison.
    @inline(__always)
    fileprivate mutating func record(_ result: GateResult, of gate: Gate) {
        if case .pass = result.verdict { return }
        recordFailure(result, of: gate)
    }

    /// Never inlined: with all of them in one place the optimiser would keep the whole trace in registers it does not
    /// have.
    @inline(never)
    private mutating func recordFailure(_ result: GateResult, of gate: Gate) {
        trace[gate] = result
        settle(result)
    }

    /// Writes down what the next of the later gates found.
    fileprivate mutating func add(_ result: GateResult) {
        trace.append(result)
        settle(result)
    }

    @inline(__always)
    private mutating func settle(_ result: GateResult) {
        // A reason is there exactly when the gate failed. The first that rejects or suppresses decides; else the first
        // there is, for the gate whose generic text stands in comes after those that make a send wait.
        guard outcome.isPromise, let reason = result.reason else { return }
        let isFirst = if case .allowed = self.reason { true } else { false }
        guard isFirst || !reason.outcome.isPromise else { return }
        outcome = reason.outcome
        self.reason = reason
        detail = result.detail
    }

    /// Says what a promise carries; what is refused carries nothing.
    @inline(__always)
    fileprivate mutating func conclude(
        waitsUntil: Instant?, given facts: Facts, under rule: CompiledRule
    ) {
        guard outcome.isPromise else {
            form = .never
            interruption = .passive
            notes = DecisionNotes(rawValue: 0)
            return
        }
        if case .defer = outcome { notBefore = waitsUntil }
        if case .contested = facts.destination { notes.formUnion(.addressContested) }
        guard rule.isCriticalPermitted, case .push = rule.channel else { return }
        if facts.criticalAlerts == true {
            interruption = .critical
        } else {
            interruption = .timeSensitive
            notes.formUnion(.criticalDowngraded)
        }
    }
}

/// What the payload would carry.
///
/// `privacy` speaks of what others may see on a screen, so it narrows a clear text and leaves a sealed one
/// alone: inside the seal the app itself obeys it. Nor does it empty a letter that the law obliges us to write, or a text
/// that brings a code.
private func payloadForm(given facts: Facts, under rule: CompiledRule) -> BodyForm {
    switch rule.body {
    case .sealed:
        let fallsBack = rule.flags.contains(.genericWithoutKey)
        switch facts.deviceKey {
        case .usable, .sealedToRevoked, nil: return .sealed
        case .none?, .unconfirmed, .revoked: return fallsBack ? .generic : .sealed
        }
    case .full:
        if rule.isAlwaysInFull { return .full }
        // With an unknown choice, personal content stays off the screen; open content is personal to no one.
        switch (rule.sensitivity, facts.privacy) {
        case (.open, .full), (.open, .generic), (.open, nil), (.personal, .full): return .full
        case (.open, .hidden), (.personal, .generic), (.personal, .hidden), (.personal, nil), (.high, _):
            return .generic
        }
    case .generic: return .generic
    case .never: return .never
    }
}

extension CompiledRule {
    /// Gate 9, with what passes it.
    @inline(__always)
    fileprivate func hours(_ facts: Facts, noting notes: inout DecisionNotes) -> GateResult {
        passing(
            .mandatoryPassesQuietHours,
            asked(.ownRequestPassesQuietHours, quietHoursGate(facts, self), facts, noting: &notes),
            noting: &notes)
    }

    /// A mandatory notice passes what would have stopped it, and the decision says that it did. A fact
    /// that is not needed any more is not missing.
    fileprivate func passing(
        _ mark: RuleFlags, _ result: GateResult, noting notes: inout DecisionNotes
    ) -> GateResult {
        guard let reason = result.reason, flags.contains(mark) else { return result }
        if case .factMissing = reason { return .pass }
        notes.formUnion(.mandatoryPassed)
        return .pass
    }

    /// Quiet hours or a cap do not stop a send when the recipient asked to be reached all the same. A missing fact still
    /// does: whether the gate would have stopped the send is then unknown. A type with a time of day of its own still
    /// waits for it, because a request to be reached at any hour is about the hour alone.
    fileprivate func asked(
        _ mark: RuleFlags, _ result: GateResult, _ facts: Facts, noting notes: inout DecisionNotes
    ) -> GateResult {
        guard let reason = result.reason, flags.contains(mark), isAskedFor(facts) else { return result }
        if case .factMissing = reason { return result }
        if mark == .ownRequestPassesQuietHours, waitsForItsTime(facts, self) {
            return .fail(.scheduled, .sendTime)
        }
        notes.formUnion(.atOwnRequest)
        return .pass
    }
}
