import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import Testing

/// An editor checks the facts of a case against a schema; it says what the facts' own declaration says.
@Suite struct CaseSchemaTests {
    let schema: JSONValue

    init() throws {
        let url = URL(fileURLWithPath: #filePath)
            .appendingPathComponent("../../../Policies/schema/cases.schema.json").standardized
        schema = try CanonicalJSON.read([UInt8](Data(contentsOf: url)))
    }

    @Test func `the schema of a case's facts is the one that follows from their declaration`() throws {
        // `now` stands beside the facts of a case.
        let members = Facts.objectShape.members.filter { $0.name != "now" }
        let declared = try generated(.object(ObjectShape("", members)))
        let written = try plain(try #require(schema["$defs"]?["facts"]))
        for member in members {
            #expect(
                written["properties"]?[member.name] == declared["properties"]?[member.name],
                "\(member.name) in Policies/schema/cases.schema.json")
        }
        #expect(written == declared)
    }

    @Test func `a case can go without every fact that is declared, and no other`() {
        #expect(schema["$defs"]?["fact_name"]?["enum"] == .array(Facts.names.map { .string($0) }))
        let without: JSONValue = ["$ref": "#/$defs/fact_name"]
        let one = schema["properties"]?["cases"]?["items"]?["properties"]
        #expect(one?["given"]?["properties"]?["without"]?["items"] == without)
        #expect(one?["later"]?["items"]?["properties"]?["without"]?["items"] == without)
    }

    /// The schema as written, without its words, and with what it refers to in place.
    private func plain(_ value: JSONValue) throws -> JSONValue {
        if let elements = value.arrayValue { return .array(try elements.map(plain)) }
        guard var object = value.objectValue else { return value }
        if let place = object["$ref"]?.stringValue {
            let name = String(place.dropFirst("#/$defs/".count))
            // A moment is a text in a page and a number in the facts.
            if name == "moment" { return "moment" }
            return try plain(try #require(schema["$defs"]?[name]))
        }
        if object["description"]?.stringValue != nil { object["description"] = nil }
        if object["required"] == [] { object["required"] = nil }
        // The code's spelling is the page's own to say, in the pattern.
        if object["pattern"] != nil { return "text" }
        return .object(JSONObject(try object.map { ($0.key, try plain($0.value)) }))
    }

    /// What a page's schema says of a shape.
    private func generated(_ shape: Shape) throws -> JSONValue {
        switch shape {
        case .boolean: return ["type": "boolean"]
        case .integer(let range) where range.lowerBound < 0: return "moment"
        case .integer: return ["type": "integer", "minimum": 0]
        case .text: return "text"
        case .choice(let names): return ["enum": .array(names.map { .string($0) })]
        case .named(_, let shape, _): return try generated(shape)
        case .list(let element, _, let countMax):
            return ["type": "array", "items": try generated(element), "maxItems": .integer(Int64(countMax))]
        case .object(let object):
            var schema: JSONObject = [
                "type": "object", "additionalProperties": false,
                "properties": .object(
                    JSONObject(try object.members.map { ($0.name, try generated($0.shape)) })),
            ]
            let required = object.members.filter(\.isRequired).map { JSONValue.string($0.name) }
            if !required.isEmpty { schema["required"] = .array(required) }
            return .object(schema)
        case .variants(let variants):
            return ["oneOf": .array(try variants.variants.map { try generated(.object($0.shape)) })]
        default:
            Issue.record("no fact has the shape \(shape)")
            return nil
        }
    }
}
