extension Shape {
    /// The same shape, in which members of objects have another shape and meaning where `other` gives one, however deep.
    package func replacing(
        _ other: (ObjectShape.Member) -> (shape: Shape, means: String)?
    ) -> Shape {
        switch self {
        case .boolean, .integer, .text, .choice, .null, .anything, .foreign: self
        case .nullable(let shape): .nullable(shape.replacing(other))
        case .list(let shape, let countMin, let countMax):
            .list(of: shape.replacing(other), countMin: countMin, countMax: countMax)
        case .map(let keys, let values, let countMin, let countMax):
            .map(keys: keys, values: values.replacing(other), countMin: countMin, countMax: countMax)
        case .object(let object): .object(object.replacing(other))
        case .variants(let variants): .variants(variants.replacing(other))
        case .named(let name, let shape, let means):
            .named(name, shape.replacing(other), means: means)
        case .either(let shapes): .either(shapes.map { $0.replacing(other) })
        }
    }
}

extension ObjectShape {
    fileprivate func replacing(_ other: (Member) -> (shape: Shape, means: String)?) -> ObjectShape {
        let members = members.map { member in
            let (shape, means) = other(member) ?? (member.shape.replacing(other), member.means)
            return Member(
                name: member.name, shape: shape, isRequired: member.isRequired,
                defaultValue: member.defaultValue, means: means)
        }
        let others = others.map {
            Others(keys: $0.keys, values: $0.values.replacing(other), countMax: $0.countMax)
        }
        return ObjectShape(means, members, others: others, rules: rules)
    }
}

extension VariantShape {
    fileprivate func replacing(
        _ other: (ObjectShape.Member) -> (shape: Shape, means: String)?
    ) -> VariantShape {
        var replaced = self
        replaced.variants = variants.map { ($0.names, $0.shape.replacing(other)) }
        replaced.withoutKey = withoutKey?.replacing(other)
        replaced.override = override.map { ($0.key, $0.shape.replacing(other)) }
        return replaced
    }
}
