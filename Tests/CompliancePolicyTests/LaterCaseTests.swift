import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import PolicyProof
import Testing

/// Cases may say what happens to what waits.
@Suite struct LaterCaseTests {
    /// A payment inside quiet hours, and what comes of it.
    private static func bundle(_ later: JSONValue) -> TestBundle {
        var facts = Facts.ready.json
        for moment in ["now", "due", "expiry"] { facts[moment] = nil }
        facts["quiet_hours"] = ["state": "inside", "ends_at": "2026-03-03T07:00:00Z"]
        return TestBundle.minimal.setting(
            "cases/later.yaml", "cases",
            to: [
                [
                    "name": "waits", "later": later,
                    "given": [
                        "caller": "payments", "type": "payment", "now": "2026-03-02T22:00:00Z",
                        "facts": .object(facts),
                    ],
                    "then": ["outcome": "defer", "reason": "quiet_hours_deferred"],
                ]
            ])
    }

    private static func step(_ now: String, _ state: String, _ outcome: String, _ reason: String) -> JSONValue
    {
        [
            "now": .string(now), "facts": ["quiet_hours": ["state": .string(state)]],
            "then": ["outcome": .string(outcome), "reason": .string(reason)],
        ]
    }

    private func differences(_ later: JSONValue) throws -> [String] {
        let policy = try Self.bundle(later).compile()
        let example = try #require(policy.bundle.cases.first { $0.name == "waits" })
        return example.run(under: policy).differences
    }

    @Test func `what waited is decided by the facts of then`() throws {
        #expect(try differences([Self.step("2026-03-03T07:00:00Z", "outside", "forward", "allowed")]) == [])
        #expect(
            try differences([Self.step("2026-03-03T07:00:00Z", "outside", "suppress", "expired")]) == [
                "at 2026-03-03T07:00:00Z outcome is `forward`, expected `suppress`",
                "at 2026-03-03T07:00:00Z reason is `allowed`, expected `expired`",
            ])
    }

    @Test func `the time it lives is counted from when it came in`() throws {
        #expect(try differences([Self.step("2026-04-02T07:00:00Z", "outside", "suppress", "expired")]) == [])
    }

    @Test func `what went out is not decided again`() throws {
        let steps: JSONValue = [
            Self.step("2026-03-03T07:00:00Z", "outside", "forward", "allowed"),
            Self.step("2026-03-03T08:00:00Z", "outside", "forward", "allowed"),
        ]
        #expect(
            try differences(steps) == [
                "at 2026-03-03T08:00:00Z nothing waits any more: the outcome was `forward`"
            ])
    }

    @Test func `later of what does not wait, and time that runs back, are problems`() {
        let back = Self.bundle([Self.step("2026-03-01T07:00:00Z", "outside", "forward", "allowed")])
        #expect(back.diagnostics.map(\.message).contains { $0.contains("before the one it follows") })
        var gone = Self.bundle([Self.step("2026-03-03T07:00:00Z", "outside", "forward", "allowed")])
        gone.set("cases/later.yaml", "cases", "0", "then", to: ["outcome": "forward", "reason": "allowed"])
        #expect(gone.diagnostics.map(\.message).contains { $0.contains("of a send that does not wait") })
    }

    @Test func `what happens later counts as reached`() throws {
        let policy = try Self.bundle([Self.step("2026-04-02T07:00:00Z", "outside", "suppress", "expired")])
            .compile()
        let coverage = CaseCoverage(policy.bundle.cases.map { $0.run(under: policy) })
        #expect(coverage.reasons.contains(.expired))
        #expect(coverage.reasons.contains(.quietHoursDeferred))
    }
}
