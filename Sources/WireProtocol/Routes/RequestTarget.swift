import GateVocabulary

/// A request target taken apart: segments and query still encoded, for the route to decode what it names.
struct RequestTarget {
    struct Malformed: Error, Hashable {
        var message: String
    }

    /// Without the leading `/`; an empty path has one empty segment.
    var segments: [Substring]
    /// `nil` without a `?`.
    var query: Substring?

    static func read(_ target: String) -> Result<RequestTarget, Malformed> {
        guard target.utf8.count <= WireLimits.targetByteCountMax else {
            return .failure(
                Malformed(message: "the request target is longer than \(WireLimits.targetByteCountMax) bytes")
            )
        }
        for byte in target.utf8 where !isAllowed(byte) {
            return .failure(
                Malformed(
                    message:
                        "the request target holds a byte that must be percent-encoded (RFC 3986): 0x\(hexadecimal(byte))"
                ))
        }
        // On bytes throughout: every one of them is ASCII by now, and Swift's characters cost a look-up each.
        var rest = target.utf8[...]
        if rest.first != UInt8(ascii: "/") {
            // Absolute form (RFC 9112 section 3.2.2): a server must accept it, and here no authority differs.
            guard rest.starts(with: "http://".utf8) else {
                return .failure(Malformed(message: "the request target does not start with `/`"))
            }
            rest = rest.dropFirst(7)
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else {
                return .failure(Malformed(message: "the request target has no path"))
            }
            rest = rest[slash...]
        }
        var query: Substring?
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = Substring(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        let segments = rest.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0) }
        return .success(RequestTarget(segments: segments, query: query))
    }

    /// `pchar`, `/` and `?` of RFC 3986, whose percent-encoding is looked at later.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte.isOneOf("-._~!$&'()*+,;=:@%/?")
    }

    private static func hexadecimal(_ byte: UInt8) -> String { Hexadecimal.encode([byte]) }
}

/// RFC 3986 section 2.1.
enum PercentEncoding {
    /// - Returns: `nil` when a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Every template's path in segments, split once.
enum RouteTable {
    private enum Segment {
        case literal(String)
        case part
        /// The rest of the path, at least one segment.
        case rest
    }

    private struct Row {
        var template: RouteTemplate
        var segments: [Segment]
        /// Where each named part stands.
        var places: [String: Int]
    }

    /// In the order of the templates.
    private static let rows: [Row] = RouteTemplate.allCases.map { template in
        var row = Row(template: template, segments: [], places: [:])
        for (place, segment) in template.path.dropFirst().split(separator: "/").enumerated() {
            guard segment.hasPrefix("{") else {
                row.segments.append(.literal(String(segment)))
                continue
            }
            let name = String(segment.dropFirst().dropLast())
            row.places[name] = place
            row.segments.append(name == "tile" ? .rest : .part)
        }
        return row
    }

    private static let rowOfTemplate: [RouteTemplate: Row] = Dictionary(
        uniqueKeysWithValues: rows.map { ($0.template, $0) })

    /// The templates a path belongs to. A literal path hides a templated one, as in OpenAPI:
    /// `/v1/sends/stream` is never a send.
    static func templates(matching path: [Substring]) -> [RouteTemplate] {
        var literal: [RouteTemplate] = []
        var templated: [RouteTemplate] = []
        for row in rows {
            guard let isLiteral = matches(row.segments, path) else { continue }
            if isLiteral { literal.append(row.template) } else { templated.append(row.template) }
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

    /// The encoded text of a named part of the template's path.
    static func part(_ name: String, of template: RouteTemplate, in path: [Substring]) -> Substring {
        guard let index = rowOfTemplate[template]?.places[name] else {
            preconditionFailure("the route \(template) has no part `\(name)`")
        }
        guard name == "tile" else { return path[index] }
        return path[index...].joined(separator: "/")[...]
    }
}

/// Reads a route's parts and parameters, and notes everything wrong with them.
struct RouteArguments {
    private let template: RouteTemplate
    private let target: RequestTarget
    /// Parameters not yet taken. Encoded names never equal ours unless decoded, so both are decoded here.
    private var parameters: [(name: String, value: String)] = []
    private(set) var violations: [Violation] = []

    init(template: RouteTemplate, target: RequestTarget) {
        self.template = template
        self.target = target
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

    // MARK: Parts of the path

    mutating func identifier(_ name: String) -> String? { part(name, .identifier) }

    mutating func sendID(_ name: String) -> SendID? { part(name, .uuid).flatMap { SendID(uuidText: $0) } }

    mutating func keyID(_ name: String) -> KeyID? { part(name, .keyID).flatMap { KeyID(hexadecimal: $0) } }

    mutating func destination(_ name: String) -> (UserID, DestinationID)? {
        let user = identifier("user")
        let destination = identifier(name)
        guard let user, let destination else { return nil }
        return (UserID(user), DestinationID(destination))
    }

    mutating func tile(_ name: String) -> TilePath? {
        let encoded = RouteTable.part(name, of: template, in: target.segments)
        if let path = PercentEncoding.decode(encoded).flatMap({ TilePath($0) }) { return path }
        violations.append(
            Violation(
                .path(name),
                "expected a tile such as `0/x001/234`, `0/000.p/5` or `entries/000` (C2SP tlog-tiles)"))
        return nil
    }

    private mutating func part(_ name: String, _ rule: TextRule) -> String? {
        guard
            let text = PercentEncoding.decode(RouteTable.part(name, of: template, in: target.segments))
        else {
            violations.append(Violation(.path(name), "expected percent-encoded UTF-8 (RFC 3986)"))
            return nil
        }
        guard rule.accepts(text) else {
            violations.append(Violation(.path(name), "expected \(rule.expectation)"))
            return nil
        }
        return text
    }

    // MARK: Parameters

    mutating func integer(_ name: String, in range: ClosedRange<Int64>) -> Int64? {
        parameter(name, "an integer from \(range.lowerBound) to \(range.upperBound)") { text in
            // One spelling: no sign, no leading zero.
            guard text.utf8.allSatisfy(\.isDigit),
                text.utf8.count == 1 || text.utf8.first != UInt8(ascii: "0"),
                let integer = Int64(text), range.contains(integer)
            else { return nil }
            return integer
        }
    }

    mutating func sendIDParameter(_ name: String) -> SendID? {
        parameter(name, TextRule.uuid.expectation) { text in
            TextRule.uuid.accepts(text) ? SendID(uuidText: text) : nil
        }
    }

    mutating func instant(_ name: String) -> Instant? {
        parameter(
            name, TextRule.instant.expectation + ", with `+` as `%2B` where a client would make it a space"
        ) {
            Instant(rfc3339: $0)
        }
    }

    private mutating func parameter<Value>(
        _ name: String, _ expectation: String, _ read: (String) -> Value?
    ) -> Value? {
        let given = parameters.filter { $0.name == name }
        parameters.removeAll { $0.name == name }
        guard let first = given.first else { return nil }
        guard given.count == 1 else {
            violations.append(Violation(.query(name), "expected once, found \(given.count) times"))
            return nil
        }
        guard let value = read(first.value) else {
            violations.append(Violation(.query(name), "expected \(expectation)"))
            return nil
        }
        return value
    }

    /// Call last: a misspelled parameter would otherwise be a question answered as if it had not been asked.
    mutating func refuseOtherParameters() {
        for parameter in parameters {
            violations.append(Violation(.query(parameter.name), "the route knows no parameter of this name"))
        }
    }
}
