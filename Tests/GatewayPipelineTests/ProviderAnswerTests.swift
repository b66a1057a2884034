import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing
import WireProtocol

@testable import GateSteps

/// What a provider answered through the hop: recorded with the end of the message, in one commit.
@Suite struct ProviderAnswerTests {
    private static let reported = Instant(rfc3339: "2026-11-21T12:00:00Z")

    private func scene() async throws -> (gate: GatewayHarness, send: String, delivery: Delivery) {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        return (gate, try #require(reply["send_id"]), try #require(try await gate.claim().first))
    }

    private func told(_ gate: GatewayHarness, _ send: String) async throws -> [String] {
        let status = try await gate.call("payments", "GET", "/v1/sends/\(send)")
        return try #require(status.json["events"]?.arrayValue).map { event in
            [event["event"], event["reason"]].compactMap { $0?.stringValue }.joined(separator: " ")
        }
    }

    private func entries(_ gate: GatewayHarness, from index: UInt64) throws -> [TrailEntry] {
        try gate.store.read { try $0.entries(from: index, limit: 100) }.map {
            try TrailEntry(reading: $0.bytes)
        }
    }

    private func isActive(_ gate: GatewayHarness) throws -> Bool {
        let person = try #require(try gate.store.read { try $0.people(after: nil, limit: 1) }.first)
        return try #require(try gate.store.read { try $0.state(of: person) }?.devices.first).isActive
    }

    /// What a replay of the whole trail objects to.
    private func objection(_ gate: GatewayHarness) throws -> ActObjection? {
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        return try EvidenceFoldTests.objections(to: entries, under: gate.policy).values.first
    }

    @Test func `a push that may have gone and goes again is told once, with the hop's word`() async throws {
        let (gate, send, first) = try await scene()
        let before = try gate.store.read { try $0.entryCount() }
        for _ in 1...5 {
            try await gate.gateway.report(
                first.message, .ambiguous("unanswered", mayRepeat: true),
                retryAt: gate.clock.now().advanced(bySeconds: 1))
            gate.clock.advance(seconds: 1)
            _ = try #require(try await gate.claim().first)
        }
        #expect(try await told(gate, send) == ["in_doubt unanswered"])
        #expect(try entries(gate, from: before).isEmpty)
        // The repeat's answer is what the first try's was.
        try await gate.gateway.report(
            first.message, .accepted(status: 409, byProvider: true), retryAt: nil)
        #expect(
            try await told(gate, send) == ["in_doubt unanswered", "handed_over", "accepted_by_provider"])
        #expect(try entries(gate, from: before).first?.members["status"] == 409)
        #expect(try objection(gate) == nil)
    }

    @Test func `that a provider accepted it is an entry beside the hand-over`() async throws {
        let (gate, send, delivery) = try await scene()
        let before = try gate.store.read { try $0.entryCount() }
        try await gate.gateway.report(
            delivery.message, .accepted(status: 200, byProvider: true), retryAt: nil)
        #expect(try await told(gate, send) == ["handed_over", "accepted_by_provider"])
        let entries = try entries(gate, from: before)
        #expect(entries.map(\.kind) == [.delivery, .receipt])
        #expect(entries[0].time == entries[1].time)
        #expect(entries[1].members["caller"] == "gateway")
        #expect(try objection(gate) == nil)
        // The producer's own report of the same is one more, at another time.
        #expect(try isActive(gate))
    }

    @Test func `a token that is gone ends its message, and the device's token is used no more`() async throws
    {
        let (gate, send, delivery) = try await scene()
        gate.clock.advance(seconds: 5)
        try await gate.gateway.report(
            delivery.message,
            .tokenGone(status: 422, reason: "Unregistered", at: gate.clock.now()), retryAt: nil)
        #expect(try await told(gate, send) == ["refused_by_hop", "token_gone Unregistered"])
        #expect(try isActive(gate) == false)
        #expect(try objection(gate) == nil)
    }

    @Test func `a token that was registered after the provider's time stays`() async throws {
        for at in [Instant?.some(.longAgo), nil] {
            let (gate, send, delivery) = try await scene()
            gate.clock.advance(seconds: 5)
            // The app registers the device anew while the message is under way.
            try await gate.register("u_1")
            gate.clock.advance(seconds: 5)
            try await gate.gateway.report(
                delivery.message, .tokenGone(status: 422, reason: "Unregistered", at: at), retryAt: nil)
            #expect(try await told(gate, send) == ["refused_by_hop", "token_gone Unregistered"])
            #expect(try isActive(gate))
            #expect(try objection(gate) == nil)
        }
    }

    @Test func `what a provider refused for good is told with its word`() async throws {
        let (gate, send, delivery) = try await scene()
        try await gate.gateway.report(
            delivery.message, .refused(status: 422, reason: "PayloadTooLarge"), retryAt: nil)
        #expect(try await told(gate, send) == ["refused_by_hop", "failed PayloadTooLarge"])
        #expect(try isActive(gate))
        #expect(try objection(gate) == nil)
    }

    @Test func `what may have gone and must not go twice ends in doubt`() async throws {
        let (gate, send, delivery) = try await scene()
        try await gate.gateway.report(
            delivery.message, .ambiguous("the hop answered 504", mayRepeat: false), retryAt: nil)
        #expect(try await told(gate, send) == ["ambiguous unrepeatable"])
        #expect(try await gate.claim().isEmpty)
        #expect(try objection(gate) == nil)
    }

    @Test func `a wrong configuration ends nothing while the message has time`() async throws {
        let (gate, send, delivery) = try await scene()
        try await gate.gateway.report(
            delivery.message, .misconfigured(status: 404, "the hop answered 404"),
            retryAt: gate.clock.now().advanced(bySeconds: 1))
        #expect(try await told(gate, send) == [])
        gate.clock.advance(seconds: 2)
        let again = try #require(try await gate.claim().first)
        #expect(again.message == delivery.message && again.attemptCount == 1)
    }

    /// The gateway has no grant: what it tells of a provider follows the end of that very message.
    @Test func `a provider's answer that no message's end comes before is named in the trail`() async throws {
        let (gate, _, delivery) = try await scene()
        try await gate.gateway.report(
            delivery.message, .tokenGone(status: 422, reason: "Unregistered", at: nil), retryAt: nil)
        let honest = try entries(gate, from: 0)
        let receipt = try #require(honest.firstIndex { $0.kind == .receipt })
        func objects(_ entries: [TrailEntry]) throws -> Bool {
            let renumbered = try entries.enumerated().map { index, entry in
                var entry = entry
                entry.index = UInt64(index)
                return try entry.encoded().bytes
            }
            return try !EvidenceFoldTests.objections(to: renumbered, under: gate.policy).isEmpty
        }
        #expect(try objects(honest) == false)
        #expect(try objects(honest + [honest[receipt]]), "a second answer")
        var early = honest
        early.remove(at: receipt - 1)
        #expect(try objects(early), "no end before it")
        var taken = honest
        taken[receipt - 1].members["result"] = "handed_over"
        #expect(try objects(taken), "the provider had taken it")
        #expect(try objects(honest.enumerated().filter { $0.offset != receipt }.map(\.element)), "no answer")
    }
}
