package import CanonicalJSON
import GateVocabulary

/// One param, or the link, that does not fit the type. Says where and what was expected, never what was found: params
/// carry what the recipient must not lose, and violations are recorded.
package struct ParamsViolation: Hashable, Sendable {
    /// In the body of the send, e.g. `/params/amount/currency`.
    package var pointer: JSONPointer
    /// Lower-case, without a full stop.
    package var message: String

    package init(_ pointer: JSONPointer, _ message: String) {
        self.pointer = pointer
        self.message = message
    }
}

extension NotificationType {
    /// How `params` and `deepLink` fall short of what the type declares; empty when they fit.
    ///
    /// At most one violation per param, in the order of the names.
    package func violations(in params: JSONObject, deepLink: String?) -> [ParamsViolation] {
        let schemas = self.params
        var root: JSONPointer { JSONPointer(["params"]) }
        var violations: [ParamsViolation] = []
        if let deepLink, !linkPrefixes.contains(where: { $0.covers(deepLink) }) {
            violations.append(ParamsViolation(JSONPointer(["deep_link"]), linkExpectation))
        }
        for (name, value) in params {
            guard let schema = schemas[name] else {
                violations.append(ParamsViolation(root.appending(name), "the type has no such param"))
                continue
            }
            if let violation = schema.kind.violation(value, at: { root.appending(name) }) {
                violations.append(violation)
            }
        }
        for (name, schema) in schemas where !schema.isOptional && params[name] == nil {
            violations.append(ParamsViolation(root.appending(name), "the param is missing"))
        }
        return violations.sorted { CodeUnits.precedes($0.pointer.text, $1.pointer.text) }
    }
}

extension ParamSchema.Kind {
    /// Whether a value is of this kind.
    package func accepts(_ value: JSONValue) -> Bool { violation(value, at: { .root }) == nil }

    /// - Parameter pointer: Of the value; asked for only where it does not fit.
    func violation(_ value: JSONValue, at pointer: () -> JSONPointer) -> ParamsViolation? {
        func unless(_ fits: Bool, _ message: String) -> ParamsViolation? {
            fits ? nil : ParamsViolation(pointer(), message)
        }
        switch self {
        case .uuid:
            return unless(
                value.stringValue.map { UUIDText.isCanonical($0.utf8.span) } ?? false,
                "expected a UUID of 36 characters, lower-case (RFC 9562)")
        case .money:
            return Self.moneyViolation(value, at: pointer)
        case .totals:
            guard let amounts = value.arrayValue, amounts.count <= ParamSchema.totalCountMax else {
                return ParamsViolation(pointer(), "expected at most \(ParamSchema.totalCountMax) amounts")
            }
            for (index, amount) in amounts.enumerated() {
                if let violation = Self.moneyViolation(amount, at: { pointer().appending(index) }) {
                    return violation
                }
            }
            return nil
        case .text(let byteCountMax, let rule):
            guard let text = value.stringValue else { return ParamsViolation(pointer(), "expected a text") }
            guard (1...byteCountMax).contains(text.utf8.count) else {
                return ParamsViolation(pointer(), "expected 1 to \(byteCountMax) bytes of UTF-8")
            }
            return rule.violation(in: text).map { ParamsViolation(pointer(), $0) }
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
        case .url(let places):
            return unless(
                value.stringValue.map { link in places.contains { $0.covers(link) } } ?? false,
                "expected a link under \(places.map(\.text).joined(separator: " or "))")
        case .oneOf(let values):
            return unless(
                value.stringValue.map { text in values.contains { CodeUnits.equal($0, text) } } ?? false,
                "expected one of \(values.joined(separator: ", "))")
        }
    }

    private static func moneyViolation(
        _ value: JSONValue, at pointer: () -> JSONPointer
    ) -> ParamsViolation? {
        guard let object = value.objectValue else {
            return ParamsViolation(pointer(), "expected {\"minor\": integer, \"currency\": \"ISO 4217\"}")
        }
        guard object["minor"]?.integerValue != nil else {
            return ParamsViolation(
                pointer().appending("minor"), "expected an integer of the currency's smallest unit")
        }
        guard let currency = object["currency"]?.stringValue, ISOCodes.currencies.contains(currency) else {
            return ParamsViolation(
                pointer().appending("currency"), "expected an ISO 4217 code of three capital letters")
        }
        guard object.count == 2 else {
            return ParamsViolation(pointer(), "expected `minor` and `currency` and nothing else")
        }
        return nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

extension NotificationType {
    /// What a send is told whose `deep_link` leads elsewhere.
    fileprivate var linkExpectation: String {
        linkPrefixes.isEmpty
            ? "expected no link: the type declares none"
            : "expected a link under \(linkPrefixes.map(\.text).joined(separator: " or ")), of letters, digits and -._~/?&=#"
    }
}
