import CanonicalJSON
import GateVocabulary

/// Appends members in the order they are given, which must be the canonical one; a test holds that.
struct MemberWriter {
    private(set) var bytes: [UInt8]
    private var isFirst = true

    init(byteCapacity: Int) {
        bytes = []
        bytes.reserveCapacity(byteCapacity)
        bytes.append(UInt8(ascii: "{"))
    }

    mutating func end() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// - Parameter key: Without characters that need an escape.
    mutating func member(_ key: StaticString, _ write: (inout [UInt8]) -> Void) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        // A static string's bytes live as long as the program, and its count is theirs.
        bytes.append(contentsOf: UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
        bytes.append(contentsOf: "\":".utf8)
        write(&bytes)
    }

    mutating func integer(_ key: StaticString, _ value: Int64) {
        member(key) { CanonicalJSON.append(value, to: &$0) }
    }

    /// Any text; escaped as needed.
    mutating func text(_ key: StaticString, _ value: String) {
        member(key) { CanonicalJSON.append(value, to: &$0) }
    }

    mutating func hexadecimal(_ key: StaticString, _ id: (some RandomIdentifier)?) {
        guard let id else { return }
        member(key) { $0.append(hexadecimalOf: id) }
    }

    mutating func uuid(_ key: StaticString, _ id: (some RandomIdentifier)?) {
        guard let id else { return }
        member(key) { $0.append(uuidOf: id) }
    }
}

extension [UInt8] {
    /// A text of ours that needs no escape, in quotation marks: names and the like.
    mutating func appendPlain(_ text: String) {
        append(UInt8(ascii: "\""))
        append(contentsOf: text.utf8)
        append(UInt8(ascii: "\""))
    }

    /// 32 lower-case digits, in quotation marks.
    mutating func append(hexadecimalOf id: some RandomIdentifier) {
        append(UInt8(ascii: "\""))
        append(digitsOf: id.high, hyphensBefore: 0)
        append(digitsOf: id.low, hyphensBefore: 0)
        append(UInt8(ascii: "\""))
    }

    /// `8-4-4-4-12` lower-case digits, in quotation marks.
    mutating func append(uuidOf id: some RandomIdentifier) {
        append(UInt8(ascii: "\""))
        append(digitsOf: id.high, hyphensBefore: 1 << 8 | 1 << 12)
        append(digitsOf: id.low, hyphensBefore: 1 | 1 << 4)
        append(UInt8(ascii: "\""))
    }

    /// Sixteen digits, with a hyphen before those whose bit is set.
    private mutating func append(digitsOf half: UInt64, hyphensBefore hyphens: UInt16) {
        for count in 0..<16 {
            if hyphens & (1 << UInt16(count)) != 0 { append(UInt8(ascii: "-")) }
            let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * count)) & 15
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
