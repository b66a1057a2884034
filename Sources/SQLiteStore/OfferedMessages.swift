import GateSteps
import GateVocabulary
import GatewayPipeline

/// A message as its row has it, without what is sealed of it.
final class StoredMessage {
    let number: Int64
    /// Of its send, where that is known.
    var sendNumber: Int64?
    let rank: Int64
    /// Numbers of words.
    let caller: Int64
    let type: Int64
    let byteCount: Int64
    let head: OutboxRecord

    /// - Parameter record: What is sealed of it is left out.
    init(
        _ record: OutboxRecord, number: Int64, sendNumber: Int64? = nil, caller: Int64, type: Int64,
        byteCount: Int64
    ) {
        self.number = number
        self.sendNumber = sendNumber
        rank = Rank.of(record.category, record.tier)
        self.caller = caller
        self.type = type
        self.byteCount = byteCount
        var head = record
        (head.headers, head.body, head.facts, head.event) = ([], [], [], nil)
        (head.mayHaveArrived, head.isCancelled) = (record.attemptCount > 0, false)
        self.head = head
    }
}

/// The rows of `offered`: messages that this process gave to its relay from memory.
///
/// Whole, because the table is emptied when the store opens and changed by its one writer alone, which keeps this.
struct OfferedMessages {
    private var rows: [MessageID: StoredMessage] = [:]
    private(set) var tally = Tally()

    subscript(_ message: MessageID) -> StoredMessage? {
        get { rows[message] }
        set {
            if let old = rows[message] {
                tally.add(rank: old.rank, caller: old.caller, rows: -1, bytes: -old.byteCount)
            }
            rows[message] = newValue
            if let newValue {
                tally.add(rank: newValue.rank, caller: newValue.caller, rows: 1, bytes: newValue.byteCount)
            }
        }
    }

    func of(_ subject: SubjectID) -> [StoredMessage] { rows.values.filter { $0.head.subject == subject } }

    /// Call when sends are deleted: their numbers lead to nothing.
    func forgetSendNumbers() {
        for row in rows.values { row.sendNumber = nil }
    }
}

extension StoredMessage {
    /// What stands in clear in one column of `offered`: what a row of `outbox` has in columns of their own, by which it is
    /// found.
    var offeredHead: [UInt8] {
        var fields = FieldWriter(version: 1, capacity: 128)
        fields.put(head.destination)
        fields.put(caller)
        fields.put(type)
        fields.put(head.request.channel)
        fields.put(head.request.critical)
        fields.put(head.category)
        fields.put(head.tier)
        fields.put(head.state)
        fields.put(head.form)
        fields.put(head.interruption)
        fields.put(head.key) { $0.put($1) }
        fields.put(head.decidedAt)
        fields.put(head.notBefore)
        fields.put(head.expiresAt)
        fields.put(Int64(head.attemptCount))
        fields.put(optional: head.attemptedAt)
        fields.put(byteCount)
        return fields.bytes
    }
}

extension GateReading {
    private static let columns =
        "number, message, send, subject, head, \(Schema.offered.isAltered), sealed FROM offered"
    private static let all = StatementText("offered", "SELECT \(columns) ORDER BY number")
    private static let byMessage = StatementText("offered", "SELECT \(columns) WHERE message = ?")
    private static let bySend = StatementText(
        "offered", "SELECT \(columns) WHERE send = ? ORDER BY number")
    private static let bySubject = StatementText(
        "offered", "SELECT \(columns) WHERE subject = ? ORDER BY number")

    /// Reads a row up to what is sealed of it.
    private func offered(from row: inout StoredRow) throws -> StoredMessage {
        let number = row.integer()
        let (message, send, subject) = (
            try row.id(MessageID.self), try row.id(SendID.self), try row.id(SubjectID.self)
        )
        var fields = try FieldReader(row.byteArray(), version: 1, table: "offered")
        let destination = try fields.id(Tag.self)
        let (caller, type) = (try fields.integer(), try fields.integer())
        let request = AttestedRequest(
            caller: CallerName(try words.text(of: caller, in: gate)),
            type: TypeID(try words.text(of: type, in: gate)), channel: try fields.code(),
            critical: try fields.flag())
        var record = OutboxRecord(
            message: message, send: send, subject: subject, destination: destination, request: request,
            category: try fields.code(), tier: try fields.code(), state: try fields.code(),
            form: try fields.code(), interruption: try fields.code(),
            key: try fields.optional { try $0.id() },
            headers: [], body: [], facts: [], decidedAt: try fields.instant(),
            notBefore: try fields.instant(), expiresAt: try fields.instant(),
            attemptCount: Int(try fields.integer(in: 0...StoredRow.countMax)),
            attemptedAt: try fields.optional { try $0.instant() })
        let byteCount = try fields.integer(in: 0...StoredRow.countMax)
        try fields.finish()
        record.isDamaged = row.flag()
        return StoredMessage(record, number: number, caller: caller, type: type, byteCount: byteCount)
    }

    private func offeredRecord(from row: inout StoredRow) throws -> OutboxRecord {
        try outboxRecord(try offered(from: &row).head, from: &row)
    }

    /// Messages that an open row is looked for among, each found by a look at all there are: some two hundred at most.
    final func offered(_ message: MessageID) throws -> OutboxRecord? {
        try gate.first(Self.byMessage, { $0.add(message) }) { try offeredRecord(from: &$0) }
    }

    final func offeredHead(_ message: MessageID) throws -> OutboxRecord? {
        try gate.first(Self.byMessage, { $0.add(message) }) { try offered(from: &$0).head }
    }

    final func offered(of send: SendID) throws -> [OutboxRecord] {
        try gate.everyReadable(Self.bySend, { $0.add(send) }) { try offeredRecord(from: &$0) }
    }

    final func offered(of subject: SubjectID) throws -> [OutboxRecord] {
        try gate.everyReadable(Self.bySubject, { $0.add(subject) }) { try offeredRecord(from: &$0) }
    }

    private static let countBySubject = StatementText(
        "offered", "SELECT count(*) FROM offered WHERE subject = ?")

    final func offeredCount(of subject: SubjectID) throws -> Int {
        try gate.first(Self.countBySubject, { $0.add(subject) }, read: { Int($0.integer()) }) ?? 0
    }

    /// All rows that can be read, oldest first, with what is sealed of them as it is stored.
    final func everyOffered() throws -> [(row: StoredMessage, sealed: [UInt8])] {
        try gate.everyReadable(Self.all) { (try offered(from: &$0), $0.byteArray()) }
    }
}

extension GateTransaction {
    private static let insertOffered = StatementText(
        "offered",
        "INSERT INTO offered (number, message, send, subject, head, sealed) VALUES (?, ?, ?, ?, ?, ?)")
    private static let deleteOffered = StatementText(
        "offered", "DELETE FROM offered WHERE number BETWEEN ? AND ?")
    private static let offeredOfSubject = StatementText("offered", "DELETE FROM offered WHERE subject = ?")
    private static let storedOffered = StatementText(
        "offered", "SELECT number, \(Schema.offered.isAltered), sealed FROM offered WHERE number = ?")
    private static let isQueued = StatementText("outbox", "SELECT number FROM outbox WHERE message = ?")

    /// Writes a new message that goes to the relay from memory.
    func offer(_ record: OutboxRecord) throws {
        try requireNew(record.message)
        guard
            try gate.isEmpty(Schema.outbox.name)
                || gate.first(Self.isQueued, { $0.add(record.message) }, read: { _ in true }) == nil
        else { throw Self.isThereAlready(record.message) }
        let number = tail.outboxNumber + 1
        let (row, sealed) = try stored(record, number: number)
        try gate.change(Self.insertOffered) {
            $0.add(number)
            $0.add(record.message)
            $0.add(record.send)
            $0.add(record.subject)
            $0.add(row.offeredHead)
            $0.add(sealed)
        }
        tail.outboxNumber = number
        setOffered(record.message, to: row)
    }

    /// Messages have one id in both tables.
    func requireNew(_ message: MessageID) throws {
        guard writer.offered[message] == nil else { throw Self.isThereAlready(message) }
    }

    private static func isThereAlready(_ message: MessageID) -> StoreConflict {
        StoreConflict(table: "offered", message: "there is a message \(message) already")
    }

    /// - Returns: Whether it was there to be removed, with the number of its row.
    func removeOffered(_ message: MessageID) throws -> Bool {
        guard let row = writer.offered[message] else { return false }
        sendNumbers[row.head.send] = row.sendNumber ?? sendNumbers[row.head.send]
        setOffered(message, to: nil)
        endedOffers.append(row.number)
        return true
    }

    /// Deletes rows that are not offered any more. Results come in the order of offers, so that most lie side by side. A row that
    /// is gone already is named by the integrity check.
    func deleteEndedOffers() throws {
        guard !endedOffers.isEmpty else { return }
        endedOffers.sort()
        var first = endedOffers[0]
        for (index, number) in endedOffers.enumerated() {
            if index + 1 < endedOffers.count, endedOffers[index + 1] == number + 1 { continue }
            try gate.change(Self.deleteOffered) {
                $0.add(first)
                $0.add(number)
            }
            if index + 1 < endedOffers.count { first = endedOffers[index + 1] }
        }
        endedOffers = []
    }

    func removeOffered(of subject: SubjectID) throws {
        for row in writer.offered.of(subject) { _ = try removeOffered(row.head.message) }
        // Also what an earlier process left and nobody can read.
        try gate.change(Self.offeredOfSubject) { $0.add(subject) }
    }

    /// A message that was offered has to wait after all: from here on it is one of `outbox`.
    ///
    /// - Parameter damage: What becomes of a row that is not as it was written: as of a change to it.
    func queueOffered(_ message: MessageID, damage: StatementText.DamagePolicy = .refused) throws {
        guard let row = writer.offered[message] else { return }
        let found = try gate.first(Self.storedOffered, { $0.add(row.number) }) {
            $0.skip(1)
            return (isAltered: $0.flag(), sealed: $0.byteArray())
        }
        guard let found else {
            throw StoreError.damaged(table: "offered", row: "\(row.number)", "it is missing")
        }
        guard !found.isAltered || damage != .refused else {
            throw StoreError.damaged(table: "offered", row: "\(row.number)", RowSums.wrongCode)
        }
        _ = try removeOffered(message)
        try insert(row, sealed: found.sealed, isDamaged: found.isAltered)
    }

    /// What an earlier process offered and never heard of waits in `outbox`, as what was tried there. A row that nobody
    /// can read stays where it is.
    func queueOfferedOfEarlierProcess() throws {
        for (row, sealed) in try everyOffered() {
            if row.head.isDamaged {
                damages.note(StoredDamage(table: "offered", row: "\(row.number)", what: RowSums.wrongCode))
            }
            do {
                try insert(row, sealed: sealed, isDamaged: row.head.isDamaged)
            } catch is StoreConflict where row.head.isDamaged {
                // Its number or its id is that of another.
                continue
            }
            endedOffers.append(row.number)
        }
    }
}
