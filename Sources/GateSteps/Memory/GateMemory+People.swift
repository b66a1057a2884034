package import GateRecords
package import GateVocabulary

extension GateMemory {
    package func subject(of user: UserID) throws -> Subject? {
        try known(known(user), .user(user)).flatMap { erased.contains($0.id) ? nil : $0 }
    }

    package func subject(_ id: SubjectID) throws -> Subject? {
        if erased.contains(id) { return nil }
        return try known(person(id)?.subject, .subject(id))
    }

    package func state(of subject: SubjectID) throws -> RecipientState? {
        if erased.contains(subject) { return nil }
        return try known(person(subject)?.state, .state(subject))
    }

    /// The active device that was put last with this token, by ``DeviceRecord/tokenIdentity``; `nil` when none is.
    package func device(withToken identity: String) throws -> DeviceRecord? {
        let stored = try known(tokens[identity], .token(identity))
        for holder in [addedTokens[identity], stored] {
            guard let holder, let state = try state(of: holder) else { continue }
            if let device = state.devices.first(where: { $0.isActive && $0.tokenIdentity == identity }) {
                return device
            }
        }
        return nil
    }

    package func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        guard let holder = try addedKeys[key] ?? known(keys[key], .key(key)) else { return nil }
        return try state(of: holder)?.key(key)
    }

    package func consentRecords(of subject: SubjectID) throws -> [ConsentRecord] {
        try ledger(of: subject, \.consents, .consents(subject), adding: \.addedConsents)
    }

    /// Every transition of a preference, oldest first.
    package func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        try ledger(of: subject, \.choices, .choices(subject), adding: \.addedChoices)
    }

    private func ledger<Event>(
        of subject: SubjectID, _ stored: KeyPath<KnownPerson, Known<[Event]>?>, _ ask: Ask,
        adding added: KeyPath<KnownPerson, [Event]>
    ) throws -> [Event] {
        if erased.contains(subject) { return [] }
        let person = person(adding: subject)
        // A person that this batch adds has no ledger to load.
        guard try state(of: subject) != nil || person[keyPath: stored] != nil else {
            return person[keyPath: added]
        }
        return try known(person[keyPath: stored], ask) + person[keyPath: added]
    }

    // MARK: Pseudonyms

    /// The pseudonym that the engine has made for a user; `nil` once that person is erased, because one who comes back gets
    /// another.
    func newSubject(for user: UserID) -> Subject? {
        newSubjects[user].flatMap { erased.contains($0.id) ? nil : $0 }
    }

    /// Makes a pseudonym and a key for a user who has none.
    package func makeSubject(for user: UserID) throws -> Subject {
        guard let subject = newSubject(for: user) else { throw MissingRows(.newSubject(user)) }
        add(subject, for: user)
        return subject
    }

    /// Gives a user a pseudonym and a key of the caller's choice.
    package func add(_ subject: Subject, for user: UserID) {
        write(.success(subject), at: user, in: \.users)
        let person = person(adding: subject.id)
        let before = (person.subject, person.state, person.forwards)
        person.subject = .success(subject)
        if person.state == nil { person.state = .success(nil) }
        if person.forwards == nil {
            person.forwards = .success(KnownForwards(since: Instant(milliseconds: 0), records: []))
        }
        onUndo { _ in (person.subject, person.state, person.forwards) = before }
        change.newSubjects.append((user, subject))
    }

    /// Removes everything held of a person, and marks the mapping for destruction: the last that its step does about them.
    package func eraseSubject(_ subject: SubjectID) {
        if erased.insert(subject).inserted { onUndo { $0.erased.remove(subject) } }
        change.erased.append(subject)
    }

    // MARK: States and ledgers

    /// Replaces a person's state, and the look-up keys of their devices and device keys.
    package func put(_ state: RecipientState) throws {
        let subject = state.subject
        let before = try self.state(of: subject)
        let (person, old) = (person(adding: subject), before ?? RecipientState(subject))
        let known = person.state
        if state.devices != old.devices {
            for device in state.devices where device.isActive && !old.devices.contains(device) {
                write(subject, at: device.tokenIdentity, in: \.addedTokens)
            }
        }
        if state.keys != old.keys {
            for key in state.keys where old.key(key.key) == nil {
                write(subject, at: key.key, in: \.addedKeys)
            }
        }
        if state.addresses != old.addresses {
            for address in state.addresses {
                let key = AddressKey(address)
                write(addedHolders[key, default: []] + [subject], at: key, in: \.addedHolders)
            }
        }
        person.state = .success(state)
        onUndo { _ in person.state = known }
        let first = change.states[subject].map(\.before) ?? before
        change.states.set(subject, to: Change.StateWrite(before: first, after: state))
    }

    /// Changes a person's state, which is empty before the first change. A consent or a choice is also appended to
    /// its ledger, whose events never change.
    package func apply(_ change: PersonChange, to subject: SubjectID) throws {
        var state = try state(of: subject) ?? RecipientState(subject)
        switch change {
        case .consent(let record):
            let earlier = record.withdraws == nil ? [] : try consentRecords(of: subject)
            append(state.apply(record, after: earlier))
        case .preference(let choice):
            state.apply(change)
            append(choice, at: state.choiceCount)
        default: state.apply(change)
        }
        try put(state)
    }

    /// Appends a record to its ledger, at the position that it has.
    func append(_ record: ConsentRecord) {
        let person = person(adding: record.subject)
        person.addedConsents.append(record)
        onUndo { _ in person.addedConsents.removeLast() }
        change.consents.append(record)
    }

    /// - Parameter position: From 1.
    func append(_ choice: PreferenceRecord, at position: Int64) {
        let person = person(adding: choice.subject)
        person.addedChoices.append(choice)
        onUndo { _ in person.addedChoices.removeLast() }
        change.choices.append((choice, position))
    }

    // MARK: Who has an address

    /// Everybody who has the mailbox registered now that a link was sent to, with that mailbox, whether or not the link's own
    /// person still has it.
    func mailboxHolders(of link: UnsubscribeLink, of subject: Subject) throws -> [(SubjectID, AddressKey)] {
        guard let mailbox = link.mailbox else { return [] }
        let stored = try known(mailboxHolders[mailbox], .mailboxHolders(mailbox))
        let added = addedHolders.filter { link.isSent(to: $0.key, of: subject) }.values.joined()
        return try holders(among: stored + added) { addresses in
            addresses.lazy.map(AddressKey.init).first { link.isSent(to: $0, of: subject) }
        }
    }

    /// Pseudonyms of all people who have a number or a mailbox registered now.
    package func holders(of address: AddressKey) throws -> [SubjectID] {
        let stored = try known(holders[address], .holders(address))
        return try holders(among: stored + addedHolders[address, default: []]) { $0[address] }.map(\.0)
    }

    /// Those of some people who have an address now, in one order whatever theirs was.
    private func holders<Address>(
        among people: [SubjectID], having address: ([AddressRecord]) -> Address?
    ) throws -> [(SubjectID, Address)] {
        try Set(people).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.compactMap { subject in
            try state(of: subject).flatMap { address($0.addresses) }.map { (subject, $0) }
        }
    }

    // MARK: Links and replies

    package func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink? {
        try known(links[id], .unsubscribeLink(id)).flatMap { erased.contains($0.subject) ? nil : $0 }
    }

    /// Keeps a link, which is never another one under the same id.
    package func putUnsubscribeLink(_ link: UnsubscribeLink) {
        guard !change.links.contains(link) else { return }
        write(.success(link), at: link.id, in: \.links)
        change.links.append(link)
    }

    package func reply(_ key: RequestKey) throws -> ReplyRecord? {
        try known(replies[key], .reply(key))
    }

    /// When a withdrawal from a number was confirmed last; `nil` where none was within the retention.
    package func confirmed(_ addressHash: [UInt8]) throws -> Instant? {
        try known(confirmed[addressHash], .confirmed(addressHash))
    }

    package func putReply(_ reply: ReplyRecord) {
        write(.success(reply), at: reply.key, in: \.replies)
        if let confirmation = reply.confirmation {
            write(.success(reply.at), at: confirmation.addressHash, in: \.confirmed)
        }
        change.replies.append(reply)
    }
}
