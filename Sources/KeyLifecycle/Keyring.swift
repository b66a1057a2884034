import CanonicalJSON
package import GateVocabulary
package import SealedFormat

/// One of the gateway's own keys, without its secret.
package struct GatewayKey: Sendable, Hashable {
    /// `[dev-]purpose-16 hex digits`, never given twice.
    package var id: String
    package var purpose: KeyPurpose
    package var state: KeyState
    package var createdAt: Instant
    /// When it came into its state.
    package var changedAt: Instant
    /// The raw bytes; `nil` for a symmetric key.
    package var publicKey: [UInt8]?
    /// Whether the key was ever `compromised`; stays true after it was destroyed.
    package var isCompromised = false
    /// An event that one caller has asked for, and that happens when a second caller asks for it too.
    package var proposed: ProposedEvent?

    package struct Proposal: Sendable, Hashable {
        package var caller: CallerName
        package var at: Instant

        package init(caller: CallerName, at: Instant) {
            self.caller = caller
            self.at = at
        }

        /// How long a proposal waits for its second caller: an hour, in seconds.
        package static let seconds: Int64 = 3600

        package var expiresAt: Instant { at.advanced(bySeconds: Self.seconds) }

        /// Whether a second caller may ask now. A clock that stands before the proposal must not lengthen its hour.
        package func isOpen(at now: Instant) -> Bool { (at...expiresAt).contains(now) }
    }

    package struct ProposedEvent: Sendable, Hashable {
        package var event: KeyEvent
        package var proposal: Proposal

        package init(_ event: KeyEvent, by proposal: Proposal) {
            self.event = event
            self.proposal = proposal
        }
    }

    /// Whether two callers must ask for the event: for the destruction of any key, and for the promotion of a root key, which
    /// wraps every other symmetric key.
    package func needsTwoCallers(for event: KeyEvent) -> Bool {
        event == .destroy || (event == .promote && purpose == .root)
    }

    /// Whether key files change with the event: a destroyed key's are removed, and under another root key the others are
    /// wrapped anew. These are the events that two callers ask for, as neither can be taken back.
    package func isFollowedByWriting(_ event: KeyEvent) -> Bool { needsTwoCallers(for: event) }

    package init(
        id: String, purpose: KeyPurpose, state: KeyState, createdAt: Instant, changedAt: Instant,
        publicKey: [UInt8]?, proposed: ProposedEvent? = nil
    ) {
        self.id = id
        self.purpose = purpose
        self.state = state
        self.createdAt = createdAt
        self.changedAt = changedAt
        self.publicKey = publicKey
        self.proposed = proposed
    }
}

/// Why a key changed its state, as its entry says.
package enum KeyCause: String, CaseIterable, Sendable, Hashable {
    /// The private half may be known to others than its holder.
    case compromised
    /// The device, file or medium that held it is gone.
    case lost
    /// No longer needed.
    case retired
    /// A successor was promoted.
    case rotation
    /// A caller asked, and said no more.
    case request
    /// Its file was in the key directory when the gateway started.
    case found

    /// The event that ends a key for this cause.
    package var ending: KeyEvent { self == .compromised ? .revoke : .deactivate }
}

/// One key that changed its state.
package struct KeyTransition: Sendable, Hashable {
    package var key: GatewayKey
    package var event: Event
    package var cause: KeyCause

    /// What happened; a proposal leaves the state as it is.
    package enum Event: String, Sendable, Hashable {
        case add, promote, suspend, resume, deactivate, revoke, destroy
        case proposePromotion = "propose_promotion"
        case proposeDestruction = "propose_destruction"

        package init(_ event: KeyEvent) {
            switch event {
            case .promote: self = .promote
            case .suspend: self = .suspend
            case .resume: self = .resume
            case .deactivate: self = .deactivate
            case .revoke: self = .revoke
            case .destroy: self = .destroy
            }
        }

        fileprivate init(proposing event: KeyEvent) {
            self = event == .destroy ? .proposeDestruction : .proposePromotion
        }
    }

    package init(_ event: Event, _ key: GatewayKey, because cause: KeyCause) {
        self.key = key
        self.event = event
        self.cause = cause
    }
}

/// A change of the keyring that is not made.
package enum KeyringRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case unknownKey(String)
    case transition(KeyTransitionRefused)
    /// The gateway could not go on without this key, and no other key of the purpose is ready to replace it.
    case lastOfPurpose(KeyPurpose, KeyEvent)
    /// Another key of the purpose is in use already, or waits to be promoted.
    case another(id: String, state: KeyState)
    /// The key that a new one was to replace is not the one that it would replace (``Keyring/replaceable(_:)``).
    case superseded(String)
    /// Keys of the purpose change in another way.
    case changesElsewhere(KeyPurpose)
    /// The root key is in a place of its own, where a gateway puts no other.
    case rootIsElsewhere(path: String)
    /// Rows are still sealed under it.
    case stillNeeded(String)
    case secondCallerMissing(until: Instant)
    case tooManyKeys(KeyPurpose)
    /// The private half of the key is not there: its file is gone, or was when the gateway started.
    case notLoaded(GatewayKey)

    package var message: String {
        switch self {
        case .unknownKey(let id): "no key `\(id)` is known"
        case .transition(let refused): refused.message
        case .lastOfPurpose(let purpose, let event):
            "it is the \(purpose.rawValue) key in use, and \(event.requestText) would leave the gateway without one; add another and promote it first"
        case .another(let id, let state):
            "`\(id)` is `\(state.rawValue)` already; \(state == .preActivation ? "promote or destroy that one" : "it stays in use until another is promoted")"
        case .superseded(let id):
            "`\(id)` is not the key that a new one would replace, so nothing was made; `keys list` says which is in use or was last"
        case .changesElsewhere(.index):
            "people are found under the index key, so it never changes for a state directory"
        case .changesElsewhere(.policy):
            "policy keys are kept away from the gateway, which only pins their public halves in its configuration"
        case .changesElsewhere(.authority):
            "the authority's key is made and kept offline, with `sendgate keys authority init`; the gateway only pins its public half"
        case .changesElsewhere(let purpose): "the \(purpose.rawValue) key does not change here"
        case .rootIsElsewhere(let path):
            "the root key is kept as `\(path)` (`root_key`), and a gateway would leave its successor beside the keys that it opens; nothing was made. To change it, stop the gateway, move that file into the key directory as ROOT-KEY-ID.key, start without `root_key`, rotate, and move the new file to the place that `root_key` names"
        case .stillNeeded(let id):
            "rows are still sealed under `\(id)`, or it is not known that none is; `keys lagging` counts them"
        case .secondCallerMissing(let until):
            "the same caller asked before; another must ask too, by \(until.rfc3339)"
        case .tooManyKeys(let purpose):
            "there are \(Keyring.keyCountMax) \(purpose.rawValue) keys; destroy those that nothing needs"
        case .notLoaded(let key):
            "the \(key.purpose.rawValue) key `\(key.id)` (\(key.purpose.use)) cannot come into use, because its file is not there as it was made, or was not at the start; nothing was recorded; put `\(key.id).key` back and start again, or \(key.state == .preActivation ? "destroy" : "revoke") the key and add another"
        }
    }
}

/// The gateway's own keys with their states, as a value. Each change returns the transitions that it made, which become entries of
/// the trail.
///
///     add → promote (its predecessor: deactivate) → destroy
///
/// At most one key of a purpose is active. An event that would leave a purpose without an active key is refused, except for
/// `origin`: a stolen origin key must be stopped at once, and without one only sealing and signing of pushes stop.
package struct Keyring: Sendable, Hashable {
    /// In the order in which they were added.
    package private(set) var keys: [GatewayKey]

    /// Keys of one purpose that are not destroyed.
    package static let keyCountMax = 64
    /// Destroyed ones of a purpose that are remembered; the trail remembers all.
    package static let destroyedKeyCountMax = 256

    package init(keys: [GatewayKey] = []) { self.keys = keys }

    package subscript(_ id: String) -> GatewayKey? { keys.first { $0.id == id } }

    package func active(_ purpose: KeyPurpose) -> GatewayKey? {
        keys.first { $0.purpose == purpose && $0.state == .active }
    }

    /// The key that a new one of the purpose replaces: the one in use or, where none is, the newest that does not wait.
    package func replaceable(_ purpose: KeyPurpose) -> GatewayKey? {
        active(purpose) ?? keys.last { $0.purpose == purpose && $0.state != .preActivation }
    }

    /// Purposes whose keys change while the gateway runs.
    package static let rotating: [KeyPurpose] = [.root, .origin, .trail, .data, .link]

    // MARK: Changes

    /// Takes in a key that was just made.
    ///
    /// - Parameter predecessor: See ``requireRoom(for:replacing:)``.
    package mutating func add(
        _ key: GatewayKey, replacing predecessor: String? = nil
    ) throws(KeyringRefusal) -> KeyTransition {
        try requireRoom(for: key.purpose, replacing: predecessor)
        let destroyed = keys.filter { $0.purpose == key.purpose && $0.state == .destroyed }
        if destroyed.count >= Self.destroyedKeyCountMax, let oldest = destroyed.first {
            keys.removeAll { $0.id == oldest.id }
        }
        keys.append(key)
        return KeyTransition(.add, key, because: .request)
    }

    /// Throws unless a key of this purpose could be added now. While one waits to be promoted, another is refused.
    ///
    /// - Parameter predecessor: The key that has to be ``replaceable(_:)``, so that of two rotations at once the second makes no
    ///   key; `nil` where any may be.
    package func requireRoom(
        for purpose: KeyPurpose, replacing predecessor: String?
    ) throws(KeyringRefusal) {
        guard Self.rotating.contains(purpose) else { throw .changesElsewhere(purpose) }
        if let predecessor, replaceable(purpose)?.id != predecessor { throw .superseded(predecessor) }
        if let waiting = keys.first(where: { $0.purpose == purpose && $0.state == .preActivation }) {
            throw .another(id: waiting.id, state: waiting.state)
        }
        guard keys.count(where: { $0.purpose == purpose && $0.state != .destroyed }) < Self.keyCountMax else {
            throw .tooManyKeys(purpose)
        }
    }

    /// Applies an event to a key, and to others what follows from it: a promotion deactivates the active key.
    ///
    /// - Parameter caller: Who asks; see ``GatewayKey/needsTwoCallers(for:)``.
    /// - Parameter isNeeded: Whether rows may still be sealed under a data key.
    /// - Parameter isLoaded: Whether the private half of a key is there. Without it the key does not come into use: the next
    ///   start would refuse (``missing(from:)``).
    /// - Returns: What happened, in order; the last is of the key that was named.
    package mutating func apply(
        _ event: KeyEvent, to id: String, because cause: KeyCause, by caller: CallerName, at now: Instant,
        isNeeded: (String) -> Bool = { _ in false }, isLoaded: (String) -> Bool = { _ in true }
    ) throws(KeyringRefusal) -> [KeyTransition] {
        guard let place = keys.firstIndex(where: { $0.id == id }) else { throw .unknownKey(id) }
        var key = keys[place]
        guard Self.rotating.contains(key.purpose) else { throw .changesElsewhere(key.purpose) }
        let next: KeyState
        do {
            next = try key.state.after(event)
        } catch {
            throw .transition(error)
        }
        let predecessor = active(key.purpose)
        if key.state == .active, key.purpose != .origin { throw .lastOfPurpose(key.purpose, event) }
        if event == .resume, let predecessor { throw .another(id: predecessor.id, state: .active) }
        if next == .active, !isLoaded(id) { throw .notLoaded(key) }
        // A key that was never used protects nothing.
        if event == .destroy, key.state != .preActivation, key.purpose == .data, isNeeded(id) {
            throw .stillNeeded(id)
        }
        if key.needsTwoCallers(for: event) {
            guard let first = key.proposed?.proposal, key.proposed?.event == event, first.isOpen(at: now)
            else {
                key.proposed = .init(event, by: .init(caller: caller, at: now))
                keys[place] = key
                return [KeyTransition(.init(proposing: event), key, because: cause)]
            }
            guard first.caller != caller else { throw .secondCallerMissing(until: first.expiresAt) }
        }
        var transitions: [KeyTransition] = []
        if event == .promote, let predecessor {
            transitions.append(
                KeyTransition(
                    .deactivate, set(predecessor.id, to: .deactivated, at: now), because: .rotation))
        }
        // The local `key` above keeps the proposal, whose caller the entry names. Any event ends an open proposal.
        keys[place].proposed = nil
        transitions.append(KeyTransition(.init(event), set(id, to: next, at: now), because: cause))
        return transitions
    }

    private mutating func set(_ id: String, to state: KeyState, at now: Instant) -> GatewayKey {
        let place = keys.firstIndex { $0.id == id }!
        keys[place].state = state
        if state == .compromised { keys[place].isCompromised = true }
        keys[place].changedAt = now
        return keys[place]
    }

    /// Puts a key in the place of the one with its id, or at the end.
    mutating func replace(_ key: GatewayKey) {
        if let place = keys.firstIndex(where: { $0.id == key.id }) {
            keys[place] = key
        } else {
            keys.append(key)
        }
    }

    /// Adds the keys of files that a start found and that it does not know.
    ///
    /// The first start makes the newest key of each purpose active and the others deactivated. Later starts add a new file as a
    /// key in `pre_activation`, which waits to be promoted.
    ///
    /// - Parameter found: As their files say; states are not looked at.
    /// - Returns: What changed.
    package mutating func adopt(_ found: [GatewayKey], at now: Instant) -> [KeyTransition] {
        let isFirst = keys.isEmpty
        var transitions: [KeyTransition] = []
        for key in found.sorted(by: { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) })
        where self[key.id] == nil {
            var key = key
            let newest = found.filter { $0.purpose == key.purpose }
                .max { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
            let isNewest = newest?.id == key.id
            key.state = !isFirst ? .preActivation : isNewest ? .active : .deactivated
            key.changedAt = now
            keys.append(key)
            transitions.append(KeyTransition(.add, key, because: .found))
        }
        return transitions
    }

    /// Keys in use whose files are not there.
    package func missing(from found: Set<String>) -> [GatewayKey] {
        keys.filter { $0.state == .active && !found.contains($0.id) }
    }

    /// Data keys that were in use and are not destroyed, whose files are not there. Stored values are under them until everything
    /// is sealed anew.
    package func earlierDataKeys(missingFrom found: Set<String>) -> [GatewayKey] {
        keys.filter { key in
            switch key.state {
            case .suspended, .deactivated, .compromised:
                key.purpose == .data && !found.contains(key.id)
            case .preActivation, .active, .destroyed: false
            }
        }
    }
}

// MARK: As it is stored

extension Keyring {
    /// Canonical JSON: `[{"changed":1795000000000,"created":…,"id":…,"purpose":…,"state":…}]`.
    package var text: String {
        let list = keys.map { key -> JSONValue in
            var object: JSONObject = [
                "id": .string(key.id), "purpose": .string(key.purpose.rawValue),
                "state": .string(key.state.rawValue), "created": .integer(key.createdAt.milliseconds),
                "changed": .integer(key.changedAt.milliseconds),
            ]
            if let publicKey = key.publicKey { object["public_key"] = .string(Hexadecimal.encode(publicKey)) }
            if key.isCompromised { object["compromised"] = true }
            if let proposed = key.proposed {
                object["proposed"] = .string(proposed.event.rawValue)
                object["proposed_by"] = .string(proposed.proposal.caller.text)
                object["proposed_at"] = .integer(proposed.proposal.at.milliseconds)
            }
            return .object(object)
        }
        return String(decoding: CanonicalJSON.write(.array(list)), as: UTF8.self)
    }

    /// - Returns: `nil` for what ``text`` never gives.
    package init?(text: String) {
        guard let value = try? CanonicalJSON.read(Array(text.utf8), limits: .document),
            let list = value.arrayValue
        else { return nil }
        var keys: [GatewayKey] = []
        for element in list {
            guard let id = element["id"]?.stringValue,
                let purpose = element["purpose"]?.stringValue.flatMap(KeyPurpose.init),
                let state = element["state"]?.stringValue.flatMap(KeyState.init),
                let created = element["created"]?.integerValue,
                let changed = element["changed"]?.integerValue
            else { return nil }
            let publicKey: [UInt8]?
            switch element["public_key"] {
            case nil: publicKey = nil
            case .string(let text)?:
                guard let bytes = Hexadecimal.decode(text) else { return nil }
                publicKey = bytes
            default: return nil
            }
            var proposed: GatewayKey.ProposedEvent?
            if let event = element["proposed"]?.stringValue.flatMap(KeyEvent.init),
                let caller = element["proposed_by"]?.stringValue,
                let at = element["proposed_at"]?.integerValue
            {
                proposed = .init(
                    event, by: .init(caller: CallerName(caller), at: Instant(milliseconds: at)))
            }
            var key = GatewayKey(
                id: id, purpose: purpose, state: state, createdAt: Instant(milliseconds: created),
                changedAt: Instant(milliseconds: changed), publicKey: publicKey, proposed: proposed)
            key.isCompromised = element["compromised"]?.booleanValue ?? false
            keys.append(key)
        }
        self.init(keys: keys)
        // A member that was skipped above, such as a damaged `compromised`, is in the one text and not in the other.
        guard CodeUnits.equal(self.text, text) else { return nil }
    }
}
