/// Where in a document something stands (RFC 6901), e.g. `/params/amount/minor`; empty for the whole document.
package struct JSONPointer: Sendable {
    /// As RFC 6901 section 3 spells it: every token after a `/`, with `~` as `~0` and `/` as `~1`.
    package let text: String

    private init(spelled text: String) {
        self.text = text
    }

    package static let root = JSONPointer(spelled: "")

    /// - Parameter tokens: Unescaped, from the outside in.
    package init(_ tokens: some Sequence<String>) {
        text = tokens.reduce(into: "") { $0 += "/" + Self.escape($1) }
    }

    /// - Parameter text: A spelled pointer; `nil` unless it is empty or starts with `/`, and every `~` is
    ///   followed by `0` or `1`.
    package init?(parsing text: String) {
        var afterTilde = false
        for (offset, byte) in text.utf8.enumerated() {
            if offset == 0, byte != UInt8(ascii: "/") { return nil }
            if afterTilde, byte != UInt8(ascii: "0"), byte != UInt8(ascii: "1") { return nil }
            afterTilde = byte == UInt8(ascii: "~")
        }
        if afterTilde { return nil }
        self.text = text
    }

    /// The tokens, unescaped, from the outside in.
    package var tokens: [String] {
        guard !text.utf8.isEmpty else { return [] }
        return text.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Self.unescape($0) }
    }

    package func appending(_ key: String) -> JSONPointer {
        JSONPointer(spelled: text + "/" + Self.escape(key))
    }

    package func appending(_ index: Int) -> JSONPointer {
        JSONPointer(spelled: text + "/\(index)")
    }

    package func appending(_ inner: JSONPointer) -> JSONPointer {
        JSONPointer(spelled: text + inner.text)
    }

    /// At most `byteCountMax` bytes of ``text``, with `…` where it was cut: keys come from callers, and
    /// a message has to stay readable.
    package func shortened(byteCountMax: Int = 200) -> String {
        guard text.utf8.count > byteCountMax else { return text }
        var kept = ""
        for character in text.unicodeScalars {
            if kept.utf8.count + UTF8.width(character) > byteCountMax { break }
            kept.unicodeScalars.append(character)
        }
        return kept + "…"
    }

    private static func escape(_ token: String) -> String {
        guard token.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else {
            return token
        }
        var bytes: [UInt8] = []
        for byte in token.utf8 {
            switch byte {
            case UInt8(ascii: "~"): bytes += [UInt8(ascii: "~"), UInt8(ascii: "0")]
            case UInt8(ascii: "/"): bytes += [UInt8(ascii: "~"), UInt8(ascii: "1")]
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unescape(_ token: some Sequence<UInt8>) -> String {
        var bytes: [UInt8] = []
        var afterTilde = false
        for byte in token {
            if afterTilde {
                bytes.append(byte == UInt8(ascii: "1") ? UInt8(ascii: "/") : UInt8(ascii: "~"))
                afterTilde = false
            } else if byte == UInt8(ascii: "~") {
                afterTilde = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension JSONPointer: Hashable {
    package static func == (left: JSONPointer, right: JSONPointer) -> Bool {
        CodeUnits.equal(left.text, right.text)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(codeUnitsOf: text)
    }
}

extension JSONPointer: CustomStringConvertible {
    package var description: String { text }
}

extension JSONValue {
    /// The value a pointer leads to, or `nil`. An array index is decimal without leading zeros; the `-` of
    /// RFC 6901 names an element that does not exist and so gives `nil`.
    package subscript(_ pointer: JSONPointer) -> JSONValue? {
        var value = self
        for token in pointer.tokens {
            switch value {
            case .object(let object):
                guard let member = object[token] else { return nil }
                value = member
            case .array(let elements):
                guard let index = Int(token), CodeUnits.equal(String(index), token),
                    elements.indices.contains(index)
                else { return nil }
                value = elements[index]
            default:
                return nil
            }
        }
        return value
    }
}
