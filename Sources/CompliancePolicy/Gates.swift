import GateVocabulary

// The thirteen gates in their order, one function each; the table of DESIGN section 6 in code. A gate
// that lacks a fact it needs fails with `fact_missing`; a gate that does not need a fact ignores its
// absence. Where several things are wrong at one gate, what is known to be wrong is said before what is
// not known.

/// 0. Not past its expiry, and not due after it.
///
/// - Parameter waiting: Whether quiet hours would make the send wait for their end.
func expiryGate(_ facts: Facts, waiting: Bool) -> GateResult {
    guard let now = facts.now else { return .fail(.factMissing, .now) }
    guard let expiry = facts.expiry, let due = facts.due else { return .fail(.factMissing, .expiry) }
    if now > expiry { return .fail(.expired) }
    if due > expiry { return .fail(.expiresBeforeDue) }
    if waiting, case .inside(let end) = facts.quietHours, end > expiry { return .fail(.expiresBeforeDue) }
    return .pass
}

/// 1. The type is in the registry and enabled; params fit its schema.
func typeGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.typeKnown) else { return .fail(.unknownType) }
    guard behaviour.marks.contains(.typeEnabled) else { return .fail(.typeDisabled) }
    switch facts.params {
    case .valid: return .pass
    case .invalid: return .fail(.invalidParams)
    case nil: return .fail(.factMissing, .params)
    }
}

/// 2. The caller may send this type.
func callerGate(_ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.callerKnown) else { return .fail(.callerNotPermitted, .callerUnknown) }
    guard behaviour.marks.contains(.typeGranted) else { return .fail(.callerNotPermitted, .typeNotGranted) }
    return .pass
}

/// 3. Critical delivery only for the list, and only by whom it names. Never silently downgraded.
func criticalGate(_ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.criticalAsked) else { return .notApplicable }
    guard behaviour.marks.contains(.criticalListed) else {
        return .fail(.criticalNotPermitted, .notOnAllowList)
    }
    guard behaviour.marks.contains(.criticalGranted) else {
        return .fail(.criticalNotPermitted, .callerLacksGrant)
    }
    return .pass
}

/// 4. The law on fallbacks, and the channels the type allows.
func fallbackGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.typeKnown) else { return .notApplicable }
    switch facts.fallback {
    case .mismatch:
        return .fail(.smsFallbackForbidden, .fallbackMismatch)
    case .replacesOwnSend
    where behaviour.channel == .sms && behaviour.marks.contains(.smsFallbackForbidden):
        return .fail(.smsFallbackForbidden, behaviour.category == .marketing ? .marketing : nil)
    case .replacesOwnSend, .notFallback, nil:
        if behaviour.body == .never { return .fail(.channelNotAllowed) }
        return facts.fallback == nil ? .fail(.factMissing, .fallback) : .pass
    }
}

/// 5. Recipient and destination are known and active.
func destinationGate(_ facts: Facts) -> GateResult {
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
    case .active: return .pass
    }
}

/// 6. Consent or another permission, by category, channel and regime; nothing passes it.
func permissionGate(_ facts: Facts, _ territory: Territory, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.typeKnown) else { return .notApplicable }
    if behaviour.marks.contains(.refusesMinors), facts.age == .minor { return .fail(.minor) }
    var rule = territory.rule
    if behaviour.channel == .sms, facts.fallback == .replacesOwnSend {
        // Whatever the table says, a text in place of a push needs the number's own consent (S1).
        rule = max(rule, .optIn)
    }
    if let objection = objection(to: facts.consent, under: rule, now: facts.now) {
        if objection == .consent || objection == .now { return .fail(.factMissing, objection) }
        let isUnknown = objection == .neverAsked && territory.isStrictForWantOfRegion
        let reason = permissionReason(territory, behaviour)
        return .fail(reason, isUnknown && reason == .noGDPRConsent ? .regionUnknown : objection)
    }
    if behaviour.marks.contains(.needsPurpose),
        let objection = objection(to: facts.purposeConsent, under: .optIn, now: facts.now)
    {
        if objection == .consent || objection == .now { return .fail(.factMissing, objection) }
        return .fail(.noGDPRConsent, objection)
    }
    if behaviour.marks.contains(.refusesMinors), facts.age == nil { return .fail(.factMissing, .age) }
    return .pass
}

/// Why a recorded consent does not satisfy a rule; `nil` when it does.
///
/// - Returns: A detail of the consent reasons, or `.consent` or `.now` when that fact is missing.
private func objection(to consent: ConsentFact?, under rule: PermissionRule, now: Instant?) -> Detail? {
    if rule == .noneNeeded { return nil }
    guard let consent else { return .consent }
    if rule == .optOut {
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
        if now >= end { return .expired }
    }
    if rule == .optInOrExistingCustomer { return nil }
    // How it was given decides here, so not knowing it is not knowing whether it was given.
    guard let method = consent.method else { return .consent }
    return rule.accepts(method) ? nil : .methodInsufficient
}

private func permissionReason(_ territory: Territory, _ behaviour: Behaviour) -> Reason {
    if behaviour.category == .marketing {
        return territory.regime == .other ? .noMarketingOptIn : .noGDPRConsent
    }
    switch behaviour.channel {
    case .sms: return .noSMSConsent
    case .email: return .noEmailConsent
    case .push: return .noGDPRConsent
    }
}

/// 7. What the recipient chose: the most restrictive of account, destination and type.
func preferencesGate(_ facts: Facts, _ territory: Territory, _ behaviour: Behaviour) -> GateResult {
    let marks = behaviour.marks
    guard marks.contains(.typeKnown) else { return .notApplicable }
    let account = facts.accountPreference
    let destination = facts.destinationPreference
    // Only types that declare it have a preference of their own.
    let isMutableAlone = marks.contains(.mutableAlone)
    let accountType = isMutableAlone ? facts.accountTypePreference : .default
    let destinationType = isMutableAlone ? facts.destinationTypePreference : .default

    if marks.contains(.stepUpToSwitchOff) || behaviour.isCriticalPermitted {
        // A plain off, the master switch included, does not silence what keeps the account theirs.
        if account == .userOffStepUp { return .fail(.userPreference, .accountOff) }
        if destination == .userOffStepUp { return .fail(.userPreference, .destinationOff) }
        if accountType == .userOffStepUp || destinationType == .userOffStepUp {
            return .fail(.userPreference, .typeOff)
        }
        guard account != nil, destination != nil, accountType != nil, destinationType != nil else {
            return .fail(.factMissing, .preferences)
        }
        return .pass
    }

    if behaviour.channel == .push, facts.pushEnabled == false { return .fail(.pushDisabled) }
    if account?.isOff == true { return .fail(.userPreference, .accountOff) }
    if destination?.isOff == true { return .fail(.userPreference, .destinationOff) }
    if accountType?.isOff == true || destinationType?.isOff == true {
        return .fail(.userPreference, .typeOff)
    }
    guard let account, let destination, let accountType, let destinationType,
        behaviour.channel != .push || facts.pushEnabled != nil
    else { return .fail(.factMissing, .preferences) }

    let nothingChosen =
        account == .default && destination == .default && accountType == .default
        && destinationType == .default
    if nothingChosen, !marks.contains(.onByDefault), !isWanted(facts, territory, behaviour) {
        return .fail(.userPreference, .accountOff)
    }
    return .pass
}

/// Whether a category that is off by default is on for this recipient although they touched no switch.
///
/// Consent and preference are one will: a consent that was given and still counts is the switch. Where a
/// law lets us write until somebody objects, and only there, silence is not an off.
private func isWanted(_ facts: Facts, _ territory: Territory, _ behaviour: Behaviour) -> Bool {
    if territory.isKnown, territory.rule == .optOut { return true }
    guard behaviour.category == .marketing, let consent = facts.consent, consent.state == .given else {
        return false
    }
    guard let end = consent.expiresAt else { return true }
    guard let now = facts.now else { return false }
    return now < end
}

/// 8. What the device's operating system allows. Nothing passes it: what it blocks is not shown.
func osPermissionGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.channel == .push else { return .notApplicable }
    switch facts.osPermission {
    case .granted, .provisional: return .pass
    case .denied, .notDetermined: return .fail(.blockedAtOSLevel)
    case nil: return .fail(.factMissing, .osPermission)
    }
}

/// 9. The recipient's quiet hours, by category.
func quietHoursGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.marks.contains(.typeKnown), behaviour.quietHours != .pass else { return .notApplicable }
    if behaviour.isCriticalPermitted { return .pass }
    switch facts.quietHours {
    case nil: return .fail(.factMissing, .quietHours)
    case .off, .outside: return .pass
    case .zoneMissing:
        // A payment notice is not lost for want of a zone; an offer is not worth waking anybody for.
        return behaviour.quietHours == .drop ? .fail(.quietHoursZoneMissing) : .pass
    case .inside:
        return .fail(behaviour.quietHours == .drop ? .quietHoursDropped : .quietHoursDeferred)
    }
}

/// 10. Frequency caps: the type's, then its category's; both apply.
func capsGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    let hasTypeCap = behaviour.typeCap > 0
    let hasCategoryCap = behaviour.categoryCap > 0
    guard behaviour.marks.contains(.typeKnown), behaviour.overflow != .allow, hasTypeCap || hasCategoryCap
    else { return .notApplicable }
    if behaviour.isCriticalPermitted { return .pass }
    let reason: Reason = behaviour.overflow == .digest ? .digested : .frequencyCap
    if hasTypeCap && facts.typeCount == nil || hasCategoryCap && facts.categoryCount == nil {
        return .fail(.factMissing, .counts)
    }
    if hasTypeCap, let count = facts.typeCount, count >= Int(behaviour.typeCap) {
        return .fail(reason, .typeCap)
    }
    if hasCategoryCap, let count = facts.categoryCount, count >= Int(behaviour.categoryCap) {
        return .fail(reason, .categoryCap)
    }
    return .pass
}

/// 11. A usable device key when the body is sealed; without one, what the type says.
func deviceKeyGate(_ facts: Facts, _ behaviour: Behaviour) -> GateResult {
    guard behaviour.channel == .push, behaviour.body == .sealed else { return .notApplicable }
    let reason: Reason = behaviour.marks.contains(.genericWithoutKey) ? .genericOnly : .noDeviceKey
    switch facts.deviceKey {
    case nil: return .fail(.factMissing, .deviceKey)
    case .usable: return .pass
    case .none?: return .fail(reason, .noKey)
    case .unconfirmed: return .fail(reason, .keyUnconfirmed)
    case .revoked: return .fail(reason, .keyRevoked)
    }
}

/// 12. The composed payload fits the channel.
func sizeGate(_ facts: Facts, _ behaviour: Behaviour, form: BodyForm) -> GateResult {
    guard form != .never else { return .notApplicable }
    let most = Int(behaviour.payloadByteCountMax)
    guard let size = facts.sizes?[form] else { return .fail(.factMissing, .size) }
    if size > most { return .fail(.payloadTooLarge) }
    if behaviour.body == .full, facts.privacy == nil {
        // Which of the two texts goes out hangs on a choice nobody knows, so both have to fit: forgetting
        // the choice must not make a text fit that did not.
        guard let other = facts.sizes?[form == .full ? .generic : .full] else {
            return .fail(.factMissing, .size)
        }
        if other > most { return .fail(.payloadTooLarge) }
    }
    return .pass
}
