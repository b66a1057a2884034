import CanonicalJSON
import CourierModel
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOTLS

/// One HTTP/2 connection (RFC 9113) as a client, on frames.
///
/// It opens no channel per stream: a request is two frames and its answer two or three. What matters is which requests
/// the server has certainly not read: those on streams above the last one of a GOAWAY, and those reset with
/// REFUSED_STREAM (RFC 9113, sections 6.8 and 8.7). They go to another connection; every other request that was written and
/// has no answer may have been acted on.
final class HTTP2Connection: ProviderConnection, ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// A stream's window holds the longest answer that is read, so only the connection's window is ever renewed.
    static let settings: HTTP2Settings = [
        HTTP2Setting(parameter: .enablePush, value: 0),
        HTTP2Setting(parameter: .initialWindowSize, value: 2 * ProviderAnswer.bodyBytesMax),
        HTTP2Setting(parameter: .maxHeaderListSize, value: 16_384),
    ]
    /// Bytes of answers after which the connection's window of 65,535 is renewed.
    private static let windowRenewal = 32_768
    /// Ids end at 2³¹−1; a connection is replaced long before.
    private static let streamIDMax = 1 << 30
    /// The same in every request of an app, so they are worth a place in the compression table (RFC 7541, section 7.1.3 on
    /// what is not).
    private static let repeated: Set<String> = [
        "authorization", "apns-topic", "apns-push-type", "apns-priority", "content-type",
    ]

    /// Streams at once where the server names no limit. RFC 9113, section 6.5.2, recommends no smaller one.
    private static let unstatedStreamsMax = 100

    private let authority: String
    private var context: ChannelHandlerContext?
    private var streams: [HTTP2StreamID: Exchange] = [:]
    private var nextStreamID = 1
    private var streamsMax = 0
    private var unacknowledgedBytes = 0
    private var pings: Scheduled<Void>?
    private var pingDeadline: Scheduled<Void>?
    private var pingNumber: UInt64 = 0

    init(_ pool: ConnectionPool, authority: String) {
        self.authority = authority
        super.init(pool)
    }

    override var room: Int {
        nextStreamID > Self.streamIDMax ? 0 : min(streamsMax, limits.streamsMax) - streams.count
    }
    override var load: Int { streams.count }
    override var carried: [Exchange] { Array(streams.values) }

    // MARK: Requests

    override func write(_ exchange: Exchange) {
        guard let context else { return exchange.settle(.notWritten("the connection was closed")) }
        let id = HTTP2StreamID(nextStreamID)
        nextStreamID += 2
        streams[id] = exchange
        let request = exchange.request
        var headers = HPACKHeaders()
        headers.reserveCapacity(request.headers.count + 5)
        headers.add(name: ":method", value: request.method)
        headers.add(name: ":scheme", value: "https")
        headers.add(name: ":path", value: request.path, indexing: .nonIndexable)
        headers.add(name: ":authority", value: authority)
        for (name, value) in request.headers {
            headers.add(
                name: name, value: value,
                indexing: Self.repeated.contains(name) ? .indexable : .nonIndexable)
        }
        if !request.body.isEmpty {
            headers.add(name: "content-length", value: "\(request.body.count)", indexing: .nonIndexable)
        }
        let head = HTTP2Frame.FramePayload.Headers(headers: headers, endStream: request.body.isEmpty)
        let last = promise(ofLastPartOf: exchange, on: context.eventLoop)
        context.write(
            wrapOutboundOut(HTTP2Frame(streamID: id, payload: .headers(head))),
            promise: request.body.isEmpty ? last : nil)
        if !request.body.isEmpty {
            let bytes = context.channel.allocator.buffer(bytes: request.body)
            let data = HTTP2Frame.FramePayload.Data(data: .byteBuffer(bytes), endStream: true)
            // The provider's window may hold it back (RFC 9113, section 5.2).
            context.write(wrapOutboundOut(HTTP2Frame(streamID: id, payload: .data(data))), promise: last)
        }
        if nextStreamID > Self.streamIDMax { drain() }
    }

    override func flush() { context?.flush() }

    override func abandon(_ exchange: Exchange) {
        guard let id = streams.first(where: { $0.value === exchange })?.key else { return }
        reset(id)
        // A connection that has gone silent fails all of its requests, not only the oldest.
        ping()
    }

    private func reset(_ id: HTTP2StreamID) {
        context?.writeAndFlush(
            wrapOutboundOut(HTTP2Frame(streamID: id, payload: .rstStream(.cancel))), promise: nil)
        remove(id)
    }

    @discardableResult
    private func remove(_ id: HTTP2StreamID) -> Exchange? {
        let exchange = streams.removeValue(forKey: id)
        if isDraining, streams.isEmpty { closeIdle() }
        return exchange
    }

    // MARK: The connection's life

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        pool?.dialled(self)
        schedulePing(context)
        context.fireChannelActive()
    }

    private func schedulePing(_ context: ChannelHandlerContext) {
        let interval = TimeAmount.milliseconds(limits.pingMilliseconds)
        pings = context.eventLoop.assumeIsolated().scheduleTask(in: interval) {
            if self.streams.isEmpty, self.isReady, self.pool?.isSpare(self) == true { return self.drain() }
            self.ping()
            if let context = self.context { self.schedulePing(context) }
        }
    }

    private func ping() {
        guard let context, !isEnded, pingDeadline == nil else { return }
        pingNumber += 1
        let data = HTTP2PingData(withInteger: pingNumber)
        context.writeAndFlush(
            wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: .ping(data, ack: false))), promise: nil
        )
        let milliseconds = limits.pingAnswerMilliseconds
        pingDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
            self.fail("no answer to a ping within \(milliseconds) ms")
        }
    }

    override func fail(_ why: String) {
        if fault == nil { fault = why }
        end()
        context?.close(promise: nil)
    }

    override func closeIdle() { context?.close(promise: nil) }

    override func release() -> [Exchange] {
        pings?.cancel()
        pingDeadline?.cancel()
        defer { streams = [:] }
        return Array(streams.values)
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
        switch event {
        case TLSUserEvent.handshakeCompleted(let negotiatedProtocol):
            if negotiatedProtocol != "h2" { fail("the server does not speak HTTP/2") }
        case let event as StreamClosedEvent:
            // The frame that closed it was read before and has settled it, unless it broke the protocol.
            if let exchange = remove(event.streamID) {
                exchange.settle(.unanswered("the stream was closed without a whole answer"))
                pool?.dispatch()
            }
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Frames

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let head): receive(head, on: frame.streamID)
        case .data(let data): receive(data, on: frame.streamID)
        case .settings(.settings(let settings)): receive(settings)
        case .rstStream(let code):
            guard let exchange = remove(frame.streamID) else { return }
            if code == .refusedStream {
                pool?.refused(exchange, by: self, "\(limits.refusalsMax) streams were refused")
            } else {
                exchange.settle(
                    .unanswered("the provider reset the stream (HTTP/2 error \(code.networkCode))"))
            }
            pool?.dispatch()
        case .goAway(let last, let code, let data): receiveGoAway(last, code, data)
        case .ping(let data, ack: true):
            // The answer carries what the ping had (RFC 9113, section 6.7); any other is no sign of life of this one.
            guard data == HTTP2PingData(withInteger: pingNumber) else { return }
            pingDeadline?.cancel()
            pingDeadline = nil
        case .ping, .settings, .windowUpdate, .priority, .pushPromise, .alternativeService, .origin: break
        }
    }

    /// Renews the window behind the frames: what is written while a frame is being read brings the end of its stream before it.
    func channelReadComplete(context: ChannelHandlerContext) {
        if unacknowledgedBytes >= Self.windowRenewal {
            let update = HTTP2Frame.FramePayload.windowUpdate(windowSizeIncrement: unacknowledgedBytes)
            unacknowledgedBytes = 0
            context.writeAndFlush(
                wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: update)), promise: nil)
        }
        context.fireChannelReadComplete()
    }

    private func receive(_ settings: HTTP2Settings) {
        let stated = settings.last { $0.parameter == .maxConcurrentStreams }?.value
        if let stated { streamsMax = stated } else if !isReady { streamsMax = Self.unstatedStreamsMax }
        if isReady { pool?.dispatch() } else { becomeReady() }
    }

    private func receive(_ head: HTTP2Frame.FramePayload.Headers, on id: HTTP2StreamID) {
        guard let exchange = streams[id] else { return }
        if let status = head.headers.first(name: ":status").flatMap({ Int($0) }), status >= 200 {
            exchange.receive(
                status: status,
                headers: head.headers.compactMap { $0.name.hasPrefix(":") ? nil : ($0.name, $0.value) })
        }
        if head.endStream { finish(id) }
    }

    private func receive(_ data: HTTP2Frame.FramePayload.Data, on id: HTTP2StreamID) {
        unacknowledgedBytes += data.data.readableBytes + (data.paddingBytes.map { $0 + 1 } ?? 0)
        guard let exchange = streams[id], case .byteBuffer(let bytes) = data.data else { return }
        guard exchange.receive(bytes) else {
            exchange.settle(.unanswered("the answer is longer than \(ProviderAnswer.bodyBytesMax) bytes"))
            if data.endStream { remove(id) } else { reset(id) }
            pool?.dispatch()
            return
        }
        if data.endStream { finish(id) }
    }

    private func finish(_ id: HTTP2StreamID) {
        remove(id)?.finish()
        pool?.dispatch()
    }

    private func receiveGoAway(_ last: HTTP2StreamID, _ code: HTTP2ErrorCode, _ data: ByteBuffer?) {
        // Apple says why in the frame: `{"reason":"Shutdown"}`.
        let reason = data.map { ProviderAnswer(status: 0, headers: [], body: Array($0.readableBytesView)) }
        if case .string(let text)? = reason?.json?["reason"] {
            fault = "the provider is closing the connection: \(ProviderReason.bounded(text))"
        } else {
            fault = "the provider is closing the connection (HTTP/2 error \(code.networkCode))"
        }
        let unread = streams.filter { $0.key > last }.sorted { $0.key < $1.key }
        for (id, _) in unread { streams[id] = nil }
        // Draining may end the connection at once, which then knows its pool no longer.
        let pool = pool
        drain()
        // The oldest goes first, so it is put in front last.
        for (_, exchange) in unread.reversed() {
            pool?.refused(exchange, by: self, fault ?? "the provider is closing the connection")
        }
        pool?.dispatch()
    }
}
