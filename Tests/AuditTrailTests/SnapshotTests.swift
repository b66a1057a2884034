import CanonicalJSON
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import Testing

@testable import AuditTrail
@testable import GateRecords

/// A trail whose oldest entries were pruned verifies with what stands in for them, and with nothing else.
@Suite struct SnapshotTests {
    private static let start = 1_700_000_000_000
    /// Between two entries, in milliseconds.
    private static let pace = 600_000
    private static let day = 86_400_000
    private static let lookBackDays = 1

    /// A history of people who are sent something, choose, and are forgotten.
    private static func history(_ count: Int, seed: UInt64 = 1) -> [[UInt8]] {
        var numbers = SeededNumbers(seed: seed)
        var people = (0..<12).map { SubjectID(high: UInt64($0) + 1, low: seed).hexadecimal }
        return (0..<count).map { index in
            let person = people[Int.random(in: 0..<people.count, using: &numbers)]
            let kind: EntryKind =
                index == 0
                ? .start
                : [.send, .send, .send, .delivery, .consent, .preference, .gatewayKey, .explain, .erasure]
                    .randomElement(using: &numbers)!
            if kind == .erasure, let place = people.firstIndex(of: person) {
                people[place] = SubjectID(high: UInt64(index) << 32, low: seed).hexadecimal
            }
            return Self.entry(kind, index, kind == .start ? nil : person)
        }
    }

    private static func entry(_ kind: EntryKind, _ index: Int, _ person: String?) -> [UInt8] {
        var members: JSONObject = ["n": .integer(Int64(index))]
        if let person, ![.gatewayKey, .explain].contains(kind) { members["subject"] = .string(person) }
        let entry = TrailEntry(
            kind: kind, index: UInt64(index),
            time: Instant(milliseconds: Int64(start + index * pace)), members: members)
        return try! entry.encoded().bytes
    }

    /// A trail that is published, with a snapshot recorded behind its entries.
    private struct Pruned {
        var entries: [[UInt8]]
        var head: SnapshotHead
        var trail: MemoryTrail

        /// - Parameters:
        ///   - size: Entries before it go.
        ///   - edit: Changes what the entry of the snapshot says.
        ///   - choose: Changes the lines before they are digested.
        init(
            _ entries: [[UInt8]], before size: Int, keepingBundles: Bool = false,
            edit: (inout SnapshotEntry) -> Void = { _ in }, choose: ([String]) -> [String] = { $0 }
        ) throws {
            let whole = try MemoryTrail(entries: entries)
            let maker = SnapshotMaker(whole, treeSize: UInt64(entries.count), after: nil)
            let plan = try #require(
                try maker.plan(before: Instant(milliseconds: .max), sizeMax: UInt64(size)))
            var bytes: [UInt8] = []
            var entry = try maker.make(plan, keepDays: 400, lookBackDays: SnapshotTests.lookBackDays) {
                bytes += $1
            }
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
            let chosen = choose(lines)
            if chosen != lines {
                bytes = Array(chosen.joined(separator: "\n").utf8) + [0x0A]
                entry.digest = Hexadecimal.encode(SHA256.digest(bytes).bytes)
                (entry.byteCount, entry.lineCount) = (UInt64(bytes.count), UInt64(chosen.count))
            }
            edit(&entry)
            head = SnapshotHead(entry, recordedAs: UInt64(entries.count))
            let time = Instant(
                milliseconds: Int64(SnapshotTests.start + entries.count * SnapshotTests.pace))
            self.entries = entries + [try entry.bytes(index: head.index, time: time)]
            trail = try MemoryTrail(entries: self.entries)
            trail.files[.snapshot] = head.bytes
            trail.files[.segment(size: UInt64(size), number: 0)] = bytes
            guard !keepingBundles else { return }
            for index in 0..<UInt64(size / 256) { trail.files[.entries(index: index, width: 256)] = nil }
        }

        var segment: [UInt8] {
            get { trail.files[.segment(size: head.size, number: 0)] ?? [] }
            set { trail.files[.segment(size: head.size, number: 0)] = newValue }
        }
    }

    private static func verify(
        _ trail: MemoryTrail, _ examination: EntryExamination = .envelope,
        visit: ((VerifiedEntry) throws -> Void)? = nil
    ) throws -> TrailReport {
        try TrailVerifier(trail, trusting: MemoryTrail.trust, examining: examination).verify(visit: visit)
    }

    private static func kept(_ entries: [[UInt8]], before size: Int) throws -> [[UInt8]] {
        let read = try entries.prefix(size).map { try TrailEntry(reading: $0) }
        let forgotten = Set(read.filter { $0.kind == .erasure }.compactMap { $0.members["subject"] })
        let passing: [EntryKind] = [.send, .delivery, .explain]
        return zip(entries, read).filter { _, entry in
            entry.index == UInt64(size - 1)
                || !passing.contains(entry.kind)
                    && (entry.kind == .erasure
                        || entry.members["subject"].map { !forgotten.contains($0) } ?? true)
        }.map(\.0)
    }

    @Test(arguments: [256, 512, 1_024]) func `what is needed still passes, and everything behind it`(
        size: Int
    ) throws {
        let entries = Self.history(1_100)
        let pruned = try Pruned(entries, before: size)
        var visited: [(bytes: [UInt8], standing: EntryStanding)] = []
        let report = try Self.verify(pruned.trail) { visited.append((Array($0.bytes), $0.standing)) }
        #expect(report.damage == nil, "\(report.damage?.message ?? "")")
        #expect(
            visited.map(\.bytes) == (try Self.kept(entries, before: size)) + pruned.entries.dropFirst(size))
        // A day and one entry after the newest pruned one nothing rests on what is gone.
        let whole = size - 1 + Self.day / Self.pace + 1
        let standings = visited.map(\.standing)
        #expect(standings.filter { $0 == .kept }.count == Int(pruned.head.entry.lineCount))
        #expect(standings.filter { $0 == .afterPruned }.count == max(0, min(whole, 1_101) - size))
        #expect(report.firstWhole?.index == (whole <= 1_100 ? UInt64(whole) : nil))
        #expect(report.snapshot == pruned.head)
        let hashing = try Self.verify(pruned.trail, .hashing)
        #expect(hashing.damage == nil && hashing.entryCount == UInt64(1_101 - size))
        let start = try TrailVerifier(pruned.trail, trusting: MemoryTrail.trust).checkTiles(andNewest: 1)
        #expect(start.damage == nil)
        // Whoever kept the bundles can hold the snapshot against them.
        let held = try Pruned(entries, before: size, keepingBundles: true)
        #expect(try Self.verify(held.trail).damage == nil)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a snapshot of a pruned trail is that of all entries`(seed: UInt64) throws {
        let entries = Self.history(1_100, seed: seed)
        let first = try Pruned(entries, before: 512)
        let size = UInt64(first.entries.count)
        let maker = SnapshotMaker(first.trail, treeSize: size, after: first.head)
        let never = try maker.plan(before: Instant(milliseconds: Int64(Self.start)))
        #expect(never == nil)
        let plan = try #require(try maker.plan(before: Instant(milliseconds: .max), sizeMax: 1_024))
        var bytes: [UInt8] = []
        let entry = try maker.make(plan, keepDays: 400, lookBackDays: 1) { bytes += $1 }
        let direct = try Pruned(entries, before: 1_024)
        #expect(bytes == direct.segment && entry == direct.head.entry)
        #expect(entry.root == MemoryTrail.root(of: first.entries.prefix(1_024)))
        try SnapshotMaker(direct.trail, treeSize: size, after: nil).check(direct.head)
    }

    @Test func `only whole bundles go that are older than the cutoff`() throws {
        let entries = Self.history(1_100)
        let maker = SnapshotMaker(try MemoryTrail(entries: entries), treeSize: 1_100, after: nil)
        for (newest, size) in [(255, nil), (256, 256), (511, 256), (512, 512), (1_100, 1_024)] {
            let cutoff = Instant(milliseconds: Int64(Self.start + newest * Self.pace))
            let plan = try maker.plan(before: cutoff)
            #expect(plan?.size == size.map { UInt64($0) }, "\(newest)")
        }
    }

    /// What is done to the files of a pruned trail, and what is said then.
    private func expect(
        _ words: String, _ name: String, in pruned: Pruned, _ edit: (inout Pruned) -> Void = { _ in }
    ) throws {
        var pruned = pruned
        edit(&pruned)
        for examination in [EntryExamination.envelope, .hashing] {
            let damage = try Self.verify(pruned.trail, examination).damage
            #expect(damage?.message.contains(words) == true, "\(name): \(damage?.message ?? "nothing")")
        }
        #expect(throws: (any Error).self, "\(name)") {
            let head = try SnapshotHead(parsing: pruned.trail.files[.snapshot] ?? [])
            guard head == pruned.head else { throw TrailDamage.missing(.snapshot) }
            try SnapshotMaker(pruned.trail, treeSize: head.index + 1, after: nil).check(head)
        }
    }

    @Test func `a snapshot that was cut, changed, swapped or taken away is named`() throws {
        let entries = Self.history(1_100)
        let pruned = try Pruned(entries, before: 512)
        let other = try Pruned(Self.history(1_100, seed: 9), before: 512)
        let lines = pruned.segment.split(separator: 0x0A).map { Array($0) }
        func join(_ lines: [[UInt8]]) -> [UInt8] { lines.flatMap { $0 + [0x0A] } }
        try expect("is no entry that the signed tree has", "changed", in: pruned) {
            let place = $0.segment.count / 2
            $0.segment[place] ^= 1
        }
        try expect("snapshot/512/00000001` is missing", "cut after a line", in: pruned) {
            $0.segment = join(lines.dropLast())
        }
        try expect("line \(lines.count) of", "cut in a line", in: pruned) { $0.segment.removeLast(5) }
        try expect("are not those that were signed", "one line more", in: pruned) {
            $0.segment += Array("{}\n".utf8)
        }
        try expect("line 4 of", "swapped", in: pruned) {
            $0.segment = join([lines[0], lines[2], lines[3], lines[1]] + lines[4...])
        }
        try expect("is missing", "gone", in: pruned) {
            $0.trail.files[.segment(size: 512, number: 0)] = nil
        }
        try expect("are not those that were signed", "of another trail", in: pruned) {
            $0.segment = other.segment
        }
        try expect("is missing", "no head", in: pruned) { $0.trail.files[.snapshot] = nil }
    }

    @Test func `a head that is not what its entry says, or of a newer format, is named`() throws {
        let pruned = try Pruned(Self.history(1_100), before: 512)
        func damage(_ edit: (inout JSONObject) -> Void) throws -> String {
            var object = try #require(try CanonicalJSON.read(pruned.head.bytes).objectValue)
            edit(&object)
            var trail = pruned.trail
            trail.files[.snapshot] = CanonicalJSON.write(object)
            return try Self.verify(trail).damage?.message ?? "nothing"
        }
        #expect(try damage { $0["keep_days"] = 401 }.contains("is not what entry 1100 says"))
        #expect(try damage { $0["entry"] = 1_099 }.contains("is not what entry 1099 says"))
        #expect(try damage { $0["entry"] = 1_101 }.contains("the checkpoint is older"))
        #expect(try damage { $0["format"] = 2 }.contains("is of format 2, and this build knows 1"))
        for (name, value) in [
            ("size", 255), ("size", 0), ("size", 2_048), ("lines", 0), ("look_back_days", 0),
        ]
            as [(String, JSONValue)]
        {
            #expect(try damage { $0[name] = value }.contains("is no head of a snapshot"), "\(name) \(value)")
        }
        #expect(try damage { $0["more"] = 1 }.contains("is no head of a snapshot"))
        #expect(try damage { $0["size"] = 768 }.contains("missing"))
    }

    @Test func `what an operator leaves out of a snapshot is named to whoever has the entries`() throws {
        let entries = Self.history(1_100)
        func drop(_ kind: String) -> ([String]) -> [String] {
            { lines in
                let place = lines.firstIndex { $0.contains("\"kind\":\"\(kind)\"") }!
                return Array(lines[..<place] + lines[(place + 1)...])
            }
        }
        for kind in ["consent", "gateway_key", "erasure"] {
            let shown = try Pruned(entries, before: 512, keepingBundles: true, choose: drop(kind))
            let damage = try Self.verify(shown.trail).damage
            #expect(damage?.message.contains("the snapshot leaves it out") == true, "\(kind)")
            let index = try #require(damage?.firstEntry)
            #expect(try TrailEntry(reading: entries[Int(index)]).kind.text == kind || kind == "erasure")
        }
        // A digest that was signed over it is all that speaks for it once the bundles are gone.
        #expect(try Self.verify(Pruned(entries, before: 512, choose: drop("consent")).trail).damage == nil)
        // The last is needed by what comes next, whatever it is.
        let shorter = try Pruned(entries, before: 512, choose: { $0.dropLast() })
        #expect(try Self.verify(shorter.trail).damage != nil)
        let root = try Pruned(entries, before: 512, edit: { $0.root = TreeHash.empty })
        #expect(
            try Self.verify(root.trail).damage?.message.contains("has the root of another tree") == true)
    }

    @Test func `a bundle that is there still is held against its tile`() throws {
        var pruned = try Pruned(Self.history(1_100), before: 512, keepingBundles: true)
        pruned.trail.files[.entries(index: 1, width: 256)]?[40] ^= 1
        #expect(try Self.verify(pruned.trail).damage?.firstEntry == 256)
        pruned.trail.files[.entries(index: 1, width: 256)] = nil
        #expect(try Self.verify(pruned.trail).damage == nil)
        pruned.trail.files[.tile(level: 0, index: 1, width: 256)] = nil
        #expect(
            try Self.verify(pruned.trail).damage == .missing(.tile(level: 0, index: 1, width: 256)))
    }

    @Test(arguments: [
        "snapshot/head", "snapshot/512/00000000", "snapshot/512/00000012",
    ]) func `the files of a snapshot have one name each`(name: String) {
        #expect(TrailPath(parsing: name)?.text == name)
    }

    @Test(arguments: [
        "snapshot", "snapshot/", "snapshot/512", "snapshot/0512/00000000", "snapshot/512/0",
        "snapshot/512/000000001", "snapshot/-1/00000000", "snapshot/head/00000000", "snapshot/../00000000",
    ]) func `no other name is that of a snapshot's file`(name: String) {
        #expect(TrailPath(parsing: name) == nil)
    }
}

extension MemoryTrail {
    fileprivate static func root(of entries: some Sequence<[UInt8]>) -> SHA256Digest {
        reference(entries.map { TreeHash.leaf($0) })
    }
}
