package import GateSteps
package import OpenSSLCrypto
package import PayloadSealing

/// The gateway's own keys, as the engine uses them. Loaded by `KeyFiles`; private parts never leave memory.
package struct GateKeys: Sendable {
    /// Signs the content inside every envelope.
    package var origin: OriginSigner
    /// See ``IndexKey``.
    package var index: HMACKey
    /// Authenticate unsubscribe links.
    package var links: LinkKeys

    package init(origin: OriginSigner, index: HMACKey, links: LinkKeys) {
        self.origin = origin
        self.index = index
        self.links = links
    }
}
