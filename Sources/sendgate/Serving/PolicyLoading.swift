import AuditTrail
import BundleModel
import CompliancePolicy
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import Logging
import PolicyFiles
import Synchronization

/// A bundle from its folder, as every command reads it.
enum PolicyLoading {
    /// - Parameter caller: Who may do everything, with `serve --dev` only: added to the bundle before it is read, so
    ///   that the digest and the archive have it.
    static func bundle(
        at folder: String, addingDevelopmentCaller caller: CallerName? = nil
    ) throws(PolicyDiagnostics) -> PolicyBundle {
        try PolicyDirectory.readBundle(
            at: folder, refusing: refused, addingDevelopmentCaller: caller, keptIn: kept)
    }

    /// The bundle in force, and the one that follows it.
    private static let kept = KeptBundles(countMax: 2)

    /// What pages may not say, besides what a bundle may not.
    private static func refused(_ pages: [String: PolicyNode]) -> [PolicyDiagnostic] {
        var diagnostics: [PolicyDiagnostic] = []
        if pages[DevelopmentCaller.page] != nil {
            diagnostics.append(
                PolicyDiagnostic(
                    file: DevelopmentCaller.page, message: "is a page that only `serve --dev` may add",
                    hint: "remove it: its caller may do everything"))
        }
        // Zone data is the machine's. A zone it does not know would silently be no zone, and the hours a law gives
        // would be read in the others alone.
        if case .list(let zones)? = pages["channels.yaml"]?["sms"]?["hours"]?["zones"]?.value {
            for zone in zones {
                guard case .text(let name) = zone.value, !LocalTime.isKnown(zone: name) else { continue }
                diagnostics.append(
                    PolicyDiagnostic(
                        file: "channels.yaml", at: zone.location,
                        "`sms.hours.zones` names `\(name)`, which is no zone of tzdata \(LocalTime.dataVersion)",
                        hint: "write an IANA zone such as America/New_York"))
            }
        }
        return diagnostics
    }

    /// The bundle a gateway may put in force: read, checked, signed by every role, compiled and proved. Every way of
    /// putting one in force comes through here.
    ///
    /// - Parameter isNext: Whether another one is in force, under which the gateway runs.
    static func configured(
        _ configuration: GatewayConfiguration, provedIn proofs: KeptProofs, isNext: Bool = false,
        logger: Logger
    ) throws(PolicyDiagnostics) -> PolicySource.Loaded {
        let policy = try signed(configuration)
        if isNext { try configuration.requireStart(under: policy) }
        try ProvedBundles.demand(policy, keptIn: proofs, progress: telling(logger))
        return PolicySource.Loaded(policy: policy, reviewedDigest: policy.bundle.reviewedDigest)
    }

    /// Tells the log how far a proof is.
    static func telling(_ logger: Logger) -> @Sendable (_ done: UInt64, _ total: UInt64) -> Void {
        let progress = Mutex(ProofProgress(from: .now))
        return { done, total in
            guard let line = progress.withLock({ $0.line(done, of: total, at: .now) }) else { return }
            logger.info("\(line)")
        }
    }

    /// The configured bundle without a proof, by which nothing may be decided but which caller may ask for what. Only a gateway in
    /// development asks for no signatures.
    static func signed(_ configuration: GatewayConfiguration) throws(PolicyDiagnostics) -> CompiledPolicy {
        let folder = configuration.policiesDirectory
        try refuseOpenPages(of: folder)
        let bundle = try bundle(at: folder, addingDevelopmentCaller: configuration.developmentCaller)
        var approvals: [Approval] = []
        if let signing = configuration.policySigning {
            approvals = try PolicySignature.verify(bundle, in: folder, by: signing.keys)
        } else if !configuration.isDevelopment {
            preconditionFailure("a configuration for production without keys that sign the bundle")
        }
        return CompiledPolicy(bundle, approvals: approvals)
    }

    /// Refuses a bundle that every user may write: every user could put it in force.
    private static func refuseOpenPages(of folder: String) throws(PolicyDiagnostics) {
        let open = WritePermissions.offences(in: folder, S_IWOTH).map(\.path)
        guard !open.isEmpty else { return }
        throw PolicyDiagnostics(
            open.prefix(8).map { path in
                PolicyDiagnostic(
                    file: path, message: "may be written by everybody",
                    hint: "run `chmod o-w \(path)`, and look at what was written there")
            })
    }

    /// What is wrong with putting a bundle in force now: its day has not come, or what it says has not been looked at
    /// when it should have been. It was reviewed and proved for the law from its own day on.
    static func untimeliness(of bundle: PolicyBundle, at now: Instant) -> [PolicyDiagnostic] {
        var diagnostics = bundle.lapsedReviews(at: now)
        if bundle.effectiveFrom.instant > now {
            diagnostics.insert(
                PolicyDiagnostic(
                    file: "bundle.yaml", at: bundle.location("bundle.yaml", ["effective_from"]),
                    "`effective_from` is \(bundle.effectiveFrom), and that day has not come (it is \(now.rfc3339))",
                    hint: "put it in force on that day, and keep the one before in the folder until then"),
                at: 0)
        }
        return diagnostics
    }
}
