package import CanonicalJSON
package import GateVocabulary

/// `POST …/consents`: one record for the ledger (ISO/IEC TS 27560), what was said and what was shown.
package struct ConsentBody: WireBody, Hashable {
    package enum State: String, CaseIterable, Sendable, Hashable {
        case given
        case refused
        /// The notice was shown and nothing was said yet. Changes nothing but what can be proved.
        case shown
    }

    /// The text the person saw; the bundle archives it by digest.
    package struct Notice: Hashable, Sendable {
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

        package var json: JSONObject {
            [
                "id": .string(id), "language": .string(language), "sha256": .string(sha256),
                "version": .string(version),
            ]
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

    private static let members: [ObjectShape.Member] = [
        .required(
            "id", .identifier,
            "The reporter's id for this record; the same id with the same content is recorded once."),
        .optional(
            "state", .choice(of: State.self), default: "given",
            "What the person said; `shown` when the notice was shown and nothing was said yet."),
        .required(
            "purpose", .text(.purpose), "A category's name, or a special purpose such as `intervention`."),
        .required(
            "event_time", .instant,
            "When the person spoke. Never in the future; older than 24 hours needs `consents.import`."),
        .required(
            "method", .choice(of: ConsentMethod.self),
            "How. The caller's configuration says which it may assert."),
        .required(
            "jurisdiction", .text(.region),
            "Whose law the consent was asked under. A subdivision of which the policy says nothing is its country."
        ),
        .required("notice", .named("ConsentNotice", .object(notice)), "The text that was shown."),
        .optional("expires_at", .nullable(.instant), "When it stops counting; never when absent."),
    ]

    private static let notice = ObjectShape(
        "A text of the bundle's `notices/`. A notice the bundle does not know, or another digest, is 422.",
        [
            .required("id", .text(.noticePart), "Its name."),
            .required("version", .text(.noticePart), "Its version."),
            .required("sha256", .sha256, "SHA-256 of the text as shown."),
            .required("language", .text(.locale), "Its language."),
        ])

    package static let shape = Shape.named(
        "Consent",
        .variants(
            VariantShape(
                "channel", "What the consent is for; consent for one channel never covers another.",
                [
                    (
                        ["push"],
                        ObjectShape(
                            "Consent for push.",
                            members + [
                                .optional("address", .null, "None: push has devices, not addresses.")
                            ])
                    ),
                    (
                        ["sms", "email"],
                        ObjectShape(
                            "Consent for one phone number or e-mail address.",
                            members + [
                                .required(
                                    "address", .identifier,
                                    "The address as registered under `…/addresses`.")
                            ])
                    ),
                ])))

    package static let example: JSONValue = [
        "id": "c-20261120-1", "purpose": "marketing", "channel": "push", "address": nil,
        "event_time": "2026-11-20T09:30:00Z", "method": "in_app_toggle", "jurisdiction": "DE",
        "notice": [
            "id": "promo", "version": "3",
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "language": "nb",
        ],
        "expires_at": nil,
    ]

    package init(checked members: CheckedMembers) {
        let shown = members.required(members.members("notice"), "notice")
        id = members.requiredText("id")
        state = members.name("state") ?? .given
        purpose = Purpose(members.requiredText("purpose"))
        channel = members.required(members.name("channel"), "channel")
        address = members.text("address").map(DestinationID.init)
        eventTime = members.required(members.instant("event_time"), "event_time")
        method = members.required(members.name("method"), "method")
        jurisdiction = members.required(members.region("jurisdiction"), "jurisdiction")
        notice = Notice(
            id: shown.requiredText("id"), version: shown.requiredText("version"),
            sha256: shown.requiredText("sha256"), language: shown.requiredText("language"))
        expiresAt = members.instant("expires_at")
    }
}

/// `POST …/consents/{id}/withdraw`. Everything may be left out: withdrawing must be as easy as giving
/// (GDPR Art. 7(3)).
package struct ConsentWithdrawBody: WireBody, Hashable {
    /// `nil` means on arrival.
    package var eventTime: Instant?
    /// `nil` means as it was given.
    package var method: ConsentMethod?
    /// The text message that says so, such as `STOP`; it has to begin with one of the bundle's words.
    package var reply: String?
    /// An objection (GDPR Art. 21(2)): the purpose ends on every channel and for every address.
    package var isForEveryChannel: Bool

    package static let shape = Shape.named(
        "ConsentWithdrawal",
        .object(
            ObjectShape(
                "When and how consent was withdrawn. An empty object, or no body, says now.",
                [
                    .optional("event_time", .instant, "When the person spoke; now when absent."),
                    .optional("method", .choice(of: ConsentMethod.self), "How; as it was given when absent."),
                    .optional(
                        "reply", .text(.paramText),
                        "What the person answered to a text message, as it came. One of the words of `channels.yaml` at its beginning ends the consent (`sms_keyword`), whatever its case, width and punctuation; anything else is 422, and whoever reads it decides what was meant."
                    ),
                    .optional(
                        "every_channel", .boolean, default: false,
                        "An objection (GDPR Art. 21): the purpose ends on every channel and for every address."
                    ),
                ])))

    package static let example: JSONValue = ["event_time": "2026-11-21T05:00:00Z", "method": "in_app_toggle"]

    package init(checked members: CheckedMembers) {
        eventTime = members.instant("event_time")
        method = members.name("method") ?? (members.text("reply") == nil ? nil : .smsKeyword)
        reply = members.text("reply")
        isForEveryChannel = members.flag("every_channel") ?? false
    }
}

/// `PUT …/preferences/{category or type}`: a choice of the recipient and where it was made.
package struct PreferenceBody: WireBody, Hashable {
    package enum State: String, CaseIterable, Sendable, Hashable {
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

    /// Whoever reports what somebody chose behind a second confirmation need not be trusted with their everyday
    /// choices, nor the other way round.
    package var neededGrant: Grant { source == .inAppStepUp ? .preferencesStepUp : .preferencesWrite }

    private static let members: [ObjectShape.Member] = [
        .required("state", .choice(of: State.self), "The choice; `default` takes an earlier one back."),
        .required(
            "source", .choice(of: PreferenceSource.self),
            "Where it was made. Only `in_app_step_up` switches security off."),
    ]

    package static let shape = Shape.named(
        "Preference",
        .variants(
            VariantShape(
                "channel", "The channel the choice is about.",
                [
                    (
                        ["push"],
                        ObjectShape(
                            "A choice about push.",
                            members + [
                                .optional(
                                    "device", .identifier, "One device; the account when absent.")
                            ])
                    ),
                    (
                        ["sms", "email"],
                        ObjectShape(
                            "A choice about SMS or e-mail.",
                            members + [
                                .optional(
                                    "address", .identifier, "One address; the account when absent.")
                            ])
                    ),
                ],
                withoutKey: ObjectShape(
                    "An objection (GDPR Art. 21): off on every channel, in one step. What is switched on is switched on channel by channel.",
                    [
                        .required("state", .choice([State.userOff.rawValue]), "Off."),
                        .required("source", .choice(of: PreferenceSource.self), "Where it was made."),
                    ]))))

    package static let example: JSONValue = [
        "state": "user_off", "source": "in_app_settings", "channel": "push", "device": "d_1",
    ]

    package init(checked members: CheckedMembers) {
        state = members.required(members.name("state"), "state")
        source = members.required(members.name("source"), "source")
        channel = members.name("channel")
        destination = members.destination
    }
}

/// `POST …/permission-prompts`: the operating system's prompt was shown. It never shows twice.
package struct PermissionPromptBody: WireBody, Hashable {
    package enum Answer: String, CaseIterable, Sendable, Hashable {
        case granted
        case denied
    }

    package var device: DestinationID
    /// `nil` means on arrival.
    package var shownAt: Instant?
    /// `nil` while the person has not answered.
    package var answer: Answer?

    package static let shape = Shape.named(
        "PermissionPrompt",
        .object(
            ObjectShape(
                "The operating system's permission prompt was shown on a device. It can be shown once.",
                [
                    .required("device", .identifier, "On which device."),
                    .optional("shown_at", .instant, "When; now when absent."),
                    .optional(
                        "answer", .choice(of: Answer.self), "What the person chose; absent while unknown."),
                ])))

    package static let example: JSONValue = [
        "device": "d_1", "shown_at": "2026-11-20T09:30:00Z", "answer": "granted",
    ]

    package init(checked members: CheckedMembers) {
        device = DestinationID(members.requiredText("device"))
        shownAt = members.instant("shown_at")
        answer = members.name("answer")
    }
}
