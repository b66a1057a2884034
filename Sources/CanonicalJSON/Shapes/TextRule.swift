/// What a text must look like: said to a person, to a JSON Schema reader, and checked byte by byte.
///
/// The three say the same. The check is written by hand because it runs on every send; tests hold it
/// against the pattern, which a second engine evaluates.
package struct TextRule: Sendable {
    /// Completes "expected …".
    package let expectation: String
    /// Keywords of JSON Schema 2020-12 beside `"type": "string"`.
    package let schema: JSONObject
    /// What to do about a text that is refused and looks like a known mistake; said after ``expectation``.
    private let advice: @Sendable (String) -> String?
    package let check: @Sendable (Span<UInt8>) -> Bool

    /// - Parameters:
    ///   - lengths: In characters, for the schema; `check` has to hold them itself.
    ///   - pattern: ECMA-262, anchored at both ends.
    ///   - others: Keywords of JSON Schema besides lengths and pattern.
    package init(
        _ expectation: String, lengths: ClosedRange<Int>? = nil, pattern: String? = nil,
        others: JSONObject = [:],
        advice: @escaping @Sendable (String) -> String? = { _ in nil },
        check: @escaping @Sendable (Span<UInt8>) -> Bool
    ) {
        var schema = others
        if let lengths {
            schema["maxLength"] = .integer(Int64(lengths.upperBound))
            if lengths.lowerBound > 0 { schema["minLength"] = .integer(Int64(lengths.lowerBound)) }
        }
        if let pattern { schema["pattern"] = .string(pattern) }
        self.expectation = expectation
        self.schema = schema
        self.advice = advice
        self.check = check
    }

    /// A rule for texts of ASCII, whose bytes are their characters; `check` sees only those of the right length.
    package static func ascii(
        _ expectation: String, lengths: ClosedRange<Int>, pattern: String,
        advice: @escaping @Sendable (String) -> String? = { _ in nil },
        check: @escaping @Sendable (Span<UInt8>) -> Bool
    ) -> TextRule {
        TextRule(expectation, lengths: lengths, pattern: pattern, advice: advice) { bytes in
            lengths.contains(bytes.count) && check(bytes)
        }
    }

    package func accepts(_ text: String) -> Bool { check(text.utf8.span) }

    /// What to answer about a text that is not accepted.
    package func refusal(of text: String) -> String {
        "expected \(expectation)" + (advice(text).map { "; \($0)" } ?? "")
    }
}

extension TextRule {
    /// A `send_id` or `message_id`: RFC 9562 section 4 in lower case.
    package static let uuid = TextRule(
        "a UUID in lower case such as `7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11`", lengths: 36...36,
        pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        others: ["format": "uuid"]
    ) { UUIDText.isCanonical($0) }

    /// The id of a device key, 16 bytes.
    package static let pseudonym = hexadecimal(digitCount: 32, "a pseudonym: 32 digits of `0-9a-f`")
    package static let keyID = hexadecimal(digitCount: 32, "a device key's id: 32 digits of `0-9a-f`")
    /// SHA-256, 32 bytes.
    package static let sha256 = hexadecimal(digitCount: 64, "a SHA-256 digest: 64 digits of `0-9a-f`")

    private static func hexadecimal(digitCount: Int, _ expectation: String) -> TextRule {
        TextRule(
            expectation, lengths: digitCount...digitCount, pattern: "^[0-9a-f]{\(digitCount)}$"
        ) { bytes in bytes.count == digitCount && bytes.all { $0.isLowercaseHexadecimal } }
    }
}

/// The one spelling of a UUID that is accepted: lower case, `8-4-4-4-12` (RFC 9562 section 4).
package enum UUIDText {
    package static func isCanonical(_ text: Span<UInt8>) -> Bool {
        guard text.count == 36 else { return false }
        for index in 0..<36 {
            let isHyphen = index == 8 || index == 13 || index == 18 || index == 23
            guard isHyphen ? text[index] == UInt8(ascii: "-") : text[index].isLowercaseHexadecimal else {
                return false
            }
        }
        return true
    }
}

extension Span where Element == UInt8 {
    @inlinable
    package func all(_ predicate: (UInt8) -> Bool) -> Bool {
        for index in 0..<count where !predicate(self[index]) { return false }
        return true
    }
}

extension UInt8 {
    @inlinable package var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }
    @inlinable package var isLowercaseLetter: Bool { self >= UInt8(ascii: "a") && self <= UInt8(ascii: "z") }
    @inlinable package var isUppercaseLetter: Bool { self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") }
    @inlinable package var isLetter: Bool { isLowercaseLetter || isUppercaseLetter }
    @inlinable package var isAlphanumeric: Bool { isLetter || isDigit }
    @inlinable package var isLowercaseHexadecimal: Bool {
        isDigit || (self >= UInt8(ascii: "a") && self <= UInt8(ascii: "f"))
    }
    /// The value of a hexadecimal digit, in either case; `nil` of any other byte.
    @inlinable package var hexadecimalDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
    /// Printable ASCII other than the space.
    @inlinable package var isVisible: Bool { self >= 0x21 && self <= 0x7E }

    @inlinable
    package func isOneOf(_ characters: StaticString) -> Bool {
        for index in 0..<characters.utf8CodeUnitCount where characters.utf8Start[index] == self {
            return true
        }
        return false
    }
}
