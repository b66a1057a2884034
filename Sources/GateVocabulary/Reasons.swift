/// What happens to one send at one destination. Ordered from best to worst for the recipient's message.
@usableFromInline
package enum Outcome: UInt8, CaseIterable, Sendable, Hashable, Comparable {
    case forward
    case `defer`
    case digest
    case suppress
    case reject

    @inlinable
    package static func < (better: Outcome, worse: Outcome) -> Bool { better.rawValue < worse.rawValue }

    /// Whether at least this destination will get it: now, later or in a summary.
    @inlinable
    package var isPromise: Bool {
        switch self {
        case .forward, .defer, .digest: true
        case .suppress, .reject: false
        }
    }

    package var name: String {
        switch self {
        case .forward: "forward"
        case .defer: "defer"
        case .digest: "digest"
        case .suppress: "suppress"
        case .reject: "reject"
        }
    }

    package init?(name: String) {
        guard let match = Outcome.allCases.first(where: { $0.name == name }) else { return nil }
        self = match
    }
}

/// Why a decision is what it is. A closed list with stable codes: prose is made from it at the edge,
/// so two runs compare as data. The order is the order of the gates.
@usableFromInline
package enum Reason: String, CaseIterable, Sendable, Hashable {
    // Gate 0
    case expired
    case expiresBeforeDue = "expires_before_due"
    case repeated
    // Gate 1
    case unknownType = "unknown_type"
    case typeDisabled = "type_disabled"
    case invalidParams = "invalid_params"
    // Gate 2
    case callerNotPermitted = "caller_not_permitted"
    // Gate 3
    case criticalNotPermitted = "critical_not_permitted"
    // Gate 4
    case smsFallbackForbidden = "sms_fallback_forbidden"
    case channelNotAllowed = "channel_not_allowed"
    // Gate 5, and every gate that lacks a fact it needs
    case unknownRecipient = "unknown_recipient"
    case noDestination = "no_destination"
    case factMissing = "fact_missing"
    // Gate 6
    case noGDPRConsent = "no_gdpr_consent"
    case noMarketingOptIn = "no_marketing_opt_in"
    case noSMSConsent = "no_sms_consent"
    case noEmailConsent = "no_email_consent"
    case noPurposeConsent = "no_purpose_consent"
    case minor
    // Gate 7
    case pushDisabled = "push_disabled"
    case userPreference = "user_preference"
    // Gate 8
    case blockedAtOSLevel = "blocked_at_os_level"
    // Gate 9
    case quietHoursDropped = "quiet_hours_dropped"
    case quietHoursZoneMissing = "quiet_hours_zone_missing"
    case quietHoursDeferred = "quiet_hours_deferred"
    case scheduled
    // Gate 10
    case frequencyCap = "frequency_cap"
    case digested
    // Gate 11
    case noDeviceKey = "no_device_key"
    case genericOnly = "generic_only"
    // Gate 12
    case payloadTooLarge = "payload_too_large"
    // No gate objected
    case allowed

    /// Whether the caller's id keeps this answer, whatever content it comes with again. A refusal for the request's own shape
    /// belongs to its content alone: the id is decided once that is put right (decision SG-0052).
    package var bindsID: Bool {
        switch self {
        case .unknownType, .invalidParams: false
        default: true
        }
    }

    /// What a gate that did not pass with this reason makes of the send.
    @inlinable
    package var outcome: Outcome {
        switch self {
        case .allowed, .genericOnly: .forward
        case .quietHoursDeferred, .scheduled: .defer
        case .digested: .digest
        case .expired, .expiresBeforeDue, .repeated, .pushDisabled, .userPreference, .blockedAtOSLevel,
            .quietHoursDropped, .quietHoursZoneMissing, .frequencyCap:
            .suppress
        case .unknownType, .typeDisabled, .invalidParams, .callerNotPermitted, .criticalNotPermitted,
            .smsFallbackForbidden, .channelNotAllowed, .unknownRecipient, .noDestination, .factMissing,
            .noGDPRConsent, .noMarketingOptIn, .noSMSConsent, .noEmailConsent, .noPurposeConsent, .minor,
            .noDeviceKey, .payloadTooLarge:
            .reject
        }
    }
}

/// What exactly was missing, closed per reason: see ``Reason/details``.
@usableFromInline
package enum Detail: String, CaseIterable, Sendable, Hashable {
    // repeated
    /// What it tells was told already: the same value of the type's `dedupe_by`.
    case alreadySent = "already_sent"
    /// What it tells need not be told any more: it was acknowledged.
    case acknowledged
    // scheduled
    /// The type has a time of its own: an hour of the day, or so long after it was sent.
    case sendTime = "send_time"
    // quiet_hours_deferred
    /// No time zone is known, and it is quiet in one where the recipient may be.
    case zoneUnknown = "zone_unknown"
    // The consent reasons
    case neverAsked = "never_asked"
    case refused
    case withdrawn
    case expired
    case otherChannel = "other_channel"
    case otherAddress = "other_address"
    case regionUnknown = "region_unknown"
    /// The recorded method is weaker than this channel and regime ask for (US SMS: written consent).
    case methodInsufficient = "method_insufficient"
    // blocked_at_os_level
    /// The recipient said no to the operating system.
    case denied
    /// The recipient has not been asked yet.
    case notDetermined = "not_determined"
    // critical_not_permitted
    case notOnAllowList = "not_on_allow_list"
    case callerLacksGrant = "caller_lacks_grant"
    // caller_not_permitted
    case callerUnknown = "caller_unknown"
    case typeNotGranted = "type_not_granted"
    // user_preference
    case accountOff = "account_off"
    case destinationOff = "destination_off"
    case typeOff = "type_off"
    // sms_fallback_forbidden
    case marketing
    case fallbackMismatch = "fallback_mismatch"
    // no_destination
    case noneRegistered = "none_registered"
    case destinationUnknown = "destination_unknown"
    case destinationInactive = "destination_inactive"
    case addressUnverified = "address_unverified"
    case addressContested = "address_contested"
    // fact_missing: which fact. `region` is also why a code does not travel by text (channel_not_allowed)
    case now
    case expiry
    case params
    case recipient
    case destination
    case consent
    case age
    case region
    case preferences
    case osPermission = "os_permission"
    case quietHours = "quiet_hours"
    case counts
    case deviceKey = "device_key"
    case size
    case fallback
    case repetition
    case critical
    case platform
    // frequency_cap, digested
    case typeCap = "type_cap"
    case categoryCap = "category_cap"
    case everythingCap = "everything_cap"
    // no_device_key, generic_only
    case noKey = "no_key"
    case keyUnconfirmed = "key_unconfirmed"
    case keyRevoked = "key_revoked"
}

/// Who can make the next attempt succeed.
package enum WhoCanFix: String, CaseIterable, Sendable, Hashable {
    case producer
    case recipient
    case security
    case compliance
    case `operator`
    case nobody
}
