import GateVocabulary
package import WireProtocol

/// One change asked for over the socket: reads, checks, writes and answers in one savepoint.
struct EditOperation: EngineOperation {
    let caller: CallerName?
    let lane: EngineLane
    /// Throws a `Problem` to answer with it and leave nothing behind.
    let edit: @Sendable (_ batch: BatchContext, _ now: Instant) throws -> Answer
    let reply: @Sendable (Answer) -> Void

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        let now = try batch.now()
        let answer: Answer
        do {
            answer = try batch.isolating {
                do {
                    return try edit(batch, now)
                } catch let wrong as ProofWrong {
                    return wrong.problem.answer
                }
            }
        } catch let problem as Problem {
            answer = problem.answer
        }
        return { [answer] in reply(answer) }
    }

    func refuse(_ failure: EngineFailure) { reply(Problem(failure).answer) }
}

extension Problem {
    /// What a caller is told when nothing was committed: 429 or 503, never a decision.
    package init(_ failure: EngineFailure) {
        switch failure {
        case .overloaded:
            self.init(.tooManyInFlight, detail: "the engine's queue is full; send the same id again later")
        case .outboxFullForRecipient:
            self.init(
                .outboxFull, detail: "too much waits for this recipient already; send the same id again later"
            )
        case .outboxFull:
            self.init(
                .outboxFull, detail: "the next hop does not take what waits; send the same id again later")
        case .stopping:
            self.init(.draining, detail: "send the same id again when the gateway is back")
        case .unavailable(let what):
            self.init(.unavailable, detail: "\(what); nothing was recorded, send the same id again later")
        case .damaged:
            self.init(
                .unavailable,
                detail:
                    "something stored that this needs is damaged; the gateway's log and `sendgate status` name it for its operator"
            )
        case .trailBehind(let milliseconds):
            self.init(
                .trailBehind,
                detail: "the published trail is \(milliseconds) ms behind; send the same id again later")
        case .clockWentBack(let milliseconds):
            self.init(
                .clockWentBack,
                detail:
                    "the clock stands \(milliseconds) ms before the newest entry; set it right, or stop the gateway and run `sendgate clock accept`"
            )
        case .clockJumped(let milliseconds):
            self.init(
                .clockJumped,
                detail:
                    "the clock is \(milliseconds) ms ahead of the time since the newest entry; set it right, or stop the gateway and run `sendgate clock accept`"
            )
        case .uptimeWentBack(let milliseconds):
            self.init(
                .clockWentBack,
                detail:
                    "the time since boot is \(milliseconds) ms less than at the newest entry, in the same boot; find out what changed it, then stop the gateway and run `sendgate clock accept`"
            )
        case .sealingFailed(let what):
            self.init(.sealingFailed, detail: "\(what); nothing was recorded, send the same id again")
        }
    }
}
