import CSQLite
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import Synchronization

/// The text of a statement and the table it is about. One instance per text: its index finds the compiled statement
/// of a connection without hashing the text for every row.
final class StatementText: Sendable {
    let sql: String
    let table: String
    /// The index of the compiled statement in every connection.
    let place = StatementText.count.add(1, ordering: .relaxed).oldValue
    private static let count = Atomic(0)

    init(_ table: String, _ sql: String) {
        self.table = table
        self.sql = sql
    }
}

/// Values for a statement's parameters, in their order.
///
/// A send binds about sixty of them, so they go to SQLite as they are, without being boxed first.
struct Binder {
    private let statement: OpaquePointer
    private var position: Int32 = 0
    /// Where the next bytes go, and how many more there may be.
    private var free: UnsafeMutableRawPointer?
    private var freeByteCount: Int
    /// The first code that was not `SQLITE_OK`.
    private(set) var result: Int32 = SQLITE_OK

    /// - Parameter memory: Keeps blobs until the statement has run, so that SQLite allocates none for them. A blob that
    ///   does not fit is copied by SQLite.
    init(_ statement: OpaquePointer, memory: UnsafeMutableRawBufferPointer?) {
        self.statement = statement
        free = memory?.baseAddress
        freeByteCount = memory?.count ?? 0
    }

    // SQLITE_TRANSIENT is the macro `((sqlite3_destructor_type)-1)`, which does not import. SQLite never
    // calls it: it compares the pointer with -1 and then copies the bytes before the call returns.
    private static var copied: sqlite3_destructor_type {
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    private mutating func note(_ code: Int32) { if result == SQLITE_OK { result = code } }

    private mutating func nextPosition() -> Int32 {
        position += 1
        return position
    }

    mutating func add(_ integer: Int64) {
        note(sqlite3_bind_int64(statement, nextPosition(), integer))
    }
    mutating func add(_ integer: Int64?) {
        if let integer { add(integer) } else { addNull() }
    }
    mutating func addNull() { note(sqlite3_bind_null(statement, nextPosition())) }
    mutating func add(_ flag: Bool) { add(flag ? 1 : 0) }
    mutating func add(_ instant: Instant) { add(instant.milliseconds) }
    mutating func add(_ instant: Instant?) { add(instant?.milliseconds) }
    mutating func add<Code: StoredCode>(_ value: Code) { add(value.code) }
    mutating func add<Code: StoredCode>(_ value: Code?) { add(value?.code) }

    mutating func add(_ id: RandomIdentifier<some IdentifierKind>) {
        add(byteCount: 16) { bytes in
            bytes.storeBytes(of: id.high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: id.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
    }
    mutating func add(_ id: RandomIdentifier<some IdentifierKind>?) {
        if let id { add(id) } else { addNull() }
    }

    mutating func add(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { add(blob: $0) }
    }
    private mutating func add(blob bytes: UnsafeRawBufferPointer) {
        let position = nextPosition()
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            // A nil pointer would bind NULL instead of no bytes.
            return note(sqlite3_bind_zeroblob(statement, position, 0))
        }
        guard let kept = take(bytes.count) else {
            return note(sqlite3_bind_blob64(statement, position, start, UInt64(bytes.count), Self.copied))
        }
        kept.copyMemory(from: start, byteCount: bytes.count)
        note(sqlite3_bind_blob64(statement, position, kept, UInt64(bytes.count), nil))
    }
    private mutating func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        guard let taken = free, byteCount <= freeByteCount else { return nil }
        free = taken + byteCount
        freeByteCount -= byteCount
        return taken
    }
    /// So many bytes, which `fill` writes to where the statement reads them.
    mutating func add(byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        guard let kept = take(byteCount) else {
            return try withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { bytes in
                try fill(bytes)
                add(blob: UnsafeRawBufferPointer(bytes))
            }
        }
        let bytes = UnsafeMutableRawBufferPointer(start: kept, count: byteCount)
        try fill(bytes)
        add(uncopied: UnsafeRawBufferPointer(bytes))
    }
    /// Bytes that stay in place until the statement has run, and are not copied. The statement is bound anew before
    /// it runs again.
    mutating func add(uncopied bytes: UnsafeRawBufferPointer) {
        let position = nextPosition()
        note(sqlite3_bind_blob64(statement, position, bytes.baseAddress, UInt64(bytes.count), nil))
    }

    mutating func add(_ bytes: [UInt8]?) {
        if let bytes { add(bytes) } else { addNull() }
    }

    mutating func add(_ text: String) {
        let position = nextPosition()
        var text = text
        note(
            text.withUTF8 { text in
                text.withMemoryRebound(to: CChar.self) { text in
                    text.isEmpty
                        ? sqlite3_bind_text(statement, position, "", 0, Self.copied)
                        : sqlite3_bind_text64(
                            statement, position, text.baseAddress, UInt64(text.count), Self.copied,
                            UInt8(SQLITE_UTF8))
                }
            })
    }
    mutating func add(_ text: String?) {
        if let text { add(text) } else { addNull() }
    }
}

/// The present row of a statement, read column by column from the left. Valid until the next step.
struct StoredRow {
    private let statement: OpaquePointer
    private let table: String
    private var position: Int32 = -1

    init(_ statement: OpaquePointer, of text: StatementText) {
        self.statement = statement
        table = text.table
    }

    private mutating func nextPosition() -> Int32 {
        position += 1
        return position
    }

    private func damaged(_ what: String) -> StoreError {
        .damaged(table: table, "column \(position + 1) of a row \(what)")
    }

    mutating func integer() -> Int64 { sqlite3_column_int64(statement, nextPosition()) }

    mutating func optionalInteger() -> Int64? {
        let position = nextPosition()
        return sqlite3_column_type(statement, position) == SQLITE_NULL
            ? nil : sqlite3_column_int64(statement, position)
    }

    /// The largest count, index or cursor: what JSON can carry (RFC 8785), and far from any overflow.
    static let countMax: Int64 = 1 << 53 - 1

    /// A non-negative number of at most ``countMax``.
    mutating func count() throws -> Int64 {
        let integer = integer()
        guard (0...Self.countMax).contains(integer) else { throw damaged("is no count") }
        return integer
    }

    mutating func flag() -> Bool { integer() != 0 }

    mutating func instant() throws -> Instant {
        guard let instant = try optionalInstant() else { throw damaged("is missing") }
        return instant
    }

    mutating func optionalInstant() throws -> Instant? {
        guard let integer = optionalInteger() else { return nil }
        guard Instant.storable.contains(integer) else { throw damaged("is no time") }
        return Instant(milliseconds: integer)
    }

    mutating func code<Code: StoredCode>(_ type: Code.Type = Code.self) throws -> Code {
        guard let value = Code(code: integer()) else { throw damaged("is no \(Code.self)") }
        return value
    }

    mutating func optionalCode<Code: StoredCode>(_ type: Code.Type = Code.self) throws -> Code? {
        guard let integer = optionalInteger() else { return nil }
        guard let value = Code(code: integer) else { throw damaged("is no \(Code.self)") }
        return value
    }

    mutating func optionalID<Kind: IdentifierKind>(
        _ type: RandomIdentifier<Kind>.Type = RandomIdentifier<Kind>.self
    ) throws -> RandomIdentifier<Kind>? {
        let position = nextPosition()
        guard let start = sqlite3_column_blob(statement, position) else { return nil }
        guard sqlite3_column_bytes(statement, position) == 16 else { throw damaged("is not 16 bytes") }
        return RandomIdentifier(
            high: UInt64(bigEndian: start.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: start.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    mutating func id<Kind: IdentifierKind>(_ type: RandomIdentifier<Kind>.Type = RandomIdentifier<Kind>.self)
        throws -> RandomIdentifier<Kind>
    {
        guard let id = try optionalID(type) else { throw damaged("is missing") }
        return id
    }

    mutating func byteArray() -> [UInt8] {
        let position = nextPosition()
        guard let start = sqlite3_column_blob(statement, position) else { return [] }
        return Array(
            UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, position))))
    }

    mutating func optionalByteArray() -> [UInt8]? {
        let isNull = sqlite3_column_type(statement, position + 1) == SQLITE_NULL
        let bytes = byteArray()
        return isNull ? nil : bytes
    }

    mutating func text() -> String {
        let position = nextPosition()
        guard let start = sqlite3_column_text(statement, position) else { return "" }
        return String(
            decoding: UnsafeBufferPointer(
                start: start, count: Int(sqlite3_column_bytes(statement, position))),
            as: UTF8.self)
    }

    mutating func optionalText() -> String? {
        let isNull = sqlite3_column_type(statement, position + 1) == SQLITE_NULL
        let text = text()
        return isNull ? nil : text
    }
}
