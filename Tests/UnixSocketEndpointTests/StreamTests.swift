import GatewayPipeline
import Glibc
import Testing
import WireProtocol

@testable import UnixSocketEndpoint

@Suite struct StreamTests {
    @Test func `a batch is answered line by line, in order, after its last line`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let client = try RawClient(path)
            try client.send(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nX-Mark: m\r\nContent-Length: 14\r\n\r\none\ntwo\r\n"
            )
            // Nothing is handled before the body is complete.
            try client.send("three")
            let held = await handler.next(3)
            #expect(held.map { String(decoding: $0.request.body, as: UTF8.self) } == ["one", "two", "three"])
            for one in held {
                #expect(one.request.kind == .streamLine)
                #expect(one.request.method == "POST")
                #expect(one.request.target == "/v1/sends/stream")
                #expect(one.request.headers.contains { $0.name == "x-mark" && $0.value == "m" })
            }
            for one in held.reversed() { one.echo() }
            let response = try await client.receiveResponse()
            #expect(response.status == 200)
            #expect(response.headers["content-type"] == "application/x-ndjson")
            #expect(response.lines == ["one", "two", "three"])
            // The connection is good for more.
            try client.send(get())
            await handler.next()[0].answer("after")
            #expect(try await client.receiveResponse().body == "after")
            #expect(endpoint.metrics()[.streams] == 1)
            #expect(endpoint.metrics()[.streamLines] == 3)
        }
    }

    @Test(arguments: [
        "Content-Type: application/json", "Content-Type: application/x-ndjson\r\nContent-Encoding: gzip",
        "Content-Encoding: gzip\r\nContent-Type: application/x-ndjson",
    ])
    func `what calls itself something else than lines is no stream`(header: String) async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\n\(header)\r\nContent-Length: 3\r\n\r\none")
            let held = await handler.next()
            #expect(held[0].request.kind == .single)
            held[0].answer("no")
            #expect(try await client.receiveResponse().body == "no")
        }
    }

    @Test(arguments: ["chunked", "empty", "no body"])
    func `every framing of a batch is taken`(framing: String) async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            switch framing {
            case "chunked":
                try client.send(
                    "POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + chunk("one\ntw") + chunk("o\n") + "0\r\n\r\n")
                #expect(try await client.receiveResponse().lines == ["one", "two"])
            case "empty":
                try client.send(post("/v1/sends/stream", ""))
                #expect(try await client.receiveResponse().lines == [])
            default:
                try client.send("POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await client.receiveResponse().lines == [])
            }
        }
    }

    @Test func `an HTTP 1 point 0 client gets its batch's answers and the end`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send("POST /v1/sends/stream HTTP/1.0\r\nContent-Length: 7\r\n\r\none\ntwo")
            let response = try await client.receiveResponse()
            #expect(response.headers["transfer-encoding"] == nil)
            #expect(response.lines == ["one", "two"])
        }
    }

    @Test func `ten thousand lines are a batch, one more is refused whole`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            let lines = (0..<10_000).map { "line \($0)" }
            try client.send(post("/v1/sends/stream", lines.joined(separator: "\n")))
            #expect(try await client.receiveResponse().lines == lines)
            try client.send(post("/v1/sends/stream", (lines + ["one more"]).joined(separator: "\n")))
            #expect(try await client.receiveResponse().status == 422)
            #expect(endpoint.metrics()[.streamLines] == 10_000)
        }
    }

    @Test func `empty lines count towards the bound`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(post("/v1/sends/stream", String(repeating: "\n", count: 10_001)))
            #expect(try await client.receiveResponse().status == 422)
        }
    }

    @Test func `a batch past its bound in bytes is refused whole`() async throws {
        var limits = EndpointLimits.test
        limits.batchByteCountMax = 200_000
        try await withEndpoint(limits: limits) { path, endpoint in
            let client = try RawClient(path)
            try client.send("POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nContent-Length: 200001\r\n\r\n")
            #expect(try await client.receiveResponse().status == 413)
            let chunked = try RawClient(path)
            try chunked.send(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<5 { try chunked.send(chunk(String(repeating: "x", count: 49_999) + "\n")) }
            #expect(try await chunked.receiveResponse().status == 413)
            #expect(endpoint.metrics()[.streamLines] == 0)
        }
    }

    @Test func `a line that is too long gets its own answer and the next one is handled`() async throws {
        try await withEndpoint { path, _ in
            let long = String(repeating: "x", count: 65_537)
            let fits = String(repeating: "y", count: 65_536)
            let tooLong = String(
                decoding: Problem.bodyTooLarge(byteCountMax: 65_536).answer.body, as: UTF8.self)
            let client = try RawClient(path)
            try client.send(post("/v1/sends/stream", "one\n\(long)\n\(fits)\ntwo"))
            var lines = try await client.receiveResponse().lines
            #expect(lines == ["one", tooLong, fits, "two"])
            try client.send(liveHead)
            for piece in ["one\n\(long)", long, long + "\n\(fits)\nt", "wo"] { try client.send(chunk(piece)) }
            try client.send("0\r\n\r\n")
            lines = try await client.receiveResponse().lines
            #expect(lines == ["one", tooLong, fits, "two"])
        }
    }

    @Test func `no more lines are under way than the window, whatever the batch`() async throws {
        var limits = EndpointLimits.test
        limits.streamLinesInFlightMax = 8
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            let client = try RawClient(path)
            try client.send(post("/v1/sends/stream", (0..<32).map { "\($0)" }.joined(separator: "\n")))
            for round in 1...4 {
                let held = await handler.next(8)
                #expect(endpoint.metrics().requestsInFlight == 8)
                #expect(handler.count == 8 * round)
                for one in held { one.echo() }
            }
            #expect(try await client.receiveResponse().lines == (0..<32).map { "\($0)" })
        }
    }

    @Test func `a batch of a user at its bound waits for itself and fails nobody's lines`() async throws {
        var limits = EndpointLimits.test
        limits.inFlight = SharedBound(total: 20, perUser: 3, reserved: 2)
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, _ in
            let client = try RawClient(path)
            try client.send(post("/v1/sends/stream", (0..<9).map { "\($0)" }.joined(separator: "\n")))
            for _ in 0..<3 { for one in await handler.next(3) { one.echo() } }
            #expect(try await client.receiveResponse().lines == (0..<9).map { "\($0)" })
        }
    }

    @Test func `a live stream answers each line while the next is still to come`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send(liveHead)
            // The head comes before any line.
            let head = try await client.receiveHead()
            #expect(head.status == 200)
            #expect(head.headers["content-type"] == "application/x-ndjson")
            for index in 0..<20 {
                try client.send(chunk("line \(index)\n"))
                #expect(try await client.receiveChunk() == "line \(index)\n")
            }
            try client.send(chunk("last, without its ending") + "0\r\n\r\n")
            #expect(try await client.receiveChunk() == "last, without its ending\n")
            #expect(try await client.receiveChunk() == nil)
            try client.send(get("/after"))
            #expect(try await client.receiveResponse().headers["x-saw"] == "GET /after")
        }
    }

    @Test func `a live stream's answers keep the order of its lines`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(liveHead + chunk("a\nb\nc\n"))
            _ = try await client.receiveHead()
            let held = await handler.next(3)
            held[2].echo()
            held[1].echo()
            held[0].echo()
            try client.send("0\r\n\r\n")
            var body = ""
            while let chunk = try await client.receiveChunk() { body += chunk }
            #expect(body == "a\nb\nc\n")
        }
    }

    @Test func `two live streams behind one another do not mix`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(
                get("/first") + liveHead + chunk("a\nb\n") + "0\r\n\r\n" + liveHead + chunk("c\n")
                    + "0\r\n\r\n")
            let held = await handler.next(4)
            for one in held.reversed() { one.echo() }
            #expect(try await client.receiveResponse().status == 200)
            #expect(try await client.receiveResponse().lines == ["a", "b"])
            #expect(try await client.receiveResponse().lines == ["c"])
        }
    }

    @Test func `a client that streams and reads nothing stops itself, not the gateway`() async throws {
        var limits = EndpointLimits.test
        limits.unwrittenByteCountMax = 64 * 1024
        limits.writeStallMilliseconds = 200
        let clock = SteppedClock()
        try await withEndpoint(limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead)
            let line = Array(chunk(String(repeating: "x", count: 1_000) + "\n").utf8)
            var sent = 0
            await eventually {
                let taken = client.sendUntilBlocked(line, limit: 1_000_000)
                sent += taken
                if taken == 0 { clock.advance(milliseconds: 10) }
                return endpoint.metrics()[.writeStalls] > 0
            }
            #expect(sent < 10_000_000)
            #expect(endpoint.metrics()[.streamLines] < 5_000)
        }
    }

    @Test func `a live stream whose handler is slow is not read beyond its window`() async throws {
        var limits = EndpointLimits.test
        limits.streamLinesInFlightMax = 4
        limits.readByteCountMax = 4_096
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead)
            _ = try await client.receiveHead()
            let line = Array(chunk(String(repeating: "x", count: 1_000) + "\n").utf8)
            _ = client.sendUntilBlocked(line, limit: 50_000_000)
            let held = await handler.next(4)
            #expect(handler.count == 4)
            // The read that filled the window may have brought a buffer more, not the client's megabytes.
            #expect(endpoint.metrics()[.bytesRead] < 100_000)
            client.close()
            for one in held { one.echo() }
        }
    }

    @Test(arguments: ["half close", "bad chunk"])
    func `a stream that breaks off ends without its last chunk`(how: String) async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(liveHead + chunk("one\nunfinished"))
            let held = await handler.next()[0]
            if how == "half close" { client.finishSending() } else { try client.send("not a chunk\r\n") }
            held.echo()
            let response = try await client.receiveResponse()
            #expect(response.status == 200)
            #expect(response.lines == ["one"])
            #expect(!response.isComplete)
            #expect(handler.count == 1)
        }
    }

    @Test func `a live stream whose trailers are too large ends without its last chunk`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            let kilobyte = String(repeating: "y", count: 1_000)
            let trailers = (0..<30).map { "X-\($0): \(kilobyte)\r\n" }.joined()
            try client.send(liveHead + chunk("one\n") + "0\r\n" + trailers + "\r\n")
            let response = try await client.receiveResponse()
            #expect(response.lines == ["one"])
            #expect(!response.isComplete)
            #expect(try await client.receiveToEnd() == "")
        }
    }

    @Test func `a live stream that stays silent ends in order`() async throws {
        var limits = EndpointLimits.test
        limits.idleMilliseconds = 100
        let clock = SteppedClock()
        try await withEndpoint(limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            let sent = liveHead + chunk("one\n")
            try client.send(sent)
            _ = try await client.receiveHead()
            #expect(try await client.receiveChunk() == "one\n")
            await endpoint.hasRead(byteCount: sent.utf8.count)
            clock.advance(milliseconds: 100)
            #expect(try await client.receiveChunk() == nil)
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.idleTimeouts] == 1)
        }
    }

    @Test func `an answer of several lines is written as one`() async throws {
        try await withEndpoint(
            ScriptedHandler { _, _, reply in
                reply(Answer(status: 200, body: Array("{\n \"a\": 1\n}".utf8)))
            }
        ) { path, _ in
            let client = try RawClient(path)
            try client.send(post("/v1/sends/stream", "one\ntwo"))
            #expect(try await client.receiveResponse().lines == ["{  \"a\": 1 }", "{  \"a\": 1 }"])
        }
    }
}
