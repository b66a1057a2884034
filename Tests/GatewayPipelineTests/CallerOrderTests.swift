import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import SQLiteStore
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// What one caller asks for without waiting for answers happens in the order it was asked.
@Suite struct CallerOrderTests {
    private struct Ask {
        var method: String
        var target: String
        var body: JSONObject?
    }

    /// Asks for everything before the engine does any of it, as one connection that pipelines.
    ///
    /// - Returns: The answers, in the order of the asks.
    private func together(_ gate: GatewayHarness, as caller: String, _ asks: [Ask]) async throws
        -> [Answer]
    {
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await Task.detached { hold.entered.wait() }.value
        let replies = Mutex<[Int: Answer]>([:])
        for (number, ask) in asks.enumerated() {
            let peer = Peer(
                credentials: PeerCredentials(
                    userID: gate.users[caller]!, groupID: 100, processID: 1, supplementaryGroups: []),
                boundCaller: nil, listener: 0)
            let request = WireRequest(
                kind: .single, method: ask.method, target: ask.target,
                headers: ask.body == nil ? [] : [("content-type", "application/json")],
                body: ask.body.map { CanonicalJSON.write(.object($0)) } ?? [])
            gate.gateway.handle(request, from: peer) { reply in replies.withLock { $0[number] = reply } }
        }
        hold.release.signal()
        await gate.settle()
        // An erasure is answered by a reader thread, after the mapping is gone.
        let late = asks.indices.filter { index in replies.withLock { $0[index] == nil } }
        #expect(late.allSatisfy { asks[$0].method == "DELETE" }, "\(late)")
        return replies.withLock { answered in asks.indices.compactMap { answered[$0] } }
    }

    @Test func `a switch that is set off, on and off again in one write is off`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let asks = ["user_off", "user_on", "user_off"].map { state in
            Ask(
                method: "PUT", target: "/v1/recipients/u_1/preferences/transactional",
                body: ["channel": "push", "state": .string(state), "source": "in_app_settings"])
        }
        let replies = try await together(gate, as: "product", asks)
        #expect(replies.map(\.status) == [200, 200, 200])
        #expect(
            try changes(in: gate).filter { $0.hasPrefix("preference") }
                == ["preference user_off", "preference user_on", "preference user_off"])
        let stored = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        #expect("\(stored.json)".contains("user_off"), "\(stored.json)")
    }

    @Test
    func `a consent and its withdrawal in one write are both there, and so are a person and their erasure`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let given = try await together(
            gate, as: "product",
            [
                Ask(
                    method: "POST", target: "/v1/recipients/u_1/consents",
                    body: gate.consentBody("c_1")),
                Ask(method: "POST", target: "/v1/recipients/u_1/consents/c_1/withdraw"),
            ])
        #expect(
            given.map(\.status) == [200, 200], "\(given.map { String(decoding: $0.body, as: UTF8.self) })")
        #expect(
            try changes(in: gate).filter { $0.hasPrefix("consent") } == [
                "consent given", "consent withdrawn",
            ])

        let forgotten = try await together(
            gate, as: "product",
            [
                Ask(
                    method: "PUT", target: "/v1/recipients/u_2",
                    body: [
                        "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                    ]),
                Ask(method: "DELETE", target: "/v1/recipients/u_2"),
            ])
        #expect(forgotten[0].status == 200)
        #expect(try changes(in: gate).suffix(2) == ["recipient", "erasure"])
    }

    /// The entries so far, by kind and by the state they set.
    private func changes(in gate: GatewayHarness) throws -> [String] {
        try gate.store.read { try $0.entries(from: 0, limit: 100) }.map { entry in
            let members = try #require(try CanonicalJSON.read(entry.bytes).objectValue)
            return [members["kind"], members["state"]].compactMap { $0?.stringValue }.joined(separator: " ")
        }
    }

    /// An operation of a caller, told apart by its number.
    private struct Numbered: EngineOperation {
        let number: Int
        let caller: CallerName?
        let lane: EngineLane
        let order: CallerOrder
        func perform(in batch: Batch) throws -> Completion { { _ in } }
        func refuse(_ failure: EngineFailure) {}

        /// Whether the other is the same caller's and has to come before it.
        func comesAfter(_ other: Numbered) -> Bool {
            guard number > other.number, caller != nil, caller == other.caller else { return false }
            return switch (other.order, order) {
            case (.free, _), (_, .free), (.send, .send): false
            case (.change(nil), _), (_, .change(nil)): true
            case (.change(let changed), .send(let user)): changed == user
            case (.send(let sent), .change(let user)): sent == user
            case (.change(let changed), .change(let user)): changed == user
            }
        }
    }

    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `nothing overtakes what its caller changed before, and else security goes first`(seed: UInt64) throws
    {
        var random = SeededNumbers(seed: seed)
        let queue = OperationQueue(limits: EngineLimits())
        let users: [UserID] = ["u_1", "u_2"].map { UserID($0) }
        let asked = (0..<40).map { number in
            let user = users.randomElement(using: &random)!
            let orders: [CallerOrder] = [.free, .send(user), .change(user), .change(nil)]
            return Numbered(
                number: number,
                caller: ["one", "two", nil].randomElement(using: &random)!.map { CallerName($0) },
                lane: Bool.random(using: &random) ? .security : .general,
                order: orders.randomElement(using: &random)!)
        }
        for operation in asked { #expect(queue.append(operation) == nil) }
        var taken: [Numbered] = []
        while taken.count < asked.count {
            let batch = queue.take(countMax: Int.random(in: 1...12, using: &random))
            taken += try batch.map { try #require($0 as? Numbered) }
        }

        let place = Dictionary(uniqueKeysWithValues: taken.enumerated().map { ($1.number, $0) })
        for later in asked {
            for earlier in asked where later.comesAfter(earlier) {
                // Two changes that go first together are in security's lane both.
                #expect(place[earlier.number]! < place[later.number]!, "\(earlier), \(later)")
            }
        }
        // Who waits is in the general lane, or comes after another that waits.
        var waiting: Set<Int> = []
        for operation in asked
        where operation.lane == .general
            || asked.contains(where: { waiting.contains($0.number) && operation.comesAfter($0) })
        {
            waiting.insert(operation.number)
        }
        let expected =
            asked.filter { !waiting.contains($0.number) } + asked.filter { waiting.contains($0.number) }
        #expect(taken.map(\.number) == expected.map(\.number))
    }

    @Test func `what was taken holds up nothing`() throws {
        let queue = OperationQueue(limits: EngineLimits())
        let user = UserID("u_1")
        func operation(_ number: Int, _ lane: EngineLane, _ order: CallerOrder) -> Numbered {
            Numbered(number: number, caller: CallerName("one"), lane: lane, order: order)
        }
        for round in 0..<3 {
            #expect(queue.append(operation(0, .general, .change(user))) == nil)
            #expect(queue.take(countMax: 1).count == 1, "round \(round)")
            #expect(queue.append(operation(1, .general, .free)) == nil)
            #expect(queue.append(operation(2, .security, .change(user))) == nil)
            let numbers = queue.take(countMax: 2).compactMap { ($0 as? Numbered)?.number }
            #expect(numbers == [2, 1], "round \(round)")
            // The same where something is left.
            #expect(queue.append(operation(3, .general, .change(user))) == nil)
            #expect(queue.append(operation(4, .general, .free)) == nil)
            #expect(queue.take(countMax: 1).count == 1, "round \(round)")
            #expect(queue.append(operation(5, .security, .change(user))) == nil)
            let rest = queue.take(countMax: 2).compactMap { ($0 as? Numbered)?.number }
            #expect(rest == [5, 4], "round \(round)")
        }
    }

    @Test func `what was taken makes room for its caller, whether something is left or not`() throws {
        var limits = EngineLimits()
        limits.queuedOperationCountPerCallerMax = 2
        let queue = OperationQueue(limits: limits)
        let operation = Numbered(number: 0, caller: CallerName("one"), lane: .general, order: .free)
        for taken in [1, 2, 1] {
            while queue.count < 2 { #expect(queue.append(operation) == nil) }
            #expect(queue.append(operation) == .overloaded)
            #expect(queue.take(countMax: taken).count == taken)
        }
    }
}
