import CanonicalJSON

/// A second, independent reading of JSON Schema 2020-12: as much of it as the reference uses, and a refusal
/// of everything else, so that no keyword is silently skipped.
struct SchemaReader {
    let document: JSONValue
    private let patterns = Patterns()

    init(document: JSONValue) { self.document = document }

    enum Unsupported: Error { case keyword(String), pattern(String) }

    private static let annotations: Set<String> = ["description", "default", "format", "examples", "example"]

    func accepts(_ value: JSONValue, _ schema: JSONValue) throws -> Bool {
        if schema == true { return true }
        if schema == false { return false }
        guard let schema = schema.objectValue else { throw Unsupported.keyword("schema") }
        for (keyword, argument) in schema.members {
            if try !accepts(value, keyword, argument, schema) { return false }
        }
        return true
    }

    private func need<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw Unsupported.keyword("malformed schema") }
        return value
    }

    private func accepts(
        _ value: JSONValue, _ keyword: String, _ argument: JSONValue, _ schema: JSONObject
    ) throws -> Bool {
        // Every bound is an integer; for other keywords this is never looked at.
        let bound = argument.integerValue ?? -1
        switch keyword {
        case "$ref":
            let pointer = try need(JSONPointer(parsing: String(need(argument.stringValue).dropFirst())))
            return try accepts(value, need(document[pointer]))
        case "type": return value.shapeName == argument.stringValue
        case "enum": return try need(argument.arrayValue).contains(value)
        case "minimum": return value.integerValue.map { $0 >= bound } ?? true
        case "maximum": return value.integerValue.map { $0 <= bound } ?? true
        case "minLength":
            return value.stringValue.map { $0.unicodeScalars.count >= bound }
                ?? true
        case "maxLength":
            return value.stringValue.map { $0.unicodeScalars.count <= bound }
                ?? true
        case "pattern":
            guard let text = value.stringValue else { return true }
            let regex = try patterns.regex(need(argument.stringValue))
            return text.firstMatch(of: regex) != nil
        case "items":
            return try value.arrayValue.map { try $0.allSatisfy { try accepts($0, argument) } } ?? true
        case "maxItems":
            return value.arrayValue.map { $0.count <= bound } ?? true
        case "minItems":
            return value.arrayValue.map { $0.count >= bound } ?? true
        case "maxProperties":
            return value.objectValue.map { $0.count <= bound } ?? true
        case "required":
            return try value.objectValue.map { object in
                try need(argument.arrayValue).allSatisfy { object[$0.stringValue ?? ""] != nil }
            } ?? true
        case "properties":
            guard let object = value.objectValue else { return true }
            return try object.members.allSatisfy { member in
                try argument[member.key].map { try accepts(member.value, $0) } ?? true
            }
        case "additionalProperties":
            guard let object = value.objectValue else { return true }
            let known = schema["properties"]?.objectValue ?? [:]
            return try object.members.allSatisfy { member in
                try known[member.key] != nil || accepts(member.value, argument)
            }
        case "propertyNames":
            return try value.objectValue.map { try $0.keys.allSatisfy { try accepts(.string($0), argument) } }
                ?? true
        case "anyOf": return try need(argument.arrayValue).contains { try accepts(value, $0) }
        case "allOf": return try need(argument.arrayValue).allSatisfy { try accepts(value, $0) }
        case "oneOf": return try need(argument.arrayValue).filter { try accepts(value, $0) }.count == 1
        case "not": return try !accepts(value, argument)
        default:
            guard Self.annotations.contains(keyword) else { throw Unsupported.keyword(keyword) }
            return true
        }
    }
}

/// Patterns compiled once; compiling is what takes the time.
private final class Patterns {
    private var compiled: [String: Regex<AnyRegexOutput>] = [:]

    func regex(_ pattern: String) throws -> Regex<AnyRegexOutput> {
        if let regex = compiled[pattern] { return regex }
        let regex = try Regex(pattern).matchingSemantics(.unicodeScalar)
        compiled[pattern] = regex
        return regex
    }
}
