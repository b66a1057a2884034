import AuditTrail
import CanonicalJSON
import GateVocabulary
import GatewayPipeline

/// What the gateway writes on its own account. Goes through the engine's queue like everything that writes.
struct HouseOperation: EngineOperation {
    let work: @Sendable (_ batch: BatchContext, _ now: Instant) throws -> Void
    let finished: @Sendable (EngineFailure?) -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }

    init(
        finished: @escaping @Sendable (EngineFailure?) -> Void = { _ in },
        work: @escaping @Sendable (_ batch: BatchContext, _ now: Instant) throws -> Void
    ) {
        self.work = work
        self.finished = finished
    }

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        try work(batch, batch.now())
        return { finished(nil) }
    }

    func refuse(_ failure: EngineFailure) { finished(failure) }

    /// An entry of the gateway's own.
    static func entry(
        _ kind: EntryKind, finished: @escaping @Sendable (EngineFailure?) -> Void = { _ in },
        members: @escaping @Sendable (BatchContext) -> JSONObject
    ) -> HouseOperation {
        HouseOperation(finished: finished) { batch, now in
            try batch.record(at: now) { index, time in
                try TrailEntry(kind: kind, index: index, time: time, members: members(batch)).encoded().bytes
            }
        }
    }

    /// Remembers how far the published tree is durable, so that the store may let go of what it holds.
    static func published(_ size: UInt64) -> HouseOperation {
        HouseOperation { batch, _ in
            // Marks wait in the queue like everything else; a later one may have overtaken a repeated one.
            guard try batch.store.publishedSize() < size else { return }
            try batch.store.setPublishedSize(size)
        }
    }

    /// Lets go of what is older than its retention.
    ///
    /// - Parameter finished: Told how many rows went; asked again until none does.
    static func prune(
        retentionMilliseconds: Int64, finished: @escaping @Sendable (Int) -> Void
    ) -> PruneOperation {
        PruneOperation(retentionMilliseconds: retentionMilliseconds, finished: finished)
    }
}

/// Deletes idempotency keys, events and counters past their retention, a bounded number at a time.
struct PruneOperation: EngineOperation {
    let retentionMilliseconds: Int64
    let finished: @Sendable (Int) -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .general }

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        let count = try batch.store.prune(
            before: batch.now().advanced(byMilliseconds: -retentionMilliseconds))
        return { finished(count) }
    }

    /// Not now, then; the next hour asks again.
    func refuse(_ failure: EngineFailure) { finished(0) }
}
