/// Everything a sealed message is bound to: HPKE's `info`.
///
/// Both ends make these bytes from what each knows by itself; a message opened with any field changed
/// does not open. All integers are big-endian, `lp` is a u16 length and that many UTF-8 bytes:
///
///     "sendgate/sealed/v1\0" ‖ purpose u8 ‖ kem u16 ‖ kdf u16 ‖ aead u16
///         ‖ lp(app) ‖ lp(device) ‖ kid[16] ‖ SHA-256(raw device public key)[32] ‖ mid[16] ‖ exp u64
package struct SealedInfo: Hashable, Sendable {
    package let purpose: SealingPurpose
    package let suite: SealingSuite
    package let app: String
    package let device: String
    package let keyID: [UInt8]
    package let publicKeyDigest: [UInt8]
    package let messageID: [UInt8]
    /// Unix seconds, within ``SealedLimits/expiry``.
    package let expiresAt: UInt64

    /// - Parameters:
    ///   - app: The app's bundle or package name; 1 to 1,024 bytes of UTF-8. Compared byte by byte.
    ///   - device: The device's id as the gateway knows it; the same bounds.
    ///   - keyID: 16 bytes.
    ///   - publicKeyDigest: SHA-256 of the raw device public key, 32 bytes.
    ///   - messageID: 16 bytes.
    package init(
        purpose: SealingPurpose, suite: SealingSuite, app: String, device: String, keyID: [UInt8],
        publicKeyDigest: [UInt8], messageID: [UInt8], expiresAt: UInt64
    ) throws(SealedFormatError) {
        try requireNames(app: app, device: device)
        try require(keyID, "a key id", SealedLimits.identifierByteCount)
        try require(publicKeyDigest, "a public key's digest", SealedLimits.digestByteCount)
        try require(messageID, "a message id", SealedLimits.identifierByteCount)
        guard SealedLimits.expiry.contains(expiresAt) else { throw .expiryOutOfRange(seconds: expiresAt) }
        self.purpose = purpose
        self.suite = suite
        self.app = app
        self.device = device
        self.keyID = keyID
        self.publicKeyDigest = publicKeyDigest
        self.messageID = messageID
        self.expiresAt = expiresAt
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(102 + app.utf8.count + device.utf8.count)
        bytes.append(contentsOf: "sendgate/sealed/v1\0".utf8)
        bytes.append(purpose.rawValue)
        bytes.append(bigEndian: suite.kemID)
        bytes.append(bigEndian: suite.kdfID)
        bytes.append(bigEndian: suite.aeadID)
        bytes.append(lengthPrefixed: app)
        bytes.append(lengthPrefixed: device)
        bytes.append(contentsOf: keyID)
        bytes.append(contentsOf: publicKeyDigest)
        bytes.append(contentsOf: messageID)
        bytes.append(bigEndian: expiresAt)
        return bytes
    }
}

/// What the gateway's origin key signs of a sealed message. HPKE's base mode does not authenticate the sender: without this
/// signature the delivery layer, which is not trusted, could seal messages of its own.
///
///     "sendgate/origin/v1\0" ‖ SHA-256(info)[32] ‖ origin_kid[8] ‖ u16 length ‖ content
package enum OriginStatement {
    /// - Parameters:
    ///   - infoDigest: SHA-256 of ``SealedInfo/bytes``, 32 bytes.
    ///   - originKeyID: 8 bytes.
    ///   - content: At most 1,974 bytes.
    package static func bytes(
        infoDigest: [UInt8], originKeyID: [UInt8], content: [UInt8]
    ) throws(SealedFormatError) -> [UInt8] {
        try require(infoDigest, "an info's digest", SealedLimits.digestByteCount)
        try require(originKeyID, "an origin key id", SealedLimits.originKeyIDByteCount)
        try requireContent(content)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(61 + content.count)
        bytes.append(contentsOf: "sendgate/origin/v1\0".utf8)
        bytes.append(contentsOf: infoDigest)
        bytes.append(contentsOf: originKeyID)
        bytes.append(bigEndian: UInt16(content.count))
        bytes.append(contentsOf: content)
        return bytes
    }
}

/// What a device authenticates, under the nonce of a challenge, to prove that it can open messages.
///
/// The nonce itself never travels back. An app that returned what it opened would decrypt for every process that can hand it
/// envelopes.
///
///     proof = HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info)
package enum PossessionStatement {
    package static func bytes(info: [UInt8]) -> [UInt8] {
        Array("sendgate/possession/v1\0".utf8) + info
    }
}

func require(_ bytes: [UInt8], _ field: String, _ count: Int) throws(SealedFormatError) {
    guard bytes.count == count else {
        throw .wrongByteCount(of: field, expected: count, actual: bytes.count)
    }
}

func requireNames(app: String, device: String) throws(SealedFormatError) {
    for (field, name) in [("app", app), ("device", device)] {
        guard (1...SealedLimits.nameByteCountMax).contains(name.utf8.count) else {
            throw .nameLength(
                of: field, byteCount: name.utf8.count, byteCountMax: SealedLimits.nameByteCountMax)
        }
    }
}

func requireContent(_ content: [UInt8]) throws(SealedFormatError) {
    guard content.count <= SealedLimits.contentByteCountMax else {
        throw .contentTooLong(byteCount: content.count, byteCountMax: SealedLimits.contentByteCountMax)
    }
}

extension [UInt8] {
    mutating func append(bigEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }

    mutating func append(lengthPrefixed name: String) {
        var name = name
        name.withUTF8 { name in
            let count = UInt16(name.count)
            append(UInt8(truncatingIfNeeded: count >> 8))
            append(UInt8(truncatingIfNeeded: count))
            append(contentsOf: name)
        }
    }
}
