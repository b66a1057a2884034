import CanonicalJSON
import GateSteps
import GatewayPipeline
import SQLiteStore
import Testing

/// One person for whom as much waits as may.
@Suite struct CrowdedPersonTests {
    @Test func `ten thousand messages wait for one person, one more does not, and one change ends them all`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let countMax = EngineLimits().outboxRowCountPerPersonMax
        let clients = 50
        let statuses = try await withThrowingTaskGroup(of: [Int].self) { group in
            for client in 0..<clients {
                group.addTask {
                    var statuses: [Int] = []
                    for number in 0..<(countMax / clients) {
                        statuses.append(try await gate.remit("r\(client)-\(number)").status)
                    }
                    return statuses
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(statuses.count == countMax && statuses.allSatisfy { $0 == 202 })
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == countMax)
        let refused = try await gate.remit("more")
        #expect(
            refused.status == 429 && refused["type"] == "urn:sendgate:problem:outbox_full", "\(refused.json)")
        // The security category has a share of its own.
        let login = try await gate.login(1)
        #expect(login.status == 202, "\(login.json)")

        // All of them are decided again in the transaction of the change, and none of them goes.
        let before = try gate.store.read { try $0.entryCount() }
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
        #expect(erased.status == 200, "\(erased.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        let entries = try gate.store.read { try $0.entries(from: before, limit: countMax + 10) }
        let kinds = try entries.map { try CanonicalJSON.read($0.bytes)["kind"]?.stringValue }
        #expect(kinds.count { $0 == "unsent" } == countMax + 1 && kinds.last == "erasure")
    }
}
