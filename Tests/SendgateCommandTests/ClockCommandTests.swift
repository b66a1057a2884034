import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import Testing

@testable import sendgate

@Suite struct ClockCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Runs a gateway whose last entry is a day ahead of the clock, as after a jump that was set right.
    private func recordTomorrow() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let engine = gate.wiring.core.engine
        let failure = await withCheckedContinuation {
            (continuation: CheckedContinuation<EngineFailure?, Never>) in
            engine.submit(
                in: .security, finished: { continuation.resume(returning: $0) },
                work: { batch in
                    let entry = StopEntry(policy: batch.policy.digest)
                    try batch.step { try $0.record(entry, at: $0.now().advanced(bySeconds: 86_400)) }
                })
        }
        #expect(failure == nil)
        let refused = try await gate.ask(
            "PUT", "/v1/recipients/u_1", ["region": "DE", "region_source": "kyc"])
        #expect(refused.status == 503)
        #expect(try await gate.ask("GET", "/readyz").status == 503)
        try await gate.stop()
    }

    /// It starts, says why it takes nothing, and would go on by itself when the clock has caught up.
    private func expectWaiting() async throws {
        let waiting = try await GatewayFixture(in: folder.root)
        let ready = try await waiting.ask("GET", "/readyz")
        #expect(ready.status == 503, "\(ready)")
        #expect("\(ready.object)".contains("sendgate clock accept"), "\(ready.object)")
        #expect(try await waiting.ask("GET", "/healthz").status == 200)
        try await waiting.stop()
    }

    @Test func `an entry from tomorrow locks the gateway out until an operator accepts the clock`()
        async throws
    {
        try await recordTomorrow()
        try await expectWaiting()

        let accepted = try await CommandLineRun("clock", "accept", "--dev", folder.path("gate"), "--json")
        #expect(accepted.status == 0 && accepted.output.contains("true"), "\(accepted)")
        let again = try await CommandLineRun("clock", "accept", "--dev", folder.path("gate"), "--json")
        #expect(again.status == 0 && again.output.contains("false"), "\(again)")

        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await gate.ask("GET", "/readyz").status == 200)
        try await gate.stop()
        let trail = folder.path("gate/trail")
        let verified = try await CommandLineRun("audit", "verify", trail, "--key", "\(trail)/trail.pub")
        #expect(verified.status == 0, "\(verified.errors)")
        #expect(try await CommandLineRun("audit", "show", trail, "2").output.contains("clock"))
    }
}
