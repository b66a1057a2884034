/// A provider's own word for what went wrong, as it may stand in an answer, a log line and the trail.
package enum ProviderReason {
    /// Longest word of a provider's that is passed on, in characters; Apple's longest has 26, Google's 24.
    package static let lengthMax = 64

    /// `text` in the letters that the gateway records, 1 to 64 of `A-Z a-z 0-9 _ - .`: other bytes become `_`.
    ///
    /// - Returns: `nil` of an empty text.
    package static func word(_ text: String) -> String? {
        let letters = text.utf8.prefix(lengthMax).map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "-"):
                byte
            default: UInt8(ascii: "_")
            }
        }
        return letters.isEmpty ? nil : String(decoding: letters, as: UTF8.self)
    }

    /// ASCII letters, digits, `_`, `-` and `.` of `text`: a reason carries no token, number or sentence.
    package static func bounded(_ text: String) -> String {
        let kept = text.unicodeScalars.filter {
            $0.isASCII && ($0.properties.isAlphabetic || "0123456789_-.".unicodeScalars.contains($0))
        }
        return String(String.UnicodeScalarView(kept.prefix(lengthMax)))
    }
}
