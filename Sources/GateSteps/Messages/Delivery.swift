package import CanonicalJSON
package import GateVocabulary

/// One message on its way to the next hop, its token resolved at the last moment.
package struct Delivery: Sendable, Hashable {
    /// Stable over every retry, so that the next hop can drop repeats.
    package var message: MessageID
    package var send: SendID
    /// The destination as its owner calls it.
    package var destination: DestinationID
    package var channel: Channel
    package var platform: Platform?
    /// Who delivers a push in place of the platform's own service.
    package var provider: PushProvider?
    package var app: String?
    /// The push token, phone number or e-mail address.
    package var token: String
    /// Provider headers, canonical JSON.
    package var headers: [UInt8]
    /// The provider's body, canonical JSON.
    package var body: [UInt8]
    /// The gateway hands nothing over after it.
    package var expiresAt: Instant
    /// What the next hop is told: a class of the tier where the body tells nothing, ``expiresAt`` where it tells all.
    package var statedExpiry: Instant
    /// Hand-overs tried before this one.
    package var attemptCount: Int
    /// When the gateway gives it to the hop.
    package var handedOverAt: Instant
    /// Of the request that asked for it.
    package var traceParent: TraceParent?

    package init(
        message: MessageID, send: SendID, destination: DestinationID, channel: Channel, platform: Platform?,
        provider: PushProvider? = nil, app: String?, token: String, headers: [UInt8], body: [UInt8],
        expiresAt: Instant,
        statedExpiry: Instant? = nil, attemptCount: Int, handedOverAt: Instant,
        traceParent: TraceParent? = nil
    ) {
        self.message = message
        self.send = send
        self.destination = destination
        self.channel = channel
        self.platform = platform
        self.provider = provider
        self.app = app
        self.token = token
        self.headers = headers
        self.body = body
        self.expiresAt = expiresAt
        self.statedExpiry = statedExpiry ?? expiresAt
        self.attemptCount = attemptCount
        self.handedOverAt = handedOverAt
        self.traceParent = traceParent
    }

    /// Headers and body with the life that is left at the hand-over. The body was composed when the message was decided,
    /// and its end may have moved since.
    ///
    /// - `apns-expiration` is a moment: seconds since 1970 (Apple, "Sending notification requests to APNs").
    /// - `android.ttl` counts from when FCM takes the message (FCM, `AndroidConfig.ttl`), so it is what is left, in whole
    ///   seconds, rounded up: none left would mean "now or never". `ttl` of a message to Expo is the same as a number (Expo,
    ///   "Message request format").
    /// - Throws: When headers or body are not JSON, which would be a fault of the gateway's own.
    package func timed() throws -> (headers: JSONObject, body: JSONValue) {
        guard case .object(var headers) = try CanonicalJSON.read(headers) else {
            throw JSONShapeError(.root, "expected headers as an object")
        }
        if headers["apns-expiration"] != nil {
            headers["apns-expiration"] = .string("\(statedExpiry.seconds)")
        }
        var body = try CanonicalJSON.read(body)
        let left = (max(0, statedExpiry.milliseconds - handedOverAt.milliseconds) + 999) / 1000
        if provider == .expo, case .object(var object) = body, object["ttl"] != nil {
            object["ttl"] = .integer(left)
            body = .object(object)
        }
        if case .object(var object) = body, case .object(var message)? = object["message"],
            case .object(var android)? = message["android"], android["ttl"] != nil
        {
            android["ttl"] = .string("\(left)s")
            message["android"] = .object(android)
            object["message"] = .object(message)
            body = .object(object)
        }
        return (headers, body)
    }
}

/// What the next hop made of one delivery.
package enum HopResult: Sendable, Hashable {
    /// The hop has taken it over.
    /// - Parameter byProvider: Whether the provider behind it has.
    case accepted(status: Int, byProvider: Bool)
    /// The hop had it already, from an earlier try whose answer was lost.
    case seenBefore
    /// It can never go.
    /// - Parameter reason: The provider's word; `nil` where the hop says none.
    case refused(status: Int, reason: String?)
    /// The token leads nowhere any more.
    /// - Parameter at: Since when, as the provider says; `nil` when it does not.
    case tokenGone(status: Int, reason: String, at: Instant?)
    /// Later, not before so many milliseconds when the hop says so.
    /// - Parameters:
    ///   - scope: Whom that is about.
    ///   - reason: The hop's word; `nil` where it says none.
    case busy(status: Int, retryAfterMilliseconds: Int64?, scope: Scope, reason: String? = nil)
    /// An answer that can only come from something that is no delivery layer, or one that is set up wrong.
    case misconfigured(status: Int, String)
    /// Nothing was written to the hop, so it cannot have the message.
    case notWritten(String)
    /// Written, and no answer says what became of it, for a reason in one word: the hop may have it.
    /// - Parameter mayRepeat: Whether a second copy is harmless.
    case ambiguous(String, mayRepeat: Bool)

    package enum Scope: String, CaseIterable, Sendable, Hashable {
        case message
        /// Every message of its app, or of its channel where there is no app.
        case app
    }
}

extension HopResult {
    /// The kind of result in one word, for the log.
    package var word: String {
        switch self {
        case .accepted: "accepted"
        case .seenBefore: "seen_before"
        case .refused: "refused"
        case .tokenGone: "token_gone"
        case .busy: "busy"
        case .misconfigured: "misconfigured"
        case .notWritten: "not_written"
        case .ambiguous: "ambiguous"
        }
    }
}

/// Which of the two lanes a message travels in.
package enum DeliveryLane: String, CaseIterable, Sendable, Hashable {
    /// The `security` category: a slow or flooded hop must not hold a fraud alert behind a campaign.
    case security
    case general
}

/// A value for each lane.
package struct LaneValues<Value: Sendable>: Sendable {
    private var security: Value
    private var general: Value

    package init(repeating value: Value) {
        security = value
        general = value
    }

    package subscript(_ lane: DeliveryLane) -> Value {
        get {
            switch lane {
            case .security: security
            case .general: general
            }
        }
        // In place, so that a list is appended to without a copy.
        _modify {
            switch lane {
            case .security: yield &security
            case .general: yield &general
            }
        }
    }
}

extension DeliveryLane {
    /// The lane a category's messages travel in.
    init(of category: Category) { self = category == .security ? .security : .general }
}

/// A message that the relay may take.
package struct MessageOffer: Sendable {
    package var delivery: Delivery
    package var lane: DeliveryLane
    package var tier: Tier
    package var caller: CallerName
    /// When its decision was made; an old one is made again before the message goes.
    package var decidedAt: Instant
}
