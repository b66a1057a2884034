import GatewayPipeline
import NIOHTTP1
import WireProtocol

/// What a request's head says about how to read the rest and how to answer. Made by ``init(_:limits:)``,
/// which is pure, so every hostile head can be tried without a socket.
struct RequestFraming: Equatable {
    enum Body: Equatable {
        case none
        case counted(Int)
        case chunked
    }

    enum Route: Equatable {
        case single
        /// A stream whose lines are handled after the last of them has come.
        case batch
        /// A stream whose lines are handled as they come.
        case live
    }

    var method: String
    /// In origin form, or `*`.
    var target: String
    /// Names in lower case.
    var headers: [(name: String, value: String)]
    var body: Body
    var route: Route
    var isHead: Bool
    var isHTTP10: Bool
    /// The client, or its protocol version, wants the connection closed after this request.
    var closes: Bool
    var expectsContinue: Bool

    static func == (left: RequestFraming, right: RequestFraming) -> Bool {
        left.method == right.method && left.target == right.target && left.body == right.body
            && left.route == right.route && left.isHead == right.isHead && left.isHTTP10 == right.isHTTP10
            && left.closes == right.closes && left.expectsContinue == right.expectsContinue
            && left.headers.elementsEqual(right.headers) { $0 == $1 }
    }

    /// The bytes of the body this request may have.
    func bodyByteCountMax(_ limits: EndpointLimits) -> Int {
        route == .single ? limits.requestByteCountMax : limits.batchByteCountMax
    }

    /// Routes whose bodies are lines, each a request of its own.
    static let streamTargets = ["/v1/sends/stream", "/v1/import"]

    /// Refuses every head that two readers might understand differently: a smuggled request is a send
    /// no client asked for.
    init(_ head: HTTPRequestHead, limits: EndpointLimits) throws(RefusedHead) {
        guard head.version == .http1_1 || head.version == .http1_0 else { throw .malformed }
        isHTTP10 = head.version == .http1_0
        method = head.method.rawValue
        // A CONNECT would end HTTP here.
        guard head.method != .CONNECT,
            let target = head.uri == "*" ? head.uri : RequestTarget.originForm(of: head.uri)
        else { throw .malformed }
        self.target = target

        var byteCount = method.utf8.count + head.uri.utf8.count + 12
        var lengths: [String] = []
        var codings: [String] = []
        var hostCount = 0
        var wantsClose = false
        var isLive = false
        var upgrades = false
        var isLines = true
        var isEncoded = false
        expectsContinue = false
        headers = []
        headers.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            // Name, colon, space, value, CRLF.
            byteCount += name.utf8.count + value.utf8.count + 4
            // A line folded by white space (RFC 9112 section 5.2), or a bare CR in a value.
            if value.utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) { throw .malformed }
            let name = Self.lowercased(name)
            switch name {
            case "content-length": lengths.append(value)
            case "transfer-encoding": codings.append(value)
            case "host": hostCount += 1
            case "connection":
                for option in value.split(separator: ",") {
                    switch Self.lowercased(Self.trimmed(option)) {
                    case "close": wantsClose = true
                    case "upgrade": upgrades = true
                    default: break
                    }
                }
            case "upgrade": upgrades = true
            // A body of another media type is no stream, whatever its target; the handler answers what was expected.
            case "content-type":
                isLines = Self.lowercased(Self.trimmed(value[...])).hasPrefix("application/x-ndjson")
            case "content-encoding": isEncoded = true
            case "expect":
                guard Self.lowercased(Self.trimmed(value[...])) == "100-continue" else { throw .malformed }
                expectsContinue = true
            case "sendgate-stream":
                guard Self.trimmed(value[...]) == "live" else { throw .malformed }
                isLive = true
            default: break
            }
            headers.append((name, value))
        }
        if byteCount > limits.headerByteCountMax { throw .tooLarge }
        // RFC 9112 section 3.2: exactly one Host in HTTP/1.1.
        if hostCount > 1 || (hostCount == 0 && !isHTTP10) { throw .malformed }

        body = try Self.body(lengths: lengths, codings: codings, isHTTP10: isHTTP10)
        if body == .none || body == .counted(0) { expectsContinue = false }
        // RFC 9110 section 10.1.1: an HTTP/1.0 client does not know interim answers.
        if isHTTP10 { expectsContinue = false }
        isHead = head.method == .HEAD
        // The parser stops after a request to upgrade, which is answered in HTTP/1.1 before the connection closes.
        closes = wantsClose || isHTTP10 || upgrades

        // With a query it is an ordinary request, which the route refuses: a stream has none.
        if head.method == .POST, isLines, !isEncoded, Self.streamTargets.contains(target) {
            route = isLive && body == .chunked ? .live : .batch
        } else {
            route = .single
        }
        if case .counted(let count) = body {
            let max = route == .single ? limits.requestByteCountMax : limits.batchByteCountMax
            if count > max { throw .bodyTooLarge(byteCountMax: max, isHead: isHead) }
        }
    }

    private static func body(
        lengths: [String], codings: [String], isHTTP10: Bool
    ) throws(RefusedHead) -> Body {
        if !codings.isEmpty {
            // RFC 9112 section 6.1: both framings together is an attack or a mistake; HTTP/1.0 has no codings.
            guard codings.count == 1, lengths.isEmpty, !isHTTP10, lowercased(codings[0]) == "chunked" else {
                throw .malformed
            }
            return .chunked
        }
        guard let first = lengths.first else { return .none }
        guard lengths.count == 1, !first.isEmpty,
            first.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { throw .malformed }
        // More than 18 digits are more bytes than anything accepts.
        guard first.utf8.count <= 18, let count = Int(first) else { throw .malformed }
        return .counted(count)
    }

    /// ASCII only, and without a copy when there is nothing to change.
    static func lowercased(_ text: String) -> String {
        text.utf8.contains { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 } ? text.lowercased() : text
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

/// A head that is answered without asking the handler.
enum RefusedHead: Error, Equatable {
    case malformed
    case tooLarge
    case bodyTooLarge(byteCountMax: Int, isHead: Bool)

    func problem(_ limits: EndpointLimits) -> Problem {
        switch self {
        case .malformed: .malformedRequest
        case .tooLarge: .headersTooLarge(byteCountMax: limits.headerByteCountMax)
        case .bodyTooLarge(let max, _): .bodyTooLarge(byteCountMax: max)
        }
    }
}
