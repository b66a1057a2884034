import CanonicalJSON

/// Walks over the bytes of an entry, in the one order and spelling they can have.
///
/// An entry is written in one way only, so it can be read without building a tree: replaying a year of
/// sends is mostly this. Every departure is refused with the byte where it begins.
@usableFromInline
package struct EntryCursor: Sendable {
    @usableFromInline package let bytes: [UInt8]
    @usableFromInline package private(set) var offset = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package var isAtEnd: Bool { offset == bytes.count }

    @usableFromInline
    package func failure(_ expected: String) -> EntryError { .malformed(offset: offset, expected: expected) }

    @usableFromInline
    package mutating func rewind(to earlier: Int) { offset = earlier }

    /// Steps over `literal` if it is here.
    @usableFromInline
    package mutating func skip(_ literal: StaticString) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard bytes.count - offset >= count else { return false }
        // A static string's bytes live as long as the program, and `count` is their number.
        let start = literal.utf8Start
        for index in 0..<count where bytes[offset + index] != start[index] { return false }
        offset += count
        return true
    }

    /// Steps over the name and the colon of a member if they are here.
    mutating func skip(field name: StaticString) -> Bool {
        let count = name.utf8CodeUnitCount
        guard bytes.count - offset > count + 2, bytes[offset] == 0x22, bytes[offset + count + 1] == 0x22,
            bytes[offset + count + 2] == 0x3A
        else { return false }
        // A static string's bytes live as long as the program, and `count` is their number.
        let start = name.utf8Start
        for index in 0..<count where bytes[offset + 1 + index] != start[index] { return false }
        offset += count + 3
        return true
    }

    mutating func expect(field name: StaticString) throws(EntryError) {
        guard skip(field: name) else { throw failure("the member `\(name)`") }
    }

    @usableFromInline
    package mutating func expect(_ literal: StaticString) throws(EntryError) {
        guard skip(literal) else { throw failure("`\(literal)`") }
    }

    // MARK: Values

    @usableFromInline
    package mutating func integer() throws(EntryError) -> Int64 {
        let start = offset
        var magnitude: Int64 = 0
        let isNegative = skip("-")
        let first = offset
        // 2⁵³−1 has 16 digits, so nothing here overflows.
        while offset < bytes.count, offset - first < 17, bytes[offset].isDigit {
            magnitude = magnitude * 10 + Int64(bytes[offset] - 0x30)
            offset += 1
        }
        let count = offset - first
        let isCanonical = count == 1 ? !(isNegative && magnitude == 0) : count > 1 && bytes[first] != 0x30
        guard isCanonical, magnitude <= CanonicalJSON.integerMax else {
            rewind(to: start)
            throw failure("an integer")
        }
        return isNegative ? -magnitude : magnitude
    }

    @inlinable
    package mutating func unsigned<Number: FixedWidthInteger>() throws(EntryError) -> Number {
        let start = offset
        let integer = try integer()
        guard integer >= 0, let number = Number(exactly: integer) else {
            rewind(to: start)
            throw failure("an integer from 0 to \(Number.max)")
        }
        return number
    }

    @usableFromInline
    package mutating func instant() throws(EntryError) -> Instant { Instant(milliseconds: try integer()) }

    @usableFromInline
    package mutating func boolean() throws(EntryError) -> Bool {
        if skip("true") { return true }
        try expect("false")
        return false
    }

    /// A text without escapes, as names and identifiers are.
    @usableFromInline
    package mutating func plain() throws(EntryError) -> Range<Int> {
        try expect("\"")
        let start = offset
        while offset < bytes.count, bytes[offset] != 0x22 {
            guard bytes[offset] != 0x5C, bytes[offset] >= 0x20 else { throw failure("a name") }
            offset += 1
        }
        let range = start..<offset
        try expect("\"")
        return range
    }

    /// Any text, in its one spelling.
    @usableFromInline
    package mutating func text(byteCountMax: Int) throws(EntryError) -> String {
        let start = offset
        try expect("\"")
        var isPlain = true
        while offset < bytes.count, bytes[offset] != 0x22 {
            if bytes[offset] == 0x5C {
                isPlain = false
                offset += 1
            } else if bytes[offset] < 0x20 {
                throw failure("an escaped control character")
            }
            offset += 1
        }
        try expect("\"")
        if isPlain {
            guard let text = String(validating: bytes[(start + 1)..<(offset - 1)], as: UTF8.self) else {
                rewind(to: start)
                throw failure("UTF-8")
            }
            guard text.utf8.count <= byteCountMax else {
                rewind(to: start)
                throw failure("at most \(byteCountMax) bytes")
            }
            return text
        }
        // Escapes are rare in an entry; the reader of documents knows them.
        guard case .string(let text)? = try? CanonicalJSON.readCanonical(bytes[start..<offset]),
            text.utf8.count <= byteCountMax
        else {
            rewind(to: start)
            throw failure("a text of at most \(byteCountMax) bytes")
        }
        return text
    }

    /// A name of 1 to 128 bytes.
    @inlinable
    package mutating func identifier<Name: TextIdentifier>() throws(EntryError) -> Name {
        let text = try text(byteCountMax: 128)
        guard !text.utf8.isEmpty else { throw failure("a name") }
        return Name(text)
    }

    /// One of a closed list.
    @inlinable
    package mutating func name<Value: RawRepresentable<String>>() throws(EntryError) -> Value {
        let start = offset
        let range = try plain()
        guard let value = Value(rawValue: String(decoding: bytes[range], as: UTF8.self)) else {
            rewind(to: start)
            throw failure("a known name")
        }
        return value
    }

    @inlinable
    package mutating func hexadecimal<Kind: IdentifierKind>() throws(EntryError) -> RandomIdentifier<Kind> {
        let start = offset
        guard skip("\""), let high = digits(hyphensBefore: 0), let low = digits(hyphensBefore: 0), skip("\"")
        else {
            rewind(to: start)
            throw failure("32 lower-case hexadecimal digits")
        }
        return RandomIdentifier(high: high, low: low)
    }

    @inlinable
    package mutating func uuid<Kind: IdentifierKind>() throws(EntryError) -> RandomIdentifier<Kind> {
        let start = offset
        guard skip("\""), let high = digits(hyphensBefore: 1 << 8 | 1 << 12),
            let low = digits(hyphensBefore: 1 | 1 << 4), skip("\"")
        else {
            rewind(to: start)
            throw failure("a UUID in lower case")
        }
        return RandomIdentifier(high: high, low: low)
    }

    /// Sixteen digits, with a hyphen before those whose bit is set.
    @usableFromInline
    mutating func digits(hyphensBefore hyphens: UInt16) -> UInt64? {
        var value: UInt64 = 0
        for count in 0..<16 {
            if hyphens & (1 << UInt16(count)) != 0, !skip("-") { return nil }
            guard offset < bytes.count else { return nil }
            switch bytes[offset] {
            case 0x30...0x39: value = value << 4 | UInt64(bytes[offset] - 0x30)
            case 0x61...0x66: value = value << 4 | UInt64(bytes[offset] - 0x57)
            default: return nil
            }
            offset += 1
        }
        return value
    }

    @usableFromInline
    package mutating func digest() throws(EntryError) -> PolicyDigest {
        let start = offset
        let range = try plain()
        let isHexadecimal = bytes[range].allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
        }
        guard range.count == 64, isHexadecimal else {
            rewind(to: start)
            throw failure("64 lower-case hexadecimal digits")
        }
        return PolicyDigest(String(decoding: bytes[range], as: UTF8.self))
    }

    /// Elements between brackets, each read by `read`.
    @inlinable
    package mutating func array(
        countMax: Int, _ read: (inout EntryCursor, Int) throws(EntryError) -> Void
    ) throws(EntryError) {
        try expect("[")
        if skip("]") { return }
        var count = 0
        repeat {
            guard count < countMax else { throw failure("at most \(countMax) elements") }
            try read(&self, count)
            count += 1
        } while skip(",")
        try expect("]")
    }
}
