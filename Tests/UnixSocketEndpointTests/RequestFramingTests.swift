import NIOHTTP1
import Testing

@testable import UnixSocketEndpoint

@Suite struct RequestFramingTests {
    private func framing(
        _ method: HTTPMethod, _ target: String, _ headers: [(String, String)],
        version: HTTPVersion = .http1_1, limits: EndpointLimits = EndpointLimits()
    ) throws -> RequestFraming {
        try RequestFraming(
            HTTPRequestHead(version: version, method: method, uri: target, headers: HTTPHeaders(headers)),
            limits: limits)
    }

    @Test func `header names are given in lower case and values as they came`() throws {
        let framing = try framing(.POST, "/v1/sends?a=%20", [("Host", "x"), ("X-Mixed", "Some Value")])
        #expect(framing.headers.map(\.name) == ["host", "x-mixed"])
        #expect(framing.headers.map(\.value) == ["x", "Some Value"])
        #expect(framing.target == "/v1/sends?a=%20")
        #expect(framing.body == .none)
        #expect(!framing.closes)
    }

    static let ambiguous: [(String, [(String, String)])] = [
        ("no Host", [("Content-Length", "1")]),
        ("two Hosts", [("Host", "a"), ("host", "b")]),
        ("both framings", [("Host", "a"), ("Content-Length", "1"), ("Transfer-Encoding", "chunked")]),
        ("two lengths", [("Host", "a"), ("Content-Length", "1"), ("Content-Length", "1")]),
        ("a list of lengths", [("Host", "a"), ("Content-Length", "1, 1")]),
        ("a signed length", [("Host", "a"), ("Content-Length", "+1")]),
        ("an empty length", [("Host", "a"), ("Content-Length", "")]),
        ("a length past 64 bits", [("Host", "a"), ("Content-Length", "99999999999999999999")]),
        ("another coding", [("Host", "a"), ("Transfer-Encoding", "gzip, chunked")]),
        ("two codings", [("Host", "a"), ("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")]),
        ("identity", [("Host", "a"), ("Transfer-Encoding", "identity")]),
        ("an unknown expectation", [("Host", "a"), ("Expect", "200-ok")]),
        ("an unknown stream mode", [("Host", "a"), ("Sendgate-Stream", "Live")]),
        ("a folded value", [("Host", "a"), ("X", "one\r\n two")]),
        ("a zero in a value", [("Host", "a"), ("X", "one\u{0}two")]),
    ]

    @Test(arguments: ambiguous)
    func `a head two readers could understand differently is malformed`(
        name: String, headers: [(String, String)]
    ) {
        #expect(throws: RefusedHead.malformed, "\(name)") { try framing(.POST, "/v1/sends", headers) }
    }

    @Test(arguments: [
        "https://gate/v1/sends", "http://", "http:///v1/sends", "http://?x", "v1/sends", "", "*x",
    ])
    func `a target that is neither in origin form nor in absolute form is malformed`(target: String) {
        #expect(throws: RefusedHead.malformed) { try framing(.POST, target, [("Host", "a")]) }
    }

    @Test(arguments: [
        ("http://gate/v1/sends?a=%20", "/v1/sends?a=%20"),
        ("HTTP://127.0.0.1:80//a/http://b", "//a/http://b"),
        ("http://gate", "/"), ("http://gate?a", "/?a"),
    ])
    func `the absolute form of a target is read as its origin form`(absolute: String, origin: String) throws {
        #expect(try framing(.GET, absolute, [("Host", "other")]).target == origin)
        // As RFC 9112 section 3.2 has it, the field is needed all the same.
        #expect(throws: RefusedHead.malformed) { try framing(.GET, absolute, []) }
    }

    @Test func `a stream is one in absolute form, too`() throws {
        let headers = [("Host", "a"), ("Transfer-Encoding", "chunked"), ("Sendgate-Stream", "live")]
        #expect(try framing(.POST, "http://gate/v1/sends/stream", headers).route == .live)
    }

    @Test func `CONNECT is refused and HTTP 2 is not HTTP 1`() {
        #expect(throws: RefusedHead.malformed) { try framing(.CONNECT, "/", [("Host", "a")]) }
        #expect(throws: RefusedHead.malformed) {
            try framing(.GET, "/", [("Host", "a")], version: HTTPVersion(major: 1, minor: 2))
        }
        #expect(throws: RefusedHead.malformed) {
            try framing(.GET, "/", [("Host", "a"), ("Transfer-Encoding", "chunked")], version: .http1_0)
        }
    }

    static let streams: [(String, [(String, String)], RequestFraming.Route)] = [
        ("length", [("Content-Length", "5")], RequestFraming.Route.batch),
        ("no body", [], .batch),
        ("chunked", [("Transfer-Encoding", "chunked")], .batch),
        ("chunked and live", [("Transfer-Encoding", "chunked"), ("Sendgate-Stream", "live")], .live),
        ("length and live", [("Content-Length", "5"), ("Sendgate-Stream", "live")], .batch),
    ]

    @Test(arguments: streams)
    func `only a chunked stream that asks for it is live`(
        name: String, headers: [(String, String)], route: RequestFraming.Route
    ) throws {
        #expect(try framing(.POST, "/v1/sends/stream", [("Host", "a")] + headers).route == route, "\(name)")
        // Its query is for the route to refuse.
        #expect(try framing(.POST, "/v1/sends/stream?x", [("Host", "a")] + headers).route == .single)
        #expect(try framing(.GET, "/v1/sends/stream", [("Host", "a")]).route == .single)
        #expect(try framing(.POST, "/v1/sends/stream/", [("Host", "a")]).route == .single)
    }

    @Test func `a declared body is refused by its bound, a stream has the larger one`() throws {
        let max = EndpointLimits().requestByteCountMax
        #expect(
            try framing(.POST, "/v1/sends", [("Host", "a"), ("Content-Length", "\(max)")]).body
                == .counted(max))
        #expect(throws: RefusedHead.bodyTooLarge(byteCountMax: max, isHead: false)) {
            try framing(.POST, "/v1/sends", [("Host", "a"), ("Content-Length", "\(max + 1)")])
        }
        let stream = try framing(
            .POST, "/v1/sends/stream", [("Host", "a"), ("Content-Length", "\(max + 1)")])
        #expect(stream.body == .counted(max + 1))
    }

    @Test func `the header section is counted as it was sent`() throws {
        var limits = EndpointLimits()
        // "POST /v1/sends HTTP/1.1" and its line end count 4 + 9 + 12 bytes here, "Host: a" and its line end 9.
        limits.headerByteCountMax = 34
        #expect(throws: Never.self) { try framing(.POST, "/v1/sends", [("Host", "a")], limits: limits) }
        limits.headerByteCountMax = 33
        #expect(throws: RefusedHead.tooLarge) {
            try framing(.POST, "/v1/sends", [("Host", "a")], limits: limits)
        }
    }

    @Test func `an interim answer is wanted only before a body and from HTTP 1 point 1`() throws {
        let expect = [("Host", "a"), ("Expect", "100-Continue")]
        #expect(try framing(.POST, "/v1/sends", expect + [("Content-Length", "5")]).expectsContinue)
        #expect(try !framing(.POST, "/v1/sends", expect + [("Content-Length", "0")]).expectsContinue)
        #expect(try !framing(.POST, "/v1/sends", expect).expectsContinue)
        #expect(
            try !framing(.POST, "/", expect + [("Content-Length", "5")], version: .http1_0).expectsContinue)
    }

    static let lastWords: [([(String, String)], Bool)] = [
        ([("Connection", "close")], true), ([("Connection", "keep-alive, Close")], true),
        ([("Connection", "keep-alive")], false), ([("Connection", "Upgrade"), ("Upgrade", "h2c")], true),
        ([("Upgrade", "h2c")], true),
    ]

    @Test(arguments: lastWords)
    func `a request says whether the connection ends with it`(headers: [(String, String)], closes: Bool)
        throws
    {
        #expect(try framing(.GET, "/", [("Host", "a")] + headers).closes == closes)
    }

    @Test func `no bound may contradict another`() {
        #expect(EndpointLimits().firstContradiction == nil)
        var limits = EndpointLimits()
        limits.connections.reserved = limits.connections.total
        #expect(limits.firstContradiction == "`connections` reserves 8192 of 8192")
        limits = EndpointLimits()
        limits.idleMilliseconds = 0
        #expect(limits.firstContradiction == "`idleMilliseconds` is 0")
    }

    @Test func `at least a tenth of every shared bound is kept for reserved listeners`() {
        let limits = EndpointLimits()
        for bound in [limits.connections, limits.inFlight, limits.bufferedBytes] {
            #expect(bound.reserved * 10 >= bound.total)
            #expect(bound.perUser < bound.total - bound.reserved, "one user must not fill the common part")
        }
    }
}
