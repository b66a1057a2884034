import AuditTrail
import CanonicalJSON
import GateVocabulary
import RecipientModel

/// Who switches notifications off soon after one says something about it: what S0 watches as the disable rate.
///
/// Each is an entry of its own, because what somebody did shows only in what they would get: one tap may write a choice and
/// several withdrawals, and one that changes nothing is no switching off.
extension StepContext {
    /// How long a send has a part in what its recipient switches off afterwards: 24 hours, in seconds (S0).
    private static let disablingSeconds: Int64 = 86_400

    /// Somebody switched a category off, or all push.
    ///
    /// - Parameter category: `nil` for all push: every category they were sent lately has a part in it.
    func recordDisabling(
        by means: DisabledBy, of category: Category? = nil, subject: SubjectID, at now: Instant
    ) throws {
        let forwards = try view.forwards(
            of: subject, since: now.advanced(bySeconds: -Self.disablingSeconds),
            limit: LoadedForwards.countMax)
        func newest(_ category: Category) -> SendID? { forwards.first { $0.category == category }?.send }
        func switchOff(_ category: Category?) -> SwitchOff {
            SwitchOff(
                means: means, category: category, subject: subject, after: category.flatMap(newest))
        }
        var found = [switchOff(category)]
        if category == nil {
            let recent = Category.allCases.filter { newest($0) != nil }
            if !recent.isEmpty { found = recent.map(switchOff) }
        }
        for switchOff in found {
            try record(.switchOff, at: now, switchOff.members)
            observe(switchOff.observation)
        }
        for switchOff in found {
            guard let category = switchOff.category, switchOff.after != nil else { continue }
            try countDisabling(of: category, at: now)
        }
    }

    /// The same where a consent to a category ended.
    func recordDisabling(_ event: ConsentEvent, _ recorded: Recorded, at now: Instant) throws {
        guard recorded.noEffect == nil, event.state == .withdrawn || event.state == .refused,
            let category = Category(rawValue: event.purpose.text)
        else { return }
        try recordDisabling(by: .preference, of: category, subject: event.subject, at: now)
    }
}

/// What an entry of the kind `switch_off` says.
struct SwitchOff: Hashable {
    var means: DisabledBy
    /// What was switched off; of a switch of everything, what the recipient was sent lately, and `nil` where that is
    /// nothing.
    var category: Category?
    var subject: SubjectID
    /// The newest send of the category that was forwarded to them in the 24 hours before.
    var after: SendID?

    var members: JSONObject {
        var members: JSONObject = [
            "means": .string(means.rawValue), "subject": .string(subject.hexadecimal),
        ]
        members["category"] = category.map { .string($0.rawValue) }
        members["send_id"] = after.map { .string($0.uuidText) }
        return members
    }

    var observation: Observation { .disabled(means, category: category, isAfterSend: after != nil) }
}
