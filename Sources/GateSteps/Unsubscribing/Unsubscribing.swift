import BundleModel
package import CompliancePolicy
package import GateVocabulary
import RecipientModel

/// What a link can do: switch its one category off at its one destination, and take that back once.
extension StepContext {
    /// Switches off the category of a link, which withdraws the consent as every choice from `unsubscribe_link` does; at a
    /// mailbox for everybody who has it, whether or not the link's own person still does (SG-0045, SG-0057). A second time
    /// changes and records nothing.
    ///
    /// The others come first: the link stands as used once it counts for all.
    ///
    /// - Returns: `nil` where more people have the number or mailbox than one step switches off: the same mute goes on.
    /// - Throws: ``StepRefusal`` `notFound` for a link of an erased person.
    package func mute(_ id: Tag, at now: Instant) throws -> LinkStanding? {
        var target = try LinkTarget.load(try view.unsubscribeLink(id), from: view)
        // A category that only a step-up switches off has no links. Links from before it became such a one do not work.
        guard policy.category(target.link.category).switchOff == .anyone else {
            throw StepRefusal(.notFound, detail: "the link does not work any more")
        }
        guard
            try shareNo(
                target.link.category,
                with: try view.mailboxHolders(of: target.link, of: target.person.subject),
                besides: target.link.subject,
                by: .gateway, at: now) == nil
        else { return nil }
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

    /// Takes the mute of a link back, in ``UnsubscribeLink/undoSeconds``, as long as nothing else was said since: the choice
    /// before it holds again, with its source and of its time, and the withdrawals that the mute recorded count as never
    /// said.
    ///
    /// - Returns: How it stands now, and whether it was taken back.
    /// - Throws: ``StepRefusal`` `notFound` for a link of an erased person.
    package func undoMute(_ id: Tag, at now: Instant) throws -> (standing: LinkStanding, isUndone: Bool) {
        var target = try LinkTarget.load(try view.unsubscribeLink(id), from: view)
        guard let mute = target.undoableMute(at: now, under: policy) else {
            return (target.standing(at: now, under: policy), false)
        }
        try takeBack(mute, of: target, at: now)
        try takeBackShared(mute.choice, of: target, at: now)
        target = try LinkTarget.load(target.link, from: view)
        return (target.standing(at: now, under: policy), true)
    }

    private func takeBack(_ mute: LinkTarget.Mute, of target: LinkTarget, at now: Instant) throws {
        try appendPreference(
            mute.choice.before(
                in: try view.preferenceHistory(of: target.link.subject), of: target.person.person.state,
                at: now), receivedAt: now)
        var person = target.person
        for withdrawal in mute.withdrawals {
            try appendLedger(undoing(withdrawal, of: person, at: now), at: now)
            person = try reloaded(person)
        }
        let after = try LinkTarget.load(target.link, from: view)
        try reconsider(target.link.subject, as: after.person.person, because: .preferenceChanged, at: now)
    }

    /// Gives back to each of the others at a number or mailbox what the same mute took from them: what was switched off in the
    /// step of the mute, where nothing else was said there since.
    private func takeBackShared(
        _ mute: PreferenceRecord, of own: LinkTarget, at now: Instant
    ) throws {
        for (holder, address) in try view.mailboxHolders(of: own.link, of: own.person.subject)
        where holder != mute.subject {
            guard let subject = try view.subject(holder) else { continue }
            let target = try LinkTarget.load(
                UnsubscribeLink(
                    of: subject, category: own.link.category, channel: address.channel,
                    destination: subject.addressTag(address)), from: view)
            guard let shared = target.undoableMute(at: now, under: policy, from: .sharedAddress),
                shared.choice.at == mute.at
            else { continue }
            try takeBack(shared, of: target, at: now)
        }
    }

    private func undoing(
        _ withdrawal: ConsentRecord, of person: RecipientWithLedger, at now: Instant
    ) -> ConsentRecord {
        let id = "\(withdrawal.id)/undone"
        return ConsentRecord(
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
    /// When links switched the category off at that place, while the newest choice there is such a mute.
    private let mutes: [Instant]
    /// Whether a link ever switched the category off at that place.
    private let wasMuted: Bool

    /// - Throws: ``StepRefusal`` `notFound` for a link of an erased person.
    package static func load(
        _ link: UnsubscribeLink?, from store: any HistoryReading
    ) throws -> LinkTarget {
        guard let link, let subject = try store.subject(link.subject),
            let person = try RecipientWithLedger.load(subject, from: store)
        else { throw StepRefusal(.notFound, detail: "the link does not work any more") }
        let place = person.person.destination(tagged: link.destination, on: link.channel)?.tag
        let choice = Self.choice(of: link, at: place, in: person.person.state)
        let mutes = try choice.map { choice in
            try store.preferenceHistory(of: link.subject).filter { $0.isMute && $0.isAbout(choice) }
        }
        return LinkTarget(
            link: link, person: person, place: place,
            mutes: choice?.isMute == true ? mutes?.map(\.at) ?? [] : [], wasMuted: mutes?.isEmpty == false)
    }

    package func standing(at now: Instant, under policy: CompiledPolicy) -> LinkStanding {
        let scope = link.category.rawValue
        // A suppression is the audit's and may end with the next one: the page goes by the person's own choice.
        let chosen = RecipientSnapshot(
            subject: person.subject, record: person.person.record,
            state: person.person.state.withoutSuppressions)
        let undoableUntil = undoableMute(at: now, under: policy)?.choice.at.advanced(
            bySeconds: UnsubscribeLink.undoSeconds)
        return LinkStanding(
            category: link.category, channel: link.channel, locale: person.person.record.locale,
            isOff: [nil, place].contains { chosen.preference(scope, link.channel, at: $0).isOff },
            undoableUntil: undoableUntil,
            utcOffsetSeconds: undoableUntil.flatMap {
                LocalTime.offsetSeconds(at: $0, zones: person.person.timeZones(at: place))
            },
            wasMuted: wasMuted, isUndone: wasMuted && choice?.isUndo == true)
    }

    private var choice: PreferenceRecord? { Self.choice(of: link, at: place, in: person.person.state) }

    private static func choice(
        of link: UnsubscribeLink, at place: Tag?, in state: RecipientState
    ) -> PreferenceRecord? {
        state.preferences.first {
            $0.scope == link.category.rawValue && $0.channel == link.channel && $0.destination == place
        }
    }

    /// Whether muting would change nothing: the link was used, and no consent that it ends counts.
    ///
    /// - Parameter byAnybody: Whether the use of another's link to the same number or mailbox is one.
    func isMuted(under policy: CompiledPolicy, byAnybody: Bool = false) -> Bool {
        guard let choice, choice.state.isOff,
            choice.source == .unsubscribeLink || byAnybody && choice.source == .sharedAddress
        else { return false }
        let address = choice.level == .address ? place : nil
        return !policy.purposes(endedWith: link.category).contains { purpose in
            ConsentLedger.givenScopes(of: purpose, channel: link.channel, in: person.consents).contains {
                address == nil || $0.address == address
            }
        }
    }

    struct Mute {
        var choice: PreferenceRecord
        var withdrawals: [ConsentRecord]
    }

    /// The mute that can still be taken back: this link's own, and the newest word on its category and channel.
    ///
    /// - Parameter source: `sharedAddress` for one by another's link to the same number or mailbox, which goes with that
    ///   link's own and with no other.
    func undoableMute(
        at now: Instant, under policy: CompiledPolicy, from source: PreferenceSource = .unsubscribeLink
    ) -> Mute? {
        guard let choice, choice.isMute, choice.source == source,
            now < choice.at.advanced(bySeconds: UnsubscribeLink.undoSeconds)
        else { return nil }
        let windowStart = now.advanced(bySeconds: -UnsubscribeLink.undoWindowSeconds)
        guard mutes.count(where: { $0 > windowStart }) <= UnsubscribeLink.undoCountMax else { return nil }
        // A record of the drift audit is no choice of the person.
        let isNewest = person.person.state.preferences.allSatisfy {
            $0 == choice || $0.scope != choice.scope || $0.channel != choice.channel || $0.at < choice.at
                || $0.source == .driftAudit
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

extension ActRules {
    /// Refuses a choice of the gateway's own that does not take a link's mute back as ``StepContext/undoMute(_:at:)`` does.
    ///
    /// - Parameter history: Of the person's choices, oldest first.
    func requireUndo(
        _ choice: PreferenceRecord, after history: [PreferenceRecord], of state: RecipientState
    ) throws {
        guard let mute = history.last(where: { $0.isAbout(choice) }), mute.isMute,
            now < mute.at.advanced(bySeconds: UnsubscribeLink.undoSeconds)
        else {
            throw StepRefusal(
                .wrongState,
                detail:
                    "the gateway itself records a choice only to take back what a link switched off within \(UnsubscribeLink.undoSeconds) s before"
            )
        }
        let before = mute.before(in: history, of: state, at: now)
        guard (before.state, before.source, before.at) == (choice.state, choice.source, choice.at) else {
            throw StepRefusal(
                .wrongState,
                detail: "taking back what a link switched off gives back `\(before.state.rawValue)`")
        }
    }
}

extension PreferenceRecord {
    /// The record that a mute took the place of. What a drift audit suppressed is suppressed again only while the audit's
    /// finding stands and no choice has ended it; otherwise it is what the person chose before the audit's own records.
    ///
    /// - Parameter history: Of the person's choices, oldest first, with the mute.
    /// - Returns: In the gateway's name: the undo reports it, and no caller.
    fileprivate func before(
        in history: [PreferenceRecord], of state: RecipientState, at now: Instant
    ) -> PreferenceRecord {
        let isStanding = state.drifts.contains {
            $0.action == .suppressed && $0.device == destination && $0.category?.rawValue == scope
        }
        let history = history.filter { $0.isAbout(self) }.dropLast()
        var earlier = history.last
        if let newest = earlier, newest.source == .driftAudit, !(newest.isSuppression && isStanding) {
            // An audit suppresses only what is on, so an off among these is a mute that was taken back.
            earlier = history.last { $0.source != .driftAudit && !$0.state.isOff }
        }
        var choice = earlier ?? self
        if earlier == nil {
            choice.state = .default
            choice.at = now
        }
        choice.caller = .gateway
        return choice
    }

    /// Whether a link on the gateway's own pages switched it off, the person's or another's to the same number or mailbox.
    fileprivate var isMute: Bool {
        state.isOff && (source == .unsubscribeLink || source == .sharedAddress) && caller == .gateway
    }

    /// Whether it brings back what a mute took the place of (``StepContext/undoMute(_:at:)``).
    fileprivate var isUndo: Bool { !state.isOff && source != .driftAudit && caller == .gateway }

    fileprivate func isAbout(_ other: PreferenceRecord) -> Bool {
        scope == other.scope && channel == other.channel && destination == other.destination
    }
}

extension RecipientState {
    /// Categories that a link has switched off lately at a destination, or on its whole channel, so that the same link may
    /// still take it back.
    func undoableMutes(on channel: Channel, at place: Tag, now: Instant) -> Set<GateVocabulary.Category> {
        let mutes = preferences.filter { choice in
            choice.isMute && choice.channel == channel
                && (choice.destination == nil || choice.destination == place)
                && now < choice.at.advanced(bySeconds: UnsubscribeLink.undoSeconds)
        }
        return Set(mutes.compactMap { GateVocabulary.Category(rawValue: $0.scope) })
    }
}

extension CompiledPolicy {
    /// The purposes that an act about a category ends consent to: its own, and for marketing those that only marketing
    /// asks for besides. An objection to direct marketing is to all of it (GDPR Art. 21(3)).
    func purposes(endedWith category: Category) -> [Purpose] {
        category == .marketing ? purposes(onlyOf: category) : [Purpose(category.rawValue)]
    }
}
