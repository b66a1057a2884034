import GateVocabulary
import GatewayPipeline

// How each record's private fields lie in its sealed column. The version is the first byte; a changed
// order is a new version, and old rows are read by the old order until they are written again.

extension RecipientRecord {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1)
        fields.put(optional: region)
        fields.put(optional: age)
        fields.put(optional: locale)
        fields.put(optional: timeZone)
        fields.put(privacy)
        fields.put(pushEnabled)
        fields.put(quietHours) { fields, hours in
            fields.put(Int64(hours.startMinute))
            fields.put(Int64(hours.endMinute))
        }
        fields.put(registeredAt)
        fields.put(updatedAt)
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: "recipient")
        self.init(
            subject: subject, region: try fields.optional { try $0.region() },
            age: try fields.optional { try $0.code() }, locale: try fields.optional { try $0.text() },
            timeZone: try fields.optional { try $0.text() }, privacy: try fields.code(),
            pushEnabled: try fields.flag(),
            quietHours: try fields.optional {
                QuietHours(
                    startMinute: Int(try $0.integer(in: 0...1439)),
                    endMinute: Int(try $0.integer(in: 0...1439)))
            },
            registeredAt: try fields.instant(), updatedAt: try fields.instant())
        try fields.finish()
    }
}

extension DeviceRecord {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1, capacity: 384)
        fields.put(id.text)
        fields.put(platform)
        fields.put(app)
        fields.put(token)
        fields.put(optional: region)
        fields.put(optional: timeZone)
        fields.put(osPermission)
        fields.put(criticalAlerts)
        fields.put(isActive)
        fields.put(seenAt)
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID, tag: Tag) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: "device")
        self.init(
            subject: subject, tag: tag, id: DestinationID(try fields.text()), platform: try fields.code(),
            app: try fields.text(), token: try fields.text(), region: try fields.optional { try $0.region() },
            timeZone: try fields.optional { try $0.text() }, osPermission: try fields.code(),
            criticalAlerts: try fields.flag(), isActive: try fields.flag(), seenAt: try fields.instant())
        try fields.finish()
    }
}

extension AddressRecord {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1)
        fields.put(id.text)
        fields.put(channel)
        fields.put(value)
        fields.put(optional: verifiedAt)
        fields.put(updatedAt)
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID, tag: Tag) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: "address")
        self.init(
            subject: subject, tag: tag, id: DestinationID(try fields.text()), channel: try fields.code(),
            value: try fields.text(), verifiedAt: try fields.optional { try $0.instant() },
            updatedAt: try fields.instant())
        try fields.finish()
    }
}

extension DeviceKeyRecord {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 2, capacity: 256)
        fields.put(key)
        fields.put(suite)
        fields.put(publicKey)
        fields.put(state)
        fields.put(createdAt)
        fields.put(changedAt)
        fields.put(challenge) { fields, challenge in
            fields.put(challenge.expectedProof)
            fields.put(challenge.expectedOldKeyProof) { $0.put($1) }
            fields.put(challenge.oldKey) { $0.put($1) }
            fields.put(challenge.expiresAt)
            fields.put(Int64(challenge.triesLeft))
        }
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID, device: Tag) throws {
        // Layout 1 did not count tries: its challenges were void after one.
        let countsTries = sealedFields.first != 1
        var fields = try FieldReader(sealedFields, version: countsTries ? 2 : 1, table: "device_key")
        let key = try fields.id(KeyID.self)
        let suite = try fields.text()
        let publicKey = try fields.byteArray()
        let state = try fields.text()
        let createdAt = try fields.instant()
        let changedAt = try fields.instant()
        let challenge = try fields.optional { fields in
            PendingChallenge(
                expectedProof: try fields.byteArray(),
                expectedOldKeyProof: try fields.optional { try $0.byteArray() },
                oldKey: try fields.optional { try $0.id() }, expiresAt: try fields.instant(),
                triesLeft: countsTries ? Int(try fields.integer(in: 0...Int64(Int32.max))) : 1)
        }
        try fields.finish()
        self.init(
            key: key, subject: subject, device: device, suite: suite, publicKey: publicKey, state: state,
            challenge: challenge, createdAt: createdAt, changedAt: changedAt)
    }
}

extension PermissionPrompt {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1)
        fields.put(device)
        fields.put(shownAt)
        fields.put(optional: answer)
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: "permission_prompt")
        self.init(
            subject: subject, device: try fields.id(), shownAt: try fields.instant(),
            answer: try fields.optional { try $0.text() })
        try fields.finish()
    }
}

extension ConsentEvent {
    var sealedFields: [UInt8] {
        var fields = FieldWriter(version: 1, capacity: 320)
        fields.put(id)
        fields.put(idTag)
        fields.put(purpose.text)
        fields.put(channel)
        fields.put(optional: address)
        fields.put(state)
        fields.put(eventTime)
        fields.put(receivedAt)
        fields.put(method)
        fields.put(source.text)
        fields.put(optional: jurisdiction)
        fields.put(notice) { fields, notice in
            fields.put(notice.id)
            fields.put(notice.version)
            fields.put(notice.sha256)
            fields.put(notice.language)
        }
        fields.put(optional: expiresAt)
        fields.put(optional: withdraws)
        fields.put(previousHash)
        fields.put(Int64(bitPattern: entryIndex))
        return fields.bytes
    }

    init(sealedFields: [UInt8], subject: SubjectID, sequence: Int64) throws {
        var fields = try FieldReader(sealedFields, version: 1, table: "consent")
        self.init(
            sequence: sequence, subject: subject, id: try fields.text(), idTag: try fields.id(),
            purpose: Purpose(try fields.text()), channel: try fields.code(),
            address: try fields.optional { try $0.id() }, state: try fields.code(),
            eventTime: try fields.instant(), receivedAt: try fields.instant(), method: try fields.code(),
            source: CallerName(try fields.text()), jurisdiction: try fields.optional { try $0.text() },
            notice: try fields.optional {
                NoticeReference(
                    id: try $0.text(), version: try $0.text(), sha256: try $0.text(), language: try $0.text())
            },
            expiresAt: try fields.optional { try $0.instant() },
            withdraws: try fields.optional { try $0.id() }, previousHash: try fields.text(),
            entryIndex: UInt64(try fields.integer(in: 0...StoredRow.countMax)))
        try fields.finish()
    }
}

extension PreferenceRecord {
    static func sealedFields(of records: [PreferenceRecord]) -> [UInt8] {
        var fields = FieldWriter(version: 1, capacity: 16 + records.count * 64)
        fields.put(Int64(records.count))
        for record in records {
            fields.put(record.scope)
            fields.put(record.channel)
            fields.put(optional: record.destination)
            fields.put(record.state)
            fields.put(record.source)
            fields.put(record.at)
            fields.put(record.caller.text)
        }
        return fields.bytes
    }

    static func list(sealedFields: [UInt8], subject: SubjectID) throws -> [PreferenceRecord] {
        var fields = try FieldReader(sealedFields, version: 1, table: "preference")
        let count = try fields.integer()
        var records: [PreferenceRecord] = []
        // A wrong count ends the loop with an error after the last byte, not with an allocation.
        var read: Int64 = 0
        while read < count {
            records.append(
                PreferenceRecord(
                    subject: subject, scope: try fields.text(), channel: try fields.code(),
                    destination: try fields.optional { try $0.id() }, state: try fields.code(),
                    source: try fields.code(), at: try fields.instant(), caller: CallerName(try fields.text())
                ))
            read += 1
        }
        try fields.finish()
        return records
    }

    /// Whether both are choices about the same thing, so that the later one replaces the earlier.
    func isSameChoice(as other: PreferenceRecord) -> Bool {
        scope == other.scope && channel == other.channel && destination == other.destination
    }
}

extension SendRecord {
    /// What is sealed of a send. The type is here because an unknown one is text somebody chose.
    struct Details {
        var type: TypeID
        var requestID: String
        var destinationNames: [Tag: String]

        var sealedFields: [UInt8] {
            var fields = FieldWriter(version: 1, capacity: 192)
            fields.put(type.text)
            fields.put(requestID)
            fields.put(Int64(destinationNames.count))
            for (tag, name) in destinationNames.sorted(by: { $0.key < $1.key }) {
                fields.put(tag)
                fields.put(name)
            }
            return fields.bytes
        }

        init(type: TypeID, requestID: String, destinationNames: [Tag: String]) {
            self.type = type
            self.requestID = requestID
            self.destinationNames = destinationNames
        }

        init(sealedFields: [UInt8]) throws {
            var fields = try FieldReader(sealedFields, version: 1, table: "send")
            type = TypeID(try fields.text())
            requestID = try fields.text()
            destinationNames = [:]
            let count = try fields.integer()
            var read: Int64 = 0
            while read < count {
                let tag = try fields.id(Tag.self)
                destinationNames[tag] = try fields.text()
                read += 1
            }
            try fields.finish()
        }
    }
}

extension OutboxRecord {
    /// What is sealed of a waiting message.
    struct Content {
        var headers: [UInt8]
        var body: [UInt8]
        var facts: [UInt8]
        var event: Tag?
        var mayHaveArrived: Bool

        var byteCount: Int { headers.count + body.count + facts.count }

        var sealedFields: [UInt8] {
            var fields = FieldWriter(version: 2, capacity: 40 + byteCount)
            fields.put(headers)
            fields.put(body)
            fields.put(facts)
            fields.put(event?.bytes ?? [])
            fields.put(mayHaveArrived)
            return fields.bytes
        }

        init(headers: [UInt8], body: [UInt8], facts: [UInt8], event: Tag?, mayHaveArrived: Bool) {
            self.headers = headers
            self.body = body
            self.facts = facts
            self.event = event
            self.mayHaveArrived = mayHaveArrived
        }

        init(sealedFields: [UInt8]) throws {
            var fields = try FieldReader(sealedFields, versions: 1...2, table: "outbox")
            headers = try fields.byteArray()
            body = try fields.byteArray()
            facts = try fields.byteArray()
            let tag = fields.version >= 2 ? try fields.byteArray() : []
            event = Tag(bytes: tag)
            guard tag.isEmpty || event != nil else {
                throw StoreError.damaged(table: "outbox", "a sealed row holds a tag of \(tag.count) bytes")
            }
            mayHaveArrived = fields.version >= 2 ? try fields.flag() : false
            try fields.finish()
        }
    }
}
