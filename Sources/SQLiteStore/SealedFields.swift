import GateSteps
import GateVocabulary
import GatewayPipeline

/// Lays the private fields of one row end to end, before they are sealed together.
///
/// Sealing a row once instead of field by field costs one nonce and one tag per row, and hides which of
/// its fields are set. The order of the fields is the format; the first byte says which order.
struct FieldWriter: ~Copyable {
    // Memory of its own, taken with the first field. An array asks at every append whether it is shared: with one, an open send,
    // whose rows have 66 fields, takes 3 % more instructions (`Tests/Benchmarks/instructions.py`).
    private var start: UnsafeMutableRawPointer?
    private var capacity = 0
    /// How many bytes are taken at first.
    private let expectedByteCount: Int
    private(set) var count = 0

    init(capacity: Int) { expectedByteCount = max(capacity, 16) }

    init(version: UInt8, capacity: Int = 128) {
        self.init(capacity: capacity)
        put(byte: version)
    }

    deinit { start?.deallocate() }

    var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// Forgets what was put, and keeps its memory.
    mutating func removeAll() { count = 0 }

    /// Where the next so many bytes go, which are one at least.
    @inline(__always)
    private mutating func place(of more: Int) -> UnsafeMutableRawPointer {
        if count + more > capacity { grow(to: count + more) }
        return start! + count
    }

    @inline(never)
    private mutating func grow(to wanted: Int) {
        capacity = max(2 * capacity, wanted, expectedByteCount)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        if let start {
            larger.copyMemory(from: start, byteCount: count)
            start.deallocate()
        }
        start = larger
    }

    // What writes one to sixteen bytes is inlined: a call costs more than it.
    @inline(__always)
    mutating func put<Integer: FixedWidthInteger>(raw integer: Integer) {
        place(of: MemoryLayout<Integer>.size).storeBytes(of: integer.bigEndian, as: Integer.self)
        count += MemoryLayout<Integer>.size
    }

    mutating func put(raw part: UnsafeRawBufferPointer) {
        guard let first = part.baseAddress, !part.isEmpty else { return }
        place(of: part.count).copyMemory(from: first, byteCount: part.count)
        count += part.count
    }

    @inline(__always)
    mutating func put(byte: UInt8) { put(raw: byte) }

    @inline(__always)
    mutating func put(_ flag: Bool) { put(byte: flag ? 1 : 0) }

    @inline(__always)
    mutating func put(_ integer: Int64) { put(raw: integer) }

    @inline(__always)
    mutating func put(_ instant: Instant) { put(instant.milliseconds) }

    mutating func put<Code: StoredCode>(_ value: Code) { put(byte: UInt8(value.code)) }

    @inline(__always)
    mutating func put(_ id: RandomIdentifier<some IdentifierKind>) {
        put(raw: id.high)
        put(raw: id.low)
    }

    mutating func put(_ part: [UInt8]) {
        precondition(part.count <= Int(UInt32.max), "a field has at most 2³²−1 bytes")
        put(raw: UInt32(part.count))
        part.withUnsafeBytes { put(raw: $0) }
    }

    mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { text in
            put(raw: UInt32(text.count))
            put(raw: UnsafeRawBufferPointer(text))
        }
    }

    /// A flag, then the value when there is one.
    mutating func put<Value>(_ value: Value?, _ write: (inout FieldWriter, Value) -> Void) {
        put(value != nil)
        if let value { write(&self, value) }
    }

    mutating func put(optional instant: Instant?) { put(instant) { $0.put($1) } }
    mutating func put<Code: StoredCode>(optional value: Code?) { put(value) { $0.put($1) } }
}

/// Reads back what ``FieldWriter`` wrote, and refuses every other encoding as damage.
struct FieldReader {
    private let bytes: [UInt8]
    let table: String
    let version: UInt8
    let subject: SubjectID?
    private var position = 1

    init(_ bytes: [UInt8], version: UInt8, table: String) throws {
        try self.init(bytes, versions: version...version, table: table)
    }

    /// A row of an older layout has what that layout had; the reader looks at ``version``.
    init(
        _ bytes: [UInt8], versions: ClosedRange<UInt8>, table: String, subject: SubjectID? = nil
    ) throws {
        self.bytes = bytes
        self.table = table
        self.subject = subject
        version = bytes.first ?? 0
        guard versions.contains(version) else {
            throw StoreError.damaged(
                table: table, "a sealed row has layout \(version), not \(versions.upperBound)")
        }
    }

    private func cutShort() -> StoreError { .damaged(table: table, "a sealed row is cut short") }
    func unknown(_ what: String) -> StoreError {
        .damaged(table: table, "a sealed row holds an unknown \(what)")
    }

    /// Where the next `count` bytes start.
    private mutating func advance(_ count: Int) throws -> Int {
        guard count <= bytes.count - position else { throw cutShort() }
        defer { position += count }
        return position
    }

    private mutating func word64() throws -> UInt64 {
        let start = try advance(8)
        return bytes.withUnsafeBytes {
            UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        }
    }

    private mutating func part() throws -> Range<Int> {
        let lengthStart = try advance(4)
        let count = bytes.withUnsafeBytes {
            UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: lengthStart, as: UInt32.self))
        }
        let start = try advance(Int(count))
        return start..<start + Int(count)
    }

    mutating func flag() throws -> Bool {
        switch bytes[try advance(1)] {
        case 0: false
        case 1: true
        default: throw unknown("flag")
        }
    }

    mutating func integer() throws -> Int64 { Int64(bitPattern: try word64()) }

    /// An integer that code relies on being in a range.
    mutating func integer(in range: ClosedRange<Int64>) throws -> Int64 {
        let integer = try integer()
        guard range.contains(integer) else { throw unknown("number") }
        return integer
    }

    mutating func instant() throws -> Instant {
        Instant(milliseconds: try integer(in: Instant.storable))
    }

    mutating func code<Code: StoredCode>(_ type: Code.Type = Code.self) throws -> Code {
        guard let value = Code(code: Int64(bytes[try advance(1)])) else { throw unknown("\(Code.self)") }
        return value
    }

    mutating func id<Kind: IdentifierKind>(_ type: RandomIdentifier<Kind>.Type = RandomIdentifier<Kind>.self)
        throws -> RandomIdentifier<Kind>
    {
        let high = try word64()
        return RandomIdentifier(high: high, low: try word64())
    }

    mutating func byteArray() throws -> [UInt8] { Array(bytes[try part()]) }

    /// So many bytes, whose count is stored elsewhere.
    mutating func bytes(count: Int64) throws -> [UInt8] {
        guard let count = Int(exactly: count), count >= 0 else { throw cutShort() }
        let start = try advance(count)
        return Array(bytes[start..<start + count])
    }

    mutating func text() throws -> String {
        let range = try part()
        let text = try? String(copying: UTF8Span(validating: bytes.span.extracting(range)))
        guard let text else { throw unknown("text, which is not UTF-8") }
        return text
    }

    mutating func optional<Value>(_ read: (inout FieldReader) throws -> Value) throws -> Value? {
        try flag() ? try read(&self) : nil
    }

    var isAtEnd: Bool { position >= bytes.count }

    /// Call last: bytes that were not read mean that writer and reader disagree.
    func finish() throws {
        guard position == bytes.count else {
            throw StoreError.damaged(table: table, "a sealed row is longer than its fields")
        }
    }
}
