package import CanonicalJSON
import GateVocabulary

/// What one value in an entry may be. Every text and every list has a bound, so that nothing a caller chose
/// can hide in an entry.
package indirect enum EntryShape: Sendable {
    case boolean
    case integer(ClosedRange<Int64>)
    /// Any text of at most this many UTF-8 bytes. For what sendgate itself chose; a caller's texts enter the
    /// trail only as tags.
    case text(byteCountMax: Int)
    /// One of a closed list.
    case oneOf([String])
    /// Lower-case hexadecimal of exactly this many bytes.
    case hexadecimal(byteCount: Int)
    /// A lower-case UUID.
    case uuid
    /// A name sendgate's own configuration gives: 1 to 128 bytes of `a-z A-Z 0-9 _ - . : /`.
    case name
    case array(of: EntryShape, countMax: Int)
    case object(EntryMembers)
    /// An object whose keys are data: each matches `keys`, which must be a shape of texts.
    case map(keys: EntryShape, values: EntryShape, countMax: Int)
    case nullable(EntryShape)
    /// The first shape that fits.
    case anyOf([EntryShape])
}

/// The closed list of members an object in an entry may have.
package struct EntryMembers: Sendable {
    struct Member: Sendable {
        let key: String
        let shape: EntryShape
        let isRequired: Bool
    }

    /// In canonical order, so that checking walks both lists once.
    let members: [Member]

    /// - Precondition: No name occurs twice.
    package init(
        required: KeyValuePairs<String, EntryShape> = [:], optional: KeyValuePairs<String, EntryShape> = [:]
    ) {
        let members =
            required.map { Member(key: $0.key, shape: $0.value, isRequired: true) }
            + optional.map { Member(key: $0.key, shape: $0.value, isRequired: false) }
        self.members = members.sorted { CodeUnits.precedes($0.key, $1.key) }
        for (member, next) in zip(self.members, self.members.dropFirst()) {
            precondition(
                !CodeUnits.equal(member.key, next.key), "the member `\(member.key)` was declared twice")
        }
    }
}

/// A value that an entry of its kind may not have.
package struct EntryViolation: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    package var pointer: JSONPointer
    /// What is wrong, without the value: an entry under suspicion may hold what must not be printed.
    package var why: String

    package var message: String { "\(why) at `\(pointer.shortened())`" }
}

/// Every kind of entry there is, with the members each may have. An unknown kind or member fails.
package struct EntrySchema: Sendable {
    private struct Kind: Sendable {
        let kind: EntryKind
        let members: EntryMembers
    }

    private let kinds: [Kind]

    /// - Precondition: No kind occurs twice, and none declares a member of the envelope.
    package init(_ kinds: KeyValuePairs<EntryKind, EntryMembers>) {
        self.kinds = kinds.map { Kind(kind: $0.key, members: $0.value) }.sorted { $0.kind < $1.kind }
        for (kind, next) in zip(self.kinds, self.kinds.dropFirst()) {
            precondition(kind.kind != next.kind, "the entry kind `\(kind.kind)` was declared twice")
        }
        for kind in self.kinds {
            for member in kind.members.members {
                precondition(
                    !TrailEntry.envelopeKeys.contains { CodeUnits.equal($0, member.key) },
                    "the entry kind `\(kind.kind)` declares `\(member.key)`, which is the envelope's")
            }
        }
    }

    /// The kinds, sorted.
    package var kindNames: [EntryKind] { kinds.map(\.kind) }

    /// Where an entry has texts: the kind, the names of the members down to the text, and its shape.
    package var texts: [(path: [String], shape: EntryShape)] {
        func texts(_ path: [String], _ shape: EntryShape) -> [(path: [String], shape: EntryShape)] {
            switch shape {
            case .boolean, .integer: []
            case .text, .oneOf, .hexadecimal, .uuid, .name: [(path, shape)]
            case .array(let element, _), .nullable(let element): texts(path, element)
            case .object(let object): object.members.flatMap { texts(path + [$0.key], $0.shape) }
            case .map(let keys, let values, _): texts(path + ["*"], keys) + texts(path, values)
            case .anyOf(let shapes): shapes.flatMap { texts(path, $0) }
            }
        }
        return kinds.flatMap { texts([$0.kind.text], .object($0.members)) }
    }

    /// The first violation in canonical order, or `nil` when the entry is one of its kind.
    package func violation(in entry: TrailEntry) -> EntryViolation? {
        var low = 0
        var high = kinds.count
        while low < high {
            let middle = (low + high) / 2
            if kinds[middle].kind < entry.kind { low = middle + 1 } else { high = middle }
        }
        guard low < kinds.count, kinds[low].kind == entry.kind else {
            return EntryViolation(
                pointer: JSONPointer.root.appending("kind"), why: "no entry kind of this name is known")
        }
        do throws(EntryViolation) {
            try Self.check(entry.members, against: kinds[low].members)
            return nil
        } catch {
            return error
        }
    }

    private static func check(_ object: JSONObject, against members: EntryMembers) throws(EntryViolation) {
        var next = 0
        for member in object.members {
            while next < members.members.count, CodeUnits.precedes(members.members[next].key, member.key) {
                try skip(members.members[next])
                next += 1
            }
            guard next < members.members.count, CodeUnits.equal(members.members[next].key, member.key) else {
                throw EntryViolation(
                    pointer: JSONPointer.root.appending(member.key), why: "no member of this name is allowed")
            }
            do throws(EntryViolation) {
                try check(member.value, against: members.members[next].shape)
            } catch {
                throw error.inside(JSONPointer.root.appending(member.key))
            }
            next += 1
        }
        for member in members.members[next...] { try skip(member) }
    }

    private static func skip(_ member: EntryMembers.Member) throws(EntryViolation) {
        if member.isRequired {
            throw EntryViolation(
                pointer: JSONPointer.root.appending(member.key), why: "a required member is missing")
        }
    }

    private static func check(_ value: JSONValue, against shape: EntryShape) throws(EntryViolation) {
        switch (shape, value) {
        case (.boolean, .boolean), (.nullable, .null):
            return
        case (.integer(let range), .integer(let integer)):
            guard range.contains(integer) else { throw .here("an integer outside its range") }
        case (.text, .string(let text)), (.oneOf, .string(let text)), (.hexadecimal, .string(let text)),
            (.uuid, .string(let text)), (.name, .string(let text)):
            guard matches(text, shape) else { throw .here("a text that is not \(describe(shape))") }
        case (.array(let element, let countMax), .array(let elements)):
            guard elements.count <= countMax else {
                throw .here("an array of more than \(countMax) elements")
            }
            for (index, value) in elements.enumerated() {
                do throws(EntryViolation) {
                    try check(value, against: element)
                } catch {
                    throw error.inside(JSONPointer.root.appending(index))
                }
            }
        case (.object(let members), .object(let object)):
            try check(object, against: members)
        case (.map(let keys, let values, let countMax), .object(let object)):
            guard object.count <= countMax else { throw .here("an object of more than \(countMax) members") }
            for member in object.members {
                let pointer = JSONPointer.root.appending(member.key)
                guard matches(member.key, keys) else {
                    throw EntryViolation(pointer: pointer, why: "a key that is not \(describe(keys))")
                }
                do throws(EntryViolation) {
                    try check(member.value, against: values)
                } catch {
                    throw error.inside(pointer)
                }
            }
        case (.nullable(let inner), _):
            try check(value, against: inner)
        case (.anyOf(let shapes), _):
            for shape in shapes {
                do throws(EntryViolation) {
                    try check(value, against: shape)
                    return
                } catch {
                    continue
                }
            }
            throw .here("a value that has none of the allowed shapes")
        default:
            throw .here("\(value.shapeName) where \(describe(shape)) is expected")
        }
    }

    private static func matches(_ text: String, _ shape: EntryShape) -> Bool {
        switch shape {
        case .text(let byteCountMax):
            return text.utf8.count <= byteCountMax
        case .oneOf(let choices):
            return choices.contains { CodeUnits.equal($0, text) }
        case .hexadecimal(let byteCount):
            return withBytes(of: text) { $0.count == 2 * byteCount && $0.allSatisfy(isHexadecimal) }
        case .uuid:
            return withBytes(of: text) { bytes in
                guard bytes.count == 36 else { return false }
                for (offset, byte) in bytes.enumerated() {
                    let isDash = offset == 8 || offset == 13 || offset == 18 || offset == 23
                    guard isDash ? byte == UInt8(ascii: "-") : isHexadecimal(byte) else { return false }
                }
                return true
            }
        case .name:
            return withBytes(of: text) { (1...128).contains($0.count) && $0.allSatisfy(isNameByte) }
        case .nullable(let inner):
            return matches(text, inner)
        case .anyOf(let shapes):
            return shapes.contains { matches(text, $0) }
        case .boolean, .integer, .array, .object, .map:
            return false
        }
    }

    private static func withBytes(of text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        var text = text
        return text.withUTF8(body)
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: ":"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    private static func describe(_ shape: EntryShape) -> String {
        switch shape {
        case .boolean: "a boolean"
        case .integer(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
        case .text(let byteCountMax): "a text of at most \(byteCountMax) bytes"
        case .oneOf(let choices): "one of " + choices.map { "`\($0)`" }.joined(separator: ", ")
        case .hexadecimal(let byteCount): "\(2 * byteCount) lower-case hexadecimal digits"
        case .uuid: "a lower-case UUID"
        case .name: "a name of 1 to 128 bytes"
        case .array: "an array"
        case .object, .map: "an object"
        case .nullable(let inner): describe(inner) + " or null"
        case .anyOf(let shapes): shapes.map(describe).joined(separator: " or ")
        }
    }
}

extension EntryViolation {
    fileprivate static func here(_ why: String) -> EntryViolation {
        EntryViolation(pointer: .root, why: why)
    }

    fileprivate func inside(_ token: JSONPointer) -> EntryViolation {
        EntryViolation(pointer: token.appending(pointer), why: why)
    }
}
