package import GateSteps
package import GatewayPipeline
import GateVocabulary
package import Logging
import ServiceLifecycle
import Synchronization

/// Takes messages from the durable outbox to the next hop, at least once, in two lanes.
///
/// While the hop is down nothing is claimed, so nothing becomes ambiguous and everything can still be
/// withdrawn; when it is back the outbox drains. Each lane has so many messages under way at most
/// (``concurrencyMax(of:)``), and neither waits for the other.
package struct DeliveryRelay: Service {
    /// Longest wait between two looks at a hop that is down, in milliseconds.
    package static let probeMillisecondsMax: Int64 = 2000

    /// Messages under way at once.
    package static func concurrencyMax(of lane: DeliveryLane) -> Int {
        switch lane {
        case .security: 8
        case .general: 32
        }
    }

    private let feed: any OutboxFeed
    private let hop: any Hop
    private let clock: any Clock
    private let logger: Logger
    private let health: RelayHealth

    package init(
        feed: any OutboxFeed, hop: any Hop, clock: any Clock, logger: Logger, health: RelayHealth
    ) {
        self.feed = feed
        self.hop = hop
        self.clock = clock
        self.logger = logger
        self.health = health
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for lane in DeliveryLane.allCases {
                    group.addTask { await run(lane) }
                }
            }
            // Offers that the relay did not take wait in the store, and go after the next start.
            await feed.setHopUsable(false)
        }
    }

    private func run(_ lane: DeliveryLane) async {
        let underWay = UnderWayCount()
        var failureCount = 0
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let version = feed.workVersion
                let room = Self.concurrencyMax(of: lane) - underWay.value
                guard room > 0 else {
                    // Every message that comes to its end raises the version.
                    await feed.waitForWork(lane: lane, after: version)
                    continue
                }
                if let obstacle = await hop.obstacle() {
                    await feed.setHopUsable(false)
                    if health.set(obstacle: obstacle) {
                        logger.warning("the next hop cannot be used; messages wait: \(obstacle)")
                    }
                    failureCount += 1
                    await pause(afterFailures: failureCount)
                    continue
                }
                if health.set(obstacle: nil) { logger.info("the next hop is back") }
                await feed.setHopUsable(true)
                do {
                    let batch = try await feed.claim(lane: lane, limit: room)
                    failureCount = 0
                    underWay.add(batch.count)
                    for delivery in batch {
                        group.addTask {
                            await handOver(delivery)
                            underWay.add(-1)
                            feed.roomBecameFree()
                        }
                    }
                    if batch.isEmpty { await feed.waitForWork(lane: lane, after: version) }
                } catch {
                    // The store cannot take it now. Nothing is lost: the messages go on waiting.
                    logger.error("cannot work on the outbox: \(error)")
                    failureCount += 1
                    await pause(afterFailures: failureCount)
                }
            }
        }
    }

    private func handOver(_ delivery: Delivery) async {
        let result = await hop.deliver(delivery)
        let attempt = DeliveryAttempt(attemptCount: delivery.attemptCount, expiresAt: delivery.expiresAt)
        let retryAt: Instant? =
            switch attempt.after(result, at: clock.now(), jitter: .random(in: 0..<1)) {
            case .finish, .abandon: nil
            case .retry(let moment): moment
            }
        var failureCount = 0
        while true {
            do {
                try await feed.report(delivery.message, result, retryAt: retryAt)
                return
            } catch {
                // What the hop said must reach the trail. If the process ends first, the message is
                // ambiguous and goes again under the same id.
                failureCount += 1
                if Task.isCancelled { return }
                logger.error("cannot record what became of \(delivery.message): \(error)")
                await pause(afterFailures: failureCount)
            }
        }
    }

    private func pause(afterFailures count: Int) async {
        let milliseconds = min(50 << Int64(min(count, 10)), Self.probeMillisecondsMax)
        try? await Task.sleep(for: .milliseconds(milliseconds))
    }
}

/// How many messages of a lane are being handed over.
private final class UnderWayCount: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add(_ change: Int) { count.withLock { $0 += change } }
}

/// Whether the next hop answers, for readiness and `status`.
package final class RelayHealth: Sendable {
    private let state = Mutex<String?>(nil)
    package init() {}
    /// Why nothing can be handed over; `nil` while it can.
    package var obstacle: String? { state.withLock { $0 } }
    package var isHopReachable: Bool { obstacle == nil }

    /// - Returns: Whether the obstacle changed.
    func set(obstacle: String?) -> Bool {
        state.withLock { state in
            defer { state = obstacle }
            return state != obstacle
        }
    }
}
