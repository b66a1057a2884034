import GateTestKit
import GatewayPipeline
import NIOCore
import PublicPages
import Testing

@Suite struct PageLimitsTests {
    @Test func `the handbook has the bounds that hold`() throws {
        let limits = PageLimits()
        func seconds(_ time: TimeAmount) -> Int64 { time.nanoseconds / 1_000_000_000 }
        let expected = [
            ["header", "\(limits.headerByteCountMax / 1024) KiB, \(limits.headerFieldCountMax) fields"],
            ["body", "\(limits.bodyByteCountMax / 1024) KiB"],
            ["time for a header, from the connection", "\(seconds(limits.headerTime)) s"],
            ["time for a request, from the connection", "\(seconds(limits.requestTime)) s"],
            ["connections", "\(limits.connectionCountMax)"],
            ["requests", "\(limits.requestsPerSecond) a second, \(limits.requestBurst) at once"],
            ["requests of one link", "\(limits.requestsPerSecondOfLink) a second"],
            ["look-ups and changes under way", "\(LinkHandler.underWayCountMax)"],
        ]
        let table = try HandbookTable(of: "Unsubscribing", head: "| bound | value | above it |")
        #expect(table.rows.map { Array($0.prefix(2)) } == expected)
    }
}
