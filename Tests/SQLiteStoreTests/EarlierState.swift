import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords

@testable import SQLiteStore

/// A state directory as an earlier build would have left it, and a build that came after it.
///
/// There is no released step over rows yet. So the version before is made here: its rows have the fields of this build behind a
/// byte that no layout begins with, and the steps of the later build take that byte away. What comes out has to be exactly what
/// this build wrote, and is read by the code that reads it always.
enum EarlierState {
    /// Begins each row of the earlier build.
    static let layout: UInt8 = 0

    static let tables = [SealedTable.person, .ledger, .send, .outbox, .offered].map { table in
        var table = table
        table.relaying = { fields, _, _ in fields.first == layout ? Array(fields.dropFirst()) : nil }
        return table
    }

    /// Two versions more than this build: a table and a column, then every row in another layout, in two steps.
    static let later: Schemas = {
        var schemas = Schemas()
        schemas.gate.steps += [
            .script(
                "CREATE TABLE later (a); ALTER TABLE dedupe ADD COLUMN later INTEGER NOT NULL DEFAULT 7;"),
            .rows(Array(tables[..<2])),
            .rows(Array(tables[2...])),
        ]
        return schemas
    }()

    /// The numbers of messages that were offered are above this.
    static let offered = 1_000_000

    /// People, consents, choices, sends, messages that wait and one that was offered, as a kill leaves them.
    static func make(
        in folder: TemporaryFolder, count: Int = 5, named name: String = "earlier"
    ) throws -> String {
        let path = "\(folder.path)/\(name)"
        let store = try openStore(folder.state)
        for first in stride(from: 1, through: count, by: 50) {
            try store.write { step in
                for number in first...min(first + 49, count) { try step.putCanaries(number) }
            }
        }
        try store.write { step in
            for number in 1...3 { step.offerOutbox(.canary(offered + number, of: number)) }
        }
        try FileManager.default.copyItem(atPath: folder.state, toPath: path)
        store.close()
        try FileManager.default.removeItem(atPath: folder.state)
        let version = Schema.gate.version
        var down = Schema.gate
        down.steps.append(
            .rows(
                tables.map { table in
                    var table = table
                    table.relaying = { fields, _, _ in [layout] + fields }
                    return table
                }))
        try migrate(path, to: down)
        try tamper(path + "/gate.db", movingLog: true) {
            try $0.script("PRAGMA user_version = \(version)")
        }
        return path
    }

    /// Brings a database to a schema, outside a store.
    private static func migrate(_ path: String, to schema: Schema) throws {
        try withReading(path) { reading in
            var migration = Migration(schema)
            migration.rows = {
                Migration.Rows(
                    reading: reading, cipher: reading.cipher, damages: DamageLog(), rowCountMax: 1_000,
                    logByteCountBeforeCheckpoint: 1 << 20)
            }
            try migration.run(on: reading.gate)
        }
    }

    private static func withReading<Result>(_ path: String, _ body: (GateReading) throws -> Result) throws
        -> Result
    {
        let cipher = RowCipher(current: try .test(1))
        return try tamper(path + "/subjects.db") { subjects in
            try tamper(path + "/gate.db", movingLog: true) { gate in
                let reading = GateReading(
                    gate: gate, subjects: subjects, strings: StringTable(),
                    mappings: SubjectMappings(cipher: cipher, index: .test()))
                defer { reading.close() }
                return try body(reading)
            }
        }
    }

    /// Everything in `gate.db`: the columns in clear as they are, the sealed values opened. Not what a start writes by itself: the
    /// counts of seals, and when messages were offered.
    static func contents(of path: String) throws -> [String] {
        try withReading(path) { reading in
            let gate = reading.gate
            let names = try gate.every(
                StatementText(
                    "sqlite_schema", "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            ) { $0.text() }
            var lines: [String] = []
            for name in names where name != "key_check" {
                let columns = try gate.pragma(
                    "SELECT group_concat('quote(' || name || ')', ' || char(32) || ') FROM pragma_table_info('\(name)') WHERE name NOT IN ('sealed')"
                )
                let rows = StatementText(name, "SELECT \(columns) FROM \(name) ORDER BY 1")
                lines += try gate.every(rows) { "\(name) \($0.text())" }
            }
            for table in SealedTable.all where !table.isOfSubjects {
                try gate.scan(table.every) {
                    RowPlace().bindKey(of: table, to: &$0)
                    $0.add(Int64.max)
                } read: { row in
                    let key = (0..<table.keyCount).map { _ in row.integer() }
                    let sealed = row.byteArray()
                    let fields = try reading.open(
                        sealed, in: table.column, row: try table.binding(&row, key, reading))
                    lines.append("\(table.name) \(key) \(Hexadecimal.encode(fields))")
                    return true
                }
            }
            return lines
        }
    }
}

/// Opens a state directory with the later build.
func openLater(
    _ path: String, key: UInt8 = 1, rowCountMax: Int = 2, schemas: Schemas = EarlierState.later,
    migrating: @escaping (MigrationProgress) throws -> Void = { _ in }
) throws -> SQLiteStore {
    try SQLiteStore(
        directory: path, schemas: schemas,
        limits: SQLiteStoreLimits(readerCount: 1, migratedRowCountMax: rowCountMax), migrating: migrating
    ) { (RowCipher(current: try .test(key)), .test()) }
}
