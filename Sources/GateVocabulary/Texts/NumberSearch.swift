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
/// writer takes for a dot or a dash (`22ㆍ34ㆍ56ㆍ78`, `22ー34`), and separates digits as any other sign does. A letter that
/// reads as a digit is one (``dial(_:of:)``).
///
/// Up to ``modelDigitCountMax`` digits in one word with a few capitals are a model or a reference (`2201116SG`, `AB12345678`),
/// and found only where there are more, or where the text asks for a call: who is told of a login must be told on which device.
///
/// Numbers of six digits and fewer, which an operator assigns, are found behind a word of calling (``NumberWords/calling``)
/// and a country code. Numbers in words are not found.
struct NumberSearch {
    static let digitCountMin = 7
    private static let gapMax = 3
    /// Digits that a word of calling makes a number: 112.
    static let calledDigitCountMin = 3
    private static let modelDigitCountMax = 8
    private static let modelLetterCountMax = 3

    /// Digits, and what stands between them and the digits before.
    private struct Group {
        var gap: String
        /// Whether the letters of the gap are ASCII in the text itself.
        var isGapPlain: Bool
        var digits: String
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
        var isTailPlain = true

        mutating func end(with gap: Gap) { (tail, isTailPlain) = (gap.text, gap.isPlain) }
    }

    private let runs: [Run]
    /// Whether the text asks its reader to call.
    private let asks: Bool

    init(_ text: String) {
        guard Self.mayHaveNumber(text) else {
            (runs, asks) = ([], false)
            return
        }
        var signs = Self.signs(text)
        let words = Self.words(signs)
        Self.dial(words, of: &signs)
        let digitCount = signs.count(where: \.isDigit)
        guard
            digitCount >= Self.digitCountMin
                || digitCount >= Self.calledDigitCountMin
                    && (signs.contains { $0.folded == "+" }
                        || words.contains { $0.isUnspaced || NumberWords.callingHashes.contains($0.hash) })
        else {
            (runs, asks) = ([], false)
            return
        }
        asks = words.contains { NumberWords.askingHashes.contains($0.hash) }
        var runs: [Run] = []
        var gap = Gap()
        var wasDigit = false
        for sign in signs {
            if sign.isFirst, !sign.isDigit { gap.show(sign.scalar) }
            guard let folded = sign.folded else { continue }
            guard sign.isDigit else {
                gap.add(folded, of: sign.scalar)
                wasDigit = false
                continue
            }
            if wasDigit {
                let last = runs[runs.count - 1].groups.count - 1
                runs[runs.count - 1].groups[last].digits.unicodeScalars.append(folded)
            } else {
                let group = Group(gap: gap.text, isGapPlain: gap.isPlain, digits: String(folded))
                if runs.isEmpty || !gap.separates {
                    if !runs.isEmpty { runs[runs.count - 1].end(with: gap) }
                    runs.append(Run(groups: []))
                }
                runs[runs.count - 1].groups.append(group)
            }
            (gap, wasDigit) = (Gap(), true)
        }
        if !runs.isEmpty { runs[runs.count - 1].end(with: gap) }
        self.runs = runs
    }

    // MARK: What is read as a digit

    /// Whether a text has enough that could be read as digits; of a text beyond ASCII whether it has one.
    private static func mayHaveNumber(_ text: String) -> Bool {
        var (digitCount, lookalikeCount, isASCII) = (0, 0, true)
        var (wasDigit, wasLookalike, areBeside) = (false, false, false)
        for byte in text.utf8 {
            let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            var isLookalike = false
            switch byte {
            case UInt8(ascii: "O"), UInt8(ascii: "o"), UInt8(ascii: "I"), UInt8(ascii: "l"):
                isLookalike = true
            case 0x80...: isASCII = false
            default: break
            }
            digitCount += isDigit ? 1 : 0
            lookalikeCount += isLookalike ? 1 : 0
            areBeside = areBeside || isDigit && wasLookalike || isLookalike && wasDigit
            (wasDigit, wasLookalike) = (isDigit, isLookalike)
        }
        guard isASCII else {
            return digitCount > 0
                || text.unicodeScalars.contains { TextFolding.folded($0).contains(where: isDigit) }
        }
        return digitCount >= calledDigitCountMin
            || digitCount > 0
                && digitCount + lookalikeCount >= (areBeside ? calledDigitCountMin : digitCountMin)
    }

    /// A character of the text, or one of those that its form has.
    private struct Sign {
        var scalar: Unicode.Scalar
        /// `nil` for a mark or a joiner.
        var folded: Unicode.Scalar?
        /// Whether it is the first one of its character's form.
        var isFirst: Bool

        var isDigit: Bool { folded.map(NumberSearch.isDigit) ?? false }
    }

    private static func signs(_ text: String) -> [Sign] {
        var signs: [Sign] = []
        signs.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if scalar.isASCII {
                signs.append(Sign(scalar: scalar, folded: scalar, isFirst: true))
                continue
            }
            let forms = TextFolding.folded(scalar)
            if forms.isEmpty { signs.append(Sign(scalar: scalar, folded: nil, isFirst: true)) }
            for (place, folded) in forms.enumerated() {
                signs.append(Sign(scalar: scalar, folded: folded, isFirst: place == 0))
            }
        }
        return signs
    }

    /// Letters, or digits, with nothing between them.
    private struct Word {
        var range: Range<Int>
        var isDigits: Bool
        /// Whether nothing parts it from the word before it.
        var isStuck: Bool
        /// Of its letters (``NumberWords/hash(_:_:)``).
        var hash: UInt64 = 0
        /// Whether each of its letters reads as a digit.
        var isLookalike = true
        /// Whether it begins in a script that may have no blanks.
        var isUnspaced = false
    }

    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.isASCII else { return scalar.properties.isAlphabetic }
        return ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
    }

    private static func words(_ signs: [Sign]) -> [Word] {
        var words: [Word] = []
        var isOpen = false
        for (index, sign) in signs.enumerated() {
            guard let folded = sign.folded else { continue }
            let isDigit = isDigit(folded)
            guard isDigit || isLetter(folded) else {
                isOpen = false
                continue
            }
            if !isOpen || words[words.count - 1].isDigits != isDigit {
                words.append(Word(range: index..<index, isDigits: isDigit, isStuck: isOpen))
                // Thai and everything behind it in the order of Unicode's blocks, roughly.
                words[words.count - 1].isUnspaced = folded.value >= 0x0E00
                isOpen = true
            }
            let last = words.count - 1
            words[last].range = words[last].range.lowerBound..<(index + 1)
            if !isDigit {
                words[last].hash = NumberWords.hash(words[last].hash, folded)
                words[last].isLookalike = words[last].isLookalike && lookalike(folded) != nil
            }
        }
        return words
    }

    /// The digit that a letter is confused with (UTS 39).
    private static func lookalike(_ letter: Unicode.Scalar) -> Unicode.Scalar? {
        switch letter {
        case "O", "o", "\u{39F}", "\u{3BF}", "\u{41E}", "\u{43E}", "\u{555}", "\u{585}": "0"
        case "I", "l", "\u{399}", "\u{406}", "\u{4C0}": "1"
        default: nil
        }
    }

    /// Prefixes behind which a number is written as a word, in North America and where a toll-free number begins with 0.
    private static let spelledPrefixes: Set<String> = [
        "800", "822", "833", "844", "855", "866", "877", "888", "900", "0800", "0808", "0900", "00800",
        "1800",
        "1300",
    ]

    /// Reads as digits what its reader would dial so: `9OOO OOOO` and `22O33O44O55`, and the letters of `1-800-FLOWERS` as a
    /// telephone's keys have them (ITU-T E.161).
    private static func dial(_ words: [Word], of signs: inout [Sign]) {
        func read(_ range: Range<Int>, as digit: (Unicode.Scalar) -> Unicode.Scalar) {
            for index in range where signs[index].folded != nil && !signs[index].isDigit {
                let digit = digit(signs[index].folded!)
                signs[index] = Sign(scalar: digit, folded: digit, isFirst: signs[index].isFirst)
            }
        }
        var (start, wasDialled) = (0, false)
        let hasLookalike = words.contains { !$0.isDigits && $0.isLookalike }
        while hasLookalike, start < words.count {
            let end = words[(start + 1)...].firstIndex { !$0.isStuck } ?? words.count
            let word = words[start..<end]
            let range = words[start].range.lowerBound..<words[end - 1].range.upperBound
            var isDialled = word.contains { $0.isDigits } && word.allSatisfy(\.isLookalike)
            if !isDialled, word.count == 1, range.count >= 2,
                wasDialled || end < words.count && words[end].isDigits
            {
                isDialled = signs[range].allSatisfy { $0.folded == "O" || $0.folded == "o" }
            }
            if isDialled { read(range) { lookalike($0) ?? $0 } }
            (start, wasDialled) = (end, isDialled)
        }
        for (place, word) in words.enumerated() where word.isDigits && word.range.count <= 5 {
            var (end, letterCount) = (place + 1, 0)
            while end < words.count, !words[end].isDigits,
                words[end].range.lowerBound <= words[end - 1].range.upperBound + 1
            {
                letterCount += words[end].range.count
                end += 1
            }
            guard letterCount >= digitCountMin else { continue }
            let text = String(String.UnicodeScalarView(signs[word.range].compactMap(\.folded)))
            guard spelledPrefixes.contains(text) else { continue }
            let spelled = word.range.upperBound..<words[end - 1].range.upperBound
            // `800 members`, and no `1-800-flowers` or `0800-flowers`.
            let isAnnounced =
                !signs[spelled].contains { $0.folded == " " }
                && (text.hasPrefix("0")
                    || place > 0 && words[place - 1].isDigits && words[place - 1].range.count == 1
                        && signs[words[place - 1].range.lowerBound].folded == "1"
                        && words[place - 1].range.upperBound + 1 == word.range.lowerBound)
            let isInCapitals = !signs[spelled].contains { $0.folded?.properties.isLowercase ?? false }
            guard isAnnounced || isInCapitals else { continue }
            for letters in words[(place + 1)..<end] { read(letters.range) { _ in "2" } }
        }
    }

    /// What stands between two groups of digits.
    private struct Gap {
        /// Folded.
        private(set) var text = ""
        /// As a reader has it before them: a family of four is one character.
        private var shown = ""
        private var letter: Unicode.Scalar?
        private var hasWord = false
        /// Whether no sign became a letter of ASCII by being folded, as `Ⅳ` does.
        private(set) var isPlain = true

        mutating func show(_ scalar: Unicode.Scalar) { shown.unicodeScalars.append(scalar) }

        mutating func add(_ folded: Unicode.Scalar, of scalar: Unicode.Scalar) {
            let category = scalar.properties.generalCategory
            text.unicodeScalars.append(folded)
            if folded != scalar, NumberSearch.isLetter(folded) { isPlain = false }
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

    var findsNumber: Bool {
        runs.contains { run in
            if isModel(run) { return false }
            return Self.digitCount(of: run) >= Self.digitCountMin || Self.isShortNumber(run)
        }
    }

    /// Whether a run is a part of one word with few letters, all of them capitals, or stuck to a word for a reference.
    private func isModel(_ run: Run) -> Bool {
        guard run.groups.count == 1, run.groups[0].digits.utf8.count <= Self.modelDigitCountMax, !asks else {
            return false
        }
        let before = run.groups[0].gap.lastWord(isDirect: true)
        let letters = before + run.tail.prefix(while: \.isLetter)
        guard !letters.isEmpty, !NumberWords.calling.contains(NumberWords.spelled(before)) else {
            return false
        }
        return letters.count <= Self.modelLetterCountMax && run.groups[0].isGapPlain && run.isTailPlain
            && letters.allSatisfy { $0.isASCII && $0.isUppercase }
            || NumberWords.reference.contains(NumberWords.spelled(before)) && letters.count == before.count
    }

    // MARK: Short numbers

    /// Whether a run has fewer digits than a subscriber's number, and a word of calling or a country code says what they are.
    private static func isShortNumber(_ run: Run) -> Bool {
        if isBehindCountryCode(run) { return true }
        guard isCalled(run.groups[0].gap) else { return false }
        let count = parts(of: run).reduce(0) { count, part in
            switch part.reading {
            case .date, .time, .sureAmount, .version: count
            // `ring 24/7`.
            case .shortDate where part.digitCount == 4 || part.first.digits == "24": count
            default: count + part.digitCount
            }
        }
        return count >= calledDigitCountMin
    }

    /// Whether words lead from a word of calling to the end of a gap: `Ring oss på`.
    private static func isCalled(_ gap: String) -> Bool {
        var rest = gap[...]
        for _ in 0...betweenCountMax {
            let word = rest.lastWord(isDirect: false)
            guard let first = word.first else { return false }
            let spelled = NumberWords.spelled(word)
            if NumberWords.calling.contains(spelled)
                || !first.isASCII && NumberWords.unspaced.contains(where: word.hasSuffix)
            {
                return true
            }
            guard NumberWords.between.contains(spelled) else { return false }
            rest = rest[..<word.startIndex]
        }
        return false
    }

    /// Words between a word of calling and its digits: `Call us now on`.
    private static let betweenCountMax = 3

    /// Whether a run is a country code behind a `+` and at least three digits: `+45 112`, `+45(112)`. A code of one digit before them
    /// is the first digit of an amount (`+1 500`), and round thousands are one too.
    private static func isBehindCountryCode(_ run: Run) -> Bool {
        let (code, rest) = (run.groups[0], run.groups.dropFirst())
        guard code.isBehindPlus(isFirst: true), code.digits.utf8.count > 1, let next = rest.first,
            next.gap.allSatisfy({ " -()".contains($0) }), !(next.gap.contains(" ") && next.gap.contains("-")),
            NumberingPlan.of(code.digits.utf8.map { $0 - UInt8(ascii: "0") })?.code == code.digits
        else { return false }
        return rest.reduce(0) { $0 + $1.digits.utf8.count } >= calledDigitCountMin
            && !rest.allSatisfy { $0.digits == "000" } && !hasUnit(run.groups[...], in: run)
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    // MARK: What is no telephone number

    /// The kind of thing that some groups of a run are.
    private enum Reading {
        /// A date with its year.
        case date
        case time
        case year
        /// A day and a month, and a date with a year of two digits: before a time, and in a range.
        case shortDate
        /// An hour and its minutes with a full stop between: behind a date, and beside another one.
        case clock
        /// A month of a year: in a range.
        case month
        /// A reference with a year in it, behind a word for one.
        case reference
        /// Of a program, behind its name.
        case version
        /// An amount that its decimals or its currency show.
        case sureAmount
        /// Round thousands, or a short decimal fraction: an amount alone and beside other amounts.
        case roundAmount
        /// An amount by the groups of its digits alone, and only where nothing stands beside it.
        case loneAmount
        case number

        var isCalendar: Bool {
            switch self {
            case .date, .time, .year, .shortDate, .clock, .month: true
            default: false
            }
        }

        /// Whether a comma or a bracket sets it off.
        var standsApart: Bool {
            switch self {
            case .date, .time, .reference, .version: true
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
        var groups: ArraySlice<Group>
        var first: Group { groups[groups.startIndex] }
        var digitCount: Int { groups.reduce(0) { $0 + $1.digits.utf8.count } }
        /// The text before it.
        var gap: String { first.gap }

        /// Whether it may be an hour and its minutes: `12.30` is a day and a month as well.
        var isClock: Bool {
            let parts = Array(groups)
            return (reading == .clock || reading == .shortDate) && parts.count == 2 && parts[1].gap == "."
                && parts[0].isPart(1...2, 0...24) && parts[1].isPart(2...2, 0...59)
        }

        /// Whether opening hours have it, whose minutes are not odd.
        var isRoundClock: Bool { isClock && groups[groups.endIndex - 1].value % 5 == 0 }

        /// Comparable among months, and among days of one year.
        var order: [Int] {
            let values = groups.map(\.value)
            return reading == .month && first.isYear || first.gap.contains("/") ? values : values.reversed()
        }
    }

    /// Digits of a run that belong to no date, time or amount.
    private static func digitCount(of run: Run) -> Int {
        let groups = run.groups
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
        while !rest.isEmpty {
            let (reading, length) = reading(of: rest, in: run)
            parts.append(Part(reading: reading, groups: rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return parts
    }

    /// Whether a date or a time stands apart from what is beside it: `iOS 18.1, 2026-03-02`. A blank alone sets nothing off.
    private static func isSetOff(_ before: Part, _ part: Part) -> Bool {
        (before.reading.standsApart || part.reading.standsApart)
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
        let isRange = part.gap.contains("-") && part.gap.allSatisfy { "-. ".contains($0) }
        if part.isClock,
            before.reading == .date && !part.gap.contains(".")
                || before.reading == .shortDate && part.gap == ". "
        {
            return true
        }
        if before.isRoundClock, part.isRoundClock, part.gap.contains(where: { "-,/(".contains($0) }) {
            return true
        }
        switch (before.reading, part.reading) {
        case (.month, .month), (.shortDate, .shortDate):
            return isRange && before.order.lexicographicallyPrecedes(part.order)
        case (.month, _), (_, .month), (.clock, _), (_, .clock): return false
        case (.reference, _), (.version, _):
            return !isJoined && (part.reading.isCalendar || part.reading == .sureAmount)
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
        if groups.startIndex == 0, let named = named(groups) { return named }
        let date = dateLength(groups)
        if date > 0 { return (.date, date) }
        let prices = priceListLength(groups, in: run)
        if prices > 0 { return (.sureAmount, prices) }
        let time = timeLength(groups)
        if time > 0 { return (.time, time) }
        if let amount = amount(groups, in: run) { return amount }
        let short = shortDateLength(groups)
        if short > 0 { return (.shortDate, short) }
        if monthLength(groups) > 0 { return (.month, 2) }
        if clockLength(groups) > 0 { return (.clock, 2) }
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

    /// `8.15`.
    private static func clockLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count >= 2, parts[1].gap == ".", parts[0].isPart(1...2, 0...24),
            parts[1].isPart(2...2, 0...59)
        else { return 0 }
        return parts.count > 2 && parts[2].gap == "." ? 0 : 2
    }

    /// `03/2026` and `2026-03`.
    private static func monthLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count >= 2, [".", "-", "/"].contains(parts[1].gap) else { return 0 }
        let isMonth =
            parts[0].isYear && parts[1].isPart(2...2, 1...12)
            || parts[0].isPart(1...2, 1...12) && parts[1].isYear
        return isMonth ? 2 : 0
    }

    // MARK: What a word says of its digits

    /// A reference with a year in it (`Faktura 2026-00123`, `FV/123/04/2026`), or a version (`Chrome 131.0.6778.86`), at the
    /// beginning of a run.
    private static func named(_ groups: ArraySlice<Group>) -> (Reading, length: Int)? {
        let all = Array(groups)
        guard all.count >= 2 else { return nil }
        func isOf(_ words: Set<String>) -> Bool {
            words.contains(NumberWords.spelled(all[0].gap.lastWord(isDirect: false)))
        }
        let length = 1 + all.dropFirst().prefix { $0.gap == all[1].gap }.count
        let parts = all.prefix(length)
        if all[1].gap == ".", isOf(NumberWords.versioned) {
            let isVersion = parts.allSatisfy {
                $0.digits.utf8.count <= 5 && ($0.digits == "0" || !$0.digits.hasPrefix("0"))
            }
            return isVersion ? (.version, length) : nil
        }
        guard ["-", "/"].contains(all[1].gap), (2...3).contains(length),
            parts.allSatisfy({ $0.digits.utf8.count <= 6 }),
            [parts[0], parts[length - 1]].contains(where: \.isYear)
        else { return nil }
        return isOf(NumberWords.reference) || isBehindInitials(all[0].gap) ? (.reference, length) : nil
    }

    /// Whether a gap ends in a few capitals and a sign, as `INV-` and `FV/` do.
    private static func isBehindInitials(_ gap: String) -> Bool {
        guard gap.last == "-" || gap.last == "/" else { return false }
        let word = gap.dropLast().lastWord(isDirect: true)
        return (2...modelLetterCountMax + 1).contains(word.count)
            && word.allSatisfy { $0.isASCII && $0.isUppercase }
    }

    // MARK: Amounts

    /// Amounts one behind the other with one unit in front of them or behind them, each larger than the one before:
    /// `199/299/399 kr`, `1 499–1 999 kr`, `10,25–12,50 %`. Digits in pairs (`22/34/56/78 kr`) are how a number is written.
    private static func priceListLength(_ groups: ArraySlice<Group>, in run: Run) -> Int {
        func parts(_ group: Group) -> Bool { ["/", "-", " / ", " - "].contains(group.gap) }
        guard groups.dropFirst().contains(where: parts) else { return 0 }
        var (rest, length, last, count, arePairs, isShare) = (groups, 0, -1, 0, true, false)
        while let first = rest.first, first.digits.utf8.count < digitCountMin,
            !first.digits.hasPrefix("0") || first.digits == "0"
        {
            let figure = figure(rest)
            guard figure.value > last else { break }
            arePairs = arePairs && figure.length == 1 && first.digits.utf8.count == 2
            (length, last, count) = (length + figure.length, figure.value, count + 1)
            isShare = Self.isShare(rest.prefix(figure.length), in: run)
            rest = rest.dropFirst(figure.length)
            guard let next = rest.first, parts(next) else { break }
        }
        return count > 1 && !arePairs && (isShare || hasUnit(groups.prefix(length), in: run)) ? length : 0
    }

    /// Digits in the form of an amount, and their value in hundredths.
    private static func figure(_ groups: ArraySlice<Group>) -> (length: Int, value: Int) {
        let all = Array(groups)
        var length = 1 + thousandsCount(all)
        var value = Int(all[..<length].map(\.digits).joined().prefix(15)) ?? 0
        value *= 100
        if length < all.count, [".", ","].contains(all[length].gap),
            length == 1 || all[length].gap != all[1].gap,
            all[length].digits.utf8.count <= 2
        {
            value += all[length].value * (all[length].digits.utf8.count == 1 ? 10 : 1)
            length += 1
        }
        return (length, value)
    }

    /// Groups of thousands behind the first one, with one separator: three digits each, and in India two in each but the last
    /// (`12,34,567`).
    private static func thousandsCount(_ all: [Group]) -> Int {
        guard all.count >= 2, all[0].digits.utf8.count <= 3,
            [".", ",", " ", "'", "\u{2019}"].contains(all[1].gap)
        else { return 0 }
        let separated = all.dropFirst().prefix { $0.gap == all[1].gap }
        let threes = separated.prefix { $0.digits.utf8.count == 3 }.count
        guard threes == 0, all[1].gap == ",", all[0].digits.utf8.count <= 2 else { return threes }
        let twos = separated.prefix { $0.digits.utf8.count == 2 }.count
        return separated.dropFirst(twos).first?.digits.utf8.count == 3 ? twos + 1 : 0
    }

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
            if fraction.hasPrefix("0") || hasUnit(groups.prefix(2), in: run) { return (.sureAmount, 2) }
            return fraction.utf8.count <= shortFractionMax ? (.roundAmount, 2) : nil
        }
        guard !all[0].digits.hasPrefix("0"), all[0].digits.utf8.count < digitCountMin else { return nil }
        let length = 1 + thousandsCount(all)
        let thousands = all[1..<length]
        if length < all.count, [".", ","].contains(all[length].gap),
            length == 1 || all[length].gap != all[1].gap
        {
            let digitCount = all[length].digits.utf8.count
            let isDecimals = digitCount <= 4
            if isDecimals, hasUnit(groups.prefix(length + 1), in: run) {
                return (.sureAmount, length + 1)
            }
            if !thousands.isEmpty, digitCount == 2 { return (.sureAmount, length + 1) }
        }
        if hasUnit(groups.prefix(length), in: run) { return (.sureAmount, length) }
        guard !thousands.isEmpty else { return nil }
        if thousands.allSatisfy({ $0.digits == "000" }) { return (.roundAmount, length) }
        let digitCount = all[0].digits.utf8.count + 3 * thousands.count
        return digitCount <= digitCountMin ? (.loneAmount, length) : nil
    }

    /// Digits behind `0.` that are an amount whatever they are.
    private static let shortFractionMax = 4

    /// Whether a currency stands right before or behind some groups of a run, or a percent sign behind a figure of at most three
    /// digits before its decimals.
    private static func hasUnit(_ groups: ArraySlice<Group>, in run: Run) -> Bool {
        guard let first = groups.first else { return false }
        if isShare(groups, in: run) { return true }
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

    /// Whether a percent or per mille sign stands behind some groups. One between two groups, with blanks only (`22 % 34 %`),
    /// separates digits as any other sign does.
    private static func isShare(_ groups: ArraySlice<Group>, in run: Run) -> Bool {
        guard groups.count <= 2, groups.allSatisfy({ $0.digits.utf8.count <= 3 }),
            groups.dropFirst().allSatisfy({ $0.gap == "." || $0.gap == "," })
        else { return false }
        let isLast = groups.endIndex == run.groups.endIndex
        let behind = (isLast ? run.tail : run.groups[groups.endIndex].gap).drop { $0 == " " }
        guard behind.first == "%" || behind.first == "\u{2030}" else { return false }
        return isLast || behind.dropFirst().contains { $0 != " " }
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

    private static let currencyMarks = Set(
        ISOCodes.currencySymbols.values.map { $0.text.lowercased() }.filter { $0.allSatisfy(\.isLetter) })
}

extension StringProtocol where SubSequence == Substring {
    /// Its last letters.
    ///
    /// - Parameter isDirect: Whether they have to be at its end; else digits and signs may follow.
    fileprivate func lastWord(isDirect: Bool) -> Substring {
        guard let last = lastIndex(where: \.isLetter) else { return self[endIndex...] }
        let end = index(after: last)
        if isDirect, end != endIndex { return self[endIndex...] }
        return self[(self[..<end].lastIndex { !$0.isLetter }.map(index(after:)) ?? startIndex)..<end]
    }
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
