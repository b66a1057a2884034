/// A phone number in its one canonical form: `+`, a country code and the national number, as ITU-T E.164 has them.
///
/// Two numbers are equal exactly where they are one subscriber's, as far as ``NumberingPlan`` knows. The canonical form is
/// also what texts are sent to: another spelling of a number is routed by whoever reads it, and not by every network alike.
package struct PhoneNumber: Hashable, Sendable, CustomStringConvertible {
    /// `+` and at most 15 digits. Made from itself, it is itself.
    package let text: String

    package var description: String { text }

    /// Why a text is no number that can be registered.
    package enum Fault: Error, Hashable, CustomStringConvertible {
        /// A letter or another sign that stands in no number.
        case unreadable
        /// It does not begin with `+`, so the digits are several subscribers'.
        case noCountryCode
        /// No country has the code (ITU-T, List of E.164 assigned country codes).
        case unknownCountryCode
        /// Nothing stands after the country code.
        case incomplete(code: String)
        /// A 0 that is neither a part of a number of the country nor its national prefix.
        case zero(code: String)
        /// More than 15 digits (ITU-T E.164 section 6).
        case tooLong
    }

    /// A number as people and programs write it: with `+` and the country code; blanks, hyphens, parentheses and the like do
    /// not count, digits may be of any script, and `tel:` may stand before it (RFC 3966).
    package init(_ text: String) throws(Fault) {
        let written = try WrittenNumber(text)
        guard written.isInternational else { throw .noCountryCode }
        try self.init(digits: written.digits)
    }

    /// The number that a carrier names as the sender of a text message.
    ///
    /// Beside what can be registered, `00` or North America's `011` may stand in place of the `+`, a 0 in parentheses where the
    /// country has none, and digits alone are read as a whole international number, which is how SMPP (type of number 1) and many
    /// carriers' interfaces have it. ``NamedNumber`` says what may stand around it.
    ///
    /// - Returns: `nil` for short codes and names, and for a number without its country: `6834003` is a subscriber's in many.
    package init?(sender text: String) {
        guard let named = NamedNumber(text), let written = try? WrittenNumber(named) else { return nil }
        var digits = written.digits[...]
        if digits.starts(with: [0, 0]) {
            digits = digits.dropFirst(2)
        } else if !written.isInternational, digits.starts(with: [0, 1, 1]) {
            digits = digits.dropFirst(3)
            guard Self.areBehindNorthAmericasPrefix(digits) else { return nil }
        } else if !written.isInternational {
            guard digits.first != 0, digits.count >= Self.bareDigitCountMin else { return nil }
        }
        do throws(Fault) {
            try self.init(digits: Array(digits))
        } catch {
            guard case .zero(let code) = error, written.loneZero == digits.startIndex + code.utf8.count else {
                return nil
            }
            digits.remove(at: digits.startIndex + code.utf8.count)
            do { try self.init(digits: Array(digits)) } catch { return nil }
        }
    }

    /// Whether digits behind 011 are an international number, and not the rest of a national one that begins with 011. São Paulo
    /// and Buenos Aires have such numbers, of nine digits behind it at most. Buenos Aires' `011 15…` has ten, so a number of
    /// North America has to be whole: a 1 and ten digits.
    private static func areBehindNorthAmericasPrefix(_ digits: ArraySlice<UInt8>) -> Bool {
        digits.first == 1 ? digits.count == 11 : digits.count >= 10
    }

    /// Short codes have at most six digits nearly everywhere, and eight nowhere that texts can be answered from.
    private static let bareDigitCountMin = 8
    /// Digits after `+`: ITU-T E.164 section 6.
    private static let digitCountMax = 15

    private init(digits: [UInt8]) throws(Fault) {
        guard let plan = NumberingPlan.of(digits) else { throw .unknownCountryCode }
        let code = plan.code.utf8.count
        let national = plan.folded(Array(digits[code...]))
        guard let first = national.first else { throw .incomplete(code: plan.code) }
        guard first != 0 || plan.zeroIsPart(of: national) else { throw .zero(code: plan.code) }
        guard code + national.count <= Self.digitCountMax else { throw .tooLong }
        text = "+" + plan.code + String(decoding: national.map { $0 + UInt8(ascii: "0") }, as: UTF8.self)
    }
}

extension PhoneNumber.Fault {
    /// What was expected, for a message that names the member.
    package var description: String {
        switch self {
        case .unreadable:
            "expected a phone number with its country code such as `+4790000000`; it has signs that stand in none"
        case .noCountryCode:
            "expected a phone number that begins with `+` and its country code, such as `+4790000000`"
        case .unknownCountryCode: "expected a phone number with a country code that ITU-T has assigned"
        case .incomplete(let code): "expected the number after the country code `+\(code)`"
        case .zero(let code):
            "expected a number without the 0 after `+\(code)`: no number there begins so, and it is no national prefix there"
        case .tooLong: "expected at most 15 digits, country code included (ITU-T E.164)"
        }
    }
}

/// The digits of a number as somebody wrote it.
private struct WrittenNumber {
    private(set) var digits: [UInt8] = []
    /// Whether a `+` stands before them.
    private(set) var isInternational = false
    /// The place among the digits of a 0 that stands alone in parentheses, as people write what is dialled inside of a country only.
    private(set) var loneZero: Int?

    /// Longer than any number in any spelling; RFC 3966 has parameters after it.
    fileprivate static let byteCountMax = 256
    private static let schemes = ["tel:", "sms:"]

    init(_ text: String) throws(PhoneNumber.Fault) {
        guard text.utf8.count <= Self.byteCountMax else { throw .tooLong }
        var number = text[...]
        while let first = number.first, first.isWhitespace { number.removeFirst() }
        if let scheme = Self.schemes.first(where: { number.prefix($0.count).lowercased() == $0 }) {
            let written = LinkedNumber(number.dropFirst(scheme.count))
            number = written.inContext ?? written.number
        }
        try self.init(signs: number)
    }

    /// Beside the signs of what is registered, `_` may part the digits of a sender.
    init(_ sender: NamedNumber) throws(PhoneNumber.Fault) {
        try self.init(signs: sender.text[...]) { $0 == "_" }
    }

    private init(
        signs number: Substring, parting isOtherSeparator: (Unicode.Scalar) -> Bool = { _ in false }
    ) throws(PhoneNumber.Fault) {
        var opening: Int?
        for scalar in number.unicodeScalars {
            let category = scalar.properties.generalCategory
            if category == .openPunctuation {
                opening = digits.count
            } else if category == .closePunctuation, opening == digits.count - 1, digits.last == 0 {
                loneZero = opening
            }
            if let digit = Self.digit(scalar) {
                digits.append(digit)
            } else if Self.isPlus(scalar), digits.isEmpty, !isInternational {
                isInternational = true
            } else if !Self.isSeparator(scalar), !isOtherSeparator(scalar) {
                throw .unreadable
            }
        }
        guard !digits.isEmpty else { throw .unreadable }
    }

    /// The value of a decimal digit of any script, full-width ones included.
    private static func digit(_ scalar: Unicode.Scalar) -> UInt8? {
        if scalar.isASCII {
            return ("0"..."9").contains(scalar) ? UInt8(scalar.value) - UInt8(ascii: "0") : nil
        }
        guard scalar.properties.numericType == .decimal, let value = scalar.properties.numericValue else {
            return nil
        }
        return UInt8(value)
    }

    fileprivate static func isPlus(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "+" || scalar == "\u{FF0B}" || scalar == "\u{FE62}"
    }

    /// What is written between digits (ITU-T E.123 and habit), and what copying brings along: marks of direction, joiners.
    private static func isSeparator(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .spaceSeparator, .lineSeparator, .paragraphSeparator, .format, .dashPunctuation,
            .openPunctuation,
            .closePunctuation:
            true
        default: "\t\r\n./\u{2212}\u{FF0E}\u{FF0F}\u{B7}\u{30FB}".unicodeScalars.contains(scalar)
        }
    }
}

/// A number as a link has it after the scheme, in front of its parameters (RFC 3966 section 3, RFC 5724 section 2.2).
private struct LinkedNumber {
    private(set) var number: Substring
    /// The number behind the digits of its `phone-context`: a local number names the country that it is dialled in (RFC 3966
    /// section 5.1.5). `nil` where the number has its country, and where the context is no country.
    private(set) var inContext: Substring?
    /// Whether a `phone-context` is there, a domain included.
    private(set) var hasContext = false

    init(_ text: Substring) {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
            .split(separator: ";", omittingEmptySubsequences: false)
        number = parts[0]
        let context = parts.dropFirst().first { $0.lowercased().hasPrefix("phone-context=") }
        hasContext = context != nil
        guard let context, !number.unicodeScalars.contains(where: WrittenNumber.isPlus) else { return }
        let value = context.drop { $0 != "=" }.dropFirst()
        if value.hasPrefix("+") { inContext = value + number }
    }

    /// Whether the number is local to a private network, and so nobody's outside of it.
    var isPrivate: Bool {
        hasContext && inContext == nil && !number.unicodeScalars.contains(where: WrittenNumber.isPlus)
    }
}

/// The number in a sender's spelling, without what systems put around it: a name and brackets as in a mail or SIP header (RFC
/// 3261 section 20.20) or without them, quotation marks and what keeps a number a text in a spreadsheet (`'+47…`, `="+47…"`),
/// the scheme of a link with its host and parameters, the type of address of an MMS.
private struct NamedNumber {
    let text: String

    /// Links that name one telephone number: RFC 3966, RFC 5724, RFC 3261 section 19.1, the `smsto:` and `mmsto:` of phones, and
    /// the address form of WhatsApp's interfaces.
    private static let schemes: Set<String> = [
        "tel", "sms", "smsto", "mms", "mmsto", "sip", "sips", "whatsapp",
    ]
    /// Schemes whose number stands in front of a host.
    private static let schemesWithHost: Set<String> = ["sip", "sips"]
    /// OMA Multimedia Messaging Service Encapsulation Protocol, section 8: a telephone number as an address.
    private static let numberType = "/type=plmn"

    /// - Returns: `nil` for several numbers, for a link that names none, and for one that is local to a private network.
    init?(_ written: String) {
        guard written.utf8.count <= WrittenNumber.byteCountMax,
            let inside = Self.inBrackets(Self.trimmed(written[...]))
        else { return nil }
        var number = Self.trimmed(inside)
        if number.first == "=" { number.removeFirst() }
        while let first = number.first, Self.isQuotationMark(first) { number.removeFirst() }
        while let last = number.last, Self.isQuotationMark(last) { number.removeLast() }
        number = Self.withoutName(Self.trimmed(number))
        if let colon = number.firstIndex(of: ":") {
            let scheme = number[..<colon].lowercased()
            guard Self.schemes.contains(scheme),
                let plain = PercentEncoding.decode(number[colon...].dropFirst())
            else { return nil }
            guard let linked = Self.linked(plain[...], hasHost: Self.schemesWithHost.contains(scheme)),
                !linked.isPrivate
            else { return nil }
            number = linked.inContext ?? linked.number
        }
        if number.lowercased().hasSuffix(Self.numberType) { number = number.dropLast(Self.numberType.count) }
        text = String(number)
    }

    /// - Parameter hasHost: Whether a host follows. In front of it, digits are a telephone number where `user=phone` says so or
    ///   the number names its country (RFC 3261 section 19.1.6); else they are an account's name there.
    private static func linked(_ link: Substring, hasHost: Bool) -> LinkedNumber? {
        guard hasHost else { return LinkedNumber(link) }
        guard let at = link.firstIndex(of: "@") else { return nil }
        let linked = LinkedNumber(link[..<at])
        let isNumber =
            linked.inContext != nil || linked.number.unicodeScalars.contains(where: WrittenNumber.isPlus)
            || link[at...].split(separator: ";").contains { $0.lowercased() == "user=phone" }
        return isNumber ? linked : nil
    }

    /// The text in the brackets behind a name, or all of the text where it has none; `nil` where the brackets do not fit.
    private static func inBrackets(_ text: Substring) -> Substring? {
        var rest = text
        if rest.first == "\"", let close = rest.dropFirst().firstIndex(of: "\"") {
            // Brackets of a name in quotation marks are no brackets.
            let behind = trimmed(rest[close...].dropFirst())
            if behind.first.map(AngleBracket.isOpen) == true { rest = behind }
        }
        guard let open = rest.firstIndex(where: AngleBracket.isOpen) else { return text }
        let inside = rest[open...].dropFirst()
        guard let close = inside.firstIndex(where: AngleBracket.isClose) else { return nil }
        let number = inside[..<close]
        let behind = trimmed(inside[close...].dropFirst())
        // A header's own parameters may follow.
        guard !number.contains(where: AngleBracket.isOpen), behind.isEmpty || behind.first == ";",
            !behind.contains(where: { AngleBracket.isOpen($0) || AngleBracket.isClose($0) || $0 == "," })
        else { return nil }
        return number
    }

    private static func isQuotationMark(_ sign: Character) -> Bool {
        "'\"`\u{B4}".contains(sign)
            || sign.unicodeScalars.allSatisfy {
                [.initialPunctuation, .finalPunctuation].contains($0.properties.generalCategory)
            }
    }

    /// The text without a name before the `+` or in parentheses behind the digits; a name with a digit could be another number.
    private static func withoutName(_ text: Substring) -> Substring {
        guard let plus = text.unicodeScalars.firstIndex(where: WrittenNumber.isPlus) else { return text }
        var number = text
        let before = text[..<plus]
        if isName(before), before.unicodeScalars.last.map(isBlank) ?? false { number = text[plus...] }
        if number.last == ")", let open = number.lastIndex(of: "("), isName(number[open...]) {
            number = trimmed(number[..<open])
        }
        return number
    }

    private static func isName(_ text: Substring) -> Bool {
        text.contains(where: \.isLetter) && !text.contains { $0.isNumber || "@/+".contains($0) }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.unicodeScalars.first, isBlank(first) { text.unicodeScalars.removeFirst() }
        while let last = text.unicodeScalars.last, isBlank(last) { text.unicodeScalars.removeLast() }
        return text
    }

    /// Blanks, line ends, and marks that cannot be seen.
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
    }
}
