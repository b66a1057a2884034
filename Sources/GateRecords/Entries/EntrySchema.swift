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

/// Every kind of entry there is, with the members each may have. An unknown kind or member fails.
package struct EntrySchema: Sendable {
    private var kinds: [EntryKind: ObjectShape] = [:]

    /// - Parameter bodies: What the entries of most kinds are read as.
    /// - Precondition: No kind occurs twice, and none declares a member of the envelope.
    package init(
        of bodies: [any EntryBody.Type] = [], _ kinds: KeyValuePairs<EntryKind, ObjectShape> = [:]
    ) {
        for (kind, members) in bodies.map({ ($0.kind, $0.objectShape) }) + kinds.map({ ($0.key, $0.value) }) {
            let known = self.kinds.updateValue(members, forKey: kind)
            precondition(known == nil, "the entry kind `\(kind)` was declared twice")
            for member in members.members {
                precondition(
                    !TrailEntry.envelopeKeys.contains { CodeUnits.equal($0, member.name) },
                    "the entry kind `\(kind)` declares `\(member.name)`, which is the envelope's")
            }
        }
    }

    /// The kinds, sorted.
    package var kindNames: [EntryKind] { kinds.keys.sorted() }

    /// The first violation in canonical order, or `nil` when the entry is one of its kind. It does not have the value: an
    /// entry under suspicion may hold what must not be printed.
    package func violation(in entry: TrailEntry) -> Violation? { violations(in: entry).first }

    /// Every violation, in canonical order.
    package func violations(in entry: TrailEntry) -> [Violation] {
        guard let members = members(of: entry.kind) else {
            return [.here("no entry kind of this name is known").inside(JSONPointer.root.appending("kind"))]
        }
        return members.violations(of: entry.members)
    }

    /// Requires a kind that this build has: who works out from all entries what there is leaves none out.
    ///
    /// - Throws: ``UnknownEntryKind``.
    package func requireKind(of entry: TrailEntry) throws(UnknownEntryKind) {
        guard members(of: entry.kind) != nil else {
            throw UnknownEntryKind(index: entry.index, kind: entry.kind)
        }
    }

    /// The members of a kind, or `nil` of a kind that is not declared.
    package func members(of kind: EntryKind) -> ObjectShape? { kinds[kind] }
}

/// An entry of a kind that this build does not have. Kinds are only added (SG-0083), so a newer sendgate wrote it.
package struct UnknownEntryKind: Error, Hashable, Sendable, CustomStringConvertible {
    package let index: UInt64
    package let kind: EntryKind

    package var description: String {
        "entry \(index) cannot be read: a newer sendgate wrote it, of the kind `\(kind.text)`"
    }

    /// The next step.
    package static let hint = GateRevision.newerHint
}
