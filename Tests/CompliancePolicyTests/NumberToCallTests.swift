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
        "12.11.2026 90", "47 2026-11-12", "0.22345678", "0.22345678 + 0.5", "+1.234.567", "+ 12 345 678,90",
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
