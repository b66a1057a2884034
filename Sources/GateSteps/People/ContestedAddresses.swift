import BundleModel
import CompliancePolicy
import GateVocabulary
import GateRecords

// Numbers and mailboxes get new owners, and families share them. What opens an account, or warns of an attack on it, goes to
// whoever verified the address last (decision SG-0044).

extension StepContext {
    /// Entries of one registration that only move the time of a contest on, at most. Messages are decided on whether an address is
    /// contested, so an older time at the people beyond the bound refuses none of them.
    static var contestedHolderCountMax: Int { 100 }

    /// What a registration makes of the people who have one number or mailbox.
    struct AddressContest {
        /// The newest verification that the registration is not newer than; `nil` where its person holds the address.
        var since: Instant?
        /// Whom the registration is newer than, or as old as. One of them at most held the address until now.
        var older: [OlderHolder] = []
    }

    /// Another person at whom a number or mailbox becomes contested, or is contested by a newer verification than before.
    struct OlderHolder {
        var subject: SubjectID
        var address: Tag
        /// Whether the person held the address until now, so that decisions change.
        var heldIt: Bool
        var since: Instant
    }

    /// Compares a verification with those of all other people who registered the address.
    ///
    /// A verification that an address was contested by is remembered at the older holders, and with the address itself once its
    /// person has it no more, so it still counts then. The registration of the same verification under another name is no older
    /// than that.
    ///
    /// - Parameter earlier: The same address of the same person, as it is registered until now.
    func contest(
        of address: AddressKey, verifiedAt: Instant?, by subject: SubjectID, before earlier: AddressRecord?
    ) throws -> AddressContest {
        // The same word again, or none, is no new verification.
        guard let verifiedAt, verifiedAt != earlier?.verifiedAt else {
            return AddressContest(since: earlier?.contestedAt)
        }
        var newer = [earlier?.contestedAt].compactMap(\.self).filter { $0 >= verifiedAt }
        let history = try history(of: address)
        if history.outdates(verifiedAt), let left = history.verifiedAt { newer.append(left) }
        var older: [OlderHolder] = []
        for holder in try memory.holders(of: address) where holder != subject {
            guard let other = try memory.state(of: holder)?.addresses[address] else { continue }
            if let since = other.contestedAt, since > verifiedAt { newer.append(since) }
            guard let known = other.verifiedAt else { continue }
            if known >= verifiedAt { newer.append(known) }
            let heldIt = other.contestedAt == nil
            if let since = other.contestedAt ?? (known <= verifiedAt ? .longAgo : nil), since < verifiedAt {
                older.append(
                    OlderHolder(subject: holder, address: other.tag, heldIt: heldIt, since: verifiedAt))
            }
        }
        let losing = older.filter(\.heldIt)
        let later = older.filter { !$0.heldIt }.prefix(max(0, Self.contestedHolderCountMax - losing.count))
        return AddressContest(since: newer.max(), older: losing + later)
    }

    /// Records that an address is another person's by now, decides again what waits for it, and tells the older holder's devices,
    /// once per contest.
    func contest(_ holder: OlderHolder, by caller: CallerName, at now: Instant) throws {
        try record(
            .addressContested(holder.address, since: holder.since), of: holder.subject, by: caller, at: now)
        guard holder.heldIt, let subject = try memory.subject(holder.subject) else { return }
        try reconsider(subject, because: .recipientChanged, at: now)
        guard let person = try RecipientSnapshot.load(subject, from: memory) else { return }
        try announceContest(to: person, at: now)
    }

    /// Sends the notice of a contest to each device of the older holder. The words of its type name neither the address nor another
    /// person.
    private func announceContest(to person: RecipientSnapshot, at now: Instant) throws {
        guard let name = policy.bundle.channels.contestedNotice, let type = policy.type(name) else { return }
        let devices = person.destinations(on: .push)
        guard !devices.isEmpty else { return }
        let notice = try ownNotice(of: type, at: now)
        let drafts = try devices.map { try notice.composer.decide(for: $0, of: person) }
        try commitOwn(
            notice.send, of: type, on: .push, as: drafts, to: person,
            requestID: "address-contested-\(notice.send.uuidText)", at: now)
    }
}
