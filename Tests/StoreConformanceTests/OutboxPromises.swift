import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import Testing

@Suite struct OutboxPromises {
    /// Every row that is due, security's lane first.
    private func due(
        _ opened: OpenStore, at seconds: Int64, limit: Int = 1000, excluding: Set<MessageID> = []
    ) throws -> [OutboxRecord] {
        try opened.read { store in
            try DeliveryLane.allCases.flatMap {
                try store.dueOutbox(at: .sample(seconds), limit: limit, lane: $0, excluding: excluding)
                    .map { try #require(try store.outbox($0)) }
            }
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a waiting message comes back as it was put, by every way to it`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var held = OutboxRecord.sample(2, send: .sample(7))
        (held.state, held.key, held.attemptedAt, held.body) = (.deferred, nil, nil, [])
        (held.mayHaveArrived, held.isCancelled) = (true, true)
        try opened.write { (transaction) throws in
            transaction.insertOutbox(.sample(1))
            transaction.insertOutbox(held)
        }
        try opened.reopen()
        try opened.read { (store) throws in
            #expect(try store.outbox(MessageID.sample(1)) == .sample(1))
            #expect(try store.outbox(MessageID.sample(2)) == held)
            #expect(try store.outbox(MessageID.sample(3)) == nil)
            #expect(try store.outbox(of: SendID.sample(7)) == [held])
            #expect(try store.outbox(of: SubjectID.sample(1)).count == 2)
            #expect(try store.outbox(of: SubjectID.sample(2)).isEmpty)
        }
    }

    @Test(arguments: StoreUnderTest.all, [3, 400])
    func `a step finds each message that the steps before it left, few or many`(
        _ kind: StoreUnderTest, count: Int
    ) throws {
        let opened = try OpenStore(kind)
        let records = (0..<2 * count).map { OutboxRecord.sample($0) }
        var (postponed, tried) = (records[1], records[count + 1])
        postponed.notBefore = .sample(60)
        (tried.attemptCount, tried.attemptedAt) = (3, .sample(5))
        var left: [OutboxRecord?] = records
        left.replaceSubrange(0...1, with: [nil, postponed])
        left[count + 1] = tried
        try opened.commit([
            { step in for record in records[..<count] { step.insertOutbox(record) } },
            { (step) throws in
                #expect(try records[..<count].map { try step.outbox($0.message) } == Array(records[..<count]))
                #expect(try step.outbox(records[count].message) == nil)
                step.removeOutbox(records[0].message)
                step.postponeOutbox(records[1].message, until: .sample(60))
                // As many writes in one change, the last of which is of a message that it adds.
                for record in records[count...] { step.insertOutbox(record) }
                step.markAttempt(tried.message, at: .sample(5))
            },
            { (step) throws in #expect(try records.map { try step.outbox($0.message) } == left) },
            { (step) throws in #expect(try records.map { try step.outboxHead($0.message) } == left) },
        ])
        #expect(try opened.read { store in try records.map { try store.outbox($0.message) } } == left)
    }

    @Test(arguments: StoreUnderTest.all)
    func `a message that is offered is found by every way, and is due only where it waits after all`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        var records = (1...6).map { OutboxRecord.sample($0, send: .sample($0), subject: .sample(1)) }
        for index in records.indices {
            records[index].body = [UInt8](repeating: UInt8(index), count: 10 * index)
            (records[index].attemptCount, records[index].attemptedAt) = (1, .sample(3))
        }
        (records[1].key, records[1].eventTag, records[1].mayHaveArrived) = (.sample(8), .sample(9), true)
        try opened.write { step in for record in records { step.offerOutbox(record) } }
        #expect(try opened.read { try $0.outboxDepth() } == depth(of: records))
        #expect(try opened.write { try counts($0) } == counts(of: depth(of: records)))
        #expect(try opened.read { try $0.outbox(of: SubjectID.sample(1)) } == records)
        #expect(try opened.read { try $0.outboxCount(of: .sample(1), limit: 9) } == 6)
        #expect(try opened.read { try $0.outboxCount(of: .sample(1), limit: 2) } == 2)
        for record in records {
            #expect(try opened.read { try $0.outbox(record.message) } == record)
            #expect(try opened.write { try $0.outbox(record.message) } == record)
            #expect(try opened.read { try $0.outbox(of: record.send) } == [record])
            #expect(try opened.write { try $0.outboxHead(record.message) }?.expiresAt == record.expiresAt)
        }
        #expect(try due(opened, at: 999).isEmpty)
        #expect(
            try opened.read { store in
                try DeliveryLane.allCases.compactMap { try store.nextOutboxDue(lane: $0, excluding: []) }
            }.isEmpty)
        // One has its result, and three wait: changed, marked as tried, put off.
        try opened.write { $0.removeOutbox(records[0].message) }
        (records[1].notBefore, records[1].attemptedAt) = (.sample(20), nil)
        try opened.write { $0.updateOutbox(records[1]) }
        try opened.write { $0.markAttempt(records[2].message, at: .sample(21)) }
        (records[2].attemptCount, records[2].attemptedAt) = (2, .sample(21))
        try opened.write { $0.postponeOutbox(records[3].message, until: .sample(22)) }
        records[3].notBefore = .sample(22)
        #expect(Set(try due(opened, at: 999)) == Set(records[1...3]))
        #expect(Set(try opened.read { try $0.outbox(of: SubjectID.sample(1)) }) == Set(records[1...]))
        #expect(try opened.write { try counts($0) } == counts(of: depth(of: records[1...])))
        // What a process that ended had offered waits for the next one, as it was written.
        try opened.reopen()
        #expect(Set(try due(opened, at: 999)) == Set(records[1...]))
        #expect(try opened.read { try $0.outboxDepth() } == depth(of: records[1...]))
        #expect(try opened.write { try counts($0) } == counts(of: depth(of: records[1...])))
        for record in records[1...] { try opened.write { $0.removeOutbox(record.message) } }
        #expect(try opened.read { try $0.outboxDepth().rowCount } == 0)
    }

    /// Rows, their bytes, and rows of the one caller, as a step sees them.
    private func counts(_ step: GateMemory) throws -> [Int64] {
        let depth = try step.outboxDepth(of: CallerName("payments"))
        return [Int64(depth.rowCount), depth.byteCount, Int64(depth.rowCountOfCaller)]
    }

    private func counts(of depth: OutboxDepth) -> [Int64] {
        [
            Int64(depth.rowCount), depth.byteCount,
            Int64(depth.rowCountByCaller[CallerName("payments"), default: 0]),
        ]
    }

    private func depth(of rows: some Collection<OutboxRecord>) -> OutboxDepth {
        OutboxDepth(
            rowCount: rows.count, securityRowCount: rows.count { $0.category == .security },
            byteCount: rows.reduce(0) { $0 + Int64($1.headers.count + $1.body.count + $1.facts.count) },
            rowCountByCaller: Dictionary(rows.map { ($0.request.caller, 1) }, uniquingKeysWith: +))
    }

    @Test(arguments: StoreUnderTest.all)
    func `what undid its commit is offered as before`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var record = OutboxRecord.sample(1)
        try opened.write { $0.offerOutbox(record) }
        let changes: [(GateMemory) throws -> Void] = [
            { $0.removeOutbox(.sample(1)) }, { $0.updateOutbox(record) },
            { $0.postponeOutbox(.sample(1), until: .sample(9)) }, { $0.eraseSubject(record.subject) },
            {
                $0.offerOutbox(.sample(3))
                $0.removeOutbox(.sample(3))
            },
        ]
        for change in changes {
            let refused = try refusedChange {
                try opened.commit([{ $0.offerOutbox(.sample(2)) }, change, { try $0.cannotBeWritten() }])
            }
            #expect(refused == 2)
            #expect(try opened.write { try $0.outbox(MessageID.sample(2)) } == nil)
            #expect(try opened.write { try $0.outboxHead(.sample(3)) } == nil)
            #expect(try opened.write { try $0.outboxHead(.sample(1)) } != nil)
            #expect(try due(opened, at: 999).isEmpty)
            #expect(try opened.write { try counts($0) } == counts(of: depth(of: [record])))
        }
        record.notBefore = .sample(7)
        try opened.write { $0.updateOutbox(record) }
        #expect(try due(opened, at: 999) == [record])
    }

    @Test(arguments: StoreUnderTest.all)
    func `a message id can be taken once`(_ kind: StoreUnderTest) throws {
        let ways: [(GateMemory, OutboxRecord) throws -> Void] = [
            { $0.insertOutbox($1) }, { $0.offerOutbox($1) },
        ]
        for first in ways {
            for second in ways {
                let opened = try OpenStore(kind)
                try opened.write { try first($0, .sample(1)) }
                let refused = try refusedChange {
                    try opened.commit([
                        { $0.insertOutbox(.sample(2)) }, { try second($0, .sample(1)) },
                    ])
                }
                #expect(refused == 1)
                #expect(try opened.read { try $0.outboxDepth().rowCount } == 1)
            }
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `an attempt is marked before it is made`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var record = OutboxRecord.sample(1)
        (record.attemptCount, record.attemptedAt) = (0, nil)
        try opened.write { $0.insertOutbox(record) }
        try opened.write { $0.markAttempt(.sample(1), at: .sample(5)) }
        try opened.reopen()
        let marked = try #require(try opened.read { try $0.outbox(MessageID.sample(1)) })
        #expect(marked.attemptCount == 1 && marked.attemptedAt == .sample(5))
        // What was withdrawn meanwhile must not be handed over.
        try opened.write { $0.removeOutbox(.sample(1)) }
        #expect(throws: (any Error).self) {
            try opened.write { $0.markAttempt(.sample(1), at: .sample(6)) }
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a message put off waits and is otherwise as it was`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            transaction.insertOutbox(.sample(1, notBefore: .sample(1)))
            transaction.postponeOutbox(.sample(1), until: .sample(60))
        }
        try opened.reopen()
        #expect(try due(opened, at: 59).isEmpty)
        #expect(try due(opened, at: 60) == [.sample(1, notBefore: .sample(60))])
        #expect(throws: (any Error).self) {
            try opened.write { $0.postponeOutbox(.sample(2), until: .sample(60)) }
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `what waits for one person is counted as far as asked`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for number in 1...3 { transaction.insertOutbox(.sample(number)) }
            #expect(try transaction.outboxCount(of: .sample(1), limit: 9) == 3)
            #expect(try transaction.outboxCount(of: .sample(2), limit: 9) == 0)
        }
        try opened.read { (store) throws in
            #expect(try store.outboxCount(of: .sample(1), limit: 9) == 3)
            #expect(try store.outboxCount(of: .sample(1), limit: 2) == 2)
            #expect(try store.outboxCount(of: .sample(2), limit: 9) == 0)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `replacing a message changes everything about it but its id`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var changed = OutboxRecord.sample(
            1, caller: "fraud", category: .security, tier: .critical, notBefore: .sample(99),
            body: [UInt8](repeating: 3, count: 4000))
        changed.state = .deferred
        try opened.write { (transaction) throws in
            transaction.insertOutbox(.sample(1))
            transaction.updateOutbox(changed)
        }
        let depth = try opened.read { try $0.outboxDepth() }
        #expect(depth.rowCount == 1 && depth.securityRowCount == 1)
        #expect(depth.rowCountByCaller == [CallerName("fraud"): 1])
        #expect(try opened.read { try $0.outbox(MessageID.sample(1)) } == changed)
        #expect(throws: (any Error).self) { try opened.write { $0.updateOutbox(.sample(2)) } }
    }

    @Test(arguments: StoreUnderTest.all)
    func `only what is due goes, and the next due time is told`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        func next(_ lane: DeliveryLane = .general, excluding: Set<MessageID> = []) throws -> Instant? {
            try opened.read { try $0.nextOutboxDue(lane: lane, excluding: excluding) }
        }
        #expect(try next() == nil)
        try opened.write { transaction in
            transaction.insertOutbox(.sample(1, notBefore: .sample(30)))
            transaction.insertOutbox(
                .sample(2, caller: "marketing", tier: .promotional, notBefore: .sample(20)))
            transaction.insertOutbox(.sample(3, notBefore: .sample(40)))
        }
        #expect(try due(opened, at: 19).isEmpty)
        #expect(try due(opened, at: 20).map(\.message) == [.sample(2)])
        #expect(try due(opened, at: 30).map(\.message) == [.sample(1), .sample(2)])
        #expect(try due(opened, at: 99).map(\.message) == [.sample(1), .sample(3), .sample(2)])
        #expect(try next() == .sample(20))
        #expect(try next(.security) == nil)
        // What is in flight is no caller's next turn.
        #expect(try next(excluding: [.sample(2)]) == .sample(30))
        #expect(try next(excluding: [.sample(1), .sample(2), .sample(3)]) == nil)
        try opened.write { $0.removeOutbox(.sample(2)) }
        #expect(try next() == .sample(30))
    }

    @Test(arguments: StoreUnderTest.all)
    func `security has a lane of its own, and in a lane the tiers go first, then age`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        try opened.write { transaction in
            transaction.insertOutbox(
                .sample(1, category: .marketing, tier: .promotional, notBefore: .sample(0)))
            transaction.insertOutbox(.sample(2, tier: .informational, notBefore: .sample(1)))
            transaction.insertOutbox(.sample(3, tier: .important, notBefore: .sample(3)))
            transaction.insertOutbox(.sample(4, tier: .important, notBefore: .sample(2)))
            transaction.insertOutbox(.sample(5, tier: .critical, notBefore: .sample(4)))
            transaction.insertOutbox(
                .sample(6, category: .security, tier: .informational, notBefore: .sample(5)))
            transaction.insertOutbox(
                .sample(7, category: .security, tier: .critical, notBefore: .sample(6)))
        }
        func order(_ lane: DeliveryLane, limit: Int) throws -> [MessageID] {
            try opened.read {
                try $0.dueOutbox(at: .sample(9), limit: limit, lane: lane, excluding: [])
            }
        }
        #expect(try order(.security, limit: 9) == [.sample(7), .sample(6)])
        #expect(try order(.general, limit: 9) == [5, 4, 3, 2, 1].map { .sample($0) })
        #expect(try order(.general, limit: 2) == [.sample(5), .sample(4)])
        #expect(try order(.general, limit: 0).isEmpty)
    }

    @Test(arguments: StoreUnderTest.all)
    func `a flood of one caller does not hold up another of the same tier`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { transaction in
            for number in 1...300 {
                transaction.insertOutbox(.sample(number, caller: "marketing", notBefore: .sample(5)))
            }
            for number in 301...303 {
                transaction.insertOutbox(.sample(number, caller: "payments", notBefore: .sample(0)))
            }
            transaction.insertOutbox(.sample(400, caller: "support", notBefore: .sample(6)))
        }
        let first = try due(opened, at: 9, limit: 8)
        #expect(
            first.map(\.request.caller.text) == [
                "payments", "marketing", "support", "payments", "marketing", "payments", "marketing",
                "marketing",
            ])
        // And each caller's own go in order of age.
        #expect(
            first.filter { $0.request.caller.text == "payments" }.map(\.message) == [
                .sample(301), .sample(302), .sample(303),
            ])
        #expect(Set(try due(opened, at: 9).map(\.message)).count == 304)
    }

    @Test(arguments: StoreUnderTest.all)
    func `what is in flight is passed over, however much it is`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { transaction in
            for number in 1...2000 {
                transaction.insertOutbox(.sample(number, notBefore: .sample(Int64(number))))
            }
        }
        let inFlight = Set((1...1990).map { MessageID.sample($0) })
        let next = try due(opened, at: 9_999, limit: 5, excluding: inFlight)
        #expect(next.map(\.message) == (1991...1995).map { .sample($0) })
        let everything = Set((1...2000).map { MessageID.sample($0) })
        #expect(try due(opened, at: 9_999, limit: 5, excluding: everything).isEmpty)
    }

    @Test(arguments: StoreUnderTest.all)
    func `the kept depth equals a count of the rows after any history`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var generator = SeededNumbers(seed: 20_260_302)
        var waiting: [Int: OutboxRecord] = [:]
        var offered: Set<Int> = []
        for round in 0..<30 {
            let before = (waiting, offered)
            let fails = round % 7 == 3
            var steps: [(GateMemory) throws -> Void] = []
            for _ in 0..<20 {
                let number = Int.random(in: 1...60, using: &generator)
                let record = OutboxRecord.sample(
                    number, subject: .sample(number % 5), caller: "caller-\(number % 4)",
                    category: Category.allCases[Int.random(in: 0..<4, using: &generator)],
                    tier: Tier.allCases[Int.random(in: 0..<4, using: &generator)],
                    body: [UInt8](repeating: 1, count: Int.random(in: 0..<200, using: &generator)))
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<3 where waiting[number] == nil:
                    steps.append { $0.insertOutbox(record) }
                    waiting[number] = record
                case 3..<5 where waiting[number] == nil:
                    steps.append { $0.offerOutbox(record) }
                    waiting[number] = record
                    offered.insert(number)
                case 5..<7 where waiting[number] != nil:
                    steps.append { $0.updateOutbox(record) }
                    waiting[number] = record
                    offered.remove(number)
                case 8 where round % 10 == 9:
                    steps.append { $0.eraseSubject(.sample(number % 5)) }
                    waiting = waiting.filter { $0.key % 5 != number % 5 }
                    offered = offered.filter { $0 % 5 != number % 5 }
                default:
                    steps.append { $0.removeOutbox(.sample(number)) }
                    waiting[number] = nil
                    offered.remove(number)
                }
            }
            if fails { steps.append { try $0.cannotBeWritten() } }
            #expect(try refusedChange { try opened.commit(steps) } == (fails ? 20 : nil))
            if fails { (waiting, offered) = before }
            if round % 10 == 5 {
                try opened.reopen()
                offered = []
            }
            let rows = waiting.values
            #expect(try opened.read { try $0.outboxDepth() } == depth(of: rows))
            #expect(try opened.write { try counts($0) } == counts(of: depth(of: rows)))
            #expect(
                Set(try due(opened, at: 9)) == Set(waiting.filter { !offered.contains($0.key) }.values))
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a step finds a message as those before it in the batch left it`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let (row, again) = (OutboxRecord.sample(1), OutboxRecord.sample(1, body: [1]))
        let message = row.message
        var attempted = row
        attempted.attemptCount += 1
        attempted.attemptedAt = .sample(9)
        func expect(_ found: OutboxRecord?, _ memory: GateMemory) throws {
            #expect(try memory.outbox(message) == found)
            #expect(try memory.outboxHead(message) == found)
            #expect(try memory.outbox(of: row.send).first == found)
            #expect(try memory.outbox(of: row.subject).first == found)
        }
        try opened.commit([
            { memory in
                memory.insertOutbox(row)
                memory.appendEvent(.sample(1))
            },
            { memory in
                try expect(row, memory)
                #expect(try memory.events(of: .sample(1)) == [.sample(1)])
                memory.markAttempt(message, at: .sample(9))
            },
            { memory in
                try expect(attempted, memory)
                // Composed again, a message has the id that it had.
                memory.removeOutbox(message)
                memory.insertOutbox(again)
            },
            { memory in
                try expect(again, memory)
                memory.removeOutbox(message)
            },
            { memory in
                try expect(nil, memory)
                // What the batch takes out still counts.
                #expect(try memory.outboxCount(of: row.subject, limit: 9) == 2)
            },
        ])
        #expect(try opened.read { try $0.outbox(message) } == nil)
    }
}
