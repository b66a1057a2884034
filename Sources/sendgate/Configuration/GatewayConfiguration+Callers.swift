import BundleModel
import CompliancePolicy
import ConfigurationPages
import GateVocabulary

extension GatewayConfiguration {
    /// Holds every caller that is bound to a user, a group or a socket against the bundle.
    ///
    /// A caller that the bundle does not know may do nothing: its sends would be refused one by one, each with an entry,
    /// and a misspelled name would be found out in production.
    ///
    /// - Throws: ``ConfigurationDiagnostics`` naming each with its line.
    func requireCallers(in policy: CompiledPolicy) throws {
        let bound = Set(callers.map(\.caller) + listeners.compactMap(\.caller))
        let known = policy.bundle.callers.keys.map(\.text)
        let diagnostics = bound.filter { policy.caller($0) == nil }.sorted { $0.text < $1.text }.map {
            caller in
            ConfigurationDiagnostic(
                "the bundle knows no caller `\(caller)`", at: callerPlaces[caller],
                hint: NearestName.to(caller.text, among: known).map { "did you mean `\($0)`?" }
                    ?? "`callers.yaml` has \(known.sorted().joined(separator: ", "))")
        }
        guard diagnostics.isEmpty else { throw ConfigurationDiagnostics(diagnostics) }
    }
}
