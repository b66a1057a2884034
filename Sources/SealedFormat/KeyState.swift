/// The state of a key (NIST SP 800-57 Part 1 Rev. 5, section 7).
package enum KeyState: String, CaseIterable, Sendable, Hashable {
    /// Registered, not used yet: for a device key, possession is not proved.
    case preActivation = "pre_activation"
    /// Protects new data, and opens or verifies old data.
    case active
    /// May be compromised, and out of use until that is known; may become active again.
    case suspended
    /// Opens or verifies what it once protected, and protects nothing new.
    case deactivated
    /// The private half may be known to others than its holder. Never trusted again.
    case compromised
    /// The material is gone; id, dates and history stay.
    case destroyed
}
