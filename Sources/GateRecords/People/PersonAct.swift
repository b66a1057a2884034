package import GateVocabulary

/// One thing a person did about being notified, whichever route reported it, and what becomes of their consent and
/// their preference by it. The handbook's table ("Consent and preferences") is made of ``effect(at:on:)``.
package enum PersonAct: String, CaseIterable, Sendable, Hashable {
    /// A consent record `given`.
    case grant
    /// A consent record `given` by `existing_customer`: the company's word on a sale (ePrivacy Directive Art. 13(2)).
    case sale
    /// A consent record `shown`: the notice was displayed and nothing was said.
    case shown
    /// A consent record `refused`.
    case refusal
    /// The withdrawal of one consent record.
    case withdrawal
    /// The same by a reply to a text (47 CFR 64.1200(a)(10)) or an e-mail.
    case stop
    /// `user_off` without a channel, or a withdrawal with `every_channel` (GDPR Art. 21(2)).
    case objection
    /// `user_off` from the source `unsubscribe_link` (RFC 8058, GDPR Art. 7(3)), of the person or of somebody else with the same
    /// number or mailbox.
    case unsubscribeLink = "unsubscribe_link"
    case userOff = "user_off"
    /// The category back to its default. The default of marketing is off, so consent to it ends, and to nothing else.
    case `default`
    case userOn = "user_on"

    /// What the act is about within its channel.
    package enum Level: String, CaseIterable, Sendable, Hashable {
        /// The whole channel; for push the level of every consent.
        case account
        /// One number or mailbox.
        case address
        case device
    }

    /// The levels it can be reported at: a consent record is of push or of one address.
    package var levels: [Level] {
        switch self {
        case .grant, .shown, .refusal, .withdrawal: [.account, .address]
        case .sale, .stop: [.address]
        case .objection: [.account]
        case .unsubscribeLink, .userOff, .default, .userOn: Level.allCases
        }
    }

    /// What an act does to consents.
    package enum ConsentEffect: String, Sendable, Hashable {
        case unchanged
        case given
        case refused
        case withdrawn
    }

    /// What an act does to the consents and the preferences of one category at one level.
    package struct Effect: Sendable, Hashable {
        /// Of the category's consents at the level: for an account every one of the channel, for an address its own, for
        /// a device the one to push. What is withdrawn here is withdrawn whether it was given or not.
        package var consent: ConsentEffect
        /// `nil` leaves every preference as it is.
        package var preference: PreferenceState?
    }

    /// - Parameter category: Whose consent and preference it is; `nil` for a consent purpose that is no category, which
    ///   has no preference to change.
    package func effect(at level: Level, on category: GateVocabulary.Category?) -> Effect {
        let isMarketing = category == .marketing && level != .device
        let (consent, preference): (ConsentEffect, PreferenceState?) =
            switch self {
            case .grant: (.given, .userOn)
            case .sale: (.given, nil)
            case .shown: (.unchanged, nil)
            case .refusal: (.refused, .userOff)
            case .withdrawal, .stop, .objection, .unsubscribeLink: (.withdrawn, .userOff)
            case .userOff: (isMarketing ? .withdrawn : .unchanged, .userOff)
            case .default: (isMarketing ? .withdrawn : .unchanged, .default)
            case .userOn: (.unchanged, .userOn)
            }
        return Effect(consent: consent, preference: category == nil ? nil : preference)
    }
}

extension PersonAct {
    /// `nil` for what takes an act back: what comes of it is what was before the act.
    package init?(_ record: ConsentRecord) {
        switch record.state {
        case .given: self = record.method == .existingCustomer ? .sale : .grant
        case .refused: self = .refusal
        case .withdrawn: self = record.method.isReply ? .stop : .withdrawal
        case .shown: self = .shown
        case .undone: return nil
        }
    }

    /// - Parameter isForEveryChannel: Whether it was said of all channels in one step.
    package init(_ choice: PreferenceRecord, isForEveryChannel: Bool = false) {
        switch choice.state {
        case .userOn: self = .userOn
        case .default: self = .default
        case .userOff, .userOffStepUp:
            self =
                isForEveryChannel
                ? .objection
                : choice.source == .unsubscribeLink || choice.source == .sharedAddress
                    ? .unsubscribeLink : .userOff
        }
    }
}

extension PreferenceRecord {
    package var level: PersonAct.Level {
        destination == nil ? .account : channel == .push ? .device : .address
    }
}
