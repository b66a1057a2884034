/// The evidence of looking again at a message that waits: because its time came, because it waited long, or
/// because something about the recipient changed.
///
///     {"cause","decision","destination","facts","index","kind":"redecision","message_id","policy",
///      "request":{"caller","channel","critical","type"},"send_id","subject","time","v":1}
package struct RedecisionEntry: Hashable, FieldObject {
    package var send: SendID
    package var message: MessageID
    package var destination: Tag
    package var subject: SubjectID
    package var request: AttestedRequest
    package var facts: Facts
    package var decision: Decision
    package var policy: PolicyDigest
    /// Why, by a name of ours: `due`, `old`, `consent_changed` and the like.
    package var cause: String

    package init(
        send: SendID, message: MessageID, destination: Tag, subject: SubjectID, request: AttestedRequest,
        facts: Facts, decision: Decision, policy: PolicyDigest, cause: String
    ) {
        self.send = send
        self.message = message
        self.destination = destination
        self.subject = subject
        self.request = request
        self.facts = facts
        self.decision = decision
        self.policy = policy
        self.cause = cause
    }

    package static let means = ""
    package static let blank = Self(
        send: SendID(high: 0, low: 0), message: MessageID(high: 0, low: 0), destination: Tag(high: 0, low: 0),
        subject: SubjectID(high: 0, low: 0), request: .blank, facts: Facts(), decision: .blank,
        policy: PolicyDigest(""), cause: "")

    @inline(__always)
    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("cause", \.cause, as: .name)
        try fields.required("decision", \.decision, "")
        try fields.required("destination", \.destination, "")
        try fields.required("facts", \.facts, "")
        try fields.required("message_id", \.message, "")
        try fields.required("policy", \.policy, "")
        try fields.required("request", \.request, as: AttestedRequest.recordedShape)
        try fields.required("send_id", \.send, "")
        try fields.required("subject", \.subject, "")
    }

    package mutating func complete() throws(FieldContradiction) {
        guard cause.utf8.count <= 128 else { throw FieldContradiction("cause", "expected at most 128 bytes") }
    }

    // These are called from other modules and are not generic: a generic function would look the key paths up when it runs.

    /// The whole entry.
    package func bytes(in envelope: EntryEnvelope) -> [UInt8] { write(in: envelope) }

    /// Reads a whole entry.
    package static func read(
        entry cursor: inout EntryCursor, in envelope: EntryEnvelope
    ) throws(EntryError) -> (envelope: EntryEnvelope, object: RedecisionEntry) {
        try read(&cursor, in: envelope)
    }
}
