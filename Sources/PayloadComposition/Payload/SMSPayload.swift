import CanonicalJSON
import GateVocabulary

/// A text message: `{"encoding": "gsm7" | "ucs2", "segments": n, "text": …}`.
enum SMSPayload {
    /// - Returns: What is weighed: ``SMSEncoding/characterCount``.
    static func write<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, as form: BodyForm, to json: inout Sink
    ) throws(CompositionError) -> Int {
        let text: String
        switch form {
        case .sealed: throw .sealedWithoutKey
        case .generic: text = content.constantText.body.text
        case .full: text = content.texts.body
        case .never: throw .formNever
        }
        // A text message shows a number as its sender, so the text names the company (47 CFR 64.1200(b)(1) and (d)(4)).
        let named = "\(content.brand.text): \(text)"
        let full = content.unsubscribeLink.map { "\(named)\n\($0.text)" } ?? named
        let encoding = SMSEncoding(full)
        json.object { json in
            json.member("encoding", name: encoding.alphabet)
            json.member("segments", Int64(encoding.segmentCount))
            json.member("text", full)
        }
        return encoding.characterCount
    }
}

/// How a text travels over the air (3GPP TS 23.038 and 23.040), and so what it costs.
package struct SMSEncoding: Hashable, Sendable {
    /// The alphabet of a text message, which bounds how many characters fit into one (3GPP TS 23.038).
    package enum Alphabet: String, Sendable, Hashable {
        /// Seven bits a character: 160 in one message, 153 in each of several.
        case gsm7
        /// UTF-16: 70 code units in one message, 67 in each of several.
        case ucs2
    }

    package let alphabet: Alphabet
    package let segmentCount: Int
    /// What is weighed against the channel's bound, in characters of the seven-bit alphabet: the septets of a
    /// message, and never fewer than its segments leave room for. A message in the other alphabet counts 153
    /// for each segment, so that a bound of 459 means three segments in either.
    package let characterCount: Int

    package init(_ text: String) {
        let widths = text.unicodeScalars.map { Self.septetCount(of: $0) }
        if widths.contains(nil) {
            alphabet = .ucs2
            let units = text.unicodeScalars.map { $0.value > 0xFFFF ? 2 : 1 }
            segmentCount = Self.segmentCount(of: units, single: 70, joined: 67)
            characterCount = segmentCount * 153
        } else {
            alphabet = .gsm7
            let septets = widths.map { $0! }
            segmentCount = Self.segmentCount(of: septets, single: 160, joined: 153)
            characterCount = max(septets.reduce(0, +), segmentCount > 1 ? (segmentCount - 1) * 153 + 1 : 0)
        }
    }

    /// Neither an escape nor a surrogate pair is torn apart between two segments.
    private static func segmentCount(of widths: [Int], single: Int, joined: Int) -> Int {
        if widths.reduce(0, +) <= single { return 1 }
        var (count, used) = (1, 0)
        for width in widths {
            if used + width > joined {
                count += 1
                used = 0
            }
            used += width
        }
        return count
    }

    /// A number of the gateway's with plain blanks and a plain minus sign: one NO-BREAK SPACE inside an amount would turn the whole
    /// message to UCS-2 and so double its price. A text that somebody chose is written as it was judged.
    static func plainNumber(_ text: String) -> String {
        var plain = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0xA0, 0x202F: plain.append(" ")
            case 0x2212: plain.append("-")
            default: plain.append(scalar)
            }
        }
        return String(plain)
    }

    /// 1 or 2; `nil` for a character the seven-bit alphabet does not have.
    private static func septetCount(of scalar: Unicode.Scalar) -> Int? {
        if basic.contains(scalar) { return 1 }
        return escaped.contains(scalar) ? 2 : nil
    }

    /// 3GPP TS 23.038 section 6.2.1.
    private static let basic = Set(
        "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
            .unicodeScalars)
    /// Section 6.2.1.1: each of these takes an escape before it.
    private static let escaped = Set("\u{0C}^{}\\[~]|€".unicodeScalars)
}
