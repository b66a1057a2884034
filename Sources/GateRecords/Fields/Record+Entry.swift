package import CanonicalJSON
package import GateVocabulary

/// A record inside another, in an entry.
extension RecordedValue where Self: Record {
    package static var recordedShape: Shape { .object(recordedObject(means: "") { _ in false }) }

    package func write(recorded json: inout CanonicalWriter) {
        withUnsafePointer(to: self) { record in
            json.object { json in
                for (offset, _, form) in Self.fields.recorded {
                    let place = UnsafeRawPointer(record) + offset
                    guard form.isPresent(place) else { continue }
                    json.key(form.name)
                    form.write(place, &json)
                }
            }
        }
    }

    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .object(let object) = json else {
            throw JSONShapeError(.root, "expected an object")
        }
        var record = blank
        try record.take(object, isPassingOver: false) { _ in false }
        return record
    }
}

extension Record {
    /// - Parameter isLacking: Whether the object may do without a field that the record cannot lack.
    static func recordedObject(means: String, _ isLacking: (Field.RecordedForm) -> Bool) -> ObjectShape {
        ObjectShape(
            means,
            fields.recorded.map { _, field, form in
                form.isOptional || isLacking(form)
                    ? .optional("\(form.name)", form.shape, field.means)
                    : .required("\(form.name)", form.shape, field.means)
            })
    }

    /// Takes the fields out of an object of an entry.
    ///
    /// - Parameters:
    ///   - isPassingOver: Whether members that this build does not know may stand beside the others.
    ///   - isLeftOut: Which fields the object must not have.
    mutating func take(
        _ object: JSONObject, isPassingOver: Bool, leavingOut isLeftOut: (Field.RecordedForm) -> Bool
    ) throws(JSONShapeError) {
        var left = object
        try withUnsafeMutablePointer(to: &self) { record throws(JSONShapeError) in
            for (offset, _, form) in Self.fields.recorded where !isLeftOut(form) {
                let name = "\(form.name)"
                guard let json = object[name] else {
                    if form.isOptional { continue }
                    throw JSONShapeError(JSONPointer([name]), "the member is missing")
                }
                left[name] = nil
                do throws(JSONShapeError) {
                    try form.read(json, UnsafeMutableRawPointer(record) + offset)
                } catch {
                    throw JSONShapeError(JSONPointer([name]).appending(error.pointer), error.message)
                }
            }
        }
        if let unknown = left.members.first, !isPassingOver {
            throw JSONShapeError(JSONPointer([unknown.key]), "nothing of this name is known here")
        }
    }
}
