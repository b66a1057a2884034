package import GateVocabulary

/// The outcome of one delivery: the answer to `POST /v1/deliveries`, hop protocol version 2.
package enum DeliveryOutcome: Sendable, Hashable {
    /// The messages that a provider's "later" is about.
    package enum Scope: String, CaseIterable, Sendable, Hashable {
        /// This message alone.
        case message
        /// Every message of its app, or of its channel where there is no app: its circuit opens.
        case app
    }

    /// The provider took it.
    /// - Parameter providerID: What the provider calls it, such as `apns-id` or FCM's message name.
    case accepted(providerID: String?)
    /// A provider took it, or ended it, on an earlier try, with this outcome: the gateway may have been killed before it recorded it.
    indirect case seenBefore(DeliveryOutcome)
    /// The token leads nowhere any more.
    /// - Parameter at: Since when, as the provider says; `nil` when it does not say.
    case tokenGone(reason: String, at: Instant?)
    /// The message can never go.
    case failed(reason: String)
    /// Nothing was taken, and a later try may be.
    /// - Parameter seconds: Not before so many; `nil` leaves it to the gateway.
    case later(reason: String, seconds: Int?, scope: Scope)
    /// The courier's configuration or credentials keep the app's messages from going: an alarm for the operator, and
    /// "later" with the scope of the app for the gateway. It never ends a message or a token.
    case misconfigured(reason: String)
    /// It was written, and no answer says whether it was taken.
    /// - Parameter mayRepeat: Whether a second copy is harmless, because the provider replaces the first with it.
    case ambiguous(reason: String, mayRepeat: Bool)
}

extension DeliveryOutcome {
    /// Nothing was written, because the gateway waits for the answer no longer, or the message has expired.
    package static let tooLate = DeliveryOutcome.later(reason: "too_late", seconds: nil, scope: .message)

    /// Nothing was written, because the courier stops.
    package static let stopping = DeliveryOutcome.later(
        reason: "courier_stopping", seconds: nil, scope: .message)

    /// Said of a message that an earlier process had begun to hand over: what the provider answered is not known, and it is not asked.
    package static let interrupted = DeliveryOutcome.ambiguous(reason: "interrupted", mayRepeat: false)

    /// Reasons of the courier's own, of orders for which no provider was asked.
    package static let localReasons: Set<String> = [
        "token_malformed", "header_malformed", "body_without_message", "body_without_text", "MessageTooBig",
        "PayloadTooLarge", "payload_too_large", "journal_unavailable", "journal_full", "interrupted",
    ]

    /// Whether it says nothing of the provider.
    package var isLocal: Bool { reason.map(Self.localReasons.contains) ?? false }

    /// The provider's word, or ours; `nil` when nothing went wrong.
    package var reason: String? {
        switch self {
        case .accepted, .seenBefore: nil
        case .tokenGone(let reason, _), .failed(let reason), .later(let reason, _, _),
            .misconfigured(let reason),
            .ambiguous(let reason, _):
            reason
        }
    }
}

extension DeliveryOutcome {
    /// The largest number of characters that are kept of a provider's name for a message, which has some 60.
    private static let providerIDCountMax = 256

    /// A message that the provider took under a name of its own.
    package static func taken(as providerID: String?) -> DeliveryOutcome {
        .accepted(providerID: providerID.map { String($0.prefix(providerIDCountMax)) })
    }
}
