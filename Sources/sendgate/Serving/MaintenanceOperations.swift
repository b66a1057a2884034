import CompliancePolicy
import Dispatch
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import Synchronization

/// What the gateway writes on its own account. Goes through the engine's queue like everything that writes.
struct MaintenanceOperation: EngineOperation {
    let work: @Sendable (_ batch: Batch) throws -> Void
    let finished: @Sendable (EngineFailure?) -> Void
    let scans: Bool

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }

    init(
        finished: @escaping @Sendable (EngineFailure?) -> Void = { _ in }, scans: Bool = false,
        work: @escaping @Sendable (_ batch: Batch) throws -> Void
    ) {
        self.work = work
        self.finished = finished
        self.scans = scans
    }

    func perform(in batch: Batch) throws -> Completion {
        try work(batch)
        return { [finished] _ in finished(nil) }
    }

    func refuse(_ failure: EngineFailure) { finished(failure) }

    /// The gateway stops.
    static func stop(finished: @escaping @Sendable (EngineFailure?) -> Void) -> MaintenanceOperation {
        MaintenanceOperation(finished: finished) { batch in
            let entry = StopEntry(policy: batch.policy.digest)
            try batch.step { try $0.record(entry, at: $0.now()) }
        }
    }

    /// Remembers how far the published tree is durable, so that the store may let go of what it holds.
    static func published(_ size: UInt64) -> MaintenanceOperation {
        MaintenanceOperation { batch in
            try batch.step { step in
                // Marks wait in the queue like everything else; a later one may have overtaken a repeated one.
                guard step.memory.publishedSize() < size else { return }
                step.memory.setPublishedSize(size)
            }
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

extension Engine {
    /// Runs `work` as an operation of its own and waits until it is committed. Not for a thread that the engine waits for.
    func performing<Result: Sendable>(_ work: @escaping @Sendable (_ batch: Batch) throws -> Result) throws
        -> Result
    {
        let done = DispatchSemaphore(value: 0)
        let found = Mutex<(Result?, EngineFailure?)>((nil, nil))
        submit(
            MaintenanceOperation(finished: { failure in
                found.withLock { $0.1 = failure }
                done.signal()
            }) { batch in
                let result = try work(batch)
                found.withLock { $0.0 = result }
            })
        done.wait()
        let (result, failure) = found.withLock { $0 }
        if let failure { throw failure }
        guard let result else { preconditionFailure("an operation that was committed gave no result") }
        return result
    }
}

/// Deletes idempotency keys, events and counters past their retention, a bounded number at a time.
struct PruneOperation: EngineOperation {
    let retentionMilliseconds: Int64
    let finished: @Sendable (Int) -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .general }

    func perform(in batch: Batch) throws -> Completion {
        try batch.step { step in
            step.memory.prune(before: try step.now().advanced(byMilliseconds: -retentionMilliseconds))
        }
        return { [finished] places in finished(places.receipt.prunedRowCount) }
    }

    /// Not now, then; the next hour asks again.
    func refuse(_ failure: EngineFailure) { finished(0) }
}

/// Seals rows anew under the data key in use, a bounded number at a time.
struct ResealOperation: EngineOperation {
    let rowCountMax: Int
    let finished: @Sendable (Result) -> Void

    enum Result: Sendable {
        /// Every row is under this key, the one in use.
        case unnecessary(key: String)
        case went(Resealing)
        /// Not now, then.
        case failed
    }

    var caller: CallerName? { nil }
    var lane: EngineLane { .general }

    func perform(in batch: Batch) throws -> Completion {
        let key = try batch.step { step -> String? in
            guard let active = try step.memory.keyring()?.active(.data)?.id,
                try step.memory.resealedDataKey() != active
            else { return try step.memory.resealedDataKey() }
            step.memory.reseal(rowCountMax: rowCountMax)
            return nil
        }
        return { [finished] places in
            if let resealing = places.receipt.resealing {
                finished(.went(resealing))
            } else {
                finished(key.map { .unnecessary(key: $0) } ?? .failed)
            }
        }
    }

    func refuse(_ failure: EngineFailure) { finished(.failed) }
}
