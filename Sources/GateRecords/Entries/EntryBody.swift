package import CanonicalJSON
package import GateVocabulary

/// The members of the entries of one kind. The kind's row in the table of entries, the writing and the reading follow from its
/// fields.
package protocol EntryBody: Hashable, Sendable {
    static var kind: EntryKind { get }
    /// Which members entries of the kind may have.
    static var objectShape: ObjectShape { get }

    /// The whole entry, as ``TrailEntry/encoded()`` gives it.
    func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8]

    /// - Parameter isPassingOver: Whether members that this build does not know may stand beside the others.
    static func read(_ members: JSONObject, isPassingOver: Bool) throws(JSONShapeError) -> Self
}

extension EntryBody {
    /// The handbook says it (page "Audit format").
    package static var means: String { "" }
}

extension EntryBody where Self: FieldObject {
    package static func read(
        _ members: JSONObject, isPassingOver: Bool
    ) throws(JSONShapeError) -> Self {
        isPassingOver ? try read(knownIn: members) : try read(field: .object(members))
    }
}

// The entries of decisions are declared below the trail, where their fields are inlined into how they are written and read.

extension SendEntry: EntryBody {
    package static let kind = EntryKind.send

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        try TrailEntry.checked(bytes(in: EntryEnvelope(kind: Self.kind.text, index: index, time: time)))
    }
}

extension RedecisionEntry: EntryBody {
    package static let kind = EntryKind.redecision

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        try TrailEntry.checked(bytes(in: EntryEnvelope(kind: Self.kind.text, index: index, time: time)))
    }
}

extension TrailEntry {
    /// Its members.
    ///
    /// - Precondition: It is of the body's kind.
    package func body<Body: EntryBody>(_: Body.Type = Body.self) throws(JSONShapeError) -> Body {
        precondition(kind == Body.kind, "an entry of kind `\(kind)` was read as one of kind `\(Body.kind)`")
        return try Body.read(members, isPassingOver: false)
    }

    /// The members that this build knows; a newer build may have written others beside them.
    ///
    /// - Precondition: It is of the body's kind.
    package func knownBody<Body: EntryBody>(_: Body.Type = Body.self) throws(JSONShapeError) -> Body {
        precondition(kind == Body.kind, "an entry of kind `\(kind)` was read as one of kind `\(Body.kind)`")
        return try Body.read(members, isPassingOver: true)
    }
}

/// A name out of one of our own closed lists, of which a newer build may know more: any name can be read.
package struct Code: TextIdentifier, FieldValue {
    package let text: String
    package init(_ text: String) { self.text = text }
    package init(_ name: some RawRepresentable<String>) { text = name.rawValue }

    package static var shape: Shape { .name }

    /// What it names here; `nil` of a name that this build does not know.
    package func known<Name: RawRepresentable<String>>(_: Name.Type = Name.self) -> Name? {
        Name(rawValue: text)
    }

    /// - Throws: ``UnknownCode`` of a name that this build does not know.
    package func name<Name: RawRepresentable<String>>(_: Name.Type = Name.self) throws(UnknownCode) -> Name {
        guard let name = Name(rawValue: text) else { throw UnknownCode(code: self) }
        return name
    }
}

/// An entry has a name that this build does not know.
package struct UnknownCode: Error, Hashable, CustomStringConvertible {
    package var code: Code

    package var description: String {
        "`\(code)` is no name that this build knows; use the build that wrote the trail, or a newer one"
    }
}

extension RandomIdentifier {
    /// What reading fills in.
    package static var blank: Self { Self(high: 0, low: 0) }
}
