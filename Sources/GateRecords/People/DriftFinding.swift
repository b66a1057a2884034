package import GateVocabulary

/// What the provider of notifications has a device subscribed to, as the caller that asked it reported.
package struct ProviderSubscriptions: Hashable, Sendable {
    /// Whether the device is subscribed, by category; a category that is not in it was not reported.
    package var states: [Category: Bool]
    package var observedAt: Instant

    package init(states: [Category: Bool], observedAt: Instant) {
        self.states = states
        self.observedAt = observedAt
    }
}

/// One drift of a person that the newest audit found, and what was done about it.
package struct DriftFinding: Hashable, Sendable {
    package var kind: DriftKind
    /// Never `resolved`: one that is no more is not kept.
    package var action: DriftAction
    /// `nil` for one of the account.
    package var device: Tag?
    package var category: Category?
    /// What was on record, a name of a closed list.
    package var old: String
    /// What it was set to, or is to be set to by the provider; `nil` where nothing was set.
    package var new: String?

    package init(
        _ kind: DriftKind, _ action: DriftAction, device: Tag? = nil, category: Category? = nil, old: String,
        new: String? = nil
    ) {
        self.kind = kind
        self.action = action
        self.device = device
        self.category = category
        self.old = old
        self.new = new
    }

    /// Whether both are about the same thing, so that the later one replaces the earlier.
    package func isSameDrift(as other: DriftFinding) -> Bool {
        kind == other.kind && device == other.device && category == other.category
    }
}
