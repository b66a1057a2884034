import AuditTrail
import BundleModel
import CommandTerminal
import CompliancePolicy
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import Logging
import GateRecords
import ServiceLifecycle
import Synchronization
import WireProtocol

/// The engine and the publisher: the first to start, the last to stop.
///
///     start: engine → publisher → start entry → (sockets, relay)
///     stop:  (sockets, relay) → stop entry → engine drains → publisher publishes the rest
struct EngineService: Service {
    let engine: Engine
    let publisher: TrailPublisher
    let keys: GateKeys
    /// As the key directory has them.
    let foundKeys: [GatewayKey]
    /// As the configuration has them.
    let pinnedKeys: [PinnedKey]
    /// Records what was counted; asked every minute, and with `true` before the stop.
    let recordCounts: @Sendable (_ isLast: Bool) -> Void
    let retentionMilliseconds: Int64
    /// Duties of the bundle in force whose review is due now.
    let lapsedReviews: @Sendable () -> [PolicyDiagnostic]
    /// Checks the next of all stored pages, so many at most; gives whether that was the last.
    let checkPages: @Sendable (_ countMax: Int) throws -> Bool
    /// Holds everything stored against the trail.
    let statePass: StatePass
    /// Lets go of entries that are older than they are to be kept.
    let pruning: TrailPruning
    /// How far the ledgers of a person go.
    let ledgerEnds: @Sendable (SubjectID) throws -> LedgerEnds
    /// Counts the next of all recipients; gives whether that was the last.
    let countPersons: @Sendable () throws -> Bool
    let driftSchedule: DriftSchedule
    /// Erases the files of destroyed data keys that stored values were under until now. Called before the next batch begins.
    let eraseUnneededKeys: @Sendable () throws -> Void
    let logger: Logger

    /// How often overdue duties are looked for, and counts whose minute is over are recorded.
    private static let housekeepingInterval = Duration.seconds(60)
    /// How many of these pass between two looks for rows past their retention and reviews past their day: an hour.
    private static let intervalsPerHour = 60
    /// Pages checked in a second, 10 MB. Ten million recipients, some 20 GB, take 35 minutes, and then it begins anew.
    private static let checkedPageCountPerSecond = 5_000

    /// Runs what writes, and records that the gateway started.
    ///
    /// Under a clock that cannot be believed the gateway listens all the same: it answers 503, is not ready, and goes on
    /// by itself, with the entry of its start, when the clock is right.
    ///
    /// - Throws: When the entry cannot be made durable for another reason.
    func start(version: String) async throws {
        engine.start { [foundKeys, pinnedKeys] batch, now in
            try batch.recordStart(
                batch.policy, version: version, keys: foundKeys, pins: pinnedKeys, at: now)
        }
        publisher.start()
        let failure = await submitted { finished in
            engine.submit(in: .security, finished: finished) { batch in _ = try batch.step { try $0.now() } }
        }
        guard let failure else { return }
        if failure.isOfClock {
            return logger.critical("the start is not recorded yet: \(failure)")
        }
        await stopThreads()
        throw CommandFailure(
            "the start cannot be recorded: \(failure)",
            hint: "the gateway decides nothing it cannot record; look at the disk")
    }

    /// Prunes, and raises the alarm for lapsed reviews, every hour until the group shuts down, then records the stop and drains.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let checked: Void = checkAllPages()
            async let compared: Void = auditState()
            async let pruned: Void = pruneTrail()
            async let counted: Void = countAllPersons()
            async let resealed: Void = resealRows()
            async let audited: Void = auditDrift()
            var interval = 0
            while !Task.isCancelled {
                await raiseOverdueDuties()
                await beginDriftRun(mayBeFirst: interval >= Self.intervalsPerHour)
                if interval % Self.intervalsPerHour == 0 {
                    await prune()
                    await dropExpiredSettings()
                    // Every hour anew: a review that is not done does not become less of an alarm by being told.
                    for diagnostic in lapsedReviews() {
                        logger.critical("review_lapsed: \(diagnostic.placed); \(diagnostic.hint ?? "")")
                    }
                }
                interval += 1
                try? await Task.sleep(for: Self.housekeepingInterval)
                recordCounts(false)
            }
            await checked
            await compared
            await pruned
            await counted
            await resealed
            await audited
        }
        recordCounts(true)
        if let failure = await submitted(engine.recordStop) {
            logger.error("the stop cannot be recorded: \(failure)")
        }
        await stopThreads()
        logger.info("stopped", metadata: ["published": "\(publisher.publishedSize)"])
    }

    /// Reads every page of the databases, a part each second.
    private func checkAllPages() async {
        await inBackground(
            "scrub", "stored pages cannot be checked", pause: Self.housekeepingInterval
        ) { try checkPages(Self.checkedPageCountPerSecond) }
    }

    /// Holds what is stored against the trail.
    private func auditState() async {
        await inBackground(
            "audit", "what is stored cannot be held against the trail", pause: .seconds(600),
            stop: statePass.stop
        ) { try statePass.advance(found: differ) }
    }

    /// Lets go of old entries, and makes the snapshot that goes before it.
    private func pruneTrail() async {
        await inBackground(
            "retention", "the trail cannot be pruned", pause: .seconds(600), stop: pruning.stop
        ) { try pruning.advance() }
    }

    /// Does one part of a pass after the other, until the task is cancelled, beside everything that reads and writes.
    ///
    /// - Parameters:
    ///   - failure: What the log says before the reason.
    ///   - pause: How long after the end of a pass, or a failure, the next begins.
    ///   - stop: Ends a part under way with `CancellationError`.
    ///   - part: Gives whether it was the last of a pass.
    private func inBackground(
        _ thread: String, _ failure: String, pause: Duration, stop: @escaping @Sendable () -> Void = {},
        _ part: @escaping @Sendable () throws -> Bool
    ) async {
        while !Task.isCancelled {
            let isWhole = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    BackgroundThread.start(thread) {
                        do {
                            continuation.resume(returning: try part())
                        } catch {
                            if !(error is CancellationError) { logger.error("\(failure): \(error)") }
                            continuation.resume(returning: true)
                        }
                    }
                }
            } onCancel: {
                stop()
            }
            try? await Task.sleep(for: isWhole ? pause : .seconds(1))
        }
    }

    /// Raises the alarm for what is stored otherwise than it happened, and closes marketing to whom it is about.
    func differ(_ differences: [StateAudit.Difference]) {
        for difference in differences { logger.critical("state_differs: \(difference)") }
        for subject in Set(differences.compactMap(\.subject)).sorted() {
            @Sendable func tell(_ failure: any Error) {
                logger.critical(
                    "marketing is not closed to person \(subject.hexadecimal), who is not stored as it happened: \(failure)"
                )
            }
            do {
                engine.closeMarketing(of: subject, behind: try ledgerEnds(subject)) { $0.map(tell) }
            } catch {
                tell(error)
            }
        }
    }

    /// Counts one recipient after the other.
    private func countAllPersons() async {
        await inBackground(
            "count", "recipients cannot be counted", pause: Self.housekeepingInterval, countPersons)
    }

    /// How many rows are looked at in a piece while rows are sealed under another data key, and how long the pause after
    /// each is: ten thousand rows a second at most.
    private static let resealedRowCountMax = 500
    private static let resealingPause = Duration.milliseconds(50)
    /// How often it is looked whether another data key is in use.
    private static let resealingInterval = Duration.seconds(1)

    /// After another data key was promoted, seals every stored row under it, beside everything that is decided. Goes on
    /// where it ended, also in another process.
    private func resealRows() async {
        var known: String?
        while !Task.isCancelled {
            guard let active = keys.keyring.active(.data)?.id, active != known else {
                try? await Task.sleep(for: Self.resealingInterval)
                continue
            }
            let progress = await withCheckedContinuation { continuation in
                engine.reseal(rowCountMax: Self.resealedRowCountMax) { continuation.resume(returning: $0) }
            }
            switch progress {
            case .unnecessary(let key): known = key
            case .failed: try? await Task.sleep(for: Self.resealingInterval)
            case .went(let resealing) where !resealing.isDone:
                try? await Task.sleep(for: Self.resealingPause)
            case .went(let resealing):
                let failure = await submitted { finished in
                    engine.submit(
                        in: .security,
                        finished: { failure in
                            if failure == nil { eraseKeys() }
                            finished(failure)
                        },
                        work: { batch in try batch.step { step in try step.resealed(under: resealing.key) } })
                }
                if let failure { logger.error("a finished pass over the rows is not remembered: \(failure)") }
            }
        }
    }

    private func eraseKeys() {
        do {
            try eraseUnneededKeys()
        } catch {
            logger.error("the file of a destroyed data key stays until the next start: \(error)")
        }
    }

    /// How often it is looked whether a drift audit was asked for.
    private static let driftInterval = Duration.seconds(1)

    /// Begins the week's audit; what cannot begin now begins in the next round.
    ///
    /// - Parameter mayBeFirst: Whether it may be the first ever: a gateway that has just been set up has no person to audit.
    private func beginDriftRun(mayBeFirst: Bool) async {
        guard let intervalMilliseconds = driftSchedule.intervalMilliseconds else { return }
        let failure = await submitted { finished in
            engine.beginDriftRun(
                intervalMilliseconds: intervalMilliseconds, mayBeFirst: mayBeFirst, finished: finished)
        }
        if let failure { logger.error("a drift audit cannot be begun: \(failure)") }
    }

    /// Takes a drift audit that is under way from person to person, also one that another process began.
    private func auditDrift() async {
        let pace = driftSchedule.pace
        while !Task.isCancelled {
            let outcome = await withCheckedContinuation { continuation in
                engine.advanceDriftRun(personCountMax: pace.personCountPerPiece) {
                    continuation.resume(returning: $0)
                }
            }
            switch outcome {
            case .success(let run?) where run.isUnderWay:
                try? await Task.sleep(for: pace.pause)
            case .success(let run?):
                logger.info(
                    "a drift audit has looked at \(run.examinedCount) recipients and found \(run.foundCount) drifts; \(run.recordedCount) of what it found was new"
                )
            case .success(nil): try? await Task.sleep(for: Self.driftInterval)
            case .failure(let failure):
                logger.error("a drift audit cannot go on: \(failure)")
                try? await Task.sleep(for: Self.driftInterval)
            }
        }
    }

    /// What cannot be raised now is raised in the next round.
    private func raiseOverdueDuties() async {
        let failure = await submitted { finished in
            engine.submit(in: .security, scans: true, finished: finished) { batch in
                _ = try batch.raiseOverdueDuties()
            }
        }
        if let failure { logger.error("overdue duties cannot be looked for: \(failure)") }
    }

    /// What cannot be dropped now is dropped in the next hour.
    private func dropExpiredSettings() async {
        let next = Mutex<String?>(nil)
        repeat {
            let start = next.withLock { $0 }
            let failure = await submitted { finished in
                engine.submit(in: .security, scans: true, finished: finished) { batch in
                    let end = try batch.dropExpiredSettings(from: start)
                    next.withLock { $0 = end }
                }
            }
            if let failure {
                return logger.error("settings that are over cannot be dropped: \(failure)")
            }
        } while next.withLock({ $0 }) != nil && !Task.isCancelled
    }

    private func prune() async {
        var total = 0
        while !Task.isCancelled {
            let count = await withCheckedContinuation { continuation in
                engine.prune(retentionMilliseconds: retentionMilliseconds) {
                    continuation.resume(returning: $0)
                }
            }
            guard count > 0 else { break }
            total += count
        }
        if total > 0 { logger.info("let go of rows past their retention", metadata: ["rows": "\(total)"]) }
    }

    /// Returns once an operation that changes nothing has gone through the queue, whatever came of it.
    func comeRound() async { _ = await submitted { engine.submit(in: .security, finished: $0) { _ in } } }

    private func submitted(
        _ submit: (_ finished: @escaping @Sendable (EngineFailure?) -> Void) -> Void
    ) async -> EngineFailure? {
        await withCheckedContinuation { continuation in submit { continuation.resume(returning: $0) } }
    }

    /// Draining blocks its thread, so it gets one of its own.
    private func stopThreads() async {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                Thread.current.name = "drain"
                engine.drain()
                publisher.drain()
                continuation.resume()
            }
            thread.start()
        }
    }
}
