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
        var entry = CanonicalWriter(capacity: 2_048)
        entry.object { json in
            json.member("cause", cause)
            json.member("decision") { DecisionBytes.write(decision, to: &$0) }
            json.member("destination", hexadecimal: destination)
            json.member("facts") { EncodedFacts(facts).write(.all, to: &$0) }
            json.member("index", Int64(index))
            json.member("kind", Self.kind)
            json.member("message_id", uuid: message)
            json.member("policy", policy.text)
            json.member("request") { request.write(to: &$0) }
            json.member("send_id", uuid: send)
            json.member("subject", hexadecimal: subject)
            json.member("time", time)
            json.member("v", 1)
        }
        return try EntryFrame.checked(entry.finish())
    }

    /// - Returns: The entry with the place and time it was recorded at. Encoding it gives `bytes` again.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: RedecisionEntry) {
        let found = try EntryFrame.read(bytes, kind: kind, parse)
        return (found.index, found.time, found.entry)
    }

    private struct Found {
        var index: UInt64
        var time: Instant
        var entry: RedecisionEntry
    }

    private static func parse(_ cursor: inout EntryCursor) throws(EntryError) -> Found {
        var members = try MemberCursor(&cursor)
        try members.expect("\"cause\":", &cursor)
        let cause = try cursor.text(byteCountMax: 128)
        try members.expect("\"decision\":", &cursor)
        let decision = try DecisionBytes.read(&cursor)
        try members.expect("\"destination\":", &cursor)
        let destination: Tag = try cursor.hexadecimal()
        try members.expect("\"facts\":", &cursor)
        var facts = Facts()
        _ = try facts.read(&cursor)
        try members.expect("\"index\":", &cursor)
        let index: UInt64 = try cursor.unsigned()
        try members.expect("\"kind\":", &cursor)
        try cursor.expect("\"redecision\"")
        try members.expect("\"message_id\":", &cursor)
        let message: MessageID = try cursor.uuid()
        try members.expect("\"policy\":", &cursor)
        let policy = try cursor.digest()
        try members.expect("\"request\":", &cursor)
        let request = try AttestedRequest(&cursor)
        try members.expect("\"send_id\":", &cursor)
        let send: SendID = try cursor.uuid()
        try members.expect("\"subject\":", &cursor)
        let subject: SubjectID = try cursor.hexadecimal()
        try members.expect("\"time\":", &cursor)
        let time = try cursor.instant()
        try members.expect("\"v\":", &cursor)
        try cursor.expect("1")
        try members.end(&cursor)
        return Found(
            index: index, time: time,
            entry: RedecisionEntry(
                send: send, message: message, destination: destination, subject: subject, request: request,
                facts: facts, decision: decision, policy: policy, cause: cause))
    }
}
