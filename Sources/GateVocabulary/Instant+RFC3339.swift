/// Moments as text: RFC 3339, the profile of ISO 8601 that people and every language's library read alike.
extension Instant {
    /// - Parameter text: `YYYY-MM-DDThh:mm:ss`, an optional fraction of one to nine digits, and `Z` or
    ///   `±hh:mm`; years 1970 to 9999, counted in UTC. A time without a zone is refused, because it
    ///   would mean a different moment on every machine; so are a lower-case `t` or `z`, and second 60,
    ///   which no clock of ours can hold. Digits beyond the millisecond are dropped, towards the past.
    package init?(rfc3339 text: String) {
        self.init(rfc3339: text.utf8.span)
    }

    package init?(rfc3339 bytes: Span<UInt8>) {
        // `YYYY-MM-DDThh:mm:ssZ` has 20 bytes; nine digits of fraction and a numeric zone make 35.
        guard bytes.count >= 20, bytes.count <= 35,
            bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            let century = Self.twoDigits(bytes, at: 0), let yearOfCentury = Self.twoDigits(bytes, at: 2),
            let month = Self.twoDigits(bytes, at: 5),
            let day = Self.twoDigits(bytes, at: 8),
            let hour = Self.twoDigits(bytes, at: 11), let minute = Self.twoDigits(bytes, at: 14),
            let second = Self.twoDigits(bytes, at: 17)
        else { return nil }
        let year = century * 100 + yearOfCentury
        guard year >= 1970, month >= 1, month <= 12, day >= 1,
            day <= Self.dayCount(ofMonth: month, year: year),
            hour <= 23, minute <= 59, second <= 59
        else { return nil }

        var position = 19
        var fraction: Int64 = 0
        if bytes[position] == UInt8(ascii: ".") {
            position += 1
            let start = position
            var unit: Int64 = 100
            while position < bytes.count, let digit = Self.digit(bytes[position]) {
                fraction += digit * unit
                unit /= 10
                position += 1
            }
            guard position > start, position - start <= 9, position < bytes.count else { return nil }
        }

        var offsetMinutes: Int64 = 0
        let sign = bytes[position]
        if sign == UInt8(ascii: "Z") {
            guard position + 1 == bytes.count else { return nil }
        } else {
            guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), position + 6 == bytes.count,
                bytes[position + 3] == UInt8(ascii: ":"),
                let hours = Self.twoDigits(bytes, at: position + 1), hours <= 23,
                let minutes = Self.twoDigits(bytes, at: position + 4), minutes <= 59
            else { return nil }
            offsetMinutes = (sign == UInt8(ascii: "+") ? 1 : -1) * (hours * 60 + minutes)
        }

        let days = Self.days(year: year, month: month, day: day)
        let seconds = ((days * 24 + hour) * 60 + minute - offsetMinutes) * 60 + second
        milliseconds = seconds * 1000 + fraction
        guard milliseconds >= 0, milliseconds <= Self.rfc3339Max.milliseconds else { return nil }
    }

    /// 9999-12-31T23:59:59.999Z, the last moment four digits of year can say.
    package static let rfc3339Max = Instant(milliseconds: 253_402_300_799_999)

    /// What may be written and read back: the times that have a text. Sums and differences of two never overflow.
    package static let storable = 0...rfc3339Max.milliseconds

    /// `2026-11-21T05:00:00Z`, with three digits of fraction only when the milliseconds are not zero.
    ///
    /// Total, because some moments come out of arithmetic on what a caller sent: a year outside 0 to
    /// 9999 is printed with its sign and at least six digits (ISO 8601 expanded form), which
    /// ``init(rfc3339:)-(String)`` refuses to read.
    package var rfc3339: String {
        let days = milliseconds.flooredQuotient(86_400_000)
        // Not `milliseconds - days * 86_400_000`: that product overflows in the first day there is.
        var rest = milliseconds % 86_400_000
        if rest < 0 { rest += 86_400_000 }
        let (year, month, day) = Self.civil(days: days)
        var text: [UInt8] = []
        text.reserveCapacity(27)
        if year >= 0, year <= 9999 {
            Self.append(year, digits: 4, to: &text)
        } else {
            text.append(UInt8(ascii: year < 0 ? "-" : "+"))
            Self.append(Int64(year.magnitude), digits: 6, to: &text)
        }
        text.append(UInt8(ascii: "-"))
        Self.append(month, digits: 2, to: &text)
        text.append(UInt8(ascii: "-"))
        Self.append(day, digits: 2, to: &text)
        text.append(UInt8(ascii: "T"))
        let fraction = rest % 1000
        rest /= 1000
        Self.append(rest / 3600, digits: 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(rest / 60 % 60, digits: 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(rest % 60, digits: 2, to: &text)
        if fraction != 0 {
            text.append(UInt8(ascii: "."))
            Self.append(fraction, digits: 3, to: &text)
        }
        text.append(UInt8(ascii: "Z"))
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> Int64? {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") ? Int64(byte - UInt8(ascii: "0")) : nil
    }

    private static func twoDigits(_ bytes: Span<UInt8>, at index: Int) -> Int64? {
        guard let tens = digit(bytes[index]), let ones = digit(bytes[index + 1]) else { return nil }
        return tens * 10 + ones
    }

    /// Appends at least `digits` digits, with leading zeros.
    private static func append(_ value: Int64, digits: Int, to text: inout [UInt8]) {
        let start = text.count
        var rest = value
        repeat {
            text.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        while text.count - start < digits { text.append(UInt8(ascii: "0")) }
        text[start...].reverse()
    }

    private static func dayCount(ofMonth month: Int64, year: Int64) -> Int64 {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    // The two conversions count from 0000-03-01, so that a leap day is the last day of its year, and in
    // eras of 400 years, after which the Gregorian calendar repeats (146,097 days). From there months are
    // 153 days in every five. See Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

    /// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
    package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted.flooredQuotient(400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The date of the proleptic Gregorian calendar so many days after 1970-01-01.
    package static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Int64 {
    /// Division rounded towards minus infinity; the divisor is positive.
    func flooredQuotient(_ divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
