import SealedFormat
import BundleModel
package import CompliancePolicy
package import GateVocabulary
import KeyLifecycle
package import GateRecords
import SendPlanning

/// Derives the facts of a decision from the stored records.
///
/// Reads through one transaction, so that all facts of a send are of one moment. Facts hold what was recorded, never
/// what policy makes of it.
package struct FactsLoading {
    package let policy: CompiledPolicy
    package let now: Instant

    package init(policy: CompiledPolicy, now: Instant) {
        self.policy = policy
        self.now = now
    }

    /// The facts that are the same for every destination of a send.
    package struct Common {
        /// The request's type and channel, and what the policy says about the request.
        package var type: TypeID
        package var channel: Channel
        package var rule: CompiledRule
        package var needs: FactNeeds?
        package var expiry: Instant
        package var due: Instant
        package var params: ParamsFact
        package var fallback: FallbackFact
        package var repetition: RepetitionFact
        /// The send itself, when it was decided before: what it did itself counts neither against it nor for it.
        package var decidedBefore: SendID?
        /// Whether it is in shadow, where caps count what they would have let through.
        package var isShadow = false
    }

    /// Facts for one destination; sizes are added when the payload is composed.
    ///
    /// - Parameters:
    ///   - destination: `nil` where the recipient is unknown, or has none on the channel.
    ///   - missing: The fact of the destination then.
    func facts(
        _ common: Common, person: RecipientSnapshot?, destination: Destination?,
        orElse missing: DestinationFact = .unknown, in store: some RecordReading
    ) throws -> Facts {
        var facts = Facts()
        try add(common, of: person, in: store, to: &facts)
        guard let person, let destination else {
            facts.destination = missing
            return facts
        }
        let channel = common.channel
        let needs = common.needs
        facts.destination = destination.fact
        addNumber(of: destination, to: &facts)
        if let needs {
            addConsentAndChoices(
                for: needs.purpose, and: needs.specialPurpose,
                mutedAlone: needs.typePreferences ? common.type : nil, on: channel, of: person,
                at: destination, to: &facts)
            facts.withheld = person.consentsInForce.isGiven(needs.withheldFrom, at: now)
            facts.ownRequest = needs.ownRequestPurpose.map {
                consent(to: $0, on: channel, of: person, at: destination)
            }
        }
        // Gate 0 reads the quiet hours, and its reason would show them to a caller that gates 1 to 3 refuse.
        if common.rule.admits(params: common.params) {
            facts.quietHours = quietHours(
                of: person, at: destination, under: needs, when: max(now, common.due))
        }
        if case .device(let devices, let place) = destination {
            facts.platform = devices[place].platform
            facts.osPermission = devices[place].osPermission
            facts.criticalAlerts = devices[place].criticalAlerts
            if needs?.deviceKey == true {
                facts.deviceKey = person.state.sealingKey(of: devices[place].tag).fact
            }
        }
        return facts
    }

    /// The recipient's own quiet hours at a destination, and the hours a law keeps for the channel there.
    ///
    /// - Parameter moment: When the send would go out.
    private func quietHours(
        of person: RecipientSnapshot, at destination: Destination, under needs: FactNeeds?,
        when moment: Instant
    ) -> QuietHoursFact {
        let own = LocalTime.quietHours(
            person.record.quietHours, at: moment,
            zones: destination.timeZones(account: person.record.timeZone),
            possible: person.possibleZones(at: destination, under: policy))
        guard let hours = needs?.sendingHours, let address = destination.address else { return own }
        let places = [person.record.region?.code] + person.devices.map(\.region?.code)
        let isThere =
            places.contains { place in place.map { hours.regions.contains($0.country) } ?? true }
            || hours.callingCodes.contains { address.numberPrefix?.hasPrefix($0) == true }
        return isThere ? LocalTime.joining(hours, to: own, at: moment) : own
    }

    /// The facts that gates 6 to 8 look at for a whole category, or for a type that may be muted alone.
    ///
    /// - Parameter destination: `nil` when the person has none on the channel.
    func standingFacts(
        of category: GateVocabulary.Category, type: TypeID?, on channel: Channel, person: RecipientSnapshot,
        at destination: Destination?
    ) -> Facts {
        var facts = Facts()
        facts.now = now
        facts.fallback = .notFallback
        add(person, to: &facts)
        addNumber(of: destination, to: &facts)
        facts.withheld = person.consentsInForce.isGiven(policy.category(category).withheldFrom, at: now)
        addConsentAndChoices(
            for: Purpose(category.rawValue), and: type.flatMap { policy.type($0)?.purpose }, mutedAlone: type,
            on: channel, of: person, at: destination, to: &facts)
        facts.platform = destination?.device?.platform
        // Without a device there is none that blocks anything.
        facts.osPermission = destination.map { $0.device?.osPermission } ?? .granted
        return facts
    }

    /// What a person said about a category at one place: consent, the consent a type asks for besides, and choices.
    ///
    /// - Parameters:
    ///   - purpose: The category's name.
    ///   - type: One that may be muted alone, and so has choices of its own.
    ///   - destination: `nil` when the person has none on the channel.
    private func addConsentAndChoices(
        for purpose: Purpose, and special: Purpose?, mutedAlone type: TypeID?, on channel: Channel,
        of person: RecipientSnapshot, at destination: Destination?, to facts: inout Facts
    ) {
        facts.consent = consent(to: purpose, on: channel, of: person, at: destination)
        facts.purposeConsent = special.map { consent(to: $0, on: channel, of: person, at: destination) }
        func choice(_ scope: String?, _ place: Tag?) -> PreferenceState {
            scope.map { person.preference($0, channel, at: place) } ?? .default
        }
        facts.accountPreference = choice(purpose.text, nil)
        facts.destinationPreference = destination.map { choice(purpose.text, $0.tag) } ?? .default
        facts.accountTypePreference = choice(type?.text, nil)
        facts.destinationTypePreference = destination.map { choice(type?.text, $0.tag) } ?? .default
    }

    private func consent(
        to purpose: Purpose, on channel: Channel, of person: RecipientSnapshot, at destination: Destination?
    ) -> ConsentFact {
        let address: Tag? = if case .address? = destination { destination?.tag } else { nil }
        return person.consentsInForce.fact(purpose: purpose, channel: channel, address: address)
    }

    /// Adds the facts about a person that depend neither on the send nor on the destination.
    private func add(_ person: RecipientSnapshot, to facts: inout Facts) {
        facts.age = person.record.age
        facts.accountRegion =
            person.record.region
            ?? RegionObservation(code: .unknown, source: .userDeclared, observedAt: now)
        // A device that has reported nothing for as long as its region counts is out of use.
        let inUseSince = policy.deviceFreshSeconds.map { now.advanced(bySeconds: -$0) } ?? .longAgo
        let devices = person.devices
        var regions: [RegionObservation] = []
        // By position: an element of a loop is a copy of the device.
        for index in devices.indices where devices[index].isActive && devices[index].seenAt >= inUseSince {
            let region =
                devices[index].region
                ?? RegionObservation(code: .unknown, source: .device, observedAt: now)
            // A list of one by its literal: most people have one device, and a list that grows costs twice as much.
            if regions.isEmpty { regions = [region] } else { regions.append(region) }
        }
        facts.deviceRegions = regions
        facts.privacy = person.record.privacy
        facts.pushEnabled = person.record.pushEnabled
    }

    /// Adds the region that a number belongs to, for a text: the text arrives there wherever the number's owner is.
    private func addNumber(of destination: Destination?, to facts: inout Facts) {
        guard let address = destination?.address, let region = policy.region(of: address) else { return }
        facts.deviceRegions?.append(RegionObservation(code: region, source: .sim, observedAt: now))
    }

    /// Adds what is the same for every destination.
    private func add(
        _ common: Common, of person: RecipientSnapshot?, in store: some RecordReading, to facts: inout Facts
    ) throws {
        facts.now = now
        facts.expiry = common.expiry
        facts.due = common.due
        facts.params = common.params
        facts.fallback = common.fallback
        facts.repetition = common.repetition
        facts.recipient = person == nil ? .unknown : .registered
        guard let person else { return }
        add(person, to: &facts)
        if let needs = common.needs {
            let counts = try store.forwardCounts(
                of: person.subject.id, type: common.type,
                typeSince: needs.typeWindowSeconds.map { now.advanced(bySeconds: -$0) },
                category: needs.category,
                categorySince: needs.categoryWindowSeconds.map { now.advanced(bySeconds: -$0) },
                everythingSince: needs.everythingWindowSeconds.map { now.advanced(bySeconds: -$0) },
                besides: common.decidedBefore, inShadow: common.isShadow
            ) { policy.isUncounted($0) }
            facts.typeCount = counts.type
            facts.categoryCount = counts.category
            if needs.everythingWindowSeconds != nil { facts.everythingCount = counts.everything }
        }
    }
}

extension CompliancePolicy.CompiledPolicy {
    /// Where a number belongs; `nil` for a mailbox, and where the bundle names no code that it begins with.
    func region(of address: AddressRecord) -> RegionCode? {
        address.numberPrefix.flatMap { region(ofNumber: $0) }
    }
}

extension RecipientState {
    /// The key that a body for a device would be sealed to, and the fact that says whether there is one.
    package func sealingKey(of device: Tag) -> (record: DeviceKeyRecord?, fact: DeviceKeyFact) {
        let newestFirst = keys.filter { $0.device == device }
            .sorted { ($0.createdAt, $0.key) > ($1.createdAt, $1.key) }
        if let usable = newestFirst.first(where: { KeyState(rawValue: $0.state) == .active }) {
            return (usable, .usable)
        }
        guard let newest = newestFirst.first else { return (nil, .none) }
        return (nil, KeyState(rawValue: newest.state) == .preActivation ? .unconfirmed : .revoked)
    }
}
