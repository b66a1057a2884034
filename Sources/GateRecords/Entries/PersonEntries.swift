import CanonicalJSON
package import GateVocabulary

// Entries of changes to what is known of a person.

/// A person was forgotten.
package struct ErasureEntry: EntryBody, FieldObject {
    package static let kind = EntryKind.erasure
    package static let blank = Self(subject: .blank, caller: CallerName(""))

    package var subject: SubjectID
    package var caller: CallerName

    package init(subject: SubjectID, caller: CallerName) { (self.subject, self.caller) = (subject, caller) }

    package static func show<V: FieldVisitor<Self> & ~Copyable>(to fields: inout V) throws(V.Failure) {
        try fields.required("caller", \.caller, as: .name)
        try fields.required("subject", \.subject)
    }
}

extension Shape {
    /// An IANA zone name that tzdata knows.
    static let zone = Shape.text(byteCountMax: 64)
}
