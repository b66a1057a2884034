import GatewayPipeline
import Logging
import NIOCore
import NIOHTTP1
import WireProtocol

/// One client: gives the connection's events to its state machine, and performs the actions that the machine answers.
///
///     bytes → InboundMeter → HTTPRequestDecoder → HTTPConnection ⇄ HTTPConnectionStateMachine
///     bytes ← ResponseWriter ←──────────────────────────┘   └→ handler → AnswerTicket → AnswerMailbox
///
/// Nothing is decided here: see ``HTTPConnectionStateMachine`` for what a connection does, and when.
final class HTTPConnection: MeteredConnection {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let peer: Peer
    private let handler: any RequestHandler
    private let limits: EndpointLimits
    private let mailbox: AnswerMailbox
    private let admission: Admission
    private let logger: Logger

    private var machine: HTTPConnectionStateMachine
    private var context: ChannelHandlerContext?
    private var key = ConnectionKey(index: 0, generation: 0)
    private var writer = ResponseWriter(allocator: ByteBufferAllocator())
    /// When each timer is due.
    private var deadlines = InlineArray<5, NIODeadline?>(repeating: nil)
    /// Bytes given to the channel since the connection began.
    private var flushedByteCount = 0
    private var isPerforming = false
    /// For ``AnswerMailbox``: stands in the list of connections with answers to write.
    var isTouched = false

    /// - Precondition: Called on the mailbox's loop.
    init(
        peer: Peer, handler: any RequestHandler, limits: EndpointLimits, mailbox: AnswerMailbox,
        admission: Admission, logger: Logger
    ) {
        self.peer = peer
        self.handler = handler
        self.limits = limits
        self.mailbox = mailbox
        self.admission = admission
        self.logger = logger
        machine = HTTPConnectionStateMachine(limits: limits, isDraining: mailbox.table.isDraining)
    }

    /// Tells the machine what happened, and does what follows. An event from within an action only changes the machine: the
    /// loop below, which performs the action, goes on with what follows from both.
    private func take(_ event: ConnectionEvent) {
        machine.handle(event)
        if isPerforming { return }
        isPerforming = true
        while let action = machine.nextAction() { perform(action) }
        isPerforming = false
    }

    private func perform(_ action: ConnectionAction) {
        switch action {
        case .admitRequest: machine.handle(.admission(isGranted: admission.admitRequest()))
        case .handle(let request, let sequence): give(request, sequence)
        case .reserveBytes(let count):
            machine.handle(.reservation(byteCount: count, isGranted: admission.admitBytes(count)))
        case .releaseBytes(let count): admission.releaseBytes(count)
        case .write(let part): write(part)
        case .flush: flush()
        case .read: context?.read()
        case .arm(let timer):
            deadlines[timer.rawValue] = mailbox.clock.now() + .milliseconds(timer.milliseconds(limits))
        case .disarm(let timer): deadlines[timer.rawValue] = nil
        case .measureOutput: machine.handle(.outputMeasured(outputMeasure))
        case .resumeLater: resumeLater()
        case .record(let incident): record(incident)
        case .endOutput: context?.close(mode: .output, promise: nil)
        case .close: context?.close(mode: .all, promise: nil)
        }
    }

    // MARK: The channel's events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        key = mailbox.table.add(self)
    }

    func channelActive(context: ChannelHandlerContext) { take(.active) }

    func channelInactive(context: ChannelHandlerContext) { letGo() }

    func handlerRemoved(context: ChannelHandlerContext) { letGo() }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        take(.writabilityChanged(isWritable: context.channel.isWritable))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { take(.inputClosed) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case HTTPParserError.headerOverflow: take(.parserFailed(.headersTooLarge))
        case is HTTPParserError: take(.parserFailed(.malformed))
        case is ByteToMessageDecoderError: take(.parserFailed(.decoderFinished))
        default:
            // The client is gone (EPIPE, ECONNRESET): whatever it still has with the handler takes its course.
            logger.trace("connection failed", metadata: ["error": "\(error)"])
            take(.channelFailed)
        }
    }

    func willParse(byteCount: Int) -> Bool {
        mailbox.counters.rise(.bytesRead, by: byteCount)
        take(.received(byteCount: byteCount))
        return machine.parsesInput
    }

    func didParse() { take(.parsed) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            take(
                .head(
                    Result { () throws(RefusedHead) in try RequestFraming(head, limits: limits) }))
        case .body(let bytes): take(.body(bytes))
        case .end: take(.end)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { take(.readComplete) }

    // MARK: Requests and answers

    /// - Precondition: The request has been admitted; the ticket gives its place back.
    private func give(_ request: WireRequest, _ sequence: UInt64) {
        switch request.kind {
        case .single: mailbox.counters.rise(.requests)
        case .streamLine: mailbox.counters.rise(.streamLines)
        }
        let ticket = AnswerTicket(mailbox: mailbox, key: key, sequence: sequence, admission: admission)
        handler.handle(request, from: peer) { ticket.answer($0) }
    }

    /// Takes an answer from the handler. The caller calls ``answersDelivered()`` afterwards.
    ///
    /// - Parameter answer: `nil` when the handler will never answer.
    func deliver(_ answer: Answer?, sequence: UInt64) { take(.answer(answer, sequence: sequence)) }

    /// Writes what can be written of the answers delivered so far.
    func answersDelivered() { take(.answersDelivered) }

    private func write(_ part: ResponsePart) {
        let date = mailbox.table.date
        switch part {
        case .interim: writer.writeInterim()
        case .response(let content, let isHead, let closes):
            writer.writeResponse(answer(for: content), date: date, isHead: isHead, closes: closes)
        case .streamHead(let isChunked, let closes):
            writer.writeStreamHead(date: date, isChunked: isChunked, closes: closes)
        case .line(let content, let isChunked): writer.writeLine(answer(for: content), isChunked: isChunked)
        case .lastChunk: writer.writeStreamEnd()
        }
    }

    private func answer(for content: AnswerQueue.Content) -> Answer {
        switch content {
        case .answer(let answer): return answer
        case .problem(let problem):
            mailbox.counters.rise(.problems)
            return problem.answer
        }
    }

    private func flush() {
        // A stream that breaks off, or one of HTTP/1.0, ends without a byte.
        guard let context, writer.byteCount > 0 else { return }
        let bytes = writer.take()
        flushedByteCount += bytes.readableBytes
        mailbox.counters.rise(.bytesWritten, by: bytes.readableBytes)
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    }

    private func record(_ incident: ConnectionIncident) {
        let counters = mailbox.counters
        switch incident {
        case .streamBegan: counters.rise(.streams)
        case .idleTimeout: counters.rise(.idleTimeouts)
        case .readTimeout: counters.rise(.readTimeouts)
        case .writeStall: counters.rise(.writeStalls)
        case .answerLate:
            logger.error(
                "no answer within the time allowed; closing the connection",
                metadata: ["milliseconds": "\(limits.answerMilliseconds)"])
            counters.rise(.answersMissing)
        case .answerDropped:
            logger.error("a request was dropped without an answer; closing its connection")
            counters.rise(.answersMissing)
        }
    }

    private func resumeLater() {
        let key = key
        mailbox.afterSockets { [mailbox] in mailbox.table[key]?.take(.resumed) }
    }

    // MARK: Time and the end

    private var outputMeasure: OutputMeasure {
        let unwritten =
            (try? context?.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
        return OutputMeasure(
            unwrittenByteCount: unwritten, writtenByteCount: flushedByteCount - unwritten)
    }

    /// Looks at every deadline; the mailbox's loop calls it.
    func sweep(_ now: NIODeadline) {
        take(.outputMeasured(outputMeasure))
        for timer in ConnectionTimer.allCases {
            if let due = deadlines[timer.rawValue], now >= due { take(.fired(timer)) }
        }
    }

    /// The endpoint stops: take no new request, finish those that have begun.
    func drain() { take(.drain) }

    /// The time of a drain in which a connection may ask for the first time is over.
    func endUnused() { take(.endUnused) }

    /// The drain's time is over.
    func cut() { take(.cut) }

    /// Gives everything back, once.
    private func letGo() {
        guard context != nil else { return }
        machine.handle(.channelClosed)
        // Also from within an action, because what is taken is given back before the connection is.
        while let action = machine.nextAction() { perform(action) }
        mailbox.table.remove(key)
        context = nil
        admission.connectionClosed()
    }
}
