import CompliancePolicy
import GateVocabulary
import PolicyFiles

/// A bundle from its folder, as every command reads it.
enum PolicyLoading {
    /// - Parameter caller: Who may do everything, with `serve --dev` only: added to the bundle before it is read, so
    ///   that the digest and the archive have it.
    static func bundle(
        at folder: String, addingDevelopmentCaller caller: CallerName? = nil
    ) throws(PolicyProblems) -> PolicyBundle {
        var documents = try PolicyDirectory.read(at: folder)
        if documents[DevelopmentCaller.page] != nil {
            throw PolicyProblems([
                PolicyProblem(
                    file: DevelopmentCaller.page, message: "is a page that only `serve --dev` may add",
                    hint: "remove it: its caller may do everything")
            ])
        }
        if let caller { documents = DevelopmentCaller.adding(caller, to: documents) }
        return try PolicyBundle.read(documents: documents).get()
    }

    /// A bundle to decide by: read, checked, compiled and proved. Every way of putting one in force comes through here.
    static func policy(
        at folder: String, addingDevelopmentCaller caller: CallerName? = nil
    ) throws(PolicyProblems) -> CompiledPolicy {
        let policy = CompiledPolicy(try bundle(at: folder, addingDevelopmentCaller: caller))
        try PolicyProof.demand(policy)
        return policy
    }
}
