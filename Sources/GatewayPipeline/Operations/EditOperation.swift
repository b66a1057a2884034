import GateVocabulary
package import WireProtocol

/// One change asked for over the socket: one step, and its answer.
struct EditOperation: EngineOperation {
    let caller: CallerName?
    let lane: EngineLane
    let order: CallerOrder
    /// Throws a ``StepRefusal`` to leave nothing behind.
    let edit: @Sendable (_ step: StepContext, _ now: Instant) throws -> Citing<Answer>
    let reply: @Sendable (Answer) -> Void

    func perform(in batch: Batch) throws -> Completion {
        let answer: Citing<Answer>
        do {
            answer = try batch.step { try edit($0, $0.now()) }
        } catch let refusal as StepRefusal {
            answer = { _ in Problem(refusal).answer }
        }
        return { [answer, reply] in reply(answer($0)) }
    }

    func refuse(_ failure: EngineFailure) { reply(Problem(failure).answer) }
}

extension Problem {
    /// What a caller is told whose step was refused.
    package init(_ refusal: StepRefusal) {
        let name: ProblemName =
            switch refusal.kind {
            case .grantMissing: .grantMissing
            case .assertionNotPermitted: .assertionNotPermitted
            case .proofWrong: .proofWrong
            case .notFound: .notFound
            case .idConflict: .idConflict
            case .wrongState: .wrongState
            case .tooManyDestinations: .tooManyDestinations
            case .challengeExpired: .challengeExpired
            case .alreadyPrompted: .alreadyPrompted
            case .invalid: .invalidRequest
            case .unknownNotice: .unknownNotice
            case .unknownPurpose: .unknownPurpose
            case .otherPurpose: .otherPurpose
            case .eventInFuture: .eventInFuture
            case .unknownTimeZone: .unknownTimeZone
            case .unknownScope: .unknownScope
            case .unknownEvent: .unknownEvent
            case .invalidPublicKey: .invalidPublicKey
            }
        self.init(name, detail: refusal.detail, violations: refusal.violations)
    }

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
