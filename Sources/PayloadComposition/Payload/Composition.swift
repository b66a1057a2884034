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
/// Pure. In the sealed form everything that tells is in ``ComposedPayload/content``; outside are one
/// constant text per app and tier, the urgency, the expiry and a keyed collapse tag. In the generic form
/// there is nothing else at all but the random send id, the origin's mark and, where S1 demands it, the way to mute.
package func compose(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> ComposedPayload {
    var headers = CanonicalWriter(capacity: 384)
    switch target {
    case .apns(let topic, _):
        APNsPayload.writeHeaders(content, topic: topic, isClosed: form != .full, to: &headers)
    case .email: EmailPayload.writeHeaders(content, to: &headers)
    case .fcm, .sms: headers.object { _ in }
    }
    var body = CanonicalWriter(capacity: 1_024)
    var sealedContent: [UInt8]?
    let written = try write(
        content, for: target, as: form,
        sealing: { platform in
            let inner = content.sealedContent(for: platform)
            sealedContent = inner
            return inner.count
        }, to: &body)
    let origin: OriginContent? =
        if let sealedContent {
            .sealed(sealedContent)
        } else if let platform = target.platform {
            .open(try OpenPush(content, for: platform, as: form, in: written))
        } else {
            nil
        }
    return ComposedPayload(
        headers: headers.finish(), body: PayloadBody(body.finish(), insertion: written.insertion),
        content: origin, byteCount: written.byteCount)
}

/// What gate 12 would weigh of a payload that is not to go anywhere: ``ComposedPayload/byteCount`` of the composed one.
///
/// Its bytes are counted and not written.
package func composedByteCount(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm
) throws(CompositionError) -> Int {
    var counter = ByteCounter()
    return try write(
        content, for: target, as: form, sealing: { content.sealedContentByteCount(for: $0) }, to: &counter
    ).byteCount
}

/// What is known of a body that was written.
struct WrittenBody {
    /// Of an open push whose body has them as they are signed.
    var texts: OpenPushTexts?
    var insertion: PayloadBody.Insertion?
    /// ``ComposedPayload/byteCount``
    var byteCount: Int
}

/// - Parameter seal: The length of what is sealed, for a sealed form.
private func write<Sink: PayloadSink & ~Copyable>(
    _ content: NotificationContent, for target: PayloadTarget, as form: BodyForm,
    sealing seal: (Platform) -> Int, to body: inout Sink
) throws(CompositionError) -> WrittenBody {
    let place: Int
    var texts: OpenPushTexts?
    switch target {
    case .apns: place = try APNsPayload.write(content, as: form, to: &body)
    case .fcm(let package, _):
        (place, texts) = try FCMPayload.write(content, package: package, as: form, to: &body)
    case .sms: return WrittenBody(byteCount: try SMSPayload.write(content, as: form, to: &body))
    case .email:
        try EmailPayload.write(content, as: form, to: &body)
        return WrittenBody(byteCount: body.byteCount)
    }
    guard form == .sealed else {
        let mark = PayloadBody.Insertion.mark(at: place)
        return WrittenBody(texts: texts, insertion: mark, byteCount: body.byteCount + mark.filledByteCount)
    }
    guard let platform = target.platform, let suite = target.suite else { throw .sealedWithoutKey }
    let envelope = PayloadBody.Insertion.envelope(
        at: place, byteCount: EnvelopeLength.byteCount(contentByteCount: seal(platform), suite: suite))
    return WrittenBody(insertion: envelope, byteCount: body.byteCount + envelope.filledByteCount)
}

extension PayloadTarget {
    /// Set for a push.
    fileprivate var platform: Platform? {
        switch self {
        case .apns: .ios
        case .fcm: .android
        case .sms, .email: nil
        }
    }

    /// How a body is sealed for it; `nil` where it is not, or has no key to seal to.
    fileprivate var suite: SealingSuite? {
        switch self {
        case .apns(_, let suite), .fcm(_, let suite): suite
        case .sms, .email: nil
        }
    }
}
