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
    /// Anything else: a function of the gateway, which answers once.
    case run(
        @Sendable (Gateway, _ listener: ListenerMode, _ answer: @escaping @Sendable (Answer) -> Void) -> Void)
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
        _ action: RouteAction, for caller: CallerName, needing permission: Permission,
        over listener: ListenerMode,
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
        case .run(let work): work(self, listener, answer)
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
        onReader(for: caller, answer: answer) { [self] in
            answer(
                try store.read { store in
                    try look(
                        GatewayReading(
                            store: store, library: library, policy: policy.current,
                            now: dependencies.clock.now()))
                })
        }
    }

    /// Does work on a reader's thread, and answers with what it throws, or that the readers have too much to do.
    func onReader(
        for caller: CallerName, lane: EngineLane = .general, answer: @escaping @Sendable (Answer) -> Void,
        _ work: @escaping @Sendable () throws -> Void
    ) {
        let isTaken = readers.submit(for: caller, lane: lane) {
            do {
                try work()
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
    func erase(
        _ user: UserID, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let finish: @Sendable (Answer) -> Void = { [self] recorded in
            guard recorded.status < 300 || recorded.status == 404 else { return answer(recorded) }
            onReader(for: caller, lane: .security, answer: answer) { [self] in
                do {
                    try store.finishErasures()
                    answer(recorded)
                } catch StoreError.lostDurability(let what) {
                    dependencies.durabilityLost(what)
                } catch {
                    let why = Problem(looking: error).detail ?? ""
                    throw Problem(
                        .unavailable,
                        detail: "the erasure is recorded and is not finished: \(why); ask again")
                }
            }
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
        onReader(for: caller, answer: answer) { [library] in
            guard let bytes = try library.file(path) else {
                throw Problem(.notFound, detail: "nothing of this name is published yet")
            }
            answer(Answer(status: 200, contentType: mediaType, body: bytes))
        }
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
