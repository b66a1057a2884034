import CanonicalJSON
import GateVocabulary
import SealedFormat

/// One message of `POST /--/api/v2/push/send`: Expo, "Message request format". The token, `to`, is put in at hand-over.
///
/// Expo makes a request to Apple or Google of it. `data` arrives as the member `body` beside `aps`, or as the text `body` of
/// FCM's `data`; so the members of `data` are texts on both platforms, named as FCM's are.
enum ExpoPayload {
    /// - Returns: The place of the envelope in a sealed body, of the origin's mark in any other; and the texts of a body
    ///   that is not sealed.
    static func write<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, for platform: Platform, as form: BodyForm, to json: inout Sink
    ) throws(CompositionError) -> (place: Int, texts: OpenPushTexts?) {
        switch form {
        case .sealed:
            switch platform {
            case .ios: return (writeSealedForIOS(content, to: &json), nil)
            case .android: return (writeSealedForAndroid(content, to: &json), nil)
            }
        case .generic:
            let texts = content.openPushTexts(for: platform, as: form)
            return (writeGeneric(content, for: platform, texts, to: &json), texts)
        case .full:
            let texts = content.openPushTexts(for: platform, as: form)
            return (writeFull(content, for: platform, texts, to: &json), texts)
        case .never: throw .formNever
        }
    }

    /// The service extension opens the envelope and replaces the constant text; when it fails, that is shown.
    ///
    /// - Returns: The place of the envelope.
    private static func writeSealedForIOS<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) -> Int {
        var place = 0
        writeClosedForIOS(content, to: &json) { json in
            json.member("sendgate") { $0.quoted { place = $0.byteCount } }
        }
        return place
    }

    /// Data only: a title, a body or a channel would make Expo have Google show it, and the app would not be woken. High,
    /// because a device that dozes would not be woken either. The constant text is for an app that cannot open the envelope,
    /// and `collapse` is the tag of what the app shows, as in a message to FCM.
    ///
    /// - Returns: The place of the envelope.
    private static func writeSealedForAndroid<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) -> Int {
        var place = 0
        json.object { json in
            json.member("data") { json in
                json.object { json in
                    json.member("body", content.constantText.body)
                    json.member("collapse", hexadecimal: content.closedTag)
                    json.member("sendgate") { $0.quoted { place = $0.byteCount } }
                    json.member("title") { content.writeClosedTitle(to: &$0) }
                }
            }
            json.member("priority", "high")
            json.member("ttl", content.closedLifeSeconds)
        }
        return place
    }

    /// - Returns: The place of the origin's mark.
    private static func writeGeneric<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, for platform: Platform, _ texts: OpenPushTexts, to json: inout Sink
    ) -> Int {
        var place = 0
        guard platform == .android else {
            writeClosedForIOS(content, to: &json) { place = texts.write(to: &$0) }
            return place
        }
        json.object { json in
            json.member("body", content.constantText.body)
            // The channel tells the type apart, so there is one per urgency, which the app has to create.
            json.member("channelId") { json in
                json.quoted { json in
                    json.raw("sendgate_")
                    json.characters(content.interruption.rawValue)
                }
            }
            json.member("data") { $0.object { place = texts.write(to: &$0) } }
            json.member("priority", content.interruption.expoPriority)
            json.member("tag", hexadecimal: content.closedTag)
            json.member("title") { content.writeClosedTitle(to: &$0) }
            json.member("ttl", content.closedLifeSeconds)
        }
        return place
    }

    /// What says nothing but how urgent it is.
    private static func writeClosedForIOS<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink, data: (inout Sink) -> Void
    ) {
        json.object { json in
            json.member("body", content.constantText.body)
            json.member("collapseId", hexadecimal: content.closedTag)
            json.member("data") { $0.object(data) }
            json.member("interruptionLevel") { $0.name(content.interruption.apnsName) }
            writeMutable(to: &json)
            json.member("priority", content.interruption.expoPriority)
            // Which sound would tell the type; whether one is heard is the tier's.
            let sound = content.interruption.isUrgent ? "default" : nil
            writeSound(named: sound, content.interruption, to: &json)
            json.member("title") { content.writeClosedTitle(to: &$0) }
            json.member("ttl", content.closedLifeSeconds)
        }
    }

    /// - Returns: The place of the origin's mark.
    private static func writeFull<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, for platform: Platform, _ texts: OpenPushTexts, to json: inout Sink
    ) -> Int {
        let shown = content.shownTexts
        // Rounded up: none left would mean "now or never". Apple and Google keep nothing longer than a send lives.
        let lifeMilliseconds = content.expiresAt.milliseconds - content.composedAt.milliseconds
        let ttl = max(0, min((lifeMilliseconds + 999) / 1000, CompositionLimits.fcmStorageSecondsMax))
        var place = 0
        json.object { json in
            if platform == .ios { json.member("badge", content.badge.map(Int64.init)) }
            json.member("body", shown.body)
            if platform == .ios { json.member("categoryId", content.actionCategory) }
            if platform == .android { json.member("channelId", content.androidChannel) }
            json.member("collapseId", hexadecimal: content.collapse)
            json.member("data") { $0.object { place = texts.write(to: &$0) } }
            if platform == .ios {
                json.member("interruptionLevel") { $0.name(content.interruption.apnsName) }
                writeMutable(to: &json)
            }
            json.member("priority", content.interruption.expoPriority)
            switch platform {
            case .ios: writeSound(named: content.sound, content.interruption, to: &json)
            // Android replaces a notification by its tag alone; `collapseId` acts there only while Google stores the message.
            case .android: json.member("tag", hexadecimal: content.collapse)
            }
            if platform == .ios { json.member("threadId", content.thread) }
            json.member("title", shown.title)
            json.member("ttl", ttl)
        }
        return place
    }

    /// Has the system ask the app's service extension before anything is shown.
    private static func writeMutable<Sink: PayloadSink & ~Copyable>(to json: inout Sink) {
        json.member("mutableContent", true)
    }

    /// The object is the only form that sounds through silence (`expo-server-sdk`, `ExpoPushMessage.sound`). A type without
    /// a sound is silent, as a passive notification always is; a critical one is never.
    private static func writeSound<Sink: PayloadSink & ~Copyable>(
        named name: String?, _ interruption: Interruption, to json: inout Sink
    ) {
        switch interruption {
        case .passive: break
        case .active, .timeSensitive: json.member("sound", name)
        case .critical:
            json.member("sound") { json in
                json.object { json in
                    json.member("critical", true)
                    json.member("name", name ?? "default")
                    json.member("volume", 1)
                }
            }
        }
    }
}

extension Interruption {
    /// Of Apple's priorities 10 and 5, and Google's HIGH and NORMAL.
    fileprivate var expoPriority: String { isUrgent ? "high" : "normal" }
}
