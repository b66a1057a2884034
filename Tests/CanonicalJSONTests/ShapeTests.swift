import CanonicalJSON
import Testing

/// Objects whose author chooses names: all of them, or some beside those that are known.
@Suite struct ShapeTests {
    private static let digit = TextRule("one digit", pattern: "^[0-9]$") { bytes in
        bytes.count == 1 && bytes.all { $0.isDigit }
    }

    private static let object = Shape.object(
        ObjectShape(
            "", [.required("fixed", .boolean, "Known by name.")],
            others: .init(keys: digit, values: .integer(0...9), countMax: 2)))

    private static let map = Shape.map(keys: digit, values: .integer(0...9), countMin: 1, countMax: 2)

    @Test(
        arguments: [
            (["fixed": true], []),
            (["fixed": true, "1": 1, "2": 2], []),
            (["1": 1], ["the member is missing; expected true or false at `/fixed`"]),
            (["fixed": true, "x": 1], ["expected a name of one digit at `/x`"]),
            (["fixed": true, "1": 10], ["expected an integer from 0 to 9 at `/1`"]),
            (
                ["fixed": true, "1": 1, "2": 2, "3": 3],
                ["expected at most 2 other members, found 3 at ``"]
            ),
        ] as [(JSONObject, [String])])
    func `an object takes so many names of its author's own beside the known ones`(
        _ value: JSONObject, _ problems: [String]
    ) {
        #expect(Self.object.violations(of: .object(value)).map(\.description) == problems)
    }

    @Test(
        arguments: [
            ([:], ["expected at least 1 members, found 0 at ``"]),
            (["1": 1], []),
            (["1": 1, "2": 2, "3": 3], ["expected at most 2 members, found 3 at ``"]),
            (
                ["x": true],
                ["expected a name of one digit at `/x`", "expected an integer, found a boolean at `/x`"]
            ),
        ] as [(JSONObject, [String])])
    func `a map has no fewer and no more members than it says`(_ value: JSONObject, _ problems: [String]) {
        #expect(Self.map.violations(of: .object(value)).map(\.description) == problems)
    }

    @Test func `their schemas say the same`() {
        var components = SchemaComponents()
        #expect(
            JSONValue.object(components.schema(of: Self.object)) == [
                "additionalProperties": ["maximum": 9, "minimum": 0, "type": "integer"],
                "maxProperties": 3,
                "properties": ["fixed": ["description": "Known by name.", "type": "boolean"]],
                "propertyNames": ["anyOf": [["enum": ["fixed"]], ["pattern": "^[0-9]$"]]],
                "required": ["fixed"], "type": "object",
            ])
        #expect(
            JSONValue.object(components.schema(of: Self.map)) == [
                "additionalProperties": ["maximum": 9, "minimum": 0, "type": "integer"],
                "maxProperties": 2, "minProperties": 1, "propertyNames": ["pattern": "^[0-9]$"],
                "type": "object",
            ])
    }
}
