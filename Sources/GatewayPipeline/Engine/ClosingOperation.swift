package import GateSteps
package import GateVocabulary

/// Switches marketing off for people of whom is stored what did not happen (``StateAudit``). The next pass does it again, where they
/// switched it on and the difference is still there.
package struct ClosingOperation: EngineOperation {
    private let people: [SubjectID]
    private let finished: @Sendable (EngineFailure?) -> Void

    package var caller: CallerName? { nil }
    package var lane: EngineLane { .general }
    package var scans: Bool { true }

    /// - Parameter people: At most 200: each is three steps.
    package init(_ people: [SubjectID], finished: @escaping @Sendable (EngineFailure?) -> Void) {
        self.people = people
        self.finished = finished
    }

    package func perform(in batch: Batch) throws -> Completion {
        for subject in people {
            for channel in Channel.allCases {
                do {
                    try batch.step { try $0.close(channel, of: subject, at: $0.now()) }
                } catch let error as StoreError where error.damage != nil {
                    // Nothing is decided on what cannot be read.
                    continue
                }
            }
        }
        return { [finished] _ in finished(nil) }
    }

    package func refuse(_ failure: EngineFailure) { finished(failure) }
}
