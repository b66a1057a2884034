package import CanonicalJSON
package import GateVocabulary

/// One message as the gateway hands it over: the body of `POST /v1/deliveries`, hop protocol version 2.
package struct DeliveryOrder: Sendable, Hashable {
    /// Stable over every try of the message: `apns-id`, `Message-ID` and the key of a repeat.
    package var message: MessageID
    package var send: SendID
    /// The destination as its owner calls it.
    package var destination: DestinationID
    package var channel: Channel
    /// The platform of a push destination.
    package var platform: Platform?
    /// The push service in place of the platform's own.
    package var provider: PushProvider?
    /// The app of a push destination, as its device was registered with it.
    package var app: String?
    /// The push token, telephone number (E.164) or e-mail address. Never logged.
    package var token: String
    /// Header fields of the provider's request, such as `apns-topic`.
    package var headers: [String: String]
    /// The provider's body.
    package var body: JSONValue
    /// The message's end: nothing is written to a provider after it.
    package var expiresAt: Instant
    /// The gateway waits for the answer up to this moment; absent from a gateway that speaks version 1.
    package var handOverBy: HandOverDeadline?
    /// The courier answers the order by this moment, in milliseconds of its own uptime; set at its arrival and never written. Every
    /// wait for the order ends with it.
    package var answerBy: Int64?

    /// Longest time from an order's arrival to its answer, in milliseconds: the gateway's timer of 10,000 starts earlier.
    package static let answerMilliseconds: Int64 = 8_000
    /// Least part of it that is left when an order is written, in milliseconds: with less, a slow answer would be an unclear end.
    package static let writeMilliseconds: Int64 = 1_000

    package init(
        message: MessageID, send: SendID, destination: DestinationID, channel: Channel, platform: Platform?,
        provider: PushProvider?, app: String?, token: String, headers: [String: String], body: JSONValue,
        expiresAt: Instant, handOverBy: HandOverDeadline?
    ) {
        self.message = message
        self.send = send
        self.destination = destination
        self.channel = channel
        self.platform = platform
        self.provider = provider
        self.app = app
        self.token = token
        self.headers = headers
        self.body = body
        self.expiresAt = expiresAt
        self.handOverBy = handOverBy
    }
}

/// A moment on the clock that no step of the wall clock moves: after it the gateway counts its try as ended, so nothing
/// may be written to a provider any more. Gateway and courier share a machine, so they share the clock.
package struct HandOverDeadline: Sendable, Hashable {
    /// Which boot the clock counts from (`/proc/sys/kernel/random/boot_id`, random(4)).
    package var bootID: String
    /// Milliseconds since that boot, sleep included (`CLOCK_BOOTTIME`, clock_gettime(2)).
    package var uptimeMilliseconds: Int64

    package init(bootID: String, uptimeMilliseconds: Int64) {
        self.bootID = bootID
        self.uptimeMilliseconds = uptimeMilliseconds
    }

    /// Whether the moment is over on a machine that has run for so long. After another boot it is.
    package func isOver(bootID: String, uptimeMilliseconds: Int64) -> Bool {
        bootID != self.bootID || uptimeMilliseconds >= self.uptimeMilliseconds
    }
}
