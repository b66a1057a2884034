package import CanonicalJSON

extension ObjectShape {
    /// The members of an object in an entry; the handbook says what they mean (page "Audit format").
    ///
    /// - Precondition: No name occurs twice.
    package static func members(
        required: KeyValuePairs<String, Shape> = [:], optional: KeyValuePairs<String, Shape> = [:]
    ) -> ObjectShape {
        let shape = ObjectShape(
            "",
            required.map { .required($0.key, $0.value, "") }
                + optional.map { .optional($0.key, $0.value, "") })
        for (member, next) in zip(shape.members, shape.members.dropFirst()) {
            precondition(
                member.name != next.name, "the member `\(member.name)` was declared twice")
        }
        return shape
    }
}
