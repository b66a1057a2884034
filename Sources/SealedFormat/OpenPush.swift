/// A member of an open push that the origin key signs: what is shown, where a tap leads, and what it is about.
///
/// The raw value is its name in FCM's `data` and in a statement. In an APNs body `title`, `body`, `badge` and
/// `action_category` stand inside `aps` (`alert.title`, `alert.body`, `badge`, `category`), the others beside it.
package enum OpenPushMember: String, CaseIterable, Sendable {
    // In the order of their bytes, which is their order in a statement.
    case actionCategory = "action_category"
    case alertRecord = "alert_record"
    case badge
    case body
    case category
    case deepLink = "deep_link"
    case number
    case params
    case send = "send_id"
    case title
    case type
    case unsubscribe
}

/// What an open push shows and leads to, as the origin key signs it and an app reads it.
///
/// Values are texts, as FCM's `data` has them: `true` or `false`, decimal digits, and canonical JSON for `params`.
package struct OpenPushContent: Hashable, Sendable {
    /// `count u8 ‖ (lp(name) ‖ lp(value))…`, each member at most once and in the order of ``OpenPushMember``.
    package let bytes: [UInt8]

    /// Bytes of the longest text, whose count takes two. A body has 4,096.
    package static let textByteCountMax = Int(UInt16.max)

    /// - Parameter value: The text of a member, or `nil` where the push has none.
    package init(_ value: (OpenPushMember) -> String?) throws(SealedFormatError) {
        try self.init(OpenPushMember.allCases.compactMap { name in value(name).map { (name, $0) } })
    }

    /// - Parameter members: Those that the push has, each once and in the order of ``OpenPushMember``.
    package init(_ members: [(name: OpenPushMember, text: String)]) throws(SealedFormatError) {
        var byteCount = 1
        for (name, text) in members {
            guard text.utf8.count <= Self.textByteCountMax else {
                throw .malformedField(name.rawValue, expected: "at most \(Self.textByteCountMax) bytes")
            }
            byteCount += 4 + name.rawValue.utf8.count + text.utf8.count
        }
        bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            // `byteCount` is what the loop writes: both take two bytes and a text for each name and each text.
            let rest = UnsafeMutableRawBufferPointer(buffer)
            rest[0] = UInt8(members.count)
            count = 1
            for (name, text) in members {
                count += Self.put(name.rawValue, in: rest, at: count)
                count += Self.put(text, in: rest, at: count)
            }
        }
    }

    /// - Returns: How many bytes the length and the text take.
    private static func put(_ text: String, in bytes: UnsafeMutableRawBufferPointer, at place: Int) -> Int {
        var text = text
        return text.withUTF8 { utf8 in
            bytes.storeBytes(
                of: UInt16(truncatingIfNeeded: utf8.count).bigEndian, toByteOffset: place, as: UInt16.self)
            UnsafeMutableRawBufferPointer(rebasing: bytes[(place + 2)...])
                .copyMemory(from: UnsafeRawBufferPointer(utf8))
            return 2 + utf8.count
        }
    }
}

/// What the origin key signs of a push that is not sealed.
///
///     "sendgate/open/v1\0" ‖ origin_kid[8] ‖ lp(app) ‖ lp(device) ‖ mid[16] ‖ exp u64 ‖ content
///
/// `content` is ``OpenPushContent/bytes``. All integers are big-endian, `lp` is a u16 length and that many UTF-8
/// bytes. App and device are what each end knows by itself, so a push that was shown elsewhere does not verify here.
package enum OpenPushStatement {
    /// - Parameters:
    ///   - originKeyID: 8 bytes.
    ///   - app: The app's bundle or package name; 1 to 1,024 bytes.
    ///   - device: The device's id as its owner registered it; the same bounds.
    ///   - messageID: 16 bytes.
    ///   - expiresAt: Unix seconds, ten digits.
    package static func bytes(
        originKeyID: [UInt8], app: String, device: String, messageID: [UInt8], expiresAt: UInt64,
        content: OpenPushContent
    ) throws(SealedFormatError) -> [UInt8] {
        try require(originKeyID, "an origin key id", SealedLimits.originKeyIDByteCount)
        try requireNames(app: app, device: device)
        try require(messageID, "a message id", SealedLimits.identifierByteCount)
        guard SealedLimits.expiry.contains(expiresAt) else { throw .expiryOutOfRange(seconds: expiresAt) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(56 + app.utf8.count + device.utf8.count + content.bytes.count)
        bytes.append(contentsOf: "sendgate/open/v1\0".utf8)
        bytes.append(contentsOf: originKeyID)
        bytes.append(lengthPrefixed: app)
        bytes.append(lengthPrefixed: device)
        bytes.append(contentsOf: messageID)
        bytes.append(bigEndian: expiresAt)
        bytes.append(contentsOf: content.bytes)
        return bytes
    }
}

/// What an open push carries beside what it shows, under the name `origin`: base64url of
///
///     origin_kid[8] ‖ mid[16] ‖ exp u64 ‖ signature[64]
///
/// Always ``characterCount`` characters, so that the size of a body is known before it is signed.
package struct OriginMark: Hashable, Sendable {
    package let originKeyID: [UInt8]
    package let messageID: [UInt8]
    /// Unix seconds; nothing of the push is shown afterwards.
    package let expiresAt: UInt64
    /// By the origin key over ``OpenPushStatement``.
    package let signature: [UInt8]

    package init(
        originKeyID: [UInt8], messageID: [UInt8], expiresAt: UInt64, signature: [UInt8]
    ) throws(SealedFormatError) {
        try require(originKeyID, "an origin key id", SealedLimits.originKeyIDByteCount)
        try require(messageID, "a message id", SealedLimits.identifierByteCount)
        guard SealedLimits.expiry.contains(expiresAt) else { throw .expiryOutOfRange(seconds: expiresAt) }
        try require(signature, "a signature", SealedLimits.signatureByteCount)
        self.originKeyID = originKeyID
        self.messageID = messageID
        self.expiresAt = expiresAt
        self.signature = signature
    }

    private static let byteCount =
        SealedLimits.originKeyIDByteCount + SealedLimits.identifierByteCount + 8
        + SealedLimits.signatureByteCount

    /// 128.
    package static let characterCount = Base64URL.characterCount(byteCount: byteCount)

    package var text: [UInt8] {
        var bytes = originKeyID + messageID
        bytes.append(bigEndian: expiresAt)
        bytes += signature
        var text: [UInt8] = []
        Base64URL.append(bytes, to: &text)
        return text
    }

    /// Accepts exactly what ``text`` writes.
    package init(parsing text: String) throws(SealedFormatError) {
        guard text.utf8.count == Self.characterCount, let bytes = Base64URL.decode(text) else {
            throw .malformedField(
                "origin", expected: "\(Self.characterCount) characters of base64url without padding")
        }
        let messageStart = SealedLimits.originKeyIDByteCount
        let expiryStart = messageStart + SealedLimits.identifierByteCount
        let signatureStart = expiryStart + 8
        try self.init(
            originKeyID: Array(bytes[..<messageStart]), messageID: Array(bytes[messageStart..<expiryStart]),
            expiresAt: bytes[expiryStart..<signatureStart].reduce(0) { $0 << 8 | UInt64($1) },
            signature: Array(bytes[signatureStart...]))
    }
}
