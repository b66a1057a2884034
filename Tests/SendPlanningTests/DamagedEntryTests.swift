import AuditTrail
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SendPlanning
import Testing

/// What a producer's repeat and an auditor's replay read: entries as the disk gives them back.
@Suite struct DamagedEntryTests {
    @Test func `a damaged entry is another entry or an error, never a trap`() throws {
        let cases = RepositoryBundle.cases
        var readCount = 0
        for position in stride(from: 0, to: cases.count, by: max(cases.count / 6, 1)) {
            let bytes = try Sample.entry(cases[position]).bytes(index: 3, time: Sample.now)
            for damaged in DamagedBytes(of: bytes, seed: 0x5EED_0013 + UInt64(position), randomCount: 500) {
                guard let read = try? SendEntry.read(damaged) else { continue }
                #expect(try read.entry.bytes(index: read.index, time: read.time) == damaged)
                _ = read.entry.overall
                readCount += 1
            }
        }
        #expect(readCount > 50, "only \(readCount) damaged entries were read")
    }
}
