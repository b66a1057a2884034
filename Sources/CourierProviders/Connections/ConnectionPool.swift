import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL

/// The connections to one provider, and the requests that wait for a place on one of them.
///
/// All of it is confined to one event loop, so nothing here is locked. It grows by demand: a request that finds no place
/// opens a connection, up to the limit.
final class ConnectionPool {
    private let endpoint: ProviderEndpoint
    private let kind: ProviderConnections.Kind
    private let trust: TLSTrust
    let limits: ConnectionLimits
    let loop: any EventLoop
    private var waiting = CircularBuffer<Exchange>()
    /// Connections that may carry requests, or still carry some.
    private var connections: [ProviderConnection] = []
    private var connecting: [ProviderConnection] = []
    /// The number of attempts of which it is not known yet whether there is a TCP connection.
    private var dialling = 0
    /// Promises of ``reach(_:)`` calls.
    private var reaching: [EventLoopPromise<Void>] = []
    private var isClosed = false
    /// The TLS context, made once: reading the system's trust store costs milliseconds.
    private var tls: NIOSSLContext?

    init(
        _ endpoint: ProviderEndpoint, _ kind: ProviderConnections.Kind, _ trust: TLSTrust,
        _ limits: ConnectionLimits, _ loop: any EventLoop
    ) {
        self.endpoint = endpoint
        self.kind = kind
        self.trust = trust
        self.limits = limits
        self.loop = loop
    }

    // MARK: Requests

    func submit(_ exchange: Exchange) {
        guard !isClosed else { return exchange.settle(.notWritten("the courier is stopping")) }
        guard waiting.count < limits.waitingMax else {
            return exchange.settle(.notWritten("\(waiting.count) requests already wait for \(endpoint)"))
        }
        let milliseconds = exchange.request.timeoutMilliseconds
        exchange.deadline = loop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
            self.timedOut(exchange, milliseconds)
        }
        waiting.append(exchange)
        dispatch()
    }

    /// A request that the server refused unread goes again at once, on another connection if it can.
    func refused(_ exchange: Exchange, by connection: ProviderConnection, _ why: String) {
        guard !exchange.isSettled else { return }
        exchange.connection = nil
        exchange.isWritten = false
        exchange.refuser = connection
        exchange.refusalCount += 1
        guard exchange.refusalCount < limits.refusalsMax, !isClosed else {
            return exchange.settle(.notWritten(why))
        }
        waiting.prepend(exchange)
    }

    func cancel(_ future: EventLoopFuture<ProviderAnswer>) {
        if let exchange = waiting.first(where: { $0.promise.futureResult === future }) {
            exchange.settle(.notWritten("the request was cancelled"))
            waiting.removeAll { $0 === exchange }
        } else {
            for connection in connections { connection.cancel(future) }
        }
    }

    private func timedOut(_ exchange: Exchange, _ milliseconds: Int64) {
        if let connection = exchange.connection {
            exchange.giveUp(
                exchange.isWritten
                    ? "no answer within \(milliseconds) ms"
                    : "the provider did not take the whole request within \(milliseconds) ms")
            connection.abandon(exchange)
            dispatch()
        } else {
            exchange.settle(.notWritten("no connection to \(endpoint) was free within \(milliseconds) ms"))
            waiting.removeAll { $0 === exchange }
        }
    }

    /// Gives waiting requests to connections, oldest first, and opens connections for those that find no place.
    func dispatch() {
        var written: [ProviderConnection] = []
        while let exchange = waiting.first {
            guard let connection = place(for: exchange) else { break }
            waiting.removeFirst()
            guard mayWrite(exchange) else { continue }
            exchange.connection = connection
            connection.lastUse = .now()
            if let begin = exchange.begin {
                connection.reserve(exchange)
                loop.makeFutureWithTask { await begin() }.assumeIsolated().whenSuccess { hasBegun in
                    self.write(exchange, on: connection, hasBegun: hasBegun)
                }
                continue
            }
            connection.write(exchange)
            if !written.contains(where: { $0 === connection }) { written.append(connection) }
        }
        for connection in written { connection.flush() }
        if !waiting.isEmpty { grow() }
    }

    /// The last moment: after it the provider may act on the request.
    private func mayWrite(_ exchange: Exchange) -> Bool {
        if exchange.mayWrite() { return true }
        exchange.settle(.notWritten("the time to hand the message over had passed before it was written"))
        return false
    }

    /// Writes a request whose place was kept while it was begun. The connection may have been lost meanwhile, and the request have
    /// gone to another one, or been given up.
    private func write(_ exchange: Exchange, on connection: ProviderConnection, hasBegun: Bool) {
        guard !exchange.isSettled, exchange.connection === connection, !connection.isEnded else { return }
        if !hasBegun { exchange.settle(.notWritten("the request was not begun")) }
        guard hasBegun, mayWrite(exchange) else {
            // Nothing was written on it, so it carries the next one.
            connection.leave(exchange)
            if connection.isDraining { connection.closeIdle() }
            return dispatch()
        }
        connection.write(exchange)
        connection.flush()
    }

    /// The connection with the least to do; one that has refused the request only when there is and can be no other.
    private func place(for exchange: Exchange) -> ProviderConnection? {
        let free = connections.filter { $0.isReady && !$0.isEnded && !$0.isDraining && $0.room > 0 }
        let least = free.filter { $0 !== exchange.refuser }.min { $0.load < $1.load }
        return least ?? (mayGrow || !connecting.isEmpty || dialling > 0 ? nil : free.first)
    }

    // MARK: Connections

    private var usableCount: Int { connections.count { !$0.isDraining } }

    private var mayGrow: Bool {
        usableCount + connecting.count + dialling < limits.connectionsMax
    }

    private func grow() {
        while mayGrow, connecting.count + dialling < min(limits.connectingMax, waiting.count) { connect() }
    }

    /// Opens a connection without a request, where there is none, to learn whether the provider can be reached.
    func reach(_ promise: EventLoopPromise<Void>) {
        guard !isClosed else { return promise.fail(ExchangeFault.notWritten("the courier is stopping")) }
        if connections.contains(where: { !$0.isDraining }) { return promise.succeed(()) }
        reaching.append(promise)
        if connecting.isEmpty, dialling == 0 { connect() }
    }

    private func connect() {
        dialling += 1
        let isolated = NIOLoopBound(self, eventLoop: loop)
        let readyBy = NIODeadline.now() + .milliseconds(limits.connectMilliseconds)
        let context: NIOSSLContext?
        do {
            context = try tlsContext()
        } catch {
            dialling -= 1
            return connectFailed(.notWritten("TLS cannot be set up: \(error)"))
        }
        let host = endpoint.host
        let serverName = endpoint.isAddress ? nil : host
        ClientBootstrap(group: loop)
            .connectTimeout(.milliseconds(limits.connectMilliseconds))
            .channelOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
            .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let operations = channel.pipeline.syncOperations
                    if let context {
                        try operations.addHandler(
                            NIOSSLClientHandler(context: context, serverHostname: serverName))
                    }
                    try isolated.value.addHandlers(operations, readyBy)
                }
            }
            .connect(host: host, port: endpoint.port).assumeIsolated().whenComplete { result in
                self.dialling -= 1
                if case .failure(let error) = result {
                    let why = ConnectionFault.words(error, self.endpoint)
                    self.connectFailed(
                        ConnectionFault.needsOperator(error) ? .unusable(why) : .notWritten(why))
                }
            }
    }

    private func tlsContext() throws -> NIOSSLContext? {
        if endpoint.isPlain { return nil }
        if let tls { return tls }
        let made = try NIOSSLContext(configuration: trust.client(protocols: [kind.rawValue]))
        tls = made
        return made
    }

    private func addHandlers(
        _ operations: ChannelPipeline.SynchronousOperations, _ readyBy: NIODeadline
    ) throws {
        switch kind {
        case .http2:
            let handler = HTTP2Connection(self, authority: endpoint.authority)
            handler.readyBy = readyBy
            var settings = NIOHTTP2Handler.ConnectionConfiguration()
            settings.initialSettings = HTTP2Connection.settings
            // Answers to streams that were given up still come, and are not an error of the provider's.
            settings.maximumRecentlyResetStreams = limits.streamsMax * 2
            var streams = NIOHTTP2Handler.StreamConfiguration()
            // A provider that refuses every stream must be able to say so.
            streams.streamResetFrameRateLimit.maximumCount = 10_000
            try operations.addHandlers([
                NIOHTTP2Handler(
                    mode: .client, connectionConfiguration: settings, streamConfiguration: streams),
                handler,
            ])
        case .http1:
            let handler = HTTP1Connection(self, host: endpoint.authority, isPlain: endpoint.isPlain)
            handler.readyBy = readyBy
            var decoder = NIOHTTPDecoderLimitConfiguration()
            decoder.maxHeaderListSize = 16_384
            try operations.addHandlers([
                HTTPRequestEncoder(),
                ByteToMessageHandler(HTTPResponseDecoder(limitConfiguration: decoder)), handler,
            ])
        }
    }

    /// The TCP connection is there. Of the addresses that a name has, several may get so far; one remains.
    func dialled(_ connection: ProviderConnection) {
        connecting.append(connection)
        let milliseconds = limits.connectMilliseconds
        loop.assumeIsolated().scheduleTask(deadline: connection.readyBy) {
            if !connection.isReady { connection.fail("no \(self.kind.rawValue) within \(milliseconds) ms") }
        }
    }

    func connected(_ connection: ProviderConnection) {
        connecting.removeAll { $0 === connection }
        connections.append(connection)
        for promise in reaching { promise.succeed(()) }
        reaching = []
        if isClosed { return connection.drain() }
        dispatch()
        if usableCount < limits.connectionsMin, connecting.isEmpty, dialling == 0 { connect() }
    }

    func disconnected(_ connection: ProviderConnection) {
        connecting.removeAll { $0 === connection }
        connections.removeAll { $0 === connection }
        if connection.isReady {
            dispatch()
        } else {
            let why = ConnectionFault.prefix(endpoint) + (connection.fault ?? "the connection was closed")
            connectFailed(connection.needsOperator ? .unusable(why) : .notWritten(why))
        }
    }

    /// No request fails for it that another connection can carry.
    private func connectFailed(_ fault: ExchangeFault) {
        for promise in reaching { promise.fail(fault) }
        reaching = []
        guard usableCount == 0, connecting.isEmpty, dialling == 0 else { return }
        let failed = waiting
        waiting = []
        for exchange in failed { exchange.settle(fault) }
    }

    /// - Returns: Whether an idle connection is one more than is kept.
    func isSpare(_ connection: ProviderConnection) -> Bool {
        usableCount > limits.connectionsMin
            && NIODeadline.now() - connection.lastUse >= .milliseconds(limits.idleMilliseconds)
    }

    func close() {
        isClosed = true
        let failed = waiting
        waiting = []
        for exchange in failed { exchange.settle(.notWritten("the courier is stopping")) }
        for connection in connecting { connection.fail("the courier is stopping") }
        for connection in connections { connection.drain() }
    }
}
