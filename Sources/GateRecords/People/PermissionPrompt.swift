package import GateVocabulary

/// The operating system's permission prompt was shown; it must never be shown twice.
package struct PermissionPrompt: PersonRecord, StoredValue {
    package var subject: SubjectID
    package var device: Tag
    package var shownAt: Instant
    /// `nil` when not known yet.
    package var answer: Choice?

    /// How the prompt was answered.
    package enum Choice: String, CaseIterable, Sendable, Hashable {
        case granted
        case denied
    }

    package init(subject: SubjectID, device: Tag, shownAt: Instant, answer: Choice?) {
        (self.subject, self.device, self.shownAt, self.answer) = (subject, device, shownAt, answer)
    }
}

extension PermissionPrompt.Choice: EvidentValue, FieldValue {}

// MARK: Fields

extension PermissionPrompt {
    package static let blank = Self(subject: .blank, device: .blank, shownAt: .unstated, answer: nil)

    package static let fields = Fields<Self> { fields in
        fields.evidence("device", \.device, "On which device.", isShown: false)
        fields.evidence("shown_at", \.shownAt, "When it was shown.")
        fields.evidence("answer", \.answer, "What was chosen.")
    }
}

/// A prompt as its owner is shown it, with the device's own name.
package struct HeldPrompt: ShownRecord {
    package var device: String
    package var prompt: PermissionPrompt

    package init(_ prompt: PermissionPrompt, at device: String) {
        (self.prompt, self.device) = (prompt, device)
    }

    package static let fields = Fields<Self> { fields in
        fields.joined("device", \.device, "On which device.")
        fields.all(of: \.prompt)
    }

    package static let shownName = "HeldPrompt"
    package static let shownMeans = "The operating system's prompt was shown."
}

/// The prompt of the operating system was shown, or answered.
package struct PermissionPromptEntry: RecordEntry {
    package static let kind = EntryKind.permissionPrompt
    package static let blank = Self(.blank, subject: .blank, caller: CallerName(""), action: Code(""))

    package var subject: SubjectID
    package var caller: CallerName
    package var action: Code
    package var record: PermissionPrompt

    package init(_ record: PermissionPrompt, subject: SubjectID, caller: CallerName, action: Code) {
        (self.record, self.subject, self.caller, self.action) = (record, subject, caller, action)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("action", \.action, "Whether the prompt was shown or answered.")
        fields.entry("caller", \.caller, "Who said so.", bound: .name)
        fields.entry("subject", \.subject, "Who saw the prompt.")
        fields.all(of: \.record)
    }
}
