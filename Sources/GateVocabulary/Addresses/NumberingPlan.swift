/// What the numbering plan of one country code says about two spellings of one subscriber: which digits people and systems
/// write between the country code and the number although they are no part of it.
///
/// A rule stands here only where its source says that both spellings reach the same subscriber and no other subscriber can
/// have the digits. Everything doubtful is left out: two spellings that are not folded are two numbers, which costs one
/// person a second STOP; two subscribers that are folded would answer for each other.
package struct NumberingPlan: Sendable {
    /// The country code, one to three digits.
    package let code: String
    package let folds: [Fold]
    /// Zeros that are a part of the number.
    package let zeros: [LeadingZero]
    /// Where the rules of this row are published.
    package let source: String

    /// One spelling that is another number's.
    package enum Fold: Sendable {
        /// `prefix` (a pattern: `x` is any digit) is dropped before a number of so many digits, of which the first is one of
        /// `beginning` and the second one of `then`.
        case drop(_ prefix: String, before: ClosedRange<Int>, beginning: String, then: String = "0123456789")
        /// A number of so many digits that begins with one of `beginning` lacks `prefix`.
        case add(_ prefix: String, to: Int, beginning: String)
        /// Brazil: an area code and eight digits, the first of them 6, 8 or 9, lack the ninth digit.
        case ninthDigit
        /// Argentina: an area code, `15` and the number are `9`, the area code and the number.
        case mobileFifteen

        /// The national prefix 0 before a number of any length, which begins with 0 only where that is a part of it.
        case trunkZero
    }

    /// A beginning (a pattern: `x` is any digit, `n` any but 0), and the lengths of the numbers that have it.
    package struct LeadingZero: Sendable {
        package let beginning: String
        package let lengths: ClosedRange<Int>

        fileprivate init(_ beginning: String, of lengths: ClosedRange<Int>) {
            (self.beginning, self.lengths) = (beginning, lengths)
        }
    }

    private init(_ code: String, _ folds: [Fold], zeros: [LeadingZero] = [], _ source: String) {
        (self.code, self.folds, self.zeros, self.source) = (code, folds, zeros, source)
    }

    // MARK: Reading a number by its plan

    /// The plan of the country code that some digits begin with; `nil` where none is assigned.
    package static func of(_ digits: some Collection<UInt8>) -> NumberingPlan? {
        var code = ""
        for digit in digits.prefix(3) {
            code.append(Character(Unicode.Scalar(digit &+ UInt8(ascii: "0"))))
            if let plan = byCode[code] { return plan }
        }
        return nil
    }

    /// The national number that some digits after the country code stand for. The same for what it returns.
    package func folded(_ digits: [UInt8]) -> [UInt8] {
        var digits = digits
        // A national prefix may stand before a spelling that is itself folded, and no fold makes room for itself again.
        for _ in 0...folds.count {
            guard !zeroIsPart(of: digits),
                let next = folds.lazy.compactMap({ $0.applied(to: digits, in: self) }).first
            else { break }
            digits = next
        }
        return digits
    }

    /// Whether the zeros that a national number begins with belong to it.
    package func zeroIsPart(of digits: [UInt8]) -> Bool {
        zeros.contains { $0.lengths.contains(digits.count) && Self.begins(digits, with: $0.beginning) }
    }

    fileprivate static func begins(_ digits: [UInt8], with pattern: String) -> Bool {
        digits.count >= pattern.utf8.count
            && zip(digits, pattern.utf8).allSatisfy { digit, sign in
                switch sign {
                case UInt8(ascii: "x"): true
                case UInt8(ascii: "n"): digit != 0
                default: digit + UInt8(ascii: "0") == sign
                }
            }
    }

    private static let byCode = Dictionary(uniqueKeysWithValues: all.map { ($0.code, $0) })

    // MARK: Sources

    private static let codes =
        "ITU-T, List of Recommendation E.164 assigned country codes, annex to Operational Bulletin 1114 (15.XII.2016)"
    private static let dialling =
        "ITU-T, Dialling procedures, annex to Operational Bulletin 994 (15.XII.2011), and the national numbering plans published since (E.129)"

    // MARK: The table

    /// Every assigned country code.
    package static let all: [NumberingPlan] =
        withoutPrefix.map { NumberingPlan($0, [], dialling) }
        + withoutPlan.map { NumberingPlan($0, [], codes) }
        + withTrunkZero.map { NumberingPlan($0, [.trunkZero], dialling) } + particular

    /// No national prefix, and no number that begins with 0.
    private static let withoutPrefix = [
        "216", "220", "221", "222", "223", "224", "228", "230", "235", "236", "237", "238", "239", "240",
        "244", "245", "246", "248", "253", "257", "258", "266", "269", "290", "297", "299", "30", "34",
        "350", "351", "354", "356", "357", "371", "372", "376", "420", "45", "48", "500", "502", "503",
        "504", "505", "509", "56", "592", "597", "599", "65", "670", "673", "674", "675", "677", "678",
        "680", "681", "682", "683", "685", "688", "689", "690", "691", "852", "960", "965", "968", "973",
        "975", "998",
    ]

    /// Codes of services and networks, which have no national prefix.
    private static let withoutPlan = ["388", "808", "870", "878", "882", "883", "979", "991"]

    /// National prefix 0, and no number that begins with 0.
    private static let withTrunkZero = [
        "20", "211", "212", "213", "218", "231", "232", "233", "234", "243", "249", "251", "252", "254",
        "255", "256", "260", "262", "263", "264", "265", "27", "291", "31", "32", "33", "353", "355",
        "358", "373", "374", "377", "380", "381", "382", "383", "385", "386", "387", "389", "40", "41",
        "421", "43", "46", "49", "508", "51", "53", "58", "590", "593", "594", "595", "596", "60", "63",
        "64", "686", "84", "850", "855", "856", "880", "886", "90", "92", "93", "94", "95", "961", "962",
        "963", "964", "966", "967", "970", "971", "972", "976", "977", "98", "994", "995", "996",
    ]

    /// The others, each with its own rules.
    private static let particular: [NumberingPlan] = [
        NumberingPlan(
            "1", [.drop("1", before: 10...10, beginning: "23456789")],
            "North American Numbering Plan Administrator, dialing plans: national prefix 1 before ten digits, of which the first is 2 to 9"
        ),
        NumberingPlan(
            "7",
            [.drop("8", before: 10...10, beginning: "3456789"), .drop("8", before: 14...14, beginning: "8")],
            "Russia, Ministry of Communications, Order 205 of 25.04.2017 (numbering plan): national prefix 8 before ten digits, or fourteen of a service; Kazakhstan shares code and prefix"
        ),
        NumberingPlan(
            "36", [.drop("06", before: 8...9, beginning: "123456789")],
            "Hungary, NMHH, Decree 3/2011 (IX. 26.) on the national numbering plan: national prefix 06"),
        NumberingPlan(
            "39", [], zeros: [LeadingZero("0", of: 2...12)],
            "Italy, AGCOM, Piano di numerazione nazionale (Delibera 8/15/CIR): the 0 of a geographic number is a part of it, also from abroad"
        ),
        NumberingPlan("379", [], zeros: [LeadingZero("0", of: 2...12)], codes),
        NumberingPlan(
            "378", [.add("0549", to: 6, beginning: "89")], zeros: [LeadingZero("0549", of: 10...10)],
            "ITU-T, National numbering plans (E.129), San Marino: 0549 is a part of the number and may be left out after 378"
        ),
        NumberingPlan(
            "44", [.trunkZero, .drop("180020", before: 7...10, beginning: "123456789")],
            "United Kingdom, Ofcom, National Telephone Numbering Plan: national prefix 0; 18002 before it calls the same number by text relay"
        ),
        NumberingPlan(
            "47", [], zeros: [LeadingZero("0", of: 5...5)],
            "Norway, Nkom, National numbering plan: no national prefix; five-digit numbers begin with 0"),
        NumberingPlan(
            "52",
            ["01", "044", "045", "1"].map { .drop($0, before: 10...10, beginning: "23456789") },
            "Mexico, IFT, Plan Técnico Fundamental de Numeración (DOF 11.05.2018): 01, 044, 045 and the 1 of calls from abroad abolished on 03.08.2019, ten digits alone are the number"
        ),
        NumberingPlan(
            "54", [.mobileFifteen, .trunkZero],
            "Argentina, ENACOM, Plan Fundamental de Numeración Nacional (Res. SC 46/97): national prefix 0; 15 after the area code at home is 9 before it from abroad. The number without either is another subscriber's"
        ),
        NumberingPlan(
            "55",
            ["12", "14", "15", "21", "22", "23", "24", "25", "31", "41", "43", "55", "65", "99"].flatMap {
                carrier in
                ["0", "90"].map { .drop($0 + carrier, before: 10...11, beginning: "123456789") }
            } + [
                .trunkZero, .drop("90", before: 8...8, beginning: "34"),
                .drop("90", before: 9...9, beginning: "589"),
                .drop("90", before: 10...11, beginning: "123456789"), .ninthDigit,
            ],
            "Brazil, Anatel, Regulamento de Numeração (Res. 749/2022): national prefix 0 or 90 with a carrier's code; ninth digit since 06.11.2016 (Res. 553/2010), not for 7, which trunked radio kept with eight digits"
        ),
        NumberingPlan(
            "57",
            ["03", "05", "07", "09", "0414", "0444", "0456"].flatMap { carrier in
                [8...8, 10...11].map { .drop(carrier, before: $0, beginning: "13469") }
            } + [.trunkZero],
            "Colombia, CRC, Resolución 5826 de 2019: ten digits; national prefix 0, before 2021 with a carrier's code"
        ),
        NumberingPlan(
            "61", [.trunkZero] + ["1831", "1832"].map { .drop($0, before: 5...12, beginning: "123456789") },
            "Australia, ACMA, Telecommunications Numbering Plan 2025: national prefix 0; 1831 and 1832 show or hide the caller"
        ),
        NumberingPlan(
            "62", [.trunkZero], zeros: [LeadingZero("00n", of: 11...13)],
            "\(dialling); Indonesia: toll-free numbers 001 and 007"),
        NumberingPlan(
            "66", [.trunkZero], zeros: [LeadingZero("001800", of: 13...13)],
            "\(dialling); Thailand, NBTC: toll-free numbers 001 800"),
        NumberingPlan(
            "81", [.trunkZero], zeros: [LeadingZero("00n", of: 8...13)],
            "Japan, MIC, Telecommunications numbering plan: national prefix 0; carriers' toll-free numbers begin with 00"
        ),
        NumberingPlan(
            "82",
            ["081", "082", "083", "084", "086", "087", "088", "085xx"].map {
                .drop($0, before: 5...13, beginning: "012345678")
            } + [.trunkZero],
            zeros: [LeadingZero("00n", of: 9...13)],
            "Republic of Korea, MSIT, Numbering rules: national prefix 0, with a carrier's code 08x; toll-free numbers from abroad begin with 00"
        ),
        NumberingPlan(
            "86",
            [.trunkZero]
                + ["11xxx", "12xxx", "179xx"].map { .drop($0, before: 7...12, beginning: "123456789") },
            "China, MIIT, Telecommunications network numbering plan (2017): national prefix 0; five digits of a carrier before a call over its network"
        ),
        NumberingPlan(
            "91", [.trunkZero], zeros: [LeadingZero("000800", of: 13...13)],
            "\(dialling); India: toll-free numbers 000 800"),
        NumberingPlan(
            "225", [], zeros: [LeadingZero("0", of: 10...10)],
            "Côte d'Ivoire, ARTCI, numbering plan of 31.01.2021: ten digits, those of mobile telephones begin with 0"
        ),
        NumberingPlan(
            "226", [], zeros: [LeadingZero("0", of: 8...8)],
            "Burkina Faso, ARCEP, numbering plan: eight digits, some begin with 0"),
        NumberingPlan(
            "227", [], zeros: [LeadingZero("0", of: 8...8)],
            "Niger, ARCEP, numbering plan: eight digits; 08 and 09 are services"),
        NumberingPlan(
            "229", [.add("01", to: 8, beginning: "24569")], zeros: [LeadingZero("01", of: 10...10)],
            "Bénin, ARCEP, numbering plan of 30.11.2024: 01 before each of the eight-digit numbers"),
        NumberingPlan(
            "241", [.drop("0", before: 8...8, beginning: "167")], zeros: [LeadingZero("0", of: 8...8)],
            "Gabon, ARCEP, numbering plan of 29.06.2019: the 0 of nine digits is not dialled from abroad; that of the eight digits before was a part of the number"
        ),
        NumberingPlan(
            "242", [], zeros: [LeadingZero("0", of: 9...9)],
            "Congo, ARPCE, numbering plan: nine digits, those of mobile telephones begin with 0"),
        NumberingPlan(
            "247", [], zeros: [LeadingZero("0", of: 6...6)],
            "ITU-T, National numbering plans (E.129), Ascension: six digits, some begin with 0"),
        NumberingPlan(
            "250", [.trunkZero], zeros: [LeadingZero("06", of: 8...8)],
            "Rwanda, RURA, numbering plan: national prefix 0; eight digits that begin with 06 are a number"),
        NumberingPlan(
            "261", [.trunkZero, .add("20", to: 7, beginning: "2456789")],
            "ITU-T, National numbering plans (E.129), Madagascar: national prefix 0; seven digits are a number of the fixed network, which has 20 before them"
        ),
        NumberingPlan(
            "267", [], zeros: [LeadingZero("0800", of: 10...10)], "\(dialling); Botswana: toll-free 0800"),
        NumberingPlan(
            "268", [], zeros: [LeadingZero("0800", of: 8...8)], "\(dialling); Eswatini: toll-free 0800"),
        NumberingPlan(
            "298",
            ["1001", "1010", "1020", "1088"].map { .drop($0, before: 6...6, beginning: "23456789") },
            "\(dialling); Faroe Islands: no national prefix, carriers' codes 10xx"),
        NumberingPlan(
            "352",
            [
                "1500x", "1506x", "1511x", "1512x", "1535x", "1540x", "1544x", "1555x", "1562x", "1566x",
                "1577x", "1588x", "1599x",
            ].map { .drop($0, before: 4...11, beginning: "23456789") },
            "Luxembourg, ILR, Plan de numérotation: no national prefix, carriers' codes 15xxx; no number begins with 1"
        ),
        NumberingPlan(
            "359", [.trunkZero], zeros: [LeadingZero("00800", of: 12...12)],
            "\(dialling); Bulgaria: toll-free 00800"),
        NumberingPlan(
            "370", [.trunkZero, .drop("8", before: 8...8, beginning: "3456789")],
            "Lithuania, RRT, numbering plan: eight digits; national prefix 0, which took the place of 8"),
        NumberingPlan(
            "375",
            [
                .drop("80", before: 9...9, beginning: "1234"), .drop("80", before: 6...11, beginning: "89"),
                .drop("8", before: 9...9, beginning: "234"),
                .drop("8", before: 9...9, beginning: "1", then: "567"),
                .drop("8", before: 6...11, beginning: "89"),
                .trunkZero,
            ],
            "\(dialling); Belarus: national prefix 8 or 80, also 0"),
        NumberingPlan(
            "423", [.trunkZero, .drop("1001", before: 7...9, beginning: "23456789")],
            "\(dialling); Liechtenstein: a carrier's code 1001"),
        NumberingPlan(
            "501", [], zeros: [LeadingZero("0800", of: 11...11)], "\(dialling); Belize: toll-free 0800"),
        NumberingPlan(
            "506",
            [
                "1900", "1901", "1902", "1904", "1906", "1908", "1910", "1919", "1920", "1966", "1977",
                "1999",
            ].map { .drop($0, before: 8...10, beginning: "123456789") },
            "Costa Rica, SUTEL, Plan Nacional de Numeración: eight digits, no national prefix, carriers' codes 19xx"
        ),
        NumberingPlan(
            "507", [], zeros: [LeadingZero("00800", of: 11...11)], "\(dialling); Panama: toll-free 00800"),
        NumberingPlan(
            "591", [.drop("01x", before: 8...9, beginning: "2345678"), .trunkZero],
            "Bolivia, ATT, Plan Técnico Fundamental de Numeración: national prefix 0, with a carrier's code 1x"
        ),
        NumberingPlan(
            "598", [.trunkZero], zeros: [LeadingZero("0004", of: 6...13)],
            "\(dialling); Uruguay: toll-free numbers from abroad 0004"),
        NumberingPlan(
            "672", [.add("3", to: 5, beginning: "01258")],
            "Australia's external territories, ITU-T, National numbering plans (E.129), Norfolk Island: 3 before the five digits"
        ),
        NumberingPlan(
            "676", [], zeros: [LeadingZero("0800", of: 7...7)], "\(dialling); Tonga: toll-free 0800"),
        NumberingPlan(
            "679", [], zeros: [LeadingZero("0800", of: 11...11)], "\(dialling); Fiji: toll-free 0800"),
        NumberingPlan(
            "687", [], zeros: [LeadingZero("050", of: 6...6)], "\(dialling); New Caledonia: toll-free 050"),
        NumberingPlan(
            "692", [.drop("1", before: 7...7, beginning: "23456")],
            "\(dialling); Marshall Islands: national prefix 1 before seven digits"),
        NumberingPlan(
            "800", [], zeros: [LeadingZero("0", of: 8...8)], "ITU-T E.169.1: eight digits, any of them 0"),
        NumberingPlan(
            "853", [], zeros: [LeadingZero("0800", of: 7...7)], "\(dialling); Macao: toll-free 0800"),
        NumberingPlan(
            "881", [], zeros: [LeadingZero("0", of: 9...9)], "\(codes); shared by satellite networks"),
        NumberingPlan("888", [], zeros: [LeadingZero("0", of: 11...11)], "\(codes); disaster relief"),
        NumberingPlan(
            "974", [], zeros: [LeadingZero("0080", of: 11...11)],
            "\(dialling); Qatar: toll-free 00800 and 00801"),
        NumberingPlan(
            "992", [], zeros: [LeadingZero("0", of: 9...9)],
            "Tajikistan, numbering plan: nine digits, some begin with 0; national prefix 8 given up"),
        NumberingPlan(
            "993", [.drop("8", before: 8...8, beginning: "123456789")],
            "\(dialling); Turkmenistan: national prefix 8 before eight digits"),
    ]
}

extension NumberingPlan.Fold {
    /// - Returns: `nil` where the digits are not of this spelling.
    func applied(to digits: [UInt8], in plan: NumberingPlan) -> [UInt8]? {
        switch self {
        case .trunkZero:
            let rest = Array(digits.dropFirst())
            guard digits.first == 0, let first = rest.first, first != 0 || plan.zeroIsPart(of: rest) else {
                return nil
            }
            return rest
        case .drop(let prefix, let lengths, let first, let second):
            let rest = digits.dropFirst(prefix.utf8.count)
            guard NumberingPlan.begins(digits, with: prefix), lengths.contains(rest.count),
                Self.isOne(rest.first, of: first), Self.isOne(rest.dropFirst().first, of: second)
            else { return nil }
            return Array(rest)
        case .add(let prefix, let length, let beginning):
            guard digits.count == length, Self.isOne(digits.first, of: beginning) else { return nil }
            return prefix.utf8.map { $0 - UInt8(ascii: "0") } + digits
        case .ninthDigit:
            guard digits.count == 10, digits[0] != 0, digits[1] != 0, [6, 8, 9].contains(digits[2]) else {
                return nil
            }
            return digits[..<2] + [9] + digits[2...]
        case .mobileFifteen:
            let digits = digits.first == 0 ? Array(digits.dropFirst()) : digits
            guard digits.count == 12 else { return nil }
            // An area code is 11, or three or four digits that begin with 2 or 3: `15` stands in one place at most.
            let places = digits.starts(with: [1, 1]) ? 2...2 : [2, 3].contains(digits[0]) ? 3...4 : nil
            guard let place = places?.first(where: { digits[$0] == 1 && digits[$0 + 1] == 5 }) else {
                return nil
            }
            return [9] + digits[..<place] + digits[(place + 2)...]
        }
    }

    private static func isOne(_ digit: UInt8?, of digits: String) -> Bool {
        digit.map { digits.utf8.contains($0 + UInt8(ascii: "0")) } ?? false
    }
}
