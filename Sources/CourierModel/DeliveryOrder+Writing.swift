package import CanonicalJSON
import GateVocabulary

extension DeliveryOrder {
    /// The order as the gateway writes it.
    package var json: JSONValue {
        var object: JSONObject = [
            "message_id": .string(message.uuidText), "send_id": .string(send.uuidText),
            "destination": .string(destination.text), "channel": .string(channel.rawValue),
            "token": .string(token),
            "headers": .object(JSONObject(headers.map { ($0.key, .string($0.value)) })),
            "body": body, "expires_at": .string(expiresAt.rfc3339),
        ]
        object["platform"] = platform.map { .string($0.rawValue) }
        object["provider"] = provider.map { .string($0.rawValue) }
        object["app"] = app.map(JSONValue.string)
        object["hand_over_by"] = handOverBy.map {
            ["boot_id": .string($0.bootID), "uptime_ms": .integer($0.uptimeMilliseconds)]
        }
        return .object(object)
    }
}
