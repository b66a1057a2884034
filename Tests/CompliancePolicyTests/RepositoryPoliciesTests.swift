import BundleModel
import CompliancePolicy
import GateTestKit
import GateVocabulary
import PolicyProof
import Testing

/// The product's own bundle, run the way `sendgate policy test` runs it.
@Suite struct RepositoryPoliciesTests {
    let policy: CompiledPolicy

    init() throws { policy = try Repository.policy() }

    @Test func `every case comes out as it says`() {
        for example in policy.bundle.cases {
            let result = example.run(under: policy)
            #expect(
                result.passed,
                "\(example.file):\(example.line ?? 0) \(example.name): \(result.differences)")
        }
    }

    @Test func `the cases reach every gate, every reason and every outcome`() {
        let coverage = CaseCoverage(policy.bundle.cases.map { $0.run(under: policy) })
        #expect(coverage.missingReasons == [])
        #expect(coverage.missingOutcomes == [])
        #expect(coverage.missingGates == [])
    }

    @Test func `dropping any one fact of any case turns no refusal into a send`() {
        var refusals = 0
        for example in policy.bundle.cases {
            guard !example.run(under: policy).decision.outcome.isPromise else { continue }
            refusals += 1
            for name in Facts.names {
                let rest = example.facts.removing(name)!
                let found = decide(example.request, given: rest, under: policy)
                #expect(!found.outcome.isPromise, "\(example.name) without \(name)")
            }
        }
        #expect(refusals > 50)
    }

    @Test func `the four cases of the preference spec come first`() {
        let first = policy.bundle.cases.filter { $0.file == "cases/acceptance.yaml" }
        #expect(policy.bundle.cases.first?.file == "cases/acceptance.yaml")
        #expect(first.first?.expected.reason == .noGDPRConsent)
        #expect(first.count >= 4)
    }

    @Test func `only the three types of the preference spec may be critical, and only Security may ask`() {
        let listed = policy.bundle.critical
        #expect(Set(listed.map(\.type.text)) == ["suspicious_login", "account_takeover_blocked", "2fa_code"])
        #expect(listed.allSatisfy { $0.callers == [CallerName("security")] })
    }

    @Test func `a case that is wrong says in what`() throws {
        var example = try #require(policy.bundle.cases.first)
        example.expected.reason = .minor
        example.expected.gates = [.permission: .pass]
        let result = example.run(under: policy)
        #expect(!result.passed)
        #expect(
            result.differences == [
                "reason is `no_gdpr_consent`, expected `minor`",
                "gate permission says `no_gdpr_consent:never_asked`, expected `pass`",
            ])
    }
}
