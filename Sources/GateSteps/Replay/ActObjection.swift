import GateVocabulary
import SendPlanning
import WireProtocol

/// Why an entry records what the gate would have refused: it was not written by a gate that kept to its bundle.
package struct ActObjection: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the problem that the request would have been answered with, e.g. `grant_missing`.
    package var reason: String
    /// What exactly is wrong.
    package var detail: String
    /// The next step of the auditor.
    package var hint: String
    package var description: String { "\(reason): \(detail)" }

    init(_ refusal: Problem) {
        reason = refusal.name.rawValue
        detail = refusal.message
        hint =
            "the gate refuses such a request, so no gate that kept to its bundle wrote this entry; ask the operator where it comes from"
    }

    /// A bundle that is not in the archive can answer for nothing.
    init(unknown digest: PolicyDigest) {
        reason = "policy_unknown"
        detail = ReplayObstacle.policyUnknown(digest).description
        hint = "copy the trail's `policies` folder with it"
    }

    /// Nothing grants anything before the first bundle is in force.
    static let noPolicy = ActObjection(
        Problem(
            .grantMissing,
            detail:
                "no `start` or `policy` entry before it puts a bundle in force, so nobody is granted anything"
        ))
}
