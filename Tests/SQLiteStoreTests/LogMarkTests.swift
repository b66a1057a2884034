import Foundation
import Synchronization
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import Testing

@testable import SQLiteStore

/// What was answered is there after the process ended, or the start says that it is not.
@Suite struct LogMarkTests {
    /// A directory as a kill leaves it after so many commits, all of which were answered.
    private func killed(after count: Int) throws -> TemporaryFolder {
        let (folder, killed) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try openStore(folder.state)
        for number in 1...count { try store.write { _ = try $0.putCanaries(number) } }
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        return killed
    }

    private func change(_ path: String, _ body: (inout Data) -> Void) throws {
        let file = URL(fileURLWithPath: path)
        var bytes = try Data(contentsOf: file)
        body(&bytes)
        try bytes.write(to: file)
    }

    private func newest(_ store: SQLiteStore, of count: Int) throws -> [Int] {
        try (1...count).filter { number in try store.read { try $0.send(.sample(number)) } != nil }
    }

    @Test func `a kill leaves every answered commit`() throws {
        let folder = try killed(after: 5)
        let store = try openStore(folder.state)
        #expect(try newest(store, of: 5) == Array(1...5))
        store.close()
        #expect(try newest(try openStore(folder.state), of: 5) == Array(1...5))
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `a bit that flipped anywhere in the marked log is refused, and nothing is changed`(file: String)
        throws
    {
        let folder = try killed(after: 3)
        let log = folder.state + "/\(file)-wal"
        let byteCount = try Data(contentsOf: URL(fileURLWithPath: log)).count
        #expect(byteCount > 3 * WriteAheadLog.frameByteCount)
        var numbers = SeededNumbers(seed: 0x5EED_0063)
        // The header's two words that its checksum does not cover are not there: it covers all of them.
        let header = (0..<WriteAheadLog.headerByteCount).map { $0 * 8 + 3 }
        let frames = (0..<30).map { _ in Int(numbers.next() % UInt64(byteCount * 8)) }
        for bit in header + frames {
            let copy = try TemporaryFolder()
            try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
            try change(copy.state + "/\(file)-wal") { $0[bit / 8] ^= 1 << (bit % 8) }
            let before = try Data(contentsOf: URL(fileURLWithPath: copy.state + "/\(file)-wal"))
            let error = #expect(throws: StoreOpeningError.self, "bit \(bit)") { try openStore(copy.state) }
            guard case .logDamaged(let found, _, _)? = error else {
                Issue.record("bit \(bit): \(error as Any)")
                continue
            }
            #expect(found == "\(file)-wal" && error?.hint.contains("restore") == true)
            #expect(try Data(contentsOf: URL(fileURLWithPath: copy.state + "/\(file)-wal")) == before)
            #expect(throws: StoreOpeningError.self) {
                try ReadOnlyStore(directory: copy.state) { (RowCipher(current: try .test(1)), .test()) }
            }
        }
    }

    @Test func `a log that is gone, empty or cut is refused`() throws {
        let folder = try killed(after: 2)
        for count in [nil, 0, 31, 32, 32 + WriteAheadLog.frameByteCount, -1] as [Int?] {
            let copy = try TemporaryFolder()
            try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
            let log = copy.state + "/gate.db-wal"
            if let count {
                try change(log) { $0 = $0.prefix(count < 0 ? $0.count + count : count) }
            } else {
                try FileManager.default.removeItem(atPath: log)
            }
            let error = #expect(throws: StoreOpeningError.self) { try openStore(copy.state) }
            guard case .logDamaged? = error else {
                Issue.record("\(count as Any): \(error as Any)")
                continue
            }
        }
    }

    @Test func `what was committed and never synchronized is cut off, whole or torn`() throws {
        let (folder, earlier) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        try FileManager.default.copyItem(atPath: folder.state, toPath: earlier.state)
        let changes = try store.changes { $0.setSetting("unanswered", to: "1") }
        _ = try store.commit(changes)
        for isTorn in [false, true] {
            let killed = try TemporaryFolder()
            try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
            if isTorn { try self.change(killed.state + "/gate.db-wal") { $0.removeLast(700) } }
            let next = try openStore(killed.state)
            #expect(try next.read { try $0.setting("unanswered") } == nil)
            #expect(try newest(next, of: 1) == [1])
            try next.write { $0.setSetting("later", to: "1") }
            next.close()
            #expect(try openStore(killed.state).read { try $0.setting("later") } == "1")
        }
    }

    @Test func `a log that began anew without an answer is no damage`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(
            folder.state, limits: SQLiteStoreLimits(readerCount: 1, logByteCountBeforeCheckpoint: 1))
        for number in 1...4 { try store.write { _ = try $0.putCanaries(number) } }
        let changes = try store.changes { $0.setSetting("unanswered", to: "1") }
        _ = try store.commit(changes)
        let killed = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        #expect(try newest(try openStore(killed.state), of: 4) == Array(1...4))
    }

    @Test func `a log of another database, or of an earlier time, is refused`() throws {
        let folder = try killed(after: 3)
        let old = try Data(contentsOf: URL(fileURLWithPath: folder.state + "/gate.db-wal"))
        let another = try killed(after: 3)
        let other = try Data(contentsOf: URL(fileURLWithPath: another.state + "/gate.db-wal"))
        let subjects = try Data(contentsOf: URL(fileURLWithPath: folder.state + "/subjects.db-wal"))
        #expect(!subjects.isEmpty)
        for log in [other, subjects] {
            try log.write(to: URL(fileURLWithPath: folder.state + "/gate.db-wal"))
            #expect(throws: StoreOpeningError.self) { try openStore(folder.state) }
        }
        // Nothing was changed: with its own log the directory opens again.
        try old.write(to: URL(fileURLWithPath: folder.state + "/gate.db-wal"))
        #expect(try newest(try openStore(folder.state), of: 3) == [1, 2, 3])
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `after another boot the log says itself how far it reaches`(file: String) throws {
        let folder = try killed(after: 3)
        let keys = PageKeys(index: .test(), file: file)
        let path = folder.state + "/" + file
        let here = try LogMark(besides: path, keys: keys, isReadOnly: true)
        let other = try LogMark(
            besides: path, keys: keys, isReadOnly: true, boot: [UInt8](repeating: 1, count: 16))
        let whole = try here.settle()
        #expect(whole.frameCount > 2)
        try change(path + "-wal") { $0[$0.count - 5] ^= 1 }
        #expect(throws: StoreOpeningError.self) { try here.settle() }
        #expect(try other.settle().frameCount < whole.frameCount)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + "-mark")).count == 64)
    }

    @Test func `a mark that is not of this directory's key, or damaged, or gone, says nothing`() throws {
        let folder = try killed(after: 2)
        let path = folder.state + "/gate.db"
        let whole = try LogMark(
            besides: path, keys: PageKeys(index: .test(), file: "gate.db"), isReadOnly: true
        )
        .settle()
        for index in [0, 8, 30, 44, 63] {
            try change(path + "-mark") { $0[index] ^= 1 }
            try change(path + "-wal") { $0.append(contentsOf: [1, 2, 3]) }
            let mark = try LogMark(
                besides: path, keys: PageKeys(index: .test(), file: "gate.db"), isReadOnly: true)
            #expect(try mark.settle() == whole)
            try change(path + "-mark") { $0[index] ^= 1 }
        }
        let foreign = try LogMark(
            besides: path, keys: PageKeys(index: .test(8), file: "gate.db"))
        #expect(try foreign.settle() == whole)
        try FileManager.default.removeItem(atPath: path + "-mark")
        #expect(try newest(try openStore(folder.state), of: 2) == [1, 2])
    }

    @Test func `a frame that flips before it is moved gets no code, and ends the use of the store`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        for number in 1...3 { try store.write { _ = try $0.putCanaries(number) } }
        let log = folder.state + "/gate.db-wal"
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: log))
        let frameCount = try Int(file.seekToEnd() - 32) / WriteAheadLog.frameByteCount
        // Every frame, because some are of pages that a later one replaces.
        for frame in 0..<frameCount {
            let offset = UInt64(WriteAheadLog.offset(ofFrame: Int64(frame))) + 500
            try file.seek(toOffset: offset)
            let byte = try #require(try file.read(upToCount: 1))
            try file.seek(toOffset: offset)
            try file.write(contentsOf: Data([byte[0] ^ 4]))
        }
        let error = #expect(throws: StoreError.self) {
            try store.writer.connection.exclusively { try store.writer.connection.emptyLog() }
        }
        guard case .lostDurability(let what)? = error else {
            Issue.record("\(error as Any)")
            return
        }
        #expect(what.contains("gate.db-wal` is not as it was written"))
        // Nothing more is made durable, nor moved at the end.
        #expect(throws: StoreError.lostDurability(what)) {
            try store.write { $0.setSetting("later", to: "1") }
        }
        store.close()
        #expect(throws: StoreOpeningError.self) { try openStore(folder.state) }
    }

    @Test func `what was moved into the database is not cut from the log by the start after a kill`() throws {
        let (folder, killed) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try openStore(folder.state)
        try store.write { $0.setSetting("answered", to: "1") }
        let connection = store.writer.connection
        let put = StatementText("setting", "INSERT INTO setting VALUES (?, '1')")
        func commit(_ name: String) throws {
            try connection.begin(writing: true)
            try connection.change(put) { $0.add(name) }
            try connection.commit(synchronizing: false)
        }
        let reader = try Connection(
            path: folder.state + "/gate.db", file: "gate.db", role: .reader, cacheByteCount: 1 << 20,
            busyTimeoutMilliseconds: 100, pages: .test("gate.db"))
        defer { reader.close() }
        try connection.exclusively { try commit("moved") }
        // A reader of this snapshot has the log moved up to here and no further.
        try reader.exclusively {
            try reader.begin(writing: false)
            _ = try reader.pragma("SELECT count(*) FROM setting")
        }
        try connection.exclusively {
            try commit("in the log")
            #expect(try !connection.moveWholeLog())
        }
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        let next = try openStore(killed.state)
        for name in ["answered", "moved", "in the log"] {
            #expect(try next.read { try $0.setting(name) } == "1", "\(name)")
        }
        #expect(
            try next.writer.connection.exclusively {
                try next.writer.connection.pragma("PRAGMA integrity_check")
            } == "ok")
    }

    /// How many frames of the log are in the database (sqlite.org/walformat.html, section 2.1): the `nBackfill` of the log's index.
    private func movedFrameCount(_ folder: TemporaryFolder) throws -> Int64 {
        let index = try Data(contentsOf: URL(fileURLWithPath: folder.state + "/gate.db-shm"))
        try #require(index.count >= 100)
        return Int64(index.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 96, as: UInt32.self) })
    }

    @Test func `a pass beside the writer moves nothing that is not marked, and all but what came since`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        let connection = store.writer.connection
        let put = StatementText("setting", "INSERT INTO setting VALUES (?, '1')")
        @Sendable func commit(_ numbers: Range<Int>) throws {
            for number in numbers {
                try connection.begin(writing: true)
                try connection.change(put) { $0.add("setting \(number)") }
                try connection.commit(synchronizing: false)
            }
        }
        try connection.exclusively { try commit(0..<200) }
        let ended = Atomic(false)
        let wrong = Mutex<[String]>([])
        let committing = Thread {
            do {
                for piece in 1..<200 {
                    try connection.exclusively { try commit(200 * piece..<200 * piece + 200) }
                }
            } catch {
                wrong.withLock { $0.append("\(error)") }
            }
            ended.store(true, ordering: .releasing)
        }
        committing.start()
        var passCount = 0
        while !ended.load(ordering: .acquiring) {
            _ = try store.writer.mover.pass(beside: connection)
            passCount += 1
            let moved = try movedFrameCount(folder)
            let mark = try #require(
                try LogMark(
                    besides: folder.state + "/gate.db", keys: PageKeys(index: .test(), file: "gate.db"),
                    isReadOnly: true
                )
                .read())
            #expect(moved <= mark.frameCount)
        }
        #expect(passCount > 1)
        #expect(wrong.withLock { $0 } == [])
        // With nobody else about all is moved, and the log begins anew.
        #expect(try store.writer.mover.pass(beside: connection) == 0)
        let byteCount = connection.logByteCount
        try connection.exclusively { try commit(100_000..<100_001) }
        #expect(connection.logByteCount < byteCount)
    }

    @Test func `a log that has grown is moved beside commits and begins anew`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(
            folder.state, limits: SQLiteStoreLimits(readerCount: 2, logByteCountBeforeCheckpoint: 200_000))
        var longest = 0
        for number in 0..<3_000 {
            try store.write {
                $0.setSetting("\(number % 7)", to: String(repeating: "\(number)", count: 200))
            }
            longest = max(longest, store.writer.connection.logByteCount)
        }
        #expect(longest > 200_000 && longest <= 9 * 200_000, "\(longest)")
        #expect(try store.read { try $0.setting("3") } != nil)
    }
}
