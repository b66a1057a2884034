package import CanonicalJSON
package import GateVocabulary

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

/// Params of a send that fit its type, each text in the form in which its rule judged it.
///
/// Composing takes this type, so a param that nothing judged reaches no body.
package struct CheckedParams: Hashable, Sendable {
    /// The params with each text in its canonical form.
    package let json: JSONObject
    /// The params of the kind `text`, by name.
    private let texts: [Text]

    fileprivate struct Text: Hashable, Sendable {
        var name: String
        var text: CheckedText
    }

    /// Of a type without params.
    package static let none = CheckedParams(json: [:], texts: [])

    private init(json: JSONObject, texts: [Text]) {
        self.json = json
        self.texts = texts
    }

    fileprivate init(_ params: JSONObject, texts: [Text]) {
        var json = params
        for text in texts {
            if case .string(let given)? = params[text.name], !CodeUnits.equal(given, text.text.text) {
                json[text.name] = .string(text.text.text)
            }
        }
        self.init(json: json, texts: texts)
    }

    /// - Returns: `nil` for a param that is absent or of another kind than `text`.
    package func text(_ name: String) -> CheckedText? {
        texts.first { CodeUnits.equal($0.name, name) }?.text
    }
}

extension NotificationType {
    /// How `params` and `deepLink` fall short of what the type declares; empty when they fit.
    ///
    /// At most one violation per param, in the order of the names.
    package func violations(in params: JSONObject, deepLink: String?) -> [ParamsViolation] {
        switch check(params, deepLink: deepLink) {
        case .success: []
        case .failure(let misfit): misfit.violations
        }
    }

    /// The params as they are used, or how `params` and `deepLink` fall short of what the type declares.
    package func check(
        _ params: JSONObject, deepLink: String?
    ) -> Result<CheckedParams, ParamsMisfit> {
        let schemas = self.params
        var root: JSONPointer { JSONPointer(["params"]) }
        var violations: [ParamsViolation] = []
        var texts: [CheckedParams.Text] = []
        if let deepLink, !linkPrefixes.contains(where: { $0.covers(deepLink) }) {
            violations.append(ParamsViolation(JSONPointer(["deep_link"]), linkExpectation))
        }
        for (name, value) in params {
            guard let schema = schemas[name] else {
                violations.append(ParamsViolation(root.appending(name), "the type has no such param"))
                continue
            }
            var text: CheckedText?
            if let violation = schema.kind.violation(value, at: { root.appending(name) }, writing: &text) {
                violations.append(violation)
            }
            if let text { texts.append(CheckedParams.Text(name: name, text: text)) }
        }
        for (name, schema) in schemas where !schema.isOptional && params[name] == nil {
            violations.append(ParamsViolation(root.appending(name), "the param is missing"))
        }
        guard violations.isEmpty else {
            return .failure(
                ParamsMisfit(
                    violations: violations.sorted { CodeUnits.precedes($0.pointer.text, $1.pointer.text) }))
        }
        return .success(CheckedParams(params, texts: texts))
    }
}

/// Params that do not fit their type.
package struct ParamsMisfit: Error, Hashable, Sendable, CustomStringConvertible {
    /// At least one, in the order of the names.
    package let violations: [ParamsViolation]

    package var description: String {
        violations.map { "\($0.pointer): \($0.message)" }.joined(separator: "; ")
    }
}

extension ParamSchema.Kind {
    /// The value as it is used, compared and written; `nil` where it is not of this kind.
    package func canonical(_ value: JSONValue) -> JSONValue? {
        var text: CheckedText?
        guard violation(value, at: { .root }, writing: &text) == nil else { return nil }
        return text.map { .string($0.text) } ?? value
    }

    /// - Parameters:
    ///   - pointer: Of the value; asked for only where it does not fit.
    ///   - text: Becomes what a value of the kind `text` is written as.
    fileprivate func violation(
        _ value: JSONValue, at pointer: () -> JSONPointer, writing text: inout CheckedText?
    ) -> ParamsViolation? {
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
            guard let given = value.stringValue else { return ParamsViolation(pointer(), "expected a text") }
            guard (1...byteCountMax).contains(given.utf8.count) else {
                return ParamsViolation(pointer(), "expected 1 to \(byteCountMax) bytes of UTF-8")
            }
            do throws(TextViolation) {
                text = try rule.checked(given)
                return nil
            } catch {
                return ParamsViolation(pointer(), error.expectation)
            }
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
                    (4...8).contains(code.utf8.count) && code.utf8.allSatisfy { $0.isDigit }
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
        guard let currency = object["currency"]?.stringValue, ISOCodes.fractionDigitCounts[currency] != nil
        else {
            return ParamsViolation(
                pointer().appending("currency"), "expected an ISO 4217 code of three capital letters")
        }
        guard object.count == 2 else {
            return ParamsViolation(pointer(), "expected `minor` and `currency` and nothing else")
        }
        return nil
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
