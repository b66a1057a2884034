import GateVocabulary
import GatewayPipeline
import Glibc
import Synchronization
import Testing
import WireProtocol

@testable import UnixSocketEndpoint
import UnixSockets

@Suite struct ConversationTests {
    @Test func `a request is handed over whole and its answer comes back`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(post("/v1/sends?x=%2F", #"{"id":"a"}"#, headers: "X-Trace: One\r\n"))
            let held = await handler.next()[0]
            #expect(held.request.kind == .single)
            #expect(held.request.method == "POST")
            #expect(held.request.target == "/v1/sends?x=%2F")
            #expect(held.request.body == Array(#"{"id":"a"}"#.utf8))
            #expect(held.request.headers.contains { $0.name == "x-trace" && $0.value == "One" })
            held.reply(
                Answer(
                    status: 202, contentType: "application/json", headers: [("Retry-After", "3")],
                    body: Array("{}".utf8)))
            let response = try await client.receiveResponse()
            #expect(response.status == 202)
            #expect(response.body == "{}")
            #expect(response.headers["content-type"] == "application/json")
            #expect(response.headers["retry-after"] == "3")
            #expect(response.headers["date"]?.hasSuffix(" GMT") == true)
            #expect(response.headers["connection"] == nil)
        }
    }

    @Test func `the peer is who the kernel says`() async throws {
        let handler = HoldingHandler()
        try await withDirectory { directory in
            let plain = directory + "/a.sock"
            let bound = directory + "/b.sock"
            let endpoint = try UnixSocketEndpoint(
                listeners: [
                    ListenerConfiguration(source: .path(SocketFile(path: plain))),
                    ListenerConfiguration(
                        source: .path(SocketFile(path: bound)), boundCaller: CallerName("fraud")),
                ], limits: .test, handler: handler, logger: .quiet)
            try await endpoint.start()
            var groups = [gid_t](repeating: 0, count: 1_024)
            let groupCount = getgroups(1_024, &groups)
            for (index, path) in [plain, bound].enumerated() {
                let client = try RawClient(path)
                try client.send(get())
                let held = await handler.next()[0]
                #expect(held.peer.credentials.userID == getuid())
                #expect(held.peer.credentials.groupID == getegid())
                #expect(held.peer.credentials.processID == getpid())
                #expect(held.peer.credentials.supplementaryGroups == groups[..<Int(groupCount)].sorted())
                #expect(held.peer.listener == index)
                #expect(held.peer.boundCaller == (index == 1 ? CallerName("fraud") : nil))
                held.echo()
                _ = try await client.receiveResponse()
            }
            await endpoint.shutDown()
        }
    }

    /// As root, user and group are both 0; so the group is another while the client connects.
    @Test func `a peer's user and its group are told apart`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let own = getegid()
            try #require(own != 4_321 && setegid(4_321) == 0, "run the tests as root")
            let connected = Result { try RawClient(path) }
            try #require(setegid(own) == 0)
            let client = try connected.get()
            try client.send(get())
            let held = await handler.next()[0]
            #expect(held.peer.credentials.userID == geteuid())
            #expect(held.peer.credentials.groupID == 4_321)
            held.echo()
            _ = try await client.receiveResponse()
        }
    }

    @Test func `one connection carries many requests`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            for index in 0..<50 {
                try client.send(post("/v1/sends", "body \(index)"))
                let response = try await client.receiveResponse()
                #expect(response.body == "body \(index)")
                #expect(response.headers["x-saw"] == "POST /v1/sends")
            }
            let metrics = endpoint.metrics()
            #expect(metrics[.connectionsAccepted] == 1)
            #expect(metrics[.requests] == 50)
            #expect(metrics.requestsInFlight == 0)
            #expect(metrics.connectionsOpen == 1)
        }
    }

    @Test func `pipelined requests are under way at once and answered in order`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let client = try RawClient(path)
            try client.send((0..<20).map { post("/v1/sends", "request \($0)") }.joined())
            let held = await handler.next(20)
            #expect(endpoint.metrics().requestsInFlight == 20)
            // The last is answered first, from another thread.
            for one in held.reversed() { one.echo() }
            for index in 0..<20 { #expect(try await client.receiveResponse().body == "request \(index)") }
        }
    }

    @Test func `a read behind a write is handled when the write is done`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let client = try RawClient(path)
            let sent = post("/v1/sends", "write") + get("/v1/events")
            try client.send(sent)
            let write = await handler.next()[0]
            await endpoint.hasRead(byteCount: sent.utf8.count)
            #expect(handler.count == 1)
            write.echo()
            let read = await handler.next()[0]
            #expect(read.request.target == "/v1/events")
            read.answer("seen")
            #expect(try await client.receiveResponse().body == "write")
            #expect(try await client.receiveResponse().body == "seen")
        }
    }

    @Test func `no more than the window is under way on one connection, and the rest waits its turn`()
        async throws
    {
        var limits = EndpointLimits.test
        limits.inFlightPerConnectionMax = 4
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            let client = try RawClient(path)
            try client.send((0..<12).map { post("/v1/sends", "\($0)") }.joined())
            for round in 0..<3 {
                let held = await handler.next(4)
                #expect(endpoint.metrics().requestsInFlight == 4)
                #expect(handler.count == 4 * (round + 1))
                for one in held { one.echo() }
                for index in 0..<4 {
                    #expect(try await client.receiveResponse().body == "\(round * 4 + index)")
                }
            }
        }
    }

    @Test func `a request that comes byte by byte is the same request`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            for byte in Array(post("/v1/sends", "abc").utf8) { try client.send([byte]) }
            #expect(try await client.receiveResponse().body == "abc")
            for byte in Array(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                    .utf8
            ) { try client.send([byte]) }
            #expect(try await client.receiveResponse().body == "abcde")
        }
    }

    @Test func `HEAD is answered with the headers of a GET and no body`() async throws {
        try await withEndpoint(
            ScriptedHandler { request, _, reply in
                reply(Answer(status: 200, body: Array("four".utf8)))
            }
        ) { path, _ in
            let client = try RawClient(path)
            try client.send("HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + get())
            let head = try await client.receiveResponse(toHead: true)
            #expect(head.headers["content-length"] == "4")
            // The next answer starts right behind: no body was in between.
            #expect(try await client.receiveResponse().body == "four")
        }
    }

    @Test func `answers that may have no body have none`() async throws {
        try await withEndpoint(
            ScriptedHandler { request, _, reply in
                reply(Answer(status: request.target == "/204" ? 204 : 304, body: Array("never".utf8)))
            }
        ) { path, _ in
            let client = try RawClient(path)
            try client.send(get("/204") + get("/304"))
            let first = try await client.receiveResponse()
            #expect(first.status == 204)
            #expect(first.headers["content-length"] == nil)
            #expect(try await client.receiveResponse().status == 304)
        }
    }

    @Test func `HTTP 1 point 0 is answered and closed`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            let response = try await client.receiveResponse()
            #expect(response.status == 200)
            #expect(response.headers["connection"] == "close")
            #expect(try await client.receiveToEnd() == "")
        }
    }

    @Test func `Connection close is kept, and nothing behind it is looked at`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(get(headers: "Connection: close\r\n") + get("/second") + "garbage\r\n\r\n")
            let response = try await client.receiveResponse()
            #expect(response.headers["connection"] == "close")
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.requests] == 1)
        }
    }

    /// A parser may go on behind these; the connection ends with their answer.
    @Test(arguments: [
        "HTTP/1.0\r\nHost: gate\r\nConnection: keep-alive", "HTTP/1.1\r\nHost: gate\r\nUpgrade: h2c",
        "HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: websocket",
    ])
    func `nothing behind a request that ends its connection is looked at`(_ head: String) async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send("GET /first \(head)\r\n\r\n" + get("/second"))
            let response = try await client.receiveResponse()
            #expect(response.status == 200 && response.headers["x-saw"] == "GET /first")
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.requests] == 1)
        }
    }

    @Test func `a request to upgrade is answered in HTTP 1 point 1 and the connection closes`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send(get(headers: "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"))
            let response = try await client.receiveResponse()
            #expect(response.status == 200)
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test func `a body that waits for 100 Continue is asked for`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            // The interim answer keeps its place behind an earlier request's answer.
            try client.send(
                get() + "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            #expect(try await client.receiveResponse().status == 200)
            #expect(try await client.receiveResponse().status == 100)
            try client.send("abc")
            #expect(try await client.receiveResponse().body == "abc")
        }
    }

    @Test func `a body too large is refused before it is sent`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n")
            #expect(try await client.receiveResponse().status == 413)
            #expect(try await client.receiveToEnd() == "")
        }
    }

    @Test func `a client that has finished sending still gets its answers`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(post("/v1/sends", "one") + post("/v1/sends", "two"))
            client.finishSending()
            let held = await handler.next(2)
            held[1].echo()
            held[0].echo()
            #expect(try await client.receiveResponse().body == "one")
            #expect(try await client.receiveResponse().body == "two")
            #expect(try await client.receiveToEnd() == "")
        }
    }

    @Test func `a client that finishes sending while it reads its last answer gets all of it`() async throws {
        let large = [UInt8](repeating: UInt8(ascii: "x"), count: 8_000_000)
        try await withEndpoint(
            ScriptedHandler { _, _, reply in reply(Answer(status: 200, body: large)) },
            clock: SteppedClock()
        ) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get(headers: "Connection: close\r\n"))
            await eventually { endpoint.metrics()[.bytesWritten] > 8_000_000 }
            client.finishSending()
            #expect(try await client.receiveResponse().body.utf8.count == large.count)
            #expect(try await client.receiveToEnd() == "")
        }
    }

    @Test func `an answer for a client that left is dropped and the others go on`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let gone = try RawClient(path)
            try gone.send(post("/v1/sends", "gone"))
            let held = await handler.next()[0]
            gone.close()
            // The kernel tells the endpoint in its own time; both orders are right.
            held.echo()
            let client = try RawClient(path)
            try client.send(post("/v1/sends", "here"))
            await handler.next()[0].echo()
            #expect(try await client.receiveResponse().body == "here")
            #expect(endpoint.metrics().requestsInFlight == 0)
        }
    }

    @Test func `a client that leaves in the middle of a large answer harms nobody`() async throws {
        let large = [UInt8](repeating: UInt8(ascii: "x"), count: 4 * 1024 * 1024)
        try await withEndpoint(
            ScriptedHandler { _, _, reply in reply(Answer(status: 200, body: large)) }
        ) { path, _ in
            for _ in 0..<5 {
                let client = try RawClient(path)
                try client.send(get())
                _ = try await client.receiveHead()
                client.close()
            }
            let client = try RawClient(path)
            try client.send(get())
            #expect(try await client.receiveResponse().body.utf8.count == large.count)
        }
    }

    @Test func `a handler cannot be made to write headers of a caller's choice`() async throws {
        try await withEndpoint(
            ScriptedHandler { _, _, reply in
                reply(
                    Answer(
                        status: 200, headers: [("X-Name", "a\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK")], body: [])
                )
            }
        ) { path, _ in
            let client = try RawClient(path)
            try client.send(get())
            let response = try await client.receiveResponse()
            #expect(response.headers["x-evil"] == nil)
            #expect(response.headers["x-name"] == "a  X-Evil: 1    HTTP/1.1 200 OK")
        }
    }

    @Test func `a handler that forgets a request costs its connection, not its place`() async throws {
        try await withEndpoint(
            ScriptedHandler { request, _, reply in
                if request.target == "/forget" { return }
                reply(Answer(status: 200, body: []))
            }
        ) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get("/forget"))
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics().requestsInFlight == 0)
            #expect(endpoint.metrics()[.answersMissing] == 1)
            let next = try RawClient(path)
            try next.send(get())
            #expect(try await next.receiveResponse().status == 200)
        }
    }

    @Test func `answers given from many threads reach their own connections`() async throws {
        let handler = HoldingHandler()
        var limits = EndpointLimits.test
        limits.eventLoopCount = 2
        try await withEndpoint(handler, limits: limits) { path, _ in
            let clients = try (0..<40).map { _ in try RawClient(path) }
            for round in 0..<5 {
                for (index, client) in clients.enumerated() {
                    try client.send(post("/v1/sends", "\(index)/\(round)"))
                }
                let held = await handler.next(clients.count)
                await withTaskGroup(of: Void.self) { tasks in
                    for one in held.shuffled() { tasks.addTask { one.echo() } }
                }
                for (index, client) in clients.enumerated() {
                    #expect(try await client.receiveResponse().body == "\(index)/\(round)")
                }
            }
        }
    }

    @Test func `the date is written as RFC 9110 wants it`() {
        #expect(HTTPDate(unixSeconds: 784_111_777).bytes == Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8))
        #expect(HTTPDate(unixSeconds: 1_709_164_800).bytes == Array("Thu, 29 Feb 2024 00:00:00 GMT".utf8))
    }
}
