import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import SQLiteStore

/// No page that is not as it was written is read as if it were.
@Suite struct PageTests {
    private static let size = PageCode.pageByteCount

    // MARK: The code

    @Test func `a code is of the page, its number, its file and the key`() throws {
        var numbers = SeededNumbers(seed: 0x5EED_0064)
        let page = (0..<Self.size).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
        var code = try PageCode(PageKeys(index: .test(), file: "gate.db"))
        func written(_ bytes: [UInt8], _ number: Int64) -> [UInt8] {
            bytes.withUnsafeBytes { bytes in
                Array(
                    UnsafeRawBufferPointer(
                        start: code.coded(bytes.baseAddress!, number: number), count: Self.size))
            }
        }
        func isRight(_ bytes: [UInt8], _ number: Int64, _ code: inout PageCode) -> Bool {
            bytes.withUnsafeBytes { code.isRight($0.baseAddress!, number: number) }
        }
        let one = written(page, 1)
        #expect(one.prefix(PageCode.usedByteCount) == page.prefix(PageCode.usedByteCount))
        #expect(one == written(page, 1) && isRight(one, 1, &code))
        #expect(!isRight(one, 2, &code) && written(page, 2).suffix(16) != one.suffix(16))
        var other = try PageCode(PageKeys(index: .test(), file: "subjects.db"))
        var foreign = try PageCode(PageKeys(index: .test(8), file: "gate.db"))
        #expect(!isRight(one, 1, &other) && !isRight(one, 1, &foreign))
        for bit in 0..<Self.size * 8 {
            var flipped = one
            flipped[bit / 8] ^= 1 << (bit % 8)
            if isRight(flipped, 1, &code) { Issue.record("bit \(bit) is not covered") }
        }
        #expect(!isRight([UInt8](repeating: 0, count: Self.size), 1, &code))
    }

    // MARK: Files

    /// A closed store of some people, with pages of tables and indexes and free ones, and what it answers.
    private func filled() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { step in
            for number in 1...12 { _ = try step.putCanaries(number) }
            for number in 0..<40 {
                step.setSetting("filler-\(number)", to: String(repeating: "x", count: 1_800))
            }
        }
        try store.write { step in for number in 0..<40 { step.setSetting("filler-\(number)", to: nil) } }
        let free = try store.writer.connection.exclusively {
            try store.writer.connection.pragma("PRAGMA freelist_count")
        }
        #expect(Int(free) ?? 0 > 10)
        store.close()
        return folder
    }

    /// Everything that can be asked about everybody; `nil` where the answer is refused.
    private func answers(_ store: SQLiteStore) throws -> [String?] {
        var answers: [String?] = []
        func ask<Value>(_ body: (any StoreReading) throws -> Value) throws {
            do {
                answers.append("\(try store.read(body))")
            } catch let error as StoreError where error.damage != nil {
                answers.append(nil)
            }
        }
        for number in 1...13 {
            let (subject, send) = (SubjectID.sample(number), SendID.sample(number))
            try ask { try $0.subject(of: UserID(Canary.user + "-\(number)"))?.id }
            try ask { try $0.recipient(subject) }
            try ask { try $0.devices(of: subject) }
            try ask { try $0.deviceKey(.sample(1000 + number)) }
            try ask { try $0.consentRecords(of: subject) }
            try ask { try $0.preferences(of: subject) }
            try ask { try $0.send(send) }
            try ask { try $0.send(caller: CallerName("payments"), idHash: Tag.sample(number).bytes) }
            try ask { try $0.sends(of: subject, before: nil, limit: 9) }
            try ask { try $0.outbox(of: send) }
            try ask { try $0.outbox(of: subject) }
            try ask { try $0.events(of: send) }
        }
        try ask { try $0.entries(from: 0, limit: 99) }
        try ask { try $0.dueOutbox(at: .sample, limit: 99, lane: .general, excluding: []) }
        return answers
    }

    /// The store over a changed copy, and whether a pass over its pages names one.
    private func outcome(
        _ folder: TemporaryFolder, _ file: String, expecting expected: [String?],
        _ change: (inout [UInt8]) -> Void
    ) throws -> (isRefused: Bool, isNamed: Bool, refusedCount: Int, isWrong: Bool) {
        let copy = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
        let path = URL(fileURLWithPath: copy.state + "/" + file)
        var bytes = Array(try Data(contentsOf: path))
        change(&bytes)
        try Data(bytes).write(to: path)
        let store: SQLiteStore
        do {
            store = try openStore(
                copy.state, limits: SQLiteStoreLimits(readerCount: 1))
        } catch  where error is StoreError || error is StoreOpeningError {
            return (true, true, 0, false)
        }
        let found = try answers(store)
        while try !store.checkPages(countMax: 7) {}
        let isNamed = store.damages.contains {
            $0.description.contains("`\(file)`") || $0.table.hasPrefix(file)
        }
        let isWrong = zip(found, expected).contains { $0 != nil && $0 != $1 }
        return (false, isNamed, found.count { $0 == nil }, isWrong)
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `a flipped bit in any page gives no wrong answer, and a pass names the page`(file: String) throws {
        let folder = try filled()
        let whole = try openStore(folder.state)
        let expected = try answers(whole)
        while try !whole.checkPages(countMax: 5) {}
        #expect(whole.damages.isEmpty && !expected.contains(nil))
        whole.close()
        let byteCount = try Data(contentsOf: URL(fileURLWithPath: folder.state + "/" + file)).count
        var numbers = SeededNumbers(seed: 0x5EED_0065)
        var (refusedCount, namedOnlyCount) = (0, 0)
        for page in 0..<byteCount / Self.size {
            let bit = Int(numbers.next() % UInt64(Self.size * 8))
            let outcome = try outcome(folder, file, expecting: expected) {
                $0[page * Self.size + bit / 8] ^= 1 << (bit % 8)
            }
            #expect(outcome.isNamed && !outcome.isWrong, "page \(page + 1), bit \(bit): \(outcome)")
            if outcome.isRefused || outcome.refusedCount > 0 {
                refusedCount += 1
            } else {
                namedOnlyCount += 1
            }
        }
        // Free pages are read by a pass alone.
        #expect(
            refusedCount > 1 && (file == "subjects.db" || namedOnlyCount > 5),
            "\(refusedCount), \(namedOnlyCount)")
    }

    @Test func `a page that was zeroed, moved, exchanged, cut off or taken from elsewhere is noticed`() throws
    {
        let folder = try filled()
        let whole = try openStore(folder.state)
        let expected = try answers(whole)
        whole.close()
        let other = Array(try Data(contentsOf: URL(fileURLWithPath: folder.state + "/subjects.db")))
        let count = try Data(contentsOf: URL(fileURLWithPath: folder.state + "/gate.db")).count / Self.size
        func range(_ page: Int) -> Range<Int> { (page - 1) * Self.size..<page * Self.size }
        let changes: [(String, (inout [UInt8]) -> Void)] = [
            ("zeroed", { $0.replaceSubrange(range(7), with: [UInt8](repeating: 0, count: Self.size)) }),
            ("moved", { $0.replaceSubrange(range(7), with: $0[range(9)]) }),
            (
                "exchanged",
                { bytes in
                    let (one, two) = (Array(bytes[range(7)]), Array(bytes[range(9)]))
                    bytes.replaceSubrange(range(7), with: two)
                    bytes.replaceSubrange(range(9), with: one)
                }
            ),
            ("of the other file", { $0.replaceSubrange(range(2), with: other[range(2)]) }),
            ("cut off", { $0.removeLast(Self.size) }),
            ("cut in the middle", { $0.removeLast(Self.size / 2) }),
            ("cut to half", { $0.removeLast(count / 2 * Self.size) }),
            ("its code", { $0.replaceSubrange(range(7).suffix(16), with: [UInt8](repeating: 0, count: 16)) }),
        ]
        for (name, change) in changes {
            let outcome = try outcome(folder, "gate.db", expecting: expected, change)
            #expect(outcome.isNamed && !outcome.isWrong, "\(name): \(outcome)")
        }
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `an empty file in place of a database is refused, and left empty`(file: String) throws {
        let folder = try filled()
        try Data().write(to: URL(fileURLWithPath: folder.state + "/" + file))
        let error = #expect(throws: StoreOpeningError.self) { try openStore(folder.state) }
        #expect(error?.hint.contains("together from one backup") == true, "\(error as Any)")
        #expect(throws: StoreOpeningError.self) { try openStore(folder.state) }
    }

    @Test func `a wrong key says so, or damage, and changes nothing`() throws {
        for isKilled in [false, true] {
            let folder = try filled()
            let copy = try TemporaryFolder()
            if isKilled {
                let store = try openStore(folder.state)
                try store.write { _ = try $0.putCanaries(13) }
                try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
            } else {
                try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
            }
            func bytes() throws -> [String: Data] {
                let names = try FileManager.default.contentsOfDirectory(atPath: copy.state)
                return try Dictionary(
                    uniqueKeysWithValues: names.filter { !$0.hasSuffix("-shm") && $0 != "state.lock" }.map {
                        ($0, try Data(contentsOf: URL(fileURLWithPath: copy.state + "/" + $0)))
                    }
                ).filter { !$0.value.isEmpty }
            }
            let before = try bytes()
            #expect(throws: StoreOpeningError.wrongIndexKey) { try openStore(copy.state, index: 8) }
            #expect(throws: StoreOpeningError.wrongIndexKey) {
                try ReadOnlyStore(directory: copy.state) { (RowCipher(current: try .test(1)), .test(8)) }
            }
            #expect(try bytes() == before)
            #expect("\(StoreOpeningError.wrongIndexKey)".contains("or the first page"))
            _ = try openStore(copy.state)
        }
    }

    @Test func `a directory of a build without page codes is refused, and left as it is`() throws {
        let folder = try filled()
        let path = URL(fileURLWithPath: folder.state + "/gate.db")
        var bytes = try Data(contentsOf: path)
        // Bytes of a page that SQLite leaves free.
        bytes[20] = 0
        try bytes.write(to: path)
        let error = StoreOpeningError.otherLayout(file: "gate.db")
        #expect(throws: error) { try openStore(folder.state) }
        #expect("\(error)".contains("another build") && error.hint.contains("empty state directory"))
        #expect(try Data(contentsOf: path) == bytes)
    }

    /// A program that knows nothing of the codes writes pages with wrong ones.
    @Test(arguments: [false, true])
    func `an edit by another SQLite is noticed, of a closed store and of one that runs`(isRunning: Bool)
        throws
    {
        let folder = try filled()
        let limits = SQLiteStoreLimits(
            readerCount: 1, writerCacheByteCount: 1, readerCacheByteCount: 1, personNumberCountMax: 0)
        let whole = try openStore(folder.state, limits: limits)
        let expected = try answers(whole)
        if !isRunning { whole.close() }
        let connection = try Connection(
            path: folder.state + "/gate.db", file: "gate.db", role: .writer(byteCountMax: nil),
            cacheByteCount: 1 << 20, busyTimeoutMilliseconds: 100)
        try connection.exclusively {
            try connection.script(StoreTampering.begin)
            try connection.script("DELETE FROM ledger WHERE person = 3")
            try connection.script(StoreTampering.end)
        }
        connection.close()
        if isRunning {
            let found = try answers(whole)
            #expect(!zip(found, expected).contains { $0 != nil && $0 != $1 })
            #expect(found.contains { $0 == nil })
            #expect(!whole.damages.isEmpty)
            // A step that meets such a page changes nothing.
            #expect(throws: StoreError.self) {
                try whole.write {
                    $0.setSetting("after", to: "1"); _ = try $0.consentRecords(of: .sample(3))
                }
            }
            whole.close()
        }
        do {
            let store = try openStore(folder.state)
            let found = try answers(store)
            #expect(!zip(found, expected).contains { $0 != nil && $0 != $1 })
        } catch  where error is StoreError || error is StoreOpeningError {
            #expect("\(error)".contains("page"))
        }
    }

    @Test func `a first page that was torn is healed from the log`() throws {
        let (folder, killed) = (try TemporaryFolder(), try TemporaryFolder())
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        // Page 1 is in the log, because the database grows.
        try store.write { step in
            for number in 0..<40 {
                step.setSetting("filler-\(number)", to: String(repeating: "x", count: 1_800))
            }
        }
        try FileManager.default.copyItem(atPath: folder.state, toPath: killed.state)
        let path = URL(fileURLWithPath: killed.state + "/gate.db")
        var bytes = try Data(contentsOf: path)
        bytes.replaceSubrange(512..<1_024, with: [UInt8](repeating: 7, count: 512))
        try bytes.write(to: path)
        let next = try openStore(killed.state)
        #expect(try next.read { try $0.send(.sample(1)) } != nil)
        while try !next.checkPages(countMax: 100) {}
        #expect(next.damages.isEmpty, "\(next.damages)")
    }

    @Test func `a page that is damaged while the store runs stops what touches it and nothing else`() throws {
        let folder = try filled()
        let store = try openStore(
            folder.state,
            limits: SQLiteStoreLimits(
                readerCount: 1, writerCacheByteCount: 1, readerCacheByteCount: 1, personNumberCountMax: 0))
        let expected = try answers(store)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: folder.state + "/gate.db"))
        let pageCount = try Int(file.seekToEnd()) / Self.size
        var silentCount = 0
        for page in 2..<pageCount {
            try file.seek(toOffset: UInt64(page * Self.size + 900))
            let byte = try #require(try file.read(upToCount: 1))
            try file.seek(toOffset: UInt64(page * Self.size + 900))
            try file.write(contentsOf: Data([byte[0] ^ 0x10]))
            // Another snapshot, so that no cache answers.
            try store.subjectsWriter.connection.exclusively {
                _ = try store.subjectsWriter.connection.pragma("PRAGMA user_version")
            }
            let found = try answers(store)
            #expect(!zip(found, expected).contains { $0 != nil && $0 != $1 }, "page \(page + 1)")
            if !found.contains(where: { $0 != nil }) { silentCount += 1 }
            while try !store.checkPages(countMax: 100) {}
            #expect(store.damages.contains { $0.table == "gate.db page \(page + 1)" }, "page \(page + 1)")
            try file.seek(toOffset: UInt64(page * Self.size + 900))
            try file.write(contentsOf: byte)
        }
        // Where the series stand is on one page, without which nothing is answered.
        #expect(silentCount <= 1, "\(silentCount) pages stop everything")
    }

    @Test func `a pass goes on where the process before it ended`() throws {
        let folder = try filled()
        let byteCount = try ["gate.db", "subjects.db"].reduce(0) {
            $0 + (try Data(contentsOf: URL(fileURLWithPath: folder.state + "/" + $1)).count)
        }
        let pageCount = Int64(byteCount / Self.size)
        var store = try openStore(folder.state)
        #expect(try !store.checkPages(countMax: Int(pageCount) / 2))
        #expect(store.pageCheck.checkedPageCount == pageCount / 2)
        store.close()
        store = try openStore(folder.state)
        while try !store.checkPages(countMax: 10) {}
        #expect(store.pageCheck.checkedPageCount < pageCount && store.pageCheck.passCount == 1)
        let before = store.pageCheck.checkedPageCount
        while try !store.checkPages(countMax: 10) {}
        #expect(store.pageCheck.checkedPageCount - before >= pageCount)
        store.close()
        // What cannot be read begins anew.
        for text in ["", "x", "7 7", "0 -1", "0 99999999"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder.state + "/scrub-place"))
            store = try openStore(folder.state)
            for _ in 0..<2 { while try !store.checkPages(countMax: 10) {} }
            #expect(store.pageCheck.checkedPageCount >= pageCount && store.damages.isEmpty, "\(text)")
            store.close()
        }
    }

    @Test func `a change that meets a damaged page is undone with its whole transaction`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/own.db"
        func connect() throws -> Connection {
            try Connection(
                path: path, file: "own.db", role: .writer(byteCountMax: nil), cacheByteCount: 1 << 20,
                busyTimeoutMilliseconds: 100, pages: .test(path))
        }
        var connection = try connect()
        let root = try connection.exclusively {
            try connection.script(
                "CREATE TABLE own (a, b); CREATE INDEX own_by_b ON own (b); CREATE TABLE other (a)")
            return try #require(
                Int(try connection.pragma("SELECT rootpage FROM sqlite_schema WHERE name = 'own_by_b'")))
        }
        connection.close(movingLog: true)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[(root - 1) * Self.size + 1_000] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        connection = try connect()
        let other = StatementText("other", "INSERT INTO other VALUES (1)")
        let own = StatementText("own", "INSERT INTO own VALUES (1, 2)")
        try connection.exclusively {
            try connection.begin(writing: true)
            try connection.change(other)
            let error = #expect(throws: StoreError.self) { try connection.change(own) }
            // It is named by file, page and table.
            #expect(
                error?.damage
                    == StoredDamage(
                        table: "own", row: nil, what: "page \(root) of `own.db` is not as it was written"))
            #expect(throws: StoreError.self) { try connection.change(other) }
            #expect(throws: StoreError.self) { try connection.commit() }
            #expect(
                try connection.pragma(
                    "SELECT (SELECT count(*) FROM own NOT INDEXED) + (SELECT count(*) FROM other)")
                    == "0")
            try connection.writing { _ = try connection.change(other) }
            #expect(try connection.pragma("SELECT count(*) FROM other") == "1")
        }
        connection.close()
    }
}
