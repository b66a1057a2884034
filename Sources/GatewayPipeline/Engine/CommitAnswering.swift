import Dispatch
import Foundation
import GateSteps
import Synchronization

/// Makes committed batches durable in their order, and answers them then, while the engine steps the next one.
///
///     engine    step 1  commit 1 │ step 2         commit 2 │ step 3 …
///     answers                    │ synchronize 1  answer 1 │ synchronize 2  answer 2
///
/// - Ordering: that of the commits. Nothing of a batch is answered or handed over before it and every earlier one is durable.
/// - Bounds: ``slotCount`` batches; the engine waits then, and the next batch grows meanwhile.
/// - Failure: a lost synchronization ends the process, so no batch that is committed on top of it is ever answered.
final class CommitAnswering: Sendable {
    /// A batch that is written and not answered yet.
    struct CommittedBatch: Sendable {
        /// Its answers, and what else waits for it to be durable. Called on the thread that answers or the engine's, one batch at
        /// a time: a crash from here on loses answers, never what they say.
        var complete: @Sendable () -> Void
        /// Called in place of it when the batch cannot be made durable.
        var refuse: @Sendable (any Error) -> Void
    }

    /// Batches under way at once: one that is being made durable, and one that is being stepped over it.
    private static let slotCount = 2

    private let store: any GateStore
    private let waiting = Mutex<[CommittedBatch]>([])
    /// Held while batches are made durable and answered: the threads that do so come one after another.
    private let answeringLock = NSLock()
    private let slots = DispatchSemaphore(value: slotCount)
    private let batchAdded = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let isClosed = Atomic(false)

    init(store: any GateStore) { self.store = store }

    /// Starts the thread that answers. Call it once, and ``close()`` at the end.
    func start() {
        let thread = Thread { [self] in
            var isLast = false
            while !isLast {
                batchAdded.wait()
                // Read first: whatever was added before is answered below.
                isLast = isClosed.load(ordering: .acquiring)
                answerWaiting()
            }
            ended.signal()
        }
        thread.start()
        thread.name = "answers"
    }

    /// Answers what is left, and ends the thread. Blocks until it has.
    func close() {
        isClosed.store(true, ordering: .releasing)
        batchAdded.signal()
        ended.wait()
    }

    /// Blocks until a slot is free, and leaves it so.
    func waitForSlot() {
        acquireSlot()
        releaseSlot()
    }

    /// Blocks until one more batch may be begun. Then either ``add(_:)`` or ``releaseSlot()`` is called.
    func acquireSlot() { slots.wait() }

    /// After a batch that was not committed.
    func releaseSlot() { slots.signal() }

    /// A batch that was just committed. Does not block.
    func add(_ batch: CommittedBatch) {
        waiting.withLock { $0.append(batch) }
        batchAdded.signal()
    }

    /// A batch that was just committed, made durable and answered on the caller's thread. Blocks.
    func answer(_ batch: CommittedBatch) {
        waiting.withLock { $0.append(batch) }
        answerWaiting()
    }

    /// Makes everything durable that was added before the call, and answers it, on the caller's thread. Blocks.
    func answerWaiting() {
        answeringLock.withLock {
            let batches = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            guard !batches.isEmpty else { return }
            let failure: (any Error)?
            do {
                try store.synchronize()
                failure = nil
            } catch {
                failure = error
            }
            for batch in batches {
                if let failure { batch.refuse(failure) } else { batch.complete() }
                slots.signal()
            }
        }
    }
}
