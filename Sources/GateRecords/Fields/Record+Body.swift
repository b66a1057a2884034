package import CanonicalJSON

/// A record of which a caller gives some fields in the body of a request.
package protocol GivenRecord: Record {
    /// ``given(as:_:rules:)``, kept because every body is checked against it.
    static var givenShape: Shape { get }
    /// As the reference shows it.
    static var givenExample: JSONValue { get }

    /// Brings what was given into the one form in which it is kept.
    mutating func settle()
}

extension GivenRecord {
    package mutating func settle() {}

    /// - Parameter body: That the body's shape let through.
    /// - Returns: A record with what was given; what the gateway keeps is blank.
    package static func given(_ body: JSONObject) -> Self {
        var record = blank
        withUnsafeMutablePointer(to: &record) { record in
            for (offset, _, form) in fields.given {
                form.read(body, UnsafeMutableRawPointer(record) + offset)
            }
        }
        record.settle()
        return record
    }

    /// The shape of the body.
    ///
    /// - Parameters:
    ///   - name: In the OpenAPI document.
    ///   - means: One sentence for its reader; `nil` of a body in variants, each of which has its own.
    static func given(as name: String, _ means: String? = nil, rules: [ObjectShape.Rule] = []) -> Shape {
        let notes = BodyNotes()
        for (_, field, form) in fields.given {
            let (name, means) = ("\(field.name)", field.means)
            switch form.giving.role {
            case .plain:
                notes.note(
                    field.isOptional ? .optional(name, form.shape, means) : .required(name, form.shape, means)
                )
            case .leftOut: notes.note(.optional(name, form.shape, means))
            case .defaulted:
                notes.note(.optional(name, form.shape, default: standard(of: field, form), means))
            case .telling(let variants): notes.tell(name, means, variants, withoutKey: nil)
            case .overriding(let names, let object): notes.override(name, means, names, object: object)
            case .perVariant(let forms):
                for form in forms { notes.note(.required(name, form.shape, form.means), only: form.names) }
            case .members(let members): members.forEach { notes.note($0) }
            }
        }
        return .named(name, notes.shape(means, rules: rules))
    }

    /// What a body means that lacks a field.
    private static func standard(of field: Field, _ form: Field.GivenForm) -> JSONValue {
        var json = CanonicalWriter()
        withUnsafePointer(to: blank) { form.write(UnsafeRawPointer($0) + field.offset, &json) }
        guard let value = try? CanonicalJSON.read(json.finish()) else {
            preconditionFailure("the default of `\(field.name)` is no JSON")
        }
        return value
    }
}
