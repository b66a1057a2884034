import CanonicalJSON
import Dispatch
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Synchronization
import Testing
import WireProtocol

/// Who waits in security's lane, and who beside it.
@Suite struct LaneTests {
    /// What was answered so far, by the number of the request.
    private final class Answers: Sendable {
        private struct State {
            var statuses: [Int: Int] = [:]
            var awaited: (count: Int, reached: CheckedContinuation<Void, Never>)?
        }
        private let state = Mutex(State())

        var all: [Int: Int] { state.withLock { $0.statuses } }

        func add(_ number: Int, _ status: Int) {
            let reached = state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.statuses[number] = status
                guard let awaited = state.awaited, state.statuses.count >= awaited.count else { return nil }
                state.awaited = nil
                return awaited.reached
            }
            reached?.resume()
        }

        /// Returns when so many were answered.
        func reach(_ count: Int) async {
            await withCheckedContinuation { continuation in
                let isReached = state.withLock { state in
                    if state.statuses.count < count { state.awaited = (count, continuation) }
                    return state.statuses.count >= count
                }
                if isReached { continuation.resume() }
            }
        }
    }

    /// Asks without waiting: a refusal by the queue is there on return, everything else when the engine goes on.
    private func ask(
        _ gate: GatewayHarness, _ caller: String, _ send: JSONObject, _ number: Int, _ answers: Answers,
        over listener: Int = 0
    ) {
        let peer = Peer(
            credentials: PeerCredentials(
                userID: GatewayHarness.users[caller]!, groupID: 100, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: listener)
        var send = send
        send["id"] = .string("lane-\(number)")
        let request = WireRequest(
            kind: .single, method: "POST", target: "/v1/sends",
            headers: [("content-type", "application/json")], body: CanonicalJSON.write(.object(send)))
        gate.gateway.handle(request, from: peer) { answers.add(number, $0.status) }
    }

    @Test(arguments: ["security.new_login", "promo.offer"])
    func `a flood of sends, refused ones among them, leaves security its share of the queue`(type: String)
        async throws
    {
        var limits = EngineLimits()
        limits.queuedOperationCountMax = 20
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        let login = try await gate.example("security.new_login", "n", to: "u_1", as: "security")
        var flood = try await gate.promo("p", to: "u_1")
        if type == "security.new_login" { flood = login }
        // Asking for critical opens no lane either.
        flood["critical"] = true
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        // Given a caller of marketing that asks for more than the queue takes.
        let answers = Answers()
        for number in 0..<30 { ask(gate, "marketing", flood, number, answers) }
        #expect(answers.all.count == 12 && answers.all.values.allSatisfy { $0 == 429 }, "\(answers.all)")
        // When security asks, then there is room for it, and no more than there is.
        for number in 30..<33 { ask(gate, "security", login, number, answers) }
        #expect(answers.all.filter { $0.key >= 30 } == [32: 429])
        hold.release.signal()
        await answers.reach(33)
        #expect(answers.all[30] == 202 && answers.all[31] == 202, "\(answers.all)")
        #expect(answers.all.filter { $0.key < 30 }.values.allSatisfy { $0 == 429 || $0 == 403 })
    }

    @Test func `one caller fills its own part of the queue, and security has no such bound`() async throws {
        var limits = EngineLimits()
        limits.queuedOperationCountMax = 40
        limits.queuedOperationCountPerCallerMax = 5
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        let login = try await gate.example("security.new_login", "n", to: "u_1", as: "security")
        let promo = try await gate.promo("p", to: "u_1")
        let remittance = GatewayHarness.remittance("r", to: "u_1")
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        let answers = Answers()
        for number in 0..<10 { ask(gate, "marketing", promo, number, answers) }
        #expect(Set(answers.all.keys) == Set(5..<10))
        for number in 10..<15 { ask(gate, "payments", remittance, number, answers) }
        for number in 20..<30 { ask(gate, "security", login, number, answers) }
        #expect(Set(answers.all.keys) == Set(5..<10))
        hold.release.signal()
        await answers.reach(25)
        #expect(answers.all.count == 25 && answers.all.values.count { $0 == 429 } == 5, "\(answers.all)")
        // What was answered has given its place back.
        for number in 30..<35 { ask(gate, "marketing", promo, number, answers) }
        await answers.reach(30)
        #expect((30..<35).allSatisfy { answers.all[$0] == 403 }, "\(answers.all)")
    }

    @Test func `a caller's copies in shadow fill their own part of the queue, and its sends another`()
        async throws
    {
        var limits = EngineLimits()
        limits.queuedOperationCountPerCallerMax = 5
        let gate = try GatewayHarness(
            limits: limits, listeners: [.enforce, .shadow(ListenerMode.Enforced())])
        try await gate.register("u_1")
        let remittance = GatewayHarness.remittance("r", to: "u_1")
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        let answers = Answers()
        for number in 0..<8 { ask(gate, "payments", remittance, number, answers, over: 1) }
        #expect(Set(answers.all.keys) == Set(5..<8), "\(answers.all)")
        for number in 10..<18 { ask(gate, "payments", remittance, number, answers) }
        #expect(Set(answers.all.keys) == Set(5..<8).union(15..<18), "\(answers.all)")
        hold.release.signal()
        await answers.reach(16)
        #expect(answers.all.values.count { $0 == 202 } == 10, "\(answers.all)")
    }

    @Test func `sends of one batch find no more room than those of two`() async throws {
        var limits = EngineLimits()
        limits.outboxRowCountMax = 2
        let gate = try GatewayHarness(limits: limits)
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        let replies = try await gate.inOneBatch([
            { try await $0.remit("a", to: "u_1") }, { try await $0.remit("b", to: "u_2") },
        ])
        #expect(replies.map { $0?.status } == [202, 429])
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 1)
    }

    @Test func `a send that finds no room for its second message leaves nothing of its first`() async throws {
        var limits = EngineLimits()
        // A tenth is security's, so one message may wait.
        limits.outboxRowCountMax = 2
        let gate = try GatewayHarness(limits: limits)
        for device in ["d_1", "d_2"] {
            try await gate.register("u_1", device: device)
            _ = try await gate.addKey("u_1", device: device)
        }
        let before = try gate.store.read { try $0.entryCount() }
        let full = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(full.status == 429 && full["type"] == "urn:sendgate:problem:outbox_full", "\(full.json)")
        let (entries, waiting) = try gate.store.read { (try $0.entryCount(), try $0.outboxDepth().rowCount) }
        #expect(entries == before && waiting == 0)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `no default lets one caller fill a bound, or forgets an id within 31 days`() {
        let limits = EngineLimits()
        #expect(limits.securitySharePercent >= 10)
        let open = 100 - limits.securitySharePercent
        #expect(limits.queuedOperationCountPerCallerMax < limits.queuedOperationCountMax * open / 100)
        #expect(limits.outboxRowCountPerCallerMax < limits.outboxRowCountMax * open / 100)
        #expect(limits.outboxRowCountPerPersonMax < limits.outboxRowCountPerCallerMax)
        #expect(limits.retentionMilliseconds >= 31 * 86_400_000)
        // What waits longer than a minute is decided again.
        #expect(limits.decisionFreshMilliseconds == 60_000)
    }

    /// Sets the clock while its batch is under way.
    private struct StepOperation: EngineOperation {
        let clock: TestClock
        let seconds: Int64
        var caller: CallerName? { nil }
        var lane: EngineLane { .general }
        func perform(in batch: Batch) throws -> Completion {
            clock.step(seconds: seconds)
            return { _ in }
        }
        func refuse(_ failure: EngineFailure) { Issue.record("the step was refused: \(failure)") }
    }

    @Test func `a clock that is set back within a batch sets no entry back`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let promo = try await gate.promo("p", to: "u_1")
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        gate.clock.advance(seconds: 5)
        let answers = Answers()
        for number in 0..<3 {
            ask(gate, "marketing", promo, number, answers)
            gate.engine.submit(StepOperation(clock: gate.clock, seconds: -1))
        }
        hold.release.signal()
        await gate.settle()
        #expect(answers.all.values.sorted() == [403, 403, 403])
        let times = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.time)
        #expect(times == times.sorted(), "\(times)")
    }
}
