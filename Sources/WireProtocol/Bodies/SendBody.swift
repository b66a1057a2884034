package import CanonicalJSON
package import GateRecords
package import GateVocabulary

extension SendRequest: WireBody, GivenRecord {
    package static let blank = Self(id: RequestID(""), type: TypeID(""), user: UserID(""))

    package static let fields = Fields<Self> { fields in
        fields.some(content, of: \.self)
        fields.given(
            "id", \.id,
            "The caller's own id for this send, and its idempotency key: the same id with the same content is answered again and sent once."
        )
        fields.recipient(\.self, "Whom to notify.", isOptional: false)
    }

    package static let givenShape = given(
        as: "SendRequest",
        "One notification to one recipient. There is no field for the sender: the kernel names it.")

    package static let givenExample: JSONValue = [
        "id": "rem-8812736-sent", "type": "transaction.remittance_sent",
        "recipient": ["user": "u_42", "device": "d_1"],
        "params": [
            "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
            "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
        ],
        "channel": "push", "critical": false, "ttl_seconds": 3600, "collapse_key": "rem-8812736",
        "deep_link": "drop://send", "locale": "nb",
    ]

    static let paramsShape = Shape.map(
        keys: .paramName,
        values: .anything(
            AnyJSON(
                depthMax: WireLimits.paramDepthMax - 1, texts: .paramText, keys: .paramName,
                countMax: WireLimits.paramCountMax)), countMax: WireLimits.paramCountMax)

    /// What a send and an explanation of one share: everything but `id` and `recipient`, which only a real send must have.
    fileprivate static let content = Fields<Self> { fields in
        fields.given("type", \.type, "A notification type of the registry; see `GET /v1/types`.")
        fields.given(
            "params", \.params,
            "What the texts are made of. Their names and forms are the type's; what does not fit is refused as `invalid_params`, with an entry in the trail.",
            .defaulted(paramsShape))
        fields.given("channel", \.channel, "How the notification travels.", .defaulted)
        fields.given(
            "fallback_for", \.fallbackFor,
            "The `send_id` of the failed push this send replaces: the same caller's, to the same recipient.")
        fields.given(
            "critical", \.critical,
            "Asks for OS critical-alert delivery. Refused, never silently downgraded, unless the caller holds `send.critical` and the type is on the allow-list.",
            .defaulted)
        fields.given(
            "ttl_seconds", \.ttlSeconds,
            "How long the notification is worth something, counted as the type counts it: from its arrival, or from when it may go out. The type's own time to live when absent, and never longer than that.",
            .shape(.integer(1...WireLimits.ttlSecondsMax)))
        fields.given(
            "collapse_key", \.collapseKey,
            "Sends of one key replace each other on the device. Leaves the gateway only as a keyed tag.",
            .shape(.identifier))
        fields.given(
            "deep_link", \.deepLink,
            "Where a tap leads; the type's own place when absent. It has to lie under a place the type declares, in plain letters without `%`, `@` and `..`; otherwise the send is refused as `invalid_params`.",
            .text(.deepLink))
        fields.given(
            "locale", \.locale, "The language of the text; the recipient's when absent.", .text(.locale))
        fields.given(
            "sent", \.sent,
            "Whether the producer's own sender sent it. Recorded on a listener in shadow, for `sendgate shadow report`; no part of what `id` is bound to. Where the send is carried out, `true` is refused."
        )
    }
}

extension FieldDeclarations where Object: Record {
    fileprivate mutating func recipient(
        _ send: WritableKeyPath<Object, SendRequest>, _ means: String, isOptional: Bool
    ) {
        given(
            "recipient", means, isOptional: isOptional, object: "SendRecipient",
            "Whom to notify. Without `device` or `address`: every active destination of the channel.",
            rules: [.notBoth("address", "device")]
        ) { fields in
            fields.given(
                "user", send.appending(path: \.user), "The person, as registered under `/v1/recipients`.")
            fields.given("device", send.appending(path: \.destination), "One device, for `push`.")
            fields.given(
                "address", send.appending(path: \.destination),
                "One phone number or e-mail address, for `sms` and `email`.")
        }
    }
}

/// A question: what would the gate say to this send? Nothing is sent, counted or held.
package struct ExplainBody: WireBody, GivenRecord {
    /// What to ask about. Its id binds nothing; without a recipient, there are ``facts``.
    package var request = SendRequest(id: RequestID("explain"), type: TypeID(""), user: UserID(""))
    /// Facts to decide on instead of what the store knows.
    package var facts: Facts?
    /// Who would be asking; the caller itself when `nil`. A question only: it gives no caller a grant.
    package var caller: CallerName?
    /// The bundle to decide under; the one in force when `nil`.
    package var policy: PolicyDigest?
    /// As they were given.
    private var factsGiven: JSONObject?
    private(set) package var contradictions: [Violation] = []

    package var type: TypeID { request.type }
    package var channel: Channel { request.channel }
    package var critical: Bool { request.critical }
    package var params: JSONObject { request.params }
    package var deepLink: String? { request.deepLink }
    /// The send to ask about on a stored recipient, unless ``facts`` are given.
    package var send: SendRequest? { request.user == UserID("") ? nil : request }

    /// The grants of which the asking caller needs one; empty where the body has the facts itself. What its own send would be
    /// answered, a caller may ask; whatever else is known of a person needs `subjects.read`.
    package func neededGrants(of asking: CallerName) -> [Grant] {
        if facts != nil { return [] }
        return caller == nil || caller == asking ? [.send, .subjectsRead] : [.subjectsRead]
    }

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.some(SendRequest.content, of: \.request)
        fields.given(
            "id", \.request.id, "Accepted, so that a send can be asked about as it is; binds nothing.",
            .leftOut)
        fields.recipient(
            \.request,
            "Whose facts to decide on. Gates and facts are shown to `subjects.read` alone, and so is another caller's send.",
            isOptional: true)
        fields.given(
            "facts", \.factsGiven,
            "Facts to decide on. Given, nothing is read from the store and no grant is needed; what is absent counts as unknown.",
            .shape(Facts.shape))
        fields.given(
            "caller", \.caller,
            "The caller to ask as; the asking one when absent. Lends no grant: this is a question.")
        fields.given(
            "policy", \.policy, "The digest of an archived bundle; the one in force when absent.")
    }

    package static let givenShape = given(
        as: "ExplainRequest",
        "A send to explain: any body of `POST /v1/sends`, or one with `facts` in place of a stored recipient.",
        rules: [.anyOf(["facts", "recipient"])])

    package static let givenExample: JSONValue = [
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

    /// The shape of the facts is checked first and says more; their own reader has the last word.
    package mutating func settle() {
        guard let factsGiven else { return }
        do throws(JSONShapeError) {
            facts = try Facts(json: factsGiven, at: JSONPointer.root.appending("facts"))
        } catch {
            contradictions = [Violation(.body(error.pointer), error.message)]
        }
    }
}
