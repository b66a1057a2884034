import GatewayPipeline

/// The timers: when each runs, and what its firing does.
extension HTTPConnectionStateMachine {
    mutating func setTimers() {
        if answers.isEmpty {
            disarmAnswerTimer()
        } else if answerTimer != .armed {
            answerTimer = .armed
            actions.append(.arm(.answer))
        }
        // While the connection is not read, its client cannot be late.
        var timer: ConnectionTimer?
        if wantsInput {
            switch state {
            case .head, .body: timer = .request
            // A line of a stream is a request, and so is the chunk that it comes in.
            case .stream where isLineUnderWay || framing.runByteCount > Self.chunkEndByteCount:
                timer = .request
            case .idle, .stream: timer = answers.isEmpty ? .idle : nil
            case .answering, .lingering, .closed: break
            }
        }
        setInputTimer(timer)
    }

    /// The line end behind a chunk's bytes may come by itself, and begins nothing.
    private static var chunkEndByteCount: Int { 2 }

    /// The idle timer starts anew at every turn. The one of a request, or of a line, runs from its first byte to its last.
    mutating func setInputTimer(_ timer: ConnectionTimer?) {
        if let inputTimer, inputTimer != timer { actions.append(.disarm(inputTimer)) }
        if let timer, timer == .idle || hasLineEnded || inputTimer != timer { actions.append(.arm(timer)) }
        inputTimer = timer
        hasLineEnded = false
    }

    mutating func disarmAnswerTimer() {
        if answerTimer == .disarmed { return }
        answerTimer = .disarmed
        actions.append(.disarm(.answer))
    }

    mutating func outputMeasured(_ measure: OutputMeasure) {
        switch state {
        case .idle, .head, .body, .stream, .answering: setStallTimer(measure)
        case .lingering(let lingering):
            setStallTimer(measure)
            if lingering.closesWhenWritten, measure.unwrittenByteCount == 0 { close() }
        case .closed: break
        }
    }

    /// The stall timer runs from the last time that the kernel took bytes.
    mutating func setStallTimer(_ measure: OutputMeasure) {
        let hasMoved = measure.writtenByteCount != output.writtenByteCount
        output = measure
        if measure.unwrittenByteCount == 0 {
            if isStallTimerArmed { actions.append(.disarm(.writeStall)) }
            isStallTimerArmed = false
        } else if hasMoved || !isStallTimerArmed {
            isStallTimerArmed = true
            actions.append(.arm(.writeStall))
        }
    }

    func isArmed(_ timer: ConnectionTimer) -> Bool {
        switch timer {
        case .writeStall: return isStallTimerArmed
        case .linger:
            if case .lingering = state { return true }
            return false
        case .answer: return answerTimer != .disarmed
        case .request, .idle: return inputTimer == timer
        }
    }

    mutating func fired(_ timer: ConnectionTimer) {
        guard isArmed(timer) else { return }
        switch (timer, state) {
        case (_, .closed): break
        case (.writeStall, .idle), (.writeStall, .head), (.writeStall, .body), (.writeStall, .stream),
            (.writeStall, .answering), (.writeStall, .lingering):
            close(after: .writeStall)
        // The client is not late while its answers are not all written; the stall timer watches those.
        case (.linger, .lingering): if output.unwrittenByteCount == 0 { close() }
        // While the client does not take its answers the handler is not late.
        case (.answer, .idle), (.answer, .head), (.answer, .body), (.answer, .stream), (.answer, .answering):
            if answers.waitingCount > 0, output.unwrittenByteCount == 0 { close(after: .answerLate) }
        case (.request, .head), (.request, .body):
            setInputTimer(nil)
            actions.append(.record(.readTimeout))
            refuse(.requestTimeout(milliseconds: limits.requestReadMilliseconds))
            beginTurn()
        case (.idle, .idle):
            setInputTimer(nil)
            actions.append(.record(.idleTimeout))
            state = .answering(.cutShort)
            beginTurn()
        case (.idle, .stream):
            setInputTimer(nil)
            actions.append(.record(.idleTimeout))
            endStream()
            beginTurn()
        case (.request, .stream):
            setInputTimer(nil)
            actions.append(.record(.readTimeout))
            endStream()
            beginTurn()
        // A timer of another state, due before this state's first turn disarms it.
        case (.linger, .idle), (.linger, .head), (.linger, .body), (.linger, .stream), (.linger, .answering),
            (.answer, .lingering), (.request, .idle), (.request, .answering), (.request, .lingering),
            (.idle, .head), (.idle, .body), (.idle, .answering), (.idle, .lingering):
            break
        }
    }
}
