import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insert = StatementText("outbox", Schema.outbox.insertion)
    private static let update = StatementText("outbox", Schema.outbox.replacement)
    private static let weight = StatementText(
        "outbox", "SELECT number, rank, caller, byte_count FROM outbox WHERE message = ?")
    private static let mark = StatementText(
        "outbox",
        "UPDATE outbox SET attempt_count = attempt_count + 1, attempted_at = ? WHERE message = ?")
    private static let postpone = StatementText(
        "outbox", "UPDATE outbox SET not_before = ? WHERE message = ?")
    private static let remove = StatementText(
        "outbox", "DELETE FROM outbox WHERE message = ? RETURNING rank, caller, byte_count")

    func insertOutbox(_ record: OutboxRecord) throws {
        try requireNew(record.message)
        let number = sequences.outboxNumber + 1
        let (row, sealed) = try sealed(record, number: number)
        try insert(row, sealed: sealed)
        sequences.outboxNumber = number
    }

    func updateOutbox(_ record: OutboxRecord) throws {
        try queueOffered(record.message)
        let known = try gate.first(Self.weight, { $0.add(record.message) }) { row in
            (number: row.integer(), rank: row.integer(), caller: row.integer(), byteCount: try row.count())
        }
        guard let known else {
            throw UnfitWrite(table: "outbox", message: "there is no message \(record.message)")
        }
        let (row, sealed) = try sealed(record, number: known.number)
        try write(row, sealed: sealed, with: Self.update)
        counters.add(rank: known.rank, caller: known.caller, rows: -1, bytes: -known.byteCount)
    }

    /// A message in its row's form, and its sealed part.
    private func sealed(_ record: OutboxRecord, number: Int64) throws -> (row: StoredMessage, sealed: [UInt8])
    {
        let content = OutboxRecord.Content(record)
        let row = try stored(record, content, number: number)
        return (row, try content.withSealedFields { try seal($0, in: SendColumns.outbox, row: row.bound) })
    }

    /// A message in its row's form.
    func stored(
        _ record: OutboxRecord, _ content: OutboxRecord.Content, number: Int64, segment: Int64 = 0
    ) throws -> StoredMessage {
        StoredMessage(
            OutboxRow(
                number: number,
                caller: try strings.makeNumber(of: record.request.caller.text, in: gate),
                type: try strings.makeNumber(of: record.request.type.text, in: gate),
                byteCount: Int64(content.byteCount), head: record.withoutContent),
            segment: segment, sendNumber: sendNumbers[record.send])
    }

    func insert(_ row: StoredMessage, sealed: [UInt8]) throws {
        try write(row, sealed: sealed, with: Self.insert)
    }

    /// Writes the row and adds it to the counters.
    private func write(_ row: StoredMessage, sealed: [UInt8], with statement: StatementText) throws {
        let head = row.head
        // In the order of the table's columns, the number last.
        try gate.change(statement) {
            $0.add(head.message)
            $0.add(head.send)
            $0.add(head.subject)
            $0.add(row.rank)
            $0.add(row.caller)
            $0.add(head.notBefore)
            $0.add(Int64(head.attemptCount))
            $0.add(head.attemptedAt)
            $0.add(row.byteCount)
            $0.add(row.row.rest)
            $0.add(sealed)
            $0.add(row.number)
        }
        counters.add(rank: row.rank, caller: row.caller, rows: 1, bytes: row.byteCount)
    }

    func markAttempt(_ message: MessageID, at: Instant) throws {
        try queueOffered(message)
        let count = try gate.change(Self.mark) {
            $0.add(at)
            $0.add(message)
        }
        // Withdrawn in the meantime: handing it over all the same would be the very bug this prevents.
        guard count == 1 else {
            throw UnfitWrite(table: "outbox", message: "there is no message \(message)")
        }
    }

    func postponeOutbox(_ message: MessageID, until: Instant) throws {
        try queueOffered(message)
        let count = try gate.change(Self.postpone) {
            $0.add(until)
            $0.add(message)
        }
        guard count == 1 else {
            throw UnfitWrite(table: "outbox", message: "there is no message \(message)")
        }
    }

    func removeOutbox(_ message: MessageID) throws {
        guard try !removeOffered(message) else { return }
        try removeOutboxRows(Self.remove) { $0.add(message) }
    }

    /// Runs a `DELETE … RETURNING rank, caller, byte_count` and subtracts its rows from the counters.
    func removeOutboxRows(_ statement: StatementText, _ bind: (inout Binder) -> Void) throws {
        let removed = try gate.every(statement, bind) { row in
            (rank: row.integer(), caller: row.integer(), byteCount: try row.count())
        }
        for row in removed {
            counters.add(rank: row.rank, caller: row.caller, rows: -1, bytes: -row.byteCount)
        }
    }
}
