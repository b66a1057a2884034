/// What a send with several destinations comes to as a whole: the best of its deliveries.
package enum OverallAnswer {
    /// Forward before defer, digest, suppress and reject; then the lower deciding gate, a send no gate objected
    /// to before any other; then the earlier one.
    ///
    /// - Parameter decisions: In the order of the destinations' own ids (UTF-8 bytes), never empty. The trail
    ///   knows destinations only as tags, so it is the order of the list that carries the last tie-break there.
    package static func best(of decisions: some Collection<Decision>) -> Decision {
        guard let first = decisions.first else {
            preconditionFailure("a send was recorded without a delivery")
        }
        return decisions.dropFirst().reduce(first, better)
    }

    /// The first where neither is better.
    static func better(_ first: Decision, _ second: Decision) -> Decision {
        rank(second) < rank(first) ? second : first
    }

    private static func rank(_ decision: Decision) -> Int {
        // No gate is −1.
        Int(decision.outcome.rawValue) * Trace.gateCountMax + (decision.decidingPosition ?? -1)
    }
}
