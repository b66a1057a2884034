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
        while true {
            let state = BatchState()
            try load([], into: state)
            let (view, result) = try step(body, over: state)
            switch try commit([view.change], against: state) {
            case .done(let receipt):
                try synchronize()
                return (result, receipt)
            case .refused(_, let error): throw error
            case .conflict, .stale: break
            }
        }
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
