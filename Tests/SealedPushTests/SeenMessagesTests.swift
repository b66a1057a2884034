import Crypto
import Foundation
import Glibc
import SealedPush
import Synchronization
import Testing

/// A folder of one test's own.
private final class Folder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/seen-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var file: String { "\(path)/seen" }

    func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file))) }

    func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: file)) }
}

private func messageID(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(number).bigEndian) { [UInt8](repeating: 7, count: 8) + Array($0) }
}

private func digest(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 32) }

/// The slot as the type's own description has it.
private func slot(_ number: Int, digest bytes: [UInt8], expiresAt: UInt64) -> [UInt8] {
    let head = messageID(number) + bytes + withUnsafeBytes(of: expiresAt.bigEndian) { Array($0) }
    return head + SHA256.hash(data: head).prefix(8)
}

/// What ``SeenMessages`` promises, by everything that implements it.
@Suite struct SeenMessagesPromiseTests {
    enum Implementation: CaseIterable {
        case inMemory
        case inAFile
    }

    /// - Returns: What gives the record to one user of it: another value over the same file, or the same object.
    private func users(
        _ implementation: Implementation, in folder: Folder, countMax: Int
    ) -> @Sendable () -> any SeenMessages {
        switch implementation {
        case .inMemory:
            let seen = InMemorySeenMessages(countMax: countMax)
            return { seen }
        case .inAFile:
            return { [file = folder.file] in FileSeenMessages(file: file, countMax: countMax) }
        }
    }

    @Test(arguments: Implementation.allCases)
    func `an id is new once, and its digest is remembered`(implementation: Implementation) throws {
        let folder = try Folder()
        let user = users(implementation, in: folder, countMax: 8)
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .new)
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .same)
        #expect(try user().record(messageID: messageID(1), digest: digest(2), expiresAt: 100) == .different)
        // What was refused changed nothing.
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .same)
        #expect(try user().record(messageID: messageID(2), digest: digest(2), expiresAt: 100) == .new)
    }

    @Test(arguments: Implementation.allCases)
    func `a record is kept until its time has passed`(implementation: Implementation) throws {
        let folder = try Folder()
        let user = users(implementation, in: folder, countMax: 8)
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .new)
        #expect(try user().record(messageID: messageID(2), digest: digest(1), expiresAt: .max) == .new)
        try user().forgetExpired(now: 100)
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .same)
        try user().forgetExpired(now: 101)
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .new)
        #expect(try user().record(messageID: messageID(2), digest: digest(1), expiresAt: .max) == .same)
    }

    @Test(arguments: Implementation.allCases)
    func `a full record refuses what is new, answers what it knows, and takes the place of what expired`(
        implementation: Implementation
    ) throws {
        let folder = try Folder()
        let user = users(implementation, in: folder, countMax: 3)
        for number in 1...3 {
            #expect(
                try user().record(
                    messageID: messageID(number), digest: digest(1), expiresAt: UInt64(100 * number)) == .new)
        }
        for now in [0, 100] as [UInt64] {
            try user().forgetExpired(now: now)
            #expect(throws: (any Error).self) {
                try user().record(messageID: messageID(4), digest: digest(4), expiresAt: 400)
            }
        }
        #expect(try user().record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .same)
        try user().forgetExpired(now: 201)
        #expect(try user().record(messageID: messageID(4), digest: digest(4), expiresAt: 400) == .new)
        #expect(try user().record(messageID: messageID(5), digest: digest(5), expiresAt: 400) == .new)
        #expect(throws: (any Error).self) {
            try user().record(messageID: messageID(6), digest: digest(6), expiresAt: 400)
        }
        #expect(try user().record(messageID: messageID(3), digest: digest(1), expiresAt: 300) == .same)
        #expect(try user().record(messageID: messageID(4), digest: digest(4), expiresAt: 400) == .same)
    }

    @Test(arguments: Implementation.allCases)
    func `of many that bring the same ids at once, one each hears that it is new`(
        implementation: Implementation
    ) async throws {
        let folder = try Folder()
        let user = users(implementation, in: folder, countMax: 64)
        let firsts = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    try (0..<32).filter {
                        try user().record(messageID: messageID($0), digest: digest(1), expiresAt: 100) == .new
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(firsts.sorted() == Array(0..<32))
    }
}

@Suite struct FileSeenMessagesTests {
    @Test func `the file has the slots that its description says`() throws {
        let folder = try Folder()
        let seen = FileSeenMessages(file: folder.file)
        #expect(try seen.record(messageID: messageID(1), digest: digest(1), expiresAt: 1_790_000_000) == .new)
        #expect(try seen.record(messageID: messageID(2), digest: digest(2), expiresAt: 1_790_000_001) == .new)
        #expect(
            try folder.bytes() == slot(1, digest: digest(1), expiresAt: 1_790_000_000)
                + slot(2, digest: digest(2), expiresAt: 1_790_000_001))
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `an expired slot is used again`() throws {
        let folder = try Folder()
        let seen = FileSeenMessages(file: folder.file)
        for number in 1...3 {
            _ = try seen.record(
                messageID: messageID(number), digest: digest(1), expiresAt: number == 2 ? 100 : 200)
        }
        try seen.forgetExpired(now: 101)
        #expect(try seen.record(messageID: messageID(4), digest: digest(4), expiresAt: 300) == .new)
        #expect(
            try folder.bytes() == slot(1, digest: digest(1), expiresAt: 200)
                + slot(4, digest: digest(4), expiresAt: 300) + slot(3, digest: digest(1), expiresAt: 200))
    }

    /// Every length to which a write of the second slot can have come.
    @Test func `a torn slot counts as free, and hides nothing of the others`() throws {
        let folder = try Folder()
        let seen = FileSeenMessages(file: folder.file, countMax: 3)
        let (first, torn, third) = (
            slot(1, digest: digest(1), expiresAt: 100), slot(2, digest: digest(2), expiresAt: 100),
            slot(3, digest: digest(3), expiresAt: 100)
        )
        for count in 0..<64 {
            for rest in [0, 0xFF] as [UInt8] {
                try folder.write(
                    first + torn.prefix(count) + [UInt8](repeating: rest, count: 64 - count) + third)
                for _ in 0..<2 {
                    #expect(
                        try seen.record(messageID: messageID(1), digest: digest(1), expiresAt: 100) == .same)
                    #expect(
                        try seen.record(messageID: messageID(3), digest: digest(3), expiresAt: 100) == .same)
                }
                // The record of the torn slot was never confirmed, so its message is new.
                #expect(
                    try seen.record(messageID: messageID(2), digest: digest(2), expiresAt: 100) == .new,
                    "\(count) bytes")
                #expect(try folder.bytes() == first + torn + third)
            }
        }
    }

    @Test func `a file that ends within a slot goes on from that slot`() throws {
        let folder = try Folder()
        let seen = FileSeenMessages(file: folder.file, countMax: 2)
        let (first, second) = (
            slot(1, digest: digest(1), expiresAt: 100), slot(2, digest: digest(2), expiresAt: 100)
        )
        for count in 0..<64 {
            try folder.write(first + second.prefix(count))
            #expect(try seen.record(messageID: messageID(2), digest: digest(2), expiresAt: 100) == .new)
            #expect(try folder.bytes() == first + second)
        }
    }

    @Test func `garbage is no record, and is written over`() throws {
        let folder = try Folder()
        let seen = FileSeenMessages(file: folder.file, countMax: 4)
        try folder.write((0..<300).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) })
        for number in 1...4 {
            #expect(
                try seen.record(messageID: messageID(number), digest: digest(1), expiresAt: 100) == .new)
        }
        #expect(throws: FileSeenMessages.Failure.full(countMax: 4)) {
            try seen.record(messageID: messageID(5), digest: digest(1), expiresAt: 100)
        }
        #expect(
            Array(try folder.bytes().prefix(256))
                == (1...4).flatMap { slot($0, digest: digest(1), expiresAt: 100) })
    }

    @Test func `what a larger record holds is known to a smaller one`() throws {
        let folder = try Folder()
        for number in 1...4 {
            _ = try FileSeenMessages(file: folder.file, countMax: 4).record(
                messageID: messageID(number), digest: digest(1), expiresAt: UInt64(100 * number))
        }
        let smaller = FileSeenMessages(file: folder.file, countMax: 2)
        #expect(try smaller.record(messageID: messageID(4), digest: digest(1), expiresAt: 400) == .same)
        #expect(throws: FileSeenMessages.Failure.full(countMax: 2)) {
            try smaller.record(messageID: messageID(5), digest: digest(1), expiresAt: 500)
        }
        // An empty slot beyond its own is not used.
        try smaller.forgetExpired(now: 0)
        var bytes = try folder.bytes()
        bytes.replaceSubrange(128..<192, with: repeatElement(0, count: 64))
        try folder.write(bytes)
        #expect(throws: FileSeenMessages.Failure.full(countMax: 2)) {
            try smaller.record(messageID: messageID(5), digest: digest(1), expiresAt: 500)
        }
    }

    @Test func `what cannot be recorded is an error`() throws {
        let folder = try Folder()
        func record(_ file: String, _ id: [UInt8] = messageID(1), _ bytes: [UInt8] = digest(1)) throws {
            _ = try FileSeenMessages(file: file).record(messageID: id, digest: bytes, expiresAt: 100)
        }
        #expect(throws: FileSeenMessages.Failure.system(call: "open", code: ENOENT)) {
            try record("\(folder.path)/absent/seen")
        }
        #expect(throws: FileSeenMessages.Failure.system(call: "open", code: EISDIR)) {
            try record(folder.path)
        }
        #expect(throws: FileSeenMessages.Failure.notARecord) { try record("/dev/null") }
        try folder.write([UInt8](repeating: 1, count: 65_536 * 64 + 1))
        #expect(throws: FileSeenMessages.Failure.notARecord) { try record(folder.file) }
        try folder.write([])
        #expect(throws: FileSeenMessages.Failure.malformedMessage) { try record(folder.file, [1]) }
        #expect(throws: FileSeenMessages.Failure.malformedMessage) {
            try record(folder.file, messageID(1), [1])
        }
        #expect(try folder.bytes() == [])
    }

    /// Another process is in the middle of its call: it has the lock, and writes its record before it gives it back.
    @Test func `a call waits for another's lock, and then reads what that wrote`() throws {
        let folder = try Folder()
        try folder.write([])
        let other = open(folder.file, O_RDWR | O_CLOEXEC)
        defer { close(other) }
        #expect(flock(other, LOCK_EX) == 0)
        var status = stat()
        #expect(fstat(other, &status) == 0)

        let ended = DispatchSemaphore(value: 0)
        let box = AnswerBox()
        Thread { [file = folder.file] in
            box.set(
                Result {
                    try FileSeenMessages(file: file).record(
                        messageID: messageID(1), digest: digest(1), expiresAt: 100)
                })
            ended.signal()
        }.start()
        // The kernel lists who waits for a lock: `1: -> FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF`.
        let waiting = ":\(status.st_ino) "
        let deadline = ContinuousClock.now + .seconds(20)
        var isWaiting = false
        while !isWaiting, ContinuousClock.now < deadline {
            isWaiting = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
                .contains { $0.contains("-> FLOCK") && $0.contains(waiting) }
            sched_yield()
        }
        #expect(isWaiting)
        let written = slot(1, digest: digest(2), expiresAt: 100)
        #expect(pwrite(other, written, written.count, 0) == written.count)
        #expect(flock(other, LOCK_UN) == 0)
        #expect(ended.wait(timeout: .now() + 20) == .success)
        #expect(try box.value?.get() == .different)
    }

    private final class AnswerBox: Sendable {
        private let answer = Mutex<Result<SeenMessage, any Error>?>(nil)
        var value: Result<SeenMessage, any Error>? { answer.withLock { $0 } }
        func set(_ value: Result<SeenMessage, any Error>) { answer.withLock { $0 = value } }
    }
}
