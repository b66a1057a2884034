import BundleModel
import CanonicalJSON
import ConfigurationPages
import WireProtocol

/// What the line of a map comes to, held against what the gateway takes. A mistake on the page is told once and with its place, and
/// not again for each person.
///
/// What the page leaves out is no mistake: a consent without a notice is refused and counted, person by person.
struct MapCheck {
    let format: ImportMap.Format
    let problems: ConfigurationProblems

    func check(line node: PolicyNode) {
        guard case .mapping(let members) = node.value else {
            return refuse("`line` must be a mapping, and is \(node.shapeName)", at: node)
        }
        if let when = members.first(where: { $0.key == "when" }) {
            refuse(
                "`line` has no `when`: each record comes to a line", at: when.value,
                hint: "say it of the parts of the line")
        }
        if !members.contains(where: { ["user", "column"].contains($0.key) }) {
            refuse("`user` is not set", at: node, hint: "say which column has the caller's id for the person")
        }
        check(node, "line", [ImportLine.shape], isLine: true)
    }

    private func refuse(_ message: String, at node: PolicyNode, hint: String? = nil) {
        problems.add(message, at: node.location.map { "\($0)" }, hint: hint)
    }

    /// - Parameters:
    ///   - name: Of the member that the value is of.
    ///   - shapes: What the value may be, one or another of them.
    private func check(_ node: PolicyNode, _ name: String, _ shapes: [Shape], isLine: Bool = false) {
        let shapes = shapes.flatMap(\.alternatives)
        switch node.value {
        case .null, .boolean, .integer, .text: check(constant: node, name, shapes)
        case .list(let elements):
            let kinds = shapes.compactMap(\.elements)
            guard !kinds.isEmpty else { return refuse(node, name, shapes) }
            for element in elements { check(element, name, kinds) }
        case .mapping(let members) where members.contains { $0.key == MapTemplate.columnKey }:
            check(column: members, at: node, name, shapes)
        case .mapping(let members) where members.contains { $0.key == MapTemplate.constantKey }:
            for member in members where member.key == MapTemplate.constantKey {
                check(constant: member.value, name, shapes)
            }
        case .mapping(let members):
            check(members, at: node, name, shapes, isLine: isLine)
        }
    }

    private func refuse(_ node: PolicyNode, _ name: String, _ shapes: [Shape]) {
        let expected = shapes.first.map { $0.violations(of: node.json) }?.first?.message ?? "expected nothing"
        refuse("`\(name)` does not fit: \(expected)", at: node)
    }

    /// A value that stands on the page, and not in the record.
    private func check(constant node: PolicyNode, _ name: String, _ shapes: [Shape]) {
        let value = node.json
        if shapes.contains(where: { $0.violations(of: value).isEmpty }) { return }
        let names = shapes.flatMap(\.names)
        if case .text(let text) = node.value, !names.isEmpty {
            return refuse("`\(name)` is `\(text)`", at: node, hint: NearestName.hint(to: text, among: names))
        }
        refuse(node, name, shapes)
    }

    /// A value of the record, and what it is made into.
    private func check(
        column members: [PolicyNode.Member], at node: PolicyNode, _ name: String, _ shapes: [Shape]
    ) {
        var conversion = MapConversion.text
        var isTranslated = false
        func result(_ node: PolicyNode) {
            // Of `null` the record has nothing.
            if case .null = node.value { return }
            check(constant: node, name, shapes)
        }
        for member in members {
            switch (member.key, member.value.value) {
            case ("as", .text(let name)): conversion = MapConversion(rawValue: name) ?? .text
            case ("values", .mapping(let pairs)):
                isTranslated = !pairs.isEmpty
                for pair in pairs { result(pair.value) }
            case ("otherwise", _): result(member.value)
            default: break
            }
        }
        // What `values` does not have goes as it is, and only the record says whether there is any.
        if isTranslated || shapes.contains(where: { takes(conversion, $0) }) { return }
        let kinds = shapes.map(\.conversion)
        if let fit = kinds.compactMap(\.self).first {
            refuse(
                "`\(name)` does not fit: \(shapes.first?.expectation ?? ""), and `as` is `\(conversion.rawValue)`",
                at: node, hint: "write `as: \(fit.rawValue)`")
        } else {
            refuse(
                "`\(name)` does not fit: \(shapes.first?.expectation ?? ""), and a column is one text",
                at: node,
                hint: "write what each of its members comes from")
        }
    }

    private func takes(_ conversion: MapConversion, _ shape: Shape) -> Bool {
        // A column of JSON may be an object or an array, which goes as it is.
        if shape.conversion == nil { return format == .ndjson && conversion == .text }
        if case .anything = shape { return true }
        return shape.conversion == (conversion.isText ? .text : conversion)
    }

    /// Members of an object.
    private func check(
        _ members: [PolicyNode.Member], at node: PolicyNode, _ name: String, _ shapes: [Shape], isLine: Bool
    ) {
        let keys = members.map(\.key).filter { $0 != MapTemplate.conditionKey }
        let objects = shapes.flatMap { $0.objects(of: members) }
        let maps = shapes.compactMap(\.mapValues)
        guard !objects.isEmpty || !maps.isEmpty else {
            let known = MapTemplate.columnKeys + [MapTemplate.conditionKey, MapTemplate.constantKey]
            let near = keys.lazy.compactMap { NearestName.to($0, among: known) }.first
            return refuse(
                "`\(name)` does not fit: \(shapes.first?.expectation ?? ""), and this is a mapping without `column`",
                at: node, hint: near.map { "did you mean `\($0)`?" } ?? "say which column it comes from")
        }
        for member in members where member.key != MapTemplate.conditionKey {
            let known = objects.flatMap { $0.members.filter { $0.name == member.key } }.map(\.shape) + maps
            if known.isEmpty {
                let names = Set(objects.flatMap { $0.members.map(\.name) }).sorted()
                let near = NearestName.to(member.key, among: names + ["column", MapTemplate.conditionKey])
                problems.add(
                    "`\(member.key)` is nothing that `\(name)` has",
                    at: (member.keyLocation ?? member.value.location).map { "\($0)" },
                    hint: near.map { "did you mean `\($0)`?" }
                        ?? "one of \(names.map { "`\($0)`" }.joined(separator: ", "))")
            } else if isLine, let key = MapTemplate.keys[member.key] {
                check(keyed: member.value, by: key, member.key, known)
            } else {
                check(member.value, member.key, known)
            }
        }
    }

    /// Elements that the line has by one of their members. What is no such list is refused where the template is made.
    private func check(keyed node: PolicyNode, by key: String, _ name: String, _ shapes: [Shape]) {
        guard case .list(let elements) = node.value else { return }
        let shapes = shapes.flatMap(\.alternatives)
        for element in elements {
            guard case .mapping(let members) = element.value else { continue }
            for member in members where member.key == key {
                check(member.value, key, shapes.compactMap(\.keys))
            }
            var rest = element
            rest.value = .mapping(members.filter { $0.key != key })
            check(rest, name, shapes.compactMap(\.mapValues))
        }
    }
}

extension Shape {
    /// The shape without names, choices between shapes and `null`.
    fileprivate var alternatives: [Shape] {
        switch self {
        case .named(_, let shape, _): shape.alternatives
        case .nullable(let shape): shape.alternatives + [.null]
        case .either(let shapes): shapes.flatMap(\.alternatives)
        default: [self]
        }
    }

    fileprivate var names: [String] { if case .choice(let names) = self { names } else { [] } }
    fileprivate var elements: Shape? { if case .list(let shape, _, _) = self { shape } else { nil } }
    fileprivate var keys: Shape? { if case .map(let keys, _, _, _) = self { .text(keys) } else { nil } }
    fileprivate var mapValues: Shape? { if case .map(_, let values, _, _) = self { values } else { nil } }

    /// The objects that a mapping may be. Which of several it is, one member may say: as a constant it decides, as a column it does not.
    fileprivate func objects(of members: [PolicyNode.Member]) -> [ObjectShape] {
        switch self {
        case .object(let object): return [object]
        case .variants(let shape):
            if let override = shape.override, members.contains(where: { $0.key == override.key }) {
                return [override.shape]
            }
            guard let told = members.first(where: { $0.key == shape.key }) else {
                return shape.withoutKey.map { [$0] } ?? shape.variants.map(\.shape)
            }
            if case .text(let text) = told.value.value,
                let variant = shape.variants.first(where: { $0.names.contains(text) })
            {
                return [variant.shape]
            }
            return shape.variants.map(\.shape)
        default: return []
        }
    }

    /// What a column is made into to be of this shape; `nil` where it is no text, number or truth value.
    fileprivate var conversion: MapConversion? {
        switch self {
        case .text, .choice, .anything: .text
        case .integer: .integer
        case .boolean: .boolean
        default: nil
        }
    }

    /// What it must be, in words.
    fileprivate var expectation: String {
        switch self {
        case .boolean: "it is true or false"
        case .integer: "it is a number"
        case .text, .choice, .anything: "it is a text"
        case .list: "it is a list"
        case .null: "it is nothing"
        default: "it has members"
        }
    }
}
