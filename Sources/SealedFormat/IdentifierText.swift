/// The two spellings of 16 bytes in an envelope. `GateVocabulary` has the same for its own identifiers;
/// apps link this module and not that one.
enum Hexadecimal {
    static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
    }

    /// - Parameter bytes: Exactly 16.
    static func appendUUID(_ bytes: [UInt8], to text: inout [UInt8]) {
        for (index, byte) in bytes.enumerated() {
            if uuidGroupStarts.contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
    }

    /// - Returns: `nil` for an odd count or a character outside `0-9a-f`.
    static func decode(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        var index = digits.startIndex
        while index < digits.endIndex {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
            index += 2
        }
        return bytes
    }

    /// - Returns: `nil` for anything but `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4).
    static func decodeUUID(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count == 36 else { return nil }
        var digits: [UInt8] = []
        digits.reserveCapacity(32)
        for (position, character) in text.enumerated() {
            if position == 8 || position == 13 || position == 18 || position == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
            } else {
                digits.append(character)
            }
        }
        return decode(digits[...])
    }

    /// The bytes before which a UUID has a hyphen.
    private static let uuidGroupStarts = [4, 6, 8, 10]

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// Identifiers as text, for modules that import no `GateVocabulary`.
package enum IdentifierText {
    /// Lower-case hexadecimal digits, two a byte.
    package static func hexadecimal(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        Hexadecimal.append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: `nil` for any spelling that ``hexadecimal(_:)`` does not write.
    package static func bytes(hexadecimal text: String) -> [UInt8]? {
        Hexadecimal.decode(Array(text.utf8)[...])
    }

    /// - Parameter bytes: Exactly 16.
    package static func uuid(_ bytes: [UInt8]) -> String {
        precondition(
            bytes.count == SealedLimits.identifierByteCount, "a UUID has 16 bytes, not \(bytes.count)")
        var text: [UInt8] = []
        Hexadecimal.appendUUID(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
