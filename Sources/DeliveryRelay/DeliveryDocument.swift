import CanonicalJSON
import CourierModel
package import GateSteps
import GatewayPipeline
import GateVocabulary

/// The body of `POST /v1/deliveries`: what the delivery layer is given, and one line of a `file` hop.
package enum DeliveryDocument {
    /// Canonical JSON: `{app?, body, channel, destination, expires_at, hand_over_by?, headers, message_id, platform?, provider?,
    /// send_id, token}`.
    ///
    /// - Parameter waitsUntil: When the gateway gives the try up, on the clock that no step of the wall clock moves; `nil` for a
    ///   hop that answers at once.
    /// - Throws: When the composed body is not JSON, which would be a fault of the gateway's own.
    package static func write(_ delivery: Delivery, waitsUntil deadline: ClockReading? = nil) throws
        -> [UInt8]
    {
        let (headers, body) = try delivery.timed()
        let order = DeliveryOrder(
            message: delivery.message, send: delivery.send, destination: delivery.destination,
            channel: delivery.channel, platform: delivery.platform, provider: delivery.provider,
            app: delivery.app, token: delivery.token,
            headers: try Dictionary(
                uniqueKeysWithValues: headers.map { name, value in
                    guard case .string(let text) = value else {
                        throw JSONShapeError(JSONPointer.root.appending(name), "a header is a text")
                    }
                    return (name, text)
                }),
            body: body, expiresAt: delivery.statedExpiry,
            handOverBy: deadline.flatMap { reading in
                reading.boot.map { HandOverDeadline(bootID: $0, uptimeMilliseconds: reading.uptime) }
            })
        return CanonicalJSON.write(order.json)
    }
}
