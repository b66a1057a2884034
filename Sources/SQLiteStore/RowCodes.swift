import CSQLite
import GateVocabulary
import Glibc
import OpenSSLCrypto

/// Authenticates rows on one connection: the SQL function `row_mac(table, column…)`.
///
/// Every table has a last column `mac`, which SQLite computes from all the others whenever it writes a row
/// (``AuthenticatedTable``). So no statement can forget it, and nothing that is edited without the key has the code
/// it should have.
///
///     mac = HMAC-SHA256(K, value(table) ‖ value(column) ‖ …)[0..<16]     K = HMAC-SHA256(index key, "sendgate/row-mac/v1")
///     value = 1 ‖ i64  |  3 ‖ u32 length ‖ UTF-8  |  4 ‖ u32 length ‖ bytes  |  5        integers big-endian
final class RowCodes {
    static let functionName = "row_mac"
    static let byteCount = 16

    private let key: HMACKey
    private var computation = HMACSHA256Computation()
    private var code = [UInt8](repeating: 0, count: 32)

    /// The function called for a row, as SQL.
    static func call(_ table: String, _ values: [String]) -> String {
        "\(functionName)('\(table)', \(values.joined(separator: ", ")))"
    }

    init(index: HMACKey) {
        key = HMACKey(SecretBytes(copying: index.authenticate(Array("sendgate/row-mac/v1".utf8))))
    }

    /// Makes the function known to a connection, which must not outlive this.
    func register(on handle: OpaquePointer) -> Int32 {
        sqlite3_create_function_v2(
            handle, Self.functionName, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
            Unmanaged.passUnretained(self).toOpaque(),
            { context, count, values in
                guard let user = sqlite3_user_data(context) else { return }
                let codes = Unmanaged<RowCodes>.fromOpaque(user).takeUnretainedValue()
                codes.begin()
                for index in 0..<Int(count) { codes.add(values?[index]) }
                codes.finish().withUnsafeBufferPointer {
                    // As in `Binder`: the bytes are copied before the call returns.
                    sqlite3_result_blob(
                        context, $0.baseAddress, Int32(RowCodes.byteCount),
                        unsafeBitCast(-1, to: sqlite3_destructor_type.self))
                }
            }, nil, nil, nil)
    }

    func begin() { computation.start(key) }

    /// The next value, the name of the table first.
    func add(_ value: OpaquePointer?) {
        let type = sqlite3_value_type(value)
        switch type {
        case SQLITE_INTEGER:
            head(UInt8(type), UInt64(bitPattern: sqlite3_value_int64(value)), byteCount: 8)
        case SQLITE_TEXT: add(UInt8(type), sqlite3_value_text(value).map { UnsafeRawPointer($0) }, value)
        case SQLITE_BLOB: add(UInt8(type), sqlite3_value_blob(value), value)
        default: head(UInt8(SQLITE_NULL), 0, byteCount: 0)
        }
    }

    func add(text: String) {
        var text = text
        text.withUTF8 {
            head(UInt8(SQLITE_TEXT), UInt64($0.count), byteCount: 4)
            computation.update(UnsafeRawBufferPointer($0))
        }
    }

    private func add(_ type: UInt8, _ start: UnsafeRawPointer?, _ value: OpaquePointer?) {
        let count = Int(sqlite3_value_bytes(value))
        head(type, UInt64(count), byteCount: 4)
        if let start { computation.update(UnsafeRawBufferPointer(start: start, count: count)) }
    }

    private func head(_ type: UInt8, _ integer: UInt64, byteCount: Int) {
        withUnsafeTemporaryAllocation(byteCount: 9, alignment: 1) { bytes in
            bytes[0] = type
            for index in 0..<byteCount {
                bytes[1 + index] = UInt8(truncatingIfNeeded: integer >> UInt64(8 * (byteCount - 1 - index)))
            }
            computation.update(UnsafeRawBufferPointer(rebasing: bytes[..<(1 + byteCount)]))
        }
    }

    /// - Returns: 32 bytes, of which the first ``byteCount`` are the code. Valid until the next.
    func finish() -> [UInt8] {
        code.withUnsafeMutableBytes { computation.finish(into: $0) }
        return code
    }
}

/// How many rows a table has and the sum of their codes modulo 2¹²⁸: what a row that was deleted, put back as it once was
/// or added is noticed by.
struct TableSum: Equatable {
    var rowCount: Int64 = 0
    var sum: UInt128 = 0

    mutating func add(_ change: TableSum) {
        rowCount &+= change.rowCount
        sum &+= change.sum
    }

    mutating func subtract(_ change: TableSum) {
        rowCount &-= change.rowCount
        sum &-= change.sum
    }

    /// One row of this code; of a code that none can be, a row that adds nothing to the sum.
    init(code: UnsafeRawBufferPointer) {
        rowCount = 1
        guard code.count == RowCodes.byteCount else { return }
        sum = UInt128(bigEndian: code.loadUnaligned(as: UInt128.self))
    }

    init() {}
}

/// One value of a row's key, in SQLite's order (sqlite.org/datatype3.html, section 4.1).
enum StoredCell: Hashable, Comparable {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])

    init(_ value: OpaquePointer?) {
        func bytes(_ start: UnsafeRawPointer?) -> [UInt8] {
            guard let start else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value))))
        }
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: self = .integer(sqlite3_value_int64(value))
        case SQLITE_TEXT: self = .text(bytes(sqlite3_value_text(value).map { UnsafeRawPointer($0) }))
        case SQLITE_BLOB: self = .blob(bytes(sqlite3_value_blob(value)))
        default: self = .null
        }
    }

    private var rank: Int {
        switch self {
        case .null: 0
        case .integer: 1
        case .text: 2
        case .blob: 3
        }
    }

    var integer: Int64? { if case .integer(let integer) = self { integer } else { nil } }

    /// As in an error.
    var name: String {
        switch self {
        case .null: "NULL"
        case .integer(let integer): "\(integer)"
        // A key that is damaged itself may be of any length.
        case .blob(let bytes):
            bytes.isEmpty ? "x''" : Hexadecimal.encode(bytes.prefix(16)) + (bytes.count > 32 ? "…" : "")
        case .text(let bytes):
            bytes.isEmpty ? "''" : String(String(decoding: bytes, as: UTF8.self).prefix(128))
        }
    }

    static func < (left: StoredCell, right: StoredCell) -> Bool {
        switch (left, right) {
        case (.integer(let one), .integer(let other)): one < other
        case (.text(let one), .text(let other)), (.blob(let one), .blob(let other)):
            one.lexicographicallyPrecedes(other)
        default: left.rank < right.rank
        }
    }
}

extension [StoredCell] {
    /// What a row of this key is called in an error.
    var name: String { map(\.name).joined(separator: "/") }
}

/// Keeps the sums of a database's tables in step with what the writing connection changes.
///
/// SQLite calls it before each change of a row, whatever statement makes it. The sums are a column of the database's
/// anchor, a table of one row, which is written with every commit that changes another table.
final class RowSums {
    /// A change to the table that is being checked.
    struct Change {
        var key: [StoredCell]
        var isAdded: Bool
        var row: TableSum
    }

    let tables: [TableShape]
    let anchor: TableShape
    private let positions: [String: Int]
    private let codes: RowCodes
    private(set) var sums: [TableSum]
    /// What the open transaction began with.
    private var start: (sums: [TableSum], changeCount: Int)?
    /// Of the statement that runs.
    private var pending: [(table: Int, added: TableSum?, removed: TableSum?)] = []
    private var pendingChanges: [Change] = []
    /// Rows whose code was wrong before the statement changed them.
    private(set) var damaged: [(table: String, key: [StoredCell])] = []
    /// The table whose changes are remembered for a check that is under way.
    var watched: Int? {
        didSet { changes = [] }
    }
    private(set) var changes: [Change] = []
    private(set) var isWritten = true

    init(_ tables: [TableShape], anchor: TableShape, codes: RowCodes) {
        self.tables = tables
        self.anchor = anchor
        self.codes = codes
        positions = Dictionary(uniqueKeysWithValues: tables.enumerated().map { ($1.name, $0) })
        sums = Array(repeating: TableSum(), count: tables.count)
    }

    static let wrongCode = "it is not as it was written: its code is of other values"

    func position(of table: String) -> Int? { positions[table] }

    // MARK: What is stored

    /// lp(name) ‖ u64 row count ‖ sum[16] for each table, by name.
    var bytes: [UInt8] {
        var fields = FieldWriter(version: 1, capacity: tables.count * 48)
        for (table, sum) in zip(tables, sums) {
            fields.put(table.name)
            fields.put(sum.rowCount)
            fields.put(withUnsafeBytes(of: sum.sum.bigEndian) { Array($0) })
        }
        return fields.bytes
    }

    /// Takes what the anchor holds. A table that it does not name has had no row yet.
    func load(_ bytes: [UInt8], anchor: String) throws {
        var found: [String: TableSum] = [:]
        if !bytes.isEmpty {
            var fields = try FieldReader(bytes, version: 1, table: anchor)
            while !fields.isAtEnd {
                let name = try fields.text()
                let count = try fields.integer(in: 0...StoredRow.countMax)
                var sum = try fields.byteArray().withUnsafeBytes { TableSum(code: $0) }
                sum.rowCount = count
                found[name] = sum
            }
        }
        sums = tables.map { found[$0.name] ?? TableSum() }
        isWritten = true
    }

    /// Takes a table as it was found.
    func rebase(_ table: Int, to sum: TableSum) {
        sums[table] = sum
        isWritten = false
    }

    // MARK: Transactions

    func mark() { start = (sums, changes.count) }

    /// Goes back to where the open transaction began.
    func goBack() {
        guard let start else { return }
        self.start = nil
        sums = start.sums
        if changes.count > start.changeCount { changes.removeSubrange(start.changeCount...) }
        isWritten = true
    }

    func didCommit() {
        start = nil
        isWritten = true
    }

    func didWrite() { isWritten = true }

    /// Gives the changes since the last call, of committed transactions. Not inside one.
    func takeChanges() -> [Change] {
        defer { changes = [] }
        return changes
    }

    // MARK: Statements

    /// Call when a statement has ended; what one that failed had changed was undone.
    func endStatement(succeeded: Bool) {
        if succeeded, !pending.isEmpty {
            for change in pending {
                if let removed = change.removed { sums[change.table].subtract(removed) }
                if let added = change.added { sums[change.table].add(added) }
            }
            changes.append(contentsOf: pendingChanges)
            isWritten = false
        }
        pending.removeAll(keepingCapacity: true)
        pendingChanges.removeAll(keepingCapacity: true)
    }

    func takeDamaged() -> [(table: String, key: [StoredCell])] {
        guard !damaged.isEmpty else { return [] }
        defer { damaged = [] }
        return damaged
    }

    func attach(to handle: OpaquePointer) {
        sqlite3_preupdate_hook(
            handle,
            { user, handle, operation, database, table, _, _ in
                guard let user, let handle, let table, let database, strcmp(database, "main") == 0 else {
                    return
                }
                Unmanaged<RowSums>.fromOpaque(user).takeUnretainedValue()
                    .willChange(operation, String(cString: table), handle)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func willChange(_ operation: Int32, _ name: String, _ handle: OpaquePointer) {
        let position = positions[name]
        guard let table = position.map({ tables[$0] }) ?? (name == anchor.name ? anchor : nil) else { return }
        func old(_ column: Int) -> OpaquePointer? {
            var value: OpaquePointer?
            return sqlite3_preupdate_old(handle, Int32(column), &value) == SQLITE_OK ? value : nil
        }
        func new(_ column: Int) -> OpaquePointer? {
            var value: OpaquePointer?
            return sqlite3_preupdate_new(handle, Int32(column), &value) == SQLITE_OK ? value : nil
        }
        func sum(_ value: OpaquePointer?) -> TableSum {
            TableSum(
                code: UnsafeRawBufferPointer(
                    start: sqlite3_value_blob(value), count: Int(sqlite3_value_bytes(value))))
        }
        var removed: TableSum?
        var added: TableSum?
        if operation != SQLITE_INSERT {
            let row = sum(old(table.columns.count))
            removed = row
            if operation == SQLITE_UPDATE {
                // What was wrong before would be right after, under a code of its own.
                codes.begin()
                codes.add(text: name)
                for column in table.columns.indices { codes.add(old(column)) }
                let code = codes.finish().withUnsafeBytes {
                    TableSum(code: UnsafeRawBufferPointer(rebasing: $0[..<RowCodes.byteCount]))
                }
                if code != row { damaged.append((name, table.key.map { StoredCell(old($0)) })) }
            }
            if let position, watched == position {
                pendingChanges.append(
                    Change(key: table.key.map { StoredCell(old($0)) }, isAdded: false, row: row))
            }
        }
        // The anchor is in no sum.
        guard let position else { return }
        if operation != SQLITE_DELETE {
            let row = sum(new(table.columns.count))
            added = row
            if watched == position {
                pendingChanges.append(
                    Change(key: table.key.map { StoredCell(new($0)) }, isAdded: true, row: row))
            }
        }
        pending.append((position, added, removed))
    }
}
