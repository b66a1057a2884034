package import GateVocabulary

/// One person as one value: all that a step may look at, and nothing that only grows.
///
/// The consent ledger and the history of choices are append-only beside it; of each the state has what it comes to
/// (``consentsInForce``, ``preferences``) and its length.
package struct RecipientState: Hashable, StoredValue {
    /// Shared by every copy of the state, so that a copy counts one reference: a send makes some five, and looks at a few of
    /// the parts. Never changed; a change of a state makes another.
    private var box: Box

    private final class Box: Sendable {
        let parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    fileprivate struct Parts: PersonRecord, StoredValue {
        var subject: SubjectID
        var record: RecipientRecord?
        var devices: [DeviceRecord] = []
        var addresses: [AddressRecord] = []
        var keys: [DeviceKeyRecord] = []
        var consentsInForce = ConsentsInForce()
        var preferences: [PreferenceRecord] = []
        var prompts: [PermissionPrompt] = []
        var drifts: [DriftFinding] = []
        var consentCount: Int64 = 0
        var choiceCount: Int64 = 0
    }

    package var subject: SubjectID { box.parts.subject }
    /// `nil` for a pseudonym that was made and not registered yet.
    package var record: RecipientRecord? { box.parts.record }
    /// By tag; at most 20 by what the pipeline accepts.
    package var devices: [DeviceRecord] { box.parts.devices }
    /// By tag; at most 20 by what the pipeline accepts.
    package var addresses: [AddressRecord] { box.parts.addresses }
    /// Of devices that are registered or were, in the order of their registration. Entries let go of those that ended long
    /// ago (``PersonChange/deviceKeyForgotten(_:)``).
    package var keys: [DeviceKeyRecord] { box.parts.keys }
    /// What the consent ledger comes to.
    package var consentsInForce: ConsentsInForce { box.parts.consentsInForce }
    /// The newest transition of every preference ever set.
    package var preferences: [PreferenceRecord] { box.parts.preferences }
    package var prompts: [PermissionPrompt] { box.parts.prompts }
    /// What the newest drift audit found.
    package var drifts: [DriftFinding] { box.parts.drifts }
    /// Records in the consent ledger.
    package var consentCount: Int64 { box.parts.consentCount }
    /// Transitions in the history of choices.
    package var choiceCount: Int64 { box.parts.choiceCount }

    package init(_ subject: SubjectID) { self.init(Parts(subject: subject)) }

    private init(_ parts: Parts) { box = Box(parts) }

    // MARK: As a row

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        RecipientState(try Parts.read(row: &row))
    }

    package func write(row: inout RowWriter) { box.parts.write(row: &row) }

    private mutating func change<Result>(_ change: (inout Parts) -> Result) -> Result {
        var parts = box.parts
        let result = change(&parts)
        box = Box(parts)
        return result
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box.parts == other.box.parts
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(box.parts) }

    // MARK: Changes

    /// Applies one change: the only way a state becomes another.
    ///
    /// - Parameter change: With private values where a step made it; without them where an entry was read back.
    package mutating func apply(_ change: PersonChange) { self.change { $0.apply(change) } }

    /// Applies the next record of the consent ledger.
    ///
    /// - Parameter ledger: The records before it; needed only for one that names another of them
    ///   (``ConsentRecord/withdraws``).
    /// - Returns: The record with its position.
    @discardableResult
    package mutating func apply(_ record: ConsentRecord, after ledger: [ConsentRecord]) -> ConsentRecord {
        change { $0.apply(record, after: ledger) }
    }

    /// Counts the consents that a ledger comes to. They are those that the state has, unless an older state was put back.
    package mutating func count(asIn ledger: [ConsentRecord]) {
        let inForce = ConsentLedger.consentsInForce(in: ledger)
        if inForce != consentsInForce { change { $0.consentsInForce = inForce } }
    }

    /// Counts the events of the ledgers that the state does not know of.
    ///
    /// - Returns: Whether there were any.
    package mutating func count(upTo ends: LedgerEnds) -> Bool {
        guard consentCount < ends.consentCount || choiceCount < ends.choiceCount else { return false }
        change { parts in
            parts.consentCount = max(parts.consentCount, ends.consentCount)
            parts.choiceCount = max(parts.choiceCount, ends.choiceCount)
        }
        return true
    }

    // MARK: Keys

    package func key(_ id: KeyID) -> DeviceKeyRecord? { keys.first { $0.key == id } }

    /// Keys of a device, newest first, in whatever state.
    package func keys(of device: Tag) -> [DeviceKeyRecord] {
        keys.filter { $0.device == device }.sorted { ($0.createdAt, $0.key) > ($1.createdAt, $1.key) }
    }

    // MARK: Drift

    /// The same state without what an audit suppressed: what the recipient themselves chose.
    package var withoutSuppressions: RecipientState {
        var parts = box.parts
        for index in preferences.indices where preferences[index].isSuppression {
            parts.preferences[index].state = choiceBefore(preferences[index])
        }
        return RecipientState(parts)
    }

    /// Where an audit suppressed a category and no choice was made since: the device, and what was chosen there before.
    package func suppressions(of category: Category) -> [(device: Tag, before: PreferenceState)] {
        preferences.filter { $0.isSuppression && $0.scope == category.rawValue }.compactMap { choice in
            choice.destination.map { ($0, choiceBefore(choice)) }
        }
    }

    private func choiceBefore(_ suppression: PreferenceRecord) -> PreferenceState {
        let finding = drifts.first {
            $0.action == .suppressed && $0.device == suppression.destination
                && $0.category?.rawValue == suppression.scope
        }
        return finding.flatMap { PreferenceState(rawValue: $0.old) } ?? .default
    }

    // MARK: Evidence

    /// The same state as the trail alone tells it: without tokens, numbers, names, public keys and open challenges.
    package var evidence: RecipientState {
        var parts = box.parts
        parts.record = parts.record?.evidence
        parts.devices = parts.devices.map(\.evidence)
        parts.addresses = parts.addresses.map(\.evidence)
        parts.keys = parts.keys.map(\.evidence)
        return RecipientState(parts)
    }
}

extension RecipientState.Parts {
    static let blank = Self(subject: .blank)

    static let fields = Fields<Self> { fields in
        fields.kept("record", \.record, "What is registered of the person.")
        fields.kept("devices", \.devices, "The person's devices.")
        fields.kept("addresses", \.addresses, "The person's numbers and mailboxes.")
        fields.kept("keys", \.keys, "The keys of the devices.")
        fields.kept("consents", \.consentsInForce, "What the ledger of consents comes to.")
        fields.kept("preferences", \.preferences, "The newest choice of each kind.")
        fields.kept("prompts", \.prompts, "The prompts that were shown.")
        fields.kept("drifts", \.drifts, "What the newest drift audit found.")
        fields.kept("consent_count", \.consentCount, "Records in the ledger of consents.")
        fields.kept("choice_count", \.choiceCount, "Choices that were made.")
    }

    mutating func apply(_ change: PersonChange) {
        switch change {
        case .recipient(var record, _):
            record.registeredAt = self.record?.registeredAt ?? record.registeredAt
            self.record = record
        case .device(var device, _, _):
            // The provider's state is reported apart from the app's.
            device.subscriptions = devices.first { $0.tag == device.tag }?.subscriptions
            Self.put(device, in: &devices, by: \.tag)
        case .deviceRemoved(let tag):
            devices.removeAll { $0.tag == tag }
            drifts.removeAll { $0.device == tag }
        case .deviceDeactivated(let tag, _):
            edit(tag) { device in
                device.isActive = false
                device.token = ""
            }
        case .address(let address, _, let replaced):
            if let replaced { addresses.removeAll { $0.tag == replaced } }
            Self.put(address, in: &addresses, by: \.tag)
        case .addressRemoved(let tag): addresses.removeAll { $0.tag == tag }
        case .addressContested(let tag, let moment):
            guard let index = addresses.firstIndex(where: { $0.tag == tag }) else { return }
            addresses[index].contestedAt = moment
        case .permissionPrompt(let prompt, _):
            prompts.replace(prompt) { $0.device == prompt.device }
            guard let answer = prompt.answer else { return }
            edit(prompt.device) { $0.osPermission = answer == .granted ? .granted : .denied }
        case .deviceKey(var key, _, _):
            key.createdAt = keys.first { $0.key == key.key }?.createdAt ?? key.createdAt
            keys.replace(key) { $0.key == key.key }
        case .deviceKeyForgotten(let key): keys.removeAll { $0.key == key.key }
        case .consent(let record):
            apply(record, after: [])
        case .preference(let choice):
            // The one that arrives last is in force, whatever its time says.
            choiceCount += 1
            preferences.removeAll { $0.isSameChoice(as: choice) }
            preferences.append(choice)
        case .subscriptions(let device, let subscriptions):
            edit(device) { $0.subscriptions = subscriptions }
        case .drift(let finding):
            drifts.replace(finding) { $0.isSameDrift(as: finding) }
            guard finding.kind == .notEntitled, finding.action == .repaired, let device = finding.device
            else { return }
            edit(device) { $0.criticalAlerts = false }
        case .driftResolved(let finding): drifts.removeAll { $0.isSameDrift(as: finding) }
        }
    }

    @discardableResult
    mutating func apply(_ record: ConsentRecord, after ledger: [ConsentRecord]) -> ConsentRecord {
        consentCount += 1
        if record.state == .undone {
            consentsInForce = ConsentLedger.consentsInForce(in: ledger + [record])
        } else {
            consentsInForce.add(
                record, at: consentCount, moment: ConsentLedger.moment(of: record, in: ledger))
        }
        var record = record
        record.sequence = consentCount
        return record
    }

    private static func put<Record>(
        _ record: Record, in records: inout [Record], by key: KeyPath<Record, Tag>
    ) {
        let index = records.firstIndex { $0[keyPath: key] >= record[keyPath: key] } ?? records.endIndex
        if index < records.endIndex, records[index][keyPath: key] == record[keyPath: key] {
            records[index] = record
        } else {
            records.insert(record, at: index)
        }
    }

    private mutating func edit(_ device: Tag, _ change: (inout DeviceRecord) -> Void) {
        if let index = devices.firstIndex(where: { $0.tag == device }) { change(&devices[index]) }
    }
}

extension Array {
    /// Puts an element in the place of the one that it replaces, or at the end.
    fileprivate mutating func replace(_ element: Element, where isReplaced: (Element) -> Bool) {
        if let index = firstIndex(where: isReplaced) { self[index] = element } else { append(element) }
    }
}

extension PreferenceRecord {
    /// Whether an audit switched it off, and no recipient.
    package var isSuppression: Bool { source == .driftAudit && state.isOff }

    /// Whether it switches off what may have been switched off in what was stored before (``PreferenceSource/stateAudit``).
    package var isClosing: Bool { source == .stateAudit && state.isOff }

    /// Whether both are choices about the same thing, so that the later one replaces the earlier.
    package func isSameChoice(as other: PreferenceRecord) -> Bool {
        scope == other.scope && channel == other.channel && destination == other.destination
    }
}

/// How many events a person's two ledgers have.
package struct LedgerEnds: Hashable, Sendable {
    package var consentCount: Int64
    package var choiceCount: Int64

    package init(consentCount: Int64 = 0, choiceCount: Int64 = 0) {
        (self.consentCount, self.choiceCount) = (consentCount, choiceCount)
    }
}
