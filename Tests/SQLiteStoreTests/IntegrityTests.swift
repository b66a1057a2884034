import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import Testing

@testable import SQLiteStore

/// Rows are held against their codes and tables against their sums; see also `StoredColumnTests`.
@Suite struct IntegrityTests {
    /// Checks nothing at the start but what is looked up by name, as a store of many rows does.
    private static let large = SQLiteStoreLimits(readerCount: 2, checkedRowCountAtStartMax: 0)

    private func checkAll(_ store: SQLiteStore, _ sliceRowCount: Int = 3) throws {
        while try !store.checkRows(countMax: sliceRowCount) {}
    }

    private func populate(_ folder: TemporaryFolder) throws {
        let store = try openStore(folder.state)
        try store.write { transaction in for number in 1...3 { _ = try transaction.putCanaries(number) } }
        store.close()
    }

    @Test func `a row put back as it once was is noticed`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { try $0.setSetting("choice", to: "old") }
        store.close()
        let old = try tamper(folder.state + "/gate.db") { connection in
            try connection.first(StatementText("setting", "SELECT name, mac FROM setting")) { row in
                _ = row.text()
                return row.byteArray()
            }
        }
        let mac = Hexadecimal.encode(try #require(old))
        try openStore(folder.state).write { try $0.setSetting("choice", to: "new") }
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE setting SET value = 'old', mac = x'\(mac)'")
        }
        let reopened = try openStore(folder.state)
        #expect(reopened.damagedRows.map(\.table) == ["setting"])
        #expect(reopened.damagedRows.first?.what.contains("older") == true)
        #expect(throws: StoreError.self) { try reopened.read { try $0.setting("other") } }
    }

    @Test
    func `a store of many rows is checked while it runs, and what was found is known at the next start`()
        throws
    {
        let folder = try TemporaryFolder()
        try populate(folder)
        try tamper(folder.state + "/subjects.db") {
            try $0.script("UPDATE subject SET user = zeroblob(32) WHERE number = 2")
        }
        let stranger = UserID(Canary.user + "-2")
        let first = try openStore(folder.state, limits: Self.large)
        #expect(first.damagedRows.isEmpty)
        #expect(try first.read { try $0.subject(of: stranger) } == nil)
        try checkAll(first)
        #expect(first.damagedRows.map(\.table) == ["subject"] && first.damagedRows.map(\.row) == ["2"])
        #expect(throws: StoreError.self) { try first.read { try $0.subject(of: stranger) } }
        #expect(throws: StoreError.self) {
            try first.write { try $0.makeSubject(for: stranger, subject: .sample(9)) }
        }
        first.close()
        let second = try openStore(folder.state, limits: Self.large)
        #expect(second.damagedRows.map(\.table) == ["subject"])
        #expect(throws: StoreError.self) { try second.read { try $0.subject(of: stranger) } }
        #expect(try second.acceptDamage().map(\.row) == ["2"])
        #expect(try second.read { try $0.subject(of: stranger) } == nil)
        second.close()
        // Accepted is accepted, at the next start and in the next pass; and named all the same.
        let third = try openStore(folder.state, limits: Self.large)
        #expect(try third.read { try $0.subject(of: stranger) } == nil)
        try checkAll(third)
        #expect(try third.read { try $0.subject(of: stranger) } == nil)
        #expect(third.damagedRows.map(\.table) == ["subject"])
    }

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
                    try transaction.appendEvent(event)
                    written.append(event)
                }
            }
        }
        store.close()
        let reopened = try openStore(folder.state)
        #expect(reopened.damagedRows.isEmpty)
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
    private func commit(_ records: [SendRecord], to store: SQLiteStore) throws -> CommitOutcome {
        let state = BatchState()
        try store.load([], into: state)
        let changes = try records.map { record in
            let change = try store.step(
                { step in
                    try step.insertSend(record)
                    guard let subject = record.subject, let category = record.category else { return }
                    let isLater = record.entryIndex.isMultiple(of: 4)
                    try step.countForward(
                        of: subject, type: record.type, category: category,
                        at: record.receivedAt.advanced(bySeconds: isLater ? 3_600 : 0), send: record.id)
                }, over: state
            ).view.change
            state.apply(change)
            return change
        }
        return try store.commit(changes, against: state)
    }

    @Test func `sends of one commit, few or many, are all there as they were written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        var written: [SendRecord] = []
        for count in [1, 3, 70, 2] {
            let records = (1...count).map { record(written.count + $0 + 1, at: $0) }
            guard case .done = try commit(records, to: store) else {
                Issue.record("\(count) were not committed")
                return
            }
            written += records
        }
        let counted = written.filter { $0.subject != nil && $0.category != nil }
        #expect(
            try store.read { try $0.forwards(of: .sample(1), since: .sample, limit: 999) }.count
                == counted.count)
        store.close()
        let reopened = try openStore(folder.state)
        #expect(reopened.damagedRows.isEmpty)
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
        guard case .done = try commit([record(20, at: 1)], to: store) else {
            Issue.record("the first was not committed")
            return
        }
        var records = (21...26).map { record($0, at: $0) }
        records[place] = record(20, at: 1)
        guard case .refused(let change, let error) = try commit(records, to: store) else {
            Issue.record("a send was written twice")
            return
        }
        #expect(change == place && error is StoreConflict)
        records.remove(at: place)
        guard case .done = try commit(records, to: store) else {
            Issue.record("the others were not committed")
            return
        }
        for record in records { #expect(try store.read { try $0.send(record.id) } == record) }
    }

    @Test func `nothing that is written, undone or deleted in the midst of a pass is damage`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        for round in 0..<40 {
            try store.write { transaction in
                let subject = try transaction.putCanaries(round + 1)
                try transaction.putDedupe(
                    DedupeRecord(eventTag: .sample(round), send: nil, at: .sample), to: subject)
                if round % 3 == 2 { try transaction.eraseSubject(.sample(round - 1)) }
                if round % 4 == 3 { try transaction.removeDevice(.sample(1), of: subject) }
            }
            #expect(throws: StoreConflict.self) {
                try store.write { (transaction: StepView) throws -> Void in
                    try transaction.setSetting("undone", to: "\(round)")
                    try transaction.removeOutbox(.sample(round + 1))
                    let key = SubjectTag(.sample(round), of: .sample(round + 1))
                    try transaction.removeDedupe(key.tag, to: key.subject)
                    try transaction.cannotBeWritten()
                }
            }
            try store.finishErasures()
            _ = try store.checkRows(countMax: 5)
        }
        try checkAll(store)
        try checkAll(store)
        #expect(store.damagedRows.isEmpty, "\(store.damagedRows)")
        store.close()
        #expect(try openStore(folder.state).damagedRows.isEmpty)
    }

    @Test func `a row that is not as it was written is not made right by changing it`() throws {
        let folder = try TemporaryFolder()
        try populate(folder)
        try tamper(folder.state + "/gate.db") {
            try $0.script(
                "UPDATE send SET category = 2 WHERE number = 1; UPDATE outbox SET attempt_count = 7 WHERE number = 1"
            )
        }
        let store = try openStore(folder.state, limits: Self.large)
        #expect(throws: StoreError.self) {
            try store.write {
                try $0.countForward(
                    of: .sample(1), type: TypeID("t"), category: .transactional, at: .sample,
                    send: .sample(1))
            }
        }
        #expect(throws: StoreError.self) { try store.write { try $0.markAttempt(.sample(1), at: .sample) } }
        // It can be put off, and stays what it is.
        try store.write { try $0.postponeOutbox(.sample(1), until: .sample) }
        #expect(try store.read { try $0.outbox(.sample(1)) }?.isDamaged == true)
        try checkAll(store)
        #expect(Set(store.damagedRows.map(\.table)) == ["send", "outbox"])
    }

    @Test func `a row that is missing is known besides one that is altered, and by itself`() throws {
        for isBesides in [true, false] {
            let folder = try TemporaryFolder()
            let store = try openStore(folder.state)
            try store.write { transaction in
                for name in ["a", "b", "c"] { try transaction.setSetting(name, to: "1") }
            }
            store.close()
            let alter = "UPDATE setting SET value = '2' WHERE name = 'a'; "
            try tamper(folder.state + "/gate.db") {
                try $0.script((isBesides ? alter : "") + "DELETE FROM setting WHERE name = 'b'")
            }
            let reopened = try openStore(folder.state)
            // A row that was named says more than the table it is in.
            #expect(reopened.damagedRows.map(\.row) == [isBesides ? "a" : nil])
            #expect(
                reopened.damagedRows.first?.what
                    == (isBesides ? RowSums.wrongCode : "1 of its rows are missing"))
            #expect(throws: StoreError.self) { try reopened.read { try $0.setting("b") } }
            #expect(try reopened.acceptDamage().map(\.row) == (isBesides ? [nil, "a"] : [nil]))
            #expect(try reopened.read { try $0.setting("b") } == nil)
        }
    }

    @Test func `a statement that fails after its first row counts nothing`() throws {
        let folder = try TemporaryFolder()
        try populate(folder)
        let connection = try Connection(
            path: folder.state + "/gate.db", file: "gate.db", role: .writer(byteCountMax: nil),
            cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 100, index: .test(), pages: .test("gate.db"))
        try FileManager.default.removeItem(atPath: folder.state + "/gate.db" + LogMark.suffix)
        let insert = StatementText("setting", "INSERT INTO setting VALUES ('a', '1'), ('b', '2'), ('a', '3')")
        let other = StatementText("setting", "INSERT INTO setting VALUES ('c', '4')")
        try connection.exclusively {
            try connection.keepSums(of: Schema.gate.shapes(heldAgainst: connection, index: .test()))
            try connection.writing {
                #expect(throws: StoreConflict.self) { try connection.change(insert) }
                try connection.change(other)
            }
        }
        connection.close()
        let store = try openStore(folder.state)
        #expect(store.damagedRows.isEmpty, "\(store.damagedRows)")
        #expect(try store.read { try $0.setting("c") } == "4")
    }

    @Test func `a statement is not refused for an altered row that one before it failed to change`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { for name in ["a", "b"] { try $0.setSetting(name, to: "1") } }
        store.close()
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE setting SET value = '2' WHERE name = 'a'")
        }
        let damages = DamageLog()
        let connection = try Connection(
            path: folder.state + "/gate.db", file: "gate.db", role: .writer(byteCountMax: nil),
            cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 100, damages: damages, index: .test(),
            pages: .test("gate.db"))
        // Changes the altered row, and then fails at the other one.
        let failing = StatementText("setting", "UPDATE setting SET value = iif(name < 'b', '3', NULL)")
        let whole = StatementText("setting", "UPDATE setting SET value = '4' WHERE name = 'b'")
        let altered = StatementText("setting", "UPDATE setting SET value = '5' WHERE name = 'a'")
        try connection.exclusively {
            try connection.keepSums(of: Schema.gate.shapes(heldAgainst: connection, index: .test()))
            try connection.begin(writing: true)
            #expect(throws: StoreConflict.self) { try connection.change(failing) }
            #expect(try connection.change(whole) == 1)
            #expect(damages.damages.isEmpty)
            #expect(throws: StoreError.self) { try connection.change(altered) }
            connection.rollBack()
        }
        connection.close()
        #expect(damages.damages.map(\.row) == ["a"])
    }

    private static let editsOfOffered = [
        "sealed = x'00'", "sealed = zeroblob(length(sealed))", "heads = x'00'",
        "heads = zeroblob(length(heads))", "last = last + 1", "mac = zeroblob(16)",
    ]

    @Test(arguments: editsOfOffered)
    func `an offered message that is not as it was written is named, and goes no other way than it went`(
        _ edit: String
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { transaction in
            try transaction.putCanaries(1)
            for number in 11...12 { try transaction.offerOutbox(.canary(number, of: 1)) }
        }
        try store.write { try $0.offerOutbox(.canary(13, of: 1)) }
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE offered SET \(edit) WHERE number < (SELECT max(number) FROM offered)")
        }
        // It gets no right code by being changed.
        #expect(throws: (any Error).self) { try store.write { try $0.updateOutbox(.canary(11, of: 1)) } }
        #expect(throws: (any Error).self) { try store.write { try $0.markAttempt(.sample(11), at: .sample) } }
        try checkAll(store)
        #expect(Set(store.damagedRows.map(\.table)) == ["offered"])
        // Its result ends it; put off, it waits as what it is.
        try store.write { try $0.removeOutbox(.sample(11)) }
        try store.write { try $0.postponeOutbox(.sample(12), until: .sample) }
        #expect(try store.read { try $0.outbox(MessageID.sample(11)) } == nil)
        #expect(try store.read { try $0.outbox(MessageID.sample(12)) }?.isDamaged == true)
        #expect(try store.read { try $0.outbox(MessageID.sample(13)) }?.isDamaged == false)
        #expect(try store.read { try $0.outboxDepth().rowCount } == 3)
        try store.write { try $0.eraseSubject(.sample(1)) }
        #expect(try store.read { try $0.outboxDepth().rowCount } == 0)
    }

    @Test(arguments: editsOfOffered)
    func `what an earlier process offered waits as it was written, or as damage`(_ edit: String) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.state)
        try first.write { transaction in
            try transaction.putCanaries(1)
            for number in 11...12 { try transaction.offerOutbox(.canary(number, of: 1)) }
        }
        try first.write { try $0.offerOutbox(.canary(13, of: 1)) }
        // One has its result, and comes back whatever becomes of its row no more.
        try first.write { try $0.removeOutbox(.sample(12)) }
        first.close()
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE offered SET \(edit) WHERE number = (SELECT min(number) FROM offered)")
        }
        var store = try openStore(folder.state)
        #expect(store.damagedRows.contains { $0.table == "offered" })
        let isLost = edit.hasPrefix("heads")
        let due = try store.read { store in
            try store.dueOutbox(at: .sample, limit: 9, lane: .general, excluding: []).map {
                try #require(try store.outbox($0))
            }
        }
        #expect(due.count == (isLost ? 2 : 3) && due.contains { $0.message == .sample(13) })
        #expect(!due.contains { $0.message == .sample(12) })
        #expect(due.count { $0.isDamaged } == (isLost ? 0 : 1))
        store.close()
        store = try openStore(folder.state)
        #expect(store.damagedRows.contains { $0.table == (isLost ? "offered" : "outbox") })
        // Who is erased leaves nothing there that could not be read.
        try store.write { try $0.eraseSubject(.sample(1)) }
        store.close()
        let left = try tamper(folder.state + "/gate.db") { try $0.pragma("SELECT count(*) FROM offered") }
        #expect(left == "0")
    }

    @Test func `every table is authenticated by every column it has`() throws {
        for schema in [Schema.gate, Schema.subjects] {
            let connection = try Connection(
                path: ":memory:", file: schema.file, role: .scratch, cacheByteCount: 1 << 20,
                busyTimeoutMilliseconds: 0, index: .test())
            try connection.exclusively {
                try schema.prepare(connection)
                let tables = try schema.shapes(heldAgainst: connection, index: .test())
                #expect(tables.last?.name == schema.anchor && tables.count > 1)
                for table in tables {
                    let text = try connection.pragma(
                        "SELECT sql FROM sqlite_schema WHERE name = '\(table.name)'")
                    #expect(
                        text.contains(
                            "mac BLOB NOT NULL AS (\(RowCodes.call(table.name, table.columns))) STORED"),
                        "\(text)")
                    #expect(!table.key.isEmpty)
                }
            }
            connection.close()
        }
    }
}
