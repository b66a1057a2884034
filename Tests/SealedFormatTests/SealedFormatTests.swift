import SealedFormat
import Testing

/// Bytes that are easy to find again in an encoding.
private func bytes(_ count: Int, startingAt first: UInt8) -> [UInt8] {
    (0..<count).map { first &+ UInt8(truncatingIfNeeded: $0) }
}

private func info(
    purpose: SealingPurpose = .notification, suite: SealingSuite = .p256, app: String = "no.getdrop.app",
    device: String = "d_1", keyID: [UInt8] = bytes(16, startingAt: 0x10),
    publicKeyDigest: [UInt8] = bytes(32, startingAt: 0x40), messageID: [UInt8] = bytes(16, startingAt: 0x80),
    expiresAt: UInt64 = 1_790_000_000
) throws -> SealedInfo {
    try SealedInfo(
        purpose: purpose, suite: suite, app: app, device: device, keyID: keyID,
        publicKeyDigest: publicKeyDigest,
        messageID: messageID, expiresAt: expiresAt)
}

@Suite struct SealedInfoTests {
    @Test func `info has exactly the documented bytes`() throws {
        var expected = Array("sendgate/sealed/v1".utf8) + [0]
        expected += [1]  // purpose: notification
        expected += [0x00, 0x10, 0x00, 0x01, 0x00, 0x02]  // P-256, HKDF-SHA256, AES-256-GCM
        expected += [0, 14] + Array("no.getdrop.app".utf8)
        expected += [0, 3] + Array("d_1".utf8)
        expected += bytes(16, startingAt: 0x10) + bytes(32, startingAt: 0x40) + bytes(16, startingAt: 0x80)
        expected += [0, 0, 0, 0, 0x6A, 0xB1, 0x3B, 0x80]  // 1,790,000,000
        #expect(try info().bytes == expected)
    }

    @Test func `the other suite and purpose change only their own bytes`() throws {
        var expected = try info().bytes
        expected[19] = 2
        expected.replaceSubrange(20..<26, with: [0x00, 0x20, 0x00, 0x01, 0x00, 0x03])
        #expect(try info(purpose: .challenge, suite: .x25519).bytes == expected)
    }

    @Test func `a letter moved from the app's name to the device's gives other bytes`() throws {
        #expect(try info(app: "ab", device: "c").bytes != info(app: "a", device: "bc").bytes)
    }

    @Test func `names are counted in UTF-8 bytes`() throws {
        let encoded = try info(app: "å", device: "📱").bytes
        #expect(encoded[26...35].elementsEqual([0, 2, 0xC3, 0xA5, 0, 4, 0xF0, 0x9F, 0x93, 0xB1]))
    }

    @Test func `names that are empty or too long are refused, the longest is not`() throws {
        let longest = String(repeating: "a", count: 1024)
        _ = try info(app: longest, device: longest)
        #expect(throws: SealedFormatError.nameLength(of: "app", byteCount: 0, byteCountMax: 1024)) {
            try info(app: "")
        }
        #expect(throws: SealedFormatError.nameLength(of: "device", byteCount: 0, byteCountMax: 1024)) {
            try info(device: "")
        }
        #expect(throws: SealedFormatError.nameLength(of: "app", byteCount: 1025, byteCountMax: 1024)) {
            try info(app: longest + "a")
        }
    }

    @Test func `fixed fields of another length are refused`() {
        #expect(throws: SealedFormatError.wrongByteCount(of: "a key id", expected: 16, actual: 15)) {
            try info(keyID: bytes(15, startingAt: 0))
        }
        #expect(
            throws: SealedFormatError.wrongByteCount(of: "a public key's digest", expected: 32, actual: 33)
        ) {
            try info(publicKeyDigest: bytes(33, startingAt: 0))
        }
        #expect(throws: SealedFormatError.wrongByteCount(of: "a message id", expected: 16, actual: 0)) {
            try info(messageID: [])
        }
    }

    @Test(arguments: [0, 999_999_999, 10_000_000_000, 1_790_000_000_000, UInt64.max])
    func `an expiry that has not ten digits is refused`(seconds: UInt64) {
        #expect(throws: SealedFormatError.expiryOutOfRange(seconds: seconds)) { try info(expiresAt: seconds) }
    }

    @Test(arguments: [1_000_000_000, 9_999_999_999] as [UInt64])
    func `the first and the last expiry are accepted`(seconds: UInt64) throws {
        #expect(try info(expiresAt: seconds).expiresAt == seconds)
    }

    @Test func `the origin signs exactly the documented bytes`() throws {
        let statement = try OriginStatement.bytes(
            infoDigest: bytes(32, startingAt: 0x20), originKeyID: bytes(8, startingAt: 0xA0),
            content: Array("{}".utf8))
        #expect(
            statement == Array("sendgate/origin/v1".utf8) + [0] + bytes(32, startingAt: 0x20)
                + bytes(8, startingAt: 0xA0) + [0, 2] + Array("{}".utf8))
        #expect(throws: SealedFormatError.wrongByteCount(of: "an origin key id", expected: 8, actual: 7)) {
            try OriginStatement.bytes(
                infoDigest: bytes(32, startingAt: 0), originKeyID: bytes(7, startingAt: 0), content: [])
        }
        #expect(throws: SealedFormatError.wrongByteCount(of: "an info's digest", expected: 32, actual: 31)) {
            try OriginStatement.bytes(
                infoDigest: bytes(31, startingAt: 0), originKeyID: bytes(8, startingAt: 0), content: [])
        }
    }

    @Test func `possession is proved over exactly the documented bytes`() {
        #expect(PossessionStatement.bytes(info: [7, 8]) == Array("sendgate/possession/v1".utf8) + [0, 7, 8])
    }
}

@Suite struct SealedPlaintextTests {
    private func plaintext(_ contentCount: Int) throws -> SealedPlaintext {
        try SealedPlaintext(
            originKeyID: bytes(8, startingAt: 0xA0), signature: bytes(64, startingAt: 1),
            content: [UInt8](repeating: 0x5A, count: contentCount))
    }

    @Test func `a plaintext has exactly the documented bytes`() throws {
        let expected =
            bytes(8, startingAt: 0xA0) + bytes(64, startingAt: 1) + [0, 3, 0x5A, 0x5A, 0x5A]
            + [UInt8](repeating: 0, count: 256 - 8 - 64 - 2 - 3)
        #expect(try plaintext(3).bytes == expected)
    }

    @Test(arguments: [
        (0, 256), (1, 256), (181, 256), (182, 256), (183, 512), (438, 512), (439, 1024), (950, 1024),
        (951, 2048),
        (1973, 2048), (1974, 2048),
    ])
    func `content takes the smallest bucket that holds it`(contentCount: Int, bucket: Int) throws {
        let plaintext = try plaintext(contentCount)
        #expect(plaintext.bytes.count == bucket)
        #expect(try SealedPlaintext(decoding: plaintext.bytes) == plaintext)
    }

    @Test func `1,974 bytes are the most`() {
        #expect(SealedLimits.contentByteCountMax == 1974)
        #expect(SealedLimits.bucket(contentByteCount: 1975) == nil)
        #expect(SealedLimits.bucket(contentByteCount: -1) == nil)
        #expect(throws: SealedFormatError.contentTooLong(byteCount: 1975, byteCountMax: 1974)) {
            try plaintext(1975)
        }
        #expect(throws: SealedFormatError.contentTooLong(byteCount: 1975, byteCountMax: 1974)) {
            try OriginStatement.bytes(
                infoDigest: bytes(32, startingAt: 0), originKeyID: bytes(8, startingAt: 0),
                content: [UInt8](repeating: 0, count: 1975))
        }
    }

    @Test func `any byte of the padding that is not zero is refused`() throws {
        let good = try plaintext(150).bytes
        for index in (8 + 64 + 2 + 150)..<256 {
            var bad = good
            bad[index] = 1
            #expect(
                throws: SealedFormatError.malformedPlaintext(rule: "its padding is not zeros"),
                "byte \(index)"
            ) {
                try SealedPlaintext(decoding: bad)
            }
        }
    }

    @Test func `lengths that are no bucket are refused`() throws {
        let good = try plaintext(1974).bytes
        for count in [0, 1, 73, 74, 255, 257, 511, 1025, 2047] {
            #expect(throws: SealedFormatError.malformedPlaintext(rule: "its \(count) bytes are no bucket")) {
                try SealedPlaintext(decoding: Array(good.prefix(count)))
            }
        }
        #expect(throws: SealedFormatError.self) { try SealedPlaintext(decoding: good + good) }
    }

    @Test func `a length field beyond the bucket is refused`() throws {
        var bad = try plaintext(10).bytes
        (bad[72], bad[73]) = (0, 183)
        #expect(
            throws: SealedFormatError.malformedPlaintext(
                rule: "its length field says 183, the bucket holds 182")
        ) { try SealedPlaintext(decoding: bad) }
        (bad[72], bad[73]) = (0xFF, 0xFF)
        #expect(throws: SealedFormatError.self) { try SealedPlaintext(decoding: bad) }
    }

    @Test func `a bucket larger than needed is refused, so a length has one encoding`() throws {
        let bad = try plaintext(10).bytes + [UInt8](repeating: 0, count: 256)
        #expect(throws: SealedFormatError.malformedPlaintext(rule: "its content fits a smaller bucket")) {
            try SealedPlaintext(decoding: bad)
        }
    }
}

@Suite struct SealedEnvelopeTests {
    static let keyID = "000102030405060708090a0b0c0d0e0f"
    static let messageID = "f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f"

    private func envelope(_ suite: SealingSuite = .p256, bucket: Int = 256) throws -> SealedEnvelope {
        try SealedEnvelope(
            suite: suite, keyID: bytes(16, startingAt: 0),
            messageID: [
                0xF0, 0xE1, 0xD2, 0xC3, 0xB4, 0xA5, 0x96, 0x87, 0x78, 0x69, 0x5A, 0x4B, 0x3C, 0x2D, 0x1E,
                0x0F,
            ],
            expiresAt: 1_790_000_000, sealed: bytes(suite.publicKeyByteCount + bucket + 16, startingAt: 3))
    }

    private func text(_ envelope: SealedEnvelope) -> String {
        String(decoding: envelope.bytes, as: UTF8.self)
    }

    @Test(arguments: SealingSuite.allCases) func `an envelope has exactly the documented text`(
        suite: SealingSuite
    ) throws {
        let envelope = try envelope(suite)
        let expected =
            #"{"v":1,"s":"\#(suite.rawValue)","kid":"\#(Self.keyID)","mid":"\#(Self.messageID)","exp":1790000000,"#
            + #""ct":"\#(Base64URL.encode(envelope.sealed))"}"#
        #expect(text(envelope) == expected)
        #expect(expected.utf8.count { $0 == UInt8(ascii: "\"") } == SealedEnvelope.quotationMarkCount)
    }

    @Test func `suites have the names that key records use`() {
        #expect(
            SealingSuite.allCases.map(\.rawValue) == [
                "P256_SHA256_AES256GCM", "X25519_SHA256_CHACHA20POLY1305",
            ])
    }

    @Test func `reading gives back what was written, in every bucket and suite`() throws {
        for suite in SealingSuite.allCases {
            for bucket in SealedLimits.buckets {
                let written = try envelope(suite, bucket: bucket)
                let read = try SealedEnvelope(decoding: written.bytes)
                #expect(read == written)
                #expect(read.encapsulatedKey.count == suite.publicKeyByteCount)
                #expect(read.ciphertext.count == bucket + 16)
                #expect(Array(read.encapsulatedKey + read.ciphertext) == written.sealed)
            }
        }
    }

    @Test func `the length is foretold for every content there is`() throws {
        for suite in SealingSuite.allCases {
            for contentCount in 0...1974 {
                let bucket = try #require(SealedLimits.bucket(contentByteCount: contentCount))
                let foretold = SealedEnvelope.byteCount(contentByteCount: contentCount, suite: suite)
                if contentCount < 2 || contentCount % 50 == 0 || contentCount > 1970 {
                    #expect(try envelope(suite, bucket: bucket).bytes.count == foretold)
                }
                #expect(try #require(foretold) <= SealedEnvelope.byteCountMax)
            }
            #expect(SealedEnvelope.byteCount(contentByteCount: 1975, suite: suite) == nil)
            #expect(SealedEnvelope.byteCount(contentByteCount: -1, suite: suite) == nil)
        }
        // The largest has about 3,000 characters, within APNs' and FCM's 4,096.
        #expect(SealedEnvelope.byteCount(contentByteCount: 1974, suite: .p256) == 2985)
        #expect(SealedEnvelope.byteCountMax == 2985)
    }

    @Test func `an envelope cut anywhere is refused`() throws {
        let whole = try envelope().bytes
        for count in 0..<whole.count {
            #expect(throws: SealedFormatError.self, "\(count) bytes") {
                try SealedEnvelope(decoding: Array(whole.prefix(count)))
            }
        }
    }

    /// Each pair replaces a piece of a good envelope and must be refused.
    @Test(arguments: [
        ("{\"v\"", " {\"v\""), ("{\"v\"", "{ \"v\""), ("\"v\":1", "\"v\": 1"), ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":1.0"), ("\"v\":1", "\"v\":\"1\""), ("\"v\":1", "\"\\u0076\":1"), ("\"v\":1,", ""),
        ("\"v\":1,", "\"v\":1,\"v\":1,"), ("\"v\":1,", "\"v\":1,\"x\":0,"),
        ("P256_SHA256_AES256GCM", "p256_sha256_aes256gcm"), ("P256_SHA256_AES256GCM", ""),
        ("P256_SHA256_AES256GCM", "X25519_SHA256_CHACHA20POLY1305"),
        ("P256_SHA256_AES256GCM", "P256_SHA256_AES128GCM"),
        ("0a0b0c", "0A0b0c"), ("0a0b0c", "0a0b0"), ("0a0b0c", "0a0b0g"), ("0a0b0c", "0a0b0c00"),
        ("f0e1d2c3-", "F0e1d2c3-"), ("f0e1d2c3-", "f0e1d2c3"), ("-b4a5-", "b4-a5-"), ("-b4a5-", "_b4a5_"),
        ("1790000000", "179000000"), ("1790000000", "17900000000"), ("1790000000", "0790000000"),
        ("1790000000", "\"1790000000\""), ("1790000000", "-790000000"), ("1790000000", "+790000000"),
        ("1790000000", "1.79e9"), ("\"ct\":\"", "\"ct\": \""), ("\"ct\":\"", "\"ct\":\"\""),
        ("\"ct\":\"AwQF", "\"ct\":\"Aw+F"),
        ("\"ct\":\"AwQF", "\"ct\":\"Aw/F"), ("\"ct\":\"AwQF", "\"ct\":\"AwQ"), ("\"ct\":\"AwQF", "\"ct\":\""),
        ("\"ct\":\"AwQF", "\"ct\":\"AwQFAwQF"), ("\"}", "\"} "), ("\"}", "\"}\n"), ("\"}", "=\"}"),
        ("\"}", "\",\"x\":1}"),
        ("\"}", "\"}{}"), ("\"kid\"", "\"Kid\""), ("\"mid\"", "\"kid\""), ("\"exp\"", "\"exP\""),
    ])
    func `a second spelling is refused`(piece: String, replacement: String) throws {
        let good = text(try envelope())
        let bad = Self.replacingOnce(piece, with: replacement, in: good)
        #expect(bad != good, "the envelope does not contain `\(piece)`")
        #expect(throws: SealedFormatError.self) { try SealedEnvelope(decoding: Array(bad.utf8)) }
    }

    private static func replacingOnce(_ piece: String, with replacement: String, in text: String) -> String {
        guard let range = text.firstRange(of: piece) else { return text }
        return text.replacingCharacters(range, with: replacement)
    }

    @Test func `a refusal says where and what was expected`() throws {
        let bad = Self.replacingOnce("\"exp\"", with: "\"Exp\"", in: text(try envelope()))
        #expect(throws: SealedFormatError.malformedEnvelope(expected: "`exp`", offset: 119)) {
            try SealedEnvelope(decoding: Array(bad.utf8))
        }
        #expect(
            SealedFormatError.malformedEnvelope(expected: "`exp`", offset: 119).description
                == "not an envelope: expected `exp` at byte 119")
    }

    @Test func `more bytes than any envelope has are refused unread`() {
        let count = SealedEnvelope.byteCountMax
        #expect(
            throws: SealedFormatError.malformedEnvelope(expected: "at most \(count) bytes", offset: count)
        ) {
            try SealedEnvelope(decoding: [UInt8](repeating: UInt8(ascii: "{"), count: count + 1))
        }
    }

    @Test func `a ciphertext of no bucket's length is refused`() throws {
        for count in [0, 65, 65 + 16, 65 + 255 + 16, 65 + 257 + 16, 65 + 2049 + 16] {
            #expect(throws: SealedFormatError.self, "\(count) bytes") {
                try SealedEnvelope(
                    suite: .p256, keyID: bytes(16, startingAt: 0), messageID: bytes(16, startingAt: 0),
                    expiresAt: 1_790_000_000, sealed: bytes(count, startingAt: 0))
            }
        }
    }

    @Test func `fields that arrive one by one make the same envelope`() throws {
        let envelope = try envelope()
        let ciphertext = Base64URL.encode(envelope.sealed)
        func make(
            version: Int = 1, suite: String = "P256_SHA256_AES256GCM", keyID: String = Self.keyID,
            messageID: String = Self.messageID, expiresAt: Int64 = 1_790_000_000, ciphertext: String
        ) throws -> SealedEnvelope {
            try SealedEnvelope(
                version: version, suite: suite, keyID: keyID, messageID: messageID, expiresAt: expiresAt,
                ciphertext: ciphertext)
        }
        #expect(try make(ciphertext: ciphertext) == envelope)
        #expect(throws: SealedFormatError.malformedField("v", expected: "1")) {
            try make(version: 2, ciphertext: ciphertext)
        }
        #expect(throws: SealedFormatError.self) { try make(suite: "", ciphertext: ciphertext) }
        #expect(throws: SealedFormatError.self) {
            try make(keyID: Self.keyID.uppercased(), ciphertext: ciphertext)
        }
        #expect(throws: SealedFormatError.self) { try make(keyID: "00", ciphertext: ciphertext) }
        #expect(throws: SealedFormatError.self) {
            try make(messageID: Self.messageID.uppercased(), ciphertext: ciphertext)
        }
        #expect(throws: SealedFormatError.self) { try make(expiresAt: -1, ciphertext: ciphertext) }
        #expect(throws: SealedFormatError.self) { try make(expiresAt: 5, ciphertext: ciphertext) }
        #expect(throws: SealedFormatError.self) { try make(ciphertext: ciphertext + "=") }
        #expect(throws: SealedFormatError.self) {
            try make(ciphertext: String(repeating: "A", count: 10_000_000))
        }
    }
}

@Suite struct Base64URLTests {
    /// RFC 4648 section 10, without padding, and the two characters that differ from plain Base64.
    @Test(
        arguments: [
            ([], ""), ([0x66], "Zg"), ([0x66, 0x6F], "Zm8"), ([0x66, 0x6F, 0x6F], "Zm9v"),
            ([0xFB, 0xFF], "-_8"),
            (Array("foobar".utf8), "Zm9vYmFy"), ([0, 0, 0, 0], "AAAAAA"),
        ] as [([UInt8], String)])
    func `bytes have one text and the text one value`(bytes: [UInt8], text: String) {
        #expect(Base64URL.encode(bytes) == text)
        #expect(Base64URL.decode(text) == bytes)
        #expect(Base64URL.characterCount(byteCount: bytes.count) == text.utf8.count)
    }

    @Test(arguments: [
        "Zg==", "Zh", "Zm9", "A", "AAAAA", "Zm9v\n", " Zm9v", "Zm+v", "Zm/v", "Zm9vé", "\0\0\0\0",
    ])
    func `every other text is refused`(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func `every length survives`() {
        for count in 0...100 {
            let value = bytes(count, startingAt: 0xF7)
            #expect(Base64URL.decode(Base64URL.encode(value)) == value)
        }
    }

    @Test func `appending leaves what was there`() {
        var text = Array("ct:".utf8)
        Base64URL.append([0x66, 0x6F], to: &text)
        #expect(text == Array("ct:Zm8".utf8))
    }
}

extension String {
    fileprivate func replacingCharacters(_ range: Range<Index>, with replacement: String) -> String {
        String(self[..<range.lowerBound]) + replacement + self[range.upperBound...]
    }
}
