import AuditTrail
import GateRecords
import GateVocabulary
import Glibc
import OpenSSLCrypto
import SealedFormat
import Testing

@testable import TrailDirectory

@Suite struct WriterTests {
    @Test(arguments: [23, 100, 255, 256, 257, 600])
    func `a trail published in steps is the trail of all its entries`(step: Int) throws {
        try TestTrail.withDirectory { path in
            let writer = try TrailDirectoryWriter(openingAt: path + "/trail", trusting: TestTrail.trust)
            var signed: [[UInt8]] = []
            for start in stride(from: 0, to: 600, by: step) {
                let end = min(start + step, 600)
                let size = try writer.integrate(
                    TestTrail.entries(start..<end), startingAt: UInt64(start))
                #expect(size == UInt64(end))
                // Publishing every second of a quiet day is publishing nothing: once is enough.
                guard start / step % 7 == 0 || end == 600 else { continue }
                let checkpoint = try writer.publishCheckpoint {
                    signed.append(try TestTrail.sign($0))
                    return signed.last ?? []
                }
                #expect(checkpoint.size == UInt64(end))
                try writer.publishCheckpoint { _ in
                    Issue.record("the same checkpoint was signed twice")
                    return []
                }
            }
            let reader = try TrailDirectoryReader(openingAt: path + "/trail")
            for external in signed {
                let report = try TestTrail.report(reader, since: external)
                #expect(report.damage == nil)
                #expect(report.checkpoint?.checkpoint.root == TestTrail.root(600))
            }
        }
    }

    @Test func `a directory opened again goes on where it was`() throws {
        try TestTrail.withDirectory { path in
            for (start, end) in [(0, 10), (10, 10), (10, 256), (256, 257), (257, 700)] {
                let writer = try TrailDirectoryWriter(
                    openingAt: path, trusting: TestTrail.trust, publishedSize: UInt64(start))
                #expect(writer.size == UInt64(start))
                try writer.integrate(TestTrail.entries(start..<end), startingAt: UInt64(start))
                try writer.publishCheckpoint(signing: TestTrail.sign)
            }
            let report = try TestTrail.report(try TrailDirectoryReader(openingAt: path))
            #expect(report.damage == nil && report.checkpoint?.checkpoint.root == TestTrail.root(700))
        }
    }

    @Test func `an empty trail has a checkpoint too`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        let checkpoint = try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(checkpoint.size == 0 && checkpoint.root == TreeHash.empty)
        #expect(try TrailDirectoryWriter(disk, trusting: TestTrail.trust).checkpoint == checkpoint)
    }

    @Test func `entries that are there already are compared and skipped`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<300), startingAt: 0)
        let before = disk.operationCount
        #expect(try writer.integrate(TestTrail.entries(0..<300), startingAt: 0) == 300)
        #expect(try writer.integrate([], startingAt: 12) == 300)
        #expect(disk.operationCount == before)
        #expect(try writer.integrate(TestTrail.entries(250..<310), startingAt: 250) == 310)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(try TestTrail.report(FilesReader(files: disk)).damage == nil)
        #expect(writer.checkpoint?.root == TestTrail.root(310))
    }

    @Test func `another entry under a published index is a conflict, a missing one a gap`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<300), startingAt: 0)
        for index in [0, 255, 256, 299] {
            #expect(throws: TrailError.conflict(index: UInt64(index))) {
                try writer.integrate([TestTrail.entry(index, of: "x")], startingAt: UInt64(index))
            }
        }
        #expect(throws: TrailError.gap(expected: 300, found: 301)) {
            try writer.integrate([TestTrail.entry(301)], startingAt: 301)
        }
        #expect(throws: TrailError.unacceptableEntry(index: 301, byteCount: 65_536)) {
            try writer.integrate(
                [TestTrail.entry(300), [UInt8](repeating: 1, count: 65_536)], startingAt: 300)
        }
        #expect(throws: TrailError.unacceptableEntry(index: 300, byteCount: 0)) {
            try writer.integrate([[]], startingAt: 300)
        }
        #expect(writer.size == 300)
    }

    @Test func `the largest entry there can be is published and read back`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        let overhead = TestTrail.entry(0).count
        let entry = TestTrail.entry(0, of: String(repeating: "x", count: 65_535 - overhead))
        #expect(entry.count == 65_535)
        try writer.integrate([entry], startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(try TestTrail.report(FilesReader(files: disk)).entryByteCount == 65_535)
    }

    @Test func `partial tiles go once a checkpoint covers the full one, and not before`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        func partials() -> [String] { disk.names.keys.filter { $0.contains(".p/") }.sorted() }
        try writer.integrate(TestTrail.entries(0..<10), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        try writer.integrate(TestTrail.entries(10..<300), startingAt: 10)
        #expect(partials().contains("tile/0/000.p/10"))
        try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(partials() == ["tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/001.p/44"])
        #expect(!disk.directories.contains("tile/0/000.p"))
        // A new writer knows which are left, too.
        let next = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try next.integrate(TestTrail.entries(300..<520), startingAt: 300)
        try next.publishCheckpoint(signing: TestTrail.sign)
        #expect(partials() == ["tile/0/002.p/8", "tile/1/000.p/1", "tile/1/000.p/2", "tile/entries/002.p/8"])
        #expect(try TestTrail.report(FilesReader(files: disk)).damage == nil)
    }

    @Test func `a signer that returns something else publishes nothing`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<3), startingAt: 0)
        let other = Checkpoint(origin: TestTrail.origin, size: 2, root: TestTrail.root(2))
        #expect(throws: TrailError.signerMismatch(nil)) {
            try writer.publishCheckpoint { _ in try TestTrail.sign(other) }
        }
        #expect(throws: TrailError.signerMismatch(.note(.noKnownSignature))) {
            try writer.publishCheckpoint { checkpoint in
                let stranger = try Ed25519PrivateKey(
                    seed: SecretBytes(copying: [UInt8](repeating: 8, count: 32)))
                return try checkpoint.signed(by: [try #require(NoteSigner(name: "stranger", key: stranger))])
            }
        }
        #expect(disk.names["checkpoint"] == nil)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(disk.names["checkpoint"] != nil)
    }

    @Test func `a file that changed between writing and signing stops the signature`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<300), startingAt: 0)
        disk.names["tile/0/001.p/44"]?.bytes[7] ^= 1
        #expect(throws: TrailError.inconsistent(size: 300)) {
            try writer.publishCheckpoint { _ in
                Issue.record("an inconsistent tree was signed")
                return []
            }
        }
    }

    @Test func `an old copy of the directory is refused`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<3), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        #expect(throws: TrailError.rolledBack(size: 3, publishedSize: 4)) {
            try TrailDirectoryWriter(disk, trusting: TestTrail.trust, publishedSize: 4)
        }
        #expect(throws: TrailError.rolledBack(size: 0, publishedSize: 3)) {
            try TrailDirectoryWriter(SimulatedDisk(), trusting: TestTrail.trust, publishedSize: 3)
        }
    }
}

/// What a publisher does in one test: start with some published entries, then integrate up to a size and
/// publish or not.
struct Course: Sendable, CustomTestStringConvertible {
    let name: String
    let base: Int
    let steps: [(size: Int, publishes: Bool)]
    var testDescription: String { name }

    var end: Int { steps.last?.size ?? base }

    static let all = [
        Course(
            name: "from nothing", base: 0, steps: [(1, true), (3, false), (5, true), (5, true), (7, true)]),
        Course(
            name: "over the edge of a tile", base: 253,
            steps: [(254, true), (255, false), (257, true), (259, false), (261, true)]),
        Course(name: "two tiles at once", base: 250, steps: [(252, true), (515, true), (516, true)]),
    ]

    /// A disk with the base published on it.
    func disk() throws -> SimulatedDisk {
        guard base > 0 else { return SimulatedDisk() }
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<base), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        return SimulatedDisk(files: disk.contents)
    }

    func operationCount() throws -> Int {
        let disk = try disk()
        var life = Life(self)
        try life.run(on: disk)
        return disk.operationCount
    }
}

/// A publisher's life over crashes: what it was told is durable, and what it signed.
struct Life {
    let course: Course
    var published: Int

    init(_ course: Course) {
        self.course = course
        published = course.base
    }

    /// Runs until a step fails.
    mutating func run(on disk: SimulatedDisk) throws {
        let writer = try TrailDirectoryWriter(
            disk, trusting: TestTrail.trust, publishedSize: UInt64(published))
        for step in course.steps where step.size >= published {
            // The store starts again at the last size it knows was published.
            try writer.integrate(TestTrail.entries(published..<step.size), startingAt: UInt64(published))
            guard step.publishes else { continue }
            try writer.publishCheckpoint { checkpoint in
                // Whatever went wrong before, only one history is ever signed.
                #expect(checkpoint.root == TestTrail.root(Int(checkpoint.size)))
                return try TestTrail.sign(checkpoint)
            }
            published = step.size
        }
    }

    func isComplete(_ disk: SimulatedDisk) throws -> Bool {
        let report = try TestTrail.report(FilesReader(files: disk))
        return report.damage == nil && report.checkpoint?.checkpoint.root == TestTrail.root(course.end)
    }
}

@Suite struct CrashTests {
    @Test(arguments: Course.all)
    func `after a crash at any operation the trail goes on, whatever the disk forgot`(_ course: Course) throws
    {
        let base = try course.disk()
        let count = try course.operationCount()
        #expect(count > 40)
        for faultAt in 0..<count {
            for seed in 0..<3 as Range<UInt64> {
                var numbers = SeededNumbers(state: seed << 32 | UInt64(faultAt))
                let disk = SimulatedDisk(files: base.contents)
                disk.faultAt = faultAt
                var life = Life(course)
                try? life.run(on: disk)
                let restarted = disk.afterCrash(&numbers)
                // What was told to be published is there: the next life refuses a shorter trail.
                try life.run(on: restarted)
                #expect(try life.isComplete(restarted), "operation \(faultAt), seed \(seed)")
            }
        }
    }

    @Test(arguments: Course.all)
    func `what is published at the moment of a crash verifies by itself`(_ course: Course) throws {
        let base = try course.disk()
        var publishedCount = 0
        for faultAt in stride(from: 0, to: try course.operationCount(), by: 5) {
            var numbers = SeededNumbers(state: UInt64(faultAt))
            let disk = SimulatedDisk(files: base.contents)
            disk.faultAt = faultAt
            var life = Life(course)
            try? life.run(on: disk)
            guard life.published > 0 else { continue }
            publishedCount += 1
            let report = try TestTrail.report(FilesReader(files: disk.afterCrash(&numbers)))
            #expect(report.damage == nil, "operation \(faultAt)")
            #expect(report.entryCount >= UInt64(life.published), "operation \(faultAt)")
        }
        #expect(publishedCount > 0)
    }

    @Test func `after a crash in the recovery from a crash the trail goes on`() throws {
        let course = Course.all[1]
        let base = try course.disk()
        for first in stride(from: 3, to: try course.operationCount(), by: 17) {
            for second in stride(from: 0, to: 30, by: 3) {
                var numbers = SeededNumbers(state: UInt64(first * 1_000 + second))
                var disk = SimulatedDisk(files: base.contents)
                disk.faultAt = first
                var life = Life(course)
                try? life.run(on: disk)
                disk = disk.afterCrash(&numbers)
                disk.faultAt = second
                try? life.run(on: disk)
                disk = disk.afterCrash(&numbers)
                try life.run(on: disk)
                #expect(try life.isComplete(disk), "operations \(first) and \(second)")
            }
        }
    }

    @Test(arguments: Course.all)
    func `after a failed write the same writer goes on, after a failed sync none does`(_ course: Course)
        throws
    {
        let base = try course.disk()
        let count = try course.operationCount()
        var fatals = 0
        for faultAt in 0..<count {
            let disk = SimulatedDisk(files: base.contents)
            disk.fault = .error
            disk.faultAt = faultAt
            let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
            var known = course.base
            var fatal: TrailError?
            for step in course.steps where fatal == nil {
                func attempt() throws {
                    try writer.integrate(TestTrail.entries(known..<step.size), startingAt: UInt64(known))
                    if step.publishes { try writer.publishCheckpoint(signing: TestTrail.sign) }
                }
                do {
                    try attempt()
                } catch let error as TrailError where error.isFatal {
                    fatal = error
                } catch {
                    // Once more, as the publisher does.
                    try attempt()
                }
                known = step.size
            }
            var survivor = disk
            var life = Life(course)
            if let fatal {
                fatals += 1
                // Nothing works any more in this process, not even what needs no disk.
                #expect(throws: fatal) { try writer.integrate([], startingAt: 0) }
                #expect(throws: fatal) { try writer.publishCheckpoint(signing: TestTrail.sign) }
                var numbers = SeededNumbers(state: UInt64(faultAt))
                survivor = disk.afterCrash(&numbers)
                try life.run(on: survivor)
            }
            #expect(try life.isComplete(survivor), "operation \(faultAt)")
        }
        // Both kinds of failure did occur.
        #expect(fatals > 10 && fatals < count - 10)
    }

    /// Cuts a file of a published trail and says what came of it.
    private enum Outcome: Equatable { case refused, noticed, intact }

    private func outcome(_ files: [String: [UInt8]], cutting path: String, to count: Int) throws -> Outcome {
        var files = files
        files[path] = Array(files[path, default: []].prefix(count))
        let disk = SimulatedDisk(files: files)
        do {
            let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
            let size = Int(writer.size)
            try writer.integrate(TestTrail.entries(size..<(size + 2)), startingAt: UInt64(size))
            try writer.publishCheckpoint(signing: TestTrail.sign)
        } catch TrailError.damaged {
            return .refused
        }
        let report = try TestTrail.report(FilesReader(files: disk))
        return report.damage == nil ? .intact : .noticed
    }

    @Test func `every file of a small trail cut at every byte is refused at the start`() throws {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<5), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        let files = disk.contents
        #expect(Set(files.keys) == ["checkpoint", "tile/0/000.p/5", "tile/entries/000.p/5"])
        for (path, bytes) in files {
            for count in bytes.indices {
                #expect(try outcome(files, cutting: path, to: count) == .refused, "`\(path)` cut to \(count)")
            }
        }
    }

    @Test func `a larger trail cut anywhere is refused, and what was not published is mended`()
        throws
    {
        let disk = SimulatedDisk()
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<300), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        let published = Set(disk.names.keys)
        try writer.integrate(TestTrail.entries(300..<560), startingAt: 300)
        let files = disk.contents
        for (path, bytes) in files {
            for count in stride(from: 0, to: bytes.count, by: 1 + bytes.count / 7) {
                let outcome = try outcome(files, cutting: path, to: count)
                let comment: Comment = "`\(path)` cut to \(count)"
                if !published.contains(path) {
                    #expect(outcome == .intact, comment)
                } else {
                    #expect(outcome == .refused, comment)
                }
            }
        }
    }
}

@Suite struct ReaderTests {
    private func published(_ count: Int, at path: String) throws -> TrailDirectoryWriter {
        let writer = try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
        try writer.integrate(TestTrail.entries(0..<count), startingAt: 0)
        try writer.publishCheckpoint(signing: TestTrail.sign)
        return writer
    }

    @Test func `a second writer is kept out until the first is gone`() throws {
        try TestTrail.withDirectory { path in
            do {
                let writer = try published(3, at: path)
                #expect(throws: TrailError.inUse) {
                    try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
                }
                #expect(writer.size == 3)
            }
            #expect(try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust).size == 3)
        }
    }

    @Test func `a trail with more than the store ever had is not written on`() throws {
        try TestTrail.withDirectory { path in
            do { _ = try published(3, at: path) }
            let error = TrailError.aheadOfStore(size: 3, entryCount: 2)
            // An empty trail directory would be refused too: what helps is the newer databases.
            #expect(error.message.contains("put the newer `gate.db` and `subjects.db` back"))
            #expect(throws: error) {
                try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust, entryCount: 2)
            }
            // A store that was made anew beside it has had none.
            #expect(throws: TrailError.aheadOfStore(size: 3, entryCount: 0)) {
                try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust, entryCount: 0)
            }
            #expect(
                try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust, entryCount: 3).size == 3)
        }
    }

    @Test func `another origin is called that, not damage`() throws {
        try TestTrail.withDirectory { path in
            do { _ = try published(3, at: path) }
            let other = TrailTrust(origin: "other.example/trail", keys: TestTrail.trust.keys)
            let error = TrailError.otherOrigin(expected: other.origin, found: TestTrail.origin)
            #expect(throws: error) { try TrailDirectoryWriter(openingAt: path, trusting: other) }
            #expect(!error.message.contains("damaged") && error.message.contains("`origin`"))
        }
    }

    @Test func `files are served by their C2SP names, and only those the checkpoint covers`() throws {
        try TestTrail.withDirectory { path in
            let writer = try published(300, at: path)
            try writer.writeVerifierKeys(TestTrail.trust.keys)
            try writer.integrate(TestTrail.entries(300..<600), startingAt: 300)
            let reader = try TrailDirectoryReader(openingAt: path)
            let checkpoint = try #require(try reader.file(named: "checkpoint"))
            #expect(checkpoint.contentType == "text/plain; charset=utf-8" && !checkpoint.isImmutable)
            let tile = try #require(try reader.file(named: "tile/0/000"))
            #expect(tile.bytes.count == 8_192 && tile.isImmutable)
            #expect(tile.contentType == "application/octet-stream")
            #expect(try reader.file(named: "tile/entries/001.p/44") != nil)
            for name in [
                "tile/0/001", "tile/entries/001", "tile/0/002.p/88", "trail.pub", ".lock", ".writing/0",
                "tile",
                "../checkpoint", "tile/0/../../trail.pub", "tile/0/001.p/43", "tile/3/000", "policies", "",
            ] {
                #expect(try reader.file(named: name) == nil, "`\(name)`")
            }
        }
    }

    @Test func `an entry is read by its index, and a changed one is not passed on`() throws {
        try TestTrail.withDirectory { path in
            _ = try published(300, at: path)
            let reader = try TrailDirectoryReader(openingAt: path)
            for index in [0, 1, 255, 256, 299] {
                #expect(try reader.entry(UInt64(index)) == TestTrail.entry(index))
            }
            #expect(try reader.entry(300) == nil)
            try overwrite(path + "/tile/entries/001.p/44", at: 20)
            #expect(throws: TrailError.damaged(.entry(index: 256, in: .entries(index: 1, width: 44)))) {
                try reader.entry(256)
            }
            #expect(try reader.entry(257) == TestTrail.entry(257))
        }
    }

    @Test func `an entry comes from the files the first time and from memory after that`() throws {
        try TestTrail.withDirectory { path in
            _ = try published(600, at: path)
            let reader = try TrailDirectoryReader(openingAt: path)
            #expect(try reader.entry(3) == TestTrail.entry(3))
            #expect(try reader.entry(599) == TestTrail.entry(599))
            // A full bundle never changes, so it may be kept; a partial one is about to be replaced.
            try #require(unlink(path + "/tile/entries/000") == 0)
            try #require(unlink(path + "/tile/entries/002.p/88") == 0)
            #expect(try reader.entry(255) == TestTrail.entry(255))
            let partial = TrailPath.entries(index: 2, width: 88)
            #expect(throws: TrailError.damaged(.missing(partial))) { try reader.entry(599) }
        }
    }

    @Test(arguments: ["tile/entries/001", "tile/0/001", "tile/1/000.p/2"])
    func `a trail that was damaged below its checkpoint is not opened again`(file: String) throws {
        try TestTrail.withDirectory { path in
            do { _ = try published(600, at: path) }
            try overwrite(path + "/" + file, at: 40)
            let error = #expect(throws: TrailError.self) {
                try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
            }
            #expect(error?.message.contains("`\(file)`") == true, "\(error?.message ?? "")")
        }
    }

    private func overwrite(_ path: String, at offset: Int) throws {
        let descriptor = open(path, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var byte: UInt8 = 0
        try #require(pread(descriptor, &byte, 1, off_t(offset)) == 1)
        byte ^= 1
        try #require(pwrite(descriptor, &byte, 1, off_t(offset)) == 1)
    }

    @Test func `what is no regular file of the right size is never read`() throws {
        try TestTrail.withDirectory { path in
            _ = try published(3, at: path)
            let reader = try TrailDirectoryReader(openingAt: path)
            let tile = TrailPath.tile(level: 0, index: 0, width: 3)
            let name = path + "/" + tile.text
            try #require(rename(name, path + "/elsewhere") == 0)
            try #require(symlink(path + "/elsewhere", name) == 0)
            #expect(throws: TrailError.failed(.open, path: tile.text, code: ELOOP)) { try reader.read(tile) }
            try #require(unlink(name) == 0 && mkfifo(name, 0o600) == 0)
            #expect(throws: TrailError.notTrailFile(path: tile.text)) { try reader.read(tile) }
            try #require(unlink(name) == 0 && mkdir(name, 0o700) == 0)
            #expect(throws: TrailError.notTrailFile(path: tile.text)) { try reader.read(tile) }
            try #require(rmdir(name) == 0 && rename(path + "/tile/entries/000.p/3", name) == 0)
            #expect(throws: TrailError.notTrailFile(path: tile.text)) { try reader.read(tile) }
        }
    }

    @Test func `a policy is archived once under its digest, and a changed one is not passed on`() throws {
        try TestTrail.withDirectory { path in
            let writer = try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
            let canonical = Array(#"{"version":1}"#.utf8)
            let digest = PolicyDigest(SHA256.digest(canonical).description)
            try writer.archivePolicy(digest, canonical)
            try writer.archivePolicy(digest, canonical)
            let reader = try TrailDirectoryReader(openingAt: path)
            #expect(try reader.policy(digest) == canonical)
            #expect(try reader.policyDigests() == [digest])
            #expect(try reader.policy(PolicyDigest(String(repeating: "0", count: 64))) == nil)
            #expect(try reader.policy(PolicyDigest("../trail")) == nil)
            #expect(throws: TrailError.wrongPolicyDigest(digest: "../trail")) {
                try writer.archivePolicy(PolicyDigest("../trail"), canonical)
            }
            #expect(throws: TrailError.wrongPolicyDigest(digest: digest.text)) {
                try writer.archivePolicy(digest, canonical + [0x20])
            }
            try overwrite(path + "/policies/\(digest).json", at: 3)
            #expect(throws: TrailError.wrongPolicyDigest(digest: digest.text)) { try reader.policy(digest) }
            // Archiving it again puts it right.
            try writer.archivePolicy(digest, canonical)
            #expect(try reader.policy(digest) == canonical)
        }
    }

    @Test func `the key file is read as it was written`() throws {
        try TestTrail.withDirectory { path in
            let writer = try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
            let reader = try TrailDirectoryReader(openingAt: path)
            #expect(try reader.verifierKeys() == [])
            try writer.writeVerifierKeys(TestTrail.trust.keys)
            #expect(try reader.verifierKeys() == TestTrail.trust.keys)
            let text = "# pinned in March\n\n\(TestTrail.signer.verifierKey)\n"
            #expect(try VerifierKeyFile.keys(in: Array(text.utf8)) == TestTrail.trust.keys)
            #expect(throws: TrailError.malformedVerifierKey(line: 2)) {
                try VerifierKeyFile.keys(in: Array("#\nname+00000000+AAAA\n".utf8))
            }
        }
    }

    @Test func `messages name the file and the cause`() {
        #expect(
            TrailError.failed(.write, path: "tile/0/000", code: ENOSPC).message
                == "cannot write `tile/0/000`: no space left on device")
        #expect(TrailError.syncFailed(path: "checkpoint", code: EIO).isFatal)
    }
}
