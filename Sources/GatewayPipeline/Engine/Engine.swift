import Dispatch
import Foundation
package import GateSteps
package import GateVocabulary
import Synchronization
import WireProtocol

/// The only writer of the store.
///
/// Takes the operations that have queued up as a micro-batch: loads everything that the operations ask for, runs
/// their steps in the order they came, each on top of the changes of those before it; sealing runs on the pool
/// meanwhile; one commit writes everything. Another thread makes it durable and only then gives the answers
/// (``CommitAnswering``), while the next batch is stepped over it. Batches form by themselves under load; no timer delays
/// them.
///
///     queue → load → step 1 … step n → seals are ready → commit ┬→ durable → answers
///             load → step 1 … of the next batch              ←──┘
///
/// Crash points. Before the commit returns nothing happened and no caller was answered: a restart knows nothing of
/// the batch, and callers repeat their requests. Until it is durable a power cut may take it back, with everything after it,
/// and nothing of it was told. After that everything happened, some may not have been answered: a repeated id gets the first
/// answer.
package final class Engine: Sendable {
    private let queue: OperationQueue
    private let store: any GateStore
    private let policy: PolicyInForce
    let dependencies: EngineDependencies
    let health = CommitHealth()
    let inFlight = MessagesInFlight()
    /// Counts of the decisions and their results, since the process started.
    package let observed = GatewayCounters()
    private let stopped = DispatchSemaphore(value: 0)
    let answering: CommitAnswering
    private let counters = Mutex(EngineCounters())
    /// Recorded in front of everything else; `nil` once it is committed.
    private let opening = Mutex<Opening?>(nil)

    package typealias Opening = @Sendable (_ step: StepContext, _ now: Instant) throws -> Void

    package init(store: any GateStore, policy: PolicyInForce, dependencies: EngineDependencies) {
        self.store = store
        self.policy = policy
        self.dependencies = dependencies
        self.queue = OperationQueue(limits: dependencies.limits)
        answering = CommitAnswering(store: store)
    }

    /// Starts the engine's thread. Call it once.
    ///
    /// - Parameter opening: Recorded by the first batch that can be committed, before its own steps. Until it is
    ///   committed nothing else is, and every operation is refused with the reason.
    package func start(opening: Opening? = nil) {
        self.opening.withLock { $0 = opening }
        answering.start()
        let thread = Thread { [self] in
            run()
            answering.close()
            stopped.signal()
        }
        thread.start()
        // Not in the thread: a name that is set before `start` returns is lost (swift-corelibs-foundation).
        thread.name = "engine"
    }

    /// Hands an operation over; never blocks. When it is not taken, `refuse` has been called.
    package func submit(_ operation: any EngineOperation) {
        if let failure = queue.append(operation) { operation.refuse(failure) }
    }

    /// Finishes the waiting operations, then stops. Blocks until the last batch is answered. Call it once.
    package func drain() {
        queue.close()
        stopped.wait()
    }

    package var load: EngineCounters {
        var counters = counters.withLock { $0 }
        counters.queuedCount = queue.count
        return counters
    }

    private func run() {
        let own = EngineMemory(dependencies)
        while commitNext(own) {}
    }

    /// Waits for operations, and commits those that have queued up, on the caller's thread.
    ///
    /// - Returns: Whether there is more to come.
    func commitNext(_ own: EngineMemory) -> Bool {
        // So that operations that arrive meanwhile join this batch.
        answering.waitForSlot()
        let operations = queue.take(countMax: dependencies.limits.batchOperationCountMax)
        // An operation that asks the store which rows there are begins a batch, so that the store knows of everything before.
        // One that changes the policy ends its batch, so that nothing behind it is decided under the bundle of before.
        var start = 0
        while start < operations.count {
            var end = start + 1
            // By its place and in no closure, so that the operation is not copied.
            while end < operations.count, !operations[end].scans, !operations[end - 1].changesPolicy {
                end += 1
            }
            commit(Array(operations[start..<end]), own)
            start = end
        }
        return !operations.isEmpty
    }

    private func commit(_ operations: [any EngineOperation], _ own: EngineMemory) {
        let isPipelined = operations.indices.allSatisfy { operations[$0].isPipelined }
        if !isPipelined { answering.answerWaiting() }
        answering.acquireSlot()
        do {
            if let committed = try write(operations, own) {
                if isPipelined { answering.add(committed) } else { answering.answer(committed) }
            } else {
                answering.releaseSlot()
            }
        } catch {
            answering.releaseSlot()
            for operation in operations { commit([operation], own) }
        }
    }

    /// A damaged page that what is written once for all operations meets. Each is then committed by itself, and that one is refused
    /// whose page it is.
    private struct MustCommitAlone: Error {}

    /// Commits operations together, without those whose steps turn out to fail.
    ///
    /// - Returns: `nil` when nothing was committed, and every operation was refused.
    /// - Throws: ``MustCommitAlone``.
    private func write(
        _ operations: [any EngineOperation], _ own: EngineMemory
    ) throws -> CommitAnswering.CommittedBatch? {
        var failures: [Batch.StepNumber: Batch.StepFailure] = [:]
        var refusals: [Int: EngineFailure] = [:]
        for _ in 0..<Self.tryCountMax {
            let batch = Batch(
                store: store, policy: policy.current, dependencies: dependencies, inFlight: inFlight,
                own: own, failures: failures)
            do {
                let outcomes = try perform(operations, refusing: refusals, in: batch)
                let receipt = try batch.commit()
                opening.withLock { $0 = nil }
                batch.carryOver(receipt)
                return committed(
                    batch, operations, outcomes,
                    EntryPlaces(receipt: receipt, origin: dependencies.library.origin))
            } catch let failed as Batch.FailedSteps {
                batch.abandon()
                // All operations run again; the steps that failed are given their failure.
                failures.merge(failed.failures) { _, new in new }
            } catch let refused as RefusedOperation {
                batch.abandon()
                refusals[refused.position] = refused.failure
            } catch {
                batch.abandon()
                if operations.count > 1, (error as? StoreError)?.damage != nil { throw MustCommitAlone() }
                refuse(operations, error)
                return nil
            }
        }
        refuse(operations, EngineFailure.unavailable("a batch was begun too often"))
        return nil
    }

    /// The answers of a written batch, which wait until it is durable.
    private func committed(
        _ batch: Batch, _ operations: [any EngineOperation], _ outcomes: [OperationOutcome],
        _ places: EntryPlaces
    ) -> CommitAnswering.CommittedBatch {
        // The thread that answers has it from now on, by itself: it reads what the steps noted, and frees all that was loaded.
        nonisolated(unsafe) let batch = batch
        let mark = health.mark
        return CommitAnswering.CommittedBatch(
            complete: { [self] in
                let hasOffers = inFlight.releaseOldest()
                observed.count(batch.observations)
                if batch.provesCommits,
                    health.committed(
                        at: dependencies.clock.reading().uptime, after: mark, provesRoom: batch.provesRoom)
                {
                    dependencies.tell(.over("sends are recorded again"))
                }
                answer(operations, outcomes, places)
                for notice in batch.notices { dependencies.tell(notice) }
                if batch.hasNews || hasOffers { dependencies.committed() }
            },
            refuse: { [self] in refuse(operations, $0) })
    }

    /// Times that one batch is begun at most: each but the last ends with a failed step or operation, and the next refuses one more.
    private static let tryCountMax = 2048

    private enum OperationOutcome: Sendable {
        case done(@Sendable (EntryPlaces) -> Void)
        case refused(EngineFailure)
    }

    /// An operation that failed after some of its steps were kept. All operations run again without it, so that it
    /// leaves no trace.
    private struct RefusedOperation: Error {
        var position: Int
        var failure: EngineFailure
    }

    private func perform(
        _ operations: [any EngineOperation], refusing refusals: [Int: EngineFailure], in batch: Batch
    ) throws -> [OperationOutcome] {
        var asks: [Ask] = []
        asks.reserveCapacity(operations.count)
        for operation in operations { asks += operation.asks }
        try batch.load(asks)
        if let opening = opening.withLock({ $0 }) { try batch.step { try opening($0, $0.now()) } }
        var outcomes: [OperationOutcome] = []
        outcomes.reserveCapacity(operations.count)
        for (position, operation) in operations.enumerated() {
            batch.begin(position)
            if let failure = refusals[position] {
                outcomes.append(.refused(failure))
                continue
            }
            let keptCount = batch.keptCount
            do {
                outcomes.append(.done(try operation.perform(in: batch)))
            } catch {
                // A failure of the disk and not of the operation: every operation after it would fail too.
                if let error = error as? StoreError, error.damage == nil { throw error }
                let failure = EngineFailure(error)
                guard batch.keptCount == keptCount else {
                    throw RefusedOperation(position: position, failure: failure)
                }
                outcomes.append(.refused(failure))
            }
        }
        return outcomes
    }

    private func answer(
        _ operations: [any EngineOperation], _ outcomes: [OperationOutcome], _ places: EntryPlaces
    ) {
        counters.withLock {
            $0.batchCount += 1
            $0.operationCount += UInt64(operations.count)
        }
        for (operation, outcome) in zip(operations, outcomes) {
            switch outcome {
            case .done(let complete): complete(places)
            case .refused(let failure):
                noteFailure(failure)
                operation.refuse(failure)
            }
        }
    }

    /// Called for a refusal whose cause may affect every send: the next readiness check probes a commit. A clock that
    /// cannot be believed, and a disk or a trail that takes nothing, raise an alarm at once, once, because no entry is written
    /// that could say so.
    private func noteFailure(_ failure: EngineFailure, isOfStore: Bool = false) {
        if case .damaged(let damage) = failure { store.note(damage) }
        guard let outage = health.failed(failure, isOfStore: isOfStore) else { return }
        let what =
            switch outage {
            case .everything: "nothing is recorded"
            case .room: "sends are refused"
            }
        dependencies.tell(.alarm("\(what): \(failure.detail)"))
    }

    private func refuse(_ operations: [any EngineOperation], _ error: any Error) {
        if error is StoreError { counters.withLock { $0.failedBatchCount += 1 } }
        if case StoreError.lostDurability(let what) = error {
            // What is on disk is unknown, and a retry could trust the page cache wrongly. Answering
            // anything now could be a lie; a restart reads what is true.
            dependencies.durabilityLost(what)
        }
        let isOfStore = (error as? StoreError).map { $0.damage == nil } ?? false
        refuse(operations, EngineFailure(error), isOfStore: isOfStore)
    }

    private func refuse(
        _ operations: [any EngineOperation], _ failure: EngineFailure, isOfStore: Bool = false
    ) {
        noteFailure(failure, isOfStore: isOfStore)
        for operation in operations { operation.refuse(failure) }
    }
}

/// What the engine's thread has of its own, from one batch to the next.
final class EngineMemory {
    let identifiers: IdentifierSupply
    let people: RecentPeople

    init(_ dependencies: EngineDependencies) {
        identifiers = IdentifierSupply(dependencies.identifiers)
        people = RecentPeople(countMax: dependencies.limits.recentPersonCountMax)
    }
}

/// Counts of the engine's work since it started.
package struct EngineCounters: Sendable, Hashable {
    package var batchCount: UInt64 = 0
    package var operationCount: UInt64 = 0
    package var failedBatchCount: UInt64 = 0
    package var queuedCount: Int = 0
}
