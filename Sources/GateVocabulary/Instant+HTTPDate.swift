extension Instant {
    /// The time as the headers of HTTP have it (RFC 9110 section 5.6.7), whatever the process's locale, e.g.
    /// `Sun, 06 Nov 1994 08:49:37 GMT`: always 29 bytes for a year of four digits.
    package var httpDate: String {
        let seconds = milliseconds.flooredQuotient(1000)
        let days = seconds.flooredQuotient(86_400)
        let second = seconds - days * 86_400
        let (year, month, day) = Instant.civil(days: days)
        // The first of January 1970 was a Thursday.
        let weekday = Self.weekdays[Int((days % 7 + 11) % 7)]
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let time = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        return "\(weekday), \(two(day)) \(Self.englishMonths[Int(month) - 1]) \(year) \(time) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    /// As HTTP dates have them (RFC 9110 section 5.6.7), and English sentences and texts.
    package static let englishMonths = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
