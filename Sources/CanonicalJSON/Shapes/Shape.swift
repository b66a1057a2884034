/// What a JSON value must look like.
///
/// One declaration of every body and every answer: the parser checks against it, the OpenAPI document is
/// printed from it, so a request cannot be valid in one and invalid in the other.
package indirect enum Shape: Sendable {
    case boolean
    case integer(ClosedRange<Int64>)
    case text(TextRule)
    /// One of a closed list of names.
    case choice([String])
    /// The shape, or `null` for "none".
    case nullable(Shape)
    /// Only `null`, for a member that is there to say "none".
    case null
    case list(of: Shape, countMin: Int = 0, countMax: Int)
    /// An object whose keys are chosen elsewhere.
    case map(keys: TextRule, values: Shape, countMin: Int = 0, countMax: Int)
    case object(ObjectShape)
    /// An object whose members depend on the name one member holds, e.g. `kind`.
    case variants(VariantShape)
    case anything(AnyJSON)
    /// Shown once in the OpenAPI document, under this name and with these words, and referred to elsewhere.
    case named(String, Shape, means: String? = nil)
    /// One of several; only answers use it, and only the document reads it.
    case either([Shape])
    /// An object that another standard describes; only answers use it.
    case foreign

    /// One of a closed enum's names, shown in the document under the enum's own name.
    package static func choice<Value: RawRepresentable<String> & CaseIterable>(of type: Value.Type) -> Shape {
        // With the types it is nested in, because `Source` alone says nothing; without the module.
        let name = String(reflecting: type).split(separator: ".").dropFirst().joined()
        let means = (type as? any DescribedChoice.Type)?.means
        // They are written without a search for characters that need one (``CanonicalWriter/name(_:)``).
        precondition(
            Value.allCases.allSatisfy { value in
                value.rawValue.utf8.allSatisfy {
                    $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
                }
            }, "a name of \(name) needs an escape")
        return .named(name, .choice(Value.allCases.map(\.rawValue)), means: means)
    }

    package static let sha256 = Shape.named("SHA256", .text(.sha256))
    package static let uuid = Shape.named("UUID", .text(.uuid))
    package static let keyID = Shape.named("KeyID", .text(.keyID))

    /// How many of something.
    package static let count = Shape.integer(0...CanonicalJSON.integerMax)
    package static let anyInteger = Shape.integer(CanonicalJSON.integerMin...CanonicalJSON.integerMax)
}

/// A closed list that needs more words than its names: they stand with its schema in the OpenAPI document.
package protocol DescribedChoice {
    static var means: String { get }
}

/// Any JSON without fractions, so many arrays and objects inside one another; its texts and keys as the rules say.
package final class AnyJSON: Sendable {
    let depthMax: Int
    let texts: TextRule
    let keys: TextRule
    let countMax: Int
    /// What may stand in an array or an object; `nil` where none may.
    let inner: Shape?

    package init(depthMax: Int, texts: TextRule, keys: TextRule, countMax: Int) {
        (self.depthMax, self.texts, self.keys, self.countMax) = (depthMax, texts, keys, countMax)
        inner =
            depthMax == 0
            ? nil
            : .anything(AnyJSON(depthMax: depthMax - 1, texts: texts, keys: keys, countMax: countMax))
    }

    func violations(of value: JSONValue) -> [Violation] {
        switch value {
        case .null, .boolean, .integer: return []
        case .string(let text): return texts.accepts(text) ? [] : [.here(texts.refusal(of: text))]
        case .array, .object: break
        }
        guard let inner else { return [.here("expected no more arrays or objects inside one another")] }
        if case .array = value {
            return Shape.violations(of: value, listOf: inner, countMin: 0, countMax: countMax)
        }
        return Shape.violations(of: value, mapFrom: keys, to: inner, countMin: 0, countMax: countMax)
    }
}

/// An object with known members, and no others but those whose names ``others`` leaves to its author.
package struct ObjectShape: Sendable {
    /// One member of an object: its name, the shape of its value, and whether it may be absent.
    package struct Member: Sendable {
        package let name: String
        package let shape: Shape
        package let isRequired: Bool
        /// What an absent member means, where that is a value.
        package let defaultValue: JSONValue?
        /// One or two sentences for the reader of the document.
        package let means: String

        package static func required(_ name: String, _ shape: Shape, _ means: String) -> Member {
            Member(name: name, shape: shape, isRequired: true, defaultValue: nil, means: means)
        }

        package static func optional(
            _ name: String, _ shape: Shape, default defaultValue: JSONValue? = nil, _ means: String
        ) -> Member {
            Member(name: name, shape: shape, isRequired: false, defaultValue: defaultValue, means: means)
        }
    }

    /// What several members must be together.
    package enum Rule: Sendable {
        case notBoth(String, String)
        /// The first makes no sense without the second.
        case needs(String, String)
        case anyOf([String])
    }

    /// Members with names of the author's own.
    package struct Others: Sendable {
        package let keys: TextRule
        package let values: Shape
        /// Not counting the members that are known by name.
        package let countMax: Int

        package init(keys: TextRule, values: Shape, countMax: Int) {
            self.keys = keys
            self.values = values
            self.countMax = countMax
        }
    }

    /// One sentence for the reader of the document.
    package let means: String
    /// In canonical order of their names, as the members of a parsed object are.
    package let members: [Member]
    /// `nil` where every name is known.
    package let others: Others?
    package let rules: [Rule]

    package init(_ means: String, _ members: [Member], others: Others? = nil, rules: [Rule] = []) {
        self.means = means
        self.members = members.sorted { CodeUnits.precedes($0.name, $1.name) }
        self.others = others
        self.rules = rules
    }

    /// The same object with more members.
    package func adding(_ more: [Member], means: String? = nil) -> ObjectShape {
        ObjectShape(means ?? self.means, members + more, others: others, rules: rules)
    }
}

/// Objects told apart by the name one member holds.
package struct VariantShape: Sendable {
    /// The member that tells them apart; required in each.
    package let key: String
    /// Each with the names that choose it. No name chooses two.
    package internal(set) var variants: [(names: [String], shape: ObjectShape)]
    /// What an object without the telling member is; `nil` when there is no such object.
    package internal(set) var withoutKey: ObjectShape?
    /// What an object is that has a certain other member, whatever ``key`` says; `nil` when no member changes that.
    package internal(set) var override: (key: String, shape: ObjectShape)?

    /// - Parameters:
    ///   - variants: Without the telling member, which is added to each.
    ///   - override: With both members.
    package init(
        _ key: String, _ means: String, _ variants: [(names: [String], shape: ObjectShape)],
        withoutKey: ObjectShape? = nil, override: (key: String, shape: ObjectShape)? = nil
    ) {
        self.key = key
        self.withoutKey = withoutKey
        self.override = override
        self.variants = variants.map { variant in
            (
                names: variant.names,
                shape: variant.shape.adding([.required(key, .choice(variant.names), means)])
            )
        }
    }
}

extension Shape {
    /// Every way in which `value` is not of this shape; empty when it is.
    ///
    /// Recursion is bounded by the shape, whatever the value. Pointers are put together only on the way
    /// back from a violation, so a value that fits costs no text.
    package func violations(of value: JSONValue) -> [Violation] {
        switch self {
        case .boolean:
            if case .boolean = value { return [] }
            return [.expected("true or false", found: value)]
        case .integer(let range):
            guard case .integer(let integer) = value else {
                return [.expected("an integer", found: value)]
            }
            if range.contains(integer) { return [] }
            return [.here("expected an integer from \(range.lowerBound) to \(range.upperBound)")]
        case .text(let rule):
            guard case .string(let text) = value else {
                return [.expected("a string, \(rule.expectation)", found: value)]
            }
            return rule.accepts(text) ? [] : [.here(rule.refusal(of: text))]
        case .choice(let names):
            if case .string(let text) = value, names.contains(where: { CodeUnits.equal($0, text) }) {
                return []
            }
            return [.here("expected \(Self.list(names))")]
        case .nullable(let shape):
            return value.isNull ? [] : shape.violations(of: value)
        case .null:
            return value.isNull ? [] : [.expected("null, or no such member", found: value)]
        case .list(let shape, let countMin, let countMax):
            return Self.violations(of: value, listOf: shape, countMin: countMin, countMax: countMax)
        case .map(let keys, let values, let countMin, let countMax):
            return Self.violations(
                of: value, mapFrom: keys, to: values, countMin: countMin, countMax: countMax)
        case .object(let shape):
            guard case .object(let object) = value else { return [.expected("an object", found: value)] }
            return shape.violations(of: object)
        case .variants(let shape):
            guard case .object(let object) = value else { return [.expected("an object", found: value)] }
            return shape.violations(of: object)
        case .anything(let any):
            return any.violations(of: value)
        case .named(_, let shape, _):
            return shape.violations(of: value)
        case .foreign:
            if case .object = value { return [] }
            return [.expected("an object", found: value)]
        case .either(let shapes):
            var first: [Violation] = []
            for shape in shapes {
                let found = shape.violations(of: value)
                if found.isEmpty { return [] }
                if first.isEmpty { first = found }
            }
            return first
        }
    }

    fileprivate static func violations(
        of value: JSONValue, listOf shape: Shape, countMin: Int, countMax: Int
    ) -> [Violation] {
        guard case .array(let elements) = value else { return [.expected("an array", found: value)] }
        guard (countMin...countMax).contains(elements.count) else {
            return [.here("expected \(countMin) to \(countMax) elements, found \(elements.count)")]
        }
        var found: [Violation] = []
        for (index, element) in elements.enumerated() {
            found += shape.violations(of: element).map { $0.inside(JSONPointer.root.appending(index)) }
        }
        return found
    }

    fileprivate static func violations(
        of value: JSONValue, mapFrom keys: TextRule, to values: Shape, countMin: Int, countMax: Int
    ) -> [Violation] {
        guard case .object(let object) = value else { return [.expected("an object", found: value)] }
        guard object.count >= countMin else {
            return [.here("expected at least \(countMin) members, found \(object.count)")]
        }
        guard object.count <= countMax else {
            return [.here("expected at most \(countMax) members, found \(object.count)")]
        }
        return object.members.flatMap { violations(of: $0, named: keys, with: values) }
    }

    /// - Parameter member: One whose name the object's author chose.
    fileprivate static func violations(
        of member: JSONObject.Member, named keys: TextRule, with values: Shape
    ) -> [Violation] {
        var found = values.violations(of: member.value)
        if !keys.accepts(member.key) {
            found.insert(.here("expected a name of \(keys.expectation)"), at: 0)
        }
        return found.isEmpty ? [] : found.map { $0.inside(JSONPointer.root.appending(member.key)) }
    }

    package static func list(_ names: [String]) -> String {
        let quoted = names.map { "`\($0)`" }
        return names.count == 1 ? quoted[0] : "one of \(quoted.joined(separator: ", "))"
    }
}

extension ObjectShape {
    package func violations(of object: JSONObject) -> [Violation] {
        var found: [Violation] = []
        var next = 0
        var otherCount = 0
        // Both lists are in canonical order, so one walk down both finds what is missing and what is extra.
        for given in object.members {
            var order = -1
            while next < members.count {
                order = CodeUnits.compare(members[next].name, given.key)
                if order >= 0 { break }
                noteMissing(members[next], in: &found)
                next += 1
            }
            guard next < members.count, order == 0 else {
                if let others {
                    otherCount += 1
                    found += Shape.violations(of: given, named: others.keys, with: others.values)
                } else {
                    found.append(unknown(given.key))
                }
                continue
            }
            let inner = members[next].shape.violations(of: given.value)
            if !inner.isEmpty {
                let token = JSONPointer.root.appending(members[next].name)
                found += inner.map { $0.inside(token) }
            }
            next += 1
        }
        while next < members.count {
            noteMissing(members[next], in: &found)
            next += 1
        }
        if let others, otherCount > others.countMax {
            found.append(
                .here("expected at most \(others.countMax) other members, found \(otherCount)"))
        }
        for rule in rules { noteBroken(rule, by: object, in: &found) }
        return found
    }

    private func noteMissing(_ member: Member, in found: inout [Violation]) {
        guard member.isRequired else { return }
        found.append(
            Violation.here("the member is missing; \(member.shape.summary)").inside(
                JSONPointer.root.appending(member.name)))
    }

    private func noteBroken(_ rule: Rule, by object: JSONObject, in found: inout [Violation]) {
        switch rule {
        case .notBoth(let first, let second):
            if object[first] != nil, object[second] != nil {
                found.append(.here("expected `\(first)` or `\(second)`, not both"))
            }
        case .needs(let first, let second):
            if object[first] != nil, object[second] == nil {
                found.append(.here("`\(first)` says nothing without `\(second)`; give both or neither"))
            }
        case .anyOf(let names):
            if !names.contains(where: { object[$0] != nil }) {
                found.append(.here("expected at least \(Shape.list(names))"))
            }
        }
    }

    /// Names the nearest known member, if one is close: most unknown members are misspelled ones.
    private func unknown(_ key: String) -> Violation {
        let names = members.map(\.name)
        let hint =
            NearestName.to(key, among: names, editCountMax: .max).map { "did you mean `\($0)`?" }
            ?? "known are \(names.map { "`\($0)`" }.joined(separator: ", "))"
        return Violation.here("nothing of the name `\(Violation.quotable(key))` is known here; \(hint)")
            .inside(JSONPointer.root.appending(key))
    }
}

extension VariantShape {
    package func violations(of object: JSONObject) -> [Violation] {
        if let override, object[override.key] != nil { return override.shape.violations(of: object) }
        let names = variants.flatMap(\.names)
        guard let value = object[key] else {
            if let withoutKey { return withoutKey.violations(of: object) }
            return [
                Violation.here("the member is missing; expected \(Shape.list(names))")
                    .inside(JSONPointer.root.appending(key))
            ]
        }
        guard case .string(let text) = value,
            let variant = variants.first(where: { $0.names.contains { CodeUnits.equal($0, text) } })
        else {
            return [
                Violation.here("expected \(Shape.list(names))").inside(JSONPointer.root.appending(key))
            ]
        }
        return variant.shape.violations(of: object)
    }
}

extension Shape {
    /// What would be right, in a few words, for a member that is missing.
    var summary: String {
        switch self {
        case .boolean: "expected true or false"
        case .integer(let range): "expected an integer from \(range.lowerBound) to \(range.upperBound)"
        case .text(let rule): "expected \(rule.expectation)"
        case .choice(let names): "expected \(Self.list(names))"
        case .nullable(let shape): shape.summary + ", or null"
        case .null: "expected null"
        case .list: "expected an array"
        case .map, .object, .variants, .foreign: "expected an object"
        case .anything: "expected a value"
        case .named(_, let shape, _): shape.summary
        case .either(let shapes): shapes.first?.summary ?? "expected a value"
        }
    }
}

extension Violation {
    package static func here(_ message: String) -> Violation { Violation(.body(.root), message) }

    static func expected(_ what: String, found value: JSONValue) -> Violation {
        .here("expected \(what), found \(value.article)")
    }
}
