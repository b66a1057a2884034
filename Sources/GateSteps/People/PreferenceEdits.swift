import BundleModel
import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning
package import WireProtocol

/// What is reported of a person's choices.
extension StepContext {
    /// Records several choices in one transaction, each judged as alone.
    ///
    /// The step throws at the first that is refused, and a step that throws leaves nothing. A choice is judged after those
    /// before it, so that its entry says what it changed.
    ///
    /// - Throws: ``Problem`` of ``setPreference(_:scope:of:by:saidAt:at:)``, with the place of the refused choice in front.
    package func setPreferences(
        _ body: PreferencesBody, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Citing<PreferencesRecordedAnswer> {
        let recorded = try body.choices.enumerated().map { position, choice in
            do {
                let recorded = try setPreference(
                    choice.choice, scope: choice.scope, of: user, by: caller, at: now)
                guard !recorded.isUnfinished else {
                    throw Problem(
                        .unavailable,
                        detail:
                            "so many people have this number or mailbox that it is switched off for a part of them at a time; put this choice alone"
                    )
                }
                return (choice, recorded.entry, recorded.noEffect)
            } catch var refusal as Problem {
                refusal.detail = "`/preferences/\(position)`: \(refusal.message); nothing was recorded"
                throw refusal
            }
        }
        return { places in
            PreferencesRecordedAnswer(
                choices: recorded.map { choice, entry, noEffect in
                    PreferencesRecordedAnswer.Choice(
                        scope: choice.scope, channel: choice.choice.channel,
                        destination: choice.choice.destination?.text,
                        recorded: RecordedAnswer(trail: places[entry], noEffect: noEffect))
                })
        }
    }

    /// Records a choice, and the consent that follows from it.
    ///
    /// - Parameter saidAt: When it was chosen, of one that is imported; `nil` for now.
    package func setPreference(
        _ body: PreferenceBody, scope: String, of user: UserID, by caller: CallerName,
        saidAt: Instant? = nil, at now: Instant
    ) throws -> Recorded {
        guard let edit = try beginEdit(of: user, at: now) else {
            throw Problem(.notFound, detail: "register the recipient first")
        }
        let (person, source) = (edit.person, body.source)
        var choice = PreferenceRecord(
            subject: person.subject.id, scope: scope, channel: body.channel ?? .push, destination: nil,
            state: body.storedState, source: source, at: saidAt ?? now, caller: caller)
        try rules(at: now).requireTrue(choice)
        let destination = try body.destination.flatMap { id in
            try body.channel.flatMap { channel -> Tag? in
                if let destination = person.destination(id, on: channel) { return destination.tag }
                // A link lives on in an inbox after its address or device is gone. Which number or mailbox that was is
                // not known any more, so the no holds for the whole channel.
                if source == .unsubscribeLink, body.storedState.isOff { return nil }
                throw Problem(
                    .notFound, detail: "the recipient has no such destination on \(channel.rawValue)")
            }
        }
        choice.destination = destination
        // An objection, and a link in a message, are about the number or mailbox as well, whoever has it (SG-0045). A link
        // that is reported without its mailbox was in one of the person's.
        if let category = Category(rawValue: scope), choice.state.isOff {
            let verified = person.addresses.filter { $0.verifiedAt != nil }
            let places =
                body.channel == nil
                ? verified
                : source != .unsubscribeLink
                    ? []
                    : body.destination == nil
                        ? verified.filter { $0.channel == body.channel }
                        : person.addresses.filter { $0.tag == destination }
            let last = try shareNo(
                category, at: places, besides: person.subject.id, by: caller, saidAt: choice.at, at: now)
            if let last { return Recorded(entry: last, isUnfinished: true) }
        }
        // An objection names no channel and holds for all of them, in this one transaction.
        return try choose(
            choice, on: body.channel.map { [$0] } ?? Channel.allCases,
            isForEveryChannel: body.channel == nil, in: edit)
    }

    /// Records one choice on each of some channels, and the withdrawals that follow from it.
    @discardableResult
    func choose(
        _ choice: PreferenceRecord, on channels: [Channel], isForEveryChannel: Bool = false,
        in edit: PersonEdit
    ) throws -> Recorded {
        var edit = edit
        edit.choose(choice, on: channels, isForEveryChannel: isForEveryChannel)
        guard let entry = try write(edit) else {
            preconditionFailure("a preference was set on no channel")
        }
        let person = edit.person
        try reconsider(edit.subject.id, as: person, because: .preferenceChanged, at: edit.now)
        guard edit.changesConsentsOrChoices else { return Recorded(entry: entry, noEffect: .alreadySo) }
        // What was switched off elsewhere before says nothing of what was sent here.
        if choice.state.isOff, choice.at == edit.now {
            try recordDisabling(
                by: .preference, of: choice.scope, on: channels, at: choice.destination,
                from: edit.before.person, to: person, at: edit.now)
        }
        return Recorded(entry: entry)
    }
}
