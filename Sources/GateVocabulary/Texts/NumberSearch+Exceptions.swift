/// What is no telephone number.
extension NumberSearch {
    /// The kind of thing that some groups of a run are.
    enum Reading {
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

    struct Part {
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
    static func digitCount(of run: Run) -> Int {
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

    static func parts(of run: Run) -> [Part] {
        var (parts, rest): ([Part], ArraySlice<Group>) = ([], run.groups[...])
        while !rest.isEmpty {
            let (reading, length) = reading(of: rest, in: run)
            parts.append(Part(reading: reading, groups: rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return parts
    }

    /// Whether a date or a time stands apart from what is beside it: `iOS 18.1, 2026-03-02`. A blank alone sets nothing off.
    static func isSetOff(_ before: Part, _ part: Part) -> Bool {
        (before.reading.standsApart || part.reading.standsApart)
            && part.gap.contains(" ") && part.gap.contains { ",;()".contains($0) }
    }

    /// Digits of parts that stand beside each other: none where each is read beside the one before it, and else all of them.
    static func digitCount(of parts: [Part]) -> Int {
        let isRead =
            parts.allSatisfy { $0.reading != .number }
            && zip(parts, parts.dropFirst()).allSatisfy { stand(beside: $0, $1) }
        return isRead ? 0 : parts.reduce(0) { $0 + $1.digitCount }
    }

    /// Whether two readings are written one behind the other.
    static func stand(beside before: Part, _ part: Part) -> Bool {
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
    static func reading(of groups: ArraySlice<Group>, in run: Run) -> (Reading, length: Int) {
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
    static func dateLength(_ groups: ArraySlice<Group>) -> Int {
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

    static func oneDateLength(_ groups: ArraySlice<Group>) -> Int {
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
    static func shortDateLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(4))
        guard parts.count >= 2, parts[0].isPart(1...2, 1...31), parts[1].isPart(1...2, 1...31),
            [".", "-", "/"].contains(parts[1].gap)
        else { return 0 }
        let hasYear = parts.count > 2 && parts[2].gap == parts[1].gap && parts[2].isPart(2...2, 0...99)
        let length = hasYear ? 3 : 2
        return length < parts.count && parts[length].gap == parts[1].gap ? 0 : length
    }

    /// `8:15`, `08:15:30` and `8時15分`.
    static func timeLength(_ groups: ArraySlice<Group>) -> Int {
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
    static func clockLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count >= 2, parts[1].gap == ".", parts[0].isPart(1...2, 0...24),
            parts[1].isPart(2...2, 0...59)
        else { return 0 }
        return parts.count > 2 && parts[2].gap == "." ? 0 : 2
    }

    /// `03/2026` and `2026-03`.
    static func monthLength(_ groups: ArraySlice<Group>) -> Int {
        let parts = Array(groups.prefix(3))
        guard parts.count >= 2, [".", "-", "/"].contains(parts[1].gap) else { return 0 }
        let isMonth =
            parts[0].isYear && parts[1].isPart(2...2, 1...12)
            || parts[0].isPart(1...2, 1...12) && parts[1].isYear
        return isMonth ? 2 : 0
    }
}
