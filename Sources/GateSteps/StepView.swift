package import GateVocabulary
package import GateRecords

/// What a step can read, and what it has written so far.
///
/// Reads find what this step wrote, then what the steps before it wrote, then what was loaded. Reading anything else
/// throws ``MissingRows``: a step reaches data only through its view, and does not know where the data comes from.
///
/// A value of two references: copies see the same rows and write into the same change.
package struct StepView: HistoryReading {
    let state: BatchState
    package let change = Change()

    package init(_ state: BatchState) { self.state = state }

    /// - Parameter ask: What is to be loaded where it is not known; made then only.
    private func known<Value>(
        _ value: BatchState.Known<Value>?, _ ask: @autoclosure () -> Ask
    ) throws -> Value {
        guard let value else { throw MissingRows(ask()) }
        return try value.get()
    }

    private func known<Value>(
        _ value: BatchState.Unboxed<Value>?, _ ask: @autoclosure () -> Ask
    ) throws -> Value {
        guard let value else { throw MissingRows(ask()) }
        return try value.get()
    }

    /// Throws ``MissingRows`` when the answer to an ask is not loaded.
    func require(_ ask: Ask) throws {
        guard state.knows(ask) else { throw MissingRows(ask) }
    }

    // MARK: People

    package func subject(of user: UserID) throws -> Subject? {
        if let made = change.newSubjects.last(where: { $0.user == user }) { return made.subject }
        let subject = try known(state.users[user], .user(user))
        return subject.flatMap { change.erased.contains($0.id) ? nil : $0 }
    }

    package func subject(_ id: SubjectID) throws -> Subject? {
        if change.erased.contains(id) { return nil }
        if let made = change.newSubjects.first(where: { $0.subject.id == id }) { return made.subject }
        return try known(state.person(id)?.subject, .subject(id))
    }

    package func state(of subject: SubjectID) throws -> RecipientState? {
        if change.erased.contains(subject) { return nil }
        if let changed = change.states[subject] { return changed }
        if change.newSubjects.contains(where: { $0.subject.id == subject }) { return nil }
        return try known(state.person(subject)?.state, .state(subject))
    }

    /// The active device that was put last with this token, by ``DeviceRecord/tokenIdentity``; `nil` when none is.
    package func device(withToken identity: String) throws -> DeviceRecord? {
        let stored = try known(state.tokens[identity], .token(identity))
        let own = change.states.pairs.last { pair in pair.value.hasActiveDevice(withToken: identity) }?.key
        for holder in [own, state.addedTokens[identity], stored] {
            guard let holder, let state = try self.state(of: holder) else { continue }
            if let device = state.devices.first(where: { $0.isActive && $0.tokenIdentity == identity }) {
                return device
            }
        }
        return nil
    }

    package func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        if let own = change.states.pairs.lazy.compactMap({ $0.value.key(key) }).first { return own }
        guard let holder = try state.addedKeys[key] ?? known(state.keys[key], .key(key)) else { return nil }
        return try state(of: holder)?.key(key)
    }

    package func consentRecords(of subject: SubjectID) throws -> [ConsentRecord] {
        if change.erased.contains(subject) || state.erased.contains(subject) { return [] }
        var records: [ConsentRecord] = []
        // A person that this batch adds has no ledger to load.
        if try self.state(of: subject) != nil || state.consents[subject] != nil {
            records = try known(state.consents[subject], .consents(subject))
        }
        records += state.addedConsents[subject, default: []]
        return records + change.consents.filter { $0.subject == subject }
    }

    /// Every transition of a preference, oldest first.
    package func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        if change.erased.contains(subject) || state.erased.contains(subject) { return [] }
        var choices: [PreferenceRecord] = []
        if try self.state(of: subject) != nil || state.choices[subject] != nil {
            choices = try known(state.choices[subject], .choices(subject))
        }
        choices += state.addedChoices[subject, default: []]
        return choices + change.choices.map(\.record).filter { $0.subject == subject }
    }

    package func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink? {
        if let own = change.links.first(where: { $0.id == id }) { return own }
        let link = try known(state.links[id], .unsubscribeLink(id))
        return link.flatMap { link in
            change.erased.contains(link.subject) || state.erased.contains(link.subject) ? nil : link
        }
    }

    /// Keeps a link, which is never another one under the same id.
    package func putUnsubscribeLink(_ link: UnsubscribeLink) {
        if !change.links.contains(link) { change.links.append(link) }
    }

    /// Everybody who has the mailbox registered now that a link was sent to, with that mailbox, whether or not the link's own
    /// person still has it.
    func mailboxHolders(of link: UnsubscribeLink, of subject: Subject) throws -> [(SubjectID, AddressKey)] {
        guard let mailbox = link.mailbox else { return [] }
        let stored = try known(state.mailboxHolders[mailbox], .mailboxHolders(mailbox))
        let added = state.addedHolders.filter { link.isSent(to: $0.key, of: subject) }.values.joined()
        return try holders(among: stored + added) { addresses in
            addresses.lazy.map(AddressKey.init).first { link.isSent(to: $0, of: subject) }
        }
    }

    /// Pseudonyms of all people who have a number or a mailbox registered now.
    package func holders(of address: AddressKey) throws -> [SubjectID] {
        let stored = try known(state.holders[address], .holders(address))
        return try holders(among: stored + state.addedHolders[address, default: []]) { $0[address] }.map(\.0)
    }

    /// Those of some people who have an address now, in one order whatever theirs was.
    private func holders<Address>(
        among people: [SubjectID], having address: ([AddressRecord]) -> Address?
    ) throws -> [(SubjectID, Address)] {
        try Set(people).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.compactMap { subject in
            try state(of: subject).flatMap { address($0.addresses) }.map { (subject, $0) }
        }
    }

    package func reply(_ key: RequestKey) throws -> ReplyRecord? {
        if let own = change.replies.first(where: { $0.key == key }) { return own }
        return try known(state.replies[key], .reply(key))
    }

    /// When a withdrawal from a number was confirmed last; `nil` where none was within the retention.
    package func confirmed(_ addressHash: [UInt8]) throws -> Instant? {
        let own = change.replies.last { $0.confirmation?.addressHash == addressHash }?.at
        return try own ?? known(state.confirmed[addressHash], .confirmed(addressHash))
    }

    package func putReply(_ reply: ReplyRecord) { change.replies.append(reply) }

    /// Makes a pseudonym and a key for a user who has none.
    package func makeSubject(for user: UserID) throws -> Subject {
        guard let subject = state.newSubjects[user] else { throw MissingRows(.newSubject(user)) }
        add(subject, for: user)
        return subject
    }

    /// Gives a user a pseudonym and a key of the caller's choice.
    package func add(_ subject: Subject, for user: UserID) { change.newSubjects.append((user, subject)) }

    /// Replaces a person's state, and the look-up keys of their devices and device keys.
    package func put(_ state: RecipientState) throws { change.states.set(state.subject, to: state) }

    /// Changes a person's state, which is empty before the first change. A consent or a choice is also appended to
    /// its ledger, whose events never change.
    package func apply(_ change: PersonChange, to subject: SubjectID) throws {
        var state = try state(of: subject) ?? RecipientState(subject)
        switch change {
        case .consent(let record):
            let earlier = record.withdraws == nil ? [] : try consentRecords(of: subject)
            self.change.consents.append(state.apply(record, after: earlier))
        case .preference(let choice):
            state.apply(change)
            self.change.choices.append((choice, state.choiceCount))
        default: state.apply(change)
        }
        try put(state)
    }

    /// Removes everything held of a person, and marks the mapping for destruction: the last that its step does about them.
    package func eraseSubject(_ subject: SubjectID) throws { change.erased.append(subject) }

    // MARK: Sends

    package func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord? {
        if let own = change.sends.first(where: { $0.caller == caller && $0.idHash == idHash }) { return own }
        let key = RequestKey(caller: caller, idHash: idHash)
        return try unlessErased(known(state.send(key), .request(key)))
    }

    package func send(_ id: SendID) throws -> SendRecord? {
        if let own = change.sends.first(where: { $0.id == id }) { return own }
        return try unlessErased(known(state.send(id), .send(id)))
    }

    private func unlessErased(_ send: SendRecord?) -> SendRecord? {
        send.flatMap { send in
            send.subject.map { change.erased.contains($0) || state.erased.contains($0) } == true ? nil : send
        }
    }

    package func insertSend(_ record: consuming SendRecord) throws { Change.add(record, to: &change.sends) }

    package func forwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord] {
        if change.erased.contains(subject) || state.erased.contains(subject) { return [] }
        var records: [ForwardRecord] = []
        for (owner, record) in change.forwards.reversed() where owner == subject { records.append(record) }
        let person = state.person(subject)
        if let person, !person.addedForwards.isEmpty { records += person.addedForwards.reversed() }
        if let loaded = try person?.forwards?.get() {
            guard loaded.since <= since else { throw MissingRows(.forwards(subject, since: since)) }
            // The store has each send once.
            guard !records.isEmpty else { return Self.newest(loaded.records, since: since, limit: limit) }
            records += loaded.records
        } else if try state(of: subject) != nil {
            // A person that this batch adds has none to load.
            throw MissingRows(.forwards(subject, since: since))
        }
        // A send counts once, from its first forward: the last of its records here.
        var seen: Set<SendID> = []
        records = records.reversed().filter { $0.send.map { seen.insert($0).inserted } ?? true }.reversed()
        return Self.newest(records, since: since, limit: limit)
    }

    private static func newest(_ records: [ForwardRecord], since: Instant, limit: Int) -> [ForwardRecord] {
        let isWhole = records.count <= limit && records.allSatisfy { $0.at >= since }
        return isWhole ? records : Array(records.lazy.filter { $0.at >= since }.prefix(limit))
    }

    /// A send counts once, at its first forward, however many destinations it has.
    package func countForward(
        of subject: SubjectID, type: TypeID, category: Category, at now: Instant, send: SendID
    ) throws {
        let isCounted =
            change.forwards.contains { $0.record.send == send }
            || state.person(subject)?.addedForwards.contains { $0.send == send } == true
        guard !isCounted else { return }
        change.forwards.append((subject, ForwardRecord(at: now, type: type, category: category, send: send)))
    }

    package func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord? {
        let key = SubjectTag(eventTag, of: subject)
        if let own = change.dedupe[key] { return own }
        return try known(state.dedupe[key], .dedupe(key))
    }

    /// Replaces what was on record about the same event.
    package func putDedupe(_ record: DedupeRecord, to subject: SubjectID) throws {
        change.dedupe.set(SubjectTag(record.eventTag, of: subject), to: record)
    }

    package func removeDedupe(_ eventTag: Tag, to subject: SubjectID) throws {
        change.dedupe.set(SubjectTag(eventTag, of: subject), to: nil)
    }

    package func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? {
        let key = SubjectTag(duty, of: subject)
        var own: DutyRecord??
        for write in change.duties {
            switch write {
            case .put(let record) where record.key == key: own = .some(record)
            case .remove(key): own = .some(nil)
            case .removeOf(let send, subject):
                let current = try own ?? known(state.duties[key], .duty(key))
                if current?.send == send { own = .some(nil) }
            case .put, .remove, .removeOf: break
            }
        }
        return try own ?? known(state.duties[key], .duty(key))
    }

    /// Replaces what was on record about the same duty.
    package func putDuty(_ record: DutyRecord) throws { change.duties.append(.put(record)) }

    package func removeDuty(_ duty: Tag, of subject: SubjectID) throws {
        change.duties.append(.remove(SubjectTag(duty, of: subject)))
    }

    /// Forgets the duties that stand on record by a send.
    package func removeDuties(of send: SendID, to subject: SubjectID) throws {
        change.duties.append(.removeOf(send, subject))
    }

    package func events(of send: SendID) throws -> [EventRecord] {
        try known(state.eventsOfSend[send], .eventsOfSend(send)) + state.addedEvents(of: send)
            + change.events.filter { $0.send == send }
    }

    package func appendEvent(_ event: EventRecord) throws { change.events.append(event) }

    // MARK: Messages

    package func outbox(_ message: MessageID) throws -> OutboxRecord? {
        try own(message, or: known(state.message(message), .message(message)))
    }

    /// The same without what is sealed of it (``OutboxRecord/headers``, ``OutboxRecord/body``, ``OutboxRecord/facts``,
    /// ``OutboxRecord/event``), which is not opened: for one that is done.
    package func outboxHead(_ message: MessageID) throws -> OutboxRecord? {
        try own(message, or: known(state.messageHead(message), .messageHead(message)))
    }

    /// A row as this step leaves it.
    private func own(
        _ message: MessageID, or stored: @autoclosure () throws -> OutboxRecord?
    ) throws -> OutboxRecord? {
        guard change.listWritten(message) else { return try stored() }
        if let own = ownMessage(message) { return own }
        return ownAttempt(try stored())
    }

    /// The row as this step wrote it; `nil` where it did not, or only a part of it.
    private func ownMessage(_ message: MessageID) -> OutboxRecord?? {
        var found: OutboxRecord??
        for index in change.written.indices where change.written[index] == message {
            switch change.messages[index] {
            case .insert(let record), .offer(let record), .update(let record): found = .some(record)
            case .remove: found = .some(nil)
            case .attempt(_, let moment):
                found??.attemptCount += 1
                found??.attemptedAt = moment
            case .postpone(_, let moment): found??.notBefore = moment
            }
        }
        return found
    }

    private func ownAttempt(_ record: OutboxRecord?) -> OutboxRecord? {
        guard var record else { return nil }
        for index in change.written.indices where change.written[index] == record.message {
            switch change.messages[index] {
            case .attempt(_, let moment):
                record.attemptCount += 1
                record.attemptedAt = moment
            case .postpone(_, let moment): record.notBefore = moment
            case .insert, .offer, .update, .remove: break
            }
        }
        return record
    }

    /// Rows of this send that wait.
    package func outbox(of send: SendID) throws -> [OutboxRecord] {
        // A send of this very batch has nothing in the store.
        let isNew = change.sends.contains { $0.id == send } || state.isNew(send)
        let stored = isNew ? [] : try known(state.messagesOfSend[send], .messagesOfSend(send))
        let added = state.addedMessages { $0.send == send }
        return try outbox(stored + added) { $0.send == send }
    }

    /// Rows of this person that wait.
    package func outbox(of subject: SubjectID) throws -> [OutboxRecord] {
        let stored = try known(state.messagesOfPerson[subject], .messagesOfPerson(subject))
        let added = state.addedMessages { $0.subject == subject }
        return try outbox(stored + added) { $0.subject == subject }
    }

    private func outbox(
        _ ids: [MessageID], where isWanted: (OutboxRecord) -> Bool
    ) throws -> [OutboxRecord] {
        var rows: [OutboxRecord] = []
        var seen: Set<MessageID> = []
        for message in ids where seen.insert(message).inserted {
            if let row = try outbox(message) { rows.append(row) }
        }
        for write in change.messages {
            guard let record = write.added, isWanted(record), seen.insert(record.message).inserted
            else { continue }
            if let row = try outbox(record.message) { rows.append(row) }
        }
        return rows
    }

    /// How many rows of this person wait, counted no further than `limit`; those that this batch takes out still count.
    package func outboxCount(of subject: SubjectID, limit: Int) throws -> Int {
        let stored = try known(state.messageCounts[subject], .messageCount(subject, limit: limit))
        let own = change.messages.count { $0.added?.subject == subject }
        return stored + state.addedMessages { $0.subject == subject }.count + own
    }

    /// The number of waiting messages in all, and of one caller; those that this batch takes out still count.
    package func outboxDepth(
        of caller: CallerName
    ) throws -> (rowCount: Int, byteCount: Int64, rowCountOfCaller: Int) {
        guard let stored = state.depth else { throw MissingRows(.outboxDepth) }
        var own = AddedDepth()
        for place in change.messages.indices { _ = change.messages[place].isAdded(to: &own) }
        return (
            stored.rowCount + state.addedDepth.rowCount + own.rowCount,
            stored.byteCount + state.addedDepth.byteCount + own.byteCount,
            stored.rowCountByCaller[caller, default: 0]
                + state.addedDepth.rowCount(of: caller) + own.rowCount(of: caller)
        )
    }

    private func write(_ write: consuming Change.MessageWrite) { change.messages.append(write) }

    package func insertOutbox(_ record: consuming OutboxRecord) throws { write(.insert(record)) }
    /// Adds a row that goes to the relay from memory.
    package func offerOutbox(_ record: consuming OutboxRecord) throws { write(.offer(record)) }
    /// Replaces the row with the same message id.
    package func updateOutbox(_ record: consuming OutboxRecord) throws { write(.update(record)) }
    /// Marks that a hand-over is about to be tried. Until its result is written, it is not known whether the hop has
    /// the message.
    package func markAttempt(_ message: MessageID, at now: Instant) throws {
        write(.attempt(message, at: now))
    }
    /// Moves a row's time without opening it.
    package func postponeOutbox(_ message: MessageID, until: Instant) throws {
        write(.postpone(message, until: until))
    }
    package func removeOutbox(_ message: MessageID) throws { write(.remove(message)) }

    // MARK: Trail

    /// Number of entries so far, which is the index of the next.
    package var upcomingIndex: UInt64 { state.entryCount + UInt64(change.entries.count) }
    package func newestEntryTime() throws -> Instant? { change.entries.last?.time ?? state.newestTime }
    package func newestEntryClock() throws -> ClockReading? { change.clock ?? state.newestClock }
    package func publishedSize() throws -> UInt64 { change.publishedSize ?? state.publishedSize }

    package func append(_ entry: StoredEntry) { Change.add(entry, to: &change.entries) }
    /// Remembers what the clocks show, beside the newest entry.
    package func setNewestEntryClock(_ reading: ClockReading) throws { change.clock = reading }
    /// Records how far the tree is durable.
    package func setPublishedSize(_ size: UInt64) throws { change.publishedSize = size }

    package func setting(_ name: String) throws -> String? {
        if let own = change.settings[name] { return own }
        return try known(state.settings[name], .setting(name))
    }
    package func setSetting(_ name: String, to value: String?) throws { change.settings.set(name, to: value) }

    /// Deletes idempotency keys, events, counters and told events older than their retention; the receipt says how many
    /// rows went.
    package func prune(before: Instant) throws { change.prunedBefore = before }
    /// Has another data key seal from the end of the commit on.
    package func useDataKey(_ key: String) { change.dataKey = key }
    /// Seals rows anew that are not sealed under the current data key; the receipt says how far the pass has come.
    package func reseal(rowCountMax: Int) { change.resealedRowCountMax = rowCountMax }

    // MARK: Effects

    func affect(_ body: (inout StepEffects) -> Void) { body(&change.effects) }

    /// When the next row of a lane is due, at the latest; `nil` when none waits.
    package func due(in lane: DeliveryLane) -> Instant? {
        guard let before = state.due[lane] else { return change.effects.due[lane] }
        return change.effects.due[lane].map { min($0, before) } ?? before
    }

    /// How many more messages of a lane may be offered.
    package func offerRoom(in lane: DeliveryLane) -> Int {
        state.offerRoomLeft(in: lane) - change.effects.offers.count { $0.lane == lane }
    }

    /// Takes back a message that was offered to the relay.
    ///
    /// - Returns: Whether the relay has not taken it yet: then it never gets it from memory any more.
    func recall(_ message: MessageID) throws -> Bool {
        if let index = change.effects.offers.firstIndex(where: { $0.delivery.message == message }) {
            change.effects.offers.remove(at: index)
            return true
        }
        if change.effects.recalled.contains(message) { return false }
        if !state.offers(message) {
            guard let isRecalled = state.recalls[message] else { throw MissingRows(.recall(message)) }
            guard isRecalled, !state.recalled.contains(message) else { return false }
        }
        change.effects.recalled.insert(message)
        return true
    }

    /// The bytes of an entry that was recorded before, by this step, one before it in the batch, or an earlier batch.
    func entry(_ index: UInt64) throws -> [UInt8] {
        let added = change.entries.first { $0.index == index } ?? state.addedEntry(index)
        if let added { return added.bytes }
        return try known(state.publishedEntries[index], .entry(index))
    }

    func challenge(_ order: ChallengeOrder) throws -> SealedChallenge {
        guard let challenge = state.challenges[order] else { throw MissingRows(.challenge(order)) }
        return challenge
    }

    package func headroom() throws -> Headroom {
        guard let headroom = state.headroom else { throw MissingRows(.headroom) }
        return headroom
    }
}

extension RecipientState {
    fileprivate func hasActiveDevice(withToken identity: String) -> Bool {
        devices.contains { $0.isActive && $0.tokenIdentity == identity }
    }
}
