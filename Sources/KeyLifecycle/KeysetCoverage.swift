package import GateVocabulary
package import SealedFormat

extension Keyset.Key {
    /// A key of the gateway's own, as the authority lists it.
    ///
    /// - Returns: `nil` for a purpose that is not listed, and for an id that is not `[prefix-]purpose-16 hex digits`.
    package init?(_ key: GatewayKey) {
        guard let purpose = Keyset.Purpose(key.purpose), let publicKey = key.publicKey,
            let id = Self.shortID(key.id)
        else { return nil }
        self.init(purpose: purpose, id: id, state: key.state, publicKey: publicKey)
    }

    /// The last 16 digits of a key's id: the part that is made of the public key.
    package static func shortID(_ id: String) -> String? {
        guard let last = id.split(separator: "-").last.map(String.init), last.utf8.count == 16,
            IdentifierText.bytes(hexadecimal: last) != nil
        else { return nil }
        return last
    }
}

extension Keyset.Purpose {
    /// - Returns: `nil` for a purpose whose keys apps and auditors do not verify with.
    package init?(_ purpose: KeyPurpose) {
        switch purpose {
        case .origin: self = .origin
        case .policy: self = .policy
        case .trail: self = .trail
        case .authority, .data, .index, .link, .root: return nil
        }
    }
}

extension Keyset {
    /// Whether apps and auditors that have this keyset accept what the key signs. Always true for a purpose that keysets do not
    /// list.
    package func vouches(for key: GatewayKey) -> Bool {
        guard let purpose = Purpose(key.purpose) else { return true }
        return believed(purpose).contains { $0.publicKey == key.publicKey }
    }

    /// The first active key whose signatures apps and auditors with this keyset would not accept.
    package func unlisted(of keyring: Keyring) -> GatewayKey? {
        [KeyPurpose.origin, .trail].lazy.compactMap { keyring.active($0) }.first { !vouches(for: $0) }
    }
}
