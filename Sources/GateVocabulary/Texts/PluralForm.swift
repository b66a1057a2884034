extension PluralForm {
    /// The form of a whole number in a language: CLDR's cardinal rules (`supplemental/plurals.xml`,
    /// release 46) for integers. A language not listed has the root rule, ``other`` for every number.
    ///
    /// - Parameter number: Its sign does not matter; CLDR's operand `n` is the absolute value.
    package init(of number: Int64, in tag: LanguageTag) {
        let n = number.magnitude
        let (ten, hundred) = (n % 10, n % 100)
        self =
            switch tag.language {
            case "nb", "no", "nn", "en", "sv", "da", "de", "nl", "fi", "et", "sq", "el", "hu", "tr", "bg",
                "eu", "fo", "fy", "gl", "ka", "kk", "ky", "lb", "ml", "mn", "mr", "ne", "or", "ps", "rm",
                "so", "sw", "ta", "te", "tk", "ug", "ur", "uz", "az", "af", "nd", "sn", "xh", "ku":
                n == 1 ? .one : .other
            // Millions stand before a noun with "de": `many`, also where only the compact form differs.
            case "es", "it", "ca": n == 1 ? .one : n != 0 && n % 1_000_000 == 0 ? .many : .other
            case "fr": n <= 1 ? .one : n % 1_000_000 == 0 ? .many : .other
            case "pt":
                if tag.region == "PT" {
                    n == 1 ? .one : n != 0 && n % 1_000_000 == 0 ? .many : .other
                } else {
                    n <= 1 ? .one : n % 1_000_000 == 0 ? .many : .other
                }
            case "hi", "bn", "fa", "gu", "kn", "zu", "am", "as", "hy", "ff", "kab", "ak", "ln", "mg", "pa",
                "ti",
                "wa", "si", "bho", "guw", "nso":
                n <= 1 ? .one : .other
            case "fil", "tl": n == 1 || n == 2 || n == 3 || (ten != 4 && ten != 6 && ten != 9) ? .one : .other
            case "is", "mk": ten == 1 && hundred != 11 ? .one : .other
            case "bs", "hr", "sr", "sh":
                ten == 1 && hundred != 11
                    ? .one : (2...4).contains(ten) && !(12...14).contains(hundred) ? .few : .other
            case "ru", "uk", "be":
                ten == 1 && hundred != 11
                    ? .one : (2...4).contains(ten) && !(12...14).contains(hundred) ? .few : .many
            case "pl":
                n == 1 ? .one : (2...4).contains(ten) && !(12...14).contains(hundred) ? .few : .many
            case "cs", "sk": n == 1 ? .one : (2...4).contains(n) ? .few : .other
            case "sl":
                hundred == 1 ? .one : hundred == 2 ? .two : hundred == 3 || hundred == 4 ? .few : .other
            case "lt":
                ten == 1 && !(11...19).contains(hundred)
                    ? .one : (2...9).contains(ten) && !(11...19).contains(hundred) ? .few : .other
            case "lv":
                ten == 0 || (11...19).contains(hundred) ? .zero : ten == 1 && hundred != 11 ? .one : .other
            case "ro", "mo": n == 1 ? .one : n == 0 || (1...19).contains(hundred) ? .few : .other
            case "ga":
                n == 1
                    ? .one
                    : n == 2 ? .two : (3...6).contains(n) ? .few : (7...10).contains(n) ? .many : .other
            case "gd":
                n == 1 || n == 11
                    ? .one
                    : n == 2 || n == 12 ? .two : (3...10).contains(n) || (13...19).contains(n) ? .few : .other
            case "cy":
                switch n {
                case 0: .zero
                case 1: .one
                case 2: .two
                case 3: .few
                case 6: .many
                default: .other
                }
            case "mt":
                n == 1
                    ? .one
                    : n == 2
                        ? .two
                        : n == 0 || (3...10).contains(hundred)
                            ? .few : (11...19).contains(hundred) ? .many : .other
            case "ar":
                switch n {
                case 0: .zero
                case 1: .one
                case 2: .two
                default: (3...10).contains(hundred) ? .few : (11...99).contains(hundred) ? .many : .other
                }
            case "he", "iw": n == 1 ? .one : n == 2 ? .two : .other
            default: .other
            }
    }
}
