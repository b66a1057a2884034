import CanonicalJSON
import DeliveryRelay
import GateSteps
import GateTestKit
import GateVocabulary
import Testing

/// What the delivery layer is told.
@Suite struct DeliveryDocumentTests {
    @Test func `the delivery layer is told the message's own id, and no more of its end than outside a seal`()
        throws
    {
        let (end, stated) = (Instant.utc("2026-11-21T12:00:00Z"), Instant.utc("2026-11-22T12:00:00Z"))
        let delivery = Delivery(
            message: MessageID(high: 1, low: 2), send: SendID(high: 3, low: 4),
            destination: DestinationID("d_1"), channel: .push, platform: .ios, app: "no.getdrop.app",
            token: "00aa", headers: Array("{}".utf8), body: Array("{}".utf8), expiresAt: end,
            statedExpiry: stated,
            attemptCount: 0, handedOverAt: Instant(seconds: 1_000))
        let told = try CanonicalJSON.read(DeliveryDocument.write(delivery))
        #expect(told["message_id"] == .string(delivery.message.uuidText))
        #expect(told["send_id"] == .string(delivery.send.uuidText))
        #expect(told["expires_at"] == "2026-11-22T12:00:00Z")
        #expect(told["hand_over_by"] == nil)
    }

    @Test func `the delivery layer is told until when the gateway waits, on the clock of the boot`() throws {
        let until = ClockReading(wall: Instant(seconds: 1_000), uptime: 77_000, boot: "b")
        let told = try CanonicalJSON.read(DeliveryDocument.write(.sampled, waitsUntil: until))
        #expect(told["hand_over_by"] == .object(["boot_id": "b", "uptime_ms": .integer(77_000)]))
        // Without a boot the number says nothing.
        let unknown = ClockReading(wall: until.wall, uptime: until.uptime, boot: nil)
        #expect(
            try CanonicalJSON.read(DeliveryDocument.write(.sampled, waitsUntil: unknown))["hand_over_by"]
                == nil)
    }
}

extension Delivery {
    fileprivate static var sampled: Delivery {
        Delivery(
            message: MessageID(high: 1, low: 2), send: SendID(high: 3, low: 4),
            destination: DestinationID("d_1"), channel: .push, platform: .ios, app: "no.getdrop.app",
            token: "00aa", headers: Array("{}".utf8), body: Array("{}".utf8),
            expiresAt: .utc("2026-11-21T12:00:00Z"), attemptCount: 0, handedOverAt: Instant(seconds: 1_000))
    }
}
