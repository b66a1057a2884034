package import GateVocabulary

/// Where everything the gate must remember lives.
///
/// - Steps: a batch is told what it names by `load`, steps over that, and hands over everything its steps did with
///   `commit`, once. Nothing above knows how it is kept.
/// - Durability: when `commit` returns `done`, everything survives a power cut. When it throws or returns anything else,
///   nothing of it happened. There is no other case; a store that cannot tell must stop the process
///   (`StoreError.lostDurability`).
/// - Ordering: commits come one after another, entries in the order of their changes. The store gives entries their
///   index; a batch whose steps are older than the newest entry is `stale`.
/// - Concurrency: `read` may be called from any thread beside a running `commit`, and sees one consistent snapshot of what
///   is committed.
/// - Retry: none inside. A full or read-only disk throws `StoreError.unavailable`, and the next call
///   tries afresh, so that the gate recovers by itself when space returns.
package protocol GateStore: AnyObject, Sendable {
    /// Answers what steps ask for, and where the trail ends, into a batch's state. A row that cannot be read is the
    /// answer to its own ask.
    func load(_ asks: [Ask], into state: BatchState) throws

    /// Writes everything that steps did, or nothing.
    ///
    /// - Parameter state: What they stepped over; a store that others write to compares it with what is there now.
    func commit(_ changes: [Change], against state: BatchState) throws -> CommitOutcome

    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result

    /// Destroys what links a person to their pseudonym, for every subject marked by
    /// ``StepView/eraseSubject(_:)``: the key and mapping go, the file is rewritten and truncated.
    /// Durable when it returns. Idempotent; the store also does it when it opens, so a crash between the
    /// commit and this call leaves nobody half forgotten.
    func finishErasures() throws

    /// Bytes the store could still grow by, and the bytes it holds.
    func space() throws -> StoreSpace

    /// Rows that could not be read since the store opened, in the order they were found; a bounded number of them.
    var damagedRows: [StoredDamage] { get }

    /// Adds a row to them that was found unusable outside of a `read` or `write`; inside, a thrown `StoreError` does.
    func note(_ damage: StoredDamage)

    /// Holds the next rows, so many at most, against what authenticates them, and all of a table against their sum; what
    /// is found is in ``damagedRows``. Beside reads and writes; blocks its thread.
    ///
    /// - Returns: Whether a pass over all rows has ended.
    func checkRows(countMax: Int) throws -> Bool

    /// How much the key that seals rows has been used.
    var dataKeyUse: DataKeyUse { get }
}

/// How many rows a data key has sealed, over restarts; never less than it was.
package struct DataKeyUse: Sendable, Hashable {
    package var key: String
    package var sealCount: UInt64

    /// Random nonces of 96 bits allow 2³² seals under one key (NIST SP 800-38D section 8.3); half of it is when a
    /// new one is asked for.
    package static let sealCountToRotateAt: UInt64 = 1 << 31

    /// From here on nothing more is sealed under the key: the odds of a repeated nonce are no longer negligible.
    package static let sealCountMax: UInt64 = 1 << 32

    package init(key: String, sealCount: UInt64) {
        self.key = key
        self.sealCount = sealCount
    }

    package var mustRotate: Bool { sealCount >= Self.sealCountToRotateAt }
    package var isExhausted: Bool { sealCount >= Self.sealCountMax }
}

/// A stored row that does not authenticate or does not parse. Names the place, never what the row holds.
package struct StoredDamage: Sendable, Hashable, CustomStringConvertible {
    package var table: String
    /// The row's key: a number, or the hexadecimal digits of an id. `nil` when the whole table is concerned.
    package var row: String?
    package var what: String

    package init(table: String, row: String?, what: String) {
        self.table = table
        self.row = row
        self.what = what
    }

    package var description: String {
        "`\(table)`\(row.map { " row \($0)" } ?? "") is damaged: \(what)"
    }
}

package struct StoreSpace: Sendable, Hashable {
    package var freeByteCount: Int64
    package var usedByteCount: Int64
    package init(freeByteCount: Int64, usedByteCount: Int64) {
        self.freeByteCount = freeByteCount
        self.usedByteCount = usedByteCount
    }
}

/// The store misbehaving. Its description is for operators; see `EngineFailure` for what a caller is told.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Disk full, read-only, locked by another process, I/O error: nothing was written.
    case unavailable(String)
    /// What was read back does not authenticate or does not parse: stop trusting this row.
    case damaged(table: String, row: String? = nil, String)
    /// A commit whose durability is unknown. The process must stop; a restart reads what is true.
    case lostDurability(String)

    /// The row that is what is wrong; `nil` when it is the store.
    package var damage: StoredDamage? {
        guard case .damaged(let table, let row, let what) = self else { return nil }
        return StoredDamage(table: table, row: row, what: what)
    }

    package var description: String {
        switch self {
        case .unavailable(let what): "the store cannot be used: \(what)"
        case .damaged(let table, let row, let what):
            "\(StoredDamage(table: table, row: row, what: what))"
        case .lostDurability(let what): "what was committed may not be on disk: \(what)"
        }
    }
}

/// What facts are made of: looked up on one snapshot, or in a step.
package protocol RecordReading {
    /// The pseudonym and tag key of a user; `nil` for one never registered, or erased.
    func subject(of user: UserID) throws -> Subject?
    /// The same person, found by the pseudonym; `nil` once erased.
    func subject(_ id: SubjectID) throws -> Subject?
    /// All that is held of a person but what only grows; `nil` for one nothing was ever held of, or erased.
    func state(of subject: SubjectID) throws -> RecipientState?
    /// The ledger of a person, oldest first by sequence; all purposes.
    func consentEvents(of subject: SubjectID) throws -> [ConsentEvent]
    func send(_ id: SendID) throws -> SendRecord?
    /// The newest forwards to this person since a moment, newest first, at most `limit`.
    func forwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord]
    /// Who told this person of an event, if somebody did; see ``ToldRecord``.
    func told(_ event: Tag, to subject: SubjectID) throws -> ToldRecord?
    /// How a duty to tell this person stands, if one is on record; see ``DutyRecord``.
    func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord?
    /// A small named value (policy in force, counters that survive a restart).
    func setting(_ name: String) throws -> String?
}

extension RecordReading {
    /// Forwards to this person since a moment, this type and this category counted apart.
    ///
    /// - Parameter besides: A send that does not count against itself, at a second device or a second look.
    package func forwardCounts(
        of subject: SubjectID, type: TypeID, typeSince: Instant?, category: Category,
        categorySince: Instant?, besides: SendID?
    ) throws -> (type: Int, category: Int) {
        guard let earliest = [typeSince, categorySince].compactMap({ $0 }).min() else { return (0, 0) }
        var counts = (type: 0, category: 0)
        for forward in try forwards(of: subject, since: earliest, limit: LoadedForwards.countMax)
        where besides == nil || forward.send != besides {
            if let typeSince, forward.at >= typeSince, forward.type == type { counts.type += 1 }
            if let categorySince, forward.at >= categorySince, forward.category == category {
                counts.category += 1
            }
        }
        return counts
    }
}

/// Looking things up, on one consistent snapshot.
package protocol StoreReading: RecordReading {
    // MARK: People

    /// The active device that was put last with this token, by ``DeviceRecord/tokenIdentity``; `nil` when none is.
    func device(withToken identity: String) throws -> DeviceRecord?
    func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord?
    /// Every transition of a preference, oldest first.
    func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord]

    // MARK: Sends

    func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord?
    /// Newest first, at most `limit`, and only older ones than `before`; empty when that is no send of theirs.
    /// Damaged rows are left out, as they are of events.
    func sends(of subject: SubjectID, before: SendID?, limit: Int) throws -> [SendRecord]
    /// Duties of everybody whose time is over, the longest overdue first, at most `limit`.
    func overdueDuties(at now: Instant, limit: Int) throws -> [DutyRecord]
    /// Rows of this send that wait. In every list of waiting rows, one whose sealed content cannot be read is marked
    /// ``OutboxRecord/isDamaged``, and one that cannot be read at all is left out; both are in
    /// ``GateStore/damagedRows``.
    func outbox(of send: SendID) throws -> [OutboxRecord]
    func outbox(_ message: MessageID) throws -> OutboxRecord?
    /// The same without what is sealed of it (``OutboxRecord/headers``, ``OutboxRecord/body``, ``OutboxRecord/facts``,
    /// ``OutboxRecord/event``), which is not opened: for one that is done.
    func outboxHead(_ message: MessageID) throws -> OutboxRecord?
    /// Rows of this person that wait.
    func outbox(of subject: SubjectID) throws -> [OutboxRecord]
    /// How many rows of this person wait, counted no further than `limit`.
    func outboxCount(of subject: SubjectID, limit: Int) throws -> Int
    /// Messages of a lane whose time has come, by tier, then fairly over callers, then by age: at most `limit`,
    /// none of `excluding`. Opens none of them, so that one that is damaged hides no other.
    func dueOutbox(
        at now: Instant, limit: Int, lane: DeliveryLane, excluding: Set<MessageID>
    ) throws -> [MessageID]
    /// When the next row of a lane becomes due, `excluding` left out; `nil` when none waits.
    func nextOutboxDue(lane: DeliveryLane, excluding: Set<MessageID>) throws -> Instant?
    func outboxDepth() throws -> OutboxDepth
    /// Outcomes of a caller's own sends after a cursor, oldest first.
    func events(of caller: CallerName, after cursor: Int64, limit: Int) throws -> [EventRecord]
    /// What became of one send, oldest first.
    func events(of send: SendID) throws -> [EventRecord]

    // MARK: Trail

    /// Number of entries ever written; the next entry's index.
    func entryCount() throws -> UInt64
    /// Entries from an index on, at most `limit`; only those still held.
    func entries(from index: UInt64, limit: Int) throws -> [StoredEntry]
    func entry(_ index: UInt64) throws -> StoredEntry?
    /// Size of the tree the publisher has made durable.
    func publishedSize() throws -> UInt64
    /// Time of the newest entry.
    func newestEntryTime() throws -> Instant?
    /// What the clocks showed when it was recorded; `nil` when that is not known.
    func newestEntryClock() throws -> ClockReading?
}
