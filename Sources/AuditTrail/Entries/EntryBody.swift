package import CanonicalJSON
package import GateVocabulary

/// The members of the entries of one kind. The kind's row in the table of entries, the writing and the reading follow from its
/// fields.
package protocol EntryBody: FieldObject, Hashable {
    static var kind: EntryKind { get }

    /// The whole entry, as ``TrailEntry/encoded()`` gives it.
    func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8]
}

extension EntryBody {
    /// The handbook says it (page "Audit format").
    package static var means: String { "" }

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        try written(index: index, time: time)
    }

    @inline(__always)
    func written(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        var writer = EntryWriter(self, index, time)
        Self.show(to: &writer)
        let bytes = writer.finish()
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        return bytes
    }
}

/// Writes the fields of a body, and between them those of the envelope.
private struct EntryWriter<Object: EntryBody>: FieldVisitor, ~Copyable {
    private let object: Object
    private let index: UInt64
    private let time: Instant
    private var json = CanonicalWriter()
    /// How many members of the envelope are written.
    private var envelopeCount = 0

    init(_ object: Object, _ index: UInt64, _ time: Instant) {
        (self.object, self.index, self.time) = (object, index, time)
        json.raw("{")
    }

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) {
        writeEnvelope(before: name)
        json.key(name)
        object[keyPath: path].write(field: &json)
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) {
        guard let value = object[keyPath: path] else { return }
        writeEnvelope(before: name)
        json.key(name)
        value.write(field: &json)
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, as _: @autoclosure () -> Shape
    ) { optional(name, path, "") }

    /// The members of the envelope that stand before a name; all that are left before none.
    private mutating func writeEnvelope(before name: StaticString?) {
        if envelopeCount == 0, Self.stands("index", before: name) {
            json.member("index", Int64(index))
            envelopeCount = 1
        }
        if envelopeCount == 1, Self.stands("kind", before: name) {
            json.member("kind", Object.kind.text)
            envelopeCount = 2
        }
        if envelopeCount == 2, Self.stands("time", before: name) {
            json.member("time", time)
            envelopeCount = 3
        }
        if envelopeCount == 3, Self.stands("v", before: name) {
            json.member("v", TrailEntry.version)
            envelopeCount = 4
        }
    }

    private static func stands(_ own: StaticString, before name: StaticString?) -> Bool {
        guard let name else { return true }
        // A static string's bytes live as long as the program, and its count is theirs.
        return UnsafeBufferPointer(start: own.utf8Start, count: own.utf8CodeUnitCount)
            .lexicographicallyPrecedes(
                UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }

    consuming func finish() -> [UInt8] {
        writeEnvelope(before: nil)
        json.raw("}")
        return json.finish()
    }
}

extension TrailEntry {
    /// Its members.
    ///
    /// - Precondition: It is of the body's kind.
    package func body<Body: EntryBody>(_: Body.Type = Body.self) throws(JSONShapeError) -> Body {
        precondition(kind == Body.kind, "an entry of kind `\(kind)` was read as one of kind `\(Body.kind)`")
        return try Body.read(field: .object(members))
    }

    /// The members that this build knows; a newer build may have written others beside them.
    ///
    /// - Precondition: It is of the body's kind.
    package func knownBody<Body: EntryBody>(_: Body.Type = Body.self) throws(JSONShapeError) -> Body {
        precondition(kind == Body.kind, "an entry of kind `\(kind)` was read as one of kind `\(Body.kind)`")
        return try Body.read(knownIn: members)
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
    static var blank: Self { Self(high: 0, low: 0) }
}
