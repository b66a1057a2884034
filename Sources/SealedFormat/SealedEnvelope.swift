/// A sealed message as it travels: one JSON object with a single spelling.
///
///     {"v":1,"s":"<suite>","kid":"<32 hex digits>","mid":"<UUID>","exp":<10 digits>,"ct":"<base64url>"}
///
/// Fields stand in this order, without white space; hexadecimal digits are lower-case; `ct` is the
/// encapsulated key and the ciphertext, base64url without padding. Every other spelling is refused, so
/// equal messages have equal bytes and nothing outside the seal can be changed unnoticed.
///
/// - Warning: No field of an envelope is authenticated before it opens. `s` names a suite, but the opener takes suite and key
///   from its own record of `kid`.
package struct SealedEnvelope: Hashable, Sendable {
    package let suite: SealingSuite
    package let keyID: [UInt8]
    package let messageID: [UInt8]
    /// Unix seconds.
    package let expiresAt: UInt64
    /// The encapsulated key, then the ciphertext with its tag.
    package let sealed: [UInt8]

    /// - Parameters:
    ///   - keyID: 16 bytes.
    ///   - messageID: 16 bytes.
    ///   - expiresAt: Unix seconds within ``SealedLimits/expiry``.
    ///   - sealed: The suite's encapsulated key, one bucket, and the tag.
    package init(
        suite: SealingSuite, keyID: [UInt8], messageID: [UInt8], expiresAt: UInt64, sealed: [UInt8]
    ) throws(SealedFormatError) {
        try require(keyID, "a key id", SealedLimits.identifierByteCount)
        try require(messageID, "a message id", SealedLimits.identifierByteCount)
        guard SealedLimits.expiry.contains(expiresAt) else { throw .expiryOutOfRange(seconds: expiresAt) }
        let plaintextCount = sealed.count - suite.publicKeyByteCount - SealedLimits.tagByteCount
        guard SealedLimits.buckets.contains(plaintextCount) else {
            throw .wrongByteCount(
                of: "`ct`", expected: Self.nearestSealedByteCount(to: sealed.count, suite: suite),
                actual: sealed.count)
        }
        self.suite = suite
        self.keyID = keyID
        self.messageID = messageID
        self.expiresAt = expiresAt
        self.sealed = sealed
    }

    package var encapsulatedKey: ArraySlice<UInt8> { sealed[..<suite.publicKeyByteCount] }
    package var ciphertext: ArraySlice<UInt8> { sealed[suite.publicKeyByteCount...] }

    /// The quotation marks in an envelope. Each becomes two bytes where the envelope is carried as a JSON string, as in FCM's
    /// `data`, which holds only strings.
    package static let quotationMarkCount = 20

    private static func nearestSealedByteCount(to count: Int, suite: SealingSuite) -> Int {
        let counts = SealedLimits.buckets.map { $0 + suite.publicKeyByteCount + SealedLimits.tagByteCount }
        return counts.first { count <= $0 } ?? counts[counts.count - 1]
    }

    // MARK: Writing

    package var bytes: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(Self.byteCount(sealedByteCount: sealed.count, suite: suite))
        text.append(contentsOf: Self.beforeSuite.utf8)
        text.append(contentsOf: suite.rawValue.utf8)
        text.append(contentsOf: Self.beforeKeyID.utf8)
        Hexadecimal.append(keyID, to: &text)
        text.append(contentsOf: Self.beforeMessageID.utf8)
        Hexadecimal.appendUUID(messageID, to: &text)
        text.append(contentsOf: Self.beforeExpiry.utf8)
        text.append(contentsOf: String(expiresAt).utf8)
        text.append(contentsOf: Self.beforeSealed.utf8)
        Base64URL.append(sealed, to: &text)
        text.append(contentsOf: Self.afterSealed.utf8)
        return text
    }

    private static let beforeSuite: StaticString = #"{"v":1,"s":""#
    private static let beforeKeyID: StaticString = #"","kid":""#
    private static let beforeMessageID: StaticString = #"","mid":""#
    private static let beforeExpiry: StaticString = #"","exp":"#
    private static let beforeSealed: StaticString = #","ct":""#
    private static let afterSealed: StaticString = #""}"#

    /// The length of an envelope around `contentByteCount` bytes of content.
    ///
    /// - Returns: Bytes, which are also characters; `nil` when the content fits no bucket.
    package static func byteCount(contentByteCount: Int, suite: SealingSuite) -> Int? {
        SealedLimits.bucket(contentByteCount: contentByteCount).map { bucket in
            byteCount(
                sealedByteCount: suite.publicKeyByteCount + bucket + SealedLimits.tagByteCount, suite: suite)
        }
    }

    private static func byteCount(sealedByteCount: Int, suite: SealingSuite) -> Int {
        // The fixed texts have 12 + 9 + 9 + 8 + 7 + 2 bytes; a key id has 32, a UUID 36, an expiry 10.
        47 + suite.rawValue.utf8.count + 32 + 36 + 10 + Base64URL.characterCount(byteCount: sealedByteCount)
    }

    /// The length of the longest envelope there is: what a reader may have to hold.
    package static let byteCountMax = SealingSuite.allCases.map {
        byteCount(sealedByteCount: $0.publicKeyByteCount + 2048 + SealedLimits.tagByteCount, suite: $0)
    }.max()!

    // MARK: Reading

    /// Accepts exactly what ``bytes`` writes.
    package init(decoding text: [UInt8]) throws(SealedFormatError) {
        guard text.count <= Self.byteCountMax else {
            throw .malformedEnvelope(
                expected: "at most \(Self.byteCountMax) bytes", offset: Self.byteCountMax)
        }
        var reader = EnvelopeReader(text)
        try reader.skip(Self.beforeSuite, "`{\"v\":1,\"s\":\"`")
        let suiteOffset = reader.offset
        guard
            let suite = SealingSuite(
                rawValue: String(decoding: reader.takeUntilQuotationMark(), as: UTF8.self))
        else {
            throw .malformedEnvelope(expected: "the name of a known suite", offset: suiteOffset)
        }
        try reader.skip(Self.beforeKeyID, "`kid`")
        let keyID = try reader.take(32, "32 lower-case hexadecimal digits", Hexadecimal.decode)
        try reader.skip(Self.beforeMessageID, "`mid`")
        let messageID = try reader.take(36, "a lower-case UUID", Hexadecimal.decodeUUID)
        try reader.skip(Self.beforeExpiry, "`exp`")
        let expiresAt = try reader.take(10, "a Unix time of ten digits", Self.decimal)
        try reader.skip(Self.beforeSealed, "`ct`")
        let sealedOffset = reader.offset
        guard let sealed = Base64URL.decode(reader.takeUntilQuotationMark()) else {
            throw .malformedEnvelope(expected: "base64url without padding", offset: sealedOffset)
        }
        try reader.skip(Self.afterSealed, "the end of the object")
        guard reader.offset == text.count else {
            throw .malformedEnvelope(expected: "nothing more", offset: reader.offset)
        }
        try self.init(suite: suite, keyID: keyID, messageID: messageID, expiresAt: expiresAt, sealed: sealed)
    }

    /// The envelope whose fields arrived one by one, as they do when a push service hands over a parsed
    /// dictionary instead of text. The same values are accepted, and nothing more.
    package init(
        version: Int, suite: String, keyID: String, messageID: String, expiresAt: Int64, ciphertext: String
    ) throws(SealedFormatError) {
        guard version == 1 else { throw .malformedField("v", expected: "1") }
        guard let suite = SealingSuite(rawValue: suite) else {
            throw .malformedField("s", expected: "the name of a known suite")
        }
        guard let keyID = Hexadecimal.decode(Array(keyID.utf8)[...]) else {
            throw .malformedField("kid", expected: "32 lower-case hexadecimal digits")
        }
        guard let messageID = Hexadecimal.decodeUUID(Array(messageID.utf8)[...]) else {
            throw .malformedField("mid", expected: "a lower-case UUID")
        }
        guard let expiresAt = UInt64(exactly: expiresAt) else {
            throw .malformedField("exp", expected: "a Unix time of ten digits")
        }
        guard ciphertext.utf8.count <= Self.byteCountMax, let sealed = Base64URL.decode(ciphertext) else {
            throw .malformedField("ct", expected: "base64url without padding")
        }
        try self.init(suite: suite, keyID: keyID, messageID: messageID, expiresAt: expiresAt, sealed: sealed)
    }

    private static func decimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard digits.first != UInt8(ascii: "0") else { return nil }
        var number: UInt64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
        }
        return number
    }
}

/// Walks over an envelope's fixed shape.
private struct EnvelopeReader {
    private let text: [UInt8]
    private(set) var offset = 0

    init(_ text: [UInt8]) { self.text = text }

    mutating func skip(_ fixed: StaticString, _ expected: String) throws(SealedFormatError) {
        guard text[offset...].starts(with: fixed.utf8) else {
            throw .malformedEnvelope(expected: expected, offset: offset)
        }
        offset += fixed.utf8CodeUnitCount
    }

    mutating func take<Value>(
        _ count: Int, _ expected: String, _ decode: (ArraySlice<UInt8>) -> Value?
    ) throws(SealedFormatError) -> Value {
        guard offset + count <= text.count, let value = decode(text[offset..<(offset + count)]) else {
            throw .malformedEnvelope(expected: expected, offset: offset)
        }
        offset += count
        return value
    }

    /// Everything up to the next quotation mark, or to the end.
    mutating func takeUntilQuotationMark() -> ArraySlice<UInt8> {
        let end = text[offset...].firstIndex(of: UInt8(ascii: "\"")) ?? text.count
        defer { offset = end }
        return text[offset..<end]
    }
}

extension StaticString {
    fileprivate var utf8: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }
}
