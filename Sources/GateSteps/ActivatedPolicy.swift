package import BundleModel
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
    package func refusal(of next: ActivatedPolicy) -> PolicyDiagnostic? {
        if next.version > version || next == self { return nil }
        if next.version == version {
            return PolicyDiagnostic(
                file: "bundle.yaml",
                message:
                    "is version \(version) with other contents than the version \(version) that was in force",
                hint: "a changed bundle has a higher version")
        }
        return PolicyDiagnostic(
            file: "bundle.yaml",
            message: "is version \(next.version), and version \(version) was in force already",
            hint: "versions only rise; to go back, sign the old rules under a higher version")
    }
}

extension RecordReading {
    /// - Returns: `nil` before the first start.
    package func activatedPolicy() throws -> ActivatedPolicy? {
        try setting(
            ActivatedPolicy.settingName,
            orDamaged: "it holds no version and digest of the bundle that was last in force"
        ) { text in
            let words = text.split(separator: " ")
            guard words.count == 2, let version = Int(words[0]) else { return nil }
            return ActivatedPolicy(version: version, digest: PolicyDigest(String(words[1])))
        }
    }
}

extension GateMemory {
    package func setActivatedPolicy(_ policy: ActivatedPolicy) throws {
        setSetting(ActivatedPolicy.settingName, to: "\(policy.version) \(policy.digest.text)")
    }
}

extension ActivatedPolicy {
    fileprivate static let settingName = "activated_policy"
}
