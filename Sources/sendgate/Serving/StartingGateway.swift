import CommandTerminal
import CompliancePolicy
import Foundation
import GateVocabulary
import GatewayPipeline
import KeyFiles
import Logging
import OpenSSLCrypto
import Synchronization
import UnixSocketEndpoint
import WireProtocol

/// The sockets of a gateway whose bundle this build has still to prove: they are open, say how far the proof is, and then how far an
/// older state directory is brought up to date, and take nothing.
///
///     no proof is kept → sockets open → proof → Wiring (store, trail, engine) → the gateway answers on the same sockets
///
/// Without it a start with a new build is a service that answers nobody for as long as the proof takes, and its log alone knows
/// why. Crash points: nothing is stored until ``Wiring`` opens the store; the proof is kept before that, and the next start
/// finds it.
struct StartingGateway: Sendable {
    let endpoint: UnixSocketEndpoint
    let handler: StartingHandler

    /// Proves the configured bundle, with its sockets open meanwhile.
    ///
    /// - Returns: `nil` where this build has proved it before: the gateway then opens its sockets itself, last of all.
    /// - Throws: As ``Wiring/init(_:environment:logger:starting:)`` does; the sockets are closed again.
    static func proving(
        _ configuration: GatewayConfiguration, environment: [String: String], logger: Logger,
        notices: ServiceNotices? = nil
    ) async throws -> StartingGateway? {
        // Before the first key is read. Where the kernel refuses, the gateway says so.
        _ = SecretMemory.protect()
        try WritePermissions.demand(
            state: configuration.stateDirectory, trail: configuration.trailDirectory)
        try Wiring.requireUnused(configuration)
        let listeners = try SocketPlan(configuration, environment: environment).listeners
        let keys = try CommandFailure.tellingOfRestore(in: configuration.stateDirectory) {
            try Wiring.keys(of: configuration, environment)
        }
        let proofs = KeptProofs(
            in: configuration.stateDirectory, key: HMACKey(try keys.current(.index).secret))
        let policy = try PolicyLoading.signed(configuration)
        try configuration.requireCallers(in: policy)
        if ProvedBundles.holds(policy, keptIn: proofs) { return nil }

        let handler = StartingHandler()
        let endpoint = try UnixSocketEndpoint(
            listeners: listeners, limits: configuration.endpoint, handler: handler, logger: logger)
        try await endpoint.start()
        do {
            try await prove(policy, keptIn: proofs, handler, logger, notices)
        } catch {
            await endpoint.shutDown()
            throw error
        }
        return StartingGateway(endpoint: endpoint, handler: handler)
    }

    /// On a thread of its own, which may block: the proof takes every processor there is.
    private static func prove(
        _ policy: CompiledPolicy, keptIn proofs: KeptProofs, _ handler: StartingHandler, _ logger: Logger,
        _ notices: ServiceNotices?
    ) async throws {
        let tell = PolicyLoading.telling(logger)
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let thread = Thread {
                Thread.current.name = "proof"
                do {
                    try ProvedBundles.demand(policy, keptIn: proofs) { done, total in
                        handler.proved(done, of: total)
                        notices?.proving(done, of: total)
                        tell(done, total)
                    }
                    logger.info("the bundle is proved", metadata: ["states": "\(handler.stateCount)"])
                    continuation.resume()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }
}

/// What answers on the sockets until the gateway does.
final class StartingHandler: RequestHandler {
    private struct State {
        var stateCount: UInt64 = 0
        /// What is still to be done, and the check of `/readyz` that fails for it.
        var work = (check: "policy", progress: "proving the bundle")
        var gateway: (any RequestHandler)?
    }

    private let state = Mutex(State())

    /// States that were decided so far.
    var stateCount: UInt64 { state.withLock { $0.stateCount } }

    func proved(_ done: UInt64, of total: UInt64) {
        state.withLock { state in
            state.stateCount = done
            if total > 0 { state.work.progress = "proving \(min(done * 100 / total, 100)) %" }
        }
    }

    /// - Parameter progress: Which file, and how far.
    func migrating(_ progress: String) { state.withLock { $0.work = ("store", progress) } }

    /// From the next request on the gateway answers, on open connections too.
    func handOver(to gateway: some RequestHandler) { state.withLock { $0.gateway = gateway } }

    func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        if let gateway = state.withLock({ $0.gateway }) {
            return gateway.handle(request, from: peer, reply: reply)
        }
        reply(answer(to: request.target))
    }

    /// A connection keeps the share that it began with, so one from before the hand-over has none of the reserve.
    func mayUseReserve(_ peer: Peer) -> Bool {
        state.withLock { $0.gateway }?.mayUseReserve(peer) ?? false
    }

    private func answer(to target: String) -> Answer {
        let (check, progress) = state.withLock { $0.work }
        switch target {
        case "/healthz": return Answer(HealthAnswer())
        case "/readyz":
            let answer = ReadinessAnswer(checks: [.init(name: check, isPassed: false, detail: progress)])
            return Answer(status: 503, answer)
        default:
            return Problem(.unavailable, detail: "the gateway is starting: \(progress)").answer
        }
    }
}
