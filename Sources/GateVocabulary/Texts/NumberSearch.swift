/// Looks for numbers that a reader could be asked to call, which a thief answers (vishing).
///
/// ITU-T E.164 gives a number at most 15 digits and no national one fewer than seven; how its digits are grouped is every
/// country's own. So what counts is ``digitCountMin`` digits or more with no word and at most ``gapMax`` characters besides
/// blanks between two of them. Dates, times of day, years and amounts with their thousands apart are left out of the count.
/// Account and card numbers are found with them, which belong into no text either.
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
    }

    private let runs: [[Group]]

    init(_ text: String) {
        guard TextFolding.folded(text).count(where: Self.isDigit) >= Self.digitCountMin else {
            runs = []
            return
        }
        var runs: [[Group]] = []
        var gap = Gap()
        var wasDigit = false
        for scalar in text.unicodeScalars {
            let isCased = scalar.properties.generalCategory.isCased
            let forms = TextFolding.folded(scalar)
            if !(forms.first.map(Self.isDigit) ?? false) { gap.show(scalar) }
            for folded in forms {
                guard Self.isDigit(folded) else {
                    if wasDigit, isCased {
                        runs[runs.count - 1][runs[runs.count - 1].count - 1].isInWord = true
                    }
                    gap.add(folded, of: scalar)
                    wasDigit = false
                    continue
                }
                if wasDigit {
                    runs[runs.count - 1][runs[runs.count - 1].count - 1].digits.unicodeScalars.append(folded)
                } else {
                    let group = Group(gap: gap.text, digits: String(folded), isInWord: gap.endsInWord)
                    if runs.isEmpty || !gap.separates { runs.append([]) }
                    runs[runs.count - 1].append(group)
                }
                (gap, wasDigit) = (Gap(), true)
            }
        }
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

    /// Digits of a run that belong to no date, time or amount.
    private static func digitCount(of run: [Group]) -> Int {
        if run.count == 1, run[0].isInWord, run[0].digits.utf8.count <= modelDigitCountMax { return 0 }
        var (count, rest) = (0, run[...])
        while let first = rest.first {
            let read = max(dateLength(rest), timeLength(rest), amountLength(rest))
            if read == 0, !first.isYear { count += first.digits.utf8.count }
            rest = rest.dropFirst(max(read, 1))
        }
        return count
    }

    // MARK: What is no telephone number: how many groups of the beginning it has

    /// `12.11.2026`, `12. 11. 2026`, `11/12/2026`, `2026-11-12` and `2026年11月12日`.
    private static func dateLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        if parts.count == 3, parts[1].gap == "年", parts[2].gap == "月" {
            let isDate = parts[0].isYear && parts[1].isPart(1...2, 1...12) && parts[2].isPart(1...2, 1...31)
            return isDate ? 3 : 0
        }
        guard parts.count == 3, parts[1].gap == parts[2].gap,
            [".", "-", "/", ". "].contains(parts[1].gap)
        else { return 0 }
        let isDate =
            parts[2].isYear && parts[0].isPart(1...2, 1...31) && parts[1].isPart(1...2, 1...31)
            || parts[0].isYear && parts[1].isPart(2...2, 1...12) && parts[2].isPart(2...2, 1...31)
        return isDate ? 3 : 0
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

    /// `1.234.567`, `12,345,678.90`, `1 234 567`, `100 000 000` and `0.000012345`. Three groups of three are how Spain and Poland write a
    /// telephone number, so an amount has a short first group, or round thousands, or decimals.
    private static func amountLength(_ groups: ArraySlice<Group>) -> Int {
        let all = Array(groups)
        // Nothing follows a decimal fraction but another: `0.22 34 56 78` is no amount.
        if all.count >= 2, all[0].digits == "0", [".", ","].contains(all[1].gap),
            all.count == 2 || all[2].digits == "0" && all.count > 3
        {
            return 2
        }
        guard all.count >= 2, all[0].digits.utf8.count <= 3, !all[0].digits.hasPrefix("0"),
            [".", ",", " ", "'", "\u{2019}"].contains(all[1].gap)
        else { return 0 }
        let thousands = all.dropFirst().prefix { $0.gap == all[1].gap && $0.digits.utf8.count == 3 }
        guard !thousands.isEmpty else { return 0 }
        let length = 1 + thousands.count
        if length < all.count, [".", ","].contains(all[length].gap), all[length].gap != all[1].gap,
            all[length].digits.utf8.count == 2
        {
            return length + 1
        }
        let isRound = thousands.allSatisfy { $0.digits == "000" }
        let hasShortFirst = all[0].digits.utf8.count <= 2
        return isRound || (all[1].gap != " " ? hasShortFirst : all[0].value < 10 && length == 3) ? length : 0
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
