import CanonicalJSON
import GateVocabulary
import Testing

@testable import GateBench

/// What `sendgate bench --rotate` reports.
@Suite struct BenchTests {
    @Test(arguments: [
        (202, 202, 0, 0, 0, true), (202, 201, 0, 0, 1, false), (202, 202, 1, 0, 0, false),
        (202, 202, 0, 1, 0, false),
        // The answer of one send was lost, and its message came.
        (202, 203, 1, 0, 0, false),
    ])
    func `a rotation is flawless when no send failed, every accepted one came and none is unreadable`(
        accepted: Int, handedOver: Int, failed: Int, unreadable: Int, lost: Int, isFlawless: Bool
    ) throws {
        let row = RotationReport.Row(
            purpose: .origin, rotationCount: 5, longestMilliseconds: 1, sendCount: accepted + failed,
            failedCount: failed, acceptedCount: accepted, handedOverCount: handedOver, during: .init([1]),
            openedCount: 1, unreadableCount: unreadable)
        let report = RotationReport(
            recipients: 1, offeredPerSecond: 1, without: .init([1]), rows: [row])
        #expect(row.lostCount == lost)
        #expect(report.isFlawless == isFlawless)
        let json = report.json["rotations"]?.arrayValue?.first
        #expect(json?["lost"]?.integerValue == Int64(lost))
    }
}
