package import GateVocabulary
package import SealedFormat

/// The state of one of the gateway's own keys, as an entry of the trail says.
package struct RecordedKey: Sendable, Hashable {
    package var id: String
    package var purpose: KeyPurpose
    package var state: KeyState
    /// When it came into the state.
    package var at: Instant
    /// `nil` for a symmetric key, and where the entry does not say it.
    package var publicKey: [UInt8]?

    package init(id: String, purpose: KeyPurpose, state: KeyState, at: Instant, publicKey: [UInt8]?) {
        self.id = id
        self.purpose = purpose
        self.state = state
        self.at = at
        self.publicKey = publicKey
    }
}

extension Keyring {
    /// Takes a key's state over from the trail, for a keyring that is an older copy: what was recorded happened, so no
    /// rule of ``apply(_:to:because:by:at:isNeeded:isLoaded:)`` is asked.
    package mutating func take(_ recorded: RecordedKey) {
        var key =
            self[recorded.id]
            ?? GatewayKey(
                id: recorded.id, purpose: recorded.purpose, state: recorded.state, createdAt: recorded.at,
                changedAt: recorded.at, publicKey: recorded.publicKey)
        key.state = recorded.state
        key.changedAt = recorded.at
        key.publicKey = key.publicKey ?? recorded.publicKey
        key.proposed = nil
        // A key that was compromised and then destroyed stays known as compromised.
        if recorded.state == .compromised { key.isCompromised = true }
        replace(key)
    }
}
