package import CanonicalJSON

/// A value with one spelling in canonical JSON, and the shape that says which.
package protocol FieldValue: Sendable {
    static var shape: Shape { get }

    func write(field json: inout CanonicalWriter)

    /// From the bytes of an entry, in the one spelling they can have.
    static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self

    /// From a document that a person or a producer wrote. An error's pointer begins at this value.
    static func read(field json: JSONValue) throws(JSONShapeError) -> Self
}

/// An object whose fields are declared once, in ``show(to:)``. Writing, reading and the shape follow from there.
package protocol FieldObject: FieldValue {
    /// One sentence for the reader of the document.
    static var means: String { get }

    /// What reading fills in.
    static var blank: Self { get }

    /// Shows all fields in canonical order, which is that of their names.
    static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == Self

    /// Called once all fields are read: refuses what cannot stand together, and fills in what follows from the fields.
    mutating func complete() throws(FieldContradiction)
}

/// A field that is not what the others give.
package struct FieldContradiction: Error, CustomStringConvertible {
    package var field: String
    /// What it should have been, e.g. "expected the outcome of `expired`".
    package var message: String

    package init(_ field: String, _ message: String) { (self.field, self.message) = (field, message) }

    package var description: String { "`\(field)`: \(message)" }
}

/// A visitor is shown the fields of an object, one by one.
///
/// A conforming `show` and the visitors below are always inlined into each other, so that a key path is an offset and no
/// closure is called.
package protocol FieldVisitor<Object>: ~Copyable {
    associatedtype Object: FieldObject
    associatedtype Failure: Error

    /// - Parameter means: One or two sentences for the reader of the document.
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String
    ) throws(Failure)

    /// A field that is absent where there is no value.
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _ means: String
    ) throws(Failure)

    /// A field of an entry, which the handbook describes.
    ///
    /// - Parameter shape: In place of that of its type: a bound, or any name where a newer build may know more of them.
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, as shape: @autoclosure () -> Shape
    ) throws(Failure)

    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, as shape: @autoclosure () -> Shape
    ) throws(Failure)
}

extension FieldVisitor where Self: ~Copyable {
    package mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>
    ) throws(Failure) { try required(name, path, "") }

    package mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>
    ) throws(Failure) { try optional(name, path, "") }

    @inline(__always)
    package mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, as _: @autoclosure () -> Shape
    ) throws(Failure) { try required(name, path, "") }

    @inline(__always)
    package mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, as _: @autoclosure () -> Shape
    ) throws(Failure) { try optional(name, path, "") }
}

extension FieldValue {
    /// - Parameter pointer: Where `json` stands in its document, for the errors.
    package static func read(
        field json: JSONValue, at pointer: JSONPointer
    ) throws(JSONShapeError) -> Self {
        do throws(JSONShapeError) {
            return try read(field: json)
        } catch {
            throw JSONShapeError(pointer.appending(error.pointer), error.message)
        }
    }
}

// MARK: What follows from the fields

extension FieldObject {
    package static var shape: Shape { .object(objectShape) }

    package static var objectShape: ObjectShape {
        var members = FieldShapes<Self>()
        show(to: &members)
        return ObjectShape(means, members.all)
    }

    package var json: JSONObject { JSONObject(written: write(field:)) }

    @inline(__always)
    package mutating func complete() throws(FieldContradiction) {}

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { Self.write(self, in: NoEnvelope(), to: &json) }

    /// Writes the whole entry of which these are the members.
    @inline(__always)
    func write(in envelope: EntryEnvelope) -> [UInt8] {
        CanonicalWriter.bytes(capacity: EntryEnvelope.entryByteCountExpected) {
            Self.write(self, in: envelope, to: &$0)
        }
    }

    @inline(__always)
    private static func write(
        _ object: borrowing Self, in envelope: some EnvelopeMembers, to json: inout CanonicalWriter
    ) {
        // The pointer is used until the closure ends. A writer that held the object would copy it for each field anew.
        withUnsafePointer(to: object) { write($0, in: envelope, to: &json) }
    }

    @inline(__always)
    fileprivate static func write(
        _ object: UnsafePointer<Self>, in envelope: some EnvelopeMembers, to json: inout CanonicalWriter
    ) {
        json.byte(UInt8(ascii: "{"))
        withUnsafeMutablePointer(to: &json) { json in
            var writer = FieldWriter(object: object, envelope: envelope, json: json)
            show(to: &writer)
            writer.envelope.write(before: nil, to: &json.pointee)
        }
        json.byte(UInt8(ascii: "}"))
    }

    /// Reads a whole entry of which these are the members.
    @inline(__always)
    static func read(
        _ cursor: inout EntryCursor, in envelope: EntryEnvelope
    ) throws(EntryError) -> (envelope: EntryEnvelope, object: Self) {
        var reader = try EntryFieldReader(blank, cursor, in: envelope)
        try show(to: &reader)
        try reader.end()
        cursor = reader.cursor
        return (reader.envelope!, try reader.object.completed())
    }

    @inline(__always)
    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        var object = blank
        _ = try read(&cursor, into: &object)
        return object
    }

    /// - Returns: Which fields were there, the first in the lowest bit.
    @inline(__always)
    static func read(_ cursor: inout EntryCursor, into object: inout Self) throws(EntryError) -> UInt32 {
        var reader = try EntryFieldReader(object, cursor)
        try show(to: &reader)
        try reader.end()
        object = try reader.object.completed()
        cursor = reader.cursor
        return reader.found
    }

    @inline(__always)
    private func completed() throws(EntryError) -> Self {
        var object = self
        do throws(FieldContradiction) {
            try object.complete()
        } catch {
            throw .contradictory(what: error.field)
        }
        return object
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .object(let object) = json else {
            throw JSONShapeError(
                .root, "expected an object, found \(json.article)")
        }
        var reader = DocumentFieldReader(blank, object.members)
        try show(to: &reader)
        try reader.end()
        return try reader.finish()
    }

    /// The fields of `object` that are known here, where a newer build may have written others beside them.
    package static func read(knownIn object: JSONObject) throws(JSONShapeError) -> Self {
        var reader = DocumentFieldReader(blank, object.members, passesOver: true)
        try show(to: &reader)
        return try reader.finish()
    }
}

extension FieldElement where Self: FieldObject {
    @inline(__always)
    package static func write(_ element: UnsafePointer<Self>, to json: inout CanonicalWriter) {
        write(element, in: NoEnvelope(), to: &json)
    }
}

private struct FieldShapes<Object: FieldObject>: FieldVisitor {
    var all: [ObjectShape.Member] = []

    mutating func required<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value>, _ means: String
    ) { all.append(.required("\(name)", Value.shape, means)) }

    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value?>, _ means: String
    ) { all.append(.optional("\(name)", Value.shape, means)) }

    mutating func required<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value>, as shape: @autoclosure () -> Shape
    ) { all.append(.required("\(name)", shape(), "")) }

    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value?>, as shape: @autoclosure () -> Shape
    ) { all.append(.optional("\(name)", shape(), "")) }
}

/// Members that stand among the fields of an object.
private protocol EnvelopeMembers {
    /// Writes those that stand before a name and are not written yet; all that are left before none.
    mutating func write(before name: StaticString?, to json: inout CanonicalWriter)
}

extension EntryEnvelope: EnvelopeMembers {}

/// Of an object that is no entry. A type, so that nothing is left of it where its object is written.
private struct NoEnvelope: EnvelopeMembers {
    @inline(__always)
    func write(before _: StaticString?, to _: inout CanonicalWriter) {}
}

private struct FieldWriter<Object: FieldObject, Envelope: EnvelopeMembers>: FieldVisitor {
    let object: UnsafePointer<Object>
    var envelope: Envelope
    let json: UnsafeMutablePointer<CanonicalWriter>

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) {
        envelope.write(before: name, to: &json.pointee)
        json.pointee.key(name)
        object.pointee[keyPath: path].write(field: &json.pointee)
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) {
        // Before a field that is absent too, so that where they stand is known when this is compiled.
        envelope.write(before: name, to: &json.pointee)
        guard let value = object.pointee[keyPath: path] else { return }
        json.pointee.key(name)
        value.write(field: &json.pointee)
    }
}

/// Both lists are sorted, so one walk over the names is enough.
private struct EntryFieldReader<Object: FieldObject>: FieldVisitor {
    var object: Object
    var cursor: EntryCursor
    /// Of an entry, whose members stand among those of its envelope.
    private(set) var envelope: EntryEnvelope?
    var found: UInt32 = 0
    private var bit: UInt32 = 1
    /// Whether a name stands here: after the opening bracket, where none need, or after a comma, where one must.
    private var isAtName = true

    /// Steps over `{`.
    init(
        _ object: Object, _ cursor: EntryCursor, in envelope: EntryEnvelope? = nil
    ) throws(EntryError) {
        (self.object, self.cursor, self.envelope) = (object, cursor, envelope)
        try self.cursor.expect("{")
    }

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) throws(EntryError) {
        if envelope != nil { try readEnvelope(before: name) }
        guard isAtName, cursor.skip(field: name) else { throw cursor.failure("the member `\(name)`") }
        object[keyPath: path] = try Value.read(field: &cursor)
        step()
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) throws(EntryError) {
        if envelope != nil { try readEnvelope(before: name) }
        if isAtName, cursor.skip(field: name) {
            object[keyPath: path] = try Value.read(field: &cursor)
            step()
        } else {
            bit <<= 1
        }
    }

    @inline(__always)
    private mutating func step() {
        found |= bit
        bit <<= 1
        isAtName = cursor.skip(",")
    }

    /// The members of the envelope that stand before a name; all that are left before none.
    private mutating func readEnvelope(before name: StaticString?) throws(EntryError) {
        while isAtName, try envelope?.readNext(before: name, from: &cursor) == true {
            isAtName = cursor.skip(",")
        }
    }

    /// Steps over `}`.
    mutating func end() throws(EntryError) {
        if envelope != nil {
            try readEnvelope(before: nil)
            guard envelope?.isComplete == true else { throw cursor.failure("the members of every entry") }
        }
        guard !isAtName || found == 0, cursor.skip("}") else {
            throw cursor.failure("a known member, in order, each once, or the end of the object")
        }
    }
}

/// Both lists are sorted, so one walk over the names is enough.
private struct DocumentFieldReader<Object: FieldObject>: FieldVisitor {
    var object: Object
    private let members: [JSONObject.Member]
    private var next = 0
    /// Whether what is not known here may be there.
    private let passesOver: Bool

    init(_ object: Object, _ members: [JSONObject.Member], passesOver: Bool = false) {
        (self.object, self.members, self.passesOver) = (object, members, passesOver)
    }

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) throws(JSONShapeError) {
        guard let value: Value = try take(name) else {
            if next < members.count, CodeUnits.precedes(members[next].key, "\(name)") { try end() }
            throw JSONShapeError(JSONPointer.root.appending("\(name)"), "the member is missing")
        }
        object[keyPath: path] = value
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) throws(JSONShapeError) {
        if let value: Value = try take(name) { object[keyPath: path] = value }
    }

    private mutating func take<Value: FieldValue>(_ name: StaticString) throws(JSONShapeError) -> Value? {
        while passesOver, next < members.count, CodeUnits.precedes(members[next].key, "\(name)") { next += 1 }
        guard next < members.count else { return nil }
        let key = members[next].key
        guard key.utf8.count == name.utf8CodeUnitCount else { return nil }
        let bytes = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard CodeUnits.withBytes(key, { CodeUnits.equal($0, bytes) }) else { return nil }
        next += 1
        do throws(JSONShapeError) {
            return try Value.read(field: members[next - 1].value)
        } catch {
            throw error.inside(key)
        }
    }

    func finish() throws(JSONShapeError) -> Object {
        var object = object
        do throws(FieldContradiction) {
            try object.complete()
        } catch {
            throw JSONShapeError(JSONPointer.root.appending(error.field), error.message)
        }
        return object
    }

    /// A misspelled fact would otherwise be a missing one.
    func end() throws(JSONShapeError) {
        guard next < members.count else { return }
        throw JSONShapeError(
            JSONPointer.root.appending(members[next].key), "nothing of this name is known here")
    }
}

extension JSONShapeError {
    /// The same, seen from the container that holds the value.
    func inside(_ key: String) -> JSONShapeError {
        JSONShapeError(JSONPointer.root.appending(key).appending(pointer), message)
    }
}

// MARK: Values that are no objects

/// One of a closed list of names.
extension FieldValue where Self: RawRepresentable<String> & CaseIterable {
    package static var shape: Shape { .choice(of: Self.self) }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.name(rawValue) }

    @inline(__always)
    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self { try cursor.name() }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        try JSONShape.name(json, .root)
    }
}

/// One of a closed list of names that entries of sends have.
package protocol QuotedValue: FieldValue, RawRepresentable<String>, CaseIterable {
    static var quoted: QuotedNames<Self> { get }
}

extension QuotedValue {
    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.name(Self.quoted[self]) }
}

extension Bool: FieldValue {
    package static var shape: Shape { .boolean }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.boolean(self) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Bool {
        try cursor.boolean()
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Bool {
        try JSONShape.boolean(json, .root)
    }
}

/// How many of something.
extension FieldValue where Self: FixedWidthInteger {
    private static var most: Int64 { Swift.min(Int64(clamping: max), CanonicalJSON.integerMax) }

    package static var shape: Shape { .integer(0...most) }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.integer(Int64(self)) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        try cursor.unsigned()
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        let count = try JSONShape.count(json, .root)
        guard count <= most else { throw JSONShapeError(.root, "expected at most \(most), found \(count)") }
        return Self(count)
    }
}

extension Int: FieldValue {}
extension Int32: FieldValue {}
extension Int64: FieldValue {}
extension UInt32: FieldValue {}
extension UInt64: FieldValue {}

/// Milliseconds since 1970.
extension Instant: FieldValue {
    package static var shape: Shape { .anyInteger }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.integer(milliseconds) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Instant {
        try cursor.instant()
    }

    package static func read(
        field json: JSONValue
    ) throws(JSONShapeError) -> Instant { try JSONShape.instant(json, .root) }
}

/// A name of 1 to 128 bytes; which characters it may have is checked where it enters.
extension FieldValue where Self: TextIdentifier {
    package static var shape: Shape { String.shape }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) { json.text(text) }

    @inline(__always)
    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        try cursor.identifier()
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        try JSONShape.identifier(json, .root)
    }
}

extension CallerName: FieldValue {}
extension Purpose: FieldValue {}
extension TypeID: FieldValue {}

extension BodyForm: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension Category: FieldValue {}
extension Channel: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension Detail: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension DriftAction: FieldValue {}
extension DriftKind: FieldValue {}
extension Interruption: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension KeyPurpose: FieldValue {}
extension PreferenceSource: FieldValue {}
extension Reason: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension WithdrawalCause: FieldValue {}

extension PolicyDigest: FieldValue {
    package static var shape: Shape { .text(.sha256) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> PolicyDigest {
        try cursor.digest()
    }
}
