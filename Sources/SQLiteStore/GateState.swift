import GateSteps
import GateVocabulary
import GatewayPipeline

/// The newest number of each series of `gate.db`.
struct Sequences: Equatable {
    var entryCount: UInt64 = 0
    var publishedSize: UInt64 = 0
    var newestEntryTime: Instant?
    var newestEntryClock: ClockReading?
    /// Highest number ever given out; a number is never given twice, even after deletion.
    var eventCursor: Int64 = 0
    var sendNumber: Int64 = 0
    var outboxNumber: Int64 = 0
    var personNumber: Int64 = 0
    /// Of `subjects.db`, at least; see ``SubjectMappings/generation(in:)``.
    var subjectsGeneration: Int64 = 0
    /// Messages that are offered no more, in rows of `offered` that have others.
    var endedOffers = RangeSet<Int64>()

    private static let read = StatementText(
        "sequences",
        """
        SELECT entry_count, published_size, newest_entry_time, event_cursor, send_number,
            outbox_number, person_number, subjects_generation, ended_offers, clock_wall, clock_uptime, clock_boot
        FROM sequences
        """)
    private static let write = StatementText(
        "sequences",
        """
        UPDATE sequences SET entry_count = ?, published_size = ?, newest_entry_time = ?, event_cursor = ?,
            send_number = ?, outbox_number = ?, person_number = ?, subjects_generation = ?, ended_offers = ?,
            clock_wall = ?, clock_uptime = ?, clock_boot = ?
        """)

    init() {}

    init(from gate: Connection) throws {
        let found = try gate.first(Self.read) { row in
            var sequences = Sequences()
            sequences.entryCount = UInt64(try row.count())
            sequences.publishedSize = UInt64(try row.count())
            sequences.newestEntryTime = try row.optionalInstant()
            sequences.eventCursor = try row.count()
            sequences.sendNumber = try row.count()
            sequences.outboxNumber = try row.count()
            sequences.personNumber = try row.count()
            sequences.subjectsGeneration = try row.count()
            guard let endedOffers = RangeSet(bytes: row.byteArray()) else {
                throw StoreError.damaged(table: "sequences", "it says no numbers of offered messages")
            }
            sequences.endedOffers = endedOffers
            if let wall = try row.optionalInstant() {
                sequences.newestEntryClock = ClockReading(
                    wall: wall, uptime: try row.count(), boot: row.optionalText())
            }
            guard sequences.publishedSize <= sequences.entryCount else {
                throw StoreError.damaged(table: "sequences", "more entries are published than there are")
            }
            return sequences
        }
        guard let found else { throw StoreError.damaged(table: "sequences", "its only row is missing") }
        self = found
    }

    private static let unpublished = StatementText(
        "entry",
        """
        SELECT number, count FROM entry
        WHERE number >= ifnull((SELECT max(number) FROM entry WHERE number <= ?), 0) ORDER BY number
        """)

    /// Requires every entry that the trail's directory does not have yet, and none behind them. A missing one could never be
    /// published, and so nothing after it either.
    func requireUnpublished(in gate: Connection) throws {
        var next = Int64(clamping: publishedSize)
        try gate.scan(Self.unpublished, { $0.add(next) }) { row in
            let number = try row.count()
            guard number <= next else { return false }
            next = max(next, number + (try row.count()))
            return true
        }
        guard next == Int64(clamping: entryCount) else {
            throw StoreOpeningError.damaged(
                file: gate.file, table: "entry", row: "\(next)", what: "there are to be \(entryCount) entries"
            )
        }
    }

    func write(to gate: Connection) throws {
        let count = try gate.change(Self.write) {
            $0.add(Int64(clamping: entryCount))
            $0.add(Int64(clamping: publishedSize))
            $0.add(newestEntryTime)
            $0.add(eventCursor)
            $0.add(sendNumber)
            $0.add(outboxNumber)
            $0.add(personNumber)
            $0.add(subjectsGeneration)
            $0.add(endedOffers.bytes)
            $0.add(newestEntryClock?.wall)
            $0.add(newestEntryClock?.uptime)
            $0.add(newestEntryClock?.boot)
        }
        guard count == 1 else { throw StoreError.damaged(table: "sequences", "its only row is missing") }
    }
}

/// Waiting messages of the outbox, by rank and caller: as many values as there are callers times eight.
struct OutboxCounters {
    struct Count: Equatable {
        let rank: Int64
        let caller: Int64
        var rowCount: Int64 = 0
        var byteCount: Int64 = 0
        var isChanged = false

        /// Whether a count that is in the file says the same.
        func isSame(as other: Count) -> Bool {
            !isChanged && rank == other.rank && caller == other.caller && rowCount == other.rowCount
                && byteCount == other.byteCount
        }
    }
    private(set) var counts: [Count] = []

    var isEmpty: Bool { counts.allSatisfy { $0.rowCount == 0 } }

    private static let read = StatementText(
        "outbox_counters", "SELECT rank, caller, row_count, byte_count FROM outbox_counters")
    private static let write = StatementText(
        "outbox_counters",
        """
        INSERT INTO outbox_counters VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET row_count = excluded.row_count, byte_count = excluded.byte_count
        """)

    init() {}

    init(from gate: Connection) throws {
        counts = try gate.every(Self.read) { row in
            Count(
                rank: row.integer(), caller: row.integer(), rowCount: try row.count(),
                byteCount: try row.count())
        }
    }

    mutating func add(rank: Int64, caller: Int64, rows: Int64, bytes: Int64) {
        let index: Int
        if let known = counts.firstIndex(where: { $0.rank == rank && $0.caller == caller }) {
            index = known
        } else {
            index = counts.count
            counts.append(Count(rank: rank, caller: caller))
        }
        counts[index].rowCount += rows
        counts[index].byteCount += bytes
        counts[index].isChanged = true
    }

    /// - Parameter committed: The counts in the file, where they are known; a count that equals them again is not
    ///   written.
    mutating func writeChanges(to gate: Connection, since committed: OutboxCounters = OutboxCounters()) throws
    {
        for index in counts.indices where counts[index].isChanged {
            let count = counts[index]
            if index < committed.counts.count, committed.counts[index].isSame(as: count) {
                counts[index].isChanged = false
                continue
            }
            try gate.change(Self.write) {
                $0.add(count.rank)
                $0.add(count.caller)
                $0.add(count.rowCount)
                $0.add(count.byteCount)
            }
            counts[index].isChanged = false
        }
    }

    /// Callers that have something waiting in a rank, as word numbers.
    func callers(in rank: Int64) -> [Int64] {
        counts.filter { $0.rank == rank && $0.rowCount > 0 }.map(\.caller)
    }
}

/// The numbers that stand for repeated names. A number, once committed, keeps its name for ever, so this cache can be
/// incomplete but never wrong.
final class StringTable {
    private var numbers: [String: Int64] = [:]
    private var texts: [Int64: String] = [:]
    /// Made in the open transaction, oldest first; forgotten again when it is rolled back.
    private var uncommitted: [String] = []

    private static let findNumber = StatementText("word", "SELECT id FROM word WHERE text = ?")
    private static let findText = StatementText("word", "SELECT text FROM word WHERE id = ?")
    private static let newest = StatementText("word", "SELECT coalesce(max(id), 0) FROM word")
    private static let insert = StatementText("word", "INSERT INTO word (id, text) VALUES (?, ?)")

    /// `nil` for a name that was never written.
    func number(of text: String, in gate: Connection) throws -> Int64? {
        if let known = numbers[text] { return known }
        guard let found = try gate.first(Self.findNumber, { $0.add(text) }, read: { $0.integer() }) else {
            return nil
        }
        remember(text, found)
        return found
    }

    func makeNumber(of text: String, in gate: Connection) throws -> Int64 {
        if let known = try number(of: text, in: gate) { return known }
        let made = try (gate.first(Self.newest, read: { try $0.count() }) ?? 0) + 1
        try gate.change(Self.insert) {
            $0.add(made)
            $0.add(text)
        }
        remember(text, made)
        uncommitted.append(text)
        return made
    }

    func text(of number: Int64, in gate: Connection) throws -> String {
        if let known = texts[number] { return known }
        guard let found = try gate.first(Self.findText, { $0.add(number) }, read: { $0.text() }) else {
            throw StoreError.damaged(table: "word", row: "\(number)", "the number has no text")
        }
        remember(found, number)
        return found
    }

    private func remember(_ text: String, _ number: Int64) {
        numbers[text] = number
        texts[number] = text
    }

    func rollBack() {
        for text in uncommitted {
            if let number = numbers.removeValue(forKey: text) { texts[number] = nil }
        }
        uncommitted = []
    }

    func commit() { uncommitted = [] }
}
