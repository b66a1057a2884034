import BundleModel
package import GateSteps
package import GateVocabulary

/// Audits the next people of a drift run, a bounded number of them.
///
/// Their findings, the entries and the run's progress are one transaction.
package struct DriftAuditOperation: EngineOperation {
    private let personCountMax: Int
    private let finished: @Sendable (Result<DriftRun?, EngineFailure>) -> Void

    package var caller: CallerName? { nil }
    package var lane: EngineLane { .general }
    package var scans: Bool { true }

    /// - Parameter finished: Called with the state of the run; `nil` when none is under way.
    package init(
        personCountMax: Int, finished: @escaping @Sendable (Result<DriftRun?, EngineFailure>) -> Void
    ) {
        self.personCountMax = personCountMax
        self.finished = finished
    }

    package func perform(in batch: Batch) throws -> Completion {
        let run = try batch.advanceDriftRun(personCountMax: personCountMax)
        return { [finished] _ in finished(.success(run)) }
    }

    package func refuse(_ failure: EngineFailure) { finished(.failure(failure)) }
}

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

/// Begins an audit when the newest began long enough ago. A run that only counts is none.
package struct DriftScheduleOperation: EngineOperation {
    private let intervalMilliseconds: Int64
    private let mayBeFirst: Bool
    private let finished: @Sendable (EngineFailure?) -> Void

    package var caller: CallerName? { nil }
    package var lane: EngineLane { .general }

    package init(
        intervalMilliseconds: Int64, mayBeFirst: Bool, finished: @escaping @Sendable (EngineFailure?) -> Void
    ) {
        self.intervalMilliseconds = intervalMilliseconds
        self.mayBeFirst = mayBeFirst
        self.finished = finished
    }

    package func perform(in batch: Batch) throws -> Completion {
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
        return { [finished] _ in finished(nil) }
    }

    package func refuse(_ failure: EngineFailure) { finished(failure) }
}
