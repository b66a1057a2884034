import CanonicalJSON
package import GateVocabulary

/// The channels (`channels.yaml`).
package struct ChannelRules: Hashable, Sendable {
    package var rules: ByChannel<ChannelRule>
    /// `nil` where keys may be of any age.
    package var deviceKeyAge: DeviceKeyAge?
    /// The type of the push that tells a person of a number or mailbox of theirs that another person verified; `nil` where
    /// they are told nothing.
    package var contestedNotice: TypeID?
    package var smsFallbackForMarketing: FallbackRule
    package var smsFallbackForOthers: FallbackRule
    package var smsHours: SendingHours?
    package var smsRevocation: RevocationRule?
}

/// What one channel can carry, whatever the notification says.
package struct ChannelRule: Hashable, Sendable {
    /// Bytes of the payload as the provider counts them.
    package var payloadByteCountMax: Int
    package var rationale: Rationale
}

/// Whether a text message may stand in for something that failed on another channel.
package enum FallbackRule: String, CaseIterable, Sendable, Hashable {
    case forbidden
    /// Only with consent given for the number itself: push consent never covers SMS (S1).
    case ownConsent = "own_consent"
}

/// Hours in which a channel may be used at the recipient's place, whatever quiet hours they set.
///
/// The facts loader joins the hours outside with the recipient's own quiet hours, so that one gate
/// answers for both.
package struct SendingHours: Hashable, Sendable {
    /// Minutes after local midnight; the first minute in which sending is allowed.
    package var earliest: Int
    /// Minutes after local midnight; the first minute in which sending is no longer allowed.
    package var latest: Int
    package var categories: [GateVocabulary.Category]
    package var regions: [RegionCode]
    /// How a number of these places begins, e.g. `+1`: it may ring there wherever its owner lives.
    package var callingCodes: [String]
    /// Every IANA zone a number of these places could be in; the hours hold in all of them at once.
    package var zones: [String]
    package var rationale: Rationale
}

/// How a recipient takes consent back by answering a text message.
package struct RevocationRule: Hashable, Sendable {
    package var honouredWithinBusinessDays: Int
    /// How long after a reply its confirmation may be sent.
    package var confirmationWithinMinutes: Int
    /// Words that a reply begins with, by locale: whatever follows, it is a withdrawal.
    package let words: [String: [String]]
    /// Words that are a withdrawal where a reply says nothing else, by locale: in ordinary speech a sentence may begin with
    /// them (`End of the month?`).
    package let aloneWords: [String: [String]]
    /// Texts that confirm a withdrawal, by locale; empty where nothing does. A locale without one has that of a language that its
    /// readers read as well (``ReaderLanguages``).
    package let confirmations: [String: String]
    /// The first day, in UTC, on which such a reply ends every text that the recipient can switch off; `nil` where it ends
    /// what was consented to and what is marketing.
    package var endsAllTextsFrom: CalendarDate?
    package var rationale: Rationale
    /// ``words``, and in the second table all that counts alone, keyed by their letters, with the locale of each.
    private let beginnings: WordTable
    private let wholes: WordTable
    /// The letters of words that say nothing by themselves (`please`, `thanks`, `messages`), of all locales. A reply may have
    /// them beside one of ``aloneWords``.
    private let fillerLetters: Set<String>

    /// Whether a reply is a withdrawal. It is where it begins with one of ``words``, whatever follows: `Stop!`, `OPT-OUT`,
    /// `optout`, `"ＳＴＯＰ"`, `stop please`, `СТОП` and the subject `Re: STOP` are, `non-stop` and `stopped` are not. And where its
    /// first line says words of either list and else only words that say nothing: `END`, `Cancel all messages please`,
    /// `cancel, unsubscribe`, not `End of the month?`.
    ///
    /// Letters and digits are compared (``TextFolding``), without case and marks (`arrete` is `arrête`); where the blanks are does
    /// not matter. Digits are a word of their own, whatever they are written to: `STOP1` and `1 STOP` begin with the word, and a
    /// single digit says nothing beside one that counts alone (`END 1`, not `Cancel 4512`).
    package func contains(_ reply: String) -> Bool { word(of: reply) != nil }

    /// The locale of the word by which a reply is a withdrawal, the longest one where there are several; `nil` for one that is
    /// no withdrawal, and for a word that the list has in another script alone: `stop` is not Russian because `стоп` is listed.
    package func locale(of reply: String) -> String? { word(of: reply)?.locale }

    private func word(of reply: String) -> Word? {
        let text = Self.withoutReplyMarks(reply)
        let words = Array(Self.letters(of: text).prefix(Self.wordCountMax))
        // A signature follows the first line of a reply that says one word.
        let line = text.split(whereSeparator: \.isNewline).lazy.map(Self.letters(of:)).first { !$0.isEmpty }
        // As it is written before any other spelling: `стоп` is Russian before it is `stop`.
        return word(of: words, alone: line ?? [], in: \.own)
            ?? word(
                of: words.map(LatinLetters.spelling), alone: (line ?? []).map(LatinLetters.spelling),
                in: \.latin)
    }

    /// A number of a list that was answered, or a key that slipped: `1 STOP`.
    private static func isNumber(_ word: String) -> Bool { word.allSatisfy(isDigit) }

    /// Digits of other scripts have been folded to ASCII's by ``letters(of:)``.
    private static func isDigit(_ character: Character) -> Bool { ("0"..."9").contains(character) }

    private func word(
        of words: [String], alone line: [String], in spelling: KeyPath<WordTable, [String: Word]>
    ) -> Word? {
        let unnumbered = words.drop(while: Self.isNumber)
        if let found = beginning(of: words[...], in: spelling)
            ?? (unnumbered.count < words.count ? beginning(of: unnumbered, in: spelling) : nil)
        {
            return found
        }
        // `opt me out` says its phrase around a word that says nothing.
        return whole(of: line, in: spelling)
            ?? whole(of: line.filter { !saysNothing($0) }, in: spelling)
    }

    private func saysNothing(_ word: String) -> Bool {
        fillerLetters.contains(word) || word.count == 1 && Self.isNumber(word)
    }

    /// The first word of either list in a line that says only such words and what says nothing beside them.
    private func whole(of line: [String], in spelling: KeyPath<WordTable, [String: Word]>) -> Word? {
        guard line.count <= Self.wordCountMax else { return nil }
        let wholes = wholes[keyPath: spelling]
        // Both by a place in the line: whether all before it can be read so, and the first word of a list among it.
        var isRead = [true] + line.map { _ in false }
        var found = [Word?](repeating: nil, count: line.count + 1)
        for start in line.indices where isRead[start] {
            if saysNothing(line[start]) {
                isRead[start + 1] = true
                found[start + 1] = found[start + 1] ?? found[start]
            }
            var said = ""
            for end in start..<line.count {
                said += line[end]
                guard let word = wholes[said] else { continue }
                isRead[end + 1] = true
                found[end + 1] = found[start] ?? word
            }
        }
        return found[line.count]
    }

    private func beginning(
        of words: ArraySlice<String>, in spelling: KeyPath<WordTable, [String: Word]>
    ) -> Word? {
        var said = ""
        var found: Word?
        for word in words {
            said += word
            // The last to be found is the longest.
            if let word = beginnings[keyPath: spelling][said] { found = word }
        }
        return found
    }

    /// A word that was found.
    private struct Word: Hashable, Sendable {
        /// `nil` for one that is written in Latin letters here and not in the list.
        var locale: String?
    }

    /// Words of any locale, by their letters: as they are, and in Latin ones (`одјава` is `odjava`), so that a word of the list
    /// counts in the other scripts that its language is written in.
    private struct WordTable: Hashable, Sendable {
        private(set) var own: [String: Word] = [:]
        private(set) var latin: [String: Word] = [:]

        init(_ words: [String: [String]]) {
            for (locale, words) in words.sorted(by: { $0.key < $1.key }) {
                for word in words {
                    own[RevocationRule.letters(of: word).joined()] = Word(locale: locale)
                }
            }
            for letters in own.keys {
                let plain = LatinLetters.spelling(letters)
                latin[plain] = own[plain] ?? Word(locale: nil)
            }
        }
    }

    /// What confirms a withdrawal that was said by a word of a locale, and in which locale: its own, or one that its readers read
    /// as well. The bundle's first language is no answer to somebody who wrote in another.
    package func confirmation(
        toWordsIn locale: String, under languages: ReaderLanguages
    ) -> (locale: String, text: String)? { confirmation(in: languages.readable(of: [locale])) }

    /// The text that confirms a withdrawal whose word leaves its language open: in the person's own, else in the bundle's first.
    ///
    /// - Parameter locale: The person's; `nil` where it is not known.
    package func confirmation(
        toReaderOf locale: String?, under languages: ReaderLanguages
    ) -> (locale: String, text: String)? { confirmation(in: languages.candidates(for: [locale])) }

    private func confirmation(in candidates: [LanguageTag]) -> (locale: String, text: String)? {
        candidates.lazy.compactMap { tag in
            confirmations[tag.description].map { (tag.description, $0) }
        }.first
    }

    /// Words of a reply that are read: none of the list's is spelled in more, even letter by letter.
    private static let wordCountMax = 64

    /// What mail programs put before the subject of an answer: `Re:` (RFC 5322 section 3.6.5), in Norwegian also `SV:`, in
    /// Bosnian `Odg:`, in German `AW:`, in Polish `Odp:`, in Finnish `VS:`, in Dutch `Antw:`, in Italian `R:` and `Rif:`, in
    /// Portuguese `Res:`, in Turkish `Ynt:`, in Chinese `回复:`; some count the answers, as in `Re[2]:`.
    private static let replyMarks: Set<String> = [
        "re", "sv", "odg", "aw", "odp", "vs", "antw", "r", "rif", "res", "ynt", "回复", "回覆",
    ]

    private static func withoutReplyMarks(_ reply: String) -> Substring {
        var text = Substring(reply)
        while let colon = text.firstIndex(where: { $0 == ":" || $0 == "：" }) {
            let mark = letters(of: text[..<colon])
            guard let name = mark.first, replyMarks.contains(name),
                mark.dropFirst().allSatisfy({ $0.allSatisfy(\.isNumber) })
            else { break }
            text = text[text.index(after: colon)...]
        }
        return text
    }

    /// The words of a text, and each run of digits as a word of its own.
    package static func letters(of text: some StringProtocol) -> [String] {
        let scalars = text.unicodeScalars.lazy
            .filter { !$0.properties.isDefaultIgnorableCodePoint }.flatMap { TextFolding.folded($0) }
            .map(TextFolding.withoutMark)
        return String(String.UnicodeScalarView(scalars)).lowercased()
            .split { !$0.isLetter && !$0.isNumber }.flatMap(Self.apart)
    }

    /// The runs of digits in a word, and what is between them.
    private static func apart(_ word: Substring) -> [String] {
        word.reduce(into: []) { parts, character in
            if let last = parts.last?.last, isDigit(last) == isDigit(character) {
                parts[parts.count - 1].append(character)
            } else {
                parts.append(String(character))
            }
        }
    }
}

/// How old a device's key may be, and from when its app is told to replace it. A key past its age still seals: without it
/// the message would go in another form, or not at all.
package struct DeviceKeyAge: Hashable, Sendable {
    package var maxAgeDays: Int
    package var toldBeforeDays: Int
    /// The type of the message that is sealed to a key when another takes its place; `nil` where a replaced key is told
    /// nothing.
    package var replacementNotice: TypeID?
}

extension ChannelRules {
    /// The largest message a provider of the channel takes, in bytes: APNs and FCM 4096 (Apple, "Generating
    /// a remote notification"; FCM, "About FCM messages"); 255 joined text messages of 153 characters
    /// (3GPP TS 23.040 section 9.2.3.24.1); an e-mail of 64 KiB, the store's bound for an outbox row.
    static func payloadByteCountMax(of channel: Channel) -> Int {
        switch channel {
        case .push: 4096
        case .sms: 255 * 153
        case .email: 65_536
        }
    }

    init(_ reader: NodeReader) {
        let members = reader.members()
        let push = members.required("push", "Notifications by APNs and FCM.")?.members()
        let sms = members.required("sms", "Text messages.")?.members()
        let email = members.required("email", "E-mail.")?.members()
        rules = ByChannel(
            push: Self.rule(push, .push), sms: Self.rule(sms, .sms), email: Self.rule(email, .email))
        deviceKeyAge = push?.optional(
            "device_key", "How old a device's key may be; without it, of any age."
        ).map { DeviceKeyAge($0) }
        contestedNotice =
            push?.optional(
                "contested_notice",
                "The type that tells a person of a number or mailbox of theirs that another person verified; without it, they are told nothing."
            )?.typeID()
        let fallback = sms?.required(
            "fallback", "Whether a text message may stand in for what failed on another channel.")?.members()
        smsFallbackForMarketing = fallback?.name("marketing", "For marketing.") ?? .forbidden
        smsFallbackForOthers = fallback?.name("others", "For everything else.") ?? .forbidden
        fallback?.ignoreRationale()
        fallback?.refuseOthers()
        smsHours = sms?.optional(
            "hours", "Hours in which text messages may be sent, whatever quiet hours a recipient has."
        ).map { SendingHours($0) }
        smsRevocation = sms?.optional(
            "revocation", "How a recipient takes consent back by answering a text message."
        ).map { RevocationRule($0) }
        push?.refuseOthers()
        sms?.refuseOthers()
        email?.refuseOthers()
        members.refuseOthers()
    }

    private static func rule(_ members: MemberReader?, _ channel: Channel) -> ChannelRule {
        let most = payloadByteCountMax(of: channel)
        return ChannelRule(
            payloadByteCountMax: members?.integer(
                "payload_bytes_max", 1...most, "Bytes of the payload, as the provider counts them.") ?? most,
            rationale: members?.rationale()
                ?? Rationale(because: "", law: [], reviewed: CalendarDate.first))
    }
}

extension DeviceKeyAge {
    init(_ reader: NodeReader) {
        let members = reader.members()
        maxAgeDays = members.integer("max_age_days", 1...3650, "Days that a key may be old.")
        toldBeforeDays = members.integer(
            "told_before_days", 1...3650, "So many days before, the app is told to make a new key.")
        replacementNotice = members.optional(
            "replacement_notice",
            "The type that tells a device whose key was replaced; without it, it is told nothing.")?.typeID()
        if toldBeforeDays > maxAgeDays {
            reader.problem(
                "tells an app of its key's age before the key is made",
                hint: "`told_before_days` is at most `max_age_days`")
        }
        members.refuseOthers()
    }
}

extension SendingHours {
    init(_ reader: NodeReader) {
        let members = reader.members()
        earliest =
            members.required("earliest", "The first minute in which sending is allowed, local time.")?
            .timeOfDay() ?? 0
        latest =
            members.required("latest", "The first minute in which sending is no longer allowed, local time.")?
            .timeOfDay() ?? 0
        if earliest >= latest { reader.problem("must start before it ends, on one day") }
        categories = members.names("categories", "Categories that keep the hours.")
        regions =
            members.required("regions", "Where they hold.")?.elements().compactMap { $0.region() } ?? []
        callingCodes = members.texts(
            "calling_codes", rule: .callingCodeOfPage,
            "How a number of these places begins, e.g. \"+1\": it may ring there.")
        for code in callingCodes where !Self.isCallingCode(code) {
            reader.problem(
                "has the calling code `\(code)`",
                hint: "write it as \"+1\": E.164 without spaces, a country code, after 1 with its area code")
        }
        zones = members.texts(
            "zones", countMin: 1,
            "Every IANA zone a number of these places could be in; the hours hold in all of them at once.")
        if zones.isEmpty { reader.problem("have no `zones`, so nobody would know when they are") }
        rationale = members.rationale()
        members.refuseOthers()
    }

    static func isCallingCode(_ text: String) -> Bool {
        text.first == "+" && (2...8).contains(text.utf8.count)
            && text.utf8.dropFirst().allSatisfy { $0.isDigit }
            && NumberPrefix.tells(text)
    }
}

extension RevocationRule {
    /// Two joined messages of the alphabet that all of these languages can be written in (UTF-16, 67 units each, in UTF-8).
    private static let confirmationByteCountMax = 200

    init(_ reader: NodeReader) {
        let members = reader.members()
        honouredWithinBusinessDays = members.integer(
            "honoured_within_business_days", 0...365,
            "Business days in which a withdrawal takes effect, at most.")
        confirmationWithinMinutes = members.integer(
            "confirmation_within_minutes", 0...1440,
            "Minutes after a reply in which its confirmation may be sent.")
        var localeOfWord: [String: String] = [:]
        /// Each word once, so that it has one language.
        func read(_ lists: NodeReader?) -> [String: [String]] {
            var read: [String: [String]] = [:]
            for (locale, list) in lists?.members().others(.locales) ?? [] {
                let own = list.texts(countMin: 1)
                read[locale] = own
                for word in own {
                    let letters = Self.letters(of: word).joined()
                    if letters.isEmpty {
                        list.problem("has the word `\(word)`, in which there is no letter")
                    }
                    if let other = localeOfWord.updateValue(locale, forKey: letters), other != locale {
                        list.problem(
                            "has the word `\(word)`, which `\(other)` has as well",
                            hint: "a word is said in one language; keep one")
                    }
                }
            }
            return read
        }
        words = read(
            members.required(
                "words", "Words that take consent back where a reply begins with them, by locale."))
        aloneWords = read(
            members.optional(
                "alone",
                "Words that take consent back where a reply says nothing else, by locale: an ordinary sentence may begin with them."
            ))
        var fillers: [String] = []
        let courtesies = members.optional(
            "beside_alone",
            "Words that say nothing by themselves and may stand beside one of `alone`, by locale.")
        for (_, list) in courtesies?.members().others(.locales) ?? [] {
            fillers += list.texts(countMin: 1)
        }
        fillerLetters = Set(fillers.flatMap { Self.letters(of: $0) })
        (beginnings, wholes) = (WordTable(words), WordTable(words.merging(aloneWords, uniquingKeysWith: +)))
        var confirmations: [String: String] = [:]
        let answers = members.optional(
            "confirmation",
            "What confirms a withdrawal, by the locale of the word it was said in; the brand stands in front."
        )
        for (locale, text) in answers?.members().others(.locales) ?? [] {
            confirmations[locale] = text.checkedText(
                byteCountMax: Self.confirmationByteCountMax, by: PlainTextRule())
            if words[locale] == nil, aloneWords[locale] == nil {
                text.problem(
                    "confirms in `\(locale)`, in which no word takes consent back",
                    hint: "the locales of `words`: \(words.keys.sorted().joined(separator: ", "))")
            }
        }
        self.confirmations = confirmations
        endsAllTextsFrom = members.optional(
            "ends_all_texts_from",
            "The first day (UTC) on which such a reply ends every text that the recipient can switch off."
        ).map { $0.date() }
        rationale = members.rationale()
        members.refuseOthers()
    }
}
