/// Looks for numbers that a reader could be asked to call, which a thief answers (vishing).
///
/// ITU-T E.164 gives a number at most 15 digits and no national one fewer than seven; how its digits are grouped is every
/// country's own. So what counts is ``digitCountMin`` digits or more with no word and at most ``gapMax`` characters besides
/// blanks between two of them. Account and card numbers are found with them, which belong into no text either.
///
/// Dates, times of day, years and amounts with their thousands apart are left out of the count where they stand alone. Digits
/// beside them with no word between belong to them, and all of it counts: `2019 9999` is no year, `1 202 555 0102` no amount.
/// Nothing behind a `+` is an amount or a date (``Reading``).
///
/// A word is a letter that has a case, a Hangul syllable, or two different letters. A single letter without a case is what a
/// writer takes for a dot or a dash (`22ㆍ34ㆍ56ㆍ78`, `22ー34`), and separates digits as any other sign does.
///
/// Up to ``modelDigitCountMax`` digits in one word with letters are a model of something (`2201116SG`), and found only where
/// there are more: who is told of a login must be told on which device.
///
/// Numbers of six digits and fewer, which an operator assigns, and numbers in words are not found.
struct NumberSearch {
    static let digitCountMin = 7
    private static let gapMax = 3
    private static let modelDigitCountMax = 8

    /// Digits, and what stands between them and the digits before.
    private struct Group {
        var gap: String
        var digits: String
        /// Whether a letter stands right before or behind the digits.
        var isInWord: Bool
        var value: Int { Int(digits) ?? Int.max }

        /// Whether it reads as a part of a date or a time that has so many digits.
        func isPart(_ lengths: ClosedRange<Int>, _ values: ClosedRange<Int>) -> Bool {
            lengths.contains(digits.utf8.count) && values.contains(value)
        }

        var isYear: Bool { isPart(4...4, 1900...2099) }

        /// Digits of a number whose country code a `+` announces.
        func isBehindPlus(isFirst: Bool) -> Bool {
            (isFirst ? gap[...].trimmed : gap[...]).last == "+"
        }
    }

    /// Groups of digits that one reader would dial in a row.
    private struct Run {
        var groups: [Group]
        /// The text behind the last group, up to the next digit.
        var tail = ""
    }

    private let runs: [Run]

    init(_ text: String) {
        guard TextFolding.folded(text).count(where: Self.isDigit) >= Self.digitCountMin else {
            runs = []
            return
        }
        var runs: [Run] = []
        var gap = Gap()
        var wasDigit = false
        for scalar in text.unicodeScalars {
            let isCased = scalar.properties.generalCategory.isCased
            let forms = TextFolding.folded(scalar)
            if !(forms.first.map(Self.isDigit) ?? false) { gap.show(scalar) }
            for folded in forms {
                guard Self.isDigit(folded) else {
                    if wasDigit, isCased {
                        let last = runs[runs.count - 1].groups.count - 1
                        runs[runs.count - 1].groups[last].isInWord = true
                    }
                    gap.add(folded, of: scalar)
                    wasDigit = false
                    continue
                }
                if wasDigit {
                    let last = runs[runs.count - 1].groups.count - 1
                    runs[runs.count - 1].groups[last].digits.unicodeScalars.append(folded)
                } else {
                    let group = Group(gap: gap.text, digits: String(folded), isInWord: gap.endsInWord)
                    if runs.isEmpty || !gap.separates {
                        if !runs.isEmpty { runs[runs.count - 1].tail = gap.text }
                        runs.append(Run(groups: []))
                    }
                    runs[runs.count - 1].groups.append(group)
                }
                (gap, wasDigit) = (Gap(), true)
            }
        }
        if !runs.isEmpty { runs[runs.count - 1].tail = gap.text }
        self.runs = runs
    }

    /// What stands between two groups of digits.
    private struct Gap {
        /// Folded.
        private(set) var text = ""
        /// As a reader has it before them: a family of four is one character.
        private var shown = ""
        private(set) var endsInWord = false
        private var letter: Unicode.Scalar?
        private var hasWord = false

        mutating func show(_ scalar: Unicode.Scalar) { shown.unicodeScalars.append(scalar) }

        mutating func add(_ folded: Unicode.Scalar, of scalar: Unicode.Scalar) {
            let category = scalar.properties.generalCategory
            text.unicodeScalars.append(folded)
            endsInWord = category.isCased
            guard category.isLetter else { return }
            let isWord = category.isCased || letter.map { $0 != scalar } ?? false || Self.isWord(scalar)
            hasWord = hasWord || isWord
            letter = scalar
        }

        /// Whether digits on both sides of it read as one number.
        var separates: Bool {
            // `1000 و 2000`: a word of one letter in scripts that write `and` so.
            if let letter, letter.isRightToLeft, text.first == " ", text.last == " " { return false }
            return !hasWord && shown.count(where: { !$0.isWhitespace }) <= NumberSearch.gapMax
        }

        /// A syllable, or a power of ten that amounts are written with (`1200万5000`).
        private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
            (0xAC00...0xD7A3).contains(scalar.value)
                || scalar.properties.numericValue.map { $0 >= 10_000 } ?? false
        }
    }

    var findsNumber: Bool { runs.contains { Self.digitCount(of: $0) >= Self.digitCountMin } }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    // MARK: What is no telephone number

    /// The kind of thing that some groups of a run are.
    private enum Reading {
        /// A date with its year.
        case date
        case time
        case year
        /// A day and a month, and a date with a year of two digits: nothing but before a time.
        case shortDate
        /// An amount that its decimals or its currency show.
        case sureAmount
        /// Round thousands, or a short decimal fraction: an amount alone and beside other amounts.
        case roundAmount
        /// An amount by the groups of its digits alone, and only where nothing stands beside it.
        case loneAmount
        case number

        var isCalendar: Bool {
            switch self {
            case .date, .time, .year, .shortDate: true
            default: false
            }
        }

        var isAmount: Bool {
            switch self {
            case .sureAmount, .roundAmount, .loneAmount: true
            default: false
            }
        }
    }

    private struct Part {
        var reading: Reading
        var first: Group
        var digitCount: Int
        /// The text before it.
        var gap: String { first.gap }
    }

    /// Digits of a run that belong to no date, time or amount.
    private static func digitCount(of run: Run) -> Int {
        let groups = run.groups
        if groups.count == 1, groups[0].isInWord, groups[0].digits.utf8.count <= modelDigitCountMax {
            return 0
        }
        let allCount = groups.reduce(0) { $0 + $1.digits.utf8.count }
        guard allCount >= digitCountMin else { return allCount }
        if groups.indices.contains(where: { groups[$0].isBehindPlus(isFirst: $0 == 0) }) { return allCount }
        var (count, beside): (Int, [Part]) = (0, [])
        for part in parts(of: run) {
            if let before = beside.last, isSetOff(before, part) {
                count += digitCount(of: beside)
                beside = []
            }
            beside.append(part)
        }
        return count + digitCount(of: beside)
    }

    private static func parts(of run: Run) -> [Part] {
        var (parts, rest): ([Part], ArraySlice<Group>) = ([], run.groups[...])
        while let first = rest.first {
            let (reading, length) = reading(of: rest, in: run)
            let digitCount = rest.prefix(length).reduce(0) { $0 + $1.digits.utf8.count }
            parts.append(Part(reading: reading, first: first, digitCount: digitCount))
            rest = rest.dropFirst(length)
        }
        return parts
    }

    /// Whether a date or a time stands apart from what is beside it: `iOS 18.1, 2026-03-02`. A blank alone sets nothing off.
    private static func isSetOff(_ before: Part, _ part: Part) -> Bool {
        [before.reading, part.reading].contains { $0 == .date || $0 == .time }
            && part.gap.contains(" ") && part.gap.contains { ",;()".contains($0) }
    }

    /// Digits of parts that stand beside each other: none where each is read beside the one before it, and else all of them.
    private static func digitCount(of parts: [Part]) -> Int {
        let isRead =
            parts.allSatisfy { $0.reading != .number }
            && zip(parts, parts.dropFirst()).allSatisfy { stand(beside: $0, $1) }
        return isRead ? 0 : parts.reduce(0) { $0 + $1.digitCount }
    }

    /// Whether two readings are written one behind the other.
    private static func stand(beside before: Part, _ part: Part) -> Bool {
        let isJoined = part.gap[...].trimmed.isEmpty || [".", ",", "'", "\u{2019}"].contains(part.gap)
        switch (before.reading, part.reading) {
        case (.date, .time), (.time, .date), (.year, .time), (.shortDate, .time): return true
        // `2025/2026`, and no `2019 2020`.
        case (.year, .year): return !isJoined && before.first.value < part.first.value
        case (.date, .date), (.time, .time): return !isJoined
        case (.shortDate, _), (_, .shortDate), (.loneAmount, _), (_, .loneAmount): return false
        case (.sureAmount, _) where part.reading.isCalendar: return true
        case (_, .sureAmount) where before.reading.isCalendar: return true
        default: return before.reading.isAmount && part.reading.isAmount && !isJoined
        }
    }

    /// - Returns: The reading of the beginning of some groups of a run, and how many of them it has.
    private static func reading(of groups: ArraySlice<Group>, in run: Run) -> (Reading, length: Int) {
        let date = dateLength(groups)
        if date > 0 { return (.date, date) }
        let time = timeLength(groups)
        if time > 0 { return (.time, time) }
        if let amount = amount(groups, in: run) { return amount }
        let short = shortDateLength(groups)
        if short > 0 { return (.shortDate, short) }
        return (groups.first?.isYear ?? false ? .year : .number, 1)
    }

    /// `12.11.2026`, `12. 11. 2026`, `11/12/2026`, `2026-11-12` and `2026年11月12日`, and with the day or the day and the month
    /// that a range begins with: `1.–30.11.2026`, `1.10.–30.11.2026`.
    private static func dateLength(_ groups: ArraySlice<Group>) -> Int {
        let alone = oneDateLength(groups)
        guard alone == 0 else { return alone }
        for count in 1...2 {
            let (days, rest) = (groups.prefix(count), groups.dropFirst(count))
            guard days.allSatisfy({ $0.isPart(1...2, 1...31) }), let end = rest.first,
                end.digits.utf8.count <= 2,
                count == 1 || days.last.map({ [".", "/", ". "].contains($0.gap) }) ?? false,
                end.gap.contains("-"), end.gap.allSatisfy({ "-. ".contains($0) }),
                end.gap != "-" || count == 2
                    || rest.dropFirst().first?.gap != "-"
            else { continue }
            let length = oneDateLength(rest)
            if length > 0 { return count + length }
        }
        return 0
    }

    private static func oneDateLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(4))
        guard parts.count >= 3 else { return 0 }
        if parts[1].gap == "年", parts[2].gap == "月" {
            let isDate = parts[0].isYear && parts[1].isPart(1...2, 1...12) && parts[2].isPart(1...2, 1...31)
            return isDate ? 3 : 0
        }
        guard parts[1].gap == parts[2].gap, [".", "-", "/", ". "].contains(parts[1].gap) else { return 0 }
        // `2.3.2026.9999` is no date.
        if parts.count > 3, parts[3].gap == parts[1].gap { return 0 }
        let isDate =
            parts[2].isYear && parts[0].isPart(1...2, 1...31) && parts[1].isPart(1...2, 1...31)
            || parts[0].isYear && parts[1].isPart(2...2, 1...12) && parts[2].isPart(2...2, 1...31)
        return isDate ? 3 : 0
    }

    /// `12.11.26` and `12/11`.
    private static func shortDateLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(4))
        guard parts.count >= 2, parts[0].isPart(1...2, 1...31), parts[1].isPart(1...2, 1...31),
            [".", "-", "/"].contains(parts[1].gap)
        else { return 0 }
        let hasYear = parts.count > 2 && parts[2].gap == parts[1].gap && parts[2].isPart(2...2, 0...99)
        let length = hasYear ? 3 : 2
        return length < parts.count && parts[length].gap == parts[1].gap ? 0 : length
    }

    /// `8:15`, `08:15:30` and `8時15分`.
    private static func timeLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(4))
        guard parts.count >= 2, [":", "時", "时"].contains(parts[1].gap), parts[0].isPart(1...2, 0...23),
            parts[1].isPart(2...2, 0...59)
        else { return 0 }
        let length =
            parts.count > 2 && parts[1].gap == ":" && parts[2].gap == ":" && parts[2].isPart(2...2, 0...60)
            ? 3 : 2
        // `22:34:56:78` is no time.
        return length < parts.count && parts[length].gap == parts[1].gap ? 0 : length
    }

    // MARK: Amounts

    /// `1.234.567`, `12,345,678.90`, `1 234 567`, `100 000 000`, `kr 90.000.101` and `0.000012345`: one to three digits, groups of
    /// three with one separator, and decimals behind the other one.
    ///
    /// So are telephone numbers grouped too (`90.000.101`, `1 800 123 456`), but for those of seven digits. So an amount of more
    /// digits has decimals, round thousands or a currency.
    private static func amount(
        _ groups: ArraySlice<Group>, in run: Run
    ) -> (reading: Reading, length: Int)? {
        let all = Array(groups)
        if all.count >= 2, all[0].digits == "0", [".", ","].contains(all[1].gap) {
            let fraction = all[1].digits
            if fraction.hasPrefix("0") || hasCurrency(groups.prefix(2), in: run) { return (.sureAmount, 2) }
            return fraction.utf8.count <= shortFractionMax ? (.roundAmount, 2) : nil
        }
        guard !all[0].digits.hasPrefix("0"), all[0].digits.utf8.count < digitCountMin else { return nil }
        var length = 1
        if all.count >= 2, all[0].digits.utf8.count <= 3,
            [".", ",", " ", "'", "\u{2019}"].contains(all[1].gap)
        {
            length += all.dropFirst().prefix { $0.gap == all[1].gap && $0.digits.utf8.count == 3 }.count
        }
        let thousands = all[1..<length]
        if length < all.count, [".", ","].contains(all[length].gap),
            length == 1 || all[length].gap != all[1].gap
        {
            let digitCount = all[length].digits.utf8.count
            let isDecimals = ISOCodes.fractionDigitCounts.values.contains { $0 == digitCount }
            if isDecimals, hasCurrency(groups.prefix(length + 1), in: run) {
                return (.sureAmount, length + 1)
            }
            if !thousands.isEmpty, digitCount == 2 { return (.sureAmount, length + 1) }
        }
        if hasCurrency(groups.prefix(length), in: run) { return (.sureAmount, length) }
        guard !thousands.isEmpty else { return nil }
        if thousands.allSatisfy({ $0.digits == "000" }) { return (.roundAmount, length) }
        let digitCount = all[0].digits.utf8.count + 3 * thousands.count
        return digitCount <= digitCountMin ? (.loneAmount, length) : nil
    }

    /// Digits behind `0.` that are an amount whatever they are.
    private static let shortFractionMax = 4

    /// Whether a currency stands right before or behind some groups of a run.
    private static func hasCurrency(_ groups: ArraySlice<Group>, in run: Run) -> Bool {
        guard let first = groups.first else { return false }
        if groups.startIndex == 0 {
            let before = first.gap[...].trimmed(where: { "-. (:".contains($0) })
            if before.last.map(isCurrencySign) ?? false { return true }
            if isCurrencyWord(
                before.suffix(
                    from: before.lastIndex { !$0.isLetter }.map(before.index(after:)) ?? before.startIndex))
            {
                return true
            }
        } else if isCurrencyOf(next: true, first.gap) {
            return true
        }
        guard groups.endIndex == run.groups.endIndex else {
            return isCurrencyOf(next: false, run.groups[groups.endIndex].gap)
        }
        let behind = run.tail.drop { $0 == " " }
        return behind.first.map(isCurrencySign) ?? false || isCurrencyWord(behind.prefix(while: \.isLetter))
    }

    /// Whether a gap between two groups has one sign of a currency that belongs to the next one (`, €`) or the one before
    /// (`€, `). One between both (`22€34`, `22 € 34`) separates digits as any other sign does.
    private static func isCurrencyOf(next: Bool, _ gap: String) -> Bool {
        guard gap.filter(isCurrencySign).count == 1, gap.count > 1 else { return false }
        let (before, behind) = (
            gap.prefix { !isCurrencySign($0) }, gap.drop { !isCurrencySign($0) }.dropFirst()
        )
        return next ? behind.isEmpty : !behind.isEmpty && (before.isEmpty || before == " " && behind != " ")
    }

    private static func isCurrencySign(_ character: Character) -> Bool { character.isCurrencySymbol }

    /// A code of ISO 4217, or a mark that amounts are written with. The codes that are English words in a text (`TRY 90.000.101`)
    /// show no amount.
    private static func isCurrencyWord(_ word: some StringProtocol) -> Bool {
        let word = String(word)
        return currencyMarks.contains(word.lowercased())
            || ISOCodes.fractionDigitCounts[word] != nil && !["ALL", "TOP", "TRY"].contains(word)
    }

    private static let currencyMarks: Set<String> = ["kr", "zł", "km"]
}

extension Substring {
    fileprivate var trimmed: Substring { trimmed { $0 == " " } }

    /// Without such characters at its end.
    fileprivate func trimmed(where isDropped: (Character) -> Bool) -> Substring {
        lastIndex { !isDropped($0) }.map { self[...$0] } ?? self[startIndex..<startIndex]
    }
}

extension Unicode.GeneralCategory {
    fileprivate var isCased: Bool {
        switch self {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter: true
        default: false
        }
    }

    fileprivate var isLetter: Bool {
        switch self {
        case .modifierLetter, .otherLetter: true
        default: isCased
        }
    }
}
