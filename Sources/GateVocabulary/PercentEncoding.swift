import CanonicalJSON

/// Bytes of a path, a query, a form or a link that stand for others (RFC 3986 section 2.1).
package enum PercentEncoding {
    /// Escapes all but what is never reserved (RFC 3986 section 2.3).
    package static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isUnreserved(byte) {
                bytes.append(byte)
            } else {
                bytes.append(UInt8(ascii: "%"))
                bytes += Hexadecimal.encode([byte]).uppercased().utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Returns: `nil` when a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    package static func decode(_ text: Substring) -> String? { decode(text.utf8) }

    /// - Returns: `nil` when a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    package static func decode(_ text: some Sequence<UInt8>) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.underestimatedCount)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next(), let low = rest.next(), let value = Self.byte(high, low) else {
                return nil
            }
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The byte that two hexadecimal digits after a `%` stand for, in either case.
    package static func byte(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = high.hexadecimalDigit, let low = low.hexadecimalDigit else { return nil }
        return high << 4 | low
    }

    /// RFC 3986 section 2.3.
    package static func isUnreserved(_ byte: UInt8) -> Bool { byte.isAlphanumeric || byte.isOneOf("-._~") }
}
