import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import SQLiteStore
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// Messages that go from the commit to the relay without being read back.
@Suite struct InFlightTests {
    /// A gateway whose relay has seen that the hop is up and that nothing waits.
    private func gate(
        _ environment: EngineEnvironment = EngineEnvironment(), keeping: StateKeeping = .usual
    ) async throws -> GatewayHarness {
        // Many go to one person, and limits are not what this is about.
        let gate = try GatewayHarness(caps: "categories: {}", environment: environment, keeping: keeping)
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        try await gate.consent("u_1")
        for lane in DeliveryLane.allCases { #expect(try await gate.claim(lane).isEmpty) }
        await gate.gateway.setHopUsable(true)
        return gate
    }

    private func rows(_ gate: GatewayHarness, _ user: String = "u_1") throws -> [OutboxRecord] {
        try gate.store.read { store in
            let subject = try #require(try store.subject(of: UserID(user)))
            return try store.outbox(of: subject.id)
        }
    }

    private func withdraw(_ gate: GatewayHarness) async throws {
        let reply = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw")
        try #require(reply.status < 300, "\(reply.json)")
    }

    @Test func `what may go at once is committed as tried and costs the relay no commit`() async throws {
        let gate = try await gate()
        #expect(try await gate.remit("a").status == 202)
        let row = try #require(try rows(gate).first)
        #expect(row.attemptedAt == gate.clock.now() && row.attemptCount == 1 && !row.mayHaveArrived)
        let operations = gate.engine.load.operationCount
        gate.clock.advance(seconds: 2)
        let delivery = try #require(try await gate.claim().first)
        #expect(gate.engine.load.operationCount == operations)
        #expect(delivery.handedOverAt == gate.clock.now() && delivery.attemptCount == 0)
        #expect(try await gate.claim().isEmpty)
        // The same as it would have been read back.
        let stored = try #require(try gate.store.read { try $0.outbox(delivery.message) })
        #expect(stored.body == delivery.body && stored.headers == delivery.headers)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        #expect(try rows(gate).isEmpty)
        #expect(try gate.entries("delivery").first?["attempts"]?.integerValue == 1)
    }

    @Test func `from memory and from the store the hop is given the same`() async throws {
        let gate = try await gate()
        _ = try await gate.addKey("u_1")
        for id in ["a", "b"] { #expect(try await gate.remit(id).status == 202) }
        await gate.gateway.setHopUsable(false)
        #expect(try rows(gate).map(\.attemptCount) == [0, 0])
        let stored = try await gate.claim()
        #expect(stored.count == 2 && stored.allSatisfy { $0.attemptCount == 0 })
        await gate.gateway.setHopUsable(true)
        for id in ["c", "d"] { #expect(try await gate.remit(id).status == 202) }
        let offered = try await gate.claim()
        func shape(_ delivery: Delivery) throws -> String {
            var headers = try delivery.timed().headers
            // Each send has a collapse id of its own.
            headers["apns-collapse-id"] = nil
            let names = String(decoding: CanonicalJSON.write(.object(headers)), as: UTF8.self)
            let text = "\(names) \(delivery.body.count) \(delivery.token) \(delivery.statedExpiry)"
            return text.replacing(delivery.message.uuidText, with: "ID")
        }
        let shapes = try (stored + offered).map(shape)
        #expect(Set(shapes).count == 1, "\(shapes)")
    }

    @Test
    func `a message of a batch that is cancelled, or withdrawn from, before the relay takes it never goes`()
        async throws
    {
        let gate = try await gate()
        let sent = try await gate.remit("a")
        let cancelled = try await gate.call(
            "payments", "POST", "/v1/sends/\(try #require(sent["send_id"]))/cancel")
        #expect(cancelled.json["withdrawn"] == ["d_1"] && cancelled.json["gone"] == [])
        let promo = try await gate.promo("p", to: "u_1")
        #expect(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
        try await withdraw(gate)
        #expect(try await gate.claim().isEmpty)
        #expect(try rows(gate).isEmpty)
        #expect(try gate.entries("delivery").isEmpty)
    }

    @Test func `what is offered goes no more once its consent is withdrawn`() async throws {
        let gate = try await gate()
        let promo = try await gate.promo("p", to: "u_1")
        #expect(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
        try #require(try rows(gate).map(\.attemptCount) == [1], "it is not offered")
        try await withdraw(gate)
        #expect(try rows(gate).isEmpty)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `nothing of an erased person goes from memory`() async throws {
        let gate = try await gate()
        for id in ["a", "b"] { #expect(try await gate.remit(id).status == 202) }
        #expect(try await gate.remit("c", to: "u_2").status == 202)
        #expect(try await gate.gateway.claim(lane: .general, limit: 1).count == 1)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        let left = try await gate.claim()
        #expect(left.count == 1 && left.first?.token.hasPrefix(apnsToken("token-of-u_2")) == true)
    }

    @Test func `what the hop may have of an erased person is not said to be unsent`() async throws {
        let gate = try await gate()
        for id in ["a", "b"] { #expect(try await gate.remit(id).status == 202) }
        let taken = try #require(try await gate.gateway.claim(lane: .general, limit: 1).first)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        let (gone, unsent) = (try gate.entries("delivery"), try gate.entries("unsent"))
        #expect(gone.count == 1 && gone.first?["result"] == "ambiguous")
        #expect(gone.first?["message_id"] == .string(taken.message.uuidText))
        #expect(unsent.count == 1 && unsent.first?["cause"] == "erased")
        #expect(unsent.first?["message_id"] != .string(taken.message.uuidText))
        // The hop's word comes too late to be of any message.
        try await gate.gateway.report(taken.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        #expect(try gate.entries("delivery").count == 1)
    }

    @Test func `what is offered once more after a try in doubt goes no more to an erased person`()
        async throws
    {
        let gate = try await gate()
        for id in ["a", "b"] { #expect(try await gate.remit(id).status == 202) }
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .ambiguous("no answer", mayRepeat: true), retryAt: gate.clock.now())
        }
        // The other one is offered.
        #expect(try await gate.gateway.claim(lane: .general, limit: 1).count == 1)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        #expect(try await gate.claim().isEmpty)
        #expect(try gate.entries("delivery").map { $0["result"] } == ["ambiguous", "ambiguous"])
    }

    @Test func `what the relay has taken is under way, and a withdrawal is known at its next try`()
        async throws
    {
        let gate = try await gate()
        let promo = try await gate.promo("p", to: "u_1")
        let sent = try await gate.call("marketing", "POST", "/v1/sends", promo)
        let delivery = try #require(try await gate.claim().first)
        try await withdraw(gate)
        let cancelled = try await gate.call(
            "marketing", "POST", "/v1/sends/\(try #require(sent["send_id"]))/cancel")
        #expect(cancelled.json["withdrawn"] == [] && cancelled.json["gone"] == [])
        #expect(cancelled.json["under_way"] == ["d_1"])
        try await gate.gateway.report(delivery.message, .notWritten("down"), retryAt: gate.clock.now())
        #expect(try await gate.claim().isEmpty && rows(gate).isEmpty)
    }

    @Test func `a batch that cannot be committed gives back what it called back`() async throws {
        let gate = try await gate()
        let sent = try await gate.remit("a")
        let message = try #require(try rows(gate).first?.message)
        let id = try #require(sent["send_id"].flatMap(SendID.init(uuidText:)))
        await withCheckedContinuation { continuation in
            gate.engine.submit(
                FailingOperation(
                    body: { batch in _ = try batch.cancel(id, by: CallerName("payments"), at: batch.now()) },
                    done: { continuation.resume() }))
        }
        #expect(try rows(gate).map(\.attemptCount) == [1])
        #expect(try await gate.claim().map(\.message) == [message])
    }

    @Test func `nothing is offered past what waits its turn`() async throws {
        let gate = try await gate()
        #expect(try await gate.remit("a").status == 202)
        let first = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            first.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
            retryAt: gate.clock.now().advanced(bySeconds: 5))
        // Not due yet: it holds up no other.
        #expect(try await gate.remit("b").status == 202)
        #expect(try await gate.claim().count == 1)
        gate.clock.advance(seconds: 5)
        #expect(try await gate.remit("c").status == 202)
        #expect(try rows(gate).filter { $0.attemptedAt == nil }.count == 2)
        let both = try await gate.claim()
        #expect(both.count == 2 && both.first?.message == first.message)
        #expect(try await gate.claim().isEmpty)
        #expect(try await gate.remit("d").status == 202)
        #expect(try rows(gate).allSatisfy { $0.attemptedAt != nil })
    }

    @Test func `a decision that grew old before the relay came is made again`() async throws {
        let gate = try await gate()
        #expect(try await gate.remit("a").status == 202)
        gate.clock.advance(seconds: 61)
        #expect(try await gate.claim().isEmpty)
        let delivery = try #require(try await gate.claim().first)
        #expect(delivery.attemptCount == 0)
        #expect(try gate.entries("redecision").map { $0["cause"]?.stringValue } == ["old"])
    }

    @Test func `what may have arrived is not called back from memory, nor forgotten when the hop goes down`()
        async throws
    {
        let gate = try await gate()
        let sent = try await gate.remit("a")
        let first = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            first.message, .ambiguous("reset", mayRepeat: true), retryAt: gate.clock.now())
        // One is asked for, and the other is offered.
        #expect(try await gate.remit("b").status == 202)
        #expect(try await gate.gateway.claim(lane: .general, limit: 1).count == 1)
        await gate.gateway.setHopUsable(false)
        let row = try #require(try gate.store.read { try $0.outbox(first.message) })
        #expect(row.mayHaveArrived && row.attemptedAt != nil)
        let id = try #require(sent["send_id"])
        let cancelled = try await gate.call("payments", "POST", "/v1/sends/\(id)/cancel")
        #expect(cancelled.json["withdrawn"] == [] && cancelled.json["gone"] == ["d_1"])
    }

    @Test func `what may have arrived is gone for whoever cancels it, also while it is offered again`()
        async throws
    {
        let gate = try await gate()
        let sent = try await gate.remit("a")
        let first = try #require(try await gate.claim().first)
        // While the hop is down nothing is offered at once: at the next look the other one comes first.
        await gate.gateway.setHopUsable(false)
        #expect(try await gate.remit("b").status == 202)
        try await gate.gateway.report(
            first.message, .ambiguous("reset", mayRepeat: true),
            retryAt: gate.clock.now().advanced(bySeconds: 1))
        await gate.gateway.setHopUsable(true)
        gate.clock.advance(seconds: 2)
        // One is asked for, and this one offered.
        let other = try await gate.gateway.claim(lane: .general, limit: 1)
        try #require(other.count == 1 && other[0].message != first.message)
        let id = try #require(sent["send_id"])
        let cancelled = try await gate.call("payments", "POST", "/v1/sends/\(id)/cancel")
        #expect(cancelled.json["withdrawn"] == [] && cancelled.json["gone"] == ["d_1"], "\(cancelled.json)")
    }

    @Test func `a backlog goes to the relay in one look, and new messages go from memory again`() async throws
    {
        let gate = try await gate()
        await gate.gateway.setHopUsable(false)
        for number in 0..<60 { #expect(try await gate.remit("r\(number)", to: "u_2").status == 202) }
        await gate.gateway.setHopUsable(true)
        let operations = gate.engine.load.operationCount
        var ids: [MessageID] = []
        for _ in 0..<6 { ids += try await gate.gateway.claim(lane: .general, limit: 10).map(\.message) }
        #expect(Set(ids).count == 60 && ids.count == 60)
        #expect(gate.engine.load.operationCount == operations + 1)
        #expect(try await gate.remit("last", to: "u_2").status == 202)
        #expect(try await gate.gateway.claim(lane: .general, limit: 10).count == 1)
        #expect(gate.engine.load.operationCount == operations + 2)
    }

    @Test func `a backlog is claimed ahead while the messages before it go`() async throws {
        let gate = try await gate()
        await gate.gateway.setHopUsable(false)
        for number in 0..<300 { #expect(try await gate.remit("r\(number)", to: "u_2").status == 202) }
        await gate.gateway.setHopUsable(true)
        let operations = gate.engine.load.operationCount
        var ids: [MessageID] = []
        func claim(_ times: Int) async throws {
            for _ in 0..<times {
                ids += try await gate.gateway.claim(lane: .general, limit: 10).map(\.message)
            }
        }
        // One look takes 128, of which ten go at once. The claim that leaves less than half of the others begins the
        // next look; to settle is an operation, too.
        try await claim(7)
        await gate.settle()
        #expect(gate.engine.load.operationCount == operations + 3)
        // 58 were left, and 70 came.
        try await claim(6)
        #expect(ids.count == 130 && gate.engine.load.operationCount == operations + 3)
        while case let count = ids.count, count < 300 {
            try await claim(1)
            await gate.settle()
        }
        #expect(Set(ids).count == 300 && ids.count == 300)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `a look that takes all that waits makes way for the sends after it in its own batch`()
        async throws
    {
        let gate = try await gate()
        await gate.gateway.setHopUsable(false)
        #expect(try await gate.remit("a").status == 202)
        await gate.gateway.setHopUsable(true)
        _ = try await gate.inOneBatch([
            { gate in
                let claimed = try await gate.claim()
                #expect(claimed.count == 1)
                return nil
            }, { gate in try await gate.remit("b") },
        ])
        let operations = gate.engine.load.operationCount
        #expect(try await gate.claim().count == 1)
        #expect(gate.engine.load.operationCount == operations)
    }

    @Test func `after a crash it goes again under the same id, and its end is not said to be known`()
        async throws
    {
        var environment = EngineEnvironment()
        environment.isDrained = false
        let gate = try await gate(environment, keeping: .files())
        #expect(try await gate.remit("a").status == 202)
        let message = try #require(try await gate.claim().first?.message)
        gate.engine.drain()
        gate.files.close()
        let next = try GatewayHarness(after: gate, keeping: .folder(gate.folder))
        let again = try #require(try await next.claim().first)
        #expect(again.message == message && again.attemptCount == 1)
        try await next.gateway.report(message, .notWritten("down"), retryAt: nil)
        #expect(try next.entries("delivery").last?["result"]?.stringValue == "ambiguous")
    }

    @Test func `offers go by tier, then by callers in turn, then by age`() throws {
        let inFlight = MessagesInFlight()
        func offer(_ number: UInt64, _ tier: Tier, _ caller: String) -> MessageOffer {
            .sample(number, tier, caller)
        }
        inFlight.add([
            offer(1, .promotional, "marketing"), offer(2, .important, "payments"),
            offer(3, .important, "payments"),
            offer(4, .important, "product"), offer(5, .critical, "payments"),
        ])
        func take(_ count: Int) -> [UInt64] { inFlight.take(count, of: .general).map(\.delivery.message.low) }
        #expect(take(3) == [5, 2, 4])
        #expect(take(1) == [3])
        #expect(inFlight.take(9, of: .security).isEmpty)
        #expect(take(9) == [1] && take(9) == [])
    }

    @Test func `what a failed operation offered does not go`() async throws {
        let gate = try await gate()
        try #require(try await gate.remit("a").status == 202)
        let gone = try #require(try await gate.claim().first)
        try await gate.gateway.report(gone.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        await withCheckedContinuation { done in
            gate.engine.submit(
                FailingOperation(
                    body: { step in
                        step.offer(
                            .init(
                                delivery: gone, lane: .general, tier: .important,
                                caller: CallerName("payments"), decidedAt: gone.handedOverAt))
                    }, done: { done.resume() }))
        }
        await gate.settle()
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `what the relay gives back after its person changed is decided again as it comes back`()
        async throws
    {
        let gate = try await gate()
        let promo = try await gate.promo("p", to: "u_1")
        try #require(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
        gate.clock.advance(seconds: 61)
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        async let withdrawn: Void = withdraw(gate)
        while gate.engine.load.queuedCount < 1 { await Task.yield() }
        // What was offered is the relay's until it is given back, which the engine learns after the withdrawal.
        async let claimed = gate.claim()
        while gate.engine.load.queuedCount < 2 { await Task.yield() }
        hold.release.signal()
        try await withdrawn
        #expect(try await claimed.isEmpty)
        #expect(try rows(gate).isEmpty)
        #expect(try gate.entries("redecision").count == 1)
    }

    @Test func `what the hop's end gave back goes once when the hop is there again`() async throws {
        let gate = try await gate()
        #expect(try await gate.remit("a").status == 202)
        await gate.gateway.setHopUsable(false)
        await gate.gateway.setHopUsable(true)
        #expect(try await gate.claim().count == 1)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `so many are offered and no more, and none while the hop is down`() async throws {
        let gate = try await gate()
        for number in 0..<130 { #expect(try await gate.remit("r\(number)", to: "u_2").status == 202) }
        let offered = try rows(gate, "u_2").filter { $0.attemptedAt != nil }
        #expect(offered.count == 128)
        await gate.gateway.setHopUsable(false)
        #expect(try rows(gate, "u_2").allSatisfy { $0.attemptedAt == nil && $0.attemptCount == 0 })
        var ids: Set<MessageID> = []
        while case let batch = try await gate.claim(), !batch.isEmpty { ids.formUnion(batch.map(\.message)) }
        #expect(ids.count == 130)
    }
}

/// Does something and then fails, so that all of it is undone.
private struct FailingOperation: EngineOperation {
    let body: @Sendable (StepContext) throws -> Void
    let done: @Sendable () -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    func perform(in batch: Batch) throws -> Completion {
        try batch.step { step in
            try body(step)
            throw EngineFailure.overloaded
        }
    }
    func refuse(_ failure: EngineFailure) { done() }
}

extension MessageOffer {
    /// A push of the general lane, with a message of this number.
    static func sample(
        _ number: UInt64, _ tier: Tier = .important, _ caller: String = "payments"
    ) -> MessageOffer {
        let now = Instant(milliseconds: 1_795_000_000_000)
        let delivery = Delivery(
            message: MessageID(high: 1, low: number), send: SendID(high: 1, low: number),
            destination: DestinationID("d_1"), channel: .push, platform: .ios, app: "app", token: "t",
            headers: Array("{}".utf8), body: [], expiresAt: now, attemptCount: 0, handedOverAt: now)
        return MessageOffer(
            delivery: delivery, lane: .general, tier: tier, caller: CallerName(caller), decidedAt: now)
    }
}
