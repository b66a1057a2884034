import CanonicalJSON
import GateVocabulary

/// One route as the reference tells it.
struct Operation {
    struct Request {
        var shape: Shape
        var examples: [(name: String, value: JSONValue)]
    }

    struct Response {
        enum Content {
            case none
            case json(Shape, example: JSONObject)
            /// JSON under `application/problem+json`.
            case refusal(Shape, example: JSONObject)
            /// One document per line; the shape is a line's.
            case lines(Shape)
            case text(example: String)
            case bytes
        }

        var status: Int
        var means: String
        var content: Content
    }

    var template: RouteTemplate
    var tag: String
    var summary: String
    /// More than fits the summary; empty when nothing is.
    var means: String
    var request: Request?
    var query: [Parameter]
    /// What it answers when it did what was asked, and refusals that are decisions.
    var answers: [Response]
    /// Problems only this route has; those of every route are added by ``problems``.
    var ownProblems: [ProblemName]

    init(
        _ template: RouteTemplate, _ tag: String, _ summary: String, means: String = "",
        request: Request? = nil, query: [Parameter] = [], answers: [Response],
        problems: [ProblemName] = []
    ) {
        self.template = template
        self.tag = tag
        self.summary = summary
        self.means = means
        self.request = request
        self.query = query
        self.answers = answers
        ownProblems = problems
    }

    /// Every problem the route can answer with, by status.
    var problems: [(status: Int, names: [ProblemName])] {
        var names: [ProblemName] = [
            .malformedRequest, .requestTimeout, .bodyTooLarge, .tooManyInFlight, .headersTooLarge, .draining,
        ]
        switch template.permission {
        case .anybody: break
        case .anyCaller: names += [.unknownPeer, .unavailable]
        case .oneOf: names += [.unknownPeer, .unavailable, .grantMissing]
        }
        if template.bodyKind != .none { names += [.malformedJSON, .unsupportedMediaType, .invalidRequest] }
        // Any query is refused where none is known, so that a misspelled one is not silently ignored.
        names.append(.invalidRequest)
        if template.method != "GET" { names += [.trailBehind, .clockWentBack, .clockJumped] }
        names += ownProblems

        let known = ProblemName.allCases.filter { names.contains($0) }
        return Set(known.map(\.status)).sorted().map { status in
            (status, known.filter { $0.status == status })
        }
    }
}

/// One query or header parameter.
struct Parameter {
    var name: String
    var place: String
    var schema: JSONObject
    var means: String

    static func query(_ name: String, _ shape: Shape, default value: JSONValue? = nil, _ means: String)
        -> Parameter
    {
        var components = SchemaComponents()
        var schema = components.schema(of: shape)
        if let value { schema["default"] = value }
        return Parameter(name: name, place: "query", schema: schema, means: means)
    }

    var json: JSONObject {
        [
            "description": .string(means), "in": .string(place), "name": .string(name),
            "required": .boolean(place == "path"), "schema": .object(schema),
        ]
    }

    /// What the parts of a path must be, by their names in the templates.
    static func path(_ name: String) -> Parameter {
        let schema: JSONObject
        let means: String
        switch name {
        case "send_id":
            (schema, means) = (TextRule.uuid.schema, "The gateway's id for a send.")
        case "key_id":
            (schema, means) = (TextRule.keyID.schema, "A device key's id.")
        case "tile":
            schema = ["maxLength": 64, "minLength": 5, "pattern": .string(TilePath.pattern)]
            means =
                "A file of the C2SP `tlog-tiles` layout, e.g. `0/x001/234.p/17` or `entries/000`; its slashes may stand as they are or encoded."
        case "user": (schema, means) = (TextRule.identifier.schema, "The caller's id for a person.")
        case "device": (schema, means) = (TextRule.identifier.schema, "A device of the person.")
        case "address":
            (schema, means) = (
                TextRule.identifier.schema, "A phone number or e-mail address of the person, by its id."
            )
        case "consent":
            (schema, means) = (TextRule.identifier.schema, "The reporter's id of a consent record.")
        case "scope":
            (schema, means) = (TextRule.identifier.schema, "A category, or a type that can be muted alone.")
        case "type": (schema, means) = (TextRule.identifier.schema, "A notification type.")
        case "key":
            (schema, means) = (TextRule.identifier.schema, "A key of the keyring, or a device key's id.")
        default: preconditionFailure("no route has a part `\(name)`")
        }
        var typed = schema
        typed["type"] = "string"
        return Parameter(name: name, place: "path", schema: typed, means: means)
    }
}

extension Operation.Request {
    static func body<Body: WireBody>(_: Body.Type, _ name: String) -> Operation.Request {
        Operation.Request(shape: Body.shape, examples: [(name, Body.example)])
    }

    func adding(_ name: String, _ value: JSONValue) -> Operation.Request {
        Operation.Request(shape: shape, examples: examples + [(name, value)])
    }
}

extension Operation.Response {
    static func ok(_ means: String, _ shape: Shape, _ example: JSONObject, status: Int = 200)
        -> Operation.Response
    {
        Operation.Response(status: status, means: means, content: .json(shape, example: example))
    }

    static let recorded = Operation.Response.ok(
        "Done, durably, and recorded in the trail.", RecordedAnswer.shape, Samples.recorded.json)
}
