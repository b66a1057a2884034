package import GateVocabulary
package import KeyLifecycle

/// Keeps private keys and uses them.
///
/// The keyring in the store says which key is in use; an implementation only follows it.
package protocol PrivateKeys: Sendable {
    /// Makes a key. Durable when it returns, and not yet in use.
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey

    /// Whether the private half of a key is there to be used.
    func isLoaded(_ id: String) -> Bool

    /// Uses the keys as a committed keyring has them: signs with those that are active. Idempotent.
    func follow(_ keyring: Keyring) throws

    /// Destroys the private half of a key that the keyring has destroyed. Idempotent.
    func erase(_ key: GatewayKey) throws
}
