import GateVocabulary
import GatewayPipeline
import Logging
import ServiceLifecycle
import Synchronization
import UnixSocketEndpoint
import UnixSockets

/// What the service manager is told of this gateway, and what `systemctl status` shows of it.
///
///     proving 43 % → bringing … up to date → ready → reloading → ready … → draining
///
/// A manager that does not hear is a warning in the log, once: it would end a gateway that works, and its operator should know why.
final class ServiceNotices: Sendable {
    private struct State {
        var percent: UInt64?
        var hasWarned = false
    }

    private let manager: ServiceManager
    private let logger: Logger
    private let state = Mutex(State())

    init(_ manager: ServiceManager, logger: Logger) {
        self.manager = manager
        self.logger = logger
    }

    /// Half of what the manager allows, as sd_watchdog_enabled(3) advises; `nil` when it does not watch.
    var watchdogInterval: Duration? { manager.watchdogMilliseconds.map { .milliseconds(max(1, $0 / 2)) } }

    /// How much time each percent of a proof asks for. A percent takes a tenth of a second on two processors.
    private static let provingMilliseconds: Int64 = 30_000

    func proving(_ done: UInt64, of total: UInt64) {
        let percent = total == 0 ? 0 : min(done * 100 / total, 100)
        let isNew = state.withLock { state in
            defer { state.percent = percent }
            return state.percent != percent
        }
        guard isNew else { return }
        warn(
            manager.notify(
                .status("proving \(percent) %"), .needsTime(milliseconds: Self.provingMilliseconds)))
    }

    /// Called once a second. A start that takes long is not ended for it.
    func migrating(_ status: String) {
        warn(manager.notify(.status(status), .needsTime(milliseconds: Self.migratingMilliseconds)))
    }

    /// How much time each second of a migration asks for: more than one transaction of it takes on a slow disk.
    private static let migratingMilliseconds: Int64 = 60_000

    /// Clients are answered by the engine.
    func ready(_ status: String) { warn(manager.notify(.ready, .status(status))) }

    func reloading() { warn(manager.notify(.reloading, .status("reading the bundle again"))) }

    func stopping() { warn(manager.notify(.stopping, .status("draining"))) }

    func answers() { warn(manager.notify(.watchdog)) }

    private func warn(_ errorNumber: Int32?) {
        guard let errorNumber else { return }
        let isFirst = state.withLock { state in
            defer { state.hasWarned = true }
            return !state.hasWarned
        }
        guard isFirst else { return }
        logger.warning(
            "the service manager does not hear this gateway",
            metadata: [
                "error": "\(SystemCall.message(errorNumber))",
                "hint": "in the unit, `NotifyAccess=main` and a NOTIFY_SOCKET that this user may write to",
            ])
    }
}

/// Tells the service manager that the gateway answers, as often as it wants to know, and that it stops.
///
/// The last of the services, so that the first to be shut down says so before anything closes.
struct ManagedService: Service {
    let notices: ServiceNotices
    /// Returns once an operation has gone through the engine's queue, whatever came of it, and every event loop has come
    /// round. Where one of them stands still it does not return, and the manager hears nothing.
    let answer: @Sendable () async -> Void

    func run() async throws {
        if let interval = notices.watchdogInterval {
            await cancelWhenGracefulShutdown {
                while !Task.isCancelled {
                    await answer()
                    notices.answers()
                    try? await Task.sleep(for: interval)
                }
            }
        } else {
            try? await gracefulShutdown()
        }
        notices.stopping()
    }
}
