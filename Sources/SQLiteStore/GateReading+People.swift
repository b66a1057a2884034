import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let keyPlace = StatementText(
        "device_key",
        """
        SELECT device_key.key, held.id, held.tag, held.sealed, person.subject FROM device_key
        JOIN held ON held.id = device_key.held JOIN person ON person.number = held.id >> 24
        WHERE device_key.key = ?
        """)

    private static let tokenPlace = StatementText(
        "push_token",
        """
        SELECT push_token.held, held.id, held.tag, held.sealed, person.subject FROM push_token
        JOIN held ON held.id = push_token.held JOIN person ON person.number = held.id >> 24
        WHERE push_token.code = ?
        """)

    final func recipient(_ subject: SubjectID) throws -> RecipientRecord? {
        guard let row = try held(.recipient, of: subject).first else { return nil }
        return try opened(row, of: subject) { try RecipientRecord(sealedFields: $0, subject: subject) }
    }

    final func devices(of subject: SubjectID) throws -> [DeviceRecord] {
        try held(.device, of: subject).map { row in
            try opened(row, of: subject) {
                try DeviceRecord(sealedFields: $0, subject: subject, tag: try tag(of: row))
            }
        }.sorted { $0.tag < $1.tag }
    }

    final func device(withToken identity: String) throws -> DeviceRecord? {
        let code = mappings.code(ofToken: identity)
        let place = try gate.first(Self.tokenPlace, { $0.add(code) }, read: Self.place)
        guard let place else { return nil }
        return try opened(place.held, of: place.subject) { fields in
            let record = try DeviceRecord(
                sealedFields: fields, subject: place.subject, tag: try tag(of: place.held))
            guard record.isActive, record.tokenIdentity == identity else {
                throw StoreError.damaged(
                    table: "push_token", row: "\(place.held.id)", "the index leads to another device")
            }
            return record
        }
    }

    final func addresses(of subject: SubjectID) throws -> [AddressRecord] {
        try held(.address, of: subject).map { row in
            try opened(row, of: subject) {
                try AddressRecord(sealedFields: $0, subject: subject, tag: try tag(of: row))
            }
        }.sorted { $0.tag < $1.tag }
    }

    final func deviceKeys(of subject: SubjectID, device: Tag) throws -> [DeviceKeyRecord] {
        try held(.deviceKey, of: subject).filter { $0.tag == device }.map { row in
            try opened(row, of: subject) {
                try DeviceKeyRecord(sealedFields: $0, subject: subject, device: device)
            }
        }.sorted { ($0.createdAt, $0.key) > ($1.createdAt, $1.key) }
    }

    final func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        let place = try gate.first(Self.keyPlace, { $0.add(key) }, read: Self.place)
        guard let place else { return nil }
        let record = try opened(place.held, of: place.subject) { fields in
            try DeviceKeyRecord(
                sealedFields: fields, subject: place.subject, device: try tag(of: place.held))
        }
        guard record.key == key else {
            throw StoreError.damaged(
                table: "device_key", row: key.hexadecimal, "the index leads to another key")
        }
        return record
    }

    /// A row of `held` found through an index, and whose it is.
    private static func place(_ row: inout StoredRow) throws -> (held: Held, subject: SubjectID) {
        _ = row.byteArray()
        let id = row.integer()
        return try DamageLog.placing("held", row: "\(id)") {
            let tag = try row.optionalID(Tag.self)
            let sealed = row.byteArray()
            let subject = try DamageLog.placing("person", row: "\(Held.person(of: id))") {
                try row.id(SubjectID.self)
            }
            return (held: Held(id: id, tag: tag, sealed: sealed), subject: subject)
        }
    }

    private func tag(of row: Held) throws -> Tag {
        guard let tag = row.tag else { throw StoreError.damaged(table: "held", "the row has no tag") }
        return tag
    }

    final func consentEvents(of subject: SubjectID) throws -> [ConsentEvent] {
        try held(.consent, of: subject).map { row in
            try opened(row, of: subject) {
                try ConsentEvent(sealedFields: $0, subject: subject, sequence: row.slot)
            }
        }
    }

    final func preferences(of subject: SubjectID) throws -> [PreferenceRecord] {
        guard let row = try held(.preferences, of: subject).first else { return [] }
        return try opened(row, of: subject) {
            try PreferenceRecord.list(sealedFields: $0, subject: subject)
        }
    }

    final func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        try held(.preferenceHistory, of: subject).flatMap { row in
            try opened(row, of: subject) {
                try PreferenceRecord.list(sealedFields: $0, subject: subject)
            }
        }
    }

    final func permissionPrompts(of subject: SubjectID) throws -> [PermissionPrompt] {
        try held(.permissionPrompt, of: subject).map { row in
            try opened(row, of: subject) { try PermissionPrompt(sealedFields: $0, subject: subject) }
        }
    }
}
