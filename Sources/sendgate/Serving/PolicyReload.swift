import BundleModel
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Reads the configured bundle again when the operator sends SIGHUP.
struct PolicyReload: Service {
    let gateway: Gateway
    var notices: ServiceNotices?
    /// One line on the bundle in force, and on the one that was refused last.
    var status: @Sendable () -> String = { "ready" }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            notices?.reloading()
            await reload()
            notices?.ready(status())
        }
    }

    /// What came of it is in the log, in `status` and in the trail.
    func reload() async {
        await withCheckedContinuation { continuation in
            gateway.loadPolicy(reviewedAs: nil, by: nil) { _ in continuation.resume() }
        }
    }
}

/// Why the last bundle that was asked for is not in force; readiness and `status` tell it.
final class ReloadLedger: Sendable {
    struct Refusal: Hashable, Sendable {
        var at: Instant
        var reason: String
    }

    private let state = Mutex<Refusal?>(nil)
    private let clock: any Clock
    private let logger: Logger

    init(clock: any Clock, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    var lastRefusal: Refusal? { state.withLock { $0 } }

    func refused(_ refusal: PolicySource.Refusal) {
        let first = refusal.diagnostics.first?.placed ?? "the bundle cannot be loaded"
        logger.error(
            "the bundle was refused; the one in force stays",
            metadata: [
                "problems": "\(refusal.diagnostics.count)", "first": "\(first)",
                "hint": "`sendgate policy check` lists them all",
            ])
        let now = clock.now()
        state.withLock { $0 = Refusal(at: now, reason: first) }
    }

    func accepted(_ policy: CompiledPolicy) {
        logger.notice(
            "the bundle is in force",
            metadata: ["policy": "\(policy.digest)", "version": "\(policy.bundle.version)"])
        state.withLock { $0 = nil }
    }
}
