package import GateSteps
import GateVocabulary
package import WireProtocol

/// One change that a request asks for: one step, and its answer.
struct EditOperation: EngineOperation {
    let caller: CallerName?
    let lane: EngineLane
    let order: CallerOrder
    /// Throws a ``StepRefusal`` to write nothing.
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
    /// The answer to a caller whose step was refused.
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
            case .rateLimited: .rateLimited
            case .unavailable: .unavailable
            }
        self.init(
            name, detail: refusal.detail, violations: refusal.violations,
            retryAfterSeconds: refusal.retryAfterSeconds)
    }

    /// The answer when nothing was committed: 429 or 503, never a decision.
    package init(_ failure: EngineFailure) {
        let name: ProblemName =
            switch failure {
            case .overloaded: .tooManyInFlight
            case .outboxFull, .outboxFullForRecipient: .outboxFull
            case .stopping: .draining
            case .unavailable, .damaged: .unavailable
            case .trailBehind: .trailBehind
            case .clockWentBack, .uptimeWentBack: .clockWentBack
            case .clockJumped: .clockJumped
            case .sealingFailed: .sealingFailed
            }
        self.init(name, detail: failure.detail)
    }
}
