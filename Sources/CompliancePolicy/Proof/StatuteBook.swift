package import GateVocabulary

/// The statutes, held against one bundle: reads the circumstances of a send from its facts.
///
/// Nothing here asks a gate, a ``Behaviour`` or a ``RegionMap``; what they work out is worked out again from the
/// pages, plainly, so that a mistake would have to be made twice to be missed.
package struct StatuteBook: Sendable {
    let bundle: PolicyBundle

    private struct RowKey: Hashable {
        var channel: Channel
        var category: GateVocabulary.Category
    }
    /// The rows of regions.yaml by what they are about.
    private let rows: [RowKey: [PermissionRow]]

    package init(_ bundle: PolicyBundle) {
        self.bundle = bundle
        var rows: [RowKey: [PermissionRow]] = [:]
        for row in bundle.regions.permissionRows {
            for category in row.categories {
                rows[RowKey(channel: row.channel, category: category), default: []].append(row)
            }
        }
        self.rows = rows
    }

    /// The statutes a decision breaks.
    package func broken(
        by decision: Decision, of send: SendAsDeclared, given facts: Facts
    ) -> [Statute] {
        Self.broken(
            by: Conduct(of: decision, expiry: facts.expiry), in: circumstances(of: send, given: facts))
    }

    static func broken(by conduct: Conduct, in circumstances: Circumstances) -> [Statute] {
        var found = Statute.all.filter {
            circumstances.contains($0.when) && !conduct.isDisjoint(with: $0.forbids)
        }
        if circumstances.isDisjoint(with: .adverse), conduct.contains(.withholds) {
            found.append(.nothingInTheWay)
        }
        return found
    }

    // MARK: Circumstances

    package func circumstances(of send: SendAsDeclared, given facts: Facts) -> Circumstances {
        var found = send.standing
        readTime(&found, send, facts)
        readRequest(&found, send, facts)
        readPermissionAndChoices(&found, send, facts)
        readHoursAndCaps(&found, send, facts)
        readContents(&found, send, facts)
        return found
    }

    /// Those of `mask` alone, without reading what it does not need.
    func circumstances(
        of send: SendAsDeclared, given facts: Facts, within mask: Circumstances
    ) -> Circumstances {
        var found: Circumstances = []
        if mask.contains(.expired) { readTime(&found, send, facts) }
        if mask.contains(.switchedOff) { readPermissionAndChoices(&found, send, facts) }
        if mask.contains(.quietHours) { readHoursAndCaps(&found, send, facts) }
        if mask.contains(.doesNotFit) { readContents(&found, send, facts) }
        readRequest(&found, send, facts)
        return found.intersection(mask)
    }

    private func readPermissionAndChoices(
        _ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts
    ) {
        let place = place(of: facts, for: send)
        readPermission(&found, send, facts, place)
        readChoices(&found, send, facts, place)
    }

    private func readTime(_ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts) {
        guard let now = facts.now, let expiry = facts.expiry, let due = facts.due else {
            found.insert(.timeUnknown, if: true)
            return
        }
        found.insert(.expired, if: now > expiry)
        found.insert(.dueAfterExpiry, if: due > expiry)
        found.insert(.beforeItsTime, if: waitsForItsTime(send, facts))
        if case .inside(let end) = facts.quietHours, send.isRegistered, send.quietHours == .defer,
            obeysHours(send), !(send.requestPassesHours && isAsked(facts))
        {
            found.insert(.waitsBeyondExpiry, if: end > expiry)
        }
        if send.isToldOnce {
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

    private func readRequest(_ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts) {
        found.insert(.paramsUnfit, if: facts.params != .valid)
        found.insert(.fallbackUnproved, if: facts.fallback == nil || facts.fallback == .mismatch)
        found.insert(
            .fallbackForbidden,
            if: facts.fallback == .replacesOwnSend && send.channel == .sms && send.isFallbackForbidden)
        found.insert(.recipientUnknown, if: facts.recipient != .registered)
        found.insert(.destinationUnusable, if: facts.destination != .active)
        if send.channel == .push {
            found.insert(
                .blockedByOS, if: facts.osPermission != .granted && facts.osPermission != .provisional)
        }
        found.insert(.deviceWithoutFlag, if: facts.criticalAlerts != true)
    }

    // MARK: Permission

    private func readPermission(
        _ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts, _ place: Place
    ) {
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

    /// The least any law asks of marketing, wherever it is the same for everybody.
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

    /// Whether the yes was to this and nothing else: not a word texted back, and not a number handed over.
    private func saysToWhat(_ method: ConsentMethod?) -> Bool {
        isOwnWord(method) && method != .smsKeyword && method != .expressConsent
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
    struct Place: Hashable {
        /// The strictest law of all places: what the book knows and what the bundle says, whichever is stricter.
        var regime: Regime
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
    }

    func place(of facts: Facts, for send: SendAsDeclared) -> Place {
        let table = bundle.categories[send.category]!.permission[send.channel]
        let rows = rowsInForce(for: send, at: facts.now)
        let account = facts.accountRegion.map { [$0] } ?? []
        // The account first, whose law is asked whatever the others are.
        let places = (account + (facts.deviceRegions ?? [])).map { observation in
            (
                code: observation.code, declared: declaredRegime(of: observation.code),
                isKnown: isFresh(observation, facts.now) && declaredRegime(of: observation.code) != nil,
                row: row(for: observation.code, among: rows)
            )
        }
        let known = places.filter(\.isKnown)
        let isLost = facts.accountRegion == nil || facts.deviceRegions == nil
        let isKnown = !isLost && known.count == places.count
        let strictest = known.compactMap(\.declared).reduce(Regime.other, LawOfTheLand.stricter)
        var asked: [PermissionRule] = []
        for (position, place) in places.enumerated() {
            // Whoever was somewhere last is asked for what is asked there, and for what `gdpr` asks besides.
            if let row = place.row {
                asked.append(row.rule)
            } else if let declared = place.declared {
                let isAccount = position == 0 && !account.isEmpty
                if isAccount || place.isKnown && declared == strictest { asked.append(table[declared]) }
            }
            if !place.isKnown { asked.append(table.gdpr) }
        }
        if isLost { asked += Regime.allCases.map { table[$0] } + rows.map(\.rule) }
        let lawful = known.reduce(isKnown ? Regime.other : .gdpr) { found, place in
            let here = LawOfTheLand.stricter(
                place.declared ?? .gdpr, LawOfTheLand.leastRegime(of: place.code) ?? .other)
            return LawOfTheLand.stricter(found, here)
        }
        return Place(
            regime: lawful, isKnown: isKnown, declaredRule: asked.max { $0 < $1 } ?? .writtenConsent,
            hasOptOutLaw: isKnown
                && known.allSatisfy { place in
                    place.row?.rule == .optOut && place.row?.from != nil
                        && !LawOfTheLand.demandsOptIn(in: place.code)
                },
            hasSoftOptIn: isKnown
                && known.allSatisfy { place in
                    guard let least = LawOfTheLand.leastRegime(of: place.code), least != .gdprLike else {
                        return true
                    }
                    return LawOfTheLand.hasSoftOptIn(place.code)
                },
            demandsOptIn: known.contains { LawOfTheLand.demandsOptIn(in: $0.code) },
            isUnitedStates: known.contains { LawOfTheLand.isUnitedStates($0.code) })
    }

    /// The rows about a send that are in force; all of them when nobody knows the time.
    func rowsInForce(for send: SendAsDeclared, at now: Instant?) -> [PermissionRow] {
        (rows[RowKey(channel: send.channel, category: send.category)] ?? []).filter { row in
            guard let from = row.from, let now else { return true }
            return from.instant <= now
        }
    }

    /// The row that counts: the region's own before its country's, the latest that is in force.
    func row(for region: RegionCode, among rows: [PermissionRow]) -> PermissionRow? {
        for code in [region, region.country] {
            let own = rows.filter { $0.region == code }
            let latest = own.max { ($0.from?.instant.seconds ?? .min) < ($1.from?.instant.seconds ?? .min) }
            if let latest { return latest }
        }
        return nil
    }

    private func declaredRegime(of code: RegionCode) -> Regime? {
        (bundle.regions.regions[code] ?? bundle.regions.regions[code.country])?.regime
    }

    private func isFresh(_ observation: RegionObservation, _ now: Instant?) -> Bool {
        guard let days = bundle.regions.freshnessDays[observation.source] ?? nil else { return true }
        guard let now else { return false }
        return now.milliseconds - observation.observedAt.milliseconds <= Int64(days) * 86_400_000
    }

    // MARK: Choices

    private func readChoices(
        _ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts, _ place: Place
    ) {
        var choices = [facts.accountPreference, facts.destinationPreference]
        if send.isMutableAlone {
            choices += [facts.accountTypePreference, facts.destinationTypePreference]
        }
        let isStepUpOff = choices.contains(.userOffStepUp)
        if send.isRegistered, send.category == .security {
            found.insert(.securityNotSwitchedOff, if: !isStepUpOff)
        }
        // By law and not by the page: whoever quits gambling is sold nothing.
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
        _ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts
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
            }
        }
        found.insert(.askedHoweverOften, if: send.requestPassesCaps && isAsked)
        guard send.overflow != .allow, !send.isCritical, !send.passesCaps else { return }
        for (cap, count) in [
            (send.typeCap, facts.typeCount), (send.categoryCap, facts.categoryCount),
        ] {
            guard let cap else { continue }
            found.insert(.countsUnknown, if: count == nil)
            if let count {
                found.insert(.overCap, if: count >= cap && !(send.requestPassesCaps && isAsked))
            }
        }
    }

    // MARK: What leaves

    private func readContents(_ found: inout Circumstances, _ send: SendAsDeclared, _ facts: Facts) {
        found.insert(
            .clearTextUnwanted,
            if: !send.isLetterOfDuty
                && (facts.privacy == .hidden || send.sensitivity != .open && facts.privacy != .full))
        var leaving: [Int?] = []
        switch send.body {
        case .never: return
        case .generic: leaving = [facts.sizes?.generic]
        case .full where send.isLetterOfDuty: leaving = [facts.sizes?.full]
        case .full:
            let isInFull = send.sensitivity == .open ? facts.privacy != .hidden : facts.privacy == .full
            let isShown = isInFull && send.sensitivity != .high
            leaving = [isShown ? facts.sizes?.full : facts.sizes?.generic]
            // Whoever forgets the choice must not make a text fit that did not.
            if facts.privacy == nil { leaving = [facts.sizes?.full, facts.sizes?.generic] }
        case .sealed:
            let isUsable = facts.deviceKey == .usable
            found.insert(.keyUnusable, if: !isUsable && send.channel == .push)
            // Not knowing of a key is not knowing what to do.
            found.insert(
                .worthlessWithoutKey,
                if: !isUsable && send.channel == .push
                    && (!send.standsInWithoutKey || facts.deviceKey == nil))
            let standsIn = !isUsable && facts.deviceKey != nil && send.standsInWithoutKey
            leaving = [standsIn ? facts.sizes?.generic : facts.sizes?.sealed]
        }
        for size in leaving {
            found.insert(.doesNotFit, if: size.map { $0 > send.payloadByteCountMax } ?? true)
        }
    }
}
