import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import KeyLifecycle
import WireProtocol

extension Gateway {
    /// One line per route: what reads goes to the readers, what changes goes through the engine.
    func dispatch(_ route: Route, _ context: RouteContext) {
        let caller = context.caller
        switch route {
        case .postSend, .streamSends:
            // A stream's lines arrive one by one as sends; the endpoint frames them.
            context.answer(Problem(.malformedRequest, detail: "a stream needs a body of lines").answer)
        case .explainSend:
            context.reading(ExplainBody.self) { explain($0, context) }
        case .acknowledgeEvent:
            context.reading(AcknowledgeBody.self) { body in
                edit(context) { step, now in
                    let answer = try step.acknowledge(body, by: caller, at: now)
                    return { Answer(json: answer($0).json) }
                }
            }
        case .getSend(let id):
            read(context) { try $0.sendStatus(id, caller, context.grants) }
        case .cancelSend(let id):
            context.readingOptional(EmptyBody.self) { _ in
                edit(context) { step, now in
                    let answer = try step.cancel(id, by: caller, at: now)
                    return { Answer(json: answer($0).json) }
                }
            }
        case .listTypes:
            let types = policy.current.types.map { TypeAnswer($0, for: caller, under: policy.current) }
            context.answer(Answer(json: TypesAnswer(policy: policy.current.digest, types: types).json))
        case .getType(let id):
            guard let type = policy.current.type(id) else {
                return context.answer(
                    Problem(.notFound, detail: "the registry has no type of this name").answer)
            }
            context.answer(Answer(json: TypeAnswer(type, for: caller, under: policy.current).json))
        case .listEvents(let query):
            read(context) { try $0.events(of: caller, query) }

        case .putRecipient(let user):
            context.reading(RecipientBody.self) { body in
                edit(context, .change(user)) { try $0.putRecipient(user, body, by: caller, at: $1).answer }
            }
        case .getRecipient(let user):
            read(context) { try $0.recipient(user) }
        case .deleteRecipient(let user):
            erase(user, context)
        case .putDevice(let user, let device):
            context.reading(DeviceBody.self) { body in
                edit(context, .change(user)) {
                    try $0.putDevice(device, body, of: user, by: caller, at: $1).answer
                }
            }
        case .deleteDevice(let user, let device):
            edit(context, .change(user)) { try $0.removeDevice(device, of: user, by: caller, at: $1).answer }
        case .putAddress(let user, let address):
            context.reading(AddressBody.self) { body in
                edit(context, .change(user)) {
                    try $0.putAddress(address, body, of: user, by: caller, at: $1).answer
                }
            }
        case .deleteAddress(let user, let address):
            edit(context, .change(user)) {
                try $0.removeAddress(address, of: user, by: caller, at: $1).answer
            }
        case .addDeviceKey(let user, let device):
            context.reading(DeviceKeyBody.self) { body in
                edit(context, .change(user)) { step, now in
                    let answer = try step.addDeviceKey(body, to: device, of: user, by: caller, at: now)
                    return { Answer(status: 201, json: answer($0).json) }
                }
            }
        case .confirmDeviceKey(let user, let device, let key):
            context.reading(KeyConfirmBody.self) { body in
                edit(context, .change(user)) { step, now in
                    switch try step.confirmDeviceKey(
                        key, body, of: device, user: user, by: caller, at: now)
                    {
                    case .right(let answer): return { Answer(json: answer($0).json) }
                    case .wrong(let refusal): return { _ in Problem(refusal).answer }
                    }
                }
            }
        case .addConsent(let user):
            context.reading(ConsentBody.self) { body in
                // A no must get through a flood, and goes ahead of everything but what its caller changed before.
                edit(context, lane: body.state == .refused ? .security : .general, .change(user)) {
                    try $0.addConsent(body, of: user, by: caller, at: $1).answer
                }
            }
        case .withdrawConsent(let user, let consent):
            context.readingOptional(ConsentWithdrawBody.self) { body in
                edit(context, lane: .security, .change(user)) {
                    try $0.withdrawConsent(consent, body, of: user, by: caller, at: $1).answer
                }
            }
        case .listConsents(let user, let query):
            read(context) { try $0.consents(of: user, query) }
        case .putPreference(let user, let scope):
            context.reading(PreferenceBody.self) { body in
                let needed = body.neededGrant
                guard context.grants.contains(needed) else {
                    return context.answer(
                        Problem(
                            .grantMissing,
                            detail:
                                "the source `\(body.source.rawValue)` needs the grant `\(needed.rawValue)`"
                        ).answer)
                }
                edit(context, lane: body.storedState.isOff ? .security : .general, .change(user)) {
                    try $0.setPreference(body, scope: scope, of: user, by: caller, at: $1).answer
                }
            }
        case .listPreferences(let user):
            read(context) { try $0.preferences(of: user) }
        case .addPermissionPrompt(let user):
            context.reading(PermissionPromptBody.self) { body in
                edit(context, .change(user)) {
                    try $0.addPermissionPrompt(body, of: user, by: caller, at: $1).answer
                }
            }
        case .listDecisions(let user, let query):
            read(context) { try $0.decisions(of: user, query) }
        case .addReceipt:
            context.reading(ReceiptBody.self) { body in
                // A receipt `unregistered` deactivates a device, and names no person.
                edit(context, .change(nil)) { try $0.addReceipt(body, by: caller, at: $1).answer }
            }

        case .listKeys:
            context.answer(Answer(json: KeysAnswer(keys: operations.gateKeys()).json))
        case .promoteKey(let key):
            context.readingOptional(EmptyBody.self) { _ in changeKey(key, .promote, context) }
        case .suspendKey(let key):
            context.readingOptional(EmptyBody.self) { _ in changeKey(key, .suspend, context) }
        case .revokeKey(let key):
            context.reading(KeyRevokeBody.self) { body in
                changeKey(key, body.cause == .compromised ? .revoke : .deactivate, context)
            }
        case .destroyKey(let key):
            context.readingOptional(EmptyBody.self) { _ in changeKey(key, .destroy, context) }
        case .activatePolicy:
            context.reading(PolicyActivateBody.self) { activate($0, context) }

        case .getCheckpoint: file("checkpoint", MediaType.text, context)
        case .getTile(let tile): file("tile/\(tile)", MediaType.bytes, context)
        case .getMetrics, .getHealth, .getReadiness, .getOpenAPI:
            context.answer(operations.answer(to: route, from: self))
        }
    }

    /// Changes something: through the engine, as one step, answered after the commit.
    func edit(
        _ context: RouteContext, lane: EngineLane = .general, _ order: CallerOrder = .free,
        _ change: @escaping @Sendable (StepContext, Instant) throws -> Citing<Answer>
    ) {
        engine.submit(
            EditOperation(
                caller: context.caller, lane: lane, order: order, edit: change, reply: context.answer))
    }

    /// Looks something up: on a reader thread, in one snapshot.
    func read(
        _ context: RouteContext, _ look: @escaping @Sendable (GatewayReading) throws -> Answer
    ) {
        let isTaken = readers.submit(for: context.caller) { [self] in
            do {
                let answer = try store.read { store in
                    try look(
                        GatewayReading(
                            store: store, library: library, policy: policy.current,
                            now: surroundings.clock.now()))
                }
                context.answer(answer)
            } catch let problem as Problem {
                context.answer(problem.answer)
            } catch {
                context.answer(Problem(looking: error).answer)
            }
        }
        if !isTaken { context.answer(Problem(.tooManyInFlight).answer) }
    }

    /// Forgets a person. Answered when the mapping is destroyed too, not before.
    private func erase(_ user: UserID, _ context: RouteContext) {
        let caller = context.caller
        let finish: @Sendable (Answer) -> Void = { [self] answer in
            guard answer.status < 300 else { return context.answer(answer) }
            let isTaken = readers.submit(for: caller, lane: .security) { [self] in
                do {
                    try store.finishErasures()
                    context.answer(answer)
                } catch StoreError.lostDurability(let what) {
                    surroundings.durabilityLost(what)
                } catch {
                    let why = Problem(looking: error).detail ?? ""
                    context.answer(
                        Problem(
                            .unavailable, detail: "the erasure is recorded and will be finished: \(why)"
                        ).answer)
                }
            }
            if !isTaken { context.answer(Problem(.tooManyInFlight).answer) }
        }
        engine.submit(
            EditOperation(
                caller: caller, lane: .security, order: .change(user),
                edit: { try $0.erase(user, by: caller, at: $1).answer }, reply: finish))
    }

    private func changeKey(_ key: String, _ event: KeyEvent, _ context: RouteContext) {
        let caller = context.caller
        guard let id = KeyID(hexadecimal: key) else {
            return context.answer(
                Problem(
                    .notFound,
                    detail:
                        "no device key `\(key)`; the gateway's own keys change with `sendgate keys` and a restart"
                ).answer)
        }
        edit(context, lane: .security, .change(nil)) { step, now in
            let answer = try step.changeDeviceKey(id, event, by: caller, at: now)
            return { Answer(json: answer($0).json) }
        }
    }

    private func file(_ path: String, _ mediaType: String, _ context: RouteContext) {
        let isTaken = readers.submit(for: context.caller) { [self] in
            do {
                guard let bytes = try library.file(path) else {
                    return context.answer(
                        Problem(.notFound, detail: "nothing of this name is published yet").answer)
                }
                context.answer(Answer(status: 200, contentType: mediaType, body: bytes))
            } catch {
                context.answer(Problem(looking: error).answer)
            }
        }
        if !isTaken { context.answer(Problem(.tooManyInFlight).answer) }
    }
}

extension Problem {
    /// What a caller is told when something could not be looked up. Nothing was to be recorded.
    init(looking error: any Error) {
        switch EngineFailure(error) {
        case .unavailable(let what): self.init(.unavailable, detail: what)
        case let failure: self.init(failure)
        }
    }
}

extension Recorded {
    var answer: Citing<Answer> {
        { [entry, isReplayed, noEffect] places in
            Answer(
                json: RecordedAnswer(trail: places[entry], isReplayed: isReplayed, noEffect: noEffect).json)
        }
    }
}
