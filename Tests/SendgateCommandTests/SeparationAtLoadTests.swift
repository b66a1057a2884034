import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

@testable import sendgate

/// Separation of duties where a bundle comes into force: what a reviewer's command says of it, and what a running
/// gateway does with it.
@Suite struct SeparationAtLoadTests {
    private enum Verdict {
        case taken
        /// By `policy check` too.
        case refused
        /// Only where it is proved.
        case refusedByProof
    }

    /// What becomes of a bundle that hands a grant to who sends marketing or social notifications.
    private static let table: [(grant: Grant, verdict: Verdict)] = [
        (.sendCritical, .refusedByProof), (.recipientsWrite, .refused), (.consentsWrite, .refused),
        (.consentsImport, .refused), (.preferencesWrite, .refused), (.preferencesStepUp, .refused),
        (.devicesWrite, .refused), (.receiptsWrite, .refused), (.repliesWrite, .refused),
        (.driftRun, .refused), (.keysRotate, .refused),
        (.trailRead, .refused), (.subjectsRead, .refused), (.subjectsErase, .refused),
        (.policyActivate, .refused), (.metricsRead, .taken),
    ]

    private let folder: TemporaryFolder
    private let policies: String

    init() throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
    }

    /// - Parameter means: What stands on the page above the caller's grants.
    private func hand(_ grants: [Grant], to means: String, on page: String) throws {
        let old = "means: \(means)\n    grants: [send]"
        try #require(page.contains(old))
        let names = (["send"] + grants.map(\.rawValue)).joined(separator: ", ")
        _ = try folder.file(
            "Policies/callers.yaml", page.replacing(old, with: "means: \(means)\n    grants: [\(names)]"))
    }

    @Test(arguments: [
        "Campaigns.", "The social feed. Comments, mentions, likes and messages from other people.",
    ])
    func `a grant that who sells must not hold is refused by the command, the signal and the route`(
        means: String
    ) async throws {
        #expect(Set(Self.table.map(\.grant)).union([.send]) == Set(Grant.allCases))
        let page = try String(contentsOfFile: "\(policies)/callers.yaml", encoding: .utf8)
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        for (grant, verdict) in Soak.part(of: Self.table, 3, "grants at load") {
            try hand(grant == .consentsImport ? [.consentsWrite, grant] : [grant], to: means, on: page)
            let check = try await CommandLineRun("policy", "check", policies)
            #expect(check.status == (verdict == .refused ? 1 : 0), "\(grant): \(check.errors)")
            #expect(check.errors.contains("separation of duties") == (verdict == .refused), "\(grant)")

            let before = gate.wiring.policy.current.digest
            await gate.wiring.reload.reload()
            let after = gate.wiring.policy.current
            #expect((after.digest != before) == (verdict == .taken), "\(grant)")
            guard verdict != .taken else { continue }
            let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal, "\(grant)")
            #expect(refusal.reason.contains("`\(grant.rawValue)`") || grant == .consentsImport, "\(refusal)")
            let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(before.text)])
            #expect(reply.status == 422, "\(grant): \(reply.object)")
            #expect(gate.wiring.policy.current.digest == before, "\(grant)")
        }
        try await gate.stop()
    }

    @Test(arguments: [Grant.sendCritical, .recipientsWrite, .devicesWrite])
    func `no gateway starts with one`(grant: Grant) async throws {
        let page = try String(contentsOfFile: "\(policies)/callers.yaml", encoding: .utf8)
        try hand([grant], to: "Campaigns.", on: page)
        let error = await #expect(throws: PolicyDiagnostics.self) {
            _ = try await GatewayFixture(in: folder.root, policies: policies)
        }
        #expect(error?.diagnostics.map(\.file) == ["callers.yaml"])
        #expect(error?.description.contains("`\(grant.rawValue)`") == true)
    }

    @Test(arguments: ["Campaigns.", "Transfers, accounts of ours and connected ones"])
    func `no gateway takes an override asserted by who sends`(means: String) async throws {
        let page = try String(contentsOfFile: "\(policies)/callers.yaml", encoding: .utf8)
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let before = gate.wiring.policy.current.digest
        let place = try #require(page.range(of: means)?.upperBound)
        let own = try #require(page[place...].range(of: "sources: []"))
        _ = try folder.file(
            "Policies/callers.yaml", page.replacingCharacters(in: own, with: "sources: [admin_override]"))
        await gate.wiring.reload.reload()
        #expect(gate.wiring.policy.current.digest == before)
        #expect(gate.wiring.healthChecks.reloads.lastRefusal?.reason.contains("`admin_override`") == true)
        try await gate.stop()
    }
}
