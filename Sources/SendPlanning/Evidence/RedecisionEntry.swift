import AuditTrail
import CanonicalJSON
package import GateVocabulary

/// The evidence of looking again at a message that waits: because its time came, because it waited long, or
/// because something about the recipient changed.
///
///     {"cause","decision","destination","facts","index","kind":"redecision","message_id","policy",
///      "request":{"caller","channel","critical","type"},"send_id","subject","time","v":1}
package struct RedecisionEntry: Hashable, Sendable {
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

    package static let kind = EntryKind.redecision.text

    /// Canonical bytes, at most 65,535.
    package func encode(index: UInt64, time: Instant) throws(EntryError) -> [UInt8] {
        var entry = MemberWriter(byteCapacity: 1536)
        entry.text("cause", cause)
        entry.member("decision") { EntryWriting.append(decision, to: &$0) }
        entry.hexadecimal("destination", destination)
        entry.member("facts") { FactFields.append(facts, .all, to: &$0) }
        entry.integer("index", Int64(index))
        entry.text("kind", Self.kind)
        entry.uuid("message_id", message)
        entry.text("policy", policy.text)
        entry.member("request") { CanonicalJSON.append(.object(request.json), to: &$0) }
        entry.uuid("send_id", send)
        entry.hexadecimal("subject", subject)
        entry.integer("time", time.milliseconds)
        entry.integer("v", 1)
        return try EntryFrame.checked(entry.end())
    }

    /// - Returns: The entry with the place and time it was recorded at.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: RedecisionEntry) {
        let (object, kind) = try EntryFrame.object(bytes)
        guard kind == Self.kind else { throw .otherKind(kind) }
        return try read(object, bytes: bytes)
    }

    static func read(
        _ object: JSONObject, bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: RedecisionEntry) {
        let found: (index: UInt64, time: Instant, entry: RedecisionEntry)
        do throws(JSONShapeError) {
            found = try parse(object)
        } catch {
            throw EntryError(error)
        }
        guard try found.entry.encode(index: found.index, time: found.time) == bytes else {
            throw .contradictory(what: "facts")
        }
        return found
    }

    private static func parse(
        _ object: JSONObject
    ) throws(JSONShapeError) -> (index: UInt64, time: Instant, entry: RedecisionEntry) {
        var members = JSONMembers(object, at: .root)
        let (index, time) = try EntryFrame.header(&members)
        var facts = Facts()
        _ = try FactFields.take(
            try members.required("facts", EntryValue.object), at: .root.appending("facts"), into: &facts)
        let request = try members.required("request", EntryValue.object)
        let decision = try members.required("decision", EntryValue.object)
        let entry = RedecisionEntry(
            send: try members.required("send_id", EntryValue.uuid),
            message: try members.required("message_id", EntryValue.uuid),
            destination: try members.required("destination", EntryValue.hexadecimal),
            subject: try members.required("subject", EntryValue.hexadecimal),
            request: try AttestedRequest(json: request, at: .root.appending("request")), facts: facts,
            decision: try Decision(json: decision, at: .root.appending("decision")),
            policy: try members.required("policy", EntryValue.digest),
            cause: try members.required("cause", JSONShape.text))
        try members.refuseOthers()
        return (index, time, entry)
    }
}
