/// A JSON document as sendgate knows it: no floating point, integers within ±(2⁵³−1), unique keys.
///
/// Two values are equal exactly when their canonical bytes are: texts compare by code units.
package enum JSONValue: Sendable {
    case null
    case boolean(Bool)
    /// Within ``CanonicalJSON/integerMin`` and ``CanonicalJSON/integerMax``; writing any other traps.
    case integer(Int64)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue: Hashable {
    package static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let left), .boolean(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.string(let left), .string(let right)): CodeUnits.equal(left, right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null:
            hasher.combine(0 as UInt8)
        case .boolean(let value):
            hasher.combine(1 as UInt8)
            hasher.combine(value)
        case .integer(let value):
            hasher.combine(2 as UInt8)
            hasher.combine(value)
        case .string(let text):
            hasher.combine(3 as UInt8)
            hasher.combine(codeUnitsOf: text)
        case .array(let elements):
            hasher.combine(4 as UInt8)
            hasher.combine(elements)
        case .object(let object):
            hasher.combine(5 as UInt8)
            hasher.combine(object)
        }
    }
}

extension JSONValue {
    package var isNull: Bool {
        if case .null = self { true } else { false }
    }

    package var booleanValue: Bool? {
        if case .boolean(let value) = self { value } else { nil }
    }

    package var integerValue: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    package var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var arrayValue: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    package var objectValue: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    /// The member of an object, or `nil` when this is no object or has no such key.
    package subscript(_ key: String) -> JSONValue? {
        if case .object(let object) = self { object[key] } else { nil }
    }

    /// What this value is called in messages: `null`, `boolean`, `integer`, `string`, `array`, `object`.
    package var shapeName: String {
        switch self {
        case .null: "null"
        case .boolean: "boolean"
        case .integer: "integer"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    /// ``shapeName`` with its article.
    package var article: String {
        switch self {
        case .null: "null"
        case .integer, .array, .object: "an \(shapeName)"
        case .boolean, .string: "a \(shapeName)"
        }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    package init(nilLiteral: ()) { self = .null }
    package init(booleanLiteral value: Bool) { self = .boolean(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(stringLiteral value: String) { self = .string(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(JSONObject(elements)) }
}

extension JSONValue: CustomStringConvertible {
    /// The canonical text.
    package var description: String { String(decoding: CanonicalJSON.write(self), as: UTF8.self) }
}

extension Hasher {
    /// Feeds the UTF-8 bytes and their count, so that neighbours cannot run together.
    mutating func combine(codeUnitsOf text: String) {
        CodeUnits.withBytes(text) { bytes in
            combine(bytes.count)
            combine(bytes: UnsafeRawBufferPointer(bytes))
        }
    }
}
