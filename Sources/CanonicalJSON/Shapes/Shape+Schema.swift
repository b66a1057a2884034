/// Shapes named in the document, gathered while it is printed.
package struct SchemaComponents {
    package private(set) var schemas: [String: JSONValue] = [:]
    /// Answers that many routes share, by a name made of what is in them.
    package var responses: [String: JSONValue] = [:]

    /// What a reference to one of ``schemas`` begins with.
    private let place: String

    /// - Parameter place: Where the document has ``schemas``, as a pointer with its last `/`.
    package init(place: String = "#/components/schemas/") { self.place = place }

    /// The JSON Schema 2020-12 of `shape`; whatever in it has a name goes to ``schemas`` and is referred to.
    package mutating func schema(of shape: Shape) -> JSONObject {
        switch shape {
        case .boolean:
            return ["type": "boolean"]
        case .integer(let range):
            return [
                "maximum": .integer(range.upperBound), "minimum": .integer(range.lowerBound),
                "type": "integer",
            ]
        case .text(let rule):
            var schema = rule.schema
            schema["type"] = "string"
            return schema
        case .choice(let names):
            return ["enum": .array(names.map { .string($0) }), "type": "string"]
        case .nullable(let shape):
            return ["anyOf": [.object(schema(of: shape)), ["type": "null"]]]
        case .null:
            return ["type": "null"]
        case .list(let shape, let countMin, let countMax):
            var list: JSONObject = [
                "items": .object(schema(of: shape)), "maxItems": .integer(Int64(countMax)), "type": "array",
            ]
            if countMin > 0 { list["minItems"] = .integer(Int64(countMin)) }
            return list
        case .map(let keys, let values, let countMin, let countMax):
            var map: JSONObject = [
                "additionalProperties": .object(schema(of: values)),
                "maxProperties": .integer(Int64(countMax)), "propertyNames": .object(keys.schema),
                "type": "object",
            ]
            if countMin > 0 { map["minProperties"] = .integer(Int64(countMin)) }
            return map
        case .object(let object):
            return schema(of: object)
        case .variants(let variants):
            var choices: [JSONValue] = []
            for variant in variants.variants { choices.append(.object(schema(of: variant.shape))) }
            if let shape = variants.withoutKey { choices.append(.object(schema(of: shape))) }
            // The others know no member of that name, so an object with it is of this shape alone.
            if let override = variants.override { choices.append(.object(schema(of: override.shape))) }
            return ["oneOf": .array(choices)]
        case .anything(let any):
            return reference(to: "AnyJSON\(any.depthMax)") { components in
                var choices: [Shape] = [.null, .boolean, .anyInteger, .text(any.texts)]
                if let inner = any.inner {
                    choices.append(.list(of: inner, countMax: any.countMax))
                    choices.append(.map(keys: any.keys, values: inner, countMax: any.countMax))
                }
                return components.schema(of: .either(choices))
            }
        case .named(let name, let shape, let means):
            return reference(to: name) { components in
                var schema = components.schema(of: shape)
                if let means { schema["description"] = .string(means) }
                return schema
            }
        case .foreign:
            return ["type": "object"]
        case .either(let shapes):
            var choices: [JSONValue] = []
            for shape in shapes { choices.append(.object(schema(of: shape))) }
            return ["anyOf": .array(choices)]
        }
    }

    /// - Precondition: Whatever has this name looks the same everywhere; two shapes under one name would
    ///   make the document say something false about one of them.
    private mutating func reference(
        to name: String, _ make: (inout SchemaComponents) -> JSONObject
    ) -> JSONObject {
        let made = JSONValue.object(make(&self))
        if let known = schemas[name] {
            precondition(known == made, "two different shapes are named `\(name)` in the reference")
        }
        schemas[name] = made
        return ["$ref": .string(place + name)]
    }

    private mutating func schema(of object: ObjectShape) -> JSONObject {
        var properties = JSONObject()
        for member in object.members {
            var schema = schema(of: member.shape)
            schema["description"] = .string(member.means)
            if let value = member.defaultValue { schema["default"] = value }
            properties[member.name] = .object(schema)
        }
        var schema: JSONObject = [
            "additionalProperties": false, "properties": .object(properties), "type": "object",
        ]
        if let others = object.others {
            let known = JSONValue.array(object.members.map { .string($0.name) })
            schema["additionalProperties"] = .object(self.schema(of: others.values))
            schema["maxProperties"] = .integer(Int64(object.members.count + others.countMax))
            schema["propertyNames"] = ["anyOf": [["enum": known], .object(others.keys.schema)]]
        }
        if !object.means.isEmpty { schema["description"] = .string(object.means) }
        let required = object.members.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        if !object.rules.isEmpty { schema["allOf"] = .array(object.rules.map { .object($0.schema) }) }
        return schema
    }
}

extension ObjectShape.Rule {
    /// In the keywords every validator and generator knows; `dependentRequired` is not one of them.
    fileprivate var schema: JSONObject {
        switch self {
        case .notBoth(let first, let second):
            return ["not": ["required": [.string(first), .string(second)]]]
        case .needs(let first, let second):
            return [
                "anyOf": [
                    ["required": [.string(second)]], ["not": ["required": [.string(first)]]],
                ]
            ]
        case .anyOf(let names):
            return ["anyOf": .array(names.map { ["required": [.string($0)]] })]
        }
    }
}
