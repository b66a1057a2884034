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
                        sentence: Explanation.sentence(decision.reason, decision.detail))
                ],
                paramsViolations: policy.paramsViolations(body.params, of: body.type).map(\.pointer.text))
            return context.answer(Answer(json: answer.json))
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
                body, request, at: clock.now(), identifiers: identifiers, unsubscribeURL: unsubscribeURL)
        }
    }
}

extension GatewayReading {
    fileprivate func explain(
        _ body: ExplainBody, _ request: AttestedRequest, at now: Instant,
        identifiers: any IdentifierSource, unsubscribeURL: String
    ) throws -> Answer {
        let person = try body.user.flatMap { try RecipientSnapshot.load($0, from: store) }
        let type = policy.type(body.type)
        let typeSeconds = type?.ttlSeconds ?? NotificationType.ttlSecondsMax
        let collapse = type.flatMap { SendMaterial.collapseText(of: body.collapseKey, body.params, for: $0) }
        let due = type.flatMap { person?.due($0, at: now) } ?? now
        let material = SendMaterial(
            send: try identifiers.newSendID(), request: request, params: body.params,
            deepLink: body.deepLink ?? type?.deepLink, locale: body.locale,
            collapse: collapse.flatMap { text in person?.subject.tag(.collapseKey, text) }, sentAt: now,
            expiresAt: (type?.ttlCountsFrom == .due ? due : now)
                .advanced(bySeconds: min(body.ttlSeconds ?? typeSeconds, typeSeconds)))
        var fallback = FallbackFact.notFallback
        if let replaced = body.fallbackFor {
            let send = try store.send(replaced)
            let isOwn = send != nil && send?.caller == request.caller && send?.subject == person?.subject.id
            fallback = isOwn && person != nil ? .replacesOwnSend : .mismatch
        }
        let verdict = ParamsVerdict(body.params, of: body.type, under: policy)
        let event = person?.event(type, body.params, on: body.channel)
        let repetition =
            try person.map { try store.repetition(of: event, to: $0.subject.id, besides: material.send) }
            ?? .first
        let composer = SendComposer(
            store: store, policy: policy, identifiers: identifiers, person: person, material: material,
            verdict: verdict, fallback: fallback, repetition: repetition, due: due, now: now,
            unsubscribeURL: unsubscribeURL)
        var drafts: [DeliveryDraft] = []
        if let person {
            let found: [Destination] =
                if let id = body.destination {
                    person.destination(id, on: body.channel).map { [$0] } ?? []
                } else {
                    person.destinations(on: body.channel)
                }
            drafts = try found.map { try composer.decide(for: $0) }
        }
        if drafts.isEmpty {
            drafts = [try composer.decide(without: body.destination == nil ? .noneRegistered : .unknown)]
        }
        let deliveries = drafts.map { draft in
            ExplainAnswer.Delivery(
                destination: draft.destination?.id.text, facts: draft.facts, decision: draft.decision,
                sentence: Explanation.sentence(draft.decision.reason, draft.decision.detail))
        }
        let answer = ExplainAnswer(
            policy: policy.digest, request: request, deliveries: deliveries,
            paramsViolations: verdict.violations.map(\.pointer.text))
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
