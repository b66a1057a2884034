import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

@testable import SQLiteStore
@testable import sendgate

/// The running gateway finds what is not stored as it happened.
@Suite struct StatePassTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func filled() async throws -> GatewayFixture {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        #expect(try await gate.send("one", "security.new_login", GatewayFixture.login).status < 300)
        return gate
    }

    /// A pass of its own, beside the gateway's.
    private func pass(_ gate: GatewayFixture, in directory: String) throws -> StatePass {
        try FileManager.default.createDirectory(
            atPath: folder.path(directory), withIntermediateDirectories: true)
        return StatePass(
            gate.wiring.store, directory: folder.path(directory),
            comparison: gate.wiring.healthChecks.statePass.comparison)
    }

    @Test func `a pass over a gateway that nobody touched finds nothing`() async throws {
        let gate = try await filled()
        let pass = try pass(gate, in: "place")
        #expect(try pass.advance { Issue.record("\($0)") })
        #expect(pass.differences.isEmpty && pass.counts.passes == 1 && pass.counts.compared >= 2)
        try await gate.stop()
    }

    @Test func `who is not stored as it happened is named, and closed for marketing`() async throws {
        let gate = try await filled()
        let connection = gate.wiring.store.writer.connection
        try connection.exclusively { try connection.script("DELETE FROM push_token") }
        let own = try pass(gate, in: "place")
        var found: [StateAudit.Difference] = []
        #expect(try own.advance { found += $0 })
        #expect(!found.isEmpty && found.allSatisfy { $0.subject != nil }, "\(found)")
        #expect(own.differences == found)
        gate.wiring.core.differ(found)
        let closed = try await eventually(1_000) {
            try gate.wiring.store.read {
                try $0.state(of: try #require(found[0].subject))?.preferences.filter(\.isClosing).count
            } == Channel.allCases.count
        }
        #expect(closed)
        // It is on record, so a later pass finds no more than what is still wrong.
        var again: [StateAudit.Difference] = []
        #expect(try own.advance { again += $0 })
        #expect(again.map(\.what) == found.map(\.what))
        try await gate.stop()
    }

    @Test func `a pass that was ended goes on with its share in the next process`() async throws {
        let gate = try await filled()
        let first = try pass(gate, in: "place")
        PassPlace(in: folder.path("place"), "audit-place").write(3, 5)
        #expect(try !first.advance { Issue.record("\($0)") })
        first.stop()
        #expect(throws: CancellationError.self) { try first.advance { _ in } }
        let next = try pass(gate, in: "place")
        #expect(try next.advance { Issue.record("\($0)") })
        #expect(next.counts.passes == 1)
        #expect(PassPlace(in: folder.path("place"), "audit-place").read() ?? (9, 9) == (0, 0))
        try await gate.stop()
    }
}
