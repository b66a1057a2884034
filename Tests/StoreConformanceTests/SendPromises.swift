@testable import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import Testing

@Suite struct SendPromises {
    private let payments = CallerName("payments")
    private let sent = TypeID("transaction.remittance_sent")

    @Test(arguments: StoreUnderTest.all)
    func `a send is found by its id and by its caller's id`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var unknown = SendRecord.sample(2)
        (unknown.category, unknown.destinationNames) = (nil, [:])
        // Two callers may choose the same id.
        var anothers = SendRecord.sample(4, subject: .sample(2))
        (anothers.caller, anothers.idHash) = (CallerName("marketing"), SendRecord.sample(1).idHash)
        try opened.write { (transaction) throws in
            transaction.insertSend(.sample(1, subject: .sample(1)))
            transaction.insertSend(unknown)
            transaction.insertSend(anothers)
        }
        try opened.reopen()
        try opened.read { (store) throws in
            let expected = SendRecord.sample(1, subject: .sample(1))
            #expect(try store.send(.sample(1)) == expected)
            #expect(try store.send(caller: payments, idHash: expected.idHash) == expected)
            #expect(try store.send(caller: anothers.caller, idHash: expected.idHash) == anothers)
            #expect(try store.send(caller: CallerName("product"), idHash: expected.idHash) == nil)
            #expect(try store.send(.sample(2)) == unknown)
            #expect(try store.send(.sample(3)) == nil)
        }
    }

    @Test(arguments: StoreUnderTest.all, [1, 2, 7, 40])
    func `requests that are looked for together are found as each by itself`(
        _ kind: StoreUnderTest, count: Int
    ) throws {
        let opened = try OpenStore(kind)
        var stored = stride(from: 1, through: count, by: 3).map { SendRecord.sample($0) }
        var anothers = SendRecord.sample(1_000, caller: "marketing")
        anothers.idHash = SendRecord.sample(2).idHash
        stored.append(anothers)
        try opened.write { (transaction) throws in
            for send in stored { transaction.insertSend(send) }
        }
        // The last has sent nothing yet.
        let requests = [payments, anothers.caller, CallerName("product")].flatMap { caller in
            (1...count).map { RequestKey(caller: caller, idHash: SendRecord.sample($0).idHash) }
        }
        var asks = requests.map { Ask.newSend($0, to: UserID("u_1"), countedSeconds: nil) }
        asks.insert(.outboxDepth, at: 1)
        let memory = GateMemory()
        try opened.store.load(asks, into: memory)
        // In the order of the asks, and in any other.
        for request in requests + requests.reversed() {
            let expected = stored.first { $0.caller == request.caller && $0.idHash == request.idHash }
            #expect(try memory.send(caller: request.caller, idHash: request.idHash) == expected)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `the sends of a person come newest first and no more than asked`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for number in 1...5 {
                transaction.insertSend(.sample(number, subject: .sample(1), at: .sample(Int64(number))))
            }
            transaction.insertSend(.sample(6, subject: .sample(2)))
            transaction.insertSend(.sample(7))
        }
        try opened.read { (store) throws in
            #expect(
                try store.sends(of: .sample(1), before: nil, limit: 3).map(\.id) == [
                    .sample(5), .sample(4), .sample(3),
                ])
            #expect(try store.sends(of: .sample(1), before: nil, limit: 99).count == 5)
            #expect(try store.sends(of: .sample(9), before: nil, limit: 99).isEmpty)
            // A page begins where the one before it ended.
            #expect(
                try store.sends(of: .sample(1), before: .sample(4), limit: 2).map(\.id) == [
                    .sample(3), .sample(2),
                ])
            #expect(try store.sends(of: .sample(1), before: .sample(1), limit: 2).isEmpty)
            #expect(try store.sends(of: .sample(9), before: .sample(4), limit: 2).isEmpty)
            #expect(try store.sends(of: .sample(1), before: .sample(99), limit: 2).isEmpty)
            #expect(try store.sends(of: .sample(1), before: nil, limit: 0).isEmpty)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `forwards in shadow are counted apart, at once or later`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let (subject, offer) = (SubjectID.sample(1), TypeID("promo.offer"))
        try opened.write { (transaction) throws in
            for number in 1...4 {
                var send = SendRecord.sample(number, subject: subject)
                send.category = .marketing
                if number > 2 { send.idHash = SendRecord.shadowIDHash(send.idHash) }
                transaction.insertSend(send)
                // The second of each counts later than it was received.
                let at = number % 2 == 1 ? send.receivedAt : send.receivedAt.advanced(bySeconds: 60)
                transaction.countForward(
                    of: subject, type: offer, category: .marketing, at: at, send: send.id,
                    inShadow: number > 2)
            }
        }
        try opened.reopen()
        for (isShadow, numbers) in [(false, [1, 2]), (true, [3, 4])] {
            let found = try opened.read {
                try $0.forwards(of: subject, inShadow: isShadow, since: Instant(milliseconds: 0), limit: 9)
            }
            #expect(Set(found.map(\.send)) == Set(numbers.map { SendID.sample($0) }), "\(found)")
            #expect(found.allSatisfy { $0.type == offer && $0.isShadow == isShadow })
            let newest = try opened.read {
                try $0.forwards(of: subject, inShadow: isShadow, since: Instant(milliseconds: 0), limit: 1)
            }
            #expect(newest.count == 1 && newest.first == found.first)
            let counts = try opened.read {
                try $0.forwardCounts(
                    of: subject, type: offer, typeSince: Instant(milliseconds: 0), category: .marketing,
                    categorySince: Instant(milliseconds: 0), everythingSince: Instant(milliseconds: 0),
                    besides: nil, inShadow: isShadow)
            }
            #expect(counts == (2, 2, 2))
        }
        let sends = try opened.read { store in try (1...4).map { try store.send(.sample($0))?.isShadow } }
        #expect(sends == [false, false, true, true])
    }

    @Test(arguments: StoreUnderTest.all)
    func `forwards are counted by type and by category, each in its own window`(_ kind: StoreUnderTest) throws
    {
        let opened = try OpenStore(kind)
        let (subject, other) = (SubjectID.sample(1), SubjectID.sample(2))
        let offer = TypeID("promo.offer")
        try opened.write { (transaction) throws in
            for number in 1...4 { transaction.insertSend(.sample(number, subject: subject)) }
            transaction.insertSend(.sample(5, subject: other))
            func count(_ number: Int, _ type: TypeID, _ category: Category, _ at: Int64, of person: SubjectID)
                throws
            {
                transaction.countForward(
                    of: person, type: type, category: category, at: .sample(at), send: .sample(number))
            }
            try count(1, sent, .transactional, 10, of: subject)
            try count(2, offer, .marketing, 20, of: subject)
            try count(3, TypeID("promo.other"), .marketing, 30, of: subject)
            try count(4, offer, .marketing, 40, of: subject)
            // A second destination of the same send counts no second time.
            try count(4, offer, .marketing, 45, of: subject)
            try count(5, offer, .marketing, 40, of: other)
        }
        // Nor does one that had to wait for its morning.
        try opened.write { transaction in
            transaction.countForward(
                of: subject, type: sent, category: .transactional, at: .sample(50), send: .sample(1))
        }
        #expect(
            try opened.read { try $0.forwards(of: subject, since: .sample(0), limit: 9) }.map(\.at) == [
                .sample(40), .sample(30), .sample(20), .sample(10),
            ])
        try opened.reopen()
        func counts(_ type: TypeID, _ typeSince: Int64?, _ category: Category, _ categorySince: Int64?) throws
            -> [Int]
        {
            try opened.read { (store) throws in
                let counts = try store.forwardCounts(
                    of: subject, type: type, typeSince: typeSince.map { .sample($0) }, category: category,
                    categorySince: categorySince.map { .sample($0) }, besides: nil)
                return [counts.type, counts.category]
            }
        }
        #expect(try counts(offer, 0, .marketing, 0) == [2, 3])
        // The window's first moment is inside.
        #expect(try counts(offer, 40, .marketing, 30) == [1, 2])
        #expect(try counts(offer, 41, .marketing, 20) == [0, 3])
        #expect(try counts(sent, 0, .transactional, 11) == [1, 0])
        #expect(try counts(offer, nil, .marketing, 0) == [0, 3])
        #expect(try counts(offer, 0, .marketing, nil) == [2, 0])
        #expect(try counts(offer, nil, .marketing, nil) == [0, 0])
        #expect(try counts(TypeID("never.seen"), 0, .social, 0) == [0, 0])
    }

    @Test(arguments: [0, 1, 128, 300])
    func `a send of a batch is found by its later steps, until its person is erased`(amid count: Int) throws {
        let memory = GateMemory()
        memory.begin(at: TrailTail(entryCount: 0, publishedSize: 0, newestTime: nil, newestClock: nil))
        let subject = SubjectID.sample(1)
        let (first, other) = (SendRecord.sample(1, subject: subject), SendRecord.sample(2))
        func step(_ body: (GateMemory) -> Void) { memory.step { body(memory) } }
        func found(_ record: SendRecord) throws -> [SendRecord?] {
            [try memory.send(record.id), try memory.send(caller: record.caller, idHash: record.idHash)]
        }
        #expect(throws: MissingRows.self) { try found(first) }
        step { $0.insertSend(first) }
        step { $0.insertSend(other) }
        let others = (0..<count).map { SendRecord.sample(10 + $0) }
        for (place, send) in others.enumerated() {
            step { $0.insertSend(send) }
            #expect(try found(others[place / 2])[0] == others[place / 2])
        }
        #expect(try others.allSatisfy { try found($0) == [$0, $0] })
        #expect(try found(first) == [first, first])
        #expect(try found(other) == [other, other])
        #expect(memory.isNew(first.id))
        step { $0.eraseSubject(subject) }
        #expect(try found(first) == [nil, nil])
        #expect(!memory.isNew(first.id))
        // The caller's id is free again, and means the send that has it now.
        var again = SendRecord.sample(3)
        again.idHash = first.idHash
        step { $0.insertSend(again) }
        #expect(try found(again) == [again, again])
        #expect(try found(other) == [other, other])
    }

    @Test(arguments: StoreUnderTest.all)
    func `what a new send asks for is loaded, with forwards back from the newest entry`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        let (user, subject) = (UserID("u_1"), SubjectID.sample(1))
        func loaded(_ user: UserID, seconds: Int64?) throws -> GateMemory {
            let memory = GateMemory()
            let record = SendRecord.sample(1)
            let key = RequestKey(caller: record.caller, idHash: record.idHash)
            let ask = Ask.newSend(key, to: user, countedSeconds: seconds)
            try opened.store.load([ask], into: memory)
            #expect(memory.knows(.request(key)) && memory.knows(.user(user)) && memory.knows(.outboxDepth))
            // The engine answers the rest of it.
            #expect(!memory.knows(.headroom) && !memory.knows(ask))
            memory.room = Headroom(publishLag: 0, freeByteCount: .success(0))
            #expect(memory.knows(ask))
            return memory
        }
        try opened.write { try $0.makeSubject(for: user, subject: subject) }
        // Without an entry there is no moment to count from.
        let first = try loaded(user, seconds: 30)
        #expect(try #require(first.person(subject)).forwards == nil && first.sends.isEmpty)
        #expect(first.knows(.subject(subject)) && first.knows(.state(subject)))
        try opened.write { (transaction) throws in
            for number in 1...3 {
                transaction.insertSend(.sample(number, subject: subject))
                transaction.countForward(
                    of: subject, type: sent, category: .transactional, at: .sample(Int64(number * 10)),
                    send: .sample(number))
            }
            try transaction.appendEntry(.sample(0, at: .sample(50)))
        }
        let state = try loaded(user, seconds: 30)
        #expect(state.knows(.send(.sample(1))))
        #expect(state.knows(.forwards(subject, since: .sample(20))))
        #expect(!state.knows(.forwards(subject, since: .sample(19))))
        let forwards = try #require(try state.person(subject)?.forwards?.get())
        #expect(forwards.records.map(\.at) == [.sample(30), .sample(20)])
        // Of a user who is not known, or where none are counted, none are loaded.
        #expect(try loaded(UserID("u_2"), seconds: 30).people.isEmpty)
        #expect(try #require(try loaded(user, seconds: nil).person(subject)).forwards == nil)
    }

    @Test(arguments: StoreUnderTest.all)
    func `events follow the caller's cursor and nobody else's`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for number in 1...6 {
                transaction.appendEvent(
                    .sample(
                        number, caller: number.isMultiple(of: 2) ? "marketing" : "payments",
                        subject: .sample(1)))
            }
        }
        try opened.reopen()
        let first = try opened.read { try $0.events(of: payments, after: 0, limit: 2) }
        #expect(first.map(\.send) == [.sample(1), .sample(3)])
        let rest = try opened.read { try $0.events(of: payments, after: first[1].cursor, limit: 10) }
        #expect(rest.map(\.send) == [.sample(5)])
        #expect(rest[0].cursor > first[1].cursor)
        var expected = EventRecord.sample(5, subject: .sample(1))
        expected.cursor = rest[0].cursor
        #expect(rest[0] == expected)
        #expect(try opened.read { try $0.events(of: payments, after: rest[0].cursor, limit: 10) }.isEmpty)
        #expect(try opened.read { try $0.events(of: CallerName("stranger"), after: 0, limit: 10) }.isEmpty)
    }

    @Test(arguments: StoreUnderTest.all)
    func `what became of one send is told oldest first`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { transaction in
            transaction.insertSend(.sample(1, subject: .sample(1)))
            transaction.insertSend(.sample(2))
            for (number, event) in [
                (1, SendEventKind.failed), (2, .withdrawn), (1, .userObserved), (3, .failed),
            ] {
                var record = EventRecord.sample(number, subject: number == 1 ? .sample(1) : nil)
                record.event = event
                transaction.appendEvent(record)
            }
        }
        try opened.read { (store) throws in
            #expect(try store.events(of: SendID.sample(1)).map(\.event) == [.failed, .userObserved])
            #expect(try store.events(of: SendID.sample(2)).map(\.event) == [.withdrawn])
            // Of a send that is not known (any more) as well.
            #expect(try store.events(of: SendID.sample(3)).map(\.event) == [.failed])
            #expect(try store.events(of: SendID.sample(4)).isEmpty)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a cursor is never given twice, even when its event is pruned`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { $0.appendEvent(.sample(1)) }
        let cursor = try opened.read { try $0.events(of: payments, after: 0, limit: 1)[0].cursor }
        #expect(try opened.prune(before: .sample(1)) > 0)
        try opened.reopen()
        try opened.write { $0.appendEvent(.sample(2, at: .sample(2))) }
        #expect(try opened.read { try $0.events(of: payments, after: 0, limit: 1)[0].cursor } > cursor)
    }

    @Test(arguments: StoreUnderTest.all)
    func `pruning takes what is older than its retention and nothing younger`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        try opened.write { (transaction) throws in
            for number in 1...4 {
                let at = Instant.sample(Int64(number) * 10)
                transaction.insertSend(.sample(number, subject: number == 4 ? nil : subject, at: at))
                transaction.appendEvent(.sample(number, subject: subject, at: at))
                if number < 3 {
                    transaction.countForward(
                        of: subject, type: sent, category: .transactional, at: at, send: .sample(number))
                }
            }
        }
        while try opened.prune(before: .sample(20)) > 0 {}
        try opened.read { (store) throws in
            #expect(try store.send(.sample(1)) == nil)
            #expect(try store.send(caller: payments, idHash: SendRecord.sample(1).idHash) == nil)
            #expect(try store.send(.sample(2)) != nil)
            #expect(try store.send(.sample(4)) != nil)
            #expect(
                try store.sends(of: subject, before: nil, limit: 9).map(\.id) == [.sample(3), .sample(2)])
            #expect(
                try store.events(of: payments, after: 0, limit: 9).map(\.send) == [
                    .sample(2), .sample(3), .sample(4),
                ])
            let counts = try store.forwardCounts(
                of: subject, type: sent, typeSince: .sample(0), category: .transactional,
                categorySince: .sample(0), besides: nil)
            #expect(counts.type == 1 && counts.category == 1)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a told event is what was put last, of one person, until it is removed or older than its retention`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        let (subject, other) = (SubjectID.sample(1), SubjectID.sample(2))
        func told(_ number: Int, _ send: Int?, at seconds: Int64) -> DedupeRecord {
            DedupeRecord(eventTag: .sample(number), send: send.map { .sample($0) }, at: .sample(seconds))
        }
        func known(to person: SubjectID) throws -> [DedupeRecord?] {
            try opened.read { (store) throws in
                try (1...4).map { try store.dedupeRecord(.sample($0), to: person) }
            }
        }
        try opened.write { (transaction) throws in
            transaction.insertSend(.sample(9, subject: subject, at: .sample(10_000_000)))
            for number in 1...3 { transaction.putDedupe(told(number, 9, at: 5), to: subject) }
            transaction.putDedupe(told(2, nil, at: 19), to: other)
            transaction.putDedupe(told(4, 9, at: 19), to: other)
        }
        try opened.write { (transaction) throws in
            transaction.putDedupe(told(1, nil, at: 20), to: subject)
            transaction.removeDedupe(.sample(3), to: subject)
            transaction.removeDedupe(.sample(4), to: subject)
        }
        try opened.reopen()
        #expect(try known(to: subject) == [told(1, nil, at: 20), told(2, 9, at: 5), nil, nil])
        #expect(try known(to: other) == [nil, told(2, nil, at: 19), nil, told(4, 9, at: 19)])
        #expect(try opened.prune(before: .sample(19)) == 1)
        #expect(try known(to: subject) == [told(1, nil, at: 20), nil, nil, nil])
        #expect(try opened.prune(before: .sample(20)) == 2)
        #expect(try opened.prune(before: .sample(20)) == 0)
        #expect(try known(to: subject) == [told(1, nil, at: 20), nil, nil, nil])
        #expect(try known(to: other) == [nil, nil, nil, nil])
    }

    @Test(arguments: StoreUnderTest.all)
    func `rows from a future that was taken back hold up none that came after them`(_ kind: StoreUnderTest)
        throws
    {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        func add(_ number: Int, at seconds: Int64) throws {
            try opened.write { (transaction) throws in
                let at = Instant.sample(seconds)
                try transaction.appendEntry(.sample(transaction.upcomingIndex, at: at))
                transaction.insertSend(.sample(number, subject: subject, at: at))
                transaction.appendEvent(.sample(number, subject: subject, at: at))
            }
        }
        try add(1, at: 10)
        try add(2, at: 1_000)
        // The clock is accepted, twice.
        try add(3, at: 20)
        try add(4, at: 500)
        try add(5, at: 30)
        try opened.reopen()
        while try opened.prune(before: .sample(25)) > 0 {}
        func left() throws -> [SendID] {
            try opened.read { try $0.events(of: payments, after: 0, limit: 9).map(\.send) }
        }
        #expect(try left() == [.sample(2), .sample(4), .sample(5)])
        #expect(try opened.read { try $0.send(.sample(3)) } == nil)
        #expect(try opened.read { try $0.send(.sample(2)) } != nil)
        while try opened.prune(before: .sample(501)) > 0 {}
        #expect(try left() == [.sample(2)])
    }

    @Test(arguments: StoreUnderTest.all)
    func `a send that waited keeps its counter as long as the counter counts`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        try opened.write { (transaction) throws in
            transaction.insertSend(.sample(1, subject: subject, at: .sample(10)))
            transaction.countForward(
                of: subject, type: sent, category: .transactional, at: .sample(50), send: .sample(1))
        }
        func count() throws -> Int {
            try opened.read { (store) throws in
                try store.forwardCounts(
                    of: subject, type: sent, typeSince: .sample(0), category: .transactional,
                    categorySince: nil, besides: nil
                ).type
            }
        }
        for seconds in [40, 50] as [Int64] {
            try opened.write { $0.prune(before: .sample(seconds)) }
            #expect(try count() == 1)
        }
        try opened.write { $0.prune(before: .sample(60)) }
        #expect(try count() == 0)
        #expect(try opened.read { try $0.send(.sample(1)) } == nil)
    }
}
