package import GateVocabulary

/// One thing a step has to know before it can go on.
package enum Ask: Hashable, Sendable {
    // What a store answers.

    /// A user's pseudonym, tag key and state.
    case user(UserID)
    /// The same, looked up by the pseudonym.
    case subject(SubjectID)
    case state(SubjectID)
    /// The person whose active device has a push token, with their state; by ``DeviceRecord/tokenIdentity``.
    case token(String)
    /// The person whom a device key belongs to, with their state.
    case key(KeyID)
    /// The consent ledger of a person.
    case consents(SubjectID)
    /// Every choice of a person, oldest first.
    case choices(SubjectID)
    case unsubscribeLink(Tag)
    /// The people who have registered a number or a mailbox.
    case holders(AddressKey)
    /// The people who have registered the mailbox of an ``UnsubscribeLink/mailbox``.
    case mailboxHolders([UInt8])
    /// The answer that a reply of this id was given.
    case reply(RequestKey)
    /// When a withdrawal from a number was confirmed last, by ``ReplyConfirmation/addressHash``.
    case confirmed([UInt8])
    /// Forwards to a person since a moment.
    case forwards(SubjectID, since: Instant)
    /// What nearly every send reads, as one ask: the send of this id, the user with their state, ``outboxDepth``,
    /// ``headroom``, and forwards to the user since so many seconds before the newest entry, `nil` for none. No step is
    /// earlier than that entry, so a cap finds here what it counts over as many seconds.
    case newSend(RequestKey, to: UserID, countedSeconds: Int64?)
    case request(RequestKey)
    case send(SendID)
    case dedupe(SubjectTag)
    case duty(SubjectTag)
    case message(MessageID)
    /// The same without what is sealed of it.
    case messageHead(MessageID)
    case messagesOfSend(SendID)
    case messagesOfPerson(SubjectID)
    /// How many messages wait for a person, counted no further than a limit.
    case messageCount(SubjectID, limit: Int)
    case eventsOfSend(SendID)
    case setting(String)
    case outboxDepth

    // What the engine answers.

    /// The bytes of an entry that was recorded before, from the store or the published tree.
    case entry(UInt64)
    /// A message that was offered to the relay, if the relay has not taken it yet.
    case recall(MessageID)
    /// A pseudonym and a key for a user who has none.
    case newSubject(UserID)
    /// A sealed nonce for a device key that has to be proved.
    case challenge(ChallengeOrder)
    case identifiers
    /// How far the published trail is behind, and how much disk is left.
    case headroom
}

/// Identifies one send of a caller: the caller's id for it, hashed under the index key.
package struct RequestKey: Hashable, Sendable {
    /// The start of ``idHash``, first because it tells nearly all keys apart.
    let start: UInt64
    package let caller: CallerName
    /// 16 bytes; see ``IndexKey``.
    package let idHash: [UInt8]

    package init(caller: CallerName, idHash: [UInt8]) {
        start = Self.start(of: idHash)
        self.caller = caller
        self.idHash = idHash
    }

    static func start(of idHash: [UInt8]) -> UInt64 { idHash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// `idHash` covers the caller, and its start is as random as the rest, so that is enough.
    package func hash(into hasher: inout Hasher) { hasher.combine(start) }

    /// The same where it is a key by itself; called in the place of `hash(into:)`.
    package func _rawHashValue(seed: Int) -> Int { KeyedHash.of(start, 0, seed: seed) }
}

/// A tag under one person's key: of an event that they were told of, or of a duty to tell them one.
package struct SubjectTag: Hashable, Sendable {
    package var subject: SubjectID
    package var tag: Tag

    package init(_ tag: Tag, of subject: SubjectID) {
        self.subject = subject
        self.tag = tag
    }
}

/// Thrown by a step that reads something that is not loaded. It is then loaded, and the step runs again.
package struct MissingRows: Error, CustomStringConvertible {
    package var asks: [Ask]

    package var description: String { "\(asks.count) things have to be loaded first" }

    package init(_ asks: [Ask]) { self.asks = asks }
    package init(_ ask: Ask) { asks = [ask] }
}
