import CanonicalJSON
import GateVocabulary
import SealedFormat

/// `POST /v1/projects/{id}/messages:send`, FCM HTTP v1, discovery revision 20261023. The target (`token` or
/// `fid`) is put in at hand-over: a token is never copied into a row.
enum FCMPayload {
    /// - Returns: The place of the envelope in a sealed body, of the origin's mark in any other; and the texts of a body
    ///   that is not sealed.
    static func write<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, package: String, as form: BodyForm, to json: inout Sink
    ) throws(CompositionError) -> (place: Int, texts: OpenPushTexts?) {
        switch form {
        case .sealed: return (writeSealed(content, package, to: &json), nil)
        case .generic, .full:
            let texts = content.openPushTexts(for: .android, as: form)
            let place =
                form == .full
                ? writeFull(content, texts, package, to: &json)
                : writeGeneric(content, texts, package, to: &json)
            return (place, texts)
        case .never: throw .formNever
        }
    }

    /// Data only, so that the app is woken to open the envelope and shows the notification itself, and HIGH,
    /// because a device that dozes would not be woken. The constant text is for an app that cannot open it.
    ///
    /// - Returns: The place of the envelope.
    private static func writeSealed<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, _ package: String, to json: inout Sink
    ) -> Int {
        var place = 0
        let title = { (json: inout Sink) in content.writeClosedTitle(to: &json) }
        writeMessage(
            to: &json,
            android: { writeAndroid(content, package, isUrgent: true, isClosed: true, to: &$0) },
            data: { json in
                json.member("body", content.constantText.body)
                json.member("collapse", hexadecimal: content.closedTag)
                json.member("sendgate") { $0.quoted { place = $0.byteCount } }
                json.member("title", title)
            })
        return place
    }

    private static func writeMessage<Sink: PayloadSink & ~Copyable>(
        to json: inout Sink, android: (inout Sink) -> Void,
        data: (inout Sink) -> Void
    ) {
        json.object { json in
            json.member("message") { json in
                json.object { json in
                    json.member("android", android)
                    json.member("data") { $0.object(data) }
                }
            }
        }
    }

    private static func writeGeneric<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, _ texts: OpenPushTexts, _ package: String,
        to json: inout Sink
    ) -> Int {
        var place = 0
        writeMessage(
            to: &json,
            android: { json in
                let isUrgent = content.interruption.isUrgent
                writeAndroid(content, package, isUrgent: isUrgent, isClosed: true, to: &json) { json in
                    json.member("body", content.constantText.body)
                    // The channel tells the type apart, so there is one per urgency, which the app has to create.
                    json.member("channelId") { json in
                        json.quoted { json in
                            json.raw("sendgate_")
                            json.characters(content.interruption.rawValue)
                        }
                    }
                    json.member("notificationPriority", content.interruption.androidName)
                    json.member("tag", hexadecimal: content.closedTag)
                    json.member("title") { content.writeClosedTitle(to: &$0) }
                    json.member("visibility", content.privacy == .hidden ? "SECRET" : "PRIVATE")
                }
            },
            data: { place = texts.write(to: &$0) })
        return place
    }

    private static func writeFull<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, _ texts: OpenPushTexts, _ package: String,
        to json: inout Sink
    ) -> Int {
        var place = 0
        writeMessage(
            to: &json,
            android: { json in
                let shown = content.shownTexts
                let isUrgent = content.interruption.isUrgent
                writeAndroid(content, package, isUrgent: isUrgent, isClosed: false, to: &json) { json in
                    json.member("body", shown.body)
                    json.member("channelId", content.androidChannel)
                    json.member("notificationCount", content.badge.map(Int64.init))
                    json.member("notificationPriority", content.interruption.androidName)
                    if content.interruption != .passive { json.member("sound", content.sound) }
                    // Android replaces a notification by its tag alone; `collapseKey` acts only while FCM stores the message.
                    json.member("tag", hexadecimal: content.collapse)
                    json.member("title", shown.title)
                    json.member("visibility", content.privacy == .full ? "PUBLIC" : "PRIVATE")
                }
            },
            data: { place = texts.write(to: &$0) })
        return place
    }

    /// - Parameters:
    ///   - isClosed: Whether the body tells nothing. It then has no `collapseKey`: FCM keeps messages of four keys
    ///     a device and drops the others of one that is offline (FCM, "Collapsible and non-collapsible messages"), so not
    ///     every message can have one. Its keyed tag is always there for the app instead, as `data.collapse` or as the
    ///     notification's own `tag`.
    ///   - notification: The members of `notification`; a message without it is data only.
    private static func writeAndroid<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, _ package: String, isUrgent: Bool, isClosed: Bool,
        to json: inout Sink, notification: ((inout Sink) -> Void)? = nil
    ) {
        // Rounded up: a message that has some life left must not be told to have none, which FCM reads as
        // "now or never".
        let lifeMilliseconds = content.expiresAt.milliseconds - content.composedAt.milliseconds
        let exact = max(0, min((lifeMilliseconds + 999) / 1000, CompositionLimits.fcmStorageSecondsMax))
        json.object { json in
            if !isClosed { json.member("collapseKey", hexadecimal: content.collapse) }
            if let notification { json.member("notification") { $0.object(notification) } }
            json.member("priority", isUrgent ? "HIGH" : "NORMAL")
            json.member("restrictedPackageName", package)
            json.member("ttl") { json in
                json.quoted { json in
                    json.integer(isClosed ? content.closedLifeSeconds : exact)
                    json.raw("s")
                }
            }
        }
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
