/// Looks for numbers that a reader could be asked to call, which a thief answers (vishing).
///
/// ITU-T E.164 gives a number at most 15 digits and no national one fewer than seven; how its digits are grouped is every
/// country's own. So what counts is ``digitCountMin`` digits or more with at most ``gapMax`` characters between two of
/// them that are no letters. Dates, times of day, years and amounts with their thousands apart are left out of the count.
/// Account and card numbers are found with them, which belong into no text either.
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
        let scalars = TextFolding.folded(text)
        guard scalars.count(where: Self.isDigit) >= Self.digitCountMin else {
            runs = []
            return
        }
        var runs: [[Group]] = []
        var gap: String? = nil
        var wasDigit = false
        var wasLetter = false
        for scalar in scalars {
            if Self.isDigit(scalar) {
                if wasDigit {
                    runs[runs.count - 1][runs[runs.count - 1].count - 1].digits.unicodeScalars.append(scalar)
                } else {
                    let group = Group(gap: gap ?? "", digits: String(scalar), isInWord: wasLetter)
                    if gap == nil { runs.append([group]) } else { runs[runs.count - 1].append(group) }
                }
                (gap, wasDigit, wasLetter) = ("", true, false)
            } else {
                wasLetter = scalar.properties.isAlphabetic
                if wasDigit, wasLetter {
                    runs[runs.count - 1][runs[runs.count - 1].count - 1].isInWord = true
                }
                let breaks = scalar == "\n" || scalar.properties.isAlphabetic
                gap = gap.flatMap { gap in
                    breaks || gap.unicodeScalars.count == Self.gapMax ? nil : gap + String(scalar)
                }
                wasDigit = false
            }
        }
        self.runs = runs
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

    /// `12.11.2026`, `12. 11. 2026`, `11/12/2026` and `2026-11-12`.
    private static func dateLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count == 3, parts[1].gap == parts[2].gap,
            [".", "-", "/", ". "].contains(parts[1].gap)
        else { return 0 }
        let isDate =
            parts[2].isYear && parts[0].isPart(1...2, 1...31) && parts[1].isPart(1...2, 1...31)
            || parts[0].isYear && parts[1].isPart(2...2, 1...12) && parts[2].isPart(2...2, 1...31)
        return isDate ? 3 : 0
    }

    /// `8:15` and `08:15:30`.
    private static func timeLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count >= 2, parts[1].gap == ":", parts[0].isPart(1...2, 0...23),
            parts[1].isPart(2...2, 0...59)
        else { return 0 }
        return parts.count == 3 && parts[2].gap == ":" && parts[2].isPart(2...2, 0...60) ? 3 : 2
    }

    /// `1.234.567`, `12,345,678.90`, `1 234 567`, `100 000 000` and `0.000012345`. Three groups of three are how Spain and Poland write a
    /// telephone number, so an amount has a short first group, or round thousands, or decimals.
    private static func amountLength(_ groups: ArraySlice<Group>) -> Int {
        let all = Array(groups)
        if all.count >= 2, all[0].digits == "0", [".", ","].contains(all[1].gap) { return 2 }
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
