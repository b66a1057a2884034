/// Every bound of the sealed format. All counts are bytes.
package enum SealedLimits {
    package static let identifierByteCount = 16
    package static let originKeyIDByteCount = 8
    package static let digestByteCount = 32
    package static let signatureByteCount = 64
    /// The AEAD's tag: 16 in both suites (RFC 9180 section 7.3).
    package static let tagByteCount = 16

    /// The bytes before the content in a plaintext: origin key id, signature, length.
    package static let plaintextHeaderByteCount = originKeyIDByteCount + signatureByteCount + 2

    /// The only lengths a plaintext has. From an envelope's length the delivery layer learns the bucket, and not the length of
    /// the content.
    package static let buckets = [256, 512, 1024, 2048]

    /// The largest bucket less its header, 1,974: the envelope is then about 3,000 bytes and fits the
    /// 4,096 that APNs and FCM take, with room for the rest of the body.
    package static let contentByteCountMax = 2048 - plaintextHeaderByteCount

    /// For the names of an app and of a device. The format itself would carry 65,535.
    package static let nameByteCountMax = 1024

    /// Expiries of exactly ten decimal digits, 2001-09-09 to 2286-11-20, in Unix seconds. One width is
    /// what makes an envelope's length a function of its content's length alone.
    package static let expiry: ClosedRange<UInt64> = 1_000_000_000...9_999_999_999

    /// A possession challenge's content.
    package static let nonceByteCount = 32

    /// The smallest bucket that holds `contentByteCount` bytes and the header; `nil` when none does.
    package static func bucket(contentByteCount: Int) -> Int? {
        guard contentByteCount >= 0 else { return nil }
        return buckets.first { contentByteCount <= $0 - plaintextHeaderByteCount }
    }
}

/// Bytes or values that the sealed format does not have.
package enum SealedFormatError: Error, Equatable {
    /// The content fits no bucket.
    case contentTooLong(byteCount: Int, byteCountMax: Int)
    /// The name of an app or a device is empty or too long.
    case nameLength(of: String, byteCount: Int, byteCountMax: Int)
    /// `field` has a fixed length.
    case wrongByteCount(of: String, expected: Int, actual: Int)
    /// The expiry has not exactly ten digits.
    case expiryOutOfRange(seconds: UInt64)
    /// The envelope departs from its one spelling at `offset`.
    case malformedEnvelope(expected: String, offset: Int)
    /// `field` arrived by itself and has no value that an envelope can hold.
    case malformedField(String, expected: String)
    /// The opened plaintext breaks its layout; `rule` names how.
    case malformedPlaintext(rule: String)
}

extension SealedFormatError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .contentTooLong(let count, let most):
            "the content has \(count) bytes, a sealed message carries at most \(most)"
        case .nameLength(let field, let count, let most):
            "the name of the \(field) has \(count) bytes, it must have 1 to \(most)"
        case .wrongByteCount(let field, let expected, let actual):
            "\(field) must be \(expected) bytes, this one has \(actual)"
        case .expiryOutOfRange(let seconds):
            "the expiry \(seconds) is no Unix time in seconds between 2001 and 2286; is it in milliseconds?"
        case .malformedEnvelope(let expected, let offset):
            "not an envelope: expected \(expected) at byte \(offset)"
        case .malformedField(let field, let expected): "`\(field)` must be \(expected)"
        case .malformedPlaintext(let rule): "not a sealed message: \(rule)"
        }
    }
}
