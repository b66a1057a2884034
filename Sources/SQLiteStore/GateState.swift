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
    var endedOffers = NumberRanges()

    private static let read = StatementText(
        "sequences",
        """
        SELECT only, entry_count, published_size, newest_entry_time, event_cursor, send_number,
            outbox_number, person_number, subjects_generation, ended_offers, clock_wall, clock_uptime, clock_boot
        FROM sequences
        """)
    private static let write = StatementText(
        "sequences",
        """
        UPDATE sequences SET sums = ?, entry_count = ?, published_size = ?, newest_entry_time = ?, event_cursor = ?,
            send_number = ?, outbox_number = ?, person_number = ?, subjects_generation = ?, ended_offers = ?,
            clock_wall = ?, clock_uptime = ?, clock_boot = ?
        """)

    init() {}

    init(from gate: Connection) throws {
        let found = try gate.first(Self.read) { row in
            var sequences = Sequences()
            _ = row.integer()
            sequences.entryCount = UInt64(try row.count())
            sequences.publishedSize = UInt64(try row.count())
            sequences.newestEntryTime = try row.optionalInstant()
            sequences.eventCursor = try row.count()
            sequences.sendNumber = try row.count()
            sequences.outboxNumber = try row.count()
            sequences.personNumber = try row.count()
            sequences.subjectsGeneration = try row.count()
            guard let endedOffers = NumberRanges(bytes: row.byteArray()) else {
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

    private static let newestNumbers = StatementText(
        "sequences",
        """
        SELECT 1, (SELECT max(number) FROM entry), (SELECT count FROM entry ORDER BY number DESC LIMIT 1),
            (SELECT time FROM entry ORDER BY number DESC LIMIT 1),
            (SELECT max(number) FROM send), (SELECT max(cursor) FROM event),
            (SELECT max(number) FROM outbox), (SELECT max(last) FROM offered), (SELECT max(number) FROM person)
        """)

    /// Compares each series with its newest row. Of the entries, those of the bundle that is filling are always
    /// there, so when there is none, all are published. Numbers are never given twice: a series with a row newer than
    /// expected continues after that row.
    ///
    /// - Throws: `StoreError.damaged` when the entries do not end where they should.
    mutating func reconcile(with gate: Connection, _ damages: DamageLog) throws {
        let series: [(table: String, number: WritableKeyPath<Sequences, Int64>)] = [
            ("send", \.sendNumber), ("event", \.eventCursor), ("outbox", \.outboxNumber),
            ("offered", \.outboxNumber), ("person", \.personNumber),
        ]
        let newest = try gate.first(Self.newestNumbers) { row in
            _ = row.integer()
            let entry = (
                number: row.optionalInteger(), count: row.optionalInteger() ?? 0, time: row.optionalInteger()
            )
            return (entry: entry, rows: series.map { _ in row.optionalInteger() ?? 0 })
        }
        guard let newest else { return }
        let end = newest.entry.number.map { $0 &+ newest.entry.count } ?? Int64(clamping: publishedSize)
        guard Int64(clamping: entryCount) == end else {
            throw StoreError.damaged(
                table: "sequences", row: "1",
                "it says that there are \(entryCount) entries, and `entry` ends before \(end)")
        }
        guard newest.entry.time == nil || newest.entry.time == newestEntryTime?.milliseconds else {
            throw StoreError.damaged(
                table: "sequences", row: "1",
                "it says another time than the newest row of `entry`, \(newest.entry.number ?? 0)")
        }
        for (series, row) in zip(series, newest.rows) where row > self[keyPath: series.number] {
            guard row <= (series.table == "person" ? GateReading.personMax : StoredRow.countMax) else {
                damages.note(
                    StoredDamage(table: series.table, row: "\(row)", what: "no row is given such a number"))
                continue
            }
            damages.note(
                StoredDamage(
                    table: "sequences", row: "1",
                    what:
                        "it says that \(self[keyPath: series.number]) is the newest number of `\(series.table)`, which has row \(row)"
                ))
            self[keyPath: series.number] = row
        }
    }

    private static let unpublished = StatementText(
        "entry",
        """
        SELECT number, \(Schema.entry.isAltered), count FROM entry
        WHERE number >= ifnull((SELECT max(number) FROM entry WHERE number <= ?), 0) ORDER BY number
        """)

    /// Requires every entry that the trail's directory does not have yet, unaltered. A missing one could never be
    /// published, and so nothing after it either.
    func requireUnpublished(in gate: Connection) throws {
        func damaged(_ number: Int64, _ what: String) -> StoreOpeningError {
            .damaged(file: gate.file, table: "entry", row: "\(number)", what: what)
        }
        var next = Int64(clamping: publishedSize)
        let rows = try gate.every(Self.unpublished, { $0.add(next) }) { row in
            (number: row.integer(), isAltered: row.flag(), end: row.integer())
        }.map { row in (number: row.number, isAltered: row.isAltered, end: row.number &+ row.end) }
        for row in rows {
            guard next < Int64(clamping: entryCount), row.number <= next else { break }
            guard !row.isAltered else { throw damaged(row.number, RowSums.wrongCode) }
            next = max(next, row.end)
        }
        guard next == Int64(clamping: entryCount) else {
            throw damaged(next, "it is missing, and was not published yet")
        }
    }

    /// Commits with the row of the sums, which is this one.
    func commit(to gate: Connection, synchronizing: Bool = true) throws {
        try gate.commit(
            synchronizing: synchronizing,
            (
                Self.write,
                {
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
            ))
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
        "outbox_counters", key: 2, "SELECT rank, caller, row_count, byte_count FROM outbox_counters")
    private static let write = StatementText(
        "outbox_counters",
        """
        INSERT INTO outbox_counters VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET row_count = excluded.row_count, byte_count = excluded.byte_count
        """, damage: .overwritten)

    init() {}

    init(from gate: Connection) throws {
        counts = try gate.everyReadable(Self.read) { row in
            Count(
                rank: row.integer(), caller: row.integer(), rowCount: try row.count(),
                byteCount: row.byteCount())
        }
    }

    private static let rowCounts = StatementText(
        "outbox", "SELECT rank, caller, count(*) FROM outbox GROUP BY rank, caller")
    private static let rowWeights = StatementText(
        "outbox",
        """
        SELECT rank, caller, count(*), sum(min(max(byte_count, 0), 1 << 40)) FROM outbox GROUP BY rank, caller
        """)

    /// Counts the rows along their index, and their bytes as well where the counters do not agree: a rank that is
    /// taken for empty would never be searched, and its messages would wait for ever.
    init(recountedIn gate: Connection, _ damages: DamageLog) throws {
        struct Place: Hashable {
            let rank: Int64
            let caller: Int64
        }
        try self.init(from: gate)
        var known: [Place: Int64] = [:]
        for count in counts where count.rowCount > 0 {
            known[Place(rank: count.rank, caller: count.caller)] = count.rowCount
        }
        var found: [Place: Int64] = [:]
        try gate.scan(Self.rowCounts) { row in
            found[Place(rank: row.integer(), caller: row.integer())] = row.integer()
            return true
        }
        guard known != found else { return }
        for place in Set(known.keys).union(found.keys) where known[place] != found[place] {
            damages.note(
                StoredDamage(
                    table: "outbox_counters", row: "\(place.rank)/\(place.caller)",
                    what: "it counts \(known[place] ?? 0) rows where `outbox` has \(found[place] ?? 0)"))
        }
        for index in counts.indices {
            counts[index].rowCount = 0
            counts[index].byteCount = 0
            counts[index].isChanged = true
        }
        try gate.scan(Self.rowWeights) { row in
            add(rank: row.integer(), caller: row.integer(), rows: row.integer(), bytes: row.byteCount())
            return true
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
