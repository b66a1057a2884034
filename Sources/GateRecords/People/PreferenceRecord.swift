import CanonicalJSON
package import GateVocabulary

/// One transition of one preference.
package struct PreferenceRecord: PersonRecord, StoredValue {
    package var subject: SubjectID
    /// A category's name, or the id of a type that is `mutable_alone`.
    package var scope: String
    package var channel: Channel
    /// `nil` for the account, else the destination's tag.
    package var destination: Tag?
    package var state: PreferenceState
    package var source: PreferenceSource
    package var at: Instant
    /// The caller that reported it.
    package var caller: CallerName

    package init(
        subject: SubjectID, scope: String, channel: Channel, destination: Tag?, state: PreferenceState,
        source: PreferenceSource, at: Instant, caller: CallerName
    ) {
        (self.subject, self.scope, self.channel) = (subject, scope, channel)
        (self.destination, self.state, self.source, self.at) = (destination, state, source, at)
        self.caller = caller
    }
}

// MARK: Fields

extension PreferenceRecord {
    package static let blank = Self(
        subject: .blank, scope: "", channel: .push, destination: nil, state: .default, source: .inAppSettings,
        at: .unstated, caller: CallerName(""))

    package static let fields = Fields<Self> { fields in
        fields.evidence("scope", \.scope, "A category or a type.", bound: .name)
        fields.evidence("channel", \.channel, "Which channel.")
        fields.evidence(
            "destination", \.destination, "One device or address; the account when absent.", isShown: false)
        fields.evidence("state", \.state, "What was chosen.")
        fields.evidence("source", \.source, sourceMeans, shape: String.shape)
        fields.implied("at", \.at, "When it was chosen.")
        fields.implied("caller", \.caller, "The caller that reported it.")
    }

    package static let sourceMeans =
        "Where it was chosen, or what else it follows from: `consent` (given, refused or withdrawn otherwise than in the app), `reply` (to a text or an e-mail), `shared_address` (somebody else with the same number or mailbox said no), `drift_audit`, `state_audit` (what was stored of the person is not what happened), `restore`."
}

/// A choice as its owner is shown it, with the destination's own name.
package struct HeldChoice: ShownRecord {
    package var destination: String?
    package var choice: PreferenceRecord

    package init(_ choice: PreferenceRecord, at destination: String?) {
        (self.choice, self.destination) = (choice, destination)
    }

    package static let fields = Fields<Self> { fields in
        fields.joined("destination", \.destination, "One device or address; the account when absent.")
        fields.all(of: \.choice)
    }

    package static let shownName = "PreferenceTransition"
    package static let shownMeans = "One choice as it was made."
}

/// A choice was made.
package struct PreferenceEntry: RecordEntry {
    package static let kind = EntryKind.preference
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName
    /// `nil` where it is the time of the entry.
    package var eventTime: Instant?
    package var record: PreferenceRecord

    package init(
        _ record: PreferenceRecord, subject: SubjectID, caller: CallerName, eventTime: Instant? = nil
    ) {
        (self.record, self.subject, self.caller, self.eventTime) = (record, subject, caller, eventTime)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("event_time", \.eventTime, "When it was chosen; absent where that is the entry's time.")
        fields.entry("subject", \.subject, "Whose choice it is.")
        fields.all(of: \.record)
    }
}
