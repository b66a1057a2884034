import GatewayPipeline
import WireProtocol

/// The turn: gives what was parsed to the handler, writes what can be written, then rests.
extension HTTPConnectionStateMachine {
    mutating func writabilityChanged(_ isWritable: Bool) {
        self.isWritable = isWritable
        if isWritable { beginTurn() }
    }

    mutating func answered(_ answer: Answer?, _ sequence: UInt64) {
        switch state {
        case .idle, .head, .body, .stream, .answering:
            guard let answer else {
                close(after: .answerDropped)
                return
            }
            answers.answer(sequence, with: answer)
        case .lingering, .closed: break
        }
    }

    /// Begins a turn unless one is under way, which then sees what has changed.
    mutating func beginTurn() {
        switch state {
        case .idle, .head, .body, .stream, .answering:
            if case .none = turn { turn = .handingOver(Progress(budget: Self.turnBudget)) }
        case .lingering, .closed: break
        }
    }

    /// What to do next; `nil` until the next event.
    mutating func nextAction() -> ConnectionAction? {
        while true {
            if releasableByteCount > 0 {
                defer { releasableByteCount = 0 }
                return .releaseBytes(releasableByteCount)
            }
            if let action = actions.popFirst() { return action }
            switch turn {
            // The turn goes on when the admission is answered.
            case .none, .admitting: return nil
            case .handingOver(let progress): if let action = handOver(progress) { return action }
            case .writing(let progress, let hasWritten):
                if let action = writeNext(progress, hasWritten) { return action }
            case .flushed(let progress, let closes):
                if closes {
                    turn = .none
                    finish()
                } else {
                    nextRound(progress)
                }
            }
        }
    }

    /// Goes on after a flush, or without one when answers were added that cannot be written yet.
    mutating func nextRound(_ progress: Progress) {
        if progress.budget > 0 {
            turn = .handingOver(Progress(budget: progress.budget))
        } else {
            rest(progress)
        }
    }

    /// Takes one step of giving what was parsed to the handler.
    ///
    /// - Returns: What the step has to do outside; `nil` when it only changed the machine.
    mutating func handOver(_ before: Progress) -> ConnectionAction? {
        var progress = before
        if backlog.stream == nil, case .stream = backlog.first, isWritable, progress.budget > 0 {
            backlog.beginStream()
        }
        guard progress.budget > 0, isWritable else {
            turn = .writing(progress, hasWritten: false)
            return nil
        }
        if backlog.stream != nil { return handOverLine(progress) }
        switch backlog.first {
        case nil: turn = .writing(progress, hasWritten: false)
        case .interim:
            backlog.removeFirst()
            answers.append(.interim)
            progress.spend()
            turn = .handingOver(progress)
        case .problem(let problem, let frame):
            backlog.removeFirst()
            answers.append(.ready(.response(frame), .problem(problem)))
            progress.spend()
            turn = .handingOver(progress)
        case .request(let request, _):
            // A read behind a write of the same connection sees what the write did.
            let isInOrder = answers.waitingWriteCount == 0 || !Self.isSafe(request)
            guard isInOrder, answers.count < limits.inFlightPerConnectionMax else {
                turn = .writing(progress, hasWritten: false)
                return nil
            }
            turn = .admitting(progress)
            return .admitRequest
        case .stream: preconditionFailure("a stream stands first and was not begun")
        }
        return nil
    }

    /// Whether a request only reads (RFC 9110 section 9.2.1). Such requests may be under way at once with each other, and
    /// not behind one that is not (RFC 9112 section 9.3.2); sends are, because their order is kept behind the handler.
    static func isSafe(_ request: WireRequest) -> Bool {
        switch request.method {
        case "GET", "HEAD", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// - Precondition: A stream is being handled.
    mutating func handOverLine(_ before: Progress) -> ConnectionAction? {
        var progress = before
        if !backlog.stream!.isStarted {
            backlog.stream!.isStarted = true
            answers.append(
                .streamHead(isChunked: backlog.stream!.isChunked, closes: backlog.stream!.closes))
            progress.isMade = true
        }
        guard answers.count < limits.streamLinesInFlightMax else {
            turn = .writing(progress, hasWritten: false)
            return nil
        }
        if backlog.stream!.line == nil { backlog.stream!.line = backlog.stream!.source.next() }
        switch backlog.stream!.line {
        case nil:
            let stream = backlog.stream!
            guard stream.source.isEnded else {
                turn = .writing(progress, hasWritten: false)
                return nil
            }
            answers.append(
                stream.isAborted
                    ? .streamAborted : .streamEnd(isChunked: stream.isChunked, closes: stream.closes))
            releasableByteCount += stream.reservedByteCount
            backlog.stream = nil
            progress.spend()
        case .tooLong:
            answers.append(
                .ready(
                    backlog.stream!.frame,
                    .problem(.bodyTooLarge(byteCountMax: limits.requestByteCountMax))))
            backlog.stream!.line = nil
            progress.spend()
        case .text:
            turn = .admitting(progress)
            return .admitRequest
        }
        turn = .handingOver(progress)
        return nil
    }

    /// Writes what stands first among the answers; flushes when nothing more can be written.
    mutating func writeNext(_ progress: Progress, _ hasWritten: Bool) -> ConnectionAction? {
        guard let place = answers.popReady() else {
            if hasWritten { return flush(progress, closes: false) }
            if progress.isMade { nextRound(progress) } else { rest(progress) }
            return nil
        }
        turn = .writing(progress, hasWritten: true)
        switch place {
        case .waiting: preconditionFailure("an answer that is not there was taken for writing")
        case .ready(.response(let frame), let answer):
            let closes = frame.closes || isLast
            if closes { actions.append(flush(progress, closes: true)) }
            return .write(.response(answer, isHead: frame.isHead, closes: closes))
        case .ready(.chunkedLine, let answer): return .write(.line(answer, isChunked: true))
        case .ready(.bareLine, let answer): return .write(.line(answer, isChunked: false))
        case .interim: return .write(.interim)
        case .streamHead(let isChunked, let closes):
            return .write(.streamHead(isChunked: isChunked, closes: closes))
        case .streamEnd(let isChunked, let closes):
            if closes || isLast { actions.append(flush(progress, closes: true)) }
            return isChunked ? .write(.lastChunk) : nil
        case .streamAborted: return flush(progress, closes: true)
        }
    }

    mutating func flush(_ progress: Progress, closes: Bool) -> ConnectionAction {
        turn = .flushed(progress, closes: closes)
        if answerTimer == .armed { answerTimer = .outdated }
        return .flush
    }

    /// The answer just taken is the last of a connection that drains, so it may say so.
    var isLast: Bool {
        guard isDraining, answers.isEmpty, backlog.isEmpty else { return false }
        switch state {
        case .idle, .answering: return true
        case .head, .body, .stream, .lingering, .closed: return false
        }
    }

    /// Ends the turn: reads on, or finishes when nothing more can come.
    mutating func rest(_ progress: Progress) {
        turn = .none
        if progress.budget <= 0 && !isPaused {
            isPaused = true
            actions.append(.resumeLater)
        }
        if answers.isEmpty && backlog.isEmpty {
            switch state {
            case .answering:
                finish()
                return
            case .idle:
                if isDraining && !isUnused {
                    finish()
                    return
                }
            case .head, .body, .stream, .lingering, .closed: break
            }
        }
        if wantsInput { actions.append(.read) }
        setTimers()
    }

    /// Ends our side after what is written, then gives the client a little time to end its own.
    mutating func finish() {
        let isBetweenRequests =
            switch state {
            case .idle, .answering(.lastRequest): true
            case .head, .body, .stream, .answering(.cutShort), .lingering, .closed: false
            }
        release()
        answers.removeAll()
        setInputTimer(nil)
        disarmAnswerTimer()
        // At a shutdown, where the client is in the middle of nothing: it reads what is written also when the gateway is
        // gone, and a wait for it to go first would hold up the stop for every pooled connection.
        let closesWhenWritten = hasInputEnded || (isDraining && isBetweenRequests)
        state = .lingering(Lingering(closesWhenWritten: closesWhenWritten))
        actions.append(.arm(.linger))
        actions.append(.endOutput)
        if closesWhenWritten { actions.append(.measureOutput) }
        if !hasInputEnded { actions.append(.read) }
    }

    var wantsInput: Bool {
        if hasInputEnded || !isWritable || isPaused { return false }
        switch state {
        case .answering, .lingering, .closed: return false
        case .idle, .head, .body:
            return backlog.isEmpty && answers.count < limits.inFlightPerConnectionMax
        case .stream:
            // The stream itself stands in the backlog; once it is being handled only an unfinished line is left
            // in it, unless the window is full.
            return backlog.count <= 1 && answers.count < limits.streamLinesInFlightMax
                && backlog.lastStreamByteCount <= limits.requestByteCountMax + 1
        }
    }
}
