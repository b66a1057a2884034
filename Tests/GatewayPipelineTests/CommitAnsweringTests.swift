import CanonicalJSON
import Dispatch
import GateVocabulary
import SQLiteStore
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// A store that is as slow to make commits durable as a test wants it to be.
private final class SlowStore: GateStore {
    private let store: any GateStore
    /// What was done, in its order.
    private let done = Mutex<[String]>([])
    private let isSlow = Mutex(false)
    let committed = DispatchSemaphore(value: 0)
    let synchronizing = DispatchSemaphore(value: 0)
    private let disk = DispatchSemaphore(value: 0)
    private let failure = Mutex<StoreError?>(nil)

    init(_ store: any GateStore) { self.store = store }

    var log: [String] { done.withLock { $0 } }

    /// From here on nothing is durable before ``finish(_:failing:)``.
    func slowDown() {
        done.withLock { $0 = [] }
        isSlow.withLock { $0 = true }
    }
    /// Ends so many synchronizations, of those under way and of those to come.
    func finish(_ count: Int = 1, failing failure: StoreError? = nil) {
        self.failure.withLock { $0 = failure }
        for _ in 0..<count { disk.signal() }
    }

    func load(_ asks: [Ask], into memory: GateMemory) throws { try store.load(asks, into: memory) }
    func commit(_ changes: [Change]) throws -> CommitReceipt {
        let receipt = try store.commit(changes)
        done.withLock { $0.append("commit") }
        if isSlow.withLock({ $0 }) { committed.signal() }
        return receipt
    }
    func synchronize() throws {
        if isSlow.withLock({ $0 }) {
            synchronizing.signal()
            disk.wait()
            if let failure = failure.withLock({ $0 }) { throw failure }
        }
        try store.synchronize()
        done.withLock { $0.append("durable") }
    }
    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result { try store.read(body) }
    func finishErasures() throws { try store.finishErasures() }
    var damages: [StoredDamage] { store.damages }
    func note(_ damage: StoredDamage) { store.note(damage) }
    func checkPages(countMax: Int) throws -> Bool { try store.checkPages(countMax: countMax) }
    var pageCheck: PageCheck { store.pageCheck }
    var dataKeyUse: DataKeyUse { store.dataKeyUse }
}

/// A batch is stepped while the one before it is made durable, and nothing is told before it is.
@Suite struct CommitAnsweringTests {
    private let end = ProcessEnd()

    private func gate() async throws -> (GatewayHarness, SlowStore) {
        let box = Mutex<SlowStore?>(nil)
        var environment = EngineEnvironment()
        let end = end
        environment.durabilityLost = { end.end($0) }
        environment.isDrained = false
        environment.store = { store in
            let slow = SlowStore(store)
            box.withLock { $0 = slow }
            return slow
        }
        let gate = try GatewayHarness(environment: environment, keeping: .files())
        try await gate.register("u_1")
        for lane in DeliveryLane.allCases { #expect(try await gate.claim(lane).isEmpty) }
        await gate.gateway.setHopUsable(true)
        return (gate, try #require(box.withLock { $0 }))
    }

    @Test func `the next sends are committed while the last are made durable, and no answer comes before`()
        async throws
    {
        let (gate, store) = try await gate()
        let answers = Alarms()
        store.slowDown()
        async let first = gate.remit("a")
        await arrival(of: store.synchronizing)
        await arrival(of: store.committed)
        async let second = Self.note(answers) { try await gate.remit("b") }
        await arrival(of: store.committed)
        #expect(store.log == ["commit", "commit"] && answers.all == [])
        // Nothing goes to the relay either, and a third batch waits in the queue.
        #expect(DeliveryLane.allCases.allSatisfy { gate.engine.inFlight.take(9, of: $0).isEmpty })
        async let third = Self.note(answers) { try await gate.remit("c") }
        while gate.engine.load.queuedCount < 1 { await Task.yield() }
        #expect(store.log == ["commit", "commit"])
        store.finish()
        #expect(try await first.status == 202)
        #expect(gate.engine.inFlight.take(9, of: .general).count == 1)
        await arrival(of: store.committed)
        await arrival(of: store.synchronizing)
        #expect(store.log == ["commit", "commit", "durable", "commit"] && answers.all == [])
        store.finish(2)
        #expect(try await (second.status, third.status) == (202, 202))
        #expect(gate.engine.inFlight.take(9, of: .general).count == 2)
        gate.engine.drain()
    }

    private func arrival(of event: DispatchSemaphore) async { await Task.detached { event.wait() }.value }

    private static func note(_ answers: Alarms, _ body: () async throws -> GatewayHarness.Reply) async throws
        -> GatewayHarness.Reply
    {
        let reply = try await body()
        answers.add("\(reply.status)")
        return reply
    }

    @Test
    func `a change of a person waits for every batch before it, and every batch after it for the change`()
        async throws
    {
        let (gate, store) = try await gate()
        store.slowDown()
        async let send = gate.remit("a")
        await arrival(of: store.synchronizing)
        async let change = gate.call(
            "product", "PUT", "/v1/recipients/u_2",
            [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult", "privacy": "generic", "push_enabled": true,
            ])
        while gate.engine.load.queuedCount > 0 { await Task.yield() }
        store.finish()
        #expect(try await send.status == 202)
        await arrival(of: store.synchronizing)
        async let after = gate.remit("b")
        while gate.engine.load.queuedCount < 1 { await Task.yield() }
        #expect(store.log == ["commit", "durable", "commit"])
        store.finish(2)
        #expect(try await (change.status, after.status) == (200, 202))
        gate.engine.drain()
        #expect(store.log == ["commit", "durable", "commit", "durable", "commit", "durable"])
    }

    @Test
    func `a batch that is not made durable ends the process, and what was committed over it is not answered`()
        async throws
    {
        let (gate, store) = try await gate()
        let answers = Alarms()
        store.slowDown()
        for id in ["a", "b"] {
            let peer = Peer(
                credentials: PeerCredentials(
                    userID: GatewayHarness.users["payments"]!, groupID: 100, processID: 1,
                    supplementaryGroups: []),
                boundCaller: nil, listener: 0)
            gate.gateway.handle(
                WireRequest(
                    kind: .single, method: "POST", target: "/v1/sends",
                    headers: [("content-type", "application/json")],
                    body: CanonicalJSON.write(.object(GatewayHarness.remittance(id, to: "u_1")))), from: peer
            ) { answers.add("\($0.status)") }
            await arrival(of: store.committed)
        }
        await arrival(of: store.synchronizing)
        store.finish(failing: .lostDurability("the log"))
        await end.wait()
        #expect(end.reasons == ["the log"] && answers.all == [])
        #expect(store.log == ["commit", "commit"])
        #expect(DeliveryLane.allCases.allSatisfy { gate.engine.inFlight.take(9, of: $0).isEmpty })
    }

    @Test func `what is not durable counts as offered, and may be called back and given back`() throws {
        let inFlight = MessagesInFlight()
        _ = inFlight.setHopUsable(true)
        let room = inFlight.room(in: .general)
        func offer(_ number: UInt64) -> MessageOffer { .sample(number) }
        func taken() -> [UInt64] { inFlight.take(9, of: .general).map(\.delivery.message.low) }
        inFlight.awaitDurability(of: [offer(1), offer(2), offer(3)])
        inFlight.awaitDurability(of: [offer(4)])
        #expect(inFlight.room(in: .general) == room - 4 && inFlight.all.count == 4 && taken() == [])
        let recalled = try #require(inFlight.recall(offer(2).delivery.message))
        // Given back, it waits for the newest batch.
        inFlight.add([recalled])
        _ = inFlight.releaseOldest()
        #expect(taken() == [1, 3])
        _ = inFlight.releaseOldest()
        #expect(taken() == [4, 2])
        inFlight.awaitDurability(of: [offer(5)])
        #expect(inFlight.setHopUsable(false).map(\.delivery.message.low) == [5])
        _ = inFlight.releaseOldest()
        #expect(taken() == [])
    }
}
