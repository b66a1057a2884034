import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

// How each record's private fields lie in its sealed column.

extension ConsentRecord: SealedRow {
    static let table = "consent"
    static let layouts: ClosedRange<UInt8> = 1...1
    var fieldByteCount: Int { 320 }

    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ record: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            subject: fields.subject(record?.subject), id: try fields.required(record?.id),
            idTag: try fields.required(record?.idTag), purpose: try fields.required(record?.purpose),
            channel: try fields.required(record?.channel), address: try fields.optional(record?.address),
            state: try fields.required(record?.state), eventTime: try fields.required(record?.eventTime),
            statedTime: try fields.optional(record?.statedTime),
            receivedAt: try fields.required(record?.receivedAt), method: try fields.required(record?.method),
            source: try fields.required(record?.source),
            jurisdiction: try fields.optional(record?.jurisdiction),
            notice: try fields.optional(record?.notice), expiresAt: try fields.optional(record?.expiresAt),
            withdraws: try fields.optional(record?.withdraws),
            previousHash: try fields.required(record?.previousHash),
            entryIndex: try fields.integer(record?.entryIndex, in: 0...StoredRow.countMax))
    }

    /// - Parameter sequence: The column in clear.
    init(sealedFields: [UInt8], subject: SubjectID, sequence: Int64) throws {
        try self.init(sealedFields: sealedFields, subject: subject)
        self.sequence = sequence
    }
}

extension ConsentRecord.NoticeReference: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ notice: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(
            id: try fields.required(notice?.id), version: try fields.required(notice?.version),
            sha256: try fields.required(notice?.sha256), language: try fields.required(notice?.language))
    }
}

extension SendRecord {
    /// The sealed part of a send. It holds the type, because an unknown one is the caller's text.
    struct Details: SealedRow, Equatable {
        var type: TypeID
        var requestID: String
        var destinationNames: DestinationNames

        static let table = "send"
        static let layouts: ClosedRange<UInt8> = 1...1
        var fieldByteCount: Int { 192 }

        static func exchange<Coder: FieldCoder & ~Copyable>(
            _ details: Self?, with fields: inout Coder
        ) throws(Coder.Failure) -> Self {
            Self(
                type: try fields.required(details?.type), requestID: try fields.required(details?.requestID),
                destinationNames: try fields.required(details?.destinationNames))
        }
    }
}

extension DestinationNames: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ names: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(try fields.list(names?.list))
    }
}

extension DestinationNames.Name: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ name: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self {
        Self(tag: try fields.required(name?.tag), text: try fields.required(name?.text))
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
        static let layouts: ClosedRange<UInt8> = 1...3
        /// Exact: messages that are offered together are parted by it.
        var fieldByteCount: Int { 1 + 4 * 4 + byteCount + (eventTag == nil ? 0 : 16) + 2 }

        static func exchange<Coder: FieldCoder & ~Copyable>(
            _ content: Self?, with fields: inout Coder
        ) throws(Coder.Failure) -> Self {
            Self(
                headers: try fields.required(content?.headers), body: try fields.required(content?.body),
                facts: try fields.required(content?.facts),
                eventTag: fields.hasLayout(2) ? try fields.countedTag(content?.eventTag) : nil,
                mayHaveArrived: fields.hasLayout(2) ? try fields.required(content?.mayHaveArrived) : false,
                isCancelled: fields.hasLayout(3) ? try fields.required(content?.isCancelled) : false)
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
