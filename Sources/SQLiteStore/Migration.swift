import GateSteps
import GateVocabulary
import GatewayPipeline

/// How far a state directory is brought up to date.
package struct MigrationProgress: Hashable, Sendable, CustomStringConvertible {
    package enum Work: Hashable, Sendable {
        /// Pages are held against their codes before anything is changed.
        case checking
        /// A script runs, which is one transaction.
        case script
        /// Rows are rewritten, some in each transaction.
        case rows
    }

    /// The database's file.
    package let file: String
    /// The version that it is brought to, by this step.
    package let version: Int
    package let work: Work
    /// Pages or rows that are done, of all there are; 0 of 0 in a script.
    package let done: Int64
    package let total: Int64

    /// For the log, and for who waits.
    package var description: String {
        let share = total == 0 ? "" : ", \(min(done * 100 / total, 100)) % of \(total)"
        return switch work {
        case .checking: "checking `\(file)` before it is brought to version \(version)\(share) pages"
        case .script: "bringing `\(file)` to version \(version)"
        case .rows: "bringing `\(file)` to version \(version)\(share) rows"
        }
    }
}

/// Brings one database to the version that this build writes, step by step.
///
///     found version → [a step that was begun goes on] → each step that is missing, in order → the newest version
///
/// - Durability: A script is one transaction with its number. A step over rows is many: the first writes the number and makes the
///   table `migration`, each further one rewrites rows and writes there how far it is, and the last removes the table. A process that
///   ends at any point leaves a file that the next start goes on with, and that an earlier build refuses by its number.
/// - Bounds: A transaction rewrites up to ``rowCountMax`` rows and some 4 MiB, whatever there is in all.
/// - Damage: Before the first step over rows every page is held against its code, so that a damaged database is still that of
///   the version before. A value that does not open is damage before and after: it stays as it is, and is noted.
struct Migration {
    private static let byteCountMax = 4 << 20

    /// What a step over rows needs.
    struct Rows {
        /// Opens and seals what is in the database.
        let reading: GateReading
        let cipher: RowCipher
        let damages: DamageLog
        let rowCountMax: Int
        /// Of a log from which on it is moved.
        let logByteCountBeforeCheckpoint: Int
    }

    let schema: Schema
    /// Called before the first row is rewritten. Needed where the database may be an older one.
    var rows: () throws -> Rows = {
        preconditionFailure("an older database is brought up to date without keys")
    }
    /// Called before each step, in a long script, and after each transaction of a step over rows. Ends the migration where it throws,
    /// but in a script.
    var progress: (MigrationProgress) throws -> Void = { _ in }

    init(_ schema: Schema) { self.schema = schema }

    /// Call inside the writing connection.
    func run(on connection: Connection) throws {
        var found = try schema.version(of: connection)
        let isNew = found == 0
        if isNew { found = schema.refusedVersionCount }
        var context: Rows?
        if let begun = try Self.place(in: connection) {
            try rewrite(found, from: begun, on: connection, &context)
        } else if !isNew, schema.hasStepOverRows(after: found) {
            try requireWholePages(connection, for: found + 1)
        }
        while found < schema.version {
            found += 1
            switch schema.step(to: found) {
            case .script(let script) where isNew: try write(script, as: found, on: connection)
            case .script(let script):
                try tell(.script, found)
                try connection.ticking {
                    // Only a transaction of its own can be ended.
                    try? tell(.script, found)
                } during: {
                    try write(script, as: found, on: connection)
                }
            case .rows(let tables):
                precondition(
                    tables.allSatisfy { !$0.isOfSubjects && $0.relaying != nil },
                    "step \(found) is over rows that have no layout")
                guard !isNew else {
                    try write("", as: found, on: connection)
                    continue
                }
                let rowCount = try tables.reduce(into: Int64(0)) { count, table in
                    count += try connection.first(table.rowCount, read: { try $0.count() }) ?? 0
                }
                let start = Place(rows: RowPlace(), rowCount: rowCount)
                try write(Self.table.text + Self.insertion(start), as: found, on: connection)
                try rewrite(found, from: start, on: connection, &context)
            }
        }
    }

    private func tell(
        _ work: MigrationProgress.Work, _ version: Int, _ done: Int64 = 0, of total: Int64 = 0
    ) throws {
        try progress(
            MigrationProgress(file: schema.file, version: version, work: work, done: done, total: total))
    }

    private func write(_ script: String, as version: Int, on connection: Connection) throws {
        try connection.writing {
            try connection.script(script)
            try connection.script("PRAGMA application_id = \(schema.applicationID)")
            try connection.script("PRAGMA user_version = \(version)")
        }
    }

    // MARK: The place of a step

    /// One row, in a table that is there while a step over rows has begun and not ended.
    struct Place {
        var rows: RowPlace
        var rowCount: Int64
    }

    private static let table = StoredTable(
        "migration",
        [
            "only": "INTEGER PRIMARY KEY CHECK (only = 1)", "place": "TEXT NOT NULL",
            "row_count": "INTEGER NOT NULL",
        ])
    private static let isThere = StatementText(
        "sqlite_schema", "SELECT 1 FROM sqlite_schema WHERE name = 'migration'")
    private static let read = StatementText("migration", "SELECT place, row_count FROM migration")
    private static let put = StatementText("migration", "UPDATE migration SET place = ?")

    private static func insertion(_ place: Place) -> String {
        "INSERT INTO migration VALUES (1, '\(place.rows.text)', \(place.rowCount));\n"
    }

    /// - Returns: `nil` where every step that has begun has ended.
    static func place(in connection: Connection) throws -> (text: String, rowCount: Int64)? {
        guard try connection.first(isThere, read: { _ in true }) != nil else { return nil }
        guard let found = try connection.first(read, read: { ($0.text(), try $0.count()) }) else {
            throw StoreError.damaged(table: table.name, "its only row is missing")
        }
        return found
    }

    // MARK: Rows

    private func rewrite(
        _ version: Int, from begun: (text: String, rowCount: Int64), on connection: Connection,
        _ context: inout Rows?
    ) throws {
        guard case .rows(let tables) = schema.step(to: version),
            let place = RowPlace(begun.text.split(separator: " "), in: tables)
        else {
            throw StoreError.damaged(table: Self.table.name, "it says the place of no row of step \(version)")
        }
        try rewrite(version, from: Place(rows: place, rowCount: begun.rowCount), on: connection, &context)
    }

    private func rewrite(
        _ version: Int, from start: Place, on connection: Connection, _ context: inout Rows?
    ) throws {
        guard case .rows(let tables) = schema.step(to: version) else {
            preconditionFailure("step \(version) of `\(schema.file)` is over no rows")
        }
        let rows = try context ?? rows()
        context = rows
        var place = start.rows
        var coveredSealCount: UInt64 = 0
        try tell(.rows, version, place.visited, of: start.rowCount)
        while place.table < tables.count {
            try connection.writing {
                try rewritePage(of: tables[place.table], from: version - 1, at: &place, rows, connection)
                coveredSealCount = try GateTransaction.coverSeals(
                    of: rows.cipher, coveredBefore: coveredSealCount, in: connection)
                if place.table < tables.count {
                    try connection.change(Self.put) { $0.add(place.text) }
                } else {
                    try connection.script("DROP TABLE migration")
                }
            }
            // Crash point: the rows before `place` are rewritten and durable, those behind it are not. The next start goes on there.
            try connection.moveLog(largerThan: rows.logByteCountBeforeCheckpoint)
            try tell(.rows, version, place.visited, of: start.rowCount)
        }
    }

    /// Rewrites the next rows of a table, and goes on to the next one behind its last.
    private func rewritePage(
        of table: SealedTable, from version: Int, at place: inout RowPlace, _ rows: Rows,
        _ connection: Connection
    ) throws {
        var (next, count, byteCount) = (place, 0, 0)
        var found: [(key: [Int64], sealed: [UInt8])] = []
        try connection.scan(table.every) {
            place.bindKey(of: table, to: &$0)
            $0.add(Int64(rows.rowCountMax))
        } read: { row in
            count += 1
            let key = (0..<table.keyCount).map { _ in row.integer() }
            next.rowKey = key
            let sealed = row.byteArray()
            byteCount += sealed.count
            if let value = try rewritten(sealed, key, &row, in: table, from: version, rows) {
                found.append((key, value))
            }
            return byteCount < Self.byteCountMax
        }
        for row in found {
            try connection.change(table.write) {
                $0.add(row.sealed)
                for part in row.key { $0.add(part) }
            }
        }
        next.visited += Int64(count)
        if count < rows.rowCountMax, byteCount < Self.byteCountMax {
            (next.table, next.rowKey) = (place.table + 1, [])
        }
        place = next
    }

    /// - Returns: The value to write; `nil` where it stays.
    private func rewritten(
        _ sealed: [UInt8], _ key: [Int64], _ row: inout StoredRow, in table: SealedTable, from version: Int,
        _ rows: Rows
    ) throws -> [UInt8]? {
        // A value under a key that is not loaded is no damage: with the key it would open, and then be of an earlier layout.
        if let id = RowCipher.keyID(of: sealed), !rows.cipher.isLoaded(id) {
            throw StoreOpeningError.missingDataKey(id: id)
        }
        let (binding, fields): ([UInt8], [UInt8])
        do {
            binding = try table.binding(&row, key, rows.reading)
            fields = try rows.reading.open(sealed, in: table.column, row: binding)
        } catch let error as StoreError {
            guard let damage = error.damage else { throw error }
            let number = key.map { "\($0)" }.joined(separator: " ")
            rows.damages.note(StoredDamage(table: damage.table, row: number, what: damage.what))
            return nil
        }
        // What opens was written by a build of ours. Where it cannot be read the step is wrong, and nothing more is rewritten.
        guard let fields = try table.relaying?(fields, key, version) else { return nil }
        return try rows.cipher.seal(fields, in: table.column, row: binding)
    }

    /// - Throws: ``StoreOpeningError/damaged(file:table:row:what:)`` for the first page that is not as it was written.
    private func requireWholePages(_ connection: Connection, for version: Int) throws {
        try connection.emptyLog()
        let end = try connection.pageCountOnDisk() + 1
        for first in stride(from: Int64(1), to: end, by: 4_096) {
            if let wrong = try connection.wrongPages(first..<min(first + 4_096, end)).first {
                throw StoreOpeningError.damaged(
                    file: schema.file, table: "page \(wrong.number)", row: nil, what: wrong.what)
            }
            try tell(.checking, version, first, of: end - 1)
        }
    }
}
