import BundleModel
package import CompliancePolicy
package import GateVocabulary

extension CompiledPolicy {
    /// The rules of the bundle, each once, with a request that shows it.
    package func rules(asking critical: [Bool] = [false, true]) -> [CompiledRule: AttestedRequest] {
        var found: [CompiledRule: AttestedRequest] = [:]
        let names = bundle.callers.keys.sorted() + [.gateway, CallerName("nobody")]
        for type in types {
            for caller in names {
                for channel in Channel.allCases {
                    for critical in critical {
                        let request = AttestedRequest(
                            caller: caller, type: type.id, channel: channel, critical: critical)
                        let compiled = rule(for: request)
                        if found[compiled] == nil { found[compiled] = request }
                    }
                }
            }
        }
        return found
    }
}
