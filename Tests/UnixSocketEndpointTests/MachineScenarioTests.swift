import GatewayPipeline
import NIOCore
import NIOHTTP1
import Testing
import WireProtocol

@testable import UnixSocketEndpoint

/// What a connection's machine does over several events.
@Suite struct MachineScenarioTests {
    // MARK: Pipelining

    @Test func `a request is handled, answered, and the connection read on`() {
        var driver = MachineDriver()
        #expect(driver.take(.active) == ["read", "arm idle"])
        #expect(
            driver.request(body: "one") == [
                "admit", "handle 0: POST /v1/sends one", "read", "arm answer", "disarm idle",
            ])
        #expect(
            driver.answer("done", to: 0) == ["write done", "flush", "read", "disarm answer", "arm idle"])
    }

    @Test func `answers are written in the order of the requests, as many as are ready in one flush`() {
        var driver = MachineDriver()
        for body in ["0", "1", "2"] { driver.request(body: body) }
        #expect(driver.answer("c", to: 2) == ["read"])
        #expect(driver.answer("b", to: 1) == ["read"])
        #expect(
            driver.answer("a", to: 0) == [
                "write a", "write b", "write c", "flush", "read", "disarm answer", "arm idle",
            ])
    }

    @Test func `several replies that come together are one flush`() {
        var driver = MachineDriver()
        for body in ["0", "1"] { driver.request(body: body) }
        let answer = Answer(status: 200, body: Array("x".utf8))
        #expect(driver.take(.answer(answer, sequence: 0), .answer(answer, sequence: 1)) == [])
        #expect(driver.take(.answersDelivered).prefix(3) == ["write x", "write x", "flush"])
    }

    @Test func `a full window is neither read nor handled beyond, and goes on with the first answer`() {
        var limits = EndpointLimits()
        limits.inFlightPerConnectionMax = 2
        var driver = MachineDriver(limits)
        #expect(driver.request(body: "0").contains("read"))
        // The read that brought the last of the window is not followed by one.
        #expect(driver.request(body: "1") == ["admit", "handle 1: POST /v1/sends 1"])
        #expect(driver.request(body: "2") == [])
        #expect(
            driver.answer("a", to: 0) == [
                "write a", "flush", "admit", "handle 2: POST /v1/sends 2", "arm answer",
            ])
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS"])
    func `a read behind a write is handled when the write is done, not before`(method: String) {
        var driver = MachineDriver()
        driver.request(body: "0")
        driver.request(body: "1")
        #expect(driver.request(HTTPMethod(rawValue: method), "/v1/events") == [])
        // Not in the order of the requests: both have to be done.
        #expect(driver.answer("b", to: 1) == [])
        #expect(
            driver.answer("a", to: 0).prefix(2) == ["admit", "handle 2: \(method) /v1/events"])
        // A read holds nothing up.
        #expect(driver.request(.GET, "/next").prefix(2) == ["admit", "handle 3: GET /next"])
        #expect(driver.request(body: "4").prefix(2) == ["admit", "handle 4: POST /v1/sends 4"])
    }

    @Test func `a read behind a stream is handled when every line of it is done`() {
        var driver = stream("a\nb\n")
        driver.take(.end)
        #expect(driver.request(.GET, "/v1/events").count { $0.hasPrefix("handle") } == 2)
        driver.answer("A", to: 1)
        #expect(driver.answer("B", to: 2).contains("handle 4: GET /v1/events"))
    }

    @Test func `a connection that cannot be written is neither read nor handled`() {
        var driver = MachineDriver()
        driver.take(.active, .writabilityChanged(isWritable: false))
        #expect(driver.request(body: "0") == ["disarm idle"])
        #expect(
            driver.take(.writabilityChanged(isWritable: true)) == [
                "admit", "handle 0: POST /v1/sends 0", "read", "arm answer",
            ])
    }

    @Test func `a request without a place is refused, behind one of its own it waits`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        driver.admits = false
        #expect(driver.request(body: "1") == ["admit"])
        driver.admits = true
        #expect(
            driver.answer("a", to: 0) == [
                "admit", "handle 1: POST /v1/sends 1", "write a", "flush", "read", "arm answer",
            ])
        driver.answer("b", to: 1)
        driver.admits = false
        #expect(
            driver.request(body: "2").prefix(3) == ["admit", "write tooManyInFlight", "flush"])
        #expect(driver.stateName == "idle", "the connection goes on")
    }

    @Test func `a turn ends after sixty-four requests and goes on when the others had theirs`() {
        var limits = EndpointLimits()
        limits.inFlightPerConnectionMax = 100
        var driver = MachineDriver(limits)
        for _ in 0..<70 { driver.take(.head(driver.head()), .end) }
        let first = driver.take(.readComplete)
        #expect(first.count { $0.hasPrefix("handle") } == 64)
        #expect(first.suffix(2) == ["resume later", "arm answer"])
        #expect(driver.take(.resumed).count { $0.hasPrefix("handle") } == 6)
    }

    @Test func `the answer to the last request closes, and nothing behind it is taken`() {
        var driver = MachineDriver()
        driver.request(closes: true)
        #expect(!driver.machine.parsesInput)
        #expect(driver.request(body: "behind") == [])
        #expect(
            driver.answer("bye", to: 0) == [
                "write bye, closes", "flush", "disarm answer", "arm linger", "end output", "read",
            ])
    }

    @Test func `a refusal stands behind the answers of the requests before it`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        #expect(driver.take(.parserFailed(.malformed)) == [])
        #expect(
            driver.answer("a", to: 0).prefix(3) == ["write a", "write malformedRequest, closes", "flush"])
    }

    // MARK: Bodies and the shared bound

    @Test func `a large body takes its part of the shared bound before it is asked for`() {
        var driver = MachineDriver()
        #expect(
            driver.take(.head(driver.head(byteCount: 40_000, expectsContinue: true))) == ["reserve 65536"])
        #expect(
            driver.take(.parsed, .readComplete).prefix(2) == ["write 100", "flush"])
        driver.take(.body(ByteBuffer(repeating: 120, count: 40_000)))
        #expect(driver.reservedByteCount == 65_536)
        #expect(driver.take(.end) == ["release 65536"])
        #expect(driver.reservedByteCount == 0)
    }

    @Test func `a body over the shared bound is refused and not asked for`() {
        var driver = MachineDriver()
        driver.reserves = false
        driver.take(.head(driver.head(byteCount: 40_000, expectsContinue: true)))
        #expect(
            driver.take(.parsed, .readComplete).prefix(2) == ["write tooManyInFlight, closes", "flush"])
        #expect(driver.stateName == "lingering")
    }

    @Test func `what is thrown away after a refusal has a bound`() {
        var driver = MachineDriver()
        driver.take(.parserFailed(.malformed))
        let max = EndpointLimits().lingerByteCountMax
        #expect(driver.take(.received(byteCount: max), .readComplete) == ["read"])
        #expect(driver.take(.received(byteCount: 1)) == ["close"])
    }

    // MARK: Streams

    private func stream(_ lines: String) -> MachineDriver {
        var driver = MachineDriver()
        driver.take(.active, .received(byteCount: 1), .head(driver.liveHead), .parsed, .readComplete)
        driver.take(.received(byteCount: 1), .body(ByteBuffer(string: lines)), .parsed)
        return driver
    }

    @Test func `a live stream answers line by line and the connection goes on behind it`() {
        var driver = MachineDriver()
        driver.take(.active, .received(byteCount: 1))
        #expect(driver.take(.head(driver.liveHead)) == ["record streamBegan"])
        #expect(
            driver.take(.parsed, .readComplete) == ["write stream head", "flush", "read", "arm idle"])
        driver.take(.received(byteCount: 1), .body(ByteBuffer(string: "one\ntw")), .parsed)
        #expect(
            driver.take(.readComplete) == [
                "admit", "handle 1: line one", "read", "arm answer", "disarm idle", "arm request",
            ]
        )
        // The second line has begun, and its time goes on.
        #expect(driver.answer("1", to: 1) == ["write line 1", "flush", "read", "disarm answer"])
        driver.take(.received(byteCount: 1), .body(ByteBuffer(string: "o")), .end, .parsed)
        #expect(driver.take(.readComplete).prefix(2) == ["admit", "handle 2: line two"])
        #expect(driver.answer("2", to: 2).prefix(3) == ["write line 2", "write last chunk", "flush"])
        #expect(driver.stateName == "idle")
    }

    @Test func `a line that is too long is refused in its place`() {
        var limits = EndpointLimits()
        limits.requestByteCountMax = 4
        var driver = MachineDriver(limits)
        driver.take(.active, .head(driver.liveHead), .body(ByteBuffer(string: "a\ntoo long\nb\n")), .end)
        driver.take(.readComplete)
        driver.answer("B", to: 3)
        #expect(
            driver.answer("A", to: 1).prefix(4) == [
                "write line A", "write line bodyTooLarge 4", "write line B",
                "write last chunk",
            ])
    }

    @Test func `a line without a place waits for one of its own, or is refused`() {
        var driver = stream("a\n")
        driver.take(.readComplete)
        driver.admits = false
        driver.take(.received(byteCount: 1), .body(ByteBuffer(string: "b\n")), .parsed)
        #expect(driver.take(.readComplete) == ["admit", "read"])
        driver.admits = true
        #expect(
            driver.answer("A", to: 1).prefix(4) == ["admit", "handle 2: line b", "write line A", "flush"])
        driver.answer("B", to: 2)
        driver.admits = false
        driver.take(.received(byteCount: 1), .body(ByteBuffer(string: "c\nd\n")), .parsed)
        #expect(
            driver.take(.readComplete).prefix(5) == [
                "admit", "admit", "write line tooManyInFlight", "write line tooManyInFlight", "flush",
            ])
        #expect(driver.stateName == "stream", "the stream goes on")
    }

    @Test func `no more lines are handled than the window`() {
        var limits = EndpointLimits()
        limits.streamLinesInFlightMax = 2
        var driver = MachineDriver(limits)
        driver.take(.active, .head(driver.liveHead), .readComplete)
        driver.take(.body(ByteBuffer(string: "a\nb\nc\n")))
        #expect(driver.take(.readComplete).filter { $0.hasPrefix("handle") || $0 == "read" }.count == 2)
        #expect(driver.answer("A", to: 1).contains("handle 3: line c"))
    }

    @Test func `a stream whose framing breaks after an answer ends without its last chunk`() {
        var driver = stream("a\nhalf")
        driver.take(.readComplete)
        driver.answer("A", to: 1)
        #expect(driver.take(.parserFailed(.malformed)).prefix(2) == ["flush", "disarm request"])
        #expect(driver.stateName == "lingering")
    }

    @Test func `a handler that drops a line closes the stream in the middle of its response`() {
        var driver = stream("a\nb\n")
        driver.take(.readComplete)
        driver.answer("A", to: 1)
        #expect(
            driver.take(.answer(nil, sequence: 2), .answersDelivered) == ["record answerDropped", "close"])
    }

    // MARK: Half-close

    @Test func `a client that has finished sending gets its answers, then the end`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        #expect(driver.take(.inputClosed) == [])
        #expect(
            driver.answer("a", to: 0) == [
                "write a", "flush", "disarm answer", "arm linger", "end output", "measure", "close",
            ])
    }

    @Test func `a client that finishes sending behind its last answer gets what is unwritten`() {
        var driver = MachineDriver()
        driver.request(closes: true)
        driver.answer("large", to: 0)
        driver.unwrittenByteCount = 10
        #expect(driver.take(.inputClosed) == ["measure", "arm writeStall"])
        #expect(driver.take(.readComplete) == [])
        #expect(driver.take(.fired(.linger)) == [])
        #expect(
            driver.take(.outputMeasured(OutputMeasure(unwrittenByteCount: 0, writtenByteCount: 10))) == [
                "close"
            ])
    }

    // MARK: Timers

    @Test func `the time of a request runs from its first byte to its last`() {
        var driver = MachineDriver()
        driver.take(.active)
        #expect(
            driver.take(.received(byteCount: 1), .parsed, .readComplete) == [
                "read", "disarm idle", "arm request",
            ])
        #expect(driver.take(.received(byteCount: 1), .parsed, .readComplete) == ["read"])
        driver.take(.received(byteCount: 1), .head(driver.head(byteCount: 2)), .parsed)
        #expect(driver.take(.readComplete) == ["read"])
        driver.take(.received(byteCount: 2), .body(ByteBuffer(string: "ab")), .end, .parsed)
        #expect(driver.take(.readComplete).contains("disarm request"))
    }

    @Test func `the time of an answer starts anew with every flush`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        driver.request(body: "1")
        #expect(driver.answer("a", to: 0) == ["write a", "flush", "read", "arm answer"])
        #expect(driver.take(.fired(.answer)) == ["record answerLate", "close"])
    }

    @Test func `a handler is not late while its client leaves earlier answers`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        driver.request(body: "1")
        driver.answer("a", to: 0)
        driver.take(.outputMeasured(OutputMeasure(unwrittenByteCount: 5, writtenByteCount: 0)))
        #expect(driver.take(.fired(.answer)) == [])
        #expect(
            driver.take(.outputMeasured(OutputMeasure(unwrittenByteCount: 0, writtenByteCount: 5))) == [
                "disarm writeStall"
            ])
        #expect(driver.take(.fired(.answer)) == ["record answerLate", "close"])
    }

    @Test func `the stall timer starts anew whenever the kernel takes bytes`() {
        var driver = MachineDriver()
        func measured(_ unwritten: Int, _ written: Int) -> ConnectionEvent {
            .outputMeasured(OutputMeasure(unwrittenByteCount: unwritten, writtenByteCount: written))
        }
        #expect(driver.take(measured(10, 0)) == ["arm writeStall"])
        #expect(driver.take(measured(10, 0)) == [])
        #expect(driver.take(measured(9, 1)) == ["arm writeStall"])
        #expect(driver.take(measured(0, 10)) == ["disarm writeStall"])
        #expect(driver.take(.fired(.writeStall)) == [])
        #expect(driver.take(measured(3, 10)) == ["arm writeStall"])
        #expect(driver.take(.fired(.writeStall)) == ["record writeStall", "close"])
    }

    // MARK: Draining

    @Test func `a connection that comes in while the endpoint stops may ask once, for a while`() {
        var driver = MachineDriver(isDraining: true)
        #expect(driver.take(.active) == ["read", "arm idle"])
        #expect(
            driver.take(.endUnused) == ["disarm idle", "arm linger", "end output", "measure", "close"])
        // One that asks in time is answered, and told that this was the last.
        var asking = MachineDriver(isDraining: true)
        asking.take(.active)
        asking.request()
        #expect(asking.answer("a", to: 0).prefix(2) == ["write a, closes", "flush"])
        #expect(asking.stateName == "closed")
        // A stream has no end of its own, so it is not begun.
        var streaming = MachineDriver(isDraining: true)
        streaming.take(.received(byteCount: 1), .head(streaming.liveHead), .parsed)
        #expect(streaming.take(.readComplete).prefix(2) == ["write draining, closes", "flush"])
    }

    @Test func `a connection that has asked before is ended by a drain at once`() {
        var driver = MachineDriver()
        driver.request()
        driver.answer("a", to: 0)
        #expect(driver.take(.drain).last == "close")
        #expect(driver.take(.endUnused) == [])
    }

    @Test func `the last answer of a drain says that it is the last`() {
        var driver = MachineDriver()
        driver.request(body: "0")
        driver.request(body: "1")
        driver.take(.drain)
        driver.answer("b", to: 1)
        #expect(
            driver.answer("a", to: 0).prefix(3) == ["write a", "write b, closes", "flush"])
        #expect(driver.stateName == "closed")
    }

    @Test func `a request that has begun before a drain is taken, one that begins later is refused`() {
        var driver = MachineDriver()
        driver.take(.received(byteCount: 1), .head(driver.head(byteCount: 2)), .parsed, .readComplete, .drain)
        driver.take(.received(byteCount: 2), .body(ByteBuffer(string: "ab")), .end)
        driver.take(.head(driver.head()), .end, .parsed)
        #expect(driver.take(.readComplete).prefix(2) == ["admit", "handle 0: POST /v1/sends ab"])
        #expect(driver.answer("a", to: 0).prefix(3) == ["write a", "write draining, closes", "flush"])
    }

    @Test func `a drained stream answers the lines that have come and ends in order`() {
        var driver = stream("a\nhalf")
        driver.take(.readComplete)
        #expect(driver.take(.drain) == ["disarm request"])
        #expect(driver.answer("A", to: 1).prefix(3) == ["write line A", "write last chunk", "flush"])
    }
}
