import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import GateSteps

@Suite struct TransactionPromises {
    @Test(arguments: StoreUnderTest.all)
    func `what a write returns from is there after a restart`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { $0.setSetting("policy", to: "one") }
        try opened.reopen()
        #expect(try opened.read { try $0.setting("policy") } == "one")
    }

    @Test(arguments: StoreUnderTest.all)
    func `a write that throws leaves nothing and rethrows`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { $0.setSetting("policy", to: "before") }
        #expect(throws: Interrupted()) {
            try opened.write { (transaction) throws in
                let subject = try transaction.register("u_1")
                transaction.setSetting("policy", to: "after")
                transaction.insertSend(.sample(1, subject: subject))
                transaction.insertOutbox(.sample(1, subject: subject))
                try transaction.appendEntry(.sample(0))
                transaction.appendEvent(.sample(1))
                throw Interrupted()
            }
        }
        func expectNothing() throws {
            try opened.read { (store) throws in
                #expect(try store.setting("policy") == "before")
                #expect(try store.subject(of: UserID("u_1")) == nil)
                #expect(try store.recipient(.sample(1)) == nil)
                #expect(try store.send(.sample(1)) == nil)
                #expect(try store.entryCount() == 0)
                #expect(try store.outboxDepth().rowCount == 0)
                #expect(try store.events(of: CallerName("payments"), after: 0, limit: 9).isEmpty)
            }
        }
        try expectNothing()
        // The counters kept beside the rows forgot it as well: the same numbers are free again.
        try opened.write { try $0.appendEntry(.sample(0)) }
        #expect(try opened.read { try $0.entryCount() } == 1)
    }

    @Test(arguments: StoreUnderTest.all)
    func `a body sees its own writes`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            let subject = try transaction.register("u_1")
            #expect(try transaction.subject(of: UserID("u_1"))?.id == subject)
            #expect(try transaction.recipient(subject) == .sample(subject))
            transaction.insertSend(.sample(1, subject: subject))
            #expect(try transaction.send(.sample(1)) == .sample(1, subject: subject))
            transaction.insertOutbox(.sample(1, subject: subject))
            #expect(try transaction.outboxDepth(of: CallerName("payments")).rowCount == 1)
            #expect(try transaction.outbox(of: subject) == [.sample(1, subject: subject)])
            try transaction.appendEntry(.sample(0))
            #expect(transaction.upcomingIndex == 1)
            #expect(transaction.newestEntryTime() == .sample())
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a reader does not see what is not committed`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            transaction.setSetting("policy", to: "new")
            _ = try transaction.register("u_1")
            try opened.read { (store) throws in
                #expect(try store.setting("policy") == nil)
                #expect(try store.subject(of: UserID("u_1")) == nil)
            }
        }
        #expect(try opened.read { try $0.setting("policy") } == "new")
    }

    @Test(arguments: StoreUnderTest.all)
    func `a reader keeps its snapshot while a write commits beside it`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { $0.setSetting("policy", to: "old") }
        try opened.read { (store) throws in
            #expect(try store.setting("policy") == "old")
            try opened.write { (transaction) throws in
                transaction.setSetting("policy", to: "new")
                try transaction.appendEntry(.sample(0))
            }
            #expect(try store.setting("policy") == "old")
            #expect(try store.entryCount() == 0)
        }
        #expect(try opened.read { try $0.setting("policy") } == "new")
    }

    @Test(arguments: StoreUnderTest.all)
    func `a commit writes all its changes, in their order, or none and names the one that cannot be written`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        func register(_ memory: GateMemory) throws {
            let subject = try memory.register("u_1")
            memory.insertSend(.sample(1, subject: subject))
            try memory.appendEntry(.sample(0))
        }
        func send(_ memory: GateMemory) throws {
            // The step before it is seen before anything is written.
            let subject = try #require(try memory.subject(of: UserID("u_1"))).id
            memory.insertSend(.sample(3, subject: subject, caller: "nobody-else"))
            try memory.appendEntry(.sample(1))
        }
        func fail(_ memory: GateMemory) throws {
            _ = try memory.makeSubject(for: UserID("u_2"), subject: .sample(2))
            memory.insertSend(.sample(2, subject: .sample(1), caller: "nobody-else"))
            memory.insertOutbox(.sample(2, subject: .sample(1), caller: "nobody-else"))
            memory.appendEvent(.sample(2))
            try memory.cannotBeWritten()
        }
        #expect(try refusedChange { try opened.commit([register, fail, send]) } == 1)
        try opened.read { (store) throws in
            #expect(try store.subject(of: UserID("u_1")) == nil)
            #expect(try store.subject(of: UserID("u_2")) == nil)
            #expect(try store.send(.sample(1)) == nil)
            #expect(try store.outboxDepth().rowCount == 0)
            #expect(try store.entryCount() == 0)
        }
        try opened.commit([register, send])
        #expect(try opened.read { try $0.entries(from: 0, limit: 9) } == [.sample(0), .sample(1)])
        try opened.reopen()
        try opened.read { (store) throws in
            #expect(try store.send(.sample(1)) != nil)
            #expect(try store.send(.sample(2)) == nil)
            #expect(try store.send(.sample(3))?.caller == CallerName("nobody-else"))
            #expect(try store.subject(of: UserID("u_1")) != nil)
            #expect(try store.subject(of: UserID("u_2")) == nil)
            #expect(try store.entryCount() == 2)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a forward of no send, or of one that is not known, cannot be written`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        let type = TypeID("offer.weekly")
        try opened.write { memory in
            _ = try memory.makeSubject(for: UserID("u_1"), subject: .sample(1))
            memory.insertSend(.sample(1, subject: .sample(1)))
        }
        for send in [nil, SendID.sample(2), .sample(1)] {
            let change = Change()
            change.forwards.append(
                (.sample(1), ForwardRecord(at: .sample(9), type: type, category: .marketing, send: send)))
            let refused = try refusedChange { try opened.store.commit([Change(), change]) }
            #expect(refused == (send == .sample(1) ? nil : 1), "\(String(describing: send))")
        }
        let counted = try opened.read { try $0.forwards(of: .sample(1), since: .sample(), limit: 9) }
        #expect(counted.map(\.send) == [.sample(1)])
    }

    @Test(arguments: StoreUnderTest.all)
    func `an idempotency key can be taken once`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { $0.insertSend(.sample(1)) }
        var again = SendRecord.sample(2)
        again.idHash = SendRecord.sample(1).idHash
        #expect(throws: (any Error).self) { try opened.write { $0.insertSend(again) } }
        // The same id of another caller is another key.
        again.caller = CallerName("marketing")
        try opened.write { $0.insertSend(again) }
        try opened.read { (store) throws in
            let hash = SendRecord.sample(1).idHash
            #expect(try store.send(caller: CallerName("payments"), idHash: hash)?.id == .sample(1))
            #expect(try store.send(caller: CallerName("marketing"), idHash: hash)?.id == .sample(2))
            #expect(try store.send(caller: CallerName("stranger"), idHash: hash) == nil)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `an entry that is not the next is refused, and nothing of its commit happened`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        try opened.write { try $0.appendEntry(.sample(0)) }
        // Once more, and past a gap; alone, and behind one that fits.
        for indexes in [[0], [2], [1, 1], [1, 3]] {
            let changes = indexes.map { index in
                let change = Change()
                change.entries.append(.sample(UInt64(index)))
                change.settings.set("policy", to: "after")
                return change
            }
            #expect(throws: StoreError.self, "\(indexes)") { try opened.store.commit(changes) }
            #expect(try opened.read { try $0.entries(from: 0, limit: 9) } == [.sample(0)])
            #expect(try opened.read { try $0.setting("policy") } == nil)
        }
        try opened.write { try $0.appendEntry(.sample(1)) }
        #expect(try opened.read { try $0.entries(from: 0, limit: 9) } == [.sample(0), .sample(1)])
    }

    @Test(arguments: StoreUnderTest.all)
    func `readers from many threads see whole commits of the one writer`(_ kind: StoreUnderTest) async throws
    {
        let opened = try OpenStore(kind)
        let store = opened.store
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 0..<40 {
                    try store.write { memory in
                        try memory.appendEntry(.sample(UInt64(number)))
                        memory.setSetting("count", to: "\(number + 1)")
                    }
                    #expect(try store.read { try $0.setting("count") } == "\(number + 1)")
                }
            }
            for _ in 0..<7 {
                group.addTask {
                    var seen = 0
                    for _ in 0..<40 {
                        let (entries, count) = try store.read {
                            (try $0.entries(from: 0, limit: 99), try $0.setting("count") ?? "0")
                        }
                        #expect(entries.map(\.index) == Array(0..<UInt64(entries.count)))
                        #expect(Int(count) == entries.count && entries.count >= seen)
                        seen = entries.count
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try opened.read { try $0.entryCount() } == 40)
    }

    /// A store looks no further in a change of sends alone.
    @Test func `a change with anything but sends in it is not taken for one of sends alone`() throws {
        let subject = SubjectID.sample(1)
        let ofSends: [String: (Change) throws -> Void] = [
            "entries": { $0.entries.append(.sample(0)) },
            "sends": { $0.sends.append(.sample(1)) },
            "forwards": {
                let record = ForwardRecord(
                    at: .sample(), type: TypeID("offer.weekly"), category: .marketing, send: nil)
                $0.forwards.append((subject, record))
            },
            "messages": { $0.messages.append(.remove(.sample(1))) },
            "events": { $0.events.append(.sample(1)) },
            // Goes with an entry.
            "clock": { $0.clock = ClockReading(wall: .sample(), uptime: 0, boot: nil) },
            // For the engine.
            "effects": { $0.effects.notices.append(.alarm("one")) },
        ]
        let others: [String: (Change) throws -> Void] = [
            "newSubjects": {
                let key = try SecretBytes.random(byteCount: Subject.tagKeyByteCount)
                $0.newSubjects.append((UserID("u_1"), Subject(id: subject, tagKey: key)))
            },
            "states": { $0.states.set(subject, to: .init(before: nil, after: RecipientState(subject))) },
            "consents": { $0.consents.append(.sample(subject)) },
            "choices": { $0.choices.append((.sample(subject), 0)) },
            "links": { $0.links.append(.sample(1, subject: subject)) },
            "replies": {
                let key = RequestKey(caller: CallerName("replies"), idHash: [1])
                $0.replies.append(
                    ReplyRecord(
                        key: key, contentMAC: [], entryIndex: 0, effect: .notAWithdrawal, at: .sample()))
            },
            "dedupe": { $0.dedupe.set(SubjectTag(.sample(1), of: subject), to: nil) },
            "duties": { $0.duties.append(.remove(SubjectTag(.sample(1), of: subject))) },
            "settings": { $0.settings.set("policy", to: nil) },
            "erased": { $0.erased.append(subject) },
            "publishedSize": { $0.publishedSize = 0 },
            "prunedBefore": { $0.prunedBefore = .sample() },
            "dataKey": { $0.dataKey = "one" },
            "resealedRowCountMax": { $0.resealedRowCountMax = 0 },
        ]
        for (field, fill) in ofSends {
            let change = Change()
            try fill(change)
            #expect(change.isOfSendsAlone, "\(field)")
            #expect(change.isEmpty == ["clock", "effects"].contains(field), "\(field)")
        }
        for (field, fill) in others {
            let change = Change()
            try fill(change)
            #expect(!change.isOfSendsAlone && !change.isEmpty, "\(field)")
        }
        // What `written` lists is in `messages`.
        let fields = Mirror(reflecting: Change()).children.compactMap(\.label).filter { $0 != "written" }
        #expect(fields.sorted() == (Array(ofSends.keys) + others.keys).sorted())
    }
}
