import BundleModel
import CanonicalJSON
import GateSteps
import GateVocabulary
import WireProtocol

/// One route, declared once: method and path, grants, body, answers and action.
///
/// Matching, dispatch, the OpenAPI document and the handbook's table of routes all follow from ``all``.
struct Route: Sendable {
    let description: RouteDescription
    /// Whether gate 2 decides about a caller without the route's grant, with an entry, like about any other send.
    let grantIsDecided: Bool
    private let lead: Lead

    private enum Lead: Sendable {
        /// The same for every process that can connect.
        case open(OpenRouteAction)
        case asked(@Sendable (inout RouteArguments) -> Handler?)
    }

    /// The action of a request with a readable target, once its caller is known to be permitted.
    typealias Handler = @Sendable (Request) throws -> RouteAction

    /// The values that a handler is given besides those in the target.
    struct Request: Sendable {
        var caller: CallerName
        var grants: GrantSet
        var body: [UInt8]
    }

    /// The same with its query and body read.
    struct Reading<Query: RouteQuery, Body: Sendable>: Sendable {
        var caller: CallerName
        var grants: GrantSet
        var query: Query
        var body: Body
    }

    /// A route of callers that takes a query and a body.
    ///
    /// - Parameters:
    ///   - name: In OpenAPI the `operationId`.
    ///   - path: With the names of `parts` in braces.
    ///   - grants: Of which a caller needs one; `nil` where any caller may ask.
    ///   - headers: Header fields of its own, for the reference.
    ///   - problems: Only its own (``RouteDescription/ownProblems``).
    ///   - handler: Pure: it says what is to be done. What it throws is answered as a problem.
    init<each Part: Sendable, Query: RouteQuery, Body: Sendable>(
        _ name: String, _ method: RouteDescription.Method, _ path: String,
        _ parts: repeat PathPart<each Part>, tag: String, _ summary: String, means: String = "",
        grants: [Grant]?, also conditions: [ConditionalGrant] = [], grantIsDecided: Bool = false,
        query: Query.Type, headers: [Parameter] = [], body: BodyReading<Body>,
        answers: [RouteDescription.Response], problems: [ProblemName] = [],
        handler: @escaping @Sendable (Reading<Query, Body>, repeat each Part) throws -> RouteAction
    ) {
        let (parameters, rest) = Self.parameters(of: repeat each parts)
        description = RouteDescription(
            name: name, method: method, path: path, parts: parameters, rest: rest, tag: tag,
            summary: summary, means: means, permission: grants.map { .oneOf($0) } ?? .anyCaller,
            conditions: conditions, parameters: Query.parameters + headers, body: body.described,
            answers: answers, ownProblems: problems)
        self.grantIsDecided = grantIsDecided
        lead = .asked { arguments in
            // All are read before the first that is missing ends it, so that every violation is told.
            let values = (repeat arguments.value(each parts))
            let query = Query(&arguments)
            arguments.refuseOtherParameters()
            guard arguments.violations.isEmpty else { return nil }
            return { request in
                let reading = Reading(
                    caller: request.caller, grants: request.grants, query: query,
                    body: try body.read(request.body))
                return try handler(reading, repeat (each values)!)
            }
        }
    }

    /// A route of callers that takes a body.
    init<each Part: Sendable, Body: Sendable>(
        _ name: String, _ method: RouteDescription.Method, _ path: String,
        _ parts: repeat PathPart<each Part>, tag: String, _ summary: String, means: String = "",
        grants: [Grant]?, also conditions: [ConditionalGrant] = [], grantIsDecided: Bool = false,
        headers: [Parameter] = [], body: BodyReading<Body>, answers: [RouteDescription.Response],
        problems: [ProblemName] = [],
        handler: @escaping @Sendable (Reading<NoQuery, Body>, repeat each Part) throws -> RouteAction
    ) {
        self.init(
            name, method, path, repeat each parts, tag: tag, summary, means: means, grants: grants,
            also: conditions, grantIsDecided: grantIsDecided, query: NoQuery.self, headers: headers,
            body: body, answers: answers, problems: problems, handler: handler)
    }

    /// A route of callers that takes a query.
    init<each Part: Sendable, Query: RouteQuery>(
        _ name: String, _ method: RouteDescription.Method, _ path: String,
        _ parts: repeat PathPart<each Part>, tag: String, _ summary: String, means: String = "",
        grants: [Grant]?, also conditions: [ConditionalGrant] = [], query: Query.Type,
        answers: [RouteDescription.Response], problems: [ProblemName] = [],
        handler: @escaping @Sendable (Reading<Query, Void>, repeat each Part) throws -> RouteAction
    ) {
        self.init(
            name, method, path, repeat each parts, tag: tag, summary, means: means, grants: grants,
            also: conditions, query: query, body: .none, answers: answers, problems: problems,
            handler: handler)
    }

    /// A route of callers that takes neither body nor query.
    init<each Part: Sendable>(
        _ name: String, _ method: RouteDescription.Method, _ path: String,
        _ parts: repeat PathPart<each Part>, tag: String, _ summary: String, means: String = "",
        grants: [Grant]?, also conditions: [ConditionalGrant] = [], answers: [RouteDescription.Response],
        problems: [ProblemName] = [],
        handler: @escaping @Sendable (Reading<NoQuery, Void>, repeat each Part) throws -> RouteAction
    ) {
        self.init(
            name, method, path, repeat each parts, tag: tag, summary, means: means, grants: grants,
            also: conditions, query: NoQuery.self, body: .none, answers: answers, problems: problems,
            handler: handler)
    }

    private static func parameters<each Part: Sendable>(
        of parts: repeat PathPart<each Part>
    ) -> (parameters: [Parameter], rest: String?) {
        var parameters: [Parameter] = []
        var rest: String?
        for part in repeat each parts {
            parameters.append(part.parameter)
            if part.isRest { rest = part.name }
        }
        return (parameters, rest)
    }

    /// A route that any process may ask for, without values in its target.
    init(
        open name: String, _ path: String, tag: String, _ summary: String,
        answers: [RouteDescription.Response], action: OpenRouteAction
    ) {
        description = RouteDescription(
            name: name, method: .get, path: path, parts: [], rest: nil, tag: tag, summary: summary, means: "",
            permission: .anybody, conditions: [], parameters: [], body: .none, answers: answers,
            ownProblems: [])
        grantIsDecided = false
        lead = .open(action)
    }

    /// Reads the values in a target.
    ///
    /// - Returns: What is wrong with them; or the action of an open route; or what a request of a caller does.
    func read(_ arguments: RouteArguments) -> Target {
        var arguments = arguments
        switch lead {
        case .open(let action):
            arguments.refuseOtherParameters()
            return arguments.violations.isEmpty ? .open(action) : .invalid(arguments.violations)
        case .asked(let read):
            return read(&arguments).map { .asked($0) } ?? .invalid(arguments.violations)
        }
    }

    /// Whether a caller on a listener in shadow may ask for it: a send, an explanation, or what only looks something up.
    var isAsked: Bool {
        description.method == .get
            || [Self.postSend.description.name, "streamSends", "explainSend"].contains(description.name)
    }

    enum Target {
        case open(OpenRouteAction)
        case asked(Handler)
        case invalid([Violation])
    }
}

/// The shape of a route's body, and how it is read.
struct BodyReading<Value: Sendable>: Sendable {
    let described: RouteDescription.Body
    let read: @Sendable ([UInt8]) throws(BodyError) -> Value
}

extension BodyReading where Value == Void {
    /// The request has none.
    static var none: Self { Self(described: .none) { _ throws(BodyError) in } }

    /// One document a line, each of which the endpoint makes a request of its own.
    static func lines(of shape: Shape, example: (name: String, value: JSONValue)) -> Self {
        Self(described: .lines(.init(shape: shape, examples: [example]))) { _ throws(BodyError) in }
    }
}

extension BodyReading where Value == [UInt8] {
    /// A body whose handler reads it, because it needs the bytes.
    static func unread<Body: WireBody>(
        _: Body.Type, _ name: String, adding more: (name: String, value: JSONValue)...
    ) -> Self {
        Self(described: .json(.init(shape: Body.shape, examples: [(name, Body.example)] + more))) {
            bytes throws(BodyError) in bytes
        }
    }
}

extension BodyReading where Value: WireBody {
    /// - Parameters:
    ///   - name: Of the body's own example.
    ///   - more: Further examples.
    static func json(
        _: Value.Type, _ name: String, adding more: (name: String, value: JSONValue)...
    ) -> Self {
        Self(described: .json(.init(shape: Value.shape, examples: [(name, Value.example)] + more))) {
            bytes throws(BodyError) in try Value.read(bytes).get()
        }
    }

    /// A body that may be left out.
    static func optional(
        _: Value.Type, _ name: String, adding more: (name: String, value: JSONValue)...
    ) -> Self {
        Self(described: .optionalJSON(.init(shape: Value.shape, examples: [(name, Value.example)] + more))) {
            bytes throws(BodyError) in try Value.readOptional(bytes).get()
        }
    }
}

extension BodyReading where Value == EmptyBody {
    /// Nothing, or an empty object.
    static var empty: Self { .optional(EmptyBody.self, "Nothing") }
}
