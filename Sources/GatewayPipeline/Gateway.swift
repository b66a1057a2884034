import BundleModel
import CanonicalJSON
import GateSteps
import SendPlanning
import CompliancePolicy
import GateVocabulary
package import WireProtocol

/// Takes a request through all steps, in order.
///
///     bytes → SendRequest → AttestedRequest → Facts → ContentPlan → Decision → DeliveryPlan → sealed bodies
///                                                     (its sizes are facts)        ↓
///                          answer ← one commit: trail entry + outbox rows + counters + idempotency key
///
/// Runs on the connection's event loop up to the engine's queue, and never blocks it: reading the
/// store happens on the reader threads, changing it on the engine's.
package final class Gateway: RequestHandler {
    let engine: Engine
    let store: any GateStore
    let library: any TrailLibrary
    let policy: PolicyInForce
    let attestation: PeerAttestation
    /// By the listener's number; ``ListenerMode/enforce`` of every other.
    private let listeners: [ListenerMode]
    let dependencies: EngineDependencies
    let unknownPeers = UnknownPeerMeter.unknownPeers()
    let explanations = ExplanationMeter.explanations()
    let explanationRate = ExplanationRate()
    let readers: ReaderThreads
    let management: GatewayManagement
    let results = ResultGroups()
    let work: WorkSignal

    package init(
        engine: Engine, store: any GateStore, library: any TrailLibrary, policy: PolicyInForce,
        attestation: PeerAttestation, listeners: [ListenerMode] = [], dependencies: EngineDependencies,
        management: GatewayManagement, work: WorkSignal
    ) {
        self.engine = engine
        self.store = store
        self.library = library
        self.policy = policy
        self.attestation = attestation
        self.listeners = listeners
        self.dependencies = dependencies
        self.management = management
        self.work = work
        readers = ReaderThreads(threadCount: 2, limits: dependencies.limits)
    }

    /// Whether the peer's caller may send nothing but security notices.
    package func mayUseReserve(_ peer: Peer) -> Bool {
        guard let caller = attestation.caller(of: peer) else { return false }
        let policy = policy.current
        guard policy.caller(caller)?.types.categories == [.security] else { return false }
        return mode(of: peer).forwards(sendsOf: caller) { policy.type($0)?.category == .security }
    }

    private func mode(of peer: Peer) -> ListenerMode {
        listeners.indices.contains(peer.listener) ? listeners[peer.listener] : .enforce
    }

    package func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        // The route of nearly every request is found without taking its target apart.
        let isStreamLine = request.kind == .streamLine
        guard isStreamLine || (request.method == "POST" && request.target == "/v1/sends") else {
            return find(request, from: peer, reply: reply)
        }
        let refuse: @Sendable (Problem) -> Void = { reply($0.answer) }
        guard let caller = attestation.caller(of: peer) else { return refuse(recordUnknown(peer)) }
        let mode = mode(of: peer)
        if isStreamLine, request.target == Route.importTarget {
            if mode.isShadow { return refuse(.inShadow) }
            return importPerson(request.body, from: caller, reply: reply)
        }
        if !isStreamLine, let problem = Self.refusal(of: request, on: .postSend) { return refuse(problem) }
        send(
            request.body, from: caller, peer: peer.credentials, over: mode, isStreamLine: isStreamLine,
            tracedTo: TraceParent(in: request.headers), reply: reply)
    }

    /// Finds the route of a request and carries out its action.
    private func find(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        let refuse: @Sendable (Problem) -> Void = { reply($0.answer) }
        let match = Route.table.match(method: request.method, target: request.target)
        guard case .match(let index, let arguments) = match else {
            // An unknown peer gets the same answer whether a route exists or not.
            guard attestation.caller(of: peer) != nil else { return refuse(recordUnknown(peer)) }
            return refuse(Problem(match)!)
        }
        // The answer to `HEAD` has the body of `GET`, for its length; the endpoint does not write it.
        let route = Route.all[index]
        let target = route.read(arguments)
        if case .open(let answering) = target {
            switch answering {
            case .answer(let make): return reply(make())
            case .readiness: return askReadiness(reply)
            }
        }
        guard let caller = attestation.caller(of: peer) else { return refuse(recordUnknown(peer)) }
        let handler: Route.Handler
        switch target {
        case .open: return
        case .invalid(let violations): return refuse(Problem(.invalidRequest, violations: violations))
        case .asked(let found): handler = found
        }
        let grants = policy.current.grants(of: caller)
        let mode = mode(of: peer)
        if mode.isShadow, !route.isAsked { return refuse(.inShadow) }
        if !route.grantIsDecided, !route.description.permission.isSatisfied(by: grants.contains) {
            return refuse(
                Problem(
                    .grantMissing, detail: "caller `\(caller)` lacks what `\(route.description.path)` needs"))
        }
        if let problem = Self.refusal(of: request, on: route) { return refuse(problem) }
        let action: RouteAction
        do {
            action = try handler(.init(caller: caller, grants: grants, body: request.body))
        } catch let error as BodyError {
            return refuse(Problem(error))
        } catch let problem as Problem {
            return refuse(problem)
        } catch {
            preconditionFailure("\(route.description.name) threw \(error)")
        }
        if case .send(let body) = action {
            return send(
                body, from: caller, peer: peer.credentials, over: mode, isStreamLine: false,
                tracedTo: TraceParent(in: request.headers), reply: reply)
        }
        perform(action, for: caller, needing: route.description.permission, over: mode, answer: reply)
    }

    /// What is wrong with a request's body before it is read; `nil` when nothing is.
    private static func refusal(of request: WireRequest, on route: Route) -> Problem? {
        func header(_ name: String) -> String? { request.headers.first { $0.name == name }?.value }
        if let encoding = header("content-encoding"), encoding.lowercased() != "identity" {
            return Problem(
                .unsupportedMediaType,
                detail: "send the body as it is, without `Content-Encoding`; nothing is unpacked here")
        }
        return Problem.refusing(
            body: request.body, contentType: header("content-type"), where: route.description.body)
    }

    /// Reads a send and hands it to the engine.
    private func send(
        _ body: [UInt8], from caller: CallerName, peer: PeerCredentials, over listener: ListenerMode,
        isStreamLine: Bool, tracedTo traceParent: TraceParent?, reply: @escaping @Sendable (Answer) -> Void
    ) {
        if listener == .manage { return reply(Problem.sendsNothing.answer) }
        switch SendRequest.readWithContent(body) {
        case .failure(let error):
            let problem = Problem(error)
            reply(problem.answer)
        case .success(let read):
            let request = read.body
            let attested = AttestedRequest(
                caller: caller, type: request.type, channel: request.channel, critical: request.critical)
            let mode = listener.mode(of: attested)
            let policy = policy.current
            // What goes nowhere takes no share of what is kept for security.
            let lane = mode == .shadow ? .general : EngineLane(of: attested, under: policy)
            engine.submit(
                SendOperation(
                    SendStep(
                        request: request, attested: attested,
                        peer: .init(userID: peer.userID, groupID: peer.groupID, processID: peer.processID),
                        idHash: dependencies.index.idHash(request.id, of: caller),
                        contentMAC: dependencies.index.contentMAC(read.contentToSend),
                        isSecurity: lane == .security, mode: mode, tracedTo: traceParent, under: policy),
                    in: lane, isStreamLine: isStreamLine, gateway: self, reply: reply))
        }
    }

    /// Reads a line of an import and hands it to the engine.
    private func importPerson(
        _ line: [UInt8], from caller: CallerName, reply: @escaping @Sendable (Answer) -> Void
    ) {
        let permission = CallerAct.importPerson.permission
        guard permission.isSatisfied(by: policy.current.grants(of: caller).contains) else {
            return reply(
                Problem(.grantMissing, detail: "caller `\(caller)` lacks what `\(Route.importTarget)` needs")
                    .answer)
        }
        switch ImportLine.readParts(line) {
        case .failure(let error): reply(Problem(error).answer)
        case .success(let read): engine.submit(ImportOperation(read, by: caller, reply: reply))
        }
    }

    /// Answers a peer that matches no caller, and counts it.
    private func recordUnknown(_ peer: Peer) -> Problem {
        let uptime = dependencies.clock.reading().uptime
        if let count = unknownPeers.record(peer.credentials.userID, at: uptime) {
            // The count may be of many uids; then this peer is only one of them.
            let isOwn = count.key == peer.credentials.userID
            recordUnknownPeer(count, last: isOwn ? peer : nil)
        }
        return Problem(
            .unknownPeer, detail: "uid \(peer.credentials.userID) is bound to no caller on this socket")
    }
}

extension ListenerMode {
    func mode(of request: AttestedRequest) -> SendMode {
        guard case .shadow(let enforced) = self else { return .enforced }
        return enforced.includes(request) ? .enforcedAfterShadow : .shadow
    }
}

extension ReadBody<SendRequest> {
    /// What the send is, as idempotency compares it. What its own sender did is no part of it: a producer learns that after the first
    /// copy, and stops saying it on the day its type is enforced. The first word of it is the one that is recorded.
    fileprivate var contentToSend: [UInt8] {
        guard body.sent != nil, case .object(var object) = content else { return canonicalContent }
        object["sent"] = nil
        return CanonicalJSON.write(.object(object))
    }
}

extension Problem {
    /// The answer to a change over a listener in shadow: who copies sends there is trusted with no more.
    fileprivate static let inShadow = Problem(
        .otherListener,
        detail:
            "this socket is in shadow: it takes sends, explanations and questions; what changes people or the gateway goes over a listener with `mode: manage` or `mode: enforce`, and consents also by `sendgate import` there"
    )

    fileprivate static let sendsNothing = Problem(
        .otherListener,
        detail:
            "this socket is `mode: manage`, which takes everything but sends; they go over a listener with `mode: shadow` or `mode: enforce`"
    )
}
