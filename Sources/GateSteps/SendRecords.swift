import AuditTrail
package import GateVocabulary
import OpenSSLCrypto
import GateRecords
import SendPlanning

/// One decided send: the idempotency key and the way back to its entry.
package struct SendRecord: Hashable, Sendable {
    package var id: SendID
    package var caller: CallerName
    /// HMAC of the caller's id under the index key, 16 bytes; of the id with its content for a send that was refused for its
    /// shape. See ``IndexKey``; in shadow ``shadowIDHash(_:)``.
    package var idHash: [UInt8]
    /// HMAC of the canonical content under the index key, 32 bytes.
    package var contentMAC: [UInt8]
    package var subject: SubjectID?
    package var type: TypeID
    package var category: Category?
    package var channel: Channel
    package var receivedAt: Instant
    /// The entry that holds the decision; 0 until it is numbered inside the same transaction.
    package var entryIndex: UInt64
    /// The caller's id and the destinations' own names, for the answer; kept encrypted, gone with the person.
    package var requestID: String
    package var destinationNames: DestinationNames

    package init(
        id: SendID, caller: CallerName, idHash: [UInt8], contentMAC: [UInt8], subject: SubjectID?,
        type: TypeID, category: Category?, channel: Channel, receivedAt: Instant, entryIndex: UInt64,
        requestID: String, destinationNames: DestinationNames
    ) {
        self.id = id
        self.caller = caller
        self.idHash = idHash
        self.contentMAC = contentMAC
        self.subject = subject
        self.type = type
        self.category = category
        self.channel = channel
        self.receivedAt = receivedAt
        self.entryIndex = entryIndex
        self.requestID = requestID
        self.destinationNames = destinationNames
    }
}

extension SendRecord {
    /// The idempotency key of a send in shadow: one byte longer than that of the same id of a real one, so that neither is found
    /// by the other's, and a store tells them apart without a column of its own.
    ///
    /// - Parameter idHash: 16 bytes.
    package static func shadowIDHash(_ idHash: [UInt8]) -> [UInt8] { idHash + [1] }

    /// Whether it was decided and recorded only (decision SG-0082).
    package var isShadow: Bool { idHash.count > IndexKey.idHashByteCount }
}

/// What a send's destinations are called, by their tags. A list and no table, because nearly every send has one destination.
package struct DestinationNames: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    package struct Name: Hashable, Sendable {
        package let tag: Tag
        package let text: String

        package init(tag: Tag, text: String) {
            self.tag = tag
            self.text = text
        }
    }

    /// In the order of their tags.
    package let list: [Name]

    /// - Parameter names: Each of another destination.
    package init(_ names: [Name]) { list = names.count > 1 ? names.sorted { $0.tag < $1.tag } : names }

    package init(_ names: [Tag: String]) { self.init(names.map { Name(tag: $0.key, text: $0.value) }) }

    package init(dictionaryLiteral names: (Tag, String)...) {
        self.init(names.map { Name(tag: $0.0, text: $0.1) })
    }

    package subscript(tag: Tag) -> String? { list.first { $0.tag == tag }?.text }

    package var byTag: [Tag: String] {
        Dictionary(list.map { ($0.tag, $0.text) }, uniquingKeysWith: { first, _ in first })
    }
}

/// One message that waits to be handed to the next hop, or for its time.
package struct OutboxRecord: Hashable, Sendable {
    /// What the row waits for.
    package enum State: String, CaseIterable, Sendable, Hashable {
        /// Composed (and sealed); goes at its turn.
        case ready
        /// Deferred: decided again and composed when ``notBefore`` comes.
        case deferred
        /// Over a cap: goes into the summary that is due at ``notBefore``.
        case digesting
    }
    package var message: MessageID
    package var send: SendID
    package var subject: SubjectID
    package var destination: Tag
    package var request: AttestedRequest
    package var category: Category
    package var tier: Tier
    package var state: State
    package var form: BodyForm
    package var interruption: Interruption
    /// The device key the body is sealed to.
    package var key: KeyID?
    /// Provider headers as canonical JSON; empty object when none.
    package var headers: [UInt8]
    /// The provider's body; for a deferred or digesting row the send's content as canonical JSON. Kept encrypted.
    package var body: [UInt8]
    /// The facts that do not change while it waits (sizes, params, fallback), as canonical JSON.
    package var facts: [UInt8]
    /// What it tells, for a type that declares `dedupe_by`; see ``DedupeRecord``.
    package var eventTag: Tag?
    /// Of the request that asked for it.
    package var traceParent: TraceParent?
    package var decidedAt: Instant
    package var notBefore: Instant
    package var expiresAt: Instant
    package var attemptCount: Int
    /// Set when a hand-over was started whose result is not known.
    package var attemptedAt: Instant?
    /// Whether a hand-over ended without a known result, so that the hop may have the message.
    package var mayHaveArrived: Bool
    /// Cancelled while a hand-over was under way: should the hop not have it, it is not tried again.
    package var isCancelled = false

    package init(
        message: MessageID, send: SendID, subject: SubjectID, destination: Tag, request: AttestedRequest,
        category: Category, tier: Tier, state: State, form: BodyForm, interruption: Interruption,
        key: KeyID?, headers: [UInt8], body: [UInt8], facts: [UInt8], eventTag: Tag? = nil,
        traceParent: TraceParent? = nil, decidedAt: Instant, notBefore: Instant, expiresAt: Instant,
        attemptCount: Int = 0,
        attemptedAt: Instant? = nil, mayHaveArrived: Bool = false
    ) {
        self.message = message
        self.send = send
        self.subject = subject
        self.destination = destination
        self.request = request
        self.category = category
        self.tier = tier
        self.state = state
        self.form = form
        self.interruption = interruption
        self.key = key
        self.headers = headers
        self.body = body
        self.facts = facts
        self.eventTag = eventTag
        self.traceParent = traceParent
        self.decidedAt = decidedAt
        self.notBefore = notBefore
        self.expiresAt = expiresAt
        self.attemptCount = attemptCount
        self.attemptedAt = attemptedAt
        self.mayHaveArrived = mayHaveArrived
    }
}

/// Says that a person was told of an event, or need not be told: one value of a type's `dedupe_by` on one channel.
package struct DedupeRecord: Hashable, Sendable {
    /// tag("event", type ‖ 0x00 ‖ caller ‖ 0x00 ‖ channel ‖ 0x00 ‖ value), the caller empty for `dedupe_scope: type`: the
    /// key of the row.
    package var eventTag: Tag
    /// Which send told it; `nil` when it was acknowledged instead.
    package var send: SendID?
    package var at: Instant

    package init(eventTag: Tag, send: SendID?, at: Instant) {
        self.eventTag = eventTag
        self.send = send
        self.at = at
    }
}

/// A legal duty to tell a person something. Kept from the first send that left it owed, or from the send that
/// discharged it, until its time is over.
package struct DutyRecord: Hashable, Sendable {
    /// Whether the person still has to be reached.
    package enum State: Hashable, Sendable { case owed, discharged }

    /// tag("event", "duty" ‖ 0x00 ‖ type ‖ 0x00 ‖ value): with the subject the key of the row.
    package var duty: Tag
    package var subject: SubjectID
    package var state: State
    package var send: SendID
    package var caller: CallerName
    package var type: TypeID
    /// What the page said when the send was decided, for the alarm.
    package var mustGoBy: String
    package var within: String
    /// When what is still owed raises the alarm.
    package var dueAt: Instant

    package var key: SubjectTag { SubjectTag(duty, of: subject) }

    package init(
        duty: Tag, subject: SubjectID, state: State, send: SendID, caller: CallerName, type: TypeID,
        mustGoBy: String, within: String, dueAt: Instant
    ) {
        self.duty = duty
        self.subject = subject
        self.state = state
        self.send = send
        self.caller = caller
        self.type = type
        self.mustGoBy = mustGoBy
        self.within = within
        self.dueAt = dueAt
    }
}

/// One send that counted as a forward.
package struct ForwardRecord: Hashable, Sendable {
    package var at: Instant
    package var type: TypeID
    package var category: Category
    /// `nil` where it was read and the send itself is not known any more. What a step counts has one.
    package var send: SendID?
    /// Whether it would have been one, of a send in shadow: counted by the caps of those alone.
    package var isShadow: Bool

    package init(at: Instant, type: TypeID, category: Category, send: SendID?, isShadow: Bool = false) {
        self.at = at
        self.type = type
        self.category = category
        self.send = send
        self.isShadow = isShadow
    }
}

/// How much waits, for back-pressure and `status`.
package struct OutboxDepth: Hashable, Sendable {
    package var rowCount: Int
    package var securityRowCount: Int
    package var byteCount: Int64
    package var rowCountByCaller: [CallerName: Int]

    package init(
        rowCount: Int, securityRowCount: Int, byteCount: Int64, rowCountByCaller: [CallerName: Int]
    ) {
        self.rowCount = rowCount
        self.securityRowCount = securityRowCount
        self.byteCount = byteCount
        self.rowCountByCaller = rowCountByCaller
    }
}

/// One event in the life of a send, for `GET /v1/events`.
package struct EventRecord: Hashable, Sendable {
    /// Rising; 0 before it is appended.
    package var cursor: Int64
    package var caller: CallerName
    package var send: SendID
    package var subject: SubjectID?
    package var event: SendEventKind
    package var destination: Tag?
    package var at: Instant
    package var reason: String?
    /// The entry of a receipt, which is cited when the same is reported again; `nil` for what the gateway did itself.
    package var entryIndex: UInt64?

    package init(
        cursor: Int64 = 0, caller: CallerName, send: SendID, subject: SubjectID?, event: SendEventKind,
        destination: Tag?, at: Instant, reason: String?, entryIndex: UInt64? = nil
    ) {
        self.cursor = cursor
        self.caller = caller
        self.send = send
        self.subject = subject
        self.event = event
        self.destination = destination
        self.at = at
        self.reason = reason
        self.entryIndex = entryIndex
    }
}

extension DestinationNames {
    /// The name that a destination had when the message was sent; its tag where the name was forgotten.
    func name(of destination: Tag) -> String { self[destination] ?? destination.hexadecimal }
}

extension SendRecord {
    /// The same, of a destination of this send.
    package func name(of destination: Tag) -> String { destinationNames.name(of: destination) }
}

/// One entry of the trail as the store holds it until its bundle is durable elsewhere.
package struct StoredEntry: Hashable, Sendable {
    package var index: UInt64
    package var time: Instant
    /// Canonical JSON, at most 65,535 bytes.
    package var bytes: [UInt8]

    package init(index: UInt64, time: Instant, bytes: [UInt8]) {
        self.index = index
        self.time = time
        self.bytes = bytes
    }

    /// SHA-256(0x00 ‖ bytes), 32 bytes (RFC 6962, section 2.1). Computed anew each time: who needs it is the connection
    /// that writes an answer and the publisher that grows the tree, and neither holds up the engine's thread.
    package var leaf: [UInt8] { TreeHash.leaf(bytes).bytes }
}

extension SendRecord {
    /// The entry of this send.
    ///
    /// - Parameter bytes: What is recorded at ``entryIndex``.
    /// - Throws: `StoreError.damaged` when that is another entry: its answer is not this send's.
    package func entry(in bytes: [UInt8]) throws -> SendEntry {
        let entry = try? SendEntry.read(bytes).entry
        guard let entry, entry.send == id else {
            throw StoreError.damaged(
                table: "send", row: id.hexadecimal, "it leads to entry \(entryIndex), which is not its own")
        }
        return entry
    }
}
