package import BundleModel
import CompliancePolicy
package import GateVocabulary

/// The decision a second time, read straight off the pages: slow, long-winded, and written from the table of the
/// gates instead of from their code.
///
/// It knows ``PolicyBundle`` and nothing that is compiled from it. Where it and ``decide(_:given:under:)`` differ, one
/// of them is wrong.
package struct PlainInterpreter: Sendable {
    let bundle: PolicyBundle

    package init(_ bundle: PolicyBundle) { self.bundle = bundle }

    package func decide(_ request: AttestedRequest, given facts: Facts) -> Decision {
        let type = bundle.types[request.type]
        let category = type.flatMap { bundle.categories[$0.category] }
        let isCritical = request.critical && isListed(request) && isNamed(request)
        let form = self.form(type, on: request.channel, facts)
        var notes: DecisionNotes = []

        var preferences = preferencesGate(request, type, category, facts, isCritical: isCritical)
        if mandate(type, .preferences), preferences.verdict == .fail {
            if preferences.reason != .factMissing { notes.insert(.mandatoryPassed) }
            preferences = .pass
        }

        var hours = hoursGate(type, category, facts, isCritical: isCritical)
        let isAsked = isAskedFor(facts)
        if hours.verdict == .fail, hours.reason != .factMissing, hours.reason != .scheduled, isAsked,
            type?.ownRequest?.passes.contains(.quietHours) == true
        {
            if let type, waitsForItsTime(type, facts, isCritical: isCritical) {
                hours = .fail(.scheduled, .sendTime)
            } else {
                notes.insert(.atOwnRequest)
                hours = .pass
            }
        }
        if mandate(type, .quietHours), hours.verdict == .fail {
            if hours.reason != .factMissing { notes.insert(.mandatoryPassed) }
            hours = .pass
        }

        var caps = capsGate(request, type, category, facts, isCritical: isCritical)
        if caps.verdict == .fail, caps.reason != .factMissing, isAsked,
            type?.ownRequest?.passes.contains(.caps) == true
        {
            notes.insert(.atOwnRequest)
            caps = .pass
        }
        if mandate(type, .caps), caps.verdict == .fail {
            if caps.reason != .factMissing { notes.insert(.mandatoryPassed) }
            caps = .pass
        }

        var wait: Instant?
        if hours.reason == .scheduled {
            wait = facts.due
        } else if hours.reason == .quietHoursDeferred, let end = facts.quietHours?.endsAt {
            wait = end
            if type?.timing != nil, let now = facts.now, let due = facts.due, now < due {
                wait = max(end, due)
            }
        }

        let results: [GateResult] = [
            expiryGate(type, facts, wait: wait),
            typeGate(type, facts),
            callerGate(request, type),
            criticalGate(request),
            fallbackGate(request, type, facts),
            destinationGate(type, facts),
            permissionGate(request, type, category, facts),
            preferences,
            systemGate(request, facts),
            hours,
            caps,
            keyGate(request, type, facts),
            sizeGate(request, type, facts, form: form),
        ]
        var trace = Trace()
        for gate in Gate.allCases { trace[gate] = results[Int(gate.rawValue)] }

        let failed = results.filter { $0.verdict == .fail }
        if let refusal = failed.first(where: { !$0.reason!.outcome.isPromise }) {
            return Decision(
                outcome: refusal.reason!.outcome, reason: refusal.reason!, detail: refusal.detail,
                notBefore: nil, form: .never, interruption: .passive, notes: [], trace: trace)
        }
        if facts.destination == .contested { notes.insert(.addressContested) }
        let deciding = failed.first { $0.reason!.outcome != .forward } ?? failed.first
        let reason = deciding?.reason ?? .allowed
        var interruption = type?.interruption ?? .passive
        if isCritical, request.channel == .push {
            if facts.criticalAlerts == true {
                interruption = .critical
            } else {
                interruption = .timeSensitive
                notes.insert(.criticalDowngraded)
            }
        }
        return Decision(
            outcome: reason.outcome, reason: reason, detail: deciding?.detail,
            notBefore: reason.outcome == .defer ? wait : nil, form: form, interruption: interruption,
            notes: notes, trace: trace)
    }

    private func mandate(_ type: NotificationType?, _ pass: MandatoryPass) -> Bool {
        type?.mandatory?.passes.contains(pass) ?? false
    }

    // MARK: 0 to 5

    private func expiryGate(_ type: NotificationType?, _ facts: Facts, wait: Instant?) -> GateResult {
        guard let now = facts.now else { return .fail(.factMissing, .now) }
        guard let expiry = facts.expiry, let due = facts.due else { return .fail(.factMissing, .expiry) }
        if now > expiry { return .fail(.expired) }
        if due > expiry { return .fail(.expiresBeforeDue) }
        if let wait, wait > expiry { return .fail(.expiresBeforeDue) }
        if let type, type.dedupeBy != nil, type.mandatory == nil {
            if facts.repetition == nil { return .fail(.factMissing, .repetition) }
            if facts.repetition == .alreadySent { return .fail(.repeated, .alreadySent) }
            if facts.repetition == .acknowledged { return .fail(.repeated, .acknowledged) }
        }
        return .pass
    }

    private func typeGate(_ type: NotificationType?, _ facts: Facts) -> GateResult {
        guard let type else { return .fail(.unknownType) }
        if !type.isEnabled { return .fail(.typeDisabled) }
        if facts.params == nil { return .fail(.factMissing, .params) }
        if facts.params == .invalid { return .fail(.invalidParams) }
        return .pass
    }

    private func callerGate(_ request: AttestedRequest, _ type: NotificationType?) -> GateResult {
        if request.caller == .gateway {
            // Its own are the summaries and the notices that channels.yaml names.
            let isOwn =
                isSummary(request.type)
                || request.type == bundle.channels.deviceKeyAge?.replacementNotice
                || request.type == bundle.channels.contestedNotice
            return type == nil || isOwn ? .pass : .fail(.callerNotPermitted, .typeNotGranted)
        }
        guard let caller = bundle.callers[request.caller] else {
            return .fail(.callerNotPermitted, .callerUnknown)
        }
        var isGranted = caller.grants.contains(.send)
        if let type {
            if !caller.types.categories.contains(type.category) { isGranted = false }
            if let only = caller.types.only, !only.contains(type.id) { isGranted = false }
            if caller.types.except.contains(type.id) { isGranted = false }
        }
        return isGranted ? .pass : .fail(.callerNotPermitted, .typeNotGranted)
    }

    private func isListed(_ request: AttestedRequest) -> Bool {
        bundle.types[request.type] != nil && bundle.critical.contains { $0.type == request.type }
    }

    private func isNamed(_ request: AttestedRequest) -> Bool {
        bundle.critical.contains { $0.type == request.type && $0.callers.contains(request.caller) }
            && bundle.callers[request.caller]?.grants.contains(.sendCritical) == true
    }

    private func criticalGate(_ request: AttestedRequest) -> GateResult {
        if !request.critical { return .notApplicable }
        if !isListed(request) { return .fail(.criticalNotPermitted, .notOnAllowList) }
        return isNamed(request) ? .pass : .fail(.criticalNotPermitted, .callerLacksGrant)
    }

    private func fallbackGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ facts: Facts
    ) -> GateResult {
        guard let type else { return .notApplicable }
        if facts.fallback == .mismatch { return .fail(.smsFallbackForbidden, .fallbackMismatch) }
        if facts.fallback == .replacesOwnSend, request.channel == .sms {
            if type.category == .marketing, bundle.channels.smsFallbackForMarketing == .forbidden {
                return .fail(.smsFallbackForbidden, .marketing)
            }
            if type.category != .marketing, bundle.channels.smsFallbackForOthers == .forbidden {
                return .fail(.smsFallbackForbidden)
            }
        }
        if type.body[request.channel] == .never { return .fail(.channelNotAllowed) }
        if facts.fallback == nil { return .fail(.factMissing, .fallback) }
        guard isCodeText(type, on: request.channel) else { return .pass }
        guard let account = facts.accountRegion else { return .fail(.factMissing, .region) }
        let isListed = { (code: RegionCode) in
            bundle.regions.codeTextRows.contains { $0.regions.contains(code) }
        }
        let place = isListed(account.code) ? account.code : account.code.country
        let isAllowed = bundle.regions.codeTextRows.contains { row in
            guard row.regions.contains(place), let now = facts.now, now >= row.from.instant else {
                return false
            }
            if let until = row.until, now >= until.instant { return false }
            return true
        }
        return isAllowed ? .pass : .fail(.channelNotAllowed, .region)
    }

    private func destinationGate(_ type: NotificationType?, _ facts: Facts) -> GateResult {
        if facts.recipient == nil { return .fail(.factMissing, .recipient) }
        if facts.recipient == .unknown { return .fail(.unknownRecipient) }
        guard let destination = facts.destination else { return .fail(.factMissing, .destination) }
        if destination == .active { return .pass }
        if destination == .contested, let type, type.category != .security, type.sensitivity != .high {
            return .pass
        }
        let details: [DestinationFact: Detail] = [
            .noneRegistered: .noneRegistered, .unknown: .destinationUnknown, .inactive: .destinationInactive,
            .unverified: .addressUnverified, .contested: .addressContested,
        ]
        return .fail(.noDestination, details[destination])
    }

    // MARK: 6

    /// From the weakest to the strictest.
    private static let rules: [PermissionRule] = [
        .noneNeeded, .optOut, .optInOrExistingCustomer, .optIn, .expressConsent, .writtenConsent,
    ]

    private static func strictest(_ rules: [PermissionRule]) -> PermissionRule {
        Self.rules.last { rules.contains($0) } ?? .writtenConsent
    }

    private struct Place {
        var regime: Regime
        var isKnown: Bool
        var isGDPROnlyForWantOfKnowing: Bool
        var rule: PermissionRule
        /// What is asked where they are known to be.
        var ruleWhereKnown: PermissionRule
    }

    private func isFresh(_ observation: RegionObservation, _ now: Instant?) -> Bool {
        guard let days = bundle.regions.freshnessDays[observation.source] ?? nil else { return true }
        guard let now else { return false }
        return now.milliseconds - observation.observedAt.milliseconds <= Int64(days) * 86_400_000
    }

    private func regime(of region: RegionCode) -> Regime? {
        bundle.regions.regions[region]?.regime ?? bundle.regions.regions[region.country]?.regime
    }

    private func place(
        _ request: AttestedRequest, _ type: NotificationType, _ category: CategoryRule, _ facts: Facts
    ) -> Place {
        let table = category.permission[request.channel]
        let rows = bundle.regions.permissionRows.filter {
            guard $0.channel == request.channel, $0.categories.contains(type.category) else { return false }
            guard let from = $0.from, let now = facts.now else { return true }
            return from.instant <= now
        }
        let isLost = facts.accountRegion == nil || facts.deviceRegions == nil
        var all = facts.deviceRegions ?? []
        if let account = facts.accountRegion { all.insert(account, at: 0) }
        let hasAccount = facts.accountRegion != nil
        let regimesKnown = all.filter { isFresh($0, facts.now) }.compactMap { regime(of: $0.code) }
        let strictest = bundle.regions.order.first { regimesKnown.contains($0) }
        var whereKnown: [PermissionRule] = []
        var elsewhere: [PermissionRule] = []
        for (index, place) in all.enumerated() {
            let regime = regime(of: place.code)
            let isKnown = regime != nil && isFresh(place, facts.now)
            var rule = Self.latest(of: place.code, in: rows)?.rule
            if rule == nil, let regime, hasAccount && index == 0 || isKnown && regime == strictest {
                rule = table[regime]
            }
            if isKnown {
                whereKnown += [rule].compactMap(\.self)
            } else {
                elsewhere += [rule ?? table.gdpr, table.gdpr]
            }
        }
        if whereKnown.isEmpty { whereKnown = [table.gdpr] }
        if isLost { elsewhere += bundle.regions.order.map { table[$0] } + rows.map(\.rule) }
        let isKnown = !isLost && elsewhere.isEmpty
        return Place(
            regime: isKnown ? strictest ?? .gdpr : .gdpr, isKnown: isKnown,
            isGDPROnlyForWantOfKnowing: !isKnown && strictest != .gdpr,
            rule: Self.strictest(whereKnown + elsewhere), ruleWhereKnown: Self.strictest(whereKnown))
    }

    /// The latest row of a subdivision; of its country, when the subdivision has none.
    private static func latest(of region: RegionCode, in rows: [PermissionRow]) -> PermissionRow? {
        var found: PermissionRow?
        // The subdivision's rows are read last, so that they win.
        for code in region == region.country ? [region] : [region.country, region] {
            var latest: Int64?
            for row in rows where row.region == code {
                let from = row.from?.instant.milliseconds ?? .min
                if latest.map({ from > $0 }) ?? true {
                    latest = from
                    found = row
                }
            }
        }
        return found
    }

    private enum Verdict: Equatable {
        case enough
        case missing(Detail)
        case lacking(Detail)
    }

    private func judge(_ consent: ConsentFact?, _ rule: PermissionRule, _ now: Instant?) -> Verdict {
        if rule == .noneNeeded { return .enough }
        guard let consent else { return .missing(.consent) }
        switch consent.state {
        case .refused: return .lacking(.refused)
        case .withdrawn: return .lacking(.withdrawn)
        case .neverAsked: return rule == .optOut ? .enough : .lacking(.neverAsked)
        case .otherChannel: return rule == .optOut ? .enough : .lacking(.otherChannel)
        case .otherAddress: return rule == .optOut ? .enough : .lacking(.otherAddress)
        case .given: break
        }
        if rule == .optOut { return .enough }
        if let end = consent.expiresAt {
            guard let now else { return .missing(.now) }
            if end <= now { return .lacking(.expired) }
        }
        if rule == .optInOrExistingCustomer { return .enough }
        guard let method = consent.method else { return .missing(.consent) }
        if method == .existingCustomer { return .lacking(.methodInsufficient) }
        if rule == .writtenConsent, method != .writtenConsent { return .lacking(.methodInsufficient) }
        return .enough
    }

    private func permissionGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ category: CategoryRule?, _ facts: Facts
    ) -> GateResult {
        guard let type, let category else { return .notApplicable }
        let adultsOnly = category.refusesMinors || type.refusesMinors
        if adultsOnly, facts.age == .minor { return .fail(.minor) }
        let place = place(request, type, category, facts)
        var rule = place.rule
        if request.channel == .sms, facts.fallback == .replacesOwnSend {
            rule = Self.strictest([rule, .optIn])
        }
        var reason: Reason
        if type.category == .marketing {
            reason = place.regime == .other ? .noMarketingOptIn : .noGDPRConsent
        } else {
            switch request.channel {
            case .push: reason = .noGDPRConsent
            case .sms: reason = .noSMSConsent
            case .email: reason = .noEmailConsent
            }
        }
        var ruleWhereKnown = place.ruleWhereKnown
        if request.channel == .sms, facts.fallback == .replacesOwnSend {
            ruleWhereKnown = Self.strictest([ruleWhereKnown, .optIn])
        }
        switch judge(facts.consent, rule, facts.now) {
        case .enough: break
        case .missing(let detail): return .fail(.factMissing, detail)
        case .lacking where !place.isKnown && judge(facts.consent, ruleWhereKnown, facts.now) == .enough,
            .lacking(.neverAsked) where reason == .noGDPRConsent && place.isGDPROnlyForWantOfKnowing:
            return .fail(reason, .regionUnknown)
        case .lacking(let detail): return .fail(reason, detail)
        }
        if type.purpose != nil {
            reason = .noPurposeConsent
            switch judge(facts.purposeConsent, .optIn, facts.now) {
            case .enough:
                if let method = facts.purposeConsent?.method,
                    [.smsKeyword, .emailReply, .expressConsent].contains(method)
                {
                    return .fail(reason, .methodInsufficient)
                }
            case .missing(let detail): return .fail(.factMissing, detail)
            case .lacking(let detail): return .fail(reason, detail)
            }
        }
        if adultsOnly, facts.age == nil { return .fail(.factMissing, .age) }
        return .pass
    }

    private func isAskedFor(_ facts: Facts) -> Bool {
        facts.ownRequest != nil && judge(facts.ownRequest, .optIn, facts.now) == .enough
    }

    // MARK: 7 and 8

    private func preferencesGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ category: CategoryRule?, _ facts: Facts,
        isCritical: Bool
    ) -> GateResult {
        guard let type, let category else { return .notApplicable }
        let onlyStepUp = category.switchOff == .stepUp || isCritical
        if !onlyStepUp, request.channel == .push, facts.pushEnabled == false { return .fail(.pushDisabled) }
        let isWithheld = category.withheldFrom.isEmpty ? false : facts.withheld
        if isWithheld == true { return .fail(.userPreference, .accountOff) }
        func isOff(_ state: PreferenceState?) -> Bool {
            state == .userOffStepUp || !onlyStepUp && state == .userOff
        }
        if isOff(facts.accountPreference) { return .fail(.userPreference, .accountOff) }
        if isOff(facts.destinationPreference) { return .fail(.userPreference, .destinationOff) }
        var choices = [facts.accountPreference, facts.destinationPreference]
        if type.isMutableAlone {
            let own = [facts.accountTypePreference, facts.destinationTypePreference]
            if own.contains(where: isOff) { return .fail(.userPreference, .typeOff) }
            choices += own
        }
        if choices.contains(nil) || isWithheld == nil { return .fail(.factMissing, .preferences) }
        if onlyStepUp { return .pass }
        if request.channel == .push, facts.pushEnabled == nil { return .fail(.factMissing, .preferences) }
        if category.isOnByDefault || choices.contains(where: { $0 != .default }) { return .pass }
        // Off by default and no switch was touched: silence counts only where a law lets it, or a consent speaks.
        let place = place(request, type, category, facts)
        if place.isKnown, place.rule == .optOut { return .pass }
        if type.category == .marketing, let consent = facts.consent, consent.state == .given {
            guard let end = consent.expiresAt else { return .pass }
            if let now = facts.now, now < end { return .pass }
        }
        return .fail(.userPreference, .accountOff)
    }

    private func systemGate(_ request: AttestedRequest, _ facts: Facts) -> GateResult {
        if request.channel != .push { return .notApplicable }
        switch facts.osPermission {
        case nil: return .fail(.factMissing, .osPermission)
        case .denied: return .fail(.blockedAtOSLevel, .denied)
        case .notDetermined: return .fail(.blockedAtOSLevel, .notDetermined)
        case .granted, .provisional: return .pass
        }
    }

    // MARK: 9 and 10

    private func hoursGate(
        _ type: NotificationType?, _ category: CategoryRule?, _ facts: Facts, isCritical: Bool
    ) -> GateResult {
        guard let type, let category else { return .notApplicable }
        let hasTimeToCome = waitsForItsTime(type, facts, isCritical: isCritical)
        let unlessQuiet: GateResult =
            hasTimeToCome
            ? .fail(.scheduled, .sendTime) : category.quietHours == .pass ? .notApplicable : .pass
        if category.quietHours == .pass || isCritical { return unlessQuiet }
        switch (facts.quietHours, category.quietHours) {
        case (nil, _): return .fail(.factMissing, .quietHours)
        case (.inside, .drop): return .fail(.quietHoursDropped)
        case (.inside, _): return .fail(.quietHoursDeferred)
        case (.zoneMissing, .drop), (.insideSomewhere, .drop): return .fail(.quietHoursZoneMissing)
        case (.insideSomewhere, _): return .fail(.quietHoursDeferred, .zoneUnknown)
        default: return unlessQuiet
        }
    }

    private func waitsForItsTime(_ type: NotificationType, _ facts: Facts, isCritical: Bool) -> Bool {
        guard type.timing != nil, !isCritical, let now = facts.now, let due = facts.due else { return false }
        return now < due
    }

    private func capsGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ category: CategoryRule?, _ facts: Facts,
        isCritical: Bool
    ) -> GateResult {
        guard let type, let category else { return .notApplicable }
        let overflow = type.ownOverflow ?? category.overflow
        let mustArrive = type.mandatory != nil || type.tier == .critical || type.category == .security
        let isSummary = isSummary(type.id)
        let ofTier = mustArrive || isSummary ? nil : bundle.limits.tiers[type.tier]?.count
        let ofType = bundle.limits.types[type.id]?.count ?? ofTier
        let ofCategory = bundle.limits.categories[type.category]?.count
        let ofEverything = mustArrive ? nil : bundle.limits.everything?.count
        if ofType == nil, ofCategory == nil, ofEverything == nil { return .notApplicable }
        if overflow == .allow { return .notApplicable }
        if isCritical { return .pass }
        var reason = Reason.frequencyCap
        if overflow == .digest, let summary = type.ownSummary ?? category.summary,
            bundle.types[summary]?.body[request.channel] != .never, bundle.types[summary] != nil
        {
            reason = .digested
        }
        if ofType != nil && facts.typeCount == nil || ofCategory != nil && facts.categoryCount == nil
            || ofEverything != nil && facts.everythingCount == nil
        {
            return .fail(.factMissing, .counts)
        }
        if let ofType, facts.typeCount! >= ofType { return .fail(reason, .typeCap) }
        if let ofCategory, facts.categoryCount! >= ofCategory { return .fail(reason, .categoryCap) }
        if let ofEverything, facts.everythingCount! >= ofEverything { return .fail(reason, .everythingCap) }
        return .pass
    }

    private func isSummary(_ id: TypeID) -> Bool {
        bundle.categories.values.contains { $0.summary == id }
            || bundle.types.values.contains { $0.ownSummary == id }
    }

    // MARK: 11 and 12

    private func form(_ type: NotificationType?, on channel: Channel, _ facts: Facts) -> BodyForm {
        guard let type else { return .never }
        let body = type.body[channel]
        if body == .sealed {
            let isKnownToLackKey =
                facts.deviceKey != nil && facts.deviceKey != .usable
                && facts.deviceKey != .sealedToRevoked
            return isKnownToLackKey && type.withoutKey == .generic ? .generic : .sealed
        }
        if body == .full, !isStatutoryEmail(type, on: channel), !isCodeText(type, on: channel) {
            if type.sensitivity == .high || facts.privacy == .hidden { return .generic }
            if type.sensitivity == .personal, facts.privacy != .full { return .generic }
        }
        return body
    }

    /// A text that says a code.
    private func isCodeText(_ type: NotificationType, on channel: Channel) -> Bool {
        channel == .sms && type.body.sms == .full
            && type.params.values.contains(ParamSchema(kind: .code, isOptional: false))
    }

    private func isStatutoryEmail(_ type: NotificationType, on channel: Channel) -> Bool {
        type.mandatory != nil && channel == .email && type.sensitivity != .high
    }

    private func keyGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ facts: Facts
    ) -> GateResult {
        guard let type, request.channel == .push, type.body.push == .sealed else { return .notApplicable }
        let reason: Reason = type.withoutKey == .generic ? .genericOnly : .noDeviceKey
        switch facts.deviceKey {
        case nil: return .fail(.factMissing, .deviceKey)
        case .usable?: return .pass
        case DeviceKeyFact.none?: return .fail(reason, .noKey)
        case .unconfirmed?: return .fail(reason, .keyUnconfirmed)
        case .revoked?: return .fail(reason, .keyRevoked)
        case .sealedToRevoked?: return .fail(.noDeviceKey, .keyRevoked)
        }
    }

    private func sizeGate(
        _ request: AttestedRequest, _ type: NotificationType?, _ facts: Facts, form: BodyForm
    ) -> GateResult {
        guard let type, form != .never else { return .notApplicable }
        let most = bundle.channels.rules[request.channel].payloadByteCountMax
        func size(_ form: BodyForm) -> Int? {
            switch form {
            case .sealed: facts.sizes?.sealed
            case .generic: facts.sizes?.generic
            case .full: facts.sizes?.full
            case .never: nil
            }
        }
        guard let leaving = size(form) else { return .fail(.factMissing, .size) }
        if leaving > most { return .fail(.payloadTooLarge) }
        if type.body[request.channel] == .full, facts.privacy == nil,
            !isStatutoryEmail(type, on: request.channel), !isCodeText(type, on: request.channel)
        {
            guard let full = size(.full), let generic = size(.generic) else {
                return .fail(.factMissing, .size)
            }
            if full > most || generic > most { return .fail(.payloadTooLarge) }
        }
        return .pass
    }
}
