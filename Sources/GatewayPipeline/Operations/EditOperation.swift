import BundleModel
import CompliancePolicy
package import GateSteps
import GateVocabulary
package import WireProtocol

/// One change that a request asks for: one step, and its answer.
struct EditOperation: EngineOperation {
    let caller: CallerName?
    /// The grants of which the caller needs one. They were looked at when the request came; another bundle may have come
    /// into force while it waited in the queue, and the step runs under that one.
    var permission: Permission = .anyCaller
    let lane: EngineLane
    let order: CallerOrder
    var changesPolicy = false
    /// Throws a ``Problem`` to write nothing.
    let edit: @Sendable (_ step: StepContext, _ now: Instant) throws -> Citing<Answer>
    let reply: @Sendable (Answer) -> Void

    func perform(in batch: Batch) throws -> Completion {
        if let caller, !permission.isSatisfied(by: batch.policy.grants(of: caller).contains) {
            let problem = Problem(
                .grantMissing,
                detail: "caller `\(caller)` has lost the grant that this needs, with the bundle in force now")
            return { [reply] _ in reply(problem.answer) }
        }
        let answer: Citing<Answer>
        do {
            answer = try batch.step { try edit($0, $0.now()) }
        } catch let refusal as Problem {
            answer = { _ in refusal.answer }
        }
        return { [answer, reply] in reply(answer($0)) }
    }

    func refuse(_ failure: EngineFailure) { reply(Problem(failure).answer) }
}

extension Problem {
    /// The answer when nothing was committed: 429 or 503, never a decision.
    package init(_ failure: EngineFailure) {
        let name: ProblemName =
            switch failure {
            case .overloaded: .tooManyInFlight
            case .outboxFull, .outboxFullForRecipient: .outboxFull
            case .stopping: .draining
            case .unavailable, .diskLow, .damaged: .unavailable
            case .trailBehind: .trailBehind
            case .clockWentBack, .uptimeWentBack: .clockWentBack
            case .clockJumped: .clockJumped
            case .sealingFailed: .sealingFailed
            }
        self.init(name, detail: failure.detail)
    }
}
