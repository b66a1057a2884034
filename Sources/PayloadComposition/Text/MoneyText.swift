package import GateVocabulary

/// ISO 4217: which codes are money, and how many digits their smallest unit stands for.
package enum Currency {
    /// - Returns: `nil` for a code that is not in the list, or that ISO gives no minor unit (metals, the
    ///   IMF's drawing right, test codes). Guessing would misstate an amount by a factor of ten or more.
    package static func fractionDigitCount(_ code: String) -> Int? { fractionDigitCounts[code] }

    private static let fractionDigitCounts: [String: Int] = [
        (0, withoutMinorUnit), (2, withTwoDigits), (3, withThreeDigits), (4, withFourDigits),
    ].reduce(into: [:]) { counts, row in
        for code in row.1.split(separator: " ") { counts[String(code)] = row.0 }
    }

    // ISO 4217 list one, amendment 179, and the withdrawn codes a correction of an old payment may still name.
    private static let withoutMinorUnit =
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
    private static let withThreeDigits = "BHD IQD JOD KWD LYD OMR TND"
    private static let withFourDigits = "CLF UYW"
    private static let withTwoDigits = """
        AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF \
        CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ \
        GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD \
        MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD \
        RUB SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH \
        USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG ZWL
        """
}

/// An amount in words a reader of the language expects.
package enum MoneyText {
    /// - Parameters:
    ///   - minor: In the currency's smallest unit: 500000 øre are `5 000,00 kr`.
    ///   - currency: An ISO 4217 code.
    /// - Returns: `nil` for a code ``Currency/fractionDigitCount(_:)`` does not know.
    package static func text(minor: Int64, currency: String, in tag: LanguageTag) -> String? {
        guard let fractionDigitCount = Currency.fractionDigitCount(currency) else { return nil }
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

    /// A symbol only where it cannot be taken for another currency: `kr` is Norwegian to a Norwegian, but an
    /// amount in Swedish kroner must say `SEK` to the same reader. Dollars and pesos nearly always say their code.
    private static func symbol(of currency: String, in tag: LanguageTag) -> String? {
        switch (currency, tag.language, tag.region) {
        case ("EUR", _, _): "€"
        case ("GBP", _, _): "£"
        case ("NOK", "nb", _), ("NOK", "nn", _), ("NOK", "no", _), ("SEK", "sv", _), ("DKK", "da", _): "kr"
        case ("USD", "en", "US"): "$"
        case ("PLN", "pl", _): "zł"
        case ("CZK", "cs", _): "Kč"
        case ("HUF", "hu", _): "Ft"
        case ("BAM", "bs", _): "KM"
        default: nil
        }
    }
}
