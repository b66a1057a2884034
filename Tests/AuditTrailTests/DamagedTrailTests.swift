import GateRecords
import SealedFormat
import AuditTrail
import CanonicalJSON
import GateTestKit
import GateVocabulary
import Testing

/// Whatever a trail's files hold, reading them ends; a trap ends the whole run.
@Suite struct DamagedTrailTests {
    private static let seed: UInt64 = 0x5EED_0012

    @Test func `no file of a trail can be changed unseen, and none makes its reader trap`() throws {
        let trail = try MemoryTrail(count: 3)
        var readCount = 0
        for (number, (path, bytes)) in trail.files.sorted(by: { $0.key.text < $1.key.text }).enumerated() {
            for damaged in DamagedBytes(of: bytes, seed: Self.seed + UInt64(number)) where damaged != bytes {
                var trail = trail
                trail.files[path] = damaged
                let verifier = TrailVerifier(
                    trail, trusting: MemoryTrail.trust, examining: .schema(MemoryTrail.schema))
                // What cannot even be read is noticed as well.
                guard let report = try? verifier.verify() else { continue }
                // A signature may be spelled in one more way than the one we write; what it signs may not.
                guard path != .checkpoint else { continue }
                readCount += 1
                #expect(report.damage != nil, "\(path.text)")
            }
        }
        #expect(readCount > 500, "only \(readCount) damaged trails were read")
    }

    @Test func `entries, notes, checkpoints and lists of hashes read as something or not at all`() throws {
        let trail = try MemoryTrail(count: 3)
        let checkpoint = try #require(trail.files[.checkpoint])
        let entry = MemoryTrail.entry(7, members: ["n": 1, "text": "é\u{1F600}"])
        var readCount = 0
        for bytes in DamagedBytes(of: entry, seed: Self.seed, randomCount: 2_000) {
            guard let read = try? TrailEntry(reading: bytes) else { continue }
            readCount += 1
            #expect(try read.encoded().bytes == bytes)
        }
        #expect(readCount > 50, "only \(readCount) damaged entries were read")
        for bytes in DamagedBytes(of: checkpoint, seed: Self.seed, randomCount: 2_000) {
            _ = try? SignedNote(parsing: bytes)
            _ = try? Checkpoint(parsing: bytes)
            _ = NoteVerifierKey(parsing: String(decoding: bytes, as: UTF8.self))
            _ = TrailPath(parsing: String(decoding: bytes, as: UTF8.self))
            _ = EntryBundle.ranges(in: bytes)
        }
    }
}
