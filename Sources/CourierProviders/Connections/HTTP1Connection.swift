import NIOCore
import NIOHTTP1
import NIOTLS

/// One HTTP/1.1 connection (RFC 9112) as a client: one request at a time.
final class HTTP1Connection: ProviderConnection, ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let host: String
    private let isPlain: Bool
    private var context: ChannelHandlerContext?
    private var exchange: Exchange?
    /// Nothing of the request is written yet, so nothing that the server says answers it.
    private var isReserved = false
    private var idleCheck: Scheduled<Void>?

    init(_ pool: ConnectionPool, host: String, isPlain: Bool) {
        self.host = host
        self.isPlain = isPlain
        super.init(pool)
    }

    override var room: Int { exchange == nil ? 1 : 0 }
    override var load: Int { exchange == nil ? 0 : 1 }
    override var carried: [Exchange] { exchange.map { [$0] } ?? [] }

    override func write(_ exchange: Exchange) {
        guard let context else { return exchange.settle(.notWritten("the connection was closed")) }
        (self.exchange, isReserved) = (exchange, false)
        let request = exchange.request
        var head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: request.path)
        head.headers.add(name: "host", value: host)
        for (name, value) in request.headers { head.headers.add(name: name, value: value) }
        if !request.body.isEmpty || request.method == "POST" {
            head.headers.add(name: "content-length", value: "\(request.body.count)")
        }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !request.body.isEmpty {
            let bytes = context.channel.allocator.buffer(bytes: request.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        }
        context.write(
            wrapOutboundOut(.end(nil)), promise: promise(ofLastPartOf: exchange, on: context.eventLoop))
    }

    override func reserve(_ exchange: Exchange) { (self.exchange, isReserved) = (exchange, true) }
    override func leave(_ exchange: Exchange) { (self.exchange, isReserved) = (nil, false) }

    override func flush() { context?.flush() }

    /// An answer that comes late would be taken for the next request's, so the connection ends.
    override func abandon(_ exchange: Exchange) { fail("a request on it was given up") }

    override func fail(_ why: String) {
        if fault == nil { fault = why }
        end()
        context?.close(promise: nil)
    }

    override func closeIdle() { context?.close(promise: nil) }

    override func release() -> [Exchange] {
        idleCheck?.cancel()
        defer { exchange = nil }
        return carried
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        pool?.dialled(self)
        scheduleIdleCheck(context)
        if isPlain {
            // The address behind a name is known only now.
            guard context.remoteAddress?.isLoopback == true else {
                return fail("without TLS only this machine is reached")
            }
            becomeReady()
        }
        context.fireChannelActive()
    }

    private func scheduleIdleCheck(_ context: ChannelHandlerContext) {
        let interval = TimeAmount.milliseconds(limits.idleMilliseconds)
        idleCheck = context.eventLoop.assumeIsolated().scheduleTask(in: interval) {
            if self.exchange == nil, self.isReady, self.pool?.isSpare(self) == true { return self.drain() }
            if let context = self.context { self.scheduleIdleCheck(context) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        self.context = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A server without ALPN speaks HTTP/1.1 (RFC 7301 leaves the default to the application).
        if case TLSUserEvent.handshakeCompleted(let negotiated) = event {
            if negotiated == nil || negotiated == "http/1.1" {
                becomeReady()
            } else {
                fail("the server does not speak HTTP/1.1")
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let exchange, !isReserved else { return fail("the server sent what nobody asked for") }
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard head.status.code >= 200 else { return }
            exchange.receive(
                status: Int(head.status.code), headers: head.headers.map { ($0.name.lowercased(), $0.value) })
            closesAfterAnswer = !head.isKeepAlive
        case .body(let bytes):
            if !exchange.receive(bytes) {
                fail("the answer is longer than \(ProviderAnswer.bodyBytesMax) bytes")
            }
        case .end:
            self.exchange = nil
            exchange.finish()
            if closesAfterAnswer { drain() }
            pool?.dispatch()
        }
    }

    private var closesAfterAnswer = false
}
