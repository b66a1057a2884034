import BundleModel
import CompliancePolicy
import GateVocabulary
import PolicyStatutes

/// Facts that no gate mixes with others, and the classes their combinations fall into.
struct FactGroup: Sendable {
    /// The gates that read them.
    var gates: [Gate]
    /// The circumstances that follow from them.
    var circumstances: Conditions
    /// The first is in favour.
    var classes: [FactClass]
    /// Combinations the classes stand for.
    var combinations: Double
}

/// Combinations of a group's values that can be exchanged for one another, shown by the first of them.
struct FactClass: Sendable {
    var setting: FactSpace.Setting
    /// In the order of the group's gates.
    var answers: [GateResult]
    var circumstances: Conditions
}

/// Everything one way of asking is to be decided on.
struct FactGroups: Sendable {
    var send: BundleProof.Send
    var favourable: Facts
    /// Place, permission and choices; the time is set here, too.
    var permission: FactGroup
    /// Time, hours and caps, relative to that time.
    var course: FactGroup
    /// The request, what the device allows, and the two ends.
    var around: [FactGroup]
    /// What leaves.
    var contents: FactGroup

    var all: [FactGroup] { [permission, course] + around + [contents] }
    /// States that a walk which finds nothing decides: each class alone, with a clock and without, and then every combination.
    var stateCount: UInt64 {
        let counts = all.map { UInt64($0.classes.count) }
        return 2 * counts.reduce(0, +) + counts.reduce(1, *)
    }
    var combinations: Double { all.reduce(1) { $0 * $1.combinations } }
}
