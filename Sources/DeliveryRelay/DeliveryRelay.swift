import GateSteps
package import GatewayPipeline
package import GateVocabulary
package import Logging
import ServiceLifecycle
import Synchronization

/// Takes messages from the durable outbox to the next hop, at least once, in two lanes.
///
/// While the hop is down nothing is claimed, so nothing becomes ambiguous and everything can still be
/// withdrawn; when it is back the outbox drains. Each lane has places at the hop of its own (``Concurrency``), and security
/// takes most of the others too while it has more to send (``HopPlaces``). A message leaves its place at the hop to the next
/// one before its result is recorded: the hop is not kept idle by a commit.
package struct DeliveryRelay: Service {
    /// Longest wait between two looks at a hop that is down, in milliseconds.
    package static let probeMillisecondsMax: Int64 = 2000

    /// Messages at the hop at once, by the lane whose places they are.
    package struct Concurrency: Sendable, Hashable {
        package var general: Int
        package var security: Int

        /// Places that general messages keep while security has more to send than it has places.
        var generalMin: Int { max(1, general / 8) }

        /// For a hop that answers when a provider has: 512 messages of 80 ms each are 6,400 a second.
        package static let requestCount = 512

        /// - Parameter requestCount: Of the general lane; security has an eighth of it besides, at least 8.
        package init(requestCount: Int = Self.requestCount) {
            general = requestCount
            security = max(8, requestCount / 8)
        }
    }

    private let places: HopPlaces
    private let circuits = AppCircuits()
    private let feed: any OutboxFeed
    private let hop: any Hop
    private let clock: any Clock
    private let logger: Logger
    private let health: RelayHealth
    private let traces: TraceLog

    package init(
        feed: any OutboxFeed, hop: any Hop, concurrency: Concurrency = Concurrency(), clock: any Clock,
        logger: Logger, health: RelayHealth, traces: TraceLog = .none
    ) {
        places = HopPlaces(concurrency)
        self.feed = feed
        self.hop = hop
        self.clock = clock
        self.logger = logger
        self.health = health
        self.traces = traces
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
        var failureCount = 0
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let version = feed.workVersion
                let room = places.free(for: lane)
                guard room > 0 else {
                    // Every message that leaves the hop or comes to its end raises the version.
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
                    places.take(batch.count, of: lane)
                    for delivery in batch {
                        group.addTask {
                            let result = await deliver(delivery)
                            places.leaveHop(lane)
                            feed.roomBecameFree()
                            await report(result, of: delivery)
                            places.end(lane)
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

    private func deliver(_ delivery: Delivery) async -> HopResult {
        if let refusal = circuits.refusal(of: delivery, at: clock.reading().uptime) { return refusal }
        let result = await hop.deliver(delivery)
        let uptime = clock.reading().uptime
        circuits.take(result, of: delivery, at: uptime)
        health.note(result, of: delivery, at: uptime)
        traces.tell(
            "handed over", of: delivery.traceParent,
            [
                "send_id": delivery.send.uuidText, "message_id": delivery.message.uuidText,
                "attempt": "\(delivery.attemptCount + 1)", "result": result.word,
            ])
        if let fault = health.note(result, at: uptime) {
            logger.error("messages wait: \(fault)")
        }
        return result
    }

    private func report(_ result: HopResult, of delivery: Delivery) async {
        let attempt = DeliveryAttempt(attemptCount: delivery.attemptCount, expiresAt: delivery.expiresAt)
        let retryAt = attempt.retryTime(after: result, at: clock.now(), jitter: .random(in: 0..<1))
        var failureCount = 0
        while true {
            do {
                try await feed.report(delivery.message, result, retryAt: retryAt)
                return
            } catch {
                // The hop's answer must reach the trail. If the process ends first, the message is
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

/// Whether the next hop answers, for readiness and `status`.
package final class RelayHealth: Sendable {
    private struct State {
        var obstacle: String?
        var misconfiguration: String?
        /// When the log said so last, in milliseconds of uptime.
        var toldAt: Int64?
        /// What the hop said last of a message that waits, by app or channel, and until when that is told, in milliseconds of uptime.
        var waiting: [String: (reason: String, until: Int64)] = [:]
    }
    private let state = Mutex(State())
    package init() {}
    /// Why nothing can be handed over; `nil` while it can.
    package var obstacle: String? { state.withLock { $0.obstacle } }
    package var isHopReachable: Bool {
        state.withLock { $0.obstacle == nil && $0.misconfiguration == nil }
    }
    /// The fault of the hop's configuration by its newest answer; `nil` when that has none.
    package var misconfiguration: String? { state.withLock { $0.misconfiguration } }

    /// A message that waits comes again within a minute, or when the hop said. A reason that was not heard again for so long after that, in
    /// milliseconds, keeps none waiting any more.
    private static let waitingMilliseconds: Int64 = 150_000
    /// Apps and channels whose reasons are kept at once.
    private static let waitingCountMax = 1_000

    /// What the hop says of messages that wait, such as "`com.example.app`: BadDeviceToken".
    package func waitingReasons(at uptime: Int64) -> [String] {
        state.withLock { state in
            state.waiting.filter { uptime < $0.value.until }.map { "`\($0.key)`: \($0.value.reason)" }
                .sorted()
        }
    }

    /// Keeps what the hop said of a message that waits.
    func note(_ result: HopResult, of delivery: Delivery, at uptime: Int64) {
        guard case .busy(_, let wait, _, let reason?) = result else { return }
        state.withLock { state in
            if state.waiting.count >= Self.waitingCountMax { state.waiting.removeAll() }
            state.waiting[delivery.app ?? delivery.channel.rawValue] = (
                reason, uptime + (wait ?? 0) + Self.waitingMilliseconds
            )
        }
    }

    /// The log says once in so long that the hop is set up wrong, in milliseconds.
    private static let tellingMilliseconds: Int64 = 60_000

    /// - Returns: What the log has to say.
    func note(_ result: HopResult, at uptime: Int64) -> String? {
        state.withLock { state in
            guard case .misconfigured(_, let reason) = result else {
                // The result is no answer of the hop.
                if case .notWritten = result { return nil }
                if case .ambiguous = result { return nil }
                state.misconfiguration = nil
                return nil
            }
            state.misconfiguration = reason
            if let toldAt = state.toldAt, uptime - toldAt < Self.tellingMilliseconds { return nil }
            state.toldAt = uptime
            return reason
        }
    }

    /// - Returns: Whether the obstacle changed.
    func set(obstacle: String?) -> Bool {
        state.withLock { state in
            defer { state.obstacle = obstacle }
            return state.obstacle != obstacle
        }
    }
}
