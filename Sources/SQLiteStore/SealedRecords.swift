import GateSteps
import GateVocabulary
import GatewayPipeline
import RecipientModel

// How each record's private fields lie in its sealed column. The version is the first byte; a changed
// order is a new version, and old rows are read by the old order until they are written again.

extension ConsentRecord {
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

extension SendRecord {
    /// The sealed part of a send. It holds the type, because an unknown one is the caller's text.
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
    /// The sealed part of a waiting message.
    struct Content {
        var headers: [UInt8]
        var body: [UInt8]
        var facts: [UInt8]
        var event: Tag?
        var mayHaveArrived: Bool
        var isCancelled: Bool

        var byteCount: Int { headers.count + body.count + facts.count }

        fileprivate static let version: UInt8 = 3

        var sealedFields: [UInt8] {
            var fields = FieldWriter(version: Self.version, capacity: fieldByteCount)
            put(to: &fields)
            return fields.bytes
        }

        /// How many bytes ``sealedFields`` are.
        var fieldByteCount: Int { 1 + 4 * 4 + byteCount + (event == nil ? 0 : 16) + 2 }

        /// Writes ``sealedFields`` among others.
        func write(to fields: inout FieldWriter) {
            fields.put(byte: Self.version)
            put(to: &fields)
        }

        private func put(to fields: inout FieldWriter) {
            fields.put(headers)
            fields.put(body)
            fields.put(facts)
            fields.put(event?.bytes ?? [])
            fields.put(mayHaveArrived)
            fields.put(isCancelled)
        }
    }
}

extension OutboxRecord.Content {
    init(_ record: OutboxRecord) {
        headers = record.headers
        body = record.body
        facts = record.facts
        event = record.event
        mayHaveArrived = record.mayHaveArrived
        isCancelled = record.isCancelled
    }

    init(sealedFields: [UInt8], table: String = "outbox") throws {
        var fields = try FieldReader(sealedFields, versions: 1...Self.version, table: table)
        headers = try fields.byteArray()
        body = try fields.byteArray()
        facts = try fields.byteArray()
        let tag = fields.version >= 2 ? try fields.byteArray() : []
        event = Tag(bytes: tag)
        guard tag.isEmpty || event != nil else {
            throw StoreError.damaged(table: table, "a sealed row holds a tag of \(tag.count) bytes")
        }
        mayHaveArrived = fields.version >= 2 ? try fields.flag() : false
        isCancelled = fields.version >= 3 ? try fields.flag() : false
        try fields.finish()
    }
}
