import CanonicalJSON
import GateVocabulary
import SealedFormat

/// `POST /3/device/<token>`: Apple, "Sending notification requests to APNs" and "Generating a remote notification".
enum APNsPayload {
    static func compose(
        _ content: NotificationContent, topic: String, suite: SealingSuite?, as form: BodyForm
    ) throws(CompositionError) -> ComposedPayload {
        let headers = headers(content, topic: topic, isClosed: form != .full)
        switch form {
        case .sealed:
            guard let suite else { throw .sealedWithoutKey }
            let inner = content.sealedContent(for: .ios)
            return ComposedPayload(
                headers: headers, body: sealedBody(content, inner, suite), innerContent: inner)
        case .generic:
            return ComposedPayload(headers: headers, body: PayloadBody(CanonicalJSON.write(generic(content))))
        case .full:
            return ComposedPayload(headers: headers, body: PayloadBody(CanonicalJSON.write(full(content))))
        case .never: throw .formNever
        }
    }

    /// - Parameter isClosed: Whether the body tells nothing, so that the headers must not either.
    private static func headers(_ content: NotificationContent, topic: String, isClosed: Bool) -> JSONObject {
        let start = content.composedAt.seconds
        let expiry =
            isClosed
            ? start + content.closedLifeSeconds
            : min(content.expiresAt.seconds, start + CompositionLimits.apnsStorageSecondsMax)
        var headers: JSONObject = [
            "apns-expiration": .string(String(expiry)), "apns-id": .string(content.message.uuidText),
            "apns-priority": content.interruption.isUrgent ? "10" : "5", "apns-push-type": "alert",
            "apns-topic": .string(topic),
        ]
        // 32 hexadecimal digits; Apple takes at most 64 bytes.
        if let collapse = isClosed ? content.closedCollapse : content.collapse {
            headers["apns-collapse-id"] = .string(collapse.hexadecimal)
        }
        return headers
    }

    /// `{"aps":{…},"sendgate":"<envelope>"}`, assembled around the place for the envelope.
    private static func sealedBody(
        _ content: NotificationContent, _ inner: [UInt8], _ suite: SealingSuite
    ) -> PayloadBody {
        // The service extension opens the envelope and replaces all of this; when it fails, this is shown.
        var aps = constantAlert(content)
        aps["mutable-content"] = 1
        var before = Array(#"{"aps":"#.utf8)
        CanonicalJSON.append(.object(aps), to: &before)
        before.append(contentsOf: #","sendgate":""#.utf8)
        return PayloadBody(
            before: before, after: Array(#""}"#.utf8),
            envelopeByteCount: EnvelopeLength.byteCount(contentByteCount: inner.count, suite: suite))
    }

    private static func generic(_ content: NotificationContent) -> JSONObject {
        var body: JSONObject = [
            "aps": .object(constantAlert(content)), "send_id": .string(content.send.uuidText),
        ]
        if let link = content.unsubscribeLink { body["unsubscribe"] = .string(link) }
        return body
    }

    /// What says nothing but how urgent it is.
    private static func constantAlert(_ content: NotificationContent) -> JSONObject {
        var aps: JSONObject = [
            "alert": [
                "body": .string(content.constantText.body), "title": .string(content.closedTitle),
            ],
            "interruption-level": .string(content.interruption.apnsName),
        ]
        // Which sound would tell the type; whether one is heard is the tier's.
        aps["sound"] = sound(named: content.interruption.isUrgent ? "default" : nil, content.interruption)
        return aps
    }

    private static func full(_ content: NotificationContent) -> JSONObject {
        let shown = content.shownTexts
        var aps: JSONObject = [
            "alert": ["body": .string(shown.body), "title": .string(shown.title)],
            "interruption-level": .string(content.interruption.apnsName),
        ]
        aps["sound"] = sound(named: content.sound, content.interruption)
        if let thread = content.thread { aps["thread-id"] = .string(thread) }
        if let category = content.actionCategory { aps["category"] = .string(category) }
        if let badge = content.badge { aps["badge"] = .integer(Int64(badge)) }
        var body: JSONObject = [
            "aps": .object(aps), "category": .string(content.category.rawValue),
            "send_id": .string(content.send.uuidText), "type": .string(content.type.text),
        ]
        if let number = content.number {
            body["number"] = .integer(Int64(number))
            body["alert_record"] = .boolean(content.hasAlertRecord)
        }
        if !content.references.isEmpty { body["params"] = .object(content.references) }
        if let deepLink = content.deepLink { body["deep_link"] = .string(deepLink) }
        if let link = content.unsubscribeLink { body["unsubscribe"] = .string(link) }
        return body
    }

    /// The dictionary form is the only one that sounds through silence (Apple, "Generating a remote notification", table 2).
    /// A type without a sound is silent, as a passive notification always is; a critical one is never.
    private static func sound(named name: String?, _ interruption: Interruption) -> JSONValue? {
        switch interruption {
        case .passive: nil
        case .active, .timeSensitive: name.map { .string($0) }
        case .critical: ["critical": 1, "name": .string(name ?? "default"), "volume": 1]
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
