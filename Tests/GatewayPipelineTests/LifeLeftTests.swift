import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

/// What the providers are told of a message's end, at each hand-over.
@Suite struct LifeLeftTests {
    private func claimed(_ gate: GatewayHarness) async throws -> (ttl: Int64, end: Instant) {
        let delivery = try #require(try await gate.claim().first)
        let (headers, body) = try delivery.timed()
        #expect(headers["apns-expiration"] == nil)
        let ttl = try #require(body["message"]?["android"]?["ttl"]?.stringValue)
        #expect(ttl.hasSuffix("s"))
        try await gate.gateway.report(
            delivery.message, .notWritten("connection refused"),
            retryAt: gate.clock.now().advanced(bySeconds: 600))
        return (try #require(Int64(ttl.dropLast())), delivery.statedExpiry)
    }

    private func register(_ platform: String, _ gate: GatewayHarness) async throws {
        try await gate.register("u_1", device: nil)
        let device = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/devices/d_1",
            [
                "platform": .string(platform), "app": "no.getdrop.app", "token": "00aa", "region": "DE",
                "time_zone": "Europe/Berlin", "os_permission": "granted",
            ])
        try #require(device.status == 200, "\(device.json)")
        try await gate.consent("u_1")
    }

    private func send(_ type: String, _ gate: GatewayHarness) async throws {
        let (caller, body) =
            type == "promo.offer"
            ? ("marketing", try await gate.promo("a", to: "u_1"))
            : ("payments", GatewayHarness.remittance("a", to: "u_1"))
        let sent = try await gate.call(caller, "POST", "/v1/sends", body)
        try #require(sent.status == 202, "\(sent.json)")
    }

    @Test(arguments: ["promo.offer", "transaction.remittance_sent"])
    func `FCM's time to live is what is left at the hand-over, and every hand-over says the same end`(
        type: String
    )
        async throws
    {
        let gate = try GatewayHarness()
        try await register("android", gate)
        try await send(type, gate)
        gate.clock.advance(seconds: 30)
        let first = try await claimed(gate)
        #expect(first.ttl * 1000 == first.end.milliseconds - gate.clock.now().milliseconds)
        gate.clock.advance(seconds: 3600)
        let second = try await claimed(gate)
        #expect(second.end == first.end)
        #expect(second.ttl == first.ttl - 3600)
    }

    @Test func `of a sealed message the hop is told one of three ends`() async throws {
        let gate = try GatewayHarness()
        try await register("ios", gate)
        _ = try await gate.addKey("u_1")
        try await send("transaction.remittance_sent", gate)
        let delivery = try #require(try await gate.claim().first)
        let row = try #require(try gate.store.read { try $0.outbox(delivery.message) })
        try #require(row.form == .sealed)
        let classes: [Int64] = [172_800, 604_800, 2_419_200]
        let seconds = delivery.statedExpiry.seconds - gate.clock.now().seconds
        #expect(classes.contains(seconds), "\(seconds)")
        #expect(delivery.statedExpiry != row.expiresAt && delivery.expiresAt == row.expiresAt)
    }

    @Test func `APNs is told the moment that the hop is told`() async throws {
        let gate = try GatewayHarness()
        try await register("ios", gate)
        try await send("promo.offer", gate)
        gate.clock.advance(seconds: 3600)
        let delivery = try #require(try await gate.claim().first)
        #expect(
            try delivery.timed().headers["apns-expiration"] == .string("\(delivery.statedExpiry.seconds)"))
        #expect(delivery.handedOverAt == gate.clock.now())
    }
}
