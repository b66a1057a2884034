import BundleModel
import CompliancePolicy
import GateVocabulary

extension BundleProof {
    /// A bundle whose cases were thrown away says nowhere what it was meant to decide: passing cases reach
    /// every outcome, every gate's no and every reason its pages can give, and every duty and alarm has one.
    func caseFlaws() -> [PolicyDiagnostic] {
        let bundle = policy.bundle
        let coverage = CaseCoverage(bundle.cases.map { $0.run(under: policy) }.filter(\.passed))
        func named(_ names: [String]) -> String { names.map { "`\($0)`" }.joined(separator: ", ") }
        var missing: [String] = []
        let digests = bundle.categories.values.contains { $0.overflow == .digest }
        let outcomes = coverage.missingOutcomes.filter { $0 != .digest || digests }
        let reasons = coverage.missingReasons.filter { $0 != .digested || digests }.filter { isGivable($0) }
        if !outcomes.isEmpty { missing.append("the outcomes \(named(outcomes.map(\.name)))") }
        if !coverage.missingGates.isEmpty {
            missing.append("a no of the gates \(named(coverage.missingGates.map(\.name)))")
        }
        if !reasons.isEmpty { missing.append("the reasons \(named(reasons.map(\.rawValue)))") }
        let needed = Set(bundle.critical.map(\.type))
            .union(bundle.types.values.filter { $0.mandatory != nil }.map(\.id))
        let untold = needed.subtracting(coverage.types).sorted()
        if !untold.isEmpty { missing.append("the types \(named(untold.map(\.text)))") }
        guard !missing.isEmpty else { return [] }
        return [
            PolicyDiagnostic(
                file: "bundle.yaml", at: bundle.location("bundle.yaml", ["files"]),
                "`files` lists \(bundle.cases.count) cases, and none that passes reaches \(missing.joined(separator: "; "))",
                hint: "write a case for each in cases/; `sendgate policy test` says what cases reach")
        ]
    }

    /// Whether any page can bring about a reason; what no type is made for no case can reach.
    private func isGivable(_ reason: Reason) -> Bool {
        let types = policy.bundle.types.values
        return switch reason {
        case .typeDisabled: types.contains { !$0.isEnabled }
        case .noDeviceKey: types.contains { $0.body.push == .sealed && $0.withoutKey == .reject }
        case .genericOnly: types.contains { $0.body.push == .sealed && $0.withoutKey == .generic }
        case .noSMSConsent, .smsFallbackForbidden: types.contains { $0.body.sms != .never }
        case .noEmailConsent: types.contains { $0.body.email != .never }
        case .noPurposeConsent: types.contains { $0.purpose != nil }
        case .repeated: types.contains { $0.isDeduplicated }
        case .scheduled: types.contains { $0.timing != nil }
        case .frequencyCap:
            types.contains { type in
                policy.bundle.overflow(of: type) == .drop && policy.bundle.categoryCap(of: type) != nil
            }
        default: true
        }
    }
}
