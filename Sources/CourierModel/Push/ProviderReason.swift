/// A provider's own word for what went wrong, as it may stand in an answer, a log line and the trail.
package enum ProviderReason {
    /// Longest word of a provider's that is passed on, in characters; Apple's longest has 26, Google's 24.
    package static let lengthMax = 64

    /// ASCII letters, digits, `_`, `-` and `.` of `text`: a reason carries no token, number or sentence.
    package static func bounded(_ text: String) -> String {
        let kept = text.unicodeScalars.filter {
            $0.isASCII && ($0.properties.isAlphabetic || "0123456789_-.".unicodeScalars.contains($0))
        }
        return String(String.UnicodeScalarView(kept.prefix(lengthMax)))
    }
}
