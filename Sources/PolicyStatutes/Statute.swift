package import GateVocabulary

/// One thing that the law or a source document never lets a decision do.
///
/// Written a second time, without the gates: where a gate says how it decides, a statute says what must never come
/// out. `when` is about the send, `forbids` about the decision; both together are a broken statute.
package struct Statute: Sendable {
    /// Stable, for machines: `marketing_needs_opt_in`.
    package let name: String
    /// Read after "the bundle breaks the statute that …": lower-case, without a full stop.
    package let says: String
    /// Where it is written.
    package let law: String
    package let when: Circumstance
    package let forbids: DecisionEffects
    /// What should have come out.
    package let demands: Demand

    /// The decision that would keep the statute.
    package enum Demand: Sendable, Hashable {
        /// Refused, or made to wait, for this reason.
        case reason(Reason)
        /// What the category's page says for quiet hours.
        case hoursRule
        /// What the category's page says for too many.
        case overflowRule
        /// `no_gdpr_consent` under European law, `no_marketing_opt_in` elsewhere, and the channel's own reason for
        /// what is not marketing.
        case permission
        /// Forwarded.
        case goes
        /// The same, as this form.
        case form(BodyForm)
        /// The same without the flag.
        case timeSensitive
    }

    private init(
        _ name: String, _ says: String, law: String, when: Circumstance, forbids: DecisionEffects,
        demands: Demand
    ) {
        self.name = name
        self.says = says
        self.law = law
        self.when = when
        self.forbids = forbids
        self.demands = demands
    }

    /// All of them; a circumstance has at least one.
    package static let all: [Statute] = permission + request + choices + hours + contents + shape

    private static let permission: [Statute] = [
        Statute(
            "marketing_needs_opt_in", "no marketing goes out without the opt-in its place demands",
            law: "GDPR Arts. 6(1)(a) and 7, ePrivacy Directive 2002/58/EC Art. 13, Apple App Review 4.5.4",
            when: .marketingWithoutOptIn, forbids: .promises, demands: .permission),
        Statute(
            "not_to_minors", "no marketing, and nothing else that is kept from minors, goes to a minor",
            law: "GDPR Recital 38; the type's `minors`", when: .minor, forbids: .promises,
            demands: .reason(.minor)),
        Statute(
            "known_age_only", "nothing that is kept from minors goes to somebody whose age nobody knows",
            law: "GDPR Recital 38 with Art. 5(2)", when: .ageUnknown, forbids: .promises,
            demands: .reason(.factMissing)),
        Statute(
            "us_text_needs_consent", "no text goes to the United States without the number's own consent",
            law: "47 CFR 64.1200(a)(1)-(2) and (f)(9)", when: .textWithoutConsent, forbids: .promises,
            demands: .permission),
        Statute(
            "text_fallback_needs_consent", "no text replaces a push without consent for texts",
            law: "S1, push consent does not cover SMS; ePrivacy Directive Art. 13(1)",
            when: .fallbackWithoutConsent, forbids: .promises, demands: .permission),
        Statute(
            "declared_permission", "nothing goes out without the permission the bundle itself declares",
            law: "categories.yaml and regions.yaml; GDPR Art. 5(2)", when: .declaredPermissionMissing,
            forbids: .promises, demands: .permission),
        Statute(
            "special_purpose", "nothing that needs an explicit consent of its own goes out without it",
            law: "GDPR Art. 9(2)(a), PSD2 Art. 67(2)(a)", when: .purposeMissing, forbids: .promises,
            demands: .reason(.noPurposeConsent)),
        Statute(
            "european_reason", "under European law a missing opt-in is called `no_gdpr_consent`",
            law: "GDPR Art. 6(1)(a), ePrivacy Directive Art. 13(1)", when: .europeanOptInMissing,
            forbids: .deniesEuropeanLaw, demands: .reason(.noGDPRConsent)),
    ]

    private static let request: [Statute] = [
        Statute(
            "registered_types_only", "only registered types go out", law: "S1, category model",
            when: .unregistered, forbids: .promises, demands: .reason(.unknownType)),
        Statute(
            "enabled_types_only", "a disabled type does not go out", law: "the type's page",
            when: .disabled, forbids: .promises, demands: .reason(.typeDisabled)),
        Statute(
            "fitting_params_only", "params that do not fit their schema do not go out",
            law: "the type's page", when: .paramsUnfit, forbids: .promises,
            demands: .reason(.invalidParams)),
        Statute(
            "permitted_callers_only", "a caller sends only what it is permitted",
            law: "GDPR Art. 32(4)", when: .callerNotPermitted, forbids: .promises,
            demands: .reason(.callerNotPermitted)),
        Statute(
            "critical_list", "critical delivery is refused to who is not on the list, and never softened",
            law: "S1, critical alerts", when: .criticalNotPermitted, forbids: .promises,
            demands: .reason(.criticalNotPermitted)),
        Statute(
            "critical_flag_list",
            "no send carries the critical flag but one of the list, asked by its caller",
            law: "S1; Apple: entitlement com.apple.developer.usernotifications.critical-alerts",
            when: .flagNotPermitted, forbids: .raisesFlag, demands: .timeSensitive),
        Statute(
            "critical_flag_grant", "no send carries the critical flag to a device that does not grant it",
            law: "Apple: entitlement com.apple.developer.usernotifications.critical-alerts",
            when: .deviceWithoutFlag, forbids: .raisesFlag, demands: .timeSensitive),
        Statute(
            "closed_channel", "a type leaves only on the channels it declares", law: "the type's page",
            when: .channelClosed, forbids: .promises, demands: .reason(.channelNotAllowed)),
        Statute(
            "forbidden_fallback",
            "no text replaces a marketing push, nor any other that must not be replaced",
            law: "S1; channels.yaml", when: .fallbackForbidden, forbids: .promises,
            demands: .reason(.smsFallbackForbidden)),
        Statute(
            "code_texts_where_allowed", "no text brings a code to an account whose region allows none",
            law: "regions.yaml, `code_texts`; Delegated Regulation (EU) 2018/389 Art. 22",
            when: .codeTextForbidden, forbids: .promises, demands: .reason(.channelNotAllowed)),
        Statute(
            "proved_fallback", "a send that says it replaces another replaces its caller's own",
            law: "S1", when: .fallbackUnproved, forbids: .promises, demands: .reason(.smsFallbackForbidden)),
        Statute(
            "known_recipients_only", "nothing goes to somebody who is not registered, or was erased",
            law: "GDPR Arts. 17 and 5(1)(d)", when: .recipientUnknown, forbids: .promises,
            demands: .reason(.unknownRecipient)),
        Statute(
            "usable_destinations_only",
            "nothing goes to a destination that is inactive or unproved, and nothing confidential to an address that another person proved later",
            law: "GDPR Art. 5(1)(d) and (f)", when: .destinationUnusable, forbids: .promises,
            demands: .reason(.noDestination)),
    ]

    private static let choices: [Statute] = [
        Statute(
            "off_is_off", "nothing goes out past a switch its recipient turned off",
            law: "GDPR Art. 21(2)-(3), S1", when: .switchedOff, forbids: .promises,
            demands: .reason(.userPreference)),
        Statute(
            "withheld_is_withheld", "no marketing goes to whoever takes part in what it is withheld from",
            law: "GDPR Arts. 9 and 25(2); S3, who is helped has a gambling disorder", when: .withheld,
            forbids: .promises, demands: .reason(.userPreference)),
        Statute(
            "off_by_default", "what is off by default goes only to who wanted it",
            law: "GDPR Art. 25(2), S1", when: .neverWanted, forbids: .promises,
            demands: .reason(.userPreference)),
        Statute(
            "known_choices_only", "nothing goes out when nobody knows what the recipient chose",
            law: "GDPR Art. 5(2)", when: .preferencesUnknown, forbids: .promises,
            demands: .reason(.factMissing)),
        Statute(
            "security_is_hard_to_silence", "only a choice made with step-up silences security",
            law: "GDPR Art. 32, S1", when: .securityNotSwitchedOff, forbids: .stopsForPreferences,
            demands: .goes),
        Statute(
            "os_has_the_last_word", "nothing goes to a device that does not allow notifications", law: "S1",
            when: .blockedByOS, forbids: .promises, demands: .reason(.blockedAtOSLevel)),
        Statute(
            "mandatory_passes_preferences", "no preference stops a notice the law obliges us to send",
            law: "the type's `mandatory.law`", when: .mandatoryDespitePreferences,
            forbids: .stopsForPreferences, demands: .goes),
    ]

    private static let hours: [Statute] = [
        Statute(
            "not_past_expiry", "nothing goes out after it expired", law: "the type's `ttl`",
            when: .expired, forbids: .promises, demands: .reason(.expired)),
        Statute(
            "not_due_after_expiry", "nothing is promised for a moment after it expires",
            law: "the type's `ttl`", when: .dueAfterExpiry, forbids: .promises,
            demands: .reason(.expiresBeforeDue)),
        Statute(
            "no_waiting_past_expiry", "nothing waits for the end of quiet hours that come after it expires",
            law: "the type's `ttl`", when: .waitsBeyondExpiry, forbids: .promises,
            demands: .reason(.expiresBeforeDue)),
        Statute(
            "promise_in_time", "no promise names a time after the expiry, or none", law: "the type's `ttl`",
            when: .anySend, forbids: .promisesTooLate, demands: .reason(.expiresBeforeDue)),
        Statute(
            "known_time_only", "nothing goes out when nobody knows what time it is", law: "GDPR Art. 5(2)",
            when: .timeUnknown, forbids: .promises, demands: .reason(.factMissing)),
        Statute(
            "quiet_hours", "nothing goes out within quiet hours but security and what was asked for",
            law: "S1, quiet hours",
            when: .quietHours, forbids: .forwards, demands: .hoursRule),
        Statute(
            "quiet_hours_zone", "no marketing and nothing social goes out when the hour there is unknown",
            law: "S1, quiet hours", when: .zoneMissing, forbids: .promises,
            demands: .reason(.quietHoursZoneMissing)),
        Statute(
            "known_hours_only", "nothing goes out when nobody knows whether it may be disturbing",
            law: "S1, quiet hours", when: .hoursUnknown, forbids: .promises, demands: .reason(.factMissing)),
        Statute(
            "mandatory_passes_hours", "no quiet hours stop a notice the law obliges us to send",
            law: "the type's `mandatory.law`", when: .mandatoryDespiteHours, forbids: .stopsForHours,
            demands: .goes),
        Statute(
            "own_time", "what has a time of day of its own does not go out before it",
            law: "the type's `timing`", when: .beforeItsTime, forbids: .forwards,
            demands: .reason(.scheduled)),
        Statute(
            "told_once", "what was told, or acknowledged, is not told again",
            law: "the type's `dedupe_by`; S2, Payment Processing", when: .toldBefore, forbids: .promises,
            demands: .reason(.repeated)),
        Statute(
            "known_repetition_only",
            "nothing that is told once goes out when nobody knows whether it was told",
            law: "the type's `dedupe_by`", when: .repetitionUnknown, forbids: .promises,
            demands: .reason(.factMissing)),
        Statute(
            "own_request_passes_hours", "no quiet hours stop what the recipient asked to have at any hour",
            law: "the type's `own_request`; S3", when: .askedForAnyHour, forbids: .stopsForHours,
            demands: .goes),
        Statute(
            "own_request_passes_caps", "no cap stops what the recipient asked to have however often",
            law: "the type's `own_request`; S3", when: .askedHoweverOften, forbids: .stopsForCaps,
            demands: .goes),
        Statute(
            "caps", "nothing goes out above its cap", law: "limits.yaml", when: .overCap,
            forbids: .forwards, demands: .overflowRule),
        Statute(
            "known_counts_only", "nothing that has a cap goes out when nobody counted", law: "limits.yaml",
            when: .countsUnknown, forbids: .promises, demands: .reason(.factMissing)),
        Statute(
            "mandatory_passes_caps", "no cap stops a notice the law obliges us to send",
            law: "the type's `mandatory.law`", when: .mandatoryDespiteCaps, forbids: .stopsForCaps,
            demands: .goes),
        Statute(
            "security_is_never_late", "neither the hour nor a cap stops security", law: "GDPR Art. 32, S1",
            when: .security, forbids: [.stopsForHours, .stopsForCaps], demands: .goes),
    ]

    private static let contents: [Statute] = [
        Statute(
            "high_never_in_clear", "nothing of high sensitivity leaves in clear", law: "GDPR Art. 32(1)(a)",
            when: .highSensitivity, forbids: .showsInFull, demands: .form(.generic)),
        Statute(
            "lock_screen", "what is personal is shown only to who chose to have it shown",
            law: "GDPR Art. 25(2)", when: .clearTextUnwanted, forbids: .showsInFull, demands: .form(.generic)),
        Statute(
            "letter_of_duty",
            "no letter the law obliges us to write is emptied for the sake of a lock screen",
            law: "GDPR Art. 34(2), PSD2 Art. 68(3), and the type's `mandatory.law`", when: .statutoryEmail,
            forbids: .shortens, demands: .form(.full)),
        Statute(
            "codes_arrive", "no text that brings a code is emptied for the sake of a lock screen",
            law: "S0, one-time passwords; PSD2 Art. 97(1)", when: .codeText, forbids: .shortens,
            demands: .form(.full)),
        Statute(
            "proved_keys_only", "nothing is sealed to a key that is revoked, unproved or not there",
            law: "GDPR Art. 32(1)(a)", when: .keyUnusable, forbids: .seals, demands: .form(.generic)),
        Statute(
            "worthless_without_key", "what must not leave unsealed does not leave without a key",
            law: "the type's `without_key`", when: .worthlessWithoutKey, forbids: .promises,
            demands: .reason(.noDeviceKey)),
        Statute(
            "fits_its_channel", "nothing is promised that its channel cannot carry", law: "channels.yaml",
            when: .doesNotFit, forbids: .promises, demands: .reason(.payloadTooLarge)),
    ]

    private static let shape: [Statute] = [
        Statute(
            "every_decision_says_why", "no decision is without its reason", law: "GDPR Art. 5(2)",
            when: .anySend, forbids: .isUnexplained, demands: .goes),
        Statute(
            "gates_mind_their_facts", "every gate answers from its own facts alone",
            law: "what lets this proof speak for all facts", when: .anySend, forbids: .looksElsewhere,
            demands: .goes),
    ]

    /// The one statute without a circumstance: it is about their absence.
    static let nothingInTheWay = Statute(
        "nothing_stops_it_for_nothing", "what nothing speaks against goes out",
        law: "PSD2 Art. 79(1) and whatever else obliges us to tell", when: .anySend, forbids: .withholds,
        demands: .goes)

    /// For each bit of ``DecisionEffects``, the circumstances in which it is unlawful.
    package static let unlawful: InlineArray<14, UInt64> = {
        var table = InlineArray<14, UInt64>(repeating: 0)
        for statute in all {
            for bit in 0..<DecisionEffects.count where statute.forbids.rawValue & 1 << UInt32(bit) != 0 {
                table[bit] |= Conditions(statute.when).rawValue
            }
        }
        return table
    }()
}
