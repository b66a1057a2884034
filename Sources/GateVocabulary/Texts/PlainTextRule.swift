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

/// A text that a caller or a user chose, in the one form in which ``PlainTextRule`` judged it.
///
/// Bodies are composed of this type alone, so what was judged is what is written: nothing cleans it afterwards. The rule is the
/// only way to one, and it judges a text of this type again without changing it.
package struct CheckedText: Hashable, Sendable {
    /// Visible characters, one blank between two words, none at an end of a line. More than one line only where the rule allows
    /// paragraphs.
    package let text: String
    /// Whether a letter in it runs from right to left.
    private let hasRightToLeft: Bool

    fileprivate init(judged text: String, hasRightToLeft: Bool) {
        self.text = text
        self.hasRightToLeft = hasRightToLeft
    }

    /// The text as it stands beside others. Where letters run from right to left, each line is wrapped in FIRST STRONG ISOLATE
    /// and POP DIRECTIONAL ISOLATE (Unicode annex 9), so that it cannot reorder an amount beside it.
    package var isolated: String {
        guard hasRightToLeft else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "" : "\u{2068}\($0)\u{2069}" }.joined(separator: "\n")
    }

    /// Canonically equivalent texts are written with different bytes, and so are two.
    package static func == (left: CheckedText, right: CheckedText) -> Bool {
        CodeUnits.equal(left.text, right.text)
    }

    package func hash(into hasher: inout Hasher) {
        CodeUnits.withBytes(text) { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// What a rule for texts expects and a text does not have. Never the text: violations are recorded.
package struct TextViolation: Error, Hashable, Sendable, CustomStringConvertible {
    /// Begins with "expected"; lower-case, without a full stop.
    package let expectation: String
    package var description: String { expectation }

    init(_ expectation: String) { self.expectation = expectation }
}

/// The rule for texts that people read and a producer chose. A text is brought into its canonical form first: each run of blanks is
/// one blank, and none stands at an end of a line. What is judged is that form, and what is written is that form
/// (``CheckedText``). The parts of the rule, in the order they are checked:
///
/// 1. one line, or paragraphs where the type allows them;
/// 2. at most ``blankCountMax`` blanks in a row;
/// 3. more than blanks;
/// 4. visible characters in one direction;
/// 5. at most ``markCountMax`` marks on a letter;
/// 6. nothing that a phone turns into a link or that is written to be read as one: ``LinkSearch``;
/// 7. no number that a reader could call: ``NumberSearch``.
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

    /// The text in the form in which it keeps the rule.
    package func checked(_ text: String) throws(TextViolation) -> CheckedText {
        Self.isPlain(text) ? CheckedText(judged: text, hasRightToLeft: false) : try checked(any: text)
    }

    /// - Returns: What is expected and not so, without the text; `nil` for a text that keeps the rule.
    package func violation(in text: String) -> String? {
        do throws(TextViolation) {
            _ = try checked(text)
            return nil
        } catch {
            return error.expectation
        }
    }

    /// Whether some text has a link; no other part of the rule is asked.
    package static func findsLink(in text: String) -> Bool { LinkSearch(text).findsLink }

    /// Whether a text keeps the rule by its bytes and is in its canonical form, as most are: words of ASCII with one blank between
    /// them and no number to call, without any character that a link, a separator in brackets or a control needs. Only one with
    /// digits is searched for a number.
    private static func isPlain(_ text: String) -> Bool {
        let digitCount = CodeUnits.withBytes(text) { bytes in
            // As if a blank stood before it, so that one at its beginning is a second one.
            var (isAfterBlank, digitCount) = (true, 0)
            for byte in bytes {
                switch byte {
                case UInt8(ascii: " "):
                    if isAfterBlank { return -1 }
                    isAfterBlank = true
                    continue
                case UInt8(ascii: "0")...UInt8(ascii: "9"): digitCount += 1
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "-"), UInt8(ascii: ","), UInt8(ascii: "'"), UInt8(ascii: "!"):
                    break
                default: return -1
                }
                isAfterBlank = false
            }
            return isAfterBlank ? -1 : digitCount
        }
        return digitCount == 0
            || (1..<NumberSearch.digitCountMin).contains(digitCount) && !NumberSearch(text).findsNumber
    }

    /// The same for any text; ``checked(_:)`` asks it only about those whose bytes do not say so at once.
    package func checked(any text: String) throws(TextViolation) -> CheckedText {
        let (scalars, isChanged) = try canonical(text)
        var (markCount, breakCount, breakRun, hasRightToLeft) = (0, 0, 0, false)
        for (index, scalar) in scalars.enumerated() {
            if scalar == "\n" {
                (breakCount, breakRun, markCount) = (breakCount + 1, breakRun + 1, 0)
                guard breakRun <= 2, breakCount <= Self.lineBreakCountMax else {
                    throw TextViolation(
                        "expected at most \(Self.lineBreakCountMax) line feeds, and two in a row")
                }
                continue
            }
            breakRun = 0
            let isHidden = Self.isHidden(scalar)
            if isHidden, !Self.joins(scalars, at: index) {
                throw TextViolation(
                    "expected no invisible characters, no unassigned ones and none that turn the direction of text"
                )
            }
            hasRightToLeft = hasRightToLeft || scalar.isRightToLeft
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark:
                markCount += 1
                let hasLetter = index > 0 && !scalars[index - 1].properties.isWhitespace
                guard hasLetter, markCount <= Self.markCountMax else {
                    throw TextViolation(
                        "expected each mark on a letter, and at most \(Self.markCountMax) on one")
                }
            case .spacingMark: break
            // A joiner between two marks begins no other letter.
            default: if !isHidden { markCount = 0 }
            }
        }
        let text = isChanged ? String(String.UnicodeScalarView(scalars)) : text
        if let expectation = findings(in: text) { throw TextViolation(expectation) }
        return CheckedText(judged: text, hasRightToLeft: hasRightToLeft)
    }

    /// Each run of blanks as one, and none at an end of a line or before the first or after the last.
    private func canonical(
        _ text: String
    ) throws(TextViolation) -> (scalars: [Unicode.Scalar], isChanged: Bool) {
        let hasParagraphs = allowances.contains(.lineBreaks)
        var scalars: [Unicode.Scalar] = []
        scalars.reserveCapacity(text.utf8.count)
        var (isBlankOwed, blankCount, count, hasOtherBlank) = (false, 0, 0, false)
        for scalar in text.unicodeScalars {
            count += 1
            if Self.isControl(scalar), !(scalar == "\n" && hasParagraphs) {
                throw TextViolation(
                    hasParagraphs
                        ? "expected no control characters but line feeds"
                        : "expected one line without control characters")
            }
            guard scalar.properties.isWhitespace else {
                if isBlankOwed { scalars.append(" ") }
                scalars.append(scalar)
                (isBlankOwed, blankCount) = (false, 0)
                continue
            }
            blankCount += 1
            guard blankCount <= Self.blankCountMax else {
                throw TextViolation("expected at most \(Self.blankCountMax) blanks in a row")
            }
            if scalar == "\n" {
                isBlankOwed = false
                if !scalars.isEmpty { scalars.append(scalar) }
            } else {
                isBlankOwed = !scalars.isEmpty && scalars.last != "\n"
                hasOtherBlank = hasOtherBlank || scalar != " "
            }
        }
        while scalars.last == "\n" { scalars.removeLast() }
        if scalars.isEmpty { throw TextViolation("expected more than blanks") }
        return (scalars, hasOtherBlank || scalars.count != count)
    }

    /// What is found in a text of visible characters that belongs in none.
    private func findings(in text: String) -> String? {
        if LinkSearch(text, allowing: allowances).findsLink {
            return allowances.contains(.domainNames) || allowances.contains(.emailAddresses)
                ? "expected no link; a domain name or an e-mail address stands alone where it is allowed, in ASCII, without port or path"
                : "expected no link, no `www.` and no domain name; put a space after a full stop"
        }
        guard !allowances.contains(.phoneNumbers), NumberSearch(text).findsNumber else { return nil }
        guard allowances.contains(.reference), Self.isReference(text) else {
            return
                "expected no telephone number, and so fewer than \(NumberSearch.digitCountMin) digits in a row but in dates and amounts, and fewer than \(NumberSearch.calledDigitCountMin) behind a word such as `call`"
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

    /// What a reader does not see: code points that are no character (or none yet), Unicode's ignorable characters, which the
    /// bidirectional controls (UAX 9) are among, blank letters, stand-ins for objects, and what means something only to
    /// one maker's font.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0...0x7F: return false
        // Blank patterns, notes and hieroglyphs, and the stand-in for an object.
        case 0x2800, 0xFFFC, 0x1_3441, 0x1_3442, 0x1_6FE4, 0x1_D159: return true
        default: break
        }
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .unassigned, .privateUse, .surrogate, .format, .control: return true
        default: return false
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
            return isJoined(before) && isJoined(scalars[index + 1])
        default: return false
        }
    }

    /// A letter or a digit, the marks on it, or a part of an emoji. No full stop: what stands beside a joiner is one word to a
    /// browser, which drops the joiner (UTS 46).
    private static func isJoined(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x0590 else { return false }
        if scalar.value == 0xFE0F { return true }
        guard !isHidden(scalar) else { return false }
        switch scalar.properties.generalCategory {
        case .otherLetter, .modifierLetter, .nonspacingMark, .spacingMark, .decimalNumber: return true
        default: return scalar.properties.isEmoji
        }
    }
}

extension Unicode.Scalar {
    /// Whether it is in a block whose letters are R or AL in `DerivedBidiClass.txt`.
    var isRightToLeft: Bool {
        switch value {
        case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x1_0800...0x1_0FFF, 0x1_E800...0x1_EFFF: true
        default: false
        }
    }
}
