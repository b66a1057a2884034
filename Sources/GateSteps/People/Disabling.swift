import AuditTrail
import GateVocabulary
import RecipientModel

/// Records when a person switches notifications off soon after a send: what S0 watches as the disable rate.
///
/// Each is an entry of its own, because it shows only in what the person would get: one tap may write a choice and
/// several withdrawals, and one that changes nothing is no switching off.
extension StepContext {
    /// How long after a send a switching off counts as following it: 24 hours, in seconds (S0).
    private static let disablingSeconds: Int64 = 86_400

    /// Records that a person switched a category off, or all push.
    ///
    /// - Parameter category: `nil` for all push, which counts for every category that the person was sent lately.
    func recordDisabling(
        by means: DisabledBy, of category: Category? = nil, subject: SubjectID, at now: Instant
    ) throws {
        let forwards = try view.forwards(
            of: subject, since: now.advanced(bySeconds: -Self.disablingSeconds),
            limit: LoadedForwards.countMax)
        func newest(_ category: Category) -> SendID? { forwards.first { $0.category == category }?.send }
        func switchOff(_ category: Category?) -> SwitchOffEntry {
            SwitchOffEntry(
                means: Code(means), category: category, subject: subject, after: category.flatMap(newest))
        }
        var found = [switchOff(category)]
        if category == nil {
            let recent = Category.allCases.filter { newest($0) != nil }
            if !recent.isEmpty { found = recent.map(switchOff) }
        }
        for switchOff in found {
            try record(switchOff, at: now)
            observe(switchOff.observation(means))
        }
        for switchOff in found {
            guard let category = switchOff.category, switchOff.after != nil else { continue }
            try countDisabling(of: category, at: now)
        }
    }

    /// The same for a consent to a category that ended.
    func recordDisabling(_ event: ConsentRecord, _ recorded: Recorded, at now: Instant) throws {
        guard recorded.noEffect == nil, event.state == .withdrawn || event.state == .refused,
            let category = Category(rawValue: event.purpose.text)
        else { return }
        try recordDisabling(by: .preference, of: category, subject: event.subject, at: now)
    }
}

extension SwitchOffEntry {
    /// - Parameter means: Its own, which this build knows.
    func observation(_ means: DisabledBy) -> Observation {
        .disabled(means, category: category, isAfterSend: after != nil)
    }
}
