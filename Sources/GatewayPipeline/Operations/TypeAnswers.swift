import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import WireProtocol

extension TypeAnswer {
    /// The description of a type for its producers.
    init(_ type: NotificationType, for caller: CallerName, under policy: CompiledPolicy) {
        var channels: [Channel: BodyForm] = [:]
        for channel in Channel.allCases where type.body[channel] != .never {
            channels[channel] = type.body[channel]
        }
        let rule = policy.caller(caller)
        self.init(
            type: type.id, means: type.means, category: type.category, tier: type.tier,
            sensitivity: type.sensitivity, isEnabled: type.isEnabled, disabledHint: type.disabledHint,
            isMandatory: type.mandatory != nil, dischargedBy: type.mandatory?.dischargedBy ?? [],
            isCriticalAllowed: policy.bundle.critical.contains { $0.type == type.id },
            isPermitted: rule.map { $0.grants.contains(.send) && $0.types.covers(type.id, of: type.category) }
                ?? false, channels: channels, purpose: type.purpose, ttlSeconds: type.ttlSeconds,
            linkPrefixes: type.linkPrefixes.map(\.text), params: Self.schema(of: type.params),
            example: Self.example(of: type))
    }

    /// JSON Schema (2020-12) of a type's params.
    private static func schema(of params: [String: ParamSchema]) -> JSONObject {
        var properties = JSONObject()
        for (name, param) in params { properties[name] = .object(param.kind.jsonSchema) }
        let required = params.filter { !$0.value.isOptional }.keys.sorted()
        return [
            "type": "object", "additionalProperties": false, "properties": .object(properties),
            "required": .array(required.map { .string($0) }),
        ]
    }

    private static func example(of type: NotificationType) -> JSONObject {
        var params = JSONObject()
        for (name, param) in type.params where !param.isOptional {
            params[name] = param.kind.example(of: name)
        }
        var example: JSONObject = [
            "id": .string("example-\(type.id.text)"), "type": .string(type.id.text),
            "recipient": ["user": "u_42"], "params": .object(params),
        ]
        let channel = Channel.allCases.first { type.body[$0] != .never }
        if let channel, channel != .push { example["channel"] = .string(channel.rawValue) }
        return example
    }
}

extension ParamSchema.Kind {
    fileprivate var jsonSchema: JSONObject {
        switch self {
        case .uuid: ["type": "string", "format": "uuid"]
        case .money:
            [
                "type": "object", "additionalProperties": false, "required": ["minor", "currency"],
                "properties": [
                    "minor": ["type": "integer"], "currency": ["type": "string", "pattern": "^[A-Z]{3}$"],
                ],
            ]
        case .totals:
            [
                "type": "array", "maxItems": .integer(Int64(ParamSchema.totalCountMax)),
                "items": .object(Self.money.jsonSchema),
            ]
        case .text(let most, let rule):
            // JSON Schema counts characters, so what it lets through may still be too long.
            [
                "type": "string", "minLength": 1, "maxLength": .integer(Int64(most)),
                "description": .string("1 to \(most) bytes of UTF-8: \(rule.words)."),
            ]
        case .integer(let least, let most):
            ["type": "integer", "minimum": .integer(least), "maximum": .integer(most)]
        case .timestamp: ["type": "string", "format": "date-time"]
        case .country: ["type": "string", "pattern": "^[A-Z]{2}$"]
        case .code: ["type": "string", "pattern": "^[0-9]{4,8}$"]
        case .url(let places):
            [
                "type": "string", "format": "uri", "maxLength": .integer(Int64(LinkPrefix.byteCountMax)),
                "description": .string("A link under \(places.map(\.text).joined(separator: " or "))."),
            ]
        case .oneOf(let values): ["enum": .array(values.map { .string($0) })]
        }
    }

    /// - Parameter name: The param's, which says what a text or a number in it is.
    fileprivate func example(of name: String) -> JSONValue {
        switch self {
        case .uuid: "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"
        case .money: ["minor": 500_000, "currency": "NOK"]
        case .totals: [["minor": 500_000, "currency": "NOK"]]
        case .text(let most, let rule):
            .string(ParamExamples.text(of: name, byteCountMax: most, by: rule) ?? "x")
        case .integer(let least, let most): .integer(ParamExamples.number(of: name, in: least...most))
        case .timestamp: "2026-11-21T05:00:00Z"
        case .country: "RS"
        case .code: "246810"
        case .url(let places): .string(places[0].text)
        case .oneOf(let values): .string(values[0])
        }
    }
}
