import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insertPerson = StatementText("person", "INSERT INTO person VALUES (?, ?)")
    private static let putHeld = StatementText(
        "held", "INSERT INTO held VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed")
    private static let removeHeld = StatementText("held", "DELETE FROM held WHERE id = ?")
    private static let lastHeld = StatementText(
        "held", "SELECT id FROM held WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1")

    /// The number of a pseudonym, given now if it has none.
    func makePerson(_ subject: SubjectID) throws -> Int64 {
        if let known = try person(subject) { return known }
        let number = tail.personNumber + 1
        guard number <= Held.personMax else {
            throw StoreError.unavailable("`gate.db` can number no more people")
        }
        try gate.change(Self.insertPerson) {
            $0.add(number)
            $0.add(subject)
        }
        tail.personNumber = number
        forgetHeld()
        return number
    }

    // MARK: Rows of a person

    private func put(_ fields: [UInt8], as kind: Held.Kind, id: Int64, tag: Tag?, of subject: SubjectID)
        throws
    {
        let sealed = try Held.seal(fields, as: kind, id: id, tag: tag, of: subject, with: cipher)
        try gate.change(Self.putHeld) {
            $0.add(id)
            $0.add(tag)
            $0.add(sealed)
        }
        forgetHeld()
    }

    /// Writes the only row of its kind.
    private func putOnly(_ fields: [UInt8], as kind: Held.Kind, of subject: SubjectID) throws {
        let id = Held.id(try makePerson(subject), kind, slot: 0)
        try put(fields, as: kind, id: id, tag: nil, of: subject)
    }

    /// Writes the row found by its tag, in its old slot or a new one.
    ///
    /// - Returns: The row's id.
    @discardableResult
    private func putTagged(
        _ fields: [UInt8], as kind: Held.Kind, tag: Tag, of subject: SubjectID
    ) throws -> Int64 {
        let known = try held(kind, of: subject).first { $0.tag == tag }
        let id = try known?.id ?? nextID(kind, of: subject)
        try put(fields, as: kind, id: id, tag: tag, of: subject)
        return id
    }

    /// - Returns: The id of the row that went; `nil` when there was none.
    @discardableResult
    private func removeTagged(_ kind: Held.Kind, tag: Tag, of subject: SubjectID) throws -> Int64? {
        guard let known = try held(kind, of: subject).first(where: { $0.tag == tag }) else { return nil }
        try gate.change(Self.removeHeld) { $0.add(known.id) }
        forgetHeld()
        return known.id
    }

    /// The next free id after the person's last row of a kind. Slots start at 1, so that the slot of a ledger's
    /// row is its sequence; ledgers lose no rows, so theirs are dense.
    private func nextID(_ kind: Held.Kind, of subject: SubjectID) throws -> Int64 {
        let person = try makePerson(subject)
        let ids = Held.ids(of: person, kind...kind)
        let last = try gate.first(Self.lastHeld) {
            $0.add(ids.lowerBound)
            $0.add(ids.upperBound)
        } read: {
            $0.integer()
        }
        guard let last else { return Held.id(person, kind, slot: 1) }
        guard last < ids.upperBound else {
            throw StoreError.unavailable("a person has reached \(Held.slotMax) rows of one kind")
        }
        return last + 1
    }

    /// Appends to a ledger and returns the position, from 1.
    private func append(_ fields: [UInt8], to kind: Held.Kind, of subject: SubjectID) throws -> Int64 {
        let id = try nextID(kind, of: subject)
        try put(fields, as: kind, id: id, tag: nil, of: subject)
        return id & Held.slotMax
    }

    // MARK: Records

    func putRecipient(_ record: RecipientRecord) throws {
        try putOnly(record.sealedFields, as: .recipient, of: record.subject)
    }

    // Replaces by either column: a device has one token, and a token leads to one device.
    private static let putToken = StatementText(
        "push_token", "INSERT OR REPLACE INTO push_token VALUES (?, ?)")
    private static let removeToken = StatementText("push_token", "DELETE FROM push_token WHERE held = ?")

    func putDevice(_ record: DeviceRecord) throws {
        let id = try putTagged(record.sealedFields, as: .device, tag: record.tag, of: record.subject)
        guard record.isActive, !record.token.isEmpty else {
            try gate.change(Self.removeToken) { $0.add(id) }
            return
        }
        let code = mappings.code(ofToken: record.tokenIdentity)
        try gate.change(Self.putToken) {
            $0.add(id)
            $0.add(code)
        }
    }

    func removeDevice(_ device: Tag, of subject: SubjectID) throws {
        guard let id = try removeTagged(.device, tag: device, of: subject) else { return }
        try gate.change(Self.removeToken) { $0.add(id) }
    }

    func putAddress(_ record: AddressRecord) throws {
        try putTagged(record.sealedFields, as: .address, tag: record.tag, of: record.subject)
    }

    func removeAddress(_ address: Tag, of subject: SubjectID) throws {
        try removeTagged(.address, tag: address, of: subject)
    }

    private static let findKey = StatementText("device_key", "SELECT held FROM device_key WHERE key = ?")
    private static let insertKey = StatementText("device_key", "INSERT INTO device_key VALUES (?, ?)")

    func putDeviceKey(_ record: DeviceKeyRecord) throws {
        let id: Int64
        if let known = try gate.first(Self.findKey, { $0.add(record.key) }, read: { $0.integer() }) {
            let row = try held(.deviceKey, of: record.subject).first { $0.id == known }
            guard let row, row.tag == record.device else {
                throw StoreConflict(
                    table: "device_key", message: "key \(record.key) belongs to another device")
            }
            id = known
        } else {
            id = try nextID(.deviceKey, of: record.subject)
            try gate.change(Self.insertKey) {
                $0.add(record.key)
                $0.add(id)
            }
        }
        try put(record.sealedFields, as: .deviceKey, id: id, tag: record.device, of: record.subject)
    }

    @discardableResult
    func appendConsent(_ event: ConsentEvent) throws -> Int64 {
        try append(event.sealedFields, to: .consent, of: event.subject)
    }

    /// The transition that arrives last is the one in force, whatever its time says: deciding which of two
    /// wins is the pipeline's business.
    func appendPreference(_ record: PreferenceRecord) throws {
        _ = try append(
            PreferenceRecord.sealedFields(of: [record]), to: .preferenceHistory, of: record.subject)
        var inForce = try preferences(of: record.subject)
        inForce.removeAll { $0.isSameChoice(as: record) }
        inForce.append(record)
        try putOnly(PreferenceRecord.sealedFields(of: inForce), as: .preferences, of: record.subject)
    }

    func putPermissionPrompt(_ prompt: PermissionPrompt) throws {
        let known = try held(.permissionPrompt, of: prompt.subject).first { row in
            try opened(row, of: prompt.subject) {
                try PermissionPrompt(sealedFields: $0, subject: prompt.subject).device
            } == prompt.device
        }
        let id = try known?.id ?? nextID(.permissionPrompt, of: prompt.subject)
        try put(prompt.sealedFields, as: .permissionPrompt, id: id, tag: nil, of: prompt.subject)
    }

    // MARK: Forgetting

    private static let outboxOfSubject = StatementText(
        "outbox", "DELETE FROM outbox WHERE subject = ? RETURNING rank, caller, byte_count")
    private static let sendsOfPerson = StatementText(
        "send",
        "DELETE FROM send WHERE number IN (SELECT number FROM history WHERE person = ? AND kind IN (0, 1))")
    private static let eventsOfPerson = StatementText(
        "event",
        "DELETE FROM event WHERE cursor IN (SELECT number FROM history WHERE person = ? AND kind = 2)")
    private static let historyOfPerson = StatementText("history", "DELETE FROM history WHERE person = ?")
    private static let keysOfPerson = StatementText(
        "device_key", "DELETE FROM device_key WHERE held BETWEEN ? AND ?")
    private static let tokensOfPerson = StatementText(
        "push_token", "DELETE FROM push_token WHERE held BETWEEN ? AND ?")
    private static let heldOfPerson = StatementText("held", "DELETE FROM held WHERE id BETWEEN ? AND ?")
    private static let deletePerson = StatementText("person", "DELETE FROM person WHERE number = ?")
    private static let toldOfPerson = StatementText("told", "DELETE FROM told WHERE person = ?")
    private static let dutiesOfPerson = StatementText("duty", "DELETE FROM duty WHERE person = ?")
    private static let markErased = StatementText("erasure", "INSERT OR IGNORE INTO erasure VALUES (?)")

    /// Opens nothing: a row that no longer authenticates must not keep anybody from being forgotten.
    func eraseSubject(_ subject: SubjectID) throws {
        try removeOutboxRows(Self.outboxOfSubject) { $0.add(subject) }
        if let person = try person(subject) {
            // Sends and events are found through the person's history, so it goes after them.
            try gate.change(Self.sendsOfPerson) { $0.add(person) }
            try gate.change(Self.eventsOfPerson) { $0.add(person) }
            try gate.change(Self.historyOfPerson) { $0.add(person) }
            try gate.change(Self.toldOfPerson) { $0.add(person) }
            try gate.change(Self.dutiesOfPerson) { $0.add(person) }
            let ids = Held.ids(of: person, Held.Kind.recipient...Held.Kind.permissionPrompt)
            for statement in [Self.keysOfPerson, Self.tokensOfPerson, Self.heldOfPerson] {
                try gate.change(statement) {
                    $0.add(ids.lowerBound)
                    $0.add(ids.upperBound)
                }
            }
            try gate.change(Self.deletePerson) { $0.add(person) }
        }
        newestSend = nil
        forgetHeld()
        try gate.change(Self.markErased) { $0.add(subject) }
    }
}
