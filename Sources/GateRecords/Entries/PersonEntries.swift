import CanonicalJSON
package import GateVocabulary

// Entries of changes to what is known of a person.

/// A person was forgotten.
package struct ErasureEntry: DeclaredEntry {
    package static let kind = EntryKind.erasure
    package static let blank = Self(subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName

    package init(subject: SubjectID, caller: CallerName) { (self.subject, self.caller) = (subject, caller) }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("subject", \.subject, "Who was forgotten.")
    }
}

extension Shape {
    /// An IANA zone name that tzdata knows.
    static let zone = Shape.text(byteCountMax: 64)
}
