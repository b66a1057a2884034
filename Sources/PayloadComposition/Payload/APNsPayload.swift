import CanonicalJSON
import GateVocabulary
import SealedFormat

/// `POST /3/device/<token>`: Apple, "Sending notification requests to APNs" and "Generating a remote notification".
enum APNsPayload {
    /// - Returns: The place of the envelope in a sealed body, of the origin's mark in any other.
    static func write<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, as form: BodyForm, to json: inout Sink
    ) throws(CompositionError) -> Int {
        switch form {
        case .sealed: writeSealed(content, to: &json)
        case .generic: writeGeneric(content, to: &json)
        case .full: writeFull(content, to: &json)
        case .never: throw .formNever
        }
    }

    /// - Parameter isClosed: Whether the body tells nothing, so that the headers must not either.
    static func writeHeaders(
        _ content: NotificationContent, topic: String, isClosed: Bool, to json: inout CanonicalWriter
    ) {
        let start = content.composedAt.seconds
        let expiry =
            isClosed
            ? start + content.closedLifeSeconds
            : min(content.expiresAt.seconds, start + CompositionLimits.apnsStorageSecondsMax)
        json.object { json in
            // 32 hexadecimal digits; Apple takes at most 64 bytes.
            json.member("apns-collapse-id", hexadecimal: isClosed ? content.closedTag : content.collapse)
            json.member("apns-expiration") { $0.quoted { $0.integer(expiry) } }
            json.member("apns-id", uuid: content.message)
            json.member("apns-priority", content.interruption.isUrgent ? "10" : "5")
            json.member("apns-push-type", "alert")
            json.member("apns-topic", topic)
        }
    }

    /// `{"aps":{…},"sendgate":"<envelope>"}`
    ///
    /// - Returns: The place of the envelope.
    private static func writeSealed<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) -> Int {
        var place = 0
        json.object { json in
            // The service extension opens the envelope and replaces all of this; when it fails, this is shown.
            json.member("aps") { writeConstantAlert(content, to: &$0) }
            json.member("sendgate") { $0.quoted { place = $0.byteCount } }
        }
        return place
    }

    private static func writeGeneric<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) -> Int {
        var place = 0
        json.object { json in
            json.member("aps") { writeConstantAlert(content, to: &$0) }
            json.member("origin") { $0.quoted { place = $0.byteCount } }
            json.member("send_id", uuid: content.send)
            json.member("unsubscribe", content.unsubscribeLink)
        }
        return place
    }

    /// What says nothing but how urgent it is.
    private static func writeConstantAlert<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) {
        json.object { json in
            json.member("alert") { json in
                json.object { json in
                    json.member("body", content.constantText.body)
                    json.member("title") { content.writeClosedTitle(to: &$0) }
                }
            }
            json.member("interruption-level") { $0.name(content.interruption.apnsName) }
            writeMutable(to: &json)
            // Which sound would tell the type; whether one is heard is the tier's.
            let sound = content.interruption.isUrgent ? "default" : nil
            writeSound(named: sound, content.interruption, to: &json)
        }
    }

    /// Has the system ask the app's service extension before anything is shown: it opens what is sealed, and replaces what
    /// the origin key has not signed.
    private static func writeMutable<Sink: PayloadSink & ~Copyable>(to json: inout Sink) {
        json.member("mutable-content", 1)
    }

    private static func writeFull<Sink: PayloadSink & ~Copyable>(
        _ content: NotificationContent, to json: inout Sink
    ) -> Int {
        let shown = content.shownTexts
        var place = 0
        json.object { json in
            if content.number != nil { json.member("alert_record", content.hasAlertRecord) }
            json.member("aps") { json in
                json.object { json in
                    json.member("alert") { json in
                        json.object { json in
                            json.member("body", shown.body)
                            json.member("title", shown.title)
                        }
                    }
                    json.member("badge", content.badge.map(Int64.init))
                    json.member("category", content.actionCategory)
                    json.member("interruption-level") { $0.name(content.interruption.apnsName) }
                    writeMutable(to: &json)
                    writeSound(named: content.sound, content.interruption, to: &json)
                    json.member("thread-id", content.thread)
                }
            }
            json.member("category", name: content.category)
            json.member("deep_link", content.deepLink)
            json.member("number", content.number.map(Int64.init))
            json.member("origin") { $0.quoted { place = $0.byteCount } }
            json.member("params", content.params, only: content.referenceNames)
            json.member("send_id", uuid: content.send)
            json.member("type") { $0.name(content.type.text) }
            json.member("unsubscribe", content.unsubscribeLink)
        }
        return place
    }

    /// The dictionary form is the only one that sounds through silence (Apple, "Generating a remote notification", table 2).
    /// A type without a sound is silent, as a passive notification always is; a critical one is never.
    private static func writeSound<Sink: PayloadSink & ~Copyable>(
        named name: String?, _ interruption: Interruption, to json: inout Sink
    ) {
        switch interruption {
        case .passive: break
        case .active, .timeSensitive: json.member("sound", name)
        case .critical:
            json.member("sound") { json in
                json.object { json in
                    json.member("critical", 1)
                    json.member("name", name ?? "default")
                    json.member("volume", 1)
                }
            }
        }
    }
}

extension Interruption {
    /// `aps.interruption-level`.
    var apnsName: String {
        switch self {
        case .passive: "passive"
        case .active: "active"
        case .timeSensitive: "time-sensitive"
        case .critical: "critical"
        }
    }

    /// Whether it is worth waking a sleeping device at once: S0's two upper classes.
    var isUrgent: Bool { self == .timeSensitive || self == .critical }
}
