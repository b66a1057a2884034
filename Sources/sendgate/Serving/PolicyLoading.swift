import AuditTrail
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import PolicyFiles

/// A bundle from its folder, as every command reads it.
enum PolicyLoading {
    /// - Parameter caller: Who may do everything, with `serve --dev` only: added to the bundle before it is read, so
    ///   that the digest and the archive have it.
    static func bundle(
        at folder: String, addingDevelopmentCaller caller: CallerName? = nil
    ) throws(PolicyProblems) -> PolicyBundle {
        try PolicyDirectory.readBundle(at: folder) { pages throws(PolicyProblems) in
            if pages[DevelopmentCaller.page] != nil {
                throw PolicyProblems([
                    PolicyProblem(
                        file: DevelopmentCaller.page, message: "is a page that only `serve --dev` may add",
                        hint: "remove it: its caller may do everything")
                ])
            }
            return caller.map { DevelopmentCaller.adding($0, to: pages) } ?? pages
        }
    }

    /// The bundle a gateway may put in force, as its configuration asks for it.
    static func configured(_ configuration: GatewayConfiguration) throws(PolicyProblems)
        -> PolicySource.Loaded
    {
        let folder = configuration.policiesDirectory
        let bundle = try bundle(at: folder, addingDevelopmentCaller: configuration.developmentCaller)
        let reviewed = reviewedDigest(of: bundle)
        if let signing = configuration.policySigning {
            try PolicySignature.verify(
                PolicySignature.Statement(of: bundle, digest: reviewed), in: folder, by: signing.keys)
        }
        return PolicySource.Loaded(policy: CompiledPolicy(bundle), reviewedDigest: reviewed)
    }

    /// Signing is about the pages as they lie there, whatever development adds to them.
    static func reviewedDigest(of bundle: PolicyBundle) -> PolicyDigest {
        bundle.developmentCaller == nil
            ? bundle.digest : PolicyBundle.digest(of: DevelopmentCaller.removed(from: bundle.documents))
    }
}
