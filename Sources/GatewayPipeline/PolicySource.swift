package import BundleModel
package import CompliancePolicy
import GateSteps
package import GateVocabulary

/// The source of the next bundle, and the checks that it must pass. Every path that puts one in force goes through
/// here: start, signal and `POST /v1/policy/activate`.
package struct PolicySource: Sendable {
    /// A bundle that was read and compiled, with what the start of the process records of it.
    package struct Loaded: Sendable {
        package var policy: CompiledPolicy
        /// Digest of the pages as they are in the folder, as a reviewer sees them. Differs from the policy's own
        /// digest in development only, where a page is added.
        package var reviewedDigest: PolicyDigest

        package init(policy: CompiledPolicy, reviewedDigest: PolicyDigest) {
            self.policy = policy
            self.reviewedDigest = reviewedDigest
        }
    }

    /// A bundle that was asked for and is not in force.
    package struct Refusal: Sendable {
        package var diagnostics: [PolicyDiagnostic]

        package init(_ error: any Error) {
            self.init("it cannot be loaded: \(error)")
            if let found = error as? PolicyDiagnostics { diagnostics = found.diagnostics }
        }

        /// A refusal for a reason outside the bundle.
        init(_ message: String) {
            diagnostics = [PolicyDiagnostic(file: "bundle.yaml", message: message)]
        }
    }

    /// Reads and checks the configured bundle, its signature where one is required.
    package var load: @Sendable () throws -> Loaded
    /// Whether a version must be higher than every one before it.
    package var versionsOnlyRise: Bool
    /// Called with every bundle that was refused, for log and readiness.
    package var refused: @Sendable (Refusal) -> Void
    /// Called when a bundle passed, which ends the complaint about an earlier one.
    package var accepted: @Sendable (CompiledPolicy) -> Void

    package init(
        load: @escaping @Sendable () throws -> Loaded, versionsOnlyRise: Bool,
        refused: @escaping @Sendable (Refusal) -> Void = { _ in },
        accepted: @escaping @Sendable (CompiledPolicy) -> Void = { _ in }
    ) {
        self.load = load
        self.versionsOnlyRise = versionsOnlyRise
        self.refused = refused
        self.accepted = accepted
    }
}
