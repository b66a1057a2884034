package import GateRecords
package import GateSteps
package import GateVocabulary

// How each record's private fields lie in its sealed column.

extension RecipientState: SealedRow {
    /// Bytes of one state at most, before they are sealed: 20 devices with as many keys as are kept, 20 addresses and every
    /// consent and choice at each of them take less than half of it.
    static let byteCountMax = 1 << 20

    static let table = "person"
    static let layout: UInt8 = 5
    var fieldByteCount: Int { 1024 }
}

/// One line of the history.
extension PreferenceRecord: SealedRow {
    static let table = LedgerKind.choice.name
    static let layout: UInt8 = 2
    var fieldByteCount: Int { 128 }
}

extension ConsentRecord: SealedRow {
    static let table = "consent"
    static let layout: UInt8 = 2
    var fieldByteCount: Int { 320 }

    /// - Parameter sequence: The column in clear.
    init(sealedFields: [UInt8], subject: SubjectID, sequence: Int64) throws {
        try self.init(sealedFields: sealedFields, subject: subject)
        self.sequence = sequence
    }
}

extension SendRecord {
    /// The sealed part of a send. It holds the type, because an unknown one is the caller's text.
    struct Details: SealedRow, Record {
        var type: TypeID
        var requestID: String
        var destinationNames: DestinationNames

        static let table = "send"
        static let layout: UInt8 = 1
        var fieldByteCount: Int { 192 }

        static let blank = Self(type: TypeID(""), requestID: "", destinationNames: [:])
        static let fields = Fields<Self> { fields in
            fields.secret(
                "type", \.type, "What was asked for; only the type of a send that counts stands in clear.")
            fields.secret("request_id", \.requestID, "The caller's id.")
            fields.secret("destinations", \.destinationNames, "What its owner calls each destination.")
        }
    }
}

extension TypeID: StoredValue {}

/// As its ``TraceParent/bytes``.
extension TraceParent: StoredValue {
    package func write(row: inout RowWriter) { bytes.withUnsafeBytes { row.put(raw: $0) } }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        guard let trace = Self(bytes: try row.bytes(count: Int64(byteCount))) else {
            throw DamagedRow("a trace does not have \(byteCount) bytes")
        }
        return trace
    }
}

extension DestinationNames: StoredValue {
    package func write(row: inout RowWriter) { list.write(row: &row) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        Self(try [Name].read(row: &row))
    }
}

extension DestinationNames.Name: StoredValue {
    package func write(row: inout RowWriter) {
        row.put(tag)
        row.put(text)
    }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        Self(tag: try row.id(), text: try row.text())
    }
}

extension OutboxRecord {
    /// The sealed part of a waiting message.
    struct Content: SealedRow, Record {
        var headers: [UInt8] = []
        var body: [UInt8] = []
        var facts: [UInt8] = []
        var eventTag: Tag?
        var traceParent: TraceParent?
        var mayHaveArrived = false
        var isCancelled = false

        var byteCount: Int { headers.count + body.count + facts.count }

        static let table = "outbox"
        static let layout: UInt8 = 5
        /// Exact: messages that are offered together are parted by it.
        var fieldByteCount: Int {
            let optional = (eventTag == nil ? 0 : 16) + (traceParent == nil ? 0 : TraceParent.byteCount)
            return 1 + 3 * 4 + byteCount + 2 + optional + 2
        }

        static let blank = Self()
        static let fields = Fields<Self> { fields in
            fields.secret("headers", \.headers, "The provider's headers.")
            fields.secret(
                "body", \.body, "The provider's body; of one that is not composed yet, what was asked.")
            fields.secret("facts", \.facts, "The facts that do not change while it waits.")
            fields.secret("event", \.eventTag, "What it tells, of a type that is told once.")
            fields.since(4) {
                $0.secret("traceparent", \.traceParent, "The trace of the request that asked for it.")
            }
            fields.secret("may_have_arrived", \.mayHaveArrived, "Whether the hop may have it.")
            fields.secret("cancelled", \.isCancelled, "Whether it was cancelled while it was handed over.")
        }
    }

    /// What stands in clear of it.
    var withoutContent: Self {
        var head = self
        head.take(.blank)
        head.mayHaveArrived = attemptCount > 0
        return head
    }
}

extension OutboxRecord.Content {
    init(_ record: OutboxRecord) {
        headers = record.headers
        body = record.body
        facts = record.facts
        eventTag = record.eventTag
        traceParent = record.traceParent
        mayHaveArrived = record.mayHaveArrived
        isCancelled = record.isCancelled
    }
}
