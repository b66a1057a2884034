import Dispatch
import GateVocabulary
import Logging
import Synchronization
import Testing

@testable import DeliveryRelay
@testable import GateSteps
@testable import GatewayPipeline

/// An outbox in memory: what waits in each lane, what was claimed and what was reported.
private final class ScriptedFeed: OutboxFeed {
    struct Report: Equatable {
        var message: MessageID
        var result: HopResult
        var retryAt: Instant?
    }
    private struct State {
        var waiting: [DeliveryLane: [Delivery]] = [:]
        var claimCount = 0
        var limits: [DeliveryLane: [Int]] = [:]
        var reports: [Report] = []
        var failures = 0
        var holdsReports = false
    }
    private let state = Mutex(State())
    private let work = WorkSignal()
    private let changed = WorkSignal()
    private let released = WorkSignal()

    func add(_ deliveries: [Delivery], _ lane: DeliveryLane) {
        state.withLock { $0.waiting[lane, default: []] += deliveries }
        work.raise()
    }
    /// Reports return only after ``recordReports()``.
    func holdReports() { state.withLock { $0.holdsReports = true } }
    func recordReports() {
        state.withLock { $0.holdsReports = false }
        released.raise()
    }
    /// The next reports cannot be recorded.
    func failReports(_ count: Int) { state.withLock { $0.failures = count } }
    var reports: [Report] { state.withLock { $0.reports } }
    var claimCount: Int { state.withLock { $0.claimCount } }
    func limits(_ lane: DeliveryLane) -> [Int] { state.withLock { $0.limits[lane] ?? [] } }

    var workVersion: UInt64 { work.version }
    func claim(lane: DeliveryLane, limit: Int) async throws -> [Delivery] {
        state.withLock { state in
            state.claimCount += 1
            state.limits[lane, default: []].append(limit)
            let taken = Array(state.waiting[lane, default: []].prefix(limit))
            state.waiting[lane, default: []].removeFirst(taken.count)
            return taken
        }
    }
    func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) async throws {
        let fails = state.withLock { state in
            state.reports.append(Report(message: message, result: result, retryAt: retryAt))
            state.failures -= 1
            return state.failures >= 0
        }
        changed.raise()
        while true {
            let version = released.version
            guard state.withLock({ $0.holdsReports }), !Task.isCancelled else { break }
            await released.wait(above: version)
        }
        if fails { throw EngineFailure.overloaded }
    }
    func roomBecameFree() { work.raise() }
    func setHopUsable(_ isUsable: Bool) async {}
    func waitForWork(lane: DeliveryLane, after version: UInt64) async { await work.wait(above: version) }

    /// Returns when so many reports have been made.
    func waitForReports(_ count: Int) async {
        while true {
            let version = changed.version
            if reports.count >= count { return }
            await changed.wait(above: version)
        }
    }
}

/// A hop that answers as it is told, or keeps messages until it is told to go on.
private final class ScriptedNextHop: Hop {
    private struct State {
        var obstacle: String?
        var result = HopResult.accepted(status: 202, byProvider: false)
        var kept: Set<MessageID>?
        var delivered: [MessageID] = []
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())
    let looked = WorkSignal()
    let came = WorkSignal()

    func set(obstacle: String?) { state.withLock { $0.obstacle = obstacle } }
    func set(result: HopResult) { state.withLock { $0.result = result } }
    /// Keeps these until ``letGo()``.
    func keep(_ messages: [MessageID]) { state.withLock { $0.kept = Set(messages) } }
    func letGo() {
        let waiting = state.withLock { state in
            state.kept = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }
    var delivered: [MessageID] { state.withLock { $0.delivered } }

    func obstacle() async -> String? {
        looked.raise()
        return state.withLock { $0.obstacle }
    }
    func deliver(_ delivery: Delivery) async -> HopResult {
        state.withLock { $0.delivered.append(delivery.message) }
        came.raise()
        await withCheckedContinuation { continuation in
            let isKept = state.withLock { state in
                guard state.kept?.contains(delivery.message) == true else { return false }
                state.waiting.append(continuation)
                return true
            }
            if !isKept { continuation.resume() }
        }
        return state.withLock { $0.result }
    }
    func waitForDeliveries(_ count: Int) async {
        while true {
            let version = came.version
            if delivered.count >= count { return }
            await came.wait(above: version)
        }
    }
}

private struct StandingClock: GatewayPipeline.Clock {
    let wall: Instant
    func now() -> Instant { wall }
    func reading() -> ClockReading { ClockReading(wall: wall, uptime: 1_000_000, boot: "first") }
}

/// From the outbox to the hop and back.
@Suite struct RelayTests {
    private let feed = ScriptedFeed()
    private let hop = ScriptedNextHop()
    private let health = RelayHealth()
    private let now = Instant(milliseconds: 1_795_000_000_000)

    /// Runs a relay while `body` does.
    private func relaying(_ body: () async throws -> Void) async throws {
        let relay = DeliveryRelay(
            feed: feed, hop: hop, concurrency: .init(requestCount: 32), clock: StandingClock(wall: now),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, health: health)
        let running = Task { try await relay.run() }
        try await body()
        running.cancel()
        hop.letGo()
        try await running.value
    }

    private func deliveries(
        _ numbers: ClosedRange<UInt64>, attempts: Int = 0, life: Int64 = 3_600_000
    ) -> [Delivery] {
        numbers.map { .sample($0, attempts: attempts, expiresAt: now.milliseconds + life) }
    }

    @Test func `each lane has its own bound, and a stuck one holds up nobody else's`() async throws {
        let campaign = deliveries(1...50)
        let alerts = deliveries(101...120)
        hop.keep((campaign + alerts).map(\.message))
        feed.add(campaign, .general)
        try await relaying {
            await hop.waitForDeliveries(32)
            feed.add(alerts, .security)
            // Thirty-two of the campaign and eight alerts are under way, and no more.
            await hop.waitForDeliveries(40)
            #expect(hop.delivered.count { $0.low <= 50 } == 32)
            #expect(hop.delivered.count { $0.low > 100 } == 8)
            #expect(feed.limits(.general).allSatisfy { $0 <= 32 })
            hop.letGo()
            await feed.waitForReports(70)
        }
        #expect(Set(feed.reports.map(\.message)) == Set((campaign + alerts).map(\.message)))
        #expect(feed.reports.count == 70)
    }

    @Test func `alerts that are stuck leave an eighth of the places to a campaign`() async throws {
        let alerts = deliveries(1...60)
        let campaign = deliveries(101...120)
        hop.keep((campaign + alerts).map(\.message))
        feed.add(alerts, .security)
        try await relaying {
            await hop.waitForDeliveries(36)
            feed.add(campaign, .general)
            await hop.waitForDeliveries(40)
            #expect(hop.delivered.count { $0.low <= 60 } == 36)
            #expect(hop.delivered.count { $0.low > 100 } == 4)
            hop.letGo()
            await feed.waitForReports(80)
        }
        #expect(Set(feed.reports.map(\.message)) == Set((campaign + alerts).map(\.message)))
    }

    @Test func `a result that is not recorded yet keeps no message from the hop`() async throws {
        feed.holdReports()
        feed.add(deliveries(1...400), .general)
        try await relaying {
            // 256 beside as many as there are places at the hop, all of which are free again.
            await feed.waitForReports(288)
            #expect(hop.delivered.count == 288)
            #expect(feed.limits(.general).allSatisfy { $0 <= 32 })
            // The other lane is served meanwhile, and nothing more of this one.
            feed.add(deliveries(501...510), .security)
            await feed.waitForReports(298)
            #expect(hop.delivered.count { $0.low <= 400 } == 288)
            feed.recordReports()
            await feed.waitForReports(410)
        }
        #expect(hop.delivered.count == 410 && Set(hop.delivered).count == 410)
    }

    @Test func `a wrong configuration is told until another answer comes`() async throws {
        hop.set(result: .misconfigured(status: 404, "the hop answered 404"))
        feed.add(deliveries(1...1), .general)
        try await relaying {
            await feed.waitForReports(1)
            #expect(health.misconfiguration == "the hop answered 404" && !health.isHopReachable)
            hop.set(result: .ambiguous("silence", mayRepeat: true))
            feed.add(deliveries(2...2), .general)
            await feed.waitForReports(2)
            #expect(health.misconfiguration != nil, "silence says nothing of the configuration")
            hop.set(result: .accepted(status: 200, byProvider: true))
            feed.add(deliveries(3...3), .general)
            await feed.waitForReports(3)
            #expect(health.misconfiguration == nil && health.isHopReachable)
        }
        // The first message waits for its next try, and none has ended.
        #expect(feed.reports.first?.retryAt != nil)
    }

    @Test func `what a message waits for is told by its app while it waits`() async throws {
        hop.set(
            result: .busy(
                status: 503, retryAfterMilliseconds: 60_000, scope: .message, reason: "BadDeviceToken"))
        feed.add(deliveries(1...2), .general)
        try await relaying {
            await feed.waitForReports(2)
            let place = try #require(deliveries(1...1).first?.app)
            #expect(health.waitingReasons(at: 1_000_000) == ["`\(place)`: BadDeviceToken"])
            // The minute that the hop named, and as long as a message may take to come again.
            #expect(health.waitingReasons(at: 1_209_999) != [])
            #expect(health.waitingReasons(at: 1_210_000) == [])
            #expect(health.isHopReachable && health.misconfiguration == nil)
        }
    }

    @Test func `alerts go while every place of the others is taken`() async throws {
        let campaign = deliveries(1...40)
        hop.keep(campaign.map(\.message))
        feed.add(campaign, .general)
        try await relaying {
            await hop.waitForDeliveries(32)
            feed.add(deliveries(101...110), .security)
            await feed.waitForReports(10)
            #expect(feed.reports.allSatisfy { $0.message.low > 100 })
        }
    }

    @Test func `nothing is claimed while the hop cannot be used, and everything when it can`() async throws {
        hop.set(obstacle: "refused")
        feed.add(deliveries(1...3), .general)
        try await relaying {
            for _ in 0..<4 {
                let version = hop.looked.version
                await hop.looked.wait(above: version)
            }
            #expect(feed.claimCount == 0 && hop.delivered == [])
            #expect(health.obstacle == "refused" && !health.isHopReachable)
            hop.set(obstacle: nil)
            await feed.waitForReports(3)
            #expect(health.isHopReachable)
        }
    }

    @Test(
        arguments: [
            (.accepted(status: 202, byProvider: false), nil, nil), (.seenBefore, nil, nil),
            (.refused(status: 400, reason: nil), nil, nil),
            (.busy(status: 503, retryAfterMilliseconds: nil, scope: .message), 125, 250),
            (.busy(status: 429, retryAfterMilliseconds: 7_000, scope: .message), 7_000, 7_001),
            (.notWritten("refused"), 125, 250), (.ambiguous("reset", mayRepeat: true), 125, 250),
        ] as [(HopResult, Int64?, Int64?)])
    func `what the hop said is reported with when to try again`(
        _ result: HopResult, _ least: Int64?, _ below: Int64?
    ) async throws {
        hop.set(result: result)
        feed.add(deliveries(1...1), .general)
        feed.add(deliveries(2...2, life: 100), .general)
        try await relaying { await feed.waitForReports(2) }
        let reports = feed.reports.sorted { $0.message.low < $1.message.low }
        #expect(reports.map(\.result) == [result, result])
        let wait = reports[0].retryAt.map { $0.milliseconds - now.milliseconds }
        if let least, let below {
            #expect(wait.map { (least..<below).contains($0) } == true, "\(String(describing: wait))")
        } else {
            #expect(wait == nil)
        }
        // Past its expiry it is not tried again.
        #expect(reports[1].retryAt == nil)
    }

    @Test func `the wait grows with the tries, and messages that failed together do not come back together`()
        async throws
    {
        hop.set(result: .notWritten("refused"))
        feed.add(deliveries(1...20, attempts: 7), .general)
        try await relaying { await feed.waitForReports(20) }
        let waits = feed.reports.compactMap { $0.retryAt.map { $0.milliseconds - now.milliseconds } }
        #expect(waits.count == 20 && waits.allSatisfy { (16_000..<32_000).contains($0) }, "\(waits)")
        #expect(Set(waits).count > 1, "\(waits)")
    }

    @Test func `what the hop said is told until it is recorded, and delivered once`() async throws {
        feed.failReports(2)
        feed.add(deliveries(1...1), .general)
        try await relaying { await feed.waitForReports(3) }
        #expect(Set(feed.reports.map(\.result)) == [.accepted(status: 202, byProvider: false)])
        #expect(hop.delivered.count == 1)
    }
}
