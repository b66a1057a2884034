package import CanonicalJSON
import GateRecords
import GateVocabulary

/// The reference of the socket: OpenAPI 3.1, printed from the shapes the parser checks and the routes the
/// matcher knows, so that it cannot say something else.
package enum OpenAPIDocument {
    /// Of the interface, not of the gateway: rises with what a client could notice.
    package static let version = "1.0.0"

    /// The same on every machine.
    package static func json(of routes: [RouteDescription]) -> JSONObject {
        var components = SchemaComponents()
        var paths = JSONObject()
        for route in routes {
            var item = paths[route.path]?.objectValue ?? [:]
            item[route.method.rawValue.lowercased()] = .object(route.json(&components))
            paths[route.path] = .object(item)
        }
        return [
            "openapi": "3.1.0",
            "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
            "info": [
                "title": "sendgate",
                "version": .string(version),
                "summary": "A compliance gateway in front of every notification.",
                "description":
                    "HTTP/1.1 and JSON over a Unix stream socket. There is no key or token to send: the kernel says which process is calling, and configuration says what it may do. `x-sendgate-grant` lists the grants of which a caller needs one; `x-sendgate-caller` says who may call at all. JSON is read strictly: UTF-8, no key twice, no unknown member, integers only (RFC 8785's range), at most 64 KiB.",
            ],
            "servers": [
                [
                    "url": "http://localhost",
                    "description":
                        "Any authority; the connection is the Unix socket, e.g. `curl --unix-socket gate.sock http://localhost/v1/types`.",
                ]
            ],
            "tags": .array(tags.map { ["name": .string($0.name), "description": .string($0.means)] }),
            "paths": .object(paths),
            "webhooks": .object(DeliveryWebhook.document),
            "components": [
                "examples": .object(problemExamples),
                "responses": .object(JSONObject(components.responses.map { ($0.key, $0.value) })),
                "schemas": .object(JSONObject(components.schemas.map { ($0.key, $0.value) })),
            ],
        ]
    }

    private static var problemExamples: JSONObject {
        JSONObject(
            ProblemName.allCases.map { name in
                (
                    name.rawValue,
                    ["summary": .string(name.title), "value": .object(Samples.problem(name).json)]
                )
            })
    }

    private static let tags: [(name: String, means: String)] = [
        ("Sends", "Asking for notifications, and what became of them."),
        ("Types", "What can be sent."),
        ("Recipients", "People, their devices and addresses."),
        ("Device keys", "Public keys that sensitive payloads are sealed to."),
        ("Consents", "The ledger of what people agreed to."),
        ("Preferences", "What people chose."),
        ("Keys", "The security team's verbs on the gateway's own keys."),
        ("Policy", "The rules in force."),
        ("Trail", "The evidence, read-only."),
        ("Operations", "Whether the gateway is well."),
    ]
}

extension RouteDescription {
    fileprivate func json(_ components: inout SchemaComponents) -> JSONObject {
        var json: JSONObject = [
            "operationId": .string(name), "summary": .string(summary), "tags": [.string(tag)],
            "responses": .object(responses(&components)),
        ]
        if !means.isEmpty { json["description"] = .string(means) }

        let all = parts + parameters
        if !all.isEmpty { json["parameters"] = .array(all.map { .object($0.json) }) }
        switch body {
        case .none: break
        case .lines(let content): json["requestBody"] = .object(Self.lines(content, &components))
        case .json(let content), .optionalJSON(let content):
            json["requestBody"] = .object(document(content, &components))
        }

        switch permission {
        case .anybody:
            json["x-sendgate-caller"] = "anybody"
            json["x-sendgate-grant"] = []
        case .anyCaller:
            json["x-sendgate-caller"] = "known"
            json["x-sendgate-grant"] = []
        case .oneOf(let grants):
            json["x-sendgate-caller"] = "known"
            json["x-sendgate-grant"] = .array(grants.map { .string($0.rawValue) })
        }
        if !conditions.isEmpty {
            json["x-sendgate-grant-also"] = .array(
                conditions.map { ["grant": .string($0.grant.rawValue), "when": .string($0.when)] })
        }
        return json
    }

    private static func lines(_ content: Body.Content, _ components: inout SchemaComponents) -> JSONObject {
        let line = CanonicalJSON.write(content.examples[0].value)
        // No line is a stream too: nothing was asked, and nothing is answered.
        return [
            "required": false,
            "content": [
                MediaType.lines: [
                    "schema": [
                        "type": "string", "maxLength": .integer(Int64(WireLimits.batchByteCountMax)),
                    ],
                    "x-sendgate-line": .object(components.schema(of: content.shape)),
                    "example": .string(String(decoding: line, as: UTF8.self) + "\n"),
                ]
            ],
        ]
    }

    private func document(_ content: Body.Content, _ components: inout SchemaComponents) -> JSONObject {
        var examples = JSONObject()
        for example in content.examples {
            examples[Self.key(example.name)] = ["summary": .string(example.name), "value": example.value]
        }
        return [
            "required": .boolean(!body.mayBeLeftOut),
            "content": [
                MediaType.json: [
                    "schema": .object(components.schema(of: content.shape)), "examples": .object(examples),
                ]
            ],
        ]
    }

    /// OpenAPI wants a name of letters, digits, `.`, `-` and `_`.
    private static func key(_ name: String) -> String {
        String(
            decoding: name.lowercased().utf8.map { $0.isAlphanumeric ? $0 : UInt8(ascii: "_") }, as: UTF8.self
        )
    }

    private func responses(_ components: inout SchemaComponents) -> JSONObject {
        var responses = JSONObject()
        for answer in answers {
            var response: JSONObject = ["description": .string(answer.means)]
            switch answer.content {
            case .json(let shape, let example):
                response["content"] = Self.content(
                    MediaType.json, components.schema(of: shape), .object(example))
            case .refusal(let shape, let example):
                response["content"] = Self.content(
                    MediaType.problem, components.schema(of: shape), .object(example))
            case .lines(let shape):
                response["content"] = [
                    MediaType.lines: [
                        "schema": ["type": "string"],
                        "x-sendgate-line": .object(components.schema(of: shape)),
                    ]
                ]
            case .text(let example):
                response["content"] = Self.content("text/plain", ["type": "string"], .string(example))
            case .bytes:
                response["content"] = [MediaType.bytes: [:]]
            }
            responses[String(answer.status)] = .object(response)
        }
        for (status, names) in problems {
            if var documented = responses[String(status)]?.objectValue {
                // A status that is an answer here can be a problem too; both are told.
                guard !answers.contains(where: { $0.status == status && $0.isRefusal }) else { continue }
                var content = documented["content"]?.objectValue ?? [:]
                content[MediaType.problem] = Self.problem(names, &components)
                documented["content"] = .object(content)
                responses[String(status)] = .object(documented)
                continue
            }
            responses[String(status)] = Self.shared(status, names, &components)
        }
        return responses
    }

    /// The answer for these problems, written once and referred to.
    private static func shared(
        _ status: Int, _ names: [ProblemName], _ components: inout SchemaComponents
    ) -> JSONValue {
        let key = ([String(status)] + names.map(\.rawValue)).joined(separator: ".")
        var response: JSONObject = [
            "content": [MediaType.problem: problem(names, &components)],
            "description": .string(names.map { "`\($0.rawValue)`" }.joined(separator: ", ")),
        ]
        if names.contains(where: \.isTemporary) {
            response["headers"] = [
                "Retry-After": [
                    "description": "Seconds after which to try again.",
                    "schema": ["type": "integer", "minimum": 0, "maximum": 86_400],
                ]
            ]
        }
        components.responses[key] = .object(response)
        return ["$ref": .string("#/components/responses/\(key)")]
    }

    private static func content(_ mediaType: String, _ schema: JSONObject, _ example: JSONValue) -> JSONValue
    {
        var content = JSONObject()
        content[mediaType] = ["schema": .object(schema), "example": example]
        return .object(content)
    }

    private static func problem(_ names: [ProblemName], _ components: inout SchemaComponents) -> JSONValue {
        var examples = JSONObject()
        for name in names {
            examples[name.rawValue] = ["$ref": .string("#/components/examples/\(name.rawValue)")]
        }
        return ["schema": .object(components.schema(of: Problem.shownShape)), "examples": .object(examples)]
    }
}
