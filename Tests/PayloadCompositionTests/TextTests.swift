import GateTestKit
import GateVocabulary
import PayloadComposition
import Testing

@Suite struct MoneyTextTests {
    @Test(arguments: [
        ("nb", 500_000, "NOK", "5 000,00 kr"), ("nb-NO", 500_000, "SEK", "5 000,00 SEK"),
        ("nb", -123_456_789, "NOK", "−1 234 567,89 kr"),
        ("nn", 5, "NOK", "0,05 kr"), ("en", 500_000, "NOK", "NOK 5,000.00"), ("en", 50, "NOK", "NOK 0.50"),
        ("en", 0, "NOK", "NOK 0.00"), ("en", -100, "NOK", "-NOK 1.00"), ("en", 123_456, "EUR", "€1,234.56"),
        ("en", 123_456, "USD", "USD 1,234.56"), ("en-US", 123_456, "USD", "$1,234.56"),
        ("en-IN", 1_234_567_890, "INR", "INR 1,23,45,678.90"),
        ("en", 5000, "JPY", "JPY 5,000"), ("nb", 5000, "JPY", "5 000 JPY"), ("en", 5000, "ISK", "ISK 5,000"),
        ("en", 5000, "KWD", "KWD 5.000"), ("en", 1_234_567, "BHD", "BHD 1,234.567"),
        ("en", 12_345, "CLF", "CLF 1.2345"),
        ("de", 500_000, "EUR", "5.000,00 €"), ("de-AT", 500_000, "EUR", "€ 5.000,00"),
        ("de-CH", 500_000, "CHF", "CHF 5’000.00"),
        ("nl", -500_000, "EUR", "€ -5.000,00"), ("fr", 500_000, "EUR", "5\u{202F}000,00 €"),
        ("es", 500_000, "EUR", "5000,00 €"),
        ("es", 5_000_000, "EUR", "50.000,00 €"), ("es-MX", 500_000, "MXN", "MXN 5,000.00"),
        ("pl", 500_000, "PLN", "5000,00 zł"),
        ("pl", 5_000_000, "PLN", "50 000,00 zł"), ("sv", 500_000, "SEK", "5 000,00 kr"),
        ("sv", 500_000, "NOK", "5 000,00 NOK"),
        ("da", 500_000, "DKK", "5.000,00 kr"), ("bs", 500_000, "BAM", "5.000,00 KM"),
        ("sq", 500_000, "ALL", "5 000,00 ALL"),
        ("pt-BR", 500_000, "BRL", "BRL 5.000,00"), ("pt-PT", 500_000, "EUR", "5000,00 €"),
        ("xx", 500_000, "UGX", "UGX 500,000"),
        ("en", 9_007_199_254_740_991, "NOK", "NOK 90,071,992,547,409.91"),
    ]) func `an amount reads as its reader expects`(
        _ language: String, _ minor: Int64, _ currency: String, _ text: String
    ) {
        // The table is typed with plain spaces; amounts have NO-BREAK SPACES.
        let expected = text.replacing(" ", with: "\u{A0}")
        #expect(MoneyText.text(minor: minor, currency: currency, in: LanguageTag(language)!) == expected)
    }

    @Test(arguments: ["XAU", "XXX", "XTS", "XDR", "nok", "NO", "NOKK", "", "ABC"])
    func `what is no money is no amount`(_ code: String) {
        #expect(MoneyText.text(minor: 1, currency: code, in: LanguageTag("en")!) == nil)
    }
}

@Suite struct PluralTests {
    @Test(
        arguments: [
            ("en", [0: "other", 1: "one", 2: "other", 21: "other"]),
            ("nb", [0: "other", 1: "one", 101: "other"]),
            ("sq", [1: "one", 2: "other"]), ("fr", [0: "one", 1: "one", 2: "other", 1_000_000: "many"]),
            ("pt-BR", [0: "one", 1: "one", 2: "other"]), ("pt-PT", [0: "other", 1: "one"]),
            (
                "bs",
                [
                    1: "one", 2: "few", 4: "few", 5: "other", 11: "other", 12: "other", 21: "one", 22: "few",
                    111: "other", 112: "other",
                ]
            ),
            ("ru", [1: "one", 2: "few", 5: "many", 11: "many", 12: "many", 21: "one", 0: "many"]),
            ("pl", [1: "one", 2: "few", 5: "many", 12: "many", 21: "many", 22: "few"]),
            ("cs", [1: "one", 3: "few", 5: "other"]),
            ("sl", [1: "one", 2: "two", 3: "few", 4: "few", 5: "other", 101: "one", 102: "two"]),
            ("lt", [1: "one", 2: "few", 10: "other", 11: "other", 21: "one", 22: "few"]),
            ("lv", [0: "zero", 1: "one", 11: "zero", 21: "one", 2: "other"]),
            ("ro", [1: "one", 0: "few", 19: "few", 20: "other", 101: "few"]),
            ("ar", [0: "zero", 1: "one", 2: "two", 3: "few", 11: "many", 100: "other", 103: "few"]),
            ("ga", [1: "one", 2: "two", 6: "few", 7: "many", 11: "other"]),
            ("mt", [1: "one", 2: "two", 0: "few", 10: "few", 11: "many", 20: "other"]),
            ("cy", [0: "zero", 1: "one", 2: "two", 3: "few", 6: "many", 4: "other"]), ("ja", [1: "other"]),
            ("xx", [1: "other"]),
            ("is", [1: "one", 11: "other", 21: "one"]), ("he", [1: "one", 2: "two", 3: "other"]),
            ("hi", [0: "one", 1: "one", 2: "other"]),
        ] as [(String, [Int64: String])]) func `a language counts as CLDR says`(
            _ language: String, _ expected: [Int64: String]
        )
    {
        for (number, category) in expected {
            #expect(PluralForm(of: number, in: LanguageTag(language)!).rawValue == category, "\(number)")
            #expect(
                PluralForm(of: -number, in: LanguageTag(language)!).rawValue == category, "-\(number)")
        }
    }

    static let days = MessageText.plural(
        param: "days",
        forms: [
            .one: MessageTemplate([.text("one day")]),
            .other: MessageTemplate([.param("days"), .text(" days")]),
        ])

    @Test func `a counted text takes its form, and the other one where it has none`() throws {
        func text(_ number: Int64, _ language: String) throws -> String {
            try Self.days.filled(with: ListedParams([("days", .integer(number))], in: LanguageTag(language)!))
        }
        #expect(try text(1, "en") == "one day")
        #expect(try text(12_000, "en") == "12,000 days")
        // Bosnian has `few` for two; the table does not.
        #expect(try text(2, "bs") == "2 days")
    }

    @Test func `a counted text without its param or its last form says so or falls back`() throws {
        #expect(try Self.days.filled(with: ListedParams([], in: LanguageTag("en")!)) == " days")
        #expect(throws: CompositionError.pluralWithoutOther(param: "days")) {
            try MessageText.plural(param: "days", forms: [:]).filled(
                with: ListedParams([("days", .integer(1))], in: .last))
        }
    }
}

@Suite struct LanguageTagTests {
    @Test(arguments: [
        ("nb", ["nb"]), ("NB-no", ["nb-NO", "nb"]), ("sr-latn-rs", ["sr-Latn-RS", "sr-Latn", "sr"]),
        ("nn-NO", ["nn-NO", "nn", "nb"]),
        ("no", ["no", "nb"]),
        ("zh-Hant-TW-x-a-b", ["zh-Hant-TW-x-a-b", "zh-Hant-TW", "zh-Hant", "zh"]),
        ("es-419", ["es-419", "es"]), ("de-1996", ["de-1996", "de"]),
        ("sl-rozaj-biske", ["sl-rozaj-biske", "sl-rozaj", "sl"]),
    ]) func `a tag falls back step by step`(_ text: String, _ chain: [String]) throws {
        #expect(try #require(LanguageTag(text)).lookupChain.map(\.description) == chain)
    }

    @Test(arguments: [
        "", "n", "nb-", "-nb", "nb--NO", "nb_NO", "n1", "123", "nb-toolongsub", "norsk", "norwegianlanguage",
        "næ",
        "nb-NO\n", "nb/../../en",
        "en-aaaaaaaa-aaaaaaaa-aaaaaaaa-aaaaaaaa",
    ])
    func `what is no tag is refused`(_ text: String) { #expect(LanguageTag(text) == nil) }

    @Test func `the send's wish comes before the recipient's, and English is always there`() {
        let languages = ReaderLanguages.english
        #expect(
            languages.candidates(for: ["bs", "nb-NO"]).map(\.description) == ["bs", "nb-NO", "nb", "en"])
        #expect(languages.candidates(for: [nil, "not a tag"]).map(\.description) == ["en"])
        #expect(languages.candidates(for: ["en-GB", "en"]).map(\.description) == ["en-GB", "en"])
    }

    /// Norwegian first, and the neighbours of its languages.
    private static let starter = ReaderLanguages(
        first: LanguageTag("nb")!,
        alsoRead: [
            "cnr": LanguageTag("sr")!, "sr": LanguageTag("bs")!, "hr": LanguageTag("bs")!,
            "da": LanguageTag("nb")!, "de-CH": LanguageTag("fr")!,
        ])

    @Test(arguments: [
        (["hr-HR"], ["hr-HR", "hr", "bs", "nb", "en"]),
        (["sr-Latn-RS"], ["sr-Latn-RS", "sr-Latn", "sr", "bs", "nb", "en"]),
        (["cnr"], ["cnr", "sr", "bs", "nb", "en"]), (["da"], ["da", "nb", "en"]),
        (["fr"], ["fr", "nb", "en"]),
        (["de-CH-1996"], ["de-CH-1996", "de-CH", "de", "fr", "nb", "en"]), (["en"], ["en", "nb"]),
        ([], ["nb", "en"]),
        (["hr", "sq"], ["hr", "bs", "sq", "nb", "en"]), (["nn"], ["nn", "nb", "en"]),
    ])
    func `a reader is led to what they read as well, then to the bundle's first language`(
        _ wishes: [String], _ found: [String]
    ) {
        #expect(Self.starter.candidates(for: wishes).map(\.description) == found)
        #expect(Self.starter.readable(of: wishes).count <= found.count)
    }

    @Test func `a table that leads in a circle ends`() {
        let circle = ReaderLanguages(
            first: LanguageTag("en")!, alsoRead: ["hr": LanguageTag("sr")!, "sr": LanguageTag("hr")!])
        #expect(circle.candidates(for: ["hr"]).map(\.description) == ["hr", "sr", "en"])
    }
}

@Suite struct MomentTextTests {
    @Test(
        arguments: [
            ("nb", 3600, "21.11.2026 06:30 (UTC+1)"), ("en", 3600, "21 Nov 2026 06:30 (UTC+1)"),
            ("sv", 3600, "2026-11-21 06:30 (UTC+1)"),
            ("fr", -18_000, "21/11/2026 00:30 (UTC-5)"), ("en", 20_700, "21 Nov 2026 11:15 (UTC+5:45)"),
            ("en", -43_200, "20 Nov 2026 17:30 (UTC-12)"), ("en", nil, "21 Nov 2026 05:30 (UTC)"),
        ] as [(String, Int?, String)]) func `a moment says its zone`(
            _ language: String, _ offset: Int?, _ text: String
        ) throws
    {
        let moment = try #require(Instant(rfc3339: "2026-11-21T05:30:59Z"))
        #expect(MomentText.text(moment, utcOffsetSeconds: offset, in: LanguageTag(language)!) == text)
    }

    @Test func `the first hour of 1970 can lie in 1969`() {
        #expect(
            MomentText.text(Instant(seconds: 0), utcOffsetSeconds: -3600, in: .last)
                == "31 Dec 1969 23:00 (UTC-1)")
    }
}

/// Names that try to be more than a name.
@Suite struct PlainTextTests {
    @Test(arguments: [
        ("Ahmad Karimi", "Ahmad Karimi"), ("", ""), ("   ", ""), ("  a  b  ", "a b"),
        ("Ahmad\nYour account is locked", "Ahmad Your account is locked"), ("a\r\nb", "a b"),
        ("a\u{2028}b\u{2029}c\u{85}d", "a b c d"),
        ("a\tb\u{0B}c\u{0C}d", "a b c d"), ("a\u{0}b\u{7}c\u{1B}[31md\u{7F}", "abc[31md"),
        ("a\u{A0}\u{2003}\u{3000}b", "a b"),
        ("Karimi\u{202E}KON 000 5\u{202C}", "KarimiKON 000 5"), ("a\u{200B}\u{FEFF}\u{AD}\u{2060}b", "ab"),
        ("a\u{2066}b\u{2069}\u{200F}c", "abc"),
        ("a\u{E0041}\u{FFF9}b\u{FFFC}", "ab"), ("\u{115F}\u{3164}x", "x"), ("a\u{E000}b\u{10FFFF}", "ab"),
        ("e\u{301}", "e\u{301}"),
        ("Z" + String(repeating: "\u{300}", count: 60), "Z" + String(repeating: "\u{300}", count: 4)),
        ("\u{300}x", "x"), ("👩\u{200D}🚀", "👩\u{200D}🚀"), ("Åse Øvrebø", "Åse Øvrebø"),
        ("Nguyễn Thị Hà", "Nguyễn Thị Hà"),
        ("{amount}", "{amount}"), ("محمد", "\u{2068}محمد\u{2069}"), ("דוד 12", "\u{2068}דוד 12\u{2069}"),
    ]) func `a name is one line of visible text`(_ text: String, _ expected: String) {
        let line = PlainText.line(text)
        #expect(Array(line.unicodeScalars) == Array(expected.unicodeScalars))
        // Cleaning is done once and for all, but for the isolates that are ours.
        if !expected.hasPrefix("\u{2068}") { #expect(Array(PlainText.line(line).utf8) == Array(line.utf8)) }
    }

    @Test func `no text brings a line break, a bidi control or a control character, whatever it is`() {
        var generator = SystemRandomNumberGenerator()
        let ranges: [ClosedRange<UInt32>] = [
            0...0x2FF, 0x590...0x6FF, 0x2000...0x206F, 0xFE00...0xFFFF, 0xE0000...0xE01FF, 0x1F000...0x1FFFF,
        ]
        for _ in 0..<2000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &generator) {
                let range = ranges.randomElement(using: &generator)!
                if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &generator)) {
                    text.unicodeScalars.append(scalar)
                }
            }
            var line = Array(PlainText.line(text).unicodeScalars)
            if line.first == "\u{2068}", line.last == "\u{2069}" { line = Array(line.dropFirst().dropLast()) }
            let bad = line.filter {
                let isJoiner = $0.value == 0x200C || $0.value == 0x200D
                let category = $0.properties.generalCategory
                return !isJoiner
                    && [.control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned]
                        .contains(category)
            }
            #expect(bad.isEmpty, "\(text.unicodeScalars.map(\.value))")
        }
    }

    @Test func `a recipient's name cannot forge a second line, a subject or a place`() throws {
        let content = Sample(name: "Eve\n\nYour account is locked {amount}\r\nBcc: x@example.com").content
        #expect(
            content.texts.body
                == "You sent NOK\u{A0}5,000.00 to Eve Your account is locked {amount} Bcc: x@example.com.")
        #expect(NotificationTexts(title: "a\r\nBcc: x", body: "").title == "a  Bcc: x")
    }

    @Test func `an absent optional param leaves no gap`() throws {
        let template = MessageText.plain(
            MessageTemplate([.text("Signed in from "), .param("country"), .text(" today")]))
        #expect(try template.filled(with: ListedParams([], in: .last)) == "Signed in from today")
        #expect(
            try template.filled(with: ListedParams([("country", .text("NO"))], in: .last))
                == "Signed in from NO today")
    }

    @Test func `an amount in no currency composes nothing`() {
        let template = MessageText.plain(MessageTemplate([.param("amount")]))
        #expect(throws: CompositionError.unknownCurrency("XAU")) {
            try template.filled(
                with: ListedParams([("amount", .money(minor: 1, currency: "XAU"))], in: .last))
        }
    }
}
