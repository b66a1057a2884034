import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import SQLiteStore

@Suite struct AtRestTests {
    @Test func `nothing personal is readable in any file, open or closed`() throws {
        let folder = try TemporaryFolder()
        var store: SQLiteStore? = try openStore(folder.state)
        try store?.write {
            _ = try $0.putCanaries()
            $0.offerOutbox(.canary(11, of: 1))
        }
        func expectUnreadable() throws {
            for canary in Canary.all {
                #expect(try files(in: folder.state, containing: Array(canary.utf8)) == [], "\(canary)")
            }
            // The search itself finds what is there in clear.
            #expect(try !files(in: folder.state, containing: Array("transaction.failed".utf8)).isEmpty)
        }
        try expectUnreadable()
        store = nil
        try expectUnreadable()
    }

    @Test func `a user and a push token are found by a hash that only the index key makes`() throws {
        let folder = try TemporaryFolder()
        _ = try openStore(folder.state, index: 9).write { try $0.putCanaries(1) }
        func stored(_ file: String, _ sql: String) throws -> [UInt8]? {
            try tamper("\(folder.state)/\(file)") {
                try $0.first(StatementText("hash", sql)) { $0.byteArray() }
            }
        }
        // A hash without a key could be tried with every user id and every phone's token there is.
        let user = Array("sendgate/user/v1".utf8) + [0] + Array("\(Canary.user)-1".utf8)
        #expect(try stored("subjects.db", "SELECT user FROM subject") == HMACKey.test(9).authenticate(user))
        let token = Array("sendgate/push-token/v1".utf8) + [0] + Array(Canary.token.utf8)
        #expect(try stored("gate.db", "SELECT code FROM push_token") == HMACKey.test(9).authenticate(token))
    }

    /// Runs SQL on the closed store and then the question that must find the damage.
    private func expectDamaged(
        _ table: String, after sql: String, in file: String = "gate.db",
        _ question: (any StoreReading) throws -> Void
    ) throws {
        let folder = try TemporaryFolder()
        try openStore(folder.state).write { transaction in
            try transaction.putCanaries(1)
            try transaction.putCanaries(2)
            var second = try transaction.devices(of: .sample(1))[0]
            second.tag = .sample(7)
            try transaction.putDevice(second)
        }
        try tamper(folder.state + "/" + file) { try $0.script(sql) }
        let store = try openStore(folder.state)
        do {
            try store.read(question)
        } catch StoreError.damaged(let found, _, _) {
            #expect(found == table)
        }
        #expect(store.damages.contains { $0.table == table }, "nothing was noticed after: \(sql)")
    }

    private func swap(_ table: String, _ left: String, _ right: String) -> String {
        """
        CREATE TEMP TABLE kept AS SELECT sealed FROM \(table) WHERE \(left);
        UPDATE \(table) SET sealed = (SELECT sealed FROM \(table) WHERE \(right)) WHERE \(left);
        UPDATE \(table) SET sealed = (SELECT sealed FROM kept) WHERE \(right);
        """
    }

    @Test func `a value moved to another person is damage`() throws {
        try expectDamaged("person", after: swap("person", "number = 1", "number = 2")) {
            _ = try $0.recipient(.sample(1))
        }
        try expectDamaged(
            "ledger", after: swap("ledger", "person = 1 AND kind = 0", "person = 2 AND kind = 0")
        ) {
            _ = try $0.consentRecords(of: .sample(1))
        }
    }

    @Test func `a record moved to another ledger or another place in it is damage`() throws {
        for sql in [
            swap("ledger", "person = 1 AND kind = 0", "person = 1 AND kind = 1"),
            "UPDATE ledger SET position = 2",
        ] {
            try expectDamaged("ledger", after: sql) { _ = try $0.consentRecords(of: .sample(1)) }
            try expectDamaged("ledger", after: sql) { _ = try $0.preferenceHistory(of: .sample(1)) }
        }
    }

    @Test func `a record that is missing from a ledger is damage`() throws {
        // The rest of a ledger is never taken for the whole, whatever else the store has noticed.
        try expectDamaged("ledger", after: "DELETE FROM ledger") { _ = try $0.consentRecords(of: .sample(1)) }
        try expectDamaged("ledger", after: "DELETE FROM ledger") {
            _ = try $0.preferenceHistory(of: .sample(1))
        }
    }

    @Test func `a key or a token that leads to another person is damage`() throws {
        try expectDamaged("device_key", after: "UPDATE device_key SET person = 3 - person") {
            _ = try $0.deviceKey(.sample(1001))
        }
        try expectDamaged("push_token", after: "UPDATE push_token SET person = 3") {
            _ = try $0.device(withToken: Canary.token)
        }
    }

    @Test func `a person under another's pseudonym is damage`() throws {
        let sql = """
            UPDATE person SET subject = zeroblob(16) WHERE number = 1;
            UPDATE person SET subject = x'0000000000005eed0000000000000001' WHERE number = 2
            """
        try expectDamaged("person", after: sql) { _ = try $0.recipient(.sample(1)) }
    }

    @Test(arguments: [
        "rank = 7 - rank", "subject = zeroblob(16)", "send = zeroblob(16)",
        "message = zeroblob(16) WHERE number = 1",
    ])
    func `a waiting message is bound to the columns beside it`(_ change: String) throws {
        try expectDamaged("outbox", after: "UPDATE outbox SET \(change)") { store in
            _ = try store.outbox(MessageID(high: 0, low: 0))
            _ = try store.outbox(MessageID.sample(1))
        }
    }

    /// Bytes of `rest`: its layout, the destination, what follows the type, whether there is a key, the key, and two times.
    @Test(arguments: [1, 2, 17] + Array(26...34) + [49, 50, 57, 58, 65])
    func `a waiting message is bound to what else stands in clear of it`(_ place: Int) throws {
        let sql = """
            UPDATE outbox SET rest = CAST(substr(rest, 1, \(place - 1))
                || CASE substr(rest, \(place), 1) WHEN x'00' THEN x'01' ELSE x'00' END
                || substr(rest, \(place + 1)) AS BLOB)
            """
        try expectDamaged("outbox", after: sql) { _ = try $0.outbox(MessageID.sample(1)) }
    }

    @Test func `a waiting message of another type is damage`() throws {
        // The number of the caller's word in the last byte of the type's.
        let sql = """
            UPDATE outbox SET rest =
                CAST(substr(rest, 1, 24) || CAST(char(caller) AS BLOB) || substr(rest, 26) AS BLOB)
            """
        try expectDamaged("outbox", after: sql) { _ = try $0.outbox(MessageID.sample(1)) }
    }

    @Test func `a changed byte in any sealed table is damage`() throws {
        // Another byte than was there, which may have been zero.
        func flipped(_ column: String) -> String {
            """
            CAST(substr(\(column), 1, 40) || CASE substr(\(column), 41, 1) WHEN x'00' THEN x'01' ELSE x'00' END
                || substr(\(column), 42) AS BLOB)
            """
        }
        let flip = flipped("sealed")
        try expectDamaged("send", after: "UPDATE send SET sealed = \(flip)") {
            _ = try $0.send(.sample(1))
        }
        try expectDamaged("outbox", after: "UPDATE outbox SET sealed = \(flip)") {
            _ = try $0.outbox(MessageID.sample(1))
        }
        try expectDamaged("event", after: "UPDATE event SET sealed = \(flip)") {
            _ = try $0.events(of: CallerName("payments"), after: 0, limit: 9)
        }
        try expectDamaged("person", after: "UPDATE person SET sealed = \(flip)") {
            _ = try $0.recipient(.sample(1))
        }
        try expectDamaged("ledger", after: "UPDATE ledger SET sealed = \(flip)") {
            _ = try $0.consentRecords(of: .sample(1))
        }
        let tagKey = "UPDATE subject SET tag_key = \(flipped("tag_key"))"
        try expectDamaged("subject", after: tagKey, in: "subjects.db") {
            _ = try $0.subject(of: UserID(Canary.user + "-1"))
        }
    }

    @Test func `a mapping moved to another user is damage`() throws {
        let sql = """
            CREATE TEMP TABLE kept AS SELECT user FROM subject WHERE number = 1;
            UPDATE subject SET user = zeroblob(32) WHERE number = 1;
            UPDATE subject SET user = (SELECT user FROM kept) WHERE number = 2
            """
        try expectDamaged("subject", after: sql, in: "subjects.db") {
            _ = try $0.subject(of: UserID(Canary.user + "-1"))
        }
    }

    @Test func `an entry of an unknown kind or a row cut short is damage, never a crash`() throws {
        try expectDamaged("outbox", after: "UPDATE outbox SET rest = x'01'") {
            _ = try $0.outbox(MessageID.sample(1))
        }
        try expectDamaged("send", after: "UPDATE send SET subject = x'01'") { _ = try $0.send(.sample(1)) }
        try expectDamaged("outbox", after: "UPDATE outbox SET sealed = x''") {
            _ = try $0.outbox(MessageID.sample(1))
        }
    }

    // MARK: Erasure

    @Test func `an erasure leaves no trace of who the person was`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        // Enough people that rows have moved between pages, and some that left before.
        try store.write { transaction in
            for number in 1...400 {
                _ = try transaction.makeSubject(for: UserID("u_\(number)"), subject: .sample(number))
            }
            try transaction.putCanaries(1000)
        }
        let mappings: [(user: [UInt8], subject: [UInt8], tagKey: [UInt8])] = try copyAndAsk(folder) {
            connection in
            let all = StatementText("subject", "SELECT user, subject, tag_key FROM subject ORDER BY number")
            return try connection.every(all) { ($0.byteArray(), $0.byteArray(), $0.byteArray()) }
        }
        #expect(mappings.count == 401)
        let erased = [3, 77, 250, 400]
        for index in erased {
            #expect(try !files(in: folder.state, containing: mappings[index].tagKey).isEmpty)
        }
        try store.write { transaction in
            for index in erased {
                transaction.eraseSubject(try #require(SubjectID(bytes: mappings[index].subject)))
            }
        }
        try store.finishErasures()
        for (index, mapping) in mappings.enumerated() where erased.contains(index) {
            for remnant in [mapping.user, mapping.tagKey, mapping.subject] {
                // Neither in the databases nor in their logs, while the store is still open.
                #expect(try files(in: folder.state, containing: remnant) == [])
            }
        }
        // The others are all there.
        let kept = mappings.indices.filter { !erased.contains($0) }
        for index in kept where index < 400 {
            #expect(try store.read { try $0.subject(of: UserID("u_\(index + 1)"))?.id } == .sample(index + 1))
        }
        #expect(try store.read { try $0.subject(of: UserID(Canary.user + "-1000")) } == nil)
    }

    @Test func `published entries are deleted without a page of theirs being written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        let entry = Array("{}".utf8) + [UInt8](repeating: UInt8(ascii: " "), count: 2_000)
        try store.write { step in
            for index in 0...256 {
                try step.appendEntry(StoredEntry(index: UInt64(index), time: .sample, bytes: entry))
            }
        }
        func logByteCount() throws -> Int {
            try Data(contentsOf: URL(fileURLWithPath: folder.state + "/gate.db-wal")).count
        }
        let before = try logByteCount()
        try store.write { $0.setPublishedSize(256) }
        #expect(try logByteCount() - before < 256 * entry.count / 8)
        // What is deleted next is overwritten again.
        let connection = store.writer.connection
        #expect(try connection.exclusively { try connection.pragma("PRAGMA secure_delete") } == "1")
    }

    @Test func `pages that are freed as they are keep only what was deleted so`() throws {
        let folder = try TemporaryFolder()
        func bytes(_ word: String) -> [UInt8] { Array(String(repeating: word, count: 1_000).utf8) }
        try tamper(folder.path + "/some.db") { (connection) throws in
            func insert(_ word: String, into table: String, from first: Int64) throws {
                let text = StatementText(table, "INSERT INTO \(table) VALUES (?, ?)")
                for number in first..<first + 20 {
                    try connection.change(text) {
                        $0.add(number)
                        $0.add(bytes(word))
                    }
                }
            }
            func found(_ word: String) throws -> [String] {
                try connection.emptyLog()
                return try files(in: folder.path, containing: Array(word.utf8))
            }
            for table in ["person", "entry"] {
                try connection.script("CREATE TABLE \(table) (number INTEGER PRIMARY KEY, bytes BLOB)")
            }
            try insert("personal", into: "person", from: 0)
            try insert("another's", into: "person", from: 20)
            try insert("published", into: "entry", from: 0)
            // Entries take the pages of a person who goes, and free them in the same transaction.
            try connection.writing {
                try connection.change(StatementText("person", "DELETE FROM person WHERE number < 20"))
                try insert("published", into: "entry", from: 20)
                try connection.changeKeepingFreedPages(StatementText("entry", "DELETE FROM entry")) { _ in }
            }
            #expect(try found("published") == ["some.db"])
            #expect(try found("personal") == [])
            // Also after a change that fails.
            #expect(throws: (any Error).self) {
                try connection.changeKeepingFreedPages(StatementText("entry", "DELETE FROM none")) { _ in }
            }
            #expect(try found("another's") == ["some.db"])
            try connection.change(StatementText("person", "DELETE FROM person"))
            #expect(try found("another's") == [])
        }
    }

    @Test func `an erasure leaves each table as if the person had never come`() throws {
        /// How many rows each table has after these people came and the others among them went.
        func rowCounts(of people: [Int], erasing erased: [Int]) throws -> [String: String] {
            let folder = try TemporaryFolder()
            let store = try openStore(folder.state)
            for number in people {
                try store.write { transaction in
                    let subject = try transaction.putCanaries(number)
                    transaction.offerOutbox(.canary(10 + number, of: number))
                    try transaction.putPermissionPrompt(
                        PermissionPrompt(
                            subject: subject, device: .sample(1), shownAt: .sample, answer: .granted))
                    transaction.putDedupe(
                        DedupeRecord(eventTag: .sample(7), send: .sample(number), at: .sample), to: subject)
                    transaction.putUnsubscribeLink(
                        UnsubscribeLink(
                            id: .sample(40 + number), subject: subject, category: .marketing, channel: .email,
                            destination: .sample(9), mailbox: nil))
                    transaction.putDuty(
                        DutyRecord(
                            duty: .sample(8), subject: subject, state: .owed, send: .sample(number),
                            caller: CallerName("payments"), type: TypeID(Canary.type), mustGoBy: "letter",
                            within: "a month", dueAt: .sample))
                }
                // Later than it was received.
                try store.write {
                    $0.countForward(
                        of: .sample(number), type: TypeID(Canary.type), category: .transactional, at: .sample,
                        send: .sample(number))
                }
            }
            for number in erased { try store.write { $0.eraseSubject(.sample(number)) } }
            try store.finishErasures()
            store.close()
            var counts: [String: String] = [:]
            for file in ["gate.db", "subjects.db"] {
                try tamper("\(folder.state)/\(file)") { connection in
                    let names = try connection.pragma(
                        "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'")
                    for name in names.split(separator: ",") {
                        counts["\(file) \(name)"] = try connection.pragma("SELECT count(*) FROM \(name)")
                    }
                }
            }
            return counts
        }
        var left = try rowCounts(of: [1, 2], erasing: [1])
        var never = try rowCounts(of: [2], erasing: [])
        // The trail keeps that both came.
        #expect(left.removeValue(forKey: "gate.db entry") == "2")
        #expect(never.removeValue(forKey: "gate.db entry") == "1")
        #expect(left == never)
        // Each table that holds something of a person had it.
        let empty = never.filter { $0.value == "0" }.keys.sorted()
        #expect(empty == ["gate.db erasure", "gate.db reply", "gate.db setting"])
    }

    @Test func `an erasure that a crash interrupted is finished by the next start`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { transaction in
            try transaction.putCanaries(1)
            transaction.eraseSubject(.sample(1))
        }
        store.close()
        func count(_ table: String, in file: String) throws -> String {
            try tamper("\(folder.state)/\(file)") { try $0.pragma("SELECT count(*) FROM \(table)") }
        }
        #expect(try count("erasure", in: "gate.db") == "1" && count("subject", in: "subjects.db") == "1")
        try openStore(folder.state).close()
        #expect(try count("erasure", in: "gate.db") == "0" && count("subject", in: "subjects.db") == "0")
    }

    /// Reads `subjects.db` in a copy, so that the open store's locks are left alone.
    private func copyAndAsk<Result>(_ folder: TemporaryFolder, _ body: (Connection) throws -> Result) throws
        -> Result
    {
        let copy = try TemporaryFolder()
        for name in ["subjects.db", "subjects.db-wal"] {
            try FileManager.default.copyItem(
                atPath: folder.state + "/" + name, toPath: copy.path + "/" + name)
        }
        return try tamper(copy.path + "/subjects.db", body)
    }
}
