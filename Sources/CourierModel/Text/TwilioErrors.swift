/// What Twilio's error codes mean for a message, after https://www.twilio.com/docs/api/errors (every code has a page of its own
/// there). A code that is not listed is judged by its HTTP status, as Twilio asks
/// (https://support.twilio.com/hc/en-us/articles/48916449686299).
package enum TwilioErrors {
    package enum Meaning: Sendable, Hashable {
        /// This message can never go to this number.
        case failed
        /// Too much at once, for this message or for all.
        case later(DeliveryOutcome.Scope, seconds: Int)
        /// Account, sender or settings are wrong: all messages wait.
        case configuration
    }

    /// Answers to `POST …/Messages.json`, and the reason each is told as.
    package static let answers: [Int: (meaning: Meaning, reason: String)] = [
        // Account and credentials.
        10001: (.configuration, "account_not_active"),
        20003: (.configuration, "authentication_failed"),
        20008: (.configuration, "test_credentials"),
        20403: (.configuration, "account_forbidden"),
        20404: (.configuration, "account_not_found"),
        70051: (.configuration, "authorization_failed"),
        // Too much at once.
        14107: (.later(.message, seconds: 30), "rate_between_numbers"),
        20429: (.later(.app, seconds: 1), "too_many_requests"),
        21611: (.later(.app, seconds: 60), "sender_queue_full"),
        // A setting of the account keeps texts from the number's country, and from no other number.
        21408: (.later(.message, seconds: 60), "region_not_permitted"),
        // The sender.
        21212: (.configuration, "from_invalid"),
        21603: (.configuration, "from_missing"),
        21606: (.configuration, "from_not_capable"),
        21608: (.configuration, "trial_account"),
        21609: (.configuration, "status_callback_invalid"),
        21659: (.configuration, "from_not_of_account"),
        21660: (.configuration, "from_of_another_account"),
        21701: (.configuration, "messaging_service_missing"),
        21703: (.configuration, "messaging_service_has_no_sender"),
        // The number, or what it asked for.
        21211: (.failed, "to_invalid"),
        21217: (.failed, "to_invalid"),
        21265: (.failed, "to_short_code"),
        21604: (.failed, "to_missing"),
        21610: (.failed, "unsubscribed_at_carrier"),
        21612: (.failed, "to_unreachable_from_sender"),
        21614: (.failed, "to_not_mobile"),
        21635: (.failed, "to_landline"),
        // The text.
        21602: (.failed, "text_missing"),
        21605: (.failed, "text_too_long"),
        21617: (.failed, "text_too_long"),
    ]

    /// `ErrorCode` of status callbacks that say more than that the message failed.
    static let callbacks: [Int: InboundReport.ReceiptEvent] = [
        // Unknown destination handset: the number is unknown and may no longer exist.
        30005: .tokenGone,
        // Validity period expired.
        30036: .expired,
    ]

    /// Refusals that say that the number leads nowhere, rather than that the text or the sender is at fault.
    package static let deadNumbers: Set<Int> = [21_211, 21_217, 21_265, 21_614, 21_635]

    static func event(ofStatus status: String, code: Int?) -> InboundReport.ReceiptEvent {
        if let code, let event = callbacks[code] { return event }
        return status == "canceled" ? .expired : .failed
    }

    /// - Parameters:
    ///   - code: The member `code` of an error's body.
    ///   - retryAfter: The header of that name, in seconds.
    ///   - suspects: Weighs a refusal that does not say whether the text or the settings are at fault.
    ///   - now: Milliseconds on a clock that never jumps.
    package static func outcome(
        status: Int, code: Int?, retryAfter: Int?, weighing suspects: inout SuspectAnswers, at now: Int64
    ) -> DeliveryOutcome {
        if let code, let (meaning, reason) = answers[code] {
            let reason = "twilio_\(code)_\(reason)"
            switch meaning {
            case .failed: return .failed(reason: reason)
            case .later(let scope, let seconds):
                return .later(reason: reason, seconds: max(retryAfter ?? 0, seconds), scope: scope)
            case .configuration: return .misconfigured(reason: reason)
            }
        }
        return HTTPTextAnswer.outcome(
            status: status, reason: code.map { "twilio_\($0)" } ?? "twilio_http_\(status)",
            retryAfter: retryAfter, weighing: &suspects, at: now)
    }
}

/// What the HTTP status of an SMS provider means where its body does not say more (RFC 9110 section 15).
package enum HTTPTextAnswer {
    /// - Parameters: As of ``TwilioErrors/outcome(status:code:retryAfter:weighing:at:)``.
    package static func outcome(
        status: Int, reason: String, retryAfter: Int?, weighing suspects: inout SuspectAnswers, at now: Int64
    ) -> DeliveryOutcome {
        switch status {
        case 200..<300: .accepted(providerID: nil)
        case 429: .later(reason: reason, seconds: max(retryAfter ?? 1, 1), scope: .app)
        // The server says that it did not act.
        case 503: .later(reason: reason, seconds: max(retryAfter ?? 5, 1), scope: .app)
        // It may have acted before it failed, and a second text costs money and trust.
        case 500...: .ambiguous(reason: reason, mayRepeat: false)
        // The text's fault, or a setting that spoils every text.
        case 400, 413, 422: suspects.suspected(reason, at: now)
        // 3xx, 401, 403, 404 and the like are about the settings, and never about one message.
        default: .misconfigured(reason: reason)
        }
    }
}
