import CanonicalJSON
import CourierModel
import Foundation
import GateVocabulary
import Glibc
import Synchronization
import Testing

@testable import CourierProviders

@Suite struct CourierJournalTests {
    static let later = TestClock.now.advanced(bySeconds: 3600)

    static func entry(_ value: JSONValue, until: Instant = later) -> CourierJournal.Entry {
        CourierJournal.Entry(value, keptUntil: until)
    }

    static func open(_ folder: TestFolder, limits: CourierJournal.Limits = .init()) throws -> CourierJournal {
        try CourierJournal(path: folder.file("journal"), limits: limits, now: { TestClock.now })
    }

    @Test func `what was committed is there after a restart, and what was removed is not`() async throws {
        let folder = try TestFolder()
        do {
            let journal = try Self.open(folder)
            try await journal.commit([.put("a", Self.entry("1")), .put("b", Self.entry("2"))])
            try await journal.commit([.put("a", Self.entry("3")), .remove("b"), .remove("never")])
            await journal.close()
            await #expect(throws: JournalFault.self) { try await journal.commit([.remove("a")]) }
        }
        let journal = try Self.open(folder)
        #expect(journal["a"] == Self.entry("3") && journal["b"] == nil)
        #expect(journal.damage == nil)
        #expect(journal.entries(withPrefix: "a").map(\.key) == ["a"])
    }

    @Test func `a journal cut at any byte keeps all lines before the cut and is usable`() async throws {
        let folder = try TestFolder()
        do {
            let journal = try Self.open(folder)
            for number in 0..<4 {
                try await journal.commit([.put("key \(number)", Self.entry(.integer(Int64(number))))])
            }
            await journal.close()
        }
        let whole = try Data(contentsOf: URL(filePath: folder.file("journal")))
        let ends = whole.enumerated().filter { $0.element == UInt8(ascii: "\n") }.map { $0.offset + 1 }
        #expect(ends.count == 4)
        for cut in 0...whole.count {
            try whole.prefix(cut).write(to: URL(filePath: folder.file("journal")))
            let journal = try Self.open(folder)
            // A line is whole without its line break.
            let kept = ends.count { $0 - 1 <= cut }
            #expect((0..<4).map { journal["key \($0)"] != nil } == (0..<4).map { $0 < kept }, "cut at \(cut)")
            try await journal.commit([.put("next", Self.entry("x"))])
            #expect(journal["next"] != nil)
            await journal.close()
        }
    }

    @Test func `a damaged line costs its own entry alone`() async throws {
        let folder = try TestFolder()
        do {
            let journal = try Self.open(folder)
            for number in 0..<3 { try await journal.commit([.put("key \(number)", Self.entry("x"))]) }
            await journal.close()
        }
        // The second entry says another value, which is JSON as well.
        let damaged = try String(contentsOfFile: folder.file("journal"), encoding: .utf8)
            .split(separator: "\n").enumerated().map {
                $0 == 1 ? String($1).replacing("\"x\"", with: "\"y\"") : String($1)
            }
        try Data((damaged.joined(separator: "\n") + "\n").utf8).write(
            to: URL(filePath: folder.file("journal")))
        let journal = try Self.open(folder)
        let copy = folder.file("journal.damaged")
        #expect(journal.damage == CourierJournal.Damage(lineCount: 1, keptCount: 2, copy: copy))
        // The line that the rewritten journal no longer has.
        #expect(try String(contentsOfFile: copy, encoding: .utf8) == damaged[1] + "\n")
        #expect((0..<3).map { journal["key \($0)"] != nil } == [true, false, true])
    }

    @Test func `a second courier cannot open the journal`() throws {
        let folder = try TestFolder()
        let first = try Self.open(folder)
        #expect(throws: JournalFault.inUse(path: folder.file("journal"))) { try Self.open(folder) }
        #expect(first["a"] == nil)
    }

    @Test func `entries end with time, and a full journal takes new ones again when some have ended`()
        async throws
    {
        let folder = try TestFolder()
        let now = Mutex(TestClock.now)
        var limits = CourierJournal.Limits()
        limits.entryCountMax = 3
        let journal = try CourierJournal(
            path: folder.file("journal"), limits: limits, now: { now.withLock { $0 } })
        for number in 0..<3 { try await journal.commit([.put("\(number)", Self.entry("x"))]) }
        let full = JournalFault.full(path: folder.file("journal"), entryCount: 3)
        await #expect(throws: full) { try await journal.commit([.put("3", Self.entry("x"))]) }
        // What is there may still change and end.
        try await journal.commit([.put("0", Self.entry("y"))])
        try await journal.commit([.remove("1")])
        try await journal.commit([.put("3", Self.entry("x"))])
        await #expect(throws: full) { try await journal.commit([.put("4", Self.entry("x"))]) }
        now.withLock { $0 = Self.later }
        try await journal.commit([.put("4", Self.entry("x", until: Self.later.advanced(bySeconds: 1)))])
        #expect(journal.entries(withPrefix: "").map(\.key) == ["4"])
    }

    @Test func `a prefix that is full takes no room of another, also in one write`() async throws {
        let folder = try TestFolder()
        var limits = CourierJournal.Limits()
        (limits.entryCountMax, limits.entryCountMaxByPrefix) = (100, ["expo": 2])
        let journal = try Self.open(folder, limits: limits)
        try await journal.commit([.put("expo/a/1", Self.entry("x")), .put("expo/b/2", Self.entry("x"))])
        #expect(!journal.hasRoom(for: "expo/a/") && journal.hasRoom(for: "once/1"))
        let refusedCount = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<50 {
                group.addTask { [journal] in
                    do {
                        try await journal.commit([
                            .put("\(number % 2 == 0 ? "expo/a" : "once")/\(number)n", Self.entry("x"))
                        ])
                        return false
                    } catch {
                        return true
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(refusedCount == 25)
        #expect(journal.entries(withPrefix: "once/").count == 25)
        #expect(journal.entries(withPrefix: "expo/").count == 2)
        try await journal.commit([.remove("expo/a/1")])
        #expect(journal.hasRoom(for: "expo/a/"))
    }

    @Test func `a journal that is full is not rewritten for every commit`() async throws {
        let folder = try TestFolder()
        var limits = CourierJournal.Limits()
        limits.entryCountMax = 3
        let journal = try Self.open(folder, limits: limits)
        for number in 0..<3 { try await journal.commit([.put("\(number)", Self.entry("x"))]) }
        func inode() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: folder.file("journal"))[.systemFileNumber]
                as? Int
        }
        let before = try inode()
        for _ in 0..<3 { try await journal.commit([.put("0", Self.entry("y"))]) }
        await #expect(throws: JournalFault.self) { try await journal.commit([.put("3", Self.entry("x"))]) }
        #expect(try inode() == before)
    }

    @Test func `the file is rewritten without what ended, and never passes its limit`() async throws {
        let folder = try TestFolder()
        var limits = CourierJournal.Limits()
        limits.byteCountMax = 40_000
        let journal = try Self.open(folder, limits: limits)
        let value = JSONValue.string(String(repeating: "x", count: 1000))
        for number in 0..<200 {
            try await journal.commit([
                .put("key", Self.entry(value)), .put("last", Self.entry(.integer(Int64(number)))),
            ])
            let size = try FileManager.default.attributesOfItem(atPath: folder.file("journal"))[.size] as? Int
            #expect(size ?? .max <= limits.byteCountMax)
        }
        #expect(journal["last"] == Self.entry(199))
        await #expect(throws: JournalFault.self) {
            try await journal.commit([.put("key", Self.entry(.string(String(repeating: "x", count: 5000))))])
        }
    }

    @Test func `commits at once are all durable`() async throws {
        let folder = try TestFolder()
        do {
            let journal = try Self.open(folder)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask { try await journal.commit([.put("\(number)", Self.entry("x"))]) }
                }
                try await group.waitForAll()
            }
            await journal.close()
        }
        #expect(try Self.open(folder).entries(withPrefix: "").count == 200)
    }

    @Test func `on a full disk nothing is sent, and it goes again when there is room`() async throws {
        let folder = try TestFolder()
        let single = SingleCopy(try Self.open(folder))
        let sent = Mutex(0)
        func deliver(_ number: UInt64) async -> DeliveryOutcome {
            await single.deliver(TestClock.order(.sms, number: number)) { begin in
                if let outcome = await begin() { return outcome }
                sent.withLock { $0 += 1 }
                return .accepted(providerID: nil)
            }
        }
        #expect(await deliver(1) == .accepted(providerID: nil))
        // Given a file that cannot grow, which a disk without room is (setrlimit(2)); tests of a process run one by one.
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(1), &limit)
        let whole = limit
        signal(SIGXFSZ, SIG_IGN)
        limit.rlim_cur = 16
        setrlimit(__rlimit_resource_t(1), &limit)
        let put = DeliveryOutcome.later(reason: "journal_unavailable", seconds: nil, scope: .app)
        let outcomes = [await deliver(2), await deliver(2), await deliver(1)]
        var restored = whole
        setrlimit(__rlimit_resource_t(1), &restored)
        #expect(outcomes == [put, put, .accepted(providerID: nil)])
        #expect(sent.withLock { $0 } == 1)
        #expect(await deliver(2) == .accepted(providerID: nil))
        #expect(sent.withLock { $0 } == 2)
    }

    @Test func `two tries of one message at once are one`() async throws {
        let folder = try TestFolder()
        let single = SingleCopy(try Self.open(folder))
        let (begun, mayEnd) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
        let sent = Mutex(0)
        let attempt: @Sendable (@Sendable () async -> DeliveryOutcome?) async -> DeliveryOutcome = { begin in
            if let outcome = await begin() { return outcome }
            sent.withLock { $0 += 1 }
            begun.continuation.yield()
            for await _ in mayEnd.stream { break }
            return .accepted(providerID: "x")
        }
        async let first = single.deliver(TestClock.order(.sms), attempt)
        for await _ in begun.stream { break }
        async let second = single.deliver(TestClock.order(.sms), attempt)
        mayEnd.continuation.yield()
        let outcomes = await [first, second]
        #expect(outcomes == [.accepted(providerID: "x"), .accepted(providerID: "x")])
        #expect(sent.withLock { $0 } == 1)
    }
}
