package import GateVocabulary

/// An amount in words a reader of the language expects.
package enum MoneyText {
    /// - Parameters:
    ///   - minor: In the currency's smallest unit: 500000 øre are `5 000,00 kr`.
    ///   - currency: An ISO 4217 code.
    /// - Returns: `nil` for a code that ``ISOCodes/fractionDigitCounts`` does not have: guessing would misstate an amount by a
    ///   factor of ten or more.
    package static func text(minor: Int64, currency: String, in tag: LanguageTag) -> String? {
        guard let fractionDigitCount = ISOCodes.fractionDigitCounts[currency] else { return nil }
        let conventions = NumberConventions(tag)
        let number = conventions.text(magnitude: minor.magnitude, fractionDigitCount: fractionDigitCount)
        let sign = minor < 0 ? conventions.minusSign : ""
        let symbol = symbol(of: currency, in: tag)
        switch conventions.currencyPlace {
        case .after: return sign + number + NumberConventions.space + (symbol ?? currency)
        case .before:
            if let symbol { return sign + symbol + number }
            return sign + currency + NumberConventions.space + number
        case .beforeWithSpace: return (symbol ?? currency) + NumberConventions.space + sign + number
        }
    }

    /// A symbol only where it cannot be taken for another currency.
    private static func symbol(of currency: String, in tag: LanguageTag) -> String? {
        guard let symbol = ISOCodes.currencySymbols[currency],
            symbol.languages.isEmpty || symbol.languages.contains(tag.language),
            symbol.region == nil || symbol.region == tag.region
        else { return nil }
        return symbol.text
    }
}
