import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let putRecipient = StatementText(
        "recipient", "INSERT INTO recipient VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed")
    private static let putDevice = StatementText(
        "device", "INSERT INTO device VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed")
    private static let removeDevice = StatementText(
        "device", "DELETE FROM device WHERE subject = ? AND tag = ?")
    private static let putAddress = StatementText(
        "address", "INSERT INTO address VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed")
    private static let removeAddress = StatementText(
        "address", "DELETE FROM address WHERE subject = ? AND tag = ?")
    private static let putDeviceKey = StatementText(
        "device_key",
        """
        INSERT INTO device_key (subject, device, key, suite, public_key, state, created_at, changed_at, challenge)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (subject, device, key) DO UPDATE SET suite = excluded.suite,
            public_key = excluded.public_key, state = excluded.state, created_at = excluded.created_at,
            changed_at = excluded.changed_at, challenge = excluded.challenge
        """)
    private static let lastConsent = StatementText(
        "consent", "SELECT max(sequence) FROM consent WHERE subject = ?")
    private static let insertConsent = StatementText("consent", "INSERT INTO consent VALUES (?, ?, ?)")
    private static let putPreference = StatementText(
        "preference",
        "INSERT INTO preference VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed")
    private static let lastPreference = StatementText(
        "preference_history", "SELECT max(sequence) FROM preference_history WHERE subject = ?")
    private static let insertPreference = StatementText(
        "preference_history", "INSERT INTO preference_history VALUES (?, ?, ?)")
    private static let lastPrompt = StatementText(
        "permission_prompt", "SELECT max(sequence) FROM permission_prompt WHERE subject = ?")
    private static let insertPrompt = StatementText(
        "permission_prompt", "INSERT INTO permission_prompt VALUES (?, ?, ?, ?, ?)")

    func putRecipient(_ record: RecipientRecord) throws {
        let sealed = try cipher.seal(
            record.sealedFields, in: PeopleColumns.recipient, row: record.subject.bytes)
        try gate.change(Self.putRecipient) {
            $0.add(record.subject)
            $0.add(sealed)
        }
    }

    func putDevice(_ record: DeviceRecord) throws {
        let sealed = try cipher.seal(
            record.sealedFields, in: PeopleColumns.device, row: record.subject.bytes + record.tag.bytes)
        try gate.change(Self.putDevice) {
            $0.add(record.subject)
            $0.add(record.tag)
            $0.add(sealed)
        }
    }

    func removeDevice(_ device: Tag, of subject: SubjectID) throws {
        try gate.change(Self.removeDevice) {
            $0.add(subject)
            $0.add(device)
        }
    }

    func putAddress(_ record: AddressRecord) throws {
        let sealed = try cipher.seal(
            record.sealedFields, in: PeopleColumns.address, row: record.subject.bytes + record.tag.bytes)
        try gate.change(Self.putAddress) {
            $0.add(record.subject)
            $0.add(record.tag)
            $0.add(sealed)
        }
    }

    func removeAddress(_ address: Tag, of subject: SubjectID) throws {
        try gate.change(Self.removeAddress) {
            $0.add(subject)
            $0.add(address)
        }
    }

    func putDeviceKey(_ record: DeviceKeyRecord) throws {
        let row = record.subject.bytes + record.device.bytes + record.key.bytes
        let challenge = try record.challenge.map {
            try cipher.seal($0.sealedFields, in: PeopleColumns.challenge, row: row)
        }
        try gate.change(Self.putDeviceKey) {
            $0.add(record.subject)
            $0.add(record.device)
            $0.add(record.key)
            $0.add(record.suite)
            $0.add(record.publicKey)
            $0.add(record.state)
            $0.add(record.createdAt)
            $0.add(record.changedAt)
            $0.add(challenge)
        }
    }

    // MARK: Ledgers

    /// The next position in one person's ledger, from 1. Nothing is ever deleted in the middle, so the
    /// highest is also the count.
    private func nextSequence(_ last: StatementText, of subject: SubjectID) throws -> Int64 {
        let highest = try gate.first(last, { $0.add(subject) }, read: { $0.optionalInteger() })
        return ((highest ?? nil) ?? 0) + 1
    }

    @discardableResult
    func appendConsent(_ event: ConsentEvent) throws -> Int64 {
        let sequence = try nextSequence(Self.lastConsent, of: event.subject)
        let sealed = try cipher.seal(
            event.sealedFields, in: PeopleColumns.consent, row: PeopleColumns.row(event.subject, sequence))
        try gate.change(Self.insertConsent) {
            $0.add(event.subject)
            $0.add(sequence)
            $0.add(sealed)
        }
        return sequence
    }

    func appendPreference(_ record: PreferenceRecord) throws {
        let sequence = try nextSequence(Self.lastPreference, of: record.subject)
        let sealed = try cipher.seal(
            PreferenceRecord.sealedFields(of: [record]), in: PeopleColumns.preferenceHistory,
            row: PeopleColumns.row(record.subject, sequence))
        try gate.change(Self.insertPreference) {
            $0.add(record.subject)
            $0.add(sequence)
            $0.add(sealed)
        }
        var inForce = try preferences(of: record.subject)
        inForce.removeAll { $0.isSameChoice(as: record) }
        inForce.append(record)
        let sealedInForce = try cipher.seal(
            PreferenceRecord.sealedFields(of: inForce), in: PeopleColumns.preference,
            row: record.subject.bytes)
        try gate.change(Self.putPreference) {
            $0.add(record.subject)
            $0.add(sealedInForce)
        }
    }

    func appendPermissionPrompt(_ prompt: PermissionPrompt) throws {
        let sequence = try nextSequence(Self.lastPrompt, of: prompt.subject)
        try gate.change(Self.insertPrompt) {
            $0.add(prompt.subject)
            $0.add(sequence)
            $0.add(prompt.device)
            $0.add(prompt.shownAt)
            $0.add(prompt.answer)
        }
    }

    // MARK: Forgetting

    private static let everythingOfSubject = [
        "recipient", "device", "address", "device_key", "consent", "preference", "preference_history",
        "permission_prompt",
    ].map { StatementText($0, "DELETE FROM \($0) WHERE subject = ?") }
    private static let sendsOfSubject = StatementText(
        "send",
        "DELETE FROM send WHERE number IN (SELECT number FROM history WHERE subject = ? AND kind IN (0, 1))")
    private static let eventsOfSubject = StatementText(
        "event",
        "DELETE FROM event WHERE cursor IN (SELECT number FROM history WHERE subject = ? AND kind = 2)")
    private static let historyOfSubject = StatementText("history", "DELETE FROM history WHERE subject = ?")
    private static let outboxOfSubject = StatementText(
        "outbox", "DELETE FROM outbox WHERE subject = ? RETURNING lane, caller, byte_count")
    private static let markErased = StatementText("erasure", "INSERT OR IGNORE INTO erasure VALUES (?)")

    func eraseSubject(_ subject: SubjectID) throws {
        for statement in Self.everythingOfSubject { try gate.change(statement) { $0.add(subject) } }
        // Sends and events are found through the person's history, so it goes last.
        try gate.change(Self.sendsOfSubject) { $0.add(subject) }
        try gate.change(Self.eventsOfSubject) { $0.add(subject) }
        try gate.change(Self.historyOfSubject) { $0.add(subject) }
        try removeOutboxRows(Self.outboxOfSubject) { $0.add(subject) }
        newestSend = nil
        try gate.change(Self.markErased) { $0.add(subject) }
    }
}
