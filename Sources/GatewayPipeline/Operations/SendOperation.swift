import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import KeyLifecycle
import OpenSSLCrypto
import SendPlanning
import WireProtocol

/// One send, from an attested request to a recorded decision and, where it may, messages on their way.
struct SendOperation: EngineOperation {
    let request: SendRequest
    let attested: AttestedRequest
    let peer: PeerCredentials
    let idHash: [UInt8]
    let contentMAC: [UInt8]
    let lane: EngineLane
    let isStreamLine: Bool
    let readers: ReaderThreads
    let reply: @Sendable (WireReply) -> Void

    var caller: CallerName? { attested.caller }
    /// A send only adds to what waits.
    var looksAtWhatWaits: Bool { false }

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        if let earlier = try batch.store.send(caller: attested.caller, idHash: idHash) {
            return try answerAgain(earlier, in: batch)
        }
        let now = try batch.now()
        try batch.requireRoom(isSecurity: lane == .security)
        let person = try RecipientSnapshot.load(request.user, from: batch.store)
        let (fallback, replaced) = try fallbackFact(for: person, in: batch)
        let verdict = ParamsVerdict(request.params, of: request.type, under: batch.policy)
        let material = try material(for: person, at: now, in: batch)
        let type = batch.policy.type(request.type)
        let event = person?.event(type, request.params, on: request.channel)
        let repetition =
            try person.map {
                try batch.store.repetition(of: event, to: $0.subject.id, besides: material.send)
            } ?? .first
        let composer = SendComposer(
            batch: batch, person: person, material: material, verdict: verdict, fallback: fallback,
            repetition: repetition, due: due(for: person, at: now, in: batch), now: now)

        var drafts: [DeliveryDraft] = []
        let destinations = destinations(of: person)
        for destination in destinations.found {
            var draft = try composer.decide(for: destination)
            draft.event = event
            drafts.append(draft)
        }
        if drafts.isEmpty { drafts = [try composer.decide(without: destinations.missing)] }

        let entry = SendEntry(
            send: material.send, subject: person?.subject.id, caller: attested.caller,
            peer: .init(userID: peer.userID, groupID: peer.groupID, processID: peer.processID),
            request: recordedRequest(for: person),
            paramsVerdict: verdict.recorded(for: request.type, under: batch.policy),
            deliveries: drafts.map(\.record), policy: batch.policy.digest, tzdata: LocalTime.dataVersion,
            replaces: replaced)
        let trail = try batch.record(at: now) { index, time in try entry.encode(index: index, time: time) }
        let record = SendRecord(
            id: material.send, caller: attested.caller, idHash: idHash, contentMAC: contentMAC,
            subject: person?.subject.id, type: request.type,
            category: batch.policy.type(request.type)?.category, channel: request.channel, receivedAt: now,
            entryIndex: trail.index, requestID: request.id.text,
            destinationNames: destinations.found.reduce(into: [:]) { $0[$1.tag] = $1.id.text })
        try batch.store.insertSend(record)
        if let person, let event, entry.overall.outcome.isPromise {
            try batch.store.putTold(
                ToldRecord(event: event, send: material.send, at: now), to: person.subject.id)
        }
        if let type, !entry.overall.outcome.isPromise, isUnreached(drafts) {
            try batch.raiseUnreached(
                type, of: material.send, by: attested.caller, to: person?.subject.id, at: now)
        }
        if let person { try release(drafts, of: person, entry: entry, in: batch, at: now) }
        let answer = SendAnswer(
            entry, of: record, trail: trail, isReplayed: false,
            violations: verdict.answered,
            hint: entry.overall.reason == .typeDisabled ? type?.disabledHint : nil)
        let isStreamLine = isStreamLine
        let reply = reply
        return { reply(WireReply(answer.answer(isStreamLine: isStreamLine))) }
    }

    func refuse(_ failure: EngineFailure) {
        reply(WireReply(Problem(failure).answer))
    }

    /// The first answer again: the same id with the same content sends nothing twice.
    ///
    /// The writer only finds out that it is a repeat. Reading the entry and rebuilding the answer from it happens
    /// on a reader's thread, so that somebody who repeats a whole campaign does not hold up everybody else's sends.
    private func answerAgain(
        _ earlier: SendRecord, in batch: BatchContext
    ) throws -> @Sendable () -> Void {
        let reply = reply
        guard HMACKey.constantTimeEqual(earlier.contentMAC, contentMAC) else {
            let problem = Problem(
                .idConflict, detail: "send `\(earlier.id)` has this id and other content; use a new id")
            return { reply(WireReply(problem.answer)) }
        }
        // What the store does not hold any more is published, and stays so.
        let held = try batch.store.entry(earlier.entryIndex)?.bytes
        let surroundings = batch.surroundings
        let policy = batch.policy
        return { [self] in
            let isTaken = readers.submit(for: attested.caller, lane: lane) { [self] in
                do {
                    guard let bytes = try held ?? surroundings.publishedEntry(earlier.entryIndex) else {
                        throw StoreError.damaged(
                            table: "entries", "entry \(earlier.entryIndex) is neither held nor published")
                    }
                    let entry = try SendEntry.read(bytes).entry
                    let trail = TrailReference(
                        entry: bytes, index: earlier.entryIndex, origin: surroundings.trailOrigin)
                    let answer = SendAnswer(
                        entry, of: earlier, trail: trail, isReplayed: true,
                        violations: violations(in: entry, under: policy),
                        hint: entry.overall.reason == .typeDisabled
                            ? policy.type(request.type)?.disabledHint : nil)
                    reply(WireReply(answer.answer(isStreamLine: isStreamLine)))
                } catch {
                    refuse(.unavailable("\(error)"))
                }
            }
            if !isTaken { refuse(.overloaded) }
        }
    }

    /// What was wrong with the params, in the words of the first answer as long as the same rule book is in
    /// force; after that the entry still says where, and not what it should have been.
    private func violations(in entry: SendEntry, under policy: CompiledPolicy) -> [Violation] {
        guard entry.overall.reason == .invalidParams else { return [] }
        guard entry.policy == policy.digest else {
            return entry.paramsVerdict.map {
                Violation(.body(JSONPointer(["params"] + $0.tokens)), "did not fit the type at the time")
            }
        }
        return ParamsVerdict(request.params, of: request.type, under: policy).answered
    }

    /// Whether the send was in order, and it is for want of a way to the recipient that nobody gets it.
    private func isUnreached(_ drafts: [DeliveryDraft]) -> Bool {
        drafts.allSatisfy { draft in
            draft.decision.reason == .expiresBeforeDue
                || (draft.decision.decidingGate ?? .expiry) >= .destination
        }
    }

    /// What the send says, without whom it is for.
    private func material(
        for person: RecipientSnapshot?, at now: Instant, in batch: BatchContext
    ) throws -> SendMaterial {
        let type = batch.policy.type(request.type)
        let typeSeconds = type?.ttlSeconds ?? NotificationType.ttlSecondsMax
        let seconds = min(request.ttlSeconds ?? typeSeconds, typeSeconds)
        let collapse = type.flatMap {
            SendMaterial.collapseText(of: request.collapseKey, request.params, for: $0)
        }
        return SendMaterial(
            send: try batch.surroundings.identifiers.newSendID(), request: attested, params: request.params,
            deepLink: request.deepLink ?? type?.deepLink, locale: request.locale,
            collapse: collapse.flatMap { text in person?.subject.tag(.collapseKey, text) }, sentAt: now,
            expiresAt: (type?.ttlCountsFrom == .due ? due(for: person, at: now, in: batch) : now)
                .advanced(bySeconds: seconds))
    }

    /// When the send wants to go out.
    private func due(for person: RecipientSnapshot?, at now: Instant, in batch: BatchContext) -> Instant {
        guard let person, let type = batch.policy.type(request.type) else { return now }
        return person.due(type, at: now)
    }

    /// Whether the send that this one replaces is this caller's and this person's, and its entry.
    private func fallbackFact(
        for person: RecipientSnapshot?, in batch: BatchContext
    ) throws -> (FallbackFact, entry: UInt64?) {
        guard let replaced = request.fallbackFor else { return (.notFallback, nil) }
        guard let person, let send = try batch.store.send(replaced), send.caller == attested.caller,
            send.subject == person.subject.id
        else { return (.mismatch, nil) }
        return (.replacesOwnSend, send.entryIndex)
    }

    /// In the order of the destinations' own names, which breaks ties in the overall answer.
    private func destinations(
        of person: RecipientSnapshot?
    ) -> (found: [Destination], missing: DestinationFact) {
        guard let person else { return ([], .noneRegistered) }
        if let id = request.destination {
            guard let one = person.destination(id, on: request.channel) else { return ([], .unknown) }
            return ([one], .unknown)
        }
        let all = person.destinations(on: request.channel)
        if all.isEmpty, request.channel == .push, !person.devices.isEmpty { return ([], .inactive) }
        return (
            all.sorted { $0.id.text.utf8.lexicographicallyPrecedes($1.id.text.utf8) }, .noneRegistered
        )
    }

    private func recordedRequest(for person: RecipientSnapshot?) -> SendEntry.RecordedRequest {
        func tag(_ kind: TagKind, _ text: String?) -> Tag? {
            text.flatMap { text in person?.subject.tag(kind, text) }
        }
        return SendEntry.RecordedRequest(
            type: request.type, channel: request.channel, critical: request.critical,
            idTag: tag(.request, request.id.text),
            destinationTag: tag(request.channel == .push ? .device : .address, request.destination?.text),
            fallbackFor: request.fallbackFor, ttlSeconds: request.ttlSeconds,
            collapseTag: tag(.collapseKey, request.collapseKey),
            deepLinkTag: tag(.deepLink, request.deepLink), locale: request.locale)
    }

    /// Puts what may go into the outbox and counts it once, however many devices it goes to.
    private func release(
        _ drafts: [DeliveryDraft], of person: RecipientSnapshot, entry: SendEntry, in batch: BatchContext,
        at now: Instant
    ) throws {
        for draft in drafts { try batch.enqueue(draft, of: person, at: now) }
        if entry.overall.outcome == .forward, let category = batch.policy.type(request.type)?.category {
            try batch.store.countForward(
                of: person.subject.id, type: request.type, category: category, at: now, send: entry.send)
        }
    }
}

extension SendAnswer {
    /// The same answer, the first time and every time after.
    ///
    /// - Parameter violations: Of the params; listed when they are what the send was refused for.
    init(
        _ entry: SendEntry, of send: SendRecord, trail: TrailReference, isReplayed: Bool,
        violations: [Violation] = [], hint: String? = nil
    ) {
        let hides = entry.deliveries.contains { SendAnswer.refusedBeforeRecipient($0.decision.trace) }
        self.init(
            id: RequestID(send.requestID), sendID: entry.send, policy: entry.policy,
            deliveries: entry.deliveries.map { record in
                Delivery(
                    destination: record.destination.map { send.destinationNames[$0] ?? $0.hexadecimal },
                    decision: record.decision, messageID: record.message, keyID: record.key)
            }, hidesRecipient: hides, trail: trail, isReplayed: isReplayed,
            violations: entry.overall.reason == .invalidParams ? violations : [], hint: hint)
    }
}

extension ParamsVerdict {
    /// For the producer, seen from the body of the send.
    fileprivate var answered: [Violation] {
        violations.map { Violation(.body(JSONPointer(["params"] + $0.pointer.tokens)), $0.message) }
    }
}
