package import GateSteps

extension GateStore {
    /// Runs one step and commits it, durably: for writers other than the engine, while no engine runs.
    ///
    /// - Parameter body: May run more than once.
    /// - Throws: What `body` or the store does; nothing happened then.
    @discardableResult
    package func write<Result>(_ body: (StepView) throws -> Result) throws -> Result {
        try committing(body).result
    }

    /// The same, with the store's receipt.
    package func committing<Result>(
        _ body: (StepView) throws -> Result
    ) throws -> (result: Result, receipt: CommitReceipt) {
        let state = BatchState()
        try load([], into: state)
        let (view, result) = try step(body, over: state)
        return (result, try commitAlone(view.change))
    }

    /// Writes one change, durably.
    ///
    /// - Throws: What the store does; where it refuses the change, why.
    @discardableResult
    func commitAlone(_ change: Change) throws -> CommitReceipt {
        let receipt: CommitReceipt
        do {
            receipt = try commit([change])
        } catch let refused as RefusedChange {
            throw refused.error
        }
        try synchronize()
        return receipt
    }

    /// Runs a step until everything that it looks at is loaded.
    package func step<Result>(
        _ body: (StepView) throws -> Result, over state: BatchState
    ) throws -> (view: StepView, result: Result) {
        try state.run(loading: { try load($0, into: state) }) {
            let view = StepView(state)
            return (view, try body(view))
        }
    }
}
