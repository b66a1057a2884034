/// Every bound of a composed payload.
package enum CompositionLimits {
    /// Seconds APNs stores a notification: 30 days (Apple, "Sending notification requests to APNs").
    static let apnsStorageSecondsMax: Int64 = 30 * 86_400
    /// Seconds FCM stores a message: 4 weeks (FCM, `AndroidConfig.ttl`).
    static let fcmStorageSecondsMax: Int64 = 28 * 86_400
}
