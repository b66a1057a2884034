package import BundleModel
import CompliancePolicy
package import GateVocabulary

extension NotificationType {
    /// What the value of ``dedupeBy`` in a send of a caller's is compared under.
    package func dedupeNamespace(of caller: CallerName) -> String {
        switch dedupeScope {
        case .caller: "\(self.eventScope.text)\0\(caller.text)"
        case .type: "\(self.eventScope.text)\0"
        }
    }
}
