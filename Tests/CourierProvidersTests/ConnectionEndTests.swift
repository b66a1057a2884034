import NIOCore
import NIOEmbedded
import Testing

@testable import CourierProviders

/// A connection that writes nothing.
private final class SilentConnection: ProviderConnection {
    private(set) var written: [Exchange] = []
    override var room: Int { 8 - written.count }
    override var load: Int { written.count }
    override var carried: [Exchange] { written }
    override func write(_ exchange: Exchange) { written.append(exchange) }
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
}
