package import GateSteps
package import KeyLifecycle
package import OpenSSLCrypto
import Synchronization

/// The gateway's own keys, as the engine uses them. Private parts never leave memory.
///
/// Rotated while sends go on: an envelope is signed by the origin key that is in use when it is sealed.
package final class GateKeys: Sendable {
    /// See ``IndexKey``.
    package let index: HMACKey
    private let state: Mutex<State>

    private struct State {
        var keyring: Keyring
        var origin: OriginSigner?
        var links: LinkKeys
    }

    /// - Parameters:
    ///   - origin: Signs every push, inside the seal or in the open; `nil` while none is in use, and no push goes out then.
    ///   - links: Authenticate unsubscribe links.
    ///   - keyring: Every key there is and was.
    package init(
        origin: OriginSigner?, index: HMACKey, links: LinkKeys, keyring: Keyring = Keyring()
    ) {
        self.index = index
        state = Mutex(State(keyring: keyring, origin: origin, links: links))
    }

    package var keyring: Keyring { state.withLock { $0.keyring } }

    /// The signer of what is sealed now.
    ///
    /// - Throws: ``NoOriginKey``.
    package func origin() throws -> OriginSigner {
        guard let origin = state.withLock({ $0.origin }) else { throw NoOriginKey() }
        return origin
    }

    package var links: LinkKeys { state.withLock { $0.links } }

    /// Follows a keyring change that was committed.
    package func replace(with keyring: Keyring, origin: OriginSigner?, links: LinkKeys) {
        state.withLock { $0 = State(keyring: keyring, origin: origin, links: links) }
    }
}

/// No origin key is active: it was suspended or revoked, and no other was promoted. Nothing can be sealed that a
/// phone would believe.
package struct NoOriginKey: Error, CustomStringConvertible {
    package init() {}

    package var description: String {
        "no origin key is in use; `sendgate keys resume` or `sendgate keys rotate origin` brings one into use"
    }
}
