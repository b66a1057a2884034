/// What tells where a telephone number belongs, without the number.
package enum NumberPrefix {
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
        let values = digits.utf8.prefix(3).map { $0 &- UInt8(ascii: "0") }
        let count =
            switch first {
            case "1": 4
            case "7": 2
            default: NumberingPlan.of(values)?.code.count ?? 3
            }
        return "+" + digits.prefix(count)
    }

    /// Whether the prefix of a number tells that it begins with a code: what is longer is not known of a stored number.
    package static func tells(_ code: String) -> Bool { of(code + "0000")?.hasPrefix(code) == true }
}
