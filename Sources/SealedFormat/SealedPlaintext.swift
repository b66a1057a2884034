/// What is inside the seal: a signed content, padded to a bucket.
///
///     origin_kid[8] ‖ signature[64] ‖ u16 length ‖ content ‖ zeros up to the bucket
///
/// There is one encoding: the smallest bucket that fits, and nothing but zeros after the content.
package struct SealedPlaintext: Hashable, Sendable {
    package let originKeyID: [UInt8]
    /// By the origin key over ``OriginStatement``. Its form is checked here, its truth by the caller.
    package let signature: [UInt8]
    package let content: [UInt8]

    /// - Parameters:
    ///   - originKeyID: 8 bytes.
    ///   - signature: 64 bytes.
    ///   - content: At most 1,974 bytes.
    package init(originKeyID: [UInt8], signature: [UInt8], content: [UInt8]) throws(SealedFormatError) {
        try require(originKeyID, "an origin key id", SealedLimits.originKeyIDByteCount)
        try require(signature, "a signature", SealedLimits.signatureByteCount)
        try requireContent(content)
        self.originKeyID = originKeyID
        self.signature = signature
        self.content = content
    }

    /// Exactly as long as the bucket.
    package var bytes: [UInt8] {
        guard let bucket = SealedLimits.bucket(contentByteCount: content.count) else {
            preconditionFailure(
                "content of \(content.count) bytes passed the check of `init` and fits no bucket")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(bucket)
        bytes.append(contentsOf: originKeyID)
        bytes.append(contentsOf: signature)
        bytes.append(bigEndian: UInt16(content.count))
        bytes.append(contentsOf: content)
        bytes.append(contentsOf: repeatElement(0, count: bucket - bytes.count))
        return bytes
    }

    /// Takes an opened plaintext apart and refuses every encoding but ``bytes``.
    package init(decoding bytes: [UInt8]) throws(SealedFormatError) {
        guard SealedLimits.buckets.contains(bytes.count) else {
            throw .malformedPlaintext(rule: "its \(bytes.count) bytes are no bucket")
        }
        let header = SealedLimits.plaintextHeaderByteCount
        let contentCount = Int(bytes[header - 2]) << 8 | Int(bytes[header - 1])
        guard contentCount <= bytes.count - header else {
            throw .malformedPlaintext(
                rule: "its length field says \(contentCount), the bucket holds \(bytes.count - header)")
        }
        guard SealedLimits.bucket(contentByteCount: contentCount) == bytes.count else {
            throw .malformedPlaintext(rule: "its content fits a smaller bucket")
        }
        guard bytes[(header + contentCount)...].allSatisfy({ $0 == 0 }) else {
            throw .malformedPlaintext(rule: "its padding is not zeros")
        }
        originKeyID = Array(bytes[..<SealedLimits.originKeyIDByteCount])
        signature = Array(bytes[SealedLimits.originKeyIDByteCount..<(header - 2)])
        content = Array(bytes[header..<(header + contentCount)])
    }
}
