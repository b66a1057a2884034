package import GateVocabulary

/// How a language writes numbers and amounts: the parts of Unicode CLDR 46 that a notification needs.
///
/// An own small table instead of ICU, because a payload must be the same bytes on every machine whatever
/// ICU it has. Digits are always ASCII: they are what a reader compares with a bank statement.
package struct NumberConventions: Hashable, Sendable {
    /// Where the currency stands beside the number.
    package enum CurrencyPlace: Hashable, Sendable {
        /// `NOK 5,000.00`, `€5,000.00`.
        case before
        /// `€ 5.000,00`: a space also after a symbol.
        case beforeWithSpace
        /// `5 000,00 kr`.
        case after
    }

    package var decimalSeparator: String
    package var groupSeparator: String
    /// Digits a number must have before its first group to be grouped at all: Spanish writes 5000 but 50.000.
    package var groupingDigitCountMin: Int
    /// Digits of every group but the last; 2 where lakhs and crores are counted.
    package var upperGroupDigitCount: Int
    package var minusSign: String
    package var currencyPlace: CurrencyPlace

    /// CLDR's root: `.` and `,`, currency first.
    package init(
        decimal: String = ".", group: String = ",", groupingDigitCountMin: Int = 1,
        upperGroupDigitCount: Int = 3,
        minus: String = "-", currency: CurrencyPlace = .before
    ) {
        decimalSeparator = decimal
        groupSeparator = group
        self.groupingDigitCountMin = groupingDigitCountMin
        self.upperGroupDigitCount = upperGroupDigitCount
        minusSign = minus
        currencyPlace = currency
    }

    /// NO-BREAK SPACE: an amount is never torn apart at a line's end.
    static let space = "\u{A0}"
    static let narrowSpace = "\u{202F}"
    static let minus = "\u{2212}"

    package init(_ tag: LanguageTag) {
        let space = Self.space
        switch (tag.language, tag.region) {
        case ("en", "IN"), ("hi", _), ("bn", _), ("gu", _), ("kn", _), ("ml", _), ("mr", _), ("pa", _),
            ("ta", _),
            ("te", _):
            self.init(upperGroupDigitCount: 2)
        case ("en", _): self.init()
        case ("nb", _), ("no", _), ("nn", _), ("sv", _), ("fi", _):
            self.init(decimal: ",", group: space, minus: Self.minus, currency: .after)
        case ("et", _):
            self.init(
                decimal: ",", group: space, groupingDigitCountMin: 2, minus: Self.minus, currency: .after)
        case ("lt", _): self.init(decimal: ",", group: space, minus: Self.minus, currency: .after)
        case ("de", "CH"), ("de", "LI"), ("it", "CH"): self.init(group: "’", currency: .before)
        case ("de", "AT"): self.init(decimal: ",", group: ".", currency: .beforeWithSpace)
        case ("da", _), ("de", _), ("it", _), ("ro", _), ("el", _), ("bs", _), ("sr", _), ("mk", _),
            ("is", _),
            ("vi", _), ("ca", _), ("gl", _):
            self.init(decimal: ",", group: ".", currency: .after)
        case ("hr", _), ("sl", _): self.init(decimal: ",", group: ".", minus: Self.minus, currency: .after)
        case ("nl", _): self.init(decimal: ",", group: ".", currency: .beforeWithSpace)
        case ("tr", _), ("id", _): self.init(decimal: ",", group: ".", currency: .before)
        case ("pt", "PT"): self.init(decimal: ",", group: space, groupingDigitCountMin: 2, currency: .after)
        case ("pt", _): self.init(decimal: ",", group: ".", currency: .beforeWithSpace)
        case ("es", nil), ("es", "ES"):
            self.init(decimal: ",", group: ".", groupingDigitCountMin: 2, currency: .after)
        case ("fr", "CA"): self.init(decimal: ",", group: space, currency: .after)
        case ("fr", _): self.init(decimal: ",", group: Self.narrowSpace, currency: .after)
        case ("pl", _), ("bg", _), ("lv", _):
            self.init(decimal: ",", group: space, groupingDigitCountMin: 2, currency: .after)
        case ("cs", _), ("sk", _), ("hu", _), ("sq", _), ("uk", _), ("ru", _), ("be", _):
            self.init(decimal: ",", group: space, currency: .after)
        case ("he", _): self.init(currency: .after)
        default: self.init()
        }
    }

    /// A whole number with its groups, e.g. `12 500`.
    package func text(_ number: Int64) -> String {
        (number < 0 ? minusSign : "") + grouped(String(number.magnitude)[...])
    }

    /// A number given in units of a negative power of ten, e.g. 500000 with two fraction digits: `5 000,00`.
    func text(magnitude: UInt64, fractionDigitCount: Int) -> String {
        var digits = String(magnitude)
        if fractionDigitCount == 0 { return grouped(digits[...]) }
        if digits.utf8.count <= fractionDigitCount {
            digits = String(repeating: "0", count: fractionDigitCount + 1 - digits.utf8.count) + digits
        }
        let point = digits.utf8.index(digits.endIndex, offsetBy: -fractionDigitCount)
        var text = grouped(digits[..<point])
        text += decimalSeparator
        text.append(contentsOf: digits[point...])
        return text
    }

    private func grouped(_ digits: Substring) -> String {
        let upperCount = digits.utf8.count - 3
        guard upperCount >= groupingDigitCountMin else { return String(digits) }
        var text = ""
        var rest = digits
        // The first group has the digits that fill no whole one.
        let part = upperCount % upperGroupDigitCount
        var count = part == 0 ? upperGroupDigitCount : part
        while rest.utf8.count > 3 {
            let end = rest.utf8.index(rest.startIndex, offsetBy: count)
            text.append(contentsOf: rest[..<end])
            text += groupSeparator
            rest = rest[end...]
            count = upperGroupDigitCount
        }
        text.append(contentsOf: rest)
        return text
    }
}
