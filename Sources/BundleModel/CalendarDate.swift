package import GateVocabulary

/// A day of the Gregorian calendar, as laws and reviews are dated.
package struct CalendarDate: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// 1970 to 9999.
    package let year: Int
    package let month: Int
    package let day: Int

    package static let first = CalendarDate(year: 1970, month: 1, day: 1)

    private init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// - Parameter text: `YYYY-MM-DD` of a day that exists; any other spelling is refused.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            let year = Self.digits(bytes[0..<4]), let month = Self.digits(bytes[5..<7]),
            let day = Self.digits(bytes[8..<10])
        else { return nil }
        guard (1970...9999).contains(year) else { return nil }
        let days = Instant.days(year: Int64(year), month: Int64(month), day: Int64(day))
        // A day that does not exist, such as 30 February, comes back as another one.
        guard Instant.civil(days: days) == (Int64(year), Int64(month), Int64(day)) else { return nil }
        self.init(year: year, month: month, day: day)
    }

    private static func digits(_ bytes: ArraySlice<UInt8>) -> Int? {
        var number = 0
        for byte in bytes {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return bytes.isEmpty ? nil : number
    }

    /// Midnight UTC at the start of the day.
    package var instant: Instant {
        Instant(seconds: Instant.days(year: Int64(year), month: Int64(month), day: Int64(day)) * 86_400)
    }

    /// So many months later, on the last day of the month where it has no such day.
    func adding(months: Int) -> CalendarDate {
        let count = year * 12 + month - 1 + months
        for day in stride(from: day, through: 1, by: -1) {
            let (year, month) = (count / 12, count % 12 + 1)
            let days = Instant.days(year: Int64(year), month: Int64(month), day: Int64(day))
            if Instant.civil(days: days) == (Int64(year), Int64(month), Int64(day)) {
                return CalendarDate(year: year, month: month, day: day)
            }
        }
        preconditionFailure("a month without a first day")
    }

    package static func < (left: CalendarDate, right: CalendarDate) -> Bool {
        (left.year, left.month, left.day) < (right.year, right.month, right.day)
    }

    package var description: String {
        let year = String(year)
        return (month < 10 ? "\(year)-0\(month)" : "\(year)-\(month)") + (day < 10 ? "-0\(day)" : "-\(day)")
    }

    /// Minutes after midnight of `HH:MM`, 00:00 to 23:59; `nil` for any other spelling.
    package static func minutes(ofDay text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"), let hours = digits(bytes[0..<2]),
            let minutes = digits(bytes[3..<5]), hours < 24, minutes < 60
        else { return nil }
        return hours * 60 + minutes
    }
}
