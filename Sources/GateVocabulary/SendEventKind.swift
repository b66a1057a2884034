/// What became of a send after it was decided, step by step: the closed list of `GET /v1/events`.
///
/// There is no "delivered". What is known is who took a message on, and what a person was seen to do; receipts lie
/// (S1).
package enum SendEventKind: String, CaseIterable, Sendable, Hashable {
    /// The next hop has it.
    case handedOver = "handed_over"
    /// The next hop will never take it.
    case refusedByHop = "refused_by_hop"
    /// The next hop had not taken it, and no time was left for another try.
    case expiredUnsent = "expired_unsent"
    /// The next hop may have it: the connection broke after the request was written, and it is not tried again. The event's
    /// reason is a decision's, or what ended it: `expired`, `cancelled`, `damaged`.
    case ambiguous
    /// The message waited and does not go on. The event's reason is a decision's, or what happened: `cancelled`,
    /// `acknowledged`, `damaged`.
    case withdrawn
    /// The message went into a summary with others. The event's reason is the summary's `send_id`.
    case summarised
    /// A notice the law demands reached its recipient by no channel. The event's reason is the way it must go instead.
    case mandatoryUnreached = "mandatory_unreached"
    /// A receipt: the provider took it. That says nothing about the person.
    case acceptedByProvider = "accepted_by_provider"
    /// A receipt: the provider refused it for good. The event's reason is the provider's.
    case failed
    /// A receipt: the provider says that the token is no longer registered.
    case tokenGone = "token_gone"
    /// A receipt: the provider had it, and gave it up when its time was over. The event's reason is the provider's.
    case expired
    /// A receipt: the person saw it or acted on it.
    case userObserved = "user_observed"
    /// The next hop may have it, and it goes again under the same id, once told for each message: whatever ends it is an event of its own.
    /// The event's reason is the next hop's word, or `interrupted` of a gateway that ended during the hand-over.
    case inDoubt = "in_doubt"

    /// Whether the recipient has it, may have it, or has it in a summary. A message whose end is not known may have
    /// arrived; one that goes again has no end yet, and its end says so.
    package var mayHaveArrived: Bool {
        switch self {
        case .handedOver, .ambiguous, .summarised, .acceptedByProvider, .userObserved: true
        case .inDoubt, .refusedByHop, .expiredUnsent, .withdrawn, .mandatoryUnreached, .failed, .tokenGone,
            .expired:
            false
        }
    }
}

/// What a person was seen to do with a message, by the word that the app reports it in.
package enum ObservedAct: String, CaseIterable, Sendable, Hashable {
    /// The notification was on the screen, or nothing more is known.
    case seen
    /// The notification was opened, or one of its buttons was pressed.
    case tap
    /// The notification was put away unopened.
    case dismissed
    /// The app was opened by itself, and with it the number on its icon went.
    case badgeCleared = "badge_cleared"

    /// - Parameter action: What the app reported. Four words mean what they say, and so do the ones that Apple's and Google's
    ///   own interfaces suggest for them; any other is a tap, as the name of a button is.
    package init(action: String?) {
        switch action?.lowercased() {
        case nil, "seen", "shown", "displayed", "viewed": self = .seen
        case "dismissed", "dismiss", "swiped": self = .dismissed
        case "badge_cleared": self = .badgeCleared
        default: self = .tap
        }
    }
}

/// Why a waiting message was looked at again or taken out.
package enum WithdrawalCause: String, CaseIterable, Sendable, Hashable {
    /// Its turn came more than a minute after it was decided.
    case old
    /// The message was deferred and its time has come.
    case due
    /// The message went into a summary with others.
    case summarised
    case expired
    case cancelled
    case acknowledged
    case erased
    case destinationRemoved = "destination_removed"
    case consentChanged = "consent_changed"
    case preferenceChanged = "preference_changed"
    case recipientChanged = "recipient_changed"
    case keyChanged = "key_changed"
    case policyChanged = "policy_changed"
    /// What was stored of it cannot be read any more.
    case damaged
    /// It may have gone, and a second copy would reach the person twice.
    case unrepeatable

    /// Whether nothing is left to tell: the person is gone, or knows.
    package var settlesDedupe: Bool { self == .erased || self == .acknowledged }
}
