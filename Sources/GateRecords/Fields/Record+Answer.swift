package import CanonicalJSON
import GateVocabulary

/// A thing that stands in answers, with those of its fields that are shown.
package protocol ShownRecord: Declared, ShownValue {
    /// In the OpenAPI document.
    static var shownName: String { get }
    /// One sentence for the document's reader.
    static var shownMeans: String { get }
}

extension ShownRecord {
    package static var shownShape: Shape {
        .named(
            shownName,
            .object(
                ObjectShape(
                    shownMeans,
                    fields.shown.map { _, field, form in
                        form.isOptional
                            ? .optional("\(field.name)", form.shape, field.means)
                            : .required("\(field.name)", form.shape, field.means)
                    })))
    }

    package var bytes: [UInt8] { CanonicalWriter.bytes(capacity: 512) { write(shown: &$0) } }

    package var json: JSONObject { JSONObject(written: write(shown:)) }

    package func write(shown json: inout CanonicalWriter) {
        withUnsafePointer(to: self) { record in
            json.object { json in
                for (offset, field, form) in Self.fields.shown
                where form.isPresent(UnsafeRawPointer(record) + offset) {
                    json.key(field.name)
                    form.write(UnsafeRawPointer(record) + offset, &json)
                }
            }
        }
    }
}

extension Array: ShownValue where Element: ShownValue {
    /// Bounded by what the store holds and the query asks.
    package static var shownShape: Shape { .list(of: Element.shownShape, countMax: 100_000) }
    package func write(shown json: inout CanonicalWriter) { json.array(self) { $1.write(shown: &$0) } }
}
