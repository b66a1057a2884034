package import CanonicalJSON
package import GateVocabulary

/// What the gate would say to a send, gate by gate, and what it looked at.
package struct ExplainAnswer: WireAnswer, Hashable {
    /// What would become of the send at one destination.
    package struct Delivery: WireAnswer, Hashable {
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
            self.destination = destination
            self.facts = facts
            self.decision = decision
            self.sentence = sentence
            self.fix = fix
        }

        package static let name = "ExplainedDelivery"
        package static let means = "The decision for one destination, with everything it looked at."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional("destination", answer, \.destination, "The device or address.")
            fields.optional("detail", answer, \.decision.detail, Words.detail)
            fields.required("explanation", answer, \.sentence, Words.explanation)
            fields.optional("facts", answer, \.facts, "What was known; \(Words.evidence)")
            fields.optional("fix", answer, \.fix, Words.fix)
            fields.optional(
                "form", answer, { $0.evidence?.form }, "What the payload may carry; \(Words.evidence)")
            fields.optional(
                "gates",
                as: .list(
                    of: FoundByGate.shape, countMin: Gate.allCases.count, countMax: Gate.allCases.count),
                answer,
                \.gates, "Every gate, in order; \(Words.evidence)")
            fields.optional(
                "interruption", answer, { $0.evidence?.interruption },
                "How the device is asked to interrupt; \(Words.evidence)")
            fields.optional("not_before", answer, \.decision.notBefore, "RFC 3339; for a `defer`.")
            fields.optional(
                "notes", as: .list(of: .choice(DecisionNotes.names.map(\.name)), countMax: 8),
                answer,
                { $0.evidence?.notes.namesSet }, "Other things worth knowing; \(Words.evidence)")
            fields.required("outcome", answer, \.decision.outcome, Words.outcome)
            fields.required("reason", answer, \.decision.reason, Words.reason)
            fields.required(
                "who_can_fix", answer, { $0.decision.reason.whoCanFix($0.decision.detail) }, Words.whoCanFix)
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

    package static let name = "Explanation"
    package static let means = "What the gate would decide. Nothing was sent, counted or held."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "deliveries",
            as: .list(of: Delivery.shape, countMin: 1, countMax: WireLimits.destinationCountMax),
            answer,
            \.deliveries, "One per destination.")
        fields.optional("detail", answer, \.best.decision.detail, Words.detail)
        fields.required("explanation", answer, \.best.sentence, Words.explanation)
        fields.optional("fix", answer, \.best.fix, Words.fix)
        fields.required("outcome", answer, \.best.decision.outcome, Words.outcome)
        fields.required(
            "params_violations", answer, \.paramsViolations,
            "Pointers into the body, to what of `params` and `deep_link` does not fit the type.")
        fields.required("policy", answer, \.policy, "Digest of the bundle that decided.")
        fields.required("reason", answer, \.best.decision.reason, Words.reason)
        fields.required("request", answer, \.request, "What was asked.")
        fields.required(
            "who_can_fix", answer, { $0.best.decision.reason.whoCanFix($0.best.decision.detail) },
            Words.whoCanFix)
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

private struct FoundByGate: WireAnswer {
    let gate: Gate
    let result: GateResult

    static let name = "GateResult"
    static let means = "What one gate found. All are always asked; the first refusal decides."

    static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.optional("detail", answer, \.result.detail, "What exactly was missing.")
        fields.required(
            "gate", as: .integer(0...Int64(GateRevision.newest.gateCount) - 1), answer,
            { Int64($0.gate.rawValue) },
            "Its number.")
        fields.required("name", as: .choice(Gate.allCases.map(\.name)), answer, \.gate.name, "Its name.")
        fields.optional("reason", answer, \.result.reason, "Why it did not pass.")
        fields.required(
            "verdict", as: .choice(["pass", "fail", "not_applicable"]), answer, \.result.verdict.name,
            "What it found.")
    }
}

extension Facts: AnswerValue {
    package static var answerShape: Shape { shape }
    package func write(answer json: inout CanonicalWriter) { json.raw(EncodedFacts(self).bytes[...]) }
}

extension AttestedRequest: AnswerValue {
    package static var answerShape: Shape { shape }
    package func write(answer json: inout CanonicalWriter) { write(to: &json) }
}

extension GateResult.Verdict {
    package var name: String {
        switch self {
        case .pass: "pass"
        case .fail: "fail"
        case .notApplicable: "not_applicable"
        }
    }
}
