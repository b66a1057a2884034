package import GateVocabulary

/// One thing a step has to know before it can go on.
package enum Ask: Hashable, Sendable {
    // What a store answers.

    /// Who a user is, with their state.
    case user(UserID)
    /// The same person, found by the pseudonym.
    case subject(SubjectID)
    case state(SubjectID)
    /// Whose active device a push token belongs to, with their state; by ``DeviceRecord/tokenIdentity``.
    case token(String)
    /// Whose a device key is, with their state.
    case key(KeyID)
    /// The consent ledger of a person.
    case consents(SubjectID)
    /// Every choice of a person, oldest first.
    case choices(SubjectID)
    case unsubscribeLink(Tag)
    /// Who registered a number or a mailbox.
    case holders(AddressKey)
    /// What was answered to a reply of this id.
    case reply(RequestKey)
    /// When a withdrawal from a number was confirmed last, by ``ReplyConfirmation/addressHash``.
    case confirmed([UInt8])
    /// Forwards to a person since a moment.
    case forwards(SubjectID, since: Instant)
    case request(RequestKey)
    case send(SendID)
    case dedupe(EventKey)
    case duty(EventKey)
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

/// What tells one send of a caller's from another: their id for it, under the index key.
package struct RequestKey: Hashable, Sendable {
    package var caller: CallerName
    /// 16 bytes; see ``IndexKey``.
    package var idHash: [UInt8]

    package init(caller: CallerName, idHash: [UInt8]) {
        self.caller = caller
        self.idHash = idHash
    }

    /// The hash is of the caller as well.
    package func hash(into hasher: inout Hasher) { idHash.withUnsafeBytes { hasher.combine(bytes: $0) } }
}

/// An event told to a person, or a duty to tell them one.
package struct EventKey: Hashable, Sendable {
    package var subject: SubjectID
    package var event: Tag

    package init(_ event: Tag, of subject: SubjectID) {
        self.subject = subject
        self.event = event
    }
}

/// Thrown by a step that looked at something nobody has loaded: it is loaded, and the step begins again.
package struct MissingFacts: Error, CustomStringConvertible {
    package var asks: [Ask]

    package var description: String { "\(asks.count) things have to be loaded first" }

    package init(_ asks: [Ask]) { self.asks = asks }
    package init(_ ask: Ask) { asks = [ask] }
}
