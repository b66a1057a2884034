/// Where reading stopped.
package struct JSONPlace: Hashable, Sendable, CustomStringConvertible {
    /// Bytes from the start of the document.
    package var offset: Int
    /// The innermost value that was being read.
    package var pointer: JSONPointer

    package init(offset: Int, pointer: JSONPointer = .root) {
        self.offset = offset
        self.pointer = pointer
    }

    package var description: String {
        pointer == .root ? "byte \(offset)" : "byte \(offset) (`\(pointer.shortened())`)"
    }
}

/// A document the reader refuses. Every case says where; ``message`` says it to a person.
package enum JSONError: Error, Hashable, Sendable {
    /// The bytes are not JSON; `expected` names what would have been, e.g. "`,` or `}`".
    case malformed(at: JSONPlace, expected: String)
    /// The document ends inside a value.
    case unexpectedEnd(at: JSONPlace)
    /// A key occurs twice in one object. The place is its second occurrence, the pointer its member.
    case duplicateKey(at: JSONPlace)
    /// A text is not UTF-8: a stray, overlong or missing byte, or an encoded surrogate.
    case notUTF8(at: JSONPlace)
    /// The document starts with a byte order mark (RFC 8259 section 8.1 forbids sending one).
    case byteOrderMark
    /// A `\u` escape names half of a surrogate pair.
    case loneSurrogate(at: JSONPlace)
    /// A number with a fraction, an exponent, a leading zero, or a minus before zero.
    case notAnInteger(at: JSONPlace)
    /// An integer outside ±(2⁵³−1).
    case integerOutOfRange(at: JSONPlace)
    /// A raw control character (U+0000 to U+001F) inside a text.
    case controlCharacter(at: JSONPlace, byte: UInt8)
    /// `\u0000` inside a text, where the limits refuse it.
    case nulCharacter(at: JSONPlace)
    /// More arrays and objects inside one another than the limit.
    case tooDeep(at: JSONPlace, depthMax: Int)
    /// An object or array with more members than the limit.
    case tooManyMembers(at: JSONPlace, memberCountMax: Int)
    /// A document longer than the limit. Both counts are bytes.
    case tooLong(byteCount: Int, byteCountMax: Int)
    /// Something other than white space follows the document.
    case trailingBytes(at: JSONPlace)
    /// Well-formed, but not the one canonical spelling (RFC 8785): white space, key order, or an escape.
    case notCanonical(at: JSONPlace)

    /// Where, when the refusal has a place.
    package var place: JSONPlace? {
        switch self {
        case .malformed(let place, _), .unexpectedEnd(let place), .duplicateKey(let place),
            .notUTF8(let place), .loneSurrogate(let place), .notAnInteger(let place),
            .integerOutOfRange(let place), .controlCharacter(let place, _), .nulCharacter(let place),
            .tooDeep(let place, _), .tooManyMembers(let place, _), .trailingBytes(let place),
            .notCanonical(let place):
            place
        case .byteOrderMark: JSONPlace(offset: 0)
        case .tooLong: nil
        }
    }

    package var message: String {
        switch self {
        case .malformed(let place, let expected): "expected \(expected) at \(place)"
        case .unexpectedEnd(let place): "the document ends inside a value at \(place)"
        case .duplicateKey(let place): "the same key occurs twice in one object at \(place)"
        case .notUTF8(let place): "the text is not UTF-8 at \(place)"
        case .byteOrderMark: "the document starts with a byte order mark; send plain UTF-8 without one"
        case .loneSurrogate(let place): "a `\\u` escape names half of a surrogate pair at \(place)"
        case .notAnInteger(let place):
            "only integers are accepted, without fraction, exponent or leading zero, at \(place)"
        case .integerOutOfRange(let place):
            "the integer is outside -9007199254740991 to 9007199254740991 at \(place)"
        case .controlCharacter(let place, let byte):
            "the control character U+00\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true)) must be escaped at \(place)"
        case .nulCharacter(let place): "a text must not contain U+0000 at \(place)"
        case .tooDeep(let place, let depthMax):
            "arrays and objects are nested deeper than \(depthMax) at \(place)"
        case .tooManyMembers(let place, let memberCountMax):
            "more than \(memberCountMax) members in one object or array at \(place)"
        case .tooLong(let byteCount, let byteCountMax):
            "the document is \(byteCount) bytes long; at most \(byteCountMax) are accepted"
        case .trailingBytes(let place): "something follows the end of the document at \(place)"
        case .notCanonical(let place): "not in canonical form (RFC 8785) at \(place)"
        }
    }

    /// The same refusal, seen from the container that holds the value: `token` goes before its pointer.
    func inside(_ token: JSONPointer) -> JSONError {
        func outer(_ place: JSONPlace) -> JSONPlace {
            JSONPlace(offset: place.offset, pointer: token.appending(place.pointer))
        }
        return switch self {
        case .malformed(let place, let expected): .malformed(at: outer(place), expected: expected)
        case .unexpectedEnd(let place): .unexpectedEnd(at: outer(place))
        case .duplicateKey(let place): .duplicateKey(at: outer(place))
        case .notUTF8(let place): .notUTF8(at: outer(place))
        case .loneSurrogate(let place): .loneSurrogate(at: outer(place))
        case .notAnInteger(let place): .notAnInteger(at: outer(place))
        case .integerOutOfRange(let place): .integerOutOfRange(at: outer(place))
        case .controlCharacter(let place, let byte): .controlCharacter(at: outer(place), byte: byte)
        case .nulCharacter(let place): .nulCharacter(at: outer(place))
        case .tooDeep(let place, let depthMax): .tooDeep(at: outer(place), depthMax: depthMax)
        case .tooManyMembers(let place, let memberCountMax):
            .tooManyMembers(at: outer(place), memberCountMax: memberCountMax)
        case .trailingBytes(let place): .trailingBytes(at: outer(place))
        case .notCanonical(let place): .notCanonical(at: outer(place))
        case .byteOrderMark, .tooLong: self
        }
    }
}

extension JSONError: CustomStringConvertible {
    package var description: String { message }
}
