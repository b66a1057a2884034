import BundleModel
import CompliancePolicy
import GateRecords
import GateVocabulary

/// A no that is about a number or mailbox, and so counts for everybody who has it (SG-0045).
extension StepContext {
    /// Shares a no that cannot be taken back with everybody else who registered some numbers or mailboxes, and with who registers them
    /// later.
    ///
    /// - Returns: An entry where it does not hold for all of them yet; see ``shareNo(_:with:besides:by:saidAt:at:)``.
    func shareNo(
        _ category: GateVocabulary.Category, at places: [AddressRecord], besides own: SubjectID,
        by caller: CallerName, saidAt: Instant, at now: Instant
    ) throws -> EntryReference? {
        guard policy.category(category).switchOff == .anyone else { return nil }
        let addresses = places.filter { $0.channel != .push }.map(AddressKey.init)
        let holders = try addresses.flatMap { address in
            try memory.holders(of: address).map { ($0, address) }
        }
        let shared = try shareNo(
            category, with: holders, besides: own, by: caller, saidAt: saidAt, at: now)
        if let last = shared.unfinished { return last }
        for address in addresses { try remember(at: address) { $0.add(category, by: nil, at: now) } }
        return nil
    }

    /// Switches a category off for everybody else who registered some numbers or mailboxes, as a link in their own message would:
    /// a no that came by an address, or an objection of somebody who has it, is about the address (SG-0045). At most
    /// ``replyHolderCountMax`` people in one step. Where it was said before it is recorded again, unless since the no was said or as a
    /// repetition (``LinkTarget/repeatStart(at:)``), as far as the step has room.
    ///
    /// - Returns: The choices that were recorded, and where it does not hold for all of them yet the last entry: an alarm was
    ///   raised, and the same act goes on with the others.
    func shareNo(
        _ category: GateVocabulary.Category,
        with holders: [(SubjectID, AddressKey)],
        besides own: SubjectID, by caller: CallerName, saidAt: Instant, at now: Instant
    ) throws -> (choices: [PreferenceRecord], unfinished: EntryReference?) {
        var choices: [PreferenceRecord] = []
        var last: EntryReference?
        var muted: [(SubjectID, AddressKey)] = []
        for (holder, address) in holders where holder != own {
            guard
                let no = try sharedNo(
                    to: category, at: address, of: holder, by: caller, saidAt: nil, at: now)
            else {
                muted.append((holder, address))
                continue
            }
            guard choices.count < Self.replyHolderCountMax else {
                alarm(
                    "a no came by a number or mailbox of more than \(Self.replyHolderCountMax) people, and counts for so many of them at a time. Find out why so many have one address"
                )
                return (choices, last)
            }
            last = try choose(no.choice, on: [no.choice.channel], in: no.edit).entry
            choices.append(no.choice)
        }
        for (holder, address) in muted where choices.count < Self.replyHolderCountMax {
            guard
                let no = try sharedNo(
                    to: category, at: address, of: holder, by: caller, saidAt: saidAt, at: now)
            else { continue }
            try choose(no.choice, on: [no.choice.channel], in: no.edit)
            choices.append(no.choice)
        }
        return (choices, nil)
    }

    /// The choice that switches a category off for a person because of another's no at the same number or mailbox; `nil` where it
    /// would change nothing.
    ///
    /// - Parameter saidAt: When the no was said: what a link or another's no recorded there since then, or as a repetition
    ///   (``LinkTarget/repeatStart(at:)``), is this one. `nil` where any that stands is.
    func sharedNo(
        to category: GateVocabulary.Category, at address: AddressKey, of holder: SubjectID,
        by caller: CallerName, saidAt: Instant?, at now: Instant
    ) throws -> (choice: PreferenceRecord, edit: PersonEdit)? {
        guard policy.category(category).switchOff == .anyone, let edit = try beginEdit(of: holder, at: now),
            let place = edit.person.addresses[address]?.tag
        else { return nil }
        let link = UnsubscribeLink(
            of: edit.subject, category: category, channel: address.channel, destination: place)
        let target = try LinkTarget.load(link, from: memory)
        let start = saidAt.map { min($0, target.repeatStart(at: now)) } ?? .longAgo
        guard !target.isMuted(since: start, under: policy, byAnybody: true) else { return nil }
        let choice = PreferenceRecord(
            subject: holder, scope: category.rawValue, channel: address.channel, destination: place,
            state: .userOff, source: .sharedAddress, at: now, caller: caller)
        return (choice, edit)
    }
}
