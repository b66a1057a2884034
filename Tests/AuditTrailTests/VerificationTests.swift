@testable import GateRecords
import SealedFormat
import AuditTrail
import CanonicalJSON
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import Testing

private func report(
    _ trail: MemoryTrail, _ examination: EntryExamination = .schema(MemoryTrail.schema),
    since external: [UInt8]? = nil
) throws -> TrailReport {
    try TrailVerifier(trail, trusting: MemoryTrail.trust, examining: examination, since: external).verify()
}

@Suite struct VerificationTests {
    @Test(arguments: [0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 1_000])
    func `an intact trail is established as exactly that`(count: Int) throws {
        let report = try report(try MemoryTrail(count: count))
        #expect(report.damage == nil)
        #expect(report.entryCount == UInt64(count))
        #expect(
            report.facts == [
                .signed(keyNames: [MemoryTrail.origin]), .consistent(size: UInt64(count)),
                .wellFormed(withSchema: true),
            ])
        #expect(report.firstTime == (count > 0 ? Instant(milliseconds: 1_700_000_000_000) : nil))
    }

    @Test func `every entry passes once, in order`() throws {
        let trail = try MemoryTrail(count: 600)
        var seen: [UInt64] = []
        var dones: [UInt64] = []
        let verifier = TrailVerifier(trail, trusting: MemoryTrail.trust)
        _ = try verifier.verify { entry in
            seen.append(entry.index)
            #expect(Array(entry.bytes) == MemoryTrail.entry(Int(entry.index)))
            #expect(entry.entry?.index == entry.index)
        } progress: { done, total in
            dones.append(done)
            #expect(total == 600)
        }
        #expect(seen == Array(0..<600))
        #expect(dones == [256, 512, 600])
    }

    @Test(arguments: [5, 256, 300, 600])
    func `one flipped bit is found in its file, and an entry by its index`(count: Int) throws {
        let trail = try MemoryTrail(count: count)
        for (path, bytes) in trail.files where path != .checkpoint {
            let ranges: [Range<Int>]
            if case .entries(_, let width) = path {
                ranges = try #require(EntryBundle.ranges(in: bytes, count: width))
            } else {
                ranges = []
            }
            for offset in stride(from: 0, to: bytes.count, by: 1 + bytes.count / 17) {
                var changed = trail
                changed.files[path]?[offset] ^= 0x10
                let damage = try report(changed, .hashing).damage
                if case .entries = path {
                    // The length stands before the entry's bytes and belongs to it.
                    let position = try #require(ranges.firstIndex { $0.upperBound > offset })
                    let index = path.entryRange.lowerBound + UInt64(position)
                    #expect(damage == .entry(index: index, in: path))
                } else {
                    #expect(damage == .tile(path, hash: offset / 32))
                }
            }
        }
    }

    @Test func `a missing, cut or padded file is named`() throws {
        let trail = try MemoryTrail(count: 600)
        for (path, bytes) in trail.files {
            var changed = trail
            changed.files[path] = nil
            #expect(try report(changed, .hashing).damage == .missing(path))

            guard path != .checkpoint else { continue }
            for bent in [Array(bytes.dropLast()), bytes + [0]] {
                changed.files[path] = bent
                let damage = try report(changed, .hashing).damage
                switch path {
                case .tile:
                    #expect(damage == .wrongLength(path, byteCount: bent.count, expected: bytes.count))
                case .entries where bent.count > bytes.count:
                    #expect(damage == .trailingBytes(in: path, byteCount: 1))
                default:
                    #expect(damage == .entry(index: path.entryRange.upperBound - 1, in: path))
                }
            }
        }
    }

    @Test func `damage above the first level is named by tile and hash`() throws {
        // 65,536 entries fill a tile of level 1; the 300 behind them keep an edge at every level.
        let trail = try MemoryTrail(entries: (0..<65_836).map { Array("\($0)".utf8) })
        #expect(try report(trail, .hashing).damage == nil)
        let full = TrailPath.tile(level: 1, index: 0, width: 256)
        let edge = TrailPath.tile(level: 2, index: 0, width: 1)
        for (path, hash) in [(full, 0), (full, 200), (edge, 0), (.tile(level: 1, index: 1, width: 1), 0)] {
            var changed = trail
            changed.files[path]?[hash * 32 + 5] ^= 1
            #expect(try report(changed, .hashing).damage == .tile(path, hash: hash))
            #expect(
                TrailDamage.tile(path, hash: hash).firstEntry == path.entryRange.lowerBound + UInt64(hash)
                    << (path == full ? 8 : 0))
        }
        var changed = trail
        changed.files[.tile(level: 0, index: 77, width: 256)]?[32 * 9] ^= 1
        #expect(
            try report(changed, .hashing).damage == .tile(.tile(level: 0, index: 77, width: 256), hash: 9))
        changed = trail
        changed.files[.entries(index: 77, width: 256)]?[3] ^= 1
        #expect(
            try report(changed, .hashing).damage
                == .entry(index: 77 * 256, in: .entries(index: 77, width: 256)))
    }

    @Test func `a history exchanged as a whole under the old checkpoint is another tree`() throws {
        let trail = try MemoryTrail(count: 600)
        var other = try MemoryTrail(
            entries: (0..<600).map { MemoryTrail.entry($0, members: ["n": $0 == 300 ? 2 : 1]) })
        let found = other.files[.checkpoint]
        other.files[.checkpoint] = trail.files[.checkpoint]
        let damage = try report(other).damage
        guard case .otherTree(let signed, let root) = damage else {
            Issue.record("found \(String(describing: damage))")
            return
        }
        let checkpoint = try TrustedCheckpoint(
            opening: try #require(trail.files[.checkpoint]), trusting: MemoryTrail.trust)
        let exchanged = try TrustedCheckpoint(opening: try #require(found), trusting: MemoryTrail.trust)
        #expect(signed == checkpoint.checkpoint.root && root == exchanged.checkpoint.root)
    }

    @Test func `a checkpoint nobody trusted signed is damage`() throws {
        var trail = try MemoryTrail(count: 3)
        trail.files[.checkpoint]?[0] ^= 1
        #expect(
            try report(trail).damage == .checkpoint(.note(.badSignature(keyName: MemoryTrail.origin))))
        trail.files[.checkpoint] = []
        guard case .checkpoint(.note(.malformed)) = try report(trail).damage else {
            Issue.record("an empty checkpoint was not called malformed")
            return
        }
    }

    @Test func `what was signed but is no valid entry is told apart from damage`() throws {
        func trail(_ change: (inout [[UInt8]]) -> Void) throws -> MemoryTrail {
            var entries = (0..<300).map { MemoryTrail.entry($0) }
            change(&entries)
            return try MemoryTrail(entries: entries)
        }
        let path = TrailPath.entries(index: 1, width: 44)
        let first = TrailPath.entries(index: 0, width: 256)

        let skipping = try trail { $0[260] = MemoryTrail.entry(261) }
        #expect(try report(skipping).damage == .wrongIndex(index: 260, in: path, found: 261))
        let repeating = try trail { $0[260] = MemoryTrail.entry(259) }
        #expect(try report(repeating).damage == .wrongIndex(index: 260, in: path, found: 259))

        let backwards = try trail { $0[10] = MemoryTrail.entry(10, time: 1_700_000_000_008) }
        #expect(try report(backwards).damage == .timeDecreased(index: 10, in: first))
        // The same time twice is allowed.
        #expect(
            try report(try trail { $0[10] = MemoryTrail.entry(10, time: 1_700_000_000_009) }).damage == nil)

        let spaced = try trail { $0[10].insert(0x20, at: 1) }
        guard case .malformedEntry(index: 10, in: first, .notCanonical) = try report(spaced).damage else {
            Issue.record("an entry with a space was not called malformed")
            return
        }
        let unknown = try trail { $0[10] = MemoryTrail.entry(10, members: ["n": 1, "phone": "+47"]) }
        guard case .schema(index: 10, in: first, let violation) = try report(unknown).damage else {
            Issue.record("an unknown member was not found")
            return
        }
        #expect(violation.pointer?.text == "/phone")
        // Each level of examination finds what it promises and no more.
        #expect(try report(unknown, .envelope).damage == nil)
        #expect(try report(spaced, .hashing).damage == nil)
    }

    @Test func `a kind that a later version wrote is not judged by this one, and what this one wrote is`()
        throws
    {
        let schema = EntrySchema([
            EntryKind("test"): .members(required: ["n": .integer(0...9)]),
            .start: .members(required: ["version": .name]),
        ])
        func report(of version: JSONValue, _ later: [UInt8]) throws -> TrailReport {
            var entries = (0..<20).map { MemoryTrail.entry($0) }
            let start = TrailEntry(
                kind: .start, index: 5, time: Instant(milliseconds: 1_700_000_000_005),
                members: ["version": version])
            entries[5] = try start.encoded().bytes
            entries[10] = later
            return try TrailVerifier(
                MemoryTrail(entries: entries), trusting: MemoryTrail.trust, examining: .schema(schema),
                version: BuildVersion("0.9.10")
            ).verify()
        }
        let kind = TrailEntry(
            kind: EntryKind("later"), index: 10, time: Instant(milliseconds: 1_700_000_000_010), members: [:])
        let member = MemoryTrail.entry(10, members: ["n": 1, "later": 2])
        for (later, isKnown) in [(try kind.encoded().bytes, false), (member, true)] {
            for version in ["0.9.11", "0.10.0", "1.0.0"] {
                let report = try report(of: .string(version), later)
                #expect(report.laterVersion?.description == version)
                // What a kind may have is known, and a text about a person could stand there.
                guard !isKnown else {
                    guard case .schema(index: 10, _, _)? = report.damage else {
                        Issue.record("\(report)")
                        continue
                    }
                    continue
                }
                #expect(report.damage == nil)
                let newer = try #require(report.newerEntry)
                #expect(newer.index == 10)
                #expect(
                    newer.message
                        == "entry 10 cannot be read: a newer sendgate wrote it, version \(version) where this build is 0.9.10"
                )
                #expect(report.facts.contains(.wellFormed(withSchema: false)))
            }
            // An earlier version, this one, and one that cannot be compared write what this one knows.
            for version in ["0.9.9", "0.9.10", "0.9", "v1.0.0", "1.0.0.0", "1.0.0.x", "-1.0.0", "1..0"] {
                let report = try report(of: .string(version), later)
                guard case .schema(index: 10, _, _)? = report.damage else {
                    Issue.record("under `\(version)`: \(report)")
                    continue
                }
            }
        }
        // Without anything unknown it is checked as ever.
        let known = try report(of: "1.0.0", MemoryTrail.entry(10))
        #expect(known.newerEntry == nil && known.damage == nil)
        #expect(known.facts.contains(.wellFormed(withSchema: true)))
    }

    @Test func `an entry of a later format ends a verification by name`() throws {
        let text = String(decoding: MemoryTrail.entry(10), as: UTF8.self)
        for (format, isNewer) in [("2", true), ("9007199254740991", true), ("0", false), ("-1", false)] {
            var entries = (0..<20).map { MemoryTrail.entry($0) }
            entries[10] = Array(text.replacing(#""v":1"#, with: #""v":\#(format)"#).utf8)
            let trail = try MemoryTrail(entries: entries)
            for examination in [EntryExamination.envelope, .schema(MemoryTrail.schema)] {
                let result = Result { try report(trail, examination) }
                switch result {
                case .failure(let error as NewerEntry):
                    #expect(isNewer && error.index == 10)
                    #expect(error.message.contains("in format \(format) where this build reads 1"))
                case .success(let report):
                    guard case .malformedEntry(index: 10, _, .envelope(member: "v"))? = report.damage else {
                        Issue.record("\(report)")
                        continue
                    }
                    #expect(!isNewer)
                case .failure(let error): Issue.record("\(error)")
                }
            }
        }
    }

    @Test func `a checkpoint kept elsewhere shows growth, loss and rewriting`() throws {
        let trail = try MemoryTrail(count: 700)
        for size in [0, 1, 256, 300, 512, 699, 700] {
            let external = try #require(try MemoryTrail(count: size).files[.checkpoint])
            let report = try report(trail, since: external)
            #expect(report.damage == nil)
            #expect(report.facts.last == .appendOnly(since: UInt64(size)))
        }
        let later = try #require(try MemoryTrail(count: 701).files[.checkpoint])
        #expect(try report(trail, since: later).damage == .rolledBack(size: 700, externalSize: 701))

        let fork = try MemoryTrail(
            entries: (0..<300).map { MemoryTrail.entry($0, members: ["n": $0 == 7 ? 2 : 1]) })
        let rewritten = try report(trail, since: fork.files[.checkpoint])
        #expect(rewritten.damage == .rewritten(since: 300))
        // What was established before stays established.
        #expect(rewritten.facts.contains(.consistent(size: 700)))
        #expect(
            try report(trail, since: []).damage
                == .externalCheckpoint(.note(.malformed(line: 1, why: "the last line has no newline"))))
    }

    @Test func `a trail that has grown behind an older checkpoint still verifies`() throws {
        // The publisher has filled the tiles and cleared the partial ones; the checkpoint was read before.
        var trail = try MemoryTrail(count: 700)
        trail.files[.checkpoint] = try MemoryTrail(count: 600).files[.checkpoint]
        trail.files[.tile(level: 0, index: 2, width: 88)] = nil
        let longer = try MemoryTrail(count: 768)
        for path in [TrailPath.tile(level: 0, index: 2, width: 256), .entries(index: 2, width: 256)] {
            trail.files[path] = longer.files[path]
        }
        #expect(try report(trail).damage == nil)
        #expect(try report(trail).entryCount == 600)
    }

    @Test func `a witness is named with the time it saw the checkpoint`() throws {
        var trail = try MemoryTrail(count: 10)
        let witness = try Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 9, count: 32)))
        let key = try #require(
            NoteVerifierKey(name: "witness.test", algorithm: .cosignature, publicKey: witness.publicKey))
        let note = try SignedNote(parsing: try #require(trail.files[.checkpoint]))
        let signature = NoteSignature(
            name: key.name, keyID: key.keyID,
            bytes: [0, 0, 0, 0, 0, 0, 0, 60]
                + (try witness.sign(SignedNote.cosigned(note.text, atSeconds: 60))))
        trail.files[.checkpoint] =
            SignedNote(text: note.text, signatures: note.signatures + [signature]).bytes
        let trust = TrailTrust(origin: MemoryTrail.origin, keys: MemoryTrail.trust.keys + [key])
        let report = try TrailVerifier(trail, trusting: trust, examining: .hashing).verify()
        #expect(report.facts.last == .witnessed(by: "witness.test", atSeconds: 60))
        #expect(report.facts.last?.message == "witnessed by `witness.test` at 1970-01-01T00:01:00Z")
    }
}

@Suite struct StructureTests {
    /// - Parameter newest: Bundles whose entries are rehashed.
    private func structure(_ trail: MemoryTrail, newest: UInt64 = 1) throws -> TrailReport {
        try TrailVerifier(trail, trusting: MemoryTrail.trust).checkTiles(andNewest: newest)
    }

    @Test(arguments: [0, 1, 256, 300, 600])
    func `an intact trail's structure holds, and no more is claimed`(count: Int) throws {
        let report = try structure(try MemoryTrail(count: count))
        #expect(report.damage == nil)
        #expect(report.facts == [.signed(keyNames: [MemoryTrail.origin])])
    }

    /// Two bytes of length and one of entry, 256 times.
    @Test func `an old bundle too short for its entries is noticed by its length`() throws {
        let path = TrailPath.entries(index: 0, width: 256)
        for (byteCount, isNoticed) in [(1, true), (767, true), (768, false)] {
            var trail = try MemoryTrail(count: 600)
            trail.files[path] = [UInt8](repeating: 0, count: byteCount)
            let damage = TrailDamage.wrongLength(path, byteCount: byteCount, expected: 768)
            #expect(try structure(trail).damage == (isNoticed ? damage : nil))
        }
    }

    @Test func `a missing file is noticed anywhere, a changed one but for the entries of old bundles`() throws
    {
        let trail = try MemoryTrail(count: 600)
        for path in trail.files.keys {
            var changed = trail
            changed.files[path] = nil
            #expect(try structure(changed).damage == .missing(path))
            changed = trail
            changed.files[path]?[20] ^= 1
            let isOldBundle = if case .entries(0...1, _) = path { true } else { false }
            #expect((try structure(changed).damage == nil) == isOldBundle, "`\(path)`")
            #expect(try structure(changed, newest: 3).damage != nil, "`\(path)`")
            guard case .entries(let index, let width) = path else { continue }
            #expect(
                try structure(changed, newest: 3).damage
                    == .entry(index: index << 8, in: .entries(index: index, width: width)))
        }
        var cut = trail
        cut.files[.tile(level: 0, index: 1, width: 256)]?.removeLast()
        #expect(
            try structure(cut).damage
                == .wrongLength(.tile(level: 0, index: 1, width: 256), byteCount: 8_191, expected: 8_192))
        cut = trail
        cut.files[.entries(index: 1, width: 256)]?.removeLast(100)
        #expect(try structure(cut).damage?.firstEntry == nil)
        cut.files[.entries(index: 1, width: 256)] = []
        #expect(
            try structure(cut).damage
                == .wrongLength(.entries(index: 1, width: 256), byteCount: 0, expected: 768))
    }

    @Test func `an edge grown entry by entry has the files and the root of the definition`() throws {
        var edge = TrailEdge()
        var completed: [TrailPath: [UInt8]] = [:]
        for count in 1...600 {
            let entry = MemoryTrail.entry(count - 1)
            for file in edge.append(entry, leafHash: TreeHash.leaf(entry)) {
                completed[file.path] = file.bytes
            }
            guard [1, 2, 255, 256, 257, 511, 512, 600].contains(count) else { continue }
            let trail = try MemoryTrail(count: count)
            var files = completed
            for file in edge.partials { files[file.path] = file.bytes }
            files[.checkpoint] = trail.files[.checkpoint]
            #expect(files == trail.files)
            let reread = try TrailEdge(reading: trail, size: UInt64(count))
            #expect(reread.root == edge.root && reread.size == edge.size)
            #expect(
                reread.partials.elementsEqual(edge.partials) { $0.path == $1.path && $0.bytes == $1.bytes })
        }
    }
}
