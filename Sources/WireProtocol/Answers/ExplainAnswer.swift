package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// What the gate would say to a send, gate by gate, and what it looked at.
package struct ExplainAnswer: ShownRecord {
    /// What would become of the send at one destination.
    package struct Delivery: ShownRecord {
        package var destination: String?
        /// `nil` for a caller that is shown no more than the answer to its own send would say: then gates, form, interruption
        /// and notes are left out too.
        package var facts: Facts?
        package var decision: Decision
        /// One sentence a support agent can read out.
        package var sentence: String
        /// Who can make the next attempt succeed, as a sentence; `nil` unless a language was asked for.
        package var fix: String?

        package init(
            destination: String?, facts: Facts?, decision: Decision, sentence: String, fix: String? = nil
        ) {
            (self.destination, self.facts, self.decision) = (destination, facts, decision)
            (self.sentence, self.fix) = (sentence, fix)
        }

        package static let shownName = "ExplainedDelivery"
        package static let shownMeans = "The decision for one destination, with everything it looked at."

        package static let fields = Fields<Self> { fields in
            fields.joined("destination", \.destination, "The device or address.")
            fields.joined("detail", \.decision.detail, Words.detail)
            fields.joined("explanation", \.sentence, Words.explanation)
            fields.joined("facts", \.facts, "What was known; \(Words.evidence)")
            fields.joined("fix", \.fix, Words.fix)
            fields.joined("form", "What the payload may carry; \(Words.evidence)") { $0.evidence?.form }
            fields.joined(
                "gates", "Every gate, in order; \(Words.evidence)",
                shape: .list(
                    of: FoundByGate.shownShape, countMin: Gate.allCases.count, countMax: Gate.allCases.count)
            ) { $0.gates }
            fields.joined("interruption", "How the device is asked to interrupt; \(Words.evidence)") {
                $0.evidence?.interruption
            }
            // Facts that were given may lie beyond the calendar, and what follows from them.
            fields.joined(
                "not_before", \.decision.notBefore, "RFC 3339; for a `defer`.", shape: .anyText)
            fields.joined(
                "notes", "Other things worth knowing; \(Words.evidence)",
                shape: .list(of: .choice(DecisionNotes.names.map(\.name)), countMax: 8)
            ) { $0.evidence?.notes.namesSet }
            fields.joined("outcome", \.decision.outcome, Words.outcome)
            fields.joined("reason", \.decision.reason, Words.reason)
            fields.joined("who_can_fix", Words.whoCanFix) { $0.decision.reason.whoCanFix($0.decision.detail) }
        }

        private var evidence: Decision? { facts == nil ? nil : decision }

        private var gates: [FoundByGate]? {
            evidence.map { decision in
                Gate.allCases.map { FoundByGate(gate: $0, result: decision.trace[$0]) }
            }
        }
    }

    package var policy: PolicyDigest
    package var request: AttestedRequest
    package var deliveries: [Delivery]
    /// Pointers into `params` that do not fit the type; empty when they do, or were given as a fact.
    package var paramsViolations: [String]

    /// - Parameter deliveries: At least one.
    package init(
        policy: PolicyDigest, request: AttestedRequest, deliveries: [Delivery],
        paramsViolations: [String] = []
    ) {
        precondition(!deliveries.isEmpty, "a send was explained without a single decision")
        self.policy = policy
        self.request = request
        self.deliveries = deliveries
        self.paramsViolations = paramsViolations
    }

    /// The delivery that gives the top level.
    private var best: Delivery { Self.best(of: deliveries) }

    /// - Parameter deliveries: At least one.
    package static func best(of deliveries: [Delivery]) -> Delivery {
        let ranked = deliveries.map { delivery in
            (
                delivery: delivery,
                answer: SendAnswer.Delivery(destination: delivery.destination, decision: delivery.decision)
            )
        }
        return ranked.min { $0.answer.precedes($1.answer) }?.delivery ?? deliveries[0]
    }

    package static let shownName = "Explanation"
    package static let shownMeans = "What the gate would decide. Nothing was sent, counted or held."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "deliveries", \.deliveries, "One per destination.",
            shape: .list(of: Delivery.shownShape, countMin: 1, countMax: WireLimits.destinationCountMax))
        fields.joined("detail", Words.detail) { $0.best.decision.detail }
        fields.joined("explanation", Words.explanation) { $0.best.sentence }
        fields.joined("fix", Words.fix) { $0.best.fix }
        fields.joined("outcome", Words.outcome) { $0.best.decision.outcome }
        fields.joined(
            "params_violations", \.paramsViolations,
            "Pointers into the body, to what of `params` and `deep_link` does not fit the type.")
        fields.joined("policy", \.policy, "Digest of the bundle that decided.")
        fields.joined("reason", Words.reason) { $0.best.decision.reason }
        fields.joined("request", \.request, "What was asked.")
        fields.joined("who_can_fix", Words.whoCanFix) {
            $0.best.decision.reason.whoCanFix($0.best.decision.detail)
        }
    }
}

/// What is said both of the send and of each of its deliveries.
private enum Words {
    static let outcome = "What would become of it."
    static let evidence = "absent for a caller without `subjects.read` that asks about a stored recipient."
    static let reason = "Why."
    static let detail = "What exactly was missing."
    static let whoCanFix = "Who can make the next attempt succeed."
    static let explanation = "The same in a sentence, in the language of `locale`."
    static let fix = "What `who_can_fix` says as a sentence; only with `locale`."
}

private struct FoundByGate: ShownRecord {
    var gate: Gate
    var result: GateResult

    static let shownName = "GateResult"
    static let shownMeans = "What one gate found. All are always asked; the first refusal decides."

    static let fields = Fields<Self> { fields in
        fields.joined("detail", \.result.detail, "What exactly was missing.")
        fields.joined("gate", "Its number.", shape: .integer(0...Int64(GateRevision.newest.gateCount) - 1)) {
            Int64($0.gate.rawValue)
        }
        fields.joined("name", "Its name.", shape: .choice(Gate.allCases.map(\.name))) { $0.gate.name }
        fields.joined("reason", \.result.reason, "Why it did not pass.")
        fields.joined("verdict", "What it found.", shape: .choice(["pass", "fail", "not_applicable"])) {
            $0.result.verdict.name
        }
    }
}

extension Facts: RecordValue, ShownValue {
    package func write(shown json: inout CanonicalWriter) { json.raw(EncodedFacts(self).bytes[...]) }
}

extension AttestedRequest: RecordValue, ShownValue {
    package func write(shown json: inout CanonicalWriter) { write(to: &json) }
}
