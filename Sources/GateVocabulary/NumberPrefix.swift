/// What tells where a telephone number belongs, without the number.
package enum NumberPrefix {
    /// Country codes of two digits (list of assigned codes of ITU-T E.164, 2016); all others have three, but for 1 and 7.
    private static let ofTwoDigits: Set<String> = [
        "20", "27", "30", "31", "32", "33", "34", "36", "39", "40", "41", "43", "44", "45", "46", "47", "48",
        "49", "51", "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63", "64", "65", "66", "81",
        "82", "84", "86", "90", "91", "92", "93", "94", "95", "98",
    ]

    /// The country code of an E.164 number with its `+`. Two that large countries share are longer: 1 with the area code,
    /// 7 with one digit. Islands that share the code of another country (44, 47, 61, 590) are not told apart.
    ///
    /// - Returns: Two to five characters; `nil` for a text that does not begin with `+` and a digit.
    package static func of(_ number: String) -> String? {
        guard number.hasPrefix("+"), let first = number.dropFirst().first, first.isASCII, first.isNumber
        else {
            return nil
        }
        let digits = number.dropFirst()
        let count =
            switch first {
            case "1": 4
            case "7": 2
            default: ofTwoDigits.contains(String(digits.prefix(2))) ? 2 : 3
            }
        return "+" + digits.prefix(count)
    }

    /// Whether the prefix of a number tells that it begins with a code: what is longer is not known of a stored number.
    package static func tells(_ code: String) -> Bool { of(code + "0000")?.hasPrefix(code) == true }
}
