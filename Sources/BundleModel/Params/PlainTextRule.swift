import CanonicalJSON

/// What of the rule for texts a type gives up for one of its params, by name.
package enum TextAllowance: String, CaseIterable, Sendable, Hashable {
    /// Paragraphs: at most ``PlainTextRule/lineBreakCountMax`` line feeds, two in a row, and no other control character.
    case lineBreaks = "line_breaks"
    /// A name such as `booking.com`, in ASCII. Still no scheme, no `www.`, no path, no port and no e-mail address.
    case domainNames = "domain_names"
    /// An e-mail address in ASCII that stands alone.
    case emailAddresses = "email_addresses"
    /// Telephone numbers, and whatever else has ``NumberSearch/digitCountMin`` digits.
    case phoneNumbers = "phone_numbers"
    /// The whole text is one reference, such as an order's: letters and digits of ASCII and `-/#.` without a blank, so
    /// that no sentence asks a reader to call it.
    case reference
    /// A person's name with a shortened part and no blank after its full stop, such as `Md.Rahim`, whose end is no known
    /// ending of a domain name.
    case abbreviations
}

/// The rule for texts that people read and a producer chose. Its parts, in the order they are checked:
///
/// 1. one line, or paragraphs where the type allows them;
/// 2. visible characters in one direction;
/// 3. at most ``markCountMax`` marks on a letter, and at most ``blankCountMax`` blanks in a row;
/// 4. more than blanks;
/// 5. nothing that a phone turns into a link or that is written to be read as one: ``LinkSearch``;
/// 6. no number that a reader could call: ``NumberSearch``.
package struct PlainTextRule: Hashable, Sendable {
    /// Line feeds of a text of paragraphs.
    package static let lineBreakCountMax = 20
    /// Combining marks on one letter. Scripts whose letters stack have four (Burmese, Tibetan); forty cover the lines above.
    package static let markCountMax = 4
    /// Blanks in a row.
    package static let blankCountMax = 4

    package var allowances: Set<TextAllowance>

    package init(allowing allowances: Set<TextAllowance> = []) { self.allowances = allowances }

    /// What a producer is told of the rule.
    package var words: String {
        var words = allowances.contains(.lineBreaks) ? "paragraphs" : "one line"
        words += ", visible characters only, no link"
        let names: [(TextAllowance, String)] = [
            (.domainNames, "domain name"), (.emailAddresses, "e-mail address"),
            (.phoneNumbers, "telephone number"),
        ]
        words += names.filter { !allowances.contains($0.0) }.map { ", no \($0.1)" }.joined()
        let alone = names.prefix(2).filter { allowances.contains($0.0) }.map { "; \($0.1)s stand alone" }
        words += alone.joined()
        if allowances.contains(.abbreviations) { words += "; names may be shortened" }
        return allowances.contains(.reference) ? words + "; one reference may have more digits" : words
    }

    /// - Returns: What is expected and not so, without the text; `nil` for a text that keeps the rule.
    package func violation(in text: String) -> String? {
        Self.isPlain(text) ? nil : violation(inAny: text)
    }

    /// Whether a text keeps the rule by its bytes alone, as most do: words of ASCII and fewer digits than a telephone number
    /// has, without any character that a link, a separator in brackets or a control needs.
    private static func isPlain(_ text: String) -> Bool {
        CodeUnits.withBytes(text) { bytes in
            var (isBlank, blankCount, digitCount) = (true, 0, 0)
            for byte in bytes {
                switch byte {
                case UInt8(ascii: " "):
                    blankCount += 1
                    if blankCount > blankCountMax { return false }
                    continue
                case UInt8(ascii: "0")...UInt8(ascii: "9"): digitCount += 1
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "-"), UInt8(ascii: ","), UInt8(ascii: "'"), UInt8(ascii: "!"):
                    break
                default: return false
                }
                (isBlank, blankCount) = (false, 0)
            }
            return !isBlank && digitCount < NumberSearch.digitCountMin
        }
    }

    /// The same for any text; ``violation(in:)`` asks it only about those whose bytes do not say so at once.
    package func violation(inAny text: String) -> String? {
        let scalars = Array(text.unicodeScalars)
        let hasParagraphs = allowances.contains(.lineBreaks)
        var (isBlank, markCount, blankCount, breakCount, breakRun) = (true, 0, 0, 0, 0)
        for (index, scalar) in scalars.enumerated() {
            if Self.isControl(scalar), !(scalar == "\n" && hasParagraphs) {
                return hasParagraphs
                    ? "expected no control characters but line feeds"
                    : "expected one line without control characters"
            }
            if Self.isHidden(scalar), !Self.joins(scalars, at: index) {
                return "expected no invisible characters and none that turn the direction of text"
            }
            if scalar == "\n" {
                (breakCount, breakRun) = (breakCount + 1, breakRun + 1)
                guard breakRun <= 2, breakCount <= Self.lineBreakCountMax else {
                    return "expected at most \(Self.lineBreakCountMax) line feeds, and two in a row"
                }
            } else if !scalar.properties.isWhitespace {
                breakRun = 0
            }
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark:
                markCount += 1
                let hasLetter = index > 0 && !scalars[index - 1].properties.isWhitespace
                guard hasLetter, markCount <= Self.markCountMax else {
                    return "expected each mark on a letter, and at most \(Self.markCountMax) on one"
                }
            case .spacingMark: break
            default: markCount = 0
            }
            blankCount = scalar.properties.isWhitespace ? blankCount + 1 : 0
            if blankCount > Self.blankCountMax {
                return "expected at most \(Self.blankCountMax) blanks in a row"
            }
            isBlank = isBlank && scalar.properties.isWhitespace
        }
        if isBlank { return "expected more than blanks" }
        if LinkSearch(text, allowing: allowances).findsLink {
            return allowances.contains(.domainNames) || allowances.contains(.emailAddresses)
                ? "expected no link; a domain name or an e-mail address stands alone where it is allowed, in ASCII, without port or path"
                : "expected no link, no `www.` and no domain name; put a space after a full stop"
        }
        guard !allowances.contains(.phoneNumbers), NumberSearch(text).findsNumber else { return nil }
        guard allowances.contains(.reference), Self.isReference(text) else {
            return
                "expected no telephone number, and so fewer than \(NumberSearch.digitCountMin) digits in a row but in dates and amounts"
        }
        return nil
    }

    private static func isReference(_ text: String) -> Bool {
        text.utf8.first.map { $0 != UInt8(ascii: "+") } ?? false
            && text.unicodeScalars.allSatisfy { scalar in
                scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
                    || "-/#.".unicodeScalars.contains(scalar)
            }
    }

    /// C0, C1, DEL, and the separators of lines and paragraphs.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029: true
        default: false
        }
    }

    /// What a reader does not see: Unicode's ignorable characters, which the bidirectional controls (UAX 9) are among,
    /// blank letters, stand-ins for objects, and what means something only to one maker's font.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2800, 0xFFF9...0xFFFC, 0xE000...0xF8FF, 0xF_0000...0x10_FFFF: true
        default:
            scalar.value > 0x7F
                && (scalar.properties.isDefaultIgnorableCodePoint
                    || scalar.properties.generalCategory == .format)
        }
    }

    /// Joiners stand between two letters of a script that joins, or two parts of an emoji (RFC 5892 appendix A, roughly:
    /// nothing below Hebrew joins); a variation selector stands after what has an emoji form.
    private static func joins(_ scalars: [Unicode.Scalar], at index: Int) -> Bool {
        guard index > 0 else { return false }
        let before = scalars[index - 1]
        switch scalars[index].value {
        case 0xFE0E, 0xFE0F: return before.properties.isEmoji
        case 0x200C, 0x200D:
            guard index + 1 < scalars.count else { return false }
            func isJoined(_ scalar: Unicode.Scalar) -> Bool {
                scalar.value >= 0x0590 && !scalar.properties.isWhitespace
                    && (scalar.value == 0xFE0F || !isHidden(scalar))
            }
            return isJoined(before) && isJoined(scalars[index + 1])
        default: return false
        }
    }
}
