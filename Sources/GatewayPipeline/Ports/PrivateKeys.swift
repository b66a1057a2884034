package import GateVocabulary
package import KeyLifecycle

/// Keeps private keys and uses them.
///
/// The keyring in the store says which key is in use; an implementation only follows it.
package protocol PrivateKeys: Sendable {
    /// Throws `KeyringRefusal` where the gateway must not make a key of the purpose, because of where its like is kept.
    /// Asked before a key is made, and by a dry run of it.
    func requirePlace(for purpose: KeyPurpose) throws(KeyringRefusal)

    /// Makes a key. Durable when it returns, and not yet in use.
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey

    /// Whether the private half of a key is there to be used, now and after a start: in memory, and where a start reads it.
    func isLoaded(_ id: String) -> Bool

    /// Throws unless an event of a key can be followed now, which is tried and not guessed: private halves are written and
    /// destroyed where it asks for that (see `GatewayKey.isFollowedByWriting(_:)`), and a key that comes into use signs.
    ///
    /// Asked before the change is recorded, and by a dry run of it, on any thread. What is tried leaves nothing behind.
    func requireReady(for event: KeyEvent, of key: GatewayKey) throws

    /// Uses the keys as a committed keyring has them: signs with those that are active, has the active root key wrap the
    /// others, and destroys the private halves of those that are destroyed. Idempotent.
    ///
    /// When it throws, everything that needs no writing is in force all the same. The next call tries to write the rest again.
    func follow(_ keyring: Keyring) throws

    /// Whether all is as this key of the keyring that was followed last asks: no file of one that is destroyed, the active root
    /// key wraps every other, and the active trail key signs.
    func isFollowed(_ key: GatewayKey) -> Bool

    /// Destroys the private half of a key that was made and is in no keyring. Idempotent.
    func erase(_ key: GatewayKey) throws
}
