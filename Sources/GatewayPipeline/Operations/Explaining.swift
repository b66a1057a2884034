import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import SendPlanning
import Synchronization
import WireProtocol

extension Gateway {
    /// The decision with its full trace and no effect.
    ///
    /// With inline facts it tells nothing of anybody. On a stored recipient it needs `subjects.read`, is
    /// limited in rate, and leaves one entry a minute with how often it was asked.
    func explain(_ body: ExplainBody, _ context: RouteContext) {
        let policy = policy.current
        if let digest = body.policy, digest != policy.digest {
            return context.answer(
                Problem(
                    .notFound,
                    detail:
                        "only the bundle in force can be asked here; use `sendgate audit replay --with` for others"
                ).answer)
        }
        let request = AttestedRequest(
            caller: body.caller ?? context.caller, type: body.type, channel: body.channel,
            critical: body.critical)
        if let facts = body.facts {
            let decision = decide(request, given: facts, under: policy)
            let answer = ExplainAnswer(
                policy: policy.digest, request: request,
                deliveries: [
                    ExplainAnswer.Delivery(
                        destination: nil, facts: facts, decision: decision,
                        sentence: Explanation.text(decision))
                ],
                paramsViolations: policy.paramsViolations(body.params, of: body.type).map(\.pointer.text))
            return context.answer(Answer(json: answer.json))
        }
        guard let send = body.send else {
            preconditionFailure("the shape of the body asks for facts or a recipient")
        }
        guard context.grants.contains(.subjectsRead) else {
            return context.answer(
                Problem(
                    .grantMissing, detail: "explaining a stored recipient needs the grant `subjects.read`"
                ).answer)
        }
        switch explanations.ask(context.caller, at: surroundings.clock.now()) {
        case .refused:
            return context.answer(
                Problem(
                    .rateLimited,
                    detail: "at most \(ExplanationMeter.countPerMinuteMax) explanations a minute",
                    retryAfterSeconds: 60
                ).answer)
        case .recorded(let count):
            engine.submit(ExplanationOperation(asker: context.caller, count: count))
        case .counted:
            break
        }
        let identifiers = surroundings.identifiers
        let clock = surroundings.clock
        let unsubscribeURL = surroundings.unsubscribeURL
        read(context) { reading in
            try reading.explain(
                send, as: request, at: clock.now(), identifiers: identifiers, unsubscribeURL: unsubscribeURL)
        }
    }
}

extension GatewayReading {
    fileprivate func explain(
        _ send: SendRequest, as request: AttestedRequest, at now: Instant,
        identifiers: any IdentifierSource, unsubscribeURL: String
    ) throws -> Answer {
        let considered = try ConsideredSend(
            send, as: request,
            in: DecidingContext(
                store: store, policy: policy, identifiers: identifiers, unsubscribeURL: unsubscribeURL,
                now: now))
        let deliveries = considered.drafts.map { draft in
            ExplainAnswer.Delivery(
                destination: draft.destination?.id.text, facts: draft.facts, decision: draft.decision,
                sentence: Explanation.text(draft.decision))
        }
        let answer = ExplainAnswer(
            policy: policy.digest, request: request, deliveries: deliveries,
            paramsViolations: considered.verdict.violations.map(\.pointer.text))
        return Answer(json: answer.json)
    }
}

/// How often each caller asked about stored people.
final class ExplanationMeter: Sendable {
    /// Explanations of stored recipients, per caller and minute.
    static let countPerMinuteMax = 600

    enum Verdict: Sendable, Hashable {
        case counted
        /// The first of a minute: record it, with how many there were in the minute before.
        case recorded(count: Int)
        case refused
    }

    private struct Minute {
        var startedAt: Instant
        var count: Int
    }
    private let minutes = Mutex<[CallerName: Minute]>([:])

    func ask(_ caller: CallerName, at now: Instant) -> Verdict {
        minutes.withLock { minutes in
            if var minute = minutes[caller], now.milliseconds - minute.startedAt.milliseconds < 60_000 {
                guard minute.count < Self.countPerMinuteMax else { return .refused }
                minute.count += 1
                minutes[caller] = minute
                return .counted
            }
            let before = minutes[caller]?.count ?? 0
            minutes[caller] = Minute(startedAt: now, count: 1)
            return .recorded(count: before + 1)
        }
    }
}

/// Records that somebody asked about stored people.
struct ExplanationOperation: EngineOperation {
    let asker: CallerName
    let count: Int

    var caller: CallerName? { asker }
    var lane: EngineLane { .general }

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        try batch.record(
            .explain, at: batch.now(), ["caller": .string(asker.text), "count": .integer(Int64(count))])
        return {}
    }

    /// Nothing waits for this entry; what was not recorded is in the next minute's count.
    func refuse(_ failure: EngineFailure) {}
}
