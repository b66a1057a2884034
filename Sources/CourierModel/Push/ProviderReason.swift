/// A provider's own word for what went wrong, as it may stand in an answer, a log line and the trail.
package enum ProviderReason {
    /// Longest word of a provider's that is passed on, in characters; Apple's longest has 26, Google's 24.
    package static let lengthMax = 64

    /// A provider's word is meant for programs, and yet some put the recipient into it: mailboxes, seven digits and more with what
    /// stands between the digits of a telephone number, and twenty letters and digits and more with two digits among them, as tokens
    /// have. The longest codes of providers that we know have five digits (Twilio).
    private static func withoutRecipients(_ text: some StringProtocol) -> String {
        String(text.prefix(1_024))
            .replacing(/[^\s@]+@[^\s@]+/, with: "")
            .replacing(/[0-9](?:[ ._()\/-]*[0-9]){6,}/, with: "")
            .replacing(/(?=[A-Za-z]*[0-9][A-Za-z]*[0-9])[0-9A-Za-z]{20,}/, with: "")
    }

    /// `text` in the letters that the gateway records, 1 to 64 of `A-Z a-z 0-9 _ - .`: other bytes become `_`. What names a
    /// recipient is left out.
    ///
    /// - Returns: `nil` of an empty text.
    package static func word(_ text: String) -> String? {
        if text.isEmpty { return nil }
        let letters = withoutRecipients(text).utf8.prefix(lengthMax).map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "-"):
                byte
            default: UInt8(ascii: "_")
            }
        }
        return letters.isEmpty ? "_" : String(decoding: letters, as: UTF8.self)
    }

    /// ASCII letters, digits, `_`, `-` and `.` of `text`, without what names a recipient.
    package static func bounded(_ text: String) -> String {
        let kept = withoutRecipients(text).unicodeScalars.filter {
            $0.isASCII && ($0.properties.isAlphabetic || "0123456789_-.".unicodeScalars.contains($0))
        }
        return String(String.UnicodeScalarView(kept.prefix(lengthMax)))
    }
}
