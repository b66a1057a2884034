package import BundleModel
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary

/// What another bundle would decide otherwise, in the fewest circumstances that show it.
///
/// Both bundles decide the same sends. Each starts from facts in which everything is known and in favour, and then
/// has one circumstance against it, or two; a difference is told with the smallest set of them. The sends stand for
/// all that the bundles know: every type × channel × caller × critical with another behaviour or in a place with
/// another law, and of the places one for each pair of laws: at home everywhere, with a telephone everywhere beside
/// an account under each regime, and where the one or the other is unknown. Rows of regions.yaml count from their day, and
/// some until another, so places are looked at when all rows are in force, and again in every earlier span of days in
/// which what the one bundle asks there differs from the other in another way. What a bundle says besides (texts, times
/// to live, sending hours, grants) changes no decision on equal facts; ``edits`` names it, as it names every other edit.
package struct PolicyDifference: Sendable {
    /// How one decision came out: what a difference is a difference of.
    package struct Result: Hashable, Sendable {
        package var outcome: Outcome
        package var reason: Reason
        package var form: BodyForm
        package var interruption: Interruption

        init(_ decision: Decision) {
            outcome = decision.outcome
            reason = decision.reason
            form = decision.form
            interruption = decision.interruption
        }
    }

    /// Sends that come out otherwise, alike.
    package struct Change: Hashable, Sendable {
        package var types: [TypeID]
        package var channels: [Channel]
        package var callers: [CallerName]
        package var isCritical: Bool
        /// Region codes, or a place in words; empty for everywhere.
        package var places: [String]
        /// What is not in favour: any one of these is enough, and each may be two things at once. Empty when
        /// nothing has to be.
        package var circumstances: [String]
        package var before: Result
        package var after: Result
    }

    /// In the order of types, then of the number of circumstances.
    package let changes: [Change]
    /// Sends decided, by each bundle once.
    package let stateCount: Int
    /// Pages that are not the same; those that only change words are among them.
    package let pages: [String]
    /// Every value that is not the same, page by page. Empty exactly when both have one digest.
    package let edits: [PolicyEdit]
    /// Notices that have other words under the id and version they had.
    package let editedNotices: [PolicyDiagnostic]

    package init(from old: CompiledPolicy, to new: CompiledPolicy) {
        var survey = Survey(old: old, new: new)
        survey.run()
        changes = survey.merged
        stateCount = survey.stateCount
        edits = PolicyEdit.all(from: old.bundle.documents, to: new.bundle.documents)
        pages = Set(edits.map(\.file)).sorted()
        editedNotices = new.bundle.editedNotices { key in old.bundle.notices[key]?.sha256 }
    }
}

extension PolicyDifference.Change {
    /// "`promo.offer` by push in DE: was rejected (no_gdpr_consent) where consent was never asked for, now forwarded".
    package var sentence: String {
        let what = Self.list(types.map(\.text), most: 4)
        let how = Self.list(channels.map(\.rawValue), most: 3)
        let asked = isCritical ? ", asked for as critical" : ""
        let whom = callers.isEmpty ? "" : " from \(Self.list(callers.map(\.text), most: 3))"
        let place = places.isEmpty ? "" : " in \(Self.list(places, most: 6))"
        let when = circumstances.isEmpty ? "" : ", \(Self.list(circumstances, most: 8, " or "))"
        return "\(what) by \(how)\(whom)\(asked)\(place)\(when): was \(words(before)), now \(words(after))"
    }

    private func words(_ result: PolicyDifference.Result) -> String {
        let verb =
            switch result.outcome {
            case .forward: "forwarded"
            case .defer: "kept for later"
            case .digest: "gathered into a summary"
            case .suppress: "not sent"
            case .reject: "refused"
            }
        guard before.outcome == after.outcome else { return "\(verb) (\(result.reason.rawValue))" }
        var text = "\(verb) (\(result.reason.rawValue)"
        if before.form != after.form { text += ", body \(result.form.rawValue)" }
        if before.interruption != after.interruption { text += ", \(result.interruption.rawValue)" }
        return text + ")"
    }

    private static func list(_ names: [String], most: Int, _ separator: String = ", ") -> String {
        guard names.count > most else { return names.joined(separator: separator) }
        return "\(names.prefix(most).joined(separator: separator)) and \(names.count - most) more"
    }
}

extension PolicyDifference.Change {
    var rank: [String] {
        [
            types.first?.text ?? "", String(circumstances.count), channels.first?.rawValue ?? "",
            places.first ?? "", circumstances.joined(separator: " "), isCritical ? "1" : "0",
            before.reason.rawValue, after.reason.rawValue, callers.first?.text ?? "",
        ]
    }
}
