import GateSteps
import GateVocabulary
import GatewayPipeline

/// The progress of a pass: kept in the store, so that it continues after a restart.
private struct ResealingPlace {
    static let settingName = "resealing"

    let key: String
    var rows = RowPlace()

    init(of key: String) { self.key = key }

    /// - Returns: `nil` for the place of a pass to another key, or none.
    init?(_ text: String?, of key: String) {
        let words = (text ?? "").split(separator: " ")
        guard let first = words.first, first == key,
            let rows = RowPlace(words.dropFirst(), in: SealedTable.all)
        else { return nil }
        (self.key, self.rows) = (key, rows)
    }

    var text: String { "\(key) \(rows.text)" }
}

extension GateTransaction {
    /// Checks the next rows and seals those anew that are under another key.
    func reseal(rowCountMax: Int) throws -> Resealing {
        let key = cipher.currentKeyID
        var place =
            ResealingPlace(try setting(ResealingPlace.settingName), of: key) ?? ResealingPlace(of: key)
        var left = rowCountMax
        while left > 0, place.rows.table < SealedTable.all.count {
            let table = SealedTable.all[place.rows.table]
            let count = try resealPage(of: table, rowCountMax: left, at: &place.rows)
            if count < left {
                place.rows.table += 1
                place.rows.rowKey = []
            }
            left -= count
        }
        let isDone = place.rows.table == SealedTable.all.count
        try setSetting(ResealingPlace.settingName, to: isDone ? nil : place.text)
        return Resealing(key: key, visitedRowCount: place.rows.visited, isDone: isDone)
    }

    /// - Returns: How many rows were checked; fewer than `rowCountMax` when the table ended.
    private func resealPage(
        of table: SealedTable, rowCountMax: Int, at place: inout RowPlace
    ) throws -> Int {
        let start = place
        var (count, last) = (0, start.rowKey)
        var found: [(key: [Int64], sealed: [UInt8])] = []
        let look: (Connection) throws -> Void = { [self] connection in
            try connection.scan(table.page) {
                bindHead(to: &$0)
                start.bindKey(of: table, to: &$0)
                $0.add(Int64(rowCountMax))
            } read: { row in
                count += 1
                let key = (0..<table.keyCount).map { _ in row.integer() }
                last = key
                guard !row.flag() else { return true }
                let sealed = row.byteArray()
                let binding = try table.binding(&row, key, self)
                let plain = try open(sealed, in: table.column, row: binding)
                found.append((key, try seal(plain, in: table.column, row: binding)))
                return true
            }
        }
        if table.isOfSubjects { try withMappings(look) } else { try look(gate) }
        place.rowKey = last
        place.visited += Int64(count)
        guard !found.isEmpty else { return count }
        let write: (Connection) throws -> Void = { connection in
            for row in found {
                try connection.change(table.write) {
                    $0.add(row.sealed)
                    for part in row.key { $0.add(part) }
                }
            }
        }
        if table.isOfSubjects {
            try beginMappings()
            try withMappings(write)
        } else {
            try write(gate)
        }
        return count
    }
}

extension GateReading {
    fileprivate func bindHead(to binder: inout Binder) {
        let head = cipher.currentHead
        binder.add(Int64(head.count))
        binder.add(head)
    }

    /// How many sealed values are not under the current data key. Reads every row.
    final func laggingRowCount() throws -> Int64 {
        var count: Int64 = 0
        for table in SealedTable.all {
            let look: (Connection) throws -> Int64? = { [self] connection in
                try connection.first(table.lag, { bindHead(to: &$0) }, read: { $0.integer() })
            }
            count += try (table.isOfSubjects ? withMappings(look) : look(gate)) ?? 0
        }
        return count
    }

    private static let usedKeys = StatementText("key_check", "SELECT id FROM key_check ORDER BY id")
    private static let usedKey = StatementText("key_check", "SELECT id FROM key_check WHERE id = ?")

    final func hasSealed(under key: String) throws -> Bool {
        try gate.first(Self.usedKey, { $0.add(key) }, read: { _ in true }) ?? false
    }

    final func missingDataKeys() throws -> [String] {
        var used: [String] = []
        try gate.scan(Self.usedKeys) { row in
            used.append(row.text())
            return true
        }
        return try used.filter { try !cipher.isLoaded($0) && hasValues(under: $0) }
    }

    final func hasValues(under key: String) throws -> Bool {
        let head = RowCipher.head(of: key)
        let look: (Connection, SealedTable) throws -> Bool = { connection, table in
            try connection.first(table.use) {
                $0.add(Int64(head.count))
                $0.add(head)
            } read: { _ in
                true
            } ?? false
        }
        return try SealedTable.all.contains { table in
            try table.isOfSubjects ? withMappings { try look($0, table) } : look(gate, table)
        }
    }
}
