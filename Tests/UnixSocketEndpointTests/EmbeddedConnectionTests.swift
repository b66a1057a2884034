import Foundation
import GateVocabulary
import GatewayPipeline
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import WireProtocol

@testable import UnixSocketEndpoint

/// A connection in its channel's pipeline, on a loop whose clock the test moves.
@Suite struct EmbeddedConnectionTests {
    /// Keeps every request until the test answers it; called and asked on the test's thread.
    private final class Requests: RequestHandler {
        struct Received: Sendable {
            var request: WireRequest
            var reply: @Sendable (Answer) -> Void
        }

        private let received = Mutex<[Received]>([])

        var all: [Received] { received.withLock { $0 } }
        var targets: [String] { all.map(\.request.target) }

        func handle(
            _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
        ) {
            received.withLock { $0.append(Received(request: request, reply: reply)) }
        }

        func answer(_ index: Int, _ text: String) {
            all[index].reply(Answer(status: 200, body: Array(text.utf8)))
        }

        /// Drops every `reply` that was not called.
        func forget() { received.withLock { $0 = [] } }

        func mayUseReserve(_ peer: Peer) -> Bool { false }
    }

    /// Stands for the socket: an embedded channel closes both sides when one shall close.
    private final class OutputSide: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        private(set) var isEnded = false
        private(set) var readCount = 0

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            switch mode {
            case .output:
                isEnded = true
                promise?.succeed()
            case .input, .all: context.close(mode: mode, promise: promise)
            }
        }

        func read(context: ChannelHandlerContext) {
            readCount += 1
            context.read()
        }
    }

    private final class Bench {
        let loop = EmbeddedEventLoop()
        let channel: EmbeddedChannel
        let requests = Requests()
        let mailbox: AnswerMailbox
        let usage: EndpointUsage
        let outputSide = OutputSide()

        /// - Parameter handler: In place of ``requests``.
        init(_ limits: EndpointLimits = EndpointLimits(), handler: (any RequestHandler)? = nil) throws {
            let loop = loop
            channel = EmbeddedChannel(loop: loop)
            mailbox = AnswerMailbox(loop: loop, clock: EndpointClock { loop.now })
            usage = EndpointUsage(limits: limits)
            let credentials = PeerCredentials(userID: 1, groupID: 1, processID: 1, supplementaryGroups: [])
            let connection = HTTPConnection(
                peer: Peer(credentials: credentials, boundCaller: nil, listener: 0),
                handler: handler ?? requests, limits: limits, mailbox: mailbox,
                admission: try #require(usage.admitConnection(ofUser: 1, isReserved: false)), logger: .quiet)
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(outputSide)
            try pipeline.add(
                connection, headerByteCountMax: limits.headerByteCountMax,
                headerFieldCountMax: limits.headerFieldCountMax)
            channel.connect(to: try SocketAddress(unixDomainSocketPath: "/gate.sock"), promise: nil)
            _ = mailbox.scheduleSweep(everyMilliseconds: limits.sweepMilliseconds)
        }

        func receive(_ text: String) throws {
            try channel.writeInbound(ByteBuffer(string: text))
            loop.run()
        }

        /// What was written since the last call.
        func written() throws -> String {
            var text = ""
            while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
                text += String(buffer: buffer)
            }
            return text
        }

        func advance(milliseconds: Int64) { loop.advanceTime(by: .milliseconds(milliseconds)) }

        var metrics: EndpointMetrics {
            var metrics = EndpointMetrics()
            mailbox.counters.add(to: &metrics)
            return metrics
        }

        /// Whether the connection has given back everything it took, itself included.
        var isGone: Bool {
            !channel.isActive && mailbox.table.count == 0 && usage.connections.value == 0
                && usage.bufferedBytes.value == 0
        }
    }

    /// A sweep comes at most so long after a deadline.
    private static let sweep = EndpointLimits().sweepMilliseconds

    @Test func `a request goes to the handler and its answer back, and the channel is read on`() throws {
        let bench = try Bench()
        let readCount = bench.outputSide.readCount
        try bench.receive(post("/v1/sends", "one"))
        #expect(bench.requests.targets == ["/v1/sends"])
        #expect(try bench.written() == "")
        bench.requests.answer(0, "done")
        let written = try bench.written()
        #expect(written.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(written.hasSuffix("\r\n\r\ndone"))
        #expect(bench.outputSide.readCount > readCount)
        #expect(bench.usage.inFlight.value == 0)
    }

    @Test(arguments: FramingBoundTests.Place.allCases)
    func `framing that comes in one read is bounded as framing in many`(place: FramingBoundTests.Place) throws
    {
        let bench = try Bench()
        // Twice the bound.
        try bench.receive(place.start + String(repeating: place.piece, count: 32))
        #expect(try bench.written().hasPrefix("HTTP/1.1 431 "), "\(place)")
        #expect(bench.requests.all.isEmpty && bench.outputSide.isEnded)
    }

    @Test func `requests in one read have their framing counted apart`() throws {
        let bench = try Bench(handler: ScriptedHandler.echo)
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        let request = "\(head)5;x=\(String(repeating: "y", count: 900))\r\nhello\r\n0\r\n\r\n"
        try bench.receive(String(repeating: request, count: 50))
        #expect(try bench.written().components(separatedBy: "HTTP/1.1 200 OK").count == 51)
    }

    @Test func `pipelined answers go out in the order of their requests`() throws {
        let bench = try Bench()
        try bench.receive(post("/a", "1") + post("/b", "2") + get("/c"))
        #expect(bench.requests.targets == ["/a", "/b"], "the read waits for the writes")
        bench.requests.answer(1, "second")
        #expect(try bench.written() == "")
        bench.requests.answer(0, "first")
        #expect(bench.requests.targets == ["/a", "/b", "/c"])
        bench.requests.answer(2, "third")
        let answers = try bench.written().split(separator: "HTTP/1.1 200 OK\r\n")
        #expect(answers.map { $0.split(separator: "\r\n\r\n").last } == ["first", "second", "third"])
    }

    @Test func `answers that the handler gives at once share a flush and a chunk`() throws {
        let bench = try Bench(handler: ScriptedHandler.echo)
        try bench.receive(liveHead)
        _ = try bench.written()
        try bench.receive(chunk("a\nb\nc\n"))
        let flush = try #require(try bench.channel.readOutbound(as: ByteBuffer.self))
        #expect(String(buffer: flush) == "00000006\r\na\nb\nc\n\r\n")
        #expect(try bench.written() == "")
    }

    @Test func `an idle connection ends at its time and not before`() throws {
        let bench = try Bench()
        let limits = EndpointLimits()
        bench.advance(milliseconds: limits.idleMilliseconds - 1)
        #expect(!bench.outputSide.isEnded)
        bench.advance(milliseconds: Self.sweep)
        #expect(bench.outputSide.isEnded)
        #expect(bench.metrics[.idleTimeouts] == 1)
        #expect(try bench.written() == "")
        // The client does not end its side.
        bench.advance(milliseconds: limits.lingerMilliseconds - Self.sweep)
        #expect(!bench.isGone)
        bench.advance(milliseconds: 2 * Self.sweep)
        #expect(bench.isGone)
    }

    @Test func `idleness is counted from the last answer`() throws {
        let bench = try Bench()
        let limits = EndpointLimits()
        bench.advance(milliseconds: limits.idleMilliseconds - 1_000)
        try bench.receive(get())
        bench.advance(milliseconds: 2_000)
        bench.requests.answer(0, "late")
        bench.advance(milliseconds: limits.idleMilliseconds - 1)
        #expect(!bench.outputSide.isEnded)
        bench.advance(milliseconds: Self.sweep)
        #expect(bench.outputSide.isEnded)
    }

    @Test(arguments: [
        "GET /", "POST / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
    ])
    func `a request that drips is refused at its time and not before`(beginning: String) throws {
        let bench = try Bench()
        let limits = EndpointLimits()
        try bench.receive(beginning)
        for _ in 0..<2 {
            bench.advance(milliseconds: limits.requestReadMilliseconds / 2 - 1)
            #expect(try bench.written() == "")
            try bench.receive("x")
        }
        bench.advance(milliseconds: Self.sweep)
        #expect(try bench.written().hasPrefix("HTTP/1.1 408 "))
        #expect(bench.metrics[.readTimeouts] == 1)
        #expect(bench.outputSide.isEnded)
    }

    @Test func `an answer that does not come in its time closes the connection`() throws {
        let bench = try Bench()
        let limits = EndpointLimits()
        try bench.receive(get())
        bench.advance(milliseconds: limits.answerMilliseconds - 1)
        #expect(!bench.isGone)
        bench.advance(milliseconds: Self.sweep)
        #expect(bench.isGone)
        #expect(bench.metrics[.answersMissing] == 1)
        // Too late, and harmless.
        bench.requests.answer(0, "late")
        #expect(bench.usage.inFlight.value == 0)
    }

    @Test func `a request that the handler drops closes its connection`() throws {
        let bench = try Bench()
        try bench.receive(get())
        bench.requests.forget()
        bench.loop.run()
        #expect(bench.isGone)
        #expect(bench.metrics[.answersMissing] == 1)
        #expect(bench.usage.inFlight.value == 0)
    }

    /// Between two lines it is idle; within one it is late, as any request is.
    @Test(arguments: [false, true])
    func `a live stream that falls silent ends in order`(isWithinLine: Bool) throws {
        let bench = try Bench()
        try bench.receive(liveHead + chunk(isWithinLine ? "one\nunfini" : "one\n"))
        bench.requests.answer(0, "1")
        #expect(try bench.written().hasSuffix("\r\n\r\n00000002\r\n1\n\r\n"))
        let limits = EndpointLimits()
        let time = isWithinLine ? limits.requestReadMilliseconds : limits.idleMilliseconds
        bench.advance(milliseconds: time - 1)
        #expect(try bench.written() == "")
        bench.advance(milliseconds: Self.sweep + 1)
        #expect(try bench.written() == "0\r\n\r\n")
        #expect(bench.outputSide.isEnded)
        #expect(bench.metrics[.idleTimeouts] == (isWithinLine ? 0 : 1))
        #expect(bench.metrics[.readTimeouts] == (isWithinLine ? 1 : 0))
    }

    @Test func `a client that ends its side gets its answers, then the connection closes`() throws {
        let bench = try Bench()
        try bench.receive(get())
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!bench.outputSide.isEnded)
        bench.requests.answer(0, "one")
        #expect(try bench.written().hasSuffix("one"))
        #expect(bench.outputSide.isEnded)
        #expect(bench.isGone)
    }

    @Test func `a channel that is full is neither read nor given requests of`() throws {
        let bench = try Bench()
        bench.channel.isWritable = false
        bench.channel.pipeline.fireChannelWritabilityChanged()
        let readCount = bench.outputSide.readCount
        try bench.receive(get("/held"))
        #expect(bench.requests.targets == [])
        #expect(bench.outputSide.readCount == readCount)
        // While the connection is not read, its client is not idle.
        bench.advance(milliseconds: 2 * EndpointLimits().idleMilliseconds)
        #expect(bench.metrics[.idleTimeouts] == 0)
        bench.channel.isWritable = true
        bench.channel.pipeline.fireChannelWritabilityChanged()
        #expect(bench.requests.targets == ["/held"])
        #expect(bench.outputSide.readCount > readCount)
    }

    @Test func `a drain ends what is idle at once and what is busy with its last answer`() throws {
        let idle = try Bench()
        try idle.receive(get())
        idle.requests.answer(0, "before")
        idle.mailbox.table.startDraining()
        #expect(idle.outputSide.isEnded)
        #expect(idle.isGone)
        // One that has not asked yet is ended when its time is over.
        let unused = try Bench()
        unused.mailbox.table.startDraining()
        #expect(!unused.outputSide.isEnded)
        unused.mailbox.table.forEach { $0.endUnused() }
        #expect(unused.isGone)
        let busy = try Bench()
        try busy.receive(get())
        busy.mailbox.table.startDraining()
        #expect(!busy.outputSide.isEnded)
        busy.requests.answer(0, "last")
        #expect(try busy.written().contains("Connection: close\r\n"))
        #expect(busy.isGone)
    }

    @Test func `a connection that is cut gives back the bytes reserved for a half-sent body`() throws {
        let bench = try Bench()
        try bench.receive("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\nx")
        #expect(bench.usage.bufferedBytes.value == 65_536)
        bench.mailbox.table.forEach { $0.cut() }
        #expect(bench.isGone)
    }

    @Test func `what a refused client still sends is thrown away up to its bound`() throws {
        var limits = EndpointLimits()
        limits.lingerByteCountMax = 100
        let bench = try Bench(limits)
        try bench.receive("nonsense\r\n\r\n")
        #expect(try bench.written().hasPrefix("HTTP/1.1 400 "))
        try bench.receive(get("/" + String(repeating: "y", count: 40)))
        #expect(bench.channel.isActive)
        #expect(bench.requests.targets == [])
        try bench.receive(String(repeating: "y", count: 100))
        #expect(bench.isGone)
    }
}
