package import CanonicalJSON

/// The fields of a body, noted one by one, of which its shape is made.
package final class BodyNotes {
    private struct Variants {
        let key: String
        let means: String
        let variants: [(names: [String], means: String)]
        let withoutKey: String?
    }

    package init() {}

    /// Each member with the names of the variants that have it; `nil` where every variant has it.
    private var members: [(member: ObjectShape.Member, only: [String]?)] = []
    private var variants: Variants?
    private var override: (member: ObjectShape.Member, names: [String], means: String)?

    package func override(_ key: String, _ means: String, _ names: [String], object: String) {
        override = (.required(key, .choice(names), means), names, object)
    }

    package func note(_ member: ObjectShape.Member, only names: [String]? = nil) {
        members.append((member, names))
    }

    package func tell(
        _ key: String, _ means: String, _ variants: [(names: [String], means: String)], withoutKey: String?
    ) {
        self.variants = Variants(key: key, means: means, variants: variants, withoutKey: withoutKey)
    }

    /// - Parameter means: Of an object; each variant has its own sentence.
    package func shape(_ means: String?, rules: [ObjectShape.Rule]) -> Shape {
        guard let variants else {
            guard let means else { preconditionFailure("a body without variants has no sentence of its own") }
            return .object(ObjectShape(means, members.map(\.member), rules: rules))
        }
        precondition(means == nil, "each variant of a body has its own sentence")
        func object(_ means: String, _ isOfVariant: ([String]) -> Bool) -> ObjectShape {
            let members = members.filter { $0.only.map(isOfVariant) ?? true }.map(\.member)
            return ObjectShape(means, members, rules: rules)
        }
        return .variants(
            VariantShape(
                variants.key, variants.means,
                variants.variants.map { variant in
                    (variant.names, object(variant.means) { $0.contains { variant.names.contains($0) } })
                },
                withoutKey: variants.withoutKey.map { means in object(means) { $0.isEmpty } },
                override: override.map { override in
                    let names = variants.variants.flatMap(\.names)
                    let shape = object(override.means) { $0.contains { override.names.contains($0) } }
                        .adding([override.member, .required(variants.key, .choice(names), variants.means)])
                    return (override.member.name, shape)
                }))
    }
}
