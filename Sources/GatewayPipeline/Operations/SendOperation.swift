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
    /// The bytes of an entry, from the store or the published tree.
    let entryBytes: @Sendable (UInt64) throws -> [UInt8]
    /// Told of what is found damaged outside of a transaction, which notes its own.
    let noteDamage: @Sendable (StoredDamage) -> Void
    let reply: @Sendable (WireReply) -> Void

    var caller: CallerName? { attested.caller }
    var order: CallerOrder { .send(request.user) }
    var asks: [Ask] {
        [
            .request(RequestKey(caller: attested.caller, idHash: idHash)), .user(request.user), .headroom,
            .outboxDepth,
        ]
    }

    func perform(in batch: Batch) throws -> Completion { try batch.step { try step(in: $0) } }

    private func step(in batch: StepContext) throws -> Completion {
        if let earlier = try batch.view.send(caller: attested.caller, idHash: idHash) {
            return answerAgain(earlier, under: batch.policy)
        }
        let now = try batch.now()
        try batch.requireRoom(isSecurity: lane == .security)
        try batch.requireForwards(to: request.user, for: attested, at: now)
        let considered = try ConsideredSend(request, as: attested, in: batch.deciding(at: now))
        let (person, material, drafts) = (considered.person, considered.material, considered.drafts)
        let type = batch.policy.type(request.type)

        let duty = type.flatMap { type in
            type.mandatory == nil ? nil : person?.duty(type, request.params)
        }
        let isUnreached = isUnreached(drafts)
        let owed =
            try type.map {
                try batch.owed(
                    after: drafts, of: $0, duty: duty, to: person?.subject.id,
                    isInOrder: isUnreached || drafts.contains { $0.decision.outcome.isPromise })
            } ?? []
        let entry = SendEntry(
            send: material.send, subject: person?.subject.id, caller: attested.caller,
            peer: .init(userID: peer.userID, groupID: peer.groupID, processID: peer.processID),
            request: recordedRequest(considered, isRegistered: type != nil, under: batch.policy),
            paramsVerdict: considered.verdict.recorded(for: request.type, under: batch.policy),
            deliveries: drafts.map(\.record), policy: batch.policy.digest, tzdata: LocalTime.dataVersion,
            replaces: considered.replaced, owed: owed)
        let trail = try batch.record(at: now) { index, time in
            try entry.encode(index: index, time: time, facts: drafts.map(\.encodedFacts))
        }
        let record = SendRecord(
            id: material.send, caller: attested.caller, idHash: idHash, contentMAC: contentMAC,
            subject: person?.subject.id, type: request.type, category: type?.category,
            channel: request.channel, receivedAt: now, entryIndex: trail.index, requestID: request.id.text,
            destinationNames: drafts.destinationNames)
        try batch.view.insertSend(record)
        if let person, let event = considered.event, entry.overall.outcome.isPromise {
            try batch.view.putTold(
                ToldRecord(event: event, send: material.send, at: now), to: person.subject.id)
        }
        if let type, let duty, let person, entry.overall.outcome.isPromise {
            try batch.settleDuty(
                duty, of: type, towards: person.subject.id, owing: !owed.isEmpty, send: material.send,
                caller: attested.caller, at: now)
        }
        if let type, !entry.overall.outcome.isPromise, isUnreached, !owed.isEmpty {
            try batch.raiseUnreached(
                type, of: material.send, by: attested.caller, to: person?.subject.id, at: now)
        }
        if let person { try release(drafts, of: person, entry: entry, in: batch, at: now) }
        let violations = considered.verdict.answered
        let hint = entry.overall.reason == .typeDisabled ? type?.disabledHint : nil
        return { [isStreamLine, reply] places in
            let answer = SendAnswer(
                entry, of: record, trail: places[trail], isReplayed: false, violations: violations, hint: hint
            )
            reply(WireReply(answer.answer(isStreamLine: isStreamLine)))
        }
    }

    func refuse(_ failure: EngineFailure) {
        reply(WireReply(Problem(failure).answer))
    }

    /// The first answer again: the same id with the same content sends nothing twice.
    ///
    /// The writer only finds out that it is a repeat. Reading the entry and rebuilding the answer from it happens
    /// on a reader's thread, so that somebody who repeats a whole campaign does not hold up everybody else's sends.
    private func answerAgain(_ earlier: SendRecord, under policy: CompiledPolicy) -> Completion {
        guard HMACKey.constantTimeEqual(earlier.contentMAC, contentMAC) else {
            let problem = Problem(
                .idConflict, detail: "send `\(earlier.id)` has this id and other content; use a new id")
            return { [reply] _ in reply(WireReply(problem.answer)) }
        }
        return { [self] places in
            // Where the entry really stands, should the first send be of this very batch.
            let index = places.index(earlier.entryIndex)
            let isTaken = readers.submit(for: attested.caller, lane: lane) { [self] in
                do {
                    let bytes = try entryBytes(index)
                    let entry = try earlier.entry(in: bytes)
                    let trail = TrailReference(entry: bytes, index: index, origin: places.origin)
                    let answer = SendAnswer(
                        entry, of: earlier, trail: trail, isReplayed: true,
                        violations: violations(in: entry, under: policy),
                        hint: entry.overall.reason == .typeDisabled
                            ? policy.type(request.type)?.disabledHint : nil)
                    reply(WireReply(answer.answer(isStreamLine: isStreamLine)))
                } catch {
                    if let damage = (error as? StoreError)?.damage { noteDamage(damage) }
                    refuse(EngineFailure(error))
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
                Violation(.body($0), "did not fit the type at the time")
            }
        }
        return ParamsVerdict(
            request.params, deepLink: request.deepLink, of: request.type, under: policy
        ).answered
    }

    /// Whether the send was in order, and it is for want of a way to the recipient that nobody gets it.
    private func isUnreached(_ drafts: [DeliveryDraft]) -> Bool {
        drafts.allSatisfy { draft in
            draft.decision.reason == .expiresBeforeDue
                || (draft.decision.decidingGate ?? .expiry) >= .destination
        }
    }

    /// Only what a registry or the gateway itself named is written as it is.
    private func recordedRequest(
        _ considered: ConsideredSend, isRegistered: Bool, under policy: CompiledPolicy
    ) -> SendEntry.RecordedRequest {
        let person = considered.person
        func tag(_ kind: TagKind, _ text: String?) -> Tag? {
            text.flatMap { text in person?.subject.tag(kind, text) }
        }
        return SendEntry.RecordedRequest(
            type: isRegistered ? request.type : nil,
            typeTag: isRegistered ? nil : tag(.type, request.type.text),
            typeByteCount: isRegistered ? nil : request.type.text.utf8.count,
            channel: request.channel, critical: request.critical,
            idTag: tag(.request, request.id.text),
            destinationTag: request.destination.flatMap { id in
                person?.destination(id, on: request.channel)?.tag ?? tag(.device, id.text)
            },
            fallbackFor: considered.replaced == nil ? nil : request.fallbackFor,
            ttlSeconds: request.ttlSeconds,
            collapseTag: tag(.collapseKey, request.collapseKey),
            deepLinkTag: tag(.deepLink, request.deepLink),
            locale: policy.registeredLocale(for: request.locale))
    }

    /// Puts what may go into the outbox and counts it once, however many devices it goes to.
    private func release(
        _ drafts: [DeliveryDraft], of person: RecipientSnapshot, entry: SendEntry, in batch: StepContext,
        at now: Instant
    ) throws {
        for draft in drafts { try batch.enqueue(draft, of: person, at: now) }
        if entry.overall.outcome == .forward, let category = batch.policy.type(request.type)?.category {
            try batch.view.countForward(
                of: person.subject.id, type: request.type, category: category, at: now, send: entry.send)
        }
    }
}

extension StepContext {
    /// Has the forwards loaded that a cap counts, so that the step begins again here and not after all is composed.
    fileprivate func requireForwards(to user: UserID, for request: AttestedRequest, at now: Instant) throws {
        guard let needs = policy.needs(for: request), let subject = try view.subject(of: user)?.id,
            let window = [needs.typeWindowSeconds, needs.categoryWindowSeconds].compactMap(\.self).max()
        else { return }
        try view.require(.forwards(subject, since: now.advanced(bySeconds: -window)))
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
                    destination: record.destination.map { send.name(of: $0) },
                    decision: record.decision, messageID: record.message, keyID: record.key)
            }, hidesRecipient: hides, trail: trail, isReplayed: isReplayed,
            violations: entry.overall.reason == .invalidParams ? violations : [], hint: hint,
            owed: entry.owed)
    }
}

extension ParamsVerdict {
    /// For the producer, seen from the body of the send.
    fileprivate var answered: [Violation] {
        violations.map { Violation(.body($0.pointer), $0.message) }
    }
}
