import BundleModel
import GateSteps
import SendPlanning
import CompliancePolicy
import GateVocabulary
import WireProtocol

/// The steps once, in order.
///
///     bytes → SendRequest → AttestedRequest → Facts → Decision → SendPlan → sealed bodies
///                                                                    ↓
///              answer ← one commit: trail entry + outbox rows + counters + idempotency key
///
/// Runs on the connection's event loop up to the engine's queue, and never blocks it: reading the
/// store happens on the reader threads, changing it on the engine's.
package final class Gateway: RequestHandler {
    let engine: Engine
    let store: any GateStore
    let library: any TrailLibrary
    let policy: PolicyInForce
    let attestation: PeerAttestation
    let surroundings: EngineSurroundings
    let unknownPeers = UnknownPeerMeter.unknownPeers()
    let explanations = ExplanationMeter.explanations()
    let explanationRate = ExplanationRate()
    let readers: ReaderThreads
    let operations: GatewayOperations
    let results = ResultGroups()
    let work: WorkSignal

    package init(
        engine: Engine, store: any GateStore, library: any TrailLibrary, policy: PolicyInForce,
        attestation: PeerAttestation, surroundings: EngineSurroundings, operations: GatewayOperations,
        work: WorkSignal
    ) {
        self.engine = engine
        self.store = store
        self.library = library
        self.policy = policy
        self.attestation = attestation
        self.surroundings = surroundings
        self.operations = operations
        self.work = work
        readers = ReaderThreads(threadCount: 2)
    }

    /// A caller that sends nothing but security notices.
    package func mayUseReserve(_ peer: Peer) -> Bool {
        guard let caller = attestation.caller(of: peer) else { return false }
        return policy.current.caller(caller)?.types.categories == [.security]
    }

    package func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (WireReply) -> Void
    ) {
        let isStreamLine = request.kind == .streamLine
        let answer: @Sendable (Answer) -> Void = { reply(WireReply($0)) }
        let refuse: @Sendable (Problem) -> Void = { problem in
            reply(WireReply(isStreamLine ? problem.streamLine : problem.answer))
        }
        let match = Route.match(method: request.method, target: request.target)
        guard case .match(let matched, let isHead) = match else {
            // Who may not know what exists is told so before being told what does not.
            guard attestation.caller(of: peer) != nil else { return refuse(unknown(peer)) }
            return refuse(Problem(match)!)
        }
        let route = isStreamLine ? Route.postSend : matched
        if route == .getReadiness {
            return engine.askCommit { [operations] failure in
                answer(operations.readiness(given: failure).answer.withoutBody(isHead))
            }
        }
        guard route.template.permission.needsCaller else {
            return answer(operations.answer(to: route, from: self).withoutBody(isHead))
        }
        guard let caller = attestation.caller(of: peer) else { return refuse(unknown(peer)) }
        let grants = policy.current.grants(of: caller)
        // A send by somebody who may not send is a decision (gate 2), recorded like any other.
        if route != .postSend, !route.template.permission.isSatisfied(by: grants.contains) {
            return refuse(
                Problem(.grantMissing, detail: "caller `\(caller)` lacks what `\(route.template.path)` needs")
            )
        }
        let encoding = request.headers.first { $0.name == "content-encoding" }?.value
        if !isStreamLine, let encoding, encoding.lowercased() != "identity" {
            return refuse(
                Problem(
                    .unsupportedMediaType,
                    detail: "send the body as it is, without `Content-Encoding`; nothing is unpacked here"))
        }
        let contentType = request.headers.first { $0.name == "content-type" }?.value
        if !isStreamLine,
            let problem = Problem.refusing(
                body: request.body, contentType: contentType, on: route.template)
        {
            return refuse(problem)
        }
        switch route {
        case .postSend:
            send(request.body, from: caller, peer: peer.credentials, isStreamLine: isStreamLine, reply: reply)
        default:
            let context = RouteContext(
                caller: caller, peer: peer.credentials, grants: grants, body: request.body,
                answer: { answer($0.withoutBody(isHead)) })
            dispatch(route, context)
        }
    }

    package func problem(_ problem: WireProblem) -> WireReply {
        WireReply(Problem(problem).answer)
    }

    /// Reads a send and hands it to the engine.
    private func send(
        _ body: [UInt8], from caller: CallerName, peer: PeerCredentials, isStreamLine: Bool,
        reply: @escaping @Sendable (WireReply) -> Void
    ) {
        switch SendRequest.readWithContent(body) {
        case .failure(let error):
            let problem = Problem(error)
            reply(WireReply(isStreamLine ? problem.streamLine : problem.answer))
        case .success(let read):
            let request = read.body
            let attested = AttestedRequest(
                caller: caller, type: request.type, channel: request.channel, critical: request.critical)
            let policy = policy.current
            let lane = EngineLane(of: attested, under: policy)
            engine.submit(
                SendOperation(
                    send: SendStep(
                        request: request, attested: attested,
                        peer: .init(userID: peer.userID, groupID: peer.groupID, processID: peer.processID),
                        idHash: surroundings.settings.index.idHash(request.id, of: caller),
                        contentMAC: surroundings.settings.index.contentMAC(read.canonicalContent),
                        isSecurity: lane == .security, under: policy),
                    lane: lane, isStreamLine: isStreamLine, readers: readers,
                    entryBytes: { [store, surroundings] in try surroundings.entry($0, in: store) },
                    noteDamage: { [store] in store.note($0) }, reply: reply))
        }
    }

    /// Answers a peer that is no caller, and counts it.
    private func unknown(_ peer: Peer) -> Problem {
        let uptime = surroundings.clock.reading().uptime
        if let count = unknownPeers.record(peer.credentials.userID, at: uptime) {
            // The count may be of many uids; then this peer is only one of them.
            let isOwn = count.key == peer.credentials.userID
            engine.submit(UnknownPeerOperation(peer: isOwn ? peer : nil, count: count, meter: unknownPeers))
        }
        return Problem(
            .unknownPeer, detail: "uid \(peer.credentials.userID) is bound to no caller on this socket")
    }
}

/// What a route's handler is given.
struct RouteContext: Sendable {
    var caller: CallerName
    var peer: PeerCredentials
    var grants: GrantSet
    var body: [UInt8]
    var answer: @Sendable (Answer) -> Void

    /// Reads the body, or answers with what is wrong with it.
    func reading<Body: WireBody>(_: Body.Type, _ use: (Body) -> Void) {
        switch Body.read(body) {
        case .success(let body): use(body)
        case .failure(let error): answer(Problem(error).answer)
        }
    }

    /// The same for a body that may be left out.
    func readingOptional<Body: WireBody>(_: Body.Type, _ use: (Body) -> Void) {
        switch Body.read(body.isEmpty ? Array("{}".utf8) : body) {
        case .success(let body): use(body)
        case .failure(let error): answer(Problem(error).answer)
        }
    }
}

extension WireReply {
    init(_ answer: Answer) {
        self.init(
            status: answer.status, contentType: answer.contentType,
            headers: answer.headers.map { ($0.name, $0.value) }, body: answer.body)
    }
}

extension Answer {
    /// `HEAD` has the headers of `GET` and no body (RFC 9110 section 9.3.2).
    func withoutBody(_ isHead: Bool) -> Answer {
        guard isHead else { return self }
        var answer = self
        answer.body = []
        return answer
    }
}

extension Problem {
    /// A problem always carries its status, so a line of a stream looks the same.
    var streamLine: Answer { answer }

    init(_ problem: WireProblem) {
        switch problem {
        case .malformedRequest:
            self.init(
                .malformedRequest,
                detail:
                    "send HTTP/1.1 as RFC 9112 has it: one `Host`, one framing of the body, no folded header lines"
            )
        case .bodyTooLarge(let most):
            self.init(.bodyTooLarge, detail: "at most \(most) bytes are accepted")
        case .headersTooLarge(let most):
            self.init(.headersTooLarge, detail: "at most \(most) bytes are accepted")
        case .requestTimeout(let milliseconds):
            self.init(.requestTimeout, detail: "the request was not complete after \(milliseconds) ms")
        case .tooManyInFlight:
            self.init(.tooManyInFlight, detail: "wait for answers before asking for more")
        case .draining: self.init(.draining, detail: "send the same id again when the gateway is back")
        case .tooManyLines(let most): self.init(.tooManyLines, detail: "at most \(most) lines are accepted")
        }
    }
}
