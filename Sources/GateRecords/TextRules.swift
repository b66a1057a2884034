package import CanonicalJSON
import GateVocabulary

extension TextRule {
    // MARK: Names people and producers choose

    /// An id a producer chose: a send's, a person's, a destination's, a record's, a type's.
    ///
    /// Any printable character, because ids come from elsewhere. No control character, so that an id can
    /// stand in a log line; not `.` or `..`, which HTTP clients silently remove from a path.
    ///
    /// A character outside ASCII takes at most four bytes of UTF-8, so that 32 of them stay within 128 bytes too. JSON Schema
    /// counts characters and cannot count bytes; bounded this way, the OpenAPI document and the parser accept the same ids.
    package static let identifier = TextRule(
        "1 to 128 printable ASCII characters, or 1 to 32 characters of any script, without control characters, and not `.` or `..`",
        lengths: 1...128, pattern: #"^(?:[ -~]{1,128}|[^\u0000-\u001f\u007f-\u009f]{1,32})$"#,
        others: ["not": ["enum": [".", ".."]]]
    ) { bytes in
        guard (1...128).contains(bytes.count),
            let characterCount = characterCount(of: bytes, without: .allControls),
            // An id with as many characters as bytes is ASCII.
            characterCount == bytes.count || characterCount <= 32
        else { return false }
        return
            !(bytes[0] == UInt8(ascii: ".")
            && (bytes.count == 1 || (bytes.count == 2 && bytes[1] == UInt8(ascii: "."))))
    }

    /// A consent purpose: a category's name or a special one such as `account_information`.
    package static let purpose = ascii(
        "1 to 64 of `a-z`, `0-9` and `_`, starting with a letter", lengths: 1...64,
        pattern: "^[a-z][a-z0-9_]{0,63}$"
    ) { bytes in
        bytes[0].isLowercaseLetter
            && bytes.all { $0.isLowercaseLetter || $0.isDigit || $0 == UInt8(ascii: "_") }
    }

    /// A part of a notice's file name in the bundle: its id, its version.
    package static let noticePart = ascii(
        "1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`", lengths: 1...64, pattern: "^[A-Za-z0-9_-]{1,64}$"
    ) { $0.all { $0.isAlphanumeric || $0.isOneOf("_-") } }

    /// A provider's own name for an error, e.g. `BadDeviceToken`.
    package static let providerReason = ascii(
        "1 to 64 of `A-Z`, `a-z`, `0-9`, `_`, `-` and `.`", lengths: 1...64,
        pattern: "^[A-Za-z0-9._-]{1,64}$"
    ) { $0.all { $0.isAlphanumeric || $0.isOneOf("._-") } }

    /// A key of `params`. Wide on purpose: a name the type does not know is gate 1's to refuse, on record.
    package static let paramName = anyScript(
        "1 to 64 characters without control characters",
        lengths: 1...SendRequest.paramNameCharacterCountMax,
        pattern: #"^[^\u0000-\u001f\u007f-\u009f]{1,64}$"#, without: .allControls)

    /// A C2SP signed note: the only control character in it is the line feed. 40000 characters are the longest list of keys, and
    /// many signatures.
    package static let signedNote = anyScript(
        "a signed note: 1 to 40000 characters without control characters but line feeds",
        lengths: 1...40_000, pattern: #"^[^\u0000-\u0009\u000b-\u001f]{1,40000}$"#,
        without: .otherThanLineFeed)

    /// A text of `params`; its type says what it may hold. The limit is far above what any type's own schema admits; it only
    /// keeps one text from filling the body.
    package static let paramText = anyScript(
        "at most 4096 characters without U+0000", lengths: 0...4096, pattern: #"^[^\u0000]*$"#, without: .nul)

    /// The characters that a rule of ``anyScript(_:lengths:pattern:without:)`` refuses.
    private enum Forbidden {
        case nul
        /// U+0000 to U+001F but U+000A.
        case otherThanLineFeed
        /// U+0000 to U+001F and U+007F to U+009F.
        case allControls
    }

    private static func anyScript(
        _ expectation: String, lengths: ClosedRange<Int>, pattern: String, without forbidden: Forbidden
    ) -> TextRule {
        TextRule(expectation, lengths: lengths, pattern: pattern) { bytes in
            characterCount(of: bytes, without: forbidden).map(lengths.contains) ?? false
        }
    }

    /// - Returns: `nil` of a text with a forbidden character.
    private static func characterCount(of bytes: Span<UInt8>, without forbidden: Forbidden) -> Int? {
        var characterCount = 0
        for index in 0..<bytes.count {
            let byte = bytes[index]
            let isForbidden =
                switch forbidden {
                case .nul: byte == 0
                case .otherThanLineFeed: byte < 0x20 && byte != 0x0A
                case .allControls:
                    // U+0080 to U+009F are 0xC2 and a byte below 0xA0.
                    byte < 0x20 || byte == 0x7F
                        || byte == 0xC2 && index + 1 < bytes.count && bytes[index + 1] < 0xA0
                }
            if isForbidden { return nil }
            if byte & 0xC0 != 0x80 { characterCount += 1 }
        }
        return characterCount
    }

    // MARK: Keys and proofs

    /// 32 bytes in base64url without padding: an X25519 public key, or a proof of possession. The last
    /// character carries four bits and two zeros; any other ending would be a second spelling.
    package static let base64url32 = base64urlKey(advice: { _ in nil })

    /// ``base64url32`` for a public key.
    package static let base64urlX25519Key = base64urlKey(advice: {
        wrapping(of: $0, around: "32 bytes of the key")
    })

    private static func base64urlKey(advice: @escaping @Sendable (String) -> String?) -> TextRule {
        ascii(
            "32 bytes as 43 characters of base64url without padding", lengths: 43...43,
            pattern: "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$", advice: advice
        ) { bytes in
            bytes.all { $0.isAlphanumeric || $0.isOneOf("-_") } && bytes[42].isOneOf("AEIMQUYcgkosw048")
        }
    }

    /// What platforms export in place of the key itself: PEM, or the DER of a SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7),
    /// whose first bytes are the same for every key of a curve.
    private static func wrapping(of text: String, around raw: String) -> String? {
        // P-256, compressed P-256, X25519 (RFC 8410 section 4).
        let beginnings = ["-----BEGIN", "MFkwEwYHKoZIzj0C", "MDkwEwYHKoZIzj0C", "MCowBQYDK2Vu"]
        guard beginnings.contains(where: text.hasPrefix) else { return nil }
        return
            "this is PEM or DER, which wraps the key: send the raw \(raw), the last ones of the DER, as base64url"
    }

    /// 65 bytes in base64url without padding, the first of them 4: an uncompressed P-256 point (SEC 1
    /// section 2.3.3). Whether it lies on the curve is asked where the key is imported.
    package static let base64urlP256Point = ascii(
        "an uncompressed P-256 point: 65 bytes, the first 0x04, as 87 characters of base64url without padding",
        lengths: 87...87, pattern: "^B[A-P][A-Za-z0-9_-]{84}[AEIMQUYcgkosw048]$",
        advice: { wrapping(of: $0, around: "65 bytes of the point") }
    ) { bytes in
        bytes.all { $0.isAlphanumeric || $0.isOneOf("-_") }
            && bytes[0] == UInt8(ascii: "B")
            && bytes[1] >= UInt8(ascii: "A") && bytes[1] <= UInt8(ascii: "P")
            && bytes[86].isOneOf("AEIMQUYcgkosw048")
    }

    // MARK: Time and place

    /// A moment; the pattern is ``GateVocabulary/Instant/init(rfc3339:)-(String)`` down to the leap days.
    /// One difference remains: within a day of the two ends of the range the pattern cannot see that a
    /// zone moves a moment out of it.
    package static let instant = TextRule(
        "an RFC 3339 time with its zone, such as `2026-11-21T05:00:00Z` or `2026-11-21T06:00:00.250+01:00`, from 1970 to 9999",
        lengths: 20...35,
        pattern: "^(?:(?:19[789][0-9]|[2-9][0-9]{3})-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
            + "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
            + "|(?:19(?:7[26]|8[048]|9[26])|[2-9][0-9](?:0[48]|[2468][048]|[13579][26])"
            + "|(?:2[048]|[3579][26]|[468][048])00)-02-29)"
            + #"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"#
            + "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$",
        others: ["format": "date-time"]
    ) { bytes in Instant(rfc3339: bytes) != nil }

    /// A local wall-clock time.
    package static let minuteOfDay = ascii(
        "a local time such as `21:00`, from `00:00` to `23:59`", lengths: 5...5,
        pattern: "^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"
    ) { bytes in
        guard bytes[0].isDigit, bytes[1].isDigit, bytes[2] == UInt8(ascii: ":"), bytes[3].isDigit,
            bytes[4].isDigit
        else { return false }
        let hour = (bytes[0] - UInt8(ascii: "0")) * 10 + bytes[1] - UInt8(ascii: "0")
        return hour <= 23 && bytes[3] <= UInt8(ascii: "5")
    }

    /// A BCP 47 tag: language, and up to three of script, region and variant. Extensions and private use
    /// name nothing a text could be written in.
    package static let locale = ascii(
        "a BCP 47 tag such as `nb`, `en-GB` or `zh-Hant-TW`", lengths: 2...LanguageTag.byteCountMax,
        pattern: "^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
    ) { bytes in
        var partCount = 0
        var partLength = 0
        for index in 0...bytes.count {
            if index == bytes.count || bytes[index] == UInt8(ascii: "-") {
                guard partLength >= 2, partLength <= (partCount == 0 ? 3 : 8) else { return false }
                partCount += 1
                partLength = 0
            } else {
                guard bytes[index].isLetter || (partCount > 0 && bytes[index].isDigit) else { return false }
                partLength += 1
            }
        }
        return partCount <= 4
    }

    /// An IANA zone name by its syntax; whether tzdata knows it is asked where it is used. The longest in tzdata 2026 has 32
    /// characters.
    package static let timeZone = ascii(
        "an IANA time zone name such as `Europe/Oslo`", lengths: 1...64,
        pattern: "^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,3}$"
    ) { bytes in
        guard bytes[0].isLetter else { return false }
        var slashCount = 0
        for index in 0..<bytes.count {
            if bytes[index] == UInt8(ascii: "/") {
                slashCount += 1
                guard slashCount <= 3, index + 1 < bytes.count, bytes[index + 1] != UInt8(ascii: "/") else {
                    return false
                }
            } else if !(bytes[index].isAlphanumeric || bytes[index].isOneOf("_+-")) {
                return false
            }
        }
        return true
    }

    // MARK: Where a notification goes

    /// An absolute URI in ASCII (RFC 3986 section 4.3), roughly: a scheme and no white space. Which links
    /// a type may carry is the bundle's to say.
    package static let deepLink = ascii(
        "an absolute URI such as `drop://send`, at most 512 printable ASCII characters without spaces",
        lengths: 3...SendRequest.deepLinkByteCountMax, pattern: "^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$"
    ) { bytes in
        guard bytes[0].isLetter else { return false }
        var inScheme = true
        for index in 1..<bytes.count {
            if inScheme {
                if bytes[index] == UInt8(ascii: ":") {
                    inScheme = false
                    guard index + 1 < bytes.count else { return false }
                } else if !(bytes[index].isAlphanumeric || bytes[index].isOneOf("+.-")) {
                    return false
                }
            } else if !bytes[index].isVisible {
                return false
            }
        }
        return !inScheme
    }

    /// A bundle id (Apple; at most 155 characters by App Store Connect) or package name (Android).
    package static let app = ascii(
        "a bundle id or package name such as `no.getdrop.app`, at most 155 of `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`",
        lengths: 1...155, pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*$"
    ) { bytes in
        bytes[0].isAlphanumeric && bytes.all { $0.isAlphanumeric || $0.isOneOf("._-") }
    }

    /// An APNs device token: bytes in hexadecimal, as the path of a request to Apple has them ("Sending notification requests to
    /// APNs"). They are 32 today. Apple says that its length may change, so only its bounds are held: 1 to 100 bytes.
    package static let apnsToken = ascii(
        "an APNs device token: 1 to 100 bytes in hexadecimal", lengths: 2...200,
        pattern: "^(?:[0-9A-Fa-f]{2})+$",
        advice: {
            ExpoPushToken.isBegunBy($0)
                ? addExpo : "write the bytes of the token that the system gives the app, two digits each"
        }
    ) { bytes in bytes.count % 2 == 0 && bytes.all { $0.hexadecimalDigit != nil } }

    /// An FCM registration token, which is opaque: base64url, with a colon after the app's instance. Case matters. Today's have
    /// about 160 characters; Google asks for room.
    package static let fcmToken = ascii(
        "an FCM registration token: 1 to 2048 of `A-Z`, `a-z`, `0-9`, `_`, `-` and `:`", lengths: 1...2048,
        pattern: "^[A-Za-z0-9_:-]+$", advice: { ExpoPushToken.isBegunBy($0) ? addExpo : nil }
    ) { $0.all { $0.isAlphanumeric || $0.isOneOf("_-:") } }

    /// A token of Expo's push service. Case matters.
    package static let expoToken = TextRule(
        "a token of Expo's push service such as `ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]`",
        lengths: 1...ExpoPushToken.characterCountMax, pattern: ExpoPushToken.pattern,
        advice: { _ in
            "send what `getExpoPushTokenAsync` gives the app, or leave `provider` out for a token of Apple's or Google's own"
        }
    ) { bytes in ExpoPushToken.accepts(bytes) }

    private static let addExpo =
        "this is a token of Expo's push service: add `provider` with the value `expo`"

    /// The text of a reply: ten joined text messages of 160 characters, or the first line of an e-mail. Anything without
    /// U+0000, which no body that is read has; an empty text included: what it says decides what becomes of it.
    package static let replyText = anyScript(
        "a text of at most 1600 characters: a longer one is passed on cut short, because only its beginning counts",
        lengths: 0...1600, pattern: #"^[^\u0000]*$"#, without: .nul)

    /// The sender of a reply: at most a line of a message (RFC 5322 section 2.1.1), which a `From` may fill. Anything, also what is no
    /// address: no reply is refused for how its sender is written.
    package static let sender = anyScript(
        "at most 998 characters, as long as a line of a message may be", lengths: 0...998,
        pattern: #"^[^\u0000]*$"#, without: .nul)

    /// A phone number as somebody wrote it: 15 digits (ITU-T E.164), each between others, and `tel:` (RFC 3966). Which country
    /// codes and national numbers there are is ``GateVocabulary/PhoneNumber``'s to say.
    package static let phoneNumber = anyScript(
        "a phone number with its country code such as `+4790000000`, at most 64 characters", lengths: 1...64,
        pattern: #"^[^\u0000-\u001f\u007f-\u009f]+$"#, without: .allControls)

    /// An e-mail address as somebody wrote it (RFC 5321 section 4.5.3.1, less the angle brackets: 254). Its form is
    /// ``GateVocabulary/RegisteredMailbox``'s to say.
    package static let email = anyScript(
        "an e-mail address such as `name@example.org`, at most 254 characters", lengths: 1...254,
        pattern: #"^[^\u0000-\u001f\u007f-\u009f]+$"#, without: .allControls)
}

extension Shape {
    /// An id that a caller chose.
    package static let identifier = Shape.named("Identifier", .text(.identifier))
    package static let instant = Shape.named("Instant", .text(.instant))
}
