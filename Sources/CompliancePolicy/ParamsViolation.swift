package import CanonicalJSON
package import GateVocabulary

/// One param that does not fit its type. Says where and what was expected, never what was found: params
/// carry what the recipient must not lose, and violations are recorded.
package struct ParamsViolation: Hashable, Sendable {
    /// From the params' own root, e.g. `/amount/currency`.
    package var pointer: JSONPointer
    /// Lower-case, without a full stop.
    package var message: String

    package init(_ pointer: JSONPointer, _ message: String) {
        self.pointer = pointer
        self.message = message
    }
}

extension CompiledPolicy {
    /// How `params` fall short of the schema of `type`; empty when they fit.
    ///
    /// At most one violation per param, in the order of the names; a type that is not in the registry has
    /// no schema and so no violations (gate 1 says so by itself).
    package func paramsViolations(_ params: JSONObject, of type: TypeID) -> [ParamsViolation] {
        guard let schemas = self.type(type)?.params else { return [] }
        var violations: [ParamsViolation] = []
        for (name, value) in params {
            let pointer = JSONPointer.root.appending(name)
            guard let schema = schemas[name] else {
                violations.append(ParamsViolation(pointer, "the type has no such param"))
                continue
            }
            if let violation = schema.kind.violation(value, at: pointer) { violations.append(violation) }
        }
        for (name, schema) in schemas where !schema.isOptional && params[name] == nil {
            violations.append(ParamsViolation(JSONPointer.root.appending(name), "the param is missing"))
        }
        return violations.sorted { CodeUnits.precedes($0.pointer.text, $1.pointer.text) }
    }
}

extension ParamSchema.Kind {
    /// Whether a value is of this kind.
    package func accepts(_ value: JSONValue) -> Bool { violation(value, at: .root) == nil }

    func violation(_ value: JSONValue, at pointer: JSONPointer) -> ParamsViolation? {
        func unless(_ fits: Bool, _ message: String) -> ParamsViolation? {
            fits ? nil : ParamsViolation(pointer, message)
        }
        switch self {
        case .uuid:
            return unless(
                value.stringValue.map { Self.isUUID($0) } ?? false,
                "expected a UUID of 36 characters, lower-case (RFC 9562)")
        case .money:
            return Self.moneyViolation(value, at: pointer)
        case .totals:
            guard let amounts = value.arrayValue, amounts.count <= ParamSchema.totalCountMax else {
                return ParamsViolation(pointer, "expected at most \(ParamSchema.totalCountMax) amounts")
            }
            for (index, amount) in amounts.enumerated() {
                if let violation = Self.moneyViolation(amount, at: pointer.appending(index)) {
                    return violation
                }
            }
            return nil
        case .text(let byteCountMax):
            guard let text = value.stringValue else { return ParamsViolation(pointer, "expected a text") }
            let utf8 = text.utf8
            guard (1...byteCountMax).contains(utf8.count) else {
                return ParamsViolation(pointer, "expected 1 to \(byteCountMax) bytes of UTF-8")
            }
            return unless(
                text.unicodeScalars.allSatisfy { Self.isVisible($0) },
                "expected no control characters and no characters that turn the direction of text")
        case .integer(let least, let most):
            return unless(
                value.integerValue.map { (least...most).contains($0) } ?? false,
                "expected an integer from \(least) to \(most)")
        case .timestamp:
            return unless(
                value.stringValue.map { $0.utf8.last == UInt8(ascii: "Z") && Instant(rfc3339: $0) != nil }
                    ?? false,
                "expected a moment in UTC such as 2026-11-10T12:00:00Z (RFC 3339)")
        case .country:
            return unless(
                value.stringValue.map { ISOCodes.countries.contains($0) } ?? false,
                "expected an ISO 3166-1 code of two capital letters")
        case .code:
            return unless(
                value.stringValue.map { code in
                    (4...8).contains(code.utf8.count) && code.utf8.allSatisfy { Self.isDigit($0) }
                } ?? false, "expected 4 to 8 digits as a text")
        case .url:
            return unless(
                value.stringValue.map { Self.isURL($0) } ?? false,
                "expected https:// and a host, at most 512 bytes of ASCII without spaces")
        case .oneOf(let values):
            return unless(
                value.stringValue.map { text in values.contains { CodeUnits.equal($0, text) } } ?? false,
                "expected one of \(values.joined(separator: ", "))")
        }
    }

    private static func moneyViolation(_ value: JSONValue, at pointer: JSONPointer) -> ParamsViolation? {
        guard let object = value.objectValue else {
            return ParamsViolation(pointer, "expected {\"minor\": integer, \"currency\": \"ISO 4217\"}")
        }
        guard object["minor"]?.integerValue != nil else {
            return ParamsViolation(
                pointer.appending("minor"), "expected an integer of the currency's smallest unit")
        }
        guard let currency = object["currency"]?.stringValue, ISOCodes.currencies.contains(currency) else {
            return ParamsViolation(
                pointer.appending("currency"), "expected an ISO 4217 code of three capital letters")
        }
        guard object.count == 2 else {
            return ParamsViolation(pointer, "expected `minor` and `currency` and nothing else")
        }
        return nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isUUID(_ text: String) -> Bool {
        guard text.utf8.count == 36 else { return false }
        for (offset, byte) in text.utf8.enumerated() {
            let isDash = offset == 8 || offset == 13 || offset == 18 || offset == 23
            let isHex = isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
            guard isDash ? byte == UInt8(ascii: "-") : isHex else { return false }
        }
        return true
    }

    private static func isURL(_ text: String) -> Bool {
        let prefix = Array("https://".utf8)
        let bytes = Array(text.utf8)
        guard bytes.count <= 512, bytes.starts(with: prefix), bytes.count > prefix.count else { return false }
        let first = bytes[prefix.count]
        let hasHost = isDigit(first) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first | 0x20)
        // 0x21 to 0x7E: visible ASCII. Credentials before an `@` and a backslash, which browsers read as
        // `/`, make a link look like it led elsewhere.
        return hasHost
            && bytes.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "@") && $0 != UInt8(ascii: "\\")
            }
    }

    /// Not C0, C1, DEL, a line or paragraph separator, or one of Unicode's bidirectional controls (UAX 9),
    /// with which an amount or a name can be made to read differently from what it is. A line feed stays:
    /// longer notices have paragraphs.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0A: true
        case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
            false
        default: true
        }
    }
}
