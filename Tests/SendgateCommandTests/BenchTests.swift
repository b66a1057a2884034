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

/// What `sendgate bench --soak` finds in what it saw.
@Suite struct SoakReportTests {
    /// An hour of 1,000 sends a second, seen every 30 s.
    private func report(
        status: [Int: Int] = [202: 3_240_000, 403: 360_000],
        _ change: (Double, inout SoakReport.Sample) -> Void = { _, _ in }
    ) -> SoakReport {
        let samples = (0...120).map { number in
            // Caches fill in the first ten minutes.
            var sample = SoakReport.Sample(
                seconds: number * 30, sendCount: number * 30_000, memoryMebibytes: 40 + 3 * min(number, 20),
                descriptorCount: number == 0 ? 20 : 36 + number % 3, threadCount: 14,
                databaseByteCount: Int64(number) * 30_000 * 900, logByteCount: 16 << 20,
                trailByteCount: Int64(number) * 30_000 * 1_200, waitingCount: 0)
            change(Double(number) / 120, &sample)
            return sample
        }
        return SoakReport(
            offeredPerSecond: 1_000, countByStatus: status, p50Microseconds: 1, p99Microseconds: 2,
            p999Microseconds: 3, samples: samples)
    }

    @Test func `what fills and then stays is flat, and bytes a send are told`() {
        let report = report()
        #expect(report.findings == [])
        #expect(report.databaseBytesASend == 900 && report.trailBytesASend == 1_200)
        let one = report.json["samples"]?.arrayValue?.last
        #expect(one?["sends"]?.integerValue == 3_600_000 && one?["log_bytes"]?.integerValue == 16 << 20)
    }

    private static let growths: [(String, @Sendable (Double, inout SoakReport.Sample) -> Void)] = [
        ("memory", { $1.memoryMebibytes += Int($0 * 120) }),
        ("descriptors", { $1.descriptorCount += Int($0 * 60) }),
        ("threads", { $1.threadCount += Int($0 * 60) }),
        ("log", { $1.logByteCount += Int64($0 * 1e9) }),
        ("database", { $1.databaseByteCount += Int64($0 * $0 * 4e9) }),
        ("trail", { $1.trailByteCount += Int64($0 * $0 * 4e9) }),
    ]

    @Test(arguments: growths)
    func `what grows and never stops is found, and nothing else`(
        _ name: String, _ growth: @escaping @Sendable (Double, inout SoakReport.Sample) -> Void
    ) throws {
        let findings = try #require(report(growth).findings)
        #expect(findings.count == 1 && findings[0].contains(name), "\(findings)")
    }

    @Test func `a send that was not decided is found, and a short run says nothing`() {
        #expect(report(status: [202: 10, 503: 2]).findings == ["sends were not decided: 2 with 503"])
        var short = report()
        short.samples = Array(short.samples.prefix(20))
        #expect(short.findings == nil && short.json["findings"] == .null)
    }
}
