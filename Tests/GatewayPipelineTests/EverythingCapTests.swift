import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SendPlanning
import Testing

/// At most so many in a window over all categories of a recipient.
@Suite struct EverythingCapTests {
    private static func limits(_ more: String = "") -> String {
        """
        everything:
          - {count: 3, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
        categories: {}
        \(more)
        """
    }

    private func send(
        _ type: String, _ id: String, as caller: String, _ gate: GatewayHarness
    ) async throws -> GatewayHarness.Reply {
        let send = try await gate.example(type, id, to: "u_1", as: caller)
        return try await gate.call(caller, "POST", "/v1/sends", send)
    }

    /// What the newest send was decided on.
    private func facts(_ gate: GatewayHarness) throws -> JSONValue? {
        try gate.entries("send").last?["facts"]
    }

    @Test func `it counts every category together, to the millisecond of its window`() async throws {
        let gate = try GatewayHarness(caps: Self.limits())
        try await gate.register("u_1")
        #expect(try await gate.remit("r1")["outcome"] == "forward")
        gate.clock.advance(seconds: 1)
        #expect(try await send("social.comment", "c1", as: "social", gate)["outcome"] == "forward")
        #expect(try await gate.remit("r2")["outcome"] == "forward")
        let third = try await gate.remit("r3")
        #expect(third["outcome"] == "digest" && third["reason"] == "digested", "\(third.json)")
        #expect(try facts(gate)?["everything_count"] == 3)
        let comment = try await send("social.comment", "c2", as: "social", gate)
        #expect(comment["outcome"] == "digest", "\(comment.json)")
        // The first is an hour old, and still counts; a millisecond later it does not.
        gate.clock.advance(seconds: 3599)
        #expect(try await gate.remit("r4")["outcome"] == "digest")
        gate.clock.advance(milliseconds: 1)
        #expect(try await gate.remit("r5")["outcome"] == "forward")
        #expect(try await gate.remit("r6")["outcome"] == "digest")
    }

    @Test func `security and a duty go out above it, and security is not counted`() async throws {
        let gate = try GatewayHarness(caps: Self.limits())
        try await gate.register("u_1")
        for number in 0..<4 { #expect(try await gate.login(number)["outcome"] == "forward") }
        #expect(try facts(gate)?["everything_count"] == nil)
        for number in 0..<3 { #expect(try await gate.remit("r\(number)")["outcome"] == "forward") }
        #expect(try facts(gate)?["everything_count"] == 2)
        #expect(try await gate.remit("over")["outcome"] == "digest")
        #expect(try await gate.login(5)["outcome"] == "forward")
        let duty = try await send("transaction.failed", "f1", as: "payments", gate)
        #expect(duty["outcome"] == "forward", "\(duty.json)")
        #expect(try facts(gate)?["everything_count"] == nil)
    }

    @Test func `the sentence names the limit that was hit`() async throws {
        let gate = try GatewayHarness(caps: Self.limits())
        try await gate.register("u_1")
        for number in 0..<3 { _ = try await gate.remit("r\(number)") }
        let decision = try await send("payment.received", "s1", as: "payments", gate)
        #expect(
            Explanation.english.sentence(.digested, .everythingCap)
                == "There were so many of all kinds together lately that this one was kept for a summary.")
        let delivery = try #require(decision.json["deliveries"]?.arrayValue?.first)
        #expect(delivery["detail"] == "everything_cap", "\(decision.json)")
    }

    @Test func `the type's limit is said first, and each holds beside the others`() async throws {
        let gate = try GatewayHarness(
            caps: Self.limits(
                """
                types:
                  transaction.remittance_sent:
                    - {count: 2, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                """))
        try await gate.register("u_1")
        for number in 0..<2 { #expect(try await gate.remit("r\(number)")["outcome"] == "forward") }
        let third = try await gate.remit("r2")
        #expect(third.json["deliveries"]?.arrayValue?.first?["detail"] == "type_cap", "\(third.json)")
        #expect(try await send("payment.received", "s1", as: "payments", gate)["outcome"] == "forward")
        let over = try await send("payment.received", "s2", as: "payments", gate)
        #expect(over.json["deliveries"]?.arrayValue?.first?["detail"] == "everything_cap", "\(over.json)")
    }

    @Test func `what was above it is told together when it has room, and everything replays`() async throws {
        let gate = try GatewayHarness(caps: Self.limits())
        try await gate.register("u_1")
        for number in 0..<8 { _ = try await gate.remit("r\(number)") }
        #expect(try await gate.claim().count == 3)
        gate.clock.advance(seconds: 3600)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(seconds: 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
        let entries = try gate.entries()
        let own = try gate.entries("send").filter { $0["caller"] == "gateway" }
        #expect(own.map { $0["request"]?["type"] } == ["digest.transactions"])
        for entry in entries {
            if case .differs(let what) = replay(
                entry.bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil })
            {
                Issue.record("entry \(entry.index): \(what)")
            }
        }
        #expect(try EvidenceFoldTests.fold(entries.map(\.bytes), gate.policy).differences.isEmpty)
    }

    @Test func `a tier's limit holds for each type that has no line of its own`() async throws {
        let gate = try GatewayHarness(
            caps: """
                tiers:
                  important:
                    - {count: 2, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                categories: {}
                types:
                  payment.received:
                    - {count: 3, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                """)
        try await gate.register("u_1")
        for (number, outcome) in ["forward", "forward", "digest"].enumerated() {
            #expect(try await gate.remit("r\(number)")["outcome"] == outcome)
        }
        for (number, outcome) in ["forward", "forward", "forward", "digest"].enumerated() {
            #expect(
                try await send("payment.received", "s\(number)", as: "payments", gate)["outcome"] == outcome)
        }
        // A tier below it has none, and a duty of that tier neither.
        for number in 0..<3 {
            let statement = try await send("statement.available", "m\(number)", as: "payments", gate)
            #expect(statement["outcome"] == "forward", "\(statement.json)")
            let duty = try await send("transaction.failed", "f\(number)", as: "payments", gate)
            #expect(duty["outcome"] == "forward", "\(duty.json)")
        }
    }

    @Test func `what is gathered is told by the summary its page names`() async throws {
        let gate = try GatewayHarness(
            caps: """
                tiers:
                  important:
                    - {count: 1, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                  informational:
                    - {count: 1, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                categories: {}
                """)
        try await gate.register("u_1")
        for number in 0..<3 {
            _ = try await gate.remit("r\(number)")
            _ = try await send("statement.available", "m\(number)", as: "payments", gate)
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 2)
        let own = try gate.entries("send").filter { $0["caller"] == "gateway" }
        #expect(
            Set(own.compactMap { $0["request"]?["type"]?.stringValue })
                == ["digest.transactions", "digest.updates"])
    }
}
