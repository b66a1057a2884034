package import GateSteps
import GateVocabulary

/// An operation that is built where it is submitted: most often what the gateway writes on its own account.
struct InlineOperation: EngineOperation {
    var caller: CallerName?
    let lane: EngineLane
    var asks: [Ask] = []
    var scans = false
    let refused: @Sendable (EngineFailure) -> Void
    let work: @Sendable (_ batch: Batch) throws -> Completion

    func perform(in batch: Batch) throws -> Completion { try work(batch) }
    func refuse(_ failure: EngineFailure) { refused(failure) }
}

extension Engine {
    /// Hands work of the gateway itself over. It goes through the queue like everything that writes.
    ///
    /// - Parameters:
    ///   - scans: See ``EngineOperation/scans``.
    ///   - refused: Called when nothing was committed.
    ///   - work: Gives what to do once the batch is durable.
    package func submit(
        in lane: EngineLane, scans: Bool = false, refused: @escaping @Sendable (EngineFailure) -> Void,
        work: @escaping @Sendable (_ batch: Batch) throws -> EngineOperation.Completion
    ) {
        submit(InlineOperation(lane: lane, scans: scans, refused: refused, work: work))
    }

    /// - Parameter finished: Called with `nil` once the batch is durable.
    package func submit(
        in lane: EngineLane, scans: Bool = false, finished: @escaping @Sendable (EngineFailure?) -> Void,
        work: @escaping @Sendable (_ batch: Batch) throws -> Void
    ) {
        submit(in: lane, scans: scans, refused: finished) { batch in
            try work(batch)
            return { _ in finished(nil) }
        }
    }
}
