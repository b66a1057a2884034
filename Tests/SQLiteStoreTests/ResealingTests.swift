import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

@testable import SQLiteStore

/// Every stored value is sealed anew after another data key was promoted.
@Suite struct ResealingTests {
    private func promote(_ number: Int, in store: SQLiteStore) throws {
        _ = try store.committing { $0.useDataKey("data-test-\(number)") }
    }

    private func pass(over store: SQLiteStore, rowCountMax: Int = 3) throws -> (pieces: Int, last: Resealing)
    {
        var pieces = 0
        while true {
            let receipt = try store.committing { $0.reseal(rowCountMax: rowCountMax) }.receipt
            let resealing = try #require(receipt.resealing)
            pieces += 1
            if resealing.isDone || pieces > 1000 { return (pieces, resealing) }
        }
    }

    @Test func `the promoted key seals from the next commit on, also after a restart`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state, key: 1)
        store.add(try .test(2))
        try promote(2, in: store)
        #expect(store.dataKeyUse.key == "data-test-2")
        store.close()
        // Whatever is named first: the store knows.
        store = try openStore(folder.state, key: 1, older: [2])
        #expect(store.dataKeyUse.key == "data-test-2")
        store.close()
        store = try openStore(folder.state, key: 2, older: [1])
        #expect(store.dataKeyUse.key == "data-test-2")
        store.close()
        #expect(throws: StoreOpeningError.missingDataKey(id: "data-test-2")) {
            try openStore(folder.state, key: 1)
        }
    }

    @Test func `a key that is not loaded cannot be promoted, and nothing of the commit stays`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state, key: 1)
        defer { store.close() }
        #expect(throws: StoreError.self) { try promote(7, in: store) }
        #expect(store.dataKeyUse.key == "data-test-1")
        #expect(try store.read { try $0.setting(DataKeys.settingName) } == nil)
    }

    @Test func `after a pass nothing is under the old key, and it is not needed to read`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state, key: 1)
        let people = try (1...7).map { number in try store.write { try $0.putCanaries(number) } }
        try store.write { $0.offerOutbox(.canary(11, of: 1)) }
        store.add(try .test(2))
        try promote(2, in: store)
        #expect(try store.read { try $0.laggingRowCount() } > 7)
        let (pieces, last) = try pass(over: store)
        #expect(pieces > 3 && last.key == "data-test-2")
        #expect(try store.read { try $0.laggingRowCount() } == 0)
        store.close()
        store = try openStore(folder.state, key: 2)
        defer { store.close() }
        for (number, person) in zip(1..., people) {
            let user = UserID("\(Canary.user)-\(number)")
            #expect(try store.read { try $0.subject(of: user)?.id } == person)
            #expect(try store.read { try $0.state(of: person) } != nil)
        }
        #expect(store.damages.isEmpty)
    }

    @Test func `a pass goes on after a restart where it was`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state, key: 1)
        for number in 1...9 { _ = try store.write { try $0.putCanaries(number) } }
        store.add(try .test(2))
        try promote(2, in: store)
        let first = try #require(try store.committing { $0.reseal(rowCountMax: 4) }.receipt.resealing)
        #expect(first.visitedRowCount == 4 && !first.isDone)
        store.close()
        store = try openStore(folder.state, key: 2, older: [1])
        defer { store.close() }
        let second = try #require(try store.committing { $0.reseal(rowCountMax: 4) }.receipt.resealing)
        #expect(second.visitedRowCount == 8)
        #expect(try pass(over: store).last.isDone)
        #expect(try store.read { try $0.laggingRowCount() } == 0)
    }

    @Test func `a key that is not loaded is missed for as long as values are under it`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state, key: 1)
        for number in 1...3 { _ = try store.write { try $0.putCanaries(number) } }
        store.add(try .test(2))
        store.add(try .test(3))
        try promote(2, in: store)
        #expect(try store.read { try $0.missingDataKeys() } == [])
        store.close()
        store = try openStore(folder.state, key: 2)
        #expect(try store.read { try $0.missingDataKeys() } == ["data-test-1"])
        for (key, hasSealed) in [(1, true), (2, true), (3, false)] {
            #expect(try store.read { try $0.hasSealed(under: "data-test-\(key)") } == hasSealed)
        }
        for (key, hasValues) in [(1, true), (2, false), (3, false)] {
            #expect(try store.read { try $0.hasValues(under: "data-test-\(key)") } == hasValues)
        }
        store.close()
        store = try openStore(folder.state, key: 2, older: [1])
        #expect(try pass(over: store).last.isDone)
        store.close()
        store = try openStore(folder.state, key: 2)
        defer { store.close() }
        #expect(try store.read { try $0.missingDataKeys() } == [])
    }

    @Test func `a value that cannot be read keeps its key, and the pass does not end`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.state, key: 1)
        for number in 1...3 { _ = try store.write { try $0.putCanaries(number) } }
        store.close()
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE person SET sealed = CAST(sealed || x'00' AS BLOB) WHERE number = 2")
        }
        store = try openStore(folder.state, key: 1)
        defer { store.close() }
        store.add(try .test(2))
        try promote(2, in: store)
        #expect(throws: StoreError.self) { try pass(over: store) }
        #expect(try store.read { try $0.hasValues(under: "data-test-1") })
    }

    // MARK: In its place

    private struct Place: Sendable, CustomStringConvertible {
        var file: String
        var table: String
        var sealed: String
        var key: String
        /// Of the two first rows in the order of the key.
        var row: Int
        /// What finds the row, as SQL.
        var condition: String {
            "(\(key)) = (SELECT \(key) FROM \(table) ORDER BY \(key) LIMIT 1 OFFSET \(row))"
        }
        var description: String { "\(table) \(row)" }
    }

    private static let places: [Place] = [
        ("subjects.db", "subject", "tag_key", "number"), ("gate.db", "person", "sealed", "number"),
        ("gate.db", "ledger", "sealed", "person, kind, position"), ("gate.db", "send", "sealed", "number"),
        ("gate.db", "event", "sealed", "cursor"), ("gate.db", "outbox", "sealed", "number"),
        ("gate.db", "offered", "sealed", "number"),
    ].flatMap { place in
        (0...1).map { Place(file: place.0, table: place.1, sealed: place.2, key: place.3, row: $0) }
    }

    /// Two rows of every table with sealed values, as a kill leaves them.
    private func filled() throws -> TemporaryFolder {
        let (folder, killed) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try openStore(folder.state)
        for number in 1...2 {
            try store.write { _ = try $0.putCanaries(number) }
            try store.write { $0.offerOutbox(.canary(10 + number, of: number)) }
        }
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        return killed
    }

    /// Whether a value is refused once all are read, after an edit by one who has the key of pages.
    private func isRefused(_ folder: TemporaryFolder, _ file: String, _ sql: String) throws -> Bool {
        let copy = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
        try tamper("\(copy.state)/\(file)") { try $0.script(sql) }
        do {
            let store = try openStore(copy.state)
            store.add(try .test(2))
            try promote(2, in: store)
            _ = try pass(over: store)
            return false
        } catch let error as StoreError where error.damage != nil {
            return true
        }
    }

    @Test func `no sealed value is taken in the place of another`() throws {
        let folder = try filled()
        let values = try Self.places.map { place in
            try tamper("\(folder.state)/\(place.file)") {
                try $0.pragma("SELECT hex(\(place.sealed)) FROM \(place.table) WHERE \(place.condition)")
            }
        }
        #expect(Set(values).count == Self.places.count && !values.contains(""))
        #expect(try !isRefused(folder, "gate.db", "SELECT 1"))
        let moves = Self.places.indices.flatMap { from in
            Self.places.indices.filter { $0 != from }.map { (from: from, to: $0) }
        }
        for move in Soak.part(of: moves, 30, "moves of sealed values") {
            let place = Self.places[move.to]
            let sql =
                "UPDATE \(place.table) SET \(place.sealed) = x'\(values[move.from])' WHERE \(place.condition)"
            #expect(try isRefused(folder, place.file, sql), "\(Self.places[move.from]) to \(place)")
        }
    }

    @Test func `no sealed value is taken beside another column that its row is looked up by`() throws {
        let folder = try filled()
        var columns: [(place: Place, name: String, type: String)] = []
        for place in Self.places where place.row == 0 {
            let found = try tamper("\(folder.state)/\(place.file)") {
                try $0.every(
                    StatementText(
                        "schema",
                        """
                        SELECT name, type FROM pragma_table_info(?1) WHERE pk > 0 OR name IN (
                            SELECT i.name FROM pragma_index_list(?1) l, pragma_index_xinfo(l.name) i WHERE i.key)
                        """), { $0.add(place.table) }
                ) { (place, $0.text(), $0.text()) }
            }
            columns += found
        }
        // Nobody is found by the number of a mapping, and a message is put off without being opened.
        columns.removeAll {
            ["subject.number", "outbox.not_before"].contains("\($0.place.table).\($0.name)")
        }
        #expect(columns.count > 20, "\(columns.map { "\($0.place.table).\($0.name)" })")
        for (place, name, type) in columns {
            let other =
                type == "INTEGER"
                ? "ifnull(\(name), 0) + 1000" : "zeroblob(max(length(ifnull(\(name), x'')), 16))"
            let sql = "UPDATE \(place.table) SET \(name) = \(other) WHERE \(place.condition)"
            #expect(try isRefused(folder, place.file, sql), "\(place.table).\(name)")
        }
    }
}
