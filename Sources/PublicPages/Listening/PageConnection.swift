import GatewayPipeline
import Glibc
import NIOCore
import NIOHTTP1

/// One client and its one request: after the answer the connection ends, which a proxy in front does not mind.
///
///     bytes → HTTPRequestDecoder → PageConnection → PageService → UnsubscribeDesk
///     bytes ←──────────────────────────┘
///
/// Not reentrant and confined to its event loop; what is answered elsewhere comes back over ``NIOLoopBound``.
final class PageConnection: ChannelInboundHandler {
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
    private let isAdmitted: Bool
    private let rate: PageRate
    private let ended: @Sendable () -> Void
    private var state = State.reading(nil, [])
    private var deadline: Scheduled<Void>?

    /// - Parameters:
    ///   - isAdmitted: Whether there is room for its request; one for whom there is none is told so unread.
    ///   - ended: Called once, when the connection is gone.
    init(
        service: PageService, limits: PageLimits, isAdmitted: Bool, rate: PageRate,
        ended: @escaping @Sendable () -> Void
    ) {
        self.service = service
        self.limits = limits
        self.isAdmitted = isAdmitted
        self.rate = rate
        self.ended = ended
    }

    func channelActive(context: ChannelHandlerContext) {
        guard isAdmitted else {
            state = .answering
            return write(service.busy(), to: context)
        }
        setDeadline(limits.requestTime, context) { connection, context in
            // Whoever said nothing at all is told nothing.
            guard case .reading(.some, _) = connection.state else { return context.close(promise: nil) }
            connection.state = .answering
            connection.write(connection.service.refusal(408), to: context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        state = .closed
        deadline?.cancel()
        ended()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .reading(let head, var body) = state else { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head): state = .reading(head, body)
        case .body(let buffer):
            guard body.count + buffer.readableBytes <= limits.bodyByteCountMax else {
                state = .answering
                return write(service.refusal(413), to: context)
            }
            // Taken out of the state, so that the bytes are appended and not copied.
            state = .reading(head, [])
            body.append(contentsOf: buffer.readableBytesView)
            state = .reading(head, body)
        case .end:
            guard let head else { return }
            state = .answering
            answer(head, body, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard case .reading = state, error is HTTPParserError || error is NIOHTTPDecoderError else {
            return context.close(promise: nil)
        }
        state = .answering
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
        guard rate.take() else { return write(service.busy(), to: context) }
        let request = PageRequest(
            method: head.method.rawValue, target: head.uri,
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
        var text = "HTTP/1.1 \(answer.status) \(reason)\r\ndate: \(HTTPDate.now())\r\n"
        text += "content-type: \(answer.contentType)\r\ncontent-length: \(answer.body.count)\r\n"
        for header in answer.headers + PageAnswer.alwaysSent {
            text += "\(header.name): \(header.value)\r\n"
        }
        text += "connection: close\r\n\r\n"
        return Array(text.utf8) + (answer.isHeadOnly ? [] : answer.body)
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7), whatever the process's locale.
private enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func now() -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
