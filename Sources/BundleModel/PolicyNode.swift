package import CanonicalJSON

/// A place in a file of the bundle. Lines and columns count from 1.
package struct SourceLocation: Hashable, Sendable, CustomStringConvertible {
    /// Relative to the bundle's folder, with `/` between its parts, e.g. `types/promo.offer.yaml`.
    package var file: String
    package var line: Int
    package var column: Int

    package init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    package var description: String { "\(file):\(line):\(column)" }
}

/// One document of a bundle as a tree in which every value knows where it was written.
///
/// The tree is what JSON can say and no more, because the canonical form of a bundle is JSON: what a
/// digest covers and what an archive keeps. Read from an archive the tree has no locations; two trees
/// are equal when their values are, wherever they were written.
package struct PolicyNode: Sendable {
    /// What stands at a place of a page, before its shape is checked.
    package indirect enum Value: Sendable {
        case null
        case boolean(Bool)
        case integer(Int64)
        case text(String)
        case list([PolicyNode])
        /// In the order of the file. Keys are unique: the reader of the file has refused a second one.
        case mapping([Member])
    }

    /// One key of a mapping with its value, and where the key stands.
    package struct Member: Sendable {
        package var key: String
        package var keyLocation: SourceLocation?
        package var value: PolicyNode

        package init(key: String, keyLocation: SourceLocation? = nil, value: PolicyNode) {
            self.key = key
            self.keyLocation = keyLocation
            self.value = value
        }
    }

    package var value: Value
    /// Where the value starts; `nil` when it was read from an archive.
    package var location: SourceLocation?

    package init(_ value: Value, at location: SourceLocation? = nil) {
        self.value = value
        self.location = location
    }

    package init(json: JSONValue) {
        switch json {
        case .null: self.init(.null)
        case .boolean(let boolean): self.init(.boolean(boolean))
        case .integer(let integer): self.init(.integer(integer))
        case .string(let text): self.init(.text(text))
        case .array(let elements): self.init(.list(elements.map { PolicyNode(json: $0) }))
        case .object(let object):
            self.init(.mapping(object.map { Member(key: $0.key, value: PolicyNode(json: $0.value)) }))
        }
    }

    /// The same value without locations.
    ///
    /// - Precondition: Integers are within ±(2⁵³−1) and no mapping has a key twice; the reader of the
    ///   file refuses both with a line.
    package var json: JSONValue {
        switch value {
        case .null: .null
        case .boolean(let boolean): .boolean(boolean)
        case .integer(let integer): .integer(integer)
        case .text(let text): .string(text)
        case .list(let elements): .array(elements.map(\.json))
        case .mapping(let members): .object(JSONObject(members.map { ($0.key, $0.value.json) }))
        }
    }

    /// The member of a mapping; `nil` when this is no mapping or has no such key.
    package subscript(_ key: String) -> PolicyNode? {
        guard case .mapping(let members) = value else { return nil }
        return members.first { CodeUnits.equal($0.key, key) }?.value
    }

    /// The location of the innermost value on the way along `path` that exists.
    package func location(of path: [String]) -> SourceLocation? {
        var node = self
        var location = node.location
        for step in path {
            if case .mapping(let members) = node.value {
                guard let member = members.first(where: { CodeUnits.equal($0.key, step) }) else { break }
                location = member.keyLocation ?? member.value.location ?? location
                node = member.value
            } else if case .list(let elements) = node.value, let index = Int(step),
                elements.indices.contains(index)
            {
                node = elements[index]
                location = node.location ?? location
            } else {
                break
            }
        }
        return location
    }

    /// What the value is called in messages.
    package var shapeName: String {
        switch value {
        case .null: "nothing"
        case .boolean: "true or false"
        case .integer: "a number"
        case .text: "a text"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }
}

extension PolicyNode: Hashable {
    package static func == (left: PolicyNode, right: PolicyNode) -> Bool { left.json == right.json }
    package func hash(into hasher: inout Hasher) { hasher.combine(json) }
}
