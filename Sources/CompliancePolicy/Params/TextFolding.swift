/// One spelling for characters that read alike: what a search for links and a reply by text message are compared in.
///
/// Unicode's compatibility forms of ASCII (UAX 15: full-width, mathematical, circled and squared letters, digits of
/// any script), and what stands in for the separators of a link (IDNA's full stops, RFC 3490 section 3.1; slashes and
/// colons of other scripts, UTS 39). Marks are dropped. The standard library has no NFKC; these are the forms of
/// it that end in ASCII.
enum TextFolding {
    /// - Returns: `nil` for a mark.
    static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.isASCII { return scalar }
        switch scalar.value {
        case 0x3002, 0xFF61, 0x2024, 0xFE52, 0x06D4: return "."
        case 0xFF01...0xFF5E: return Unicode.Scalar(scalar.value - 0xFEE0)
        case 0x2044, 0x2215, 0x29F8, 0x2571: return "/"
        case 0x29F5, 0x29F9, 0xFE68, 0x2216: return "\\"
        case 0x2236, 0xA789, 0xFE13, 0xFE55, 0x02D0: return ":"
        case 0xFE6B: return "@"
        case 0x2010...0x2015, 0x2212, 0xFE63: return "-"
        // Letters whose name ends in the letter they are a form of: `MATHEMATICAL BOLD SMALL E`.
        case 0x2071...0x209C, 0x2100...0x214F, 0x249C...0x24E9, 0x1D400...0x1D6A3, 0x1F110...0x1F189:
            if let word = scalar.properties.name?.split(separator: " ").last, word.utf8.count == 1,
                let letter = word.lowercased().unicodeScalars.first
            {
                return letter
            }
        default: break
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return nil
        case .decimalNumber, .otherNumber:
            if let value = scalar.properties.numericValue, value == value.rounded(), (0...9).contains(value) {
                return Unicode.Scalar(UInt8(ascii: "0") + UInt8(value))
            }
            return scalar
        default: return scalar
        }
    }
}
