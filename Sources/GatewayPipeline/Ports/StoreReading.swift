package import GateSteps
package import GateVocabulary
package import GateRecords

/// Look-ups in the store, on one consistent snapshot.
package protocol StoreReading: HistoryReading {
    // MARK: People

    /// The active device that was put last with this token, by ``DeviceRecord/tokenIdentity``; `nil` when none is.
    func device(withToken identity: String) throws -> DeviceRecord?
    func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord?
    /// Ids of device keys in their own order, only those after one, at most `limit`: of all people, in whatever state.
    func deviceKeys(after key: KeyID?, limit: Int) throws -> [KeyID]
    /// Pseudonyms of people with a state, in rising order, at most `limit`, and only those after one.
    func people(after subject: SubjectID?, limit: Int) throws -> [SubjectID]
    /// Pseudonyms that a user leads to, in rising order, at most `limit`, and only those after one; also those that are being
    /// erased.
    func mappedSubjects(after subject: SubjectID?, limit: Int) throws -> [SubjectID]
    /// How far a person's ledgers go, whatever their state says.
    func ledgerEnds(of subject: SubjectID) throws -> LedgerEnds

    /// The target of an unsubscribe link; `nil` for a link that no message carried, and for one of an erased person.
    func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink?

    /// All people with a registered number or mailbox; in any order.
    func holders(of address: AddressKey) throws -> [SubjectID]
    /// All people with the mailbox registered that an unsubscribe link was sent to, in any order; none for a link of a push.
    func mailboxHolders(of hash: [UInt8]) throws -> [SubjectID]
    /// The answer to a reply; `nil` for one that never came, or is past its retention.
    func reply(_ key: RequestKey) throws -> ReplyRecord?
    /// When a withdrawal from a number was confirmed last, by ``ReplyConfirmation/addressHash``; `nil` where none was within
    /// the retention.
    func confirmed(_ addressHash: [UInt8]) throws -> Instant?

    // MARK: Sends

    func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord?
    /// For each ask, whether it is a ``Ask/newSend(_:to:countedSeconds:)`` whose request no send has. All are looked for
    /// together; one that is said to be none may be one.
    func newRequests(in asks: [Ask]) throws -> [Bool]
    /// Newest first, at most `limit`, and only older ones than `before`; empty when that is no send of theirs.
    func sends(of subject: SubjectID, before: SendID?, limit: Int) throws -> [SendRecord]
    /// Overdue duties of all people, the longest overdue first, at most `limit`.
    func overdueDuties(at now: Instant, limit: Int) throws -> [DutyRecord]
    /// Rows of this send that wait.
    func outbox(of send: SendID) throws -> [OutboxRecord]
    func outbox(_ message: MessageID) throws -> OutboxRecord?
    /// The same without what is sealed of it (``OutboxRecord/headers``, ``OutboxRecord/body``, ``OutboxRecord/facts``,
    /// ``OutboxRecord/eventTag``), which is not opened: for one that is done.
    func outboxHead(_ message: MessageID) throws -> OutboxRecord?
    /// Rows of this person that wait.
    func outbox(of subject: SubjectID) throws -> [OutboxRecord]
    /// How many rows of this person wait, counted no further than `limit`.
    func outboxCount(of subject: SubjectID, limit: Int) throws -> Int
    /// Messages of a lane whose time has come, by tier, then fairly over callers, then by age: at most `limit`,
    /// none of `excluding` and none that is offered (``Change/MessageWrite/offer(_:)``). Reads none of them, so that a damaged
    /// page hides no message but its own.
    func dueOutbox(
        at now: Instant, limit: Int, lane: DeliveryLane, excluding: Set<MessageID>
    ) throws -> [MessageID]
    /// When the next row of a lane becomes due, those left out that ``dueOutbox(at:limit:lane:excluding:)`` leaves out;
    /// `nil` when none waits.
    func nextOutboxDue(lane: DeliveryLane, excluding: Set<MessageID>) throws -> Instant?
    func outboxDepth() throws -> OutboxDepth
    /// Outcomes of a caller's own sends after a cursor, oldest first.
    func events(of caller: CallerName, after cursor: Int64, limit: Int) throws -> [EventRecord]
    /// The events of one send, oldest first.
    func events(of send: SendID) throws -> [EventRecord]

    // MARK: Trail

    /// Number of entries ever written; the next entry's index.
    func entryCount() throws -> UInt64
    /// Entries from an index on, at most `limit`; only those still held.
    func entries(from index: UInt64, limit: Int) throws -> [StoredEntry]
    func entry(_ index: UInt64) throws -> StoredEntry?
    /// Size of the tree the publisher has made durable.
    func publishedSize() throws -> UInt64
    /// Names of settings, in their order, at most `limit`.
    func settingNames(in range: Range<String>, limit: Int) throws -> [String]
    /// How many stored values are not sealed under the data key that seals now. Reads every row: for an operator.
    func laggingRowCount() throws -> Int64
    /// Whether a data key ever sealed in this store, so that stored values may be under it.
    func hasSealed(under key: String) throws -> Bool
    /// Whether stored values are under a data key, besides those that an operator has accepted as lost. Reads every row where
    /// none is.
    func hasValues(under key: String) throws -> Bool
    /// Ids of data keys that stored values are under and that are not loaded. Reads every row where an earlier key is not
    /// loaded: for an operator.
    func missingDataKeys() throws -> [String]
    /// Time of the newest entry.
    func newestEntryTime() throws -> Instant?
    /// What the clocks showed when it was recorded; `nil` when that is not known.
    func newestEntryClock() throws -> ClockReading?
}

extension StoreReading {
    /// Answers asks by look-ups, one by one. Answers that are there already, loaded or changed by a step, stay.
    ///
    /// - Throws: An error that stops every look-up; a row that cannot be read is an answer.
    package func answer(_ asks: [Ask], into memory: GateMemory) throws {
        var isNew: [Bool] = []
        if asks.count > 1 {
            memory.reserve(asks)
            if memory.requests.isEmpty { isNew = try newRequests(in: asks) }
        }
        for (place, ask) in asks.enumerated() {
            if case .newSend(let key, let user, let seconds) = ask {
                try answerSend(
                    key, isNew: !isNew.isEmpty && isNew[place], to: user, countedSeconds: seconds,
                    into: memory
                )
            } else if !memory.knows(ask) {
                try answer(ask, into: memory)
            }
        }
    }

    package func newRequests(in asks: [Ask]) throws -> [Bool] { Array(repeating: false, count: asks.count) }

    private func answer(_ ask: Ask, into memory: GateMemory) throws {
        switch ask {
        case .user(let user): _ = try find(user, into: memory)
        case .subject(let subject):
            memory.person(adding: subject).subject = try inline { try self.subject(subject) }
        case .state(let subject): try findState(of: memory.person(adding: subject))
        case .token(let identity):
            let holder = try outcome { try device(withToken: identity)?.subject }
            memory.tokens[identity] = holder
            if case .success(let subject?) = holder { try findState(of: memory.person(adding: subject)) }
        case .key(let key):
            let holder = try outcome { try deviceKey(key)?.subject }
            memory.keys[key] = holder
            if case .success(let subject?) = holder { try findState(of: memory.person(adding: subject)) }
        case .consents(let subject):
            memory.person(adding: subject).consents = try outcome { try consentRecords(of: subject) }
        case .choices(let subject):
            memory.person(adding: subject).choices = try outcome { try preferenceHistory(of: subject) }
        case .unsubscribeLink(let id): memory.links[id] = try outcome { try unsubscribeLink(id) }
        case .holders(let address):
            memory.holders[address] = try withStates(into: memory) { try holders(of: address) }
        case .mailboxHolders(let hash):
            memory.mailboxHolders[hash] = try withStates(into: memory) { try mailboxHolders(of: hash) }
        case .reply(let key): memory.replies[key] = try outcome { try reply(key) }
        case .confirmed(let address): memory.confirmed[address] = try outcome { try confirmed(address) }
        case .forwards(let subject, let since):
            try findForwards(to: memory.person(adding: subject), since: since)
        case .request(let key): try find(key, into: memory)
        case .send(let send): memory.sends[send] = try outcome { try self.send(send) }
        case .dedupe(let key):
            memory.dedupe[key] = try outcome { try dedupeRecord(key.tag, to: key.subject) }
        case .duty(let key):
            memory.duties[key] = try outcome { try duty(key.tag, of: key.subject) }
                .map { $0.flatMap { memory.endedDuties[key.subject]?.contains($0.send) == true ? nil : $0 } }
        case .message(let message): memory.messages[message] = try outcome { try outbox(message) }
        case .messageHead(let message):
            memory.messageHeads[message] = try outcome { try outboxHead(message) }
        case .messagesOfSend(let send):
            memory.messagesOfSend[send] = try messages(try outcome { try outbox(of: send) }, into: memory)
        case .messagesOfPerson(let subject):
            memory.messagesOfPerson[subject] = try messages(
                try outcome { try outbox(of: subject) }, into: memory)
        case .messageCount(let subject, let limit):
            memory.messageCounts[subject] = try outcome { try outboxCount(of: subject, limit: limit) }
        case .eventsOfSend(let send): memory.eventsOfSend[send] = try outcome { try events(of: send) }
        case .setting(let name): memory.settings[name] = try outcome { try setting(name) }
        case .outboxDepth: memory.depth = try outboxDepth()
        case .newSend, .entry, .recall, .newSubject, .challenge, .identifiers, .headroom: break
        }
    }

    /// Answers ``Ask/newSend(_:to:countedSeconds:)``, of which some may be there.
    private func answerSend(
        _ key: RequestKey, isNew: Bool, to user: UserID, countedSeconds: Int64?, into memory: GateMemory
    ) throws {
        if isNew {
            memory.requests[key] = memory.noSend
        } else if !memory.knows(.request(key)) {
            try find(key, into: memory)
        }
        if !memory.knows(.outboxDepth) { memory.depth = try outboxDepth() }
        if let person = try find(user, into: memory), let since = memory.start(ofSeconds: countedSeconds),
            !person.knowsForwards(since: since)
        {
            try findForwards(to: person, since: since)
        }
    }

    private func find(_ key: RequestKey, into memory: GateMemory) throws {
        do {
            guard let found = try send(caller: key.caller, idHash: key.idHash) else {
                memory.requests[key] = memory.noSend
                return
            }
            memory.take(.success(found), of: key)
        } catch let error as StoreError where error.damage != nil {
            memory.take(.failure(error), of: key)
        }
    }

    /// Looks for a user and their state.
    ///
    /// - Returns: The person; `nil` for a user who has no pseudonym, and where that cannot be read.
    private func find(_ user: UserID, into memory: GateMemory) throws -> KnownPerson? {
        let found = try memory.known(user) ?? inline { try subject(of: user) }
        guard let person = memory.take(found, of: user) else { return nil }
        try findState(of: person)
        return person
    }

    private func findState(of person: KnownPerson) throws {
        if person.state == nil { person.state = try inline { try state(of: person.id) } }
    }

    private func findForwards(to person: KnownPerson, since: Instant) throws {
        person.forwards = try inline {
            KnownForwards(
                since: since,
                records: try countedForwards(of: person.id, since: since, limit: KnownForwards.countMax))
        }
    }

    private func messages(
        _ rows: Known<[OutboxRecord]>, into memory: GateMemory
    ) throws -> Known<[MessageID]> {
        rows.map { rows in
            for row in rows where memory.messages[row.message] == nil {
                memory.messages[row.message] = .success(row)
            }
            return rows.map(\.message)
        }
    }

    /// People that were looked up, whose states are loaded with them.
    private func withStates(
        into memory: GateMemory, _ look: () throws -> [SubjectID]
    ) throws -> Known<[SubjectID]> {
        let people = try outcome(look)
        if case .success(let subjects) = people {
            for subject in subjects { try findState(of: memory.person(adding: subject)) }
        }
        return people
    }

    /// Inlined: as a call it looks up the type of what it gives each time, which costs 2 % more instructions in a refused send, like
    /// ``inline(_:)``.
    @inline(__always)
    private func outcome<Value>(_ look: () throws -> Value) throws -> Known<Value> {
        do {
            return .success(try look())
        } catch let error as StoreError where error.damage != nil {
            return .failure(error)
        }
    }

    /// The same of a value that needs no box.
    @inline(__always)
    private func inline<Value>(_ look: () throws -> Value) throws -> KnownInline<Value> {
        do {
            return .success(try look())
        } catch let error as StoreError where error.damage != nil {
            return .failure(error)
        }
    }

    /// Where the trail ends.
    package func trailTail() throws -> TrailTail {
        TrailTail(
            entryCount: try entryCount(), publishedSize: try publishedSize(),
            newestTime: try newestEntryTime(), newestClock: try newestEntryClock())
    }
}
