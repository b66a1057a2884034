package import GateVocabulary

/// A decision in words: what a support agent can read out to the person who asks why nothing came.
///
/// Made from codes at the edge and never stored, so the words may change and no record does.
package enum Explanation {
    /// One sentence for a reason and its detail.
    package static func sentence(_ reason: Reason, _ detail: Detail?) -> String {
        switch reason {
        case .allowed: "Nothing stood in the way, so the notification was passed on."
        case .genericOnly:
            "The device has \(key(detail)), so only a text without content was passed on."
        case .expired: "The notification arrived after the time in which it would have been of use."
        case .expiresBeforeDue:
            "By the time it could have gone out, the notification would have been of no use any more."
        case .repeated where detail == .acknowledged:
            "It did not have to be told any more: the app had said that the recipient knows."
        case .repeated: "The same news went out before, or is already waiting to."
        case .unknownType: "The sender named a kind of notification that is not registered."
        case .typeDisabled: "This kind of notification is registered but switched off for everybody."
        case .invalidParams: "What the sender filled in does not fit this kind of notification."
        case .callerNotPermitted:
            detail == .callerUnknown
                ? "The service that tried to send it is not known to the gateway."
                : "The service that tried to send it may not send this kind of notification."
        case .criticalNotPermitted:
            detail == .notOnAllowList
                ? "The sender wanted to break through Do Not Disturb, and this kind of notification never may."
                : "The sender wanted to break through Do Not Disturb, and only Security may ask for that."
        case .smsFallbackForbidden:
            switch detail {
            case .marketing: "A text message never replaces an advertising push notification."
            case .fallbackMismatch:
                "It was to replace an earlier notification that this sender never sent to this recipient."
            default: "A text message may not replace this kind of notification."
            }
        case .channelNotAllowed: "This kind of notification never travels this way."
        case .unknownRecipient: "Nobody is registered under the name the sender used."
        case .noDestination: destination(detail)
        case .factMissing:
            "The gateway could not find out \(fact(detail)), and when in doubt it does not send."
        case .noGDPRConsent, .noMarketingOptIn, .noSMSConsent, .noEmailConsent, .noPurposeConsent:
            "\(permission(reason)), and \(consent(detail))."
        case .minor: "The recipient is under age, and this is not sent to minors."
        case .pushDisabled: "The recipient has switched push notifications off."
        case .userPreference:
            switch detail {
            case .destinationOff: "The recipient has switched this category off on this device or address."
            case .typeOff: "The recipient has switched this kind of notification off."
            // Said where a producer reads it, too, so it is true of whoever the category is withheld from as well.
            default: "This category is switched off for the recipient."
            }
        case .blockedAtOSLevel where detail == .notDetermined:
            "The app has not asked yet whether it may show notifications on the device."
        case .blockedAtOSLevel: "The device's own settings do not let the app show notifications."
        case .quietHoursDropped:
            "It was inside quiet hours, and this category is not kept for later."
        case .quietHoursZoneMissing:
            "The recipient has quiet hours, but the time zone they live in is not known."
        case .quietHoursDeferred where detail == .sendTime:
            "This kind of notification has its time of day and was kept for it."
        case .quietHoursDeferred where detail == .zoneUnknown:
            "The recipient's time zone is not known, and it was kept until quiet hours end wherever they may be."
        case .quietHoursDeferred: "It came in quiet hours and was kept until they end."
        case .frequencyCap:
            detail == .typeCap
                ? "The recipient has had as many notifications of this kind as the rules allow for now."
                : "The recipient has had as many notifications of this category as the rules allow for now."
        case .digested:
            detail == .typeCap
                ? "There were so many of this kind lately that this one was kept for a summary."
                : "There were so many of this category lately that this one was kept for a summary."
        case .noDeviceKey: "It may travel sealed only, and the device has \(key(detail))."
        case .payloadTooLarge: "The finished message is larger than this way of sending carries."
        }
    }

    /// For whoever may read all that is held of the recipient, and for the recipient: no switch of theirs stopped it. A
    /// producer is not told; what somebody takes part in is nobody's to read in a refusal (GDPR Art. 9).
    private static let withheld =
        "The recipient takes part in a programme that no advertising is sent during. They switched nothing off, and it is sent again when they leave and have agreed to it."

    /// Whether a decision withheld what is kept from whoever takes part in something, and no switch of theirs is off.
    package static func isWithheld(_ decision: Decision, given facts: Facts) -> Bool {
        let choices = [
            facts.accountPreference, facts.destinationPreference, facts.accountTypePreference,
            facts.destinationTypePreference,
        ]
        return facts.withheld == true && decision.reason == .userPreference
            && !choices.contains { $0?.isOff == true }
    }

    /// The sentence of a decision, and what else it did.
    package static func text(_ decision: Decision, given facts: Facts) -> String {
        let text = text(
            decision.reason, decision.detail, notes: decision.notes,
            isWithheld: isWithheld(decision, given: facts))
        guard let notBefore = decision.notBefore, decision.outcome.isPromise else { return text }
        return "\(text) \(waiting(until: notBefore, place: nil))"
    }

    /// Until when it waits.
    ///
    /// - Parameter place: What the owner calls the device or address.
    package static func waiting(until moment: Instant, place: String?) -> String {
        "It waits\(place.map { " for `\($0)`" } ?? "") until \(words(moment))."
    }

    /// - Parameters:
    ///   - notes: What else the decision did.
    ///   - isWithheld: See ``isWithheld(_:given:)``.
    package static func text(
        _ reason: Reason, _ detail: Detail?, notes: DecisionNotes, isWithheld: Bool
    ) -> String {
        var lines = [isWithheld ? withheld : sentence(reason, detail)]
        if notes.contains(.mandatoryPassed) {
            lines.append("The law obliges us to send it, so it went past something the recipient had set.")
        }
        if notes.contains(.atOwnRequest) {
            lines.append("The recipient asked to be reached by it at any hour.")
        }
        if notes.contains(.criticalDowngraded) {
            lines.append(
                "It was to break through Do Not Disturb, and the device does not let the app do that.")
        }
        return lines.joined(separator: " ")
    }

    /// What became of it later, as a sentence.
    ///
    /// - Parameters:
    ///   - place: What the owner calls the device or address.
    ///   - reason: The event's own: a decision's reason, a cause, a provider's word. See ``SendFate``.
    package static func sentence(
        _ fate: SendFate, at moment: Instant, place: String?, reason: String?
    ) -> String {
        let to = place.map { " to `\($0)`" } ?? ""
        let at = place.map { " for `\($0)`" } ?? ""
        let what =
            switch fate {
            case .handedOver: "it was handed over for delivery\(to)"
            case .refusedByHop: "the delivery service would not take it\(at)"
            case .expiredUnsent: "its time was over before the delivery service took it\(at)"
            case .ambiguous:
                "its time was over\(at), and nobody can say whether the delivery service had taken it"
            case .withdrawn: "it was taken back\(at)\(reason.map { ": \(withdrawal($0))" } ?? "")"
            case .summarised: "it was told in a summary with others\(at)"
            case .mandatoryUnreached:
                "it had reached nobody; a law obliges us to tell it, and it must go\(reason.map { " by \($0)" } ?? " another way")"
            case .acceptedByProvider: "the provider took it\(at)"
            case .failed: "the provider refused it\(at)\(reason.map { " (\($0))" } ?? "")"
            case .unregistered: "the provider no longer knew `\(place ?? "the device")`"
            case .userObserved:
                "the recipient saw it\(place.map { " on `\($0)`" } ?? "")\(reason.map { " (\($0))" } ?? "")"
            }
        return "On \(words(moment)) \(what)."
    }

    /// - Parameter reason: Of a ``WithdrawalCause``, or of a decision.
    private static func withdrawal(_ reason: String) -> String {
        WithdrawalCause(rawValue: reason).flatMap(withdrawal)
            ?? Reason(rawValue: reason).map(withdrawal) ?? reason
    }

    /// - Returns: `nil` for what only has a message decided again: the event then names the decision's reason.
    private static func withdrawal(_ cause: WithdrawalCause) -> String? {
        switch cause {
        case .expired: withdrawal(Reason.expired)
        case .cancelled: "the sender cancelled it"
        case .acknowledged: "the recipient knew by then"
        case .erased: "the recipient was forgotten"
        case .destinationRemoved: "the device or address was removed"
        case .damaged: "what was stored of it could not be read any more"
        case .old, .due, .summarised, .consentChanged, .preferenceChanged, .recipientChanged, .keyChanged,
            .policyChanged:
            nil
        }
    }

    /// An event names the reason and no detail, so this says no more than the reason does.
    private static func withdrawal(_ reason: Reason) -> String {
        switch reason {
        case .expired, .expiresBeforeDue: "it was of no use any more"
        case .repeated: "it had been told before, or the recipient knew by then"
        case .noGDPRConsent, .noMarketingOptIn, .noSMSConsent, .noEmailConsent, .noPurposeConsent:
            "the consent it needs was not there any more"
        case .minor: "the recipient was not known to be of age any more"
        case .pushDisabled, .userPreference: "it was switched off for the recipient"
        case .blockedAtOSLevel: "the device did not let the app show notifications any more"
        case .unknownRecipient, .noDestination: "the device or address was not in use any more"
        case .noDeviceKey: "the device had no key any more that may be used"
        case .quietHoursDropped, .quietHoursZoneMissing: "it was inside quiet hours by then"
        case .frequencyCap: "the recipient had had as many as the rules allow"
        case .payloadTooLarge: "it was larger than this way of sending carries"
        case .factMissing: "the gateway could not find out all it needs to know"
        case .unknownType, .typeDisabled, .invalidParams, .callerNotPermitted, .criticalNotPermitted,
            .smsFallbackForbidden, .channelNotAllowed:
            "the rules did not allow it any more"
        case .quietHoursDeferred, .digested, .genericOnly, .allowed:
            "it could not go in the form it was made in"
        }
    }

    /// `2026-11-23 07:00 UTC`: to the minute, rounded down.
    private static func words(_ moment: Instant) -> String {
        let text = moment.rfc3339
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
    }

    /// Who can make the next attempt succeed, as a sentence.
    package static func fix(_ reason: Reason, _ detail: Detail?) -> String {
        switch reason.whoCanFix(detail) {
        case .producer: "The sending service can put it right."
        case .recipient: "The recipient can change it."
        case .security: "The security team decides about it."
        case .compliance: "Whoever is responsible for the policy decides about it."
        case .operator: "Whoever runs the gateway can put it right."
        case .nobody: "There is nothing to put right."
        }
    }

    private static func permission(_ reason: Reason) -> String {
        switch reason {
        case .noSMSConsent: "A text message to this number needs consent"
        case .noEmailConsent: "An e-mail to this address needs consent"
        case .noMarketingOptIn: "Advertising needs an opt-in"
        case .noPurposeConsent: "This kind of notification needs a consent of its own"
        default: "The law where the recipient is asks for consent"
        }
    }

    private static func consent(_ detail: Detail?) -> String {
        switch detail {
        case .refused: "the recipient said no"
        case .withdrawn: "the recipient has taken it back"
        case .expired: "the one the recipient gave has run out"
        case .otherChannel: "the recipient gave it for another channel only"
        case .otherAddress: "the recipient gave it for another number or address only"
        case .regionUnknown:
            "what the recipient said is not enough where the strictest law counts, for where they are is not known for certain"
        case .methodInsufficient: "the way the recipient gave it is not enough here"
        default: "the recipient was never asked"
        }
    }

    private static func destination(_ detail: Detail?) -> String {
        switch detail {
        case .destinationUnknown: "The sender named a device or address the recipient does not have."
        case .destinationInactive: "The device or address is no longer in use."
        case .addressUnverified: "Nobody has proved that the number or address is the recipient's."
        default: "The recipient has no device or address on this channel."
        }
    }

    private static func key(_ detail: Detail?) -> String {
        switch detail {
        case .keyUnconfirmed: "a key it has not yet proved to hold"
        case .keyRevoked: "a key that was revoked"
        default: "no key to open a sealed message with"
        }
    }

    private static func fact(_ detail: Detail?) -> String {
        switch detail {
        case .now: "what time it was"
        case .expiry: "until when the notification is of use"
        case .params: "whether the notification was filled in correctly"
        case .recipient: "whether the recipient is registered"
        case .destination: "whether the device or address is in use"
        case .consent: "whether the recipient consented"
        case .age: "whether the recipient is of age"
        case .region: "where the recipient lives"
        case .preferences: "what the recipient has switched on and off"
        case .osPermission: "whether the device lets the app show notifications"
        case .quietHours: "whether it was inside the recipient's quiet hours"
        case .counts: "how many notifications the recipient has had"
        case .deviceKey: "whether the device has a key"
        case .size: "how large the finished message is"
        case .fallback: "which earlier notification it replaces"
        case .repetition: "whether the recipient was told of it before"
        case .critical: "whether it may break through Do Not Disturb"
        case .platform: "what kind of device it is"
        default: "something it needs to know"
        }
    }
}
