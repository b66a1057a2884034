import GateVocabulary
import GatewayPipeline
import Glibc
import NIOCore
import NIOHTTP1
import UnixSocketEndpoint
import WireProtocol

/// One client and its one request: after the answer the connection ends, which a proxy in front does not mind.
///
///     bytes → InboundMeter → HTTPRequestDecoder → PageConnection → PageService → UnsubscribeHandler
///     bytes ←──────────────────────────┘
///
/// Not reentrant and confined to its event loop; what is answered elsewhere comes back over ``NIOLoopBound``.
final class PageConnection: MeteredConnection {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private enum State {
        case reading(HTTPRequestHead?, [UInt8])
        case answering
        /// What still comes is dropped until the client has read the answer and closes.
        case lingering
        case closed
    }

    private let service: PageService
    private let limits: PageLimits
    private let connections: PageConnections
    private let rates: PageRates
    private var state = State.reading(nil, [])
    private var openedAt = NIODeadline.distantPast
    private var deadline: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// Bytes received that were not body. The parser gives the body back and nothing else, so this is also what it skips: chunk
    /// extensions, trailers, white space, blank lines.
    private var framingByteCount = 0
    /// Bytes thrown away behind the request.
    private var droppedByteCount = 0

    init(service: PageService, limits: PageLimits, connections: PageConnections, rates: PageRates) {
        self.service = service
        self.limits = limits
        self.connections = connections
        self.rates = rates
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func willParse(byteCount: Int) -> Bool {
        if case .reading = state {
            framingByteCount += byteCount
            return true
        }
        droppedByteCount += byteCount
        if droppedByteCount > limits.lingerByteCountMax { context?.close(promise: nil) }
        return false
    }

    func didParse() {
        guard case .reading = state, let context else { return }
        refuseLongFraming(context)
    }

    /// - Returns: Whether the request was refused.
    @discardableResult private func refuseLongFraming(_ context: ChannelHandlerContext) -> Bool {
        // The empty line that ends a head does not count towards its bound.
        guard framingByteCount > limits.headerByteCountMax + 2 else { return false }
        write(service.refusal(431), to: context)
        return true
    }

    func channelActive(context: ChannelHandlerContext) {
        openedAt = context.eventLoop.now
        guard connections.admit(context.channel) else {
            return write(service.busy(), to: context)
        }
        // A client that has not sent a header is told nothing.
        setDeadline(limits.headerTime, context) { connection, context in
            connection.state = .lingering
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        state = .closed
        deadline?.cancel()
        connections.remove(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .reading(let head, var body) = state else { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            // RFC 9112 section 3.2: exactly one Host in HTTP/1.1.
            let hostCount = head.headers["host"].count
            guard hostCount == 1 || hostCount == 0 && head.version == .http1_0 else {
                return write(service.refusal(400), to: context)
            }
            state = .reading(head, body)
            setDeadline(openedAt + limits.requestTime - context.eventLoop.now, context) {
                connection, context in
                connection.write(connection.service.refusal(408), to: context)
            }
        case .body(let buffer):
            framingByteCount -= buffer.readableBytes
            guard body.count + buffer.readableBytes <= limits.bodyByteCountMax else {
                return write(service.refusal(413), to: context)
            }
            // Taken out of the state, so that the bytes are appended and not copied.
            state = .reading(head, [])
            body.append(contentsOf: buffer.readableBytesView)
            state = .reading(head, body)
        case .end:
            guard let head, !refuseLongFraming(context) else { return }
            state = .answering
            connections.set(.answering, of: context.channel)
            answer(head, body, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard case .reading = state, error is HTTPParserError || error is NIOHTTPDecoderError else {
            return context.close(promise: nil)
        }
        let isTooLong = (error as? HTTPParserError) == .headerOverflow || error is NIOHTTPDecoderError
        write(service.refusal(isTooLong ? 431 : 400), to: context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        switch state {
        case .answering: break
        case .reading, .lingering, .closed: context.close(promise: nil)
        }
    }

    // MARK: Answering

    private func answer(_ head: HTTPRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext) {
        // What is no target of a page leads nowhere.
        let target = RequestTarget.originForm(of: head.uri) ?? head.uri
        guard rates.take(for: service.rateTarget(of: target)) else {
            return write(service.busy(), to: context)
        }
        let request = PageRequest(
            method: head.method.rawValue, target: target,
            contentType: head.headers.first(name: "content-type"),
            acceptLanguage: head.headers.first(name: "accept-language"), body: body)
        setDeadline(limits.answerTime, context) { _, context in context.close(promise: nil) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        service.answer(request) { answer in
            loop.execute {
                let (connection, context) = bound.value
                guard case .answering = connection.state else { return }
                connection.write(answer, to: context)
            }
        }
    }

    /// Writes an answer, says that no more comes, and lets the client read it before the connection is gone.
    private func write(_ answer: PageAnswer, to context: ChannelHandlerContext) {
        state = .lingering
        connections.set(.answered, of: context.channel)
        setDeadline(limits.answerTime, context) { _, context in context.close(promise: nil) }
        let buffer = context.channel.allocator.buffer(bytes: Self.bytes(of: answer))
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.writeAndFlush(Self.wrapOutboundOut(buffer)).assumeIsolated().whenComplete { result in
            let (connection, context) = bound.value
            guard case .success = result else { return context.close(promise: nil) }
            connection.setDeadline(connection.limits.lingerTime, context) { _, context in
                context.close(promise: nil)
            }
            context.close(mode: .output, promise: nil)
        }
    }

    private func setDeadline(
        _ time: TimeAmount, _ context: ChannelHandlerContext,
        _ body: @escaping @Sendable (PageConnection, ChannelHandlerContext) -> Void
    ) {
        deadline?.cancel()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: time) {
            let (connection, context) = bound.value
            if case .closed = connection.state { return }
            body(connection, context)
        }
    }

    /// The answer as it goes over the wire.
    static func bytes(of answer: PageAnswer) -> [UInt8] {
        let reason = HTTPResponseStatus(statusCode: answer.status).reasonPhrase
        let date = Instant(milliseconds: Int64(time(nil)) * 1000).httpDate
        var text = "HTTP/1.1 \(answer.status) \(reason)\r\ndate: \(date)\r\n"
        text += "content-type: \(answer.contentType)\r\ncontent-length: \(answer.body.count)\r\n"
        for header in answer.headers + PageAnswer.alwaysSent {
            text += "\(header.name): \(header.value)\r\n"
        }
        text += "connection: close\r\n\r\n"
        return Array(text.utf8) + (answer.isHeadOnly ? [] : answer.body)
    }
}
