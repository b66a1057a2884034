import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import Testing

@testable import SQLiteStore

/// The forwards that the writer keeps of a person are those in the file.
@Suite struct RecentForwardsTests {
    private static let person = SubjectID.sample(1)

    private func moment(_ seconds: Int64) -> Instant { Instant.sample.advanced(bySeconds: seconds) }

    /// Compares what the writer and what a reader find with what there has to be, newest first.
    private func expect(
        _ seconds: [Int64], since: Int64 = 0, in store: SQLiteStore,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let (since, expected) = (moment(since), seconds.map(moment))
        let written = try store.write { try $0.forwards(of: Self.person, since: since, limit: 999) }
        #expect(written.map(\.at) == expected, "by the writer", sourceLocation: location)
        let read = try store.read { try $0.forwards(of: Self.person, since: since, limit: 999) }
        #expect(written == read, "by a reader", sourceLocation: location)
    }

    private func isKept(in store: SQLiteStore) -> Bool {
        store.writer.connection.exclusively { store.writer.cache.forwards[Self.person] != nil }
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

    private func open(_ folder: TemporaryFolder, cached: Int = 100) throws -> SQLiteStore {
        try openStore(folder.state, limits: SQLiteStoreLimits(cachedPersonCountMax: cached))
    }

    @Test(arguments: [0, 1, 2, 100])
    func `what a commit counts is found, of new people and of those that were read`(cached: Int) throws {
        let folder = try TemporaryFolder()
        var store = try open(folder, cached: cached)
        try store.write { _ = try $0.putCanaries(1) }
        #expect(isKept(in: store) == (cached > 0), "a new person's list is empty, and known")
        try expect([], in: store)
        for number in 11...13 {
            let at = Int64(number)
            try store.write { try send(number, at: at, countedAt: at, in: $0) }
        }
        try expect([13, 12, 11], in: store)
        // Two in one commit, at one moment, and one that did not count yet.
        try store.write { step in
            try send(14, at: 14, countedAt: 14, in: step)
            try send(15, at: 14, countedAt: 14, in: step)
            try send(16, at: 16, countedAt: nil, in: step)
        }
        try expect([14, 14, 13, 12, 11], in: store)
        try expect([14, 14, 13], since: 13, in: store)
        try store.write { try count(16, at: 40, in: $0) }
        try expect([40, 14, 14, 13, 12, 11], in: store)
        // The clock went back.
        try store.write { try send(17, at: 20, countedAt: 20, in: $0) }
        try expect([40, 20, 14, 14, 13, 12, 11], in: store)
        // Others push the list out of the cache, and the file has it.
        try store.write { step in for other in 2...9 { _ = try step.putCanaries(other) } }
        try store.write { try send(18, at: 41, countedAt: 41, in: $0) }
        try expect([41, 40, 20, 14, 14, 13, 12, 11], in: store)
        // Read since a moment, and asked for since an earlier one.
        store.close()
        store = try open(folder, cached: cached)
        try expect([41, 40], since: 40, in: store)
        try store.write { try send(19, at: 42, countedAt: 42, in: $0) }
        try expect([42, 41, 40, 20], since: 20, in: store)
        try expect([42, 41], since: 41, in: store)
        store.close()
    }

    @Test func `what was rolled back does not count`() throws {
        let folder = try TemporaryFolder()
        let store = try open(folder)
        try store.write { step in
            _ = try step.putCanaries(1)
            try send(11, at: 11, countedAt: nil, in: step)
        }
        try expect([], in: store)
        for change in [11, 12] {
            #expect(throws: (any Error).self) {
                try store.write { (step: GateMemory) throws -> Void in
                    if change == 12 { try send(12, at: 12, countedAt: 12, in: step) }
                    if change == 11 { try count(11, at: 13, in: step) }
                    try step.cannotBeWritten()
                }
            }
            try expect([], in: store)
        }
        try store.write { try send(12, at: 12, countedAt: 12, in: $0) }
        try expect([12], in: store)
    }

    @Test func `what is pruned or erased is forgotten`() throws {
        let folder = try TemporaryFolder()
        let store = try open(folder)
        try store.write { step in
            _ = try step.putCanaries(1)
            for number in 11...13 { try send(number, at: Int64(number), countedAt: Int64(number), in: step) }
        }
        try expect([13, 12, 11], in: store)
        try store.write { $0.prune(before: moment(13)) }
        try expect([13], in: store)
        #expect(isKept(in: store))
        try store.write { $0.eraseSubject(Self.person) }
        #expect(!isKept(in: store))
        #expect(try store.read { try $0.forwards(of: Self.person, since: moment(0), limit: 99) }.isEmpty)
    }

    @Test func `of a list past its bound the newest are kept, and the file has the others`() throws {
        let folder = try TemporaryFolder()
        var store = try open(folder)
        let countMax = Int64(RecentForwards.countMax)
        try store.write { step in
            _ = try step.putCanaries(1)
            for number in 1..<countMax { try send(Int(number) + 10, at: number, countedAt: number, in: step) }
        }
        for number in countMax...countMax + 2 {
            try store.write { try send(Int(number) + 10, at: number, countedAt: number, in: $0) }
            // The newest first, because those that the file is asked for take the place of those that were kept.
            try expect((4...number).reversed(), since: 4, in: store)
            try expect((1...number).reversed(), in: store)
        }
        store.close()
        store = try open(folder)
        try expect((1...countMax + 2).reversed(), in: store)
        try store.write { try send(999, at: 999, countedAt: 999, in: $0) }
        try expect([999] + (4...countMax + 2).reversed(), since: 4, in: store)
    }

    @Test func `a kept list has all since a moment, or says that it may not`() {
        func record(_ seconds: Int64) -> ForwardRecord {
            ForwardRecord(at: moment(seconds), type: TypeID("t"), category: .marketing, send: nil)
        }
        let countMax = Int64(RecentForwards.countMax)
        let list = RecentForwards(since: moment(1), records: [])
        // Two at each moment, so that one of a pair has to go.
        for number in 2...countMax { list.add(record(number / 2)) }
        list.add(record(0))
        #expect(list.all(since: moment(0)) == nil)
        #expect(list.all(since: moment(1))?.count == RecentForwards.countMax - 1)
        list.add(record(countMax / 2))
        #expect(list.all(since: moment(1))?.count == RecentForwards.countMax)
        #expect(list.all(since: Instant(milliseconds: moment(1).milliseconds - 1)) == nil)
        list.add(record(5))
        #expect(list.all(since: moment(1)) == nil)
        let left = list.all(since: moment(2))
        #expect(left?.count == RecentForwards.countMax - 1)
        #expect(left.map { $0 == $0.sorted { $0.at > $1.at } } == true)
        #expect(left?.count { $0.at == moment(5) } == 3)

        // The same of a list that was read.
        let long = RecentForwards(since: moment(1), records: (1...countMax + 3).reversed().map(record))
        #expect(long.all(since: moment(3)) == nil)
        #expect(long.all(since: moment(4)) == (4...countMax + 3).reversed().map(record))
        #expect(long.all(since: moment(countMax)) == (countMax...countMax + 3).reversed().map(record))
    }
}
