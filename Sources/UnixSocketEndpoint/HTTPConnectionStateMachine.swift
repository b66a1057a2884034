import GatewayPipeline
import NIOCore
import WireProtocol

/// What one connection is doing and what it does next: events in, actions out, and nothing else.
///
/// A value without channel, clock, handler or counter. ``handle(_:)`` takes what happened; ``nextAction()`` says what to do
/// about it, one action at a time, because some actions have an outcome that decides the next one (the shared bound may have no
/// place left, the handler may answer before it returns). The shell performs actions until there are none:
///
///     machine.handle(event)
///     while let action = machine.nextAction() { perform(action) }   // may call machine.handle
///
/// Backpressure is one rule, in `handOver` and `wantsInput`: what has been parsed is given to the handler only while
/// the answers written, waiting and unwritten are within their bounds, and the socket is read only while nothing parsed is
/// waiting. So a client that does not read its answers holds one read buffer, its own answers up to their bound, and
/// nothing else.
struct HTTPConnectionStateMachine {
    /// What the bytes that come next belong to, until our side has ended; then how the connection closes.
    enum State {
        /// No byte of the next request has come.
        case idle
        /// A part of a head has come.
        case head
        /// A head has come and its body is coming; the request is handled when it is complete.
        case body(Body)
        /// A live stream stands last in the backlog, and its lines are handled as they come.
        case stream
        /// No more requests are taken, and those that came are answered.
        case answering(Ending)
        /// The answer that closes the connection is flushed; what the client still sends is thrown away.
        case lingering(Lingering)
        case closed
    }

    struct Body {
        var assembly: RequestAssembly
        /// Whether the head's own reservation has been asked for and not been granted yet.
        var isHeadPending = false
    }

    enum Ending: Equatable {
        /// After a request that its sender called its last, so the client is in the middle of nothing.
        case lastRequest
        /// After a refusal, a time-out, or the end of the client's side.
        case cutShort
    }

    struct Lingering: Equatable {
        /// Thrown away so far.
        var byteCount = 0
        /// Whether the client has nothing to send any more, so that the connection closes once its answers are written.
        var closesWhenWritten: Bool
    }

    /// Where ``nextAction()`` is in giving requests to the handler and writing answers.
    enum Turn {
        case none
        case handingOver(Progress)
        /// ``ConnectionAction/admitRequest`` has been given out for what stands first in the backlog.
        case admitting(Progress)
        case writing(Progress, hasWritten: Bool)
        case flushed(Progress, closes: Bool)
    }

    struct Progress {
        /// How many requests or lines this turn may still give to the handler.
        var budget: Int
        /// Whether anything left the backlog since the last flush.
        var isMade = false

        mutating func spend() {
            budget -= 1
            isMade = true
        }
    }

    struct InputPiece {
        var byteCount = 0
        /// Those that the parser has given back as body.
        var bodyByteCount = 0
        /// A request ended within it.
        var hasEnd = false
    }

    enum AnswerTimer {
        case disarmed
        case armed
        /// Armed before the last flush, so it starts anew for the answers that are left.
        case outdated
    }

    /// How many requests or lines one turn gives to the handler before other connections of the loop have theirs.
    static let turnBudget = 64

    var state = State.idle
    let limits: EndpointLimits
    var backlog = RequestBacklog()
    var answers = AnswerQueue()
    var turn = Turn.none
    /// Actions that are decided and not taken yet.
    var actions = CircularBuffer<ConnectionAction>(initialCapacity: 4)
    /// Bytes of the shared bound to give back; before every other action, and also after the connection has closed.
    var releasableByteCount = 0

    var isWritable = true
    var isDraining: Bool
    /// No request has come yet, and ``ConnectionEvent/endUnused`` neither. The client of such a connection could not know that
    /// it was accepted by a process that stops, so its first request is answered during a drain, too.
    var isUnused = true
    /// The client has sent its last byte.
    var hasInputEnded = false
    /// ``ConnectionAction/resumeLater`` has been given out and not been answered.
    var isPaused = false
    /// Parts that the parser made of the bytes it is reading.
    var partCount = 0
    /// The piece of the input that the parser is reading.
    var piece = InputPiece()
    /// What the request under way had besides its body.
    var framing = FramingCount()
    /// A live stream's last bytes are the beginning of a line.
    var isLineUnderWay = false
    /// A line of a live stream has ended since the input timer was set, so the next one has its whole time.
    var hasLineEnded = false
    /// The timer of the input that runs: ``ConnectionTimer/idle`` or ``ConnectionTimer/request``.
    var inputTimer: ConnectionTimer?
    var answerTimer = AnswerTimer.disarmed
    var isStallTimerArmed = false
    var output = OutputMeasure(unwrittenByteCount: 0, writtenByteCount: 0)

    /// - Parameter isDraining: Whether the endpoint has begun to stop before the connection came in.
    init(limits: EndpointLimits, isDraining: Bool) {
        self.limits = limits
        self.isDraining = isDraining
    }

    /// Whether the parser shall see the bytes of the last ``ConnectionEvent/received(byteCount:)``.
    var parsesInput: Bool {
        switch state {
        case .idle, .head, .body, .stream: true
        case .answering, .lingering, .closed: false
        }
    }

    // MARK: Events

    mutating func handle(_ event: ConnectionEvent) {
        switch event {
        case .active, .readComplete: readComplete()
        case .received(let byteCount): received(byteCount)
        case .head(let head): headRead(head)
        case .body(let bytes): bodyRead(bytes)
        case .end: endRead()
        case .parserFailed(let failure): parserFailed(failure)
        case .parsed: parsed()
        case .inputClosed: inputClosed()
        case .channelFailed: channelFailed()
        case .channelClosed: channelClosed()
        case .writabilityChanged(let isWritable): writabilityChanged(isWritable)
        case .answer(let answer, let sequence): answered(answer, sequence)
        case .answersDelivered: beginTurn()
        case .admission(let isGranted): admissionAnswered(isGranted)
        case .reservation(let byteCount, let isGranted): reservationAnswered(byteCount, isGranted)
        case .outputMeasured(let measure): outputMeasured(measure)
        case .fired(let timer): fired(timer)
        case .resumed:
            isPaused = false
            beginTurn()
        case .drain: drain()
        case .endUnused: endUnused()
        case .cut: close()
        }
    }

    // MARK: Reading

    mutating func readComplete() {
        switch state {
        case .idle, .head, .body, .stream, .answering: beginTurn()
        case .lingering: if !hasInputEnded { actions.append(.read) }
        case .closed: break
        }
    }

    mutating func received(_ byteCount: Int) {
        partCount = 0
        piece = InputPiece(byteCount: byteCount)
        switch state {
        case .idle, .head, .body, .stream, .answering, .closed: break
        case .lingering(var lingering):
            lingering.byteCount += byteCount
            state = .lingering(lingering)
            if lingering.byteCount > limits.lingerByteCountMax { close() }
        }
    }

    /// Bytes that made no part of a request are the beginning of one. When there were parts, what follows the last is taken
    /// for nothing until the next read: at worst an unfinished head that came right behind a request is timed as idle.
    mutating func parsed() {
        if piece.hasEnd {
            framing = FramingCount()
        } else {
            framing.add(byteCount: piece.byteCount, bodyByteCount: piece.bodyByteCount)
        }
        piece = InputPiece()
        refuseLongFraming()
        switch state {
        case .idle, .head: state = partCount == 0 ? .head : .idle
        case .body, .stream, .answering, .lingering, .closed: break
        }
    }

    /// Framing counts as header bytes: without a bound on it a chunk extension, a trailer or blank lines are bytes without end.
    mutating func refuseLongFraming() {
        let isTooLong =
            switch state {
            case .idle, .head: framing.isTooLong(limits)
            case .body(let body):
                body.assembly.framing.route == .single
                    ? framing.isTooLong(limits) : framing.isTooLongForStream(limits)
            case .stream: framing.isTooLongForStream(limits)
            case .answering, .lingering, .closed: false
            }
        if isTooLong { parserFailed(.headersTooLarge) }
    }

    mutating func headRead(_ head: Result<RequestFraming, RefusedHead>) {
        partCount += 1
        switch state {
        case .idle, .head: break
        case .body, .stream, .answering, .lingering, .closed: return
        }
        let isFirst = isUnused
        isUnused = false
        switch head {
        case .failure(let refusal):
            var isHead = false
            if case .bodyTooLarge(_, let head) = refusal { isHead = head }
            refuse(refusal.problem(limits), isHead: isHead)
        // A live stream has no end of its own.
        case .success(let framing) where isDraining && (!isFirst || framing.route == .live):
            refuse(.draining, isHead: framing.isHead)
        case .success(let framing):
            switch framing.route {
            case .live:
                if framing.expectsContinue { backlog.append(.interim) }
                beginStream(
                    LineStream(
                        framing, source: LineSource(lineByteCountMax: limits.requestByteCountMax),
                        reservedByteCount: 0))
                isLineUnderWay = false
                hasLineEnded = false
                state = .stream
            case .single, .batch:
                beginBody(Body(assembly: RequestAssembly(framing, limits: limits)))
            }
        }
    }

    mutating func beginBody(_ body: Body) {
        var body = body
        if case .counted(let count) = body.assembly.framing.body {
            if let byteCount = unreserved(count, of: body.assembly) {
                body.isHeadPending = true
                actions.append(.reserveBytes(byteCount))
            } else {
                body.assembly.expect(byteCount: count)
            }
        }
        if !body.isHeadPending, body.assembly.framing.expectsContinue { backlog.append(.interim) }
        state = .body(body)
    }

    mutating func bodyRead(_ bytes: ByteBuffer) {
        partCount += 1
        piece.bodyByteCount += bytes.readableBytes
        switch state {
        case .idle, .head, .answering, .lingering, .closed: break
        case .stream:
            let view = bytes.readableBytesView
            if let feed = view.lastIndex(of: UInt8(ascii: "\n")) {
                hasLineEnded = true
                isLineUnderWay = feed + 1 < view.endIndex
            } else if !view.isEmpty {
                isLineUnderWay = true
            }
            backlog.withLastStream { $0.source.append(bytes) }
        case .body(var body):
            // Left in its place, the array would be copied with every part.
            state = .idle
            var refusal: Problem?
            do throws(RequestAssembly.Refusal) {
                try body.assembly.append(bytes)
            } catch {
                switch error {
                case .tooLong(let max): refusal = .bodyTooLarge(byteCountMax: max)
                case .tooManyLines(let max): refusal = .tooManyLines(lineCountMax: max)
                }
            }
            let byteCount = unreserved(body.assembly.byteCount, of: body.assembly)
            let isHead = body.assembly.framing.isHead
            state = .body(body)
            if let refusal {
                refuse(refusal, isHead: isHead)
            } else if let byteCount {
                actions.append(.reserveBytes(byteCount))
            }
        }
    }

    mutating func endRead() {
        partCount += 1
        piece.hasEnd = true
        switch state {
        case .idle, .head, .answering, .lingering, .closed: break
        case .stream:
            backlog.withLastStream { $0.source.end() }
            state = .idle
        case .body(let body):
            let framing = body.assembly.framing
            if framing.route == .batch {
                beginStream(
                    LineStream(
                        framing, source: body.assembly.lines,
                        reservedByteCount: body.assembly.reservedByteCount))
            } else {
                releasableByteCount += body.assembly.reservedByteCount
                backlog.append(
                    .request(
                        WireRequest(
                            kind: .single, method: framing.method, target: framing.target,
                            headers: framing.headers, body: body.assembly.body),
                        AnswerQueue.ResponseFrame(isHead: framing.isHead, closes: framing.closes)))
            }
            // RFC 9112 section 9.6: nothing after a request that closes is looked at.
            state = framing.closes ? .answering(.lastRequest) : .idle
        }
    }

    mutating func beginStream(_ stream: LineStream) {
        backlog.append(.stream(stream))
        actions.append(.record(.streamBegan))
    }

    mutating func parserFailed(_ failure: ParserFailure) {
        switch (state, failure) {
        case (.lingering, _), (.closed, _): return
        case (.answering, _), (_, .decoderFinished): break
        case (.stream, .malformed), (.stream, .headersTooLarge): cutOffStream()
        case (.idle, .malformed), (.head, .malformed), (.body, .malformed): refuse(.malformedRequest)
        case (.idle, .headersTooLarge), (.head, .headersTooLarge), (.body, .headersTooLarge):
            refuse(.headersTooLarge(byteCountMax: limits.headerByteCountMax))
        }
        beginTurn()
    }

    /// A half-closed client (`nc -N`) still gets its answers.
    mutating func inputClosed() {
        hasInputEnded = true
        switch state {
        case .idle, .head: state = .answering(.cutShort)
        // The parser has said so already; without the rest there is no request.
        case .body: refuse(.malformedRequest)
        case .stream: cutOffStream()
        case .answering: break
        case .lingering(var lingering):
            lingering.closesWhenWritten = true
            state = .lingering(lingering)
            actions.append(.measureOutput)
            return
        case .closed: return
        }
        beginTurn()
    }

    // MARK: Shared bounds

    /// How much a body of `byteCount` must take of the shared bound beyond what it has; `nil` for nothing. In steps, so that
    /// a body that comes in small pieces does not ask for each.
    func unreserved(_ byteCount: Int, of assembly: RequestAssembly) -> Int? {
        let needed = byteCount - limits.unreservedBodyByteCount
        guard needed > assembly.reservedByteCount else { return nil }
        let step = 64 * 1024
        return (needed + step - 1) / step * step - assembly.reservedByteCount
    }

    mutating func reservationAnswered(_ byteCount: Int, _ isGranted: Bool) {
        switch state {
        case .body(var body):
            state = .idle
            let isHeadPending = body.isHeadPending
            let framing = body.assembly.framing
            body.isHeadPending = false
            if isGranted { body.assembly.reservedByteCount += byteCount }
            if isGranted, isHeadPending, case .counted(let count) = framing.body {
                body.assembly.expect(byteCount: count)
            }
            state = .body(body)
            if !isGranted {
                refuse(.tooManyInFlight, isHead: framing.isHead)
            } else if isHeadPending, framing.expectsContinue {
                backlog.append(.interim)
            }
        // The body was given up, or was complete, before the answer came.
        case .idle, .head, .stream, .answering, .lingering, .closed:
            if isGranted { releasableByteCount += byteCount }
        }
    }

    mutating func admissionAnswered(_ isGranted: Bool) {
        guard case .admitting(var progress) = turn else {
            preconditionFailure("an admission was answered that the connection, \(state), had not asked for")
        }
        if !isGranted, answers.waitingCount > 0 {
            // Tried again when one of the connection's own requests is answered, without a queue to wake.
            turn = .writing(progress, hasWritten: false)
            return
        }
        let frame: AnswerQueue.Frame
        let request: WireRequest
        var isWrite = true
        if let stream = backlog.stream {
            guard case .text(let line) = stream.line else {
                preconditionFailure("an admission was asked for without a line")
            }
            backlog.stream?.line = nil
            frame = stream.frame
            request = stream.request(line)
        } else if case .request(let first, let response) = backlog.first {
            backlog.removeFirst()
            frame = .response(response)
            request = first
            isWrite = !Self.isSafe(first)
        } else {
            preconditionFailure("an admission was asked for without a request")
        }
        progress.spend()
        if isGranted {
            actions.append(.handle(request, sequence: answers.appendWaiting(frame, isWrite: isWrite)))
        } else {
            answers.append(.ready(frame, .problem(.tooManyInFlight)))
        }
        turn = .handingOver(progress)
    }

    // MARK: Ends of the input

    /// Answers in the handler's place, after everything that came before, and closes.
    mutating func refuse(_ problem: Problem, isHead: Bool = false) {
        switch state {
        case .answering, .lingering, .closed: return
        case .idle, .head: break
        case .body(let body): releasableByteCount += body.assembly.reservedByteCount
        // Its response has begun, and a problem cannot stand inside it.
        case .stream: preconditionFailure("a live stream was refused instead of cut off")
        }
        state = .answering(.cutShort)
        backlog.append(.problem(problem, AnswerQueue.ResponseFrame(isHead: isHead, closes: true)))
    }

    /// A live stream's framing broke, or its client went away in the middle of it.
    mutating func cutOffStream() {
        backlog.withLastStream { $0.isAborted = true }
        endStream()
    }

    /// A live stream takes nothing more: complete lines are answered, an unfinished one is dropped. A line without an answer
    /// in the response was not handled, which the client can see.
    mutating func endStream() {
        backlog.withLastStream { $0.source.endAtLastCompleteLine() }
        state = .answering(.cutShort)
    }

    mutating func drain() {
        switch state {
        case .idle, .head, .body, .answering: break
        case .stream: endStream()
        // Its side has ended already. A client that has sent nothing since is in the middle of nothing, and may keep its
        // own side open for as long as it likes.
        case .lingering(var lingering):
            isDraining = true
            if lingering.byteCount == 0 {
                lingering.closesWhenWritten = true
                state = .lingering(lingering)
                actions.append(.measureOutput)
            }
            return
        case .closed: return
        }
        isDraining = true
        beginTurn()
    }

    mutating func endUnused() {
        guard isUnused, isDraining else { return }
        isUnused = false
        beginTurn()
    }

    mutating func channelFailed() {
        switch state {
        case .idle, .head, .body, .stream, .answering: close()
        // A failed write is followed by the channel's end; a failed read ends the lingering by its time.
        case .lingering, .closed: break
        }
    }

    mutating func close(after incident: ConnectionIncident? = nil) {
        switch state {
        case .idle, .head, .body, .stream, .answering, .lingering:
            forget()
            if let incident { actions.append(.record(incident)) }
            actions.append(.close)
        case .closed: break
        }
    }

    mutating func channelClosed() {
        switch state {
        case .idle, .head, .body, .stream, .answering, .lingering: forget()
        // The actions of the close itself are still to be performed.
        case .closed: break
        }
    }

    /// Closed for every event to come; what is left to do is to give back what was taken.
    mutating func forget() {
        release()
        state = .closed
        turn = .none
        answers.removeAll()
        actions.removeAll()
    }

    mutating func release() {
        if case .body(let body) = state { releasableByteCount += body.assembly.reservedByteCount }
        releasableByteCount += backlog.removeAll()
    }
}
