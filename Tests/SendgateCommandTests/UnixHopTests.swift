import CanonicalJSON
import DeliveryRelay
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Logging
import Testing
import UnixSocketEndpoint
import UnixSockets
import WireProtocol

/// What an answer of the delivery layer means for a message.
@Suite struct UnixHopTests {
    private struct Answering: RequestHandler {
        var status: Int
        var headers: [(name: String, value: String)]

        func mayUseReserve(_ peer: Peer) -> Bool { false }
        func handle(
            _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
        ) {
            let isDelivery = request.method == "POST" && request.target == "/v1/deliveries"
            reply(Answer(status: isDelivery ? status : 404, headers: headers, body: []))
        }
    }

    private func result(_ status: Int, retryAfter: String? = nil) async throws -> HopResult {
        let folder = try TemporaryFolder()
        let path = folder.path("hop/hop.sock")
        let endpoint = try UnixSocketEndpoint(
            listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))],
            handler: Answering(
                status: status, headers: retryAfter.map { [("retry-after", $0)] } ?? []),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await endpoint.start()
        let result = await UnixHop(path: path, serverUserIDs: [geteuid()]).deliver(
            Delivery(
                message: MessageID(high: 1, low: 2), send: SendID(high: 3, low: 4),
                destination: DestinationID("d_1"), channel: .push, platform: .ios, app: "no.getdrop.app",
                token: "00aa", headers: Array("{}".utf8), body: Array("{}".utf8),
                expiresAt: Instant(milliseconds: 1_795_000_000_000), attemptCount: 0,
                handedOverAt: Instant(seconds: 1_000)))
        await endpoint.shutDown()
        return result
    }

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
    }

    @Test(arguments: [200, 202, 204])
    func `a 2xx is taken over`(_ status: Int) async throws {
        #expect(try await result(status) == .accepted(status: status))
    }

    @Test(arguments: [400, 401, 404, 410, 422])
    func `a 4xx is for good`(_ status: Int) async throws {
        #expect(try await result(status) == .refused(status: status))
    }

    @Test func `a 409 says that it is there`() async throws {
        #expect(try await result(409) == .seenBefore)
    }

    /// A redirection by something in between says nothing about the message.
    @Test(arguments: [300, 301, 302, 303, 304, 307, 308, 429, 500, 502, 503, 504])
    func `everything else is tried again`(_ status: Int) async throws {
        #expect(try await result(status) == .busy(status: status, retryAfterMilliseconds: nil))
    }

    @Test(
        arguments: [
            ("7", 7000), ("-1", 0), ("9223372036854775807", 86_400_000),
            ("Wed, 21 Oct 2026 07:28:00 GMT", nil),
        ] as [(String, Int64?)])
    func `how long to wait is the hop's to say, within a day`(_ text: String, _ expected: Int64?) async throws
    {
        #expect(
            try await result(503, retryAfter: text)
                == .busy(status: 503, retryAfterMilliseconds: expected))
    }
}
