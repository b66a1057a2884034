import GateSteps
import GateVocabulary
import GatewayPipeline

/// A table with sealed values, for a pass over its rows.
///
/// The statements of a page return the row's key, whether it is sealed under the current key, the sealed value where it is not,
/// and then the columns that ``binding`` reads.
private struct SealedTable: Sendable {
    let name: String
    let column: SealedColumn
    let keyCount: Int
    let isOfSubjects: Bool
    let page: StatementText
    let write: StatementText
    let lag: StatementText
    let use: StatementText
    /// The bytes that the value is bound to.
    let binding: @Sendable (inout StoredRow, _ key: [Int64], GateReading) throws -> [UInt8]

    /// - Parameters:
    ///   - key: The primary key's columns, integers all.
    ///   - more: What `binding` reads, as SQL.
    init(
        _ table: StoredTable, _ column: SealedColumn, sealed: String = "sealed", key: [String],
        more: String = "NULL", isOfSubjects: Bool = false,
        binding: @escaping @Sendable (inout StoredRow, [Int64], GateReading) throws -> [UInt8]
    ) {
        name = table.name
        self.column = column
        keyCount = key.count
        self.isOfSubjects = isOfSubjects
        self.binding = binding
        let keys = key.joined(separator: ", ")
        let marks = key.map { _ in "?" }.joined(separator: ", ")
        // The head of a value, as long as that of one under the current key.
        let isCurrent = "(\(sealed) IS NULL OR substr(\(sealed), 1, ?1) = ?2)"
        page = StatementText(
            name,
            """
            SELECT \(keys), \(isCurrent), CASE WHEN \(isCurrent) THEN NULL ELSE \(sealed) END, \(more)
            FROM \(name) WHERE (\(keys)) > (\(marks)) ORDER BY \(keys) LIMIT ?
            """)
        write = StatementText(
            name, "UPDATE \(name) SET \(sealed) = ? WHERE (\(keys)) = (\(marks))")
        lag = StatementText(name, "SELECT count(*) FROM \(name) WHERE NOT \(isCurrent)")
        use = StatementText(name, "SELECT 1 FROM \(name) WHERE substr(\(sealed), 1, ?1) = ?2 LIMIT 1")
    }

    static let all: [SealedTable] = [
        SealedTable(
            Schema.subject, SubjectMappings.tagKey, sealed: "tag_key", key: ["number"],
            more: "user, subject", isOfSubjects: true
        ) { row, _, _ in row.byteArray() + (try row.id(SubjectID.self)).bytes },
        SealedTable(Schema.person, GateReading.stateColumn, key: ["number"], more: "subject") {
            row, key, _ in GateReading.stateRow(try row.id(), key[0])
        },
        SealedTable(
            Schema.ledger, LedgerKind.column, key: ["person", "kind", "position"],
            more: "(SELECT subject FROM person WHERE number = ledger.person)"
        ) { row, key, _ in
            guard let kind = LedgerKind(rawValue: key[1]) else {
                throw StoreError.damaged(table: LedgerKind.table, "it is of no kind that there is")
            }
            return kind.row(try row.id(), key[2])
        },
        SealedTable(
            Schema.send, SendColumns.send, key: ["number"], more: GateReading.sendHeadColumns
        ) { row, _, reading in try reading.sendHead(from: &row).row },
        SealedTable(
            Schema.event, SendColumns.event, key: ["cursor"], more: GateReading.eventHeadColumns
        ) { row, _, reading in try reading.eventHead(from: &row).row },
        SealedTable(
            Schema.outbox, SendColumns.outbox, key: ["number"], more: GateReading.outboxHeadColumns
        ) { row, _, reading in try reading.boundOutboxHead(from: &row).row },
        SealedTable(Schema.offered, OfferedSegment.column, key: ["number"], more: "last, heads") {
            row, key, _ in OfferedSegment.bound(key[0], row.integer(), row.byteArray())
        },
    ]
}

/// The progress of a pass: kept in the store, so that it continues after a restart.
private struct ResealingPlace {
    static let settingName = "resealing"

    var key: String
    var table = 0
    var rowKey: [Int64] = []
    var visited: Int64 = 0

    init(of key: String) { self.key = key }

    /// - Returns: `nil` for the place of a pass to another key, or none.
    init?(_ text: String?, of key: String) {
        let words = (text ?? "").split(separator: " ")
        let numbers = words.dropFirst().map { Int64($0) }
        guard words.count >= 3, words[0] == key, numbers.allSatisfy({ $0 != nil }) else { return nil }
        let values = numbers.compactMap { $0 }
        guard SealedTable.all.indices.contains(Int(clamping: values[0])) else { return nil }
        self.key = key
        table = Int(values[0])
        visited = values[1]
        rowKey = Array(values[2...])
        guard rowKey.isEmpty || rowKey.count == SealedTable.all[table].keyCount else { return nil }
    }

    var text: String {
        ([key] + ([Int64(table), visited] + rowKey).map { "\($0)" }).joined(separator: " ")
    }
}

extension GateTransaction {
    /// Checks the next rows and seals those anew that are under another key.
    func reseal(rowCountMax: Int) throws -> Resealing {
        let key = cipher.currentKeyID
        var place =
            ResealingPlace(try setting(ResealingPlace.settingName), of: key) ?? ResealingPlace(of: key)
        var left = rowCountMax
        while left > 0, place.table < SealedTable.all.count {
            let table = SealedTable.all[place.table]
            let count = try resealPage(of: table, rowCountMax: left, at: &place)
            if count < left {
                place.table += 1
                place.rowKey = []
            }
            left -= count
        }
        let isDone = place.table == SealedTable.all.count
        try setSetting(ResealingPlace.settingName, to: isDone ? nil : place.text)
        return Resealing(key: key, visitedRowCount: place.visited, isDone: isDone)
    }

    /// - Returns: How many rows were checked; fewer than `rowCountMax` when the table ended.
    private func resealPage(
        of table: SealedTable, rowCountMax: Int, at place: inout ResealingPlace
    ) throws -> Int {
        let start = place.rowKey
        var (count, last) = (0, start)
        var found: [(key: [Int64], sealed: [UInt8])] = []
        let look: (Connection) throws -> Void = { [self] connection in
            try connection.scan(table.page) {
                bindHead(to: &$0)
                for part in 0..<table.keyCount { $0.add(start.isEmpty ? Int64.min : start[part]) }
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
