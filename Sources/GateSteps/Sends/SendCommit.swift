import BundleModel
import GateVocabulary
import GateRecords
import SendPlanning

/// Writing what was evaluated. Every send is written here, a caller's and the gateway's own.
extension StepContext {
    /// Writes a send whose decisions are made: its entry, the record that its id is found by, what it tells, its messages
    /// and the forward that caps count. Of one in shadow there are no messages, and the rest is found by sends in shadow alone.
    ///
    /// - Parameters:
    ///   - overall: The entry's, which stands for all its deliveries.
    ///   - record: With the index that the next entry will have.
    ///   - drafts: Its decisions, in the order of the entry's deliveries.
    ///   - event: What it tells on its channel, which is told once.
    ///   - traceParent: Of the request.
    ///   - requiringRoom: Whether the bounds of the outbox are held.
    ///   - isHeldBack: Whether the messages are put in the outbox later in this step.
    func commit(
        _ entry: SendEntry, overall: Decision, as record: consuming SendRecord, _ drafts: [DeliveryDraft],
        of type: NotificationType?, to person: RecipientSnapshot?, telling eventTag: Tag? = nil,
        tracedTo traceParent: TraceParent? = nil, requiringRoom: Bool = false, isHeldBack: Bool = false,
        at now: Instant
    ) throws -> EntryReference {
        let trail = try self.record(entry, at: now)
        let isShadow = entry.isShadow
        observe(
            isShadow
                ? .shadowed(
                    reason: overall.reason, category: type?.category, channel: record.channel)
                : .decided(
                    reason: overall.reason,
                    type: type.map { TypeAxes(category: $0.category, tier: $0.tier) },
                    channel: record.channel, caller: record.caller))
        memory.insertSend(record)
        guard let person else { return trail }
        if let eventTag, overall.outcome.isPromise {
            memory.putDedupe(
                DedupeRecord(eventTag: eventTag, send: entry.send, at: now), to: person.subject.id)
        }
        if let type {
            _ = try release(
                isHeldBack || isShadow ? [] : drafts, of: entry.send, type, to: person,
                isForward: overall.outcome == .forward, inShadow: isShadow, tracedTo: traceParent,
                requiringRoom: requiringRoom, at: now)
        }
        return trail
    }

    /// Puts the messages that may go into the outbox, and counts the send once, however many devices it goes to.
    ///
    /// - Parameters:
    ///   - traceParent: Of the request.
    ///   - waiting: The row that the message takes the place of.
    /// - Returns: Whether they are there; else ``waiting`` is, for a later try.
    func release(
        _ drafts: [DeliveryDraft], of send: SendID, _ type: NotificationType, to person: RecipientSnapshot,
        isForward: Bool, inShadow isShadow: Bool = false, tracedTo traceParent: TraceParent? = nil,
        requiringRoom: Bool = false, insteadOf waiting: OutboxRecord? = nil, at now: Instant
    ) throws -> Bool {
        for draft in drafts where draft.message != nil {
            if requiringRoom {
                try requireOutboxRoom(
                    for: draft.request.caller, to: person.subject.id,
                    isSecurity: type.category == .security)
            }
            guard try enqueue(draft, of: person, tracedTo: traceParent, insteadOf: waiting, at: now) else {
                return false
            }
        }
        if isForward {
            memory.countForward(
                of: person.subject.id, type: type.id, category: type.category, at: now, send: send,
                inShadow: isShadow)
        }
        return true
    }
}
