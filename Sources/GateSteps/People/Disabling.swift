import BundleModel
import CompliancePolicy
import GateVocabulary
import GateRecords

/// Records when a person switches notifications off soon after a send: what S0 watches as the disable rate.
///
/// Each is an entry of its own, because it shows only in what the person would get: one tap may write a choice and
/// several withdrawals, and one that changes nothing is no switching off.
extension StepContext {
    /// How long after a send a switching off counts as following it: 24 hours, in seconds (S0).
    private static let disablingSeconds: Int64 = 86_400

    /// Whether messages may go by the person's consents and choices, as the gates that decide sends say.
    ///
    /// - Parameters:
    ///   - scope: A category, or a type that may be muted alone.
    ///   - place: Where they would go; `nil` for any place of the channel.
    func isOn(
        _ scope: String, on channel: Channel, at place: Tag?, of person: RecipientSnapshot, at now: Instant
    ) -> Bool {
        person.isOn(scope, on: channel, at: place, facts: FactsLoading(policy: policy, now: now))
    }

    /// Records that a person switched a category off, or everything: where it was on in effect before and is off now. A
    /// choice that changes nothing of what they would get is none.
    ///
    /// - Parameters:
    ///   - scope: A category, or a type that may be muted alone; `nil` for everything, which counts for every category
    ///     that was on and that the person was sent lately.
    ///   - place: Where it was switched off; `nil` for the account.
    ///   - before: The person as they were before they did it.
    ///   - after: As they are now.
    func recordDisabling(
        by means: DisabledBy, of scope: String? = nil, on channels: [Channel], at place: Tag?,
        from before: RecipientSnapshot, to after: RecipientSnapshot, at now: Instant
    ) throws {
        let switchedOff = (scope.map { [$0] } ?? Category.allCases.map(\.rawValue)).filter { scope in
            channels.contains {
                isOn(scope, on: $0, at: place, of: before, at: now)
                    && !isOn(scope, on: $0, at: place, of: after, at: now)
            }
        }
        guard !switchedOff.isEmpty else { return }
        let subject = before.subject.id
        let forwards = try memory.forwards(
            of: subject, since: now.advanced(bySeconds: -Self.disablingSeconds),
            limit: KnownForwards.countMax)
        func newest(_ category: Category) -> SendID? { forwards.first { $0.category == category }?.send }
        var categories = switchedOff.map { Category(rawValue: $0) ?? policy.type(TypeID($0))?.category }
        if scope == nil {
            categories = categories.filter { $0.flatMap(newest) != nil }
            if categories.isEmpty { categories = [nil] }
        }
        var days = try memory.disableDays()
        let found = categories.map { category in
            let send = category.flatMap(newest)
            let isFirst = send != nil && days.addPerson(subject, to: category, at: now)
            return SwitchOffEntry(
                means: Code(means), category: category, subject: subject, after: isFirst ? send : nil)
        }
        if found.contains(where: { $0.after != nil }) {
            memory.setSetting(DisableDays.settingName, to: days.text)
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
}

extension RecipientSnapshot {
    /// See ``StepContext/isOn(_:on:at:of:at:)``.
    func isOn(_ scope: String, on channel: Channel, at place: Tag?, facts: FactsLoading) -> Bool {
        PreferenceEffect(
            scope: scope, channel: channel,
            destination: place.flatMap { destination(tagged: $0, on: channel) }, person: self, facts: facts
        ).isOn
    }
}

extension SwitchOffEntry {
    /// - Parameter means: Its own, which this build knows.
    func observation(_ means: DisabledBy) -> Observation {
        .disabled(means, category: category, isAfterSend: after != nil)
    }
}
