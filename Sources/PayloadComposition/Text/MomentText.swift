package import GateVocabulary

/// A moment as a date and a time of day that say which zone they mean.
package enum MomentText {
    /// - Parameters:
    ///   - utcOffsetSeconds: Where the reader's clocks stand; `nil` when unknown. It is always printed, so the
    ///     text stays true when the offset of that day was another one.
    /// - Returns: Such as `21.11.2026 06:30 (UTC+1)`, to the minute.
    package static func text(_ moment: Instant, utcOffsetSeconds: Int?, in tag: LanguageTag) -> String {
        let (days, time) = local(moment, utcOffsetSeconds)
        let (year, month, day) = Instant.civil(days: days)
        return "\(date(year: year, month: Int(month), day: Int(day), in: tag)) \(time)"
    }

    /// The time of day alone, for a moment that is minutes away.
    ///
    /// - Returns: Such as `06:30 (UTC+1)`, to the minute.
    package static func timeOfDay(_ moment: Instant, utcOffsetSeconds: Int?) -> String {
        local(moment, utcOffsetSeconds).time
    }

    /// - Returns: Days since 1970 on the reader's calendar, and the time of that day with its zone.
    private static func local(_ moment: Instant, _ utcOffsetSeconds: Int?) -> (days: Int64, time: String) {
        // An offset beyond a day is no place on earth; zones lie between −12:00 and +14:00.
        let offset = utcOffsetSeconds.map { max(-86_400, min(86_400, $0)) } ?? 0
        let local = moment.advanced(bySeconds: Int64(offset)).seconds
        let days = (local - (local % 86_400 + 86_400) % 86_400) / 86_400
        let secondOfDay = Int(local - days * 86_400)
        let time = "\(twoDigits(secondOfDay / 3600)):\(twoDigits(secondOfDay / 60 % 60))"
        return (days, "\(time) (\(zone(offset)))")
    }

    private static func date(year: Int64, month: Int, day: Int, in tag: LanguageTag) -> String {
        switch tag.language {
        // With the month as a word, so that Americans and Europeans read the same day.
        case "en": "\(day) \(Instant.englishMonths[month - 1]) \(year)"
        case "nb", "no", "nn", "da", "fi", "de", "et", "lv", "pl", "cs", "sk", "sl", "hr", "bs", "sr", "mk",
            "ro", "bg",
            "uk", "ru", "be", "is", "tr", "sq":
            "\(twoDigits(day)).\(twoDigits(month)).\(year)"
        case "fr", "it", "es", "pt", "el", "ca", "gl", "vi": "\(twoDigits(day))/\(twoDigits(month))/\(year)"
        default: "\(year)-\(twoDigits(month))-\(twoDigits(day))"
        }
    }

    private static func zone(_ offset: Int) -> String {
        guard offset != 0 else { return "UTC" }
        let minutes = offset.magnitude / 60
        let fraction = minutes % 60 == 0 ? "" : ":\(twoDigits(Int(minutes % 60)))"
        return "UTC\(offset < 0 ? "-" : "+")\(minutes / 60)\(fraction)"
    }

    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
