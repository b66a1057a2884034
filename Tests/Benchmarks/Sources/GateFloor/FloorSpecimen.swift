import CanonicalJSON
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords
import SQLiteStore

/// What one transaction of the store changes, row by row, taken from a store that ran it: a batch of sends, and the results
/// of the batch before it.
///
/// The store writes three such transactions in a database of its own, and what differs between the second and the third says
/// how each value goes on: a number by as much each time, an id by other bytes. So the rows have the store's tables, columns,
/// indexes and lengths, whatever these are.
package struct FloorSpecimen {
    /// A value of the first transaction, and what the n-th has in its place.
    struct Value {
        var first: RawValue
        /// Added to a number with each transaction.
        var step: Int64 = 0
        /// An id or a code: other bytes in each transaction.
        var isUnique = false
        /// An id that begins with the milliseconds of its transaction (RFC 9562 section 5.7), which come one after the other.
        var isTimed = false
        /// The number of a person, any of them.
        var isPerson = false
    }

    enum Kind { case insert, update, delete }

    /// Changes of one kind to one table.
    struct TableChange {
        var kind: Kind
        var table: String
        /// Names of ``rows``' values; of a row to delete, those of its key.
        var columns: [String]
        var key: [String]
        var rows: [[Value]]
    }

    /// Statements that make the tables and indexes, and what they hold before the first transaction. A row's code is a column
    /// like any other: a floor does not compute it.
    private(set) var schema: [String] = []
    private(set) var contents: [(table: String, columns: [String], rows: [[RawValue]])] = []
    private(set) var tableChanges: [TableChange] = []
    /// Sends that one transaction writes.
    let batch: Int
    /// What the store added to its log in the third transaction.
    private(set) var logByteCount = 0

    /// Ids, and no contents: those may stay the same.
    private static let idByteCountMax = 32
    /// Entries of one row begin at a multiple of this, as in the store.
    private static let entryAlignment: UInt64 = 256

    /// - Parameters:
    ///   - folder: Made for the store, and removed.
    ///   - refusedPercent: So many of a hundred leave an entry and a send, and nothing else.
    package init(of rows: SendRows, batch: Int, refusedPercent: Int, in folder: String) throws {
        self.batch = batch
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let source = try FloorSource(rows, batch: batch, refusedPercent: refusedPercent, folder: folder)
        defer { source.store.close() }
        let database = try RawDatabase(path: folder + "/gate.db", isReadOnly: true)
        // Rows that are written once in a while (how many were sealed) may fall into one of the two.
        for _ in 0..<3 {
            try source.transaction(alignedTo: Self.entryAlignment)
            var changes: [Differences] = []
            var before = try Snapshot(of: database)
            contents = before.tables.map { ($0.name, $0.columns, $0.rows) }
            for _ in 0..<2 {
                let logged = source.logByteCount
                try source.transaction()
                logByteCount = source.logByteCount - logged
                let after = try Snapshot(of: database)
                changes.append(Differences(from: before, to: after))
                try source.align(to: Self.entryAlignment)
                before = try Snapshot(of: database)
            }
            guard let tableChanges = Self.tableChanges(changes[0], changes[1], of: before) else { continue }
            self.tableChanges = tableChanges
            schema = try Self.schema(of: database)
            return
        }
        throw FloorFailure(
            "the store writes no two equal batches alike, so there is no floor to compare with")
    }

    private static func schema(of database: RawDatabase) throws -> [String] {
        try database.texts(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'index', rowid")
    }

    private static func tableChanges(
        _ one: Differences, _ two: Differences, of snapshot: Snapshot
    ) -> [TableChange]? {
        var tableChanges: [TableChange] = []
        for table in snapshot.tables {
            let (first, second) = (one.tables[table.name] ?? .init(), two.tables[table.name] ?? .init())
            let places = table.key.map { table.columns[$0] }
            for (kind, rows, next) in [
                (Kind.delete, first.deleted, second.deleted), (.insert, first.inserted, second.inserted),
                (.update, first.updated, second.updated),
            ] {
                guard rows.count == next.count else { return nil }
                guard !rows.isEmpty else { continue }
                let values = zip(rows, next).map { row, following in
                    zip(zip(row, following), kind == .delete ? places : table.columns).map { pair, column in
                        value(pair.0, pair.1, in: column)
                    }
                }
                tableChanges.append(
                    TableChange(
                        kind: kind, table: table.name, columns: kind == .delete ? places : table.columns,
                        key: places, rows: values))
            }
        }
        return tableChanges
    }

    /// The first 48 bits.
    static func milliseconds(_ id: [UInt8]) -> UInt64 { id.prefix(6).reduce(0) { $0 << 8 | UInt64($1) } }

    private static func value(_ one: RawValue, _ two: RawValue, in column: String) -> Value {
        if column == "person" { return Value(first: one, isPerson: true) }
        switch (one, two) {
        case (.integer(let one), .integer(let two)): return Value(first: .integer(one), step: two &- one)
        case (.blob(let bytes), .blob(let other)) where bytes != other && bytes.count <= idByteCountMax:
            return Value(
                first: .blob(bytes), isUnique: true,
                isTimed: bytes.count == 16 && milliseconds(other) == milliseconds(bytes) &+ 1)
        default: return Value(first: one)
        }
    }
}

/// What one send leaves in the store, as long as a real one's.
package struct SendRows {
    /// Of the trail: the decision, and the end of the hand-over.
    var entry: [UInt8]
    var deliveryEntry: [UInt8]
    /// Of the message: provider headers, provider body and facts, all canonical JSON.
    var headers: [UInt8]
    var body: [UInt8]
    var facts: [UInt8]

    /// - Parameters:
    ///   - entry: Of the trail.
    ///   - deliveryEntry: Of the trail, when the message had been handed over.
    ///   - headers: Provider headers of the message, canonical JSON.
    ///   - body: The provider's body, canonical JSON.
    package init(entry: [UInt8], deliveryEntry: [UInt8], headers: [UInt8], body: [UInt8]) throws {
        guard case .object(let object) = try CanonicalJSON.read(entry) else {
            throw FloorFailure("an entry of the trail is not an object")
        }
        self.entry = entry
        self.deliveryEntry = deliveryEntry
        self.headers = headers
        self.body = body
        // A message keeps one object where the entry keeps the shared facts and the destination's apart.
        facts =
            CanonicalJSON.write(.object(object["facts"]?.objectValue ?? [:]))
            + CanonicalJSON.write(
                .object(object["deliveries"]?.arrayValue?.first?["facts"]?.objectValue ?? [:]))
    }
}

/// All rows of a small database.
private struct Snapshot {
    struct TableRows {
        var name: String
        var columns: [String]
        /// Positions of the primary key's columns.
        var key: [Int]
        /// In the order of the key.
        var rows: [[RawValue]]
    }
    var tables: [TableRows] = []

    init(of database: RawDatabase) throws {
        let names = try database.texts(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
        for name in names {
            // Also generated columns, which pragma_table_info leaves out.
            let columns = try database.texts("SELECT name FROM pragma_table_xinfo('\(name)') ORDER BY cid")
            let key = try database.texts(
                "SELECT name FROM pragma_table_xinfo('\(name)') WHERE pk > 0 ORDER BY pk")
            let rows = try database.rows(
                "SELECT \(columns.joined(separator: ", ")) FROM \(name) ORDER BY \(key.joined(separator: ", "))"
            )
            tables.append(
                TableRows(
                    name: name, columns: columns, key: key.compactMap { columns.firstIndex(of: $0) },
                    rows: rows))
        }
    }
}

/// What became of rows between two snapshots.
private struct Differences {
    struct TableDifferences {
        /// Keys.
        var deleted: [[RawValue]] = []
        var inserted: [[RawValue]] = []
        /// As they are now.
        var updated: [[RawValue]] = []
    }
    var tables: [String: TableDifferences] = [:]

    init(from before: Snapshot, to after: Snapshot) {
        for (old, new) in zip(before.tables, after.tables) {
            func key(_ row: [RawValue]) -> [RawValue] { new.key.map { row[$0] } }
            let known = Dictionary(uniqueKeysWithValues: old.rows.map { (key($0), $0) })
            let found = Set(new.rows.map(key))
            var changes = TableDifferences()
            changes.deleted = old.rows.map(key).filter { !found.contains($0) }
            for row in new.rows {
                switch known[key(row)] {
                case nil: changes.inserted.append(row)
                case let earlier? where earlier != row: changes.updated.append(row)
                default: break
                }
            }
            tables[new.name] = changes
        }
    }
}

/// A store that is given batches of sends, and their results with the next batch.
private final class FloorSource {
    let store: SQLiteStore
    private let rows: SendRows
    private let batch: Int
    private let refusedCount: Int
    private let log: String
    private var random = SeededNumbers(seed: 1)
    private var count = 0
    private let subject: SubjectID
    /// Of the transaction: each has the next millisecond.
    private var start = Instant(seconds: Int64(Date().timeIntervalSince1970))
    private var waiting: [(send: SendID, message: MessageID)] = []

    init(_ rows: SendRows, batch: Int, refusedPercent: Int, folder: String) throws {
        self.rows = rows
        self.batch = batch
        refusedCount = batch * refusedPercent / 100
        log = folder + "/gate.db-wal"
        store = try SQLiteStore(
            directory: folder,
            cipher: RowCipher(
                current: .init(id: "bench", key: try AES256GCMKey(SecretBytes.random(byteCount: 32)))),
            indexKey: HMACKey(try SecretBytes.random(byteCount: 32)))
        let subject = SubjectID(high: random.next(), low: random.next())
        self.subject = subject
        try store.write { [start] memory in
            let record = RecipientRecord(
                subject: subject, region: nil, age: nil, locale: nil, timeZone: nil, privacy: .full,
                pushEnabled: true, quietHours: nil, registeredAt: start, updatedAt: start)
            try memory.apply(.recipient(record, action: .registered), to: subject)
        }
    }

    /// As long as it was not moved into the database, which happens at a start only, for so few rows.
    var logByteCount: Int {
        (try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int) ?? 0
    }

    func transaction(alignedTo alignment: UInt64) throws {
        try transaction()
        try align(to: alignment)
    }

    /// Entries until the next one's index is a multiple.
    func align(to alignment: UInt64) throws {
        try store.write { memory in
            while !memory.upcomingIndex.isMultiple(of: alignment) { try append([], to: memory) }
        }
    }

    private func append(_ entry: [UInt8], to memory: GateMemory) throws {
        memory.append(StoredEntry(index: memory.upcomingIndex, time: start, bytes: entry))
    }

    /// As the relay's group of results and the requests behind it come into one batch.
    func transaction() throws {
        let (ended, number) = (waiting, count)
        start = start.advanced(byMilliseconds: 1)
        waiting = try store.write { memory in
            for (send, message) in ended { try end(message, of: send, in: memory) }
            return try (0..<batch).compactMap {
                try insert(number + $0, isRefused: $0 < refusedCount, in: memory)
            }
        }
        count += batch
    }

    private static let caller = CallerName("dev")
    private var destination: Tag { Tag(high: subject.low, low: subject.high) }

    private func bytes(_ count: Int) -> [UInt8] {
        (0..<(count / 8)).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
    }

    private func insert(
        _ number: Int, isRefused: Bool, in memory: GateMemory
    ) throws -> (send: SendID, message: MessageID)? {
        let send = SendID(
            high: UInt64(start.milliseconds) << 16 | random.next() & 0xFFF | 0x7000, low: random.next())
        let message = MessageID(high: random.next(), low: random.next())
        let type: TypeID = isRefused ? TypeID("promo.offer") : TypeID("statement.available")
        let category: GateVocabulary.Category = isRefused ? .marketing : .transactional
        let index = memory.upcomingIndex
        try append(rows.entry, to: memory)
        memory.insertSend(
            SendRecord(
                id: send, caller: Self.caller, idHash: bytes(16), contentMAC: bytes(32), subject: subject,
                type: type, category: category, channel: .push, receivedAt: start, entryIndex: index,
                requestID: "open, single, 64 connections-\(10_000 + number)",
                destinationNames: [destination: "phone"]))
        if isRefused { return nil }
        memory.offerOutbox(
            OutboxRecord(
                message: message, send: send, subject: subject, destination: destination,
                request: AttestedRequest(caller: Self.caller, type: type, channel: .push, critical: false),
                category: category, tier: .informational, state: .ready, form: .full,
                interruption: .active, key: nil, headers: rows.headers, body: rows.body, facts: rows.facts,
                decidedAt: start, notBefore: start, expiresAt: start.advanced(bySeconds: 86_400),
                attemptCount: 1, attemptedAt: start))
        memory.countForward(of: subject, type: type, category: category, at: start, send: send)
        return (send, message)
    }

    private func end(_ message: MessageID, of send: SendID, in memory: GateMemory) throws {
        memory.removeOutbox(message)
        try append(rows.deliveryEntry, to: memory)
        memory.appendEvent(
            EventRecord(
                caller: Self.caller, send: send, subject: subject, event: .handedOver,
                destination: destination, at: start, reason: nil))
    }
}
