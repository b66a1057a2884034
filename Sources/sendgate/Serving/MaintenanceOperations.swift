import CompliancePolicy
import Dispatch
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import Synchronization

/// What the gateway writes on its own account.
extension Engine {
    /// The gateway stops.
    func recordStop(finished: @escaping @Sendable (EngineFailure?) -> Void) {
        submit(in: .security, finished: finished) { batch in
            let entry = StopEntry(policy: batch.policy.digest)
            try batch.step { try $0.record(entry, at: $0.now()) }
        }
    }

    /// Remembers how far the published tree is durable, so that the store may let go of what it holds.
    func notePublished(_ size: UInt64) {
        submit(in: .security, finished: { _ in }) { batch in
            try batch.step { step in
                // Marks wait in the queue like everything else; a later one may have overtaken a repeated one.
                guard step.memory.publishedSize() < size else { return }
                step.memory.setPublishedSize(size)
            }
        }
    }

    /// Runs `work` as an operation of its own and waits until it is committed. Not for a thread that the engine waits for.
    func performing<Result: Sendable>(_ work: @escaping @Sendable (_ batch: Batch) throws -> Result) throws
        -> Result
    {
        let done = DispatchSemaphore(value: 0)
        let found = Mutex<(Result?, EngineFailure?)>((nil, nil))
        submit(
            in: .security,
            finished: { failure in
                found.withLock { $0.1 = failure }
                done.signal()
            },
            work: { batch in
                let result = try work(batch)
                found.withLock { $0.0 = result }
            })
        done.wait()
        let (result, failure) = found.withLock { $0 }
        if let failure { throw failure }
        guard let result else { preconditionFailure("an operation that was committed gave no result") }
        return result
    }

    /// Deletes idempotency keys, events and counters past their retention, a bounded number at a time.
    ///
    /// - Parameter finished: Told how many rows went; asked again until none does.
    func prune(retentionMilliseconds: Int64, finished: @escaping @Sendable (Int) -> Void) {
        // Not now, then; the next hour asks again.
        submit(in: .general, refused: { _ in finished(0) }) { batch in
            try batch.step { step in
                step.memory.prune(before: try step.now().advanced(byMilliseconds: -retentionMilliseconds))
            }
            return { places in finished(places.receipt.prunedRowCount) }
        }
    }

    /// Seals rows anew under the data key in use, a bounded number at a time.
    func reseal(rowCountMax: Int, finished: @escaping @Sendable (ResealOutcome) -> Void) {
        submit(in: .general, refused: { _ in finished(.failed) }) { batch in
            let key = try batch.step { step -> String? in
                guard let active = try step.memory.keyring()?.active(.data)?.id,
                    try step.memory.resealedDataKey() != active
                else { return try step.memory.resealedDataKey() }
                step.memory.reseal(rowCountMax: rowCountMax)
                return nil
            }
            return { places in
                if let resealing = places.receipt.resealing {
                    finished(.went(resealing))
                } else {
                    finished(key.map { .unnecessary(key: $0) } ?? .failed)
                }
            }
        }
    }
}

/// What a piece of ``Engine/reseal(rowCountMax:finished:)`` came to.
enum ResealOutcome: Sendable {
    /// Every row is under this key, the one in use.
    case unnecessary(key: String)
    case went(Resealing)
    /// Not now, then.
    case failed
}
