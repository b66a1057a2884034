import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

extension GateTransaction {
    private static let insertPerson = StatementText("person", "INSERT INTO person VALUES (?, ?, ?)")
    private static let updatePerson = StatementText(
        "person", "UPDATE person SET sealed = ? WHERE number = ?")

    /// The number of a pseudonym, given now if it has none.
    func makePerson(_ subject: SubjectID) throws -> Int64 {
        if let known = try person(subject) { return known }
        let number = sequences.personNumber + 1
        guard number <= Self.personMax else {
            throw StoreError.unavailable("`gate.db` can number no more people")
        }
        let sealed = try seal(RecipientState(subject).sealedFields, of: subject, number)
        try gate.change(Self.insertPerson) {
            $0.add(number)
            $0.add(subject)
            $0.add(sealed)
        }
        sequences.personNumber = number
        forgetPerson()
        note(number, of: subject)
        return number
    }

    private func seal(_ fields: [UInt8], of subject: SubjectID, _ number: Int64) throws -> [UInt8] {
        try seal(fields, in: Self.stateColumn, row: Self.stateRow(subject, number))
    }

    // MARK: States

    func put(_ state: RecipientState, insteadOf before: RecipientState?) throws {
        let number = try makePerson(state.subject)
        let old = before ?? RecipientState(state.subject)
        guard state != old else { return }
        let fields = state.sealedFields
        guard fields.count <= RecipientState.byteCountMax else {
            throw UnfitWrite(
                table: "person",
                message:
                    "a person's state would have \(fields.count) bytes; at most \(RecipientState.byteCountMax) are held"
            )
        }
        try index(state.keys, insteadOf: old, of: number)
        try index(state.devices, insteadOf: old.devices, of: number)
        if state.addresses != old.addresses {
            try index(state.addresses, insteadOf: old.addresses, of: number)
        }
        changedStates[state.subject] = (number, fields)
    }

    /// Called once for each state that changed, however often it did.
    func writeState(_ fields: [UInt8], of subject: SubjectID, _ number: Int64) throws {
        let sealed = try seal(fields, of: subject, number)
        let count = try gate.change(Self.updatePerson) {
            $0.add(sealed)
            $0.add(number)
        }
        guard count == 1 else {
            throw StoreError.damaged(table: "person", row: "\(number)", "it is missing")
        }
    }

    // MARK: Look-ups

    private static let insertKey = StatementText("device_key", "INSERT INTO device_key VALUES (?, ?)")
    private static let removeKey = StatementText("device_key", "DELETE FROM device_key WHERE key = ?")
    private static let findKey = StatementText("device_key", "SELECT key FROM device_key WHERE key = ?")

    private func index(_ keys: [DeviceKeyRecord], insteadOf old: RecipientState, of person: Int64) throws {
        for key in keys {
            let known = old.key(key.key)
            let isOwnOrNew =
                try known != nil || gate.first(Self.findKey, { $0.add(key.key) }, read: { _ in true }) == nil
            guard isOwnOrNew, known.map({ $0.device == key.device }) ?? true else {
                throw UnfitWrite(table: "device_key", message: "key \(key.key) belongs to another device")
            }
            guard known == nil else { continue }
            try gate.change(Self.insertKey) {
                $0.add(key.key)
                $0.add(person)
            }
        }
        for key in old.keys where !keys.contains(where: { $0.key == key.key }) {
            try gate.change(Self.removeKey) { $0.add(key.key) }
        }
    }

    // A token leads to the device that was put with it last.
    private static let putToken = StatementText(
        "push_token", "INSERT OR REPLACE INTO push_token VALUES (?, ?, ?)")
    private static let removeToken = StatementText(
        "push_token", "DELETE FROM push_token WHERE code = ? AND person = ? AND device = ?")

    private func index(_ devices: [DeviceRecord], insteadOf old: [DeviceRecord], of person: Int64) throws {
        func change(_ statement: StatementText, _ device: DeviceRecord) throws {
            guard device.isActive, !device.token.isEmpty else { return }
            let code = mappings.code(ofToken: device.tokenIdentity)
            try gate.change(statement) {
                $0.add(code)
                $0.add(person)
                $0.add(device.tag)
            }
        }
        for device in old where !devices.contains(device) { try change(Self.removeToken, device) }
        for device in devices where !old.contains(device) { try change(Self.putToken, device) }
    }

    private static let putAddress = StatementText(
        "address_code", "INSERT OR REPLACE INTO address_code VALUES (?, ?)")
    private static let removeAddress = StatementText(
        "address_code", "DELETE FROM address_code WHERE code = ? AND person = ?")

    private func index(_ addresses: [AddressRecord], insteadOf old: [AddressRecord], of person: Int64) throws
    {
        func change(_ statement: StatementText, _ address: AddressKey) throws {
            let code = mappings.code(of: address)
            try gate.change(statement) {
                $0.add(code)
                $0.add(person)
            }
        }
        let (before, after) = (Set(old.map(AddressKey.init)), Set(addresses.map(AddressKey.init)))
        for address in before.subtracting(after) { try change(Self.removeAddress, address) }
        for address in after.subtracting(before) { try change(Self.putAddress, address) }
    }

    // MARK: Ledgers

    private static let appendLedger = StatementText("ledger", "INSERT INTO ledger VALUES (?, ?, ?, ?)")

    func append(
        _ fields: [UInt8], to kind: LedgerKind, at position: Int64, of subject: SubjectID
    ) throws {
        let person = try makePerson(subject)
        let sealed = try seal(fields, in: LedgerKind.column, row: kind.row(subject, position))
        try gate.change(Self.appendLedger) {
            $0.add(person)
            $0.add(kind.rawValue)
            $0.add(position)
            $0.add(sealed)
        }
    }

    // MARK: Forgetting

    private static let outboxOfSubject = StatementText(
        "outbox", "DELETE FROM outbox WHERE subject = ? RETURNING rank, caller, byte_count")
    /// In this order: events are found through the person's history and sends, and all else by the person's number.
    private static let rowsOfPerson = [
        ("event", "cursor IN (SELECT number FROM history WHERE person = ? AND kind = 1)"),
        ("event", "send_number IN (SELECT number FROM send WHERE person = ?)"),
        ("send", "person = ?"), ("history", "person = ?"), ("dedupe", "person = ?"), ("duty", "person = ?"),
        ("unsubscribe_link", "person = ?"), ("device_key", "person = ?"), ("push_token", "person = ?"),
        ("address_code", "person = ?"), ("ledger", "person = ?"), ("person", "number = ?"),
    ].map { StatementText($0, "DELETE FROM \($0) WHERE \($1)") }
    private static let markErased = StatementText("erasure", "INSERT OR IGNORE INTO erasure VALUES (?)")

    /// Opens nothing but rows of `offered` that other persons' messages share.
    func eraseSubject(_ subject: SubjectID) throws {
        try removeOffered(of: subject)
        try removeOutboxRows(Self.outboxOfSubject) { $0.add(subject) }
        if let person = try person(subject) {
            for statement in Self.rowsOfPerson { try gate.change(statement) { $0.add(person) } }
        }
        sendNumbers.removeAll()
        forgetPerson()
        forget(subject)
        try gate.change(Self.markErased) { $0.add(subject) }
        writer.mayHaveErasures = true
    }
}
