package import SealedFormat

/// What can happen to a key.
package enum KeyEvent: String, CaseIterable, Sendable, Hashable {
    /// Possession is proved, or the security team approves: the key comes into use.
    case promote
    /// The key may be compromised, and is out of use until that is known.
    case suspend
    /// The suspicion was unfounded.
    case resume
    /// A newer key took its place, or its holder no longer needs it.
    case deactivate
    /// The private half is or may be known to others than its holder.
    case revoke
    /// The key material is removed for good.
    case destroy

    /// As a caller asks for it: a key is ended by one request, whose cause decides which event it is.
    var requestText: String {
        switch self {
        case .promote, .suspend, .resume, .destroy: "`\(rawValue)`"
        case .deactivate: "`revoke` with the cause `lost` or `retired`"
        case .revoke: "`revoke` with the cause `compromised`"
        }
    }
}

/// A transition the states do not allow.
package struct KeyTransitionRefused: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    package var state: KeyState
    package var event: KeyEvent

    package var message: String {
        let refused = "a key that is `\(state.rawValue)` cannot be the subject of \(event.requestText)"
        return hint.map { "\(refused); \($0)" } ?? refused
    }

    private var hint: String? {
        switch (state, event) {
        case (.suspended, .promote): "`resume` ends a suspension"
        case (.active, .destroy), (.suspended, .destroy): "`revoke` it first, or promote its successor"
        case (.preActivation, .suspend), (.preActivation, .deactivate):
            "it is not in use; `destroy` removes it"
        case (.compromised, .promote), (.compromised, .resume), (.deactivated, .promote),
            (.deactivated, .resume):
            "add a new key and promote that"
        default: nil
        }
    }
}

extension KeyState {
    /// The state after an event: a pure table, so that every store and every test agrees.
    ///
    /// A rotation is: add → promote the new key → deactivate the old one → destroy the old one. The only way out of
    /// `compromised` is `destroy`, and there is no way out of `destroyed`.
    package func after(_ event: KeyEvent) throws(KeyTransitionRefused) -> KeyState {
        switch (self, event) {
        case (.preActivation, .promote), (.suspended, .resume): .active
        case (.active, .suspend): .suspended
        case (.active, .deactivate), (.suspended, .deactivate): .deactivated
        case (.preActivation, .revoke), (.active, .revoke), (.suspended, .revoke), (.deactivated, .revoke):
            .compromised
        case (.preActivation, .destroy), (.deactivated, .destroy), (.compromised, .destroy): .destroyed
        default: throw KeyTransitionRefused(state: self, event: event)
        }
    }
}
