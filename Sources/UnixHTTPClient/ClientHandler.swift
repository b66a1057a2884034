import NIOCore
import NIOHTTP1

/// The client's end of one connection: pairs answers with requests in order, or carries one live stream.
///
/// Only the connection's event loop touches it.
final class ClientHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    struct Request {
        var head: HTTPRequestHead
        var body: [UInt8]
        var timeoutMilliseconds: Int64
    }

    /// One request and what has come of its answer.
    private final class Exchange {
        let promise: EventLoopPromise<UnixHTTPResponse>
        var request: Request?
        var timer: Scheduled<Void>?
        var isWritten = false
        /// The caller has its error already; the answer still has to be read past.
        var isSettled = false
        var response: UnixHTTPResponse?

        init(_ request: Request, _ promise: EventLoopPromise<UnixHTTPResponse>) {
            self.request = request
            self.promise = promise
        }
    }

    private let configuration: UnixHTTPClientConfiguration
    private var context: ChannelHandlerContext?
    /// Outlives ``context``.
    private var loop: (any EventLoop)?
    /// Written, in order.
    private var exchanges = CircularBuffer<Exchange>()
    /// Not yet written, in order.
    private var queue = CircularBuffer<Exchange>()
    private var stream: StreamExchange?
    /// The answer being read says it is the last.
    private var answerCloses = false
    private(set) var isOpen = true
    private var closingCause: UnixHTTPError.Cause?
    private var framing = AnswerFraming()

    init(_ configuration: UnixHTTPClientConfiguration) { self.configuration = configuration }

    /// Whether another request may be given to it.
    var isReusable: Bool { isOpen && !answerCloses && stream == nil }

    // MARK: Requests

    func submit(_ request: Request, _ promise: EventLoopPromise<UnixHTTPResponse>) {
        guard isReusable, let context else {
            promise.fail(error(.neverWritten, closingCause ?? .closed))
            return
        }
        guard queue.count < configuration.queuedRequestsMax else {
            promise.fail(error(.neverWritten, .tooManyQueued(countMax: configuration.queuedRequestsMax)))
            return
        }
        let exchange = Exchange(request, promise)
        let milliseconds = request.timeoutMilliseconds
        exchange.timer = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
            self.timedOut(exchange, milliseconds: milliseconds)
        }
        queue.append(exchange)
        writeQueued(context)
    }

    /// Gives the caller up without disturbing the requests around it.
    func cancel(_ promise: EventLoopPromise<UnixHTTPResponse>) {
        let isThis = { (exchange: Exchange) in exchange.promise.futureResult === promise.futureResult }
        if let index = queue.firstIndex(where: isThis) {
            let exchange = queue.remove(at: index)
            settle(exchange, error(.neverWritten, .cancelled))
        } else if let exchange = exchanges.first(where: isThis) {
            settle(exchange, error(exchange.isWritten ? .unanswered : .neverWritten, .cancelled))
        }
    }

    private func writeQueued(_ context: ChannelHandlerContext) {
        var didWrite = false
        while exchanges.count < configuration.pipelinedRequestsMax, isReusable,
            let exchange = queue.popFirst()
        {
            guard let request = exchange.request else { continue }
            exchange.request = nil
            exchanges.append(exchange)
            context.write(wrapOutboundOut(.head(request.head)), promise: nil)
            if !request.body.isEmpty {
                let body = context.channel.allocator.buffer(bytes: request.body)
                context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            }
            // The end is written last, so its promise speaks for the whole request.
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenSuccess { exchange.isWritten = true }
            context.write(wrapOutboundOut(.end(nil)), promise: written)
            didWrite = true
        }
        if didWrite { context.flush() }
    }

    private func timedOut(_ exchange: Exchange, milliseconds: Int64) {
        if exchange.isSettled { return }
        if let index = queue.firstIndex(where: { $0 === exchange }) {
            queue.remove(at: index)
            settle(exchange, error(.neverWritten, .timedOut(milliseconds: milliseconds)))
            return
        }
        settle(
            exchange,
            error(exchange.isWritten ? .unanswered : .neverWritten, .timedOut(milliseconds: milliseconds)))
        // Answers come in order, so those behind it are late as well, and a late answer must not be taken
        // for another request's.
        close(.closed)
    }

    private func settle(_ exchange: Exchange, _ error: UnixHTTPError) {
        if exchange.isSettled { return }
        exchange.isSettled = true
        exchange.timer?.cancel()
        exchange.promise.fail(error)
    }

    // MARK: A live stream

    /// Writes the head of a stream; the connection carries nothing else from here on.
    func open(_ exchange: StreamExchange, _ head: HTTPRequestHead) {
        guard isReusable, exchanges.isEmpty, queue.isEmpty, let context else {
            exchange.opened.fail(error(.neverWritten, closingCause ?? .closed))
            return
        }
        stream = exchange
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    /// Writes lines as one chunk.
    ///
    /// - Returns: Done when more may be written; the lines may still be in the channel's queue.
    func writeLines(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        guard let context, let stream, isOpen else { return failedClosed() }
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        if context.channel.isWritable || !isOpen { return context.eventLoop.makeSucceededVoidFuture() }
        let promise = context.eventLoop.makePromise(of: Void.self)
        stream.writers.append(promise)
        return promise.futureResult
    }

    func endLines() -> EventLoopFuture<Void> {
        guard let context, isOpen else { return failedClosed() }
        let promise = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
        let failure = error(.unanswered, .closed)
        return promise.futureResult.flatMapErrorThrowing { _ in throw failure }
    }

    func nextAnswer(timeoutMilliseconds: Int64) -> EventLoopFuture<[UInt8]?> {
        guard let stream else { return failedClosed() }
        let answer = stream.next(timeoutMilliseconds)
        if let context, isOpen, !stream.isFull { context.read() }
        return answer
    }

    private func failedClosed<Value>() -> EventLoopFuture<Value> {
        let failure = error(.unanswered, closingCause ?? .closed)
        guard let loop else { preconditionFailure("a client handler was used before it had a channel") }
        return loop.makeFailedFuture(failure)
    }

    // MARK: The channel's events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        loop = context.eventLoop
    }

    func channelActive(context: ChannelHandlerContext) { context.read() }

    /// ``InboundMeter`` calls it with every read before the parser sees the bytes.
    ///
    /// - Returns: Whether the parser shall see them.
    func willParse(byteCount: Int) -> Bool {
        framing.received(byteCount)
        return isOpen && closingCause == nil
    }

    func didParse() {
        guard framing.isTooLong(byteCountMax: configuration.headerByteCountMax) else { return }
        close(.framingTooLarge(byteCountMax: configuration.headerByteCountMax))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch part {
        case .head: break
        case .body(let bytes): framing.body(bytes.readableBytes)
        case .end: framing.end()
        }
        if let stream {
            switch stream.read(part, answerByteCountMax: configuration.answerByteCountMax) {
            case .goesOn: break
            case .isOver: close(.closed)
            case .fails(let cause): close(cause)
            }
            return
        }
        guard let exchange = exchanges.first else {
            // An answer without a request: the server refuses the connection as such and will close it.
            answerCloses = true
            return
        }
        switch part {
        case .head(let head):
            exchange.response = UnixHTTPResponse(
                status: Int(head.status.code), headers: head.headers.map { ($0.name, $0.value) }, body: [])
            answerCloses = !head.isKeepAlive
        case .body(let bytes):
            guard
                (exchange.response?.body.count ?? 0) + bytes.readableBytes <= configuration.answerByteCountMax
            else {
                settle(
                    exchange,
                    error(.unanswered, .answerTooLarge(byteCountMax: configuration.answerByteCountMax)))
                close(.closed)
                return
            }
            exchange.response?.body.append(contentsOf: bytes.readableBytesView)
        case .end:
            exchanges.removeFirst()
            if !exchange.isSettled, let response = exchange.response {
                exchange.isSettled = true
                exchange.timer?.cancel()
                exchange.promise.succeed(response)
            }
            if answerCloses { close(.closed) } else { writeQueued(context) }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if stream?.isFull != true { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable, let stream else { return }
        let writers = stream.writers
        stream.writers = []
        for writer in writers { writer.succeed() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case is HTTPParserError: close(.answerMalformed)
        case let error as IOError: close(.systemError(errorNumber: error.errnoCode))
        default: close(.closed)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        isOpen = false
        let cause = closingCause ?? .closed
        self.context = nil
        // A write that had not left completely has failed before this event, so `isWritten` is final.
        for exchange in exchanges {
            settle(exchange, error(exchange.isWritten ? .unanswered : .neverWritten, cause))
        }
        for exchange in queue { settle(exchange, error(.neverWritten, cause)) }
        exchanges.removeAll()
        queue.removeAll()
        stream?.end(error(.unanswered, cause))
        context.fireChannelInactive()
    }

    func close(_ cause: UnixHTTPError.Cause) {
        guard isOpen, let context else { return }
        if closingCause == nil { closingCause = cause }
        context.close(promise: nil)
    }

    private func error(_ stage: UnixHTTPError.Stage, _ cause: UnixHTTPError.Cause) -> UnixHTTPError {
        UnixHTTPError(stage, cause, path: configuration.path)
    }
}
