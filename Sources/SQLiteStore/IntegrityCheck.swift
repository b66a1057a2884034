import Foundation
import GateSteps
import GatewayPipeline

/// Checks every row of one table, in the order of its key, against its code, and all of them against the table's sum.
/// Works in slices beside the writer: a change to a row already checked is added to the sum.
struct TableWalk {
    let table: TableShape
    private let position: Int
    private(set) var key: [StoredCell]?
    private(set) var found = TableSum()
    /// The writer's sum, as of the last slice.
    private(set) var expected = TableSum()
    /// Keys of altered rows, and the names that errors give them.
    private(set) var altered: [(key: [StoredCell], name: String)] = []
    private(set) var isDone = false

    /// - Parameter position: Of the table in the writer's sums; unused for an anchor.
    init(_ table: TableShape, at position: Int = -1) {
        self.table = table
        self.position = position
    }

    /// Call while nothing is being written, before ``readSlice(from:rowCountMax:)`` in a snapshot that begins meanwhile.
    mutating func beginSlice(beside sums: RowSums) {
        if sums.watched == position {
            for change in sums.takeChanges() {
                guard let key, !key.lexicographicallyPrecedes(change.key) else { continue }
                if change.isAdded { found.add(change.row) } else { found.subtract(change.row) }
            }
        } else {
            sums.watched = position
        }
        expect(sums)
    }

    /// Takes the writer's present sum.
    mutating func expect(_ sums: RowSums) { expected = sums.sums[position] }

    /// - Returns: How many rows it looked at.
    mutating func readSlice(from connection: Connection, rowCountMax: Int) throws -> Int {
        let (before, keyCount) = (key, table.key.count)
        var count = 0
        try connection.scan(before == nil ? table.first : table.next) { binder in
            for cell in before ?? [] { binder.add(cell) }
            binder.add(Int64(rowCountMax))
        } read: { row in
            row.skip(keyCount)
            found.add(row.code())
            if row.flag() { altered.append((row.key, row.name)) }
            count += 1
            if count == rowCountMax { key = row.key }
            return true
        }
        isDone = count < rowCountMax
        return count
    }

    /// What the sums say besides the altered rows; `nil` when those explain the difference.
    var missing: String? {
        guard found != expected else { return nil }
        let difference = expected.rowCount - found.rowCount
        if difference > 0 { return "\(difference) of its rows are missing" }
        if difference < 0 { return "it has \(-difference) rows more than were written" }
        return altered.isEmpty ? "a row is an older one than was written last" : nil
    }

    var isSound: Bool { altered.isEmpty && missing == nil }
}

/// One pass after the other over all tables of both databases, a slice at a time.
final class IntegrityCheck: @unchecked Sendable {
    // @unchecked is sound because everything mutable is touched only inside `exclusively`, and at the start, before
    // another thread has it.
    struct File {
        let tables: [TableShape]
        /// The connection whose sums are compared with the rows.
        let writer: Connection
        let reader: Connection
    }

    private let lock = NSLock()
    let files: [File]
    /// The recorded damage, by table and place, and whether an operator has accepted it.
    var known: [String: [String: Bool]]
    private var file = 0
    private var table = 0
    private var walk: TableWalk?

    init(_ files: [File], known: [String: [String: Bool]]) {
        self.files = files
        self.known = known
    }

    func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result { try lock.withLock(body) }

    func close() {
        for file in files { file.reader.close() }
    }

    /// Rows of both databases, as the writers count them.
    var rowCount: Int64 {
        files.reduce(0) { sum, file in
            file.writer.exclusively {
                sum + (file.writer.sums?.sums.reduce(0) { $0 + $1.rowCount } ?? 0)
            }
        }
    }

    /// Altered rows of the anchors, which are in no sum; checked before each pass.
    func damagedAnchors() throws -> [StoredDamage] {
        guard file == 0, table == 0, walk == nil else { return [] }
        return try files.flatMap { file in
            guard let anchor = file.writer.sums?.anchor else { return [StoredDamage]() }
            return try file.reader.exclusively {
                var walk = TableWalk(anchor)
                let count = try walk.readSlice(from: file.reader, rowCountMax: 2)
                let altered = walk.altered.map {
                    StoredDamage(table: anchor.name, row: $0.name, what: RowSums.wrongCode)
                }
                let missing = StoredDamage(table: anchor.name, row: "1", what: "its only row is missing")
                return count == 0 ? [missing] : altered
            }
        }
    }

    /// Checks the next rows, or those that are left of one pass.
    ///
    /// - Parameters:
    ///   - isWalked: Called with each table that was checked to its end.
    ///   - isUnreadable: Called with what ended the check of a table before.
    /// - Returns: Whether that was the end of a pass.
    func advance(
        rowCountMax: Int, isWalked: (File, TableWalk) throws -> Void, isUnreadable: (StoredDamage) -> Void
    ) throws -> Bool {
        var left = rowCountMax
        while left > 0 {
            let file = files[self.file]
            var walk = self.walk ?? TableWalk(file.tables[table], at: table)
            var damage: StoredDamage?
            do {
                left -= max(try slice(&walk, in: file, rowCountMax: left), 1)
            } catch let error as StoreError {
                // The rest of the table lies behind a damaged page.
                damage = error.damage
                guard let damage else { throw error }
                isUnreadable(damage)
                left -= 1
            }
            guard walk.isDone || damage != nil else {
                self.walk = walk
                continue
            }
            self.walk = nil
            table += 1
            if table == file.tables.count {
                table = 0
                self.file = (self.file + 1) % files.count
            }
            file.writer.exclusively { file.writer.sums?.watched = nil }
            if damage == nil { try isWalked(file, walk) }
            if self.file == 0, table == 0 { return true }
        }
        return false
    }

    private func slice(_ walk: inout TableWalk, in file: File, rowCountMax: Int) throws -> Int {
        try file.reader.exclusively {
            defer { file.reader.rollBack() }
            try file.writer.exclusively {
                if let sums = file.writer.sums { walk.beginSlice(beside: sums) }
                try file.reader.begin(writing: false)
                // The snapshot is fixed by the first look at the file.
                _ = try file.reader.pragma("SELECT count(*) FROM sqlite_schema")
            }
            return try walk.readSlice(from: file.reader, rowCountMax: rowCountMax)
        }
    }

    /// Checks one table whole, on the connection that writes. Call inside it, outside of a transaction.
    static func walked(_ table: TableShape, on connection: Connection) throws -> TableWalk {
        guard let sums = connection.sums, let position = sums.position(of: table.name) else {
            preconditionFailure("`\(table.name)` has no sum")
        }
        var walk = TableWalk(table, at: position)
        walk.expect(sums)
        _ = try walk.readSlice(from: connection, rowCountMax: Int(Int32.max))
        return walk
    }
}
