import GatewayPipeline
import Logging
import NIOCore
import NIOHTTP1

/// One client: reads requests, gives them to the handler, writes the answers in the order of the requests.
///
///     bytes → InboundMeter → HTTPRequestDecoder → HTTPConnection → handler
///     bytes ← ResponseWriter ← AnswerQueue ←──────── ReplyTicket ←──┘
///
/// Backpressure is one rule, in ``pump()`` and ``readIfWanted()``: what has been parsed is handed over only
/// while the answers written, waiting and unwritten are within their bounds, and the socket is read only
/// while nothing parsed is waiting. So a client that does not read its answers holds one read buffer, its
/// own answers up to their bound, and nothing else.
final class HTTPConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    /// What the bytes that come next belong to.
    private enum Input {
        case head
        case body(RequestAssembly)
        /// The stream stands in ``pending`` and its lines are handled as they come.
        case live(StreamLines)
        /// Nothing more is taken: a request was refused, or the client or we are done.
        case closed
    }

    /// Parsed and not yet handed over, in order.
    private enum Pending {
        case interim
        case request(WireRequest, AnswerQueue.ResponseFrame)
        case stream(StreamShape)
        case problem(WireProblem, AnswerQueue.ResponseFrame)
    }

    /// A stream that is being handled, or will be.
    private struct StreamShape {
        var target: String
        var headers: [(name: String, value: String)]
        var isChunked: Bool
        var closes: Bool
        var lines: StreamLines
        /// Taken and not yet handed over.
        var line: LineSource.Line?
        /// The batch's part of the shared bound on buffered bytes.
        var reservedByteCount: Int
        var isStarted = false
    }

    /// Why the input has a deadline.
    private enum InputWait { case idle, request }

    private let peer: Peer
    private let handler: any RequestHandler
    private let limits: EndpointLimits
    private let desk: EventLoopDesk
    private let admission: Admission
    private let logger: Logger

    private var context: ChannelHandlerContext?
    private var key = ConnectionKey(index: 0, generation: 0)
    private var input = Input.head
    private var pending = CircularBuffer<Pending>(initialCapacity: 4)
    private var answers = AnswerQueue()
    private var writer = ResponseWriter(allocator: ByteBufferAllocator())

    private var isPumping = false
    private var isPumpScheduled = false
    /// The client has sent its last byte.
    private var inputEnded = false
    /// The answer that closes the connection has been written; what still comes is thrown away.
    private var isLingering = false
    private var lingeredByteCount = 0
    private var isDraining = false
    /// Whether a whole request came that its sender called its last.
    private var hasLastRequest = false
    private var isClosed = false
    /// For ``EventLoopDesk``: stands in the list of connections to pump.
    var isTouched = false

    private var eventsInRead = 0
    private var headIsPartial = false
    private var inputWait = InputWait.idle
    private var inputDeadline: NIODeadline?
    private var answerDeadline: NIODeadline?
    private var lingerDeadline: NIODeadline?
    /// For the write stall: how many bytes had left for the kernel when that last changed.
    private var writtenByteCount = 0
    private var leftByteCount = 0
    private var leftAt: NIODeadline

    init(
        peer: Peer, handler: any RequestHandler, limits: EndpointLimits, desk: EventLoopDesk,
        admission: Admission, logger: Logger
    ) {
        self.peer = peer
        self.handler = handler
        self.limits = limits
        self.desk = desk
        leftAt = desk.clock.now()
        self.admission = admission
        self.logger = logger
    }

    // MARK: The channel's events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        key = desk.table.add(self)
        isDraining = desk.table.isDraining
    }

    func channelActive(context: ChannelHandlerContext) {
        pump()
    }

    func channelInactive(context: ChannelHandlerContext) {
        letGo()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        letGo()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { pump() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            inputEnded = true
            if isLingering {
                closeNow()
                return
            }
            if case .live(let lines) = input { abort(lines) }
            // A half-closed client (`nc -N`) still gets its answers.
            if case .head = input { input = .closed }
            pump()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if isClosed || isLingering { return }
        switch error {
        case HTTPParserError.headerOverflow:
            refuse(.headersTooLarge(byteCountMax: limits.headerByteCountMax))
        case is HTTPParserError:
            if case .live(let lines) = input { abort(lines) } else { refuse(.malformedRequest) }
        case is ByteToMessageDecoderError:
            break
        default:
            // The client is gone (EPIPE, ECONNRESET): whatever it still has with the handler takes its course.
            logger.trace("connection failed", metadata: ["error": "\(error)"])
            closeNow()
            return
        }
        pump()
    }

    /// ``InboundMeter`` calls it with every read before the parser sees the bytes.
    ///
    /// - Returns: Whether the parser shall see them.
    func willParse(byteCount: Int) -> Bool {
        desk.counters.bytesRead.rise(by: byteCount)
        if isLingering {
            lingeredByteCount += byteCount
            if lingeredByteCount > limits.lingerByteCountMax { closeNow() }
            return false
        }
        eventsInRead = 0
        if case .closed = input { return false }
        return true
    }

    func didParse() {
        if case .head = input {
            // Bytes that made no part of a request are the beginning of one. When there were parts, what
            // follows the last is taken for nothing until the next read: at worst an unfinished head that
            // came right behind a request is timed as idle.
            headIsPartial = eventsInRead == 0
        } else {
            headIsPartial = false
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        eventsInRead += 1
        switch unwrapInboundIn(data) {
        case .head(let head): readHead(head)
        case .body(let bytes): readBody(bytes)
        case .end: readEnd()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if isLingering {
            if !isClosed { context.read() }
            return
        }
        pump()
    }

    // MARK: Reading a request

    private func readHead(_ head: HTTPRequestHead) {
        guard case .head = input else { return }
        let framing: RequestFraming
        do throws(RefusedHead) {
            framing = try RequestFraming(head, limits: limits)
        } catch {
            var isHead = false
            if case .bodyTooLarge(_, let head) = error { isHead = head }
            refuse(error.problem(limits), isHead: isHead)
            return
        }
        if isDraining {
            refuse(.draining, isHead: framing.isHead)
            return
        }
        if framing.route == .live {
            let lines = StreamLines(LineSource(lineByteCountMax: limits.requestByteCountMax))
            if framing.expectsContinue { pending.append(.interim) }
            pending.append(
                .stream(
                    StreamShape(
                        target: framing.target, headers: framing.headers, isChunked: true,
                        closes: framing.closes, lines: lines, reservedByteCount: 0)))
            input = .live(lines)
            desk.counters.streams.rise()
            return
        }
        var assembly = RequestAssembly(framing, limits: limits)
        if case .counted(let count) = framing.body {
            guard reserve(upTo: count, for: &assembly) else {
                refuse(.tooManyInFlight, isHead: framing.isHead)
                return
            }
            assembly.expect(byteCount: count)
        }
        if framing.expectsContinue { pending.append(.interim) }
        input = .body(assembly)
    }

    private func readBody(_ bytes: ByteBuffer) {
        switch input {
        case .head, .closed: break
        case .live(let lines): lines.source.append(bytes)
        case .body(var assembly):
            // Left in its place, the array would be copied with every part.
            input = .closed
            var refusal: WireProblem?
            do throws(RequestAssembly.Refusal) {
                try assembly.append(bytes)
                if !reserve(upTo: assembly.byteCount, for: &assembly) { refusal = .tooManyInFlight }
            } catch {
                switch error {
                case .tooLong(let max): refusal = .bodyTooLarge(byteCountMax: max)
                case .tooManyLines(let max): refusal = .tooManyLines(lineCountMax: max)
                }
            }
            input = .body(assembly)
            if let refusal { refuse(refusal, isHead: assembly.framing.isHead) }
        }
    }

    private func readEnd() {
        switch input {
        case .head, .closed: break
        case .live(let lines):
            lines.source.end()
            input = .head
        case .body(let assembly):
            input = .head
            let framing = assembly.framing
            if framing.route == .batch {
                pending.append(
                    .stream(
                        StreamShape(
                            target: framing.target, headers: framing.headers, isChunked: !framing.isHTTP10,
                            closes: framing.closes, lines: StreamLines(assembly.lines),
                            reservedByteCount: assembly.reservedByteCount)))
                desk.counters.streams.rise()
            } else {
                admission.releaseBytes(assembly.reservedByteCount)
                pending.append(
                    .request(
                        WireRequest(
                            kind: .single, method: framing.method, target: framing.target,
                            headers: framing.headers, body: assembly.body),
                        AnswerQueue.ResponseFrame(isHead: framing.isHead, closes: framing.closes)))
            }
            // RFC 9112 section 9.6: nothing after a request that closes is looked at.
            if framing.closes {
                input = .closed
                hasLastRequest = true
            }
        }
    }

    /// Takes room in the shared bound on buffered bytes, in steps, so that a body that comes in small
    /// pieces does not ask for each.
    private func reserve(upTo byteCount: Int, for assembly: inout RequestAssembly) -> Bool {
        let needed = byteCount - limits.unreservedBodyByteCount
        guard needed > assembly.reservedByteCount else { return true }
        let step = 64 * 1024
        let wanted = (needed + step - 1) / step * step - assembly.reservedByteCount
        guard admission.admitBytes(wanted) else { return false }
        assembly.reservedByteCount += wanted
        return true
    }

    /// Answers in the handler's place, after everything that came before, and closes.
    private func refuse(_ problem: WireProblem, isHead: Bool = false) {
        if case .closed = input { return }
        if case .body(let assembly) = input { admission.releaseBytes(assembly.reservedByteCount) }
        input = .closed
        pending.append(.problem(problem, AnswerQueue.ResponseFrame(isHead: isHead, closes: true)))
    }

    /// A live stream's framing broke, or its client went away in the middle of it.
    private func abort(_ lines: StreamLines) {
        lines.isAborted = true
        conclude(lines)
    }

    /// A live stream takes nothing more: lines that have come are answered, an unfinished one never was a
    /// line. What has no answer in the response was not handled, and its sender sees that.
    private func conclude(_ lines: StreamLines) {
        lines.source.endAtLastCompleteLine()
        input = .closed
    }

    // MARK: Handing over and answering

    /// How many requests or lines one call may hand over before other connections of the loop have their turn.
    private static let pumpBudget = 64

    /// Hands over what may be handed over, writes what may be written, reads on if there is room.
    func pump() {
        guard let context, !isPumping, !isClosed else { return }
        isPumping = true
        var budget = Self.pumpBudget
        var progressed = true
        while progressed && !isClosed && !isLingering {
            progressed = handOver(context, &budget)
            if writeReady(context) { progressed = true }
            if budget <= 0 { break }
        }
        isPumping = false
        if isClosed { return }
        if budget <= 0 && !isPumpScheduled {
            isPumpScheduled = true
            let key = key
            desk.afterSockets { [desk] in
                guard let connection = desk.table[key] else { return }
                connection.isPumpScheduled = false
                connection.pump()
            }
        }
        if isLingering { return }
        if answers.isEmpty && pending.isEmpty {
            // Everything is answered and nothing more can come: the client ended its side, or asked to close.
            if case .closed = input {
                finish(context)
                return
            }
            if isDraining, case .head = input, !headIsPartial {
                finish(context)
                return
            }
        }
        readIfWanted(context)
        setDeadlines()
    }

    /// - Returns: Whether anything was handed over.
    private func handOver(_ context: ChannelHandlerContext, _ budget: inout Int) -> Bool {
        var didHandOver = false
        while budget > 0, !isClosed, context.channel.isWritable, let item = pending.first {
            switch item {
            case .interim:
                pending.removeFirst()
                answers.append(.interim)
            case .problem(let problem, let frame):
                pending.removeFirst()
                answerProblem(problem, .response(frame))
            case .request(let request, let frame):
                guard answers.count < limits.inFlightPerConnectionMax else { return didHandOver }
                guard admission.admitRequest() else {
                    // With an answer under way it is tried again then, without a queue to wake.
                    if answers.waitingCount > 0 { return didHandOver }
                    pending.removeFirst()
                    answerProblem(.tooManyInFlight, .response(frame))
                    break
                }
                pending.removeFirst()
                desk.counters.requests.rise()
                give(request, .response(frame))
            case .stream(var shape):
                pending.removeFirst()
                let progress = handOverLines(&shape, &budget)
                if isClosed {
                    admission.releaseBytes(shape.reservedByteCount)
                    return true
                }
                guard progress.isOver else {
                    pending.prepend(.stream(shape))
                    return didHandOver || progress.didHandOver
                }
            }
            budget -= 1
            didHandOver = true
        }
        return didHandOver
    }

    private func handOverLines(
        _ shape: inout StreamShape, _ budget: inout Int
    ) -> (didHandOver: Bool, isOver: Bool) {
        var didHandOver = false
        if !shape.isStarted {
            shape.isStarted = true
            answers.append(.streamHead(isChunked: shape.isChunked, closes: shape.closes))
            didHandOver = true
        }
        let frame: AnswerQueue.Frame = shape.isChunked ? .chunkedLine : .bareLine
        while budget > 0, !isClosed, answers.count < limits.streamLinesInFlightMax {
            if shape.line == nil { shape.line = shape.lines.source.next() }
            switch shape.line {
            case nil:
                guard shape.lines.source.isEnded else { return (didHandOver, false) }
                answers.append(
                    shape.lines.isAborted
                        ? .streamAborted : .streamEnd(isChunked: shape.isChunked, closes: shape.closes))
                admission.releaseBytes(shape.reservedByteCount)
                shape.reservedByteCount = 0
                return (true, true)
            case .tooLong:
                answerProblem(.bodyTooLarge(byteCountMax: limits.requestByteCountMax), frame)
            case .text(let line):
                if admission.admitRequest() {
                    desk.counters.streamLines.rise()
                    let request = WireRequest(
                        kind: .streamLine, method: "POST", target: shape.target, headers: shape.headers,
                        body: line)
                    give(request, frame)
                } else if answers.waitingCount > 0 {
                    // Tried again when one of our own is answered, without a queue to wake.
                    return (didHandOver, false)
                } else {
                    answerProblem(.tooManyInFlight, frame)
                }
            }
            shape.line = nil
            budget -= 1
            didHandOver = true
        }
        return (didHandOver, false)
    }

    /// - Precondition: The request has been admitted; the ticket gives its place back.
    private func give(_ request: WireRequest, _ frame: AnswerQueue.Frame) {
        let ticket = ReplyTicket(
            desk: desk, key: key, sequence: answers.appendWaiting(frame), admission: admission)
        handler.handle(request, from: peer) { ticket.answer($0) }
    }

    private func answerProblem(_ problem: WireProblem, _ frame: AnswerQueue.Frame) {
        desk.counters.problems.rise()
        answers.append(.ready(frame, handler.problem(problem)))
    }

    /// Takes an answer from the handler. The caller calls ``pump()`` afterwards.
    ///
    /// - Parameter reply: `nil` when the handler will never answer.
    func deliver(_ reply: WireReply?, sequence: UInt64) {
        guard !isClosed, !isLingering else { return }
        guard let reply else {
            logger.error("a request was dropped without an answer; closing its connection")
            desk.counters.answersMissing.rise()
            closeNow()
            return
        }
        answers.answer(sequence, with: reply)
    }

    /// - Returns: Whether anything was written.
    private func writeReady(_ context: ChannelHandlerContext) -> Bool {
        var didWrite = false
        var finishes = false
        let date = desk.table.date
        while !finishes, let place = answers.popReady() {
            didWrite = true
            switch place {
            case .waiting: preconditionFailure("an answer that is not there was taken for writing")
            case .ready(.response(let frame), let reply):
                finishes = frame.closes || isLast
                writer.writeResponse(reply, date: date, isHead: frame.isHead, closes: finishes)
            case .ready(.chunkedLine, let reply): writer.writeLine(reply, isChunked: true)
            case .ready(.bareLine, let reply): writer.writeLine(reply, isChunked: false)
            case .interim: writer.writeInterim()
            case .streamHead(let isChunked, let closes):
                writer.writeStreamHead(date: date, isChunked: isChunked, closes: closes)
            case .streamEnd(let isChunked, let closes):
                if isChunked { writer.writeStreamEnd() }
                finishes = closes || isLast
            case .streamAborted: finishes = true
            }
        }
        if didWrite {
            let bytes = writer.take()
            writtenByteCount += bytes.readableBytes
            desk.counters.bytesWritten.rise(by: bytes.readableBytes)
            answerDeadline = nil
            context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
            if finishes && !isClosed { finish(context) }
        }
        return didWrite
    }

    /// The answer just taken is the last of a connection that drains, so it may say so.
    private var isLast: Bool {
        guard isDraining, answers.isEmpty, pending.isEmpty else { return false }
        switch input {
        case .head: return !headIsPartial
        case .closed: return true
        case .body, .live: return false
        }
    }

    private func readIfWanted(_ context: ChannelHandlerContext) {
        if wantsInput(context) { context.read() }
    }

    private func wantsInput(_ context: ChannelHandlerContext) -> Bool {
        if inputEnded || !context.channel.isWritable || isPumpScheduled { return false }
        switch input {
        case .closed: return false
        case .head, .body: return pending.isEmpty && answers.count < limits.inFlightPerConnectionMax
        case .live(let lines):
            // The stream itself may stand in `pending`; once it is being handled only an unfinished line
            // is left in it, unless the window is full.
            return pending.count <= 1 && answers.count < limits.streamLinesInFlightMax
                && lines.source.bufferedByteCount <= limits.requestByteCountMax + 1
        }
    }

    // MARK: Time

    private func setDeadlines() {
        let now = desk.clock.now()
        if !answers.isEmpty {
            if answerDeadline == nil { answerDeadline = now + .milliseconds(limits.answerMilliseconds) }
        } else {
            answerDeadline = nil
        }
        guard let context, wantsInput(context) else {
            // We are not reading, so the client cannot be late.
            inputDeadline = nil
            return
        }
        let isInRequest: Bool
        switch input {
        case .body: isInRequest = true
        case .head: isInRequest = headIsPartial
        case .live, .closed: isInRequest = false
        }
        if isInRequest {
            if inputWait == .request, inputDeadline != nil { return }
            inputWait = .request
            inputDeadline = now + .milliseconds(limits.requestReadMilliseconds)
        } else if answers.isEmpty {
            inputWait = .idle
            inputDeadline = now + .milliseconds(limits.idleMilliseconds)
        } else {
            inputDeadline = nil
        }
    }

    /// Looks at every deadline; the desk's timer calls it.
    func sweep(_ now: NIODeadline) {
        guard let context, !isClosed else { return }
        let unwritten =
            (try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
        let left = writtenByteCount - unwritten
        if unwritten == 0 || left != leftByteCount {
            leftByteCount = left
            leftAt = now
        } else if now - leftAt >= .milliseconds(limits.writeStallMilliseconds) {
            desk.counters.writeStalls.rise()
            closeNow()
            return
        }
        if let lingerDeadline, now >= lingerDeadline, unwritten == 0 {
            closeNow()
            return
        }
        if isLingering { return }
        // While the client does not take its answers the handler is not late; the stall above watches.
        if let answerDeadline, now >= answerDeadline, answers.waitingCount > 0, unwritten == 0 {
            logger.error(
                "no answer within the time allowed; closing the connection",
                metadata: ["milliseconds": "\(limits.answerMilliseconds)"])
            desk.counters.answersMissing.rise()
            closeNow()
            return
        }
        guard let deadline = inputDeadline, now >= deadline else { return }
        inputDeadline = nil
        switch inputWait {
        case .idle:
            desk.counters.idleTimeouts.rise()
            if case .live(let lines) = input { conclude(lines) } else { input = .closed }
        case .request:
            desk.counters.readTimeouts.rise()
            refuse(.requestTimeout(milliseconds: limits.requestReadMilliseconds))
        }
        pump()
    }

    // MARK: The end

    /// The endpoint stops: take no new request, finish those that have begun.
    func drain() {
        guard !isClosed else { return }
        isDraining = true
        // Its side has ended already. A client that has sent nothing since is in the middle of nothing, and may keep its
        // own side open for as long as it likes.
        if isLingering {
            if let context, lingeredByteCount == 0 { closeWhenWritten(context) }
            return
        }
        if case .live(let lines) = input { conclude(lines) }
        pump()
    }

    /// The drain's time is over.
    func cut() { closeNow() }

    /// Ends our side after what is written, then waits a little for the client to end its own.
    private func finish(_ context: ChannelHandlerContext) {
        guard !isLingering else { return }
        // At a shutdown, where the client is in the middle of nothing: it reads what is written also when we are
        // gone, and waiting for it to go first would hold up the stop for every pooled connection.
        let isBetweenRequests = if case .head = input { !headIsPartial } else { hasLastRequest }
        let isIdleAtTheEnd = isDraining && isBetweenRequests
        releasePending()
        input = .closed
        answers.removeAll()
        isLingering = true
        lingerDeadline = desk.clock.now() + .milliseconds(limits.lingerMilliseconds)
        inputDeadline = nil
        answerDeadline = nil
        context.close(mode: .output, promise: nil)
        if isClosed { return }
        if inputEnded || isIdleAtTheEnd { closeWhenWritten(context) }
        if !isClosed, !inputEnded { context.read() }
    }

    private func closeWhenWritten(_ context: ChannelHandlerContext) {
        let unwritten =
            (try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
        if unwritten == 0 { closeNow() }
    }

    private func closeNow() {
        guard let context, !isClosed else { return }
        isClosed = true
        releasePending()
        context.close(mode: .all, promise: nil)
    }

    private func releasePending() {
        if case .body(let assembly) = input { admission.releaseBytes(assembly.reservedByteCount) }
        input = .closed
        for item in pending {
            if case .stream(let shape) = item { admission.releaseBytes(shape.reservedByteCount) }
        }
        pending.removeAll()
    }

    /// Gives everything back, once.
    private func letGo() {
        guard context != nil else { return }
        isClosed = true
        releasePending()
        answers.removeAll()
        desk.table.remove(key)
        context = nil
        admission.connectionClosed()
    }
}
