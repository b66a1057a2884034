/// Looks for what a phone, a mail program or a browser would make into a link, and for what is written so that a reader
/// makes one of it (`evil[.]com`, `hxxp:`).
struct LinkSearch {
    private struct Letter {
        var scalar: Unicode.Scalar
        /// Whether the text has this very character; else it is a form that folds to it.
        var isPlain: Bool
    }

    /// As they stand, which a phone reads, and without separators in brackets, which a reader does.
    private let readings: [[Letter]]
    private let allowances: Set<TextAllowance>

    init(_ text: String, allowing allowances: Set<TextAllowance> = []) {
        var letters: [Letter] = []
        for scalar in text.unicodeScalars {
            let folded = TextFolding.folded(scalar)
            letters += folded.map { Letter(scalar: $0, isPlain: scalar.isASCII) }
            if folded.isEmpty, let last = letters.indices.last { letters[last].isPlain = false }
        }
        let isBracketed = letters.contains { "[({<".unicodeScalars.contains($0.scalar) }
        readings = isBracketed ? [letters, Self.unbracketed(letters)] : [letters]
        self.allowances = allowances
    }

    /// Percent-encoded words are searched as what they stand for, too, which may be encoded again: each such text once.
    var findsLink: Bool {
        var (searched, waiting): (Set<String>, [LinkSearch]) = ([], [self])
        while let search = waiting.popLast() {
            if search.findsLinkAsWritten { return true }
            for text in search.decodedWords where searched.insert(text).inserted {
                waiting.append(LinkSearch(text))
            }
        }
        return false
    }

    /// A symbol ends a word, as a phone reads `evil.com❤`, and is a letter of one, as a browser reads `i❤.ws`: both are tried.
    private var findsLinkAsWritten: Bool {
        readings.contains { letters in
            Self.words(letters).contains { word in
                isLink(
                    word.map(\.scalar), isPlain: word.allSatisfy(\.isPlain),
                    isFollowed: Self.isFollowed(letters, at: word.endIndex))
            }
                || Self.wordsWithSymbols(letters).contains { Self.isLinkOfSymbols($0.map(\.scalar)) }
        }
    }

    private var decodedWords: [String] {
        readings.flatMap { letters -> [String] in
            guard letters.contains(where: { $0.scalar == "%" }) else { return [] }
            return (Self.words(letters) + Self.wordsWithSymbols(letters)).compactMap {
                Self.percentDecoded($0.map(\.scalar))
            }
        }
    }

    private static func words(_ letters: [Letter]) -> [ArraySlice<Letter>] {
        letters.split { !isOfLink($0.scalar) }
    }

    /// The words with a symbol, which may be a letter of a host's name.
    private static func wordsWithSymbols(_ letters: [Letter]) -> [ArraySlice<Letter>] {
        guard mayNameSymbols(letters) else { return [] }
        return letters.split { !isOfLink($0.scalar) && !$0.scalar.isSymbolOfName }
            .filter { $0.contains { $0.scalar.isSymbolOfName } }
    }

    /// Whether there is a symbol, and a full stop with something behind it or an escape that may stand for one: few texts have both.
    private static func mayNameSymbols(_ letters: [Letter]) -> Bool {
        zip(letters, letters.dropFirst()).contains { letter, next in
            letter.scalar == "." && !isBlank(next) || letter.scalar == "%"
        } && letters.contains { $0.scalar.isSymbolOfName }
    }

    /// Whether the rest of a link may follow (RFC 3986 section 3.3): `tel:*#06#`.
    private static func isFollowed(_ letters: [Letter], at end: Int) -> Bool {
        end < letters.count && !isBlank(letters[end])
            && !"\"')]}>,;!\u{2019}\u{201D}\u{BB}".unicodeScalars.contains(letters[end].scalar)
    }

    private static func isOfLink(_ scalar: Unicode.Scalar) -> Bool {
        if "._-~@:/?#\\=&%+".unicodeScalars.contains(scalar) { return true }
        return scalar.properties.generalCategory.isOfName
    }

    // MARK: Separators in brackets

    /// `[.]`, `(dot)` and `[://]` as the separators they stand for, and `evil[.com]` without its brackets.
    private static func unbracketed(_ letters: [Letter]) -> [Letter] {
        var result: [Letter] = []
        var index = 0
        while index < letters.count {
            let letter = letters[index]
            if "[({<".unicodeScalars.contains(letter.scalar),
                // No separator is longer, with a blank on either side.
                let close = letters[index...].prefix(12).firstIndex(where: {
                    "])}>".unicodeScalars.contains($0.scalar)
                }), let separator = separators[word(letters[(index + 1)..<close])]
            {
                while let last = result.last, isBlank(last) { result.removeLast() }
                result += separator.unicodeScalars.map { Letter(scalar: $0, isPlain: false) }
                index = close + 1
                while index < letters.count, isBlank(letters[index]) { index += 1 }
            } else {
                func isLetter(_ place: Int) -> Bool {
                    guard letters.indices.contains(place) else { return false }
                    let scalar = letters[place].scalar
                    return scalar.properties.generalCategory.isOfName || scalar.isSymbolOfName
                }
                let isInsideName =
                    result.last?.scalar == "." && isLetter(index + 1)
                    || isLetter(index - 1) && index + 1 < letters.count && letters[index + 1].scalar == "."
                        && isLetter(index + 2)
                if isInsideName, "[](){}<>".unicodeScalars.contains(letter.scalar) {
                    result[result.count - 1].isPlain = false
                } else {
                    result.append(letter)
                }
                index += 1
            }
        }
        return result
    }

    private static func isBlank(_ letter: Letter) -> Bool { letter.scalar == " " || letter.scalar == "\n" }

    private static func word(_ letters: ArraySlice<Letter>) -> String {
        String(String.UnicodeScalarView(letters.map(\.scalar))).lowercased().filter { !$0.isWhitespace }
    }

    private static let separators = [
        ".": ".", ",": ".", "dot": ".", "punkt": ".", "punktum": ".", "at": "@", "@": "@", ":": ":", "/": "/",
        "//": "//", "://": "://", "slash": "/",
    ]

    // MARK: One word

    /// - Parameters:
    ///   - word: Without white space, brackets and quotation marks.
    ///   - isPlain: Whether the text has it in ASCII.
    ///   - isFollowed: Whether a sign stands behind it that a link may have.
    private func isLink(_ word: [Unicode.Scalar], isPlain: Bool, isFollowed: Bool) -> Bool {
        guard word.contains(where: { ".@:/?#\\=&%+~".unicodeScalars.contains($0) }) else { return false }
        let text = String(String.UnicodeScalarView(word)).lowercased()
        if text.contains("//") || text.contains("\\") || text.contains("www.") || text.contains("xn--") {
            return true
        }
        if Self.hasScheme(text, isFollowed: isFollowed) { return true }
        if HostReading.isIPv6(text) { return true }
        if allowances.contains(.emailAddresses), text.contains("@") {
            return !Self.isMailbox(word, isPlain: isPlain)
        }
        return Self.hosts(of: word).contains { isLink($0, isPlain: isPlain) }
    }

    /// Whether a scheme stands before one of the colons, with something behind it.
    private static func hasScheme(_ text: String, isFollowed: Bool) -> Bool {
        var rest = text[...]
        while let colon = rest.firstIndex(of: ":") {
            let behind = rest[colon...].dropFirst()
            if !behind.isEmpty || isFollowed {
                let name = rest[..<colon]
                var scheme = name[
                    (name.lastIndex { !isOfScheme($0) }.map(name.index(after:)) ?? name.startIndex)...
                ]
                .drop { !$0.isLetter }
                // Of `see-tel:112` too.
                while !scheme.isEmpty {
                    if LinkSchemes.isOpened(scheme) { return true }
                    scheme = scheme.drop(while: \.isLetter).drop { !$0.isLetter }
                }
            }
            rest = behind
        }
        return false
    }

    /// RFC 3986 section 3.1, folded and in lower case.
    private static func isOfScheme(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
    }

    /// Whether a word with symbols names a host that has one in its name. A host without one is found among the other words.
    private static func isLinkOfSymbols(_ word: [Unicode.Scalar]) -> Bool {
        hosts(of: word).contains { isNameOfSymbols($0.text) }
    }

    /// Whether a symbol stands before a known ending. `✅.Done` is two sentences, as `✅.to` is a host: an unknown ending makes
    /// no name here.
    private static func isNameOfSymbols(_ host: ArraySlice<Unicode.Scalar>) -> Bool {
        // A quotation mark or a bullet before a name is no part of it; before a full stop it is all that there is.
        let name = host.drop {
            $0.isSymbolOfName && !$0.properties.isEmoji && $0.properties.generalCategory.isPunctuation
        }
        let labels = (name.first.map { $0 != "." } ?? false ? name : host)
            .split(separator: ".", omittingEmptySubsequences: false)
        return labels.indices.dropFirst().contains { place in
            // Of `💩.la❤` a phone links `💩.la`.
            let ending = labels[place].prefix { !$0.isSymbolOfName }
            return labels[..<place].contains { $0.contains(where: \.isSymbolOfName) }
                && HostReading(labels[place - 1] + ["."] + ending) == .name(isCertain: true)
        }
    }

    private struct Host {
        var text: ArraySlice<Unicode.Scalar>
        var reading: HostReading { HostReading(text) }
        /// What stands before and after it in its word.
        var before: Unicode.Scalar?
        var after: ArraySlice<Unicode.Scalar>
    }

    private func isLink(_ host: Host, isPlain: Bool) -> Bool {
        let separator = host.after.first
        let hasMore = host.after.count > 1 && separator.map("/?#:".unicodeScalars.contains) ?? false
        let standsAlone =
            !hasMore && separator != "@" && !(host.before.map("=@".unicodeScalars.contains) ?? false)
        switch host.reading {
        case .none: return false
        case .address: return !standsAlone || !Self.isVersion(host.text)
        case .number:
            // A reference such as 20261122/7 is none; 3232235521/login and 3232235521:80 are addresses.
            guard hasMore, let next = host.after.dropFirst().first else { return false }
            return separator == ":" || separator == "/" && next.properties.isAlphabetic
        case .name(let isCertain):
            if standsAlone, allowances.contains(.domainNames), isPlain { return false }
            guard standsAlone, !isCertain else { return true }
            if Self.isNoEnding(host.text) { return false }
            return !allowances.contains(.abbreviations) || !Self.isAbbreviated(host.text)
        }
    }

    /// Whether a name whose last label is no known ending has one that can be none, as `Node.js` and `t.ex.` have: of two Latin
    /// letters there are the codes of countries only (RFC 1591 section 2). So has an abbreviation of one or two letters and at
    /// most four before its full stop (`f.eks.`), as nobody registers a name so short below a new ending, and a day before its month
    /// (`1.mai`).
    private static func isNoEnding(_ text: ArraySlice<Unicode.Scalar>) -> Bool {
        let labels = text.split(separator: ".")
        guard let last = labels.last, last.allSatisfy({ isLatin($0) && $0.properties.isAlphabetic }) else {
            return false
        }
        return last.count == 2
            || last.count <= 4 && text.last == "." && labels.dropLast().allSatisfy { $0.count <= 2 }
            || labels.count == 2 && labels[0].count <= 2 && labels[0].allSatisfy { ("0"..."9").contains($0) }
    }

    /// `131.0.0.0`, as browsers write their version. It is no address of a host: of a network that begins so it is the first one,
    /// which names the network (RFC 1122 section 3.2.1.3).
    private static func isVersion(_ text: ArraySlice<Unicode.Scalar>) -> Bool {
        let parts = text.split(separator: ".")
        return parts.count == 4 && parts[0].count <= 3 && parts[0].first != "0"
            && parts.dropFirst().allSatisfy { $0.elementsEqual(["0"]) }
    }

    /// Letters of other scripts could be chosen to read as an ending.
    private static func isLatin(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x250 || (0x1E00...0x1EFF).contains(scalar.value)
    }

    /// Whether it reads as `Md.Rahim` or `J.P.Morgan` does: short parts that begin with a capital, and a name after them.
    private static func isAbbreviated(_ text: ArraySlice<Unicode.Scalar>) -> Bool {
        let parts = text.split(separator: ".")
        return parts.allSatisfy { $0.first?.properties.isUppercase ?? false }
            && parts.dropLast().allSatisfy { $0.count <= 4 }
            && parts.joined().allSatisfy(isLatin)
            && parts.last.map { $0.count > 1 && $0.dropFirst().contains(where: \.properties.isLowercase) }
                ?? false
    }

    /// Every host a word could name: of `id:drop.example`, `to=drop.example/x`.
    private static func hosts(of word: [Unicode.Scalar]) -> [Host] {
        var hosts: [Host] = []
        var (rest, before) = (word[...], Unicode.Scalar?.none)
        while !rest.isEmpty {
            let end = rest.firstIndex { "@:/?#=&%+~".unicodeScalars.contains($0) } ?? rest.endIndex
            hosts.append(Host(text: rest[..<end], before: before, after: rest[end...]))
            before = end < rest.endIndex ? rest[end] : nil
            rest = rest[end...].dropFirst()
        }
        return hosts
    }

    /// Whether a word with an `@` is one e-mail address and nothing else. A host before the `@` is what a link shows that
    /// leads to the one after it (RFC 3986 section 7.6).
    private static func isMailbox(_ word: [Unicode.Scalar], isPlain: Bool) -> Bool {
        var address = word[...]
        while let last = address.last, ".:?".unicodeScalars.contains(last) { address = address.dropLast() }
        let parts = address.split(separator: "@", omittingEmptySubsequences: false)
        guard isPlain, parts.count == 2, !parts[0].isEmpty,
            !address.contains(where: { ":/?#=&%~".unicodeScalars.contains($0) }),
            HostReading(parts[0]) != .name(isCertain: true), HostReading(parts[0]) != .address
        else { return false }
        guard case .name = HostReading(parts[1]) else { return false }
        return true
    }

    /// The word with each `%2E` as the byte it stands for; of several bytes, as of the ideographic full stop, too.
    private static func percentDecoded(_ word: [Unicode.Scalar]) -> String? {
        let bytes = Array(String(String.UnicodeScalarView(word)).utf8)
        var (result, index, isChanged) = ([UInt8](), 0, false)
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = PercentEncoding.byte(bytes[index + 1], bytes[index + 2])
            {
                result.append(value)
                (index, isChanged) = (index + 3, true)
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return isChanged ? String(decoding: result, as: UTF8.self) : nil
    }
}

/// The schemes of links that are no app's own.
package enum LinkSchemes {
    /// What a browser, a telephone or an operating system answers to, without two slashes too, and how such a one is written
    /// to be read past a filter. A text has none of them, and no app's place begins with one.
    package static let followed: Set<String> = [
        "http", "https", "hxxp", "hxxps", "ws", "wss", "javascript", "vbscript", "data", "file", "ftp",
        "intent",
        "content", "blob", "about", "tel", "callto", "sip", "sms", "smsto", "mms", "mailto", "geo", "maps",
        "market", "itms", "itms-apps", "facetime", "whatsapp", "viber", "skype", "tg", "bitcoin", "ethereum",
        "magnet",
    ]

    /// The schemes of IANA's registry "Uniform Resource Identifier (URI) Schemes" (2025) that a program of a phone or a computer
    /// opens, and some of widely used programs that are not registered. A text has none of them; an app may own one. Left out is
    /// what no program opens by itself and people write before a colon: `info`, `payment`, `service`, `tag`, `tip`, `ref`.
    private static let registered: Set<String> = Set(
        """
        aaa aaas acct acr adiumxtra afp aim apn applefeedback appdata barion bitcoincash browserext callshow cid coap coaps
        com-eventbrite-attendee cvs dav dhttp dns doi dntp ed2k ens esim facetime-audio fax feed feedready filesystem finger
        first-run-pen-experience fuchsia-pkg gemini git gizmoproject googlechrome googlechromes gopher gtalk h323 hcp iax icap im
        imap ipfs ipns ipp ipps irc irc6 ircs iris.beep itms-appss itms-services jabber jar jms lastfm lbry ldap ldaps lightning
        litecoin lpa mailserver matrix message mid monero mongodb msnim msrp msrps msteams mumble mvn news nfs nntp
        nostr onenote onenote-cmd openid openpgp4fpr otpauth otpauth-migration paparazzi payto pkcs11 psyc rdar redis rediss rmi
        rsync rtmfp rtmp rtsp rtsps rtspu secondlife sftp sgnl shc shortcuts shttp sieve simpleledger simplex sips slack smb
        smp smtp snapchat snews snmp sms-to soldat spotify ssb ssh steam stun stuns svn taler teamspeak telnet tftp tn3270 trueconf
        turn turns udp upi urn ut2004 ventrilo view-source vnc voicemail vscode vscode-insiders vsls wais web+ap webcal webcals
        weixin workflow wpid wtai wyciwyg x-apple x-web-search xcon xfire xftp xmlrpc.beep xmpp xri ymsgr z39.50 zoommtg zoomus
        """.split(whereSeparator: \.isWhitespace).map(String.init))

    /// Whether a tap on such a scheme and what follows its colon may open something. Microsoft's own begin with `ms-`.
    static func isOpened(_ scheme: Substring) -> Bool {
        let scheme = String(scheme)
        return followed.contains(scheme) || registered.contains(scheme) || scheme.hasPrefix("ms-")
    }
}

extension Unicode.Scalar {
    /// Whether it is a symbol or a mark of punctuation that a registry may have taken into a name: IDNA 2008 permits next to none
    /// (RFC 5892 section 2.6), IDNA 2003 all but those of ASCII (RFC 3491), and browsers still resolve them (UTS 46,
    /// "Preserve IDNA2003 compatibility"). `💩.la` and `†.la` are hosts.
    fileprivate var isSymbolOfName: Bool {
        guard !isASCII else { return false }
        return switch properties.generalCategory {
        case .otherSymbol, .mathSymbol, .currencySymbol, .modifierSymbol, .letterNumber, .otherNumber: true
        default: properties.generalCategory.isPunctuation || properties.isEmoji
        }
    }
}

extension Unicode.GeneralCategory {
    /// Letters and digits of any script, with the marks that are a part of them.
    fileprivate var isOfName: Bool {
        switch self {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .decimalNumber, .spacingMark:
            true
        default: false
        }
    }

    fileprivate var isPunctuation: Bool {
        switch self {
        case .otherPunctuation, .dashPunctuation, .connectorPunctuation, .openPunctuation, .closePunctuation,
            .initialPunctuation, .finalPunctuation:
            true
        default: false
        }
    }
}
