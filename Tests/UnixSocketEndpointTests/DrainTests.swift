import GatewayPipeline
import Testing

@testable import UnixSocketEndpoint

@Suite struct DrainTests {
    @Test func `what is under way is finished, told to be the last, and closed`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let busy = try RawClient(path)
            try busy.send(post("/", "one") + post("/", "two"))
            let idle = try RawClient(path)
            try idle.send(get())
            let held = await handler.next(3)
            held[2].echo()
            _ = try await idle.receiveResponse()
            let stopping = Task { await endpoint.shutDown() }
            // An idle connection is closed at once, which also shows that draining has begun.
            #expect(try await idle.receiveToEnd() == "")
            #expect(throws: RawError.self) { try RawClient(path) }
            held[0].echo()
            held[1].echo()
            let first = try await busy.receiveResponse()
            let second = try await busy.receiveResponse()
            #expect(first.body == "one")
            #expect(second.body == "two")
            #expect(second.headers["connection"] == "close")
            #expect(try await busy.receiveToEnd() == "")
            await stopping.value
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a stop waits for no client that has its answers and keeps its side open`() async throws {
        let handler = HoldingHandler()
        // Stands still: a wait for a deadline lasts for ever.
        try await withEndpoint(handler, clock: SteppedClock()) { path, endpoint in
            let closing = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            let answered = try RawClient(path)
            try answered.send(closing)
            await handler.next()[0].answer("before")
            #expect(try await answered.receiveResponse().body == "before")
            #expect(try await answered.receiveToEnd() == "")
            let idle = try RawClient(path)
            try idle.send(get())
            await handler.next()[0].answer("idle")
            _ = try await idle.receiveResponse()
            let underWay = try RawClient(path)
            try underWay.send(closing)
            let held = await handler.next()[0]
            let stopping = Task { await endpoint.shutDown() }
            #expect(try await idle.receiveToEnd() == "")
            held.answer("during")
            #expect(try await underWay.receiveResponse().body == "during")
            #expect(try await underWay.receiveToEnd() == "")
            // No client has closed its own side.
            await stopping.value
        }
    }

    @Test func `a request that has begun to arrive is taken, one that begins later is not`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let begun = try RawClient(path)
            try begun.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await begun.receiveResponse().status == 100)
            let late = try RawClient(path)
            try late.send(get())
            let held = await handler.next()[0]
            // Accepted, so that its end says that the draining has begun, and not only that no process listens.
            let idle = try RawClient(path)
            await eventually { endpoint.metrics().connectionsOpen == 3 }
            let readBefore = endpoint.metrics()[.bytesRead]
            let stopping = Task { await endpoint.shutDown() }
            _ = try await idle.receiveToEnd()
            try begun.send("whole")
            try late.send(get())
            // A connection whose next request has not been read yet is told that its answer is the last.
            await eventually {
                endpoint.metrics()[.bytesRead] == readBefore + UInt64("whole\(get())".utf8.count)
            }
            await handler.next()[0].echo()
            #expect(try await begun.receiveResponse().body == "whole")
            // Behind the request that is still under way: only then is the next one refused.
            held.answer("first")
            #expect(try await late.receiveResponse().body == "first")
            let refused = try await late.receiveResponse()
            #expect(refused.status == 503)
            #expect(refused.headers["connection"] == "close")
            await stopping.value
        }
    }

    @Test func `who was accepted just before a stop, and has not asked yet, is answered`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler, clock: SteppedClock()) { path, endpoint in
            let early = try RawClient(path)
            let asked = try RawClient(path)
            try asked.send(get())
            await handler.next()[0].answer("before")
            _ = try await asked.receiveResponse()
            await eventually { endpoint.metrics().connectionsOpen == 2 }
            let stopping = Task { await endpoint.shutDown() }
            // Its end says that the drain has begun.
            #expect(try await asked.receiveToEnd() == "")
            try early.send(get())
            await handler.next()[0].answer("early")
            let response = try await early.receiveResponse()
            #expect(response.body == "early" && response.headers["connection"] == "close")
            await stopping.value
        }
    }

    @Test func `a live stream ends in order with the answers of the lines that had come`() async throws {
        let handler = HoldingHandler()
        try await withEndpoint(handler) { path, endpoint in
            let client = try RawClient(path)
            try client.send(liveHead + chunk("one\ntwo\nunfini"))
            let held = await handler.next(2)
            let idle = try RawClient(path)
            await eventually { endpoint.metrics().connectionsOpen == 2 }
            let stopping = Task { await endpoint.shutDown() }
            _ = try await idle.receiveToEnd()
            for one in held { one.echo() }
            let response = try await client.receiveResponse()
            #expect(response.lines == ["one", "two"])
            #expect(response.isComplete)
            #expect(try await client.receiveToEnd() == "")
            await stopping.value
        }
    }

    @Test func `connections on which nothing is under way do not hold up the stop`() async throws {
        var limits = EndpointLimits.test
        limits.lingerMilliseconds = 60_000
        limits.drainMilliseconds = 60_000
        let handler = HoldingHandler()
        try await withEndpoint(handler, limits: limits) { path, endpoint in
            // One that never asked, one that was answered, one whose answer is its last: none of them goes first.
            let silent = try RawClient(path)
            let answered = try RawClient(path)
            try answered.send(get())
            await handler.next()[0].echo()
            _ = try await answered.receiveResponse()
            let last = try RawClient(path)
            try last.send(get())
            let held = await handler.next()[0]
            await eventually { endpoint.metrics().connectionsOpen == 3 }
            let start = ContinuousClock.now
            let stopping = Task { await endpoint.shutDown() }
            #expect(try await silent.receiveToEnd() == "")
            #expect(try await answered.receiveToEnd() == "")
            held.answer("last")
            await stopping.value
            #expect(ContinuousClock.now - start < .seconds(30))
            let response = try await last.receiveResponse()
            #expect(response.body == "last" && response.headers["connection"] == "close")
        }
    }

    @Test func `a handler that does not answer cannot hold up the stop`() async throws {
        var limits = EndpointLimits.test
        limits.drainMilliseconds = 200
        let handler = HoldingHandler()
        let clock = SteppedClock()
        try await withEndpoint(handler, limits: limits, clock: clock) { path, endpoint in
            let client = try RawClient(path)
            try client.send(get())
            let held = await handler.next()[0]
            let idle = try RawClient(path)
            try idle.send(get())
            await handler.next()[0].echo()
            _ = try await idle.receiveResponse()
            await endpoint.hasAccepted(2)
            let stopping = Task { await endpoint.shutDown() }
            // Draining has begun, so its deadline is set.
            #expect(try await idle.receiveToEnd() == "")
            clock.advance(milliseconds: 200)
            await stopping.value
            #expect(try await client.receiveToEnd() == "")
            // Too late, and harmless.
            held.echo()
        }
    }
}
