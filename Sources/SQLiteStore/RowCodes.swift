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
///     mac = AES-256-CMAC(K, value(table) ‖ value(column) ‖ …)     K = HMAC-SHA256(index key, "sendgate/row-mac/v3")
///     value = 1 ‖ i64  |  3 ‖ u32 length ‖ UTF-8  |  4 ‖ u32 length ‖ bytes  |  5        integers big-endian
///           | 6 ‖ u64 length ‖ AES-256-GMAC(L, zero nonce, bytes)[16]     1,024 bytes and more
///     L = HMAC-SHA256(index key, "sendgate/row-mac/v3/long")
///
/// GMAC under one nonce is a keyed universal hash: two long values have the same one with a chance of their length in
/// blocks in 2¹²⁸, as long as it stays secret. It does: it only goes through the CMAC, which costs eight times as many
/// instructions a byte.
final class RowCodes {
    static let functionName = "row_mac"
    static let byteCount = AES256CMAC.blockByteCount

    private var mac: AES256CMAC
    /// The values so far.
    private var message: RowMessage
    /// The newest result, as its bytes. SQLite reads it here: no statement asks for a code before it has stored or compared the
    /// last one.
    private let result: UnsafeMutablePointer<UInt128>
    /// The newest result for SQLite: when it writes a row, the code of that row, because generated columns are
    /// computed last.
    var newest: UInt128 { UInt128(bigEndian: result.pointee) }

    /// The call of the function for a row, as SQL.
    static func call(_ table: String, _ values: [String]) -> String {
        "\(functionName)('\(table)', \(values.joined(separator: ", ")))"
    }

    init(index: HMACKey) throws {
        func key(_ label: String) -> SecretBytes {
            SecretBytes(copying: index.authenticate(Array(label.utf8)))
        }
        mac = try AES256CMAC(key("sendgate/row-mac/v3"))
        let long = try AES256GMAC(key("sendgate/row-mac/v3/long"))
        message = RowMessage(long: long)
        result = .allocate(capacity: 1)
        result.initialize(to: 0)
    }

    deinit { result.deallocate() }

    /// Registers the function with a connection, which must not outlive this.
    func register(on handle: OpaquePointer) -> Int32 {
        sqlite3_create_function_v2(
            handle, Self.functionName, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
            Unmanaged.passUnretained(self).toOpaque(),
            { context, count, values in
                guard let user = sqlite3_user_data(context) else { return }
                Unmanaged<RowCodes>.fromOpaque(user)._withUnsafeGuaranteedRef { codes in
                    codes.result.pointee =
                        codes.code { message in
                            for index in 0..<Int(count) { message.add(values?[index]) }
                        }.bigEndian
                    sqlite3_result_blob(context, codes.result, Int32(RowCodes.byteCount), nil)
                }
            }, nil, nil, nil)
    }

    /// The code of the values that `add` adds, the name of the table first.
    func code(of add: (inout RowMessage) -> Void) -> UInt128 {
        message.byteCount = 0
        add(&message)
        return message.withFilledUp { mac.code(of: $0, byteCount: $1) }
    }
}

/// The values of a row, one after the other.
struct RowMessage: ~Copyable {
    /// From this length on, a value is represented by its hash.
    static let longByteCount = 1024

    fileprivate var byteCount = 0
    private var capacity = 1024
    /// Allocated for `capacity` bytes and a block.
    private var bytes = UnsafeMutableRawPointer.allocate(byteCount: 1024 + RowCodes.byteCount, alignment: 16)
    private let long: AES256GMAC

    fileprivate init(long: consuming AES256GMAC) { self.long = long }

    deinit { bytes.deallocate() }

    fileprivate func withFilledUp<Result>(_ body: (UnsafeMutableRawPointer, Int) -> Result) -> Result {
        body(bytes, byteCount)
    }

    mutating func add(_ value: OpaquePointer?) {
        let type = sqlite3_value_type(value)
        switch type {
        case SQLITE_INTEGER: add(UInt8(type), UInt64(bitPattern: sqlite3_value_int64(value)))
        case SQLITE_TEXT: add(UInt8(type), sqlite3_value_text(value).map { UnsafeRawPointer($0) }, value)
        case SQLITE_BLOB:
            let start = sqlite3_value_blob(value)
            let count = Int(sqlite3_value_bytes(value))
            if let start, count >= Self.longByteCount {
                addLong(UnsafeRawBufferPointer(start: start, count: count))
            } else {
                add(UInt8(type), UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
            }
        default: add(UInt8(SQLITE_NULL))
        }
    }

    mutating func add(text: UnsafePointer<CChar>) {
        add(UInt8(SQLITE_TEXT), UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }

    private mutating func add(_ type: UInt8, _ start: UnsafeRawPointer?, _ value: OpaquePointer?) {
        add(
            type,
            UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value))))
    }

    private mutating func add(_ type: UInt8) { reserve(1).storeBytes(of: type, as: UInt8.self) }

    private mutating func add(_ type: UInt8, _ integer: UInt64) {
        let place = reserve(9)
        place.storeBytes(of: type, as: UInt8.self)
        place.storeBytes(of: integer.bigEndian, toByteOffset: 1, as: UInt64.self)
    }

    private mutating func add(_ type: UInt8, _ part: UnsafeRawBufferPointer) {
        let place = reserve(5 + part.count)
        place.storeBytes(of: type, as: UInt8.self)
        place.storeBytes(of: UInt32(part.count).bigEndian, toByteOffset: 1, as: UInt32.self)
        if let start = part.baseAddress { (place + 5).copyMemory(from: start, byteCount: part.count) }
    }

    private static let longType: UInt8 = 6

    private mutating func addLong(_ part: UnsafeRawBufferPointer) {
        add(Self.longType, UInt64(part.count))
        reserve(16).storeBytes(of: long.code(of: part).bigEndian, as: UInt128.self)
    }

    /// Where the next so many bytes go.
    private mutating func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        if byteCount + count > capacity { grow(to: byteCount + count) }
        let place = bytes + byteCount
        byteCount += count
        return place
    }

    private mutating func grow(to wanted: Int) {
        capacity = max(2 * capacity, wanted)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity + RowCodes.byteCount, alignment: 16)
        larger.copyMemory(from: bytes, byteCount: byteCount)
        bytes.deallocate()
        bytes = larger
    }
}

/// The number of a table's rows and the sum of their codes modulo 2¹²⁸. It shows a row that was deleted, added, or
/// replaced by an earlier version of itself.
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

    /// The term of one row with this code; bytes that cannot be a code add a row and nothing to the sum.
    init(code: UnsafeRawBufferPointer) {
        rowCount = 1
        guard code.count == RowCodes.byteCount else { return }
        sum = UInt128(bigEndian: code.loadUnaligned(as: UInt128.self))
    }

    init(code: UInt128) { (rowCount, sum) = (1, code) }

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

    /// As errors name it.
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
    /// The name of a row with this key in an error.
    var name: String { map(\.name).joined(separator: "/") }
}

/// Keeps the sums of a database's tables up to date with the changes of the writing connection.
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
    /// Names of the tables and, last, of the anchor, as SQLite gives them.
    private let names: [UnsafeMutablePointer<CChar>]
    private let codes: RowCodes
    private let form: [UInt8]
    private let nameByteCounts: [Int]

    /// The changing state.
    private struct State {
        var sums: [TableSum]
        /// Changes of the running statement.
        var pending: [(table: Int, change: TableSum)] = []
        var pendingChanges: [Change] = []
        /// Rows whose code was wrong before the statement changed them.
        var damaged: [(table: String, key: [StoredCell])] = []
        var watched: Int?
        var changes: [Change] = []
        var isWritten = true

        mutating func endStatement(succeeded: Bool) {
            // Else the next statement would be refused for a row that it does not change.
            if !succeeded { damaged = [] }
            guard !pending.isEmpty else { return }
            while let (table, change) = pending.popLast() {
                if succeeded { sums[table].add(change) }
            }
            if succeeded { isWritten = false }
            guard !pendingChanges.isEmpty else { return }
            if succeeded { changes.append(contentsOf: pendingChanges) }
            pendingChanges.removeAll(keepingCapacity: true)
        }
    }
    private var state: State
    /// The sums at the start of the open transaction.
    private var start: (sums: [TableSum], changeCount: Int)?

    var sums: [TableSum] { state.sums }
    var isWritten: Bool { state.isWritten }
    /// The table whose changes are remembered for a check that is under way.
    var watched: Int? {
        get { state.watched }
        set { (state.watched, state.changes) = (newValue, []) }
    }

    init(_ tables: [TableShape], anchor: TableShape, codes: RowCodes) {
        self.tables = tables
        self.anchor = anchor
        self.codes = codes
        names = (tables + [anchor]).map { strdup($0.name)! }
        form = Self.form(of: tables)
        nameByteCounts = tables.map(\.name.utf8.count)
        state = State(sums: Array(repeating: TableSum(), count: tables.count))
    }

    deinit { for name in names { free(name) } }

    static let wrongCode = "it is not as it was written: its code is of other values"

    func position(of table: String) -> Int? { tables.firstIndex { $0.name == table } }

    // MARK: What is stored

    /// 1 ‖ (lp(name) ‖ u64 row count ‖ lp(sum[16])) for each table, by name    lp: u32 big-endian length
    var bytes: [UInt8] {
        var bytes = form
        bytes.withUnsafeMutableBytes { bytes in
            var place = 1
            for (name, sum) in zip(nameByteCounts, sums) {
                place += 4 + name
                bytes.storeBytes(of: sum.rowCount.bigEndian, toByteOffset: place, as: Int64.self)
                bytes.storeBytes(of: sum.sum.bigEndian, toByteOffset: place + 12, as: UInt128.self)
                place += 28
            }
        }
        return bytes
    }

    /// ``bytes`` of tables without a row. Every commit writes them, and the names are the longer part.
    private static func form(of tables: [TableShape]) -> [UInt8] {
        var fields = FieldWriter(version: 1, capacity: tables.count * 48)
        for table in tables {
            fields.put(table.name)
            fields.put(raw: Int64(0))
            fields.put(raw: UInt32(RowCodes.byteCount))
            fields.put(raw: UInt128(0))
        }
        return fields.bytes
    }

    /// Loads the sums from the anchor. A table that it does not name has had no row yet.
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
        state.sums = tables.map { found[$0.name] ?? TableSum() }
        state.isWritten = true
    }

    /// Sets a table's sum to the one that was found.
    func rebase(_ table: Int, to sum: TableSum) {
        state.sums[table] = sum
        state.isWritten = false
    }

    // MARK: Transactions

    func mark() { start = (state.sums, state.changes.count) }

    /// Restores the sums of the start of the open transaction.
    func goBack() {
        guard let start else { return }
        self.start = nil
        state.sums = start.sums
        if state.changes.count > start.changeCount { state.changes.removeSubrange(start.changeCount...) }
        state.isWritten = true
    }

    func didCommit() {
        start = nil
        state.isWritten = true
    }

    /// Gives the changes since the last call, of committed transactions. Not inside one.
    func takeChanges() -> [Change] {
        defer { state.changes = [] }
        return state.changes
    }

    // MARK: Statements

    /// Call when a statement has ended; the changes of one that failed were undone.
    func endStatement(succeeded: Bool) { state.endStatement(succeeded: succeeded) }

    func takeDamaged() -> [(table: String, key: [StoredCell])] {
        guard !state.damaged.isEmpty else { return [] }
        defer { state.damaged = [] }
        return state.damaged
    }

    func attach(to handle: OpaquePointer) {
        sqlite3_preupdate_hook(
            handle,
            { user, handle, operation, database, table, _, _ in
                guard let user, let handle, let table, let database, strcmp(database, "main") == 0 else {
                    return
                }
                Unmanaged<RowSums>.fromOpaque(user)._withUnsafeGuaranteedRef {
                    $0.willChange(operation, table, handle)
                }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The row that is added, by its own code: SQLite computes that column right before it tells of the row. Every pass of the
    /// integrity check holds the two against each other.
    private var addedRow: TableSum { TableSum(code: codes.newest) }

    private func willChange(_ operation: Int32, _ name: UnsafePointer<CChar>, _ handle: OpaquePointer) {
        guard let position = names.firstIndex(where: { strcmp($0, name) == 0 }) else { return }
        // The anchor is in no sum, and only looked at before it is changed.
        let isAnchor = position == tables.count
        let isWatched = state.watched == position
        if operation == SQLITE_INSERT, !isWatched {
            if !isAnchor { state.pending.append((position, addedRow)) }
            return
        }
        if isAnchor, operation != SQLITE_UPDATE { return }
        let table = isAnchor ? anchor : tables[position]
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
        var change = TableSum()
        if operation != SQLITE_INSERT {
            let row = sum(old(table.columns.count))
            change.subtract(row)
            if operation == SQLITE_UPDATE {
                // What was wrong before would be right after, under a code of its own.
                let code = codes.code { message in
                    message.add(text: name)
                    for column in table.columns.indices { message.add(old(column)) }
                }
                if TableSum(code: code) != row {
                    state.damaged.append((table.name, table.key.map { StoredCell(old($0)) }))
                }
            }
            if isWatched {
                state.pendingChanges.append(
                    Change(key: table.key.map { StoredCell(old($0)) }, isAdded: false, row: row))
            }
        }
        if isAnchor { return }
        if operation != SQLITE_DELETE {
            let row = addedRow
            change.add(row)
            if isWatched {
                state.pendingChanges.append(
                    Change(key: table.key.map { StoredCell(new($0)) }, isAdded: true, row: row))
            }
        }
        state.pending.append((position, change))
    }
}
