import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insert = StatementText(
        "outbox",
        """
        INSERT INTO outbox (message, send, subject, destination, rank, caller, type, channel, critical, category,
            tier, state, form, interruption, key, decided_at, not_before, expires_at, attempt_count,
            attempted_at, byte_count, sealed, number)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """)
    private static let update = StatementText(
        "outbox",
        """
        UPDATE outbox SET message = ?, send = ?, subject = ?, destination = ?, rank = ?, caller = ?, type = ?,
            channel = ?, critical = ?, category = ?, tier = ?, state = ?, form = ?, interruption = ?, key = ?,
            decided_at = ?, not_before = ?, expires_at = ?, attempt_count = ?, attempted_at = ?,
            byte_count = ?, sealed = ?, is_damaged = 0
        WHERE number = ?
        """)
    private static let weight = StatementText(
        "outbox", "SELECT number, rank, caller, byte_count FROM outbox WHERE message = ?")
    private static let mark = StatementText(
        "outbox",
        "UPDATE outbox SET attempt_count = attempt_count + 1, attempted_at = ? WHERE message = ?")
    private static let postpone = StatementText(
        "outbox",
        """
        UPDATE outbox SET not_before = ?, is_damaged = max(is_damaged, \(Schema.outbox.isAltered))
        WHERE message = ?
        """, damage: .known)
    private static let remove = StatementText(
        "outbox", "DELETE FROM outbox WHERE message = ? RETURNING rank, caller, byte_count")

    private static let removeNumber = StatementText("outbox", "DELETE FROM outbox WHERE number = ?")

    func insertOutbox(_ record: OutboxRecord) throws {
        let number = tail.outboxNumber + 1
        let row = try write(record, number: number, with: Self.insert)
        tail.outboxNumber = number
        // What is offered comes back with its result.
        if record.attemptedAt != nil { keep(row) }
    }

    func updateOutbox(_ record: OutboxRecord) throws {
        guard !record.isDamaged else {
            throw StoreConflict(
                table: "outbox", message: "message \(record.message) cannot be read, so not be rewritten")
        }
        let known = try gate.first(Self.weight, { $0.add(record.message) }) { row in
            (number: row.integer(), rank: row.integer(), caller: row.integer(), byteCount: row.byteCount())
        }
        guard let known else {
            throw StoreConflict(table: "outbox", message: "there is no message \(record.message)")
        }
        forgetOutbox(record.message)
        try write(record, number: known.number, with: Self.update)
        tally.add(rank: known.rank, caller: known.caller, rows: -1, bytes: -known.byteCount)
    }

    /// Writes the row and counts it as one more.
    @discardableResult
    private func write(
        _ record: OutboxRecord, number: Int64, with statement: StatementText
    ) throws -> StoredOutbox {
        let content = OutboxRecord.Content(
            headers: record.headers, body: record.body, facts: record.facts, event: record.event,
            mayHaveArrived: record.mayHaveArrived, isCancelled: record.isCancelled)
        let sealed = try seal(
            content.sealedFields, in: SendColumns.outbox, row: SendColumns.outboxRow(record))
        let caller = try words.makeNumber(of: record.request.caller.text, in: gate)
        let type = try words.makeNumber(of: record.request.type.text, in: gate)
        let rank = Rank.of(record.category, record.tier)
        try gate.change(statement) {
            $0.add(record.message)
            $0.add(record.send)
            $0.add(record.subject)
            $0.add(record.destination)
            $0.add(rank)
            $0.add(caller)
            $0.add(type)
            $0.add(record.request.channel)
            $0.add(record.request.critical)
            $0.add(record.category)
            $0.add(record.tier)
            $0.add(record.state)
            $0.add(record.form)
            $0.add(record.interruption)
            $0.add(record.key)
            $0.add(record.decidedAt)
            $0.add(record.notBefore)
            $0.add(record.expiresAt)
            $0.add(Int64(record.attemptCount))
            $0.add(record.attemptedAt)
            $0.add(Int64(content.byteCount))
            $0.add(sealed)
            $0.add(number)
        }
        tally.add(rank: rank, caller: caller, rows: 1, bytes: Int64(content.byteCount))
        return StoredOutbox(
            number: number, sendNumber: sendNumbers[record.send], rank: rank, caller: caller,
            byteCount: Int64(content.byteCount), head: record.head)
    }

    func markAttempt(_ message: MessageID, at: Instant) throws {
        forgetOutbox(message)
        let count = try gate.change(Self.mark) {
            $0.add(at)
            $0.add(message)
        }
        // Withdrawn in the meantime: handing it over all the same would be the very bug this prevents.
        guard count == 1 else {
            throw StoreConflict(table: "outbox", message: "there is no message \(message)")
        }
    }

    func postponeOutbox(_ message: MessageID, until: Instant) throws {
        forgetOutbox(message)
        let count = try gate.change(Self.postpone) {
            $0.add(until)
            $0.add(message)
        }
        guard count == 1 else {
            throw StoreConflict(table: "outbox", message: "there is no message \(message)")
        }
    }

    func removeOutbox(_ message: MessageID) throws {
        guard let known = keptOutbox(message) else {
            return try removeOutboxRows(Self.remove) { $0.add(message) }
        }
        forgetOutbox(message)
        sendNumbers[known.head.send] = known.sendNumber ?? sendNumbers[known.head.send]
        // As by its id: a row that is not there is in no tally, and the integrity check names it.
        guard try gate.change(Self.removeNumber, { $0.add(known.number) }) == 1 else { return }
        tally.add(rank: known.rank, caller: known.caller, rows: -1, bytes: -known.byteCount)
    }

    /// Runs a `DELETE … RETURNING rank, caller, byte_count` and takes its rows off the tally.
    func removeOutboxRows(_ statement: StatementText, _ bind: (inout Binder) -> Void) throws {
        let removed = try gate.every(statement, bind) { row in
            (rank: row.integer(), caller: row.integer(), byteCount: row.byteCount())
        }
        for row in removed { tally.add(rank: row.rank, caller: row.caller, rows: -1, bytes: -row.byteCount) }
    }
}
