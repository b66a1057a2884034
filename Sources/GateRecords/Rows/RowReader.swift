package import GateVocabulary

/// A stored row that is not as ``RowWriter`` writes it.
package struct DamagedRow: Error, Hashable, CustomStringConvertible {
    /// What is wrong, without a value: "a sealed row is cut short".
    package let what: String

    package init(_ what: String) { self.what = what }

    package var description: String { what }

    static let cutShort = Self("a sealed row is cut short")

    package static func unknown(_ what: String) -> Self { Self("a sealed row holds an unknown \(what)") }
}

/// Reads back what ``RowWriter`` wrote, and refuses every other encoding as damage.
package struct RowReader {
    private let bytes: [UInt8]
    /// The person whose row it is: a column in clear, and none of the fields.
    package let subject: SubjectID?
    /// The version of the schema that the row was written under: fields that came later are not in it
    /// (``Fields/since(_:_:)``). `nil` of a row that has all fields.
    package let version: Int?
    private var position = 1

    /// - Parameter layout: The first byte of the row.
    package init(_ bytes: [UInt8], layout: UInt8, subject: SubjectID? = nil) throws(DamagedRow) {
        self.bytes = bytes
        self.subject = subject
        version = nil
        guard let found = bytes.first else { throw .cutShort }
        guard found == layout else { throw DamagedRow("a sealed row has layout \(found), not \(layout)") }
    }

    /// Reads a row of an earlier version, whatever layout it says.
    package init(_ bytes: [UInt8], writtenUnder version: Int, subject: SubjectID?) throws(DamagedRow) {
        guard !bytes.isEmpty else { throw .cutShort }
        self.bytes = bytes
        self.subject = subject
        self.version = version
    }

    /// Where the next `count` bytes start.
    private mutating func advance(_ count: Int) throws(DamagedRow) -> Int {
        guard count <= bytes.count - position else { throw .cutShort }
        defer { position += count }
        return position
    }

    private mutating func word64() throws(DamagedRow) -> UInt64 {
        let start = try advance(8)
        return bytes.withUnsafeBytes {
            UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        }
    }

    private mutating func part() throws(DamagedRow) -> Range<Int> {
        let count = try count()
        let start = try advance(count)
        return start..<start + count
    }

    package mutating func byte() throws(DamagedRow) -> UInt8 { bytes[try advance(1)] }

    package mutating func flag() throws(DamagedRow) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw .unknown("flag")
        }
    }

    package mutating func integer() throws(DamagedRow) -> Int64 { Int64(bitPattern: try word64()) }

    /// An integer that code relies on being in a range.
    package mutating func integer(in range: ClosedRange<Int64>) throws(DamagedRow) -> Int64 {
        let integer = try integer()
        guard range.contains(integer) else { throw .unknown("number") }
        return integer
    }

    package mutating func instant() throws(DamagedRow) -> Instant {
        Instant(milliseconds: try integer(in: Instant.storable))
    }

    package mutating func id<Kind: IdentifierKind>(
        _ type: RandomIdentifier<Kind>.Type = RandomIdentifier<Kind>.self
    ) throws(DamagedRow) -> RandomIdentifier<Kind> {
        let high = try word64()
        return RandomIdentifier(high: high, low: try word64())
    }

    /// How many elements follow.
    package mutating func count() throws(DamagedRow) -> Int {
        let start = try advance(4)
        return bytes.withUnsafeBytes {
            Int(UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
        }
    }

    package mutating func byteArray() throws(DamagedRow) -> [UInt8] { Array(bytes[try part()]) }

    /// So many bytes, whose count is stored elsewhere.
    package mutating func bytes(count: Int64) throws(DamagedRow) -> [UInt8] {
        guard let count = Int(exactly: count), count >= 0 else { throw .cutShort }
        let start = try advance(count)
        return Array(bytes[start..<start + count])
    }

    package mutating func text() throws(DamagedRow) -> String {
        let range = try part()
        let text = try? String(copying: UTF8Span(validating: bytes.span.extracting(range)))
        guard let text else { throw .unknown("text, which is not UTF-8") }
        return text
    }

    package var isAtEnd: Bool { position >= bytes.count }

    /// Call last: bytes that were not read mean that writer and reader disagree.
    package func finish() throws(DamagedRow) {
        guard position == bytes.count else { throw DamagedRow("a sealed row is longer than its fields") }
    }
}
