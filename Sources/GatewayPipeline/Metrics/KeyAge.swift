package import GateVocabulary
package import KeyLifecycle

/// When a key of the gateway's own is due to be replaced.
package enum KeyAge {
    /// Purposes whose keys are replaced in time. `index` never is, because people are found under it, and `root` changes in
    /// the key directory, where nothing tells of it.
    package static let watched = Keyring.rotating

    /// How long a key may be in use, in seconds: a year. NIST SP 800-57 Part 1 Rev. 5, table 1, allows a private signature
    /// key one to three years and a symmetric data-encryption key up to two.
    package static let secondsMax: Int64 = 365 * 86_400

    /// How long the active key of a purpose has been active, in seconds; `nil` where none is.
    package static func seconds(of purpose: KeyPurpose, in keyring: Keyring, at now: Instant) -> Int64? {
        keyring.active(purpose).map { max(0, now.seconds - $0.changedAt.seconds) }
    }
}
