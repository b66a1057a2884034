import GateVocabulary
import SealedFormat

/// Every bound of a composed payload.
package enum CompositionLimits {
    /// Seconds APNs stores a notification: 30 days (Apple, "Sending notification requests to APNs").
    static let apnsStorageSecondsMax: Int64 = 30 * 86_400
    /// Seconds FCM stores a message (FCM, `AndroidConfig.ttl`); no send lives longer.
    static let fcmStorageSecondsMax = SendRequest.ttlSecondsMax

    /// Bytes for what Expo adds to a message before it passes it on: `experienceId` and `scopeKey`, which are `@owner/slug`
    /// both, and `projectId`, a UUID. Names and punctuation take 83 bytes, which leaves 86 for `@owner/slug`. Expo's bound of
    /// 4,096 bytes is on what Apple and Google are sent (Expo, "Message request format", `data`).
    static let expoAddedByteCount = 256

    /// The bucket of every sealed notification whose content it holds. A smaller one would tell the type: only a code is
    /// as short as 512 bytes. A larger one is for a content that does not fit, such as a long text of a partner's.
    package static let sealedBucketMin = 1024

    /// Bytes of the shortest content that takes ``sealedBucketMin``: one more than the bucket below it holds.
    package static let sealedContentByteCountMin =
        SealedLimits.buckets.last { $0 < sealedBucketMin }! - SealedLimits.plaintextHeaderByteCount + 1
}
