package import GateVocabulary
package import SealedFormat

/// Where a payload goes.
package enum PayloadTarget: Hashable, Sendable {
    /// - Parameters:
    ///   - topic: The app's bundle id.
    ///   - suite: Of the device's key; `nil` without a usable one.
    case apns(topic: String, suite: SealingSuite?)
    /// - Parameter package: The app's package name.
    case fcm(package: String, suite: SealingSuite?)
    case sms
    case email

    package var channel: Channel {
        switch self {
        case .apns, .fcm: .push
        case .sms: .sms
        case .email: .email
        }
    }
}

/// Composes the payload of one notification for one destination in one form.
///
/// Pure. In the sealed form everything that tells is in ``ComposedPayload/innerContent``; outside are one
/// constant text per app and tier, the urgency, the expiry and a keyed collapse tag. In the generic form
/// there is nothing else at all but the random send id and, where S1 demands it, the way to mute.
package func compose(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> ComposedPayload {
    guard form != .never else { throw .formNever }
    switch target {
    case .apns(let topic, let suite):
        return try APNsPayload.compose(content, topic: topic, suite: suite, as: form)
    case .fcm(let package, let suite):
        return try FCMPayload.compose(content, package: package, suite: suite, as: form)
    case .sms: return try SMSPayload.compose(content, as: form)
    case .email: return try EmailPayload.compose(content, as: form)
    }
}
