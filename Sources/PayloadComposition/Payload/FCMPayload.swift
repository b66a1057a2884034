import CanonicalJSON
import GateVocabulary
import SealedFormat

/// `POST /v1/projects/{id}/messages:send`, FCM HTTP v1, discovery revision 20261023. The target (`token` or
/// `fid`) is put in at hand-over: a token is never copied into a row.
enum FCMPayload {
    static func compose(
        _ content: NotificationContent, package: String, suite: SealingSuite?, as form: BodyForm
    ) throws(CompositionError) -> ComposedPayload {
        switch form {
        case .sealed:
            guard let suite else { throw .sealedWithoutKey }
            let inner = content.sealedContent(for: .android)
            return ComposedPayload(body: sealedBody(content, package, inner, suite), innerContent: inner)
        case .generic: return ComposedPayload(body: clearBody(generic(content, package)))
        case .full: return ComposedPayload(body: clearBody(full(content, package)))
        case .never: throw .formNever
        }
    }

    private static func clearBody(_ message: JSONObject) -> PayloadBody {
        PayloadBody(CanonicalJSON.write(["message": .object(message)] as JSONObject))
    }

    /// Data only, so that the app is woken to open the envelope and shows the notification itself, and HIGH,
    /// because a device that dozes would not be woken. The constant text is for an app that cannot open it.
    private static func sealedBody(
        _ content: NotificationContent, _ package: String, _ inner: [UInt8], _ suite: SealingSuite
    ) -> PayloadBody {
        var before = Array(#"{"message":{"android":"#.utf8)
        CanonicalJSON.append(.object(android(content, package, isUrgent: true, isClosed: true)), to: &before)
        before.append(contentsOf: #","data":{"body":"#.utf8)
        CanonicalJSON.append(content.constantText.body, to: &before)
        before.append(contentsOf: #","collapse":"\#(content.closedCollapse.hexadecimal)","sendgate":""#.utf8)
        var after = Array(#"","title":"#.utf8)
        CanonicalJSON.append(content.closedTitle, to: &after)
        after.append(contentsOf: "}}}".utf8)
        return PayloadBody(
            before: before, after: after,
            envelopeByteCount: EnvelopeLength.byteCount(contentByteCount: inner.count, suite: suite))
    }

    private static func generic(_ content: NotificationContent, _ package: String) -> JSONObject {
        var android = android(content, package, isUrgent: content.interruption.isUrgent, isClosed: true)
        // The channel tells the type apart, so there is one per urgency, which the app has to create.
        android["notification"] = [
            "body": .string(content.constantText.body),
            "channelId": .string("sendgate_\(content.interruption.rawValue)"),
            "notificationPriority": .string(content.interruption.androidName),
            "tag": .string(content.closedCollapse.hexadecimal), "title": .string(content.closedTitle),
            "visibility": content.privacy == .hidden ? "SECRET" : "PRIVATE",
        ]
        var data: JSONObject = ["send_id": .string(content.send.uuidText)]
        if let link = content.unsubscribeLink { data["unsubscribe"] = .string(link) }
        return ["android": .object(android), "data": .object(data)]
    }

    private static func full(_ content: NotificationContent, _ package: String) -> JSONObject {
        var android = android(content, package, isUrgent: content.interruption.isUrgent, isClosed: false)
        let shown = content.shownTexts
        var notification: JSONObject = [
            "body": .string(shown.body), "notificationPriority": .string(content.interruption.androidName),
            "title": .string(shown.title), "visibility": content.privacy == .full ? "PUBLIC" : "PRIVATE",
        ]
        if let channel = content.androidChannel { notification["channelId"] = .string(channel) }
        if content.interruption != .passive, let sound = content.sound {
            notification["sound"] = .string(sound)
        }
        if let badge = content.badge { notification["notificationCount"] = .integer(Int64(badge)) }
        android["notification"] = .object(notification)
        // Values are strings, whatever they were (FCM, `Message.data`).
        var data: JSONObject = [
            "category": .string(content.category.rawValue), "send_id": .string(content.send.uuidText),
            "type": .string(content.type.text),
        ]
        if let number = content.number {
            data["number"] = .string(String(number))
            data["alert_record"] = content.hasAlertRecord ? "true" : "false"
        }
        if !content.references.isEmpty { data["params"] = .string(content.references.description) }
        if let deepLink = content.deepLink { data["deep_link"] = .string(deepLink) }
        if let link = content.unsubscribeLink { data["unsubscribe"] = .string(link) }
        return ["android": .object(android), "data": .object(data)]
    }

    /// - Parameter isClosed: Whether the body tells nothing. It then has no `collapseKey`: FCM keeps messages of four keys
    ///   a device and drops the others of one that is offline (FCM, "Collapsible and non-collapsible messages"), so not
    ///   every message can have one. Its keyed tag is always there for the app instead, as `data.collapse` or as the
    ///   notification's own `tag`.
    private static func android(
        _ content: NotificationContent, _ package: String, isUrgent: Bool, isClosed: Bool
    ) -> JSONObject {
        // Rounded up: a message that has some life left must not be told to have none, which FCM reads as
        // "now or never".
        let lifeMilliseconds = content.expiresAt.milliseconds - content.composedAt.milliseconds
        let exact = max(0, min((lifeMilliseconds + 999) / 1000, CompositionLimits.fcmStorageSecondsMax))
        let life = isClosed ? content.closedLifeSeconds : exact
        var android: JSONObject = [
            "priority": isUrgent ? "HIGH" : "NORMAL", "restrictedPackageName": .string(package),
            "ttl": .string("\(life)s"),
        ]
        if !isClosed, let collapse = content.collapse {
            android["collapseKey"] = .string(collapse.hexadecimal)
        }
        return android
    }
}

extension Interruption {
    /// `AndroidNotification.notificationPriority`, for devices before channels (Android 7.1).
    var androidName: String {
        switch self {
        case .passive: "PRIORITY_LOW"
        case .active: "PRIORITY_DEFAULT"
        case .timeSensitive: "PRIORITY_HIGH"
        case .critical: "PRIORITY_MAX"
        }
    }
}
