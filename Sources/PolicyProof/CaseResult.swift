package import BundleModel
package import CompliancePolicy
package import GateVocabulary

/// What came out of a case.
package struct CaseResult: Hashable, Sendable {
    package var example: PolicyCase
    package var decision: Decision
    /// One per element of ``PolicyCase/later`` that was still waiting then.
    package var laterDecisions: [Decision]
    /// One line per difference, e.g. "reason is `allowed`, expected `no_gdpr_consent`"; empty when it passed.
    package var differences: [String]

    package var passed: Bool { differences.isEmpty }
}

extension PolicyCase {
    package func run(under policy: CompiledPolicy) -> CaseResult {
        let first = decide(request, given: facts, under: policy)
        var differences = expected.differences(from: first)
        var decisions: [Decision] = []
        for step in self.later {
            let moment = step.facts.now?.rfc3339 ?? "an unknown time"
            let last = decisions.last ?? first
            guard last.outcome.isWaiting else {
                differences.append(
                    "at \(moment) nothing waits any more: the outcome was `\(last.outcome.name)`")
                break
            }
            let decision = decide(request, given: step.facts, under: policy)
            decisions.append(decision)
            differences += step.expected.differences(from: decision).map { "at \(moment) \($0)" }
        }
        return CaseResult(
            example: self, decision: first, laterDecisions: decisions, differences: differences)
    }
}

extension PolicyCase.Expectation {
    /// What of a decision is not as it should be.
    func differences(from decision: Decision) -> [String] {
        var differences: [String] = []
        func compare(_ what: String, _ found: String?, _ wanted: String?) {
            guard let wanted, found != wanted else { return }
            differences.append("\(what) is \(found.map { "`\($0)`" } ?? "absent"), expected `\(wanted)`")
        }
        compare("outcome", decision.outcome.name, outcome.name)
        compare("reason", decision.reason.rawValue, reason.rawValue)
        compare("detail", decision.detail?.rawValue, detail?.rawValue)
        compare("not_before", decision.notBefore?.rfc3339, notBefore?.rfc3339)
        compare("form", decision.form.rawValue, form?.rawValue)
        compare("interruption", decision.interruption.rawValue, interruption?.rawValue)
        if let notes, notes != decision.notes {
            differences.append("notes are \(decision.notes.namesSet), expected \(notes.namesSet)")
        }
        for gate in Gate.allCases {
            guard let wanted = gates[gate] else { continue }
            let found = decision.trace[gate]
            if found.verdict != wanted {
                differences.append("gate \(gate.name) says `\(found.name)`, expected `\(wanted.name)`")
            }
        }
        return differences
    }
}

/// Which gates, reasons, details and outcomes a set of cases has reached.
package struct CaseCoverage: Hashable, Sendable {
    package var outcomes: Set<Outcome> = []
    package var reasons: Set<Reason> = []
    package var details: Set<ReasonAndDetail> = []
    /// Gates that said no in at least one case.
    package var gates: Set<Gate> = []
    package var types: Set<TypeID> = []

    package struct ReasonAndDetail: Hashable, Sendable {
        package var reason: Reason
        package var detail: Detail
    }

    package init(_ results: some Sequence<CaseResult>) {
        for result in results {
            for decision in [result.decision] + result.laterDecisions { add(decision) }
            types.insert(result.example.request.type)
        }
    }

    private mutating func add(_ decision: Decision) {
        outcomes.insert(decision.outcome)
        reasons.insert(decision.reason)
        if let detail = decision.detail { details.insert(.init(reason: decision.reason, detail: detail)) }
        for gate in Gate.allCases where decision.trace[gate].verdict == .fail { gates.insert(gate) }
    }

    /// Reasons no case decided by, in the order of the gates.
    package var missingReasons: [Reason] { Reason.allCases.filter { !reasons.contains($0) } }
    package var missingOutcomes: [Outcome] { Outcome.allCases.filter { !outcomes.contains($0) } }
    package var missingGates: [Gate] { Gate.allCases.filter { !gates.contains($0) } }
}
