/// Amounts, which are no telephone numbers.
extension NumberSearch {
    /// Amounts one behind the other with one unit in front of them or behind them, each larger than the one before:
    /// `199/299/399 kr`, `1 499–1 999 kr`, `10,25–12,50 %`. Digits in pairs (`22/34/56/78 kr`) are how a number is written.
    static func priceListLength(_ groups: ArraySlice<Group>, in run: Run) -> Int {
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
    static func figure(_ groups: ArraySlice<Group>) -> (length: Int, value: Int) {
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
    static func thousandsCount(_ all: [Group]) -> Int {
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
    static func amount(
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
    static let shortFractionMax = 4

    /// Whether a currency stands right before or behind some groups of a run, or a percent sign behind a figure of at most three
    /// digits before its decimals.
    static func hasUnit(_ groups: ArraySlice<Group>, in run: Run) -> Bool {
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
    static func isShare(_ groups: ArraySlice<Group>, in run: Run) -> Bool {
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
    static func isCurrencyOf(next: Bool, _ gap: String) -> Bool {
        guard gap.filter(isCurrencySign).count == 1, gap.count > 1 else { return false }
        let (before, behind) = (
            gap.prefix { !isCurrencySign($0) }, gap.drop { !isCurrencySign($0) }.dropFirst()
        )
        return next ? behind.isEmpty : !behind.isEmpty && (before.isEmpty || before == " " && behind != " ")
    }

    static func isCurrencySign(_ character: Character) -> Bool { character.isCurrencySymbol }

    /// A code of ISO 4217, or a mark that amounts are written with. The codes that are English words in a text (`TRY 90.000.101`)
    /// show no amount.
    static func isCurrencyWord(_ word: some StringProtocol) -> Bool {
        let word = String(word)
        return currencyMarks.contains(word.lowercased())
            || ISOCodes.fractionDigitCounts[word] != nil && !["ALL", "TOP", "TRY"].contains(word)
    }

    static let currencyMarks = Set(
        ISOCodes.currencySymbols.values.map { $0.text.lowercased() }.filter { $0.allSatisfy(\.isLetter) })
}
