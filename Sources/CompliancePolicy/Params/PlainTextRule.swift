/// What of the rule for texts a type gives up for one of its params, by name.
package enum TextAllowance: String, CaseIterable, Sendable, Hashable {
    /// Paragraphs: line feeds, and no other control character.
    case lineBreaks = "line_breaks"
    /// A name such as `booking.com`, or an e-mail address. Still no scheme, no `www.` and no path.
    case domainNames = "domain_names"
}

/// The rule for texts that people read and a producer chose: one line, of visible characters, in one direction,
/// that nothing on a phone turns into a link.
package struct PlainTextRule: Hashable, Sendable {
    package var allowances: Set<TextAllowance>

    package init(allowing allowances: Set<TextAllowance> = []) { self.allowances = allowances }

    /// What a producer is told of the rule.
    package var words: String {
        var words = allowances.contains(.lineBreaks) ? "paragraphs" : "one line"
        words += ", visible characters only, no link"
        return words
            + (allowances.contains(.domainNames) ? "; a domain name may stand alone" : " and no domain name")
    }

    /// - Returns: What is expected and not so, without the text; `nil` for a text that keeps the rule.
    package func violation(in text: String) -> String? {
        let scalars = Array(text.unicodeScalars)
        var isBlank = true
        for (index, scalar) in scalars.enumerated() {
            if Self.isControl(scalar), !(scalar == "\n" && allowances.contains(.lineBreaks)) {
                return allowances.contains(.lineBreaks)
                    ? "expected no control characters but line feeds"
                    : "expected one line without control characters"
            }
            if Self.isHidden(scalar), !Self.joins(scalars, at: index) {
                return "expected no invisible characters and none that turn the direction of text"
            }
            isBlank = isBlank && scalar.properties.isWhitespace
        }
        if isBlank { return "expected more than blanks" }
        guard LinkSearch(scalars, allowsNames: allowances.contains(.domainNames)).findsLink else {
            return nil
        }
        return "expected no link, no `www.` and no domain name; put a space after a full stop"
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

/// Looks for what a phone, a mail program or a browser would make into a link.
struct LinkSearch {
    private let scalars: [Unicode.Scalar]
    private let allowsNames: Bool

    init(_ scalars: [Unicode.Scalar], allowsNames: Bool) {
        self.scalars = scalars.map(Self.plain)
        self.allowsNames = allowsNames
    }

    init(_ text: String) { self.init(Array(text.unicodeScalars), allowsNames: false) }

    var findsLink: Bool { scalars.split { !Self.isOfLink($0) }.contains { isLink($0) } }

    private static func isOfLink(_ scalar: Unicode.Scalar) -> Bool {
        if "._-~@:/?#\\=&%+".unicodeScalars.contains(scalar) { return true }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .decimalNumber,
            .nonspacingMark, .spacingMark:
            return true
        default: return false
        }
    }

    /// What looks like a character of a link and is another (IDNA's full stops, RFC 3490 section 3.1; full-width forms,
    /// UAX 15; slashes and colons of other scripts, UTS 39).
    private static func plain(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x3002, 0xFF61, 0x2024, 0xFE52: "."
        case 0xFF01...0xFF5E: Unicode.Scalar(scalar.value - 0xFEE0)!
        case 0x2044, 0x2215, 0x29F8: "/"
        case 0x2236, 0xA789, 0xFE13, 0xFE55, 0x02D0: ":"
        default: scalar
        }
    }

    /// - Parameter word: Without white space, brackets and quotation marks.
    private func isLink(_ word: ArraySlice<Unicode.Scalar>) -> Bool {
        let text = String(String.UnicodeScalarView(word)).lowercased()
        if text.contains("//") || text.contains("www.") || text.contains("xn--") { return true }
        if let colon = text.firstIndex(of: ":"), text.index(after: colon) < text.endIndex,
            Self.schemes.contains(String(text[..<colon].drop { !$0.isLetter }))
        {
            return true
        }
        // Every name in it: `user@drop.example`, `id:drop.example`, `to=drop.example/x`.
        var rest = word
        while !rest.isEmpty {
            let end = rest.firstIndex { "@:/?#\\=&%+~".unicodeScalars.contains($0) } ?? rest.endIndex
            let after = rest[end...].dropFirst()
            let hasPath = !after.isEmpty && "/?#\\:".unicodeScalars.contains(rest[end])
            if isDomain(rest[..<end], hasPath: hasPath), hasPath || !allowsNames { return true }
            rest = after
        }
        return false
    }

    /// Schemes a phone follows without two slashes.
    private static let schemes: Set<String> = [
        "http", "https", "javascript", "vbscript", "data", "file", "intent", "content", "tel", "sms", "smsto",
        "mms",
        "mailto", "geo", "maps", "market", "itms", "facetime", "whatsapp", "tg", "bitcoin",
    ]

    private func isDomain(_ host: ArraySlice<Unicode.Scalar>, hasPath: Bool) -> Bool {
        var labels = host.split(separator: ".", omittingEmptySubsequences: false)[...]
        // The full stop that ends a sentence.
        while labels.last?.isEmpty == true { labels = labels.dropLast() }
        guard labels.count >= 2, labels.suffix(2).allSatisfy({ !$0.isEmpty }), let last = labels.last else {
            return false
        }
        if labels.count == 4, labels.allSatisfy({ (1...3).contains($0.count) && $0.allSatisfy(Self.isDigit) })
        {
            return true
        }
        guard last.count >= 2, last.allSatisfy({ $0.properties.isAlphabetic }) else { return false }
        let ending = String(String.UnicodeScalarView(last))
        if hasPath || Self.endings.contains(ending.lowercased())
            || ending.unicodeScalars.count == 2 && ISOCodes.countries.contains(ending.uppercased())
        {
            return true
        }
        // `Md.Rahim` and `St.Clair` are names; an ending in small letters or in capitals is none.
        let isNamed =
            last.first!.properties.isUppercase && last.dropFirst().allSatisfy { $0.properties.isLowercase }
        return !isNamed
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    /// The endings of domain names that are most used and no country's (IANA, Root Zone Database). A name in small
    /// letters counts with any ending; these count in every spelling.
    private static let endings: Set<String> = [
        "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "name", "pro", "mobi", "app", "dev",
        "page",
        "web", "site", "website", "online", "store", "shop", "top", "xyz", "club", "vip", "icu", "live",
        "life",
        "link", "click", "help", "support", "email", "mail", "bank", "money", "finance", "cash", "loan",
        "credit",
        "cloud", "host", "space", "tech", "work", "world", "today", "news", "media", "blog", "fun", "win",
        "bid",
        "buzz", "rest", "agency", "center", "group", "company", "services", "solutions", "systems", "network",
        "digital", "global", "gift", "gifts", "deals", "sale", "promo", "zone", "one", "eu", "uk", "su", "ac",
        "example", "test", "zip", "mov",
    ]
}
