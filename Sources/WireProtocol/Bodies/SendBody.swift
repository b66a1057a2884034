package import CanonicalJSON
package import GateVocabulary

/// The members that a send and an explanation of one share.
enum SendMembers {
    static let recipient = Shape.named(
        "SendRecipient",
        .object(
            ObjectShape(
                "Whom to notify. Without `device` or `address`: every active destination of the channel.",
                [
                    .required(
                        "user", .identifier, "The person, as registered under `/v1/recipients`."),
                    .optional("device", .identifier, "One device, for `push`."),
                    .optional(
                        "address", .identifier,
                        "One phone number or e-mail address, for `sms` and `email`."),
                ],
                rules: [.notBoth("address", "device")])))

    static let params = Shape.map(
        keys: .paramName, values: .anything(depthMax: WireLimits.paramDepthMax - 1),
        countMax: WireLimits.paramCountMax)

    /// Everything but `id` and `recipient`, which only a real send must have.
    static let content: [ObjectShape.Member] = [
        .required("type", .identifier, "A notification type of the registry; see `GET /v1/types`."),
        .optional(
            "params", params, default: [:],
            "What the texts are made of. Their names and forms are the type's; what does not fit is refused as `invalid_params`, with an entry in the trail."
        ),
        .optional("channel", .choice(of: Channel.self), default: "push", "How the notification travels."),
        .optional(
            "fallback_for", .uuid,
            "The `send_id` of the failed push this send replaces: the same caller's, to the same recipient."),
        .optional(
            "critical", .boolean, default: false,
            "Asks for OS critical-alert delivery. Refused, never silently downgraded, unless the caller holds `send.critical` and the type is on the allow-list."
        ),
        .optional(
            "ttl_seconds", .integer(1...WireLimits.ttlSecondsMax),
            "How long the notification is worth something, counted as the type counts it: from its arrival, or from when it may go out. The type's own time to live when absent, and never longer than that."
        ),
        .optional(
            "collapse_key", .identifier,
            "Sends of one key replace each other on the device. Leaves the gateway only as a keyed tag."),
        .optional(
            "deep_link", .text(.deepLink),
            "Where a tap leads; the type's own place when absent. It has to lie under a place the type declares, in plain letters without `%`, `@` and `..`; otherwise the send is refused as `invalid_params`."
        ),
        .optional("locale", .text(.locale), "The language of the text; the recipient's when absent."),
    ]
}

extension SendRequest: WireBody {
    package static let shape = Shape.named(
        "SendRequest",
        .object(
            ObjectShape(
                "One notification to one recipient. There is no field for the sender: the kernel names it.",
                SendMembers.content + [
                    .required(
                        "id", .identifier,
                        "The caller's own id for this send, and its idempotency key: the same id with the same content is answered again and sent once."
                    ),
                    .required("recipient", SendMembers.recipient, "Whom to notify."),
                ])))

    package static let example: JSONValue = [
        "id": "rem-8812736-sent", "type": "transaction.remittance_sent",
        "recipient": ["user": "u_42", "device": "d_1"],
        "params": [
            "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
            "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
        ],
        "channel": "push", "critical": false, "ttl_seconds": 3600, "collapse_key": "rem-8812736",
        "deep_link": "drop://send", "locale": "nb",
    ]

    package init(checked members: CheckedMembers) {
        let recipient = members.required(members.members("recipient"), "recipient")
        self.init(
            id: RequestID(members.requiredText("id")), content: members,
            user: UserID(recipient.requiredText("user")), destination: recipient.destination)
    }

    init(id: RequestID, content members: CheckedMembers, user: UserID, destination: DestinationID?) {
        self.init(
            id: id, type: TypeID(members.requiredText("type")), user: user, destination: destination,
            params: members.object["params"]?.objectValue ?? [:], channel: members.name("channel") ?? .push,
            fallbackFor: members.text("fallback_for").flatMap { SendID(uuidText: $0) },
            critical: members.flag("critical") ?? false, ttlSeconds: members.integer("ttl_seconds"),
            collapseKey: members.text("collapse_key"), deepLink: members.text("deep_link"),
            locale: members.text("locale"))
    }
}

extension CheckedMembers {
    /// The one destination a recipient object names.
    var destination: DestinationID? { (text("device") ?? text("address")).map(DestinationID.init) }
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
    /// Who would be asking; the caller itself when `nil`. A question only: it lends nobody a grant.
    package var caller: CallerName?
    /// The bundle to decide under; the one in force when `nil`.
    package var policy: PolicyDigest?

    /// `subjects.read` when the answer would tell something of a person.
    package var neededGrant: Grant? { facts == nil ? .subjectsRead : nil }

    package static let shape = Shape.named(
        "ExplainRequest",
        .object(
            ObjectShape(
                "A send to explain: any body of `POST /v1/sends`, or one with `facts` in place of a stored recipient.",
                SendMembers.content + [
                    .optional(
                        "id", .identifier,
                        "Accepted, so that a send can be asked about as it is; binds nothing."),
                    .optional(
                        "recipient", SendMembers.recipient, "Whose facts to decide on; needs `subjects.read`."
                    ),
                    .optional(
                        "facts", FactsShape.shape,
                        "Facts to decide on. Given, nothing is read from the store and no grant is needed; what is absent counts as unknown."
                    ),
                    .optional(
                        "caller", .identifier,
                        "The caller to ask as; the asking one when absent. Lends no grant: this is a question."
                    ),
                    .optional(
                        "policy", .sha256,
                        "The digest of an archived bundle; the one in force when absent."),
                ],
                rules: [.anyOf(["facts", "recipient"])])))

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

    package init(checked members: CheckedMembers) throws(BodyError) {
        type = TypeID(members.requiredText("type"))
        channel = members.name("channel") ?? .push
        critical = members.flag("critical") ?? false
        params = members.object["params"]?.objectValue ?? [:]
        deepLink = members.text("deep_link")
        send = members.members("recipient").map { recipient in
            SendRequest(
                id: RequestID(members.text("id") ?? "explain"), content: members,
                user: UserID(recipient.requiredText("user")), destination: recipient.destination)
        }
        caller = members.text("caller").map(CallerName.init)
        policy = members.text("policy").map(PolicyDigest.init)
        guard let object = members.object["facts"]?.objectValue else { return }
        do throws(JSONShapeError) {
            facts = try Facts(json: object, at: JSONPointer.root.appending("facts"))
        } catch {
            // The shape is checked first and says more; the facts' own reader has the last word.
            throw .invalid([Violation(.body(error.pointer), error.message)])
        }
    }
}

/// The facts' JSON (`Facts.json`), told as a shape.
enum FactsShape {
    static let region = ObjectShape(
        "Where somebody was believed to be, how that became known, and when.",
        [
            .required("code", .text(.region), "ISO 3166-1, or ISO 3166-2 where a country is not enough."),
            .required("source", .choice(of: RegionSource.self), "How it became known."),
            .required("observed_at", .anyInteger, "Unix milliseconds."),
        ])

    static let consent = ObjectShape(
        "The newest word of one person on one purpose.",
        [
            .required("state", .choice(of: ConsentState.self), "What was said."),
            .optional("method", .choice(of: ConsentMethod.self), "How it was given."),
            .optional("expires_at", .anyInteger, "Unix milliseconds."),
        ])

    static let quietHours = VariantShape(
        "state", "Where the moment lies.",
        [
            (
                ["off", "outside", "zone_missing"],
                ObjectShape("Not inside the quiet hours, or nobody can tell.", [])
            ),
            (
                ["inside", "inside_somewhere"],
                ObjectShape(
                    "Inside the quiet hours; `inside_somewhere` in one of the zones where the recipient may be.",
                    [.required("ends_at", .anyInteger, "Unix milliseconds when the window ends.")])
            ),
        ])

    static let sizes = ObjectShape(
        "Bytes of the composed payload in each form it could take.",
        [
            .optional("sealed", .count, "Sealed."), .optional("generic", .count, "Generic."),
            .optional("full", .count, "Full."),
        ])

    static let shape = Shape.named(
        "Facts",
        .object(
            ObjectShape(
                "Everything a decision may look at. A fact that is absent is unknown, and a gate that needs it refuses with `fact_missing`.",
                [
                    .optional("now", .anyInteger, "The only clock a rule sees; Unix milliseconds."),
                    .optional("expiry", .anyInteger, "After this the notification is worth nothing."),
                    .optional("due", .anyInteger, "When the send itself wants to go out."),
                    .optional("params", .choice(of: ParamsFact.self), "Whether the params fit the type."),
                    .optional("fallback", .choice(of: FallbackFact.self), "What this send replaces."),
                    .optional("recipient", .choice(of: RecipientFact.self), "Whether the person is known."),
                    .optional("age", .choice(of: AgeFact.self), "Adult or minor."),
                    .optional("account_region", .object(region), "The account's region."),
                    .optional(
                        "device_regions",
                        .list(of: .object(region), countMax: Facts.deviceRegionCountMax),
                        "Where the devices were last seen."),
                    .optional("privacy", .choice(of: PrivacyLevel.self), "What a lock screen may show."),
                    .optional("consent", .object(consent), "On the category's purpose."),
                    .optional("purpose_consent", .object(consent), "On the special purpose a type names."),
                    .optional(
                        "own_request", .object(consent),
                        "On being reached at any hour, where a type lets one ask for it."),
                    .optional(
                        "repetition", .choice(of: RepetitionFact.self),
                        "Whether it was told before; for a type with `dedupe_by`."),
                    .optional("push_enabled", .boolean, "The recipient's master switch for push."),
                    .optional(
                        "account_preference", .choice(of: PreferenceState.self), "The account's choice."),
                    .optional(
                        "destination_preference", .choice(of: PreferenceState.self),
                        "The destination's choice."),
                    .optional(
                        "account_type_preference", .choice(of: PreferenceState.self),
                        "The account's choice on the type alone."),
                    .optional(
                        "destination_type_preference", .choice(of: PreferenceState.self),
                        "The destination's choice on the type alone."),
                    .optional("quiet_hours", .variants(quietHours), "The quiet hours at the destination."),
                    .optional("destination", .choice(of: DestinationFact.self), "Whether it can be reached."),
                    .optional("platform", .choice(of: Platform.self), "The push service."),
                    .optional(
                        "os_permission", .choice(of: OSPermission.self), "What the OS lets the app do."),
                    .optional("critical_alerts", .boolean, "Whether the device grants critical alerts."),
                    .optional("device_key", .choice(of: DeviceKeyFact.self), "The device's key."),
                    .optional("sizes", .object(sizes), "Sizes of the composed payload."),
                    .optional("type_count", .count, "Forwards of this type in its window."),
                    .optional("category_count", .count, "Forwards of the category in its window."),
                    .optional(
                        "everything_count", .count,
                        "Forwards of everything that a limit over all categories counts, in its window."),
                    .optional(
                        "withheld", .boolean,
                        "Whether the person takes part in what the category is withheld from."),
                ])))
}
