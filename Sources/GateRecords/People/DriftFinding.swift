package import GateVocabulary

/// One drift of a person that the newest audit found, and what was done about it.
package struct DriftFinding: Record, StoredValue {
    package var kind: DriftKind
    /// Never `resolved`: one that is no more is not kept.
    package var action: DriftAction
    /// `nil` for one of the account.
    package var device: Tag?
    package var category: Category?
    /// What was on record, a name of a closed list.
    package var old: String
    /// What it was set to, or is to be set to by the provider; `nil` where nothing was set.
    package var new: String?

    package init(
        _ kind: DriftKind, _ action: DriftAction, device: Tag? = nil, category: Category? = nil, old: String,
        new: String? = nil
    ) {
        (self.kind, self.action, self.device, self.category) = (kind, action, device, category)
        (self.old, self.new) = (old, new)
    }

    /// Whether both are about the same thing, so that the later one replaces the earlier.
    package func isSameDrift(as other: DriftFinding) -> Bool {
        kind == other.kind && device == other.device && category == other.category
    }
}

// MARK: Fields

extension DriftFinding {
    package static let blank = Self(.zoneMissing, .marked, old: "")

    package static let fields = Fields<Self> { fields in
        fields.evidence("finding", \.kind, "What disagrees.")
        fields.evidence("action", \.action, "What is done about it.")
        fields.evidence("device", \.device, "At which device; absent for the account.", isShown: false)
        fields.evidence("category", \.category, "Which category, where it is about one.")
        fields.evidence("old", \.old, "What is on record of the side that gives way.", bound: .name)
        fields.evidence("new", \.new, "What it is set to, or is to be set to by the provider.", bound: .name)
    }
}

/// A finding as its owner is shown it, with the device's own name.
package struct HeldDrift: ShownRecord {
    package var device: String?
    package var finding: DriftFinding

    package init(_ finding: DriftFinding, at device: String?) {
        (self.finding, self.device) = (finding, device)
    }

    package static let fields = Fields<Self> { fields in
        fields.joined("device", \.device, "At which device; absent for the account.")
        fields.all(of: \.finding)
    }

    package static let shownName = "HeldDrift"
    package static let shownMeans = "What the newest drift audit found."
}

/// The drift audit found that two sides disagree, and what it did about it.
package struct DriftEntry: RecordEntry {
    package static let kind = EntryKind.drift
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var record: DriftFinding

    package init(_ record: DriftFinding, subject: SubjectID, caller: CallerName) {
        (self.record, self.subject, self.caller) = (record, subject, caller)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who began the audit.", bound: .name)
        fields.entry("subject", \.subject, "Whose settings disagree.")
        fields.all(of: \.record)
    }
}
