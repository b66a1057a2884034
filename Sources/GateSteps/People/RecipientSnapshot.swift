package import BundleModel
package import CompliancePolicy
package import GateVocabulary
package import GateRecords
package import SendPlanning

/// A registered person as they are in the transaction that decides.
///
/// An object, because it is large and handed on to everything that looks at the person.
package final class RecipientSnapshot: Sendable {
    package let subject: Subject
    package let record: RecipientRecord
    package let state: RecipientState

    init(subject: Subject, record: RecipientRecord, state: RecipientState) {
        self.subject = subject
        self.record = record
        self.state = state
    }

    package var devices: [DeviceRecord] { state.devices }
    package var addresses: [AddressRecord] { state.addresses }
    /// The person's consents and refusals.
    package var consentsInForce: ConsentsInForce { state.consentsInForce }

    /// `nil` for a person who was never registered, or was erased: the two cannot be told apart.
    package static func load(_ user: UserID, from store: any RecordReading) throws -> RecipientSnapshot? {
        guard let subject = try store.subject(of: user) else { return nil }
        return try load(subject, from: store)
    }

    package static func load(
        _ subject: Subject, from store: any RecordReading
    ) throws -> RecipientSnapshot? {
        guard let state = try store.state(of: subject.id), let record = state.record else { return nil }
        return RecipientSnapshot(subject: subject, record: record, state: state)
    }

    /// The clock by which the person reads a moment: that of a device, or the account's, or that of the newest device
    /// in use.
    ///
    /// - Parameter destination: `nil`, and an address, for the account's.
    package func clock(at destination: Tag?) -> ZoneClock {
        LocalTime.clock(zones: timeZones(at: destination))
    }

    /// The zones of ``clock(at:)``, the first known of which counts.
    func timeZones(at destination: Tag?) -> [String?] {
        let device = devices.first { $0.tag == destination }
        let newest = devices.filter(\.isActive).max { $0.seenAt < $1.seenAt }
        return [device?.timeZone, record.timeZone, newest?.timeZone]
    }

    package func preference(_ scope: String, _ channel: Channel, at destination: Tag?) -> PreferenceState {
        state.preference(scope, channel, at: destination)
    }

    /// When a type with a time of its own goes out to one destination.
    ///
    /// A device has its own zone, or else the account's. An address has none: it is read where the newest device is,
    /// or else where the person lives. Without any, it goes when its time has come wherever they may be.
    package func due(
        _ type: NotificationType, at destination: Destination, from now: Instant, under policy: CompiledPolicy
    ) -> Instant {
        guard let timing = type.timing else { return now }
        let zones: [String?]
        switch destination {
        case .device: zones = destination.timeZones(account: record.timeZone)
        case .address:
            let newest = devices.filter(\.isActive).max { $0.seenAt < $1.seenAt }
            zones = [newest?.timeZone, record.timeZone]
        }
        let spread = subject.id.bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return LocalTime.sendTime(
            timing, at: now, zones: zones, possible: possibleZones(at: destination, under: policy),
            spread: spread)
    }

    /// The zones the recipient may be in, where none is known for a destination. The first that is known counts:
    ///
    /// 1. the zones their devices in use told;
    /// 2. those of the countries where they live, where their devices were seen, and, of a text, of its number;
    /// 3. those of the countries of their numbers;
    /// 4. as an unknown place counts as `gdpr`: those of every country the bundle has under it, from the Azores to Cyprus,
    ///    but for ``CountryZones/overseas``. Every zone there is would be no rule: it is always night in one of them.
    func possibleZones(at destination: Destination, under policy: CompiledPolicy) -> [String] {
        let inUse = devices.filter(\.isActive)
        let reported = Set(inUse.compactMap(\.timeZone))
        if !reported.isEmpty { return reported.sorted() }
        var places = [record.region?.code] + inUse.map(\.region?.code)
        if let address = destination.address, address.channel == .sms {
            places.append(policy.region(of: address))
        }
        func zones(of places: [RegionCode]) -> [String] {
            Set(places.map(\.country)).sorted { $0.packed < $1.packed }.flatMap(CountryZones.zones(of:))
        }
        let numbers = addresses.compactMap { policy.region(of: $0) }
        for known in [places.compactMap(\.self), numbers] {
            let ofKnown = zones(of: known)
            guard ofKnown.isEmpty else { return ofKnown }
        }
        let underGDPR = policy.bundle.regions.regions.filter {
            $0.value.regime == .gdpr && !CountryZones.overseas.contains($0.key.country)
        }
        return Set(zones(of: Array(underGDPR.keys))).sorted()
    }

    /// Where a send of one channel could go, ordered by tag so that every machine sees one order.
    package func destinations(on channel: Channel) -> [Destination] {
        var found: [Destination] = []
        // By position: an element of a loop is a copy of the device.
        switch channel {
        case .push:
            let devices = devices
            for place in devices.indices where devices[place].isActive {
                found.append(.device(devices, place))
            }
        case .sms, .email:
            let addresses = addresses
            for place in addresses.indices where addresses[place].channel == channel {
                found.append(.address(addresses, place))
            }
        }
        return found
    }

    /// The only one of ``destinations(on:)``, as most people have it; `nil` where there are none or several.
    func onlyDestination(on channel: Channel) -> Destination? {
        func only(of places: Range<Int>, _ isWanted: (Int) -> Bool) -> Int? {
            guard let first = places.first(where: isWanted) else { return nil }
            return places[(first + 1)...].contains(where: isWanted) ? nil : first
        }
        switch channel {
        case .push:
            let devices = devices
            return only(of: devices.indices) { devices[$0].isActive }.map { .device(devices, $0) }
        case .sms, .email:
            let addresses = addresses
            return only(of: addresses.indices) { addresses[$0].channel == channel }
                .map { .address(addresses, $0) }
        }
    }

    /// The destination a send names; `nil` when there is none of that name on the channel.
    package func destination(_ id: DestinationID, on channel: Channel) -> Destination? {
        switch channel {
        case .push: devices.firstIndex { $0.id == id }.map { .device(devices, $0) }
        case .sms, .email:
            addresses.firstIndex { $0.id == id && $0.channel == channel }.map { .address(addresses, $0) }
        }
    }

    /// The destination of a row that waits; `nil` when it was removed meanwhile.
    package func destination(tagged tag: Tag, on channel: Channel) -> Destination? {
        switch channel {
        case .push: devices.firstIndex { $0.tag == tag }.map { .device(devices, $0) }
        case .sms, .email:
            addresses.firstIndex { $0.tag == tag && $0.channel == channel }.map { .address(addresses, $0) }
        }
    }
}

/// A person with the whole of their consent ledger, oldest event first: for what adds to it, or shows it.
package struct RecipientWithLedger {
    package var person: RecipientSnapshot
    package var consents: [ConsentRecord]

    var subject: Subject { person.subject }

    package static func load(_ user: UserID, from store: any RecordReading) throws -> RecipientWithLedger? {
        try RecipientSnapshot.load(user, from: store).map { try load($0, from: store) }
    }

    package static func load(_ subject: Subject, from store: any RecordReading) throws -> RecipientWithLedger?
    {
        try RecipientSnapshot.load(subject, from: store).map { try load($0, from: store) }
    }

    private static func load(
        _ person: RecipientSnapshot, from store: any RecordReading
    ) throws -> RecipientWithLedger {
        RecipientWithLedger(person: person, consents: try store.consentRecords(of: person.subject.id))
    }
}

extension RecipientState {
    package func choice(_ scope: String, _ channel: Channel, at destination: Tag?) -> PreferenceRecord? {
        preferences.first { $0.scope == scope && $0.channel == channel && $0.destination == destination }
    }

    func preference(_ scope: String, _ channel: Channel, at destination: Tag?) -> PreferenceState {
        choice(scope, channel, at: destination)?.state ?? .default
    }
}
