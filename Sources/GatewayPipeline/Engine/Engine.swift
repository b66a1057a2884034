package import CompliancePolicy
import Dispatch
import Foundation
package import GateVocabulary
import Synchronization
import WireProtocol

/// The one writer.
///
/// Takes whatever has queued up as a micro-batch and runs it in one transaction: every operation reads
/// its facts through the open transaction, and so sees what its predecessors wrote; sealing runs on
/// the pool meanwhile; one commit makes everything durable; only then are the answers given. Batches
/// form by themselves under load; nobody waits for a timer.
///
///     queue → BEGIN IMMEDIATE → operation 1 … operation n → seals are ready → COMMIT → answers
///
/// Crash points. Before COMMIT returns nothing happened and nobody was answered: a restart knows
/// nothing of the batch, and callers repeat their requests. After COMMIT everything happened, some may
/// not have been answered: a repeated id gets the first answer.
package final class Engine: Sendable {
    private let queue: OperationQueue
    private let store: any GateStore
    private let policy: PolicyInForce
    let surroundings: EngineSurroundings
    let health = CommitHealth()
    let inFlight = MessagesInFlight()
    private let stopped = DispatchSemaphore(value: 0)
    private let counters = Mutex(EngineCounters())
    /// Recorded in front of everything else; `nil` once it is durable.
    private let opening = Mutex<Opening?>(nil)

    package typealias Opening = @Sendable (_ batch: BatchContext, _ now: Instant) throws -> Void

    package init(store: any GateStore, policy: PolicyInForce, surroundings: EngineSurroundings) {
        self.store = store
        self.policy = policy
        self.surroundings = surroundings
        self.queue = OperationQueue(limits: surroundings.limits)
    }

    /// Starts the engine's thread. Call it once.
    ///
    /// - Parameter opening: What the first batch that can be committed records in front of its own. Until it is durable
    ///   nothing else is, and every operation is refused with the reason.
    package func start(opening: Opening? = nil) {
        self.opening.withLock { $0 = opening }
        let thread = Thread { [self] in
            Thread.current.name = "engine"
            run()
            stopped.signal()
        }
        thread.start()
    }

    /// Hands an operation over; never blocks. When it is not taken, `refuse` has been called.
    package func submit(_ operation: any EngineOperation) {
        if let failure = queue.append(operation) { operation.refuse(failure) }
    }

    /// Finishes what waits, then stops. Blocks until the last batch is answered. Call it once.
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
        while true {
            let batch = queue.take(countMax: surroundings.limits.batchOperationCountMax)
            if batch.isEmpty { return }
            commit(batch)
        }
    }

    /// Commits a batch, without those of its operations that cannot be sealed.
    private func commit(_ batch: [any EngineOperation]) {
        var remaining = batch
        while !remaining.isEmpty {
            var begun: BatchContext?
            do {
                let (outcomes, batch) = try store.write { transaction in
                    let batch = try BatchContext(
                        store: transaction, policy: policy.current, surroundings: surroundings,
                        inFlight: inFlight)
                    begun = batch
                    return (try perform(remaining, in: batch), batch)
                }
                begun = nil
                opening.withLock { $0 = nil }
                batch.release()
                // Durable from here on. A crash now loses answers, never what they say.
                if batch.provesTheWay { health.committed(at: surroundings.clock.reading().uptime) }
                answer(remaining, outcomes)
                for alarm in batch.alarms { surroundings.alarm(alarm) }
                if batch.hasNews { surroundings.committed() }
                return
            } catch let failure as SealingFailure {
                begun?.abandon()
                // One body could not be sealed: that send is refused, the rest run again on a fresh transaction.
                remaining[failure.operation].refuse(.sealingFailed(failure.reason))
                remaining.remove(at: failure.operation)
            } catch let error as StoreError {
                begun?.abandon()
                refuse(remaining, error)
                return
            } catch {
                begun?.abandon()
                refuse(remaining, EngineFailure(error))
                return
            }
        }
    }

    private enum OperationOutcome {
        case done(@Sendable () -> Void)
        case refused(EngineFailure)
    }

    private func perform(
        _ operations: [any EngineOperation], in batch: BatchContext
    ) throws -> [OperationOutcome] {
        if let opening = opening.withLock({ $0 }) { try opening(batch, batch.now()) }
        var outcomes: [OperationOutcome] = []
        outcomes.reserveCapacity(operations.count)
        for (position, operation) in operations.enumerated() {
            batch.currentOperation = position
            if operation.looksAtWhatWaits { try insertStaged(of: batch) }
            do {
                outcomes.append(.done(try batch.isolating { try operation.perform(in: batch) }))
            } catch let failure as EngineFailure {
                outcomes.append(.refused(failure))
            } catch let error as StoreError {
                if let damage = error.damage {
                    outcomes.append(.refused(.damaged(damage)))
                    continue
                }
                // The disk, not the operation: nothing after it would fare better.
                throw error
            } catch {
                outcomes.append(.refused(EngineFailure(error)))
            }
        }
        try insertStaged(of: batch)
        try batch.finish()
        return outcomes
    }

    /// Waits for the seals and writes their messages: before whoever looks at what waits, and before the commit.
    ///
    /// A withdrawal must find the messages of a send that stands before it in the same batch.
    private func insertStaged(of batch: BatchContext) throws {
        for message in batch.takeStaged() {
            var record = message.record
            do {
                record.body = try message.fill(message.ticket.wait())
            } catch {
                guard let waiting = message.waiting else {
                    throw SealingFailure(operation: message.operation, reason: "\(error)")
                }
                record = try batch.puttingOff(waiting, because: "it could not be sealed: \(error)")
                try batch.insert(record, offering: nil)
                continue
            }
            try batch.insert(record, offering: message.delivery)
        }
    }

    private func answer(_ operations: [any EngineOperation], _ outcomes: [OperationOutcome]) {
        counters.withLock {
            $0.batchCount += 1
            $0.operationCount += UInt64(operations.count)
        }
        for (operation, outcome) in zip(operations, outcomes) {
            switch outcome {
            case .done(let complete): complete()
            case .refused(let failure):
                doubt(failure)
                operation.refuse(failure)
            }
        }
    }

    /// Something was refused that may be true of every send: whoever asks has a commit probed for them. A clock that
    /// cannot be believed is told at once, once, because nothing is written that could tell it.
    private func doubt(_ failure: EngineFailure) {
        if health.failed(failure) {
            surroundings.alarm(
                "nothing is recorded: \(Problem(failure).detail ?? "the clock cannot be believed")")
        }
    }

    private func refuse(_ operations: [any EngineOperation], _ error: StoreError) {
        counters.withLock { $0.failedBatchCount += 1 }
        if case .lostDurability(let what) = error {
            // What is on disk is unknown, and a retry could trust the page cache wrongly. Answering
            // anything now could be a lie; a restart reads what is true.
            surroundings.durabilityLost(what)
        }
        refuse(operations, EngineFailure(error))
    }

    private func refuse(_ operations: [any EngineOperation], _ failure: EngineFailure) {
        doubt(failure)
        for operation in operations { operation.refuse(failure) }
    }
}

/// A body that could not be sealed, and whose it was.
private struct SealingFailure: Error {
    var operation: Int
    var reason: String
}

/// What the engine has done since it started.
package struct EngineCounters: Sendable, Hashable {
    package var batchCount: UInt64 = 0
    package var operationCount: UInt64 = 0
    package var failedBatchCount: UInt64 = 0
    package var queuedCount: Int = 0
}

/// What the engine needs from the world, besides the store.
package struct EngineSurroundings: Sendable {
    package var limits: EngineLimits
    package var clock: any Clock
    package var identifiers: any IdentifierSource
    package var sealers: SealerPool
    /// The name in the checkpoint's first line.
    package var trailOrigin: String
    package var keys: GateKeys
    /// Where a one-tap unsubscribe lands; the message id is appended.
    package var unsubscribeURL: String
    /// How far the published trail is behind, in milliseconds.
    package var publishLagMilliseconds: @Sendable () -> Int64
    /// Bytes left where the store lives.
    package var freeDiskByteCount: @Sendable () throws -> Int64
    /// An entry the store no longer holds, from the published tree.
    package var publishedEntry: @Sendable (UInt64) throws -> [UInt8]?
    /// Called after every commit that leaves something to publish or to hand over, on the engine's thread: wakes publisher and relay. Must not block.
    package var committed: @Sendable () -> Void
    /// Called after a commit with what somebody must look at, in words, without anything of a person.
    package var alarm: @Sendable (String) -> Void
    /// Called when a commit's durability is unknown; ends the process.
    package var durabilityLost: @Sendable (String) -> Never

    package init(
        limits: EngineLimits, clock: any Clock, identifiers: any IdentifierSource, sealers: SealerPool,
        trailOrigin: String, keys: GateKeys, unsubscribeURL: String,
        publishLagMilliseconds: @escaping @Sendable () -> Int64,
        freeDiskByteCount: @escaping @Sendable () throws -> Int64,
        publishedEntry: @escaping @Sendable (UInt64) throws -> [UInt8]?,
        committed: @escaping @Sendable () -> Void,
        alarm: @escaping @Sendable (String) -> Void, durabilityLost: @escaping @Sendable (String) -> Never
    ) {
        self.limits = limits
        self.clock = clock
        self.identifiers = identifiers
        self.sealers = sealers
        self.trailOrigin = trailOrigin
        self.keys = keys
        self.unsubscribeURL = unsubscribeURL
        self.publishLagMilliseconds = publishLagMilliseconds
        self.freeDiskByteCount = freeDiskByteCount
        self.publishedEntry = publishedEntry
        self.committed = committed
        self.alarm = alarm
        self.durabilityLost = durabilityLost
    }
}

/// The policy that decides. Swapped whole: a batch sees one bundle from its first facts to its commit.
package final class PolicyInForce: Sendable {
    private let policy: Mutex<CompiledPolicy>

    package init(_ policy: CompiledPolicy) {
        self.policy = Mutex(policy)
    }

    package var current: CompiledPolicy { policy.withLock { $0 } }

    package func replace(with next: CompiledPolicy) { policy.withLock { $0 = next } }
}
