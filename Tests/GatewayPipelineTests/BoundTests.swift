import AuditTrail
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateTestKit
import GateVocabulary
import SQLiteStore
import Synchronization
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// One operation that only waits.
private struct IdleOperation: EngineOperation {
    let caller: CallerName?
    let lane: EngineLane
    func perform(in batch: Batch) throws -> Completion { { _ in } }
    func refuse(_ failure: EngineFailure) {}
}

/// Every bound, and what of it a flood of anything else leaves to security: the table a second time, by hand.
@Suite struct BoundTests {
    // MARK: The queue

    @Test(
        arguments: [
            (16, 10, 14), (100, 10, 90), (101, 10, 90), (8192, 10, 7372), (8192, 25, 6144), (20, 90, 2),
        ]
            as [(Int, Int, Int)])
    func `the last share of the engine's queue is security's`(_ bound: Int, _ percent: Int, _ general: Int) {
        var limits = EngineLimits()
        (limits.queuedOperationCountMax, limits.securitySharePercent) = (bound, percent)
        limits.queuedOperationCountPerCallerMax = bound
        let queue = OperationQueue(limits: limits)
        func fill(_ lane: EngineLane) -> Int {
            var taken = 0
            while queue.append(IdleOperation(caller: CallerName("c\(taken % 7)"), lane: lane)) == nil {
                taken += 1
            }
            return taken
        }
        #expect(fill(.general) == general)
        // The gateway's own work and other callers' are refused as well.
        #expect(queue.append(IdleOperation(caller: nil, lane: .general)) == .overloaded)
        #expect(fill(.security) == bound - general)
        #expect(queue.append(IdleOperation(caller: nil, lane: .security)) == .overloaded)
        #expect((bound - general) * 100 >= bound * percent)
    }

    @Test func `the bounds as they are when nobody sets them`() {
        let limits = EngineLimits()
        #expect(limits.queuedOperationCountMax == 8_192)
        #expect(limits.queuedOperationCountPerCallerMax == 4_096)
        #expect(limits.securitySharePercent == 10)
        #expect(limits.outboxRowCountMax == 200_000)
        #expect(limits.outboxRowCountPerCallerMax == 100_000)
        #expect(limits.outboxRowCountPerPersonMax == 10_000)
        #expect(limits.outboxByteCountMax == 1_073_741_824)
        #expect(limits.freeDiskByteCountMin == 67_108_864)
        #expect(limits.clockStepBackMillisecondsMax == 2_000)
        #expect(limits.decisionFreshMilliseconds == 60_000)
        #expect(limits.publishLagMillisecondsMax == 30_000)
        // 35 days.
        #expect(limits.retentionMilliseconds == 3_024_000_000)
    }

    @Test func `one caller's part of the queue bounds its other work, and not its security`() {
        var limits = EngineLimits()
        (limits.queuedOperationCountMax, limits.queuedOperationCountPerCallerMax) = (100, 5)
        let queue = OperationQueue(limits: limits)
        func append(_ caller: String, _ lane: EngineLane = .general) -> EngineFailure? {
            queue.append(IdleOperation(caller: CallerName(caller), lane: lane))
        }
        for _ in 0..<5 { #expect(append("marketing") == nil) }
        #expect(append("marketing") == .overloaded)
        #expect(append("payments") == nil)
        #expect(append("marketing", .security) == nil)
        // What was taken is free again.
        #expect(queue.take(countMax: 3).count == 3)
        #expect(append("marketing") == nil)
        #expect(queue.take(countMax: 99).count == 5)
        for _ in 0..<5 { #expect(append("marketing") == nil) }
        #expect(append("marketing") == .overloaded)
    }

    @Test func `security goes first, and each lane in its order`() {
        let queue = OperationQueue(limits: EngineLimits())
        for number in 0..<6 {
            _ = queue.append(
                IdleOperation(
                    caller: CallerName("c\(number)"), lane: number.isMultiple(of: 2) ? .general : .security))
        }
        #expect(queue.take(countMax: 4).map(\.caller?.text) == ["c1", "c3", "c5", "c0"])
        queue.close()
        #expect(queue.append(IdleOperation(caller: nil, lane: .security)) == .stopping)
        #expect(queue.take(countMax: 4).map(\.caller?.text) == ["c2", "c4"])
        #expect(queue.take(countMax: 4).isEmpty)
    }

    // MARK: Lanes

    @Test(
        arguments: [
            ("security", "security.new_login", true), ("security", "suspicious_login", true),
            ("security", "promo.offer", false), ("security", "transaction.failed", false),
            ("marketing", "security.new_login", false), ("marketing", "promo.offer", false),
            ("payments", "transaction.failed", false), ("payments", "suspicious_login", false),
            ("social", "security.new_login", false), ("product", "security.fraud_suspected", false),
            ("keys-team", "security.new_login", false), ("nobody", "security.new_login", false),
            ("security", "no.such.type", false),
        ] as [(String, String, Bool)])
    func `only security by whom may send it goes in the lane of security`(
        _ caller: String, _ type: String, _ isSecurity: Bool
    ) throws {
        let request = AttestedRequest(
            caller: CallerName(caller), type: TypeID(type), channel: .push, critical: false)
        let lane = EngineLane(of: request, under: try Repository.policy())
        #expect(lane == (isSecurity ? .security : .general))
    }

    @Test func `a flood of security notices by marketing leaves security its share`() async throws {
        var limits = EngineLimits()
        limits.queuedOperationCountMax = 20
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        let login = try await gate.example("security.new_login", "l", to: "u_1", as: "security")
        func send(
            _ caller: String, _ id: String
        ) -> @Sendable (GatewayHarness) async throws -> GatewayHarness.Reply? {
            var body = login
            body["id"] = .string(id)
            return { [body] in try await $0.call(caller, "POST", "/v1/sends", body) }
        }
        let replies = try await gate.inOneBatch(
            (0..<25).map { send("marketing", "f\($0)") } + [send("security", "s")])
        let statuses = replies.map { $0?.status ?? 0 }
        #expect(statuses.prefix(18).allSatisfy { $0 == 403 } && statuses[18..<25].allSatisfy { $0 == 429 })
        #expect(statuses[25] == 202, "\(statuses)")
        #expect(replies.prefix(18).allSatisfy { $0?["reason"] == "caller_not_permitted" })
        #expect(replies[18]?["type"] == "urn:sendgate:problem:too_many_in_flight")
    }

    @Test func `a thousand commands for one person in one batch are answered each, in their order`()
        async throws
    {
        var limits = EngineLimits()
        limits.batchOperationCountMax = 1_024
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        let promo = try await gate.promo("p", to: "u_1")
        let before = try gate.entries().count
        let commands: [@Sendable (GatewayHarness) async throws -> GatewayHarness.Reply?] = (0..<1_024).map {
            number in
            if number.isMultiple(of: 2) {
                return { gate in try await gate.consent("u_1", id: "c\(number)") }
            }
            return { gate in
                var send = promo
                send["id"] = .string("p\(number)")
                return try await gate.call("marketing", "POST", "/v1/sends", send)
            }
        }
        let replies = try await gate.inOneBatch(commands).compactMap { $0 }
        #expect(replies.count == 1_024)
        for reply in replies where reply.status != 200 && reply.status != 202 {
            #expect(reply["reason"] == "frequency_cap", "\(reply)")
        }
        let indices = replies.compactMap { $0.json["trail"]?["index"]?.integerValue }
        #expect(indices.count >= 512 && zip(indices, indices.dropFirst()).allSatisfy(<))
        let kinds = try gate.entries().dropFirst(before).map { try TrailEntry(reading: $0.bytes).kind }
        #expect(kinds.count { $0 == .send } == 512 && kinds.count { $0 == .consent } == 512)
        // The cap of the first day counts what was decided before in the same batch.
        let forwarded = replies.count { $0["outcome"] == "forward" }
        #expect(forwarded > 0 && forwarded < 512, "\(forwarded) of 512 went out")
    }

    /// With the common part of the queue full: what still gets through, and what does not.
    @Test(
        arguments: [
            ("security", "POST sends", true), ("payments", "POST sends", false),
            ("product", "POST consents/c1/withdraw", true), ("product", "POST consents refused", true),
            ("product", "POST consents given", false), ("product", "PUT preferences off", true),
            ("product", "PUT preferences on", false), ("product", "DELETE", true),
            ("keys-team", "POST keys/revoke", true), ("keys-team", "POST keys/suspend", true),
            ("keys-team", "POST policy/activate", true), ("product", "PUT", false),
        ] as [(String, String, Bool)])
    func `what protects people gets through a flood`(_ caller: String, _ what: String, _ isTaken: Bool)
        async throws
    {
        var limits = EngineLimits()
        limits.queuedOperationCountMax = 20
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let (_, key) = try await gate.addKey("u_1")
        gate.clock.advance(seconds: 60)
        let person = "/v1/recipients/u_1"
        let login = try await gate.example("security.new_login", "l", to: "u_1", as: "security")
        let ask: @Sendable (GatewayHarness) async throws -> GatewayHarness.Reply? = { gate in
            switch what {
            case "POST sends":
                let body = caller == "security" ? login : GatewayHarness.remittance("r", to: "u_1")
                return try await gate.call(caller, "POST", "/v1/sends", body)
            case "POST consents/c1/withdraw":
                return try await gate.call(caller, "POST", person + "/consents/c1/withdraw")
            case "POST consents refused":
                return try await gate.consent("u_1", id: "c2", state: "refused")
            case "POST consents given": return try await gate.consent("u_1", id: "c2")
            case "PUT preferences off", "PUT preferences on":
                let state: JSONValue = what.hasSuffix("off") ? "user_off" : "user_on"
                return try await gate.call(
                    caller, "PUT", person + "/preferences/transactional",
                    ["state": state, "source": "in_app_settings", "channel": "push"])
            case "DELETE": return try await gate.call(caller, "DELETE", person)
            case "POST keys/revoke":
                return try await gate.call(
                    caller, "POST", "/v1/keys/\(key)/revoke", ["cause": "compromised"])
            case "POST keys/suspend": return try await gate.call(caller, "POST", "/v1/keys/\(key)/suspend")
            case "POST policy/activate":
                let digest = gate.policy.digest.text
                return try await gate.call(
                    caller, "POST", "/v1/policy/activate", ["digest": .string(digest)])
            default:
                return try await gate.call(
                    caller, "PUT", person,
                    ["region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin"])
            }
        }
        let pass: @Sendable (GatewayHarness) async throws -> GatewayHarness.Reply? = { gate in
            gate.engine.submit(PassOperation {})
            return nil
        }
        let replies = try await gate.inOneBatch(Array(repeating: pass, count: 18) + [ask], batches: nil)
        let status = try #require(replies.last??.status)
        #expect(isTaken ? (200..<300).contains(status) : status == 429, "\(status)")
    }

    @Test func `a commit proves the way for a minute, and not after a failure`() {
        let health = CommitHealth()
        let answers = Alarms()
        /// Whether the way has to be proved first.
        func ask(_ uptime: Int64) -> Bool {
            health.ask(at: uptime) { answers.add($0 == nil ? "ready" : "not ready") }
        }
        #expect(ask(1_000))
        health.probed(.overloaded)
        #expect(!health.committed(at: 1_000, after: health.mark, provesRoom: true))
        #expect(!ask(1_000) && !ask(60_999))
        #expect(answers.all == ["not ready", "ready", "ready"])
        // A time since boot that went back is no proof either.
        #expect(ask(61_000) && !ask(61_001) && !ask(999))
        #expect(answers.all.count == 3)
        health.probed(nil)
        #expect(answers.all.count == 6 && answers.all.last == "ready")
        let mark = health.mark
        #expect(!health.committed(at: 62_000, after: mark, provesRoom: true))
        #expect(!ask(62_000))
        _ = health.failed(.overloaded)
        #expect(ask(62_001))
        health.probed(nil)
        // A commit that was written before the failure, and is durable after it.
        #expect(!health.committed(at: 62_002, after: mark, provesRoom: true))
        #expect(ask(62_003))
        health.probed(nil)
        #expect(!health.committed(at: 62_004, after: health.mark, provesRoom: true))
        #expect(!ask(62_004))
    }

    @Test func `an alarm is raised once for an outage, and its end is said by what proves it`() {
        let health = CommitHealth()
        let before = health.mark
        #expect(
            [.overloaded, .outboxFull, .stopping, .unavailable("x")].allSatisfy { health.failed($0) == nil })
        #expect(health.failed(.diskLow(byteCountMin: 9)) == .room)
        #expect(health.failed(.trailBehind(milliseconds: 9)) == nil)
        // A commit of before, and a registration or a security send of after, say nothing of the room.
        #expect(!health.committed(at: 1, after: before, provesRoom: true))
        #expect(!health.committed(at: 1, after: health.mark, provesRoom: false))
        #expect(health.failed(.trailBehind(milliseconds: 9)) == nil)
        let mark = health.mark
        // A refusal of another kind, between the commit and its answer, keeps nothing open.
        _ = health.failed(.outboxFull)
        #expect(health.committed(at: 2, after: mark, provesRoom: true))
        #expect(!health.committed(at: 3, after: health.mark, provesRoom: true))
        #expect(health.failed(.unavailable("the disk is full"), isOfStore: true) == .everything)
        #expect(health.failed(.clockJumped(milliseconds: 1)) == nil)
        #expect(health.committed(at: 4, after: health.mark, provesRoom: false))
        #expect(health.failed(.clockWentBack(milliseconds: 5)) == .everything)
    }

    // MARK: The outbox

    struct OutboxRow: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var limit: @Sendable (inout EngineLimits, _ bodyByteCount: Int64) -> Void
        /// Messages of one caller that wait when it is refused, and all messages that wait when security is.
        var general: Int
        var all: Int
        var failure = "outbox_full"
    }

    static let outboxRows: [OutboxRow] = [
        OutboxRow(
            testDescription: "messages", limit: { limits, _ in limits.outboxRowCountMax = 20 }, general: 18,
            all: 20),
        OutboxRow(
            testDescription: "messages, a larger share",
            limit: { limits, _ in (limits.outboxRowCountMax, limits.securitySharePercent) = (20, 40) },
            general: 12,
            all: 20),
        OutboxRow(
            testDescription: "messages of one caller",
            limit: { limits, _ in (limits.outboxRowCountMax, limits.outboxRowCountPerCallerMax) = (20, 5) },
            general: 5, all: 20),
        OutboxRow(
            testDescription: "messages for one person",
            limit: { limits, _ in limits.outboxRowCountPerPersonMax = 10 }, general: 10, all: 12),
        OutboxRow(
            testDescription: "bytes", limit: { limits, bytes in limits.outboxByteCountMax = 20 * bytes },
            general: 18,
            all: 20),
    ]

    @Test(arguments: outboxRows)
    func `the last share of the outbox is security's`(_ row: OutboxRow) async throws {
        // Two types whose bodies are equally long: neither says more than that there is something.
        let sizes = try GatewayHarness()
        try await sizes.register("u_1")
        try #require(try await sizes.remit("r").status == 202)
        let byteCount = try sizes.store.read { try $0.outboxDepth().byteCount }
        var limits = EngineLimits()
        row.limit(&limits, byteCount)
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        func waiting() throws -> OutboxDepth { try gate.store.read { try $0.outboxDepth() } }
        var refused: GatewayHarness.Reply?
        for number in 0..<30 where refused == nil {
            let reply = try await gate.remit("r\(number)")
            if reply.status != 202 { refused = reply }
        }
        #expect(
            refused?.status == 429 && refused?["type"] == "urn:sendgate:problem:outbox_full",
            "\(refused?.json ?? [:])")
        #expect(try waiting().rowCount == row.general)
        refused = nil
        for number in 10..<60 where refused == nil {
            let reply = try await gate.login(number - 10)
            if reply.status != 202 { refused = reply }
        }
        #expect(refused?.status == 429, "\(refused?.json ?? [:])")
        let depth = try waiting()
        if row.testDescription == "bytes" {
            // Bodies of the two types differ by their tier's expiry at most.
            #expect(depth.byteCount >= limits.outboxByteCountMax && depth.securityRowCount >= 1)
        } else {
            #expect(depth.rowCount == row.all)
        }
        #expect(depth.securityRowCount == depth.rowCount - row.general)
        // What a full outbox refused is bound to nothing: handed over, there is room, and the same id is decided.
        while case let claimed = try await gate.claim() + gate.claim(.security), !claimed.isEmpty {
            for delivery in claimed {
                try await gate.gateway.report(
                    delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
            }
        }
        let again = try await gate.remit("r\(row.general)")
        #expect(again.status == 202 && again.json["replayed"] != true, "\(again.json)")
    }

    @Test func `what waits keeps its room when its time comes`() async throws {
        var limits = EngineLimits()
        limits.outboxRowCountMax = 20
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z", limits: limits)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        for number in 0..<18 {
            #expect(try await gate.remit("r\(number)")["outcome"] == "defer")
        }
        #expect(try await gate.remit("full").status == 429)
        // Security fills its share, so that what is deferred finds no room but its own.
        for number in 0..<2 {
            #expect(try await gate.login(number).status == 202)
        }
        gate.clock.advance(seconds: 10 * 3600)
        // The first look composes what was deferred, the next hands it over.
        _ = try await gate.claim()
        let rows = try gate.store.read { store in
            let subject = try #require(try store.subject(of: UserID("u_1")))
            return try store.outbox(of: subject.id)
        }
        #expect(rows.count == 20 && rows.allSatisfy { $0.state == .ready }, "\(rows.map(\.state))")
    }

    // MARK: Look-ups and connections

    @Test func `the last tenth of the look-ups is security's, and one caller has half`() async {
        let readers = ReaderThreads(threadCount: 1)
        let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // Both threads stand.
        for lane in [EngineLane.general, .security] {
            #expect(
                readers.submit(for: CallerName("a"), lane: lane) {
                    entered.signal()
                    release.wait()
                })
            await Task.detached { entered.wait() }.value
        }
        func fill(_ caller: String, _ lane: EngineLane = .general) -> Int {
            var taken = 0
            while readers.submit(for: CallerName(caller), lane: lane, {}) { taken += 1 }
            return taken
        }
        #expect(fill("a") == 2048)
        #expect(fill("b") == 1638)
        #expect(fill("c") == 0)
        #expect(fill("a", .security) == 410)
        for _ in 0..<2 { release.signal() }
    }

    @Test func `one look-up's thread does security's and nothing else`() async {
        let readers = ReaderThreads(threadCount: 1)
        let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (order, done) = (Alarms(), DispatchSemaphore(value: 0))
        func submit(_ name: String, _ lane: EngineLane, _ work: @escaping @Sendable () -> Void = {}) {
            #expect(
                readers.submit(for: CallerName("a"), lane: lane) {
                    work()
                    order.add(name)
                    done.signal()
                })
        }
        submit("standing", .general) {
            entered.signal()
            release.wait()
        }
        await Task.detached { entered.wait() }.value
        submit("waiting", .general)
        for number in 1...3 {
            submit("security \(number)", .security)
            await Task.detached { done.wait() }.value
        }
        #expect(order.all == ["security 1", "security 2", "security 3"])
        release.signal()
        for _ in 0..<2 { await Task.detached { done.wait() }.value }
        #expect(order.all.suffix(2) == ["standing", "waiting"])
    }

    @Test func `callers take turns with their look-ups, and security's go before all`() async {
        let readers = ReaderThreads(threadCount: 1)
        let entered = DispatchSemaphore(value: 0)
        let (release, releaseOfSecurity) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for (lane, release) in [(EngineLane.general, release), (.security, releaseOfSecurity)] {
            #expect(
                readers.submit(for: CallerName("z"), lane: lane) {
                    entered.signal()
                    release.wait()
                })
            await Task.detached { entered.wait() }.value
        }
        let order = Alarms()
        let done = DispatchSemaphore(value: 0)
        func submit(_ name: String, _ caller: String, _ lane: EngineLane = .general) {
            #expect(
                readers.submit(for: CallerName(caller), lane: lane) {
                    order.add(name)
                    done.signal()
                })
        }
        for name in ["a1", "a2", "a3"] { submit(name, "a") }
        for name in ["b1", "b2"] { submit(name, "b") }
        submit("c1", "c")
        submit("s1", "a", .security)
        // The one that does everybody's work goes on; the other stands to the end.
        release.signal()
        for _ in 0..<7 { await Task.detached { done.wait() }.value }
        #expect(order.all == ["s1", "a1", "b1", "c1", "a2", "b2", "a3"])
        releaseOfSecurity.signal()
    }

    @Test(
        arguments: [
            ("security", true), ("marketing", false), ("payments", false), ("social", false),
            ("product", false),
            ("help", false), ("keys-team", false), ("auditor", false), ("nobody", false),
        ] as [(String, Bool)])
    func `a caller of security alone may use what is kept of connections and requests`(
        _ caller: String, _ isReserved: Bool
    ) throws {
        let gate = try GatewayHarness()
        let peer = Peer(
            credentials: PeerCredentials(
                userID: GatewayHarness.users[caller] ?? 4242, groupID: 100, processID: 1,
                supplementaryGroups: []), boundCaller: nil, listener: 0)
        #expect(gate.gateway.mayUseReserve(peer) == isReserved)
    }
}
