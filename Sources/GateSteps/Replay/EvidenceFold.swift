import BundleModel
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
package import GateRecords
package import SendPlanning
import WireProtocol

/// The evidence about all people as the trail alone tells it: entries applied one by one, from an empty state.
///
/// Applies the same ``RecipientState/apply(_:)`` as a step, so an auditor gets here what the gateway decided on. It
/// lacks what no entry holds: names, tokens, numbers, public keys, texts.
package struct EvidenceFold {
    private var told = PeopleFold()
    /// By pseudonym, without erased people.
    package var people: [SubjectID: RecipientState] { told.people }
    var ledgers: [SubjectID: [ConsentRecord]] { told.ledgers }
    /// Every choice, oldest first: what taking a link's mute back brings back.
    var choices: [SubjectID: [PreferenceRecord]] { told.choices }
    /// What acts are judged by, besides people and sends.
    private(set) var acts = ActFold()
    /// Oldest first.
    private var forwards: [SubjectID: [ForwardRecord]] = [:]
    private(set) var sends = SendFold()
    private(set) var owed = OwedEntries()
    /// Events that were told before it are ignored.
    private var dedupeSince = Instant.longAgo

    /// The zone data that the gateway resolved local times with.
    private(set) var tzdata: String?

    /// Facts that came with later gates: an entry that was decided without the gate lacks them.
    private let laterFacts: [String: GateRevision]

    /// - Parameters:
    ///   - policy: The bundle in force before the first entry: `nil` for a trail from its beginning, where a `start` entry says.
    ///   - gates: Where the gates after the first thirteen come from.
    package init(under policy: CompiledPolicy? = nil, of gates: any LaterGates.Type = BuiltGates.self) {
        laterFacts = gates.facts
        if let policy { acts.begin(under: policy) }
    }

    /// Applies what an entry says of a person. Entries are given in their order, from the first.
    ///
    /// - Parameter policies: The archived bundles: a forward counts in the category that its type had.
    /// - Throws: What is wrong with an entry that cannot be read.
    package mutating func apply(
        _ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        for part in try TrailEntry(reading: bytes).parts() { try apply(part, bytes, policies: policies) }
    }

    /// Applies an entry that stands for itself.
    mutating func apply(
        _ entry: TrailEntry, _ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        var owed = owed
        try owed.follow(entry) { try readings(of: entry) }
        self.owed = owed
        try acts.apply(entry, policies: policies)
        switch entry.kind {
        case .send:
            let (index, time, send) = try SendEntry.read(bytes)
            sends.apply(send, at: time, index: index)
            guard let subject = send.subject, let type = send.request.type, send.overall.outcome == .forward
            else { return }
            try count(
                type, under: send.policy, of: send.send, to: subject, at: entry.time, inShadow: send.isShadow,
                policies)
        case .redecision:
            let again = try RedecisionEntry.read(bytes).entry
            sends.apply(again)
            // A send counts once, at its first forward, however many destinations it has.
            guard again.cause == WithdrawalCause.due.rawValue, again.decision.outcome == .forward,
                forwards[again.subject]?.contains(where: { $0.send == again.send }) != true
            else { return }
            try count(
                again.request.type, under: again.policy, of: again.send, to: again.subject, at: entry.time,
                policies)
        case .delivery, .unsent, .receipt: try applyEvent(in: entry)
        case .acknowledgement:
            let acknowledged: AcknowledgementEntry = try entry.knownBody()
            for eventTag in acknowledged.eventTags.values {
                sends.acknowledge(eventTag, of: acknowledged.subject, at: entry.time)
            }
        case .start: tzdata = try entry.knownBody(StartEntry.self).tzdata
        case .erasure:
            let subject = try entry.knownBody(ErasureEntry.self).subject
            sends.forget(subject)
            told.forget(subject)
            forwards[subject] = nil
        default:
            try EntrySchema.version1.requireKind(of: entry)
            guard let (subject, change) = try PersonChange.read(entry) else { return }
            told.apply(change, to: subject)
        }
    }

    /// The same of what is known, with one person in place of all: what the changes of one import are judged by, one after another.
    func alone(_ subject: SubjectID) -> EvidenceFold {
        var fold = self
        fold.told = told.alone(subject)
        return fold
    }

    /// Applies what happened to a message, or was observed of it.
    private mutating func applyEvent(in entry: TrailEntry) throws {
        switch entry.kind {
        case .delivery:
            let ended: DeliveryEntry = try entry.knownBody()
            guard let end = try? MessageEnd(ended) else { return }
            sends.end(
                ended.message, of: ended.send, end.kind.mayHaveArrived ? .mayHaveArrived : .cameToNothing)
        case .unsent:
            let ended: UnsentEntry = try entry.knownBody()
            guard let cause = ended.cause.known(WithdrawalCause.self) else { return }
            sends.end(ended.message, of: ended.send, cause.settlesDedupe ? .settled : .cameToNothing)
        default:
            let receipt: ReceiptEntry = try entry.knownBody()
            if receipt.event.known(ReceiptBody.Event.self)?.eventKind.mayHaveArrived == true {
                sends.arrived(receipt.send)
            }
        }
    }

    private mutating func count(
        _ type: TypeID, under policy: PolicyDigest, of send: SendID, to subject: SubjectID, at now: Instant,
        inShadow isShadow: Bool = false, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        // A forward that is not counted would let later ones pass for right.
        guard let policy = try policies(policy) else { throw ReplayObstacle.policyUnknown(policy) }
        guard let category = policy.type(type)?.category else { return }
        forwards[subject, default: []].append(
            ForwardRecord(at: now, type: type, category: category, send: send, isShadow: isShadow))
    }
}

// MARK: Deriving facts

extension EvidenceFold {
    /// Facts that come with the request or the message and not from the person's state.
    private static let ofRequest: Set<String> = ["params", "sizes"]
    /// A summary lives as long as what is in it.
    private static let ofSummary = ofRequest.union(["expiry", "due"])
    /// Of a message that was composed before, the key it is sealed to and what its text may show are its own.
    private static let ofMessage = ofSummary.union(["device_key", "privacy"])

    /// Holds the facts that an entry decides on against what the entries before it imply. Call it before the entry is
    /// applied.
    ///
    /// Not derived are facts of the request itself, the verdict on its params and sizes; and the times of a summary and of a
    /// message that waits. Whether an event was told before is derived from tags that only the gateway can make.
    ///
    /// - Returns: Empty where all facts follow, and for an entry that decides nothing.
    package func differences(
        in bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> [ReplayDifference] {
        switch try TrailEntry(reading: bytes).kind {
        case .send:
            let entry = try SendEntry.read(bytes).entry
            return try policies(entry.policy).map { try differences(in: entry, under: $0) } ?? []
        case .redecision:
            let entry = try RedecisionEntry.read(bytes).entry
            return try policies(entry.policy).map { try differences(in: entry, under: $0) } ?? []
        default: return []
        }
    }

    private func differences(
        in entry: SendEntry, under policy: CompiledPolicy
    ) throws -> [ReplayDifference] {
        let person = entry.subject.flatMap(snapshot(of:))
        let isSummary = entry.caller == .gateway
        var differences = isSummary ? [] : Self.places(of: entry, for: person)
        let (fallback, replaced) = try self.fallback(
            for: entry.request.fallbackFor, of: entry.caller, to: entry.subject, inShadow: entry.isShadow)
        if replaced != entry.replaces {
            differences.append(
                ReplayDifference(
                    pointer: JSONPointer(["replaces"]), recorded: .index(entry.replaces),
                    replayed: .index(replaced)))
        }
        for (position, delivery) in entry.deliveries.enumerated() {
            let destination = delivery.destination.flatMap {
                person?.destination(tagged: $0, on: entry.request.channel)
            }
            var recalled = delivery.facts
            // Which send it names that it may not replace is not recorded.
            if fallback != .notFallback || recalled.fallback != .mismatch { recalled.fallback = fallback }
            recalled.repetition = try repetition(delivery.facts) { fold in
                try entry.subject.map {
                    try fold.repetition(
                        of: entry.request.eventTags, in: entry.attested, to: $0, by: entry.send,
                        replacing: entry.request.fallbackFor)
                } ?? .first
            }
            let derived = try facts(
                of: entry, as: recalled, to: destination, of: person, under: policy)
            differences += compare(
                delivery.facts, derived, besides: isSummary ? Self.ofSummary : Self.ofRequest,
                tzdata: entry.tzdata, asked: delivery.decision.trace.revision,
                at: JSONPointer(["deliveries", String(position), "facts"]))
        }
        return differences
    }

    private func differences(
        in entry: RedecisionEntry, under policy: CompiledPolicy
    ) throws -> [ReplayDifference] {
        let person = snapshot(of: entry.subject)
        let now = entry.facts.now ?? .longAgo
        let sent = sends.sends[entry.send]
        var recalled = entry.facts
        recalled.fallback = sent?.fallback
        recalled.repetition = try repetition(entry.facts) {
            try $0.repetition(of: sent?.eventTag, to: entry.subject, besides: entry.send)
        }
        let derived = try facts(
            common(
                entry.request, policy.terms(of: entry.request), as: recalled,
                expiry: entry.facts.expiry ?? now, due: entry.facts.due ?? now, again: entry.send),
            as: entry.facts,
            to: person?.destination(tagged: entry.destination, on: entry.request.channel), of: person,
            under: policy)
        return compare(
            entry.facts, derived, besides: Self.ofMessage, tzdata: tzdata,
            asked: entry.decision.trace.revision, at: JSONPointer(["facts"]))
    }

    /// Whether an event was told before, as the fold has it, or, if that is what is recorded, as a gateway has it that
    /// forgets after the shortest time there is (`limits.retention_days`).
    private func repetition(
        _ recorded: Facts, _ look: (EvidenceFold) throws -> RepetitionFact
    ) throws -> RepetitionFact {
        let whole = try look(self)
        guard whole != recorded.repetition, let now = recorded.now else { return whole }
        var recent = self
        recent.dedupeSince = now.advanced(bySeconds: -Retention.daysMin * 86_400)
        let ofRecent = try look(recent)
        return ofRecent == recorded.repetition ? ofRecent : whole
    }

    package func snapshot(of subject: SubjectID) -> RecipientSnapshot? {
        guard let state = people[subject], let record = state.record else { return nil }
        return RecipientSnapshot(
            subject: Subject(id: subject, tagKey: Self.emptyTagKey), record: record, state: state)
    }

    /// The fold makes no tags, so it needs no person's key.
    private static let emptyTagKey = SecretBytes(
        copying: [UInt8](repeating: 0, count: Subject.tagKeyByteCount))

    /// Whether a send went wherever it had to be decided: to the destination it names, or to each there is.
    private static func places(
        of entry: SendEntry, for person: RecipientSnapshot?
    ) -> [ReplayDifference] {
        let all = person?.destinations(on: entry.request.channel).map(\.tag) ?? []
        let named = entry.request.destinationTag.map { tag in
            person?.destination(tagged: tag, on: entry.request.channel) == nil ? [] : [tag]
        }
        let recorded = entry.deliveries.compactMap(\.destination?.hexadecimal).sorted()
        let derived = (named ?? all).map(\.hexadecimal).sorted()
        guard recorded != derived else { return [] }
        func list(_ tags: [String]) -> JSONValue { .array(tags.map { .string($0) }) }
        return [
            ReplayDifference(
                pointer: JSONPointer(["deliveries"]), recorded: list(recorded), replayed: list(derived))
        ]
    }

    /// Why a send has no destination; see ``ConsideredSend``.
    private static func missing(
        _ request: SendEntry.RecordedRequest, for person: RecipientSnapshot?
    ) -> DestinationFact {
        guard let person else { return .noneRegistered }
        if request.destinationTag != nil { return .unknown }
        return request.channel == .push && !person.devices.isEmpty ? .inactive : .noneRegistered
    }

    /// The facts of a send as it came, at one destination.
    private func facts(
        of entry: SendEntry, as recorded: Facts, to destination: Destination?, of person: RecipientSnapshot?,
        under policy: CompiledPolicy
    ) throws -> Facts {
        let now = recorded.now ?? .longAgo
        let type = policy.type(entry.attested.type)
        let terms = policy.terms(of: entry.attested)
        var material = SendMaterial(
            send: entry.send, request: entry.attested, of: type, ttlSeconds: entry.request.ttlSeconds,
            sentAt: now)
        var due = now
        if terms.rule.admits(params: recorded.params ?? .invalid), let type, let person, let destination {
            due = person.due(type, at: destination, from: now, under: policy)
        }
        if destination != nil { material.countLife(from: due) }
        var derived = try facts(
            common(
                entry.attested, terms, as: recorded, expiry: material.expiresAt, due: due,
                inShadow: entry.isShadow), as: recorded, to: destination,
            orElse: Self.missing(entry.request, for: person), of: person,
            under: policy)
        if destination != nil, let departure = terms.rule.waitsUntil(given: derived) {
            material.countLife(from: departure)
            derived.expiry = material.expiresAt
        }
        return derived
    }

    private func common(
        _ request: AttestedRequest, _ terms: RequestTerms, as recorded: Facts, expiry: Instant,
        due: Instant, again send: SendID? = nil, inShadow isShadow: Bool = false
    ) -> FactsLoading.Common {
        FactsLoading.Common(
            type: request.type, channel: request.channel, rule: terms.rule, needs: terms.needs,
            expiry: expiry, due: due, params: recorded.params ?? .invalid,
            fallback: recorded.fallback ?? .mismatch,
            repetition: recorded.repetition ?? .first, decidedBefore: send, isShadow: isShadow)
    }

    private func facts(
        _ common: FactsLoading.Common, as recorded: Facts, to destination: Destination?,
        orElse missing: DestinationFact = .unknown, of person: RecipientSnapshot?,
        under policy: CompiledPolicy
    ) throws -> Facts {
        try FactsLoading(policy: policy, now: recorded.now ?? .longAgo)
            .facts(common, person: person, destination: destination, orElse: missing, in: self)
    }

    private func compare(
        _ recorded: Facts, _ derived: Facts, besides: Set<String>, tzdata: String?,
        asked revision: GateRevision, at pointer: JSONPointer
    ) -> [ReplayDifference] {
        let (recorded, derived) = (recorded.json, derived.json)
        return Set(recorded.keys).union(derived.keys).subtracting(besides).sorted().compactMap { name in
            // Nothing looked it up then. A fact that is recorded all the same is a difference.
            if let since = laterFacts[name], revision < since, recorded[name] == nil { return nil }
            // Local time is resolved with the zone data of its day.
            if ["quiet_hours", "due", "expiry"].contains(name), let tzdata, tzdata != LocalTime.dataVersion {
                return nil
            }
            guard recorded[name] != derived[name] else { return nil }
            return ReplayDifference(
                pointer: pointer.appending(name), recorded: recorded[name], replayed: derived[name])
        }
    }
}

extension EvidenceFold: RecordReading {
    /// Users' names are in no entry.
    package func subject(of user: UserID) throws -> Subject? { nil }
    package func subject(_ id: SubjectID) throws -> Subject? { snapshot(of: id)?.subject }
    package func state(of subject: SubjectID) throws -> RecipientState? { people[subject] }
    package func consentRecords(of subject: SubjectID) throws -> [ConsentRecord] {
        ledgers[subject, default: []]
    }
    package func countedForwards(
        of subject: SubjectID, since: Instant, limit: Int
    ) throws -> [ForwardRecord] {
        Array(forwards[subject, default: []].reversed().prefix { $0.at >= since }.prefix(limit))
    }
    package func send(_ id: SendID) throws -> SendRecord? {
        sends.sends[id].map { sent in
            SendRecord(
                id: id, caller: sent.caller, idHash: sent.isShadow ? SendRecord.shadowIDHash(id.bytes) : [],
                contentMAC: [], subject: sent.subject,
                type: sent.type,
                category: nil, channel: sent.channel, receivedAt: sent.receivedAt,
                entryIndex: sent.entryIndex,
                requestID: "", destinationNames: [:])
        }
    }
    package func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord? {
        sends.dedupeRecord(eventTag, to: subject).flatMap { $0.at >= dedupeSince ? $0 : nil }
    }
    package func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? { nil }
    package func setting(_ name: String) throws -> String? { acts.notices[name] }
}

extension JSONValue {
    fileprivate static func index(_ index: UInt64?) -> JSONValue? { index.map { .integer(Int64($0)) } }
}
