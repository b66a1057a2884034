/// The codes of countries and currencies, each in one table: what a param may be, what a bundle is checked against, and how an
/// amount is written.
package enum ISOCodes {
    /// ISO 3166-1 alpha-2, 249 codes, and XK (Kosovo), a user-assigned code in general use. Source: Debian's package iso-codes
    /// 4.15.0.
    package static let countries: Set<String> = list(
        """
        AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV
        BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES
        ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE
        IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY
        MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU
        NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM
        SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE
        VG VI VN VU WF WS YE YT ZA ZM ZW XK
        """)

    /// ISO 4217 alphabetic codes of money, 165, with the digits that their smallest unit stands for. The metals and the
    /// codes for tests, to which ISO gives no smallest unit, are no amounts that a text can tell.
    ///
    /// Source: list one of ISO 4217 as SIX published it on 2026-01-01 (`list-one.xml`): with XCG since 2025-03-31, and
    /// without the withdrawn ANG, BGN, CUC, HRK, SLL and ZWL.
    package static let fractionDigitCounts: [String: Int] = [
        (
            0,
            """
            BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF
            """
        ),
        (
            2,
            """
            AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF
            CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
            GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL
            MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR
            PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP
            TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
            """
        ),
        (
            3,
            """
            BHD IQD JOD KWD LYD OMR TND
            """
        ),
        (
            4,
            """
            CLF UYW
            """
        ),
    ].reduce(into: [:]) { counts, row in
        for code in list(row.1) { counts[code] = row.0 }
    }

    /// A mark that amounts are written with in place of a currency's code.
    package struct CurrencySymbol: Sendable {
        package let text: String
        /// Whose readers take it for no other currency; empty for every language. `kr` is Norwegian to a Norwegian, but an amount
        /// in Swedish kroner must say `SEK` to the same reader.
        package let languages: Set<String>
        /// The only region of the languages, if there is one.
        package let region: String?

        init(_ text: String, _ languages: Set<String> = [], in region: String? = nil) {
            (self.text, self.languages, self.region) = (text, languages, region)
        }
    }

    /// By ISO 4217 code. Dollars and pesos nearly always say their code.
    package static let currencySymbols: [String: CurrencySymbol] = [
        "BAM": CurrencySymbol("KM", ["bs"]), "CZK": CurrencySymbol("Kč", ["cs"]),
        "DKK": CurrencySymbol("kr", ["da"]), "EUR": CurrencySymbol("€"), "GBP": CurrencySymbol("£"),
        "HUF": CurrencySymbol("Ft", ["hu"]), "NOK": CurrencySymbol("kr", ["nb", "nn", "no"]),
        "PLN": CurrencySymbol("zł", ["pl"]), "SEK": CurrencySymbol("kr", ["sv"]),
        "USD": CurrencySymbol("$", ["en"], in: "US"),
    ]

    private static func list(_ text: String) -> Set<String> {
        Set(text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init))
    }
}
