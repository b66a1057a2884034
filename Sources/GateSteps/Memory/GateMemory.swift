package import GateRecords
package import GateVocabulary

/// What the engine knows of the store: rows as they were loaded, or as the steps of the batch left them.
///
///     load what the operations name → step 1 … step n → one commit of ``applied`` → ``carryOver(prunedRowCount:)``
///
/// A step reads and writes here alone, and the next one reads what it wrote. Reading what is not known throws ``MissingRows``:
/// a step does not know where the data comes from. Every write adds to one log what takes it back, so that a step that throws and
/// a batch that is not committed leave nothing; ``change`` lists the writes for the store.
///
/// One for each try at a batch; the people it has looked at stay in ``RecentPeople`` for the next. Confined to the thread that
/// has its batch: the engine's until the commit, and then the one that answers, which reads ``applied`` and frees the rest.
package final class GateMemory: HistoryReading {
    /// The end of the trail when the batch began; `nil` before anything was loaded.
    package private(set) var tail: TrailTail?

    // MARK: People, by pseudonym

    private let recent: RecentPeople
    var users: [UserID: KnownInline<Subject?>] = [:]
    var people: [SubjectID: KnownPerson] = [:]
    /// The one that was looked for last, because a send asks for several things of one person.
    private var newestPerson: KnownPerson?
    /// People whose erasure the batch has written. Nothing of them is read any more, whatever is known.
    var erased: Set<SubjectID> = []

    // MARK: People, by what is theirs. As stored; holders that the batch adds are beside.

    package var tokens: [String: Known<SubjectID?>] = [:]
    package var keys: [KeyID: Known<SubjectID?>] = [:]
    package var holders: [AddressKey: Known<[SubjectID]>] = [:]
    package var mailboxHolders: [[UInt8]: Known<[SubjectID]>] = [:]
    var addedTokens: [String: SubjectID] = [:]
    var addedKeys: [KeyID: SubjectID] = [:]
    var addedHolders: [AddressKey: [SubjectID]] = [:]
    package var links: [Tag: Known<UnsubscribeLink?>] = [:]
    package var replies: [RequestKey: Known<ReplyRecord?>] = [:]
    package var confirmed: [[UInt8]: Known<Instant?>] = [:]

    // MARK: Sends

    package var requests: [RequestKey: Known<SendRecord?>] = [:]
    package var sends: [SendID: Known<SendRecord?>] = [:]
    package var dedupe: [SubjectTag: Known<DedupeRecord?>] = [:]
    package var duties: [SubjectTag: Known<DutyRecord?>] = [:]
    /// Sends whose duties the batch has removed, those not loaded among them.
    package var endedDuties: [SubjectID: Set<SendID>] = [:]
    package var eventsOfSend: [SendID: Known<[EventRecord]>] = [:]
    var addedEvents: [EventRecord] = []
    /// One box for all sends that there are not, as nearly every new one is looked for first.
    package let noSend = Known<SendRecord?>.success(nil)

    // MARK: Messages

    package var messages: [MessageID: Known<OutboxRecord?>] = [:]
    /// Without what is sealed of them.
    package var messageHeads: [MessageID: Known<OutboxRecord?>] = [:]
    // As stored; what the batch adds is beside.
    package var messagesOfSend: [SendID: Known<[MessageID]>] = [:]
    package var messagesOfPerson: [SubjectID: Known<[MessageID]>] = [:]
    package var messageCounts: [SubjectID: Known<Int>] = [:]
    package var depth: OutboxDepth?
    var addedMessages: [AddedMessage] = []
    var addedDepth = AddedDepth()
    /// One box for all messages that are gone.
    let noMessage = Known<OutboxRecord?>.success(nil)
    /// Offered messages that a step has recalled from the relay.
    package var recalled: Set<MessageID> = []
    /// How many messages of each lane might be offered when the batch began.
    package var offerRoom = LaneValues(repeating: 0)

    // MARK: Trail and settings

    var totals = Totals()
    package var settings: [String: Known<String?>] = [:]

    // MARK: What the engine answers

    package var recalls: [MessageID: Bool] = [:]
    package var newSubjects: [UserID: Subject] = [:]
    package var challenges: [ChallengeOrder: SealedChallenge] = [:]
    package var publishedEntries: [UInt64: Known<[UInt8]>] = [:]
    package var room: Headroom?

    // MARK: Steps

    /// The writes of the step under way.
    package private(set) var change = Change()
    /// The writes of the steps that ended well, in their order: what the batch commits.
    package private(set) var applied: [Change] = []
    /// What takes back each write to a table, of the whole batch and in the order of the writes.
    private var undoLog: [Undo] = []

    /// What steps count on; a step that throws gets it back as a whole.
    struct Totals {
        var entryCount: UInt64 = 0
        var newestTime: Instant?
        var newestClock: ClockReading?
        var publishedTreeSize: UInt64 = 0
        var offeredCounts = LaneValues(repeating: 0)
        var due = LaneValues<Instant?>(repeating: nil)
    }

    /// What takes back one write to a table. The writes of every send have a case of their own, because a closure costs an
    /// allocation.
    enum Undo {
        case send(SendID, Known<SendRecord?>?, RequestKey, Known<SendRecord?>?)
        case addedMessage(MessageID, Known<OutboxRecord?>?)
        case message(MessageID, Known<OutboxRecord?>?)
        case forward(KnownPerson, recounted: Bool)
        case other((GateMemory) -> Void)
    }

    /// - Parameter recent: The people of earlier batches; none for writers other than the engine.
    package init(_ recent: RecentPeople = RecentPeople(countMax: 0)) { self.recent = recent }

    /// Where the trail ends in the store.
    package func begin(at tail: TrailTail) {
        guard self.tail == nil else { return }
        self.tail = tail
        totals.entryCount = tail.entryCount
        totals.newestTime = tail.newestTime
        totals.newestClock = tail.newestClock
        totals.publishedTreeSize = tail.publishedSize
    }

    /// Runs one step. When it throws, nothing that it wrote stays.
    package func step<Result>(_ body: () throws -> Result) rethrows -> Result {
        let (logCount, eventCount, totals) = (undoLog.count, addedEvents.count, totals)
        do {
            let result = try body()
            applied.append(change)
            change = Change()
            return result
        } catch {
            undo(downTo: logCount)
            addedEvents.removeSubrange(eventCount...)
            self.totals = totals
            change = Change()
            throw error
        }
    }

    private func undo(downTo count: Int) {
        while undoLog.count > count {
            switch undoLog.removeLast() {
            case .send(let id, let send, let key, let request): (sends[id], requests[key]) = (send, request)
            case .addedMessage(let message, let before):
                if case .success(let record?) = messages[message] { addedDepth.count(-1, record) }
                addedMessages.removeLast()
                messages[message] = before
            case .message(let message, let before): messages[message] = before
            case .forward(let person, let recounted):
                person.addedForwards.removeLast()
                person.recountsForwards = recounted
            case .other(let undo): undo(self)
            }
        }
    }

    /// Runs a step until everything that it looks at is loaded.
    ///
    /// - Parameter load: Answers what it can of what a step asks for.
    /// - Throws: What `body` or `load` does; ``MissingRows`` for what `load` cannot answer.
    package func step<Result>(
        loading load: ([Ask]) throws -> Void, _ body: () throws -> Result
    ) throws -> Result {
        while true {
            do {
                return try step(body)
            } catch let missing as MissingRows {
                try load(missing.asks)
                guard missing.asks.allSatisfy(knows) else { throw missing }
            }
        }
    }

    /// Call once the batch is committed: keeps the people it has looked at for the next one, as they are now.
    ///
    /// - Parameter prunedRowCount: How many rows the store has deleted because their retention had ended.
    package func carryOver(prunedRowCount: Int) {
        if !erased.isEmpty { recent.forget(erased) }
        for person in people.values where !erased.contains(person.id) {
            person.settle()
            // A pseudonym that was drawn and not used is nobody.
            if person.state != nil { recent.keep(person) }
        }
        for (user, known) in users {
            if case .success(let subject?) = known, !erased.contains(subject.id) {
                recent.keep(subject, of: user)
            }
        }
        if prunedRowCount > 0 { recent.forgetForwards() }
    }

    /// Call instead where the batch is not committed: takes back what its steps have written.
    package func abandon() {
        undo(downTo: 0)
        for person in people.values { person.settle() }
    }

    /// Says how the write that is made is taken back.
    func onUndo(_ undo: @escaping (GateMemory) -> Void) { undoLog.append(.other(undo)) }

    func log(_ undo: Undo) { undoLog.append(undo) }

    /// Writes a value of a table, or takes it out with `nil`.
    func write<Key, Value>(
        _ value: Value?, at key: Key, in table: ReferenceWritableKeyPath<GateMemory, [Key: Value]>
    ) {
        let before = self[keyPath: table][key]
        self[keyPath: table][key] = value
        onUndo { $0[keyPath: table][key] = before }
    }

    // MARK: Looking up

    /// - Parameter ask: What is to be loaded where it is not known; made then only.
    func known<Value>(_ value: Known<Value>?, _ ask: @autoclosure () -> Ask) throws -> Value {
        guard let value else { throw MissingRows(ask()) }
        return try value.get()
    }

    func known<Value>(_ value: KnownInline<Value>?, _ ask: @autoclosure () -> Ask) throws -> Value {
        guard let value else { throw MissingRows(ask()) }
        return try value.get()
    }

    /// Throws ``MissingRows`` when the answer to an ask is not loaded.
    func require(_ ask: Ask) throws {
        guard knows(ask) else { throw MissingRows(ask) }
    }

    func recentSubject(of user: UserID) -> Subject? { recent.subject(of: user) }

    /// `nil` for one of whom nothing was loaded or written.
    package func person(_ subject: SubjectID) -> KnownPerson? {
        if let newestPerson, newestPerson.id == subject { return newestPerson }
        var person = people[subject]
        if person == nil {
            person = recent.person(subject)
            people[subject] = person
        }
        newestPerson = person ?? newestPerson
        return person
    }

    /// The same, with a new one where there is none.
    package func person(adding subject: SubjectID) -> KnownPerson {
        if let person = person(subject) { return person }
        let person = KnownPerson(subject)
        people[subject] = person
        newestPerson = person
        return person
    }
}

/// What is known of one person. `nil` is not known.
///
/// An object, so that a send looks for the person once, and the next batch has it from ``RecentPeople``. Confined to the
/// engine's thread.
package final class KnownPerson {
    package let id: SubjectID
    package var subject: KnownInline<Subject?>?
    package var state: KnownInline<RecipientState?>?
    // As stored; what the batch adds is beside.
    package var consents: Known<[ConsentRecord]>?
    package var choices: Known<[PreferenceRecord]>?
    package var forwards: KnownInline<KnownForwards>?
    var addedConsents: [ConsentRecord] = []
    var addedChoices: [PreferenceRecord] = []
    var addedForwards: [ForwardRecord] = []
    /// Whether one of ``addedForwards`` is of a send that may have counted before, so that only the store knows what counts.
    var recountsForwards = false

    init(_ id: SubjectID) { self.id = id }

    package func knowsForwards(since: Instant) -> Bool {
        switch forwards {
        case .success(let known): known.since <= since
        case .failure: true
        case nil: false
        }
    }

    /// Keeps what is true after a batch, and is small: neither ledgers nor what could not be read.
    func settle() {
        // Its key lies in locked memory, which bounds how many mappings are kept: see ``RecentPeople``.
        subject = nil
        if case .failure = state { state = nil }
        (consents, choices) = (nil, nil)
        (addedConsents, addedChoices) = ([], [])
        if case .success(let known) = forwards, !recountsForwards {
            for record in addedForwards { known.add(record) }
            known.shorten()
        } else {
            forwards = nil
        }
        addedForwards = []
        recountsForwards = false
    }
}

/// All forwards to one person since a moment, newest first. An object, so that a commit adds to it where it is kept.
package final class KnownForwards {
    /// Forwards of one person that are looked at: one more than the highest cap there may be.
    package static let countMax = 1_000_001
    /// So many are kept from one batch to the next: more than the 100 an hour that is the highest cap of the repository's bundle.
    /// 56 bytes each, 7 KiB in all.
    static let keptCountMax = 128

    private(set) var since: Instant
    private(set) var records: [ForwardRecord]

    /// - Parameter records: All since then.
    package init(since: Instant, records: [ForwardRecord]) {
        self.since = since
        self.records = records
    }

    /// Adds the forward of a send that counted for the first time after every other; its moment is an earlier one where the
    /// clock went back.
    func add(_ record: ForwardRecord) {
        guard since <= record.at else { return }
        records.insert(record, at: records.firstIndex { $0.at <= record.at } ?? records.endIndex)
    }

    /// Keeps the newest, and from when on none is missing.
    func shorten() {
        guard records.count > Self.keptCountMax else { return }
        let first = Instant(milliseconds: records[Self.keptCountMax].at.milliseconds + 1)
        // A new list: one that is cut keeps the memory of what was loaded.
        (since, records) = (first, records.prefix(Self.keptCountMax).filter { $0.at >= first })
    }
}

/// Where the trail ends, and when.
package struct TrailTail: Hashable, Sendable {
    package var entryCount: UInt64
    /// Size of the tree that the publisher has made durable.
    package var publishedSize: UInt64
    package var newestTime: Instant?
    /// What the clocks showed for the newest entry; `nil` when that is not known.
    package var newestClock: ClockReading?

    package init(
        entryCount: UInt64, publishedSize: UInt64, newestTime: Instant?, newestClock: ClockReading?
    ) {
        self.entryCount = entryCount
        self.publishedSize = publishedSize
        self.newestTime = newestTime
        self.newestClock = newestClock
    }
}

/// What a send depends on besides the bounds on its own category and caller: the trail's lag and the free disk.
package struct Headroom {
    /// How far the published trail is behind, in milliseconds.
    var publishLag: Int64
    /// Bytes left on the disk; an error where it cannot be asked.
    var freeByteCount: Result<Int64, EngineFailure>

    package init(publishLag: Int64, freeByteCount: Result<Int64, EngineFailure>) {
        self.publishLag = publishLag
        self.freeByteCount = freeByteCount
    }
}
