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
    package static var shownShape: Shape { fields.shownShape(as: shownName, shownMeans) }

    package var bytes: [UInt8] { CanonicalWriter.bytes(capacity: 512) { write(shown: &$0) } }

    package var json: JSONObject { JSONObject(written: write(shown:)) }

    package func write(shown json: inout CanonicalWriter) { Self.fields.write(shown: self, to: &json) }
}

extension Fields {
    /// - Parameters:
    ///   - name: In the OpenAPI document.
    ///   - means: One sentence for its reader.
    package func shownShape(as name: String, _ means: String) -> Shape {
        .named(
            name,
            .object(
                ObjectShape(
                    means,
                    all.compactMap { field in
                        field.shown.map { form in
                            form.isOptional
                                ? .optional("\(field.name)", form.shape, field.means)
                                : .required("\(field.name)", form.shape, field.means)
                        }
                    })))
    }

    package func write(shown object: Object, to json: inout CanonicalWriter) {
        withUnsafePointer(to: object) { object in
            json.object { json in
                for (offset, write) in showing { write(UnsafeRawPointer(object) + offset, &json) }
            }
        }
    }
}

extension Array: ShownValue where Element: ShownValue {
    /// Bounded by what the store holds and the query asks.
    package static var shownShape: Shape { .list(of: Element.shownShape, countMax: 100_000) }
    package func write(shown json: inout CanonicalWriter) { json.array(self) { $1.write(shown: &$0) } }
}
