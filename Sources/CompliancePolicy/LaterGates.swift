package import GateVocabulary

/// The gates after the first thirteen, in the order in which they came.
///
/// A type of its own, so that a test can add a gate and replay a trail that was recorded before it. Each gate is a
/// ``GateRevision``: a decision of that revision is asked it and all before it.
package protocol LaterGates {
    /// The revision with all gates that there are.
    static var newest: GateRevision { get }

    /// Facts that came after the first revision, by name, each with the revision whose gate reads it. An entry of an earlier
    /// revision lacks them.
    static var facts: [String: GateRevision] { get }

    /// What the gate at a position finds.
    ///
    /// A later gate refuses, or lets the send go now. To make a send wait, the gate would have to say until when, as gate 9
    /// does, and gate 0 would have to know.
    ///
    /// - Parameter position: In the trace: 13 or more, and below ``newest``.
    static func result(
        at position: Int, _ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule
    ) -> GateResult
}

/// The later gates of this build: none yet.
package enum BuiltGates: LaterGates {
    package static var newest: GateRevision { .newest }

    package static let facts: [String: GateRevision] = [:]

    @inline(__always)
    package static func result(
        at position: Int, _ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule
    ) -> GateResult {
        preconditionFailure("there is no gate \(position)")
    }
}
