import AuditTrail
import BundleModel
import CompliancePolicy
import GateRecords
import GateVocabulary
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import SealedFormat

/// Holds each bundle that came into force against the policy keys that the offline authority listed.
///
/// A `start` or `policy` entry is the operator's word that a bundle was in force. What the operator cannot make up is that
/// those who answer for a bundle signed it: the entry has their signatures, and the archive the bundle that they signed.
struct ApprovalAudit {
    private let keyset: Keyset
    /// A gateway in development puts unsigned bundles in force, and its keyset lists no key that could sign one.
    private let needsSignatures: Bool
    private(set) var differences: [String] = []
    /// Bundles with approvals that were looked at already: every start of one says the same.
    private var known: [PolicyDigest: Set<[BundleApproval]>] = [:]

    init(_ keyset: Keyset) {
        self.keyset = keyset
        needsSignatures = keyset.keys.contains { $0.purpose == .policy }
    }

    /// - Parameter policies: The archived bundles.
    mutating func look(
        at entry: TrailEntry, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        let (digest, approvals): (PolicyDigest, [BundleApproval])
        switch entry.kind {
        case .start:
            let start: StartEntry = try entry.knownBody()
            (digest, approvals) = (start.policy, start.approvals)
        case .policy:
            let policy: PolicyEntry = try entry.knownBody()
            (digest, approvals) = (policy.policy, policy.approvals)
        default: return
        }
        guard needsSignatures || !approvals.isEmpty, known[digest, default: []].insert(approvals).inserted
        else { return }
        let believed = Dictionary(
            keyset.believed(.policy).map { ($0.id, $0.publicKey) }, uniquingKeysWith: { first, _ in first })
        // A missing archive is a difference of its own.
        let bundle = try policies(digest)?.bundle
        var signed: Set<ApprovalRole> = []
        for approval in approvals {
            guard let id = Keyset.Key.shortID(approval.key), let publicKey = believed[id] else {
                differences.append(
                    "entry \(entry.index) has a bundle approved by `\(approval.key)`, which the keyset does not have as genuine"
                )
                continue
            }
            guard let bundle, let role = approval.role.known(ApprovalRole.self) else { continue }
            let text = PolicySignature.Statement(role, of: bundle).text
            if let signature = approval.signature.flatMap({ Base64.decode($0) }),
                let key = try? Ed25519PublicKey(rawBytes: publicKey),
                key.isValid(signature: signature, for: text)
            {
                signed.insert(role)
            } else {
                differences.append(
                    "entry \(entry.index) says that `\(approval.key)` approved its bundle as `\(role.rawValue)`, and has no signature by that key over it"
                )
            }
        }
        guard needsSignatures, bundle != nil else { return }
        for role in ApprovalRole.allCases
        where !signed.contains(role) && !approvals.contains(where: { $0.role == Code(role) }) {
            differences.append(
                "entry \(entry.index) puts a bundle in force that nobody approved as `\(role.rawValue)`")
        }
    }
}
