package import GateVocabulary

/// A decision in words: what a support agent can read out to the person who asks why nothing came.
///
/// Made from codes at the edge and never stored, so the words may change and no record does.
package enum Explanation {
    /// One sentence for a reason and its detail.
    package static func sentence(_ reason: Reason, _ detail: Detail?) -> String {
        let declared = reason.declaration
        return declared.details.first { $0.detail == detail }?.sentence ?? declared.sentence
    }

    /// For whoever may read all that is held of the recipient, and for the recipient: no switch of theirs stopped it. A
    /// producer is not told; what somebody takes part in is nobody's to read in a refusal (GDPR Art. 9).
    private static let withheld =
        "The recipient takes part in a programme that no advertising is sent during. They switched nothing off, and it is sent again when they leave and have agreed to it."

    /// Whether a decision withheld what is kept from whoever takes part in something, and no switch of theirs is off.
    package static func isWithheld(_ decision: Decision, given facts: Facts) -> Bool {
        let choices = [
            facts.accountPreference, facts.destinationPreference, facts.accountTypePreference,
            facts.destinationTypePreference,
        ]
        return facts.withheld == true && decision.reason == .userPreference
            && !choices.contains { $0?.isOff == true }
    }

    /// The sentence of a decision, and what else it did.
    package static func text(_ decision: Decision, given facts: Facts) -> String {
        let text = text(
            decision.reason, decision.detail, notes: decision.notes,
            isWithheld: isWithheld(decision, given: facts))
        guard let notBefore = decision.notBefore, decision.outcome.isPromise else { return text }
        return "\(text) \(waiting(until: notBefore, place: nil))"
    }

    /// Until when it waits.
    ///
    /// - Parameter place: What the owner calls the device or address.
    package static func waiting(until moment: Instant, place: String?) -> String {
        "It waits\(place.map { " for `\($0)`" } ?? "") until \(words(moment))."
    }

    /// - Parameters:
    ///   - notes: What else the decision did.
    ///   - isWithheld: See ``isWithheld(_:given:)``.
    package static func text(
        _ reason: Reason, _ detail: Detail?, notes: DecisionNotes, isWithheld: Bool
    ) -> String {
        var lines = [isWithheld ? withheld : sentence(reason, detail)]
        if notes.contains(.mandatoryPassed) {
            lines.append("The law obliges us to send it, so it went past something the recipient had set.")
        }
        if notes.contains(.atOwnRequest) {
            lines.append("The recipient asked to be reached by it at any hour.")
        }
        if notes.contains(.criticalDowngraded) {
            lines.append(
                "It was to break through Do Not Disturb, and the device does not let the app do that.")
        }
        return lines.joined(separator: " ")
    }

    /// What became of it later, as a sentence.
    ///
    /// - Parameters:
    ///   - place: What the owner calls the device or address.
    ///   - reason: The event's own: a decision's reason, a cause, a provider's word. See ``SendEventKind``.
    package static func sentence(
        _ fate: SendEventKind, at moment: Instant, place: String?, reason: String?
    ) -> String {
        let to = place.map { " to `\($0)`" } ?? ""
        let at = place.map { " for `\($0)`" } ?? ""
        let what =
            switch fate {
            case .handedOver: "it was handed over for delivery\(to)"
            case .refusedByHop: "the delivery service would not take it\(at)"
            case .expiredUnsent: "its time was over before the delivery service took it\(at)"
            case .ambiguous:
                "its time was over\(at), and nobody can say whether the delivery service had taken it"
            case .withdrawn: "it was taken back\(at)\(reason.map { ": \(withdrawal($0))" } ?? "")"
            case .summarised: "it was told in a summary with others\(at)"
            case .mandatoryUnreached:
                "it had reached nobody; a law obliges us to tell it, and it must go\(reason.map { " by \($0)" } ?? " another way")"
            case .acceptedByProvider: "the provider took it\(at)"
            case .failed: "the provider refused it\(at)\(reason.map { " (\($0))" } ?? "")"
            case .tokenGone: "the provider no longer knew `\(place ?? "the device")`"
            case .expired: "the provider gave it up when its time was over\(at)"
            case .userObserved:
                "the recipient \(observation(reason))\(place.map { " on `\($0)`" } ?? "")\(reason.map { " (\($0))" } ?? "")"
            }
        return "On \(words(moment)) \(what)."
    }

    /// - Parameter reason: Of a ``WithdrawalCause``, or of a decision.
    private static func withdrawal(_ reason: String) -> String {
        WithdrawalCause(rawValue: reason).flatMap(withdrawal)
            ?? Reason(rawValue: reason)?.declaration.withdrawal ?? reason
    }

    private static func observation(_ action: String?) -> String {
        switch ObservedAct(action: action) {
        case .seen: "saw it"
        case .tap: "opened it or acted on it"
        case .dismissed: "put it away"
        case .badgeCleared: "opened the app, which cleared it"
        }
    }

    /// - Returns: `nil` for what only has a message decided again: the event then names the decision's reason.
    private static func withdrawal(_ cause: WithdrawalCause) -> String? {
        switch cause {
        case .expired: Reason.expired.declaration.withdrawal
        case .cancelled: "the sender cancelled it"
        case .acknowledged: "the recipient knew by then"
        case .erased: "the recipient was forgotten"
        case .destinationRemoved: "the device or address was removed"
        case .damaged: "what was stored of it could not be read any more"
        case .old, .due, .summarised, .consentChanged, .preferenceChanged, .recipientChanged, .keyChanged,
            .policyChanged:
            nil
        }
    }

    /// `2026-11-23 07:00 UTC`: to the minute, rounded down.
    private static func words(_ moment: Instant) -> String {
        let text = moment.rfc3339
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
    }

    /// Who can make the next attempt succeed, as a sentence.
    package static func fix(_ reason: Reason, _ detail: Detail?) -> String {
        switch reason.whoCanFix(detail) {
        case .producer: "The sending service can put it right."
        case .recipient: "The recipient can change it."
        case .security: "The security team decides about it."
        case .compliance: "Whoever is responsible for the policy decides about it."
        case .operator: "Whoever runs the gateway can put it right."
        case .nobody: "There is nothing to put right."
        }
    }
}
