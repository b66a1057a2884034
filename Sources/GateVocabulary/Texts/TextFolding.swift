/// One spelling for characters that read alike: what a search for links and numbers and a reply by text message are
/// compared in.
///
/// Unicode's compatibility forms (``CompatibilityForms``), digits of any script, blanks, and what stands in for the
/// separators of a link: full stops of other scripts (RFC 3490 section 3.1 names the ideographic ones), slashes and colons
/// that look the same (UTS 39). Marks and joiners are dropped: neither keeps a reader, or a browser (UTS 46), from seeing the
/// letters beside it as one word.
package enum TextFolding {
    package static func folded(_ text: String) -> [Unicode.Scalar] { text.unicodeScalars.flatMap(folded) }

    /// - Returns: Nothing for a mark or a joiner.
    package static func folded(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        if scalar.isASCII { return [scalar] }
        if let form = CompatibilityForms[scalar] { return form.compactMap(lookalike) }
        return lookalike(scalar).map { [$0] } ?? []
    }

    private static func lookalike(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.isASCII { return scalar }
        switch scalar.value {
        // ZERO WIDTH NON-JOINER and JOINER.
        case 0x200C, 0x200D: return nil
        // UTS 39, confusables of the full stop that bear another name.
        case 0x0701, 0x0702, 0xA4F8, 0x1_0A50, 0x1_D16D: return "."
        case 0x2044, 0x2215, 0x29F8, 0x2571: return "/"
        case 0x29F5, 0x29F9, 0x2216: return "\\"
        case 0x2236, 0xA789, 0x02D0: return ":"
        case 0x2010...0x2015, 0x2212: return "-"
        // `NEGATIVE CIRCLED LATIN CAPITAL LETTER A` is no compatibility form.
        case 0x1_F150...0x1_F189:
            if let word = scalar.properties.name?.split(separator: " ").last, word.utf8.count == 1,
                let letter = word.lowercased().unicodeScalars.first
            {
                return letter
            }
        default: break
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return nil
        case .spaceSeparator: return " "
        case .otherPunctuation, .otherSymbol:
            return scalar.properties.name.map { $0.hasSuffix("FULL STOP") } ?? false ? "." : scalar
        case .decimalNumber, .otherNumber, .letterNumber:
            if let value = scalar.properties.numericValue, value == value.rounded(), (0...9).contains(value) {
                return Unicode.Scalar(UInt8(ascii: "0") + UInt8(value))
            }
            return scalar
        default: return scalar
        }
    }

    /// The Latin letter that a composed one is of: `Stôp` is compared as `Stop`, as in its decomposed form, whose marks
    /// are dropped. A phone set to Turkish makes an I with a dot or without of every I.
    package static func withoutMark(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar.isASCII { return scalar }
        switch scalar.value {
        case ..<UInt32(plainLetters.count): return plainLetters[Int(scalar.value)]
        // Latin Extended-C, -D and -E.
        case 0x2C60...0x2C7F, 0xA720...0xA7FF, 0xAB30...0xAB6F: return plainLetter(of: scalar)
        default: return scalar
        }
    }

    /// By code point, up to the last block of Greek: what texts of letters are looked up in.
    private static let plainLetters: [Unicode.Scalar] = (0..<0x2000).compactMap(Unicode.Scalar.init).map(
        plainLetter)

    private static func plainLetter(of scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar == "\u{131}" { return "i" }
        if let letter = markedLetters[Character(scalar)] { return letter }
        guard let words = scalar.properties.name?.split(separator: " "), words.count > 5,
            words[0] == "LATIN", words[2] == "LETTER", words[3].utf8.count == 1, words[4] == "WITH"
        else { return scalar }
        return words[3].lowercased().unicodeScalars.first ?? scalar
    }

    /// The letters of the other scripts with marks that Unicode composes with theirs, as `й` of `и`. Characters are compared by
    /// canonical equivalence, so each is found by its letter with the mark.
    private static let markedLetters: [Character: Unicode.Scalar] = {
        let scripts: [(letters: ClosedRange<UInt32>, marks: [UInt32])] = [
            // Greek: grave, acute, breve, dialytika.
            (0x391...0x3C9, [0x300, 0x301, 0x306, 0x308]),
            // Cyrillic: the same and the macron.
            (0x404...0x4E9, [0x300, 0x301, 0x304, 0x306, 0x308]),
            // Arabic: maddah, hamza above and below.
            (0x627...0x6D5, [0x653, 0x654, 0x655]),
        ]
        var found: [Character: Unicode.Scalar] = [:]
        for (letters, marks) in scripts {
            for letter in letters.lazy.compactMap(Unicode.Scalar.init) {
                for mark in marks.lazy.compactMap(Unicode.Scalar.init) {
                    var text = String.UnicodeScalarView()
                    text.append(letter)
                    text.append(mark)
                    found[Character(String(text))] = letter
                }
            }
        }
        return found
    }()
}
