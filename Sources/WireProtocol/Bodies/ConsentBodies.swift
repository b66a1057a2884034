package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// `POST …/consents`: one record for the ledger (ISO/IEC TS 27560), what was said and what was shown.
package struct ConsentBody: WireBody, Hashable {
    /// What the person said.
    package enum State: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case given
        case refused
        /// The notice was shown and nothing was said yet. Changes nothing but what can be proved.
        case shown
    }

    /// The text the person saw; the bundle archives it by digest.
    package struct Notice: BodyObject, Hashable {
        package var id: String
        package var version: String
        /// 64 lower-case hexadecimal digits.
        package var sha256: String
        package var language: String

        package init(id: String, version: String, sha256: String, language: String) {
            self.id = id
            self.version = version
            self.sha256 = sha256
            self.language = language
        }

        package static let shape = declared(
            "ConsentNotice",
            "A text of the bundle's `notices/`. A notice the bundle does not know, or another digest, is 422."
        )

        package static let example: JSONValue = [
            "id": "promo", "version": "3",
            "sha256": "eecb1f49034f3bf94d6f56910ccbc6bdf7ef40b518a7ad28f93013b21246343f", "language": "nb",
        ]

        package init(from fields: BodyFields) {
            id = fields.required("id", as: .text(.noticePart), "Its name.")
            version = fields.required("version", as: .text(.noticePart), "Its version.")
            sha256 = fields.required("sha256", as: .sha256, "SHA-256 of the text as shown.")
            language = fields.required("language", as: .text(.locale), "Its language.")
        }
    }

    /// The reporter's id for the record: the same id with the same content is recorded once.
    package var id: String
    package var state: State
    package var purpose: Purpose
    package var channel: Channel
    /// Which number or e-mail address; `nil` for push, set for every other channel.
    package var address: DestinationID?
    package var eventTime: Instant
    package var method: ConsentMethod
    package var jurisdiction: RegionCode
    package var notice: Notice
    package var expiresAt: Instant?

    package static let shape = declared("Consent")

    package static let example: JSONValue = [
        "id": "c-20261120-1", "purpose": "marketing", "channel": "push", "address": nil,
        "event_time": "2026-11-20T09:30:00Z", "method": "in_app_toggle", "jurisdiction": "DE",
        "notice": Notice.example, "expires_at": nil,
    ]

    package init(from fields: BodyFields) {
        channel = fields.variant(
            "channel", "What the consent is for; consent for one channel never covers another.",
            [
                ([.push], "Consent for push."),
                ([.sms, .email], "Consent for one phone number or e-mail address."),
            ])
        let none: DestinationID? = fields.only(Channel.push).optional(
            "address", as: .null, "None: push has devices, not addresses.")
        let named: DestinationID? = fields.only(Channel.sms, .email).required(
            "address", "The address as registered under `…/addresses`.")
        address = named ?? none
        id = fields.required(
            "id", as: .identifier,
            "The reporter's id for this record; the same id with the same content is recorded once.")
        state = fields.optional(
            "state", default: .given,
            "What the person said; `shown` when the notice was shown and nothing was said yet.")
        purpose = fields.required(
            "purpose", "A category's name, or a special purpose such as `intervention`.")
        eventTime = fields.required(
            "event_time",
            "When the person spoke. Never in the future; older than 24 hours needs `consents.import`.")
        method = fields.required("method", "How. The caller's configuration says which it may assert.")
        jurisdiction = fields.required(
            "jurisdiction",
            "Whose law the consent was asked under. A subdivision of which the policy says nothing is its country."
        )
        notice = fields.required("notice", "The text that was shown.")
        expiresAt = fields.optional(
            "expires_at", as: .nullable(.instant), "When it stops counting; never when absent.")
    }
}

/// `POST …/consents/{id}/withdraw`. Everything may be left out: withdrawing must be as easy as giving
/// (GDPR Art. 7(3)).
package struct ConsentWithdrawBody: WireBody, Hashable {
    /// `nil` means on arrival.
    package var eventTime: Instant?
    /// `nil` means by the reply, and without one as it was given.
    package var method: ConsentMethod?
    /// The reply that says so, such as `STOP`; it has to begin with one of the bundle's words.
    package var reply: String?
    /// An objection (GDPR Art. 21(2)): the purpose ends on every channel and for every address.
    package var isForEveryChannel: Bool

    package static let shape = declared(
        "ConsentWithdrawal", "When and how consent was withdrawn. An empty object, or no body, says now.")

    package static let example: JSONValue = ["event_time": "2026-11-21T05:00:00Z", "method": "in_app_toggle"]

    package init(from fields: BodyFields) {
        eventTime = fields.optional(
            "event_time",
            "When the person spoke; now when absent. A time later than now counts as now, and is kept.")
        method = fields.optional(
            "method", "How; when absent, by the `reply`, and without one as it was given.")
        reply = fields.optional(
            "reply", as: .text(.paramText),
            "What the person answered to a text message or an e-mail, as it came. What the words of `channels.yaml` make a withdrawal ends the consent (`sms_keyword`, of an e-mail `email_reply`), whatever its case, width and punctuation; anything else is 422, and whoever reads it decides what was meant."
        )
        isForEveryChannel = fields.optional(
            "every_channel", default: false,
            "An objection (GDPR Art. 21): the purpose ends on every channel and for every address.")
    }
}

/// `PUT …/preferences/{category or type}`: a choice of the recipient and where it was made.
package struct PreferenceBody: WireBody, Hashable {
    /// The choice: of the person, or the default of the scope.
    package enum State: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case `default`
        case userOn = "user_on"
        case userOff = "user_off"
    }

    package var state: State
    package var source: PreferenceSource
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

    package static let shape = declared("Preference")

    package static let example: JSONValue = [
        "state": "user_off", "source": "in_app_settings", "channel": "push", "device": "d_1",
    ]

    package init(from fields: BodyFields) {
        channel = fields.variant(
            "channel", "The channel the choice is about.",
            [([.push], "A choice about push."), ([.sms, .email], "A choice about SMS or e-mail.")],
            withoutKey:
                "An objection (GDPR Art. 21): off on every channel, in one step. What is switched on is switched on channel by channel."
        )
        let choice = fields.only(Channel.push, .sms, .email)
        state = fields.required(
            "state",
            oneOf: [
                (choice, State.bodyShape, "The choice; `default` takes an earlier one back."),
                (fields.withoutKey, .choice([State.userOff.rawValue]), "Off."),
            ])
        source = fields.required(
            "source",
            oneOf: [
                (
                    choice, PreferenceSource.bodyShape,
                    "Where it was made. Only `in_app_step_up` switches security off."
                ),
                (fields.withoutKey, PreferenceSource.bodyShape, "Where it was made."),
            ])
        let device: DestinationID? = fields.only(Channel.push).optional(
            "device", "One device; the account when absent.")
        let address: DestinationID? = fields.only(Channel.sms, .email).optional(
            "address", "One address; the account when absent.")
        destination = device ?? address
    }
}

/// One choice among those of ``PreferencesBody``.
package struct PreferenceChoice: BodyObject, Hashable {
    /// A category, or a type that can be muted alone.
    package var scope: String
    package var choice: PreferenceBody

    package static let shape = declaredInVariants("PreferenceChoice")

    package static let example: JSONValue = [
        "scope": "social", "state": "user_off", "source": "in_app_settings", "channel": "push",
        "device": "d_1",
    ]

    package init(from fields: BodyFields) {
        choice = PreferenceBody(from: fields)
        scope = fields.required(
            "scope", as: .identifier, "A category, or a type that can be muted alone.")
    }

    /// What it is about. Two choices of one request about the same contradict each other, or say the same twice.
    fileprivate var subjects: [[String]] {
        (choice.channel.map { [$0] } ?? Channel.allCases).map {
            [scope, $0.rawValue, choice.destination?.text ?? ""]
        }
    }
}

/// `PUT …/preferences`: several choices at once, as a settings screen saves them. All are recorded, or none is.
package struct PreferencesBody: WireBody, Hashable {
    /// Choices of one request: every category and a few dozen types on each channel.
    package static let choiceCountMax = 64

    package var choices: [PreferenceChoice]

    package static let shape = declared(
        "PreferenceChoices",
        "Several choices, each as its own route takes it. All are recorded, or none is; what the list does not name stays as it is."
    )

    package static let example: JSONValue = [
        "preferences": [
            PreferenceChoice.example,
            ["scope": "marketing", "state": "user_off", "source": "in_app_settings", "channel": "email"],
        ]
    ]

    /// A list is read as one value.
    private struct List: BodyValue {
        var choices: [PreferenceChoice]

        static func read(body json: JSONValue) -> List? {
            guard let elements = json.arrayValue else { return nil }
            let choices = elements.compactMap { PreferenceChoice.read(body: $0) }
            return choices.count == elements.count ? List(choices: choices) : nil
        }
    }

    package init(from fields: BodyFields) throws(BodyError) {
        let list: List = fields.required(
            "preferences",
            as: .list(of: PreferenceChoice.shape, countMin: 1, countMax: Self.choiceCountMax),
            "The choices, in the order in which they are recorded; each about something else.")
        choices = list.choices
        var seen: Set<[String]> = []
        var violations: [Violation] = []
        for (position, choice) in choices.enumerated()
        where choice.subjects.contains(where: { !seen.insert($0).inserted }) {
            violations.append(
                Violation(
                    .body(JSONPointer(["preferences", String(position)])),
                    "expected a choice about another scope, channel or destination than those before it"))
        }
        if !violations.isEmpty { throw .invalid(violations) }
    }

    /// The grants that the asking caller needs, all of them.
    package var neededGrants: [Grant] {
        [.preferencesWrite, .preferencesStepUp].filter { grant in
            choices.contains { $0.choice.neededGrant == grant }
        }
    }
}

/// `POST …/permission-prompts`: the operating system's prompt was shown. It never shows twice.
package struct PermissionPromptBody: WireBody, Hashable {
    /// How the prompt was answered.
    package enum Choice: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case granted
        case denied
    }

    package var device: DestinationID
    /// `nil` means on arrival.
    package var shownAt: Instant?
    /// `nil` while the person has not answered.
    package var answer: Choice?

    package static let shape = declared(
        "PermissionPrompt",
        "The operating system's permission prompt was shown on a device. It can be shown once.")

    package static let example: JSONValue = [
        "device": "d_1", "shown_at": "2026-11-20T09:30:00Z", "answer": "granted",
    ]

    package init(from fields: BodyFields) {
        device = fields.required("device", "On which device.")
        shownAt = fields.optional("shown_at", "When; now when absent.")
        answer = fields.optional("answer", "What the person chose; absent while unknown.")
    }
}
