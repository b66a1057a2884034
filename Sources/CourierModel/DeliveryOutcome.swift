package import CanonicalJSON
package import GateVocabulary

/// What became of one delivery: the answer to `POST /v1/deliveries`, hop protocol version 2.
package enum DeliveryOutcome: Sendable, Hashable {
    /// Whom a provider's "later" is about.
    package enum Scope: String, CaseIterable, Sendable, Hashable {
        /// This message alone.
        case message
        /// Every message of its app, or of its channel where there is no app: its circuit opens.
        case app
    }

    /// The provider took it.
    /// - Parameter providerID: What the provider calls it, such as `apns-id` or FCM's message name.
    case accepted(providerID: String?)
    /// It was taken, or ended, on an earlier try.
    case seenBefore
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

    /// Status, `Retry-After` in seconds, and body. Of a reason the gateway gets one word; what stands behind a colon or a
    /// comma is for the courier's own log.
    package var answer: (status: Int, retryAfter: Int?, body: JSONValue?) {
        switch self {
        case .accepted(let providerID):
            (200, nil, Self.body("accepted", ["provider_id": providerID.map(JSONValue.string)]))
        case .seenBefore:
            (409, nil, nil)
        case .tokenGone(let reason, let at):
            (
                422, nil,
                Self.body(
                    "token_gone",
                    ["reason": .string(Self.word(reason)), "at": at.map { .string($0.rfc3339) }])
            )
        case .failed(let reason):
            (422, nil, Self.body("failed", ["reason": .string(Self.word(reason))]))
        case .later(let reason, let seconds, let scope):
            (
                503, seconds.map(RetryAfter.bounded),
                Self.body("later", ["reason": .string(Self.word(reason)), "scope": .string(scope.rawValue)])
            )
        case .misconfigured(let reason):
            Self.later(reason: reason, seconds: nil, scope: .app).answer
        case .ambiguous(let reason, let mayRepeat):
            (
                504, nil,
                Self.body("ambiguous", ["reason": .string(Self.word(reason)), "retry": .boolean(mayRepeat)])
            )
        }
    }

    /// Reasons of the courier's own, of orders that were never written to a provider.
    package static let localReasons: Set<String> = [
        "token_malformed", "header_malformed", "body_without_message", "body_without_text", "MessageTooBig",
        "PayloadTooLarge", "payload_too_large", "journal_unavailable", "journal_full",
    ]

    /// Whether it says nothing of the provider.
    package var isLocal: Bool { reason.map(Self.localReasons.contains) ?? false }

    /// What the outcome is called in the answer, in logs and in metrics.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .seenBefore: "seen_before"
        case .tokenGone: "token_gone"
        case .failed: "failed"
        case .later: "later"
        case .misconfigured: "misconfigured"
        case .ambiguous: "ambiguous"
        }
    }

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

    private static func word(_ reason: String) -> String {
        InboundReport.reason(String(reason.prefix { $0 != ":" && $0 != "," }))
    }

    private static func body(_ outcome: String, _ members: [String: JSONValue?]) -> JSONValue {
        var object: JSONObject = ["outcome": .string(outcome)]
        for (name, value) in members { object[name] = value }
        return .object(object)
    }
}
