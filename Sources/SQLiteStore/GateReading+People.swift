import GateVocabulary
import GatewayPipeline

/// The sealed columns of what is held of a person.
enum PeopleColumns {
    static let recipient = SealedColumn("recipient", "sealed")
    static let device = SealedColumn("device", "sealed")
    static let address = SealedColumn("address", "sealed")
    static let challenge = SealedColumn("device_key", "challenge")
    static let consent = SealedColumn("consent", "sealed")
    static let preference = SealedColumn("preference", "sealed")
    static let preferenceHistory = SealedColumn("preference_history", "sealed")

    /// The row id of the n-th record of a person's ledger.
    static func row(_ subject: SubjectID, _ sequence: Int64) -> [UInt8] {
        subject.bytes + withUnsafeBytes(of: sequence.bigEndian) { Array($0) }
    }
}

extension GateReading {
    private static let recipient = StatementText(
        "recipient", "SELECT sealed FROM recipient WHERE subject = ?")
    private static let devices = StatementText(
        "device", "SELECT tag, sealed FROM device WHERE subject = ? ORDER BY tag")
    private static let addresses = StatementText(
        "address", "SELECT tag, sealed FROM address WHERE subject = ? ORDER BY tag")
    private static let keyColumns =
        "subject, device, key, suite, public_key, state, created_at, changed_at, challenge"
    private static let keysOfDevice = StatementText(
        "device_key",
        """
        SELECT \(keyColumns) FROM device_key WHERE subject = ? AND device = ?
        ORDER BY created_at DESC, key DESC
        """)
    private static let keyByID = StatementText(
        "device_key", "SELECT \(keyColumns) FROM device_key WHERE key = ?")
    private static let consents = StatementText(
        "consent", "SELECT sequence, sealed FROM consent WHERE subject = ? ORDER BY sequence")
    private static let preferences = StatementText(
        "preference", "SELECT sealed FROM preference WHERE subject = ?")
    private static let preferenceHistory = StatementText(
        "preference_history",
        "SELECT sequence, sealed FROM preference_history WHERE subject = ? ORDER BY sequence")
    private static let prompts = StatementText(
        "permission_prompt",
        "SELECT device, shown_at, answer FROM permission_prompt WHERE subject = ? ORDER BY sequence")

    final func recipient(_ subject: SubjectID) throws -> RecipientRecord? {
        guard let sealed = try gate.first(Self.recipient, { $0.add(subject) }, read: { $0.byteArray() })
        else {
            return nil
        }
        let plain = try cipher.open(sealed, in: PeopleColumns.recipient, row: subject.bytes)
        return try RecipientRecord(sealedFields: plain, subject: subject)
    }

    final func devices(of subject: SubjectID) throws -> [DeviceRecord] {
        try gate.every(Self.devices, { $0.add(subject) }) { row in
            let tag = try row.id(Tag.self)
            let plain = try cipher.open(
                row.byteArray(), in: PeopleColumns.device, row: subject.bytes + tag.bytes)
            return try DeviceRecord(sealedFields: plain, subject: subject, tag: tag)
        }
    }

    final func addresses(of subject: SubjectID) throws -> [AddressRecord] {
        try gate.every(Self.addresses, { $0.add(subject) }) { row in
            let tag = try row.id(Tag.self)
            let plain = try cipher.open(
                row.byteArray(), in: PeopleColumns.address, row: subject.bytes + tag.bytes)
            return try AddressRecord(sealedFields: plain, subject: subject, tag: tag)
        }
    }

    final func deviceKeys(of subject: SubjectID, device: Tag) throws -> [DeviceKeyRecord] {
        try gate.every(Self.keysOfDevice) {
            $0.add(subject)
            $0.add(device)
        } read: { row in
            try deviceKey(from: &row)
        }
    }

    final func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        try gate.first(Self.keyByID, { $0.add(key) }) { try deviceKey(from: &$0) }
    }

    private func deviceKey(from row: inout StoredRow) throws -> DeviceKeyRecord {
        let subject = try row.id(SubjectID.self)
        let device = try row.id(Tag.self)
        let key = try row.id(KeyID.self)
        var record = DeviceKeyRecord(
            key: key, subject: subject, device: device, suite: row.text(), publicKey: row.byteArray(),
            state: row.text(), challenge: nil, createdAt: row.instant(), changedAt: row.instant())
        if let sealed = row.optionalByteArray() {
            let plain = try cipher.open(
                sealed, in: PeopleColumns.challenge, row: subject.bytes + device.bytes + key.bytes)
            record.challenge = try DeviceKeyRecord.PendingChallenge(sealedFields: plain)
        }
        return record
    }

    final func consentEvents(of subject: SubjectID) throws -> [ConsentEvent] {
        try gate.every(Self.consents, { $0.add(subject) }) { row in
            let sequence = row.integer()
            let plain = try cipher.open(
                row.byteArray(), in: PeopleColumns.consent, row: PeopleColumns.row(subject, sequence))
            return try ConsentEvent(sealedFields: plain, subject: subject, sequence: sequence)
        }
    }

    final func preferences(of subject: SubjectID) throws -> [PreferenceRecord] {
        guard let sealed = try gate.first(Self.preferences, { $0.add(subject) }, read: { $0.byteArray() })
        else {
            return []
        }
        let plain = try cipher.open(sealed, in: PeopleColumns.preference, row: subject.bytes)
        return try PreferenceRecord.list(sealedFields: plain, subject: subject)
    }

    final func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        try gate.every(Self.preferenceHistory, { $0.add(subject) }) { row in
            let sequence = row.integer()
            let plain = try cipher.open(
                row.byteArray(), in: PeopleColumns.preferenceHistory,
                row: PeopleColumns.row(subject, sequence))
            let records = try PreferenceRecord.list(sealedFields: plain, subject: subject)
            guard let record = records.first, records.count == 1 else {
                throw StoreError.damaged(table: "preference_history", "a row holds \(records.count) records")
            }
            return record
        }
    }

    final func permissionPrompts(of subject: SubjectID) throws -> [PermissionPrompt] {
        try gate.every(Self.prompts, { $0.add(subject) }) { row in
            PermissionPrompt(
                subject: subject, device: try row.id(), shownAt: row.instant(), answer: row.optionalText())
        }
    }
}
