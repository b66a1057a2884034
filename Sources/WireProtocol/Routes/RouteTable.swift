package import CanonicalJSON
import GateVocabulary

/// Finds the route that a request line names.
package struct RouteTable: Sendable {
    private enum Segment {
        case literal(String)
        case part
        /// The rest of the path, at least one segment.
        case rest
    }

    private struct Row {
        var method: RouteDescription.Method
        var segments: [Segment]
        /// Where each named part stands.
        var places: [String: Int]
        var rest: String?
    }

    /// What a method and a request target lead to.
    package enum Match {
        /// - route: Position in the table.
        case match(route: Int, RouteArguments)
        case notFound
        /// 405: the path exists under these methods, for the `Allow` header (RFC 9110 section 10.2.1).
        case methodNotAllowed(allow: [String])
        /// 400: the target is no URI path and query.
        case malformed(String)
    }

    private let rows: [Row]

    package init(_ routes: [RouteDescription]) {
        rows = routes.map { route in
            var row = Row(method: route.method, segments: [], places: [:], rest: route.rest)
            for (place, segment) in route.path.dropFirst().split(separator: "/").enumerated() {
                guard segment.hasPrefix("{") else {
                    row.segments.append(.literal(String(segment)))
                    continue
                }
                let name = String(segment.dropFirst().dropLast())
                row.places[name] = place
                row.segments.append(name == route.rest ? .rest : .part)
            }
            return row
        }
    }

    /// Reads a request line's method and target.
    ///
    /// - Parameters:
    ///   - method: Case-sensitive, as RFC 9110 section 9.1 has it. `HEAD` stands for `GET`: the
    ///     endpoint leaves the body out (RFC 9110 section 9.3.2).
    ///   - target: Origin form, or absolute form, whose authority says nothing on a Unix socket (RFC 9112
    ///     section 3.2). Still percent-encoded.
    package func match(method: String, target: String) -> Match {
        let split: RequestTarget
        switch RequestTarget.read(target) {
        case .success(let target): split = target
        case .failure(let error): return .malformed(error.message)
        }
        let candidates = routes(matching: split.segments)
        guard !candidates.isEmpty else { return .notFound }
        let asked = RouteDescription.Method(rawValue: method == "HEAD" ? "GET" : method)
        guard let route = candidates.first(where: { rows[$0].method == asked }) else {
            var allow = candidates.map { rows[$0].method.rawValue }
            if allow.contains("GET") { allow.append("HEAD") }
            return .methodNotAllowed(allow: allow.sorted())
        }
        let row = rows[route]
        return .match(
            route: route, RouteArguments(target: split, places: row.places, rest: row.rest))
    }

    /// The routes a path belongs to. A literal path hides a templated one, as in OpenAPI:
    /// `/v1/sends/stream` is never a send.
    private func routes(matching path: [Substring]) -> [Int] {
        var literal: [Int] = []
        var templated: [Int] = []
        for (index, row) in rows.enumerated() {
            guard let isLiteral = Self.matches(row.segments, path) else { continue }
            if isLiteral { literal.append(index) } else { templated.append(index) }
        }
        return literal.isEmpty ? templated : literal
    }

    /// - Returns: `nil` for no match, else whether every segment is literal.
    private static func matches(_ segments: [Segment], _ path: [Substring]) -> Bool? {
        var isLiteral = true
        for (index, segment) in segments.enumerated() {
            guard index < path.count else { return nil }
            switch segment {
            case .literal(let text):
                guard path[index] == text else { return nil }
            case .part:
                // An empty segment is a trailing or doubled slash, never an id.
                guard !path[index].isEmpty else { return nil }
                isLiteral = false
            case .rest:
                return false
            }
        }
        return segments.count == path.count ? isLiteral : nil
    }
}

/// Reads the values in a request target, and notes everything wrong with them.
package struct RouteArguments {
    private let target: RequestTarget
    private let places: [String: Int]
    private let rest: String?
    /// Parameters not yet taken. Encoded names never equal ours unless decoded, so both are decoded here.
    private var parameters: [(name: String, value: String)] = []
    package private(set) var violations: [Violation] = []

    fileprivate init(target: RequestTarget, places: [String: Int], rest: String?) {
        self.target = target
        self.places = places
        self.rest = rest
        guard let query = target.query, !query.isEmpty else { return }
        for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decode(parts[0]),
                let value = parts.count == 2 ? PercentEncoding.decode(parts[1]) : ""
            else {
                violations.append(
                    Violation(.query(String(parts[0])), "expected percent-encoded UTF-8 (RFC 3986)"))
                continue
            }
            parameters.append((name, value))
        }
    }

    /// - Parameter part: One of the route's.
    /// - Returns: `nil` after noting what is wrong with it.
    package mutating func value<Value>(_ part: PathPart<Value>) -> Value? {
        guard let place = places[part.name] else {
            preconditionFailure("the path has no part `\(part.name)`")
        }
        let encoded =
            part.isRest
            ? target.segments[place...].joined(separator: "/")[...] : target.segments[place]
        guard let text = PercentEncoding.decode(encoded) else {
            violations.append(
                Violation(
                    .path(part.name),
                    part.isRest ? "expected \(part.expectation)" : "expected percent-encoded UTF-8 (RFC 3986)"
                )
            )
            return nil
        }
        guard let value = part.read(text) else {
            violations.append(Violation(.path(part.name), "expected \(part.expectation)"))
            return nil
        }
        return value
    }

    /// - Returns: `nil` when it was left out, or after noting what is wrong with it.
    mutating func value<Value>(_ parameter: QueryParameter<Value>) -> Value? {
        let given = parameters.filter { $0.name == parameter.name }
        parameters.removeAll { $0.name == parameter.name }
        guard let first = given.first else { return nil }
        guard given.count == 1 else {
            violations.append(
                Violation(.query(parameter.name), "expected once, found \(given.count) times"))
            return nil
        }
        guard let value = parameter.read(first.value) else {
            violations.append(Violation(.query(parameter.name), "expected \(parameter.expectation)"))
            return nil
        }
        return value
    }

    /// Call last: a misspelled parameter would otherwise be a question answered as if it had not been asked.
    package mutating func refuseOtherParameters() {
        for parameter in parameters {
            violations.append(Violation(.query(parameter.name), "the route knows no parameter of this name"))
        }
    }
}
