import Foundation
import CSQLite
import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import Testing

@testable import SQLiteStore

/// What happens when the disk fails under the store. Serial inside, because each case counts operations.
@Suite struct FaultTests {
    /// `SQLITE_IOERR_WRITE`, `SQLITE_IOERR_FSYNC`: macros with a shift, which do not import.
    private static let writeError = SQLITE_IOERR | 3 << 8
    private static let fsyncError = SQLITE_IOERR | 4 << 8

    /// A state directory that can fail.
    private final class FaultyState {
        let folder: TemporaryFolder
        let files: FaultyFiles.Folder
        private(set) var store: SQLiteStore?

        init(durable: String? = nil, limits: SQLiteStoreLimits = SQLiteStoreLimits(readerCount: 1)) throws {
            folder = try TemporaryFolder()
            files = FaultyFiles.shared.watch(folder.state, keepingDurable: durable)
            store = try openStore(folder.state, limits: limits)
        }

        func reopen() throws {
            store?.close()
            store = try openStore(folder.state)
        }

        deinit {
            store?.close()
            FaultyFiles.shared.unwatch(folder.state)
        }
    }

    /// Whether the write of `number` is wholly there, wholly absent; anything between is recorded as an issue.
    private func isThere(_ number: Int, in store: SQLiteStore) throws -> Bool {
        try store.read { store in
            let signs = [
                try store.send(.sample(number)) != nil,
                try store.outbox(MessageID.sample(number)) != nil,
                try store.recipient(.sample(number)) != nil,
                try store.devices(of: .sample(number)).first?.token == Canary.token,
                try store.events(of: SendID.sample(number)).count == 1,
                try store.entryCount() == UInt64(number),
                try store.outboxDepth().rowCount == number,
                try store.setting("last") == "\(number)",
            ]
            #expect(Set(signs).count == 1, "half of write \(number) is there: \(signs)")
            return signs[0]
        }
    }

    private func perform(_ number: Int, on store: SQLiteStore) throws {
        try store.write { transaction in
            try transaction.putCanaries(number)
            transaction.setSetting("last", to: "\(number)")
        }
    }

    @Test(arguments: [SQLITE_FULL, writeError, SQLITE_READONLY, SQLITE_CANTOPEN])
    func `whichever write fails, the transaction has not happened and the next one works`(_ code: Int32)
        throws
    {
        let state = try FaultyState()
        try perform(1, on: try #require(state.store))
        var number = 2
        for position in 1... {
            let store = try #require(state.store)
            state.files.fail(.write, at: position, code: code)
            do {
                try perform(number, on: store)
                // No write of this transaction was left to fail.
                #expect(state.files.count(.write) < position)
                break
            } catch StoreError.unavailable(let message) {
                #expect(!message.isEmpty)
            }
            state.files.heal()
            #expect(try !isThere(number, in: store))
            #expect(try isThere(number - 1, in: store))
            // Space is back: the gate recovers by itself.
            try perform(number, on: store)
            #expect(try isThere(number, in: store))
            if position.isMultiple(of: 5) { try state.reopen() }
            #expect(try isThere(number, in: try #require(state.store)))
            number += 1
            try #require(position < 200, "a transaction of this size makes fewer writes")
        }
        #expect(number > 3)
        state.files.heal()
        try state.reopen()
        #expect(try isThere(number, in: try #require(state.store)))
    }

    /// What the gate can do about each of SQLite's result codes (sqlite.org/rescode.html), by hand. The extended codes are
    /// macros with a shift in them, which do not import.
    private static let codes: [(code: Int32, means: String)] =
        [4, 5].map { (SQLITE_IOERR | $0 << 8, "lost durability") }
        + [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 28].map {
            (SQLITE_IOERR | $0 << 8, "unavailable")
        }
        + [
            SQLITE_FULL, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH, SQLITE_BUSY,
            SQLITE_LOCKED,
            SQLITE_PROTOCOL, SQLITE_NOMEM,
        ].map { ($0, "unavailable") }
        + [(SQLITE_CONSTRAINT, "unfit"), (SQLITE_CONSTRAINT | 8 << 8, "unfit")]
        + [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_MISMATCH].map { ($0, "damaged") }

    @Test(arguments: codes)
    func `every code of SQLite's is what can be done about it`(_ row: (code: Int32, means: String)) {
        let means =
            switch StoreFailure.error(code: row.code, message: "m", file: "gate.db", table: "send") {
            case StoreError.lostDurability: "lost durability"
            case StoreError.unavailable: "unavailable"
            case is UnfitWrite: "unfit"
            case let error as StoreError where error.damage?.table == "send": "damaged"
            case let error: "\(error)"
            }
        #expect(means == row.means)
    }

    @Test func `a disk that stays full refuses every write and still answers questions`() throws {
        let state = try FaultyState()
        let store = try #require(state.store)
        try perform(1, on: store)
        state.files.fail(.write, at: 1, code: SQLITE_FULL, lasts: true)
        for _ in 0..<3 {
            #expect(throws: StoreError.self) { try perform(2, on: store) }
            #expect(try isThere(1, in: store))
        }
        state.files.heal()
        try perform(2, on: store)
        #expect(try isThere(2, in: store))
    }

    @Test
    func `a failed synchronization ends this process's use of the store, and a restart reads what is true`()
        throws
    {
        for position in 1... {
            let state = try FaultyState()
            let store = try #require(state.store)
            try perform(1, on: store)
            // What was loaded before, and is to be written after.
            let late = try store.changes { $0.setSetting("late", to: "1") }
            state.files.fail(.synchronize, at: position, code: Self.fsyncError)
            do {
                try perform(2, on: store)
                #expect(state.files.count(.synchronize) < position)
                #expect(position > 2, "a registration synchronizes both databases")
                break
            } catch StoreError.lostDurability {
                // What was asked for may or may not be on disk; nothing may go on as if it were known.
            }
            state.files.heal()
            func isLost(_ body: () throws -> Void) -> Bool {
                do {
                    try body()
                    return false
                } catch StoreError.lostDurability {
                    return true
                } catch {
                    return false
                }
            }
            #expect(isLost { try perform(3, on: store) })
            #expect(isLost { _ = try store.commit(late) })
            #expect(isLost { _ = try store.read { try $0.entryCount() } })
            #expect(isLost { try store.finishErasures() })
            try state.reopen()
            let reopened = try #require(state.store)
            let wasThere = try isThere(2, in: reopened)
            try perform(wasThere ? 3 : 2, on: reopened)
            try #require(position < 50, "a transaction synchronizes only a few times")
        }
    }

    /// Each write of a commit and of moving the log behind it, or each synchronization, fails once.
    @Test(arguments: [(false, SQLITE_FULL), (false, writeError), (true, fsyncError)])
    func `what fails while the log is moved undoes no commit, and a lost synchronization is always told`(
        _ isSync: Bool, _ code: Int32
    ) throws {
        let operation: FaultyFiles.Operation = isSync ? .synchronize : .write
        for position in 1... {
            let state = try FaultyState(
                limits: SQLiteStoreLimits(readerCount: 1, logByteCountBeforeCheckpoint: 1))
            let store = try #require(state.store)
            try perform(1, on: store)
            state.files.fail(operation, at: position, code: code)
            var failure: StoreError?
            do { try store.write { $0.setSetting("other", to: "1") } } catch let error as StoreError {
                failure = error
            }
            let isOver = state.files.count(operation) < position
            state.files.heal()
            if isOver {
                // A commit and the move after it, each in the log and in the database.
                #expect(failure == nil && position > 2)
                break
            }
            if isSync {
                if case .lostDurability? = failure {
                } else {
                    Issue.record("not told at \(position): \(failure as Any)")
                }
            } else {
                let isThere = try store.read { try $0.setting("other") } == "1"
                #expect(isThere == (failure == nil), "\(position): \(failure as Any)")
            }
            try #require(position < 99)
        }
    }

    @Test func `a synchronization that fails while the log is moved is not overlooked`() throws {
        // A log so short that every commit moves it.
        let state = try FaultyState(
            limits: SQLiteStoreLimits(readerCount: 1, logByteCountBeforeCheckpoint: 1))
        let store = try #require(state.store)
        try perform(1, on: store)
        var sawLoss = false
        for position in 1...2 {
            guard !sawLoss else { break }
            state.files.fail(.synchronize, at: 1 + position, code: Self.fsyncError, lasts: true)
            do {
                try store.write { $0.setSetting("other", to: "\(position)") }
            } catch StoreError.lostDurability {
                sawLoss = true
            }
        }
        #expect(sawLoss)
        state.files.heal()
        try state.reopen()
        #expect(try isThere(1, in: try #require(state.store)))
    }

    /// A database of its own, with a table that is rolled back at a conflict and one that the commit refuses.
    private func withOwnTables(_ body: (Connection) throws -> Void) throws {
        let folder = try TemporaryFolder()
        let connection = try Connection(
            path: folder.path + "/own.db", file: "own.db", role: .writer(byteCountMax: nil),
            cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 100)
        try connection.exclusively {
            try connection.script(
                """
                PRAGMA foreign_keys = ON;
                CREATE TABLE own (number INTEGER PRIMARY KEY ON CONFLICT ROLLBACK);
                CREATE TABLE child (number INTEGER REFERENCES own (number) DEFERRABLE INITIALLY DEFERRED);
                """)
            try body(connection)
            let all = StatementText("own", "SELECT number FROM own")
            #expect(try connection.every(all) { $0.integer() } == [3])
        }
    }

    @Test func `after a rollback of SQLite's own nothing is written until the next transaction`() throws {
        try withOwnTables { connection in
            let insert = StatementText("own", "INSERT INTO own VALUES (?)")
            func put(_ number: Int64) throws { try connection.change(insert) { $0.add(number) } }
            try connection.begin(writing: true)
            try put(1)
            #expect(throws: UnfitWrite.self) { try put(1) }
            #expect(throws: StoreError.self) { try put(2) }
            #expect(throws: StoreError.self) { try connection.commit() }
            try connection.begin(writing: true)
            try put(3)
            try connection.commit()
        }
    }

    @Test func `a commit that is refused leaves no transaction open`() throws {
        try withOwnTables { connection in
            let (own, child) = (
                StatementText("own", "INSERT INTO own VALUES (?)"),
                StatementText("child", "INSERT INTO child VALUES (?)")
            )
            try connection.begin(writing: true)
            try connection.change(own) { $0.add(Int64(1)) }
            try connection.change(child) { $0.add(Int64(2)) }
            #expect(throws: UnfitWrite.self) { try connection.commit() }
            try connection.begin(writing: true)
            try connection.change(own) { $0.add(Int64(3)) }
            try connection.commit()
        }
    }

    @Test func `nothing of a transaction that SQLite itself has given up is there`() throws {
        let state = try FaultyState()
        let store = try #require(state.store)
        try perform(1, on: store)
        #expect(throws: StoreError.self) {
            try store.write { transaction in
                // The pages of a big transaction are written when it commits; one of those writes fails, and then every
                // later one.
                state.files.fail(.write, at: 1, code: SQLITE_FULL, lasts: true)
                for number in 0..<60_000 {
                    transaction.setSetting("filler-\(number)", to: String(repeating: "x", count: 2000))
                }
            }
        }
        state.files.heal()
        #expect(try store.read { try $0.setting("filler-0") } == nil)
        #expect(try isThere(1, in: store))
        try perform(2, on: store)
        #expect(try isThere(2, in: store))
    }

    @Test func `a full disk in the midst of a pass over the pages is no damage, and the pass goes on`() throws
    {
        let state = try FaultyState()
        let store = try #require(state.store)
        try perform(1, on: store)
        let writer = store.writer.connection
        let root = try writer.exclusively {
            try writer.emptyLog()
            // A page that nothing here reads or writes.
            return try #require(
                UInt64(
                    try writer.pragma("SELECT rootpage FROM sqlite_schema WHERE name = 'reply_by_address'")))
        }
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: state.folder.state + "/gate.db"))
        try file.seek(toOffset: (root - 1) * UInt64(PageCode.pageByteCount) + 100)
        try file.write(contentsOf: Data([0x77]))
        try perform(2, on: store)
        state.files.fail(.write, at: 1, code: SQLITE_FULL, lasts: true)
        for _ in 0..<2 { while try !store.checkPages(countMax: 9) {} }
        #expect(store.damages.isEmpty, "\(store.damages)")
        state.files.heal()
        while try !store.checkPages(countMax: 9) {}
        #expect(store.damages.map(\.table) == ["gate.db page \(root)"])
        #expect(store.pageCheck.passCount == 3)
        try perform(3, on: store)
        #expect(try isThere(3, in: store))
    }

    // MARK: Power cuts

    /// Opens the bytes that were synchronized, and no others.
    private func powerCut(leaving durable: TemporaryFolder, in afterwards: TemporaryFolder) throws
        -> SQLiteStore
    {
        try FileManager.default.createDirectory(
            atPath: afterwards.state, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        for name in try FileManager.default.contentsOfDirectory(atPath: durable.path) {
            try FileManager.default.copyItem(
                atPath: durable.path + "/" + name, toPath: afterwards.state + "/" + name)
        }
        return try openStore(afterwards.state)
    }

    @Test func `a commit is durable once it is synchronized, or once it was read`() throws {
        let durable = try TemporaryFolder()
        let state = try FaultyState(durable: durable.path)
        let store = try #require(state.store)
        func setting(_ name: String) throws -> String? {
            let afterwards = try TemporaryFolder()
            return try powerCut(leaving: durable, in: afterwards).read { try $0.setting(name) }
        }
        func commit(_ name: String) throws {
            let changes = try store.changes { $0.setSetting(name, to: "1") }
            _ = try store.commit(changes)
        }
        try perform(1, on: store)
        try commit("a")
        try commit("b")
        #expect(try setting("a") == nil)
        try store.synchronize()
        #expect(try (setting("a"), setting("b")) == ("1", "1"))
        try commit("c")
        #expect(try setting("c") == nil)
        #expect(try store.read { try $0.setting("c") } == "1")
        #expect(try setting("c") == "1")
        // What is refused on reading was found there too.
        try commit("d")
        #expect(throws: StoreError.self) {
            try store.read { reading in
                if try reading.setting("d") == "1" { throw StoreError.unavailable("it is there") }
            }
        }
        #expect(try setting("d") == "1")
    }

    @Test func `a mapping is not destroyed before its mark is durable`() throws {
        let state = try FaultyState()
        let store = try #require(state.store)
        try perform(1, on: store)
        let changes = try store.changes { $0.eraseSubject(.sample(1)) }
        _ = try store.commit(changes)
        state.files.fail(.synchronize, at: 1, code: Self.fsyncError)
        #expect(throws: StoreError.lostDurability("the log of `gate.db` could not be synchronized (1034)")) {
            try store.finishErasures()
        }
        #expect(state.files.count(.synchronize) == 1)
        state.files.heal()
        let mapped = try store.subjectsWriter.connection.exclusively {
            try store.subjectsWriter.connection.pragma("SELECT count(*) FROM subject")
        }
        #expect(mapped == "1")
    }

    @Test func `a checkpoint that lost the log ends the use of the store, and no commit is called durable`()
        throws
    {
        let state = try FaultyState(
            limits: SQLiteStoreLimits(readerCount: 1, logByteCountBeforeCheckpoint: 1))
        let store = try #require(state.store)
        try perform(1, on: store)
        let changes = try store.changes { $0.setSetting("a", to: "1") }
        store.writer.mover.wait()
        // The log was moved, so the commit begins it anew with its header; the second is the checkpoint's, of the log.
        state.files.fail(.synchronize, at: 2, code: Self.fsyncError)
        func isLost(_ body: () throws -> Void) -> Bool {
            do { try body() } catch StoreError.lostDurability { return true } catch { return false }
            return false
        }
        #expect(isLost { _ = try store.commit(changes) })
        state.files.heal()
        #expect(isLost { try store.writer.connection.synchronize() })
        #expect(isLost { try store.synchronize() })
    }

    @Test func `what a write returned from survives the loss of everything that was not synchronized`() throws
    {
        let durable = try TemporaryFolder()
        let state = try FaultyState(durable: durable.path)
        let store = try #require(state.store)
        for number in 1...12 {
            try perform(number, on: store)
            let afterwards = try TemporaryFolder()
            let recovered = try powerCut(leaving: durable, in: afterwards)
            #expect(try isThere(number, in: recovered))
            let user = UserID(Canary.user + "-\(number)")
            #expect(try recovered.read { try $0.subject(of: user)?.id } == .sample(number))
        }
    }

    @Test func `files copied in the middle of a transaction hold the state before it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try perform(1, on: store)
        let copy = try TemporaryFolder()
        try store.write { transaction in
            try transaction.putCanaries(2)
            transaction.setSetting("last", to: "2")
            for number in 0..<5_000 {
                transaction.setSetting("filler-\(number)", to: String(repeating: "x", count: 2000))
            }
            try FileManager.default.createDirectory(
                atPath: copy.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700]
            )
            for name in ["gate.db", "gate.db-wal", "subjects.db", "subjects.db-wal"] {
                try FileManager.default.copyItem(
                    atPath: folder.state + "/" + name, toPath: copy.state + "/" + name)
            }
        }
        let recovered = try openStore(copy.state)
        #expect(try isThere(1, in: recovered))
        #expect(try recovered.read { try $0.subject(of: UserID(Canary.user + "-2")) } == nil)
        #expect(try isThere(2, in: store))
    }

    @Test func `a crash between the two commits leaves a mapping that the next registration takes up`() throws
    {
        let state = try FaultyState()
        let store = try #require(state.store)
        try perform(1, on: store)
        // Find the write at which the mapping is committed and the rest is not.
        for position in 1...60 {
            state.files.fail(.write, at: position, code: SQLITE_FULL)
            #expect(throws: StoreError.self) { try perform(2, on: store) }
            state.files.heal()
            if try store.read({ try $0.subject(of: UserID(Canary.user + "-2")) }) != nil { break }
        }
        let left = try #require(try store.read { try $0.subject(of: UserID(Canary.user + "-2")) })
        #expect(try !isThere(2, in: store))
        let taken = try store.write {
            try $0.makeSubject(for: UserID(Canary.user + "-2"), subject: .sample(99))
        }
        #expect(taken.id == left.id)
        try perform(2, on: store)
        #expect(try isThere(2, in: store))
    }

    // MARK: The store's own bound

    @Test func `a store at its bound refuses to grow, answers, and goes on when rows are gone`() throws {
        let folder = try TemporaryFolder()
        let limits = SQLiteStoreLimits(readerCount: 1, gateByteCountMax: 2 << 20)
        let store = try openStore(folder.state, limits: limits)
        try perform(1, on: store)
        var count = 0
        func fill() throws {
            while true {
                try store.write { transaction in
                    for _ in 0..<10 {
                        transaction.setSetting("filler-\(count)", to: String(repeating: "x", count: 3000))
                        count += 1
                    }
                }
            }
        }
        #expect {
            try fill()
        } throws: { error in
            guard case StoreError.unavailable(let message) = error else { return false }
            return message.contains("cannot grow")
        }
        #expect(try isThere(1, in: store))
        try store.write { transaction in
            for number in 0..<200 { transaction.setSetting("filler-\(number)", to: nil) }
        }
        try perform(2, on: store)
        #expect(try isThere(2, in: store))
    }

    @Test func `one call of prune is bounded, and calling again finishes`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(
            folder.state, limits: SQLiteStoreLimits(readerCount: 1, prunedRowCountMax: 10))
        try store.write { transaction in
            for number in 1...35 { try transaction.putCanaries(number) }
        }
        let later = Instant.sample.advanced(bySeconds: 1)
        var rounds: [Int] = []
        while true {
            let count = try store.committing { $0.prune(before: later) }.receipt.prunedRowCount
            guard count > 0 else { break }
            rounds.append(count)
        }
        #expect(rounds == [20, 20, 20, 10])
    }
}
