import GateVocabulary

/// RFC 2045 section 6.7.
enum QuotedPrintable {
    /// Characters of a line, the soft break's `=` included.
    private static let lineCountMax = 76

    /// - Parameter text: Its lines end with LF or CRLF. A CR that stands alone is kept as a character.
    /// - Returns: Lines that end with CRLF, the last one, too.
    static func encode(_ text: String) -> [UInt8] {
        var encoded: [UInt8] = []
        var lines = Array(text.utf8).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // A text that ends with a line break has no line after it.
        if lines.count > 1, lines.last!.isEmpty { lines.removeLast() }
        for (index, line) in lines.enumerated() {
            let isEnded = index < lines.count - 1 || text.utf8.last == UInt8(ascii: "\n")
            append(isEnded && line.last == UInt8(ascii: "\r") ? line.dropLast() : line, to: &encoded)
            encoded += [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
        }
        return encoded
    }

    private static func append(_ line: ArraySlice<UInt8>, to encoded: inout [UInt8]) {
        var column = 0
        for (index, byte) in zip(line.indices, line) {
            let isLast = index == line.endIndex - 1
            let isBlank = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
            let isLiteral = isBlank ? !isLast : (0x21..<0x7F).contains(byte) && byte != UInt8(ascii: "=")
            let count = isLiteral ? 1 : 3
            if column + count > (isLast ? lineCountMax : lineCountMax - 1) {
                encoded += [UInt8(ascii: "="), UInt8(ascii: "\r"), UInt8(ascii: "\n")]
                column = 0
            }
            if isLiteral {
                encoded.append(byte)
            } else {
                encoded.append(UInt8(ascii: "="))
                encoded += Hexadecimal.encode([byte]).uppercased().utf8
            }
            column += count
        }
    }

    /// Reads what any mail system writes: a broken escape stays as it is.
    static func decode(_ bytes: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "=") else {
                decoded.append(byte)
                continue
            }
            if rest.starts(with: [UInt8(ascii: "\r"), UInt8(ascii: "\n")]) {
                rest = rest.dropFirst(2)
            } else if rest.first == UInt8(ascii: "\n") {
                rest = rest.dropFirst()
            } else if rest.count >= 2,
                let value = PercentEncoding.byte(rest[rest.startIndex], rest[rest.startIndex + 1])
            {
                decoded.append(value)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }
}
