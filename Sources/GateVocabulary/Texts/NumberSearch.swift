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
    static let gapMax = 3
    /// Digits that a word of calling makes a number: 112.
    static let calledDigitCountMin = 3
    static let modelDigitCountMax = 8
    static let modelLetterCountMax = 3

    /// Digits, and what stands between them and the digits before.
    struct Group {
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
    struct Run {
        var groups: [Group]
        /// The text behind the last group, up to the next digit.
        var tail = ""
        var isTailPlain = true

        mutating func end(with gap: Gap) { (tail, isTailPlain) = (gap.text, gap.isPlain) }
    }

    let runs: [Run]
    /// Whether the text asks its reader to call.
    let asks: Bool

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
    static func mayHaveNumber(_ text: String) -> Bool {
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
    struct Sign {
        var scalar: Unicode.Scalar
        /// `nil` for a mark or a joiner.
        var folded: Unicode.Scalar?
        /// Whether it is the first one of its character's form.
        var isFirst: Bool

        var isDigit: Bool { folded.map(NumberSearch.isDigit) ?? false }
    }

    static func signs(_ text: String) -> [Sign] {
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
    struct Word {
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

    static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.isASCII else { return scalar.properties.isAlphabetic }
        return ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
    }

    static func words(_ signs: [Sign]) -> [Word] {
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
    static func lookalike(_ letter: Unicode.Scalar) -> Unicode.Scalar? {
        switch letter {
        case "O", "o", "\u{39F}", "\u{3BF}", "\u{41E}", "\u{43E}", "\u{555}", "\u{585}": "0"
        case "I", "l", "\u{399}", "\u{406}", "\u{4C0}": "1"
        default: nil
        }
    }

    /// Prefixes behind which a number is written as a word, in North America and where a toll-free number begins with 0.
    static let spelledPrefixes: Set<String> = [
        "800", "822", "833", "844", "855", "866", "877", "888", "900", "0800", "0808", "0900", "00800",
        "1800",
        "1300",
    ]

    /// Reads as digits what its reader would dial so: `9OOO OOOO` and `22O33O44O55`, and the letters of `1-800-FLOWERS` as a
    /// telephone's keys have them (ITU-T E.161).
    static func dial(_ words: [Word], of signs: inout [Sign]) {
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
    struct Gap {
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
        static func isWord(_ scalar: Unicode.Scalar) -> Bool {
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
    func isModel(_ run: Run) -> Bool {
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
    static func isShortNumber(_ run: Run) -> Bool {
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
    static func isCalled(_ gap: String) -> Bool {
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
    static let betweenCountMax = 3

    /// Whether a run is a country code behind a `+` and at least three digits: `+45 112`, `+45(112)`. A code of one digit before them
    /// is the first digit of an amount (`+1 500`), and round thousands are one too.
    static func isBehindCountryCode(_ run: Run) -> Bool {
        let (code, rest) = (run.groups[0], run.groups.dropFirst())
        guard code.isBehindPlus(isFirst: true), code.digits.utf8.count > 1, let next = rest.first,
            next.gap.allSatisfy({ " -()".contains($0) }), !(next.gap.contains(" ") && next.gap.contains("-")),
            NumberingPlan.of(code.digits.utf8.map { $0 - UInt8(ascii: "0") })?.code == code.digits
        else { return false }
        return rest.reduce(0) { $0 + $1.digits.utf8.count } >= calledDigitCountMin
            && !rest.allSatisfy { $0.digits == "000" } && !hasUnit(run.groups[...], in: run)
    }

    static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    // MARK: What a word says of its digits

    /// A reference with a year in it (`Faktura 2026-00123`, `FV/123/04/2026`), or a version (`Chrome 131.0.6778.86`), at the
    /// beginning of a run.
    static func named(_ groups: ArraySlice<Group>) -> (Reading, length: Int)? {
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
    static func isBehindInitials(_ gap: String) -> Bool {
        guard gap.last == "-" || gap.last == "/" else { return false }
        let word = gap.dropLast().lastWord(isDirect: true)
        return (2...modelLetterCountMax + 1).contains(word.count)
            && word.allSatisfy { $0.isASCII && $0.isUppercase }
    }
}

extension StringProtocol where SubSequence == Substring {
    /// Its last letters.
    ///
    /// - Parameter isDirect: Whether they have to be at its end; else digits and signs may follow.
    func lastWord(isDirect: Bool) -> Substring {
        guard let last = lastIndex(where: \.isLetter) else { return self[endIndex...] }
        let end = index(after: last)
        if isDirect, end != endIndex { return self[endIndex...] }
        return self[(self[..<end].lastIndex { !$0.isLetter }.map(index(after:)) ?? startIndex)..<end]
    }
}

extension Substring {
    var trimmed: Substring { trimmed { $0 == " " } }

    /// Without such characters at its end.
    func trimmed(where isDropped: (Character) -> Bool) -> Substring {
        lastIndex { !isDropped($0) }.map { self[...$0] } ?? self[startIndex..<startIndex]
    }
}

extension Unicode.GeneralCategory {
    var isCased: Bool {
        switch self {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter: true
        default: false
        }
    }

    var isLetter: Bool {
        switch self {
        case .modifierLetter, .otherLetter: true
        default: isCased
        }
    }
}
