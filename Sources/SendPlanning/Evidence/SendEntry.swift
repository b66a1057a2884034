import AuditTrail
package import CanonicalJSON
package import GateVocabulary
import PayloadComposition

/// The evidence of one send: who asked for what, what was known, what was decided at every destination.
///
///     {"caller","deliveries":[{"byte_count"?,"decision","destination","facts","key_id"?,"message_id"?}],"detail"?,
///      "facts","index","kind":"send","outcome","owed"?,"params_verdict","peer":{"gid","pid","uid"},"policy","reason",
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
        /// `nil` for a type that was not in the registry: its name is a text of the caller's.
        package var type: TypeID?
        /// tag("type", name) of a type that was not in the registry; `nil` when the recipient is unknown too.
        package var typeTag: Tag?
        /// UTF-8 bytes of the name of a type that was not in the registry.
        package var typeByteCount: Int?
        package var channel: Channel
        package var critical: Bool
        /// tag("request", id); `nil` when the recipient is unknown and so has no key to make tags with.
        package var idTag: Tag?
        /// tag of the destination the send names, if it names one.
        package var destinationTag: Tag?
        /// What it tells, for a type that is told once: on its own channel, and on the others where another type may tell
        /// it there.
        package var eventTags: [Channel: Tag]
        /// The send this one says it replaces.
        package var fallbackFor: SendID?
        package var ttlSeconds: Int64?
        package var collapseTag: Tag?
        package var deepLinkTag: Tag?
        /// The locale of the bundle's texts that was asked for (``CompliancePolicy/CompiledPolicy/registeredLocale(for:)``):
        /// a tag of which the bundle has no texts is free text of the caller's and not recorded.
        package let locale: String?

        package init(
            type: TypeID?, typeTag: Tag? = nil, typeByteCount: Int? = nil, channel: Channel, critical: Bool,
            idTag: Tag? = nil, destinationTag: Tag? = nil, eventTags: [Channel: Tag] = [:],
            fallbackFor: SendID? = nil, ttlSeconds: Int64? = nil, collapseTag: Tag? = nil,
            deepLinkTag: Tag? = nil,
            locale: String? = nil
        ) {
            self.type = type
            self.typeTag = typeTag
            self.typeByteCount = typeByteCount
            self.channel = channel
            self.critical = critical
            self.idTag = idTag
            self.destinationTag = destinationTag
            self.eventTags = eventTags
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
    /// `nil` for an unknown recipient.
    package var subject: SubjectID?
    package var caller: CallerName
    package var peer: PeerEvidence
    package var request: RecordedRequest
    /// Where the params do not fit their type; see ``ParamsCheck/recorded(for:under:)``.
    package var paramsVerdict: [JSONPointer]
    /// In the order of the destinations' own ids; exactly one, without a destination, when there is none.
    package var deliveries: [DeliveryRecord]
    package var policy: PolicyDigest
    /// The version of the time zone data that local times were resolved with, e.g. `2026b`.
    package var tzdata: String
    /// The entry of the send this one replaces.
    package var replaces: UInt64?
    /// By which a duty is still to be done after this send, one of them; empty when none is owed.
    package var owed: [DischargeMeans]

    /// - Precondition: There is at least one delivery, and one without a destination stands alone.
    package init(
        send: SendID, subject: SubjectID?, caller: CallerName, peer: PeerEvidence, request: RecordedRequest,
        paramsVerdict: [JSONPointer], deliveries: [DeliveryRecord], policy: PolicyDigest, tzdata: String,
        replaces: UInt64? = nil, owed: [DischargeMeans] = []
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
        self.owed = owed
    }

    private static func isComplete(_ deliveries: [DeliveryRecord]) -> Bool {
        !deliveries.isEmpty && (deliveries.count == 1 || deliveries.allSatisfy { $0.destination != nil })
    }

    /// The request that was decided. A type that was not in the registry is the empty name, which no registry has: all
    /// unregistered names are decided alike.
    package var attested: AttestedRequest {
        AttestedRequest(
            caller: caller, type: request.type ?? TypeID(""), channel: request.channel,
            critical: request.critical)
    }

    /// The decision that speaks for the whole send.
    package var overall: Decision { OverallAnswer.best(of: deliveries.lazy.map(\.decision)) }

    // MARK: Writing

    /// Canonical bytes, at most 65,535.
    ///
    /// - Parameter facts: The facts of ``deliveries``, where their bytes are written already.
    package func encode(
        index: UInt64, time: Instant, facts: [EncodedFacts]? = nil
    ) throws(EntryError) -> [UInt8] {
        let facts = facts ?? deliveries.map { EncodedFacts($0.facts) }
        precondition(
            facts.count == deliveries.count, "\(facts.count) facts of \(deliveries.count) deliveries")
        let shared = EncodedFacts.shared(facts)
        let overall = overall
        var entry = CanonicalWriter(capacity: 1_024 + 1_024 * deliveries.count)
        entry.object { json in
            json.member("caller", caller.text)
            json.member("deliveries") { json in
                json.array(deliveries.indices) { write(deliveries[$1], facts[$1], without: shared, to: &$0) }
            }
            json.member("detail", name: overall.detail)
            json.member("facts") { facts[0].write(shared, to: &$0) }
            json.member("index", Int64(index))
            json.member("kind", Self.kind)
            json.member("outcome", overall.outcome.name)
            if !owed.isEmpty { json.member("owed") { $0.array(owed) { $0.text($1.rawValue) } } }
            json.member("params_verdict") { $0.array(paramsVerdict) { $0.text($1.text) } }
            json.member("peer") { json in
                json.object { json in
                    json.member("gid", Int64(peer.groupID))
                    json.member("pid", Int64(peer.processID))
                    json.member("uid", Int64(peer.userID))
                }
            }
            json.member("policy", policy.text)
            json.member("reason", name: overall.reason)
            json.member("replaces", replaces.map(Int64.init))
            json.member("request") { writeRequest(to: &$0) }
            json.member("send_id", uuid: send)
            json.member("subject") { json in
                if let subject { json.hexadecimal(of: subject) } else { json.null() }
            }
            json.member("time", time)
            json.member("tzdata", tzdata)
            json.member("v", 1)
        }
        return try EntryFrame.checked(entry.finish())
    }

    package static let kind = EntryKind.send.text

    private func write(
        _ delivery: DeliveryRecord, _ facts: EncodedFacts, without shared: FactSet,
        to json: inout CanonicalWriter
    ) {
        json.object { json in
            json.member("byte_count", delivery.byteCount.map(Int64.init))
            json.member("decision") { DecisionBytes.write(delivery.decision, to: &$0) }
            json.member("destination") { json in
                if let destination = delivery.destination {
                    json.hexadecimal(of: destination)
                } else {
                    json.null()
                }
            }
            json.member("facts") { facts.write(FactSet.all.subtracting(shared), to: &$0) }
            json.member("key_id", hexadecimal: delivery.key)
            json.member("message_id", uuid: delivery.message)
        }
    }

    private func writeRequest(to json: inout CanonicalWriter) {
        json.object { json in
            json.member("channel", name: request.channel)
            json.member("collapse_tag", hexadecimal: request.collapseTag)
            json.member("critical", request.critical)
            json.member("deep_link_tag", hexadecimal: request.deepLinkTag)
            json.member("destination_tag", hexadecimal: request.destinationTag)
            if !request.eventTags.isEmpty {
                json.member("event_tags") { json in
                    json.object { json in
                        json.member("email", hexadecimal: request.eventTags[.email])
                        json.member("push", hexadecimal: request.eventTags[.push])
                        json.member("sms", hexadecimal: request.eventTags[.sms])
                    }
                }
            }
            json.member("fallback_for", uuid: request.fallbackFor)
            json.member("id_tag", hexadecimal: request.idTag)
            json.member("locale", request.locale)
            json.member("ttl_seconds", request.ttlSeconds)
            json.member("type", request.type?.text)
            json.member("type_byte_count", request.typeByteCount.map(Int64.init))
            json.member("type_tag", hexadecimal: request.typeTag)
        }
    }

    // MARK: Reading

    /// - Returns: The entry with the place and time it was recorded at. Encoding it gives `bytes` again.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: SendEntry) {
        let found = try EntryFrame.read(bytes, kind: kind, parse)
        return (found.index, found.time, found.entry)
    }

    private struct Found {
        var index: UInt64
        var time: Instant
        var entry: SendEntry
    }

    private static func parse(_ cursor: inout EntryCursor) throws(EntryError) -> Found {
        var members = try MemberCursor(&cursor)
        try members.expect("\"caller\":", &cursor)
        let caller: CallerName = try cursor.identifier()
        try members.expect("\"deliveries\":", &cursor)
        var (deliveries, own) = try readDeliveries(&cursor)
        let detail: Detail? = members.has("\"detail\":", &cursor) ? try cursor.name() : nil
        try members.expect("\"facts\":", &cursor)
        try readSharedFacts(&cursor, into: &deliveries, own)
        try members.expect("\"index\":", &cursor)
        let index: UInt64 = try cursor.unsigned()
        try members.expect("\"kind\":", &cursor)
        try cursor.expect("\"send\"")
        try members.expect("\"outcome\":", &cursor)
        let outcome = try cursor.plain()
        var owed: [DischargeMeans] = []
        if members.has("\"owed\":", &cursor) {
            try cursor.array(countMax: DischargeMeans.allCases.count) { cursor, _ throws(EntryError) in
                owed.append(try cursor.name())
            }
            guard !owed.isEmpty else {
                throw cursor.failure("no `owed`, or one that names something, before it")
            }
        }
        try members.expect("\"params_verdict\":", &cursor)
        var verdict: [JSONPointer] = []
        try cursor.array(countMax: ParamsCheck.recordedCountMax) { cursor, _ throws(EntryError) in
            guard let pointer = JSONPointer(parsing: try cursor.text(byteCountMax: 256)) else {
                throw cursor.failure("a JSON pointer")
            }
            verdict.append(pointer)
        }
        try members.expect("\"peer\":", &cursor)
        let peer = try PeerEvidence(&cursor)
        try members.expect("\"policy\":", &cursor)
        let policy = try cursor.digest()
        try members.expect("\"reason\":", &cursor)
        let reason: Reason = try cursor.name()
        let replaces: UInt64? = members.has("\"replaces\":", &cursor) ? try cursor.unsigned() : nil
        try members.expect("\"request\":", &cursor)
        let request = try RecordedRequest(&cursor)
        try members.expect("\"send_id\":", &cursor)
        let send: SendID = try cursor.uuid()
        try members.expect("\"subject\":", &cursor)
        let subject: SubjectID? = cursor.skip("null") ? nil : try cursor.hexadecimal()
        try members.expect("\"time\":", &cursor)
        let time = try cursor.instant()
        try members.expect("\"tzdata\":", &cursor)
        let tzdata = try cursor.text(byteCountMax: 32)
        try members.expect("\"v\":", &cursor)
        try cursor.expect("1")
        try members.end(&cursor)

        let entry = SendEntry(
            send: send, subject: subject, caller: caller, peer: peer, request: request,
            paramsVerdict: verdict,
            deliveries: deliveries, policy: policy, tzdata: tzdata, replaces: replaces, owed: owed)
        let overall = entry.overall
        guard cursor.bytes[outcome].elementsEqual(overall.outcome.name.utf8) else {
            throw .contradictory(what: "outcome")
        }
        guard reason == overall.reason else { throw .contradictory(what: "reason") }
        guard detail == overall.detail else { throw .contradictory(what: "detail") }
        return Found(index: index, time: time, entry: entry)
    }

    /// - Returns: The deliveries with their own facts only, and which those are.
    private static func readDeliveries(
        _ cursor: inout EntryCursor
    ) throws(EntryError) -> ([DeliveryRecord], own: [FactSet]) {
        var deliveries: [DeliveryRecord] = []
        var own: [FactSet] = []
        try cursor.array(countMax: EntryFrame.deliveryCountMax) { cursor, _ throws(EntryError) in
            var members = try MemberCursor(&cursor)
            let byteCount: Int? = members.has("\"byte_count\":", &cursor) ? try cursor.unsigned() : nil
            try members.expect("\"decision\":", &cursor)
            let decision = try DecisionBytes.read(&cursor)
            try members.expect("\"destination\":", &cursor)
            let destination: Tag? = cursor.skip("null") ? nil : try cursor.hexadecimal()
            try members.expect("\"facts\":", &cursor)
            var facts = Facts()
            own.append(try facts.read(&cursor))
            let key: KeyID? = members.has("\"key_id\":", &cursor) ? try cursor.hexadecimal() : nil
            let message: MessageID? = members.has("\"message_id\":", &cursor) ? try cursor.uuid() : nil
            try members.end(&cursor)
            deliveries.append(
                DeliveryRecord(
                    destination: destination, message: message, facts: facts, decision: decision, key: key,
                    byteCount: byteCount))
        }
        guard isComplete(deliveries) else {
            throw cursor.failure("one delivery without a destination, or several with one, before it")
        }
        return (deliveries, own)
    }

    /// The shared facts stand after the deliveries, so every delivery's are put on top of them afterwards.
    private static func readSharedFacts(
        _ cursor: inout EntryCursor, into deliveries: inout [DeliveryRecord], _ own: [FactSet]
    ) throws(EntryError) {
        let start = cursor.offset
        var shared: FactSet = []
        for position in deliveries.indices {
            cursor.rewind(to: start)
            shared = try deliveries[position].facts.read(&cursor)
            // A fact in both places would have been overwritten just now.
            guard shared.isDisjoint(with: own[position]) else { throw .contradictory(what: "facts") }
        }
        let common = EncodedFacts.shared(deliveries.map { EncodedFacts($0.facts) })
        guard shared.isSubset(of: common), own.allSatisfy({ $0.isDisjoint(with: common) }) else {
            throw .contradictory(what: "facts")
        }
    }
}

extension SendEntry.PeerEvidence {
    fileprivate init(_ cursor: inout EntryCursor) throws(EntryError) {
        var members = try MemberCursor(&cursor)
        try members.expect("\"gid\":", &cursor)
        let groupID: UInt32 = try cursor.unsigned()
        try members.expect("\"pid\":", &cursor)
        let processID: Int32 = try cursor.unsigned()
        try members.expect("\"uid\":", &cursor)
        let userID: UInt32 = try cursor.unsigned()
        try members.end(&cursor)
        self.init(userID: userID, groupID: groupID, processID: processID)
    }
}

extension SendEntry.RecordedRequest {
    fileprivate init(_ cursor: inout EntryCursor) throws(EntryError) {
        var members = try MemberCursor(&cursor)
        try members.expect("\"channel\":", &cursor)
        let channel: Channel = try cursor.name()
        let collapseTag: Tag? = members.has("\"collapse_tag\":", &cursor) ? try cursor.hexadecimal() : nil
        try members.expect("\"critical\":", &cursor)
        let critical = try cursor.boolean()
        let deepLinkTag: Tag? = members.has("\"deep_link_tag\":", &cursor) ? try cursor.hexadecimal() : nil
        let destinationTag: Tag? =
            members.has("\"destination_tag\":", &cursor) ? try cursor.hexadecimal() : nil
        var eventTags: [Channel: Tag] = [:]
        if members.has("\"event_tags\":", &cursor) {
            var tags = try MemberCursor(&cursor)
            eventTags[.email] = tags.has("\"email\":", &cursor) ? try cursor.hexadecimal() : nil
            eventTags[.push] = tags.has("\"push\":", &cursor) ? try cursor.hexadecimal() : nil
            eventTags[.sms] = tags.has("\"sms\":", &cursor) ? try cursor.hexadecimal() : nil
            try tags.end(&cursor)
            guard eventTags[channel] != nil else {
                throw cursor.failure("no `event_tags`, or one of the send's own channel, before it")
            }
        }
        let fallbackFor: SendID? = members.has("\"fallback_for\":", &cursor) ? try cursor.uuid() : nil
        let idTag: Tag? = members.has("\"id_tag\":", &cursor) ? try cursor.hexadecimal() : nil
        let locale = members.has("\"locale\":", &cursor) ? try cursor.text(byteCountMax: 35) : nil
        let ttlSeconds = members.has("\"ttl_seconds\":", &cursor) ? try cursor.integer() : nil
        let type: TypeID? = members.has("\"type\":", &cursor) ? try cursor.identifier() : nil
        let typeByteCount: Int? =
            members.has("\"type_byte_count\":", &cursor) ? try cursor.unsigned() : nil
        let typeTag: Tag? = members.has("\"type_tag\":", &cursor) ? try cursor.hexadecimal() : nil
        guard (type == nil) == (typeByteCount != nil), type == nil || typeTag == nil else {
            throw cursor.failure("either a registered `type` or the length of another before it")
        }
        try members.end(&cursor)
        self.init(
            type: type, typeTag: typeTag, typeByteCount: typeByteCount, channel: channel, critical: critical,
            idTag: idTag, destinationTag: destinationTag, eventTags: eventTags,
            fallbackFor: fallbackFor, ttlSeconds: ttlSeconds, collapseTag: collapseTag,
            deepLinkTag: deepLinkTag,
            locale: locale)
        guard self.locale == locale else {
            throw cursor.failure("a `locale` of language, script and region before it")
        }
    }
}
