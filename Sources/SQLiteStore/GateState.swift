import GateVocabulary
import GatewayPipeline

/// Where each series of `gate.db` stands.
struct Tail: Equatable {
    var entryCount: UInt64 = 0
    var publishedSize: UInt64 = 0
    var newestEntryTime: Instant?
    /// Highest number ever given out; a number is never given twice, even after deletion.
    var eventCursor: Int64 = 0
    var sendNumber: Int64 = 0
    var outboxNumber: Int64 = 0
    var personNumber: Int64 = 0

    private static let read = StatementText(
        "tail",
        """
        SELECT entry_count, published_size, newest_entry_time, event_cursor, send_number, outbox_number,
            person_number
        FROM tail
        """)
    private static let write = StatementText(
        "tail",
        """
        UPDATE tail SET entry_count = ?, published_size = ?, newest_entry_time = ?, event_cursor = ?,
            send_number = ?, outbox_number = ?, person_number = ?
        """)

    init() {}

    init(from gate: Connection) throws {
        let found = try gate.first(Self.read) { row in
            var tail = Tail()
            tail.entryCount = UInt64(clamping: row.integer())
            tail.publishedSize = UInt64(clamping: row.integer())
            tail.newestEntryTime = row.optionalInstant()
            tail.eventCursor = row.integer()
            tail.sendNumber = row.integer()
            tail.outboxNumber = row.integer()
            tail.personNumber = row.integer()
            return tail
        }
        guard let found else { throw StoreError.damaged(table: "tail", "its only row is missing") }
        self = found
    }

    func write(to gate: Connection) throws {
        try gate.change(Self.write) {
            $0.add(Int64(clamping: entryCount))
            $0.add(Int64(clamping: publishedSize))
            $0.add(newestEntryTime)
            $0.add(eventCursor)
            $0.add(sendNumber)
            $0.add(outboxNumber)
            $0.add(personNumber)
        }
    }
}

/// What waits in the outbox, by rank and caller: as many values as there are callers times eight.
struct Tally {
    struct Count: Equatable {
        let rank: Int64
        let caller: Int64
        var rowCount: Int64 = 0
        var byteCount: Int64 = 0
        var isChanged = false
    }
    private(set) var counts: [Count] = []

    private static let read = StatementText(
        "outbox_tally", "SELECT rank, caller, row_count, byte_count FROM outbox_tally")
    private static let write = StatementText(
        "outbox_tally",
        """
        INSERT INTO outbox_tally VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET row_count = excluded.row_count, byte_count = excluded.byte_count
        """)

    init() {}

    init(from gate: Connection) throws {
        counts = try gate.every(Self.read) { row in
            Count(
                rank: row.integer(), caller: row.integer(), rowCount: row.integer(), byteCount: row.integer())
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

    mutating func writeChanges(to gate: Connection) throws {
        for index in counts.indices where counts[index].isChanged {
            let count = counts[index]
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

/// The numbers that stand for repeated names. A number, once committed, keeps its name for ever, so what
/// is remembered here can only be incomplete, never wrong.
final class Words {
    private var numbers: [String: Int64] = [:]
    private var texts: [Int64: String] = [:]
    /// Made in the open transaction, oldest first; forgotten again when it is rolled back.
    private var uncommitted: [String] = []

    private static let findNumber = StatementText("word", "SELECT id FROM word WHERE text = ?")
    private static let findText = StatementText("word", "SELECT text FROM word WHERE id = ?")
    private static let insert = StatementText("word", "INSERT INTO word (text) VALUES (?) RETURNING id")

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
        guard let made = try gate.first(Self.insert, { $0.add(text) }, read: { $0.integer() }) else {
            throw StoreError.damaged(table: "word", "a new row has no number")
        }
        remember(text, made)
        uncommitted.append(text)
        return made
    }

    func text(of number: Int64, in gate: Connection) throws -> String {
        if let known = texts[number] { return known }
        guard let found = try gate.first(Self.findText, { $0.add(number) }, read: { $0.text() }) else {
            throw StoreError.damaged(table: "word", "number \(number) has no text")
        }
        remember(found, number)
        return found
    }

    private func remember(_ text: String, _ number: Int64) {
        numbers[text] = number
        texts[number] = text
    }

    /// A point to go back to.
    var mark: Int { uncommitted.count }

    func rollBack(to mark: Int) {
        for text in uncommitted[mark...] {
            if let number = numbers.removeValue(forKey: text) { texts[number] = nil }
        }
        uncommitted.removeSubrange(mark...)
    }

    func commit() { uncommitted = [] }
}
