import CanonicalJSON
package import GateSteps
import GatewayPipeline
import GateVocabulary

/// The body of `POST /v1/deliveries`: what the delivery layer is given, and one line of a `file` hop.
package enum DeliveryDocument {
    /// Canonical JSON: `{app?, body, channel, destination, expires_at, hand_over_by?, headers, message_id, platform?, send_id,
    /// token}`.
    ///
    /// - Parameter waitsUntil: When the gateway gives the try up, on the clock that no step of the wall clock moves; `nil` for a
    ///   hop that answers at once.
    /// - Throws: When the composed body is not JSON, which would be a fault of the gateway's own.
    package static func write(_ delivery: Delivery, waitsUntil deadline: ClockReading? = nil) throws
        -> [UInt8]
    {
        let (headers, body) = try delivery.timed()
        var object: JSONObject = [
            "message_id": .string(delivery.message.uuidText),
            "send_id": .string(delivery.send.uuidText),
            "destination": .string(delivery.destination.text),
            "channel": .string(delivery.channel.rawValue),
            "token": .string(delivery.token),
            "headers": .object(headers),
            "body": body,
            "expires_at": .string(delivery.statedExpiry.rfc3339),
        ]
        if let platform = delivery.platform { object["platform"] = .string(platform.rawValue) }
        if let app = delivery.app { object["app"] = .string(app) }
        if let deadline, let boot = deadline.boot {
            object["hand_over_by"] = ["boot_id": .string(boot), "uptime_ms": .integer(deadline.uptime)]
        }
        return CanonicalJSON.write(.object(object))
    }
}
