package import GateSteps
package import GateVocabulary
package import GateRecords

/// Switches marketing off for a person of whom is stored what did not happen (``StateAudit``). The next pass does it again, where
/// they switched it on and the difference is still there.
package struct ClosingOperation: EngineOperation {
    private let subject: SubjectID
    private let ends: LedgerEnds
    private let finished: @Sendable (EngineFailure?) -> Void

    package var caller: CallerName? { nil }
    package var lane: EngineLane { .general }
    package var scans: Bool { true }

    /// - Parameter ends: How long the person's ledgers are; the choices are appended after them.
    package init(
        _ subject: SubjectID, behind ends: LedgerEnds, finished: @escaping @Sendable (EngineFailure?) -> Void
    ) {
        self.subject = subject
        self.ends = ends
        self.finished = finished
    }

    package func perform(in batch: Batch) throws -> Completion {
        for channel in Channel.allCases {
            do {
                try batch.step { try $0.closeMarketing(channel, of: subject, behind: ends, at: $0.now()) }
            } catch let error as StoreError where error.damage != nil {
                // Nothing is decided on what cannot be read.
                continue
            }
        }
        return { [finished] _ in finished(nil) }
    }

    package func refuse(_ failure: EngineFailure) { finished(failure) }
}
