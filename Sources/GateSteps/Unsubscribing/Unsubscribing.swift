import BundleModel
package import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning
import WireProtocol

/// What a link can do: switch its one category off at its one destination, and take that back once.
extension StepContext {
    /// Switches off the category of a link, which withdraws the consent as every choice from `unsubscribe_link` does; at a
    /// mailbox for everybody who has it, whether or not the link's own person still does (SG-0045, SG-0057). A second time
    /// within ``UnsubscribeLink/repeatSeconds`` changes and records nothing.
    ///
    /// The others come first: the link stands as used once it counts for all.
    ///
    /// - Returns: `nil` where more people have the number or mailbox than one step switches off: the same mute goes on.
    /// - Throws: ``Problem`` `notFound` for a link of an erased person.
    package func mute(_ id: Tag, at now: Instant) throws -> LinkStanding? {
        var target = try LinkTarget.load(try memory.unsubscribeLink(id), from: memory)
        // A category that only a step-up switches off has no links. Links from before it became such a one do not work.
        guard policy.category(target.link.category).switchOff == .anyone else {
            throw Problem(.notFound, detail: "the link does not work any more")
        }
        let shared = try shareNo(
            target.link.category, with: try memory.mailboxHolders(of: target.link, of: target.person.subject),
            besides: target.link.subject, by: .gateway, saidAt: now, at: now)
        try remember(shared.choices, of: target.link, after: target.endOfLastUndo(at: now), at: now)
        guard shared.unfinished == nil else { return nil }
        if !target.isMuted(since: target.repeatStart(at: now), under: policy) {
            let choice = PreferenceRecord(
                subject: target.link.subject, scope: target.link.category.rawValue,
                channel: target.link.channel, destination: target.place, state: .userOff,
                source: .unsubscribeLink, at: now, caller: .gateway)
            try choose(choice, on: [choice.channel], in: beginEdit(of: target.person, at: now))
            try remember([choice], of: target.link, after: target.endOfLastUndo(at: now), at: now)
            target = try LinkTarget.load(target.link, from: memory)
        }
        return target.standing(at: now, under: policy)
    }

    /// Undoes, within ``UnsubscribeLink/undoSeconds``, every mute that the link recorded, for each person it reached, even if their
    /// addresses changed: the choice before the mute holds again, with its source and its time, and the withdrawals that
    /// the mute recorded count as never said. A person's own choice since stays, and all of it where somebody else said no by the
    /// mailbox since.
    ///
    /// - Returns: How it stands now, and whether something was taken back; `nil` where it is to be taken back of more people than
    ///   one step changes: the same undo goes on.
    /// - Throws: ``Problem`` `notFound` for a link of an erased person.
    package func undoMute(_ id: Tag, at now: Instant) throws -> (standing: LinkStanding, isUndone: Bool)? {
        let target = try LinkTarget.load(try memory.unsubscribeLink(id), from: memory)
        let mutes = target.isFinal(at: now) ? [] : target.mutes
        // The newest first, because it stands upon the others; the link's own person last, as in a mute.
        let ordered =
            mutes.reversed().filter { $0.subject != target.link.subject }
            + mutes.reversed().filter { $0.subject == target.link.subject }
        // All that is read comes before the first change, so that a row that is missing repeats none.
        for record in ordered {
            guard let subject = try memory.subject(record.subject) else { continue }
            _ = try RecipientWithLedger.load(subject, from: memory)
            _ = try memory.preferenceHistory(of: subject.id)
        }
        var undoneCount = 0
        for record in ordered {
            guard let subject = try memory.subject(record.subject),
                let person = try RecipientWithLedger.load(subject, from: memory),
                let mute = record.undoable(
                    of: target.link, in: person, after: try memory.preferenceHistory(of: subject.id), at: now,
                    under: policy)
            else { continue }
            if undoneCount == Self.replyHolderCountMax { return nil }
            var edit = beginEdit(of: person, at: now)
            edit.takeBack(mute)
            try write(edit)
            try reconsider(subject.id, as: edit.person, because: .preferenceChanged, at: now)
            undoneCount += 1
        }
        if undoneCount > 0 {
            memory.setSetting(LinkMute.setting(of: id), to: nil)
            if let mailbox = target.link.mailbox { try remember(atAddress: mailbox) { $0.remove(id) } }
        }
        let after = try LinkTarget.load(target.link, from: memory)
        return (after.standing(at: now, under: policy), undoneCount > 0)
    }

    /// Remembers what a mute by a link recorded: with its mailbox that it was said, and with the link what can be taken back.
    ///
    /// - Parameter end: What the link recorded up to then can be taken back no more.
    private func remember(
        _ choices: [PreferenceRecord], of link: UnsubscribeLink, after end: Instant, at now: Instant
    ) throws {
        guard !choices.isEmpty else { return }
        if let mailbox = link.mailbox {
            try remember(atAddress: mailbox) { $0.add(link.category, by: link.id, at: now) }
        }
        try remember(choices, of: link.id, after: end, at: now)
    }

    func remember(
        _ choices: [PreferenceRecord], of link: Tag, after end: Instant = .longAgo, at now: Instant
    ) throws {
        let new = choices.map(LinkMute.init)
        let known = try memory.mutes(by: link).filter { $0.isRecent(at: now) && $0.at >= end }
        memory.setSetting(LinkMute.setting(of: link), to: LinkMute.text(of: known + new))
    }

    /// Names of all settings that keep what links switched off.
    package static var muteSettingNames: Range<String> { LinkMute.settingNames }

    /// Lets go of what a link switched off, once none of it can be taken back any more.
    ///
    /// - Parameter name: The setting's.
    package func dropMutes(_ name: String, at now: Instant) throws {
        guard try !memory.mutes(in: name).contains(where: { $0.isRecent(at: now) }) else { return }
        memory.setSetting(name, to: nil)
    }
}

/// A choice that a mute by a link recorded: whose, where and when. Kept with the link in the order of the records, so that an
/// undo takes back these and no others (SG-0057).
struct LinkMute: Hashable, Sendable {
    let subject: SubjectID
    /// `nil` for the whole channel.
    let place: Tag?
    let at: Instant

    init(_ choice: PreferenceRecord) {
        (subject, place, at) = (choice.subject, choice.destination, choice.at)
    }

    func isRecent(at now: Instant) -> Bool { UnsubscribeLink.isUndoable(from: at, at: now) }

    /// The parts of a mute that an undo needs: the choice that holds again, and the withdrawals that then count as never said.
    struct Undoable {
        /// When the mute was.
        var at: Instant
        /// The choice that holds again.
        var choiceBefore: PreferenceRecord
        var withdrawals: [ConsentRecord]
    }

    /// - Parameters:
    ///   - person: Whose choice it was.
    ///   - history: Of the person's choices, oldest first.
    /// - Returns: `nil` where its time is over, where the person has said something else of the category since, there or of
    ///   the whole channel, and where there is nothing to give back.
    func undoable(
        of link: UnsubscribeLink, in person: RecipientWithLedger, after history: [PreferenceRecord],
        at now: Instant, under policy: CompiledPolicy
    ) -> Undoable? {
        let said = person.person.state.preferences.filter {
            $0.scope == link.category.rawValue && $0.channel == link.channel
        }
        func isHere(_ other: Tag?) -> Bool { place == nil || other == nil || other == place }
        guard isRecent(at: now), let choice = said.first(where: { $0.destination == place }), choice.isMute,
            choice.at == at,
            // What the gateway recorded itself, and a record of the drift audit, is no choice of the person.
            said.allSatisfy({
                !isHere($0.destination) || $0.at < at || $0.caller == .gateway || $0.source == .driftAudit
            })
        else { return nil }
        let purposes = policy.purposes(endedWith: link.category)
        let undone = Set(person.consents.filter { $0.state == .undone }.compactMap(\.withdraws))
        let since = person.consents.filter {
            $0.channel == link.channel && isHere($0.address) && purposes.contains($0.purpose)
                && $0.receivedAt >= at && $0.state != .undone && !undone.contains($0.idTag)
        }
        let isAllOwn = since.allSatisfy {
            $0.state == .withdrawn && $0.source == .gateway && $0.receivedAt == at && $0.eventTime == at
        }
        let before = choice.before(in: history, of: person.person.state, at: now)
        // A mute on top of one that is final gives back nothing but a consent that it withdrew by name.
        let isFinal = before.isOffByLink && !before.isUndoableMute(at: now)
        guard isAllOwn, !isFinal || since.contains(where: { $0.withdraws != nil }) else { return nil }
        return Undoable(at: choice.at, choiceBefore: before, withdrawals: since)
    }
}

extension LinkMute {
    /// The setting that keeps what the mutes by a link recorded.
    static func setting(of link: Tag) -> String { "\(settingNames.lowerBound)\(link.hexadecimal)" }
    static let settingNames = "muted by link "..<"muted by link!"

    /// A line each: pseudonym, place, milliseconds.
    static func text(of mutes: [LinkMute]) -> String {
        mutes.map {
            "\($0.subject.hexadecimal) \($0.place?.hexadecimal ?? wholeChannel) \($0.at.milliseconds)"
        }.joined(separator: "\n")
    }

    private static let wholeChannel = "-"

    fileprivate init?(line: Substring) {
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 3, let subject = SubjectID(hexadecimal: words[0]),
            let milliseconds = Int64(words[2])
        else { return nil }
        let place = Tag(hexadecimal: words[1])
        guard place != nil || words[1] == Self.wholeChannel else { return nil }
        (self.subject, self.place, at) = (subject, place, Instant(milliseconds: milliseconds))
    }
}

extension RecordReading {
    /// What the mutes by a link recorded lately, oldest first.
    fileprivate func mutes(by link: Tag) throws -> [LinkMute] {
        try mutes(in: LinkMute.setting(of: link))
    }

    /// - Parameter name: The setting's.
    fileprivate func mutes(in name: String) throws -> [LinkMute] {
        try (try setting(name) ?? "").split(separator: "\n").map { line in
            guard let mute = LinkMute(line: line) else {
                throw StoreError.damaged(table: "setting", row: name, "it holds no mutes of a link")
            }
            return mute
        }
    }
}

/// A link with the person it is of.
package struct LinkTarget {
    package let link: UnsubscribeLink
    package let person: RecipientWithLedger
    /// Where the choice is made. A link lives on in an inbox after its address or device is gone; the no then holds for
    /// the whole channel.
    let place: Tag?
    /// What mutes by the link recorded lately, the link's own person's and others', oldest first.
    let mutes: [LinkMute]
    /// The person's choices of the category at that place, oldest first.
    private let choices: [PreferenceRecord]
    /// Of the link's mailbox; empty for a push.
    private let history: AddressHistory

    /// - Throws: ``Problem`` `notFound` for a link of an erased person.
    package static func load(
        _ link: UnsubscribeLink?, from store: any HistoryReading
    ) throws -> LinkTarget {
        guard let link, let subject = try store.subject(link.subject),
            let person = try RecipientWithLedger.load(subject, from: store)
        else { throw Problem(.notFound, detail: "the link does not work any more") }
        let destination = person.person.destination(tagged: link.destination, on: link.channel)
        // A device without a token receives nothing: it is as good as gone, and its phone may have another id by now.
        let place = destination?.device?.isActive == false ? nil : destination?.tag
        let choice = Self.choice(of: link, at: place, in: person.person.state)
        let choices = try choice.map { choice in
            try store.preferenceHistory(of: link.subject).filter { $0.isSameChoice(as: choice) }
        }
        return LinkTarget(
            link: link, person: person, place: place, mutes: try store.mutes(by: link.id),
            choices: choices ?? [],
            history: try link.mailbox.map(store.history(ofAddress:)) ?? AddressHistory())
    }

    package func standing(at now: Instant, under policy: CompiledPolicy) -> LinkStanding {
        let scope = link.category.rawValue
        // A suppression is the audit's and may end with the next one: the page goes by the person's own choice.
        let chosen = RecipientSnapshot(
            subject: person.subject, record: person.person.record,
            state: person.person.state.withoutSuppressions)
        let undoableUntil = undoableMute(at: now, under: policy)?.at.advanced(
            bySeconds: UnsubscribeLink.undoSeconds)
        let wasMuted = choices.contains(where: \.isMute)
        return LinkStanding(
            category: link.category, channel: link.channel, locale: person.person.record.locale,
            isOff: [nil, link.destination].contains { chosen.preference(scope, link.channel, at: $0).isOff },
            undoableUntil: undoableUntil,
            utcOffsetSeconds: undoableUntil.flatMap {
                LocalTime.offsetSeconds(at: $0, zones: person.person.timeZones(at: place))
            },
            wasMuted: wasMuted, isUndone: wasMuted && choice?.isUndo == true)
    }

    private var choice: PreferenceRecord? { Self.choice(of: link, at: place, in: person.person.state) }

    /// The choice at a place. Where that is gone, what was said there last still tells of the link, unless something newer was said of
    /// the whole channel.
    private static func choice(
        of link: UnsubscribeLink, at place: Tag?, in state: RecipientState
    ) -> PreferenceRecord? {
        state.preferences.filter {
            $0.scope == link.category.rawValue && $0.channel == link.channel
                && ($0.destination == place || place == nil && $0.destination == link.destination)
        }.max { $0.at < $1.at }
    }

    /// Whether muting would change nothing: the link was used lately, and no consent that it ends counts.
    ///
    /// - Parameters:
    ///   - start: An earlier use is another word.
    ///   - byAnybody: Whether the use of another's link to the same number or mailbox is one.
    func isMuted(since start: Instant, under policy: CompiledPolicy, byAnybody: Bool = false) -> Bool {
        guard let choice, choice.isOffByLink, choice.at >= start,
            choice.source == .unsubscribeLink || byAnybody
        else { return false }
        let address = choice.level == .address ? choice.destination : nil
        return !policy.purposes(endedWith: link.category).contains { purpose in
            person.person.consentsInForce.isGiven(purpose, on: link.channel, at: address)
        }
    }

    /// When the time ended in which an earlier use of the link could be taken back, of whomever it was. Who registered the mailbox in
    /// that time was muted by that use.
    func endOfLastUndo(at now: Instant) -> Instant {
        guard let choice, choice.isMute, !choice.isUndoableMute(at: now) else { return .longAgo }
        return choice.at.advanced(bySeconds: UnsubscribeLink.undoSeconds)
    }

    /// The mute of the link's own person that can still be taken back.
    private func undoableMute(at now: Instant, under policy: CompiledPolicy) -> LinkMute.Undoable? {
        guard !isFinal(at: now) else { return nil }
        return mutes.reversed().lazy.filter { $0.subject == link.subject }.compactMap {
            $0.undoable(of: link, in: person, after: choices, at: now, under: policy)
        }.first
    }

    /// Since when a mute is the same word as one that is said now (``UnsubscribeLink/repeatSeconds``). Where many were recorded lately
    /// for longer: each leaves records that are never deleted, and a link may be in a robot's hands.
    func repeatStart(at now: Instant) -> Instant {
        let windowStart = now.advanced(bySeconds: -UnsubscribeLink.undoWindowSeconds)
        let isOften =
            choices.count(where: { $0.isMute && $0.at > windowStart }) > UnsubscribeLink.undoCountMax
        return now.advanced(
            bySeconds: isOften ? -UnsubscribeLink.oftenRepeatSeconds : -UnsubscribeLink.repeatSeconds)
    }

    /// Whether no mute can be taken back: as many were as can be (``UnsubscribeLink/undoCountMax``), or somebody else said
    /// no by the mailbox since.
    func isFinal(at now: Instant) -> Bool {
        if link.mailbox != nil, !history.isUndoable(link.category, by: link.id, at: now) { return true }
        let windowStart = now.advanced(bySeconds: -UnsubscribeLink.undoWindowSeconds)
        let address = link.channel == .push ? nil : link.destination
        let undone = person.consents.filter {
            $0.state == .undone && $0.purpose.text == link.category.rawValue && $0.channel == link.channel
                && ($0.address == nil || $0.address == address) && $0.receivedAt > windowStart
        }
        return Set(undone.map(\.receivedAt)).count >= UnsubscribeLink.undoCountMax
    }
}

extension ActRules {
    /// Refuses a choice of the gateway's own that does not take a link's mute back as ``StepContext/undoMute(_:at:)`` does.
    ///
    /// - Parameter history: Of the person's choices, oldest first.
    func requireUndo(
        _ choice: PreferenceRecord, after history: [PreferenceRecord], of state: RecipientState
    ) throws {
        guard let mute = history.last(where: { $0.isSameChoice(as: choice) }), mute.isMute,
            UnsubscribeLink.isUndoable(from: mute.at, at: now)
        else {
            throw Problem(
                .wrongState,
                detail:
                    "the gateway itself records a choice only to take back what a link switched off within \(UnsubscribeLink.undoSeconds) s before"
            )
        }
        let before = mute.before(in: history, of: state, at: now)
        guard (before.state, before.source, before.at) == (choice.state, choice.source, choice.at) else {
            throw Problem(
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
    func before(
        in history: [PreferenceRecord], of state: RecipientState, at now: Instant
    ) -> PreferenceRecord {
        let isStanding = state.drifts.contains {
            $0.action == .suppressed && $0.device == destination && $0.category?.rawValue == scope
        }
        let history = history.filter { $0.isSameChoice(as: self) }.prefix { $0 != self }
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
    fileprivate var isMute: Bool { isOffByLink && caller == .gateway }

    /// Whether a link switched it off, on the gateway's own pages or as a caller reported it.
    fileprivate var isOffByLink: Bool { state.isOff && source.isOfLink }

    /// Whether it is a mute that the same link may still take back.
    func isUndoableMute(at now: Instant) -> Bool {
        isMute && UnsubscribeLink.isUndoable(from: at, at: now)
    }

    /// Whether it brings back what a mute took the place of (``StepContext/undoMute(_:at:)``).
    fileprivate var isUndo: Bool { !state.isOff && source != .driftAudit && caller == .gateway }
}

extension PreferenceSource {
    /// Whether it is a link's, the person's own or another's to the same number or mailbox.
    var isOfLink: Bool { self == .unsubscribeLink || self == .sharedAddress }
}

extension RecipientState {
    /// Categories that a link has switched off lately at a destination, or on its whole channel, so that the same link may
    /// still take it back.
    func undoableMutes(on channel: Channel, at place: Tag, now: Instant) -> Set<GateVocabulary.Category> {
        let mutes = preferences.filter { choice in
            choice.isUndoableMute(at: now) && choice.channel == channel
                && (choice.destination == nil || choice.destination == place)
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
