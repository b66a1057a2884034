import GateRecords
import GateSteps
import GateVocabulary

/// What stands in clear of a waiting message: in the columns of `outbox`, or among the others of one row of `offered`.
struct OutboxRow: Record, StoredValue {
    var number: Int64 = 0
    /// Numbers of words in ``StringTable``.
    var caller: Int64 = 0
    var type: Int64 = 0
    var byteCount: Int64 = 0
    /// Without its sealed part.
    var head: OutboxRecord

    static let blank = Self(
        head: OutboxRecord(
            message: .blank, send: .blank, subject: .blank, destination: .blank,
            request: AttestedRequest(
                caller: CallerName(""), type: TypeID(""), channel: .push, critical: false),
            category: .security, tier: .critical, state: .ready, form: .never, interruption: .passive,
            key: nil, headers: [], body: [], facts: [], decidedAt: .unstated, notBefore: .unstated,
            expiresAt: .unstated))

    static let fields = Fields<Self> { fields in
        fields.kept("number", \.number, "Its place in the order of arrival.")
        fields.kept("message", \.head.message, "Its id.")
        fields.kept("send", \.head.send, "The send.")
        fields.kept("subject", \.head.subject, "Whom it is for.")
        fields.kept("destination", \.head.destination, "Where it goes.")
        fields.kept("caller", \.caller, "Who sent it.")
        fields.kept("type", \.type, "The type.")
        fields.kept("channel", \.head.request.channel, "The channel.")
        fields.kept("critical", \.head.request.critical, "Whether it was asked to break through.")
        fields.kept("category", \.head.category, "The category of the type.")
        fields.kept("tier", \.head.tier, "How urgent it is.")
        fields.kept("state", \.head.state, "What it waits for.")
        fields.kept("form", \.head.form, "What the payload may carry.")
        fields.kept("interruption", \.head.interruption, "How the device is asked to interrupt.")
        fields.kept("key", \.head.key, "The device key that the body is sealed to.")
        fields.kept("decided_at", \.head.decidedAt, "When it was decided.")
        fields.kept("not_before", \.head.notBefore, "When its turn comes.")
        fields.kept("expires_at", \.head.expiresAt, "When it is worth nothing any more.")
        fields.kept("attempt_count", \.head.attemptCount, "How often a hand-over began.")
        fields.kept("attempted_at", \.head.attemptedAt, "When the last began.")
        fields.kept("byte_count", \.byteCount, "Bytes of the sealed part.")
    }

    /// What no statement asks for: one column of `outbox`.
    private static let restFields = fields.without([
        "number", "message", "send", "subject", "caller", "not_before", "attempt_count", "attempted_at",
        "byte_count",
    ])
    private static let restLayout: UInt8 = 1

    var rest: [UInt8] {
        var fields = RowWriter(version: Self.restLayout)
        Self.restFields.write(row: self, to: &fields)
        return fields.bytes
    }

    mutating func take(rest bytes: [UInt8]) throws {
        var row = self
        self = try RowReader.read(bytes, layout: Self.restLayout, of: "outbox") {
            try Self.restFields.read(row: &$0, into: &row)
            return row
        }
    }

    /// Times of trying change without the sealed part being opened.
    private static let boundFields = fields.without([
        "not_before", "attempt_count", "attempted_at", "byte_count",
    ])

    /// The columns that the sealed part is bound to in `outbox`: those that are written together with it. A deferred request that passed for a
    /// finished body would leave the gateway as it is.
    func bound(rank: Int64) -> [UInt8] {
        var fields = RowWriter(version: 2)
        fields.put(rank)
        fields.put(head.request.caller.text)
        fields.put(head.request.type.text)
        Self.boundFields.write(row: self, to: &fields)
        return fields.bytes
    }
}

extension BodyForm: StoredValue {}
extension Interruption: StoredValue {}
extension OutboxRecord.State: StoredValue {}
extension Tier: StoredValue {}
