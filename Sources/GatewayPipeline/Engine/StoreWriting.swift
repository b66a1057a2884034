package import GateSteps

extension GateStore {
    /// Runs one step and commits it, durably: for writers other than the engine, while no engine runs.
    ///
    /// - Parameter body: May run more than once.
    /// - Throws: What `body` or the store does; nothing happened then.
    @discardableResult
    package func write<Result>(_ body: (GateMemory) throws -> Result) throws -> Result {
        try committing(body).result
    }

    /// The same, with the store's receipt.
    package func committing<Result>(
        _ body: (GateMemory) throws -> Result
    ) throws -> (result: Result, receipt: CommitReceipt) {
        let memory = GateMemory()
        try load([], into: memory)
        let result = try step(body, over: memory)
        return (result, try commitAlone(memory.applied))
    }

    /// Writes changes, durably.
    ///
    /// - Throws: What the store does; where it refuses one of them, why.
    @discardableResult
    func commitAlone(_ changes: [Change]) throws -> CommitReceipt {
        let receipt: CommitReceipt
        do {
            receipt = try commit(changes)
        } catch let refused as RefusedChange {
            throw refused.error
        }
        try synchronize()
        return receipt
    }

    /// Runs a step until everything that it looks at is loaded.
    package func step<Result>(
        _ body: (GateMemory) throws -> Result, over memory: GateMemory
    ) throws -> Result {
        try memory.step(loading: { try load($0, into: memory) }) { try body(memory) }
    }
}
