import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import UnixSocketEndpoint

@testable import PublicPages

/// Connections in their channels' pipelines, on a loop whose clock the test moves.
@Suite struct PageConnectionTests {
    /// Stands for the socket: an embedded channel closes both sides when one shall close.
    private final class OutputSide: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            switch mode {
            case .output: promise?.succeed()
            case .input, .all: context.close(mode: mode, promise: promise)
            }
        }
    }

    private let loop = EmbeddedEventLoop()
    private let handler = FakeHandler()
    private let limits: PageLimits
    private let connections: PageConnections
    private let service: PageService
    private let rates: PageRates
    private let path = "/u/\(FakeHandler.token)"

    init() {
        var limits = PageLimits()
        limits.connectionCountMax = 3
        self.limits = limits
        let loop = loop
        connections = PageConnections(countMax: limits.connectionCountMax)
        service = PageService(handler: handler, preferencesURL: nil)
        rates = PageRates(limits, clock: { loop.now })
    }

    private func connect() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: loop)
        let connection = PageConnection(
            service: service, limits: limits, connections: connections, rates: rates)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(OutputSide())
        try pipeline.add(
            connection, headerByteCountMax: limits.headerByteCountMax,
            headerFieldCountMax: limits.headerFieldCountMax)
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        return channel
    }

    private func receive(_ text: String, on channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(string: text))
        loop.run()
    }

    private func written(to channel: EmbeddedChannel) throws -> String {
        var text = ""
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
        return text
    }

    private func ask(on channel: EmbeddedChannel) throws {
        try receive("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n", on: channel)
    }

    @Test(arguments: ["", "\r\n", "POST /u/", "POST /u/x HTTP/1.1\r\nHost: a\r\nContent-Le"])
    func `a client without a whole header is cut off after three seconds, and told nothing`(said: String)
        throws
    {
        let channel = try connect()
        try receive(said, on: channel)
        loop.advanceTime(by: .milliseconds(2_999))
        #expect(channel.isActive)
        loop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive && connections.all.isEmpty)
        #expect(try written(to: channel).isEmpty)
    }

    /// Where bytes may stand that are no body, and what they are made of.
    @Test(arguments: [
        ("\r\n", "\r\n"), ("GET /u/x HTTP/1.1\r\nHost: a\r\nX:", " "),
        ("POST /u/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=", "y"),
        ("POST /u/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: ", "y"),
    ])
    func `framing counts as header bytes, in one read or in many`(start: String, filler: String) throws {
        let piece = String(repeating: filler, count: 1_024)
        for isOneRead in [true, false] {
            let channel = try connect()
            let pieces = [start] + Array(repeating: piece, count: 17)
            for text in isOneRead ? [pieces.joined()] : pieces { try receive(text, on: channel) }
            #expect(try written(to: channel).hasPrefix("HTTP/1.1 431 "))
            #expect(handler.state.withLock { $0.asked.isEmpty })
            channel.close(promise: nil)
            loop.run()
        }
    }

    @Test func `what comes behind a request is thrown away up to its bound`() throws {
        let channel = try connect()
        try ask(on: channel)
        let kilobyte = String(repeating: "y", count: 1_024)
        for _ in 0..<1_024 { try receive(kilobyte, on: channel) }
        #expect(channel.isActive)
        try receive("y", on: channel)
        #expect(!channel.isActive)
    }

    @Test(arguments: [
        ("\r\n", 400), ("Host: a\r\nHost: a\r\n\r\n", 400), ("Host: a\r\nhost: b\r\n\r\n", 400),
        ("Host:\r\n\r\n", 200), ("host: a\r\n\r\n", 200),
    ])
    func `a request names its host once`(headers: String, status: Int) throws {
        let channel = try connect()
        try receive("GET \(path) HTTP/1.1\r\n\(headers)", on: channel)
        #expect(try written(to: channel).hasPrefix("HTTP/1.1 \(status) "))
        #expect(handler.state.withLock { $0.asked.isEmpty } == (status == 400))
    }

    @Test func `a client of HTTP 1 point 0 need not name a host`() throws {
        let channel = try connect()
        try receive("GET \(path) HTTP/1.0\r\n\r\n", on: channel)
        #expect(try written(to: channel).hasPrefix("HTTP/1.1 200 "))
    }

    @Test(arguments: [("http://drop.example", 200), ("HTTP://a:80", 200), ("https://a", 404)])
    func `a target in absolute form leads to its page`(origin: String, status: Int) throws {
        let channel = try connect()
        try receive("GET \(origin)\(path) HTTP/1.1\r\nHost: a\r\n\r\n", on: channel)
        #expect(try written(to: channel).hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test func `a client without a whole body has ten seconds from when it connected`() throws {
        let channel = try connect()
        loop.advanceTime(by: .milliseconds(2_000))
        try receive("POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nact", on: channel)
        loop.advanceTime(by: .milliseconds(7_999))
        #expect(channel.isActive)
        #expect(try written(to: channel).isEmpty)
        loop.advanceTime(by: .milliseconds(1))
        #expect(try written(to: channel).hasPrefix("HTTP/1.1 408 "))
        loop.advanceTime(by: limits.lingerTime)
        #expect(!channel.isActive && connections.all.isEmpty)
    }

    @Test func `the one that was answered makes way first, then the oldest without a whole request`() throws {
        let (silent, begun, done) = (try connect(), try connect(), try connect())
        try receive("GET ", on: begun)
        try ask(on: done)
        #expect(try written(to: done).hasPrefix("HTTP/1.1 200 "))

        let fourth = try connect()
        #expect([silent, begun, done, fourth].map(\.isActive) == [true, true, false, true])
        let fifth = try connect()
        #expect([silent, begun, fourth, fifth].map(\.isActive) == [false, true, true, true])
        // What stays goes on as before.
        try receive("\(path) HTTP/1.1\r\nHost: a\r\n\r\n", on: begun)
        try ask(on: fifth)
        for channel in [begun, fifth] { #expect(try written(to: channel).hasPrefix("HTTP/1.1 200 ")) }
        #expect(connections.all.count == 3)
    }

    @Test func `one that is being answered stays, and there are never more than one over the bound`() throws {
        handler.state.withLock { $0.keeps = true }
        let asking = try (0..<3).map { _ in try connect() }
        for channel in asking { try ask(on: channel) }
        var refused: [EmbeddedChannel] = []
        for _ in 0..<5 {
            refused.append(try connect())
            #expect(connections.all.count == 4)
        }
        for channel in refused {
            #expect(try written(to: channel).hasPrefix("HTTP/1.1 503 "))
        }
        #expect(refused.map(\.isActive) == [false, false, false, false, true])
        let kept = handler.state.withLock { $0.kept }
        #expect(kept.count == 3)
        for reply in kept { reply() }
        loop.run()
        for channel in asking { #expect(try written(to: channel).hasPrefix("HTTP/1.1 404 ")) }
        loop.advanceTime(by: limits.lingerTime)
        #expect(connections.all.isEmpty)
    }
}
