import BundleModel
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import PolicyProof
import Synchronization

/// The proof of a bundle, on every processor there is.
enum ProvedBundles {
    static func run(
        of policy: CompiledPolicy, grain: BundleProof.Grain,
        progress: @escaping @Sendable (_ done: UInt64, _ total: UInt64) -> Void = { _, _ in }
    ) -> ProofReport {
        BundleProof(of: policy, grain: grain).run(
            on: { count, body in
                BackgroundThread.perform(count, named: "proof", body)
            }, progress: progress)
    }

    /// How much is told apart. A debug build decides a hundred times slower; it folds further, so that a gateway of a
    /// first hour still starts at once.
    static var grain: BundleProof.Grain {
        #if DEBUG
            .effects
        #else
            .reasons
        #endif
    }

    /// Bundles that held, by digest: equal digests are equal pages, and a proof has no other argument. Bounded by how
    /// often one process loads a changed bundle.
    private static let held = Mutex<Set<PolicyDigest>>([])

    /// Whether the bundle needs no proof any more.
    static func holds(_ policy: CompiledPolicy, keptIn kept: KeptProofs) -> Bool {
        held.withLock { $0.contains(policy.digest) } || kept.contains(policy.digest, grain: grain)
    }

    /// - Parameters:
    ///   - kept: Proofs of earlier starts, which count as this one's.
    ///   - progress: As of ``run(of:grain:progress:)``; not called where the bundle was proved before.
    /// - Throws: Every flaw of the pages and every broken statute; nothing may decide by such a bundle.
    static func demand(
        _ policy: CompiledPolicy, keptIn kept: KeptProofs? = nil,
        progress: @escaping @Sendable (_ done: UInt64, _ total: UInt64) -> Void = { _, _ in }
    ) throws(PolicyDiagnostics) {
        if held.withLock({ $0.contains(policy.digest) }) { return }
        if kept?.contains(policy.digest, grain: grain) != true {
            let report = run(of: policy, grain: grain, progress: progress)
            let diagnostics = report.flaws + report.refutations.map(\.diagnostic)
            guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
            kept?.add(policy.digest, grain: grain)
        }
        held.withLock { _ = $0.insert(policy.digest) }
    }
}
