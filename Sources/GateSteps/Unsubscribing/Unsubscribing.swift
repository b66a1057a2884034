import BundleModel
package import CompliancePolicy
package import GateVocabulary
import RecipientModel

/// What a link can do: switch its one category off at its one destination, and take that back once.
extension StepContext {
    /// Switches off what a link is about, which withdraws the consent as every choice from `unsubscribe_link` does. A
    /// second time changes and records nothing.
    ///
    /// - Throws: ``StepRefusal`` `notFound` for a link of somebody who was erased.
    package func mute(_ id: Tag, at now: Instant) throws -> LinkStanding {
        var target = try LinkTarget.load(try view.unsubscribeLink(id), from: view)
        // Nothing that only a step-up switches off has a link; one that is made so later keeps its door shut.
        guard policy.category(target.link.category).switchOff == .anyone else {
            throw StepRefusal(.notFound, detail: "the link does not work any more")
        }
        if !target.isMuted(under: policy) {
            let choice = PreferenceRecord(
                subject: target.link.subject, scope: target.link.category.rawValue,
                channel: target.link.channel, destination: target.place, state: .userOff,
                source: .unsubscribeLink, at: now, caller: .gateway)
            try choose(choice, on: [choice.channel], of: target.person)
            target = try LinkTarget.load(target.link, from: view)
        }
        return target.standing(at: now, under: policy)
    }

    /// Takes the mute of a link back, in ``UnsubscribeLink/undoSeconds``, as long as nothing else was said since: what
    /// was chosen before is chosen again, and the withdrawals that the mute recorded count as never said.
    ///
    /// - Returns: How it stands now, and whether it was taken back.
    /// - Throws: ``StepRefusal`` `notFound` for a link of somebody who was erased.
    package func undoMute(_ id: Tag, at now: Instant) throws -> (standing: LinkStanding, isUndone: Bool) {
        var target = try LinkTarget.load(try view.unsubscribeLink(id), from: view)
        guard let mute = target.undoableMute(at: now, under: policy) else {
            return (target.standing(at: now, under: policy), false)
        }
        var before = mute.choice
        before.at = now
        // The newest of its place is the mute itself.
        before.state =
            try view.preferenceHistory(of: mute.choice.subject).filter { $0.isAbout(mute.choice) }
            .dropLast().last?.state ?? .default
        try appendPreference(before, receivedAt: now)
        var person = target.person
        for withdrawal in mute.withdrawals {
            try appendLedger(undoing(withdrawal, of: person, at: now), at: now)
            person = try reloaded(person)
        }
        target = try LinkTarget.load(target.link, from: view)
        try reconsider(
            target.link.subject, as: target.person.person, because: .preferenceChanged, at: now)
        return (target.standing(at: now, under: policy), true)
    }

    private func undoing(
        _ withdrawal: ConsentEvent, of person: RecipientWithLedger, at now: Instant
    ) -> ConsentEvent {
        let id = "\(withdrawal.id)/undone"
        return ConsentEvent(
            subject: person.subject.id, id: id, idTag: person.subject.tag(.consent, id),
            purpose: withdrawal.purpose, channel: withdrawal.channel, address: withdrawal.address,
            state: .undone, eventTime: now, receivedAt: now, method: withdrawal.method, source: .gateway,
            jurisdiction: nil, notice: nil, expiresAt: nil, withdraws: withdrawal.idTag,
            previousHash: person.consents.last.map(Self.hash) ?? "")
    }
}

/// A link with the person it is of.
package struct LinkTarget {
    package let link: UnsubscribeLink
    package let person: RecipientWithLedger
    /// Where the choice is made. A link lives on in an inbox after its address or device is gone; the no then holds for
    /// the whole channel.
    let place: Tag?

    /// - Throws: ``StepRefusal`` `notFound` for a link of somebody who was erased.
    package static func load(
        _ link: UnsubscribeLink?, from store: any RecordReading
    ) throws -> LinkTarget {
        guard let link, let subject = try store.subject(link.subject),
            let person = try RecipientWithLedger.load(subject, from: store)
        else { throw StepRefusal(.notFound, detail: "the link does not work any more") }
        let destination = person.person.destination(tagged: link.destination, on: link.channel)
        return LinkTarget(link: link, person: person, place: destination?.tag)
    }

    package func standing(at now: Instant, under policy: CompiledPolicy) -> LinkStanding {
        let scope = link.category.rawValue
        return LinkStanding(
            category: link.category, channel: link.channel, locale: person.person.record.locale,
            isOff: [nil, place].contains { person.person.preference(scope, link.channel, at: $0).isOff },
            undoableUntil: undoableMute(at: now, under: policy)?.choice.at.advanced(
                bySeconds: UnsubscribeLink.undoSeconds))
    }

    private var choice: PreferenceRecord? {
        person.person.state.preferences.first {
            $0.scope == link.category.rawValue && $0.channel == link.channel && $0.destination == place
        }
    }

    /// Whether muting would change nothing: the link was used, and no consent that it ends counts.
    func isMuted(under policy: CompiledPolicy) -> Bool {
        guard let choice, choice.state.isOff, choice.source == .unsubscribeLink else { return false }
        let address = choice.level == .address ? place : nil
        return !policy.purposes(endedWith: link.category).contains { purpose in
            ConsentLedger.givenScopes(of: purpose, channel: link.channel, in: person.consents).contains {
                address == nil || $0.address == address
            }
        }
    }

    struct Mute {
        var choice: PreferenceRecord
        var withdrawals: [ConsentEvent]
    }

    /// The mute that can still be taken back: this link's own, and the newest word on its category and channel.
    func undoableMute(at now: Instant, under policy: CompiledPolicy) -> Mute? {
        guard let choice, choice.state.isOff, choice.source == .unsubscribeLink, choice.caller == .gateway,
            now < choice.at.advanced(bySeconds: UnsubscribeLink.undoSeconds)
        else { return nil }
        let isNewest = person.person.state.preferences.allSatisfy {
            $0 == choice || $0.scope != choice.scope || $0.channel != choice.channel || $0.at < choice.at
        }
        guard isNewest else { return nil }
        let purposes = policy.purposes(endedWith: link.category)
        let since = person.consents.filter {
            $0.channel == link.channel && purposes.contains($0.purpose) && $0.receivedAt >= choice.at
        }
        let isAllOwn = since.allSatisfy {
            $0.state == .withdrawn && $0.source == .gateway && $0.receivedAt == choice.at
                && $0.eventTime == choice.at
        }
        return isAllOwn ? Mute(choice: choice, withdrawals: since) : nil
    }
}

extension PreferenceRecord {
    fileprivate func isAbout(_ other: PreferenceRecord) -> Bool {
        scope == other.scope && channel == other.channel && destination == other.destination
    }
}

extension CompiledPolicy {
    /// The purposes that an act about a category ends consent to: its own, and for marketing those that only marketing
    /// asks for besides. An objection to direct marketing is to all of it (GDPR Art. 21(3)).
    func purposes(endedWith category: Category) -> [Purpose] {
        category == .marketing ? purposes(onlyOf: category) : [Purpose(category.rawValue)]
    }
}
