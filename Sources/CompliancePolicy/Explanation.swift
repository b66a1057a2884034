package import GateVocabulary

/// A decision in words: what a support agent can read out to the person who asks why nothing came.
///
/// Made from codes at the edge and never stored, so the words may change and no record does.
package struct Explanation: Sendable {
    private let sentences: Sentences
    private let clock: ZoneClock

    /// - Parameter clock: By which moments are told: the person's.
    package init(_ sentences: Sentences, by clock: ZoneClock = .utc) {
        self.sentences = sentences
        self.clock = clock
    }

    package static let english = Explanation(.english)

    /// The same words by other clocks.
    package func by(_ clock: ZoneClock) -> Explanation { Explanation(sentences, by: clock) }

    /// One sentence for a reason and its detail.
    package func sentence(_ reason: Reason, _ detail: Detail?) -> String {
        // A detail that the reason does not have adds nothing to it.
        sentences(.reason(reason, detail.flatMap { reason.details.contains($0) ? $0 : nil }))
    }

    /// A fact of a decision that its reason and detail do not tell, and that changes its sentence.
    package enum Circumstance: Hashable, Sendable {
        /// The send is kept from people who take part in something, and no switch of theirs is off.
        case withheld
        /// The send came in quiet hours. Without this one, it may have come before, with its own time in them.
        case cameInQuietHours

        /// - Returns: `nil` where the reason's own sentence says it all.
        package init?(_ decision: Decision, given facts: Facts) {
            switch (decision.reason, decision.detail) {
            case (.userPreference, _) where facts.withheld == true:
                let choices = [
                    facts.accountPreference, facts.destinationPreference, facts.accountTypePreference,
                    facts.destinationTypePreference,
                ]
                guard !choices.contains(where: { $0?.isOff == true }) else { return nil }
                self = .withheld
            case (.quietHoursDeferred, nil), (.quietHoursDropped, nil):
                guard let now = facts.now, let due = facts.due, due <= now else { return nil }
                self = .cameInQuietHours
            default: return nil
            }
        }

        fileprivate func phrase(of reason: Reason) -> Sentence.Phrase {
            switch self {
            case .withheld: .withheld
            case .cameInQuietHours: reason == .quietHoursDropped ? .droppedInQuietHours : .cameInQuietHours
            }
        }
    }

    /// The sentence of a decision, and what else it did.
    package func text(_ decision: Decision, given facts: Facts) -> String {
        let text = text(
            decision.reason, decision.detail, notes: decision.notes,
            in: Circumstance(decision, given: facts))
        guard let notBefore = decision.notBefore, decision.outcome.isPromise else { return text }
        return "\(text) \(waiting(until: notBefore, place: nil))"
    }

    /// The sentence of a reason where the circumstances are known.
    package func sentence(_ reason: Reason, _ detail: Detail?, in circumstance: Circumstance?) -> String {
        circumstance.map { sentences(.phrase($0.phrase(of: reason))) } ?? sentence(reason, detail)
    }

    /// Until when it waits.
    ///
    /// - Parameter place: What the owner calls the device or address.
    package func waiting(until moment: Instant, place: String?) -> String {
        sentences(.phrase(.waiting), [.moment: words(moment), .place: place])
    }

    /// - Parameters:
    ///   - notes: What else the decision did.
    ///   - circumstance: What the facts say besides.
    package func text(
        _ reason: Reason, _ detail: Detail?, notes: DecisionNotes, in circumstance: Circumstance?
    ) -> String {
        let said: [DecisionNotes] = [
            .mandatoryPassed, .atOwnRequest, .criticalDowngraded, .addressContested,
        ]
        let names = said.filter { notes.contains($0) }.compactMap { note in
            DecisionNotes.names.first { $0.note == note }?.name
        }
        let first = sentence(reason, detail, in: circumstance)
        return ([first] + names.map { sentences(.note($0)) }).joined(separator: " ")
    }

    /// What was decided at one destination, where it was decided otherwise than overall.
    package func elsewhere(_ text: String, place: String?) -> String {
        sentences(.phrase(.elsewhere), [.place: place, .text: text])
    }

    /// What became of it later, as a sentence.
    ///
    /// - Parameters:
    ///   - place: What the owner calls the device or address.
    ///   - reason: The event's own: a decision's reason, a cause, a provider's word. See ``SendEventKind``.
    package func sentence(
        _ kind: SendEventKind, at moment: Instant, place: String?, reason: String?
    ) -> String {
        let sentence: Sentence = kind == .userObserved ? .act(ObservedAct(action: reason)) : .event(kind)
        let values: [SentenceTemplate.Value: String?] = [
            .moment: words(moment), .place: place, .why: reason.map(withdrawal), .channel: reason,
            .code: reason,
        ]
        // Bundles have no sentence of a doubt, because what ends the message has one. It is said in English.
        if kind == .inDoubt, let template = try? SentenceTemplate(sentence.english) {
            return template.filled(with: values.compactMapValues(\.self))
        }
        return sentences(sentence, values)
    }

    /// - Parameter reason: Of a ``WithdrawalCause``, or of a decision.
    private func withdrawal(_ reason: String) -> String {
        if let cause = WithdrawalCause(rawValue: reason), cause.english != nil {
            return sentences(.cause(cause))
        }
        return Reason(rawValue: reason).map { sentences(.withdrawal($0)) } ?? reason
    }

    /// What the person can do; without a full stop.
    ///
    /// - Parameter purpose: What a consent is asked to, where it is one of its own.
    package func remedy(_ remedy: Sentence.Remedy, purpose: Purpose? = nil) -> String {
        sentences(.remedy(remedy), [.purpose: purpose?.text])
    }

    /// Who can make the next attempt succeed, as a sentence.
    package func fix(_ reason: Reason, _ detail: Detail?) -> String {
        sentences(.whoCanFix(reason.whoCanFix(detail)))
    }

    /// `25 Nov 2026 at 08:00 (Europe/Oslo)`: to the minute, rounded down.
    private func words(_ moment: Instant) -> String {
        let reading = clock.reading(moment)
        func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        // The pages of an archive are not checked again.
        let hasYear = sentences.months.count == Sentences.monthCount
        let months = hasYear ? sentences.months : Sentences.english.months
        return sentences(
            .phrase(.moment),
            [
                .day: "\(reading.day)", .month: months[reading.month - 1], .year: "\(reading.year)",
                .hour: twoDigits(reading.hour), .minute: twoDigits(reading.minute), .zone: reading.zone,
            ])
    }
}
