import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals
import WireProtocol

/// Reads the configured bundle again when the operator sends SIGHUP.
///
/// A bundle that has a problem leaves the one in force where it is, and says so in the log, in `status` and in the
/// trail: a rule book nobody can read must never become no rule book.
struct PolicyReload: Service {
    let gateway: Gateway
    let engine: Engine
    let policy: PolicyInForce
    let load: @Sendable () throws -> CompiledPolicy
    let ledger: ReloadLedger
    let clock: any Clock
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() { await reload() }
    }

    func reload() async {
        let next: CompiledPolicy
        do {
            next = try load()
        } catch {
            let problems = (error as? PolicyProblems)?.problems ?? []
            let first = problems.first.map { "\($0.placed)" } ?? "\(error)"
            logger.error(
                "the bundle was refused; the one in force stays",
                metadata: ["problems": "\(max(1, problems.count))", "first": "\(first)"])
            for problem in problems.dropFirst().prefix(99) { logger.error("\(problem.placed)") }
            ledger.refused(at: clock.now(), because: first)
            engine.submit(
                HouseOperation.entry(.policyRefused) { batch in
                    [
                        "policy": .string(batch.policy.digest.text),
                        "problems": .integer(Int64(max(1, problems.count))),
                    ]
                })
            return
        }
        guard next.digest != policy.current.digest else {
            logger.info("the bundle is the one in force", metadata: ["policy": "\(next.digest)"])
            ledger.accepted()
            return
        }
        let answer = await withCheckedContinuation { continuation in
            gateway.replacePolicy(with: next, by: nil) { continuation.resume(returning: $0) }
        }
        if answer.status < 300 {
            logger.notice("a new bundle is in force", metadata: ["policy": "\(next.digest)"])
            ledger.accepted()
        } else {
            let body = String(decoding: answer.body, as: UTF8.self)
            logger.error("the new bundle cannot be put in force: \(body)")
            ledger.refused(at: clock.now(), because: body)
        }
    }
}

/// Why the last reload changed nothing; readiness and `status` tell it.
final class ReloadLedger: Sendable {
    struct Refusal: Hashable, Sendable {
        var at: Instant
        var reason: String
    }

    private let state = Mutex<Refusal?>(nil)

    var lastRefusal: Refusal? { state.withLock { $0 } }

    func refused(at now: Instant, because reason: String) {
        state.withLock { $0 = Refusal(at: now, reason: reason) }
    }

    func accepted() { state.withLock { $0 = nil } }
}
