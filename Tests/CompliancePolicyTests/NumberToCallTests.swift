import GateTestKit
import GateVocabulary
import Testing

/// Telephone numbers that begin like an amount, a year or a date, and amounts, years and dates that are none.
@Suite struct NumberToCallTests {
    private static func passes(_ text: String) -> Bool { PlainTextRule().violation(in: text) == nil }

    static let numbersToCall = [
        "Call 1 202 555 0102", "Call 1 800 356 9377", "Ring 2019 9999", "+7 916 123 4567", "+47 2019 9999",
        "1.202.555.0102", "1,555,010,0199", "9,0,0,0,0,0,0,1", "Tlf. 90.000.101", "90.000.101", "90,000,101",
        "90'000'101", "1 800 123 456", "1.800.123.456", "2024 90 00 01 01", "kr 90 00 01 01",
        "2024 90.000.101",
        "2024 1 234 567", "1 234 567 90", "12,345,678.90 12", "1.234.567,00 22 34", "Call 555 2019",
        "555-2019",
        "2019 2020", "Ring 2020-2019", "2019-99-99", "22:34 5678", "22:34 56:78", "2.3.2026.9999",
        "NOK 500-22345678", "199/22345678 kr", "12.11.2026 90", "47 2026-11-12", "0.22345678",
        "0.22345678 + 0.5", "+1.234.567", "+ 12 345 678,90",
        "+90.000.000", "kr +47 90 000 101", "TRY 90.000.101", "CALL ALL 90.000.101", "1 202 555 01 02",
        "1.234-5.678", "1.000.1.000.000", "10.50 90.000.101", "22€34€56€78", "22 € 34 € 56 € 78",
        "\u{661} \u{662}\u{660}\u{662} \u{665}\u{665}\u{665} \u{660}\u{661}\u{660}\u{662}",
        "\u{FF0B}\u{664}\u{667} \u{662}\u{660}\u{661}\u{669} \u{669}\u{669}\u{669}\u{669}",
        "\u{662}\u{660}\u{661}\u{669} \u{669}\u{669}\u{669}\u{669}",
        "\u{FF19}\u{FF10}\u{FF0E}\u{FF10}\u{FF10}\u{FF10}\u{FF0E}\u{FF11}\u{FF10}\u{FF11}",
    ]

    @Test(arguments: numbersToCall)
    func `a number that begins like an amount, a year or a date is no text`(text: String) {
        #expect(!Self.passes(text))
    }

    @Test(arguments: [
        "1 234 567", "1.234.567", "12,345,678.90", "0.000012345", "NOK 1 234 567,50", "kr 1.234.567.890",
        "90.000.101 kr", "NOK 90 000 101", "€90,000,101", "$12,345,678", "USD 12,345,678", "12.345.678 EUR",
        "600.123.456 zł", "-NOK 12,345,678.00", "€ -12.345.678,00", "€5.000.000, €6.000.000",
        "1.000.000 € - 2.000.000 €", "1 000 – 2 000", "JPY 123,456,789", "KWD 1,234,567.890",
        "CLF 1,234.5678",
        "2026-03-02", "2.3.2026", "03/02/2026", "2026-03-02 21:01", "1.–31. mars 2026", "2025/2026",
        "2019–2020", "1.–30.11.2026", "1.10.–30.11.2026", "2026-03-02 – 2026-03-31", "12. mars 2026 10:30",
        "12.11.26 08:15", "11/12 10:30", "iOS 18.1, 2026-03-02 21:01", "2026-03-02 21:01, 3 payments",
        "12.11.2026 1 234,50", "2026-03-02 10.50 kr", "08:15–16:00", "iPhone 15 Pro", "Windows 11",
        "Chrome 131, 202", "MTP131PL 2024", "v2.0", "iOS 18.1.1", "Pixel 9 Pro XL, Android 15",
        "\u{661}\u{66C}\u{662}\u{663}\u{664}",
    ])
    func `an amount, a year, a date and a product that stand alone are texts`(text: String) {
        #expect(Self.passes(text))
    }

    /// Numbers that a word, a letter or a sign would hide.
    static let hidden: [(what: String, texts: [String])] = [
        (
            "stuck to letters",
            [
                "tlf22334455", "Ring nå22334455", "TEL22334455まで", "звоните22334455", "ΚΑΛΕΣΤΕ22334455",
                "22334455nå", "x22334455", "Kontakt22334455", "RING XX22334455", "CALL NOW22334455",
                "call AB22334455", "HJELP22334455", "电话22334455", "TLF22334455", "Mob22334455.",
                "\u{2163}22334455", "22334455\u{1D38}", "\u{FF21}\u{FF22}22334455",
            ]
        ),
        (
            "letters in place of digits",
            [
                "9OOOOOOO", "22O33O44O55", "9ooo oooo", "22 33 44 OO", "9OO OOO OO", "O8OO 123 456",
                "l8OO 555 OlOO",
                "2233445l", "2\u{41E}334455", "22\u{39F}33\u{3BF}44", "\u{FF19}\u{FF2F}\u{FF2F}\u{FF2F}OOOO",
                "9OOO-OOOO", "22I33I44I55",
            ]
        ),
        (
            "short, behind a word of calling",
            [
                "ring 02 800", "call 116 117", "tlf 112", "Tlf. 02800", "RING 112", "Ring: 112", "tel:  112",
                "Ring oss på 02800",
                "Call us now on 116 117", "Text 60606", "sms 2282", "WhatsApp 12345", "fax 1234", "puh 112",
                "Zadzwoń 112", "appelez le 112", "Appelez au 3639", "llame al 112", "Anruf 115", "tlf112",
                "TEL112", "Тел. 112",
                "звоните на 112", "请致电12345", "電話112", "전화 112", "Ring 1-1-2", "ring 1 1 2", "Ring 2020",
                "Ring I I 2 2 0",
                "Hjelp! Ring 113.", "nazovi 112", "Telefono 112", "Ring ☎ 112", "ring (112)", "Call #112",
                "ring O28OO", "call 9-1-1",
                "ring 90 000", "Telefonnummer 02800", "call 11-2",
            ]
        ),
        (
            "short, behind a country code",
            [
                "+45 112", "+45 (112)", "+45(112)", "(+45)112", "+47 02800", "+47-116-117", "+358 112",
                "＋45 112",
            ]
        ),
        (
            "behind a word of calling in another spelling of the same letters",
            [
                "Wähle 112", "Wa\u{308}hle 112", "WA\u{308}HLE 112", "te\u{301}l. 112", "gọi 112",
                "go\u{323}i 112", "Zadzwon\u{301} 112", "sunați 112", "sunat\u{326}i 112",
                "ring oss na\u{30A} pa\u{30A} 112", "ARAYIN 112", "ARAYİN 112", "arayın numarayı 112",
                "ARAYIN NUMARAYI 112", "ara bizi 112", "ARA BİZİ 112",
            ]
        ),
        (
            "keys of a telephone",
            [
                "1-800-FLOWERS", "1-800-flowers", "1.800.FLOWERS", "1 800 FLOWERS", "800-FLOWERS",
                "1-800-CALL-NOW",
                "1-800-GO-FEDEX", "0800-REVERSE", "0800reverse", "1-888-NEW-BANK", "CALL 1-800-MATTRES",
                "1800FLOWERS",
            ]
        ),
    ]

    @Test(arguments: hidden.flatMap { row in row.texts.map { (row.what, $0) } })
    func `a number to call is found`(_ what: String, text: String) {
        #expect(!Self.passes(text))
    }

    /// What people write with as many digits as a telephone number has.
    static let ordinary: [(what: String, texts: [String])] = [
        (
            "opening hours",
            [
                "kl. 8.00–16.00", "10.30-12.45", "08.00 - 20.00", "Man–fre 8.00–16.00, lør 10.00–14.00",
                "18.00–02.00",
                "9.00-12.00, 13.00-17.00", "8.00–16.00 (10.00–14.00)", "8.00, 12.00, 16.00",
                "17.05. 12.00–14.00",
                "9:00–17:30", "00.00–24.00",
            ]
        ),
        (
            "dates",
            [
                "17.05.2026 12.00", "17.05.2026, 12.05", "17.05.2026 12.00–14.30", "01/2026 - 03/2026",
                "2026-01 – 2026-03",
                "01.2026–03.2026", "11.2025–02.2026", "2025/11 – 2026/02", "17.05.–20.05.", "17/05 – 20/05",
                "28.02–01.03",
            ]
        ),
        (
            "references",
            [
                "Faktura 2026-00123", "Faktura nr. 2026-00123", "Invoice 2026/000123",
                "Invoice no. 2026-0042", "INV-2026-00123",
                "FV/123/04/2026", "Sak 2026/12345", "Saksnr. 2026/1234", "Order #2026-000123",
                "Rechnung 2026-00123",
                "Faktura 2026-00123, 17.05.2026", "Faktura 2026-00123: 1 234,50 kr", "AB12345678",
                "12345678Z", "INV22334455",
                "Order22334455", "faktura 00123/2026", "Narudžba 2026-00123", "Ring oss om sak 2026/12345",
            ]
        ),
        (
            "versions",
            [
                "Chrome 131.0.6778.86", "Windows 10.0.19045", "Chrome 131.0.6778.86, Windows 10.0.19045",
                "Chrome/131.0.6778.86",
                "Chrome 131.0.0.0", "Firefox 128.0.3", "Safari 605.1.15", "Build 22631.4460",
                "v131.0.6778.86",
                "Chrome 131.0.6778.86 on your phone", "versjon 131.0.6778",
                "Edge 131.0.2903.112 (Windows 11)",
            ]
        ),
        (
            "shares",
            [
                "0,5 % – 1,25 % – 2,5 %", "10,25–12,50 %", "10.25%, 12.50%, 13.75%", "0.50% / 0.75% / 1.00%",
                "12,345 ‰ – 13,456 ‰",
            ]
        ),
        (
            "prices",
            [
                "199/299/399 kr", "kr 199/299/399", "1 499–1 999 kr", "kr 1 499–1 999", "1499–1999 kr",
                "€1,499-1,999",
                "49/79/99/129 kr", "499,50–1 999,50 kr", "₹12,34,567", "₹1,23,45,678.90", "INR 12,34,567",
                "12,34,567 INR",
                "12.345.678 Kč", "12 345 678 Ft",
            ]
        ),
        (
            "what has few digits beside a word of calling or a plus",
            [
                "Ring 24/7", "Call 24/7", "ring kl. 12.30", "Ring 12:30", "Call 500 kr", "ring 2 ganger",
                "Ringte 112 ganger",
                "Text STOP", "Ring oss om 14 dager", "+5 %", "+500 poeng", "+1 500 poeng", "+20 000 poeng",
                "+45 112 kr", "+100 kr",
                "iPhone 3310", "Fairphone 512", "+1,500 points", "+12 345 points", "SMS 12.11.2026",
                "Earring 925", "String 100",
                "Xiaomi 2201116SG on your phone", "Ny telefon: Xiaomi 22101316G",
            ]
        ),
        (
            "letters that could be digits or keys",
            [
                "Oslo 0150", "5l melk", "10 Oslo", "iOS 18", "O2 2026", "1 800 members", "800 pakkene",
                "1800-tallet", "1800-TALLET",
                "800-serien", "BMW 800-serien", "IO 12", "lol 12345", "20 OOO", "H2O 2026",
            ]
        ),
    ]

    @Test(arguments: ordinary.flatMap { row in row.texts.map { (row.what, $0) } })
    func `what is no number to call is a text`(_ what: String, text: String) {
        #expect(Self.passes(text))
    }

    /// What the forms of dates, shares, prices, references and versions leave to a thief is told by SG-0055; this is what they do not.
    @Test(arguments: [
        "22.34–56.78", "22.34 15.55", "12.11 14.30", "22.30.15.55", "22.31–15.52", "2026-00123",
        "Ring 2026-00123", "På-2026-9999",
        "CALL ON-2026-9999", "131.0.6778.86", "Ring 131.0.6778.86", "Chrome 22.034.056", "Chrome 22334455",
        "22%34%56%78%",
        "22 % 34 % 56 % 78 %", "22% 34% 56% 78%", "22/34/56/78 kr", "kr 22/34/56/78", "78/56/34/129 kr",
        "12,34,567 89 kr",
        "90 000 101 %", "03/2026 - 01/2026", "2026-03 2026-01", "30.11.–12.11.", "Windows 11 2026-03-02",
        "12,34,567,89", "Faktura 22334455",
        "Faktura 22-33-44-55", "Sak 2026/22334455",
    ])
    func `a number in the form of something else is one where the form does not fit`(text: String) {
        #expect(!Self.passes(text))
    }

    /// How people write digits apart: lengths of the groups from the left, the last one as often as it takes.
    private static let groupings: [[Int]] = [
        [2], [3], [4], [1], [3, 4], [3, 3, 4], [1, 3, 3, 4], [2, 3], [3, 2], [4, 3], [1, 3], [1, 2], [15],
    ]

    private static let separators = [
        " ", ".", "-", ",", ", ", " - ", "/", "\u{A0}", "\u{202F}", "\u{2013}", "'",
    ]

    private static func grouped(_ digits: String, _ lengths: [Int], _ separator: String) -> String {
        var (groups, rest, index): ([Substring], Substring, Int) = ([], digits[...], 0)
        while !rest.isEmpty {
            groups.append(rest.prefix(lengths[min(index, lengths.count - 1)]))
            rest = rest.dropFirst(lengths[min(index, lengths.count - 1)])
            index += 1
        }
        return groups.joined(separator: separator)
    }

    @Test
    func `a number of every country is no text, however its digits are grouped and whatever stands before`() {
        var random = SeededNumbers(seed: 55)
        var passed: [String] = []
        for plan in NumberingPlan.all {
            for lengths in Self.groupings {
                // Neither a year nor round thousands in any grouping.
                let count = Int.random(in: 7...(15 - plan.code.utf8.count), using: &random)
                let national = (0..<count).map { _ in String(Int.random(in: 3...9, using: &random)) }.joined()
                for separator in Self.separators.shuffled(using: &random).prefix(5) {
                    let subscriber = Self.grouped(national, lengths, separator)
                    var spellings = [
                        "+\(plan.code)\(separator)\(subscriber)", "\(plan.code)\(separator)\(subscriber)",
                        "00\(plan.code)\(separator)\(subscriber)", "+\(plan.code) (\(subscriber))",
                        "(0)\(subscriber)", "0\(subscriber)",
                    ]
                    // Seven digits as an amount has them.
                    if !(count == 7 && lengths.starts(with: [1, 3])) { spellings.append(subscriber) }
                    for spelling in spellings {
                        let before = ["", "Call ", "2024 ", "Call 2019 "].randomElement(using: &random)!
                        if Self.passes(before + spelling) { passed.append(before + spelling) }
                    }
                }
            }
        }
        #expect(passed.isEmpty, "\(passed.count) passed: \(passed.prefix(20))")
    }

    @Test func `an amount with its decimals is a text in every language's grouping`() {
        var random = SeededNumbers(seed: 56)
        var refused: [String] = []
        let marks = [
            ("", ""), ("kr ", ""), ("", " kr"), ("NOK ", ""), ("€", ""), ("", " €"), ("USD ", ""),
            ("", "\u{A0}zł"),
        ]
        for round in 0..<500 {
            let minor = Int.random(in: 0...(round % 2 == 0 ? 9_999_999 : 99_999_999_999), using: &random)
            var groups: [String] = []
            var rest = String(minor / 100)
            while rest.utf8.count > 3 {
                groups.insert(String(rest.suffix(3)), at: 0)
                rest = String(rest.dropLast(3))
            }
            groups.insert(rest, at: 0)
            let cents = (minor % 100 < 10 ? "0" : "") + String(minor % 100)
            for (thousands, point) in [
                (",", "."), (".", ","), (" ", ","), ("\u{A0}", ","), ("\u{202F}", ","), ("\u{2019}", "."),
            ] {
                for (before, behind) in marks {
                    let whole = groups.joined(separator: thousands)
                    let texts =
                        before.isEmpty && behind.isEmpty
                        ? [whole + point + cents] : [whole, whole + point + cents]
                    for text in texts.map({ before + $0 + behind }) where !Self.passes(text) {
                        refused.append(text)
                    }
                }
            }
        }
        #expect(refused.isEmpty, "\(refused.count) refused: \(refused.prefix(20))")
    }
}
