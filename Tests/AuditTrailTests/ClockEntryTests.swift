@testable import AuditTrail
@testable import GateRecords
import CanonicalJSON
import GateVocabulary
import Testing

@Suite struct ClockEntryTests {
    /// A trail of three entries, the second of which steps back by a day.
    private func damage(_ kind: EntryKind, previous: Int64) throws -> TrailDamage? {
        let start = 1_700_000_000_000
        let step = TrailEntry(
            kind: kind, index: 1, time: Instant(milliseconds: Int64(start - 86_400_000)),
            members: ["previous": .integer(previous), "uid": 1000])
        let trail = try MemoryTrail(entries: [
            MemoryTrail.entry(0, time: start), try step.encoded().bytes,
            MemoryTrail.entry(2, time: start - 86_399_000),
        ])
        return try TrailVerifier(trail, trusting: MemoryTrail.trust).verify().damage
    }

    @Test func `time may step back at an entry that says so, from the time it names, and nowhere else`()
        throws
    {
        #expect(try damage(.clock, previous: 1_700_000_000_000) == nil)
        let refused = TrailDamage.timeDecreased(index: 1, in: .entries(index: 0, width: 3))
        #expect(try damage(.clock, previous: 1_700_000_000_001) == refused)
        #expect(try damage(EntryKind("test"), previous: 1_700_000_000_000) == refused)
    }
}
