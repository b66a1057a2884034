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

    @Test func `every currency that a param may have can be written, with its digits`() {
        #expect(ISOCodes.fractionDigitCounts.count == 165)
        for (code, digitCount) in ISOCodes.fractionDigitCounts {
            let text = MoneyText.text(minor: 123_456_789, currency: code, in: LanguageTag("en")!) ?? ""
            let fraction = text.split(separator: ".").dropFirst().first ?? ""
            #expect(fraction.utf8.count == digitCount, "\(text)")
        }
        #expect(ISOCodes.fractionDigitCounts["XCG"] == 2)
        for withdrawn in ["ANG", "BGN", "CUC", "HRK", "SLL", "ZWL"] {
            #expect(ISOCodes.fractionDigitCounts[withdrawn] == nil, "\(withdrawn)")
        }
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
@Suite struct NameTests {
    @Test(arguments: [
        ("Ahmad Karimi", "Ahmad Karimi"), ("  a  b  ", "a b"), ("a\u{A0}\u{2003}\u{3000}b", "a b"),
        ("e\u{301}", "e\u{301}"), ("👩\u{200D}🚀", "👩\u{200D}🚀"), ("Åse Øvrebø", "Åse Øvrebø"),
        ("Z" + String(repeating: "\u{300}", count: 4), "Z" + String(repeating: "\u{300}", count: 4)),
        ("Nguyễn Thị Hà", "Nguyễn Thị Hà"), ("{amount}", "{amount}"),
        ("محمد", "\u{2068}محمد\u{2069}"), ("דוד 12", "\u{2068}דוד 12\u{2069}"),
    ]) func `a name is one line, with one blank between words`(_ text: String, _ expected: String) throws {
        let template = MessageText.plain(MessageTemplate([.param("name")]))
        let name = try PlainTextRule().checked(text)
        let written = try template.filled(with: ListedParams([("name", .text(name))], in: .last))
        #expect(Array(written.unicodeScalars) == Array(expected.unicodeScalars))
    }

    @Test(arguments: [
        "Ahmad\nYour account is locked", "a\r\nb", "a\u{2028}b", "a\tb", "a\u{0}b", "a\u{1B}[31mb",
        "Karimi\u{202E}KON 000 5\u{202C}", "a\u{200B}b", "a\u{FEFF}b", "a\u{AD}b", "a\u{2066}b\u{2069}",
        "a\u{E0041}b", "a\u{FFF9}b", "a\u{FFFC}", "\u{115F}\u{3164}x", "a\u{E000}b", "a\u{10FFFF}",
        "evil\u{378}.com", "a\u{E0080}b",
        "Z" + String(repeating: "\u{300}", count: 60), "\u{300}x", "x\u{1D159}y", "x\u{13441}y",
    ]) func `what nobody sees is in no name`(_ text: String) {
        #expect(throws: TextViolation.self) { try PlainTextRule().checked(text) }
        #expect(throws: TextViolation.self) { try PlainTextRule().checked("Kari " + text + " Ola") }
    }

    @Test func `no noncharacter and no unassigned code point is in a name`() {
        var count = 0
        for value in UInt32(0)...0x10_FFFF {
            guard let scalar = Unicode.Scalar(value), scalar.properties.generalCategory == .unassigned else {
                continue
            }
            count += 1
            // Every noncharacter, and one in a hundred of the others.
            guard value & 0xFFFE == 0xFFFE || (0xFDD0...0xFDEF).contains(value) || count % 100 == 0 else {
                continue
            }
            if PlainTextRule().violation(in: "evil\(scalar).com") == nil {
                Issue.record("U+\(String(value, radix: 16))")
            }
            if PlainTextRule().violation(in: "evil\(scalar) com") == nil {
                Issue.record("U+\(String(value, radix: 16))")
            }
        }
        #expect(count > 800_000)
        for blank in ["", "   "] { #expect(PlainTextRule().violation(in: blank) != nil) }
    }

    @Test func `marks pile on no letter, with joiners between them or without`() {
        let piled = "\u{628}" + String(repeating: "\u{64E}\u{200D}", count: 8) + "\u{64E}"
        #expect(throws: TextViolation.self) { try PlainTextRule().checked(piled) }
    }

    @Test func `each line of a text that runs from right to left stands by itself`() throws {
        let text = try PlainTextRule(allowing: [.lineBreaks]).checked(" محمد \n\n Kari 12\n")
        #expect(text.text == "محمد\n\nKari 12")
        #expect(
            Array(text.isolated.unicodeScalars)
                == Array("\u{2068}محمد\u{2069}\n\n\u{2068}Kari 12\u{2069}".unicodeScalars))
    }

    @Test func `a title is one line`() {
        #expect(NotificationTexts(title: "a\r\nBcc: x", body: "").title == "a  Bcc: x")
    }

    @Test func `an absent optional param leaves no gap`() throws {
        let template = MessageText.plain(
            MessageTemplate([.text("Signed in from "), .param("country"), .text(" today")]))
        #expect(try template.filled(with: ListedParams([], in: .last)) == "Signed in from today")
        #expect(
            try template.filled(with: ListedParams([("country", .literal("NO"))], in: .last))
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
