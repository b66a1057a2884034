package import CanonicalJSON

/// A document that is JSON but not the value it should be.
package struct JSONShapeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The member that does not fit, seen from the outermost document.
    package var pointer: JSONPointer
    /// What it should have been, e.g. "expected one of `given`, `refused`".
    package var message: String

    package init(_ pointer: JSONPointer, _ message: String) {
        self.pointer = pointer
        self.message = message
    }

    package var description: String { "\(message) at `\(pointer.shortened())`" }
}

/// Takes the members of one object, one by one, and refuses those that were not taken.
///
/// A member that is absent is `nil`; a JSON `null` is refused, so that every value has one spelling.
package struct JSONMembers {
    package let object: JSONObject
    package let pointer: JSONPointer
    private var takenCount = 0
    private var taken: Set<String> = []

    package init(_ object: JSONObject, at pointer: JSONPointer) {
        self.object = object
        self.pointer = pointer
    }

    package init(_ value: JSONValue, at pointer: JSONPointer) throws(JSONShapeError) {
        guard case .object(let object) = value else {
            throw JSONShapeError(pointer, "expected an object, found \(value.article)")
        }
        self.init(object, at: pointer)
    }

    /// The member as it is, marked as taken.
    package mutating func value(_ key: String) -> JSONValue? {
        guard let value = object[key] else { return nil }
        if taken.insert(key).inserted { takenCount += 1 }
        return value
    }

    package mutating func required<Value>(
        _ key: String, _ read: (JSONValue, JSONPointer) throws(JSONShapeError) -> Value
    ) throws(JSONShapeError) -> Value {
        guard let value = value(key) else {
            throw JSONShapeError(pointer.appending(key), "the member is missing")
        }
        return try read(value, pointer.appending(key))
    }

    package mutating func optional<Value>(
        _ key: String, _ read: (JSONValue, JSONPointer) throws(JSONShapeError) -> Value
    ) throws(JSONShapeError) -> Value? {
        guard let value = value(key) else { return nil }
        return try read(value, pointer.appending(key))
    }

    /// Call last: an unknown member is an error, because a misspelled fact would otherwise be a missing one.
    package func refuseOthers() throws(JSONShapeError) {
        guard takenCount < object.count else { return }
        for (key, _) in object where !taken.contains(key) {
            throw JSONShapeError(pointer.appending(key), "nothing of this name is known here")
        }
    }
}

/// Readers of single values, each refusing every other shape.
package enum JSONShape {
    package static func boolean(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> Bool {
        guard case .boolean(let boolean) = value else {
            throw JSONShapeError(
                pointer, "expected true or false, found \(value.article)")
        }
        return boolean
    }

    package static func integer(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> Int64 {
        guard case .integer(let integer) = value else {
            throw JSONShapeError(
                pointer, "expected an integer, found \(value.article)")
        }
        return integer
    }

    /// How many of something: 0 to 2⁵³−1.
    package static func count(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> Int {
        let integer = try integer(value, pointer)
        guard integer >= 0 else { throw JSONShapeError(pointer, "expected 0 or more, found \(integer)") }
        return Int(integer)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    package static func instant(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> Instant
    {
        Instant(milliseconds: try integer(value, pointer))
    }

    package static func text(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> String {
        guard case .string(let text) = value else {
            throw JSONShapeError(
                pointer, "expected a string, found \(value.article)")
        }
        return text
    }

    /// A name of 1 to 128 bytes, the bound of every caller-chosen text.
    package static func identifier<Name: TextIdentifier>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> Name {
        let text = try text(value, pointer)
        guard (1...128).contains(text.utf8.count) else {
            throw JSONShapeError(pointer, "expected 1 to 128 bytes, found \(text.utf8.count)")
        }
        return Name(text)
    }

    /// One of a closed list of names.
    package static func name<Value: RawRepresentable<String> & CaseIterable>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> Value {
        let text = try text(value, pointer)
        guard let known = Value(rawValue: text) else {
            let names = Value.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            throw JSONShapeError(pointer, "expected one of \(names)")
        }
        return known
    }
}
