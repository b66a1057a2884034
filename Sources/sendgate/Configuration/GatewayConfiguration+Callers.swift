import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import GateSteps
import GateVocabulary
import GatewayPipeline

extension GatewayConfiguration {
    /// Holds every caller that is bound to a user, a group or a socket against the bundle.
    ///
    /// A caller that the bundle does not know may do nothing: its sends would be refused one by one, each with an entry,
    /// and a misspelled name would be found out in production.
    ///
    /// - Throws: ``ConfigurationDiagnostics`` naming each with its line.
    func requireCallers(in policy: CompiledPolicy) throws(ConfigurationDiagnostics) {
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
        try requireShadow(under: policy)
    }

    /// Holds a bundle that is to come into force against the configuration, in the words with which a start under it would end: what
    /// is enforced and who may write are the bundle's, and the listeners are not read again with it.
    func requireStart(under policy: CompiledPolicy) throws(PolicyDiagnostics) {
        do throws(ConfigurationDiagnostics) {
            // In development each start makes the sockets of the bundle's callers.
            if isDevelopment { try requireShadow(under: policy) } else { try requireCallers(in: policy) }
        } catch {
            throw PolicyDiagnostics(
                error.diagnostics.map {
                    PolicyDiagnostic(file: $0.place ?? "callers.yaml", message: $0.message, hint: $0.hint)
                })
        }
    }

    /// Refuses a start that would write real messages into a file, and say of each that it was handed over: those that wait from
    /// before every listener was in shadow. The gateway's own notices are not among them; summaries of real messages are.
    func requireNothingWaits(_ depth: OutboxDepth) throws {
        guard case .file(let path) = hop, !isDevelopment else { return }
        let own = depth.rowCountByCaller[.gateway] ?? 0
        let count = own == depth.rowCount ? own - depth.securityRowCount : depth.rowCount - own
        guard count > 0 else { return }
        throw CommandFailure(
            "\(count) \(count == 1 ? "message waits" : "messages wait") to be handed over, and the hop is the file `\(path)`, which delivers nothing",
            hint:
                "start once more with the `hop.unix` of before until none waits (`sendgate status`), or cancel them; then set `hop.file`"
        )
    }

    /// Refuses a listener in shadow that a caller with a grant to write may use, or that enforces what the bundle does not know.
    ///
    /// Who copies sends there is a second path into the gateway, which nobody waits for and nobody watches: it must not be
    /// able to change what the real one decides.
    private func requireShadow(under policy: CompiledPolicy) throws(ConfigurationDiagnostics) {
        var diagnostics: [ConfigurationDiagnostic] = []
        for listener in listeners {
            guard case .shadow(let enforced) = listener.sends else { continue }
            // A listener that is bound to nobody is everybody's.
            let users = Set(listener.caller.map { [$0] } ?? callers.map(\.caller))
            for caller in users.sorted(by: { $0.text < $1.text }) {
                let grants = Grant.allCases.filter { $0.isToWrite && policy.grants(of: caller).contains($0) }
                guard !grants.isEmpty else { continue }
                let names = grants.map { "`\($0.rawValue)`" }.joined(separator: ", ")
                diagnostics.append(
                    ConfigurationDiagnostic(
                        "`\(listener.name)` is in shadow, and its caller `\(caller)` holds \(names)",
                        at: listener.place,
                        hint: listener.caller == nil
                            ? "bind it to one caller that only sends, with `caller` and `users`"
                            : "give what copies sends a caller of its own in `callers.yaml`, with `send` alone"
                    ))
            }
            for type in enforced.types.sorted() where policy.type(type) == nil {
                diagnostics.append(
                    ConfigurationDiagnostic(
                        "the bundle knows no type `\(type)`", at: listener.enforcedPlaces[type.text],
                        hint: NearestName.to(type.text, among: policy.bundle.types.keys.map(\.text)).map {
                            "did you mean `\($0)`?"
                        } ?? "`sendgate policy check` lists them"))
            }
            for caller in enforced.callers.sorted(by: { $0.text < $1.text }) where !users.contains(caller) {
                diagnostics.append(
                    ConfigurationDiagnostic(
                        "no sends of `\(caller)` come over `\(listener.name)`",
                        at: listener.enforcedPlaces[caller.text],
                        hint: "name callers that are bound to it"))
            }
        }
        guard diagnostics.isEmpty else { throw ConfigurationDiagnostics(diagnostics) }
    }
}
