import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSockets

/// Tells the service manager that the courier is ready, reloading or draining, and that it still answers.
///
/// The last of the services, so that the first to be shut down says so before anything closes.
final class CourierNotices: Service {
    private let manager: ServiceManager
    private let status: String
    private let logger: Logger
    private let hasWarned = Atomic(false)

    init(manager: ServiceManager, wayCount: Int, logger: Logger) {
        self.manager = manager
        self.logger = logger
        status = "ready, with \(wayCount) \(wayCount == 1 ? "way" : "ways") out"
    }

    func ready() { warn(manager.notify(.ready, .status(status))) }
    func reloading() { warn(manager.notify(.reloading, .status("reading the credentials again"))) }

    func run() async throws {
        if let milliseconds = manager.watchdogMilliseconds {
            // Half of what the manager allows, as sd_watchdog_enabled(3) advises.
            let interval = Duration.milliseconds(max(1, milliseconds / 2))
            await cancelWhenGracefulShutdown {
                while !Task.isCancelled {
                    await self.comeRound()
                    self.warn(self.manager.notify(.watchdog))
                    try? await Task.sleep(for: interval)
                }
            }
        } else {
            try? await gracefulShutdown()
        }
        warn(manager.notify(.stopping, .status("draining")))
    }

    /// Returns once every event loop has come round: orders are read, and providers are spoken to, on these.
    private func comeRound() async {
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
            // The group of the whole process is never shut down.
            try? await loop.submit {}.get()
        }
    }

    private func warn(_ errorNumber: Int32?) {
        guard let errorNumber, !hasWarned.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            "the service manager does not hear the courier",
            metadata: ["error": "\(SystemCall.message(errorNumber))"])
    }
}
