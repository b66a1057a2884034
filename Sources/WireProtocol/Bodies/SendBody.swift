package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// The fields that a send and an explanation of one share: everything but `id` and `recipient`, which only a real send
/// must have.
struct SendContent {
    let type: TypeID
    let params: JSONObject
    let channel: Channel
    let fallbackFor: SendID?
    let isCritical: Bool
    let ttlSeconds: Int64?
    let collapseKey: String?
    let deepLink: String?
    let locale: String?
    let sent: Bool?

    static let paramsShape = Shape.map(
        keys: .paramName,
        values: .anything(
            AnyJSON(
                depthMax: WireLimits.paramDepthMax - 1, texts: .paramText, keys: .paramName,
                countMax: WireLimits.paramCountMax)), countMax: WireLimits.paramCountMax)

    init(from fields: BodyFields) {
        type = fields.required("type", "A notification type of the registry; see `GET /v1/types`.")
        params = fields.optional(
            "params", as: Self.paramsShape, default: [:],
            "What the texts are made of. Their names and forms are the type's; what does not fit is refused as `invalid_params`, with an entry in the trail."
        )
        channel = fields.optional("channel", default: .push, "How the notification travels.")
        fallbackFor = fields.optional(
            "fallback_for",
            "The `send_id` of the failed push this send replaces: the same caller's, to the same recipient.")
        isCritical = fields.optional(
            "critical", default: false,
            "Asks for OS critical-alert delivery. Refused, never silently downgraded, unless the caller holds `send.critical` and the type is on the allow-list."
        )
        ttlSeconds = fields.optional(
            "ttl_seconds", as: .integer(1...WireLimits.ttlSecondsMax),
            "How long the notification is worth something, counted as the type counts it: from its arrival, or from when it may go out. The type's own time to live when absent, and never longer than that."
        )
        collapseKey = fields.optional(
            "collapse_key", as: .identifier,
            "Sends of one key replace each other on the device. Leaves the gateway only as a keyed tag.")
        deepLink = fields.optional(
            "deep_link", as: .text(.deepLink),
            "Where a tap leads; the type's own place when absent. It has to lie under a place the type declares, in plain letters without `%`, `@` and `..`; otherwise the send is refused as `invalid_params`."
        )
        locale = fields.optional(
            "locale", as: .text(.locale), "The language of the text; the recipient's when absent.")
        sent = fields.optional(
            "sent",
            "On a listener in shadow alone: whether the producer's own sender sent it. Recorded, for `sendgate shadow report`."
        )
    }

    func send(_ id: RequestID, to recipient: SendRecipient) -> SendRequest {
        SendRequest(
            id: id, type: type, user: recipient.user, destination: recipient.destination, params: params,
            channel: channel, fallbackFor: fallbackFor, critical: isCritical, ttlSeconds: ttlSeconds,
            collapseKey: collapseKey, deepLink: deepLink, locale: locale, sent: sent)
    }
}

struct SendRecipient: BodyObject {
    let user: UserID
    let destination: DestinationID?

    static let shape = declared(
        "SendRecipient",
        "Whom to notify. Without `device` or `address`: every active destination of the channel.",
        rules: [.notBoth("address", "device")])

    static let example: JSONValue = ["user": "u_42", "device": "d_1"]

    init(from fields: BodyFields) {
        user = fields.required("user", "The person, as registered under `/v1/recipients`.")
        let device: DestinationID? = fields.optional("device", "One device, for `push`.")
        let address: DestinationID? = fields.optional(
            "address", "One phone number or e-mail address, for `sms` and `email`.")
        destination = device ?? address
    }
}

extension SendRequest: WireBody {
    package static let shape = declared(
        "SendRequest",
        "One notification to one recipient. There is no field for the sender: the kernel names it.")

    package static let example: JSONValue = [
        "id": "rem-8812736-sent", "type": "transaction.remittance_sent",
        "recipient": SendRecipient.example,
        "params": [
            "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
            "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
        ],
        "channel": "push", "critical": false, "ttl_seconds": 3600, "collapse_key": "rem-8812736",
        "deep_link": "drop://send", "locale": "nb",
    ]

    package init(from fields: BodyFields) {
        let content = SendContent(from: fields)
        let id: RequestID = fields.required(
            "id",
            "The caller's own id for this send, and its idempotency key: the same id with the same content is answered again and sent once."
        )
        self = content.send(id, to: fields.required("recipient", "Whom to notify."))
    }
}

/// A question: what would the gate say to this send? Nothing is sent, counted or held.
package struct ExplainBody: WireBody, Hashable {
    package var type: TypeID
    package var channel: Channel
    package var critical: Bool
    package var params: JSONObject
    package var deepLink: String?
    /// The send to ask about on a stored recipient, unless ``facts`` are given. Its id binds nothing.
    package var send: SendRequest?
    /// Facts to decide on instead of what the store knows.
    package var facts: Facts?
    /// Who would be asking; the caller itself when `nil`. A question only: it gives no caller a grant.
    package var caller: CallerName?
    /// The bundle to decide under; the one in force when `nil`.
    package var policy: PolicyDigest?

    /// The grants of which the asking caller needs one; empty where the body has the facts itself. What its own send would be
    /// answered, a caller may ask; whatever else is known of a person needs `subjects.read`.
    package func neededGrants(of asking: CallerName) -> [Grant] {
        if facts != nil { return [] }
        return caller == nil || caller == asking ? [.send, .subjectsRead] : [.subjectsRead]
    }

    package static let shape = declared(
        "ExplainRequest",
        "A send to explain: any body of `POST /v1/sends`, or one with `facts` in place of a stored recipient.",
        rules: [.anyOf(["facts", "recipient"])])

    package static let example: JSONValue = [
        "type": "transaction.remittance_sent", "caller": "payments",
        "params": [
            "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
            "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
        ],
        "facts": [
            "now": 1_795_298_400_000, "due": 1_795_298_400_000, "expiry": 1_795_384_800_000,
            "params": "valid", "fallback": "not_fallback", "recipient": "registered", "age": "adult",
            "account_region": ["code": "DE", "source": "kyc", "observed_at": 1_790_000_000_000],
            "device_regions": [], "privacy": "generic", "consent": ["state": "never_asked"],
            "push_enabled": true, "account_preference": "default", "destination_preference": "default",
            "quiet_hours": ["state": "inside", "ends_at": 1_795_330_800_000], "destination": "active",
            "platform": "ios", "os_permission": "granted", "critical_alerts": false,
            "device_key": "usable", "sizes": ["sealed": 1_024, "generic": 312], "type_count": 0,
            "everything_count": 0,
        ],
    ]

    package init(from fields: BodyFields) throws(BodyError) {
        let content = SendContent(from: fields)
        (type, channel, critical) = (content.type, content.channel, content.isCritical)
        (params, deepLink) = (content.params, content.deepLink)
        let id: RequestID? = fields.optional(
            "id", "Accepted, so that a send can be asked about as it is; binds nothing.")
        let recipient: SendRecipient? = fields.optional(
            "recipient",
            "Whose facts to decide on. Gates and facts are shown to `subjects.read` alone, and so is another caller's send."
        )
        send = recipient.map { content.send(id ?? RequestID("explain"), to: $0) }
        let facts: JSONObject? = fields.optional(
            "facts", as: Facts.shape,
            "Facts to decide on. Given, nothing is read from the store and no grant is needed; what is absent counts as unknown."
        )
        caller = fields.optional(
            "caller", "The caller to ask as; the asking one when absent. Lends no grant: this is a question.")
        policy = fields.optional(
            "policy", "The digest of an archived bundle; the one in force when absent.")
        guard let facts else { return }
        do throws(JSONShapeError) {
            self.facts = try Facts(json: facts, at: JSONPointer.root.appending("facts"))
        } catch {
            // The shape is checked first and says more; the facts' own reader has the last word.
            throw .invalid([Violation(.body(error.pointer), error.message)])
        }
    }
}
