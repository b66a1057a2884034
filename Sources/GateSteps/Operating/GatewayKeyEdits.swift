package import GateRecords
package import GateVocabulary
package import KeyLifecycle
import SealedFormat
import WireProtocol

/// The gateway's own keys: the changes that a caller may ask for, and the keys that a start finds.
extension StepContext {
    /// The result of a request about one key.
    package struct GatewayKeyChange {
        package var keyring: Keyring
        /// The key that was named, as it is now.
        package var key: GatewayKey
        package var trail: EntryReference
    }

    /// Adds a key to the keyring whose private half was just made and is durable.
    package func addGatewayKey(
        _ key: GatewayKey, replacing predecessor: String?, by caller: CallerName, at now: Instant
    ) throws -> GatewayKeyChange {
        var keyring = try memory.keyring() ?? Keyring()
        let added = try refusing { () throws(KeyringRefusal) in
            try keyring.add(key, replacing: predecessor)
        }
        return try adopt([added], in: keyring, by: caller, at: now)
    }

    /// Changes the state of a key, with one entry for each key that changes.
    ///
    /// - Parameters:
    ///   - isLoaded: Whether the private half of a key is there.
    ///   - requireReady: Throws where the change cannot be followed. Called before anything is recorded, also for the first of
    ///     two callers.
    package func changeGatewayKey(
        _ id: String, _ event: KeyEvent, because cause: KeyCause, by caller: CallerName, at now: Instant,
        isLoaded: (String) -> Bool, requireReady: (GatewayKey) throws -> Void
    ) throws -> GatewayKeyChange {
        var keyring = try memory.keyring() ?? Keyring()
        let proposed = keyring[id]?.proposed
        let active = keyring.active(.data)?.id
        let isResealed = try memory.resealedDataKey() == active
        let transitions = try refusing { () throws(KeyringRefusal) in
            try keyring.apply(
                event, to: id, because: cause, by: caller, at: now, isNeeded: { _ in !isResealed },
                isLoaded: isLoaded)
        }
        if let key = keyring[id] {
            if let refusal = try memory.refusal(toUse: key) { throw refusal }
            try requireReady(key)
        }
        if let data = keyring.active(.data), data.id != active { memory.useDataKey(data.id) }
        return try adopt(transitions, in: keyring, by: caller, proposed: proposed, at: now)
    }

    private func refusing<Result>(_ body: () throws(KeyringRefusal) -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            if case .unknownKey = error { throw Problem(.notFound, detail: error.message) }
            throw Problem(.wrongState, detail: error.message)
        }
    }

    private func adopt(
        _ transitions: [KeyTransition], in keyring: Keyring, by caller: CallerName,
        proposed: GatewayKey.ProposedEvent? = nil, at now: Instant
    ) throws -> GatewayKeyChange {
        try memory.setKeyring(keyring)
        var newest: (key: GatewayKey, trail: EntryReference)?
        for transition in transitions {
            let entry = GatewayKeyEntry(
                change: RecordedKeyChange(transition), caller: caller,
                proposedBy: proposed.flatMap {
                    transition.event == .init($0.event) ? $0.proposal.caller : nil
                })
            newest = (transition.key, try record(entry, at: now))
        }
        guard let newest else { preconditionFailure("a change of the keyring that changes nothing") }
        return GatewayKeyChange(keyring: keyring, key: newest.key, trail: newest.trail)
    }

    /// Records the keys that a start found.
    ///
    /// - Returns: What changed, as the entry of the start has it; `nil` when nothing did.
    package func adoptKeys(_ found: [GatewayKey], at now: Instant) throws -> [RecordedKeyChange]? {
        var keyring = try memory.keyring() ?? Keyring()
        let transitions = keyring.adopt(found, at: now)
        // Until a data key is promoted, the one in the newest file counts as active: it seals rows from here on.
        if let data = keyring.active(.data) { memory.useDataKey(data.id) }
        guard !transitions.isEmpty else { return nil }
        try memory.setKeyring(keyring)
        return transitions.map { RecordedKeyChange($0) }
    }

    /// Records the data key that every stored row is sealed under.
    package func resealed(under key: String) throws {
        guard try memory.keyring()?.active(.data)?.id == key, try memory.resealedDataKey() != key else {
            return
        }
        try memory.setResealedDataKey(key)
    }
}

extension RecordedKeyChange {
    fileprivate init(_ transition: KeyTransition) {
        let key = transition.key
        self.init(
            key: key.id, purpose: Code(key.purpose), event: Code(transition.event), state: Code(key.state),
            cause: Code(transition.cause), publicKey: key.publicKey.map { Hexadecimal.encode($0) })
    }
}

extension RecordReading {
    /// - Returns: `nil` before the first start.
    package func keyring() throws -> Keyring? {
        try setting(KeySettings.keyring, orDamaged: "it holds no list of keys", Keyring.init(text:))
    }

    /// The data key that every stored row is known to be sealed under; `nil` when that is not known of any.
    package func resealedDataKey() throws -> String? { try setting(KeySettings.resealed) }
}

extension GateMemory {
    func setKeyring(_ keyring: Keyring) throws {
        setSetting(KeySettings.keyring, to: keyring.text)
    }

    fileprivate func setResealedDataKey(_ key: String) throws {
        setSetting(KeySettings.resealed, to: key)
    }
}

private enum KeySettings {
    static let keyring = "keyring"
    static let resealed = "resealed_data_key"
}
