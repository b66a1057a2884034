import GatewayPipeline
import Glibc
import Testing
import WireProtocol

@testable import UnixSocketEndpoint
import UnixSockets

@Suite struct HostileClientTests {
    @Test(arguments: [
        ("not HTTP", "\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n"),
        ("a bare word", "HELLO\r\n\r\n"),
        ("another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        ("no version", "GET /\r\n\r\n"),
        ("no host", "GET / HTTP/1.1\r\n\r\n"),
        ("a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        ("a folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
        ("an empty header name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
        (
            "both framings",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        (
            "both framings, other order",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"
        ),
        ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
        (
            "two equal lengths",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"
        ),
        ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
        ("a hexadecimal length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc"),
        ("an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
        ("a bad chunk size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (
            "a chunk longer than it says",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"
        ),
        (
            "a huge chunk size",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"
        ),
        ("CONNECT", "CONNECT gate:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("absolute form without Host", "GET http://gate/ HTTP/1.1\r\n\r\n"),
        ("a space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a zero in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: \u{0}\r\n\r\n"),
        ("an unfinished request", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"),
        ("an unfinished head", "POST / HTTP/1.1\r\nHos"),
    ])
    func `what is not exactly HTTP is 400 and closed`(name: String, bytes: String) async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(bytes)
            client.finishSending()
            let response = try await client.receiveResponse()
            #expect(response.status == 400, "\(name)")
            #expect(response.headers["connection"] == "close")
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.requests] == 0)
        }
    }

    @Test func `garbage behind good requests does not touch their answers`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, _ in
            let client = try RawClient(path)
            try client.send(
                post("/v1/sends", "one") + post("/v1/sends", "two") + "\r\n\u{1}garbage\r\n\r\n" + get())
            let held = await handler.next(2)
            held[1].echo()
            held[0].echo()
            #expect(try await client.receiveResponse().body == "one")
            #expect(try await client.receiveResponse().body == "two")
            #expect(try await client.receiveResponse().status == 400)
            #expect(try await client.receiveToEnd() == "")
            #expect(handler.count == 2)
        }
    }

    /// What a header section may look like that is too large, by name.
    enum HeaderBomb: String, CaseIterable {
        case oneLongHeader, longTarget, manyHeaders, headersThatAddUp, neverEnding, trailersThatAddUp

        var bytes: String {
            let start = "GET / HTTP/1.1\r\nHost: a\r\n"
            let kilobyte = String(repeating: "y", count: 1_000)
            switch self {
            case .oneLongHeader: return start + "X: " + String(repeating: "y", count: 20_000) + "\r\n\r\n"
            case .longTarget:
                return "GET /" + String(repeating: "y", count: 20_000) + " HTTP/1.1\r\nHost: a\r\n\r\n"
            case .manyHeaders: return start + (0..<500).map { "X-\($0): y\r\n" }.joined() + "\r\n"
            case .headersThatAddUp:
                return start + (0..<20).map { "X-\($0): \(kilobyte)\r\n" }.joined() + "\r\n"
            case .neverEnding: return start + "X: " + String(repeating: "y", count: 300_000)
            case .trailersThatAddUp:
                let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
                return head + (0..<30).map { "X-\($0): \(kilobyte)\r\n" }.joined() + "\r\n"
            }
        }
    }

    @Test(arguments: HeaderBomb.allCases)
    func `a header section past its bound is 431 and closed`(bomb: HeaderBomb) async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send(bomb.bytes)
            let response = try await client.receiveResponse()
            #expect(response.status == 431)
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.requests] == 0)
        }
    }

    @Test func `a header section just within its bound is taken`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send(get(headers: "X: " + String(repeating: "y", count: 16_000) + "\r\n"))
            #expect(try await client.receiveResponse().status == 200)
        }
    }

    @Test func `a chunked body is refused the moment it passes its bound`() async throws {
        try await withEndpoint { path, endpoint in
            let client = try RawClient(path)
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            let piece = chunk(String(repeating: "x", count: 8_192))
            for _ in 0..<9 { try client.send(piece) }
            #expect(try await client.receiveResponse().status == 413)
            #expect(endpoint.metrics()[.requests] == 0)
        }
    }

    @Test func `a body of exactly the bound is taken`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            let body = String(repeating: "x", count: 65_536)
            try client.send(post("/", body))
            #expect(try await client.receiveResponse().body == body)
            try client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(body) + "0\r\n\r\n"
            )
            #expect(try await client.receiveResponse().body == body)
        }
    }

    @Test func `a client that goes on sending after 413 can still read it`() async throws {
        try await withEndpoint { path, _ in
            let client = try RawClient(path)
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
            // All of it is written before anything is read, as simple clients do.
            try client.send([UInt8](repeating: 120, count: 200_000))
            #expect(try await client.receiveResponse().status == 413)
        }
    }

    @Test func `a batch of one byte too many is written whole and its 413 read`() async throws {
        try await withEndpoint(limits: EndpointLimits()) { path, _ in
            let client = try RawClient(path)
            let byteCount = EndpointLimits().batchByteCountMax + 1
            try client.send(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nContent-Length: \(byteCount)\r\n\r\n")
            try client.send([UInt8](repeating: 120, count: byteCount))
            #expect(try await client.receiveResponse().status == 413)
        }
    }

    @Test func `a client that never stops sending after 413 is cut off`() async throws {
        var limits = EndpointLimits.test
        limits.lingerByteCountMax = 500_000
        limits.lingerMilliseconds = 20_000
        try await withEndpoint(limits: limits) { path, _ in
            let client = try RawClient(path)
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            #expect(throws: RawError.self) {
                for _ in 0..<1_000 { try client.send([UInt8](repeating: 120, count: 100_000)) }
            }
        }
    }

    @Test(arguments: [
        "G", "POST / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
    ])
    func `a request that is not complete in time is 408`(beginning: String) async throws {
        var limits = EndpointLimits.test
        limits.requestReadMilliseconds = 100
        let clock = SteppedClock()
        try await withEndpoint(limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(beginning)
            await endpoint.hasRead(byteCount: beginning.utf8.count)
            clock.advance(milliseconds: 100)
            #expect(try await client.receiveResponse().status == 408)
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.readTimeouts] == 1)
        }
    }

    @Test func `dripping bytes does not win time`() async throws {
        var limits = EndpointLimits.test
        limits.requestReadMilliseconds = 150
        let clock = SteppedClock()
        try await withEndpoint(limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send("GET /")
            await endpoint.hasRead(byteCount: 5)
            // Each byte is read at a later time than the one before it.
            for count in 1...14 {
                clock.advance(milliseconds: 10)
                try client.send("y")
                await endpoint.hasRead(byteCount: 5 + count)
                #expect(endpoint.metrics()[.readTimeouts] == 0)
            }
            clock.advance(milliseconds: 10)
            #expect(try await client.receiveResponse().status == 408)
            #expect(endpoint.metrics()[.readTimeouts] == 1)
        }
    }

    @Test func `a connection on which nothing happens is closed without a word`() async throws {
        var limits = EndpointLimits.test
        limits.idleMilliseconds = 100
        let clock = SteppedClock()
        try await withEndpoint(limits: limits, clock: clock) { path, endpoint in
            let silent = try RawClient(path)
            let used = try RawClient(path)
            try used.send(get())
            _ = try await used.receiveResponse()
            await endpoint.hasAccepted(2)
            clock.advance(milliseconds: 100)
            #expect(try await silent.receiveToEnd() == "")
            #expect(try await used.receiveToEnd() == "")
            #expect(endpoint.metrics()[.idleTimeouts] == 2)
        }
    }

    @Test func `waiting for the handler is not being idle`() async throws {
        var limits = EndpointLimits.test
        limits.idleMilliseconds = 60
        limits.requestReadMilliseconds = 60
        let handler = HoldingHandler()
        let clock = SteppedClock()
        try await withEndpoint(handler, limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get())
            let held = await handler.next()[0]
            // The other connection has had its answer, so what follows for it is idleness.
            let idle = try RawClient(path)
            try idle.send(get())
            await handler.next()[0].echo()
            _ = try await idle.receiveResponse()
            await endpoint.hasRead(byteCount: 2 * get().utf8.count)
            clock.advance(milliseconds: 60)
            // The deadlines have been looked at: the other connection's has passed.
            #expect(try await idle.receiveToEnd() == "")
            held.answer("late")
            #expect(try await client.receiveResponse().body == "late")
        }
    }

    @Test func `an answer that never comes closes the connection without inventing one`() async throws {
        var limits = EndpointLimits.test
        limits.answerMilliseconds = 100
        let handler = HoldingHandler()
        let clock = SteppedClock()
        try await withEndpoint(handler, limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get())
            let held = await handler.next()[0]
            await endpoint.hasRead(byteCount: get().utf8.count)
            clock.advance(milliseconds: 100)
            #expect(try await client.receiveToEnd() == "")
            #expect(endpoint.metrics()[.answersMissing] == 1)
            held.echo()
            #expect(endpoint.metrics().requestsInFlight == 0)
        }
    }

    @Test func `a client that does not read is held back, then cut off`() async throws {
        var limits = EndpointLimits.test
        limits.unwrittenByteCountMax = 64 * 1024
        limits.writeStallMilliseconds = 200
        let answer = [UInt8](repeating: UInt8(ascii: "x"), count: 2_000)
        let clock = SteppedClock()
        try await withEndpoint(
            ScriptedHandler { _, _, reply in reply(Answer(status: 200, body: answer)) }, limits: limits,
            clock: clock
        ) { path, endpoint in
            let client = try RawClient(path)
            let request = Array(get().utf8)
            // It sends whenever it can and never reads: only the stall ends this connection.
            var sent = 0
            await eventually {
                let taken = client.sendUntilBlocked(request, limit: 1_000_000)
                sent += taken
                if taken == 0 { clock.advance(milliseconds: 10) }
                return endpoint.metrics()[.writeStalls] > 0
            }
            #expect(sent < 50_000_000)
            let handled = endpoint.metrics()[.requests]
            // What was handled fits into the kernel's buffer, our bound and one window.
            #expect(handled * 2_000 < 64 * 1024 + 1_000_000)
            let other = try RawClient(path)
            try other.send(get())
            #expect(try await other.receiveResponse().status == 200)
        }
    }

    @Test func `a client that leaves its answer has the time allowed, and no more`() async throws {
        var limits = EndpointLimits.test
        limits.writeStallMilliseconds = 200
        let answer = [UInt8](repeating: UInt8(ascii: "x"), count: 8_000_000)
        let clock = SteppedClock()
        try await withEndpoint(
            ScriptedHandler { _, _, reply in reply(Answer(status: 200, body: answer)) }, limits: limits,
            clock: clock
        ) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get())
            await eventually { endpoint.metrics()[.bytesWritten] > 8_000_000 }
            await clock.isSeen(by: endpoint)
            clock.advance(milliseconds: 199)
            await clock.isSeen(by: endpoint)
            #expect(endpoint.metrics()[.writeStalls] == 0)
            clock.advance(milliseconds: 1)
            await clock.isSeen(by: endpoint)
            #expect(endpoint.metrics()[.writeStalls] == 1)
            withExtendedLifetime(client) {}
        }
    }

    @Test func `connections over the bound are told so and closed`() async throws {
        var limits = EndpointLimits.test
        limits.connections = SharedBound(total: 10, perUser: 3, reserved: 1)
        try await withEndpoint(limits: limits) { path, endpoint in
            var clients: [RawClient] = []
            for _ in 0..<3 {
                let client = try RawClient(path)
                try client.send(get())
                _ = try await client.receiveResponse()
                clients.append(client)
            }
            let refused = try RawClient(path)
            let response = try await refused.receiveResponse()
            #expect(response.status == 429)
            #expect(response.headers["connection"] == "close")
            #expect(try await refused.receiveToEnd() == "")
            #expect(endpoint.metrics()[.connectionsRefused] == 1)
            // A place given back is a place.
            clients.removeLast().close()
            await eventually { endpoint.metrics().connectionsOpen <= 2 }
            let next = try RawClient(path)
            try next.send(get())
            #expect(try await next.receiveResponse().status == 200)
        }
    }

    @Test func `whom the handler reserves room for gets in when everything else is full`() async throws {
        var limits = EndpointLimits.test
        limits.connections = SharedBound(total: 4, perUser: 4, reserved: 1)
        limits.inFlight = SharedBound(total: 3, perUser: 3, reserved: 1)
        // The handler knows a peer by more than its listener; here the second one stands for that.
        let handler = HoldingHandler { $0.listener == 1 }
        try await withDirectory { directory in
            let common = directory + "/common.sock"
            let security = directory + "/security.sock"
            let endpoint = try UnixSocketEndpoint(
                listeners: [
                    ListenerConfiguration(source: .path(SocketFile(path: common))),
                    ListenerConfiguration(source: .path(SocketFile(path: security))),
                ], limits: limits, handler: handler, logger: .quiet)
            try await endpoint.start()
            // Three connections and two requests fill the common part.
            let flood = try (0..<3).map { _ in try RawClient(common) }
            try flood[0].send(get())
            try flood[1].send(get())
            let held = await handler.next(2)
            try flood[2].send(get())
            #expect(try await flood[2].receiveResponse().status == 429)
            #expect(try await RawClient(common).receiveResponse().status == 429)
            // Security still gets through.
            let alert = try RawClient(security)
            try alert.send(post("/v1/sends", "fraud"))
            await handler.next()[0].echo()
            #expect(try await alert.receiveResponse().body == "fraud")
            for one in held { one.echo() }
            for client in flood[..<2] { #expect(try await client.receiveResponse().status == 200) }
            for client in flood { client.close() }
            alert.close()
            await endpoint.shutDown()
        }
    }

    @Test func `over the bound on requests a user is told so, and gets its place back`() async throws {
        var limits = EndpointLimits.test
        limits.inFlight = SharedBound(total: 10, perUser: 2, reserved: 1)
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            let first = try RawClient(path)
            try first.send(get() + get())
            let held = await handler.next(2)
            let second = try RawClient(path)
            try second.send(get())
            #expect(try await second.receiveResponse().status == 429)
            held[0].echo()
            _ = try await first.receiveResponse()
            // The same connection goes on: 429 says "later", not "go away".
            try second.send(get())
            await handler.next()[0].echo()
            #expect(try await second.receiveResponse().status == 200)
            held[1].echo()
            _ = try await first.receiveResponse()
        }
    }

    @Test func `a pipeline over the user's bound waits for its own answers instead of failing`() async throws
    {
        var limits = EndpointLimits.test
        limits.inFlight = SharedBound(total: 10, perUser: 2, reserved: 1)
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, _ in
            let client = try RawClient(path)
            try client.send((0..<6).map { post("/", "\($0)") }.joined())
            for round in 0..<3 {
                for one in await handler.next(2) { one.echo() }
                for index in 0..<2 {
                    #expect(try await client.receiveResponse().body == "\(2 * round + index)")
                }
            }
        }
    }

    @Test func `a client that was refused and keeps its side open is let go in time`() async throws {
        let clock = SteppedClock()
        try await withEndpoint(clock: clock) { path, endpoint in
            let client = try RawClient(path)
            let nonsense = "what?\r\n\r\n"
            try client.send(nonsense)
            #expect(try await client.receiveToEnd().hasPrefix("HTTP/1.1 400 "))
            await endpoint.hasRead(byteCount: nonsense.utf8.count)
            #expect(endpoint.metrics().connectionsOpen == 1)
            clock.advance(milliseconds: EndpointLimits.test.lingerMilliseconds)
            await eventually { endpoint.metrics().connectionsOpen == 0 }
            withExtendedLifetime(client) {}
        }
    }

    @Test func `bodies of one user cannot fill memory`() async throws {
        var limits = EndpointLimits.test
        limits.bufferedBytes = SharedBound(total: 1_000_000, perUser: 300_000, reserved: 100_000)
        try await withEndpoint(limits: limits) { path, endpoint in
            let first = try RawClient(path)
            try first.send("POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nx")
            await eventually { endpoint.metrics().bufferedByteCount > 0 }
            let second = try RawClient(path)
            try second.send("POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nx")
            #expect(try await second.receiveResponse().status == 429)
            first.close()
            await eventually { endpoint.metrics().bufferedByteCount == 0 }
        }
    }

    @Test func `a client that leaves amid its batch gives back the room of its body`() async throws {
        var limits = EndpointLimits.test
        limits.streamLinesInFlightMax = 8
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            let client = try RawClient(path)
            let line = String(repeating: "x", count: 10_000)
            try client.send(post("/v1/sends/stream", (0..<32).map { _ in line }.joined(separator: "\n")))
            let held = await handler.next(8)
            #expect(endpoint.metrics().bufferedByteCount > 0)
            client.close()
            // With its first answer the client is found to be gone.
            held[0].echo()
            await eventually { endpoint.metrics().connectionsOpen == 0 }
            #expect(endpoint.metrics().bufferedByteCount == 0)
            for one in held.dropFirst() { one.echo() }
        }
    }

    /// That it is given back is looked at where the endpoint ends.
    @Test func `a stop gives back the room of a body that was half sent`() async throws {
        var limits = EndpointLimits.test
        limits.drainMilliseconds = 100
        try await withEndpoint(limits: limits) { path, endpoint in
            let client = try RawClient(path)
            try client.send("POST /v1/sends/stream HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nx")
            await eventually { endpoint.metrics().bufferedByteCount > 0 }
            await endpoint.shutDown()
            #expect(endpoint.metrics().bufferedByteCount == 0)
            withExtendedLifetime(client) {}
        }
    }

    @Test func `many idle connections cost no one else their answers`() async throws {
        try await withEndpoint { path, _ in
            let idle = try (0..<150).map { _ in try RawClient(path) }
            let client = try RawClient(path)
            for _ in 0..<100 {
                try client.send(get())
                #expect(try await client.receiveResponse().status == 200)
            }
            withExtendedLifetime(idle) {}
        }
    }

    @Test(arguments: 0..<40)
    func `random damage to good requests never hangs and never invents one`(seed: UInt64) async throws {
        var random = SplitMix(state: seed)
        try await withEndpoint { path, endpoint in
            let good =
                (0..<4).map { post("/v1/sends", "body \($0)") }.joined() + liveHead + chunk("a\nb\n")
                + "0\r\n\r\n"
            var bytes = Array(good.utf8)
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
                }
            }
            let client = try RawClient(path)
            var sent = 0
            while sent < bytes.count {
                let step = min(Int.random(in: 1...64, using: &random), bytes.count - sent)
                // The server may have refused and closed already.
                guard (try? client.send(Array(bytes[sent..<(sent + step)]))) != nil else { break }
                sent += step
            }
            client.finishSending()
            _ = try await client.receiveToEnd()
            #expect(endpoint.metrics()[.requests] <= 5, "seed \(seed)")
        }
    }

    @Test(arguments: 0..<20)
    func `how the bytes are cut does not change the answers`(seed: UInt64) async throws {
        var random = SplitMix(state: seed)
        try await withEndpoint { path, _ in
            let bytes = Array(
                ((0..<5).map { post("/v1/sends", "body \($0)") }.joined()
                    + post("/v1/sends/stream", "one\ntwo\r\n\nthree") + liveHead + chunk("fo")
                    + chunk("ur\nfive\n")
                    + "0\r\n\r\n" + get("/last", headers: "Connection: close\r\n")).utf8)
            let client = try RawClient(path)
            var sent = 0
            while sent < bytes.count {
                let step = min(Int.random(in: 1...200, using: &random), bytes.count - sent)
                try client.send(Array(bytes[sent..<(sent + step)]))
                sent += step
            }
            for index in 0..<5 { #expect(try await client.receiveResponse().body == "body \(index)") }
            #expect(try await client.receiveResponse().lines == ["one", "two", "three"])
            #expect(try await client.receiveResponse().lines == ["four", "five"])
            #expect(try await client.receiveResponse().headers["x-saw"] == "GET /last")
            #expect(try await client.receiveToEnd() == "")
        }
    }
}

/// A random source a seed repeats (Steele, Lea and Flood, "Fast splittable pseudorandom number generators").
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
