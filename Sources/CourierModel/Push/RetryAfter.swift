package import GateVocabulary

/// Times in the headers of a provider's answer.
package enum RetryAfter {
    /// Longest pause that is followed, in seconds: a day.
    package static let secondsMax = 86_400

    package static func bounded(_ seconds: Int) -> Int { min(max(seconds, 0), secondsMax) }

    /// - Returns: Seconds of `Retry-After` (RFC 9110, section 10.2.3), which is a number or a date; bounded.
    package static func seconds(_ text: String?, at now: Instant) -> Int? {
        guard let text else { return nil }
        if let seconds = Int(text) { return bounded(seconds) }
        return httpDate(text).map { bounded(Int(($0.milliseconds - now.milliseconds + 999) / 1_000)) }
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7); the two older forms are no longer sent.
    package static func httpDate(_ text: String) -> Instant? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let day = Int(words[1]), words[3].count == 4,
            let month = Instant.englishMonths.firstIndex(of: String(words[2]))
        else { return nil }
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return Instant(rfc3339: "\(words[3])-\(two(month + 1))-\(two(day))T\(words[4])Z")
    }
}
