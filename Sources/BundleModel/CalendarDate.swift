package import GateVocabulary

/// A day of the Gregorian calendar, from 1970 to 9999, as laws and reviews are dated.
package struct CalendarDate: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Midnight UTC at the start of the day.
    package let instant: Instant

    package static let first = CalendarDate(days: 0)

    private init(days: Int64) { instant = Instant(seconds: days * 86_400) }

    /// - Parameter text: `YYYY-MM-DD` of a day that exists; any other spelling is refused.
    package init?(_ text: String) {
        // `Instant(rfc3339:)` takes no other spelling of a date with ten bytes.
        guard text.utf8.count == 10, let instant = Instant(rfc3339: "\(text)T00:00:00Z") else { return nil }
        self.instant = instant
    }

    private var civil: (year: Int64, month: Int64, day: Int64) {
        Instant.civil(days: instant.seconds / 86_400)
    }

    package var year: Int { Int(civil.year) }

    /// So many months later, on the last day of the month where it has no such day.
    func adding(months: Int) -> CalendarDate {
        let (year, month, day) = civil
        let count = year * 12 + month - 1 + Int64(months)
        for day in stride(from: day, through: 1, by: -1) {
            let days = Instant.days(year: count / 12, month: count % 12 + 1, day: day)
            // A day that does not exist, such as 30 February, comes back as another one.
            if Instant.civil(days: days).day == day { return CalendarDate(days: days) }
        }
        preconditionFailure("a month without a first day")
    }

    package static func < (left: CalendarDate, right: CalendarDate) -> Bool { left.instant < right.instant }

    package var description: String { String(instant.rfc3339.prefix(10)) }

    /// Minutes after midnight of `HH:MM`, 00:00 to 23:59; `nil` for any other spelling.
    package static func minutes(ofDay text: String) -> Int? {
        // `Instant(rfc3339:)` takes no seconds and no zone in five bytes.
        guard text.utf8.count == 5 else { return nil }
        return Instant(rfc3339: "1970-01-01T\(text):00Z").map { Int($0.seconds / 60) }
    }
}
