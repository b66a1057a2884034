import Foundation
import GatewayPipeline
import Synchronization
import Testing

@Suite struct BackgroundThreadTests {
    @Test func `every number is worked on once, on threads of lower rank, and none is left afterwards`() {
        for _ in 0..<200 {
            let seen = Mutex<[Int]>([])
            let ranks = Mutex<Set<Int32>>([])
            BackgroundThread.perform(20, named: "test") { number in
                seen.withLock { $0.append(number) }
                let rank = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
                ranks.withLock { _ = $0.insert(rank) }
            }
            #expect(seen.withLock { $0.sorted() } == Array(0..<20))
            let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
            #expect(ranks.withLock { $0.allSatisfy { $0 > own } })
        }
    }

    @Test func `nothing to do ends at once`() {
        BackgroundThread.perform(0, named: "test") { _ in Issue.record("a number below 0") }
    }
}
