package import GateRecords
package import GateSteps
import GateVocabulary

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
    struct Details: SealedRow, Equatable {
        var type: TypeID
        var requestID: String
        var destinationNames: DestinationNames

        static let table = "send"
        static let layout: UInt8 = 1
        var fieldByteCount: Int { 192 }

        func write(row: inout RowWriter) {
            row.put(type.text)
            row.put(requestID)
            destinationNames.list.write(row: &row)
        }

        static func read(row: inout RowReader) throws(DamagedRow) -> Self {
            Self(
                type: TypeID(try row.text()), requestID: try row.text(),
                destinationNames: DestinationNames(try [DestinationNames.Name].read(row: &row)))
        }
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
    struct Content: SealedRow, Equatable {
        var headers: [UInt8]
        var body: [UInt8]
        var facts: [UInt8]
        var eventTag: Tag?
        var mayHaveArrived: Bool
        var isCancelled: Bool

        var byteCount: Int { headers.count + body.count + facts.count }

        static let table = "outbox"
        static let layout: UInt8 = 4
        /// Exact: messages that are offered together are parted by it.
        var fieldByteCount: Int { 1 + 3 * 4 + byteCount + (eventTag == nil ? 1 : 17) + 2 }

        func write(row: inout RowWriter) {
            row.put(headers)
            row.put(body)
            row.put(facts)
            row.put(eventTag) { $0.put($1) }
            row.put(mayHaveArrived)
            row.put(isCancelled)
        }

        static func read(row: inout RowReader) throws(DamagedRow) -> Self {
            Self(
                headers: try row.byteArray(), body: try row.byteArray(), facts: try row.byteArray(),
                eventTag: try row.flag() ? try row.id() : nil, mayHaveArrived: try row.flag(),
                isCancelled: try row.flag())
        }
    }
}

extension OutboxRecord.Content {
    init(_ record: OutboxRecord) {
        headers = record.headers
        body = record.body
        facts = record.facts
        eventTag = record.eventTag
        mayHaveArrived = record.mayHaveArrived
        isCancelled = record.isCancelled
    }
}
