import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import Testing

@Suite struct IdleTests {
    @Test func `looking for work and finding none wakes nobody`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // The work of the registration is announced after its answer.
        await gate.settle()
        let before = gate.gateway.workVersion
        for lane in DeliveryLane.allCases { #expect(try await gate.claim(lane).isEmpty) }
        #expect(gate.gateway.workVersion == before)
    }

    @Test func `a message that may go raises the version that the relay waits on`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // The work of the registration is announced after its answer.
        await gate.settle()
        let before = gate.gateway.workVersion
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        try #require(sent.status == 202)
        await gate.gateway.waitForWork(lane: .general, after: before)
        #expect(gate.gateway.workVersion > before)
    }

    @Test func `a message whose time comes wakes the relay though nothing else happens`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T06:59:59Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        gate.clock.advance(milliseconds: 950)
        try #require(try await gate.remit("r1")["outcome"] == "defer")
        await gate.settle()
        let before = gate.gateway.workVersion
        await gate.gateway.waitForWork(lane: .general, after: before)
        #expect(gate.gateway.workVersion > before)
    }

    @Test func `a failed hand-over goes again, and one whose person withdrew meanwhile does not`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let promo = try await gate.promo("p1", to: "u_1")
        try #require(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
        let delivery = try #require(try await gate.claim().first)
        // While it is being handed over, the person changes their mind.
        gate.clock.advance(seconds: 1)
        let withdrawn = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw")
        try #require(withdrawn.status == 200)
        // The hop never had it.
        try await gate.gateway.report(
            delivery.message, .notWritten("connection refused"),
            retryAt: gate.clock.now().advanced(bySeconds: 1))
        gate.clock.advance(seconds: 5)
        #expect(try await gate.claim().isEmpty)
    }
}
