import CIDN2
import CanonicalJSON

/// A mailbox in its one canonical form: the local part in lower case and without quotation marks, `@`, and the domain as
/// A-labels in lower case.
///
/// Dots and `+` of the local part are kept: they are other mailboxes by RFC 5321, whatever one provider does with them.
package struct Mailbox: Hashable, Sendable, CustomStringConvertible {
    /// At most 254 characters of ASCII. Made from itself, it is itself.
    package let text: String

    package var description: String { text }

    /// The longest local part and the longest mailbox, in characters: RFC 5321 section 4.5.3.1, erratum 1690 of RFC 3696.
    private static let (localCountMax, countMax) = (64, 254)
    /// A line of a message, 998 characters (RFC 5322 section 2.1.1), in UTF-8.
    fileprivate static let writtenByteCountMax = 4 * 998

    /// A mailbox as a mail system hands it back: alone, or as the `From` of a message with a name before it, comments and
    /// blanks (RFC 5322 section 3.4).
    ///
    /// - Returns: `nil` for what is no one mailbox, and for one that no gateway can write to (``init(parts:)``).
    package init?(sender text: String) {
        guard let parts = AddressReader(text) else { return nil }
        self.init(parts: parts)
    }

    /// - Returns: `nil` for a local part outside ASCII, which needs SMTPUTF8 end to end (RFC 6531), or with characters that
    ///   are no atom's (RFC 5322 section 3.2.3); for a domain of one label, an address literal, and what IDNA2008 has no
    ///   A-label for.
    fileprivate init?(parts: AddressReader) {
        guard let domain = Self.domain(parts.domain),
            (1...Self.localCountMax).contains(parts.local.utf8.count),
            parts.local.utf8.allSatisfy(Self.isAtomOrDot),
            parts.local.utf8.count + 1 + domain.utf8.count <= Self.countMax
        else { return nil }
        text = parts.local.lowercased() + "@" + domain
    }

    private static func isAtomOrDot(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte.isOneOf(".!#$%&'*+/=?^_`{|}~-")
    }

    /// The A-labels of a domain in lower case, without the dot of the root.
    fileprivate static func domain(_ written: String) -> String? {
        guard written.utf8.count <= writtenByteCountMax, !written.utf8.contains(0) else { return nil }
        var ascii = written
        if !written.utf8.allSatisfy({ $0 < 0x80 }) {
            var converted: UnsafeMutablePointer<CChar>?
            let flags = CInt(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue)
            guard idn2_to_ascii_8z(written, &converted, flags) == IDN2_OK.rawValue, let converted else {
                return nil
            }
            defer { idn2_free(converted) }
            ascii = String(cString: converted)
        }
        if ascii.hasSuffix(".") { ascii.removeLast() }
        let labels = ascii.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, labels.allSatisfy({ isLabel($0.utf8) }) else { return nil }
        return labels.joined(separator: ".")
    }

    /// RFC 1123 section 2.1: letters, digits and inner hyphens, at most 63.
    private static func isLabel(_ label: Substring.UTF8View) -> Bool {
        (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
            && label.allSatisfy { $0.isLowercaseLetter || $0.isDigit || $0 == UInt8(ascii: "-") }
    }
}

/// A mailbox that somebody registered, with the spelling that mail is handed over in.
package struct RegisteredMailbox: Hashable, Sendable {
    package let mailbox: Mailbox
    /// The local part as it was verified: a mail system may tell capitals apart (RFC 5321 section 2.4). The domain as it was
    /// written, but as A-labels where that is outside ASCII, and without the dot of the root.
    package let spelling: String

    /// - Returns: `nil` for what is no address of its own (a name, a comment, blanks), and where ``Mailbox`` has none.
    package init?(_ text: String) {
        guard let parts = AddressReader(text), parts.isAlone, let mailbox = Mailbox(parts: parts) else {
            return nil
        }
        var domain = parts.domain
        if domain.hasSuffix(".") { domain.removeLast() }
        if !domain.utf8.allSatisfy({ $0 < 0x80 }) {
            domain = String(mailbox.text[mailbox.text.lastIndex(of: "@")!...].dropFirst())
        }
        self.mailbox = mailbox
        spelling = parts.writtenLocal + "@" + domain
    }
}

/// Reads `name <local@domain> (comment)` in one pass: RFC 5322 sections 3.2 and 3.4, and the route that section 4.4 says to
/// read over.
private struct AddressReader {
    /// Without quotation marks, and what a backslash stands before as itself (RFC 5321 section 4.1.2).
    private(set) var local = ""
    /// With its quotation marks.
    private(set) var writtenLocal = ""
    private(set) var domain = ""
    /// Whether there is nothing but the address.
    private(set) var isAlone = true

    private var scalars: [Unicode.Scalar]
    private var place = 0
    private var hasAt = false
    private var isInAngle = false
    private var isClosed = false
    /// Whether a blank stands since the last sign of the address: inside a word it parts two.
    private var isParted = false

    /// - Returns: `nil` where no `@` stands in the text, or where it is not one mailbox.
    init?(_ text: String) {
        guard text.utf8.count <= Mailbox.writtenByteCountMax else { return nil }
        var scalars = Array(text.unicodeScalars)
        while let last = scalars.last, Self.isBlank(last) { scalars.removeLast() }
        scalars = Array(scalars.drop(while: Self.isBlank))
        if let link = Self.mailbox(ofLink: scalars[...]) {
            scalars = link
            isAlone = false
        } else if let member = Self.member(ofGroup: scalars) {
            scalars = member
            isAlone = false
        }
        isAlone = isAlone && scalars.count == text.unicodeScalars.count
        self.scalars = scalars
        guard read(), !local.isEmpty, !domain.isEmpty else { return nil }
    }

    /// The mailbox of a `mailto:` link, in front of its header fields (RFC 6068 section 2); `nil` for any other text.
    private static func mailbox(ofLink scalars: ArraySlice<Unicode.Scalar>) -> [Unicode.Scalar]? {
        let scheme = "mailto:"
        guard string(scalars.prefix(scheme.count)).lowercased() == scheme else { return nil }
        let path = scalars.dropFirst(scheme.count).prefix { $0 != "?" }
        return Array(unescaped(string(path)).unicodeScalars)
    }

    /// The members of a group, between its name and its end (RFC 5322 section 3.4); `nil` for any other text. Two members are
    /// read as no mailbox.
    private static func member(ofGroup scalars: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        guard scalars.last == ";" else { return nil }
        var isQuoted = false
        var place = 0
        while place < scalars.count {
            switch scalars[place] {
            case "\\" where isQuoted: place += 1
            case "\"": isQuoted.toggle()
            case ":" where !isQuoted:
                return place == 0 ? nil : Array(scalars[(place + 1)...].dropLast())
            // The name of a group has neither.
            case "@" where !isQuoted, "<" where !isQuoted: return nil
            default: break
            }
            place += 1
        }
        return nil
    }

    private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return text
    }

    /// - Returns: Whether it is one mailbox.
    private mutating func read() -> Bool {
        while place < scalars.count {
            let scalar = scalars[place]
            place += 1
            switch scalar {
            case "(":
                isAlone = false
                guard skipComment() else { return false }
                isParted = true
            case _ where Self.isBlank(scalar):
                isAlone = false
                isParted = true
            case _ where AngleBracket.isOpen(scalar):
                // What stood before is a name.
                guard !isInAngle, !isClosed else { return false }
                clear()
                (isAlone, isInAngle) = (false, true)
                readLink()
            case _ where AngleBracket.isClose(scalar):
                guard isInAngle else { return false }
                (isInAngle, isClosed) = (false, true)
            case _ where isClosed: return false
            case "\"":
                guard readQuoted() else { return false }
            case "@", "\u{FF20}", "\u{FE6B}":
                if isInAngle, local.isEmpty, !hasAt {
                    guard skipRoute() else { return false }
                    continue
                }
                // A name may have one; an address has no second.
                guard !hasAt || isBeforeAngle else { return false }
                hasAt = true
                isParted = false
            // In a name they are signs like others; an address before them makes a list.
            case ",", ";", ":", "[", "]", "\\":
                guard isBeforeAngle, !hasAt else { return false }
            default:
                guard !isParted || isEmptyHalf || scalar == "." || endsWithDot || isBeforeAngle else {
                    return false
                }
                isParted = false
                append(scalar)
            }
        }
        return hasAt && !isInAngle
    }

    /// Whether a `<` follows, so that this is a name, which is not looked at.
    private var isBeforeAngle: Bool {
        !isInAngle && !isClosed && scalars[place...].contains(where: AngleBracket.isOpen)
    }

    /// Puts the mailbox of a `mailto:` link in brackets in the link's place.
    private mutating func readLink() {
        guard let close = scalars[place...].firstIndex(where: AngleBracket.isClose),
            let mailbox = Self.mailbox(ofLink: scalars[place..<close])
        else { return }
        scalars.replaceSubrange(place..<close, with: mailbox)
    }

    private var isEmptyHalf: Bool { hasAt ? domain.isEmpty : local.isEmpty }
    private var endsWithDot: Bool { (hasAt ? domain : local).hasSuffix(".") }

    private mutating func append(_ scalar: Unicode.Scalar) {
        if hasAt {
            domain.unicodeScalars.append(scalar)
        } else {
            local.unicodeScalars.append(scalar)
            writtenLocal.unicodeScalars.append(scalar)
        }
    }

    private mutating func clear() {
        (local, writtenLocal, domain, hasAt, isParted) = ("", "", "", false, false)
    }

    /// Comments nest (RFC 5322 section 3.2.2).
    private mutating func skipComment() -> Bool {
        var depth = 1
        while place < scalars.count {
            let scalar = scalars[place]
            place += 1
            switch scalar {
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { return true }
            case "\\": place += 1
            default: break
            }
        }
        return false
    }

    private mutating func readQuoted() -> Bool {
        guard isBeforeAngle || !hasAt && (local.isEmpty || local.hasSuffix(".")) else { return false }
        writtenLocal += "\""
        while place < scalars.count {
            var scalar = scalars[place]
            place += 1
            if scalar == "\"" {
                writtenLocal += "\""
                // A dot or the `@` follows.
                isParted = true
                return true
            }
            if scalar == "\\" {
                guard place < scalars.count else { return false }
                writtenLocal += "\\"
                scalar = scalars[place]
                place += 1
            }
            local.unicodeScalars.append(scalar)
            writtenLocal.unicodeScalars.append(scalar)
        }
        return false
    }

    /// `@a,@b:` in front of an address: accepted, and ignored (RFC 5321 section 4.1.1.3).
    private mutating func skipRoute() -> Bool {
        guard let colon = scalars[place...].firstIndex(of: ":") else { return false }
        place = colon + 1
        return true
    }

    /// What stands around an address without being a part of it: blanks, line ends, and marks that cannot be seen.
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
    }

    /// Percent-encoding of a `mailto` link (RFC 6068).
    private static func unescaped(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var plain: [UInt8] = []
        var place = 0
        while place < bytes.count {
            if bytes[place] == UInt8(ascii: "%"), place + 2 < bytes.count,
                let byte = UInt8(String(decoding: bytes[(place + 1)...(place + 2)], as: UTF8.self), radix: 16)
            {
                plain.append(byte)
                place += 3
            } else {
                plain.append(bytes[place])
                place += 1
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }
}

/// The brackets around an address behind a name: those of RFC 5322, their full-width forms, and the quotation marks that look
/// like them.
enum AngleBracket {
    static func isOpen(_ sign: Character) -> Bool { ["<", "\u{FF1C}", "\u{2039}"].contains(sign) }
    static func isClose(_ sign: Character) -> Bool { [">", "\u{FF1E}", "\u{203A}"].contains(sign) }

    static func isOpen(_ scalar: Unicode.Scalar) -> Bool { isOpen(Character(scalar)) }
    static func isClose(_ scalar: Unicode.Scalar) -> Bool { isClose(Character(scalar)) }
}
