package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// `GET /v1/recipients/{user}`: all that is held of a person (GDPR Art. 15).
package struct RecipientAnswer: WireAnswer, Hashable {
    /// One registered device.
    package struct Device: WireAnswer, Hashable {
        package var device: String
        package var platform: Platform
        /// `nil` for the platform's own service.
        package var provider: PushProvider?
        package var app: String
        /// Shown only here: the person may see what is held, and this route is asked for no other reason.
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
            device: String, platform: Platform, provider: PushProvider?, app: String, token: String,
            region: RegionObservation?, timeZone: String?, osPermission: OSPermission, criticalAlerts: Bool,
            isActive: Bool,
            seenAt: Instant, subscriptions: Subscriptions?, keys: [Key]
        ) {
            self.device = device
            self.platform = platform
            self.provider = provider
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

        package static let name = "HeldDevice"
        package static let means = "A device as it is registered."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("active", answer, \.isActive, "Whether it is pushed to.")
            fields.required("app", answer, \.app, "The app.")
            fields.required("critical_alerts", answer, \.criticalAlerts, "Whether it grants critical alerts.")
            fields.required("device", answer, \.device, "Its id.")
            fields.required("keys", answer, \.keys, "Its keys.")
            fields.required("os_permission", answer, \.osPermission, "What its operating system allows.")
            fields.required("platform", answer, \.platform, "What it is.")
            fields.optional(
                "provider", answer, \.provider, "Its push service, where it is not the platform's own.")
            fields.optional("region", answer, \.region, "Where it was seen.")
            fields.required("seen_at", answer, \.seenAt, "RFC 3339.")
            fields.optional(
                "subscriptions", answer, \.subscriptions, "What the provider has it subscribed to.")
            fields.optional("time_zone", answer, \.timeZone, "Its time zone.")
            fields.required("token", answer, \.token, "The push token held.")
        }
    }

    /// What the push provider has a device subscribed to.
    package struct Subscriptions: WireAnswer, Hashable {
        package var categories: [Category: Bool]
        package var observedAt: Instant

        package init(categories: [Category: Bool], observedAt: Instant) {
            self.categories = categories
            self.observedAt = observedAt
        }

        package static let name = "HeldSubscriptions"
        package static let means = "What the provider of notifications has a device subscribed to."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required(
                "categories",
                as: .map(keys: .identifier, values: .boolean, countMax: Category.allCases.count),
                answer,
                { JSONObject($0.categories.map { ($0.key.rawValue, .boolean($0.value)) }) },
                "Whether it is subscribed, by category.")
            fields.required("observed_at", answer, \.observedAt, "RFC 3339.")
        }
    }

    /// One difference that the newest drift audit found.
    package struct Drift: WireAnswer, Hashable {
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

        package static let name = "HeldDrift"
        package static let means = "What the newest drift audit found."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("action", answer, \.action, "What is done about it.")
            fields.optional("category", answer, \.category, "Which category, where it is about one.")
            fields.optional("device", answer, \.device, "At which device; absent for the account.")
            fields.required("finding", answer, \.kind, "What disagrees.")
            fields.optional("new", answer, \.new, "What it is set to, or is to be set to by the provider.")
            fields.required("old", answer, \.old, "What is on record of the side that gives way.")
        }
    }

    /// One key of a device.
    package struct Key: WireAnswer, Hashable {
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

        package static let name = "HeldKey"
        package static let means = "A device's public key."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("created_at", answer, \.createdAt, "RFC 3339.")
            fields.required("key_id", answer, \.key, "Its id.")
            fields.required("state", answer, \.state, "Its state (NIST SP 800-57).")
            fields.required("suite", answer, \.suite, "Its HPKE suite.")
        }
    }

    /// One registered number or mailbox.
    package struct Address: WireAnswer, Hashable {
        package var address: String
        package var channel: Channel
        package var value: String
        package var verifiedAt: Instant?
        package var isContested: Bool

        package init(
            address: String, channel: Channel, value: String, verifiedAt: Instant?, isContested: Bool
        ) {
            self.address = address
            self.channel = channel
            self.value = value
            self.verifiedAt = verifiedAt
            self.isContested = isContested
        }

        package static let name = "HeldAddress"
        package static let means = "A phone number or e-mail address as it is registered."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("address", answer, \.address, "Its id.")
            fields.required(
                "contested", answer, \.isContested,
                "Whether it was verified for another person since, or at the same moment. Then no security message and none of high sensitivity goes there until this recipient verifies it again."
            )
            fields.required("kind", as: .choice(["sms", "email"]), answer, \.channel, "What it is.")
            fields.required("value", answer, \.value, "The number or address.")
            fields.optional("verified_at", answer, \.verifiedAt, "RFC 3339.")
        }
    }

    /// One permission prompt of the operating system.
    package struct Prompt: WireAnswer, Hashable {
        package var device: String
        package var shownAt: Instant
        package var answer: String?

        package init(device: String, shownAt: Instant, answer: String?) {
            self.device = device
            self.shownAt = shownAt
            self.answer = answer
        }

        package static let name = "HeldPrompt"
        package static let means = "The operating system's prompt was shown."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional("answer", answer, \.answer, "What was chosen.")
            fields.required("device", answer, \.device, "On which device.")
            fields.required("shown_at", answer, \.shownAt, "RFC 3339.")
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

    package static let name = "HeldRecipient"
    package static let means = "All that is held of a person (GDPR Art. 15)."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("addresses", answer, \.addresses, "Addresses.")
        fields.optional("age", answer, \.age, "Adult or minor.")
        fields.required("consents", answer, \.consents, "The consent ledger, oldest first.")
        fields.required(
            "decisions", as: .list(of: DecisionsAnswer.Row.shape, countMax: Int(WireLimits.decisionCountMax)),
            answer,
            \.decisions.rows, "What was decided and what became of it, newest first.")
        fields.optional(
            "decisions_next", answer, \.decisions.next,
            "There are older ones: give it as `before` to `GET …/decisions`. Absent when these are all.")
        fields.required("devices", answer, \.devices, "Devices.")
        fields.required(
            "drifts", answer, \.drifts,
            "What the app, the provider and the operating system disagree about; `blocked_at_os` is a badge to show."
        )
        fields.optional("locale", answer, \.locale, "The language of texts.")
        fields.required("permission_prompts", answer, \.prompts, "Prompts shown.")
        fields.required("preferences", answer, \.preferences, "Every choice, oldest first.")
        fields.required("privacy", answer, \.privacy, "What a lock screen may show.")
        fields.required("push_enabled", answer, \.pushEnabled, "The master switch.")
        fields.optional("quiet_hours", answer, \.quietHours, "The quiet hours.")
        fields.optional("region", answer, \.region, "The account's region.")
        fields.required("registered_at", answer, \.registeredAt, "RFC 3339.")
        fields.optional("time_zone", answer, \.timeZone, "The account's time zone.")
        fields.required("updated_at", answer, \.updatedAt, "RFC 3339.")
        fields.required("user", answer, \.user, "The person.")
    }
}

/// For a person: the moment as RFC 3339, where the facts' own form has milliseconds.
extension RegionObservation: WireAnswer {
    package static var answerShape: Shape {
        .named(name, .object(AnswerShapes<Self>.object(means) { show((), to: &$0) }))
    }
    package static let name = "ObservedRegion"
    package static let means = "Where somebody was believed to be."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("code", answer, \.code, "ISO 3166.")
        fields.required("observed_at", answer, \.observedAt, "RFC 3339.")
        fields.required("source", answer, \.source, "How it became known.")
    }
}

extension RegionCode: AnswerValue {
    package static var answerShape: Shape { bodyShape }
    package func write(answer json: inout CanonicalWriter) { json.text(description) }
}

/// `GET …/consents`: the ledger as it stood, and what it adds up to.
package struct ConsentsAnswer: WireAnswer, Hashable {
    /// One record of the ledger of consents.
    package struct Record: WireAnswer, Hashable {
        package var sequence: Int64
        package var id: String
        package var purpose: Purpose
        package var channel: Channel
        package var address: String?
        /// `given`, `refused`, `withdrawn`, `shown`, `undone`.
        package var state: String
        package var eventTime: Instant
        /// Of a no: what was stated, where a clock was ahead.
        package var statedTime: Instant?
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
            eventTime: Instant, statedTime: Instant? = nil, receivedAt: Instant, method: ConsentMethod,
            source: CallerName,
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
            self.statedTime = statedTime
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

        /// What ``state`` may be: the states of a record of the ledger, which is above this module. A test holds the two equal.
        package static let states = ["given", "refused", "withdrawn", "shown", "undone"]

        /// The text that was shown, with its words where the archive was asked.
        private struct ShownNotice: WireAnswer {
            let notice: ConsentBody.Notice
            let text: String?

            static let name = "ShownNotice"
            static let means = "The text that was shown."

            static func show<Fields: AnswerFields<Self> & ~Copyable>(
                _ answer: borrowing Fields.Source, to fields: inout Fields
            ) {
                fields.required("id", answer, \.notice.id, "Its name.")
                fields.required("language", answer, \.notice.language, "Its language.")
                fields.required("sha256", as: .sha256, answer, \.notice.sha256, "Its digest.")
                fields.optional(
                    "text", answer, \.text, "Its words, from the archive; in `GET …/consents` only.")
                fields.required("version", answer, \.notice.version, "Its version.")
            }
        }

        private var shownNotice: ShownNotice? { notice.map { ShownNotice(notice: $0, text: noticeText) } }

        package static let name = "ConsentRecord"
        package static let means = "One record of the ledger. Nothing in it is ever changed."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional(
                "address", answer, \.address,
                "Which number or e-mail address; none for push, and for a withdrawal of the whole channel.")
            fields.required("channel", answer, \.channel, "Which channel.")
            fields.required("event_time", answer, \.eventTime, "RFC 3339; when the person spoke.")
            fields.optional("expires_at", answer, \.expiresAt, "RFC 3339; when it stops counting.")
            fields.required("id", answer, \.id, "The reporter's id.")
            fields.optional("jurisdiction", answer, \.jurisdiction, "Whose law.")
            fields.optional(
                "lawful_basis", answer, \.lawfulBasis, "What a send may rest on because of a given consent.")
            fields.required(
                "method", as: .choice(ConsentMethod.recorded.map(\.rawValue)), answer, \.method,
                "How; `shared_address` where somebody else with the same number or mailbox said no.")
            fields.optional("notice", answer, \.shownNotice, "What was shown.")
            fields.required(
                "previous_hash", answer, \.previousHash, "SHA-256 of the record before; empty for the first.")
            fields.required("purpose", answer, \.purpose, "What for.")
            fields.required("received_at", answer, \.receivedAt, "RFC 3339; when the gate heard of it.")
            fields.required("sequence", answer, \.sequence, "Its position.")
            fields.required("source", answer, \.source, "The caller that reported it.")
            fields.required(
                "state", as: .choice(Self.states), answer, \.state,
                "What was said; `undone` takes back the withdrawal that it names.")
            fields.optional(
                "stated_time", answer, \.statedTime,
                "RFC 3339; of a no whose stated time was ahead of the gateway's clock, that time. It counts from `event_time`."
            )
            fields.optional("withdraws", answer, \.withdraws, "The record it withdraws.")
        }
    }

    /// What the records add up to for one purpose, channel and address.
    package struct Standing: WireAnswer, Hashable {
        package var purpose: Purpose
        package var channel: Channel
        package var address: String?
        package var consent: ConsentFact
        /// Whether the consent was given and has expired at the moment that was asked about.
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

        package static let name = "ConsentStanding"
        package static let means =
            "What the records add up to: the newest event counts, a tie counts as withdrawn."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional(
                "address", answer, \.address,
                "Which number or e-mail address; none for push, and for a withdrawal of the whole channel.")
            fields.required("channel", answer, \.channel, "Which channel.")
            fields.optional("expires_at", answer, \.consent.expiresAt, "RFC 3339; when it stops counting.")
            fields.optional("method", answer, \.consent.method, "How it was given.")
            fields.required("purpose", answer, \.purpose, "What for.")
            fields.required(
                "state", as: .choice(ConsentState.allCases.map(\.rawValue) + [expired]),
                answer,
                { $0.hasExpired ? expired : $0.consent.state.rawValue },
                "Where it stands; `expired` for what was given and does not count any more.")
        }

        private static let expired = "expired"
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

    package static let name = "Consents"
    package static let means = "The ledger as it stood, and what it adds up to."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.optional("as_of", answer, \.query.asOf, "RFC 3339; events up to then.")
        fields.optional("known_at", answer, \.query.knownAt, "RFC 3339; heard of by then.")
        fields.required("records", answer, \.records, "Oldest first.")
        fields.required("standing", answer, \.standing, "What they add up to.")
    }
}

/// `PUT …/preferences`: what became of each choice, in the order of the request.
package struct PreferencesRecordedAnswer: WireAnswer, Hashable {
    /// One choice, and where it is recorded.
    package struct Choice: WireAnswer, Hashable {
        package var scope: String
        /// `nil` for every channel at once.
        package var channel: Channel?
        /// `nil` for the account.
        package var destination: String?
        package var recorded: RecordedAnswer

        package init(scope: String, channel: Channel?, destination: String?, recorded: RecordedAnswer) {
            self.scope = scope
            self.channel = channel
            self.destination = destination
            self.recorded = recorded
        }

        package static let name = "RecordedPreference"
        package static let means = "One choice of the request, and where it is recorded."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional(
                "channel", answer, \.channel, "The channel; every channel when absent.")
            fields.optional(
                "destination", answer, \.destination, "The device or address; the account when absent.")
            fields.optional(
                "effect", as: .choice(["none"]), answer,
                { $0.recorded.noEffect.map { _ in "none" } },
                "Present when no consent and no preference is other than before.")
            fields.required("scope", answer, \.scope, "The category or type.")
            fields.required("trail", answer, \.recorded.trail, "The evidence.")
            fields.optional(
                "why", answer, \.recorded.noEffect, "Why there is no effect; present with `effect`.")
        }
    }

    package var choices: [Choice]

    package init(choices: [Choice]) { self.choices = choices }

    package static let name = "PreferencesRecorded"
    package static let means =
        "Every choice of the request is recorded, durably, each with an entry of its own."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "preferences",
            as: .list(of: Choice.shape, countMin: 1, countMax: PreferencesBody.choiceCountMax), answer,
            \.choices, "In the order of the request.")
    }
}

/// `GET …/preferences`: chosen, effective, why, and how to change it.
package struct PreferencesAnswer: WireAnswer, Hashable {
    fileprivate static let sourceMeans =
        "Where it was chosen, or what else it follows from: `consent` (given, refused or withdrawn otherwise than in the app), `reply` (to a text or an e-mail), `shared_address` (somebody else with the same number or mailbox said no), `drift_audit`, `state_audit` (what was stored of the person is not what happened), `restore`."

    /// One choice as it was made.
    package struct Transition: WireAnswer, Hashable {
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

        package static let name = "PreferenceTransition"
        package static let means = "One choice as it was made."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("at", answer, \.at, "RFC 3339.")
            fields.required("caller", answer, \.caller, "The caller that reported it.")
            fields.required("channel", answer, \.channel, "Which channel.")
            fields.optional(
                "destination", answer, \.destination, "One device or address; the account when absent.")
            fields.required("scope", answer, \.scope, "A category or a type.")
            fields.required("source", answer, \.source, PreferencesAnswer.sourceMeans)
            fields.required("state", answer, \.state, "What was chosen.")
        }
    }

    /// What one preference comes to.
    package struct Row: WireAnswer, Hashable {
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

        package static let name = "PreferenceStanding"
        package static let means = "One preference: what was chosen, what it comes to, and why."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional("at", answer, \.at, "RFC 3339.")
            fields.required("channel", answer, \.channel, "Which channel.")
            fields.required("chosen", answer, \.chosen, "What was chosen; `default` when nothing was.")
            fields.optional(
                "destination", answer, \.destination, "One device or address; the account when absent.")
            fields.optional(
                "detail", answer, \.detail, "What a missing consent is: `expired`, `withdrawn`, ….")
            fields.required(
                "effective", as: .choice(["on", "off"]), answer, { $0.isEffectivelyOn ? "on" : "off" },
                "Whether notifications get through.")
            fields.optional("how_to_fix", answer, \.howToFix, "What the person can do about it.")
            fields.required("scope", answer, \.scope, "A category or a type.")
            fields.optional("source", answer, \.source, PreferencesAnswer.sourceMeans)
            fields.required(
                "why", answer, \.why,
                """
                `chosen`; `default`; `permitted`, when it is off by default and a law or a recorded sale lets it \
                through until the person objects; `withheld`, when it is kept from whoever takes part in something they \
                take part in; or the reason that stops them.
                """)
        }
    }

    /// Whether a device may be asked for the OS permission.
    package struct Prompt: WireAnswer, Hashable {
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

        package static let name = "PromptStanding"
        package static let means = "Whether the OS permission prompt may be shown on a device."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("device", answer, \.device, "Which device.")
            fields.required(
                "may_prompt", answer, \.mayPrompt, "False once it was shown, and where the OS has its answer."
            )
            fields.optional("os_permission", answer, \.osPermission, "What the OS last said.")
            fields.optional("shown_at", answer, \.shownAt, "RFC 3339; when the prompt was shown.")
        }
    }

    package var rows: [Row]
    package var prompts: [Prompt]

    package init(rows: [Row], prompts: [Prompt]) {
        self.rows = rows
        self.prompts = prompts
    }

    package static let name = "Preferences"
    package static let means = "Every preference of a person."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("preferences", answer, \.rows, "By scope, channel and destination.")
        fields.required("prompts", answer, \.prompts, "By device.")
    }
}

/// `GET …/decisions`: why things did and did not arrive.
package struct DecisionsAnswer: WireAnswer, Hashable {
    /// One send to the person, with its decision.
    package struct Row: WireAnswer, Hashable {
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

        package static let name = "DecisionRow"
        package static let means = "One send to this person, and why it did or did not arrive."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("at", answer, \.at, "RFC 3339.")
            fields.required("caller", answer, \.caller, "Who sent it.")
            fields.required("channel", answer, \.channel, "The channel.")
            fields.required(
                "deliveries",
                as: .list(of: SendAnswer.Delivery.shape, countMax: WireLimits.destinationCountMax),
                answer,
                { $0.deliveries.filter { $0.destination != nil } }, "One per destination.")
            fields.optional("detail", answer, \.detail, "What exactly was missing.")
            fields.required("events", answer, \.events, "What became of it, oldest first.")
            fields.required("explanation", answer, \.sentence, "The same in a sentence.")
            fields.required("outcome", answer, \.outcome, "The best of the deliveries.")
            fields.required("reason", answer, \.reason, "Why.")
            fields.required("send_id", answer, \.send, "The send.")
            fields.required("trail", answer, \.trail, "The evidence.")
            fields.required("type", answer, \.type, "The type.")
            fields.required(
                "waiting", as: .list(of: .anyText, countMax: WireLimits.destinationCountMax), answer,
                \.waiting,
                "Destinations whose message still waits here.")
            fields.required(
                "who_can_fix", answer, { $0.reason.whoCanFix($0.detail) },
                "Who can make the next attempt succeed.")
        }
    }

    /// Newest first.
    package var rows: [Row]
    /// The oldest row, when there are older ones still.
    package var next: SendID?

    package init(rows: [Row], next: SendID? = nil) {
        self.rows = rows
        self.next = next
    }

    package static let name = "Decisions"
    package static let means = "Why things did and did not arrive, newest first."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "decisions", as: .list(of: Row.shape, countMax: Int(WireLimits.decisionCountMax)), answer, \.rows,
            "Newest first.")
        fields.optional(
            "next", answer, \.next, "There are older ones: give it as `before`. Absent when these are all.")
    }
}

/// `POST …/devices/{device}/keys`: the key's id, and what the device must open to prove it holds the key.
package struct KeyChallengeAnswer: WireAnswer, Hashable {
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

    package static let name = "KeyChallenge"
    package static let means = "The key is registered but unproved; answer the challenge to make it usable."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("challenge", as: envelope, answer, \.challenge, "For the new key.")
        fields.required("expires_at", answer, \.expiresAt, "RFC 3339; five minutes from now.")
        fields.required("key_id", answer, \.key, "The new key's id.")
        fields.optional(
            "old_key_challenge", as: envelope, answer, \.oldKeyChallenge,
            "For the earlier active key, which must answer too.")
        fields.required("trail", answer, \.trail, "The evidence.")
    }

    private static let envelope = Shape.named(
        "Envelope",
        .object(
            ObjectShape(
                "A sealed envelope, to be opened with the device's private key.",
                [
                    .required("v", .integer(1...1), "The format's version."),
                    .required("s", .choice(of: DeviceKeyBody.Suite.self), "The HPKE suite."),
                    .required("kid", .anyText, "The key."), .required("mid", .anyText, "The message."),
                    .required("exp", .count, "Unix seconds after which it must not be opened."),
                    .required("ct", .anyText, "Encapsulated key and ciphertext in base64url."),
                ])))
}
