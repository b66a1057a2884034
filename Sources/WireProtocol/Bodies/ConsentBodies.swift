package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// `POST …/consents`: one record for the ledger (ISO/IEC TS 27560), what was said and what was shown.
package struct ConsentBody: WireBody, GivenRecord {
    /// What the person said.
    package enum State: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        case given
        case refused
        /// The notice was shown and nothing was said yet. Changes nothing but what can be proved.
        case shown
    }

    /// The reporter's id for the record: the same id with the same content is recorded once.
    package var id = ""
    package var state = State.given
    package var purpose = Purpose("")
    package var channel = Channel.push
    /// Which number or e-mail address; `nil` for push, set for every other channel.
    package var address: DestinationID?
    package var eventTime = Instant.unstated
    package var method = ConsentMethod.inAppToggle
    package var jurisdiction = RegionCode.unknown
    /// The text the person saw; the bundle archives it by digest.
    package var notice = ConsentRecord.NoticeReference.blank
    package var expiresAt: Instant?

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "channel", \.channel,
            "What the consent is for; consent for one channel never covers another.",
            .telling([
                (["push"], "Consent for push."),
                (["sms", "email"], "Consent for one phone number or e-mail address."),
            ]))
        fields.given("address", \.address, "None: push has devices, not addresses.", .only(["push"], .null))
        fields.given(
            "address", \.address, "The address as registered under `…/addresses`.",
            .required(in: ["sms", "email"]))
        fields.given(
            "id", \.id,
            "The reporter's id for this record; the same id with the same content is recorded once.",
            .shape(.identifier))
        fields.given(
            "state", \.state,
            "What the person said; `shown` when the notice was shown and nothing was said yet.", .defaulted)
        fields.given(
            "purpose", \.purpose, "A category's name, or a special purpose such as `intervention`.")
        fields.given(
            "event_time", \.eventTime,
            "When the person spoke. Never in the future; older than 24 hours needs `consents.import`.")
        fields.given(
            "method", \.method, "How. The caller's configuration says which it may assert.")
        fields.given(
            "jurisdiction", \.jurisdiction,
            "Whose law the consent was asked under. A subdivision of which the policy says nothing is its country."
        )
        fields.given("notice", \.notice, "The text that was shown.")
        fields.given(
            "expires_at", \.expiresAt, "When it stops counting; never when absent.",
            .shape(.nullable(.instant)))
    }

    package static let givenShape = given(as: "Consent")
    package static let givenExample: JSONValue = [
        "id": "c-20261120-1", "purpose": "marketing", "channel": "push", "address": nil,
        "event_time": "2026-11-20T09:30:00Z", "method": "in_app_toggle", "jurisdiction": "DE",
        "notice": ConsentRecord.NoticeReference.givenExample, "expires_at": nil,
    ]
}

/// `POST …/consents/{id}/withdraw`. Everything may be left out: withdrawing must be as easy as giving
/// (GDPR Art. 7(3)).
package struct ConsentWithdrawBody: WireBody, GivenRecord {
    /// `nil` means on arrival.
    package var eventTime: Instant?
    /// `nil` means by the reply, and without one as it was given.
    package var method: ConsentMethod?
    /// The reply that says so, such as `STOP`; it has to begin with one of the bundle's words.
    package var reply: String?
    /// An objection (GDPR Art. 21(2)): the purpose ends on every channel and for every address.
    package var isForEveryChannel = false

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "event_time", \.eventTime,
            "When the person spoke; now when absent. A time later than now counts as now, and is kept.")
        fields.given(
            "method", \.method, "How; when absent, by the `reply`, and without one as it was given.")
        fields.given(
            "reply", \.reply,
            "What the person answered to a text message or an e-mail, as it came. What the words of `channels.yaml` make a withdrawal ends the consent (`sms_keyword`, of an e-mail `email_reply`), whatever its case, width and punctuation; anything else is 422, and whoever reads it decides what was meant.",
            .text(.paramText))
        fields.given(
            "every_channel", \.isForEveryChannel,
            "An objection (GDPR Art. 21): the purpose ends on every channel and for every address.",
            .defaulted)
    }

    package static let givenShape = given(
        as: "ConsentWithdrawal",
        "When and how consent was withdrawn. An empty object, or no body, says now.")
    package static let givenExample: JSONValue = [
        "event_time": "2026-11-21T05:00:00Z", "method": "in_app_toggle",
    ]
}

/// `PUT …/preferences/{category or type}`: a choice of the recipient and where it was made.
package struct PreferenceBody: WireBody, GivenRecord {
    /// The choice: of the person, or the default of the scope.
    package enum State: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        case `default`
        case userOn = "user_on"
        case userOff = "user_off"
    }

    package var state = State.default
    package var source = PreferenceSource.inAppSettings
    /// `nil` for every channel at once: an objection (GDPR Art. 21(2)).
    package var channel: Channel?
    /// One device or address; `nil` for the account.
    package var destination: DestinationID?

    /// What the store keeps: switched off behind a second confirmation is a state of its own.
    package var storedState: PreferenceState {
        switch state {
        case .default: .default
        case .userOn: .userOn
        case .userOff: source == .inAppStepUp ? .userOffStepUp : .userOff
        }
    }

    package var neededGrant: Grant { source.neededGrant }

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        let channels = Channel.allCases.map(\.rawValue)
        fields.given(
            "channel", \.channel, "The channel the choice is about.",
            .telling(
                [(["push"], "A choice about push."), (["sms", "email"], "A choice about SMS or e-mail.")],
                withoutKey:
                    "An objection (GDPR Art. 21): off on every channel, in one step. What is switched on is switched on channel by channel."
            ))
        fields.given(
            "state", \.state, "The choice.",
            .perVariant([
                (channels, State.shape, "The choice; `default` takes an earlier one back."),
                ([], .choice([State.userOff.rawValue]), "Off."),
            ]))
        fields.given(
            "source", \.source, "Where it was made.",
            .perVariant([
                (
                    channels, PreferenceSource.shape,
                    "Where it was made. Only `in_app_step_up` switches security off."
                ),
                ([], PreferenceSource.shape, "Where it was made."),
            ]))
        fields.given(
            "device", \.destination, "One device; the account when absent.", .only(["push"]))
        fields.given(
            "address", \.destination, "One address; the account when absent.", .only(["sms", "email"]))
    }

    package static let givenShape = given(as: "Preference")
    package static let givenExample: JSONValue = [
        "state": "user_off", "source": "in_app_settings", "channel": "push", "device": "d_1",
    ]
}

/// One choice among those of ``PreferencesBody``.
package struct PreferenceChoice: GivenRecord, GivenElement {
    /// A category, or a type that can be muted alone.
    package var scope = ""
    package var choice = PreferenceBody.blank

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.all(of: \.choice)
        fields.given(
            "scope", \.scope, "A category, or a type that can be muted alone.", .shape(.identifier))
    }

    package static let givenShape = given(as: "PreferenceChoice")
    package static let givenExample: JSONValue = [
        "scope": "social", "state": "user_off", "source": "in_app_settings", "channel": "push",
        "device": "d_1",
    ]

    /// What it is about. Two choices of one request about the same contradict each other, or say the same twice.
    fileprivate var subjects: [[String]] {
        (choice.channel.map { [$0] } ?? Channel.allCases).map {
            [scope, $0.rawValue, choice.destination?.text ?? ""]
        }
    }
}

/// `PUT …/preferences`: several choices at once, as a settings screen saves them. All are recorded, or none is.
package struct PreferencesBody: WireBody, GivenRecord {
    /// Choices of one request: every category and a few dozen types on each channel.
    package static let choiceCountMax = 64

    package var choices: [PreferenceChoice] = []

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "preferences", \.choices,
            "The choices, in the order in which they are recorded; each about something else.",
            .shape(.list(of: PreferenceChoice.givenShape, countMin: 1, countMax: choiceCountMax)))
    }

    package static let givenShape = given(
        as: "PreferenceChoices",
        "Several choices, each as its own route takes it. All are recorded, or none is; what the list does not name stays as it is."
    )
    package static let givenExample: JSONValue = [
        "preferences": [
            PreferenceChoice.givenExample,
            ["scope": "marketing", "state": "user_off", "source": "in_app_settings", "channel": "email"],
        ]
    ]

    package var contradictions: [Violation] {
        var seen: Set<[String]> = []
        var violations: [Violation] = []
        for (position, choice) in choices.enumerated()
        where choice.subjects.contains(where: { !seen.insert($0).inserted }) {
            violations.append(
                Violation(
                    .body(JSONPointer(["preferences", String(position)])),
                    "expected a choice about another scope, channel or destination than those before it"))
        }
        return violations
    }

    /// The grants that the asking caller needs, all of them.
    package var neededGrants: [Grant] {
        [.preferencesWrite, .preferencesStepUp].filter { grant in
            choices.contains { $0.choice.neededGrant == grant }
        }
    }
}

/// `POST …/permission-prompts`: the operating system's prompt was shown. It never shows twice.
package struct PermissionPromptBody: WireBody, GivenRecord {
    /// How the prompt was answered.
    package enum Choice: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        case granted
        case denied
    }

    package var device = DestinationID("")
    /// `nil` means on arrival.
    package var shownAt: Instant?
    /// `nil` while the person has not answered.
    package var answer: Choice?

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given("device", \.device, "On which device.")
        fields.given("shown_at", \.shownAt, "When; now when absent.")
        fields.given("answer", \.answer, "What the person chose; absent while unknown.")
    }

    package static let givenShape = given(
        as: "PermissionPrompt",
        "The operating system's permission prompt was shown on a device. It can be shown once.")
    package static let givenExample: JSONValue = [
        "device": "d_1", "shown_at": "2026-11-20T09:30:00Z", "answer": "granted",
    ]
}
