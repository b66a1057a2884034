import BundleModel
import GateSteps
import GateVocabulary
import WireProtocol

/// What a request does, as data; ``Gateway`` carries it out.
enum RouteAction: Sendable {
    /// Answered at once, on the connection's event loop.
    case answer(@Sendable (Gateway) -> Answer)
    /// Looked up on a reader's thread, in one snapshot of the store.
    case read(@Sendable (GatewayReading) throws -> Answer)
    /// Changed by one step of the engine, and answered once that is durable.
    case edit(
        lane: EngineLane, order: CallerOrder, @Sendable (StepContext, Instant) throws -> Citing<Answer>)
    /// A send, read and decided.
    case send([UInt8])
    case explain(ExplainBody, in: LocaleQuery)
    /// Erases a person: answered when the mapping is destroyed too.
    case erase(UserID)
    /// Puts the configured bundle in force.
    case activate(PolicyActivateBody)
    /// Makes a key of the gateway's own.
    case addKey(KeyAddBody)
    case changeKey(KeyChangeOrder)
    case laggingRows
    /// Looks at one piece of all device keys, and revokes those that are meant.
    case revokeDeviceKeys(DeviceKeysRevokeBody)
    /// Puts a signed list of genuine keys in force.
    case adoptKeyset(KeysetBody)
    /// A published file of the trail.
    case file(path: String, mediaType: String)

    /// A change whose answer says where it is recorded.
    static func record(
        _ order: CallerOrder, lane: EngineLane = .general,
        _ step: @escaping @Sendable (StepContext, Instant) throws -> Recorded
    ) -> RouteAction {
        .edit(lane: lane, order: order) { try step($0, $1).answer }
    }
}

/// What a request of an open route does.
enum OpenRouteAction: Sendable {
    case answer(@Sendable () -> Answer)
    /// Whether a send would be taken now.
    case readiness
}

extension Gateway {
    /// Carries out what a request does.
    ///
    /// - Parameters:
    ///   - permission: What the route needs, which a change looks at again when its turn comes.
    ///   - listener: What it came over.
    func perform(
        _ action: RouteAction, for caller: CallerName, _ grants: GrantSet,
        needing permission: Permission, over listener: ListenerMode,
        answer: @escaping @Sendable (Answer) -> Void
    ) {
        switch action {
        case .answer(let make): answer(make(self))
        case .read(let look): read(for: caller, answer: answer, look)
        case .edit(let lane, let order, let change):
            engine.submit(
                EditOperation(
                    caller: caller, permission: permission, lane: lane, order: order, edit: change,
                    reply: answer))
        case .send: preconditionFailure("a send answers in a form of its own")
        case .explain(let body, let query):
            explain(body, in: query, for: caller, grants, over: listener, answer: answer)
        case .erase(let user): erase(user, for: caller, answer: answer)
        case .activate(let body): activate(body, for: caller, answer: answer)
        case .addKey(let body): addKey(body, for: caller, answer: answer)
        case .laggingRows:
            read(for: caller, answer: answer) { [keys = dependencies.keys] in try $0.dataKeyLag(keys) }
        case .revokeDeviceKeys(let body): revokeDeviceKeys(body, for: caller, answer: answer)
        case .adoptKeyset(let body): adoptKeyset(body, for: caller, answer: answer)
        case .changeKey(let order): changeKey(order, for: caller, answer: answer)
        case .file(let path, let mediaType): file(path, mediaType, for: caller, answer: answer)
        }
    }

    func askReadiness(_ answer: @escaping @Sendable (Answer) -> Void) {
        engine.askCommit { [management] failure in answer(management.readiness(given: failure).answer) }
    }

    /// Runs a look-up on a reader thread, in one snapshot.
    func read(
        for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void,
        _ look: @escaping @Sendable (GatewayReading) throws -> Answer
    ) {
        let isTaken = readers.submit(for: caller) { [self] in
            do {
                answer(
                    try store.read { store in
                        try look(
                            GatewayReading(
                                store: store, library: library, policy: policy.current,
                                now: dependencies.clock.now()))
                    })
            } catch let problem as Problem {
                answer(problem.answer)
            } catch {
                answer(Problem(looking: error).answer)
            }
        }
        if !isTaken { answer(Problem(.tooManyInFlight).answer) }
    }

    /// Erases a person. Answered when the mapping is destroyed too, not before. So is a repeated request, which finds
    /// the name unknown although an earlier one may not be finished, because the disk was full.
    private func erase(
        _ user: UserID, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let finish: @Sendable (Answer) -> Void = { [self] recorded in
            guard recorded.status < 300 || recorded.status == 404 else { return answer(recorded) }
            let isTaken = readers.submit(for: caller, lane: .security) { [self] in
                do {
                    try store.finishErasures()
                    answer(recorded)
                } catch StoreError.lostDurability(let what) {
                    dependencies.durabilityLost(what)
                } catch {
                    let why = Problem(looking: error).detail ?? ""
                    answer(
                        Problem(
                            .unavailable,
                            detail: "the erasure is recorded and is not finished: \(why); ask again"
                        ).answer)
                }
            }
            if !isTaken { answer(Problem(.tooManyInFlight).answer) }
        }
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.deleteRecipient.permission, lane: .security,
                order: .change(user),
                edit: { try $0.erase(user, by: caller, at: $1).answer }, reply: finish))
    }

    private func file(
        _ path: String, _ mediaType: String, for caller: CallerName,
        answer: @escaping @Sendable (Answer) -> Void
    ) {
        let isTaken = readers.submit(for: caller) { [self] in
            do {
                guard let bytes = try library.file(path) else {
                    return answer(Problem(.notFound, detail: "nothing of this name is published yet").answer)
                }
                answer(Answer(status: 200, contentType: mediaType, body: bytes))
            } catch {
                answer(Problem(looking: error).answer)
            }
        }
        if !isTaken { answer(Problem(.tooManyInFlight).answer) }
    }
}

extension Problem {
    /// The answer when a look-up failed, which had nothing to record.
    init(looking error: any Error) {
        switch EngineFailure(error) {
        case .unavailable(let what): self.init(.unavailable, detail: what)
        case let failure: self.init(failure)
        }
    }
}

extension Recorded {
    var answer: Citing<Answer> {
        { [entry, isReplayed, noEffect, notOptional, isUnfinished] places in
            guard !isUnfinished else {
                return Problem(
                    .unavailable,
                    detail:
                        "so many people have this number or mailbox that it is switched off for a part of them at a time; ask the same again"
                ).answer
            }
            return Answer(
                RecordedAnswer(
                    trail: places[entry], isReplayed: isReplayed, noEffect: noEffect, notOptional: notOptional
                ))
        }
    }
}
