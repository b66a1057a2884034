package import CanonicalJSON
package import GateRecords
import GateVocabulary

/// A route as its callers know it: how it is asked for, what it needs, what it answers.
///
/// The OpenAPI document and the handbook's table of routes are printed from these, and the matcher knows no others.
package struct RouteDescription: Sendable {
    /// The method of the request.
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case delete = "DELETE"
    }

    /// What the request's body is.
    package enum Body: Sendable {
        case none
        case json(Content)
        /// May be left out; an empty object says the same.
        case optionalJSON(Content)
        /// One JSON object per line.
        case lines(Content)

        /// What a body, or one line of it, must be, with examples.
        package struct Content: Sendable {
            /// Of the body, or of a line.
            package var shape: Shape
            /// At least one.
            package var examples: [(name: String, value: JSONValue)]

            package init(shape: Shape, examples: [(name: String, value: JSONValue)]) {
                self.shape = shape
                self.examples = examples
            }
        }

        package var content: Content? {
            switch self {
            case .none: nil
            case .json(let content), .optionalJSON(let content), .lines(let content): content
            }
        }

        /// The media type a body must have.
        package var mediaType: String? {
            switch self {
            case .none: nil
            case .json, .optionalJSON: MediaType.json
            case .lines: MediaType.lines
            }
        }

        package var mayBeLeftOut: Bool {
            switch self {
            case .optionalJSON: true
            case .none, .json, .lines: false
            }
        }
    }

    /// One answer that is not a problem, or that is a decision.
    package struct Response: Sendable {
        /// The media type of the response, and what is in it.
        package enum Content: Sendable {
            case json(Shape, example: JSONObject)
            /// JSON under `application/problem+json`.
            case refusal(Shape, example: JSONObject)
            /// One document per line; the shape is a line's.
            case lines(Shape)
            case text(example: String)
            case bytes
        }

        package var status: Int
        package var means: String
        package var content: Content

        package init(status: Int, means: String, content: Content) {
            self.status = status
            self.means = means
            self.content = content
        }
    }

    /// In OpenAPI the `operationId`.
    package var name: String
    package var method: Method
    /// As OpenAPI writes it, with ``parts`` in braces.
    package var path: String
    /// In their order in ``path``.
    package var parts: [Parameter]
    /// Name of the part that spans all remaining segments, where there is one.
    package var rest: String?
    /// One of ``OpenAPIDocument/tags``.
    package var tag: String
    package var summary: String
    /// More than fits the summary; empty when nothing is.
    package var means: String
    package var permission: Permission
    package var conditions: [ConditionalGrant]
    /// Query and header parameters.
    package var parameters: [Parameter]
    package var body: Body
    package var answers: [Response]
    /// Problems only this route has; those that follow from what it is are added by ``problems``.
    package var ownProblems: [ProblemName]

    package init(
        name: String, method: Method, path: String, parts: [Parameter], rest: String?, tag: String,
        summary: String, means: String, permission: Permission, conditions: [ConditionalGrant],
        parameters: [Parameter], body: Body, answers: [Response], ownProblems: [ProblemName]
    ) {
        let inPath = path.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
        precondition(
            inPath.elementsEqual(parts.map { $0.name[...] }), "\(name): the parts of \(path) are \(parts)")
        self.name = name
        self.method = method
        self.path = path
        self.parts = parts
        self.rest = rest
        self.tag = tag
        self.summary = summary
        self.means = means
        self.permission = permission
        self.conditions = conditions
        self.parameters = parameters
        self.body = body
        self.answers = answers
        self.ownProblems = ownProblems
    }

    /// Every problem the route can answer with, by status.
    package var problems: [(status: Int, names: [ProblemName])] {
        var names: [ProblemName] = [
            .malformedRequest, .requestTimeout, .bodyTooLarge, .tooManyInFlight, .headersTooLarge, .draining,
        ]
        switch permission {
        case .anybody: break
        case .anyCaller: names += [.unknownPeer, .unavailable]
        case .oneOf: names += [.unknownPeer, .unavailable, .grantMissing]
        }
        if body.content != nil { names += [.malformedJSON, .unsupportedMediaType, .invalidRequest] }
        // Any query is refused where none is known, so that a misspelled one is not silently ignored.
        names.append(.invalidRequest)
        if method != .get { names += [.otherListener, .trailBehind, .clockWentBack, .clockJumped] }
        names += ownProblems

        let known = ProblemName.allCases.filter { names.contains($0) }
        return Set(known.map(\.status)).sorted().map { status in
            (status, known.filter { $0.status == status })
        }
    }
}

/// A parameter of the path, the query or the header section, as OpenAPI describes it.
package struct Parameter: Sendable {
    /// The part of the request that has the parameter.
    package enum Place: String, Sendable {
        case path
        case query
        case header
    }

    package var name: String
    package var place: Place
    package var schema: JSONObject
    package var means: String

    package init(name: String, place: Place, schema: JSONObject, means: String) {
        self.name = name
        self.place = place
        self.schema = schema
        self.means = means
    }

    var json: JSONObject {
        [
            "description": .string(means), "in": .string(place.rawValue), "name": .string(name),
            "required": .boolean(place == .path), "schema": .object(schema),
        ]
    }
}

extension RouteDescription.Response {
    package static func ok<Answer: ShownRecord>(_ means: String, _ example: Answer, status: Int = 200) -> Self
    {
        Self(status: status, means: means, content: .json(Answer.shownShape, example: example.json))
    }

    /// The answer of every route that only records.
    package static let recorded = ok("Done, durably, and recorded in the trail.", Samples.recorded)

    var isRefusal: Bool {
        if case .refusal = content { true } else { false }
    }
}
