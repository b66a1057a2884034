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
        (self.user, self.record, self.devices, self.addresses) = (user, record, devices, addresses)
        (self.consents, self.preferences, self.prompts) = (consents, preferences, prompts)
        (self.drifts, self.decisions) = (drifts, decisions)
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
            shape: .list(of: DecisionsAnswer.Row.shownShape, countMax: Int(WireLimits.decisionCountMax)))
        fields.joined(
            "decisions_next", \.decisions.next,
            "There are older ones: give it as `before` to `GET …/decisions`. Absent when these are all.")
    }
}

/// `GET …/consents`: the ledger as it stood, and what it adds up to.
package struct ConsentsAnswer: ShownRecord {
    /// What the records add up to for one purpose, channel and address.
    package struct Standing: ShownRecord {
        package var purpose: Purpose
        package var channel: Channel
        package var address: String?
        package var consent: ConsentFact
        /// Whether the consent was given and has expired at the moment that was asked about.
        package var hasExpired: Bool

        package init(
            purpose: Purpose, channel: Channel, address: String?, consent: ConsentFact, hasExpired: Bool
        ) {
            (self.purpose, self.channel, self.address) = (purpose, channel, address)
            (self.consent, self.hasExpired) = (consent, hasExpired)
        }

        package static let shownName = "ConsentStanding"
        package static let shownMeans =
            "What the records add up to: the newest event counts, a tie counts as withdrawn."

        package static let fields = Fields<Self> { fields in
            fields.joined(
                "address", \.address,
                "Which number or e-mail address; none for push, and for a withdrawal of the whole channel.")
            fields.joined("channel", \.channel, "Which channel.")
            fields.joined("expires_at", \.consent.expiresAt, "RFC 3339; when it stops counting.")
            fields.joined("method", \.consent.method, "How it was given.")
            fields.joined("purpose", \.purpose, "What for.")
            fields.joined(
                "state", "Where it stands; `expired` for what was given and does not count any more.",
                shape: .choice(ConsentState.allCases.map(\.rawValue) + [expired])
            ) { $0.hasExpired ? expired : $0.consent.state.rawValue }
        }

        private static let expired = "expired"
    }

    package var query: ConsentsQuery
    /// Oldest first.
    package var records: [HeldConsent]
    package var standing: [Standing]

    package init(query: ConsentsQuery, records: [HeldConsent], standing: [Standing]) {
        (self.query, self.records, self.standing) = (query, records, standing)
    }

    package static let shownName = "Consents"
    package static let shownMeans = "The ledger as it stood, and what it adds up to."

    package static let fields = Fields<Self> { fields in
        fields.joined("as_of", \.query.asOf, "RFC 3339; events up to then.")
        fields.joined("known_at", \.query.knownAt, "RFC 3339; heard of by then.")
        fields.joined("records", \.records, "Oldest first.")
        fields.joined("standing", \.standing, "What they add up to.")
    }
}

/// `PUT …/preferences`: what became of each choice, in the order of the request.
package struct PreferencesRecordedAnswer: ShownRecord {
    /// One choice, and where it is recorded.
    package struct Choice: ShownRecord {
        package var scope: String
        /// `nil` for every channel at once.
        package var channel: Channel?
        /// `nil` for the account.
        package var destination: String?
        package var recorded: RecordedAnswer

        package init(scope: String, channel: Channel?, destination: String?, recorded: RecordedAnswer) {
            (self.scope, self.channel, self.destination, self.recorded) = (
                scope, channel, destination, recorded
            )
        }

        package static let shownName = "RecordedPreference"
        package static let shownMeans = "One choice of the request, and where it is recorded."

        package static let fields = Fields<Self> { fields in
            fields.joined("channel", \.channel, "The channel; every channel when absent.")
            fields.joined("destination", \.destination, "The device or address; the account when absent.")
            fields.joined(
                "effect", "Present when no consent and no preference is other than before.",
                shape: .choice(["none"])
            ) { $0.recorded.noEffect.map { _ in "none" } }
            fields.joined("scope", \.scope, "The category or type.")
            fields.joined("trail", \.recorded.trail, "The evidence.")
            fields.joined("why", \.recorded.noEffect, "Why there is no effect; present with `effect`.")
        }
    }

    package var choices: [Choice]

    package init(choices: [Choice]) { self.choices = choices }

    package static let shownName = "PreferencesRecorded"
    package static let shownMeans =
        "Every choice of the request is recorded, durably, each with an entry of its own."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "preferences", \.choices, "In the order of the request.",
            shape: .list(of: Choice.shownShape, countMin: 1, countMax: PreferencesBody.choiceCountMax))
    }
}

/// `GET …/preferences`: chosen, effective, why, and how to change it.
package struct PreferencesAnswer: ShownRecord {
    /// What one preference comes to.
    package struct Row: ShownRecord {
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
            (self.scope, self.channel, self.destination, self.chosen) = (scope, channel, destination, chosen)
            (self.isEffectivelyOn, self.why, self.detail, self.howToFix) = (
                isEffectivelyOn, why, detail, howToFix
            )
            (self.source, self.at) = (source, at)
        }

        package static let shownName = "PreferenceStanding"
        package static let shownMeans = "One preference: what was chosen, what it comes to, and why."

        package static let fields = Fields<Self> { fields in
            fields.joined("at", \.at, "RFC 3339.")
            fields.joined("channel", \.channel, "Which channel.")
            fields.joined("chosen", \.chosen, "What was chosen; `default` when nothing was.")
            fields.joined("destination", \.destination, "One device or address; the account when absent.")
            fields.joined("detail", \.detail, "What a missing consent is: `expired`, `withdrawn`, ….")
            fields.joined("effective", "Whether notifications get through.", shape: .choice(["on", "off"])) {
                $0.isEffectivelyOn ? "on" : "off"
            }
            fields.joined("how_to_fix", \.howToFix, "What the person can do about it.")
            fields.joined("scope", \.scope, "A category or a type.")
            fields.joined("source", \.source, PreferenceRecord.sourceMeans)
            fields.joined(
                "why", \.why,
                """
                `chosen`; `default`; `permitted`, when it is off by default and a law or a recorded sale lets it \
                through until the person objects; `withheld`, when it is kept from whoever takes part in something they \
                take part in; or the reason that stops them.
                """)
        }
    }

    /// Whether a device may be asked for the OS permission.
    package struct Prompt: ShownRecord {
        package var device: String
        package var osPermission: OSPermission?
        package var shownAt: Instant?
        /// The OS shows its prompt once; asking again only teaches people to say no (S1).
        package var mayPrompt: Bool

        package init(device: String, osPermission: OSPermission?, shownAt: Instant?, mayPrompt: Bool) {
            (self.device, self.osPermission, self.shownAt, self.mayPrompt) = (
                device, osPermission, shownAt, mayPrompt
            )
        }

        package static let shownName = "PromptStanding"
        package static let shownMeans = "Whether the OS permission prompt may be shown on a device."

        package static let fields = Fields<Self> { fields in
            fields.joined("device", \.device, "Which device.")
            fields.joined(
                "may_prompt", \.mayPrompt, "False once it was shown, and where the OS has its answer.")
            fields.joined("os_permission", \.osPermission, "What the OS last said.")
            fields.joined("shown_at", \.shownAt, "RFC 3339; when the prompt was shown.")
        }
    }

    package var rows: [Row]
    package var prompts: [Prompt]

    package init(rows: [Row], prompts: [Prompt]) {
        (self.rows, self.prompts) = (rows, prompts)
    }

    package static let shownName = "Preferences"
    package static let shownMeans = "Every preference of a person."

    package static let fields = Fields<Self> { fields in
        fields.joined("preferences", \.rows, "By scope, channel and destination.")
        fields.joined("prompts", \.prompts, "By device.")
    }
}

/// `GET …/decisions`: why things did and did not arrive.
package struct DecisionsAnswer: ShownRecord {
    /// One send to the person, with its decision.
    package struct Row: ShownRecord {
        package var send: SendID
        package var caller: CallerName
        package var type: TypeID
        package var channel: Channel
        package var at: Instant
        package var outcome: Outcome
        package var reason: Reason
        package var detail: Detail?
        /// One sentence a support agent can read out; `nil` of a send in shadow that would have gone out, of which it would say
        /// that it did.
        package var sentence: String?
        package var deliveries: [SendAnswer.Delivery]
        /// Destinations whose message still waits here.
        package var waiting: [String]
        /// What became of it, oldest first: hand-overs, receipts, withdrawals.
        package var events: [SendEvent]
        package var trail: TrailReference
        package var isShadow: Bool

        package init(
            send: SendID, caller: CallerName, type: TypeID, channel: Channel, at: Instant, outcome: Outcome,
            reason: Reason, detail: Detail?, sentence: String?, deliveries: [SendAnswer.Delivery],
            waiting: [String], events: [SendEvent], trail: TrailReference, isShadow: Bool = false
        ) {
            (self.send, self.caller, self.type, self.channel) = (send, caller, type, channel)
            (self.at, self.outcome, self.reason, self.detail) = (at, outcome, reason, detail)
            (self.sentence, self.deliveries, self.waiting) = (sentence, deliveries, waiting)
            (self.events, self.trail, self.isShadow) = (events, trail, isShadow)
        }

        package static let shownName = "DecisionRow"
        package static let shownMeans = "One send to this person, and why it did or did not arrive."

        package static let fields = Fields<Self> { fields in
            fields.joined("at", \.at, "RFC 3339.")
            fields.joined("caller", \.caller, "Who sent it.")
            fields.joined("channel", \.channel, "The channel.")
            fields.joined(
                "deliveries", "One per destination.",
                shape: .list(of: SendAnswer.Delivery.shownShape, countMax: WireLimits.destinationCountMax)
            ) { $0.deliveries.filter { $0.destination != nil } }
            fields.joined("detail", \.detail, "What exactly was missing.")
            fields.joined("events", \.events, "What became of it, oldest first.")
            fields.joined(
                "explanation", \.sentence,
                "The same in a sentence. Absent of a send in shadow that would have gone out: its own sender knows what became of it."
            )
            fields.joined("outcome", \.outcome, "The best of the deliveries.")
            fields.joined("reason", \.reason, "Why.")
            fields.joined("send_id", \.send, "The send.")
            fields.flag(
                "shadow",
                "True where the gateway only decided: whether it arrived is known to the caller alone."
            ) { $0.isShadow }
            fields.joined("trail", \.trail, "The evidence.")
            fields.joined("type", \.type, "The type.")
            fields.joined(
                "waiting", \.waiting, "Destinations whose message still waits here.",
                shape: .list(of: .anyText, countMax: WireLimits.destinationCountMax))
            fields.joined("who_can_fix", "Who can make the next attempt succeed.") {
                $0.reason.whoCanFix($0.detail)
            }
        }
    }

    /// Newest first.
    package var rows: [Row]
    /// The oldest row, when there are older ones still.
    package var next: SendID?

    package init(rows: [Row], next: SendID? = nil) {
        (self.rows, self.next) = (rows, next)
    }

    package static let shownName = "Decisions"
    package static let shownMeans = "Why things did and did not arrive, newest first."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "decisions", \.rows, "Newest first.",
            shape: .list(of: Row.shownShape, countMax: Int(WireLimits.decisionCountMax)))
        fields.joined("next", \.next, "There are older ones: give it as `before`. Absent when these are all.")
    }
}

/// `POST …/devices/{device}/keys`: the key's id, and what the device must open to prove it holds the key.
package struct KeyChallengeAnswer: ShownRecord {
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
        (self.key, self.challenge, self.oldKeyChallenge) = (key, challenge, oldKeyChallenge)
        (self.expiresAt, self.trail) = (expiresAt, trail)
    }

    package static let shownName = "KeyChallenge"
    package static let shownMeans =
        "The key is registered but unproved; answer the challenge to make it usable."

    package static let fields = Fields<Self> { fields in
        fields.joined("challenge", \.challenge, "For the new key.", shape: envelope)
        fields.joined("expires_at", \.expiresAt, "RFC 3339; five minutes from now.")
        fields.joined("key_id", \.key, "The new key's id.")
        fields.joined(
            "old_key_challenge", \.oldKeyChallenge, "For the earlier active key, which must answer too.",
            shape: envelope)
        fields.joined("trail", \.trail, "The evidence.")
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
