import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// Follows which bundle is in force along a trail, from its first entry.
///
/// A bundle is in force from the `start` or `policy` entry that names it up to the next such entry, across restarts and restores.
/// The gateway decides nothing under another one: it makes the entry of a new bundle durable before the next batch begins
/// (decision SG-0047). So each entry that names a policy names that of the newest such entry before it, and an entry before the
/// first of them can name none.
package struct BundlesInForce: Sendable {
    /// A bundle, and the entry that put it in force.
    package struct InForce: Hashable, Sendable {
        package var policy: PolicyDigest
        package var since: UInt64
    }

    /// An entry names a bundle that was not in force.
    package struct Break: Hashable, Sendable {
        package var index: UInt64
        package var named: PolicyDigest
        /// `nil` before the first `start` or `policy` entry.
        package var inForce: InForce?

        package var message: String {
            "entry \(index) names the policy \(named), and "
                + (inForce.map { "entry \($0.since) put \($0.policy) in force" }
                    ?? "no `start` or `policy` entry before it puts any in force")
        }

        /// The next step.
        package static let hint =
            "an entry names the policy of the newest `start` or `policy` entry before it; keep this copy, and ask the operator who wrote this entry"
    }

    package private(set) var current: InForce?

    package init() {}

    /// - Parameter entry: The next one.
    /// - Returns: What is wrong with the policy that it names; `nil` of one that names none.
    package mutating func follow(_ entry: TrailEntry) -> Break? {
        guard let named = entry.members["policy"]?.stringValue.map({ PolicyDigest($0) }) else { return nil }
        if entry.kind == .start || entry.kind == .policy {
            current = InForce(policy: named, since: entry.index)
            return nil
        }
        guard named != current?.policy else { return nil }
        return Break(index: entry.index, named: named, inForce: current)
    }
}
