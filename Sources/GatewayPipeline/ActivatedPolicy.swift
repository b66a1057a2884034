package import CompliancePolicy
package import GateVocabulary

/// Which bundle was last in force. The store keeps it, so that an old bundle cannot come back with a restart.
package struct ActivatedPolicy: Hashable, Sendable {
    package var version: Int
    package var digest: PolicyDigest

    package init(version: Int, digest: PolicyDigest) {
        self.version = version
        self.digest = digest
    }

    package init(_ policy: CompiledPolicy) {
        self.init(version: policy.bundle.version, digest: policy.digest)
    }

    /// Why `next` may not follow where versions only rise; `nil` when it may. The same bundle again is a restart.
    package func refusal(of next: ActivatedPolicy) -> PolicyProblem? {
        if next.version > version || next == self { return nil }
        if next.version == version {
            return PolicyProblem(
                file: "bundle.yaml",
                message:
                    "is version \(version) with other contents than the version \(version) that was in force",
                hint: "a changed bundle has a higher version")
        }
        return PolicyProblem(
            file: "bundle.yaml",
            message: "is version \(next.version), and version \(version) was in force already",
            hint: "versions only rise; to go back, sign the old rules under a higher version")
    }
}

extension RecordReading {
    /// - Returns: `nil` before the first start.
    package func activatedPolicy() throws -> ActivatedPolicy? {
        guard let text = try setting(ActivatedPolicy.settingName) else { return nil }
        let words = text.split(separator: " ")
        guard words.count == 2, let version = Int(words[0]) else {
            throw StoreError.damaged(
                table: "setting", row: ActivatedPolicy.settingName,
                "it holds no version and digest of the bundle that was last in force")
        }
        return ActivatedPolicy(version: version, digest: PolicyDigest(String(words[1])))
    }
}

extension StepView {
    package func setActivatedPolicy(_ policy: ActivatedPolicy) throws {
        try setSetting(ActivatedPolicy.settingName, to: "\(policy.version) \(policy.digest.text)")
    }
}

extension ActivatedPolicy {
    fileprivate static let settingName = "activated_policy"
}

/// Where the next bundle comes from, and what it must pass. Every path that puts one in force goes through here:
/// start, signal and `POST /v1/policy/activate`.
package struct PolicySource: Sendable {
    package struct Loaded: Sendable {
        package var policy: CompiledPolicy
        /// Of the pages as they lie in the folder: what a reviewer sees. Differs from the policy's own digest in
        /// development only, where a page is added.
        package var reviewedDigest: PolicyDigest

        package init(policy: CompiledPolicy, reviewedDigest: PolicyDigest) {
            self.policy = policy
            self.reviewedDigest = reviewedDigest
        }
    }

    /// A bundle that was asked for and is not in force.
    package struct Refusal: Sendable {
        package var problems: [PolicyProblem]

        package init(_ error: any Error) {
            self.init("it cannot be loaded: \(error)")
            if let found = error as? PolicyProblems { problems = found.problems }
        }

        /// For what is wrong elsewhere than in the bundle.
        init(_ message: String) {
            problems = [PolicyProblem(file: "bundle.yaml", message: message)]
        }
    }

    /// Reads and checks the configured bundle, its signature where one is required.
    package var load: @Sendable () throws -> Loaded
    /// Whether a version must be higher than every one before it.
    package var versionsOnlyRise: Bool
    /// Told of every bundle that was refused, for log and readiness.
    package var refused: @Sendable (Refusal) -> Void
    /// Told when a bundle passed: there is nothing to complain of any more.
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
