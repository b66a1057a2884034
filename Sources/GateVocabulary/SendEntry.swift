package import CanonicalJSON

/// The evidence of one send: who asked for what, what was known, what was decided at every destination.
///
///     {"caller","deliveries":[{"byte_count"?,"decision","destination","facts","key_id"?,"message_id"?}],"detail"?,
///      "facts","index","kind":"send","outcome","owed"?,"params_verdict","peer":{"gid","pid","uid"},"policy","reason",
///      "replaces"?,"request":{…},"send_id","sent"?,"shadow"?,"subject","time","tzdata","v":1}
///
/// Facts that are the same at every destination stand once, in the outer `facts`; the others stand with
/// their delivery. Nothing a caller or a recipient chose is in it but as a keyed tag; texts and params never
/// are. `outcome`, `reason` and `detail` are those of ``OverallAnswer``. Reading accepts exactly what
/// writing gives.
package struct SendEntry: Hashable, FieldObject {
    /// The process that asked, as the kernel named it. Evidence, never authority.
    package struct PeerEvidence: Hashable, FieldObject {
        package var userID: UInt32
        package var groupID: UInt32
        package var processID: Int32

        package init(userID: UInt32, groupID: UInt32, processID: Int32) {
            self.userID = userID
            self.groupID = groupID
            self.processID = processID
        }

        package static let means = ""
        package static let blank = Self(userID: 0, groupID: 0, processID: 0)

        @inline(__always)
        package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
            try fields.required("gid", \.groupID, "")
            try fields.required("pid", \.processID, as: .count)
            try fields.required("uid", \.userID, "")
        }
    }

    /// What was asked for, as far as the trail may know.
    package struct RecordedRequest: Hashable, FieldObject {
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
        package var eventTags: [Channel: Tag] { events?.value ?? [:] }
        private var events: Filled<[Channel: Tag]>?
        /// The send this one says it replaces.
        package var fallbackFor: SendID?
        package var ttlSeconds: Int64?
        package var collapseTag: Tag?
        package var deepLinkTag: Tag?
        /// Language, script and region of the locale of the bundle's texts that was asked for: a tag of which the bundle has no
        /// texts is free text of the caller's and not recorded.
        package private(set) var locale: String?

        /// - Parameter locale: The locale of the bundle's texts that was asked for.
        package init(
            type: TypeID?, typeTag: Tag? = nil, typeByteCount: Int? = nil, channel: Channel, critical: Bool,
            idTag: Tag? = nil, destinationTag: Tag? = nil, eventTags: [Channel: Tag] = [:],
            fallbackFor: SendID? = nil, ttlSeconds: Int64? = nil, collapseTag: Tag? = nil,
            deepLinkTag: Tag? = nil, locale: String? = nil
        ) {
            self.type = type
            self.typeTag = typeTag
            self.typeByteCount = typeByteCount
            self.channel = channel
            self.critical = critical
            self.idTag = idTag
            self.destinationTag = destinationTag
            events = Filled(eventTags)
            self.fallbackFor = fallbackFor
            self.ttlSeconds = ttlSeconds
            self.collapseTag = collapseTag
            self.deepLinkTag = deepLinkTag
            self.locale = locale.flatMap { LanguageTag($0)?.core }
        }

        package static let means = ""
        package static let blank = Self(type: nil, channel: .push, critical: false)

        @inline(__always)
        package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
            try fields.required("channel", \.channel, as: .name)
            try fields.optional("collapse_tag", \.collapseTag, "")
            try fields.required("critical", \.critical, "")
            try fields.optional("deep_link_tag", \.deepLinkTag, "")
            try fields.optional("destination_tag", \.destinationTag, "")
            try fields.optional("event_tags", \.events, "")
            try fields.optional("fallback_for", \.fallbackFor, "")
            try fields.optional("id_tag", \.idTag, "")
            try fields.optional("locale", \.locale, as: .text(byteCountMax: 35))
            try fields.optional("ttl_seconds", \.ttlSeconds, "")
            try fields.optional("type", \.type, as: .name)
            try fields.optional("type_byte_count", \.typeByteCount, "")
            try fields.optional("type_tag", \.typeTag, "")
        }

        package mutating func complete() throws(FieldContradiction) {
            guard eventTags.isEmpty || eventTags[channel] != nil else {
                throw FieldContradiction("event_tags", "expected one of the send's own channel")
            }
            guard (type == nil) == (typeByteCount != nil), type == nil || typeTag == nil else {
                throw FieldContradiction("type", "expected a registered `type` or the length of another")
            }
        }
    }

    /// One destination, what was known of it, and what was decided.
    package struct DeliveryRecord: Hashable, FieldElement, FieldObject {
        /// `nil` when there was nowhere to send to: an unknown recipient, or none of the kind.
        package var destination: Tag? {
            get { place.value }
            set { place.value = newValue }
        }
        private var place: Nullable<Tag>
        /// Set when a message goes there, now or later.
        package var message: MessageID?
        package var facts: Facts {
            get { decided.facts }
            set { (decided, own) = (DecidedFacts(newValue), Derived(part: .none)) }
        }
        fileprivate private(set) var decided: DecidedFacts
        /// Those of the facts that stand with the delivery: none before others are found to have others.
        fileprivate(set) var own: Derived
        package var decision: Decision
        /// The key the body is sealed to.
        package var key: KeyID?
        /// Bytes of the body that was decided on.
        package var byteCount: Int?

        package init(
            destination: Tag?, message: MessageID?, facts: Facts, decision: Decision, key: KeyID? = nil,
            byteCount: Int? = nil
        ) {
            self.init(
                destination: destination, message: message, facts: DecidedFacts(facts), decision: decision,
                key: key, byteCount: byteCount)
        }

        package init(
            destination: Tag?, message: MessageID?, facts: DecidedFacts, decision: Decision,
            key: KeyID? = nil, byteCount: Int? = nil
        ) {
            place = Nullable(destination)
            self.message = message
            decided = facts
            own = Derived(part: .none)
            self.decision = decision
            self.key = key
            self.byteCount = byteCount
        }

        package static let means = ""
        package static let blank = Self(destination: nil, message: nil, facts: Facts(), decision: .blank)
        /// A recipient has at most 20 devices and 20 addresses; a send goes to one kind.
        package static var countMax: Int { 20 }

        @inline(__always)
        package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
            try fields.optional("byte_count", \.byteCount, "")
            try fields.required("decision", \.decision, "")
            try fields.required("destination", \.place, "")
            try fields.required("facts", \.own.part, "")
            try fields.optional("key_id", \.key, "")
            try fields.optional("message_id", \.message, "")
        }

        /// Whether no facts stand with the delivery.
        fileprivate var keepsNone: Bool {
            if case .none = own.part { true } else { false }
        }

        /// Adds the facts that stand once for all deliveries to those that were read with this one.
        ///
        /// - Returns: The latter.
        fileprivate mutating func add(
            _ shared: Facts, _ sharedSet: FactSet
        ) throws(FieldContradiction) -> FactSet {
            guard case .read(let own, let ownSet) = own.part, ownSet.isDisjoint(with: sharedSet) else {
                throw SendEntry.misplacedFacts
            }
            var all = shared
            if !ownSet.isEmpty {
                var cursor = EntryCursor(EncodedFacts(own).bytes)
                do throws(EntryError) { _ = try all.read(&cursor) } catch { throw SendEntry.misplacedFacts }
            }
            facts = all
            return ownSet
        }
    }

    /// What follows from the facts of the deliveries and is no part of what an entry is compared by.
    struct Derived: Hashable {
        var part: FactsPart

        static func == (_: Derived, _: Derived) -> Bool { true }
        func hash(into _: inout Hasher) {}
    }

    /// What follows from the deliveries: the answer for all of them, and the facts that all have.
    struct Common: Hashable {
        var outcome: Outcome
        var reason: Reason
        var detail: Detail?
        var facts: FactsPart
        /// Whether the deliveries are still those that it follows from.
        var isCurrent: Bool

        static func == (_: Common, _: Common) -> Bool { true }
        func hash(into _: inout Hasher) {}
    }

    package var send: SendID
    /// `nil` for an unknown recipient.
    package var subject: SubjectID? { recipient.value }
    private var recipient: Nullable<SubjectID>
    package var caller: CallerName
    package var peer: PeerEvidence
    package var request: RecordedRequest
    /// Where the params do not fit their type; see ``ParamsCheck/recorded(for:under:)``.
    package var paramsVerdict: [JSONPointer]
    /// In the order of the destinations' own ids; exactly one, without a destination, when there is none.
    package var deliveries: [DeliveryRecord] {
        get { records }
        set { (records, common.isCurrent) = (newValue, false) }
    }
    /// A key path to a property with an observer would copy the whole entry.
    private var records: [DeliveryRecord]
    private var common: Common
    package var policy: PolicyDigest
    /// The version of the time zone data that local times were resolved with, e.g. `2026b`.
    package var tzdata: String
    /// The entry of the send this one replaces.
    package var replaces: UInt64?
    /// By which a duty is still to be done after this send, one of them; empty when none is owed.
    package var owed: [DischargeMeans] { owedMeans?.value ?? [] }
    private var owedMeans: Filled<[DischargeMeans]>?
    /// Whether it was decided and recorded alone: nothing of it went anywhere, and nothing is owed after it (decision SG-0082).
    package var isShadow: Bool { shadow == true }
    /// Absent, or true.
    private var shadow: Bool?
    /// Whether the producer's own sender sent it, in shadow; `nil` where the producer did not say.
    package private(set) var sent: Bool?

    /// - Precondition: There is at least one delivery, and one without a destination stands alone. In shadow none has a message and
    ///   nothing is owed; elsewhere nothing is said of another sender.
    package init(
        send: SendID, subject: SubjectID?, caller: CallerName, peer: PeerEvidence, request: RecordedRequest,
        paramsVerdict: [JSONPointer], deliveries: [DeliveryRecord], policy: PolicyDigest, tzdata: String,
        replaces: UInt64? = nil, owed: [DischargeMeans] = [], isShadow: Bool = false, sent: Bool? = nil
    ) {
        self.send = send
        recipient = Nullable(subject)
        self.caller = caller
        self.peer = peer
        self.request = request
        self.paramsVerdict = paramsVerdict
        precondition(
            Self.isComplete(deliveries),
            "a send's deliveries are one or more destinations, or one without any")
        var records = deliveries
        (common, _) = Self.common(of: &records)
        self.records = records
        self.policy = policy
        self.tzdata = tzdata
        self.replaces = replaces
        owedMeans = Filled(owed)
        shadow = isShadow ? true : nil
        self.sent = sent
        precondition(shadowContradiction == nil, "the send \(send) was recorded as in shadow, and is not")
    }

    /// What in an entry cannot be so in shadow, or only there.
    private var shadowContradiction: FieldContradiction? {
        if shadow == false { return FieldContradiction("shadow", "expected no such member, or `true`") }
        guard isShadow else {
            return sent == nil ? nil : FieldContradiction("sent", "expected it with `shadow` alone")
        }
        // By position: a loop would copy the deliveries.
        guard owed.isEmpty, records.indices.allSatisfy({ records[$0].message == nil }) else {
            return FieldContradiction("shadow", "expected no message, and nothing owed")
        }
        return nil
    }

    private static func isComplete(_ records: [DeliveryRecord]) -> Bool {
        !records.isEmpty && (records.count == 1 || records.allSatisfy { $0.destination != nil })
    }

    /// The request that was decided. A type that was not in the registry is the empty name, which no registry has: all
    /// unregistered names are decided alike.
    package var attested: AttestedRequest {
        AttestedRequest(
            caller: caller, type: request.type ?? TypeID(""), channel: request.channel,
            critical: request.critical)
    }

    /// The decision that speaks for the whole send.
    package var overall: Decision { Self.overall(records) }

    private static func overall(_ records: [DeliveryRecord]) -> Decision {
        // By position: a collection of the decisions would copy the deliveries.
        var best = records[0].decision
        for position in records.indices.dropFirst() {
            best = OverallAnswer.better(best, records[position].decision)
        }
        return best
    }

    // MARK: Fields

    package static let means = ""
    package static let blank = Self(
        send: SendID(high: 0, low: 0), subject: nil, caller: CallerName(""), peer: .blank, request: .blank,
        paramsVerdict: [], deliveries: [.blank], policy: PolicyDigest(""), tzdata: "")

    @inline(__always)
    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.required("deliveries", \.records, "")
        try fields.optional("detail", \.common.detail, as: .name)
        try fields.required("facts", \.common.facts, "")
        try fields.required("outcome", \.common.outcome, as: .name)
        try fields.optional("owed", \.owedMeans, as: .list(of: .name, countMax: DischargeMeans.countMax))
        try fields.required("params_verdict", \.paramsVerdict, "")
        try fields.required("peer", \.peer, "")
        try fields.required("policy", \.policy, "")
        try fields.required("reason", \.common.reason, as: .name)
        try fields.optional("replaces", \.replaces, "")
        try fields.required("request", \.request, "")
        try fields.required("send_id", \.send, "")
        try fields.optional("sent", \.sent, "")
        try fields.optional("shadow", \.shadow, "")
        try fields.required("subject", \.recipient, "")
        try fields.required("tzdata", \.tzdata, as: .text(byteCountMax: tzdataByteCountMax))
    }

    private static let tzdataByteCountMax = 32

    /// Refuses an entry whose facts stand elsewhere than writing puts them, or that answers otherwise than its deliveries do.
    package mutating func complete() throws(FieldContradiction) {
        guard Self.isComplete(records) else {
            throw FieldContradiction(
                "deliveries", "expected one delivery without a destination, or several with one")
        }
        guard tzdata.utf8.count <= Self.tzdataByteCountMax else {
            throw FieldContradiction("tzdata", "expected at most \(Self.tzdataByteCountMax) bytes")
        }
        if let contradiction = shadowContradiction { throw contradiction }
        let found = common
        guard case .read(let facts, let shared) = found.facts else { throw Self.misplacedFacts }
        var own: FactSet = []
        for position in records.indices { own.formUnion(try records[position].add(facts, shared)) }
        let same = deriveCommon()
        guard shared.isSubset(of: same), own.isDisjoint(with: same) else { throw Self.misplacedFacts }
        let follows = "expected what the deliveries give"
        guard found.outcome == common.outcome else { throw FieldContradiction("outcome", follows) }
        guard found.reason == common.reason else { throw FieldContradiction("reason", follows) }
        guard found.detail == common.detail else { throw FieldContradiction("detail", follows) }
    }

    fileprivate static var misplacedFacts: FieldContradiction {
        FieldContradiction("facts", "expected a fact once, with its delivery only where others have another")
    }

    /// - Returns: The facts that are the same at every destination.
    @discardableResult
    private mutating func deriveCommon() -> FactSet {
        let (common, shared) = Self.common(of: &records)
        self.common = common
        return shared
    }

    /// What follows from some deliveries, which then keep the facts that are not the same in all.
    ///
    /// - Returns: It, and the facts that are the same at every destination.
    private static func common(of records: inout [DeliveryRecord]) -> (Common, shared: FactSet) {
        let encoded = records.count > 1 ? records.map { $0.decided.encode() } : []
        let shared = encoded.isEmpty ? .all : EncodedFacts.shared(encoded)
        let own = FactSet.all.subtracting(shared)
        // One that keeps none, and is to keep none, is left alone: the caller has the same array, and a change would copy it.
        for position in records.indices where !(own.isEmpty && records[position].keepsNone) {
            records[position].own.part = own.isEmpty ? .none : .written(encoded[position].object(of: own))
        }
        let overall = Self.overall(records)
        let common = Common(
            outcome: overall.outcome, reason: overall.reason, detail: overall.detail,
            facts: encoded.isEmpty ? .all(records[0].decided) : .written(encoded[0].object(of: shared)),
            isCurrent: true)
        return (common, shared)
    }

    // These are called from other modules and are not generic: a generic function would look the key paths up when it runs.

    /// The whole entry.
    package func bytes(in envelope: EntryEnvelope) -> [UInt8] {
        guard common.isCurrent else {
            var current = self
            current.deriveCommon()
            return current.bytes(in: envelope)
        }
        return write(in: envelope)
    }

    /// Reads a whole entry.
    package static func read(
        entry cursor: inout EntryCursor, in envelope: EntryEnvelope
    ) throws(EntryError) -> (envelope: EntryEnvelope, object: SendEntry) {
        try read(&cursor, in: envelope)
    }
}
