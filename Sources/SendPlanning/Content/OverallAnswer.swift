package import GateVocabulary

/// What a send with several destinations comes to as a whole: the best of its deliveries.
package enum OverallAnswer {
    /// Forward before defer, digest, suppress and reject; then the lower deciding gate, a send no gate objected
    /// to before any other; then the earlier one.
    ///
    /// - Parameter decisions: In the order of the destinations' own ids (UTF-8 bytes), never empty. The trail
    ///   knows destinations only as tags, so it is the order of the list that carries the last tie-break there.
    package static func best(of decisions: some Collection<Decision>) -> Decision {
        guard var best = decisions.first else {
            preconditionFailure("a send was recorded without a delivery")
        }
        for decision in decisions.dropFirst() where rank(decision) < rank(best) { best = decision }
        return best
    }

    private static func rank(_ decision: Decision) -> Int {
        // No gate is −1.
        Int(decision.outcome.rawValue) * Trace.gateCountMax + (decision.decidingPosition ?? -1)
    }
}
