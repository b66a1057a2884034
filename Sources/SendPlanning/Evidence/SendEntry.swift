import AuditTrail
package import CanonicalJSON
package import GateVocabulary
import PayloadComposition

/// The evidence of one send: who asked for what, what was known, what was decided at every destination.
///
///     {"caller","deliveries":[{"byte_count"?,"decision","destination","facts","key_id"?,"message_id"?}],"detail"?,
///      "facts","index","kind":"send","outcome","params_verdict","peer":{"gid","pid","uid"},"policy","reason",
///      "replaces"?,"request":{…},"send_id","subject","time","tzdata","v":1}
///
/// Facts that are the same at every destination stand once, in the outer `facts`; the others stand with
/// their delivery. Nothing a caller or a recipient chose is in it but as a keyed tag; texts and params never
/// are. `outcome`, `reason` and `detail` are those of ``OverallAnswer``. Reading accepts exactly what
/// writing gives.
package struct SendEntry: Hashable, Sendable {
    /// The process that asked, as the kernel named it. Evidence, never authority.
    package struct PeerEvidence: Hashable, Sendable {
        package var userID: UInt32
        package var groupID: UInt32
        package var processID: Int32

        package init(userID: UInt32, groupID: UInt32, processID: Int32) {
            self.userID = userID
            self.groupID = groupID
            self.processID = processID
        }
    }

    /// What was asked for, as far as the trail may know.
    package struct RecordedRequest: Hashable, Sendable {
        package var type: TypeID
        package var channel: Channel
        package var critical: Bool
        /// tag("request", id); `nil` when the recipient is unknown and so has no key to make tags with.
        package var idTag: Tag?
        /// tag of the destination the send names, if it names one.
        package var destinationTag: Tag?
        /// The send this one says it replaces.
        package var fallbackFor: SendID?
        package var ttlSeconds: Int64?
        package var collapseTag: Tag?
        package var deepLinkTag: Tag?
        /// Language, script and region of the BCP 47 tag that was asked for; the rest of a tag is free text
        /// of the caller's and not recorded.
        package let locale: String?

        package init(
            type: TypeID, channel: Channel, critical: Bool, idTag: Tag? = nil, destinationTag: Tag? = nil,
            fallbackFor: SendID? = nil, ttlSeconds: Int64? = nil, collapseTag: Tag? = nil,
            deepLinkTag: Tag? = nil,
            locale: String? = nil
        ) {
            self.type = type
            self.channel = channel
            self.critical = critical
            self.idTag = idTag
            self.destinationTag = destinationTag
            self.fallbackFor = fallbackFor
            self.ttlSeconds = ttlSeconds
            self.collapseTag = collapseTag
            self.deepLinkTag = deepLinkTag
            self.locale = locale.flatMap { LanguageTag($0)?.core }
        }
    }

    /// One destination, what was known of it, and what was decided.
    package struct DeliveryRecord: Hashable, Sendable {
        /// `nil` when there was nowhere to send to: an unknown recipient, or none of the kind.
        package var destination: Tag?
        /// Set when a message goes there, now or later.
        package var message: MessageID?
        package var facts: Facts
        package var decision: Decision
        /// The key the body is sealed to.
        package var key: KeyID?
        /// Bytes of the body that was decided on.
        package var byteCount: Int?

        package init(
            destination: Tag?, message: MessageID?, facts: Facts, decision: Decision, key: KeyID? = nil,
            byteCount: Int? = nil
        ) {
            self.destination = destination
            self.message = message
            self.facts = facts
            self.decision = decision
            self.key = key
            self.byteCount = byteCount
        }
    }

    package var send: SendID
    /// `nil` for a recipient nobody knows.
    package var subject: SubjectID?
    package var caller: CallerName
    package var peer: PeerEvidence
    package var request: RecordedRequest
    /// Where the params do not fit their type; see ``ParamsVerdict/recorded(for:under:)``.
    package var paramsVerdict: [JSONPointer]
    /// In the order of the destinations' own ids; exactly one, without a destination, when there is none.
    package var deliveries: [DeliveryRecord]
    package var policy: PolicyDigest
    /// The version of the time zone data that local times were resolved with, e.g. `2026b`.
    package var tzdata: String
    /// The entry of the send this one replaces.
    package var replaces: UInt64?

    /// - Precondition: There is at least one delivery, and one without a destination stands alone.
    package init(
        send: SendID, subject: SubjectID?, caller: CallerName, peer: PeerEvidence, request: RecordedRequest,
        paramsVerdict: [JSONPointer], deliveries: [DeliveryRecord], policy: PolicyDigest, tzdata: String,
        replaces: UInt64? = nil
    ) {
        precondition(
            Self.isComplete(deliveries),
            "a send's deliveries are one or more destinations, or one without any")
        self.send = send
        self.subject = subject
        self.caller = caller
        self.peer = peer
        self.request = request
        self.paramsVerdict = paramsVerdict
        self.deliveries = deliveries
        self.policy = policy
        self.tzdata = tzdata
        self.replaces = replaces
    }

    private static func isComplete(_ deliveries: [DeliveryRecord]) -> Bool {
        !deliveries.isEmpty && (deliveries.count == 1 || deliveries.allSatisfy { $0.destination != nil })
    }

    /// What the decisions were made for.
    package var attested: AttestedRequest {
        AttestedRequest(
            caller: caller, type: request.type, channel: request.channel, critical: request.critical)
    }

    /// The decision that speaks for the whole send.
    package var overall: Decision { OverallAnswer.best(of: deliveries.lazy.map(\.decision)) }

    // MARK: Writing

    /// Canonical bytes, at most 65,535.
    package func encode(index: UInt64, time: Instant) throws(EntryError) -> [UInt8] {
        let shared = FactFields.shared(deliveries.map(\.facts))
        let overall = overall
        var entry = MemberWriter(byteCapacity: 1024 + 768 * deliveries.count)
        entry.text("caller", caller.text)
        entry.member("deliveries") { appendDeliveries(without: shared, to: &$0) }
        if let detail = overall.detail { entry.text("detail", detail.rawValue) }
        entry.member("facts") { FactFields.append(deliveries[0].facts, shared, to: &$0) }
        entry.integer("index", Int64(index))
        entry.text("kind", Self.kind)
        entry.text("outcome", overall.outcome.name)
        entry.member("params_verdict") { appendVerdict(to: &$0) }
        entry.member("peer") { appendPeer(to: &$0) }
        entry.text("policy", policy.text)
        entry.text("reason", overall.reason.rawValue)
        if let replaces { entry.integer("replaces", Int64(replaces)) }
        entry.member("request") { appendRequest(to: &$0) }
        entry.uuid("send_id", send)
        if let subject {
            entry.hexadecimal("subject", subject)
        } else {
            entry.member("subject") { $0.append(contentsOf: "null".utf8) }
        }
        entry.integer("time", time.milliseconds)
        entry.text("tzdata", tzdata)
        entry.integer("v", 1)
        return try EntryFrame.checked(entry.end())
    }

    package static let kind = EntryKind.send.text

    private func appendDeliveries(without shared: FactSet, to bytes: inout [UInt8]) {
        let differing = FactSet.all.subtracting(shared)
        bytes.append(UInt8(ascii: "["))
        for (position, delivery) in deliveries.enumerated() {
            if position > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(UInt8(ascii: "{"))
            if let byteCount = delivery.byteCount {
                bytes.append(contentsOf: "\"byte_count\":".utf8)
                CanonicalJSON.append(Int64(byteCount), to: &bytes)
                bytes.append(UInt8(ascii: ","))
            }
            bytes.append(contentsOf: "\"decision\":".utf8)
            EntryWriting.append(delivery.decision, to: &bytes)
            bytes.append(contentsOf: ",\"destination\":".utf8)
            if let destination = delivery.destination {
                bytes.appendPlain(destination.hexadecimal)
            } else {
                bytes.append(contentsOf: "null".utf8)
            }
            bytes.append(contentsOf: ",\"facts\":".utf8)
            FactFields.append(delivery.facts, differing, to: &bytes)
            if let key = delivery.key {
                bytes.append(contentsOf: ",\"key_id\":".utf8)
                bytes.appendPlain(key.hexadecimal)
            }
            if let message = delivery.message {
                bytes.append(contentsOf: ",\"message_id\":".utf8)
                bytes.appendPlain(message.uuidText)
            }
            bytes.append(UInt8(ascii: "}"))
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private func appendVerdict(to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "["))
        for (position, pointer) in paramsVerdict.enumerated() {
            if position > 0 { bytes.append(UInt8(ascii: ",")) }
            CanonicalJSON.append(pointer.text, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private func appendPeer(to bytes: inout [UInt8]) {
        var writer = MemberWriter(byteCapacity: 48)
        writer.integer("gid", Int64(peer.groupID))
        writer.integer("pid", Int64(peer.processID))
        writer.integer("uid", Int64(peer.userID))
        bytes.append(contentsOf: writer.end())
    }

    private func appendRequest(to bytes: inout [UInt8]) {
        var writer = MemberWriter(byteCapacity: 256)
        writer.text("channel", request.channel.rawValue)
        writer.hexadecimal("collapse_tag", request.collapseTag)
        writer.member("critical") { $0.append(contentsOf: request.critical ? "true".utf8 : "false".utf8) }
        writer.hexadecimal("deep_link_tag", request.deepLinkTag)
        writer.hexadecimal("destination_tag", request.destinationTag)
        writer.uuid("fallback_for", request.fallbackFor)
        writer.hexadecimal("id_tag", request.idTag)
        if let locale = request.locale { writer.text("locale", locale) }
        if let ttl = request.ttlSeconds { writer.integer("ttl_seconds", ttl) }
        writer.text("type", request.type.text)
        bytes.append(contentsOf: writer.end())
    }

    // MARK: Reading

    /// - Returns: The entry with the place and time it was recorded at.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: SendEntry) {
        let (object, kind) = try EntryFrame.object(bytes)
        guard kind == Self.kind else { throw .otherKind(kind) }
        return try read(object, bytes: bytes)
    }

    static func read(
        _ object: JSONObject, bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: SendEntry) {
        let found: (index: UInt64, time: Instant, entry: SendEntry)
        do throws(JSONShapeError) {
            found = try parse(object)
        } catch {
            throw EntryError(error)
        }
        // One spelling: the shared facts, the overall answer and the order of everything follow from the rest.
        guard try found.entry.encode(index: found.index, time: found.time) == bytes else {
            let names = ["outcome", "reason", "detail"]
            let overall = found.entry.overall
            let expected = [overall.outcome.name, overall.reason.rawValue, overall.detail?.rawValue]
            for (name, text) in zip(names, expected) where object[name]?.stringValue != text {
                throw .contradictory(what: name)
            }
            throw .contradictory(what: "facts")
        }
        return found
    }

    private static func parse(
        _ object: JSONObject
    ) throws(JSONShapeError) -> (index: UInt64, time: Instant, entry: SendEntry) {
        var members = JSONMembers(object, at: .root)
        let (index, time) = try EntryFrame.header(&members)
        let shared = try members.required("facts", EntryValue.object)
        var common = Facts()
        let sharedSet = try FactFields.take(shared, at: .root.appending("facts"), into: &common)
        let caller: CallerName = try members.required("caller", JSONShape.identifier)
        let place = JSONPointer.root.appending("deliveries")
        let elements = try members.required("deliveries", EntryValue.array)
        guard !elements.isEmpty, elements.count <= EntryFrame.deliveryCountMax else {
            throw JSONShapeError(place, "expected 1 to \(EntryFrame.deliveryCountMax) deliveries")
        }
        var deliveries: [DeliveryRecord] = []
        deliveries.reserveCapacity(elements.count)
        for (position, element) in elements.enumerated() {
            deliveries.append(
                try DeliveryRecord(element, at: place.appending(position), on: common, sharedSet))
        }
        guard isComplete(deliveries) else {
            throw JSONShapeError(place, "a delivery without a destination stands alone")
        }
        // Derived, and compared by `read` as bytes.
        for name in ["outcome", "reason"] { _ = try members.required(name, JSONShape.text) }
        _ = try members.optional("detail", JSONShape.text)
        let entry = SendEntry(
            send: try members.required("send_id", EntryValue.uuid),
            subject: try members.required("subject", EntryValue.hexadecimalOrNull), caller: caller,
            peer: try members.required("peer", PeerEvidence.init(_:at:)),
            request: try members.required("request", RecordedRequest.init(_:at:)),
            paramsVerdict: try members.required("params_verdict", verdict), deliveries: deliveries,
            policy: try members.required("policy", EntryValue.digest),
            tzdata: try members.required("tzdata", JSONShape.text),
            replaces: try members.optional("replaces", EntryValue.unsigned))
        try members.refuseOthers()
        return (index, time, entry)
    }

    private static func verdict(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError)
        -> [JSONPointer]
    {
        var pointers: [JSONPointer] = []
        for element in try EntryValue.array(value, pointer) {
            guard let text = element.stringValue, let parsed = JSONPointer(parsing: text) else {
                throw JSONShapeError(pointer, "expected JSON pointers")
            }
            pointers.append(parsed)
        }
        return pointers
    }
}

extension SendEntry.PeerEvidence {
    fileprivate init(_ value: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(value, at: pointer)
        self.init(
            userID: try members.required("uid", EntryValue.unsigned),
            groupID: try members.required("gid", EntryValue.unsigned),
            processID: try members.required("pid", EntryValue.unsigned))
        try members.refuseOthers()
    }
}

extension SendEntry.RecordedRequest {
    fileprivate init(_ value: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        var members = try JSONMembers(value, at: pointer)
        self.init(
            type: try members.required("type", JSONShape.identifier),
            channel: try members.required("channel", JSONShape.name),
            critical: try members.required("critical", JSONShape.boolean),
            idTag: try members.optional("id_tag", EntryValue.hexadecimal),
            destinationTag: try members.optional("destination_tag", EntryValue.hexadecimal),
            fallbackFor: try members.optional("fallback_for", EntryValue.uuid),
            ttlSeconds: try members.optional("ttl_seconds", JSONShape.integer),
            collapseTag: try members.optional("collapse_tag", EntryValue.hexadecimal),
            deepLinkTag: try members.optional("deep_link_tag", EntryValue.hexadecimal),
            locale: try members.optional("locale", JSONShape.text))
        try members.refuseOthers()
    }
}

extension SendEntry.DeliveryRecord {
    fileprivate init(
        _ value: JSONValue, at pointer: JSONPointer, on common: Facts, _ shared: FactSet
    ) throws(JSONShapeError) {
        var members = try JSONMembers(value, at: pointer)
        var facts = common
        let own = try FactFields.take(
            try members.required("facts", EntryValue.object), at: pointer.appending("facts"), into: &facts)
        guard own.isDisjoint(with: shared) else {
            throw JSONShapeError(
                pointer.appending("facts"), "a fact stands both here and in the shared facts")
        }
        let decision = try members.required("decision", EntryValue.object)
        self.init(
            destination: try members.required("destination", EntryValue.hexadecimalOrNull),
            message: try members.optional("message_id", EntryValue.uuid), facts: facts,
            decision: try Decision(json: decision, at: pointer.appending("decision")),
            key: try members.optional("key_id", EntryValue.hexadecimal),
            byteCount: try members.optional("byte_count", EntryValue.unsigned))
        try members.refuseOthers()
    }
}
