import GateVocabulary

/// Every bound on what crosses the socket, with its unit and where it comes from. The endpoint, the
/// parser and the OpenAPI document read the same numbers.
package enum WireLimits {
    // MARK: Requests

    /// Bytes of one request body, and of one line of a stream.
    package static let bodyByteCountMax = 65_536
    /// Bytes of the header section of one request, request line included.
    package static let headerByteCountMax = 16_384
    /// Bytes of the request target. Four ids of 128 bytes, all percent-encoded, and a query fit.
    package static let targetByteCountMax = 4_096
    /// Lines of one stream sent with `Content-Length`.
    package static let batchLineCountMax = 10_000
    /// Bytes of one stream sent with `Content-Length`: 16 MiB.
    package static let batchByteCountMax = 16_777_216

    /// Bytes of a socket's path: `sun_path` is 108 with its closing zero (unix(7)).
    package static let socketPathByteCountMax = 107

    // MARK: Texts

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
    /// Members of `params`, and of any object or array inside it.
    package static let paramCountMax = 64
    /// Arrays and objects inside one another within `params`; money needs one.
    package static let paramDepthMax = 4

    // MARK: Numbers

    /// Seconds a send may be worth something.
    package static let ttlSecondsMax = SendRequest.ttlSecondsMax
    /// Registered devices of one recipient; the same for addresses.
    package static let destinationCountMax = 20
    /// Events in one answer of `GET /v1/events`, and how many when the caller does not say.
    package static let eventCountMax: Int64 = 1_000
    package static let eventCountDefault: Int64 = 100
    /// Decisions in one answer of `GET …/decisions` and `GET /v1/recipients/{user}`, about 1 KB each, and how many
    /// `…/decisions` gives when the caller does not say.
    package static let decisionCountMax: Int64 = 1_000
    package static let decisionCountDefault: Int64 = 20
    /// People looked at for one answer of `GET /v1/drift/findings`; with twenty devices each, and all that can be found of
    /// them, an answer stays below a few megabytes, and with what people have, below 100 KB.
    package static let driftPersonCountMax: Int64 = 500

    // MARK: Answers

    /// Violations listed in one problem document; how many more there are is said in its detail. Keeps
    /// the answer to a hostile body smaller than the body.
    package static let violationCountMax = 100
}
