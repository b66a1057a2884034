package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// `GET /v1/recipients/{user}`: all that is held of a person (GDPR Art. 15).
package struct RecipientAnswer: ShownRecord {
    package var user: UserID
    package var record: RecipientRecord
    package var devices: [HeldDevice]
    package var addresses: [AddressRecord]
    package var consents: [HeldConsent]
    package var preferences: [HeldChoice]
    package var prompts: [HeldPrompt]
    package var drifts: [HeldDrift]
    package var decisions: DecisionsAnswer

    package init(
        user: UserID, record: RecipientRecord, devices: [HeldDevice], addresses: [AddressRecord],
        consents: [HeldConsent], preferences: [HeldChoice], prompts: [HeldPrompt],
        drifts: [HeldDrift], decisions: DecisionsAnswer
    ) {
        self.user = user
        self.record = record
        self.devices = devices
        self.addresses = addresses
        self.consents = consents
        self.preferences = preferences
        self.prompts = prompts
        self.drifts = drifts
        self.decisions = decisions
    }

    package static let shownName = "HeldRecipient"
    package static let shownMeans = "All that is held of a person (GDPR Art. 15)."

    package static let fields = Fields<Self> { fields in
        fields.joined("user", \.user, "The person.")
        fields.all(of: \.record)
        fields.joined("devices", \.devices, "Devices.")
        fields.joined("addresses", \.addresses, "Addresses.")
        fields.joined("consents", \.consents, "The consent ledger, oldest first.")
        fields.joined("preferences", \.preferences, "Every choice, oldest first.")
        fields.joined("permission_prompts", \.prompts, "Prompts shown.")
        fields.joined(
            "drifts", \.drifts,
            "What the app, the provider and the operating system disagree about; `blocked_at_os` is a badge to show."
        )
        fields.joined(
            "decisions", \.decisions.rows, "What was decided and what became of it, newest first.",
            shape: .list(of: DecisionsAnswer.Row.shape, countMax: Int(WireLimits.decisionCountMax)))
        fields.joined(
            "decisions_next", \.decisions.next,
            "There are older ones: give it as `before` to `GET …/decisions`. Absent when these are all.")
    }
}

extension DecisionsAnswer.Row: ShownValue {}

/// A list of records in an answer whose own fields are shown one by one.
extension HeldConsent: AnswerValue {
    package static var answerShape: Shape { shownShape }
    package func write(answer json: inout CanonicalWriter) { write(shown: &json) }
}
extension RegionCode: AnswerValue {
    package static var answerShape: Shape { bodyShape }
    package func write(answer json: inout CanonicalWriter) { json.text(description) }
}

/// `GET …/consents`: the ledger as it stood, and what it adds up to.
package struct ConsentsAnswer: WireAnswer, Hashable {
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
    package var records: [HeldConsent]
    package var standing: [Standing]

    package init(query: ConsentsQuery, records: [HeldConsent], standing: [Standing]) {
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
            fields.optional("source", answer, \.source, PreferenceRecord.sourceMeans)
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
        package var isShadow: Bool

        package init(
            send: SendID, caller: CallerName, type: TypeID, channel: Channel, at: Instant, outcome: Outcome,
            reason: Reason, detail: Detail?, sentence: String, deliveries: [SendAnswer.Delivery],
            waiting: [String], events: [SendEvent], trail: TrailReference, isShadow: Bool = false
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
            self.isShadow = isShadow
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
            fields.flag(
                "shadow", answer, \.isShadow,
                "True where the gateway only decided: whether it arrived is known to the caller alone.")
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
