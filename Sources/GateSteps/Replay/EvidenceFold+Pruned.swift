package import AuditTrail
package import CompliancePolicy
package import GateVocabulary
package import SendPlanning
import GateRecords

extension EvidenceFold {
    /// Holds an entry against those before it, as far as they are there, and applies it (decision SG-0076).
    ///
    /// An entry that was kept of pruned ones is applied only. One of the first after them may rest on a send that is gone: of such an entry
    /// the facts are not derived, nor is it asked what it says of sends. People, bundles and keys are known as if nothing were gone.
    ///
    /// - Returns: The facts it claims that do not follow from the entries before it; and why the gate would have refused
    ///   what it records.
    package mutating func follow(
        _ entry: VerifiedEntry, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> (differences: [ReplayDifference], objection: ActObjection?) {
        let bytes = Array(entry.bytes)
        let differences = try entry.standing == .whole ? differences(in: bytes, policies: policies) : []
        let objection = try isJudged(entry) ? objection(to: bytes, policies: policies) : nil
        try apply(bytes, policies: policies)
        return (differences, objection)
    }

    private func isJudged(_ entry: VerifiedEntry) throws -> Bool {
        switch entry.standing {
        case .whole: true
        case .kept: false
        case .afterPruned:
            try !Snapshot.passingKinds.contains(
                entry.entry?.kind ?? TrailEntry(reading: entry.bytes).kind)
        }
    }
}
