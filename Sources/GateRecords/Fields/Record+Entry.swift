package import CanonicalJSON
package import GateVocabulary

/// A record inside another, in an entry.
extension RecordedValue where Self: Record {
    package static var recordedShape: Shape { .object(recordedObject(means: "") { _ in false }) }

    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .object(let object) = json else {
            throw JSONShapeError(
                .root, "expected an object, found \(json.article)")
        }
        var record = blank
        try record.take(object, isPassingOver: false) { _ in false }
        return record
    }
}

/// An element of a list in an entry, with the number of elements that the list may have.
package protocol RecordedElement: RecordedValue {
    static var countMax: Int { get }
}

extension Array: RecordedValue where Element: RecordedElement {
    package static var recordedShape: Shape { .list(of: Element.recordedShape, countMax: Element.countMax) }

    package func write(recorded json: inout CanonicalWriter) {
        json.array(self) { $1.write(recorded: &$0) }
    }

    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .array(let values) = json else {
            throw JSONShapeError(.root, "expected an array, found \(json.article)")
        }
        guard values.count <= Element.countMax else {
            throw JSONShapeError(
                .root, "expected at most \(Element.countMax) elements, found \(values.count)")
        }
        var elements: Self = []
        for (index, value) in values.enumerated() {
            do throws(JSONShapeError) {
                elements.append(try Element.read(recorded: value))
            } catch {
                throw JSONShapeError(JSONPointer(["\(index)"]).appending(error.pointer), error.message)
            }
        }
        return elements
    }
}

extension Record {
    package func write(recorded json: inout CanonicalWriter) {
        withUnsafePointer(to: self) { record in
            json.object { json in
                for (offset, _, write) in Self.fields.recording {
                    write(UnsafeRawPointer(record) + offset, &json)
                }
            }
        }
    }

    /// - Parameter isLacking: Whether the object may do without a field that the record cannot lack.
    static func recordedObject(means: String, _ isLacking: (String) -> Bool) -> ObjectShape {
        ObjectShape(
            means,
            fields.all.compactMap { field in
                field.recorded.map { form in
                    let name = "\(form.name)"
                    return form.isOptional || isLacking(name)
                        ? .optional(name, form.shape, field.means) : .required(name, form.shape, field.means)
                }
            })
    }

    /// Takes the fields out of an object of an entry.
    ///
    /// - Parameters:
    ///   - isPassingOver: Whether members that this build does not know may stand beside the others.
    ///   - isLeftOut: Which fields the object must not have.
    mutating func take(
        _ object: JSONObject, isPassingOver: Bool, leavingOut isLeftOut: (String) -> Bool
    ) throws(JSONShapeError) {
        var taken: [String] = []
        try withUnsafeMutablePointer(to: &self) { record throws(JSONShapeError) in
            for (offset, form) in Self.fields.recorded {
                let name = "\(form.name)"
                guard !isLeftOut(name) else { continue }
                guard let json = object[name] else {
                    if form.isOptional { continue }
                    throw JSONShapeError(JSONPointer([name]), "the member is missing")
                }
                taken.append(name)
                do throws(JSONShapeError) {
                    try form.read(json, UnsafeMutableRawPointer(record) + offset)
                } catch {
                    throw JSONShapeError(JSONPointer([name]).appending(error.pointer), error.message)
                }
            }
        }
        guard taken.count < object.count, !isPassingOver else { return }
        for member in object.members where !taken.contains(member.key) {
            throw JSONShapeError(JSONPointer([member.key]), "nothing of this name is known here")
        }
    }
}
