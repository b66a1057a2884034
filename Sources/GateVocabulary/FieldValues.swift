package import CanonicalJSON

// Values of fields that entries have and facts have not, and lists of values.

/// A text whose bound, where it has one, is that of its field.
extension String: FieldValue {
    package static var shape: Shape { .text(TextRule("a text") { _ in true }) }

    package func write(field json: inout CanonicalWriter) { json.text(self) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> String {
        try cursor.text(byteCountMax: .max)
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> String {
        try JSONShape.text(json, .root)
    }
}

/// Sixteen bytes, in the one spelling that ids of the kind have.
extension RandomIdentifier: FieldValue {
    package static var shape: Shape { Kind.spelling == .uuid ? .uuid : .text(.pseudonym) }

    package func write(field json: inout CanonicalWriter) {
        if Kind.spelling == .uuid { json.uuid(of: self) } else { json.hexadecimal(of: self) }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        try Kind.spelling == .uuid ? cursor.uuid() : cursor.hexadecimal()
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        let text = try JSONShape.text(json, .root)
        let isUUID = Kind.spelling == .uuid
        guard let id = isUUID ? Self(uuidText: text) : Self(hexadecimal: text) else {
            throw JSONShapeError(
                .root, "expected \(isUUID ? "a UUID in lower case" : "32 hexadecimal digits")")
        }
        return id
    }
}

/// `null` stands for none.
package struct Nullable<Value: FieldValue & Hashable>: FieldValue, Hashable {
    package var value: Value?
    package init(_ value: Value?) { self.value = value }

    package static var shape: Shape { .nullable(Value.shape) }

    package func write(field json: inout CanonicalWriter) {
        if let value { value.write(field: &json) } else { json.null() }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        cursor.skip("null") ? Self(nil) : Self(try Value.read(field: &cursor))
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        json.isNull ? Self(nil) : Self(try Value.read(field: json))
    }
}

/// Several values, at least one: a field that is absent in place of empty.
package struct Filled<Value: FieldValue & Collection & Hashable>: FieldValue, Hashable {
    package let value: Value

    /// `nil` of an empty one.
    package init?(_ value: Value) {
        guard !value.isEmpty else { return nil }
        self.value = value
    }

    package static var shape: Shape { Value.shape }

    package func write(field json: inout CanonicalWriter) { value.write(field: &json) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        guard let filled = Self(try Value.read(field: &cursor)) else {
            throw cursor.failure("no such member, or one that is not empty, before it")
        }
        return filled
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        guard let filled = Self(try Value.read(field: json)) else {
            throw JSONShapeError(.root, "expected no such member, or one that is not empty")
        }
        return filled
    }
}

// MARK: Several values

/// What stands in lists, and how many there are at most.
package protocol FieldElement: FieldValue {
    static var countMax: Int { get }

    /// Writes an element where it lies, without a copy.
    static func write(_ element: UnsafePointer<Self>, to json: inout CanonicalWriter)
}

extension FieldElement {
    package static func write(_ element: UnsafePointer<Self>, to json: inout CanonicalWriter) {
        element.pointee.write(field: &json)
    }
}

extension DischargeMeans: FieldElement {
    package static var countMax: Int { allCases.count }
}

/// A place in the params of a send.
extension JSONPointer: FieldElement {
    package static var countMax: Int { 32 }
    private static var byteCountMax: Int { 256 }

    package static var shape: Shape { .text(byteCountMax: byteCountMax) }

    package func write(field json: inout CanonicalWriter) { json.text(text) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> JSONPointer {
        guard let pointer = JSONPointer(parsing: try cursor.text(byteCountMax: byteCountMax)) else {
            throw cursor.failure("a JSON pointer")
        }
        return pointer
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> JSONPointer {
        let text = try JSONShape.text(json, .root)
        guard text.utf8.count <= byteCountMax, let pointer = JSONPointer(parsing: text) else {
            throw JSONShapeError(.root, "expected a JSON pointer of at most \(byteCountMax) bytes")
        }
        return pointer
    }
}

extension Array: FieldValue where Element: FieldElement {
    package static var shape: Shape { .list(of: Element.shape, countMax: Element.countMax) }

    package func write(field json: inout CanonicalWriter) {
        // The pointers are used inside the closure.
        withUnsafeBufferPointer { elements in
            json.array(elements.indices) { json, index in
                Element.write(elements.baseAddress! + index, to: &json)
            }
        }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        var elements: Self = []
        try cursor.array(countMax: Element.countMax) { cursor, _ throws(EntryError) in
            elements.append(try Element.read(field: &cursor))
        }
        return elements
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .array(let values) = json else {
            throw JSONShapeError(.root, "expected an array, found \(json.article)")
        }
        guard values.count <= Element.countMax else {
            throw JSONShapeError(
                .root, "expected at most \(Element.countMax) elements, found \(values.count)")
        }
        var elements: Self = []
        elements.reserveCapacity(values.count)
        for (index, value) in values.enumerated() {
            do throws(JSONShapeError) {
                elements.append(try Element.read(field: value))
            } catch {
                throw error.inside("\(index)")
            }
        }
        return elements
    }
}

/// One member for each name of a closed list that has a value.
extension Dictionary: FieldValue
where Key: FieldValue & RawRepresentable<String> & CaseIterable, Value: FieldValue {
    package static var shape: Shape {
        .object(ObjectShape("", Key.allCases.map { .optional($0.rawValue, Value.shape, "") }))
    }

    package func write(field json: inout CanonicalWriter) {
        json.object { json in
            for (key, value) in sorted(by: { CodeUnits.precedes($0.key.rawValue, $1.key.rawValue) }) {
                json.separate(after: UInt8(ascii: "{"))
                json.text(key.rawValue)
                json.byte(UInt8(ascii: ":"))
                value.write(field: &json)
            }
        }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Self {
        try cursor.expect("{")
        var values: Self = [:]
        guard !cursor.skip("}") else { return values }
        var last: Key?
        repeat {
            let key: Key = try cursor.name()
            if let last, !CodeUnits.precedes(last.rawValue, key.rawValue) {
                throw cursor.failure("names in order, each once")
            }
            last = key
            try cursor.expect(":")
            values[key] = try Value.read(field: &cursor)
        } while cursor.skip(",")
        try cursor.expect("}")
        return values
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Self {
        guard case .object(let object) = json else {
            throw JSONShapeError(.root, "expected an object, found \(json.article)")
        }
        var values: Self = [:]
        for (name, value) in object {
            guard let key = Key(rawValue: name) else {
                throw JSONShapeError(JSONPointer.root.appending(name), "nothing of this name is known here")
            }
            do throws(JSONShapeError) {
                values[key] = try Value.read(field: value)
            } catch {
                throw error.inside(name)
            }
        }
        return values
    }
}
