import BundleModel
import CompliancePolicy
import GateRecords
import GateVocabulary

/// A no that is about a number or mailbox, and so counts for everybody who has it (SG-0045).
extension StepContext {
    /// Shares a no that cannot be taken back with everybody else who registered some numbers or mailboxes, and with who registers them
    /// later.
    ///
    /// - Returns: An entry where it does not hold for all of them yet; see ``shareNo(_:with:besides:by:at:)``.
    func shareNo(
        _ category: GateVocabulary.Category, at places: [AddressRecord], besides own: SubjectID,
        by caller: CallerName, at now: Instant
    ) throws -> EntryReference? {
        guard policy.category(category).switchOff == .anyone else { return nil }
        let addresses = places.filter { $0.channel != .push }.map(AddressKey.init)
        let holders = try addresses.flatMap { address in
            try memory.holders(of: address).map { ($0, address) }
        }
        if let last = try shareNo(category, with: holders, besides: own, by: caller, at: now).unfinished {
            return last
        }
        for address in addresses { try remember(at: address) { $0.add(category, by: nil, at: now) } }
        return nil
    }

    /// Switches a category off for everybody else who registered some numbers or mailboxes, as a link in their own message would:
    /// a no that came by an address, or an objection of somebody who has it, is about the address (SG-0045). At most
    /// ``replyHolderCountMax`` people in one step.
    ///
    /// - Returns: The choices that were recorded, and where it does not hold for all of them yet the last entry: an alarm was
    ///   raised, and the same act goes on with the others.
    func shareNo(
        _ category: GateVocabulary.Category,
        with holders: [(SubjectID, AddressKey)],
        besides own: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> (choices: [PreferenceRecord], unfinished: EntryReference?) {
        var choices: [PreferenceRecord] = []
        var last: EntryReference?
        for (holder, address) in holders where holder != own {
            guard let no = try sharedNo(to: category, at: address, of: holder, by: caller, at: now) else {
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
        return (choices, nil)
    }

    /// The choice that switches a category off for a person because of another's no at the same number or mailbox; `nil` where it
    /// would change nothing.
    func sharedNo(
        to category: GateVocabulary.Category, at address: AddressKey, of holder: SubjectID,
        by caller: CallerName, at now: Instant
    ) throws -> (choice: PreferenceRecord, edit: PersonEdit)? {
        guard policy.category(category).switchOff == .anyone, let edit = try beginEdit(of: holder, at: now),
            let place = edit.person.addresses[address]?.tag
        else { return nil }
        let link = UnsubscribeLink(
            of: edit.subject, category: category, channel: address.channel, destination: place)
        guard try !LinkTarget.load(link, from: memory).isMuted(under: policy, byAnybody: true) else {
            return nil
        }
        let choice = PreferenceRecord(
            subject: holder, scope: category.rawValue, channel: address.channel, destination: place,
            state: .userOff, source: .sharedAddress, at: now, caller: caller)
        return (choice, edit)
    }
}
