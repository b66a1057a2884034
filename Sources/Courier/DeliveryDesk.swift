package import CourierModel
package import CourierProviders
package import GateVocabulary
package import Logging
import Synchronization

/// Takes one order to its provider and says what became of it. All deliveries go through here.
///
///     order ─▶ in time? ─▶ taken or under way? ─▶ room? ─▶ a provider? ─▶ its circuit ─▶ the provider ─▶ outcome
///
/// - Concurrency: Any number of calls; those of one message share one delivery.
/// - Cancellation: A delivery does not end with the connection that asked for it: what a provider took is remembered, and the
///   repeat is told so. Only ``cancel()`` ends it.
package final class DeliveryDesk: Sendable {
    /// One line of the log in so many milliseconds for each circuit that the configuration keeps open.
    private static let alarmMilliseconds: Int64 = 60_000
    /// A message that waits comes again within a minute. An app that nothing is configured for and that no order came for in so long, in
    /// milliseconds, keeps no message waiting any more.
    package static let strangerMilliseconds: Int64 = 150_000

    private struct State {
        var underWay: [MessageID: UnderWay] = [:]
        var countByService: [ProviderLane.Service: Int] = [:]
        var recent: RecentMessages
        var circuits: [ProviderLane: Circuit] = [:]
        var alarms: [ProviderLane: Int64] = [:]
        /// When the last order came for a way out that nothing is configured for.
        var strangers: [ProviderLane: Int64] = [:]
        var waiting = WaitingReasons()
    }

    private struct UnderWay {
        var task: Task<DeliveryOutcome, Never>
        var token: String
    }

    private let lanes: ProviderRegistry
    private let underWayMax: Int
    private let clock: ProviderClock
    private let jitter: @Sendable () -> Double
    private let metrics: CourierMetrics
    private let logger: Logger
    private let traces: TraceLog
    private let state: Mutex<State>

    /// - Parameter jitter: 0 ..< 1.
    package init(
        _ lanes: ProviderRegistry, underWayMax: Int, recentMax: Int = RecentMessages.standardCountMax,
        clock: ProviderClock = .system,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }, metrics: CourierMetrics,
        logger: Logger
    ) {
        self.lanes = lanes
        self.underWayMax = underWayMax
        self.clock = clock
        self.jitter = jitter
        self.metrics = metrics
        self.logger = logger
        traces = TraceLog(
            isDebugging: logger.logLevel <= .debug, uptimeMilliseconds: clock.uptimeMilliseconds
        ) { message, members in
            logger.info("\(message)", metadata: members.mapValues { .string($0) })
        }
        state = Mutex(State(recent: RecentMessages(countMax: recentMax)))
    }

    /// - Parameter traceParent: Of the request that brings the order.
    package func deliver(
        _ order: DeliveryOrder, tracedTo traceParent: TraceParent? = nil
    ) async -> DeliveryOutcome {
        let lane = ProviderLane(order)
        let began = clock.uptimeMilliseconds()
        var order = order
        order.answerBy = min(
            began + DeliveryOrder.answerMilliseconds, order.handOverBy?.uptimeMilliseconds ?? .max)
        let outcome = await outcome(of: order, on: lane)
        let milliseconds = clock.uptimeMilliseconds() - began
        metrics.delivered(outcome, by: lane, milliseconds: milliseconds)
        traces.tell(
            "delivered", of: traceParent,
            [
                "send_id": order.send.uuidText, "message_id": order.message.uuidText, "lane": "\(lane)",
                "outcome": outcome.name, "milliseconds": "\(milliseconds)",
            ])
        return outcome
    }

    private func outcome(of order: DeliveryOrder, on lane: ProviderLane) async -> DeliveryOutcome {
        guard clock.allows(order) else { return .tooLate }
        enum Step {
            case answer(DeliveryOutcome)
            case wait(Task<DeliveryOutcome, Never>)
        }
        let step = state.withLock { state -> Step in
            if let first = state.recent.outcome(of: order.message, to: order.token) {
                return .answer(.seenBefore(first))
            }
            // A repeat waits for the first one's outcome.
            if let first = state.underWay[order.message] {
                // Another address is another delivery, which the first one's outcome says nothing of.
                return first.token == order.token
                    ? .wait(first.task)
                    : .answer(.later(reason: "message_under_way", seconds: 1, scope: .message))
            }
            guard state.underWay.count < underWayMax,
                state.countByService[lane.service, default: 0] < share(of: lane.service)
            else {
                return .answer(.later(reason: "courier_busy", seconds: 1, scope: .message))
            }
            let task = Task { await self.handOver(order, on: lane) }
            state.underWay[order.message] = UnderWay(task: task, token: order.token)
            state.countByService[lane.service, default: 0] += 1
            return .wait(task)
        }
        switch step {
        case .answer(let outcome): return outcome
        case .wait(let task): return await task.value
        }
    }

    /// How many orders of a service may be under way: mails and texts take at most a quarter each, so that a silent relay leaves
    /// room for pushes.
    private func share(of service: ProviderLane.Service) -> Int {
        switch service {
        case .mail, .sms: max(1, underWayMax / 4)
        case .apns, .fcm, .expo: underWayMax
        }
    }

    /// The one delivery of a message. Its end and the memory of it are one step, so that no repeat comes between.
    private func handOver(_ order: DeliveryOrder, on lane: ProviderLane) async -> DeliveryOutcome {
        let outcome = await admitted(order, on: lane)
        state.withLock { state in
            state.underWay[order.message] = nil
            state.countByService[lane.service, default: 0] -= 1
            state.recent.insert(outcome, of: order.message, to: order.token)
        }
        return outcome
    }

    private func admitted(_ order: DeliveryOrder, on lane: ProviderLane) async -> DeliveryOutcome {
        let admission = state.withLock { state in
            // A lane that nothing is configured for has a name that the gateway chose.
            if state.circuits.count >= ProviderRegistry.laneCountMax {
                (state.circuits, state.strangers) = ([:], [:])
            }
            if lanes[lane] == nil { state.strangers[lane] = clock.uptimeMilliseconds() }
            return state.circuits[lane, default: Circuit()].admit(at: clock.uptimeMilliseconds())
        }
        let pass: Circuit.Pass
        switch admission {
        case .wait(let seconds, let reason):
            return .later(reason: reason, seconds: seconds, scope: .app)
        case .go(let given): pass = given
        }
        let outcome = await lanes[lane]?.deliver(order) ?? .misconfigured(reason: "no_provider")
        let cause = state.withLock { state -> (before: Circuit.Cause?, after: Circuit.Cause?) in
            let before = state.circuits[lane]?.cause
            state.circuits[lane]?.finished(
                outcome, pass: pass, at: clock.uptimeMilliseconds(), jitter: jitter())
            return (before, state.circuits[lane]?.cause)
        }
        if case .later(let reason, let seconds, .message) = outcome {
            noteWaiting(reason, on: lane, seconds)
        }
        if case .misconfigured(let reason) = outcome {
            alarm(lane, reason)
        } else if let after = cause.after, cause.before == nil {
            logger.warning("a circuit is open", metadata: ["lane": "\(lane)", "reason": "\(after.reason)"])
        } else if cause.before != nil, cause.after == nil {
            state.withLock { $0.alarms[lane] = nil }
            logger.notice("a circuit is closed again", metadata: ["lane": "\(lane)"])
        }
        return outcome
    }

    /// One line in ten minutes for each reason, however many messages wait for it.
    private func noteWaiting(_ reason: String, on lane: ProviderLane, _ seconds: Int?) {
        // These say nothing of the provider, and the next try comes at once.
        guard ![DeliveryOutcome.tooLate.reason, DeliveryOutcome.stopping.reason].contains(reason) else {
            return
        }
        let now = clock.uptimeMilliseconds()
        guard state.withLock({ $0.waiting.note(reason, on: lane, seconds: seconds, at: now) }) else { return }
        logger.warning(
            "a message waits, and others of its app may go",
            metadata: ["lane": "\(lane)", "reason": "\(reason)"])
    }

    /// One line a minute, however many messages it concerns.
    private func alarm(_ lane: ProviderLane, _ reason: String) {
        let isDue = state.withLock { state in
            let now = clock.uptimeMilliseconds()
            if let last = state.alarms[lane], now < last + Self.alarmMilliseconds { return false }
            if state.alarms.count >= ProviderRegistry.laneCountMax { state.alarms.removeAll() }
            state.alarms[lane] = now
            return true
        }
        guard isDue else { return }
        let isDoubt = reason.hasPrefix(SuspectAnswers.doubtWord)
        logger.error(
            isDoubt
                ? "messages wait, because so many addresses cannot be dead"
                : "the configuration keeps messages from going; `sendgate-courier check` says more",
            metadata: ["lane": "\(lane)", "reason": "\(reason)"])
    }

    // MARK: State

    package var underWayCount: Int { state.withLock { $0.underWay.count } }

    /// The open circuits, and the ways out whose provider is not believed, also while one message tries.
    package var openCircuits: [ProviderLane: Circuit.Cause] {
        let now = clock.uptimeMilliseconds()
        var open = state.withLock { state in
            for (lane, last) in state.strangers where now - last >= Self.strangerMilliseconds {
                state.strangers[lane] = nil
                state.circuits[lane] = nil
            }
            return state.circuits.compactMapValues(\.cause)
        }
        for (lane, provider) in lanes.providers {
            guard let doubt = provider.doubt else { continue }
            open[lane] = Circuit.Cause(reason: doubt, isConfiguration: true)
        }
        return open
    }

    /// An operator says that the addresses are dead which the provider of a way out calls so. The next order tries.
    ///
    /// - Parameter way: As ``openCircuits`` describes it, such as `apns com.example.app`.
    /// - Returns: Whether there is such a way out.
    package func confirmDeadAddresses(of way: String) -> Bool {
        guard let (lane, provider) = lanes.sorted.first(where: { $0.lane.description == way }) else {
            return false
        }
        provider.confirmDeadAddresses()
        state.withLock { state in
            if state.circuits[lane]?.cause?.reason.hasPrefix(SuspectAnswers.doubtWord) == true {
                state.circuits[lane] = nil
            } else {
                state.circuits[lane]?.retry(at: clock.uptimeMilliseconds())
            }
        }
        logger.notice(
            "an operator confirmed that addresses are dead; for an hour the provider is believed",
            metadata: ["lane": "\(lane)"])
        return true
    }

    package var waysOut: [String] { lanes.sorted.map(\.lane.description) }

    /// The reasons that single messages wait for, while the others of their app may go.
    package var waitingReasons: [String] {
        let now = clock.uptimeMilliseconds()
        return state.withLock { $0.waiting.reasons(at: now) }
    }

    /// Lets the next order of every lane try, because credentials were read again.
    package func retryCircuits() {
        state.withLock { state in
            let now = clock.uptimeMilliseconds()
            state.waiting.removeAll()
            for lane in state.circuits.keys { state.circuits[lane]?.retry(at: now) }
        }
    }

    /// Cancels what is under way: providers answer "ambiguous" or "later" then.
    package func cancel() {
        for task in state.withLock({ $0.underWay.values.map(\.task) }) { task.cancel() }
    }
}
