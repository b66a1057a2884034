import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import SQLiteStore

@Suite struct OpeningTests {
    private func mode(_ path: String) throws -> Int {
        try #require(
            FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        ).intValue
    }

    @Test func `everything in the directory is the owner's alone`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries() }
        #expect(try mode(folder.state) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.state).sorted()
        #expect(
            names == [
                "gate.db", "gate.db-mark", "gate.db-shm", "gate.db-wal", "state.lock", "subjects.db",
                "subjects.db-mark", "subjects.db-shm", "subjects.db-wal",
            ])
        for name in names { #expect(try mode(folder.state + "/" + name) == 0o600, "\(name)") }
    }

    @Test func `what people wanted without who they are is refused, not opened as if nobody had ever come`()
        throws
    {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        for name in ["subjects.db", "subjects.db-wal", "subjects.db-shm"] {
            try? FileManager.default.removeItem(atPath: folder.state + "/" + name)
        }
        let error = StoreOpeningError.subjectsMissing(
            file: "subjects.db", besides: "gate.db", path: folder.state)
        #expect(throws: error) { _ = try openStore(folder.state) }
        // Refusing leaves nothing behind that a second try would take for a database.
        #expect(throws: error) { _ = try openStore(folder.state) }
        #expect(error.hint.contains("together from one backup"))
    }

    @Test func `who is who copied without its log is refused`() throws {
        let folder = try TemporaryFolder()
        let copy = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        // While it is open, what was written last is in the logs.
        try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
        store.close()
        for name in ["subjects.db-wal", "subjects.db-shm"] {
            try FileManager.default.removeItem(atPath: copy.state + "/" + name)
        }
        let error = #expect(throws: StoreOpeningError.self) { _ = try openStore(copy.state) }
        guard case .logDamaged? = error else {
            Issue.record("\(error as Any)")
            return
        }
        // As after another boot, when the mark says nothing.
        try FileManager.default.removeItem(atPath: copy.state + "/subjects.db-mark")
        #expect(
            throws: StoreOpeningError.subjectsBehind(
                file: "subjects.db", besides: "gate.db", path: copy.state)
        ) { _ = try openStore(copy.state) }
    }

    @Test(arguments: ["registration", "erasure"])
    func `who is who from before what people wanted is refused, whichever part of it was put back`(
        what: String
    ) throws {
        let folder = try TemporaryFolder()
        do {
            let store = try openStore(folder.state)
            try store.write { _ = try $0.putCanaries(1) }
            store.close()
        }
        let earlier = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.state, toPath: earlier.state)
        do {
            let store = try openStore(folder.state)
            switch what {
            case "erasure":
                try store.write { $0.eraseSubject(.sample(1)) }
                try store.finishErasures()
            default: try store.write { _ = try $0.putCanaries(2) }
            }
            store.close()
        }
        // As it is, it opens.
        try openStore(folder.state).close()
        for name in ["subjects.db", "subjects.db-wal", "subjects.db-shm"] {
            let path = folder.state + "/" + name
            try? FileManager.default.removeItem(atPath: path)
            if FileManager.default.fileExists(atPath: earlier.state + "/" + name) {
                try FileManager.default.copyItem(atPath: earlier.state + "/" + name, toPath: path)
            }
        }
        let error = StoreOpeningError.subjectsBehind(
            file: "subjects.db", besides: "gate.db", path: folder.state)
        #expect(throws: error) { _ = try openStore(folder.state) }
        #expect(error.hint.contains("together from one backup"))
        // Both from one time are a state of that time.
        #expect(throws: Never.self) { try openStore(earlier.state).close() }
    }

    @Test func `files that were opened to others are closed again`() throws {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: folder.state + "/gate.db")
        _ = try openStore(folder.state)
        #expect(try mode(folder.state + "/gate.db") == 0o600)
    }

    @Test func `a writing connection is durable, forgets what it deletes, and says so`() throws {
        let folder = try TemporaryFolder()
        try tamper(folder.path + "/some.db") { (connection) throws in
            // The log is synchronized by `LogSynchronization`.
            #expect(try connection.pragma("PRAGMA synchronous") == "1")
            #expect(try connection.pragma("PRAGMA journal_mode") == "wal")
            #expect(try connection.pragma("PRAGMA secure_delete") == "1")
            #expect(try connection.pragma("PRAGMA temp_store") == "2")
            #expect(try connection.pragma("PRAGMA trusted_schema") == "0")
            // A quoted name of no column is an error and no text (sqlite.org/quirks.html, section 8).
            #expect(throws: StoreError.self) { try connection.pragma("SELECT \"nobody\"") }
        }
    }

    @Test func `a setting that SQLite does not take is no setting`() throws {
        // Without a file there is no log ahead of it (sqlite.org/pragma.html#pragma_journal_mode).
        let refused = StoreOpeningError.settingRefused(
            file: "some", setting: "journal_mode", wanted: "wal", found: "memory")
        #expect(throws: refused) {
            try Connection(
                path: ":memory:", file: "some", role: .writer(byteCountMax: 1 << 20),
                cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 100)
        }
    }

    @Test func `a reading connection writes nothing`() throws {
        let folder = try TemporaryFolder()
        try tamper(folder.path + "/some.db") { try $0.script("CREATE TABLE one (a)") }
        let reader = try Connection(
            path: folder.path + "/some.db", file: "some", role: .reader, cacheByteCount: 1 << 20,
            busyTimeoutMilliseconds: 100, pages: .test("some.db"))
        try reader.exclusively { () throws in
            #expect(throws: StoreError.self) { try reader.script("INSERT INTO one VALUES (1)") }
            #expect(throws: StoreError.self) { try reader.script("CREATE TABLE two (a)") }
            #expect(try reader.pragma("SELECT count(*) FROM one") == "0")
        }
        reader.close()
    }

    @Test func `a directory that others may enter is refused with the remedy`() throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o750])
        let error = StoreOpeningError.directoryTooOpen(path: folder.state, mode: 0o750)
        #expect(throws: error) { _ = try openStore(folder.state) }
        #expect(error.hint == "run `chmod 700 \(folder.state)`")
    }

    /// Giving a file away needs root, as the suites of the binary do.
    @Test(arguments: ["", "/gate.db", "/subjects.db"])
    func `what belongs to another user is refused with the remedy`(_ name: String) throws {
        let folder = try TemporaryFolder()
        try openStore(folder.state).close()
        try #require(chown(folder.state + name, 65_533, 65_533) == 0, "run the tests as root")
        let error = StoreOpeningError.foreignOwner(path: folder.state + name, owner: 65_533)
        #expect(throws: error) { _ = try openStore(folder.state) }
        #expect(error.hint.contains("chown"))
        try #require(chown(folder.state + name, geteuid(), getegid()) == 0)
        _ = try openStore(folder.state)
    }

    @Test func `neither a link nor a pipe is opened as a database`() throws {
        for name in ["gate.db", "subjects.db"] {
            let folder = try TemporaryFolder()
            try openStore(folder.state).close()
            let path = folder.state + "/" + name
            try FileManager.default.moveItem(atPath: path, toPath: folder.path + "/moved")
            try FileManager.default.createSymbolicLink(
                atPath: path, withDestinationPath: folder.path + "/moved")
            #expect(throws: StoreOpeningError.notARegularFile(path: path)) { _ = try openStore(folder.state) }
            guard name == "gate.db" else { continue }
            try FileManager.default.removeItem(atPath: path)
            try #require(mkfifo(path, 0o600) == 0)
            #expect(throws: StoreOpeningError.notARegularFile(path: path)) { _ = try openStore(folder.state) }
        }
    }

    @Test func `a file, a missing parent or a symbolic link in the way is refused`() throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.path + "/file"))
        #expect(throws: StoreOpeningError.notADirectory(path: folder.path + "/file")) {
            _ = try openStore(folder.path + "/file")
        }
        #expect(throws: StoreOpeningError.self) { _ = try openStore(folder.path + "/none/state") }
        try FileManager.default.createDirectory(
            atPath: folder.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try FileManager.default.createSymbolicLink(
            atPath: folder.state + "/gate.db", withDestinationPath: folder.path + "/file")
        #expect(throws: StoreOpeningError.notARegularFile(path: folder.state + "/gate.db")) {
            _ = try openStore(folder.state)
        }
    }

    // MARK: One owner

    @Test func `a second gateway is told who is there, and may come when it has gone`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.state)
        #expect(
            throws: StoreOpeningError.directoryInUse(
                path: folder.state, processID: ProcessInfo.processInfo.processIdentifier)
        ) {
            _ = try openStore(folder.state)
        }
        try first.write { $0.setSetting("still", to: "working") }
        first.close()
        let second = try openStore(folder.state)
        #expect(try second.read { try $0.setting("still") } == "working")
        #expect(throws: StoreError.unavailable("the store is closed")) {
            try first.read { try $0.setting("still") }
        }
        #expect(throws: StoreError.unavailable("the store is closed")) { try first.write { _ in } }
        first.close()
    }

    @Test
    func `another process cannot take the lock while the store is open, and keeps us out while it has it`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        // flock(1) of util-linux, which every Debian has.
        func flock(_ arguments: [String], input: Pipe? = nil, output: Pipe? = nil) throws -> Process {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
            process.arguments = arguments
            if let input { process.standardInput = input }
            if let output { process.standardOutput = output }
            try process.run()
            return process
        }
        let lock = folder.state + "/state.lock"
        let refused = try flock(["-n", lock, "true"])
        refused.waitUntilExit()
        #expect(refused.terminationStatus == 1)
        store.close()
        // The other process says when it has the lock and keeps it until its input ends.
        let (input, output) = (Pipe(), Pipe())
        let holder = try flock(["-n", lock, "sh", "-c", "echo mine; cat"], input: input, output: output)
        #expect(String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) == "mine\n")
        #expect(throws: StoreOpeningError.self) { _ = try openStore(folder.state) }
        try input.fileHandleForWriting.close()
        holder.waitUntilExit()
        _ = try openStore(folder.state)
    }

    // MARK: To be read only

    private func openToRead(_ path: String) throws -> ReadOnlyStore {
        try ReadOnlyStore(directory: path) { (RowCipher(current: try .test(1), older: []), .test()) }
    }

    /// Without what every connection makes, and leaves empty.
    private func bytes(_ folder: String) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
            !$0.hasSuffix("-shm")
        }
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: "\(folder)/\($0)"))) }
        ).filter { !$0.key.hasSuffix("-wal") || !$0.value.isEmpty }
    }

    @Test func `a store that is opened to be read changes no byte, also beside a log that a kill left`()
        throws
    {
        let folder = try TemporaryFolder()
        let killed = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { step in
            _ = try step.putCanaries()
            step.setSetting("asked", to: "written last")
        }
        // The directory of a store that writes is that store's alone.
        #expect(throws: StoreOpeningError.directoryInUse(path: folder.state, processID: getpid())) {
            try openToRead(folder.state)
        }
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        store.close()
        #expect(try bytes(killed.state)["gate.db-wal"] != nil)
        for state in [folder.state, killed.state] {
            let before = try bytes(state)
            let (one, other) = (try openToRead(state), try openToRead(state))
            for reading in [one, other] {
                #expect(try reading.read { try $0.setting("asked") } == "written last")
                #expect(throws: StoreError.self) { try reading.finishErasures() }
            }
            one.close()
            // None writes while one reads.
            #expect(throws: StoreOpeningError.self) { _ = try openStore(state) }
            other.close()
            #expect(try bytes(state) == before)
            let next = try openStore(state)
            #expect(try next.read { try $0.setting("asked") } == "written last")
            next.close()
        }
    }

    @Test func `a store that is not there is not made to be read`() throws {
        let folder = try TemporaryFolder()
        #expect(throws: StoreOpeningError.self) { try openToRead(folder.state) }
        #expect(!FileManager.default.fileExists(atPath: folder.state))
    }

    @Test func `a state directory whose rows an earlier build laid out is refused and left alone`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.state).close()
        let found = Schema.gate.refusedVersionCount
        #expect(found > 0)
        try tamper(folder.state + "/gate.db") { try $0.script("PRAGMA user_version = \(found)") }
        let before = try bytes(folder.state)
        let error = StoreOpeningError.earlierLayout(file: "gate.db", found: found, oldestKnown: found + 1)
        #expect(throws: error) { try openToRead(folder.state) }
        #expect(try bytes(folder.state) == before)
        #expect(throws: error) { try openStore(folder.state) }
        #expect(try tamper(folder.state + "/gate.db") { try $0.pragma("PRAGMA user_version") } == "\(found)")
        #expect(
            "\(error)".contains("schema version \(found)") && error.hint.contains("empty state directory"))
    }

    @Test func `a file that lacks steps is not brought up to date where it may only be read`() throws {
        let folder = try TemporaryFolder()
        let older = Schema(
            file: "some.db", applicationID: 7, refusedVersionCount: 3,
            steps: [.script("CREATE TABLE one (a)")])
        let newer = Schema(
            file: "some.db", applicationID: 7, refusedVersionCount: 3,
            steps: older.steps + [.script("CREATE TABLE two (a)")])
        try tamper(folder.path + "/some.db") { connection in
            try Migration(older).run(on: connection)
            let error = StoreOpeningError.olderSchema(file: "some.db", found: 4, newestKnown: 5)
            #expect(throws: error) { try newer.require(connection) }
            #expect(error.hint.contains("start the gateway once"))
            try Migration(newer).run(on: connection)
            try newer.require(connection)
        }
    }

    // MARK: The right files and keys

    @Test(arguments: ["gate.db", "subjects.db"])
    func `a schema newer than this build is refused and left alone`(_ file: String) throws {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        try tamper(folder.state + "/" + file) { try $0.script("PRAGMA user_version = 99") }
        let newestKnown = file == "gate.db" ? Schema.gate.version : Schema.subjects.version
        #expect(throws: StoreOpeningError.newerSchema(file: file, found: 99, newestKnown: newestKnown)) {
            _ = try openStore(folder.state)
        }
        #expect(try tamper(folder.state + "/" + file) { try $0.pragma("PRAGMA user_version") } == "99")
    }

    @Test(arguments: [
        ("ALTER TABLE send ADD COLUMN mac BLOB", "send"), ("DROP INDEX send_by_hash", "send_by_hash"),
    ])
    func `a database with other tables than this build makes is refused`(_ edit: (sql: String, name: String))
        throws
    {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        try tamper(folder.state + "/gate.db") { try $0.script(edit.sql) }
        let error = StoreOpeningError.otherSchema(file: "gate.db", name: edit.name)
        #expect(throws: error) { try openStore(folder.state) }
        #expect("\(error)".contains("another build") && error.hint.contains("empty state directory"))
    }

    @Test func `a database of another program is refused and left alone`() throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try tamper(folder.state + "/gate.db", movingLog: true) { try $0.script("CREATE TABLE theirs (a)") }
        #expect(throws: StoreOpeningError.notOurs(file: "gate.db", applicationID: 0)) {
            _ = try openStore(folder.state)
        }
        #expect(
            try tamper(folder.state + "/gate.db") {
                try $0.pragma("SELECT group_concat(name) FROM sqlite_schema")
            }
                == "theirs")
    }

    @Test func `what is not a database at all is damage`() throws {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        try Data(repeating: 0x55, count: 8192).write(to: URL(fileURLWithPath: folder.state + "/gate.db"))
        #expect(throws: StoreError.self) { _ = try openStore(folder.state) }
    }

    @Test func `a step of the schema that fails leaves the file at the step before`() throws {
        let folder = try TemporaryFolder()
        let good = Schema(file: "some.db", applicationID: 7, steps: [.script("CREATE TABLE one (a)")])
        let bad = Schema(
            file: "some.db", applicationID: 7,
            steps: good.steps + [
                .script("CREATE TABLE two (a)"), .script("CREATE TABLE three (a); CREATE TABLE one (a)"),
            ])
        try tamper(folder.path + "/some.db") { connection in
            try Migration(good).run(on: connection)
            #expect(throws: StoreError.self) { try Migration(bad).run(on: connection) }
            #expect(try connection.pragma("PRAGMA user_version") == "2")
            #expect(try connection.pragma("SELECT group_concat(name) FROM sqlite_schema") == "one,two")
        }
    }

    @Test func `a wrong key is noticed before it does harm`() throws {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state)
        #expect(throws: StoreOpeningError.wrongIndexKey) { _ = try openStore(folder.state, index: 8) }
        // Another key under the id the directory knows.
        let impostor = RowCipher(
            current: RowCipher.Key(
                id: "data-test-1", key: try .init(.init(copying: [UInt8](repeating: 66, count: 32)))))
        #expect(throws: StoreOpeningError.wrongDataKey(id: "data-test-1")) {
            _ = try SQLiteStore(directory: folder.state, cipher: impostor, indexKey: .test())
        }
        _ = try openStore(folder.state)
    }

    @Test func `keys are read once the directory's lock is held`() throws {
        let folder = try TemporaryFolder()
        var readCount = 0
        let store = try SQLiteStore(
            directory: folder.state,
            readingKeys: {
                readCount += 1
                #expect(
                    throws: StoreOpeningError.directoryInUse(path: folder.state, processID: getpid())
                ) { _ = try openStore(folder.state) }
                return (RowCipher(current: try .test(1)), .test())
            })
        store.close()
        #expect(readCount == 1)
        _ = try openStore(folder.state)
    }

    @Test func `data keys rotate while old rows stay readable, and a dropped key names what it leaves`()
        throws
    {
        let folder = try TemporaryFolder()
        try openStore(folder.state, key: 1).write { _ = try $0.putCanaries(1) }
        var store: SQLiteStore? = try openStore(folder.state, key: 2, older: [1])
        try store?.write { _ = try $0.putCanaries(2) }
        try store?.read { (store: any StoreReading) throws in
            #expect(try store.devices(of: .sample(1)).first?.token == Canary.token)
            #expect(try store.devices(of: .sample(2)).first?.token == Canary.token)
        }
        store = nil
        let without = try openStore(folder.state, key: 2)
        #expect(try without.read { try $0.devices(of: .sample(2)).first?.token } == Canary.token)
        #expect(
            throws: StoreError.damaged(
                table: "person",
                "a value is sealed under the data key `data-test-1`, which is not loaded")
        ) {
            try without.read { try $0.devices(of: .sample(1)) }
        }
    }

    @Test func `reading beside many writers needs no more connections than there are`() async throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state, limits: SQLiteStoreLimits(readerCount: 1))
        try store.write { _ = try $0.putCanaries() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    for _ in 0..<20 {
                        let token = try store.read { try $0.devices(of: .sample(1)).first?.token }
                        #expect(token == Canary.token)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `neither log grows without bound, whatever is written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(
            folder.state,
            limits: SQLiteStoreLimits(readerCount: 1, logByteCountBeforeCheckpoint: 256 << 10))
        for round in 0..<60 {
            try store.write { transaction in
                for number in 0..<20 {
                    _ = try transaction.makeSubject(
                        for: UserID("u_\(round)_\(number)"), subject: .sample(round * 100 + number))
                    transaction.setSetting("\(round)-\(number)", to: String(repeating: "x", count: 2000))
                }
            }
        }
        for name in ["gate.db-wal", "subjects.db-wal"] {
            let size = try FileManager.default.attributesOfItem(atPath: folder.state + "/" + name)[.size]
            // The log is moved at the first commit past the bound, and that commit is in it.
            #expect(try #require(size as? NSNumber).intValue < 768 << 10, "\(name)")
        }
    }

    // MARK: Nonces

    @Test func `seals of a data key are counted over restarts, rollbacks and crashes, and never too few`()
        throws
    {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.state)
        let start = first.dataKeyUse
        #expect(start.key == "data-test-1" && !start.mustRotate)
        try first.write { _ = try $0.putCanaries(1) }
        let used = first.dataKeyUse.sealCount
        // A person's key and state, a record in either ledger, one send, one message, one event; and the state that the
        // person had before the first of them.
        #expect(used >= start.sealCount + 8)
        try? first.write { (transaction: GateMemory) throws -> Void in
            _ = try transaction.putCanaries(2)
            try transaction.cannotBeWritten()
        }
        #expect(first.dataKeyUse.sealCount > used)
        let last = first.dataKeyUse.sealCount
        first.close()
        let second = try openStore(folder.state)
        // Written ahead: at most 65,536 more than were made.
        #expect((last...last + 65_536).contains(second.dataKeyUse.sealCount))
        second.close()
        // A new key begins anew; the old one is not forgotten.
        let third = try openStore(folder.state, key: 2, older: [1])
        #expect(third.dataKeyUse.key == "data-test-2" && third.dataKeyUse.sealCount < 9)
        third.close()
        #expect(try openStore(folder.state, older: [2]).dataKeyUse.sealCount >= last)
    }

    @Test(arguments: [
        ("gate.db", "key_check", "sealed = x''", "data-test-1"),
        ("gate.db", "key_check", "sealed = zeroblob(99)", "data-test-1"),
        ("gate.db", "key_check", "sealed = zeroblob(length(sealed))", "data-test-1"),
        ("subjects.db", "index_check", "code = x''", "1"),
        ("subjects.db", "index_check", "code = zeroblob(16)", "1"),
    ])
    func `a row that a start hangs on is named by file, table and row`(
        _ file: String, _ table: String, _ change: String, _ row: String
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        _ = try store.write { try $0.putCanaries(1) }
        store.close()
        try tamper("\(folder.state)/\(file)") { try $0.script("UPDATE \(table) SET \(change)") }
        let error = #expect(throws: StoreOpeningError.self) { try openStore(folder.state) }
        guard case .damaged(file, table, row, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains("in `\(file)`, `\(table)` row \(row) is damaged"))
        #expect(error!.hint.contains("backup"))
    }

    @Test func `a row of sequences that has more published than recorded is refused`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        _ = try store.write { try $0.putCanaries(1) }
        store.close()
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE sequences SET published_size = entry_count + 1")
        }
        let error = #expect(throws: StoreError.self) { try openStore(folder.state) }
        #expect(error?.damage?.table == "sequences", "\(error as Any)")
    }

    @Test func `a wrong key's text names the row that says so`() throws {
        #expect("\(StoreOpeningError.wrongIndexKey)".contains("`index_check` row 1"))
        #expect("\(StoreOpeningError.wrongDataKey(id: "k"))".contains("`key_check` row k"))
    }

    @Test func `a data key seals two to the thirty-second rows and no more, and still reads them`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.state).close()
        try tamper(folder.state + "/gate.db") {
            try $0.script("UPDATE key_check SET seal_count = \((1 << 32) - 1000)")
        }
        let store = try openStore(folder.state)
        var sealed = 0
        var failure: StoreError?
        while failure == nil, sealed < 2_000 {
            do {
                _ = try store.write { try $0.putCanaries(sealed + 1) }
                sealed += 1
            } catch let error as StoreError {
                failure = error
            }
        }
        #expect("\(try #require(failure))".contains("2^32"), "\(String(describing: failure))")
        #expect(sealed > 0)
        #expect(store.dataKeyUse.isExhausted && store.dataKeyUse.sealCount == 1 << 32)
        #expect(try store.read { try $0.devices(of: .sample(1)) }.first?.token == Canary.token)
        // Who is forgotten needs nothing sealed.
        try store.write { $0.eraseSubject(.sample(1)) }
        store.close()
        // A restart changes nothing, and another key does.
        #expect(throws: try #require(failure)) {
            try openStore(folder.state).write { try $0.putCanaries(9_999) }
        }
        _ = try openStore(folder.state, key: 2, older: [1]).write { try $0.putCanaries(9_999) }
    }

    @Test func `a data key that has sealed two to the thirty-first rows is to be rotated`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.state).close()
        for (count, mustRotate) in [((1 << 31) - 1, false), (1 << 31, true)] {
            try tamper(folder.state + "/gate.db") {
                try $0.script("UPDATE key_check SET seal_count = \(count)")
            }
            let store = try openStore(folder.state)
            #expect(store.dataKeyUse.mustRotate == mustRotate)
            store.close()
        }
    }
}
