import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import Testing

@testable import SQLiteStore

/// What one commit wrote is there as it was written, or none of it.
@Suite struct CommitTests {
    @Test func `events of one commit, few or many, are all there as they were written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        let caller = CallerName("payments")
        var written: [EventRecord] = []
        for count in [1, 3, 70, 2] {
            try store.write { transaction in
                for _ in 0..<count {
                    let number = written.count + 1
                    let event = EventRecord(
                        cursor: Int64(number), caller: caller, send: .sample(number), subject: nil,
                        event: .failed, destination: number.isMultiple(of: 3) ? nil : .sample(number),
                        at: Instant(milliseconds: Instant.sample.milliseconds + Int64(number)),
                        reason: number.isMultiple(of: 2) ? "reason \(number)" : nil,
                        entryIndex: UInt64(number))
                    transaction.appendEvent(event)
                    written.append(event)
                }
            }
        }
        store.close()
        let reopened = try openStore(folder.state)
        #expect(reopened.damages.isEmpty)
        #expect(try reopened.read { try $0.events(of: caller, after: 0, limit: 999) } == written)
    }

    private func record(_ number: Int, at place: Int) -> SendRecord {
        SendRecord(
            id: .sample(number), caller: CallerName("payments"), idHash: Tag.sample(number).bytes,
            contentMAC: [UInt8](repeating: 5, count: 32),
            subject: number.isMultiple(of: 3) ? nil : .sample(1), type: TypeID("promo.offer"),
            category: number.isMultiple(of: 2) ? .marketing : nil, channel: .push,
            receivedAt: Instant.sample.advanced(bySeconds: Int64(number)), entryIndex: UInt64(place),
            requestID: String(repeating: "r", count: number), destinationNames: [.sample(1): "d\(number)"])
    }

    /// Commits a change for each send; every fourth counts as a forward when it comes, and every fourth later.
    private func commit(_ records: [SendRecord], to store: SQLiteStore) throws {
        let memory = GateMemory()
        try store.load([], into: memory)
        for record in records {
            memory.step {
                memory.insertSend(record)
                guard let subject = record.subject, let category = record.category else { return }
                let isLater = record.entryIndex.isMultiple(of: 4)
                memory.countForward(
                    of: subject, type: record.type, category: category,
                    at: record.receivedAt.advanced(bySeconds: isLater ? 3_600 : 0), send: record.id)
            }
        }
        _ = try store.commit(memory.applied)
    }

    @Test func `sends of one commit, few or many, are all there as they were written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        var written: [SendRecord] = []
        for count in [1, 3, 70, 2] {
            let records = (1...count).map { record(written.count + $0 + 1, at: $0) }
            try commit(records, to: store)
            written += records
        }
        let counted = written.filter { $0.subject != nil && $0.category != nil }
        #expect(
            try store.read { try $0.forwards(of: .sample(1), since: .sample, limit: 999) }.count
                == counted.count)
        store.close()
        let reopened = try openStore(folder.state)
        #expect(reopened.damages.isEmpty)
        let found = try reopened.read { reading in
            try written.compactMap { try reading.send(caller: $0.caller, idHash: $0.idHash) }
        }
        #expect(found == written)
    }

    @Test(arguments: [0, 2, 5])
    func `a send that is there already is refused by its own change, and no other with it`(place: Int) throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        try commit([record(20, at: 1)], to: store)
        var records = (21...26).map { record($0, at: $0) }
        records[place] = record(20, at: 1)
        let refused = #expect(throws: RefusedChange.self) { try commit(records, to: store) }
        #expect(refused?.change == place && refused?.error is UnfitWrite)
        records.remove(at: place)
        try commit(records, to: store)
        for record in records { #expect(try store.read { try $0.send(record.id) } == record) }
    }

    @Test func `nothing that is written, undone or deleted in the midst of a pass is damage`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        for round in 0..<40 {
            try store.write { transaction in
                let subject = try transaction.putCanaries(round + 1)
                transaction.putDedupe(
                    DedupeRecord(eventTag: .sample(round), send: nil, at: .sample), to: subject)
                if round % 3 == 2 { transaction.eraseSubject(.sample(round - 1)) }
                if round % 4 == 3 { try transaction.removeDevice(.sample(1), of: subject) }
            }
            #expect(throws: UnfitWrite.self) {
                try store.write { (transaction: GateMemory) throws -> Void in
                    transaction.setSetting("undone", to: "\(round)")
                    transaction.removeOutbox(.sample(round + 1))
                    let key = SubjectTag(.sample(round), of: .sample(round + 1))
                    transaction.removeDedupe(key.tag, to: key.subject)
                    try transaction.cannotBeWritten()
                }
            }
            try store.finishErasures()
            _ = try store.checkPages(countMax: 5)
        }
        for _ in 0..<2 { while try !store.checkPages(countMax: 9) {} }
        #expect(store.damages.isEmpty, "\(store.damages)")
        store.close()
        #expect(try openStore(folder.state).damages.isEmpty)
    }
}
