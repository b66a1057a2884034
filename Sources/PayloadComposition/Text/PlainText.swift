import CanonicalJSON

/// Texts that callers and users chose, made harmless before they stand beside the gateway's own texts.
///
/// A recipient's or merchant's name is free text. Nothing in it may start a new line, turn
/// the reading direction of what follows, hide characters, or pile marks over the neighbouring lines.
package enum PlainText {
    /// Combining marks kept on one character. Vietnamese and Arabic need three at most; a real name never
    /// needs five, "Zalgo" texts need dozens.
    static let combiningMarkCountMax = 4

    /// One line of visible text: control, format and unassigned characters are gone (the joiners that
    /// Persian, Indic scripts and emoji need stay), every run of white space is one space, none at the ends.
    ///
    /// When the text has letters that run from right to left it is wrapped in FIRST STRONG ISOLATE and POP
    /// DIRECTIONAL ISOLATE (Unicode annex 9), so that it cannot reorder an amount beside it.
    package static func line(_ text: String) -> String {
        if isAlreadyPlain(text) { return text }
        var line = String.UnicodeScalarView()
        var pendingSpace = false
        var markCount = 0
        var hasRightToLeft = false
        for scalar in text.unicodeScalars {
            if isSpace(scalar) {
                pendingSpace = !line.isEmpty
                markCount = 0
                continue
            }
            guard isVisible(scalar) else { continue }
            if isMark(scalar) {
                markCount += 1
                if markCount > combiningMarkCountMax || line.isEmpty { continue }
            } else {
                markCount = 0
            }
            if pendingSpace {
                line.append(" ")
                pendingSpace = false
            }
            hasRightToLeft = hasRightToLeft || isRightToLeft(scalar)
            line.append(scalar)
        }
        if hasRightToLeft {
            line.insert("\u{2068}", at: line.startIndex)
            line.append("\u{2069}")
        }
        return String(line)
    }

    /// Printable ASCII without doubled, leading or trailing spaces: what nearly every text is.
    private static func isAlreadyPlain(_ text: String) -> Bool {
        CodeUnits.withBytes(text) { utf8 in
            guard let first = utf8.first, let last = utf8.last else { return true }
            if first == 0x20 || last == 0x20 { return false }
            var worst: UInt8 = 0
            // Without a branch in them, so that the compiler takes many bytes at once.
            for byte in utf8 { worst |= (byte < 0x20 ? 1 : 0) | (byte >= 0x7F ? 1 : 0) }
            for index in 1..<utf8.count { worst |= (utf8[index - 1] | utf8[index]) == 0x20 ? 1 : 0 }
            return worst == 0
        }
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09...0x0D, 0x20, 0x85, 0xA0: true
        default:
            scalar.properties.generalCategory == .spaceSeparator
                || scalar.properties.generalCategory == .lineSeparator
                || scalar.properties.generalCategory == .paragraphSeparator
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // ZERO WIDTH NON-JOINER and JOINER.
        case 0x200C, 0x200D: true
        // Letters in Unicode's eyes, blank in a reader's: the Hangul fillers; and what stands for an object.
        case 0x115F, 0x1160, 0x3164, 0xFFA0, 0xFFFC, 0x2800, 0x034F, 0x17B4, 0x17B5: false
        default:
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned: false
            default: true
            }
        }
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: true
        default: scalar.value == 0x200C || scalar.value == 0x200D
        }
    }

    /// The blocks whose letters are R or AL in `DerivedBidiClass.txt`.
    private static func isRightToLeft(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x1_0800...0x1_0FFF, 0x1_E800...0x1_EFFF: true
        default: false
        }
    }
}
