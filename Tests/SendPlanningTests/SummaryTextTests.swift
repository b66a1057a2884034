import BundleModel
import CompliancePolicy
import GateTestKit
import GateVocabulary
import PayloadComposition
import SendPlanning
import Testing

/// What a summary says in each language, with what is known of what it stands for.
@Suite struct SummaryTextTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var locale: String
        var known: [String]
        var count: Int64 = 28
        var title: String
        var body: String
        var testDescription: String { "\(locale) with \(known.joined(separator: ", ")) of \(count)" }
    }

    /// 28 bookings of 50 kroner are 1 400 kroner; three of 14 euro beside them are told beside them.
    private static let kroner = ParamValue.Amount(minor: 140_000, currency: "NOK")
    private static let euro = ParamValue.Amount(minor: 4_200, currency: "EUR")

    static let rows = [
        Row(
            locale: "en", known: ["totals"], title: "28 new transactions",
            body: "You have 28 new transactions totalling NOK 1,400.00. Open the app to see them."),
        Row(
            locale: "en", known: ["mixed"], title: "28 new transactions",
            body: "You have 28 new transactions totalling €42.00, NOK 1,400.00. Open the app to see them."),
        Row(locale: "en", known: [], title: "28 new transactions", body: "Open the app to see them."),
        Row(
            locale: "en", known: ["totals"], count: 1, title: "1 new transaction",
            body: "You have 1 new transaction of NOK 1,400.00. Open the app to see it."),
        Row(
            locale: "en", known: [], count: 1, title: "1 new transaction", body: "Open the app to see it."),
        Row(
            locale: "nb", known: [], count: 1, title: "1 ny transaksjon", body: "Åpne appen for å se den."),
        Row(
            locale: "bs", known: [], count: 1, title: "1 nova transakcija",
            body: "Otvorite aplikaciju da je vidite."),
        Row(
            locale: "bs", known: [], count: 3, title: "3 nove transakcije",
            body: "Otvorite aplikaciju da ih vidite."),
        Row(
            locale: "sq", known: [], count: 1, title: "1 transaksion i ri",
            body: "Hapni aplikacionin për ta parë."),
        Row(
            locale: "nb", known: ["totals"], title: "28 nye transaksjoner",
            body: "Du har 28 nye transaksjoner på til sammen 1 400,00 kr. Åpne appen for å se dem."),
        Row(
            locale: "nb", known: ["mixed"], title: "28 nye transaksjoner",
            body: "Du har 28 nye transaksjoner på til sammen 42,00 €, 1 400,00 kr. Åpne appen for å se dem."),
        Row(locale: "nb", known: [], title: "28 nye transaksjoner", body: "Åpne appen for å se dem."),
        Row(
            locale: "bs", known: ["totals"], title: "28 novih transakcija",
            body: "Imate 28 novih transakcija, ukupno 1.400,00 NOK. Otvorite aplikaciju da ih vidite."),
        Row(
            locale: "bs", known: ["mixed"], count: 23, title: "23 nove transakcije",
            body: "Imate 23 nove transakcije, ukupno 42,00 €, 1.400,00 NOK. Otvorite aplikaciju da ih vidite."
        ),
        Row(
            locale: "bs", known: [], title: "28 novih transakcija", body: "Otvorite aplikaciju da ih vidite."),
        Row(
            locale: "sq", known: ["totals"], title: "28 transaksione të reja",
            body: "Keni 28 transaksione të reja, gjithsej 1 400,00 NOK. Hapni aplikacionin për t’i parë."),
        Row(
            locale: "sq", known: ["mixed"], title: "28 transaksione të reja",
            body:
                "Keni 28 transaksione të reja, gjithsej 42,00 €, 1 400,00 NOK. Hapni aplikacionin për t’i parë."
        ),
        Row(
            locale: "sq", known: [], title: "28 transaksione të reja",
            body: "Hapni aplikacionin për t’i parë."),
    ]

    private static func texts(of type: String, in locale: String) throws -> LocaleTexts.Found {
        let request = AttestedRequest(
            caller: .gateway, type: TypeID(type), channel: .push, critical: false)
        let terms = RepositoryBundle.policy.terms(of: request)
        return try #require(RepositoryBundle.policy.texts(in: locale)?.texts(under: terms))
    }

    @Test(arguments: rows) func `a summary says all that is known`(_ row: Row) throws {
        let found = try Self.texts(of: "digest.transactions", in: row.locale)
        #expect(found.locale == row.locale)
        var values: [(name: String, value: ParamValue)] = [("count", .integer(row.count))]
        if row.known == ["totals"] { values.append(("totals", .totals([Self.kroner]))) }
        if row.known == ["mixed"] { values.append(("totals", .totals([Self.euro, Self.kroner]))) }
        let texts = try found.filled(with: ListedParams(values, in: #require(LanguageTag(row.locale))))
        // A space that does not break stands between a number and what it counts.
        func plain(_ text: String) -> String {
            String(text.map { $0 == "\u{A0}" || $0 == "\u{202F}" ? " " : $0 })
        }
        #expect(plain(texts.title) == row.title)
        #expect(plain(texts.body) == row.body)
    }

    @Test(arguments: ["en", "nb", "bs", "sq"]) func `a summary of what is not all money names no total`(
        _ locale: String
    ) throws {
        for type in ["digest.updates", "digest.social"] {
            let found = try Self.texts(of: type, in: locale)
            let texts = try found.filled(
                with: ListedParams([("count", .integer(5))], in: #require(LanguageTag(locale))))
            #expect(found.locale == locale && texts.title.contains("5") && !texts.body.isEmpty)
        }
    }

    /// Of one notification a summary speaks as of one, whatever it is called and in every language: title and body are other
    /// texts than those of two and of five.
    @Test func `a summary of one says one`() throws {
        for locale in RepositoryBundle.policy.bundle.messages.keys.sorted() {
            for type in ["digest.transactions", "digest.updates", "digest.social"] {
                let found = try Self.texts(of: type, in: locale)
                let language = try #require(LanguageTag(locale))
                func said(_ count: Int64) throws -> NotificationTexts {
                    try found.filled(with: ListedParams([("count", .integer(count))], in: language))
                }
                for count: Int64 in [2, 5] {
                    #expect(try said(1).body != said(count).body, "\(type) in \(locale)")
                    #expect(try said(1).title != said(count).title, "\(type) in \(locale)")
                }
            }
        }
    }

    /// A bundle may declare the total alone, or leave out how many there were.
    @Test func `the first variant is said whose params are all there`() throws {
        func text(_ text: String) -> MessageText { .plain(MessageTemplate(text)!) }
        let body = MessageText.variants([
            MessageVariant(given: ["count", "totals"], text: text("{count} for {totals}")),
            MessageVariant(given: ["totals"], text: text("Together {totals}")),
            MessageVariant(given: ["count"], text: text("{count} of them")),
            MessageVariant(given: [], text: text("Some")),
        ])
        let count: (name: String, value: ParamValue) = ("count", .integer(2))
        let totals: (name: String, value: ParamValue) = ("totals", .totals([Self.kroner]))
        func said(_ values: [(name: String, value: ParamValue)]) throws -> String {
            try body.filled(with: ListedParams(values, in: #require(LanguageTag("en"))))
                .replacing("\u{A0}", with: " ")
        }
        #expect(try said([count, totals]) == "2 for NOK 1,400.00")
        #expect(try said([totals]) == "Together NOK 1,400.00")
        #expect(try said([count]) == "2 of them")
        #expect(try said([]) == "Some")
        let english = try #require(LanguageTag("en"))
        #expect(throws: CompositionError.noVariant) {
            try MessageText.variants([MessageVariant(given: ["count"], text: text("{count}"))])
                .filled(with: ListedParams([totals], in: english))
        }
    }
}
