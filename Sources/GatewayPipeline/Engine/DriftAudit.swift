import BundleModel
package import GateSteps
import GateVocabulary

extension Batch {
    /// - Returns: The run's new state; `nil` when none is under way.
    fileprivate func advanceDriftRun(personCountMax: Int) throws -> DriftRun? {
        guard var run = try step({ try $0.memory.driftRun() }), run.isUnderWay else { return nil }
        let people = try people(after: run.newest, limit: personCountMax)
        for person in people {
            do {
                let audited = try step {
                    try $0.auditDrift(of: person, by: run.startedBy, isDryRun: run.isDryRun, at: $0.now())
                }
                if let audited { run.add(audited) }
            } catch let error as StoreError where error.damage != nil {
                run.unreadableCount += 1
            }
        }
        run.newest = people.last ?? run.newest
        try step { step in
            if people.count < personCountMax { run.finishedAt = try step.now() }
            try step.keep(run)
        }
        return run
    }
}

extension Engine {
    /// Audits the next people of a drift run, a bounded number of them.
    ///
    /// Their findings, the entries and the run's progress are one transaction.
    ///
    /// - Parameter finished: Called with the state of the run; `nil` when none is under way.
    package func advanceDriftRun(
        personCountMax: Int, finished: @escaping @Sendable (Result<DriftRun?, EngineFailure>) -> Void
    ) {
        submit(in: .general, scans: true, refused: { finished(.failure($0)) }) { batch in
            let run = try batch.advanceDriftRun(personCountMax: personCountMax)
            return { _ in finished(.success(run)) }
        }
    }

    /// Begins an audit when the newest began long enough ago. A run that only counts is none.
    package func beginDriftRun(
        intervalMilliseconds: Int64, mayBeFirst: Bool, finished: @escaping @Sendable (EngineFailure?) -> Void
    ) {
        submit(in: .general, finished: finished) { batch in
            try batch.step { step in
                let (now, newest) = (try step.now(), try step.memory.driftRun())
                guard newest?.isUnderWay != true else { return }
                if let startedAt = newest?.auditStartedAt {
                    guard startedAt.advanced(byMilliseconds: intervalMilliseconds) <= now else { return }
                } else if !mayBeFirst {
                    return
                }
                _ = try step.startDriftRun(by: .gateway, isDryRun: false, at: now)
            }
        }
    }
}
