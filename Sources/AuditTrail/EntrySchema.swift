package import CanonicalJSON
import GateVocabulary

extension Shape {
    /// The same with any name in place of one of a closed list.
    var open: Shape {
        switch self {
        case .named(_, let shape, _): shape.open
        case .choice: .name
        case .object(let object):
            .object(
                ObjectShape(
                    object.means,
                    object.members.map {
                        $0.isRequired
                            ? .required($0.name, $0.shape.open, $0.means)
                            : .optional($0.name, $0.shape.open, $0.means)
                    }))
        default: self
        }
    }
}

extension TextRule {
    /// Whether it lets nothing through but the digits of an id, a tag or a digest.
    var isOpaque: Bool {
        [TextRule.pseudonym, .uuid, .sha256].contains { $0.schema == schema }
    }
}

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
                !CodeUnits.equal(member.name, next.name), "the member `\(member.name)` was declared twice")
        }
        return shape
    }
}

/// Every kind of entry there is, with the members each may have. An unknown kind or member fails.
package struct EntrySchema: Sendable {
    private struct Kind: Sendable {
        let kind: EntryKind
        let members: ObjectShape
    }

    private let kinds: [Kind]

    /// - Parameter bodies: What the entries of most kinds are read as.
    /// - Precondition: No kind occurs twice, and none declares a member of the envelope.
    package init(
        of bodies: [any EntryBody.Type] = [], _ kinds: KeyValuePairs<EntryKind, ObjectShape> = [:]
    ) {
        let declared = bodies.map { Kind(kind: $0.kind, members: $0.objectShape) }
        self.kinds = (declared + kinds.map { Kind(kind: $0.key, members: $0.value) })
            .sorted { $0.kind < $1.kind }
        for (kind, next) in zip(self.kinds, self.kinds.dropFirst()) {
            precondition(kind.kind != next.kind, "the entry kind `\(kind.kind)` was declared twice")
        }
        for kind in self.kinds {
            for member in kind.members.members {
                precondition(
                    !TrailEntry.envelopeKeys.contains { CodeUnits.equal($0, member.name) },
                    "the entry kind `\(kind.kind)` declares `\(member.name)`, which is the envelope's")
            }
        }
    }

    /// The kinds, sorted.
    package var kindNames: [EntryKind] { kinds.map(\.kind) }

    /// Where an entry has texts: the kind and the names of the members down to the text, and whether nothing but digits of
    /// an id, a tag or a digest can stand there.
    package var texts: [(path: [String], isOpaque: Bool)] {
        func texts(_ path: [String], _ shape: Shape) -> [(path: [String], isOpaque: Bool)] {
            switch shape {
            case .boolean, .integer, .null: []
            case .text(let rule): [(path, rule.isOpaque)]
            case .choice: [(path, false)]
            case .list(let element, _, _), .nullable(let element), .named(_, let element, _):
                texts(path, element)
            case .object(let object):
                object.members.flatMap { texts(path + [$0.name], $0.shape) }
                    + (object.others.map {
                        texts(path, .map(keys: $0.keys, values: $0.values, countMax: $0.countMax))
                    } ?? [])
            case .variants(let variants):
                variants.variants.flatMap { texts(path, .object($0.shape)) }
                    + (variants.withoutKey.map { texts(path, .object($0)) } ?? [])
            case .map(let keys, let values, _, _): [(path + ["*"], keys.isOpaque)] + texts(path, values)
            case .either(let shapes): shapes.flatMap { texts(path, $0) }
            case .anything, .foreign: [(path, false)]
            }
        }
        return kinds.flatMap { texts([$0.kind.text], .object($0.members)) }
    }

    /// The first violation in canonical order, or `nil` when the entry is one of its kind. It does not have the value: an
    /// entry under suspicion may hold what must not be printed.
    package func violation(in entry: TrailEntry) -> Violation? { violations(in: entry).first }

    /// Every violation, in canonical order.
    func violations(in entry: TrailEntry) -> [Violation] {
        guard let members = members(of: entry.kind) else {
            return [.here("no entry kind of this name is known").inside(JSONPointer.root.appending("kind"))]
        }
        return members.violations(of: entry.members)
    }

    /// The members of a kind, or `nil` of a kind that is not declared.
    package func members(of kind: EntryKind) -> ObjectShape? {
        var low = 0
        var high = kinds.count
        while low < high {
            let middle = (low + high) / 2
            if kinds[middle].kind < kind { low = middle + 1 } else { high = middle }
        }
        return low < kinds.count && kinds[low].kind == kind ? kinds[low].members : nil
    }
}
