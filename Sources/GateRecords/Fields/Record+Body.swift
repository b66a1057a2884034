package import CanonicalJSON

/// A record of which a caller gives some fields in the body of a request, or in an object inside one.
package protocol GivenRecord: Record, GivenValue {
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
            for (offset, read) in fields.reading { read(body, UnsafeMutableRawPointer(record) + offset) }
        }
        record.settle()
        return record
    }

    package static func read(given json: JSONValue) -> Self? { json.objectValue.map { given($0) } }

    /// The shape of the body.
    ///
    /// - Parameters:
    ///   - name: In the OpenAPI document.
    ///   - means: One sentence for its reader; `nil` of a body in variants, each of which has its own.
    package static func given(
        as name: String, _ means: String? = nil, rules: [ObjectShape.Rule] = []
    ) -> Shape { fields.givenShape(as: name, means, rules: rules) }
}

extension Fields where Object: Record {
    /// - Parameter name: In the OpenAPI document; `nil` of an object that is shown where it stands.
    func givenShape(as name: String?, _ means: String?, rules: [ObjectShape.Rule]) -> Shape {
        let notes = BodyNotes()
        for field in all {
            guard let form = field.given else { continue }
            let (name, means) = ("\(field.name)", field.means)
            switch form.giving.role {
            case .plain:
                notes.note(
                    field.isOptional ? .optional(name, form.shape, means) : .required(name, form.shape, means)
                )
            case .required: notes.note(.required(name, form.shape, means))
            case .leftOut: notes.note(.optional(name, form.shape, means))
            case .defaulted:
                notes.note(.optional(name, form.shape, default: standard(of: field, form), means))
            case .telling(let variants, let withoutKey):
                notes.tell(name, means, variants, withoutKey: withoutKey)
            case .overriding(let names, let object): notes.override(name, means, names, object: object)
            case .perVariant(let forms):
                for form in forms { notes.note(.required(name, form.shape, form.means), only: form.names) }
            case .only(let names, let isRequired):
                notes.note(
                    isRequired ? .required(name, form.shape, means) : .optional(name, form.shape, means),
                    only: names)
            case .members(let members): members.forEach { notes.note($0) }
            }
        }
        let shape = notes.shape(means, rules: rules)
        return name.map { .named($0, shape) } ?? shape
    }

    /// What a body means that lacks a field.
    private func standard(of field: Field, _ form: Field.GivenForm) -> JSONValue {
        var json = CanonicalWriter()
        withUnsafePointer(to: Object.blank) { form.standard?(UnsafeRawPointer($0) + field.offset, &json) }
        guard let value = try? CanonicalJSON.read(json.finish()) else {
            preconditionFailure("the default of `\(field.name)` is no JSON")
        }
        return value
    }
}
