package import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning

/// What a step works with: what is known of the store, the policy in force and the moment.
///
/// A step reads and changes ``memory`` alone. It reaches no store, clock, random source, logger or socket. Reading
/// something that is not loaded throws ``MissingRows``, and the step runs again once it is loaded.
package final class StepContext {
    package let memory: GateMemory
    package let policy: CompiledPolicy
    let moment: Moment
    package let settings: StepSettings
    let identifiers: IdentifierPool
    /// The person whom the step imports; `nil` in any other.
    var imported: ImportedChanges?

    var limits: EngineLimits { settings.limits }

    package init(
        _ memory: GateMemory, moment: Moment, policy: CompiledPolicy, settings: StepSettings,
        identifiers: IdentifierPool
    ) {
        self.memory = memory
        self.moment = moment
        self.policy = policy
        self.settings = settings
        self.identifiers = identifiers
    }

    /// The time for one step's facts. Never before the newest entry.
    ///
    /// - Throws: What ``ClockGuard/time(_:after:recordedAt:)`` throws.
    package func now() throws -> Instant { try moment.time.get() }

    /// The index the next recorded entry will have.
    package var upcomingIndex: UInt64 { memory.upcomingIndex }

    /// Says that there is something for the publisher or the relay to do.
    func announce() { memory.affect { $0.hasNews = true } }

    package func noteProvedCommit() { memory.affect { $0.provesCommits = true } }

    /// Adds an observation, which is counted once the step is durable.
    func observe(_ observation: Observation) { memory.affect { $0.observations.append(observation) } }

    /// Raises an alarm for an operator once the step is durable.
    func alarm(_ text: String) { memory.affect { $0.notices.append(.alarm(text)) } }

    /// Writes one entry, whose index is ``upcomingIndex``.
    func record(_ entry: StoredEntry) throws -> EntryReference {
        memory.append(entry)
        memory.setNewestEntryClock(moment.reading)
        memory.affect {
            $0.hasNews = true
            $0.provesCommits = true
        }
        return EntryReference(index: entry.index, bytes: entry.bytes)
    }

    /// An entry that was recorded before, as an answer cites it.
    func reference(toEntry index: UInt64) throws -> EntryReference {
        EntryReference(index: index, bytes: try memory.entry(index))
    }

    // MARK: Messages

    /// Puts a message in the outbox.
    ///
    /// - Parameters:
    ///   - destination: Where it goes; `nil` for one that cannot go now.
    ///   - pending: The body, where the origin key has to seal or sign it first.
    ///   - waiting: The row it takes the place of.
    /// - Returns: Whether it is there; else ``waiting`` is, for a later try.
    func enqueue(
        _ record: consuming OutboxRecord, to destination: Destination?, composedAt: Instant,
        awaiting pending: DeliveryPlan?, insteadOf waiting: OutboxRecord? = nil
    ) throws -> Bool {
        if let pending {
            if let reason = moment.sealingFailure {
                // A waiting message was promised already, and the caller does not ask for it again.
                guard let waiting else { throw EngineFailure.sealingFailed(reason) }
                let later = try puttingOff(waiting, because: "it could not be sealed or signed: \(reason)")
                try insert(later, to: nil, composedAt: composedAt)
                return false
            }
            memory.affect { $0.pendingBodies.append(pending) }
        }
        try insert(record, to: destination, composedAt: composedAt)
        return true
    }

    /// Writes a new row. A message that can go at once, and is not behind others, is offered to the relay from
    /// memory; its row is then written as that of a message that was tried.
    private func insert(
        _ record: consuming OutboxRecord, to destination: Destination?, composedAt: Instant
    ) throws {
        let lane = DeliveryLane(of: record.category)
        // A new message does not overtake one that waits its turn.
        let isNext = memory.due(in: lane).map { $0 > record.decidedAt } ?? true
        guard isNext, memory.offerRoom(in: lane) > 0, let destination else {
            noteDue(in: lane, at: record.notBefore)
            return memory.insertOutbox(record)
        }
        offer(
            MessageOffer(
                delivery: Delivery(
                    record, to: destination, composedAt: composedAt, at: record.decidedAt),
                lane: lane, tier: record.tier, caller: record.request.caller, decidedAt: record.decidedAt))
        record.attemptCount = 1
        record.attemptedAt = record.decidedAt
        memory.offerOutbox(record)
    }

    /// Gives a message to the relay once the batch is durable.
    package func offer(_ offer: consuming MessageOffer) { memory.offer(offer) }

    /// Replaces a row that goes on waiting.
    func update(_ row: OutboxRecord) throws {
        memory.updateOutbox(row)
        noteDue(in: DeliveryLane(of: row.category), at: row.notBefore)
    }

    /// Moves a row's time without reading it.
    func postpone(_ message: MessageID, in lane: DeliveryLane, until: Instant) throws {
        memory.postponeOutbox(message, until: until)
        noteDue(in: lane, at: until)
    }

    package func noteDue(in lane: DeliveryLane, at due: Instant) {
        memory.noteDue(in: lane, at: due)
    }

    /// Prepares a waiting row for a new decision. An offered message that the relay has not taken yet is recalled,
    /// and waits in the store again; its row still counts as tried where an earlier try may have got through.
    func recall(_ row: OutboxRecord) throws -> OutboxRecord {
        guard row.attemptedAt != nil, try memory.recall(row.message),
            case .keep(let phase) = OutboxState(row).after(.recalled)
        else { return row }
        var row = row
        row.attemptCount -= 1
        try keep(&row, in: phase)
        return row
    }

    /// Deletes a row. A message that was offered, whose row was written as tried, is recalled as well.
    func remove(_ row: OutboxRecord) throws {
        if row.attemptedAt != nil { _ = try memory.recall(row.message) }
        memory.removeOutbox(row.message)
    }
}

/// Settings that are the same for every step of a batch. A class, so that a step is given them without a copy.
package final class StepSettings: Sendable {
    package let limits: EngineLimits
    package let index: IndexKey
    /// Where a one-tap unsubscribe lands.
    package let unsubscribe: UnsubscribeAddress
    /// The process that entries of the gateway's own sends name.
    package let process: SendEntry.PeerEvidence
    package let drift: DriftSettings
    /// Whether the store may have sends that came back from the trail, which are found by their `id_tag` alone.
    package let hasRestoredSends: Bool

    package init(
        limits: EngineLimits, index: IndexKey, unsubscribe: UnsubscribeAddress,
        process: SendEntry.PeerEvidence, drift: DriftSettings = DriftSettings(),
        hasRestoredSends: Bool = false
    ) {
        self.hasRestoredSends = hasRestoredSends
        self.limits = limits
        self.index = index
        self.unsubscribe = unsubscribe
        self.process = process
        self.drift = drift
    }

    /// The same with another way to unsubscribe.
    package convenience init(_ settings: StepSettings, unsubscribe: UnsubscribeAddress) {
        self.init(
            limits: settings.limits, index: settings.index, unsubscribe: unsubscribe,
            process: settings.process, drift: settings.drift, hasRestoredSends: settings.hasRestoredSends)
    }
}
