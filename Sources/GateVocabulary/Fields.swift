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

    package mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, as _: @autoclosure () -> Shape
    ) throws(Failure) { try required(name, path, "") }

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
    package func write(field json: inout CanonicalWriter) {
        json.raw("{")
        var writer = FieldWriter(object: self, json: json)
        Self.show(to: &writer)
        json = writer.finish()
        json.raw("}")
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
        object = reader.object
        cursor = reader.cursor
        return reader.found
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .object(let object) = json else {
            throw JSONShapeError(
                .root, "expected an object, found \(JSONMembers.article(json.shapeName))")
        }
        var reader = DocumentFieldReader(blank, object.members)
        try show(to: &reader)
        try reader.end()
        return reader.object
    }

    /// The fields of `object` that are known here, where a newer build may have written others beside them.
    package static func read(knownIn object: JSONObject) throws(JSONShapeError) -> Self {
        var reader = DocumentFieldReader(blank, object.members, passesOver: true)
        try show(to: &reader)
        return reader.object
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

private struct FieldWriter<Object: FieldObject>: FieldVisitor, ~Copyable {
    let object: Object
    var json: CanonicalWriter

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) {
        json.key(name)
        object[keyPath: path].write(field: &json)
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) {
        guard let value = object[keyPath: path] else { return }
        json.key(name)
        value.write(field: &json)
    }

    consuming func finish() -> CanonicalWriter { json }
}

/// Both lists are sorted, so one walk over the names is enough.
private struct EntryFieldReader<Object: FieldObject>: FieldVisitor {
    var object: Object
    var cursor: EntryCursor
    var found: UInt32 = 0
    private var bit: UInt32 = 1
    /// Whether a name stands here: after the opening bracket, where none need, or after a comma, where one must.
    private var isAtName = true

    /// Steps over `{`.
    init(_ object: Object, _ cursor: EntryCursor) throws(EntryError) {
        (self.object, self.cursor) = (object, cursor)
        try self.cursor.expect("{")
    }

    @inline(__always)
    mutating func required<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _: String
    ) throws(EntryError) {
        guard isAtName, cursor.skip(field: name) else { throw cursor.failure("the member `\(name)`") }
        object[keyPath: path] = try Value.read(field: &cursor)
        step()
    }

    @inline(__always)
    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value?>, _: String
    ) throws(EntryError) {
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

    /// Steps over `}`.
    mutating func end() throws(EntryError) {
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
    package func write(field json: inout CanonicalWriter) { json.text(rawValue) }

    @inline(__always)
    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self { try cursor.name() }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        try JSONShape.name(json, .root)
    }
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

extension Category: FieldValue {}
extension Channel: FieldValue {}
extension DriftAction: FieldValue {}
extension DriftKind: FieldValue {}
extension KeyPurpose: FieldValue {}
extension PreferenceSource: FieldValue {}
extension WithdrawalCause: FieldValue {}

extension PolicyDigest: FieldValue {
    package static var shape: Shape { .text(.sha256) }
}
