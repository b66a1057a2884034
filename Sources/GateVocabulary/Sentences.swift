/// The sentences of one language.
package struct Sentences: Sendable {
    /// A BCP 47 tag.
    package let locale: String
    /// Twelve, as a date says them.
    package var months: [String]
    package var templates: [Sentence: SentenceTemplate]

    package init(locale: String, months: [String], templates: [Sentence: SentenceTemplate]) {
        self.locale = locale
        self.months = months
        self.templates = templates
    }

    package static let monthCount = 12

    /// What the others are held against, and what is said where a bundle has no other.
    package static let english = Sentences(
        locale: "en",
        months: Instant.englishMonths,
        templates: Dictionary(
            uniqueKeysWithValues: Sentence.all.map { sentence in
                do throws(SentenceTemplate.Fault) {
                    return (sentence, try SentenceTemplate(sentence.english))
                } catch {
                    preconditionFailure("`\(sentence.path.joined(separator: "."))` \(error.message)")
                }
            }))

    /// A bundle of an earlier build may lack what this one says; then it is said in English.
    package func callAsFunction(_ sentence: Sentence, _ values: [SentenceTemplate.Value: String?] = [:])
        -> String
    {
        let template = templates[sentence] ?? Self.english.templates[sentence]
        guard let template else {
            preconditionFailure("`\(sentence.path.joined(separator: "."))` is no sentence of the gateway")
        }
        return template.filled(with: values.compactMapValues(\.self))
    }
}

/// Everything that is said of a decision and of what became of it, each with its English words.
///
/// Other languages are a bundle's `reasons/<locale>.yaml`, where each sentence stands under its ``path`` and has the values of
/// the English one.
package enum Sentence: Hashable, Sendable {
    /// A whole sentence, to be read out to the person who asks.
    case reason(Reason, Detail?)
    /// Completes "it was taken back: …" and "it was given up: …".
    case withdrawal(Reason)
    /// The same of what is no decision's reason.
    case cause(WithdrawalCause)
    case whoCanFix(WhoCanFix)
    /// By ``DecisionNotes/names``.
    case note(String)
    case event(SendEventKind)
    case act(ObservedAct)
    case remedy(Remedy)
    case phrase(Phrase)

    /// What a person can do so that a choice has its effect; without a full stop.
    package enum Remedy: String, CaseIterable, Sendable, Hashable {
        case allowOnIOS = "allow_on_ios"
        case allowOnAndroid = "allow_on_android"
        case switchPushOn = "switch_push_on"
        case giveConsent = "give_consent"
        case giveSMSConsent = "give_sms_consent"
        case giveEmailConsent = "give_email_consent"
        case switchOnForAccount = "switch_on_for_account"
        case switchOnAtPlace = "switch_on_at_place"
        case switchOnCategory = "switch_on_category"
        case chooseAgain = "choose_again"
    }

    /// What stands around and between the others.
    package enum Phrase: String, CaseIterable, Sendable, Hashable {
        case moment
        case waiting
        case elsewhere
        case withheld
        case cameInQuietHours = "came_in_quiet_hours"
        case droppedInQuietHours = "dropped_in_quiet_hours"
    }

    package static let all: [Sentence] =
        Reason.allCases.flatMap { reason in
            [.reason(reason, nil)] + reason.details.map { .reason(reason, $0) } + [.withdrawal(reason)]
        }
        + WithdrawalCause.allCases.filter { $0.english != nil }.map { .cause($0) }
        + WhoCanFix.allCases.map { .whoCanFix($0) } + DecisionNotes.names.map { .note($0.name) }
        + SendEventKind.allCases.filter { ![.userObserved, .inDoubt].contains($0) }.map { .event($0) }
        + ObservedAct.allCases.map { .act($0) } + Remedy.allCases.map { .remedy($0) }
        + Phrase.allCases.map { .phrase($0) }

    /// Where it stands in a page of another language.
    package var path: [String] {
        switch self {
        case .reason(let reason, nil): ["reasons", reason.rawValue, "sentence"]
        case .reason(let reason, let detail?): ["reasons", reason.rawValue, "details", detail.rawValue]
        case .withdrawal(let reason): ["reasons", reason.rawValue, "withdrawal"]
        case .cause(let cause): ["withdrawals", cause.rawValue]
        case .whoCanFix(let fixer): ["who_can_fix", fixer.rawValue]
        case .note(let name): ["notes", name]
        case .event(let kind): ["events", kind.rawValue]
        case .act(let act): ["observed", act.rawValue]
        case .remedy(let remedy): ["remedies", remedy.rawValue]
        case .phrase(let phrase): [phrase.rawValue]
        }
    }

    package var english: String {
        switch self {
        case .reason(let reason, let detail):
            reason.declaration.details.first { $0.detail == detail }?.sentence ?? reason.declaration.sentence
        case .withdrawal(let reason): reason.declaration.withdrawal
        case .cause(let cause): cause.english ?? cause.rawValue
        case .whoCanFix(let fixer): fixer.english
        case .note(let name): DecisionNotes.english(name)
        case .event(let kind): kind.english
        case .act(let act): act.english
        case .remedy(let remedy): remedy.english
        case .phrase(let phrase): phrase.english
        }
    }
}

extension Sentence.Phrase {
    fileprivate var english: String {
        switch self {
        case .moment: "{day} {month} {year} at {hour}:{minute} ({zone})"
        case .waiting: "It waits[ for `{place}`] until {moment}."
        case .elsewhere: "At [`{place}`|another place]: {text}"
        // For a caller that may read all that is held of the recipient, and for the recipient: no switch of theirs stopped it. A
        // producer is not told: no refusal shows what a person takes part in (GDPR Art. 9).
        case .withheld:
            "The recipient takes part in a programme that no advertising is sent during. They switched nothing off, and it is sent again when they leave and have agreed to it."
        // These two replace the reason's own sentence. It also has to be true of a type with a time of day, whose send may come
        // at noon and be due in quiet hours.
        case .cameInQuietHours: "It came in quiet hours and was kept until they end."
        case .droppedInQuietHours: "It was inside quiet hours, and this category is not kept for later."
        }
    }
}

extension Sentence.Remedy {
    fileprivate var english: String {
        switch self {
        case .allowOnIOS: "Open Settings, Notifications, this app, and allow notifications"
        case .allowOnAndroid: "Open Settings, Apps, this app, Notifications, and allow them"
        case .switchPushOn: "Switch push notifications on for the account"
        case .giveConsent: "Give consent to [`{purpose}`|offers] on this channel"
        case .giveSMSConsent: "Give consent to text messages at this number"
        case .giveEmailConsent: "Give consent to e-mail at this address"
        case .switchOnForAccount: "Switch it on for the account first"
        case .switchOnAtPlace: "Switch it on at the device or address"
        case .switchOnCategory: "Switch on its category first"
        case .chooseAgain: "The provider has this device unsubscribed: choose it again in the app"
        }
    }
}

extension WhoCanFix {
    fileprivate var english: String {
        switch self {
        case .producer: "The sending service can put it right."
        case .recipient: "The recipient can change it."
        case .security: "The security team decides about it."
        case .compliance: "Whoever is responsible for the policy decides about it."
        case .operator: "Whoever runs the gateway can put it right."
        case .nobody: "There is nothing to put right."
        }
    }
}

extension DecisionNotes {
    fileprivate static func english(_ name: String) -> String {
        guard let note = names.first(where: { $0.name == name })?.note else { return name }
        return switch note {
        case .criticalDowngraded:
            "It was to break through Do Not Disturb, and the device does not let the app do that."
        case .mandatoryPassed:
            "The law obliges us to send it, so it went past what would otherwise have kept it back."
        case .atOwnRequest: "The recipient asked to be reached by it at any hour."
        case .addressContested:
            "The number or address was verified elsewhere too, and no earlier, so nothing confidential goes there until the recipient verifies it anew."
        default: preconditionFailure("the note `\(name)` has no sentence")
        }
    }
}

extension SendEventKind {
    fileprivate var english: String {
        let what =
            switch self {
            case .handedOver: "it was handed over for delivery[ to `{place}`]"
            case .refusedByHop: "the delivery service would not take it[ for `{place}`]"
            case .expiredUnsent:
                "there was no time left to try again, and the delivery service had not taken it[ for `{place}`]"
            case .ambiguous:
                "it was given up[ for `{place}`][: {why}]. Nobody can say whether the delivery service had taken it"
            // Told in the list of events alone: a sentence says what a doubt came to.
            case .inDoubt:
                "nobody could say whether the delivery service had taken it[ for `{place}`][ ({code})], and it was to go again"
            case .withdrawn: "it was taken back[ for `{place}`][: {why}]"
            case .summarised: "it was told in a summary with others[ for `{place}`]"
            case .mandatoryUnreached:
                "it had reached nobody; a law obliges us to tell it, and it must go [by {channel}|another way]"
            case .acceptedByProvider: "the provider took it[ for `{place}`]"
            case .failed: "the provider refused it[ for `{place}`][ ({code})]"
            case .tokenGone: "the provider no longer knew [`{place}`|`the device`]"
            case .expired: "the provider gave it up when its time was over[ for `{place}`]"
            // See `ObservedAct`.
            case .userObserved: "the recipient saw it"
            }
        return "On {moment} \(what)."
    }
}

extension ObservedAct {
    fileprivate var english: String {
        let what =
            switch self {
            case .seen: "saw it"
            case .tap: "opened it or acted on it"
            case .dismissed: "put it away"
            case .badgeCleared: "opened the app, which cleared it"
            }
        return "On {moment} the recipient \(what)[ on `{place}`][ ({code})]."
    }
}

extension WithdrawalCause {
    /// `nil` for what only has a message decided again, where the event names the decision's reason, and for what is told in
    /// other words.
    package var english: String? {
        switch self {
        case .expired: Reason.expired.declaration.withdrawal
        case .cancelled: "the sender cancelled it"
        case .acknowledged: "the recipient knew by then"
        case .erased: "the recipient was forgotten"
        case .destinationRemoved: "the device or address was no longer in use"
        case .damaged: "what was stored of it could not be read any more"
        case .unrepeatable: "it may have arrived, and a second one would have come twice"
        case .old, .due, .summarised, .consentChanged, .preferenceChanged, .recipientChanged, .keyChanged,
            .policyChanged:
            nil
        }
    }
}
