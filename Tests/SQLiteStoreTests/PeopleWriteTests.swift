import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import Testing

@testable import SQLiteStore

/// What the writer keeps of people is what the last commit wrote.
@Suite struct PeopleWriteTests {
    /// A person's locale as the writer and as a reader see it.
    private func locales(_ store: SQLiteStore) throws -> [String?] {
        [
            try store.write { try $0.recipient(.sample(1))?.locale },
            try store.read { try $0.recipient(.sample(1))?.locale },
        ]
    }

    @Test(arguments: [0, 1, 100])
    func `a step that fails and a commit that is undone leave nothing in it`(cached: Int)
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state, limits: SQLiteStoreLimits(personNumberCountMax: cached))
        try store.write { _ = try $0.putCanaries(1) }
        var record = try #require(try store.read { try $0.recipient(.sample(1)) })
        func change(_ locale: String, in transaction: GateMemory) throws {
            record.locale = locale
            try transaction.putRecipient(record)
        }
        #expect(try locales(store) == [Canary.locale, Canary.locale])
        #expect(throws: Interrupted.self) {
            try store.write { (transaction: GateMemory) throws -> Void in
                try change("sv", in: transaction)
                #expect(try transaction.recipient(.sample(1))?.locale == "sv")
                throw Interrupted()
            }
        }
        #expect(try locales(store) == [Canary.locale, Canary.locale])
        try store.write { try change("da", in: $0) }
        #expect(throws: (any Error).self) {
            try store.write { (transaction: GateMemory) throws -> Void in
                try change("fi", in: transaction)
                _ = try transaction.putCanaries(2)
                _ = try transaction.recipient(.sample(2))
                try transaction.cannotBeWritten()
            }
        }
        #expect(try locales(store) == ["da", "da"])
        #expect(try store.write { try $0.recipient(.sample(2)) } == nil)
        #expect(try store.write { try $0.subject(of: UserID(Canary.user + "-2")) } == nil)
        // The number that was given to no person in the end is given to the next.
        try store.write { _ = try $0.putCanaries(3) }
        #expect(try store.write { try $0.devices(of: .sample(3)).first?.token } == Canary.token)
    }

    @Test func `a second change in one commit is held against the first`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        var record = try #require(try store.read { try $0.recipient(.sample(1)) })
        let memory = GateMemory()
        try store.load([], into: memory)
        // There and back: the second is no change to what the file has.
        for locale in ["sv", Canary.locale] {
            record.locale = locale
            try store.step({ try $0.putRecipient(record) }, over: memory)
        }
        _ = try store.commit(memory.applied)
        #expect(try locales(store) == [Canary.locale, Canary.locale])
    }

    @Test func `who was erased is not found in it, in the same transaction or a later one`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        let user = UserID(Canary.user + "-1")
        // Found by an earlier transaction, whose commit keeps it.
        #expect(try store.write { try $0.subject(of: user) } != nil)
        try store.write { (transaction: GateMemory) throws in
            #expect(try transaction.subject(of: user) != nil && transaction.state(of: .sample(1)) != nil)
            transaction.eraseSubject(.sample(1))
            #expect(try transaction.subject(of: user) == nil && transaction.state(of: .sample(1)) == nil)
        }
        try store.write { (transaction: GateMemory) throws in
            #expect(try transaction.subject(of: user) == nil && transaction.state(of: .sample(1)) == nil)
        }
        try store.finishErasures()
        try store.write { (transaction: GateMemory) throws in
            let again = try transaction.makeSubject(for: user, subject: .sample(9))
            #expect(again.id == .sample(9))
            #expect(try transaction.state(of: .sample(9)) == nil)
        }
    }

    @Test func `a batch looks users up who are not in it, and keeps no snapshot of the mappings`() throws {
        let folder = try TemporaryFolder()
        // A log that a snapshot still needs is not emptied, and nothing waits for the snapshot's end.
        let limits = SQLiteStoreLimits(
            readerCount: 1, busyTimeoutMilliseconds: 0, personNumberCountMax: 0)
        let store = try openStore(folder.state, limits: limits)
        func found() throws -> [SubjectID?] {
            let users = (1...6).map { UserID("u_\($0)") }
            let memory = GateMemory()
            try store.load(users.map { .user($0) }, into: memory)
            return try users.map { try memory.subject(of: $0)?.id }
        }
        func make(_ numbers: ClosedRange<Int>) throws {
            try store.write { step in
                for number in numbers {
                    _ = try step.makeSubject(for: UserID("u_\(number)"), subject: .sample(number))
                }
            }
        }
        try make(1...5)
        #expect(try found() == (1...5).map { .sample($0) } + [nil])
        try store.write { $0.eraseSubject(.sample(1)) }
        #expect(try found() == [nil] + (2...5).map { .sample($0) } + [nil])
        try store.finishErasures()
        try make(6...6)
        #expect(try found() == [nil] + (2...6).map { .sample($0) })
    }

    @Test func `a state past its bound is refused, and nothing of it stays`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries(1) }
        let padding = String(repeating: "x", count: 300)
        #expect(throws: UnfitWrite.self) {
            try store.write { transaction in
                var state = try #require(try transaction.state(of: .sample(1)))
                for number in 0..<4_000 {
                    state.apply(
                        .preference(
                            PreferenceRecord(
                                subject: .sample(1), scope: "\(number)-" + padding, channel: .push,
                                destination: nil, state: .userOff, source: .inAppSettings, at: .sample,
                                caller: CallerName("app"))))
                }
                try transaction.put(state)
            }
        }
        #expect(try store.write { try $0.preferences(of: .sample(1)).count } == 1)
    }
}
