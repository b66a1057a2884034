package import CanonicalJSON
package import GateVocabulary

/// `GET /v1/recipients/{user}`: all that is held of a person (GDPR Art. 15).
package struct RecipientAnswer: Hashable, Sendable {
    package struct Device: Hashable, Sendable {
        package var device: String
        package var platform: Platform
        package var app: String
        /// Shown only here: the person may see what is held, and nobody else asks this route.
        package var token: String
        package var region: RegionObservation?
        package var timeZone: String?
        package var osPermission: OSPermission
        package var criticalAlerts: Bool
        package var isActive: Bool
        package var seenAt: Instant
        package var subscriptions: Subscriptions?
        package var keys: [Key]

        package init(
            device: String, platform: Platform, app: String, token: String, region: RegionObservation?,
            timeZone: String?, osPermission: OSPermission, criticalAlerts: Bool, isActive: Bool,
            seenAt: Instant, subscriptions: Subscriptions?, keys: [Key]
        ) {
            self.device = device
            self.platform = platform
            self.app = app
            self.token = token
            self.region = region
            self.timeZone = timeZone
            self.osPermission = osPermission
            self.criticalAlerts = criticalAlerts
            self.isActive = isActive
            self.seenAt = seenAt
            self.subscriptions = subscriptions
            self.keys = keys
        }

        var json: JSONObject {
            JSONObject(present: [
                "device": .string(device), "platform": .string(platform.rawValue), "app": .string(app),
                "token": .string(token), "region": region.map { .object($0.answer) },
                "time_zone": timeZone.map { .string($0) }, "os_permission": .string(osPermission.rawValue),
                "critical_alerts": .boolean(criticalAlerts), "active": .boolean(isActive),
                "seen_at": .string(seenAt.rfc3339),
                "subscriptions": subscriptions.map { .object($0.json) },
                "keys": .array(keys.map { .object($0.json) }),
            ])
        }
    }

    package struct Subscriptions: Hashable, Sendable {
        package var categories: [Category: Bool]
        package var observedAt: Instant

        package init(categories: [Category: Bool], observedAt: Instant) {
            self.categories = categories
            self.observedAt = observedAt
        }

        var json: JSONObject {
            [
                "categories": .object(
                    JSONObject(categories.map { ($0.key.rawValue, .boolean($0.value)) })),
                "observed_at": .string(observedAt.rfc3339),
            ]
        }
    }

    package struct Drift: Hashable, Sendable {
        package var kind: DriftKind
        package var action: DriftAction
        package var device: String?
        package var category: Category?
        package var old: String
        package var new: String?

        package init(
            kind: DriftKind, action: DriftAction, device: String?, category: Category?, old: String,
            new: String?
        ) {
            self.kind = kind
            self.action = action
            self.device = device
            self.category = category
            self.old = old
            self.new = new
        }

        var json: JSONObject {
            JSONObject(present: [
                "finding": .string(kind.rawValue), "action": .string(action.rawValue),
                "device": device.map { .string($0) }, "category": category.map { .string($0.rawValue) },
                "old": .string(old), "new": new.map { .string($0) },
            ])
        }
    }

    package struct Key: Hashable, Sendable {
        package var key: KeyID
        package var suite: String
        package var state: String
        package var createdAt: Instant

        package init(key: KeyID, suite: String, state: String, createdAt: Instant) {
            self.key = key
            self.suite = suite
            self.state = state
            self.createdAt = createdAt
        }

        var json: JSONObject {
            [
                "created_at": .string(createdAt.rfc3339), "key_id": .string(key.hexadecimal),
                "state": .string(state), "suite": .string(suite),
            ]
        }
    }

    package struct Address: Hashable, Sendable {
        package var address: String
        package var channel: Channel
        package var value: String
        package var verifiedAt: Instant?

        package init(address: String, channel: Channel, value: String, verifiedAt: Instant?) {
            self.address = address
            self.channel = channel
            self.value = value
            self.verifiedAt = verifiedAt
        }

        var json: JSONObject {
            JSONObject(present: [
                "address": .string(address), "kind": .string(channel.rawValue), "value": .string(value),
                "verified_at": verifiedAt.map { .string($0.rfc3339) },
            ])
        }
    }

    package struct Prompt: Hashable, Sendable {
        package var device: String
        package var shownAt: Instant
        package var answer: String?

        package init(device: String, shownAt: Instant, answer: String?) {
            self.device = device
            self.shownAt = shownAt
            self.answer = answer
        }

        var json: JSONObject {
            JSONObject(present: [
                "device": .string(device), "shown_at": .string(shownAt.rfc3339),
                "answer": answer.map { .string($0) },
            ])
        }
    }

    package var user: UserID
    package var registeredAt: Instant
    package var updatedAt: Instant
    package var region: RegionObservation?
    package var age: AgeFact?
    package var locale: String?
    package var timeZone: String?
    package var privacy: PrivacyLevel
    package var pushEnabled: Bool
    package var quietHours: QuietHoursBody?
    package var devices: [Device]
    package var addresses: [Address]
    package var consents: [ConsentsAnswer.Record]
    package var preferences: [PreferencesAnswer.Transition]
    package var prompts: [Prompt]
    /// What the newest drift audit found.
    package var drifts: [Drift]
    /// Newest first, at most ``WireLimits/decisionCountMax``.
    package var decisions: DecisionsAnswer

    package init(
        user: UserID, registeredAt: Instant, updatedAt: Instant, region: RegionObservation?, age: AgeFact?,
        locale: String?, timeZone: String?, privacy: PrivacyLevel, pushEnabled: Bool,
        quietHours: QuietHoursBody?, devices: [Device], addresses: [Address],
        consents: [ConsentsAnswer.Record], preferences: [PreferencesAnswer.Transition], prompts: [Prompt],
        drifts: [Drift], decisions: DecisionsAnswer
    ) {
        self.user = user
        self.registeredAt = registeredAt
        self.updatedAt = updatedAt
        self.region = region
        self.age = age
        self.locale = locale
        self.timeZone = timeZone
        self.privacy = privacy
        self.pushEnabled = pushEnabled
        self.quietHours = quietHours
        self.devices = devices
        self.addresses = addresses
        self.consents = consents
        self.preferences = preferences
        self.prompts = prompts
        self.drifts = drifts
        self.decisions = decisions
    }

    package var json: JSONObject {
        var object = JSONObject(present: [
            "user": .string(user.text), "registered_at": .string(registeredAt.rfc3339),
            "updated_at": .string(updatedAt.rfc3339), "region": region.map { .object($0.answer) },
            "age": age.map { .string($0.rawValue) }, "locale": locale.map { .string($0) },
            "time_zone": timeZone.map { .string($0) }, "privacy": .string(privacy.rawValue),
            "push_enabled": .boolean(pushEnabled),
            "quiet_hours": quietHours.map { .object($0.json) },
        ])
        object["devices"] = .array(devices.map { .object($0.json) })
        object["addresses"] = .array(addresses.map { .object($0.json) })
        object["consents"] = .array(consents.map { .object($0.json) })
        object["preferences"] = .array(preferences.map { .object($0.json) })
        object["permission_prompts"] = .array(prompts.map { .object($0.json) })
        object["drifts"] = .array(drifts.map { .object($0.json) })
        object["decisions"] = .array(decisions.rows.map { .object($0.json) })
        if let next = decisions.next { object["decisions_next"] = .string(next.uuidText) }
        return object
    }

    private static let region = Shape.answer(
        "ObservedRegion", "Where somebody was believed to be.",
        [
            .required("code", .text(.region), "ISO 3166."),
            .required("source", .choice(of: RegionSource.self), "How it became known."),
            .required("observed_at", .anyText, "RFC 3339."),
        ])

    private static let key = Shape.answer(
        "HeldKey", "A device's public key.",
        [
            .required("key_id", .keyID, "Its id."), .required("suite", .anyText, "Its HPKE suite."),
            .required("state", .anyText, "Its state (NIST SP 800-57)."),
            .required("created_at", .anyText, "RFC 3339."),
        ])

    private static let device = Shape.answer(
        "HeldDevice", "A device as it is registered.",
        [
            .required("device", .anyText, "Its id."),
            .required("platform", .choice(of: Platform.self), "Its push service."),
            .required("app", .anyText, "The app."), .required("token", .anyText, "The push token held."),
            .optional("region", region, "Where it was seen."),
            .optional("time_zone", .anyText, "Its time zone."),
            .required("os_permission", .choice(of: OSPermission.self), "What its operating system allows."),
            .required("critical_alerts", .boolean, "Whether it grants critical alerts."),
            .required("active", .boolean, "Whether it is pushed to."),
            .required("seen_at", .anyText, "RFC 3339."),
            .optional("subscriptions", subscriptions, "What the provider has it subscribed to."),
            .required("keys", .all(key), "Its keys."),
        ])

    private static let subscriptions = Shape.answer(
        "HeldSubscriptions", "What the provider of notifications has a device subscribed to.",
        [
            .required(
                "categories", .map(keys: .identifier, values: .boolean, countMax: Category.allCases.count),
                "Whether it is subscribed, by category."),
            .required("observed_at", .anyText, "RFC 3339."),
        ])

    private static let drift = Shape.answer(
        "HeldDrift", "What the newest drift audit found.",
        [
            .required("finding", .choice(of: DriftKind.self), "What disagrees."),
            .required("action", .choice(of: DriftAction.self), "What is done about it."),
            .optional("device", .anyText, "At which device; absent for the account."),
            .optional("category", .choice(of: Category.self), "Which category, where it is about one."),
            .required("old", .anyText, "What is on record of the side that gives way."),
            .optional("new", .anyText, "What it is set to, or is to be set to by the provider."),
        ])

    private static let address = Shape.answer(
        "HeldAddress", "A phone number or e-mail address as it is registered.",
        [
            .required("address", .anyText, "Its id."),
            .required("kind", .choice(["sms", "email"]), "What it is."),
            .required("value", .anyText, "The number or address."),
            .optional("verified_at", .anyText, "RFC 3339."),
        ])

    private static let prompt = Shape.answer(
        "HeldPrompt", "The operating system's prompt was shown.",
        [
            .required("device", .anyText, "On which device."), .required("shown_at", .anyText, "RFC 3339."),
            .optional("answer", .anyText, "What was chosen."),
        ])

    package static let shape = Shape.answer(
        "HeldRecipient", "All that is held of a person (GDPR Art. 15).",
        [
            .required("user", .anyText, "The person."), .required("registered_at", .anyText, "RFC 3339."),
            .required("updated_at", .anyText, "RFC 3339."),
            .optional("region", region, "The account's region."),
            .optional("age", .choice(of: AgeFact.self), "Adult or minor."),
            .optional("locale", .anyText, "The language of texts."),
            .optional("time_zone", .anyText, "The account's time zone."),
            .required("privacy", .choice(of: PrivacyLevel.self), "What a lock screen may show."),
            .required("push_enabled", .boolean, "The master switch."),
            .optional("quiet_hours", QuietHoursBody.shape, "The quiet hours."),
            .required("devices", .all(device), "Devices."),
            .required("addresses", .all(address), "Addresses."),
            .required("consents", .all(ConsentsAnswer.Record.shape), "The consent ledger, oldest first."),
            .required("preferences", .all(PreferencesAnswer.Transition.shape), "Every choice, oldest first."),
            .required("permission_prompts", .all(prompt), "Prompts shown."),
            .required(
                "drifts", .all(drift),
                "What the app, the provider and the operating system disagree about; `blocked_at_os` is a badge to show."
            ),
            .required(
                "decisions",
                .list(of: DecisionsAnswer.Row.shape, countMax: Int(WireLimits.decisionCountMax)),
                "What was decided and what became of it, newest first."),
            .optional(
                "decisions_next", .uuid,
                "There are older ones: give it as `before` to `GET …/decisions`. Absent when these are all."),
        ])
}

extension RegionObservation {
    /// For a person: the moment as RFC 3339, where the facts' own form has milliseconds.
    fileprivate var answer: JSONObject {
        [
            "code": .string(code.description), "observed_at": .string(observedAt.rfc3339),
            "source": .string(source.rawValue),
        ]
    }
}

/// `GET …/consents`: the ledger as it stood, and what it adds up to.
package struct ConsentsAnswer: Hashable, Sendable {
    package struct Record: Hashable, Sendable {
        package var sequence: Int64
        package var id: String
        package var purpose: Purpose
        package var channel: Channel
        package var address: String?
        /// `given`, `refused`, `withdrawn`, `shown`, `undone`.
        package var state: String
        package var eventTime: Instant
        package var receivedAt: Instant
        package var method: ConsentMethod
        package var source: CallerName
        package var jurisdiction: String?
        package var notice: ConsentBody.Notice?
        /// On what a send may rest because of it; `nil` when on nothing.
        package var lawfulBasis: String?
        /// The words of ``notice``, from the archive; in `GET …/consents` only.
        package var noticeText: String?
        package var expiresAt: Instant?
        /// The record a withdrawal withdraws.
        package var withdraws: String?
        /// SHA-256 of the record before, hexadecimal; empty for the first.
        package var previousHash: String

        package init(
            sequence: Int64, id: String, purpose: Purpose, channel: Channel, address: String?, state: String,
            eventTime: Instant, receivedAt: Instant, method: ConsentMethod, source: CallerName,
            jurisdiction: String?, notice: ConsentBody.Notice?, expiresAt: Instant?, withdraws: String?,
            previousHash: String, lawfulBasis: String?, noticeText: String? = nil
        ) {
            self.sequence = sequence
            self.id = id
            self.purpose = purpose
            self.channel = channel
            self.address = address
            self.state = state
            self.eventTime = eventTime
            self.receivedAt = receivedAt
            self.method = method
            self.source = source
            self.jurisdiction = jurisdiction
            self.notice = notice
            self.lawfulBasis = lawfulBasis
            self.noticeText = noticeText
            self.expiresAt = expiresAt
            self.withdraws = withdraws
            self.previousHash = previousHash
        }

        package var json: JSONObject {
            JSONObject(present: [
                "sequence": .integer(sequence), "id": .string(id), "purpose": .string(purpose.text),
                "channel": .string(channel.rawValue), "address": address.map { .string($0) },
                "state": .string(state), "event_time": .string(eventTime.rfc3339),
                "received_at": .string(receivedAt.rfc3339), "method": .string(method.rawValue),
                "source": .string(source.text), "jurisdiction": jurisdiction.map { .string($0) },
                "notice": notice.map { notice in
                    var object = notice.json
                    if let noticeText { object["text"] = .string(noticeText) }
                    return .object(object)
                }, "lawful_basis": lawfulBasis.map { .string($0) },
                "expires_at": expiresAt.map { .string($0.rfc3339) },
                "withdraws": withdraws.map { .string($0) }, "previous_hash": .string(previousHash),
            ])
        }

        private static let notice = Shape.answer(
            "ShownNotice", "The text that was shown.",
            [
                .required("id", .anyText, "Its name."), .required("version", .anyText, "Its version."),
                .required("sha256", .sha256, "Its digest."),
                .required("language", .anyText, "Its language."),
                .optional("text", .anyText, "Its words, from the archive; in `GET …/consents` only."),
            ])

        package static let shape = Shape.answer(
            "ConsentRecord", "One record of the ledger. Nothing in it is ever changed.",
            [
                .required("sequence", .count, "Its position."),
                .required("id", .anyText, "The reporter's id."),
                .required("purpose", .anyText, "What for."),
                .required("channel", .choice(of: Channel.self), "Which channel."),
                .optional(
                    "address", .anyText,
                    "Which number or e-mail address; none for push, and for a withdrawal of the whole channel."
                ),
                .required(
                    "state", .choice(["given", "refused", "withdrawn", "shown", "undone"]),
                    "What was said; `undone` takes back the withdrawal that it names."),
                .required("event_time", .anyText, "RFC 3339; when the person spoke."),
                .required("received_at", .anyText, "RFC 3339; when the gate heard of it."),
                .required("method", .choice(of: ConsentMethod.self), "How."),
                .required("source", .anyText, "The caller that reported it."),
                .optional("jurisdiction", .anyText, "Whose law."),
                .optional("notice", notice, "What was shown."),
                .optional("lawful_basis", .anyText, "What a send may rest on because of a given consent."),
                .optional("expires_at", .anyText, "RFC 3339; when it stops counting."),
                .optional("withdraws", .anyText, "The record it withdraws."),
                .required("previous_hash", .anyText, "SHA-256 of the record before; empty for the first."),
            ])
    }

    /// What the records add up to for one purpose, channel and address.
    package struct Standing: Hashable, Sendable {
        package var purpose: Purpose
        package var channel: Channel
        package var address: String?
        package var consent: ConsentFact
        /// It was given, and at the moment that was asked about it does not count any more.
        package var hasExpired: Bool

        package init(
            purpose: Purpose, channel: Channel, address: String?, consent: ConsentFact, hasExpired: Bool
        ) {
            self.purpose = purpose
            self.channel = channel
            self.address = address
            self.consent = consent
            self.hasExpired = hasExpired
        }

        var json: JSONObject {
            JSONObject(present: [
                "purpose": .string(purpose.text), "channel": .string(channel.rawValue),
                "address": address.map { .string($0) },
                "state": .string(hasExpired ? Self.expired : consent.state.rawValue),
                "method": consent.method.map { .string($0.rawValue) },
                "expires_at": consent.expiresAt.map { .string($0.rfc3339) },
            ])
        }

        private static let expired = "expired"

        package static let shape = Shape.answer(
            "ConsentStanding",
            "What the records add up to: the newest event counts, a tie counts as withdrawn.",
            [
                .required("purpose", .anyText, "What for."),
                .required("channel", .choice(of: Channel.self), "Which channel."),
                .optional(
                    "address", .anyText,
                    "Which number or e-mail address; none for push, and for a withdrawal of the whole channel."
                ),
                .required(
                    "state", .choice(ConsentState.allCases.map(\.rawValue) + [expired]),
                    "Where it stands; `expired` for what was given and does not count any more."),
                .optional("method", .choice(of: ConsentMethod.self), "How it was given."),
                .optional("expires_at", .anyText, "RFC 3339; when it stops counting."),
            ])
    }

    package var query: ConsentsQuery
    /// Oldest first.
    package var records: [Record]
    package var standing: [Standing]

    package init(query: ConsentsQuery, records: [Record], standing: [Standing]) {
        self.query = query
        self.records = records
        self.standing = standing
    }

    package var json: JSONObject {
        JSONObject(present: [
            "as_of": query.asOf.map { .string($0.rfc3339) },
            "known_at": query.knownAt.map { .string($0.rfc3339) },
            "records": .array(records.map { .object($0.json) }),
            "standing": .array(standing.map { .object($0.json) }),
        ])
    }

    package static let shape = Shape.answer(
        "Consents", "The ledger as it stood, and what it adds up to.",
        [
            .optional("as_of", .anyText, "RFC 3339; events up to then."),
            .optional("known_at", .anyText, "RFC 3339; heard of by then."),
            .required("records", .all(Record.shape), "Oldest first."),
            .required("standing", .all(Standing.shape), "What they add up to."),
        ])
}

/// `GET …/preferences`: chosen, effective, why, and how to change it.
package struct PreferencesAnswer: Hashable, Sendable {
    /// One choice as it was made.
    package struct Transition: Hashable, Sendable {
        package var scope: String
        package var channel: Channel
        /// `nil` for the account.
        package var destination: String?
        package var state: PreferenceState
        package var source: String
        package var at: Instant
        package var caller: CallerName

        package init(
            scope: String, channel: Channel, destination: String?, state: PreferenceState, source: String,
            at: Instant, caller: CallerName
        ) {
            self.scope = scope
            self.channel = channel
            self.destination = destination
            self.state = state
            self.source = source
            self.at = at
            self.caller = caller
        }

        package var json: JSONObject {
            JSONObject(present: [
                "scope": .string(scope), "channel": .string(channel.rawValue),
                "destination": destination.map { .string($0) }, "state": .string(state.rawValue),
                "source": .string(source), "at": .string(at.rfc3339), "caller": .string(caller.text),
            ])
        }

        package static let shape = Shape.answer(
            "PreferenceTransition", "One choice as it was made.",
            [
                .required("scope", .anyText, "A category or a type."),
                .required("channel", .choice(of: Channel.self), "Which channel."),
                .optional("destination", .anyText, "One device or address; the account when absent."),
                .required("state", .choice(of: PreferenceState.self), "What was chosen."),
                .required("source", .anyText, "Where it was chosen."), .required("at", .anyText, "RFC 3339."),
                .required("caller", .anyText, "The caller that reported it."),
            ])
    }

    /// What one preference comes to.
    package struct Row: Hashable, Sendable {
        package var scope: String
        package var channel: Channel
        package var destination: String?
        package var chosen: PreferenceState
        /// Whether notifications of the scope get through now.
        package var isEffectivelyOn: Bool
        /// Why: `chosen`, `default`, `permitted`, `withheld` or the name of the reason that stops them.
        package var why: String
        /// What exactly is missing, for a consent.
        package var detail: Detail?
        /// What the person can do about it, in a sentence.
        package var howToFix: String?
        package var source: String?
        package var at: Instant?

        package init(
            scope: String, channel: Channel, destination: String?, chosen: PreferenceState,
            isEffectivelyOn: Bool, why: String, detail: Detail? = nil, howToFix: String?, source: String?,
            at: Instant?
        ) {
            self.scope = scope
            self.channel = channel
            self.destination = destination
            self.chosen = chosen
            self.isEffectivelyOn = isEffectivelyOn
            self.why = why
            self.detail = detail
            self.howToFix = howToFix
            self.source = source
            self.at = at
        }

        var json: JSONObject {
            JSONObject(present: [
                "scope": .string(scope), "channel": .string(channel.rawValue),
                "destination": destination.map { .string($0) }, "chosen": .string(chosen.rawValue),
                "effective": .string(isEffectivelyOn ? "on" : "off"), "why": .string(why),
                "detail": detail.map { .string($0.rawValue) },
                "how_to_fix": howToFix.map { .string($0) }, "source": source.map { .string($0) },
                "at": at.map { .string($0.rfc3339) },
            ])
        }

        package static let shape = Shape.answer(
            "PreferenceStanding", "One preference: what was chosen, what it comes to, and why.",
            [
                .required("scope", .anyText, "A category or a type."),
                .required("channel", .choice(of: Channel.self), "Which channel."),
                .optional("destination", .anyText, "One device or address; the account when absent."),
                .required(
                    "chosen", .choice(of: PreferenceState.self),
                    "What was chosen; `default` when nothing was."),
                .required("effective", .choice(["on", "off"]), "Whether notifications get through."),
                .required(
                    "why", .anyText,
                    """
                    `chosen`; `default`; `permitted`, when it is off by default and a law or a recorded sale lets it \
                    through until the person objects; `withheld`, when it is kept from whoever takes part in something they \
                    take part in; or the reason that stops them.
                    """),
                .optional(
                    "detail", .choice(of: Detail.self),
                    "What a missing consent is: `expired`, `withdrawn`, …."),
                .optional("how_to_fix", .anyText, "What the person can do about it."),
                .optional("source", .anyText, "Where it was chosen."), .optional("at", .anyText, "RFC 3339."),
            ])
    }

    /// Whether a device may be asked for the OS permission.
    package struct Prompt: Hashable, Sendable {
        package var device: String
        package var osPermission: OSPermission?
        package var shownAt: Instant?
        /// The OS shows its prompt once; asking again only teaches people to say no (S1).
        package var mayPrompt: Bool

        package init(device: String, osPermission: OSPermission?, shownAt: Instant?, mayPrompt: Bool) {
            self.device = device
            self.osPermission = osPermission
            self.shownAt = shownAt
            self.mayPrompt = mayPrompt
        }

        var json: JSONObject {
            JSONObject(present: [
                "device": .string(device), "os_permission": osPermission.map { .string($0.rawValue) },
                "shown_at": shownAt.map { .string($0.rfc3339) }, "may_prompt": .boolean(mayPrompt),
            ])
        }

        package static let shape = Shape.answer(
            "PromptStanding", "Whether the OS permission prompt may be shown on a device.",
            [
                .required("device", .anyText, "Which device."),
                .optional("os_permission", .choice(of: OSPermission.self), "What the OS last said."),
                .optional("shown_at", .anyText, "RFC 3339; when the prompt was shown."),
                .required(
                    "may_prompt", .boolean, "False once it was shown, and where the OS has its answer."),
            ])
    }

    package var rows: [Row]
    package var prompts: [Prompt]

    package init(rows: [Row], prompts: [Prompt]) {
        self.rows = rows
        self.prompts = prompts
    }

    package var json: JSONObject {
        [
            "preferences": .array(rows.map { .object($0.json) }),
            "prompts": .array(prompts.map { .object($0.json) }),
        ]
    }

    package static let shape = Shape.answer(
        "Preferences", "Every preference of a person.",
        [
            .required("preferences", .all(Row.shape), "By scope, channel and destination."),
            .required("prompts", .all(Prompt.shape), "By device."),
        ])
}

/// `GET …/decisions`: why things did and did not arrive.
package struct DecisionsAnswer: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        package var send: SendID
        package var caller: CallerName
        package var type: TypeID
        package var channel: Channel
        package var at: Instant
        package var outcome: Outcome
        package var reason: Reason
        package var detail: Detail?
        /// One sentence a support agent can read out.
        package var sentence: String
        package var deliveries: [SendAnswer.Delivery]
        /// Destinations whose message still waits here.
        package var waiting: [String]
        /// What became of it, oldest first: hand-overs, receipts, withdrawals.
        package var events: [SendEvent]
        package var trail: TrailReference

        package init(
            send: SendID, caller: CallerName, type: TypeID, channel: Channel, at: Instant, outcome: Outcome,
            reason: Reason, detail: Detail?, sentence: String, deliveries: [SendAnswer.Delivery],
            waiting: [String], events: [SendEvent], trail: TrailReference
        ) {
            self.send = send
            self.caller = caller
            self.type = type
            self.channel = channel
            self.at = at
            self.outcome = outcome
            self.reason = reason
            self.detail = detail
            self.sentence = sentence
            self.deliveries = deliveries
            self.waiting = waiting
            self.events = events
            self.trail = trail
        }

        package var json: JSONObject {
            let listed = deliveries.filter { $0.destination != nil }
            return JSONObject(present: [
                "send_id": .string(send.uuidText), "caller": .string(caller.text), "type": .string(type.text),
                "channel": .string(channel.rawValue), "at": .string(at.rfc3339),
                "outcome": .string(outcome.name), "reason": .string(reason.rawValue),
                "detail": detail.map { .string($0.rawValue) },
                "who_can_fix": .string(reason.whoCanFix(detail).rawValue), "explanation": .string(sentence),
                "deliveries": .array(listed.map { .object($0.json) }),
                "waiting": .array(waiting.map { .string($0) }),
                "events": .array(events.map { .object($0.json) }), "trail": .object(trail.json),
            ])
        }

        package static let shape = Shape.answer(
            "DecisionRow", "One send to this person, and why it did or did not arrive.",
            [
                .required("send_id", .uuid, "The send."),
                .required("caller", .anyText, "Who sent it."),
                .required("type", .anyText, "The type."),
                .required("channel", .choice(of: Channel.self), "The channel."),
                .required("at", .anyText, "RFC 3339."),
                .required("outcome", .choice(Outcome.allCases.map(\.name)), "The best of the deliveries."),
                .required("reason", .choice(of: Reason.self), "Why."),
                .optional("detail", .choice(of: Detail.self), "What exactly was missing."),
                .required(
                    "who_can_fix", .choice(of: WhoCanFix.self), "Who can make the next attempt succeed."),
                .required("explanation", .anyText, "The same in a sentence."),
                .required(
                    "deliveries",
                    .list(of: SendAnswer.Delivery.shape, countMax: WireLimits.destinationCountMax),
                    "One per destination."),
                .required(
                    "waiting", .list(of: .anyText, countMax: WireLimits.destinationCountMax),
                    "Destinations whose message still waits here."),
                .required("events", .all(SendEvent.shape), "What became of it, oldest first."),
                .required("trail", TrailReference.shape, "The evidence."),
            ])
    }

    /// Newest first.
    package var rows: [Row]
    /// The oldest row, when there are older ones still.
    package var next: SendID?

    package init(rows: [Row], next: SendID? = nil) {
        self.rows = rows
        self.next = next
    }

    package var json: JSONObject {
        JSONObject(present: [
            "decisions": .array(rows.map { .object($0.json) }), "next": next.map { .string($0.uuidText) },
        ])
    }

    package static let shape = Shape.answer(
        "Decisions", "Why things did and did not arrive, newest first.",
        [
            .required(
                "decisions", .list(of: Row.shape, countMax: Int(WireLimits.decisionCountMax)), "Newest first."
            ),
            .optional("next", .uuid, "There are older ones: give it as `before`. Absent when these are all."),
        ])
}

/// `POST …/devices/{device}/keys`: the key's id, and what the device must open to prove it holds the key.
package struct KeyChallengeAnswer: Hashable, Sendable {
    package var key: KeyID
    /// An envelope of purpose 2 to the new key.
    package var challenge: JSONObject
    /// The same to the device's earlier active key, which must answer too.
    package var oldKeyChallenge: JSONObject?
    package var expiresAt: Instant
    package var trail: TrailReference

    package init(
        key: KeyID, challenge: JSONObject, oldKeyChallenge: JSONObject?, expiresAt: Instant,
        trail: TrailReference
    ) {
        self.key = key
        self.challenge = challenge
        self.oldKeyChallenge = oldKeyChallenge
        self.expiresAt = expiresAt
        self.trail = trail
    }

    package var json: JSONObject {
        JSONObject(present: [
            "key_id": .string(key.hexadecimal), "challenge": .object(challenge),
            "old_key_challenge": oldKeyChallenge.map { .object($0) },
            "expires_at": .string(expiresAt.rfc3339), "trail": .object(trail.json),
        ])
    }

    private static let envelope = Shape.answer(
        "Envelope", "A sealed envelope, to be opened with the device's private key.",
        [
            .required("v", .integer(1...1), "The format's version."),
            .required("s", .choice(of: DeviceKeyBody.Suite.self), "The HPKE suite."),
            .required("kid", .anyText, "The key."), .required("mid", .anyText, "The message."),
            .required("exp", .count, "Unix seconds after which it must not be opened."),
            .required("ct", .anyText, "Encapsulated key and ciphertext in base64url."),
        ])

    package static let shape = Shape.answer(
        "KeyChallenge", "The key is registered but unproved; answer the challenge to make it usable.",
        [
            .required("key_id", .keyID, "The new key's id."),
            .required("challenge", envelope, "For the new key."),
            .optional("old_key_challenge", envelope, "For the earlier active key, which must answer too."),
            .required("expires_at", .anyText, "RFC 3339; five minutes from now."),
            .required("trail", TrailReference.shape, "The evidence."),
        ])
}
