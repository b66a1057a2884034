/// Where a key stands in its life (NIST SP 800-57 Part 1 Rev. 5, section 7).
package enum KeyState: String, CaseIterable, Sendable, Hashable {
    /// Registered, not used yet: for a device key, possession is not proved.
    case preActivation = "pre_activation"
    /// Protects new things and reads old ones.
    case active
    /// Set aside while somebody looks into it; may come back.
    case suspended
    /// Reads what it once protected, protects nothing new.
    case deactivated
    /// Somebody else may hold it. Never trusted again.
    case compromised
    /// The material is gone; id, dates and history stay.
    case destroyed

    /// Whether something new may be sealed, signed or encrypted with it.
    package var mayProtect: Bool { self == .active }

    /// Whether what it protected earlier may still be opened or verified with it.
    package var mayProcess: Bool { self == .active || self == .suspended || self == .deactivated }
}
