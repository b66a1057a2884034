import CanonicalJSON

/// What an unquoted word of a page means.
///
/// YAML 1.2's core schema and YAML 1.1, which most readers still speak, type many words differently:
/// `NO` is Norway or false, `21:00` a time or 1,260, `0644` a number in base ten or eight. A page must
/// mean the same to all of them, so whatever any reader would take for something else is refused until
/// it is quoted, and only four spellings have a type of their own: `true`, `false`, `null`, and whole
/// numbers in their one decimal spelling.
enum PlainScalar: Equatable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case text
    case refused(Refusal)

    enum Refusal: Equatable {
        case empty
        /// `yes`, `NO`, `off`, `True`.
        case truthValue
        /// `~`, `Null`.
        case nothing
        /// `<<`.
        case mergeKey
        /// `=`, YAML 1.1's default key.
        case defaultKey
        /// `0644`, `+1`, `1_000`, `0x1F`, `.inf`, `12e3`.
        case number
        /// `1.5`: a spelling all readers agree on, of a thing this format does not have.
        case fraction
        /// `9007199254740992`.
        case largeInteger
        /// `21:00`.
        case sexagesimal
        /// `2026-11-02`.
        case date
    }

    init(_ text: String) {
        switch text {
        case "": self = .refused(.empty)
        case "true": self = .boolean(true)
        case "false": self = .boolean(false)
        case "null": self = .null
        case "~", "Null", "NULL": self = .refused(.nothing)
        case "y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off",
            "OFF", "True", "TRUE", "False", "FALSE":
            self = .refused(.truthValue)
        case "<<": self = .refused(.mergeKey)
        case "=": self = .refused(.defaultKey)
        default: self = Self.numberLike(Array(text.utf8)) ?? .text
        }
    }

    /// `nil` when no reader takes it for a number, a time or a date.
    ///
    /// A little wider than what readers do (`1.2.3` is refused too), because a person could not tell.
    private static func numberLike(_ bytes: [UInt8]) -> PlainScalar? {
        let first = bytes[0]
        let isSigned = first == UInt8(ascii: "-") || first == UInt8(ascii: "+")
        let rest = isSigned ? bytes[1...] : bytes[...]
        guard let lead = rest.first else { return nil }
        if let integer = integer(bytes) { return integer }
        let word = rest.map { $0 | 0x20 }
        if word == Array(".inf".utf8) || word == Array(".nan".utf8) { return .refused(.number) }
        if lead == UInt8(ascii: "0"), word.count > 2 {
            let digits = rest.dropFirst(2)
            switch word[1] {
            case UInt8(ascii: "x"):
                if digits.allSatisfy({ isHexadecimal($0) || $0 == UInt8(ascii: "_") }) {
                    return .refused(.number)
                }
            case UInt8(ascii: "o"), UInt8(ascii: "b"):
                if digits.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: "_") }) { return .refused(.number) }
            default: break
            }
        }
        let isPoint = lead == UInt8(ascii: ".")
        guard isDigit(lead) || (isPoint && rest.dropFirst().first.map(isDigit) == true) else { return nil }
        // Dates with a time may hold `T`, `Z` and spaces; numbers `e`, `_` and signs.
        let numeric = Set("0123456789_.:eE+-tTzZ ".utf8)
        guard rest.allSatisfy(numeric.contains) else { return nil }
        if isDate(rest) { return .refused(.date) }
        if rest.contains(UInt8(ascii: ":")) { return .refused(.sexagesimal) }
        let digits = rest.filter(isDigit).count
        if !isSigned || first == UInt8(ascii: "-"), digits == rest.count - 1, !isPoint,
            rest.last != UInt8(ascii: "."), rest.contains(UInt8(ascii: "."))
        {
            return .refused(.fraction)
        }
        return .refused(.number)
    }

    /// `0`, or digits that do not start with `0`, with a minus for those below zero.
    private static func integer(_ bytes: [UInt8]) -> PlainScalar? {
        let isNegative = bytes[0] == UInt8(ascii: "-")
        let digits = isNegative ? bytes[1...] : bytes[...]
        guard let first = digits.first, digits.allSatisfy(isDigit) else { return nil }
        if first == UInt8(ascii: "0"), digits.count > 1 || isNegative { return nil }
        guard digits.count <= 16, let value = Int64(String(decoding: bytes, as: UTF8.self)),
            (CanonicalJSON.integerMin...CanonicalJSON.integerMax).contains(value)
        else { return .refused(.largeInteger) }
        return .integer(value)
    }

    private static func isDate(_ bytes: ArraySlice<UInt8>) -> Bool {
        let parts = bytes.prefix(10).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return parts.count >= 3 && parts[0].count == 4 && parts[0].allSatisfy(isDigit)
            && (1...2).contains(parts[1].count) && parts[1].allSatisfy(isDigit)
            && parts[2].first.map(isDigit) == true
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }
}

extension PlainScalar.Refusal {
    /// - Parameter text: The word as it stands in the page.
    func message(_ text: String) -> String {
        switch self {
        case .empty: "has no value here"
        case .truthValue: "`\(text)` is true or false to some readers of YAML"
        case .nothing: "`\(text)` means nothing, in a spelling of its own"
        case .mergeKey: "`<<` merges mappings in some readers of YAML"
        case .defaultKey: "`=` is a default to some readers of YAML"
        case .number: "`\(text)` is a number to some readers of YAML, and not the same one to all"
        case .fraction: "`\(text)` is a fraction, and numbers here are whole"
        case .largeInteger: "`\(text)` is beyond ±(2⁵³−1), where readers begin to round"
        case .sexagesimal: "`\(text)` is a number to base 60 to some readers of YAML"
        case .date: "`\(text)` is a date to some readers of YAML and a text to others"
        }
    }

    func hint(_ text: String) -> String {
        switch self {
        case .empty: "write a value, or `null` where nothing is meant"
        case .truthValue: "put it between double quotes, \"\(text)\", or write true or false"
        case .nothing: "write `null`, or put it between double quotes"
        case .mergeKey: "write the members out"
        case .number, .fraction, .largeInteger:
            "put it between double quotes, or write a whole number in plain digits"
        case .defaultKey, .sexagesimal, .date: "put it between double quotes, \"\(text)\""
        }
    }
}
