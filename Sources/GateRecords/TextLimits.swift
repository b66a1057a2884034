import GateVocabulary

/// Every bound on a text that a caller writes, with its unit and where it comes from.
package enum TextLimits {
    /// Characters, and so bytes, of an ASCII id.
    package static let identifierByteCountMax = 128
    /// Characters of an id with anything outside ASCII. Each takes at most four bytes of UTF-8, so that
    /// such an id stays within ``identifierByteCountMax`` too. JSON Schema counts characters and cannot
    /// count bytes; bounded this way, the OpenAPI document and the parser accept exactly the same ids.
    package static let identifierCharacterCountMax = 32
    /// Characters of a deep link (GateVocabulary, `SendRequest`).
    package static let deepLinkCharacterCountMax = SendRequest.deepLinkByteCountMax
    /// Characters of a BCP 47 tag.
    package static let localeCharacterCountMax = LanguageTag.byteCountMax
    /// Characters of an IANA zone name; the longest in tzdata 2026 has 32.
    package static let timeZoneCharacterCountMax = 64
    /// Characters of an app's bundle id or package name (App Store Connect: 155).
    package static let appCharacterCountMax = 155
    /// Characters of a push token. APNs' are 64 today and FCM's about 160; both vendors ask for room.
    package static let fcmTokenCharacterCountMax = 2_048
    /// Two digits a byte.
    package static let apnsTokenCharacterCountMax = 200
    /// Characters of an e-mail address (RFC 5321 section 4.5.3.1, less the angle brackets: 254).
    package static let emailCharacterCountMax = 254
    /// Characters of a phone number as it is written: 15 digits (ITU-T E.164), each between others, and `tel:` (RFC 3966).
    package static let phoneNumberCharacterCountMax = 64
    /// Characters of the sender of a reply: a line of a message (RFC 5322 section 2.1.1), which a `From` may fill.
    package static let senderCharacterCountMax = 998
    /// Of a reply: ten joined text messages of 160 characters, or the first line of an e-mail.
    package static let replyCharacterCountMax = 1600
    /// Characters of one text inside `params`. Far above what any type's own schema admits; it only keeps
    /// one text from filling the body.
    package static let paramTextCharacterCountMax = 4_096
    /// Characters of a signed list of keys: the longest list, and many signatures.
    package static let signedNoteCharacterCountMax = 40_000
    /// Characters of one key inside `params`.
    package static let paramNameCharacterCountMax = SendRequest.paramNameCharacterCountMax
}
