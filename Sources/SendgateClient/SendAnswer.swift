import CanonicalJSON

/// What the gateway decided about one send, and its evidence. Recorded durably before you read it.
public struct SendAnswer: Hashable, Sendable {
    /// What becomes of a send, best first.
    public enum Outcome: String, Hashable, Sendable {
        /// The send goes on to the delivery layer now.
        case forward
        /// The send goes on later, e.g. when the recipient's quiet hours end.
        case `defer`
        /// The send goes on as part of a summary.
        case digest
        /// The recipient does not want it, or not now. Nothing is sent.
        case suppress
        /// The law or the company's policy does not allow it. Nothing is sent.
        case reject

        /// Whether at least one destination will get it, now, later or in a summary.
        public var isPromise: Bool { self == .forward || self == .defer || self == .digest }
    }

    /// What becomes of it at one destination.
    public struct Delivery: Hashable, Sendable {
        /// The device or address.
        public var destination: String
        /// What becomes of the message there.
        public var outcome: Outcome
        /// A stable code, e.g. `quiet_hours_deferred`.
        public var reason: String
        /// What exactly was missing, for a reason that says it.
        public var detail: String?
        /// The stable id of the message on its way.
        public var messageID: String?
        /// The device key it is sealed to.
        public var keyID: String?
        /// RFC 3339; the earliest time a deferred one goes on.
        public var notBefore: String?
        /// Other things worth knowing, e.g. `address_contested`: another person has verified the number or address since.
        public var notes: [String]
    }

    /// Where the decision stands in the audit trail.
    public struct TrailReference: Hashable, Sendable {
        /// The log's name.
        public var origin: String
        /// The entry's number in the log, from 0.
        public var index: Int64
        /// SHA-256 of the entry's leaf, 64 hexadecimal digits.
        public var leaf: String
    }

    /// Your id for the send.
    public var id: String
    /// The gateway's own id; paths and `fallbackFor` use it.
    public var sendID: String
    /// The best of its deliveries.
    public var outcome: Outcome
    /// A stable code, e.g. `allowed` or `no_gdpr_consent`; the list is in the gateway's OpenAPI document.
    public var reason: String
    /// What exactly was missing.
    public var detail: String?
    /// `producer`, `recipient`, `security`, `operator` or `nobody`.
    public var whoCanFix: String
    /// Digest of the policy bundle that decided.
    public var policy: String
    /// Empty when the send was refused before anything about its recipient was asked.
    public var deliveries: [Delivery]
    /// What of the params does not fit the type, as `pointer: message`; for the reason `invalid_params`.
    public var violations: [String]
    /// By what a duty to tell the recipient is still to be done after this send, any one of them: `push`, `sms`, `email`,
    /// `letter` or `phone`. Empty when none is owed. A duty that is owed past its time raises an alarm at the
    /// gateway.
    public var owed: [String]
    /// The entry that records the decision: evidence that the producer can keep.
    public var trail: TrailReference
    /// The gateway had decided this id before; this is that answer, and nothing was sent again.
    public var isReplayed: Bool
    /// The gateway only decided and recorded it: nothing goes out by it, so go on sending by yourself what you copied there.
    public var isShadow: Bool

    /// Whether at least one destination will get it. When this is `false`, nothing was or will be sent for this id: use a new
    /// one after the reason has gone, or the same one with other content after `unknown_type` and `invalid_params`.
    public var isPromised: Bool { outcome.isPromise && !isShadow }
}

extension SendAnswer {
    /// - Returns: `nil` when the document is something else, e.g. a problem.
    init?(_ json: JSONValue) {
        guard let id = json["id"]?.stringValue, let sendID = json["send_id"]?.stringValue,
            let outcome = json["outcome"]?.stringValue.flatMap(Outcome.init(rawValue:)),
            let reason = json["reason"]?.stringValue, let policy = json["policy"]?.stringValue,
            let trail = json["trail"].flatMap(TrailReference.init)
        else { return nil }
        self.id = id
        self.sendID = sendID
        self.outcome = outcome
        self.reason = reason
        self.detail = json["detail"]?.stringValue
        self.whoCanFix = json["who_can_fix"]?.stringValue ?? "nobody"
        self.policy = policy
        self.violations = SendgateProblem.violations(in: json)
        self.owed = (json["owed"]?.arrayValue ?? []).compactMap(\.stringValue)
        self.trail = trail
        self.isReplayed = json["replayed"]?.booleanValue ?? false
        self.isShadow = json["shadow"]?.booleanValue ?? false
        self.deliveries = []
        for value in json["deliveries"]?.arrayValue ?? [] {
            guard let delivery = Delivery(value) else { return nil }
            deliveries.append(delivery)
        }
    }
}

extension SendAnswer.TrailReference {
    init?(_ json: JSONValue) {
        guard let origin = json["origin"]?.stringValue, let index = json["index"]?.integerValue,
            let leaf = json["leaf"]?.stringValue
        else { return nil }
        self.init(origin: origin, index: index, leaf: leaf)
    }
}

extension SendAnswer.Delivery {
    init?(_ json: JSONValue) {
        guard let destination = json["destination"]?.stringValue,
            let outcome = json["outcome"]?.stringValue.flatMap(SendAnswer.Outcome.init(rawValue:)),
            let reason = json["reason"]?.stringValue
        else { return nil }
        self.init(
            destination: destination, outcome: outcome, reason: reason, detail: json["detail"]?.stringValue,
            messageID: json["message_id"]?.stringValue, keyID: json["key_id"]?.stringValue,
            notBefore: json["not_before"]?.stringValue,
            notes: (json["notes"]?.arrayValue ?? []).compactMap(\.stringValue))
    }
}
