package import GateVocabulary

/// What a route asks of its caller.
package enum Permission: Hashable, Sendable {
    /// No grant: for any process that can connect, such as the operating system's supervisors.
    case anybody
    /// No grant: for any caller that the configuration names.
    case anyCaller
    /// At least one of these grants.
    case oneOf([Grant])

    /// - Parameter holds: Whether the attested caller has a grant.
    package func isSatisfied(by holds: (Grant) -> Bool) -> Bool {
        switch self {
        case .anybody, .anyCaller: true
        case .oneOf(let grants): grants.contains(where: holds)
        }
    }

    package var needsCaller: Bool { self != .anybody }
}

/// A grant that a request needs besides its route's, because of what it asks.
package struct ConditionalGrant: Hashable, Sendable {
    package var grant: Grant
    /// Completes "needed …".
    package var when: String

    package init(_ grant: Grant, when: String) {
        self.grant = grant
        self.when = when
    }
}
