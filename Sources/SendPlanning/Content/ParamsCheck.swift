package import BundleModel
package import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary

/// Whether the params and the link fit their type, and where they do not.
package struct ParamsCheck: Hashable, Sendable {
    /// The params in the form in which they are composed, compared and kept; `nil` where something is wrong with them.
    package let params: CheckedParams?
    /// Each with its sentence, for the answer to the producer. Never a value.
    package let violations: [ParamsViolation]

    /// - Parameter deepLink: The send's own; the type's default is no caller's to choose.
    package init(
        _ params: JSONObject, deepLink: String? = nil, of type: TypeID, under policy: CompiledPolicy
    ) {
        switch policy.check(params, deepLink: deepLink, of: type) {
        case .success(let checked): (self.params, violations) = (checked, [])
        case .failure(let misfit): (self.params, violations) = (nil, misfit.violations)
        }
    }

    package var fact: ParamsFact { violations.isEmpty ? .valid : .invalid }

    /// Pointers recorded; the rest would say nothing new.
    package static let recordedCountMax = JSONPointer.countMax

    /// What the trail keeps: pointers as far as the registry knows their names, each once.
    ///
    /// A name the type does not have was chosen by the caller and may be personal; a pointer ends before
    /// it, and an unknown param is all of `/params`.
    package func recorded(for type: TypeID, under policy: CompiledPolicy) -> [JSONPointer] {
        guard !violations.isEmpty else { return [] }
        let known = policy.type(type)?.params ?? [:]
        var pointers: [JSONPointer] = []
        for violation in violations {
            var tokens: [String] = []
            for (depth, token) in violation.pointer.tokens.enumerated() {
                let isOurs =
                    switch depth {
                    case 0: token == "params" || token == "deep_link"
                    case 1: known[token] != nil
                    default: token == "minor" || token == "currency"
                    }
                guard isOurs else { break }
                tokens.append(token)
            }
            let pointer = JSONPointer(tokens)
            if !pointers.contains(pointer) { pointers.append(pointer) }
            if pointers.count == Self.recordedCountMax { break }
        }
        return pointers.sorted { CodeUnits.precedes($0.text, $1.text) }
    }
}
