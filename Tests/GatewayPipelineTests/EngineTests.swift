import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateTestKit
import GateVocabulary
import InMemoryStore
import OpenSSLCrypto
import SQLiteStore
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// Runs `act` inside a batch, between the operations around it.
private struct ActOperation: EngineOperation {
    let act: @Sendable () -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    func perform(in batch: Batch) throws -> Completion {
        act()
        return { _ in }
    }
    func refuse(_ failure: EngineFailure) { Issue.record("the act was refused: \(failure)") }
}

/// Raises an alarm, and comes to nothing.
private struct AlarmedFailure: EngineOperation {
    let refused: @Sendable () -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    func perform(in batch: Batch) throws -> Completion {
        try batch.step { step in
            step.alarm("of an operation that was undone")
            throw EngineFailure.outboxFull
        }
    }
    func refuse(_ failure: EngineFailure) { refused() }
}

extension GatewayHarness {
    /// What the closures ask waits for the engine at once, in their order, or is refused at its door.
    ///
    /// - Parameter count: Batches that all of it comes into; `nil` when the engine has more to do.
    func inOneBatch(
        _ steps: [@Sendable (GatewayHarness) async throws -> Reply?], batches count: UInt64? = 1
    ) async throws -> [Reply?] {
        let hold = HoldOperation()
        engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        func batchCount() -> UInt64 { engine.load.batchCount + engine.load.failedBatchCount }
        let before = batchCount()
        let answered = Alarms()
        let replies = try await withThrowingTaskGroup(of: (Int, Reply?).self) { group in
            for (number, step) in steps.enumerated() {
                group.addTask {
                    let reply = try await step(self)
                    if let reply { answered.add("\(reply.status)") }
                    return (number, reply)
                }
                while engine.load.queuedCount + answered.all.count <= number { await Task.yield() }
            }
            hold.release.signal()
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        // The held batch as well: the order above is the order inside one transaction.
        if let count { #expect(batchCount() == before + 1 + count) }
        return steps.indices.map { replies[$0] ?? nil }
    }

    func remit(_ id: String, to user: String = "u_1") async throws -> Reply {
        try await call("payments", "POST", "/v1/sends", Self.remittance(id, to: user))
    }

    /// A security notice that is no other's repetition; `number` is below 90.
    func login(_ number: Int, to user: String = "u_1") async throws -> Reply {
        var login = try await example("security.new_login", "l\(number)", to: user, as: "security")
        guard case .object(var params)? = login["params"] else { return Reply(status: 0, json: [:]) }
        params["login_id"] = .string("0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a\(number + 10)")
        login["params"] = .object(params)
        return try await call("security", "POST", "/v1/sends", login)
    }

    func entries() throws -> [StoredEntry] {
        try store.read { try $0.entries(from: 0, limit: 10_000) }
    }

    /// The entries of one kind, as they are written.
    func entries(_ kind: String) throws -> [JSONValue] {
        try entries().map { try CanonicalJSON.read($0.bytes) }.filter { $0["kind"]?.stringValue == kind }
    }

    /// Makes what is on record of a device's key no point on its curve, so that sealing to it fails.
    ///
    /// - Returns: The record as it was.
    func breakKey(_ key: String) async throws -> DeviceKeyRecord {
        let id = try #require(KeyID(hexadecimal: key))
        let sound = try #require(try store.read { try $0.deviceKey(id) })
        var broken = sound
        broken.publicKey[40] ^= 1
        try await write { [broken] in try $0.putDeviceKey(broken) }
        return sound
    }
}

/// When the engine refuses, and what a refusal leaves behind.
@Suite struct EngineTests {
    // MARK: Time

    @Test(
        arguments: [
            (0, true), (-1, true), (-1999, true), (-2000, true), (-2001, false), (-3000, false),
            (-86_400_000, false),
        ] as [(Int64, Bool)])
    func `a clock two seconds back records the newest entry's time, and one further back records nothing`(
        _ step: Int64, _ isTaken: Bool
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.remit("a").status == 202)
        let newest = gate.clock.now()
        let count = try gate.entries().count
        gate.clock.step(milliseconds: step)
        let reply = try await gate.remit("b")
        let entries = try gate.entries()
        if isTaken {
            #expect(reply.status == 202, "\(reply.json)")
            #expect(entries.count == count + 1 && entries.last?.time == newest)
        } else {
            #expect(reply.status == 503 && reply["type"] == "urn:sendgate:problem:clock_went_back")
            #expect(entries.count == count)
            // Once the clock stands at the bound again the same id is decided: the refusal bound nothing.
            gate.clock.step(milliseconds: -2000 - step)
            let again = try await gate.remit("b")
            #expect(again.status == 202 && again.json["replayed"] != true, "\(again.json)")
        }
        let times = try gate.entries().map(\.time)
        #expect(times == times.sorted())
    }

    @Test func `a clock that steps inside a batch refuses what comes while it is wrong, and nothing else`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let step: @Sendable (Int64) -> @Sendable (GatewayHarness) async throws -> GatewayHarness.Reply? = {
            milliseconds in
            { gate in
                gate.engine.submit(ActOperation { gate.clock.step(milliseconds: milliseconds) })
                return nil
            }
        }
        let newest = gate.clock.now()
        let replies = try await gate.inOneBatch([
            { try await $0.remit("a") }, step(-1500), { try await $0.remit("b") }, step(-1000),
            { try await $0.remit("c") }, step(+2600), { try await $0.remit("d") },
        ])
        #expect(replies.map { $0?.status } == [202, nil, 202, nil, 503, nil, 202])
        let times = try gate.entries().suffix(3).map(\.time)
        #expect(times == [newest, newest, newest.advanced(byMilliseconds: 100)])
    }

    // MARK: The trail's lag and the disk

    @Test(
        arguments: [(0, true), (5_001, true), (30_000, true), (30_001, false), (600_000, false)]
            as [(Int64, Bool)])
    func `a trail more than thirty seconds behind refuses every send and no withdrawal`(
        _ lag: Int64, _ isTaken: Bool
    ) async throws {
        let behind = Mutex<Int64>(0)
        var environment = EngineEnvironment()
        environment.publishLagMilliseconds = { behind.withLock { $0 } }
        let gate = try GatewayHarness(environment: environment)
        try await gate.register("u_1")
        try await gate.consent("u_1")
        behind.withLock { $0 = lag }
        let login = try await gate.example("security.new_login", "l", to: "u_1", as: "security")
        for reply in [
            try await gate.remit("a"), try await gate.call("security", "POST", "/v1/sends", login),
        ] {
            #expect(reply.status == (isTaken ? 202 : 503), "\(reply.json)")
            if !isTaken { #expect(reply["type"] == "urn:sendgate:problem:trail_behind") }
        }
        let ready = try await gate.call("nobody", "GET", "/readyz")
        let commit = ready.json["checks"]?.arrayValue?.first { $0["name"] == "commit" }
        // The probe goes the way of a send; what was committed a moment ago speaks for it as long as it is fresh.
        if isTaken { #expect(commit?["passed"] == true, "\(ready.json)") }
        gate.clock.advance(seconds: 61)
        #expect(try await gate.call("nobody", "GET", "/readyz").status == (isTaken ? 200 : 503))
        let off = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw")
        #expect(off.status == 200, "\(off.json)")
        behind.withLock { $0 = 0 }
        let again = try await gate.remit("a")
        #expect(again.status == 202 && (again.json["replayed"] == true) == isTaken, "\(again.json)")
    }

    /// 64 MiB are kept free; the last tenth of them is for security too.
    @Test(
        arguments: [
            (67_108_864, true, true), (67_108_863, false, true), (6_710_886, false, true),
            (6_710_885, false, false), (0, false, false),
        ] as [(Int64, Bool, Bool)])
    func `a disk that fills up refuses others before security`(
        _ free: Int64, _ general: Bool, _ security: Bool
    ) async throws {
        let left = Mutex<Int64>(1 << 40)
        var environment = EngineEnvironment()
        environment.freeDiskByteCount = { left.withLock { $0 } }
        let gate = try GatewayHarness(environment: environment)
        try await gate.register("u_1")
        left.withLock { $0 = free }
        let login = try await gate.example("security.new_login", "l", to: "u_1", as: "security")
        #expect(try await gate.remit("a").status == (general ? 202 : 503))
        #expect(
            try await gate.call("security", "POST", "/v1/sends", login).status == (security ? 202 : 503))
    }

    @Test func `a disk that cannot be measured has no room, for security neither`() async throws {
        let isBroken = Mutex(false)
        var environment = EngineEnvironment()
        environment.freeDiskByteCount = {
            if isBroken.withLock({ $0 }) { throw StoreError.unavailable("the file system says nothing") }
            return 1 << 40
        }
        let gate = try GatewayHarness(environment: environment)
        try await gate.register("u_1")
        let login = try await gate.example("security.new_login", "l", to: "u_1", as: "security")
        let entryCount = try gate.entries().count
        isBroken.withLock { $0 = true }
        #expect(try await gate.remit("a").status == 503)
        #expect(try await gate.call("security", "POST", "/v1/sends", login).status == 503)
        #expect(try gate.entries().count == entryCount)
        isBroken.withLock { $0 = false }
        #expect(try await gate.remit("a").status == 202)
        #expect(try await gate.call("security", "POST", "/v1/sends", login).status == 202)
    }

    @Test func `what equal contents share is under a label of its own`() throws {
        let gate = try GatewayHarness()
        let label = Array("sendgate/content/v1".utf8) + [0]
        let expected = HMACKey(gate.keys.index).authenticate(label + [1, 2])
        #expect(gate.gateway.dependencies.settings.index.contentMAC([1, 2]) == expected)
    }

    // MARK: Seals

    @Test func `an operation that is undone raises no alarm`() async throws {
        let gate = try GatewayHarness()
        await withCheckedContinuation { done in
            gate.engine.submit(AlarmedFailure { done.resume() })
        }
        // A batch is answered before its alarms are raised, and the next one begins after.
        await withCheckedContinuation { done in gate.engine.submit(PassOperation { done.resume() }) }
        #expect(gate.alarms.all == [])
    }

    @Test func `a send that cannot be sealed is refused alone and leaves nothing`() async throws {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        let (_, bad) = try await gate.addKey("u_1")
        _ = try await gate.addKey("u_2")
        let sound = try await gate.breakKey(bad)
        let count = try gate.entries().count
        let quiet: JSONObject = [
            "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
            "age": "adult", "privacy": "generic", "push_enabled": true,
        ]
        let replies = try await gate.inOneBatch([
            { try await $0.remit("before", to: "u_2") }, { try await $0.remit("bad", to: "u_1") },
            { try await $0.call("product", "PUT", "/v1/recipients/u_2", quiet) },
            { try await $0.remit("worse", to: "u_1") }, { try await $0.remit("after", to: "u_2") },
        ])
        #expect(replies.map { $0?.status } == [202, 503, 200, 503, 202])
        for refused in [replies[1], replies[3]] {
            #expect(refused?["type"] == "urn:sendgate:problem:sealing_failed", "\(refused?.json ?? [:])")
        }
        // One entry for each that was taken, in their order, and the answers name them.
        let entries = try gate.entries()
        #expect(entries.count == count + 3)
        #expect(
            [replies[0], replies[2], replies[4]].map { $0?.json["trail"]?["index"]?.integerValue }
                == (0..<3).map { Int64(count + $0) })
        #expect(try gate.entries("send").count == 2)
        let person = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        try gate.store.read { (store) throws in
            #expect(try store.outbox(of: person.id).isEmpty)
            #expect(try store.sends(of: person.id, before: nil, limit: 9).isEmpty)
            #expect(
                try store.forwards(of: person.id, since: Instant(milliseconds: 0), limit: 9).isEmpty)
            #expect(try store.outboxDepth().rowCount == 2)
        }
        // The id is as free as it was.
        try await gate.write { try $0.putDeviceKey(sound) }
        let again = try await gate.remit("bad", to: "u_1")
        #expect(again.status == 202 && again.json["replayed"] != true, "\(again.json)")
    }

    @Test func `one device of two that cannot be sealed to refuses the whole send, whose event stays untold`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        _ = try await gate.addKey("u_1")
        let (_, bad) = try await gate.addKey("u_1", device: "d_2")
        let sound = try await gate.breakKey(bad)
        var transfer = GatewayHarness.remittance("a", to: "u_1")
        transfer["type"] = "transfer.large"
        #expect(try await gate.call("payments", "POST", "/v1/sends", transfer).status == 503)
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        try await gate.write { try $0.putDeviceKey(sound) }
        // Another id of the same event: it was not told.
        transfer["id"] = "b"
        let sent = try await gate.call("payments", "POST", "/v1/sends", transfer)
        #expect(sent.status == 202, "\(sent.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 2)
    }

    @Test
    func `a deferred message that cannot be sealed when it is due waits on, and holds up none behind it`()
        async throws
    {
        // 23:00 in Berlin.
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        for user in ["u_1", "u_2"] {
            try await gate.register(user, quiet: ["start": "21:00", "end": "08:00"])
        }
        let (_, bad) = try await gate.addKey("u_1")
        _ = try await gate.addKey("u_2")
        for (id, user) in [("a", "u_1"), ("b", "u_2")] {
            try #require(try await gate.remit(id, to: user)["outcome"] == "defer")
        }
        let sound = try await gate.breakKey(bad)
        gate.clock.advance(seconds: 9 * 3600)
        _ = try await gate.claim()
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_2-d_1")])
        await gate.settle()
        #expect(gate.alarms.all.count == 1 && gate.alarms.all[0].contains("60 s"), "\(gate.alarms.all)")
        func dueCount() throws -> Int {
            try gate.store.read { try $0.entries(from: 0, limit: 100) }
                .count { try CanonicalJSON.read($0.bytes)["cause"] == "due" }
        }
        // What did not go was not decided to go.
        #expect(try dueCount() == 1)
        try await gate.write { try $0.putDeviceKey(sound) }
        gate.clock.advance(milliseconds: 59_999)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(milliseconds: 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_1-d_1")])
        #expect(try dueCount() == 2)
    }

    @Test func `a summary that cannot be sealed waits on, and holds up none behind it`() async throws {
        let gate = try GatewayHarness(caps: DecidedAgainTests.oneAnHour)
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        let (_, bad) = try await gate.addKey("u_1")
        for number in 0..<4 {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", DecidedAgainTests.transfer(number, to: "u_1"))
            try #require(sent["outcome"] == (number == 0 ? "forward" : "digest"), "\(sent.json)")
        }
        #expect(try await gate.claim().count == 1)
        let sound = try await gate.breakKey(bad)
        gate.clock.advance(seconds: 3601)
        try #require(try await gate.remit("other", to: "u_2").status == 202)
        // The claim that cannot make the summary gives what else is due, and counts and ends nothing.
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_2-d_1")])
        #expect(try gate.entries("redecision").isEmpty)
        await gate.settle()
        #expect(gate.alarms.all.count == 3, "\(gate.alarms.all)")
        try await gate.write { try $0.putDeviceKey(sound) }
        gate.clock.advance(seconds: 60)
        _ = try await gate.claim()
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_1-d_1")])
        #expect(try gate.entries("redecision").count { $0["cause"] == "summarised" } == 3)
    }
}

// MARK: - The disk

/// A store that fails as it is told to.
final class FailingStore: GateStore {
    private let store: any GateStore
    private let state = Mutex<(failure: StoreError?, erasureFailure: StoreError?, writeCount: Int)>(
        (nil, nil, 0))
    /// What looking for a message throws.
    let loadFailure = Mutex<StoreError?>(nil)
    /// What making commits durable throws.
    let synchronizeFailure = Mutex<StoreError?>(nil)

    init(_ store: any GateStore) { self.store = store }

    /// Every commit from here on throws.
    func fail(_ failure: StoreError?) { state.withLock { $0 = (failure, $0.erasureFailure, 0) } }
    func failErasures(_ failure: StoreError?) { state.withLock { $0.erasureFailure = failure } }
    var writeCount: Int { state.withLock { $0.writeCount } }

    func load(_ asks: [Ask], into memory: GateMemory) throws {
        let isMessage = asks.contains { if case .message = $0 { true } else { false } }
        if isMessage, let failure = loadFailure.withLock({ $0 }) { throw failure }
        try store.load(asks, into: memory)
    }

    func commit(_ changes: [Change]) throws -> CommitReceipt {
        let failure = state.withLock { state in
            state.writeCount += 1
            return state.failure
        }
        if let failure { throw failure }
        return try store.commit(changes)
    }
    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result { try store.read(body) }
    func synchronize() throws {
        if let failure = synchronizeFailure.withLock({ $0 }) { throw failure }
        try store.synchronize()
    }
    func finishErasures() throws {
        if let failure = state.withLock({ $0.erasureFailure }) { throw failure }
        try store.finishErasures()
    }
    var damages: [StoredDamage] { store.damages }
    func note(_ damage: StoredDamage) { store.note(damage) }
    func checkPages(countMax: Int) throws -> Bool { try store.checkPages(countMax: countMax) }
    var pageCheck: PageCheck { store.pageCheck }
    var dataKeyUse: DataKeyUse { store.dataKeyUse }
}

/// The end of a process, as far as a test can bear it: the thread that asked for it never goes on.
final class ProcessEnd: Sendable {
    private let whats = Mutex<[String]>([])
    private let came = DispatchSemaphore(value: 0)

    func end(_ what: String) -> Never {
        whats.withLock { $0.append(what) }
        came.signal()
        while true { DispatchSemaphore(value: 0).wait() }
    }
    func wait() async { await Task.detached { self.came.wait() }.value }
    /// What it ended for; the second would be a retry.
    var reasons: [String] { whats.withLock { $0 } }
}

/// What became of a synchronization that failed: the engine must not go on as if it were known what is on the disk.
@Suite struct LostDurabilityTests {
    private let end = ProcessEnd()

    private func gate() async throws -> (GatewayHarness, FailingStore) {
        let box = Mutex<FailingStore?>(nil)
        var environment = EngineEnvironment()
        let end = end
        environment.durabilityLost = { end.end($0) }
        environment.isDrained = false
        environment.store = { store in
            let failing = FailingStore(store)
            box.withLock { $0 = failing }
            return failing
        }
        let gate = try GatewayHarness(environment: environment, keeping: .files())
        try await gate.register("u_1")
        return (gate, try #require(box.withLock { $0 }))
    }

    /// Asks without waiting for the answer that must not come.
    private func ask(
        _ gate: GatewayHarness, _ caller: String, _ method: String, _ target: String,
        _ body: JSONObject? = nil,
        into answers: Alarms
    ) {
        let peer = Peer(
            credentials: PeerCredentials(
                userID: GatewayHarness.users[caller]!, groupID: 100, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: 0)
        gate.gateway.handle(
            WireRequest(
                kind: .single, method: method, target: target,
                headers: body == nil ? [] : [("content-type", "application/json")],
                body: body.map { CanonicalJSON.write(.object($0)) } ?? []), from: peer
        ) { answers.add("\($0.status)") }
    }

    @Test func `a commit that may not be on the disk ends the process, unanswered and not tried again`()
        async throws
    {
        let (gate, store) = try await gate()
        store.fail(.lostDurability("the log"))
        let answers = Alarms()
        ask(gate, "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"), into: answers)
        await end.wait()
        // Nothing is taken after it either.
        ask(gate, "payments", "POST", "/v1/sends", GatewayHarness.remittance("b", to: "u_1"), into: answers)
        #expect(end.reasons == ["the log"])
        #expect(answers.all == [])
        #expect(store.writeCount == 1)
    }

    @Test(
        arguments: [
            StoreError.unavailable("the disk is full"), .damaged(table: "outbox", "not a sound database"),
        ])
    func `a commit that has not happened is 503 for the whole batch, and the next one works`(
        _ failure: StoreError
    ) async throws {
        let (gate, store) = try await gate()
        let count = try gate.entries().count
        // What all of a batch meets may be of one operation: then each is tried by itself.
        let isTriedAlone = failure.damage != nil
        let replies = try await gate.inOneBatch(
            [
                { gate in
                    store.fail(failure)
                    return try await gate.remit("a")
                }, { try await $0.remit("b") },
            ], batches: isTriedAlone ? 2 : 1)
        #expect(store.writeCount == (isTriedAlone ? 3 : 1))
        #expect(replies.map { $0?.status } == [503, 503])
        #expect(replies.map { $0?["type"] } == Array(repeating: "urn:sendgate:problem:unavailable", count: 2))
        #expect(try gate.entries().count == count)
        #expect(try await gate.call("nobody", "GET", "/readyz").status == 503)
        store.fail(nil)
        let again = try await gate.remit("a")
        #expect(again.status == 202 && again.json["replayed"] != true)
        #expect(try await gate.call("nobody", "GET", "/readyz").status == 200)
        #expect(end.reasons == [])
    }

    @Test func `a store that cannot be read now puts no message off`() async throws {
        let (gate, store) = try await gate()
        try #require(try await gate.remit("a").status == 202)
        store.loadFailure.withLock { $0 = .unavailable("the disk is busy") }
        await #expect(throws: EngineFailure.self) { try await gate.claim() }
        store.loadFailure.withLock { $0 = nil }
        #expect(try await gate.claim().count == 1)
        await gate.settle()
        // One alarm, about the store and no message.
        #expect(gate.alarms.all.map { $0.hasPrefix("nothing is recorded: the disk is busy") } == [true])
        #expect(end.reasons == [])
    }

    @Test func `what was called back for a batch that is not committed is offered still`() async throws {
        let (gate, store) = try await gate()
        for lane in DeliveryLane.allCases { #expect(try await gate.claim(lane).isEmpty) }
        await gate.gateway.setHopUsable(true)
        let send = try #require(try await gate.remit("a")["send_id"])
        store.fail(.unavailable("the disk is full"))
        let path = "/v1/sends/\(send)/cancel"
        #expect(try await gate.call("payments", "POST", path).status == 503)
        store.fail(nil)
        #expect(try await gate.claim().count == 1)
    }

    @Test func `an erasure whose synchronization fails ends the process, unanswered`() async throws {
        let (gate, store) = try await gate()
        store.failErasures(.lostDurability("subjects.db"))
        let answers = Alarms()
        ask(gate, "product", "DELETE", "/v1/recipients/u_1", into: answers)
        await end.wait()
        #expect(end.reasons == ["subjects.db"] && answers.all == [])
    }

    @Test func `an erasure that is recorded has no answer but 503 until it is finished`() async throws {
        let (gate, store) = try await gate()
        store.failErasures(.unavailable("the disk is full"))
        for _ in 0..<2 {
            let answer = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
            #expect(answer.status == 503 && "\(answer)".contains("erasure is recorded"), "\(answer)")
        }
        store.failErasures(nil)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 404)
        #expect(try gate.entries("erasure").count == 1)
    }

    @Test func `a bundle whose archive may not be on the disk ends the process and decides nothing`()
        async throws
    {
        let (gate, _) = try await gate()
        gate.library.archiveFailure.withLock { $0 = .lostDurability("policies") }
        let next = try GatewayHarness.policy { pages in
            guard case .object(var page)? = pages["bundle.yaml"]?.json else { return }
            page["version"] = 2
            pages["bundle.yaml"] = PolicyNode(json: .object(page))
        }
        let answers = Alarms()
        gate.configure(next)
        ask(
            gate, "keys-team", "POST", "/v1/policy/activate", ["digest": .string(next.digest.text)],
            into: answers)
        await end.wait()
        #expect(end.reasons == ["policies"] && answers.all == [])
        #expect(try gate.entries("policy").isEmpty)
    }
}
