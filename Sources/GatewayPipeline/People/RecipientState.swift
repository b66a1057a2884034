package import GateVocabulary

/// One person as one value: all that a step may look at, and nothing that only grows.
///
/// The consent ledger and the history of choices are append-only beside it; of each the state has what it comes to
/// (``words``, ``preferences``) and its length.
package struct RecipientState: Hashable, Sendable {
    package let subject: SubjectID
    /// `nil` for a pseudonym that was made and not registered yet.
    package var record: RecipientRecord?
    /// By tag; at most 20 by what the pipeline accepts.
    package private(set) var devices: [DeviceRecord] = []
    /// By tag; at most 20 by what the pipeline accepts.
    package private(set) var addresses: [AddressRecord] = []
    /// Of every device ever registered, in the order of their registration.
    package private(set) var keys: [DeviceKeyRecord] = []
    /// What the consent ledger comes to.
    package private(set) var words = ConsentWords()
    /// The newest transition of every preference ever set.
    package private(set) var preferences: [PreferenceRecord] = []
    package private(set) var prompts: [PermissionPrompt] = []
    /// Events in the consent ledger.
    package private(set) var consentCount: Int64 = 0
    /// Transitions in the history of choices.
    package private(set) var choiceCount: Int64 = 0

    package init(_ subject: SubjectID) { self.subject = subject }

    /// As it was written before.
    package init(
        _ subject: SubjectID, record: RecipientRecord?, devices: [DeviceRecord], addresses: [AddressRecord],
        keys: [DeviceKeyRecord], words: ConsentWords, preferences: [PreferenceRecord],
        prompts: [PermissionPrompt], consentCount: Int64, choiceCount: Int64
    ) {
        self.subject = subject
        self.record = record
        self.devices = devices
        self.addresses = addresses
        self.keys = keys
        self.words = words
        self.preferences = preferences
        self.prompts = prompts
        self.consentCount = consentCount
        self.choiceCount = choiceCount
    }

    // MARK: Destinations

    package mutating func put(_ device: DeviceRecord) { Self.put(device, in: &devices, by: \.tag) }
    package mutating func removeDevice(_ tag: Tag) { devices.removeAll { $0.tag == tag } }
    package mutating func put(_ address: AddressRecord) { Self.put(address, in: &addresses, by: \.tag) }
    package mutating func removeAddress(_ tag: Tag) { addresses.removeAll { $0.tag == tag } }

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

    // MARK: Keys

    package func key(_ id: KeyID) -> DeviceKeyRecord? { keys.first { $0.key == id } }

    /// Keys of a device, newest first, in whatever state.
    package func keys(of device: Tag) -> [DeviceKeyRecord] {
        keys.filter { $0.device == device }.sorted { ($0.createdAt, $0.key) > ($1.createdAt, $1.key) }
    }

    package mutating func put(_ key: DeviceKeyRecord) {
        if let index = keys.firstIndex(where: { $0.key == key.key }) {
            keys[index] = key
        } else {
            keys.append(key)
        }
    }

    package mutating func removeKey(_ id: KeyID) { keys.removeAll { $0.key == id } }

    // MARK: Will

    /// Counts the next event of the ledger.
    ///
    /// - Parameter moment: From when it counts; see ``ConsentLedger/moment(of:in:)``.
    /// - Returns: Its position.
    package mutating func hear(_ event: ConsentEvent, moment: Instant) -> Int64 {
        consentCount += 1
        words.hear(event, at: consentCount, moment: moment)
        return consentCount
    }

    /// Counts the next choice; the one that arrives last is in force, whatever its time says.
    ///
    /// - Returns: Its position in the history.
    package mutating func choose(_ choice: PreferenceRecord) -> Int64 {
        choiceCount += 1
        preferences.removeAll { $0.isSameChoice(as: choice) }
        preferences.append(choice)
        return choiceCount
    }

    /// Replaces what was on record about the same device.
    package mutating func put(_ prompt: PermissionPrompt) {
        if let index = prompts.firstIndex(where: { $0.device == prompt.device }) {
            prompts[index] = prompt
        } else {
            prompts.append(prompt)
        }
    }
}

extension PreferenceRecord {
    /// Whether both are choices about the same thing, so that the later one replaces the earlier.
    fileprivate func isSameChoice(as other: PreferenceRecord) -> Bool {
        scope == other.scope && channel == other.channel && destination == other.destination
    }
}

extension RecordReading {
    package func recipient(_ subject: SubjectID) throws -> RecipientRecord? { try state(of: subject)?.record }
    /// Every device that is not removed, by tag.
    package func devices(of subject: SubjectID) throws -> [DeviceRecord] {
        try state(of: subject)?.devices ?? []
    }
    /// Every address that is not removed, by tag.
    package func addresses(of subject: SubjectID) throws -> [AddressRecord] {
        try state(of: subject)?.addresses ?? []
    }
    /// Keys of a device, newest first, in whatever state.
    package func deviceKeys(of subject: SubjectID, device: Tag) throws -> [DeviceKeyRecord] {
        try state(of: subject)?.keys(of: device) ?? []
    }
    /// The newest transition of every preference ever set.
    package func preferences(of subject: SubjectID) throws -> [PreferenceRecord] {
        try state(of: subject)?.preferences ?? []
    }
    package func permissionPrompts(of subject: SubjectID) throws -> [PermissionPrompt] {
        try state(of: subject)?.prompts ?? []
    }
}

extension StepView {
    /// Changes what is held of a person, beginning with nothing.
    package func change(_ subject: SubjectID, _ edit: (inout RecipientState) -> Void) throws {
        var state = try state(of: subject) ?? RecipientState(subject)
        edit(&state)
        try put(state)
    }

    package func putRecipient(_ record: RecipientRecord) throws {
        try change(record.subject) { $0.record = record }
    }
    package func putDevice(_ record: DeviceRecord) throws { try change(record.subject) { $0.put(record) } }
    package func removeDevice(_ device: Tag, of subject: SubjectID) throws {
        try change(subject) { $0.removeDevice(device) }
    }
    package func putAddress(_ record: AddressRecord) throws { try change(record.subject) { $0.put(record) } }
    package func removeAddress(_ address: Tag, of subject: SubjectID) throws {
        try change(subject) { $0.removeAddress(address) }
    }
    package func putDeviceKey(_ record: DeviceKeyRecord) throws {
        try change(record.subject) { $0.put(record) }
    }
    /// Forgets a key of a person's; nothing where the key is not theirs.
    package func removeDeviceKey(_ key: KeyID, of subject: SubjectID) throws {
        try change(subject) { $0.removeKey(key) }
    }
    /// Replaces what was on record about the same device.
    package func putPermissionPrompt(_ prompt: PermissionPrompt) throws {
        try change(prompt.subject) { $0.put(prompt) }
    }
}
