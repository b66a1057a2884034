/// How the characters of a file are written. What a file is read as is always UTF-8.
package enum TextEncoding: String, CaseIterable, Sendable {
    case utf8 = "utf-8"
    case utf16LittleEndian = "utf-16le"
    case utf16BigEndian = "utf-16be"
    case latin1 = "iso-8859-1"
    case windows1252 = "windows-1252"

    /// The encoding that a byte order mark tells, and its length; `nil` without one.
    package static func marked(_ bytes: some Collection<UInt8>) -> (encoding: TextEncoding, byteCount: Int)? {
        let start = Array(bytes.prefix(3))
        if start == [0xEF, 0xBB, 0xBF] { return (.utf8, 3) }
        if start.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
        if start.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
        return nil
    }
}

/// Turns pieces of a file into UTF-8. A character that is cut by the end of a piece waits for the next.
struct TextDecoder {
    let encoding: TextEncoding
    private var waiting: [UInt8] = []
    private var highSurrogate: UInt16?

    init(_ encoding: TextEncoding) { self.encoding = encoding }

    /// - Parameter isLast: Whether nothing comes after: what still waits is then no character.
    /// - Throws: ``ImportFileError/notEncoded(_:)`` of UTF-16. Whether UTF-8 is well-formed is looked at where a text is made of it.
    mutating func decode(
        _ bytes: ArraySlice<UInt8>, isLast: Bool, into text: inout [UInt8]
    ) throws(ImportFileError) {
        switch encoding {
        case .utf8: text += bytes
        case .latin1: for byte in bytes { Self.append(UInt32(byte), to: &text) }
        case .windows1252:
            for byte in bytes {
                let isSpecial = (0x80...0x9F).contains(byte)
                Self.append(isSpecial ? Self.special[Int(byte) - 0x80] : UInt32(byte), to: &text)
            }
        case .utf16LittleEndian, .utf16BigEndian: try decodeUnits(bytes, isLast: isLast, into: &text)
        }
    }

    private mutating func decodeUnits(
        _ bytes: ArraySlice<UInt8>, isLast: Bool, into text: inout [UInt8]
    ) throws(ImportFileError) {
        for byte in bytes {
            waiting.append(byte)
            guard waiting.count == 2 else { continue }
            let (first, second) = (UInt16(waiting[0]), UInt16(waiting[1]))
            let unit = encoding == .utf16LittleEndian ? second << 8 | first : first << 8 | second
            waiting = []
            switch (unit, highSurrogate) {
            case (0xD800...0xDBFF, nil): highSurrogate = unit
            case (0xDC00...0xDFFF, .some(let high)):
                highSurrogate = nil
                Self.append(0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(unit) - 0xDC00), to: &text)
            case (0xD800...0xDFFF, _), (_, .some): throw .notEncoded(encoding)
            case (_, nil): Self.append(UInt32(unit), to: &text)
            }
        }
        if isLast, !waiting.isEmpty || highSurrogate != nil { throw .notEncoded(encoding) }
    }

    private static func append(_ scalar: UInt32, to text: inout [UInt8]) {
        switch scalar {
        case ..<0x80: text.append(UInt8(scalar))
        case ..<0x800: text += [0xC0 | UInt8(scalar >> 6), 0x80 | UInt8(scalar & 0x3F)]
        case ..<0x10000:
            text += [
                0xE0 | UInt8(scalar >> 12), 0x80 | UInt8(scalar >> 6 & 0x3F), 0x80 | UInt8(scalar & 0x3F),
            ]
        default:
            text += [
                0xF0 | UInt8(scalar >> 18), 0x80 | UInt8(scalar >> 12 & 0x3F),
                0x80 | UInt8(scalar >> 6 & 0x3F), 0x80 | UInt8(scalar & 0x3F),
            ]
        }
    }

    /// 0x80 to 0x9F of Windows-1252 (WHATWG Encoding Standard, index windows-1252).
    private static let special: [UInt32] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152,
        0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122,
        0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
    ]
}

/// Why a file cannot be read on.
package enum ImportFileError: Error, Hashable, Sendable, CustomStringConvertible {
    case unreadable(String)
    case notEncoded(TextEncoding)
    /// The first record does not name the columns.
    case header(String)
    /// Its lines are no JSON documents.
    case noLines(String)

    package var description: String {
        switch self {
        case .unreadable(let why): "cannot be read: \(why)"
        case .notEncoded(let encoding): "is not \(encoding.rawValue) throughout"
        case .noLines(let why): "does not look like JSON with one document a line: \(why)"
        case .header(let why): "the first line does not name the columns: \(why)"
        }
    }
}
