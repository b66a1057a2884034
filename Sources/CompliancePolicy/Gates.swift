import BundleModel
import GateVocabulary

// The gates in their order, one function each. A gate
// that lacks a fact it needs fails with `fact_missing`; a gate that does not need a fact ignores its
// absence. Where several things are wrong at one gate, what is known to be wrong is said before what is
// not known.
//
// Enums are matched and moments compared by their milliseconds: the `==` of an enum with raw values is a call
// through its conformance, and there would be dozens of them in a decision.
// The gates are inlined where they are asked, which takes a third off a decision.

/// 0. Not past its expiry, not due after it, and not told before where the type is told once.
///
/// - Parameter waitsUntil: Until when gate 9 would make the send wait, if it would.
@inline(__always)
func expiryGate(_ facts: Facts, _ rule: CompiledRule, waitsUntil: Instant?) -> GateResult {
    guard let now = facts.now else { return .fail(.factMissing, .now) }
    guard let expiry = facts.expiry, let due = facts.due else { return .fail(.factMissing, .expiry) }
    if now.milliseconds > expiry.milliseconds { return .fail(.expired) }
    if due.milliseconds > expiry.milliseconds { return .fail(.expiresBeforeDue) }
    if let waitsUntil, waitsUntil.milliseconds > expiry.milliseconds { return .fail(.expiresBeforeDue) }
    guard rule.flags.contains(.deduplicated) else { return .pass }
    switch facts.repetition {
    case .first: return .pass
    case .alreadySent: return .fail(.repeated, .alreadySent)
    case .acknowledged: return .fail(.repeated, .acknowledged)
    case nil: return .fail(.factMissing, .repetition)
    }
}

/// 1. The type is in the registry and enabled; params fit its schema.
@inline(__always)
func typeGate(_ params: ParamsFact?, _ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.typeKnown) else { return .fail(.unknownType) }
    guard rule.flags.contains(.typeEnabled) else { return .fail(.typeDisabled) }
    switch params {
    case .valid: return .pass
    case .invalid: return .fail(.invalidParams)
    case nil: return .fail(.factMissing, .params)
    }
}

/// 2. The caller may send this type.
@inline(__always)
func callerGate(_ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.callerKnown) else { return .fail(.callerNotPermitted, .callerUnknown) }
    guard rule.flags.contains(.typeGranted) else { return .fail(.callerNotPermitted, .typeNotGranted) }
    return .pass
}

/// 3. Critical delivery only for the list, and only by whom it names. Never silently downgraded.
@inline(__always)
func criticalGate(_ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.criticalAsked) else { return .notApplicable }
    guard rule.flags.contains(.criticalListed) else {
        return .fail(.criticalNotPermitted, .notOnAllowList)
    }
    guard rule.flags.contains(.criticalGranted) else {
        return .fail(.criticalNotPermitted, .callerLacksGrant)
    }
    return .pass
}

/// 4. The law on fallbacks, the channels the type allows, and where a text may bring a code.
@inline(__always)
func fallbackGate(_ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.typeKnown) else { return .notApplicable }
    switch facts.fallback {
    case .mismatch:
        return .fail(.smsFallbackForbidden, .fallbackMismatch)
    case .replacesOwnSend where rule.isSMS && rule.flags.contains(.smsFallbackForbidden):
        return .fail(.smsFallbackForbidden, rule.isMarketing ? .marketing : nil)
    case .replacesOwnSend, .notFallback:
        if case .never = rule.body { return .fail(.channelNotAllowed) }
        if rule.flags.contains(.codeText), !jurisdiction.allowsCodeText {
            return facts.accountRegion == nil
                ? .fail(.factMissing, .region) : .fail(.channelNotAllowed, .region)
        }
        return .pass
    case nil:
        if case .never = rule.body { return .fail(.channelNotAllowed) }
        return .fail(.factMissing, .fallback)
    }
}

/// 5. Recipient and destination are known and active. To an address that another person verified later goes only what is
/// not confidential.
@inline(__always)
func destinationGate(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    switch facts.recipient {
    case nil: return .fail(.factMissing, .recipient)
    case .unknown: return .fail(.unknownRecipient)
    case .registered: break
    }
    switch facts.destination {
    case nil: return .fail(.factMissing, .destination)
    case .noneRegistered: return .fail(.noDestination, .noneRegistered)
    case .unknown: return .fail(.noDestination, .destinationUnknown)
    case .inactive: return .fail(.noDestination, .destinationInactive)
    case .unverified: return .fail(.noDestination, .addressUnverified)
    case .contested where !rule.flags.contains(.reachesOlderHolders):
        return .fail(.noDestination, .addressContested)
    case .contested, .active: return .pass
    }
}

/// 6. Consent or another permission, by category, channel and regime; nothing passes it.
@inline(__always)
func permissionGate(_ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.typeKnown) else { return .notApplicable }
    if rule.flags.contains(.refusesMinors), case .minor = facts.age { return .fail(.minor) }
    // Whatever the table says, a text in place of a push needs the number's own consent (S1).
    var least = PermissionRule.noneNeeded
    if rule.isSMS, case .replacesOwnSend = facts.fallback { least = .optIn }
    if let objection = objection(to: facts.consent, under: max(jurisdiction.rule, least), now: facts.now) {
        switch objection {
        case .consent, .now: return .fail(.factMissing, objection)
        default: break
        }
        let reason = permissionReason(jurisdiction, rule)
        let isForWantOfRegion =
            !jurisdiction.isKnown && isForWantOfRegion(objection, reason, facts, jurisdiction, least)
        return .fail(reason, isForWantOfRegion ? .regionUnknown : objection)
    }
    if rule.flags.contains(.needsPurpose),
        let objection = objection(toPurpose: facts.purposeConsent, now: facts.now)
    {
        switch objection {
        case .consent, .now: return .fail(.factMissing, objection)
        default: return .fail(.noPurposeConsent, objection)
        }
    }
    if rule.flags.contains(.refusesMinors), facts.age == nil { return .fail(.factMissing, .age) }
    return .pass
}

/// Whether a consent is not enough only because a place is unknown: it is enough where the recipient is known to be, or
/// the recipient was not asked and no known place is under the GDPR.
private func isForWantOfRegion(
    _ objection: Detail, _ reason: Reason, _ facts: Facts, _ jurisdiction: Jurisdiction,
    _ least: PermissionRule
) -> Bool {
    if case (.neverAsked, .noGDPRConsent) = (objection, reason), jurisdiction.isStrictForWantOfRegion {
        return true
    }
    let known = max(jurisdiction.knownRule, least)
    return CompliancePolicy.objection(to: facts.consent, under: known, now: facts.now) == nil
}

/// Why a recorded consent does not satisfy a rule; `nil` when it does.
///
/// - Returns: A detail of the consent reasons, or `.consent` or `.now` when that fact is missing.
func objection(to consent: ConsentFact?, under rule: PermissionRule, now: Instant?) -> Detail? {
    if case .noneNeeded = rule { return nil }
    guard let consent else { return .consent }
    if case .optOut = rule {
        switch consent.state {
        case .refused: return .refused
        case .withdrawn: return .withdrawn
        case .given, .neverAsked, .otherChannel, .otherAddress: return nil
        }
    }
    switch consent.state {
    case .neverAsked: return .neverAsked
    case .refused: return .refused
    case .withdrawn: return .withdrawn
    case .otherChannel: return .otherChannel
    case .otherAddress: return .otherAddress
    case .given: break
    }
    if let end = consent.expiresAt {
        guard let now else { return .now }
        if now.milliseconds >= end.milliseconds { return .expired }
    }
    if case .optInOrExistingCustomer = rule { return nil }
    // How it was given decides here, so not knowing it is not knowing whether it was given.
    guard let method = consent.method else { return .consent }
    return rule.accepts(method) ? nil : .methodInsufficient
}

/// The same for a purpose a type names, which wants an explicit yes.
func objection(toPurpose consent: ConsentFact?, now: Instant?) -> Detail? {
    if let objection = objection(to: consent, under: .optIn, now: now) { return objection }
    return consent?.method?.isExplicit == true ? nil : .methodInsufficient
}

private func permissionReason(_ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> Reason {
    if rule.isMarketing {
        if case .other = jurisdiction.regime { return .noMarketingOptIn }
        return .noGDPRConsent
    }
    switch rule.channel {
    case .sms: return .noSMSConsent
    case .email: return .noEmailConsent
    case .push: return .noGDPRConsent
    }
}

/// 7. What the recipient chose: the most restrictive of account, destination and type.
@inline(__always)
func preferencesGate(_ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> GateResult {
    let flags = rule.flags
    guard flags.contains(.typeKnown) else { return .notApplicable }
    let account = facts.accountPreference
    let destination = facts.destinationPreference
    // Only types that declare it have a preference of their own.
    let isMutableAlone = flags.contains(.mutableAlone)
    let accountType = isMutableAlone ? facts.accountTypePreference : .default
    let destinationType = isMutableAlone ? facts.destinationTypePreference : .default

    let needsStepUp = flags.contains(.stepUpToSwitchOff) || rule.isCriticalPermitted
    if !needsStepUp, rule.isPush, facts.pushEnabled == false { return .fail(.pushDisabled) }
    // Said like any category that is off: a refusal does not tell what they take part in (GDPR Art. 9).
    let isWithheld = flags.contains(.withheldFromSome) ? facts.withheld : false
    if isWithheld == true { return .fail(.userPreference, .accountOff) }
    // A plain off, the master switch included, does not silence what keeps the account theirs.
    func isOff(_ preference: PreferenceState?) -> Bool {
        switch preference {
        case .userOffStepUp: true
        case .userOff: !needsStepUp
        case .default, .userOn, nil: false
        }
    }
    if isOff(account) { return .fail(.userPreference, .accountOff) }
    if isOff(destination) { return .fail(.userPreference, .destinationOff) }
    if isOff(accountType) || isOff(destinationType) { return .fail(.userPreference, .typeOff) }
    guard let account, let destination, let accountType, let destinationType, isWithheld != nil else {
        return .fail(.factMissing, .preferences)
    }
    if needsStepUp { return .pass }
    if rule.isPush, facts.pushEnabled == nil { return .fail(.factMissing, .preferences) }
    if flags.contains(.onByDefault) { return .pass }
    guard case (.default, .default, .default, .default) = (account, destination, accountType, destinationType)
    else { return .pass }
    return isWanted(facts, jurisdiction, rule) ? .pass : .fail(.userPreference, .accountOff)
}

/// Whether a category that is off by default is on for this recipient although they touched no switch.
///
/// Consent and preference are one will: a consent that was given and still counts is the switch. Where a
/// law lets us write until the recipient objects, and only there, silence is not an off.
private func isWanted(_ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> Bool {
    if jurisdiction.isKnown, case .optOut = jurisdiction.rule { return true }
    guard rule.isMarketing, let consent = facts.consent, case .given = consent.state else {
        return false
    }
    guard let end = consent.expiresAt else { return true }
    guard let now = facts.now else { return false }
    return now.milliseconds < end.milliseconds
}

/// 8. What the device's operating system allows. Nothing passes it: what it blocks is not shown.
@inline(__always)
func osPermissionGate(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    guard rule.isPush else { return .notApplicable }
    switch facts.osPermission {
    case .granted, .provisional: return .pass
    case .denied: return .fail(.blockedAtOSLevel, .denied)
    case .notDetermined: return .fail(.blockedAtOSLevel, .notDetermined)
    case nil: return .fail(.factMissing, .osPermission)
    }
}

/// 9. The type's own time of day, then the recipient's quiet hours at that time, by category.
@inline(__always)
func quietHoursGate(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    guard rule.flags.contains(.typeKnown) else { return .notApplicable }
    let hours = hoursRule(facts, rule)
    // Quiet hours that begin or end later than its time say more than the time does.
    guard waitsForItsTime(facts, rule), hours.verdict != .fail else { return hours }
    return .fail(.scheduled, .sendTime)
}

/// Whether a type's own time of day is still to come.
func waitsForItsTime(_ facts: Facts, _ rule: CompiledRule) -> Bool {
    guard rule.flags.contains(.timed), !rule.isCriticalPermitted, let due = facts.due,
        let now = facts.now
    else { return false }
    return due.milliseconds > now.milliseconds
}

private func hoursRule(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    if case .pass = rule.quietHours { return .notApplicable }
    if rule.isCriticalPermitted { return .pass }
    let isDropped = if case .drop = rule.quietHours { true } else { false }
    switch facts.quietHours {
    case nil: return .fail(.factMissing, .quietHours)
    case .off, .outside: return .pass
    case .zoneMissing:
        // A payment notice does not wait where it is quiet in no zone they may be in; an offer is not worth a guess.
        return isDropped ? .fail(.quietHoursZoneMissing) : .pass
    case .inside:
        return .fail(isDropped ? .quietHoursDropped : .quietHoursDeferred)
    case .insideSomewhere:
        return isDropped ? .fail(.quietHoursZoneMissing) : .fail(.quietHoursDeferred, .zoneUnknown)
    }
}

/// Until when a send waits that gate 9 deferred.
func waitsUntil(_ quietHours: GateResult, _ facts: Facts, _ rule: CompiledRule) -> Instant? {
    switch quietHours.reason {
    case .scheduled: return facts.due
    case .quietHoursDeferred: break
    default: return nil
    }
    let due = waitsForItsTime(facts, rule) ? facts.due : nil
    guard let end = facts.quietHours?.endsAt else { return nil }
    if let due, due.milliseconds > end.milliseconds { return due }
    return end
}

/// Whether the recipient asked to be reached by this type at any hour and however often, and still wants it.
func isAskedFor(_ facts: Facts) -> Bool {
    guard let request = facts.ownRequest else { return false }
    return objection(to: request, under: .optIn, now: facts.now) == nil
}

/// 10. Frequency caps: the type's, then its category's, then that over everything; all apply.
@inline(__always)
func capsGate(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    let hasTypeCap = rule.typeCap > 0
    let hasCategoryCap = rule.categoryCap > 0
    let hasEverythingCap = rule.everythingCap > 0
    guard rule.flags.contains(.typeKnown), hasTypeCap || hasCategoryCap || hasEverythingCap else {
        return .notApplicable
    }
    let reason: Reason
    switch rule.overflow {
    case .allow: return .notApplicable
    case .digest: reason = .digested
    case .drop: reason = .frequencyCap
    }
    if rule.isCriticalPermitted { return .pass }
    if hasTypeCap && facts.typeCount == nil || hasCategoryCap && facts.categoryCount == nil
        || hasEverythingCap && facts.everythingCount == nil
    {
        return .fail(.factMissing, .counts)
    }
    if hasTypeCap, let count = facts.typeCount, count >= Int(rule.typeCap) {
        return .fail(reason, .typeCap)
    }
    if hasCategoryCap, let count = facts.categoryCount, count >= Int(rule.categoryCap) {
        return .fail(reason, .categoryCap)
    }
    if hasEverythingCap, let count = facts.everythingCount, count >= Int(rule.everythingCap) {
        return .fail(reason, .everythingCap)
    }
    return .pass
}

/// 11. A usable device key when the body is sealed; without one, what the type says.
@inline(__always)
func deviceKeyGate(_ facts: Facts, _ rule: CompiledRule) -> GateResult {
    guard rule.isPush, case .sealed = rule.body else { return .notApplicable }
    let reason: Reason = rule.flags.contains(.genericWithoutKey) ? .genericOnly : .noDeviceKey
    switch facts.deviceKey {
    case nil: return .fail(.factMissing, .deviceKey)
    case .usable: return .pass
    case .none?: return .fail(reason, .noKey)
    case .unconfirmed: return .fail(reason, .keyUnconfirmed)
    case .revoked: return .fail(reason, .keyRevoked)
    // The constant text that the type allows was not composed.
    case .sealedToRevoked: return .fail(.noDeviceKey, .keyRevoked)
    }
}

/// 12. The composed payload fits the channel.
@inline(__always)
func sizeGate(_ facts: Facts, _ rule: CompiledRule, form: BodyForm) -> GateResult {
    if case .never = form { return .notApplicable }
    let most = Int(rule.payloadByteCountMax)
    guard let size = facts.sizes?[form] else { return .fail(.factMissing, .size) }
    if size > most { return .fail(.payloadTooLarge) }
    if case .full = rule.body, facts.privacy == nil, !rule.isAlwaysInFull {
        // Which of the two texts goes out hangs on an unknown choice, so both have to fit: forgetting
        // the choice must not make a text fit that did not.
        guard let full = facts.sizes?.full, let generic = facts.sizes?.generic else {
            return .fail(.factMissing, .size)
        }
        if max(full, generic) > most { return .fail(.payloadTooLarge) }
    }
    return .pass
}

extension CompiledRule {
    fileprivate var isPush: Bool { if case .push = channel { true } else { false } }
    fileprivate var isSMS: Bool { if case .sms = channel { true } else { false } }
    fileprivate var isMarketing: Bool { if case .marketing = category { true } else { false } }
    /// Whatever was chosen for a lock screen: the letter that a law obliges us to write, and a code.
    var isAlwaysInFull: Bool { !flags.isDisjoint(with: [.statutoryEmail, .codeText]) }
}
