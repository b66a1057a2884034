package import BundleModel
package import GateVocabulary

/// The statutes, held against one bundle: reads the circumstances of a send from its facts.
///
/// Nothing here asks a gate, a ``CompiledRule`` or a ``RegionMap``; what they work out is worked out again from the
/// pages, plainly, so that a mistake would have to be made twice to be missed.
package struct StatuteBook: Sendable {
    package let bundle: PolicyBundle

    /// A row of regions.yaml without its words: a proof reads them by the million.
    package struct Line {
        package var rule: PermissionRule
        /// `nil` for one that always counted.
        package var from: Instant?

        func isInForce(at now: Instant?) -> Bool {
            guard let from, let now else { return true }
            return from.milliseconds <= now.milliseconds
        }
    }

    private struct LineKey: Hashable {
        var channel: Channel
        var category: GateVocabulary.Category
    }
    /// The rows by what they are about and by region, of each region the latest first.
    private let lines: [LineKey: [RegionCode: [Line]]]

    /// What the law and the pages say of one region.
    private struct Land {
        var declared: Regime?
        /// The least strict regime it is lawful to give it; `other` where that is the bundle's own affair.
        var least: Regime
        var demandsOptIn: Bool
        /// Whether an existing customer may be written to there: European law lets them be, or no statute that is known asks
        /// for their own word.
        var allowsCustomers: Bool
        var isUnitedStates: Bool
    }
    private let lands: [RegionCode: Land]
    /// The rows of `code_texts` by region.
    private let codeTexts: [RegionCode: [CodeTextRow]]

    package init(_ bundle: PolicyBundle) {
        self.bundle = bundle
        var lines: [LineKey: [RegionCode: [Line]]] = [:]
        for row in bundle.regions.permissionRows {
            for category in row.categories {
                lines[LineKey(channel: row.channel, category: category), default: [:]][
                    row.region, default: []
                ]
                .append(Line(rule: row.rule, from: row.from?.instant))
            }
        }
        self.lines = lines.mapValues { regions in
            regions.mapValues { lines in
                lines.sorted { ($0.from?.milliseconds ?? .min) > ($1.from?.milliseconds ?? .min) }
            }
        }
        var lands: [RegionCode: Land] = [:]
        for code in bundle.regions.regions.keys { lands[code] = Self.land(code, in: bundle) }
        self.lands = lands
        codeTexts = bundle.regions.codeTextRows.reduce(into: [:]) { found, row in
            for region in row.regions { found[region, default: []].append(row) }
        }
    }

    private static func land(_ code: RegionCode, in bundle: PolicyBundle) -> Land {
        let least = LawOfTheLand.leastRegime(of: code)
        let isEuropean = least == .gdpr || least == .ukGDPR
        return Land(
            declared: (bundle.regions.regions[code] ?? bundle.regions.regions[code.country])?.regime,
            least: least ?? .other, demandsOptIn: LawOfTheLand.demandsOptIn(in: code),
            allowsCustomers: isEuropean
                ? LawOfTheLand.hasSoftOptIn(code) : !LawOfTheLand.demandsOwnWord(in: code),
            isUnitedStates: LawOfTheLand.isUnitedStates(code))
    }

    private func land(_ code: RegionCode) -> Land { lands[code] ?? Self.land(code, in: bundle) }

    /// The statutes a decision breaks.
    package func broken(
        by decision: Decision, of send: SendAsDeclared, given facts: Facts
    ) -> [Statute] {
        Self.broken(
            by: DecisionEffects(of: decision, expiry: facts.expiry), in: circumstances(of: send, given: facts)
        )
    }

    package static func broken(by effects: DecisionEffects, in circumstances: Conditions) -> [Statute] {
        var found = Statute.all.filter {
            circumstances.contains($0.when) && !effects.isDisjoint(with: $0.forbids)
        }
        if circumstances.isDisjoint(with: .adverse), effects.contains(.withholds) {
            found.append(.nothingInTheWay)
        }
        return found
    }

    // MARK: Conditions

    package func circumstances(of send: SendAsDeclared, given facts: Facts) -> Conditions {
        var found = send.standing
        readTime(&found, send, facts)
        readRequest(&found, send, facts)
        readPermissionAndChoices(&found, send, facts)
        readHoursAndCaps(&found, send, facts)
        readContents(&found, send, facts)
        return found
    }

    /// The circumstances of `mask` alone, without reading the facts of others.
    package func circumstances(
        of send: SendAsDeclared, given facts: Facts, within mask: Conditions
    ) -> Conditions {
        var found: Conditions = []
        if mask.contains(.expired) { readTime(&found, send, facts) }
        if mask.contains(.switchedOff) { readPermissionAndChoices(&found, send, facts) }
        if mask.contains(.quietHours) { readHoursAndCaps(&found, send, facts) }
        if mask.contains(.doesNotFit) { readContents(&found, send, facts) }
        readRequest(&found, send, facts)
        return found.intersection(mask)
    }

    private func readPermissionAndChoices(
        _ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts
    ) {
        let place = place(of: facts, for: send)
        readPermission(&found, send, facts, place)
        readChoices(&found, send, facts, place)
    }

    private func readTime(_ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts) {
        guard let now = facts.now, let expiry = facts.expiry, let due = facts.due else {
            found.insert(.timeUnknown, if: true)
            return
        }
        found.insert(.expired, if: now > expiry)
        found.insert(.dueAfterExpiry, if: due > expiry)
        found.insert(.beforeItsTime, if: waitsForItsTime(send, facts))
        if let end = facts.quietHours?.endsAt, send.isRegistered, send.quietHours == .defer,
            obeysHours(send), !(send.requestPassesHours && isAsked(facts))
        {
            found.insert(.waitsBeyondExpiry, if: end > expiry)
        }
        if send.isDeduplicated {
            found.insert(
                .toldBefore, if: facts.repetition == .alreadySent || facts.repetition == .acknowledged)
            found.insert(.repetitionUnknown, if: facts.repetition == nil)
        }
    }

    /// Whether its own time of day is still to come; the hours known are those of that time.
    private func waitsForItsTime(_ send: SendAsDeclared, _ facts: Facts) -> Bool {
        guard send.isTimed, !send.isCritical, let now = facts.now, let due = facts.due else { return false }
        return due > now
    }

    /// Whether the recipient asked in so many words to be reached at any hour, and still does.
    private func isAsked(_ facts: Facts) -> Bool {
        isLive(facts.ownRequest, facts.now) && isOwnWord(facts.ownRequest?.method)
    }

    private func obeysHours(_ send: SendAsDeclared) -> Bool {
        send.category != .security && !send.isCritical && !send.passesHours
    }

    private func readRequest(_ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts) {
        found.insert(.paramsUnfit, if: facts.params != .valid)
        found.insert(.fallbackUnproved, if: facts.fallback == nil || facts.fallback == .mismatch)
        found.insert(
            .fallbackForbidden,
            if: facts.fallback == .replacesOwnSend && send.channel == .sms && send.isFallbackForbidden)
        found.insert(.recipientUnknown, if: facts.recipient != .registered)
        let isOfOlderHolder = facts.destination == .contested
        found.insert(
            .destinationUnusable,
            if: facts.destination != .active && !(isOfOlderHolder && send.mayReachOlderHolders))
        if send.channel == .push {
            found.insert(
                .blockedByOS, if: facts.osPermission != .granted && facts.osPermission != .provisional)
        }
        found.insert(.deviceWithoutFlag, if: facts.criticalAlerts != true)
    }

    // MARK: Permission

    private func readPermission(
        _ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts, _ place: Place
    ) {
        found.insert(.codeTextForbidden, if: place.isCodeTextForbidden)
        if send.refusesMinors {
            found.insert(.minor, if: facts.age == .minor)
            found.insert(.ageUnknown, if: facts.age == nil)
        }
        let isDeclared = satisfies(facts.consent, place.declaredRule, facts.now)
        found.insert(.declaredPermissionMissing, if: !isDeclared)
        let saidYes = isLive(facts.consent, facts.now) && isOwnWord(facts.consent?.method)
        if send.isMarketing {
            let isLawful = mayMarket(send, facts, place, saidYes: saidYes)
            found.insert(.marketingWithoutOptIn, if: !isLawful)
            found.insert(
                .europeanOptInMissing, if: place.regime != .other && (!isLawful || !isDeclared))
        }
        if send.channel == .sms {
            if place.isUnitedStates {
                let isEnough = send.isMarketing ? facts.consent?.method == .writtenConsent : true
                found.insert(.textWithoutConsent, if: !(saidYes && isEnough))
            }
            found.insert(
                .fallbackWithoutConsent, if: facts.fallback == .replacesOwnSend && !saidYes)
        }
        if send.needsPurpose {
            let isGiven = isLive(facts.purposeConsent, facts.now) && saysToWhat(facts.purposeConsent?.method)
            found.insert(.purposeMissing, if: !isGiven)
        }
    }

    /// The least any law asks of marketing, wherever it is the same for every company.
    private func mayMarket(
        _ send: SendAsDeclared, _ facts: Facts, _ place: Place, saidYes: Bool
    ) -> Bool {
        if saidYes { return true }
        guard let consent = facts.consent else { return false }
        if send.channel == .email, place.regime == .gdpr || place.regime == .ukGDPR {
            // ePrivacy Directive Art. 13(2), UK PECR reg. 22(3): own similar products, address from a sale.
            return place.hasSoftOptIn && isLive(consent, facts.now)
        }
        guard place.regime == .other else { return false }
        if send.channel == .email, place.declaredRule == .optInOrExistingCustomer, !place.demandsOptIn {
            // A dated row that asks for more than its country's law of silence does.
            return isLive(consent, facts.now)
        }
        guard place.hasOptOutLaw else { return false }
        if send.channel == .push, facts.platform != .android {
            // App Review 4.5.4 holds in every country.
            return false
        }
        return consent.state != .refused && consent.state != .withdrawn
    }

    private func isLive(_ consent: ConsentFact?, _ now: Instant?) -> Bool {
        guard let consent, consent.state == .given else { return false }
        guard let end = consent.expiresAt else { return true }
        guard let now else { return false }
        return now < end
    }

    /// Whether the person said yes, as opposed to having bought something.
    private func isOwnWord(_ method: ConsentMethod?) -> Bool {
        method != nil && method != .existingCustomer
    }

    /// Whether the yes was to this and nothing else: not a word in a reply, and not a number handed over.
    private func saysToWhat(_ method: ConsentMethod?) -> Bool {
        isOwnWord(method) && method?.isReply == false && method != .expressConsent
    }

    private func satisfies(_ consent: ConsentFact?, _ rule: PermissionRule, _ now: Instant?) -> Bool {
        switch rule {
        case .noneNeeded: true
        case .optOut: consent.map { $0.state != .refused && $0.state != .withdrawn } ?? false
        case .optInOrExistingCustomer: isLive(consent, now)
        case .optIn, .expressConsent: isLive(consent, now) && isOwnWord(consent?.method)
        case .writtenConsent: isLive(consent, now) && consent?.method == .writtenConsent
        }
    }

    // MARK: Places

    /// Where the recipient is, as the law and the bundle's pages see it.
    package struct Place: Hashable {
        /// The strictest law of all places: what the statutes know and what the bundle says, whichever is stricter.
        package var regime: Regime
        var isKnown: Bool
        /// What categories.yaml and the rows of regions.yaml ask for.
        var declaredRule: PermissionRule
        /// Everywhere they are, a dated row cites a law under which silence is no refusal, and no statute says
        /// otherwise.
        var hasOptOutLaw: Bool
        /// Wherever European law holds, the national law has the exception for existing customers.
        var hasSoftOptIn: Bool
        /// In one of the places a statute demands an opt-in for electronic marketing.
        var demandsOptIn: Bool
        /// The account's region or a device's.
        var isUnitedStates: Bool
        /// A text that brings a code, to an account of a region without a row for it.
        package var isCodeTextForbidden: Bool
    }

    private func isCodeTextForbidden(_ facts: Facts, for send: SendAsDeclared) -> Bool {
        guard send.isCodeText else { return false }
        guard let region = facts.accountRegion?.code, let now = facts.now else { return true }
        let rows = codeTexts[region] ?? codeTexts[region.country] ?? []
        return !rows.contains { row in
            row.from.instant <= now && row.until.map { now < $0.instant } != false
        }
    }

    package func place(of facts: Facts, for send: SendAsDeclared) -> Place {
        let table = bundle.categories[send.category]!.permission[send.channel]
        let lines = lines[LineKey(channel: send.channel, category: send.category)] ?? [:]
        let isLost = facts.accountRegion == nil || facts.deviceRegions == nil
        var found = Place(
            regime: isLost ? .gdpr : .other, isKnown: !isLost, declaredRule: .noneNeeded,
            hasOptOutLaw: !isLost,
            hasSoftOptIn: true, demandsOptIn: false, isUnitedStates: false,
            isCodeTextForbidden: isCodeTextForbidden(facts, for: send))
        // The account first, whose law is asked whatever the others are.
        var strictest = Regime.other
        func each(_ body: (RegionObservation, _ isAccount: Bool) -> Void) {
            if let account = facts.accountRegion { body(account, true) }
            for device in facts.deviceRegions ?? [] { body(device, false) }
        }
        each { observation, _ in
            let land = land(observation.code)
            guard let declared = land.declared, isFresh(observation, facts.now) else {
                found.isKnown = false
                return
            }
            strictest = LawOfTheLand.stricter(strictest, declared)
            found.regime = LawOfTheLand.stricter(found.regime, LawOfTheLand.stricter(declared, land.least))
            found.demandsOptIn = found.demandsOptIn || land.demandsOptIn
            found.hasSoftOptIn = found.hasSoftOptIn && land.allowsCustomers
            found.isUnitedStates = found.isUnitedStates || land.isUnitedStates
        }
        each { observation, isAccount in
            let land = land(observation.code)
            let isKnown = land.declared != nil && isFresh(observation, facts.now)
            let line = Self.line(for: observation.code, in: lines, at: facts.now)
            if line?.rule != .optOut || line?.from == nil || land.demandsOptIn { found.hasOptOutLaw = false }
            // The last known place counts, and what `gdpr` asks besides.
            if let line {
                found.declaredRule = max(found.declaredRule, line.rule)
            } else if let declared = land.declared, isAccount || isKnown && declared == strictest {
                found.declaredRule = max(found.declaredRule, table[declared])
            }
            if !isKnown { found.declaredRule = max(found.declaredRule, table.gdpr) }
        }
        if !found.isKnown {
            (found.regime, found.hasOptOutLaw, found.hasSoftOptIn) = (.gdpr, false, false)
        }
        if isLost {
            // Whatever is asked for anywhere is asked for.
            for regime in Regime.allCases { found.declaredRule = max(found.declaredRule, table[regime]) }
            for line in lines.values.joined() where line.isInForce(at: facts.now) {
                found.declaredRule = max(found.declaredRule, line.rule)
            }
        }
        return found
    }

    /// The row that counts: the region's own before its country's, the latest that is in force.
    private static func line(
        for region: RegionCode, in lines: [RegionCode: [Line]], at now: Instant?
    ) -> Line? {
        for code in [region, region.country] {
            if let found = lines[code]?.first(where: { $0.isInForce(at: now) }) { return found }
        }
        return nil
    }

    package func line(for region: RegionCode, of send: SendAsDeclared, at now: Instant?) -> Line? {
        Self.line(
            for: region, in: lines[LineKey(channel: send.channel, category: send.category)] ?? [:], at: now)
    }

    private func isFresh(_ observation: RegionObservation, _ now: Instant?) -> Bool {
        guard let days = bundle.regions.freshnessDays[observation.source] ?? nil else { return true }
        guard let now else { return false }
        return now.milliseconds - observation.observedAt.milliseconds <= Int64(days) * 86_400_000
    }

    // MARK: Choices

    private func readChoices(
        _ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts, _ place: Place
    ) {
        var choices = [facts.accountPreference, facts.destinationPreference]
        if send.isMutableAlone {
            choices += [facts.accountTypePreference, facts.destinationTypePreference]
        }
        let isStepUpOff = choices.contains(.userOffStepUp)
        if send.isRegistered, send.category == .security {
            found.insert(.securityNotSwitchedOff, if: !isStepUpOff)
        }
        // By law and not by the page: a person who quits gambling gets no marketing.
        found.insert(.withheld, if: send.isRegistered && send.isMarketing && facts.withheld != false)
        guard send.isRegistered, !send.passesPreferences else { return }
        found.insert(.switchedOff, if: isStepUpOff)
        found.insert(.preferencesUnknown, if: choices.contains(nil))
        if send.isGuarded { return }
        found.insert(.switchedOff, if: choices.contains(.userOff))
        if send.channel == .push {
            found.insert(.switchedOff, if: facts.pushEnabled == false)
            found.insert(.preferencesUnknown, if: facts.pushEnabled == nil)
        }
        if !send.isOnByDefault, choices.allSatisfy({ $0 == .default }) {
            let isConsentTheSwitch = send.isMarketing && isLive(facts.consent, facts.now)
            let isSilenceNoRefusal = place.isKnown && place.declaredRule == .optOut
            found.insert(.neverWanted, if: !isConsentTheSwitch && !isSilenceNoRefusal)
        }
    }

    // MARK: Hours and caps

    private func readHoursAndCaps(
        _ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts
    ) {
        guard send.isRegistered else { return }
        let isAsked = isAsked(facts)
        if obeysHours(send) {
            let passes = send.requestPassesHours && isAsked
            found.insert(.askedForAnyHour, if: passes && !waitsForItsTime(send, facts))
            switch facts.quietHours {
            case nil: found.insert(.hoursUnknown, if: true)
            case .off, .outside: break
            case .zoneMissing:
                found.insert(.zoneMissing, if: !passes && (send.isPromotion || send.quietHours == .drop))
            case .inside: found.insert(.quietHours, if: !passes)
            case .insideSomewhere:
                let isDropped = send.isPromotion || send.quietHours == .drop
                found.insert(isDropped ? .zoneMissing : .quietHours, if: !passes)
            }
        }
        found.insert(.askedHoweverOften, if: send.requestPassesCaps && isAsked)
        guard send.overflow != .allow, !send.isCritical, !send.passesCaps else { return }
        for (cap, count) in [
            (send.typeCap, facts.typeCount), (send.categoryCap, facts.categoryCount),
            (send.everythingCap, facts.everythingCount),
        ] {
            guard let cap else { continue }
            found.insert(.countsUnknown, if: count == nil)
            if let count {
                found.insert(.overCap, if: count >= cap && !(send.requestPassesCaps && isAsked))
            }
        }
    }

    // MARK: What leaves

    private func readContents(_ found: inout Conditions, _ send: SendAsDeclared, _ facts: Facts) {
        found.insert(
            .clearTextUnwanted,
            if: !send.isStatutoryEmail && !send.isCodeText
                && (facts.privacy == .hidden || send.sensitivity != .open && facts.privacy != .full))
        var leaving: [Int?] = []
        switch send.body {
        case .never: return
        case .generic: leaving = [facts.sizes?.generic]
        case .full where send.isStatutoryEmail || send.isCodeText: leaving = [facts.sizes?.full]
        case .full:
            let isInFull = send.sensitivity == .open ? facts.privacy != .hidden : facts.privacy == .full
            let isShown = isInFull && send.sensitivity != .high
            leaving = [isShown ? facts.sizes?.full : facts.sizes?.generic]
            // An unknown choice must not make a text fit that did not.
            if facts.privacy == nil { leaving = [facts.sizes?.full, facts.sizes?.generic] }
        case .sealed:
            let isUsable = facts.deviceKey == .usable
            found.insert(.keyUnusable, if: !isUsable && send.channel == .push)
            // Not knowing of a key is not knowing what to do.
            // What is sealed already has no constant text beside it.
            let mayStandIn =
                send.standsInWithoutKey && facts.deviceKey != nil && facts.deviceKey != .sealedToRevoked
            found.insert(.worthlessWithoutKey, if: !isUsable && send.channel == .push && !mayStandIn)
            let standsIn = !isUsable && mayStandIn
            leaving = [standsIn ? facts.sizes?.generic : facts.sizes?.sealed]
        }
        for size in leaving {
            found.insert(.doesNotFit, if: size.map { $0 > send.payloadByteCountMax } ?? true)
        }
    }
}
