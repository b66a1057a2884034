import AuditTrail
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
package import SendPlanning

/// Everybody's evidence as the trail alone tells it: entries applied one by one to nothing.
///
/// The same ``RecipientState/apply(_:)`` that a step uses, so what an auditor gets here is what the gateway
/// decided on. What no entry holds is not in it: names, tokens, numbers, public keys, texts.
package struct EvidenceFold {
    /// By pseudonym, without erased people.
    package private(set) var people: [SubjectID: RecipientState] = [:]
    private var ledgers: [SubjectID: [ConsentEvent]] = [:]
    /// Oldest first.
    private var forwards: [SubjectID: [ForwardRecord]] = [:]

    /// The zone data that the gateway resolved local times with.
    private var tzdata: String?

    package init() {}

    /// Applies what an entry says of a person. Entries are given in their order, from the first.
    ///
    /// - Parameter policies: The archived bundles: a forward counts in the category that its type had.
    /// - Throws: What is wrong with an entry that cannot be read.
    package mutating func apply(
        _ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        let entry = try TrailEntry(reading: bytes)
        switch entry.kind {
        case .send:
            let send = try SendEntry.read(bytes).entry
            guard let subject = send.subject, let type = send.request.type, send.overall.outcome == .forward
            else { return }
            try count(type, under: send.policy, of: send.send, to: subject, at: entry.time, policies)
        case .redecision:
            let again = try RedecisionEntry.read(bytes).entry
            // A send counts once, at its first forward, however many destinations it has.
            guard again.cause == "due", again.decision.outcome == .forward,
                forwards[again.subject]?.contains(where: { $0.send == again.send }) != true
            else { return }
            try count(
                again.request.type, under: again.policy, of: again.send, to: again.subject, at: entry.time,
                policies)
        case .start: tzdata = entry.members["tzdata"]?.stringValue
        case .erasure:
            guard let subject = entry.members["subject"]?.stringValue.flatMap(SubjectID.init(hexadecimal:))
            else { return }
            people[subject] = nil
            ledgers[subject] = nil
            forwards[subject] = nil
        default:
            guard let (subject, change) = try PersonChange.read(entry) else { return }
            apply(change, to: subject)
        }
    }

    private mutating func apply(_ change: PersonChange, to subject: SubjectID) {
        var state = people[subject] ?? RecipientState(subject)
        if case .consent(let event) = change {
            let placed = state.apply(event, after: ledgers[subject, default: []])
            ledgers[subject, default: []].append(placed)
        } else {
            state.apply(change)
        }
        people[subject] = state
    }

    private mutating func count(
        _ type: TypeID, under policy: PolicyDigest, of send: SendID, to subject: SubjectID, at now: Instant,
        _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        // A forward that is not counted would let later ones pass for right.
        guard let policy = try policies(policy) else { throw ReplayObstacle.policyUnknown(policy) }
        guard let category = policy.type(type)?.category else { return }
        forwards[subject, default: []].append(
            ForwardRecord(at: now, type: type, category: category, send: send))
    }
}

// MARK: Deriving facts

extension EvidenceFold {
    /// Facts that come with the request or the message and not from what is held of a person.
    private static let ofRequest: Set<String> = ["params", "sizes", "fallback", "repetition"]
    /// A summary lives as long as what is in it.
    private static let ofSummary = ofRequest.union(["expiry", "due"])
    /// Of a message that was composed before, the key it is sealed to and what its text may show are its own.
    private static let ofMessage = ofSummary.union(["device_key", "privacy"])

    /// Holds the facts that an entry decides on against what the entries before it imply. Call it before the entry is
    /// applied.
    ///
    /// Not derived are facts of the request itself: the verdict on its params, sizes, what it replaces and whether its event
    /// was told before; and the times of a summary and of a message that waits.
    ///
    /// - Returns: Empty where all facts follow, and for an entry that decides nothing.
    package func differences(
        in bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> [ReplayDifference] {
        switch try TrailEntry(reading: bytes).kind {
        case .send:
            let entry = try SendEntry.read(bytes).entry
            guard let policy = try policies(entry.policy) else { return [] }
            let person = entry.subject.flatMap(snapshot(of:))
            let isSummary = entry.caller == .gateway
            var differences = isSummary ? [] : Self.places(of: entry, for: person)
            for (position, delivery) in entry.deliveries.enumerated() {
                let destination = delivery.destination.flatMap {
                    person?.destination(tagged: $0, on: entry.request.channel)
                }
                let derived = try facts(
                    of: entry, as: delivery.facts, to: destination, of: person, under: policy)
                differences += compare(
                    delivery.facts, derived, besides: isSummary ? Self.ofSummary : Self.ofRequest,
                    tzdata: entry.tzdata,
                    at: JSONPointer(["deliveries", String(position), "facts"]))
            }
            return differences
        case .redecision:
            let entry = try RedecisionEntry.read(bytes).entry
            guard let policy = try policies(entry.policy) else { return [] }
            let person = snapshot(of: entry.subject)
            let now = entry.facts.now ?? .longAgo
            let derived = try facts(
                common(
                    entry.request, as: entry.facts, expiry: entry.facts.expiry ?? now,
                    due: entry.facts.due ?? now, again: entry.send), as: entry.facts,
                to: person?.destination(tagged: entry.destination, on: entry.request.channel), of: person,
                under: policy)
            return compare(
                entry.facts, derived, besides: Self.ofMessage, tzdata: tzdata, at: JSONPointer(["facts"]))
        default: return []
        }
    }

    private func snapshot(of subject: SubjectID) -> RecipientSnapshot? {
        guard let state = people[subject], let record = state.record else { return nil }
        return RecipientSnapshot(
            subject: Subject(id: subject, tagKey: Self.noKey), record: record, state: state)
    }

    /// The fold makes no tags, so it needs no person's key.
    private static let noKey = SecretBytes(copying: [UInt8](repeating: 0, count: Subject.tagKeyByteCount))

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
        var material = SendMaterial(
            send: entry.send, request: entry.attested, of: type, ttlSeconds: entry.request.ttlSeconds,
            sentAt: now)
        var due = now
        if policy.admits(entry.attested, params: recorded.params ?? .invalid), let type, let person,
            let destination
        {
            due = person.due(type, at: destination, from: now, under: policy)
        }
        if destination != nil { material.countLife(from: due) }
        var derived = try facts(
            common(entry.attested, as: recorded, expiry: material.expiresAt, due: due), as: recorded,
            to: destination, orElse: Self.missing(entry.request, for: person), of: person, under: policy)
        if destination != nil, let departure = policy.waitsUntil(entry.attested, given: derived) {
            material.countLife(from: departure)
            derived.expiry = material.expiresAt
        }
        return derived
    }

    private func common(
        _ request: AttestedRequest, as recorded: Facts, expiry: Instant, due: Instant,
        again send: SendID? = nil
    ) -> FactsLoading.Common {
        FactsLoading.Common(
            request: request, expiry: expiry, due: due, params: recorded.params ?? .invalid,
            fallback: recorded.fallback ?? .mismatch, repetition: recorded.repetition ?? .first,
            decidedBefore: send)
    }

    private func facts(
        _ common: FactsLoading.Common, as recorded: Facts, to destination: Destination?,
        orElse missing: DestinationFact = .unknown, of person: RecipientSnapshot?,
        under policy: CompiledPolicy
    ) throws -> Facts {
        let loading = FactsLoading(store: self, policy: policy, now: recorded.now ?? .longAgo)
        if let person, let destination {
            return try loading.facts(common, person: person, destination: destination)
        }
        return try loading.facts(common, person: person, without: missing)
    }

    private func compare(
        _ recorded: Facts, _ derived: Facts, besides: Set<String>, tzdata: String?, at pointer: JSONPointer
    ) -> [ReplayDifference] {
        let (recorded, derived) = (recorded.json, derived.json)
        return Set(recorded.keys).union(derived.keys).subtracting(besides).sorted().compactMap { name in
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
    package func consentEvents(of subject: SubjectID) throws -> [ConsentEvent] {
        ledgers[subject, default: []]
    }
    package func forwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord] {
        Array(forwards[subject, default: []].reversed().prefix { $0.at >= since }.prefix(limit))
    }
    package func send(_ id: SendID) throws -> SendRecord? { nil }
    package func told(_ event: Tag, to subject: SubjectID) throws -> ToldRecord? { nil }
    package func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? { nil }
    package func setting(_ name: String) throws -> String? { nil }
}
