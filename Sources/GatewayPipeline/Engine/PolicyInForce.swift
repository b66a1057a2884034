package import CompliancePolicy
import Synchronization

/// The policy that decides. Replaced as a whole: a batch sees one bundle from its first facts to its commit.
package final class PolicyInForce: Sendable {
    private let policy: Mutex<CompiledPolicy>

    package init(_ policy: CompiledPolicy) {
        self.policy = Mutex(policy)
    }

    package var current: CompiledPolicy { policy.withLock { $0 } }

    package func replace(with next: CompiledPolicy) { policy.withLock { $0 = next } }
}
