import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline

/// A table with sealed values, for a pass over its rows.
///
/// The statements of a page return the row's key, whether it is sealed under the current key, the sealed value where it is not,
/// and then the columns that ``binding`` reads.
struct SealedTable: Sendable {
    let name: String
    let column: SealedColumn
    let keyCount: Int
    let isOfSubjects: Bool
    let page: StatementText
    let write: StatementText
    let lag: StatementText
    let use: StatementText
    /// Every sealed value with its key, for who rewrites what is in it. Returns the row's key, the value, and the columns that
    /// ``binding`` reads.
    let every: StatementText
    let rowCount: StatementText
    /// The bytes that the value is bound to.
    let binding: @Sendable (inout StoredRow, _ key: [Int64], GateReading) throws -> [UInt8]
    /// What is in a value, from the layout of a version of the schema to that of this build; `nil` where it is in that. Without a
    /// layout of its own (`nil`) a table's values are bytes that mean the same in every version.
    var relaying: (@Sendable (_ fields: [UInt8], _ key: [Int64], _ version: Int) throws -> [UInt8]?)?

    /// - Parameters:
    ///   - key: The primary key's columns, integers all.
    ///   - more: What `binding` reads, as SQL.
    init(
        _ table: StoredTable, _ column: SealedColumn, sealed: String = "sealed", key: [String],
        more: String = "NULL", isOfSubjects: Bool = false,
        relaying: (@Sendable (_ fields: [UInt8], _ key: [Int64], _ version: Int) throws -> [UInt8]?)? = nil,
        binding: @escaping @Sendable (inout StoredRow, [Int64], GateReading) throws -> [UInt8]
    ) {
        name = table.name
        self.column = column
        keyCount = key.count
        self.isOfSubjects = isOfSubjects
        self.binding = binding
        self.relaying = relaying
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
        every = StatementText(
            name,
            """
            SELECT \(keys), \(sealed), \(more) FROM \(name)
            WHERE \(sealed) IS NOT NULL AND (\(keys)) > (\(marks)) ORDER BY \(keys) LIMIT ?
            """)
        rowCount = StatementText(name, "SELECT count(*) FROM \(name)")
        write = StatementText(
            name, "UPDATE \(name) SET \(sealed) = ? WHERE (\(keys)) = (\(marks))")
        lag = StatementText(name, "SELECT count(*) FROM \(name) WHERE NOT \(isCurrent)")
        use = StatementText(name, "SELECT 1 FROM \(name) WHERE substr(\(sealed), 1, ?1) = ?2 LIMIT 1")
    }

    static let subject = SealedTable(
        Schema.subject, SubjectMappings.tagKey, sealed: "tag_key", key: ["number"],
        more: "user, subject", isOfSubjects: true
    ) { row, _, _ in row.byteArray() + (try row.id(SubjectID.self)).bytes }

    static let person = SealedTable(
        Schema.person, GateReading.stateColumn, key: ["number"], more: "subject",
        relaying: { fields, _, version in try RecipientState.relaid(fields, from: version) }
    ) { row, key, _ in GateReading.stateRow(try row.id(), key[0]) }

    static let ledger = SealedTable(
        Schema.ledger, LedgerKind.column, key: ["person", "kind", "position"],
        more: "(SELECT subject FROM person WHERE number = ledger.person)",
        relaying: { fields, key, version in
            switch LedgerKind(rawValue: key[1]) {
            case .consent: try ConsentRecord.relaid(fields, from: version)
            case .choice: try PreferenceRecord.relaid(fields, from: version)
            case nil: nil
            }
        }
    ) { row, key, _ in
        guard let kind = LedgerKind(rawValue: key[1]) else {
            throw StoreError.damaged(table: LedgerKind.table, "it is of no kind that there is")
        }
        return kind.row(try row.id(), key[2])
    }

    static let send = SealedTable(
        Schema.send, SendColumns.send, key: ["number"], more: GateReading.sendHeadColumns,
        relaying: { fields, _, version in try SendRecord.Details.relaid(fields, from: version) }
    ) { row, _, reading in try reading.sendHead(from: &row).row }

    static let event = SealedTable(
        Schema.event, SendColumns.event, key: ["cursor"], more: GateReading.eventHeadColumns
    ) { row, _, reading in try reading.eventHead(from: &row).row }

    static let outbox = SealedTable(
        Schema.outbox, SendColumns.outbox, key: ["number"], more: GateReading.outboxHeadColumns,
        relaying: { fields, _, version in try OutboxRecord.Content.relaid(fields, from: version) }
    ) { row, _, reading in try reading.boundOutboxHead(from: &row).row }

    static let offered = SealedTable(
        Schema.offered, OfferedSegment.column, key: ["number"], more: "last, heads",
        relaying: { fields, _, version in try OfferedSegment.relaid(fields, from: version) }
    ) { row, key, _ in OfferedSegment.bound(key[0], row.integer(), row.byteArray()) }

    /// Append only: a pass that was begun keeps the place of its table here.
    static let all = [subject, person, ledger, send, event, outbox, offered]
}

/// How far a pass over tables is, as a text of the store.
struct RowPlace {
    var table = 0
    var visited: Int64 = 0
    /// The key of the last row that was visited; empty at the beginning of a table.
    var rowKey: [Int64] = []

    init() {}

    /// - Returns: `nil` for the place of no row of these tables.
    init?(_ words: some Collection<Substring>, in tables: [SealedTable]) {
        let values = words.compactMap { Int64($0) }
        guard values.count == words.count, values.count >= 2,
            tables.indices.contains(Int(clamping: values[0]))
        else { return nil }
        (table, visited, rowKey) = (Int(values[0]), values[1], Array(values[2...]))
        guard rowKey.isEmpty || rowKey.count == tables[table].keyCount else { return nil }
    }

    var text: String { ([Int64(table), visited] + rowKey).map { "\($0)" }.joined(separator: " ") }

    /// Binds the key behind which the next rows are.
    func bindKey(of table: SealedTable, to binder: inout Binder) {
        for part in 0..<table.keyCount { binder.add(rowKey.isEmpty ? Int64.min : rowKey[part]) }
    }
}
