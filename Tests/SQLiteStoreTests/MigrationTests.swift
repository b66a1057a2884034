import CSQLite
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Synchronization
import Testing

@testable import SQLiteStore

/// A state directory of an earlier version is brought up to date by the next start, whatever ends that (SG-0083).
@Suite struct MigrationTests {
    /// Made once, as is what comes of it when nothing ends the start.
    private static let made = Result {
        let folder = try TemporaryFolder()
        let path = try EarlierState.make(in: folder)
        let whole = folder.path + "/whole"
        try FileManager.default.copyItem(atPath: path, toPath: whole)
        try openLater(whole).close()
        return (folder: folder, earlier: path, migrated: try EarlierState.contents(of: whole))
    }

    private let folder: TemporaryFolder
    private let earlier: String
    private let first = Schema.gate.version

    init() throws {
        folder = try TemporaryFolder()
        earlier = folder.path + "/earlier"
        try FileManager.default.copyItem(atPath: try Self.made.get().earlier, toPath: earlier)
    }

    private func copy(_ path: String, _ name: String) throws -> String {
        let copy = "\(folder.path)/\(name)"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return copy
    }

    /// The whole contents after a start that nothing ended.
    private func migrated() throws -> [String] { try Self.made.get().migrated }

    private func version(_ path: String) throws -> String {
        try tamper(path + "/gate.db") { try $0.pragma("PRAGMA user_version") }
    }

    /// Every file but the lock, by name.
    private func bytes(_ path: String) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        return Dictionary(
            uniqueKeysWithValues: try names.filter { $0 != "state.lock" && !$0.hasSuffix("-shm") }.map {
                ($0, try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)")))
            })
    }

    @Test func `an earlier directory becomes what the later build writes itself, and is read as ever`() throws
    {
        let kept = try EarlierState.contents(of: earlier)
        #expect(kept.contains { $0.hasPrefix("offered ") })
        var told: [MigrationProgress] = []
        let store = try openLater(earlier) { told.append($0) }
        for number in 1...5 {
            let subject = try #require(
                try store.read { try $0.subject(of: UserID("\(Canary.user)-\(number)"))?.id })
            #expect(try store.read { try $0.devices(of: subject).first?.token } == Canary.token)
            #expect(try store.read { try $0.send(SendID.sample(number))?.requestID } == Canary.request)
            let waiting = try store.read { try $0.outbox(MessageID.sample(number)) }
            #expect(waiting?.body == Array(Canary.body.utf8))
        }
        // What was offered when the process ended waits as tried.
        #expect(
            try store.read { try $0.outbox(MessageID.sample(EarlierState.offered + 1)) }?.body
                == Array(Canary.body.utf8))
        try store.write { _ = try $0.putCanaries(6) }
        #expect(store.damages.isEmpty)
        store.close()
        #expect(try version(earlier) == "\(first + 3)")

        // Pages first, then the steps in their order, each with its own count that only rises.
        #expect(told.first?.work == .checking)
        #expect(told.contains { $0.work == .script && $0.version == first + 1 })
        for step in [first + 2, first + 3] {
            let own = told.filter { $0.work == .rows && $0.version == step }
            #expect(own.map(\.done) == own.map(\.done).sorted() && own.first?.done == 0)
            #expect(own.last?.done == own.last?.total && own.count > 4, "\(own)")
        }
        #expect(told.map(\.version) == told.map(\.version).sorted())
    }

    @Test func `a directory of the newest version is opened as it is`() throws {
        try openLater(earlier).close()
        let before = try EarlierState.contents(of: earlier)
        try openLater(earlier) { Issue.record("\($0)") }.close()
        #expect(try EarlierState.contents(of: earlier) == before)
        // A new one has every table, and no rows to rewrite.
        let fresh = folder.path + "/fresh"
        try openLater(fresh) { Issue.record("\($0)") }.close()
        #expect(try version(fresh) == "\(first + 3)")
    }

    // MARK: Killed

    @Test func `a start that is killed between any two transactions is gone on with by the next`() throws {
        let whole = try migrated()
        var copies: [String] = []
        try openLater(earlier) { _ in
            // As the disk is when the process is killed now.
            copies.append(try copy(earlier, "killed-\(copies.count)"))
        }.close()
        #expect(copies.count > 15)
        for path in Soak.part(of: copies, 6, "kills between transactions") {
            try openLater(path).close()
            #expect(try EarlierState.contents(of: path) == whole, "\(path)")
        }
    }

    @Test func `starts that are all killed bring a directory up to date together`() throws {
        let whole = try migrated()
        var starts = 0
        while true {
            starts += 1
            try #require(starts < 200)
            var left = 3
            do {
                try openLater(earlier) { _ in
                    left -= 1
                    if left == 0 { throw Interrupted() }
                }.close()
                break
            } catch is Interrupted {}
        }
        #expect(starts > 8)
        #expect(try EarlierState.contents(of: earlier) == whole)
    }

    /// Each write that the start makes, in turn: the disk takes it no more, nor any after it.
    @Test(arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8])
    func `a disk that fails at any write ends the start by name, and loses nothing`(code: Int32) throws {
        let whole = try migrated()
        let step = Soak.isWhole ? 1 : 37
        var position = Soak.isWhole ? 1 : 1 + Int(Soak.seed("writes that fail") % 37)
        var failures = 0
        while true {
            let path = try copy(earlier, "faulty")
            let files = FaultyFiles.shared.watch(path)
            defer { FaultyFiles.shared.unwatch(path) }
            files.fail(.write, at: position, code: code, lasts: true)
            let isOpen: Bool
            do {
                try openLater(path).close()
                isOpen = true
            } catch StoreError.unavailable(let message) {
                isOpen = false
                failures += 1
                #expect(message.contains("gate.db") || message.contains("subjects.db"), "\(message)")
            }
            files.heal()
            let left = try copy(path, "left")
            try openLater(left).close()
            #expect(try EarlierState.contents(of: left) == whole, "write \(position)")
            try FileManager.default.removeItem(atPath: left)
            try FileManager.default.removeItem(atPath: path)
            // Beyond the last write nothing was left to fail.
            if isOpen, files.count(.write) < position { break }
            position += step
            try #require(position < 5_000)
        }
        #expect(failures > 2)
    }

    @Test func `what a power cut leaves is gone on with`() throws {
        let whole = try migrated()
        let durable = folder.path + "/durable"
        try FileManager.default.copyItem(atPath: earlier, toPath: durable)
        _ = FaultyFiles.shared.watch(earlier, keepingDurable: durable)
        defer { FaultyFiles.shared.unwatch(earlier) }
        var copies: [String] = []
        try openLater(earlier) { _ in
            let path = try copy(durable, "cut-\(copies.count)")
            // After another boot it says nothing.
            for file in ["gate.db", "subjects.db"] {
                try? FileManager.default.removeItem(atPath: "\(path)/\(file)-mark")
            }
            copies.append(path)
        }.close()
        for path in Soak.part(of: copies, 6, "power cuts between transactions") {
            try openLater(path).close()
            #expect(try EarlierState.contents(of: path) == whole, "\(path)")
        }
    }

    @Test func `however many rows there are, a transaction and the log stay small`() throws {
        let count = Soak.count(50_000, short: 600)
        let many = try EarlierState.make(in: folder, count: count, named: "many")
        var (largest, transactions): (Int64, [MigrationProgress]) = (0, [])
        let start = ContinuousClock.now
        try openLater(many, rowCountMax: 100) { progress in
            largest = max(largest, StateDirectory.byteCount(at: many + "/gate.db-wal"))
            if progress.work == .rows { transactions.append(progress) }
        }.close()
        let rows = Set(transactions.map(\.version)).compactMap { version in
            transactions.last { $0.version == version }?.total
        }.reduce(0, +)
        let line = "\(rows) rows of \(count) people were rewritten in \(ContinuousClock.now - start)\n"
        FileHandle.standardError.write(Data(line.utf8))
        #expect(rows > 4 * Int64(count))
        for (one, next) in zip(transactions, transactions.dropFirst()) where one.version == next.version {
            #expect(next.done - one.done <= 100)
        }
        // The bound of a log before it is moved, with what one transaction writes.
        #expect(largest < 48 << 20)
    }

    // MARK: Refused

    @Test func `an earlier build refuses a directory from the first step on, and touches nothing`() throws {
        var copies: [String] = []
        try openLater(earlier) { progress in
            guard progress.work == .rows else { return }
            copies.append(try copy(earlier, "begun-\(copies.count)"))
        }.close()
        copies = [copies[0], copies[3], try #require(copies.last), earlier]
        for path in copies {
            let before = try bytes(path)
            for open in [
                { _ = try openStore(path) }, { try SQLiteStore.requireUnused(path) },
                { _ = try ReadOnlyStore(directory: path) { (RowCipher(current: try .test(1)), .test()) } },
                { _ = try PageInspection.damages(in: path, under: .test()) },
            ] as [() throws -> Void] {
                let error = #expect(throws: StoreOpeningError.self) { try open() }
                guard case .newerSchema("gate.db", let found, first)? = error else {
                    Issue.record("\(error as Any)")
                    continue
                }
                #expect(found > first)
                #expect("\(error!)".contains("`gate.db` was written by a newer sendgate"))
                #expect(error!.hint.contains("backup that was made before the upgrade"))
            }
            #expect(!SQLiteStore.hasUnverifiedSetting("restore", in: path))
            #expect(try bytes(path) == before)
        }
        // The first of them has the number in its log alone.
        #expect(try bytes(copies[0])["gate.db-wal"]?.isEmpty == false)
    }

    @Test func `who only reads refuses an earlier directory, and one whose migration was interrupted`() throws
    {
        func openToRead() throws {
            try ReadOnlyStore(directory: earlier, schemas: EarlierState.later) {
                (RowCipher(current: try .test(1)), .test())
            }.close()
        }
        // Beside a database SQLite may leave an empty log, which every connection makes.
        func databases() throws -> [String: Data] { try bytes(earlier).filter { $0.key.hasSuffix(".db") } }
        let before = try databases()
        var error = #expect(throws: StoreOpeningError.self) { try openToRead() }
        #expect(error == .olderSchema(file: "gate.db", found: first, newestKnown: first + 3))
        #expect(error?.hint.contains("start the gateway once") == true)
        #expect(try databases() == before)
        #expect(throws: Interrupted.self) {
            try openLater(earlier) { if $0.version == first + 3, $0.done > 4 { throw Interrupted() } }
        }
        error = #expect(throws: StoreOpeningError.self) { try openToRead() }
        #expect(error == .olderSchema(file: "gate.db", found: first + 3, newestKnown: first + 3))
        try openLater(earlier).close()
        try openToRead()
    }

    @Test func `a damaged page stops a migration before anything is changed`() throws {
        let number = try tamper(earlier + "/gate.db", movingLog: true) {
            try $0.pragma("SELECT rootpage FROM sqlite_schema WHERE name = 'send'")
        }
        let offset = UInt64((try #require(Int(number)) - 1) * PageCode.pageByteCount + 700)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: earlier + "/gate.db"))
        try file.seek(toOffset: offset)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: offset)
        try file.write(contentsOf: [byte ^ 1])
        try file.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: earlier + "/gate.db"))
        let error = #expect(throws: StoreOpeningError.self) { try openLater(earlier) }
        guard case .damaged("gate.db", "page \(number)", nil, _)? = error else {
            Issue.record("\(error as Any)")
            return
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: earlier + "/gate.db")) == before)
    }

    @Test func `a page that is damaged on the disk alone, and whole in the log, stops nothing`() throws {
        let whole = try migrated()
        let number = try tamper(earlier + "/gate.db", movingLog: true) {
            try $0.pragma("SELECT rootpage FROM sqlite_schema WHERE name = 'setting'")
        }
        // The page is in the log, and what was on the disk before is half written.
        try tamper(earlier + "/gate.db") {
            try $0.script("INSERT INTO setting VALUES ('a', 'b')")
            try $0.script("DELETE FROM setting WHERE name = 'a'")
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: earlier + "/gate.db"))
        try file.seek(toOffset: UInt64((try #require(Int(number)) - 1) * PageCode.pageByteCount + 700))
        try file.write(contentsOf: [0xFF, 0x55])
        try file.close()
        try openLater(earlier).close()
        #expect(try EarlierState.contents(of: earlier) == whole)
    }

    @Test func `a step reads rows as of the version before it`() throws {
        let versions = Mutex<[String: Set<Int>]>([:])
        var schemas = EarlierState.later
        let tables = EarlierState.tables.map { table in
            var copy = table
            let (name, relaying) = (table.name, table.relaying)
            copy.relaying = { fields, key, version in
                versions.withLock { _ = $0[name, default: []].insert(version) }
                return try relaying?(fields, key, version)
            }
            return copy
        }
        let count = schemas.gate.steps.count
        schemas.gate.steps[count - 2] = .rows(Array(tables[..<2]))
        schemas.gate.steps[count - 1] = .rows(Array(tables[2...]))
        try openLater(earlier, schemas: schemas).close()
        #expect(
            versions.withLock { $0 } == [
                "person": [first + 1], "ledger": [first + 1], "send": [first + 2], "outbox": [first + 2],
                "offered": [first + 2],
            ])
    }

    @Test func `a row of another layout is written in that of this build, and one of this build's is left`()
        throws
    {
        // As this build writes them.
        try openLater(earlier).close()
        var looked = 0
        for table in SealedTable.all {
            guard let relaying = table.relaying else {
                #expect(["subject", "event"].contains(table.name))
                continue
            }
            for line in try Self.made.get().migrated where line.hasPrefix("\(table.name) [") {
                let parts = line.dropFirst(table.name.count + 2).split(separator: "] ")
                let key = parts[0].split(separator: ", ").compactMap { Int64($0) }
                let fields = try #require(Hexadecimal.decode(String(parts[1])))
                #expect(try relaying(fields, key, first) == nil, "\(line)")
                var other = fields
                // The layout of the first message in a row of several stands behind its length.
                let place = table.name == "offered" ? 9 : 0
                other[place] = 255
                #expect(try relaying(other, key, first) == fields, "\(line)")
                other.removeLast()
                #expect(throws: (any Error).self) { try relaying(other, key, first) }
                looked += 1
            }
        }
        #expect(looked > 20)
    }

    @Test func `a value that does not open is damage before and after, and keeps nothing else back`() throws {
        try tamper(earlier + "/gate.db", movingLog: true) {
            try $0.script("UPDATE person SET sealed = CAST(sealed || x'00' AS BLOB) WHERE number = 2")
        }
        let store = try openLater(earlier)
        defer { store.close() }
        #expect(store.damages.map(\.table) == ["person"] && store.damages.first?.row == "2")
        for number in [1, 3, 4, 5] {
            #expect(try store.read { try $0.state(of: .sample(number)) } != nil)
        }
        #expect(throws: StoreError.self) { try store.read { try $0.state(of: .sample(2)) } }
    }

    @Test func `a key that is missing stops a migration, which goes on with it`() throws {
        let whole = try migrated()
        let error = #expect(throws: StoreOpeningError.self) {
            try SQLiteStore(directory: earlier, schemas: EarlierState.later) {
                (RowCipher(current: try .test(2)), .test())
            }
        }
        #expect(error == .missingDataKey(id: "data-test-1"))
        try openLater(earlier).close()
        #expect(try EarlierState.contents(of: earlier) == whole)
    }

    @Test func `a row that a step cannot read stops it, and the right step goes on`() throws {
        let whole = try migrated()
        var wrong = EarlierState.later
        var tables = EarlierState.tables
        for place in tables.indices {
            tables[place].relaying = { fields, key, version in
                try RecipientState.relaid(fields, from: version)
            }
        }
        wrong.gate.steps[wrong.gate.steps.count - 1] = .rows(Array(tables[2...]))
        let error = #expect(throws: StoreError.self) { try openLater(earlier, schemas: wrong) }
        #expect(error?.damage != nil)
        try openLater(earlier).close()
        #expect(try EarlierState.contents(of: earlier) == whole)
    }

    @Test func `seals of a migration are counted`() throws {
        let path = try copy(earlier, "counted")
        let before = try tamper(path + "/gate.db") {
            Int64(try $0.pragma("SELECT seal_count FROM key_check"))
        }
        let store = try openLater(path)
        let count = store.dataKeyUse.sealCount
        store.close()
        let after = try tamper(path + "/gate.db") { Int64(try $0.pragma("SELECT seal_count FROM key_check")) }
        #expect(count > UInt64(try #require(before)) + 20)
        #expect(try #require(after) >= Int64(count))
        // Counted once, and not added to itself by the same start.
        #expect(count < UInt64(try #require(before)) + 1_000)
    }

    // MARK: Kept promises

    /// What the released versions were made of. A change here is a step that somebody changed: add one instead.
    @Test func `no step that was released has changed`() throws {
        func digest(_ step: Schema.Step) -> String {
            switch step {
            case .script(let script): Hexadecimal.encode(SHA256.digest(Array(script.utf8)).bytes.prefix(8))
            case .rows(let tables): "rows of " + tables.map(\.name).joined(separator: " ")
            }
        }
        #expect(Schema.gate.refusedVersionCount == 2 && Schema.subjects.refusedVersionCount == 0)
        #expect(Schema.gate.steps.prefix(1).map(digest) == ["bab3ab4ef97ce6a0"])
        #expect(Schema.subjects.steps.prefix(1).map(digest) == ["b0e020b67eeb109f"])
    }

    @Test func `a column that came later is added by its own step, and written with the others`() throws {
        let table = StoredTable(
            "some", ["number": "INTEGER PRIMARY KEY", "a": "TEXT NOT NULL"], added: ["b": "TEXT"])
        #expect(!table.text.contains("b TEXT"))
        #expect(table.addition(of: "b") == "ALTER TABLE some ADD COLUMN b TEXT;\n")
        #expect(table.insertion.contains("(a, b, number)"))
        #expect(table.replacement == "UPDATE some SET a = ?, b = ? WHERE number = ?")
    }
}
