import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import SendPlanning
import Synchronization
import WireProtocol

extension Gateway {
    /// Answers with the decision and its full trace, and has no effect.
    ///
    /// For facts in the request it reveals nothing of a person. For a stored recipient it is limited in rate, and records one
    /// entry a minute with the number of explanations. Without `subjects.read` a caller is answered about its own sends alone,
    /// and with no more than the answer to the send would say.
    ///
    /// - Parameter listener: What it is asked over: caps and events in shadow are its own.
    func explain(
        _ body: ExplainBody, in query: LocaleQuery, for caller: CallerName, _ grants: GrantSet,
        over listener: ListenerMode, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let policy = policy.current
        if let digest = body.policy, digest != policy.digest {
            return answer(
                Problem(
                    .notFound,
                    detail:
                        "only the bundle in force can be asked here; use `sendgate audit replay --with` for others"
                ).answer)
        }
        let request = AttestedRequest(
            caller: body.caller ?? caller, type: body.type, channel: body.channel,
            critical: body.critical)
        if let facts = body.facts {
            let decision = decide(request, given: facts, under: policy)
            let words = Explanation(policy.sentences(in: query.locale))
            let explained = ExplainAnswer(
                policy: policy.digest, request: request,
                deliveries: [
                    ExplainAnswer.Delivery(
                        destination: nil, facts: facts, decision: decision,
                        sentence: words.text(decision, given: facts),
                        fix: query.locale.map { _ in words.fix(decision.reason, decision.detail) })
                ],
                paramsViolations: policy.paramsViolations(
                    body.params, deepLink: body.deepLink, of: body.type
                ).map(\.pointer.text))
            return answer(Answer(explained))
        }
        guard let send = body.send else {
            preconditionFailure("the shape of the body asks for facts or a recipient")
        }
        let needed = body.neededGrants(of: caller)
        guard needed.contains(where: grants.contains) else {
            let names = needed.map { "`\($0.rawValue)`" }.joined(separator: " or ")
            return answer(
                Problem(
                    .grantMissing, detail: "explaining this about a stored recipient needs the grant \(names)"
                )
                .answer)
        }
        let showsEvidence = grants.contains(.subjectsRead)
        let uptime = dependencies.clock.reading().uptime
        guard explanationRate.admits(caller, at: uptime) else {
            return answer(
                Problem(
                    .rateLimited,
                    detail: "at most \(ExplanationRate.countPerMinuteMax) explanations a minute",
                    retryAfterSeconds: 60
                ).answer)
        }
        if let count = explanations.record(caller, at: uptime) {
            recordExplanations(count)
        }
        let dependencies = dependencies
        read(for: caller, answer: answer) { reading in
            try reading.explain(
                send, as: request, query, showingEvidence: showsEvidence,
                inMode: listener.mode(of: request), in: dependencies)
        }
    }

    /// Records that a caller had decisions about stored people explained, and how many.
    func recordExplanations(_ count: ExplanationMeter.Count, in lane: EngineLane = .general) {
        engine.submit(
            InlineOperation(
                caller: count.key, lane: lane, refused: { [explanations] _ in explanations.refused(count) }
            ) { [explanations] batch in
                try batch.step {
                    try $0.record(ExplainEntry(caller: count.key, count: count.count), at: $0.now())
                }
                return { _ in explanations.committed(count) }
            })
    }
}

extension GatewayReading {
    /// Runs the step of the send over the stored rows and drops its change.
    ///
    /// - Parameter showsEvidence: Whether gates, facts and what else is known of the person are shown.
    fileprivate func explain(
        _ send: SendRequest, as request: AttestedRequest, _ query: LocaleQuery,
        showingEvidence showsEvidence: Bool, inMode mode: SendMode, in dependencies: EngineDependencies
    ) throws -> Answer {
        let step = SendStep(
            request: send, attested: request, peer: dependencies.settings.process, idHash: [], contentMAC: [],
            isSecurity: false, mode: mode, under: policy)
        let reading = dependencies.clock.reading()
        let memory = GateMemory()
        memory.begin(at: try store.trailTail())
        let identifiers = IdentifierSupply(dependencies.identifiers)
        // Enough for a send to as many destinations as a person may have.
        try identifiers.draw()
        let decided = try memory.step(loading: { try store.answer($0, into: memory) }) {
            identifiers.pool.takenCount = 0
            let context = StepContext(
                memory, moment: Moment(time: .success(reading.wall), reading: reading), policy: policy,
                settings: dependencies.settings, identifiers: identifiers.pool)
            return try step.decide(in: context, requiringRoom: false)
        }
        let words = Explanation(policy.sentences(in: query.locale))
        guard showsEvidence else {
            return Answer(
                ExplainAnswer(
                    policy: policy.digest, request: request,
                    deliveries: answered(decided.considered.drafts, in: words, query),
                    paramsViolations: decided.considered.paramsCheck.violations.map(\.pointer.text)))
        }
        let person = decided.considered.person
        let deliveries = decided.considered.drafts.map { draft in
            let decision = draft.decision
            return ExplainAnswer.Delivery(
                destination: draft.destination?.id.text, facts: draft.facts, decision: decision,
                sentence: words.by(person?.clock(at: draft.destination?.tag) ?? .utc)
                    .text(decision, given: draft.facts),
                fix: query.locale.map { _ in words.fix(decision.reason, decision.detail) })
        }
        let explained = ExplainAnswer(
            policy: policy.digest, request: request, deliveries: deliveries,
            paramsViolations: decided.considered.paramsCheck.violations.map(\.pointer.text))
        return Answer(explained)
    }

    /// What the answer to the send would say of each destination, in words: no note, no fact and no time zone of the person.
    private func answered(
        _ drafts: [DeliveryDraft], in words: Explanation, _ query: LocaleQuery
    ) -> [ExplainAnswer.Delivery] {
        let deliveries = drafts.map { draft in
            let decision = draft.decision
            let name = draft.destination?.id.text
            // No more than when it came, which its caller knows: whether the recipient takes part in something is not said.
            let circumstance = Explanation.Circumstance(decision, given: draft.facts)
            let sentence = words.sentence(
                decision.reason, decision.detail,
                in: circumstance == .cameInQuietHours ? circumstance : nil)
            let waits = decision.notBefore.map { words.waiting(until: $0, place: nil) }
            return ExplainAnswer.Delivery(
                destination: name, facts: nil, decision: decision,
                sentence: [sentence, waits].compactMap(\.self).joined(separator: " "),
                fix: query.locale.map { _ in words.fix(decision.reason, decision.detail) })
        }
        // As the answer to the send, which then lists no destination.
        guard drafts.contains(where: { SendAnswer.refusedBeforeRecipient($0.decision.trace) }) else {
            return deliveries
        }
        var best = ExplainAnswer.best(of: deliveries)
        best.destination = nil
        return [best]
    }
}

/// Decisions about stored people that were explained, by caller.
typealias ExplanationMeter = OccurrenceMeter<CallerName>

extension OccurrenceMeter<CallerName> {
    /// The number of callers is bounded by the bundle, so no key is counted as another.
    static func explanations() -> ExplanationMeter { ExplanationMeter(keyCountMax: .max, overflow: .gateway) }
}

/// How many decisions about stored people each caller has had explained in its current minute.
final class ExplanationRate: Sendable {
    /// Explanations of stored recipients, per caller and minute.
    static let countPerMinuteMax = 600

    private struct Minute {
        var startedAt: Int64
        var count = 0
    }
    private let minutes = Mutex<[CallerName: Minute]>([:])

    /// - Parameter uptime: Milliseconds since boot.
    func admits(_ caller: CallerName, at uptime: Int64) -> Bool {
        minutes.withLock { minutes in
            var minute = minutes[caller] ?? Minute(startedAt: uptime)
            if uptime - minute.startedAt >= 60_000 { minute = Minute(startedAt: uptime) }
            minute.count += 1
            minutes[caller] = minute
            return minute.count <= Self.countPerMinuteMax
        }
    }
}
