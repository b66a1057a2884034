import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// The kinds of a person's ledgers. The values are stored: append only.
enum LedgerKind: Int64 {
    case consent = 0
    case choice = 1

    /// The name that the sealing is bound to and that errors use.
    var name: String {
        switch self {
        case .consent: "consent"
        case .choice: "preference"
        }
    }

    static let table = "ledger"
    static let column = SealedColumn(table, "sealed")

    /// What the sealing is bound to: the pseudonym, the kind and the position.
    func row(_ subject: SubjectID, _ position: Int64) -> [UInt8] {
        var row = subject.bytes
        withUnsafeBytes(of: rawValue.bigEndian) { row.append(contentsOf: $0) }
        withUnsafeBytes(of: position.bigEndian) { row.append(contentsOf: $0) }
        return row
    }
}

extension GateReading {
    private static let keyPlace = StatementText(
        "device_key",
        """
        SELECT p.subject FROM device_key AS k LEFT JOIN person AS p ON p.number = k.person WHERE k.key = ?
        """)
    private static let laterKeys = StatementText(
        "device_key", "SELECT key FROM device_key WHERE key > ? ORDER BY key LIMIT ?")
    private static let tokenPlace = StatementText(
        "push_token",
        """
        SELECT p.subject FROM push_token AS t LEFT JOIN person AS p ON p.number = t.person WHERE t.code = ?
        """)

    final func deviceKeys(after key: KeyID?, limit: Int) throws -> [KeyID] {
        var keys: [KeyID] = []
        try gate.scan(
            Self.laterKeys,
            {
                // Before the first id there is the empty one.
                if let key { $0.add(key) } else { $0.add([UInt8]()) }
                $0.add(Int64(limit))
            }
        ) { row in
            keys.append(try row.id(KeyID.self))
            return true
        }
        return keys
    }

    final func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        let place = try gate.first(Self.keyPlace, { $0.add(key) }, read: { try $0.id(SubjectID.self) })
        guard let place else { return nil }
        guard let record = try state(of: place)?.key(key) else {
            throw StoreError.damaged(
                table: "device_key", row: key.hexadecimal, "the index leads to somebody without this key")
        }
        return record
    }

    final func device(withToken identity: String) throws -> DeviceRecord? {
        let code = mappings.code(ofToken: identity)
        let place = try gate.first(Self.tokenPlace, { $0.add(code) }, read: { try $0.id(SubjectID.self) })
        guard let place else { return nil }
        let device = try state(of: place)?.devices.first { $0.isActive && $0.tokenIdentity == identity }
        guard let device else {
            throw StoreError.damaged(
                table: "push_token", row: Hexadecimal.encode(code.prefix(16)),
                "the index leads to somebody without an active device of this token")
        }
        return device
    }

    private static let addressPlaces = StatementText(
        "address_code",
        """
        SELECT p.subject FROM address_code AS a LEFT JOIN person AS p ON p.number = a.person
        WHERE a.code = ?
        """)

    final func holders(of address: AddressKey) throws -> [SubjectID] {
        try mailboxHolders(of: mappings.code(of: address))
    }

    final func mailboxHolders(of hash: [UInt8]) throws -> [SubjectID] {
        try gate.every(Self.addressPlaces, { $0.add(hash) }, read: { try $0.id(SubjectID.self) })
    }

    private static let peopleAfter = StatementText(
        "person", "SELECT subject FROM person WHERE subject > ? ORDER BY subject LIMIT ?")

    /// On the index alone.
    final func people(after subject: SubjectID?, limit: Int) throws -> [SubjectID] {
        try gate.every(Self.peopleAfter) {
            $0.add(subject?.bytes ?? [])
            $0.add(Int64(limit))
        } read: {
            try $0.id(SubjectID.self)
        }
    }

    // MARK: Ledgers

    private static let ledger = StatementText(
        "ledger",
        "SELECT position, sealed FROM ledger WHERE person = ? AND kind = ? ORDER BY position")

    final func consentRecords(of subject: SubjectID) throws -> [ConsentRecord] {
        try ledger(.consent, of: subject, count: try state(of: subject)?.consentCount) { fields, position in
            try ConsentRecord(sealedFields: fields, subject: subject, sequence: position)
        }
    }

    final func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        try ledger(.choice, of: subject, count: try state(of: subject)?.choiceCount) { fields, _ in
            try PreferenceRecord(sealedFields: fields, subject: subject)
        }
    }

    private static let ledgerEnd = StatementText(
        "ledger", "SELECT max(position) FROM ledger WHERE person = ? AND kind = ?")

    final func ledgerEnds(of subject: SubjectID) throws -> LedgerEnds {
        guard let person = try person(subject) else { return LedgerEnds() }
        func end(_ kind: LedgerKind) throws -> Int64 {
            try gate.first(Self.ledgerEnd) {
                $0.add(person)
                $0.add(kind.rawValue)
            } read: {
                $0.optionalInteger()
            }.flatMap(\.self) ?? 0
        }
        return LedgerEnds(consentCount: try end(.consent), choiceCount: try end(.choice))
    }

    /// - Parameter count: The number of records, as the person's state says: a missing one is damage as well.
    private func ledger<Record>(
        _ kind: LedgerKind, of subject: SubjectID, count: Int64?,
        _ read: (_ fields: [UInt8], _ position: Int64) throws -> Record
    ) throws -> [Record] {
        guard let count, let person = try person(subject) else { return [] }
        let records = try gate.every(Self.ledger) {
            $0.add(person)
            $0.add(kind.rawValue)
        } read: { row in
            let position = row.integer()
            let fields = try open(row.byteArray(), in: LedgerKind.column, row: kind.row(subject, position))
            return try read(fields, position)
        }
        guard records.count == count else {
            throw StoreError.damaged(
                table: LedgerKind.table, row: "\(person)/\(kind.rawValue)",
                "there are \(records.count) of \(count) events")
        }
        return records
    }
}
