import CanonicalJSON
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
    /// Expo's push service. The token says which app it is.
    case expo(Platform, suite: SealingSuite?)
    case sms
    case email

    package var channel: Channel {
        switch self {
        case .apns, .fcm, .expo: .push
        case .sms: .sms
        case .email: .email
        }
    }
}

/// Composes the payload of one notification for one destination in one form.
///
/// Pure. In the sealed form everything that tells is in ``ComposedPayload/content``; outside are one
/// constant text per app and tier, the urgency, the expiry and a keyed collapse tag. In the generic form
/// there is nothing else at all but the random send id, the origin's mark and, where S1 demands it, the way to mute.
///
/// The bytes of a push are only counted: it is written by the thread that seals or signs it.
package func compose(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> ComposedPayload {
    let headers = CanonicalWriter.bytes { headers in
        switch target {
        case .apns(let topic, _):
            APNsPayload.writeHeaders(content, topic: topic, isClosed: form != .full, to: &headers)
        case .email: EmailPayload.writeHeaders(content, to: &headers)
        case .fcm, .expo, .sms: headers.object { _ in }
        }
    }
    guard let platform = target.platform else {
        var body = CanonicalWriter(capacity: 1_024)
        let byteCount = try write(content, for: target, as: form, to: &body).byteCount
        return ComposedPayload(
            headers: headers, body: PayloadBody(body.finish()), content: nil, byteCount: byteCount)
    }
    let push = try WeighedPush(content, for: target, on: platform, as: form)
    return ComposedPayload(
        headers: headers, body: PayloadBody(push),
        content: form == .sealed ? .sealed(push) : .open(push),
        byteCount: push.byteCount + target.addedByteCount)
}

/// What gate 12 would weigh of a payload that is not to go anywhere: ``ComposedPayload/byteCount`` of the composed one.
package func composedByteCount(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> Int {
    let (written, insertion) = try weigh(content, for: target, as: form)
    return written.byteCount + (insertion?.filledByteCount ?? 0) + target.addedByteCount
}

/// What is known of a body that was written.
struct WrittenBody {
    /// What is weighed of it: its bytes, and for SMS the characters of ``SMSEncoding``.
    var byteCount: Int
    /// Of what the origin key makes; set for a push.
    var place: Int?
    /// Of an open push whose body has them as they are signed: to FCM and to Expo.
    var texts: OpenPushTexts?
}

/// Writes everything but what the origin key makes.
func write<Sink: PayloadSink & ~Copyable>(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm, to body: inout Sink
) throws(CompositionError) -> WrittenBody {
    switch target {
    case .apns:
        let place = try APNsPayload.write(content, as: form, to: &body)
        return WrittenBody(byteCount: body.byteCount, place: place)
    case .fcm(let package, _):
        let (place, texts) = try FCMPayload.write(content, package: package, as: form, to: &body)
        return WrittenBody(byteCount: body.byteCount, place: place, texts: texts)
    case .expo(let platform, _):
        let (place, texts) = try ExpoPayload.write(content, for: platform, as: form, to: &body)
        return WrittenBody(byteCount: body.byteCount, place: place, texts: texts)
    case .sms: return WrittenBody(byteCount: try SMSPayload.write(content, as: form, to: &body))
    case .email:
        try EmailPayload.write(content, as: form, to: &body)
        return WrittenBody(byteCount: body.byteCount)
    }
}

/// Counts what ``write(_:for:as:to:)`` would write, and what would be put into it.
func weigh(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> (written: WrittenBody, insertion: PayloadBody.Insertion?) {
    var counter = ByteCounter()
    let written = try write(content, for: target, as: form, to: &counter)
    guard let place = written.place else { return (written, nil) }
    guard form == .sealed else { return (written, .mark(at: place)) }
    guard let platform = target.platform, let suite = target.suite else { throw .sealedWithoutKey }
    let contentByteCount = content.sealedContentByteCount(for: platform)
    return (
        written,
        .envelope(
            at: place, byteCount: EnvelopeLength.byteCount(contentByteCount: contentByteCount, suite: suite))
    )
}

extension PayloadTarget {
    /// Set for a push.
    fileprivate var platform: Platform? {
        switch self {
        case .apns: .ios
        case .fcm: .android
        case .expo(let platform, _): platform
        case .sms, .email: nil
        }
    }

    /// How a body is sealed for it; `nil` where it is not, or has no key to seal to.
    fileprivate var suite: SealingSuite? {
        switch self {
        case .apns(_, let suite), .fcm(_, let suite), .expo(_, let suite): suite
        case .sms, .email: nil
        }
    }

    /// Bytes that are weighed and not in the body: what a service adds before the provider counts.
    fileprivate var addedByteCount: Int {
        if case .expo = self { CompositionLimits.expoAddedByteCount } else { 0 }
    }
}
