import CanonicalJSON
import GateVocabulary

/// A thing whose fields are declared in one list, which everything else follows from.
package protocol Declared: Hashable, Sendable {
    static var fields: Fields<Self> { get }
}

/// A thing that is read as well as written.
package protocol Record: Declared {
    /// What a reader fills in. Fields that a caller may leave out have the value that their absence means.
    static var blank: Self { get }
}

/// The fields of a record, in the order in which its row has them, and every form of it that follows from them.
///
///     package static let fields = Fields<Self> { fields in
///         fields.evidence("critical_alerts", \.criticalAlerts, "Whether the app may sound critical alerts.", given: .defaulted)
///         fields.private("token", \.token, "The push token.", given: .text(.fcmToken))
///     }
///
/// A line is the name, the property, the meaning and, where a caller gives the field, how. The method says who learns of it (see
/// ``FieldDeclarations``). The type of the property gives the forms; one that has no form of an entry, as a secret has none, does not
/// compile as evidence.
///
/// A class, because a record's list is asked for at each write of it, and a structure of so many lists is copied list by list.
package final class Fields<Object>: Sendable {
    package let all: [Field]
    // One list for each form, with the closures of that form alone: rows, bodies, entries and answers are on the path of every send.

    let stored: [(offset: Int, type: any StoredValue.Type)]
    /// Those of ``stored`` that rows have had since a later version than the first, by their places there.
    let storedSince: [(place: Int, version: Int)]
    /// The fields of an entry in canonical order; `recording` and `showing` are in that order, too.
    let recorded: [(offset: Int, form: Field.RecordedForm)]
    let recording: [(offset: Int, name: StaticString, write: Field.Write)]
    let showing: [(offset: Int, write: Field.Write)]
    let reading: [(offset: Int, read: Field.GivenForm.Read)]

    /// - Precondition: No two fields have one name in one form.
    package init(_ declare: (inout FieldDeclarations<Object>) -> Void) {
        var declarations = FieldDeclarations<Object>()
        declare(&declarations)
        let all = declarations.all
        self.all = all
        stored = all.compactMap { field in field.stored.map { (field.offset, $0) } }
        storedSince = all.filter { $0.stored != nil }.enumerated().filter { $1.since > 0 }.map {
            ($0, $1.since)
        }
        recorded = Self.sorted(all.compactMap { field in field.recorded.map { (field.offset, $0) } }) {
            "\($0.form.name)"
        }
        recording = recorded.map { ($0.offset, $0.form.name, $0.form.write) }
        let shown = Self.sorted(all.filter { $0.shown != nil }) { "\($0.name)" }
        showing = shown.compactMap { field in field.shown.map { (field.offset, $0.write) } }
        reading = all.compactMap { field in field.given.map { (field.offset, $0.read) } }
    }

    private static func sorted<Form>(_ forms: [Form], _ name: (Form) -> String) -> [Form] {
        let names = forms.map(name)
        precondition(Set(names).count == names.count, "fields of \(Object.self) have one name: \(names)")
        return forms.sorted { CodeUnits.precedes(name($0), name($1)) }
    }

    /// The same without some of the fields.
    package func without(_ names: Set<String>) -> Fields {
        Fields { fields in fields.all = all.filter { !names.contains("\($0.name)") } }
    }
}
