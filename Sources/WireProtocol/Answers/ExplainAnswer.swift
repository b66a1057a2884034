package import CanonicalJSON
package import GateVocabulary

/// What the gate would say to a send, gate by gate, and what it looked at.
package struct ExplainAnswer: Hashable, Sendable {
    package struct Delivery: Hashable, Sendable {
        package var destination: String?
        package var facts: Facts
        package var decision: Decision
        /// One sentence a support agent can read out.
        package var sentence: String

        package init(destination: String?, facts: Facts, decision: Decision, sentence: String) {
            self.destination = destination
            self.facts = facts
            self.decision = decision
            self.sentence = sentence
        }

        var json: JSONObject {
            let gates: [JSONValue] = Gate.allCases.map { gate in
                let result = decision.trace[gate]
                return .object(
                    JSONObject(present: [
                        "gate": .integer(Int64(gate.rawValue)), "name": .string(gate.name),
                        "verdict": .string(result.verdict.name),
                        "reason": result.reason.map { .string($0.rawValue) },
                        "detail": result.detail.map { .string($0.rawValue) },
                    ]))
            }
            return JSONObject(present: [
                "destination": destination.map { .string($0) },
                "outcome": .string(decision.outcome.name),
                "reason": .string(decision.reason.rawValue),
                "detail": decision.detail.map { .string($0.rawValue) },
                "who_can_fix": .string(decision.reason.whoCanFix(decision.detail).rawValue),
                "explanation": .string(sentence),
                "not_before": decision.notBefore.map { .string($0.rfc3339) },
                "form": .string(decision.form.rawValue),
                "interruption": .string(decision.interruption.rawValue),
                "notes": .array(decision.notes.namesSet.map { .string($0) }),
                "gates": .array(gates),
                "facts": .object(facts.json),
            ])
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

    package var json: JSONObject {
        let ranked = deliveries.map { delivery in
            (
                delivery: delivery,
                answer: SendAnswer.Delivery(destination: delivery.destination, decision: delivery.decision)
            )
        }
        let best = ranked.min { $0.answer.precedes($1.answer) }?.delivery ?? deliveries[0]
        return JSONObject(present: [
            "outcome": .string(best.decision.outcome.name),
            "reason": .string(best.decision.reason.rawValue),
            "detail": best.decision.detail.map { .string($0.rawValue) },
            "who_can_fix": .string(best.decision.reason.whoCanFix(best.decision.detail).rawValue),
            "explanation": .string(best.sentence),
            "policy": .string(policy.text),
            "request": .object(request.json),
            "params_violations": .array(paramsViolations.map { .string($0) }),
            "deliveries": .array(deliveries.map { .object($0.json) }),
        ])
    }

    private static let decision: [ObjectShape.Member] = [
        .required("outcome", .choice(Outcome.allCases.map(\.name)), "What would become of it."),
        .required("reason", .choice(of: Reason.self), "Why."),
        .optional("detail", .choice(of: Detail.self), "What exactly was missing."),
        .required("who_can_fix", .choice(of: WhoCanFix.self), "Who can make the next attempt succeed."),
        .required("explanation", .anyText, "The same in a sentence."),
    ]

    private static let gate = Shape.answer(
        "GateResult", "What one gate found. All are always asked; the first refusal decides.",
        [
            .required("gate", .integer(0...12), "Its number."),
            .required("name", .choice(Gate.allCases.map(\.name)), "Its name."),
            .required("verdict", .choice(["pass", "fail", "not_applicable"]), "What it found."),
            .optional("reason", .choice(of: Reason.self), "Why it did not pass."),
            .optional("detail", .choice(of: Detail.self), "What exactly was missing."),
        ])

    private static let delivery = Shape.answer(
        "ExplainedDelivery", "The decision for one destination, with everything it looked at.",
        decision + [
            .optional("destination", .anyText, "The device or address."),
            .optional("not_before", .anyText, "RFC 3339; for a `defer`."),
            .required("form", .choice(of: BodyForm.self), "What the payload may carry."),
            .required(
                "interruption", .choice(of: Interruption.self), "How the device is asked to interrupt."),
            .required(
                "notes", .list(of: .choice(DecisionNotes.names.map(\.name)), countMax: 8),
                "Other things worth knowing."),
            .required("gates", .list(of: gate, countMin: 13, countMax: 13), "Every gate, in order."),
            .required("facts", FactsShape.shape, "What was known."),
        ])

    package static let shape = Shape.answer(
        "Explanation", "What the gate would decide. Nothing was sent, counted or held.",
        decision + [
            .required("policy", .sha256, "Digest of the bundle that decided."),
            .required(
                "request",
                .answer(
                    "AttestedRequest", "The part of the send a decision looks at.",
                    [
                        .required("caller", .anyText, "Who would send it."),
                        .required("type", .anyText, "The type."),
                        .required("channel", .choice(of: Channel.self), "The channel."),
                        .required("critical", .boolean, "Whether critical delivery is asked for."),
                    ]), "What was asked."),
            .required(
                "params_violations", .all(.anyText),
                "Pointers into the body, to what of `params` and `deep_link` does not fit the type."),
            .required(
                "deliveries", .list(of: delivery, countMin: 1, countMax: WireLimits.destinationCountMax),
                "One per destination."),
        ])
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
