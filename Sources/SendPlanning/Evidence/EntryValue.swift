package import CanonicalJSON
import GateVocabulary

/// Readers of the values only entries have.
enum EntryValue {
    static func object(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError)
        -> JSONObject
    {
        guard case .object(let object) = value else {
            throw JSONShapeError(pointer, "expected an object, found \(value.shapeName)")
        }
        return object
    }

    static func array(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> [JSONValue] {
        guard case .array(let array) = value else {
            throw JSONShapeError(pointer, "expected an array, found \(value.shapeName)")
        }
        return array
    }

    static func uuid<ID: RandomIdentifier>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> ID {
        guard let text = value.stringValue, let id = ID(uuidText: text) else {
            throw JSONShapeError(pointer, "expected a UUID in lower case")
        }
        return id
    }

    static func hexadecimal<ID: RandomIdentifier>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> ID {
        guard let text = value.stringValue, let id = ID(hexadecimal: text) else {
            throw JSONShapeError(pointer, "expected 32 lower-case hexadecimal digits")
        }
        return id
    }

    /// `null` stands for nobody, and is spelled out.
    static func hexadecimalOrNull<ID: RandomIdentifier>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> ID? {
        value.isNull ? nil : try hexadecimal(value, pointer)
    }

    static func unsigned<Number: FixedWidthInteger>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> Number {
        guard let integer = value.integerValue, let number = Number(exactly: integer), integer >= 0 else {
            throw JSONShapeError(pointer, "expected an integer from 0")
        }
        return number
    }

    static func digest(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> PolicyDigest {
        guard let text = value.stringValue, Hexadecimal.decode(text)?.count == 32 else {
            throw JSONShapeError(pointer, "expected a SHA-256 digest of 64 lower-case hexadecimal digits")
        }
        return PolicyDigest(text)
    }
}

/// An entry that cannot be read, or would not fit.
package enum EntryError: Error, Hashable, Sendable {
    /// Not canonical JSON, or no JSON at all.
    case notCanonical(JSONError)
    /// JSON of another shape than its kind has.
    case shape(pointer: String, message: String)
    /// Canonical and well-formed, but not what writing the same values gives; `what` names the member.
    case contradictory(what: String)
    /// Both counts are bytes.
    case tooLarge(byteCount: Int, byteCountMax: Int)
    /// An entry of another kind.
    case otherKind(String)
}

extension EntryError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notCanonical(let error): "not an entry: \(error.message)"
        case .shape(let pointer, let message): "not an entry: \(message) at `\(pointer)`"
        case .contradictory(let what): "not an entry: `\(what)` is not what the rest of it gives"
        case .tooLarge(let count, let most):
            "the entry has \(count) bytes; an entry bundle carries at most \(most)"
        case .otherKind(let kind): "an entry of kind `\(kind)`"
        }
    }

    init(_ error: JSONShapeError) {
        self = .shape(pointer: error.pointer.shortened(), message: error.message)
    }
}
