import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing

@testable import CourierProviders

/// A connection without a channel.
private final class SilentConnection: ProviderConnection {
    private(set) var written: [Exchange] = []
    override var room: Int { 8 - written.count }
    override var load: Int { written.count }
    override var carried: [Exchange] { written }
    /// Whether the kernel takes what it writes.
    var isTaken = true
    override func write(_ exchange: Exchange) {
        written.append(exchange)
        exchange.isWritten = isTaken
    }
    override func flush() {}
    override func abandon(_ exchange: Exchange) {}
    override func closeIdle() {}
    override func fail(_ why: String) {
        fault = why
        end()
    }
    override func release() -> [Exchange] {
        defer { written = [] }
        return written
    }
}

@Suite struct ConnectionEndTests {
    private static func request(_ loop: EmbeddedEventLoop) -> Exchange {
        Exchange(
            ProviderRequest(path: "/", headers: [], body: [], timeoutMilliseconds: 1_000),
            loop.makePromise(), mayWrite: { true })
    }

    private static func pool(_ loop: EmbeddedEventLoop) throws -> ConnectionPool {
        var limits = ConnectionLimits.http2
        limits.connectionsMin = 1
        return ConnectionPool(
            ProviderEndpoint(host: "localhost", port: 1), .http2, try TLSTrust(file: nil), limits, loop)
    }

    @Test func `a connection whose settings come after its deadline carries nothing`() throws {
        let loop = EmbeddedEventLoop()
        let pool = try Self.pool(loop)
        let (late, good) = (SilentConnection(pool), SilentConnection(pool))
        late.readyBy = loop.now + .milliseconds(100)
        pool.dialled(late)
        loop.advanceTime(by: .milliseconds(100))
        #expect(late.isEnded)
        late.becomeReady()
        #expect(!late.isReady)
        pool.dialled(good)
        good.becomeReady()
        let exchange = Self.request(loop)
        pool.submit(exchange)
        #expect(late.written.isEmpty && good.written.count == 1)
        exchange.settle(.unanswered("the test is over"))
    }

    @Test func `a connection that has ended has settled what it carried, and holds its pool no longer`()
        throws
    {
        let loop = EmbeddedEventLoop()
        var pool: ConnectionPool? = try Self.pool(loop)
        weak let held = pool
        let connection = SilentConnection(pool!)
        connection.readyBy = loop.now + .milliseconds(100)
        pool?.dialled(connection)
        connection.becomeReady()
        let exchange = Self.request(loop)
        pool?.submit(exchange)
        #expect(connection.written.count == 1)
        connection.fail("cut off")
        #expect(exchange.isSettled && connection.written.isEmpty)
        loop.advanceTime(by: .seconds(20))
        pool = nil
        #expect(held == nil)
    }

    @Test func `a request that was not written whole goes to another connection when its own is lost`()
        throws
    {
        let loop = EmbeddedEventLoop()
        let pool = try Self.pool(loop)
        let (first, second) = (SilentConnection(pool), SilentConnection(pool))
        first.isTaken = false
        for connection in [first, second] {
            connection.readyBy = .distantFuture
            pool.dialled(connection)
            connection.becomeReady()
        }
        let exchange = Self.request(loop)
        pool.submit(exchange)
        #expect(first.written.count == 1)
        first.fail("cut off")
        #expect(!exchange.isSettled && second.written.count == 1)
        // Once it is written, its fate is not known any more.
        second.fail("cut off")
        #expect(exchange.isSettled)
    }

    @Test func `what a GOAWAY leaves unread goes on when the connection ends with it`() throws {
        let loop = EmbeddedEventLoop()
        let pool = try Self.pool(loop)
        let connection = HTTP2Connection(pool, authority: "localhost")
        connection.readyBy = .distantFuture
        let channel = EmbeddedChannel(loop: loop)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(HTTP2Frame(streamID: .rootStream, payload: .settings(.settings([]))))
        let exchange = Self.request(loop)
        pool.submit(exchange)
        #expect(connection.load == 1 && exchange.isWritten)
        let second = SilentConnection(pool)
        second.readyBy = .distantFuture
        pool.dialled(second)
        second.becomeReady()
        try channel.writeInbound(
            HTTP2Frame(
                streamID: .rootStream,
                payload: .goAway(lastStreamID: .rootStream, errorCode: .noError, opaqueData: nil)))
        loop.run()
        #expect(!exchange.isSettled && second.written.count == 1)
        #expect(connection.isEnded)
        exchange.settle(.unanswered("the test is over"))
    }

    @Test func `a name that leads off this machine is not spoken to without TLS`() throws {
        let loop = EmbeddedEventLoop()
        for (address, isSpokenTo) in [("127.0.0.1", true), ("::1", true), ("192.0.2.1", false)] {
            let pool = ConnectionPool(
                try ProviderEndpoint(url: "http://localhost:1"), .http1, try TLSTrust(file: nil), .http1, loop
            )
            let connection = HTTP1Connection(pool, host: "localhost", isPlain: true)
            connection.readyBy = .distantFuture
            let channel = EmbeddedChannel(loop: loop)
            try channel.pipeline.syncOperations.addHandler(connection)
            channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1)
            channel.pipeline.fireChannelActive()
            #expect(connection.isReady == isSpokenTo, "\(address)")
        }
    }
}
