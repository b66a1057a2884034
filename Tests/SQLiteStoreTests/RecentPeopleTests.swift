import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import OpenSSLCrypto
import Testing

@testable import GateSteps
@testable import SQLiteStore

/// What is kept of people from one batch to the next is what the last commit left.
@Suite struct RecentPeopleTests {
    private static let person = SubjectID.sample(1)

    private func moment(_ seconds: Int64) -> Instant { Instant.sample.advanced(bySeconds: seconds) }

    /// Batches over one store, as the engine runs them.
    private struct Batches {
        let store: SQLiteStore
        let people: RecentPeople

        init(_ folder: TemporaryFolder, cached: Int = 100) throws {
            store = try openStore(folder.state, limits: SQLiteStoreLimits(personNumberCountMax: cached))
            people = RecentPeople(countMax: cached)
        }

        @discardableResult
        func write<Result>(_ body: (GateMemory) throws -> Result) throws -> Result {
            let memory = GateMemory(people)
            try store.load([], into: memory)
            do {
                let result = try store.step(body, over: memory)
                let receipt = try store.commit(memory.applied)
                memory.carryOver(prunedRowCount: receipt.prunedRowCount)
                return result
            } catch {
                memory.abandon()
                throw error
            }
        }
    }

    /// Compares what a batch and what a reader find with what there has to be, newest first.
    private func expect(
        _ seconds: [Int64], since: Int64 = 0, in batches: Batches,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let (since, expected) = (moment(since), seconds.map(moment))
        let known = try batches.write { try $0.forwards(of: Self.person, since: since, limit: 999) }
        #expect(known.map(\.at) == expected, "by a batch", sourceLocation: location)
        let read = try batches.store.read { try $0.forwards(of: Self.person, since: since, limit: 999) }
        #expect(known == read, "by a reader", sourceLocation: location)
    }

    private func isKept(in batches: Batches) -> Bool {
        batches.people.person(Self.person)?.forwards != nil
    }

    /// Writes a send that came at a moment and counts then, or later.
    private func send(
        _ number: Int, to person: SubjectID = person, at: Int64, countedAt: Int64?, in step: GateMemory
    ) throws {
        let id = SendID.sample(number)
        step.insertSend(
            SendRecord(
                id: id, caller: CallerName("payments"), idHash: Tag.sample(number).bytes,
                contentMAC: [UInt8](repeating: 5, count: 32), subject: person, type: TypeID("promo.offer"),
                category: .marketing, channel: .push, receivedAt: moment(at), entryIndex: 0,
                requestID: "r\(number)",
                destinationNames: [:]))
        if let countedAt { try count(number, to: person, at: countedAt, in: step) }
    }

    private func count(_ number: Int, to person: SubjectID = person, at: Int64, in step: GateMemory) throws {
        step.countForward(
            of: person, type: TypeID("promo.offer"), category: .marketing, at: moment(at),
            send: .sample(number))
    }

    @Test(arguments: [0, 1, 2, 100])
    func `what a commit counts is found, of new people and of those that were read`(cached: Int) throws {
        let folder = try TemporaryFolder()
        var batches = try Batches(folder, cached: cached)
        try batches.write { _ = try $0.putCanaries(1) }
        // A batch that is new to the person asks the store, and the next one does not.
        try expect([], in: batches)
        #expect(isKept(in: batches) == (cached > 0))
        try expect([], in: batches)
        for number in 11...13 {
            let at = Int64(number)
            try batches.write { try send(number, at: at, countedAt: at, in: $0) }
        }
        try expect([13, 12, 11], in: batches)
        // Two in one commit, at one moment, and one that did not count yet.
        try batches.write { step in
            try send(14, at: 14, countedAt: 14, in: step)
            try send(15, at: 14, countedAt: 14, in: step)
            try send(16, at: 16, countedAt: nil, in: step)
        }
        try expect([14, 14, 13, 12, 11], in: batches)
        try expect([14, 14, 13], since: 13, in: batches)
        try batches.write { try count(16, at: 40, in: $0) }
        try expect([40, 14, 14, 13, 12, 11], in: batches)
        // The clock went back.
        try batches.write { try send(17, at: 20, countedAt: 20, in: $0) }
        try expect([40, 20, 14, 14, 13, 12, 11], in: batches)
        // Others push the list out of the cache, and the file has it.
        try batches.write { step in for other in 2...9 { _ = try step.putCanaries(other) } }
        try batches.write { try send(18, at: 41, countedAt: 41, in: $0) }
        try expect([41, 40, 20, 14, 14, 13, 12, 11], in: batches)
        // Read since a moment, and asked for since an earlier one.
        batches.store.close()
        batches = try Batches(folder, cached: cached)
        try expect([41, 40], since: 40, in: batches)
        try batches.write { try send(19, at: 42, countedAt: 42, in: $0) }
        try expect([42, 41, 40, 20], since: 20, in: batches)
        try expect([42, 41], since: 41, in: batches)
        batches.store.close()
    }

    @Test func `what was rolled back does not count`() throws {
        let folder = try TemporaryFolder()
        let batches = try Batches(folder)
        try batches.write { step in
            _ = try step.putCanaries(1)
            try send(11, at: 11, countedAt: nil, in: step)
        }
        try expect([], in: batches)
        for change in [11, 12] {
            #expect(throws: (any Error).self) {
                try batches.write { (step: GateMemory) throws -> Void in
                    if change == 12 { try send(12, at: 12, countedAt: 12, in: step) }
                    if change == 11 { try count(11, at: 13, in: step) }
                    try step.cannotBeWritten()
                }
            }
            try expect([], in: batches)
        }
        try batches.write { try send(12, at: 12, countedAt: 12, in: $0) }
        try expect([12], in: batches)
    }

    @Test func `what is pruned or erased is forgotten`() throws {
        let folder = try TemporaryFolder()
        let batches = try Batches(folder)
        try batches.write { step in
            _ = try step.putCanaries(1)
            for number in 11...13 { try send(number, at: Int64(number), countedAt: Int64(number), in: step) }
        }
        try expect([13, 12, 11], in: batches)
        #expect(isKept(in: batches))
        try batches.write { $0.prune(before: moment(13)) }
        #expect(!isKept(in: batches))
        try expect([13], in: batches)
        try batches.write { $0.eraseSubject(Self.person) }
        #expect(!isKept(in: batches))
        #expect(
            try batches.store.read { try $0.forwards(of: Self.person, since: moment(0), limit: 99) }.isEmpty)
    }

    @Test func `of a list past its bound the newest are kept, and the file has the others`() throws {
        let folder = try TemporaryFolder()
        var batches = try Batches(folder)
        let countMax = Int64(KnownForwards.keptCountMax)
        try batches.write { step in
            _ = try step.putCanaries(1)
            for number in 1..<countMax { try send(Int(number) + 10, at: number, countedAt: number, in: step) }
        }
        for number in countMax...countMax + 2 {
            try batches.write { try send(Int(number) + 10, at: number, countedAt: number, in: $0) }
            // The newest first, because those that the file is asked for take the place of those that were kept.
            try expect((4...number).reversed(), since: 4, in: batches)
            try expect((1...number).reversed(), in: batches)
        }
        batches.store.close()
        batches = try Batches(folder)
        try expect((1...countMax + 2).reversed(), in: batches)
        try batches.write { try send(999, at: 999, countedAt: 999, in: $0) }
        try expect([999] + (4...countMax + 2).reversed(), since: 4, in: batches)
    }

    @Test func `a kept list says since when it has all`() {
        func record(_ seconds: Int64) -> ForwardRecord {
            ForwardRecord(at: moment(seconds), type: TypeID("t"), category: .marketing, send: nil)
        }
        let countMax = KnownForwards.keptCountMax
        let list = KnownForwards(since: moment(1), records: [])
        func add(_ record: ForwardRecord) {
            list.add(record)
            list.shorten()
        }
        // Two at each moment, so that both of a pair have to go.
        for number in 2...Int64(countMax) { add(record(number / 2)) }
        add(record(0))
        #expect(list.since == moment(1) && list.records.count == countMax - 1, "of before, so not kept")
        add(record(Int64(countMax) / 2))
        #expect(list.since == moment(1) && list.records.count == countMax)
        add(record(5))
        #expect(list.since > moment(1) && list.since <= moment(2))
        #expect(list.records.count == countMax - 1)
        #expect(list.records == list.records.sorted { $0.at > $1.at })
        #expect(list.records.count { $0.at == moment(5) } == 3)

        // The same of a list that was read.
        let long = KnownForwards(
            since: moment(1), records: (1...Int64(countMax) + 3).reversed().map(record))
        long.shorten()
        #expect(long.since > moment(3) && long.since <= moment(4))
        #expect(long.records == (4...Int64(countMax) + 3).reversed().map(record))

        // What was loaded for a window with many forwards is given back.
        let much = KnownForwards(since: moment(1), records: (1...Int64(countMax) * 10).reversed().map(record))
        much.shorten()
        #expect(much.records.count == countMax && much.records.capacity <= 2 * countMax)
    }

    @Test func `what is asked for stays, and no more is kept than the bound`() {
        var values = RecentValues<Int, Int>(countMax: 10)
        for number in 0..<1_000 {
            values[number] = number
            #expect(values[0] == 0, "asked for in every step, and gone at \(number)")
        }
        #expect((0..<1_000).count { values[$0] != nil } <= 10)
        values[0] = nil
        #expect(values[0] == nil)
        var none = RecentValues<Int, Int>(countMax: 0)
        none[1] = 1
        #expect(none[1] == nil)
        var one = RecentValues<Int, Int>(countMax: 1)
        one[1] = 1
        #expect(one[1] == 1)
    }

    @Test func `the keys of all mappings that are kept lie in locked memory`() throws {
        #expect(RecentPeople.mappingCountMax(in: .locked(byteCount: 1 << 20)) == 8_192)
        let countMax = RecentPeople.mappingCountMax(in: SecretMemory.protect())
        let before = SecretMemory.outsideCount
        let subjects = (0..<countMax).map { number in
            Subject(
                id: .sample(number),
                tagKey: SecretBytes(copying: [UInt8](repeating: 7, count: Subject.tagKeyByteCount)))
        }
        // The first tag of a person makes the pads of their key.
        #expect(Set(subjects.map { $0.tag(.event, "order-1") }).count == 1)
        #expect(SecretMemory.outsideCount == before)
    }

    /// A person's locale as the next batch and as a reader see it.
    private func locales(_ batches: Batches) throws -> [String?] {
        [
            try batches.write { try $0.recipient(Self.person)?.locale },
            try batches.store.read { try $0.recipient(Self.person)?.locale },
        ]
    }

    @Test(arguments: [0, 1, 100])
    func `a step that throws and a batch that cannot be committed leave nothing of a person`(cached: Int)
        throws
    {
        let folder = try TemporaryFolder()
        let batches = try Batches(folder, cached: cached)
        try batches.write { _ = try $0.putCanaries(1) }
        var record = try #require(try batches.store.read { try $0.recipient(Self.person) })
        #expect(try locales(batches) == [Canary.locale, Canary.locale])
        struct Interrupted: Error {}
        for isRefused in [false, true] {
            #expect(throws: (any Error).self) {
                try batches.write { (memory: GateMemory) throws -> Void in
                    record.locale = "sv"
                    try memory.putRecipient(record)
                    _ = try memory.putCanaries(2)
                    #expect(try memory.recipient(Self.person)?.locale == "sv")
                    guard isRefused else { throw Interrupted() }
                    try memory.cannotBeWritten()
                }
            }
            #expect(try locales(batches) == [Canary.locale, Canary.locale])
            #expect(try batches.write { try $0.recipient(.sample(2)) } == nil)
            #expect(try batches.write { try $0.subject(of: UserID(Canary.user + "-2")) } == nil)
        }
        record.locale = "da"
        try batches.write { try $0.putRecipient(record) }
        #expect(try locales(batches) == ["da", "da"])
        batches.store.close()
    }

    @Test func `who was erased is not found by a later batch, and comes back as somebody new`() throws {
        let folder = try TemporaryFolder()
        let batches = try Batches(folder)
        try batches.write { _ = try $0.putCanaries(1) }
        let user = UserID(Canary.user + "-1")
        #expect(try batches.write { try $0.subject(of: user) } != nil)
        try batches.write { (memory: GateMemory) throws in
            #expect(try memory.subject(of: user) != nil && memory.state(of: Self.person) != nil)
            memory.eraseSubject(Self.person)
            #expect(try memory.subject(of: user) == nil && memory.state(of: Self.person) == nil)
        }
        let found = try batches.write { (try $0.subject(of: user), try $0.state(of: Self.person)) }
        #expect(found.0 == nil && found.1 == nil)
        try batches.store.finishErasures()
        try batches.write { (memory: GateMemory) throws in
            #expect(try memory.makeSubject(for: user, subject: .sample(9)).id == .sample(9))
            #expect(try memory.state(of: .sample(9)) == nil)
        }
        #expect(try batches.write { try $0.subject(of: user)?.id } == .sample(9))
        batches.store.close()
    }
}
