import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

/// A clock that steps, forwards or backwards, and what becomes of the gateway.
@Suite struct ClockTests {
    private func gate(keeping: StateKeeping = .usual) async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: keeping)
        try await gate.register("u_1")
        return gate
    }

    private func send(_ id: String, _ gate: GatewayHarness) async throws -> GatewayHarness.Reply {
        try await gate.call("payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: "u_1"))
    }

    private func ready(_ gate: GatewayHarness) async throws -> (status: Int, detail: String?) {
        let reply = try await gate.call("nobody", "GET", "/readyz")
        let commit = reply.json["checks"]?.arrayValue?.first { $0["name"] == "commit" }
        return (reply.status, commit?["detail"]?.stringValue)
    }

    @Test
    func
        `a clock that jumps forward is refused before anything is written, and the gateway goes on when it is right`()
        async throws
    {
        let gate = try await gate()
        let before = try gate.store.read { try $0.entryCount() }
        gate.clock.step(seconds: 86_400)
        for id in ["a", "b"] {
            let refused = try await send(id, gate)
            #expect(
                refused.status == 503 && refused["type"] == "urn:sendgate:problem:clock_jumped", "\(refused)")
        }
        #expect(try gate.store.read { try $0.entryCount() } == before)
        await gate.settle()
        // Told at once, and once.
        #expect(gate.alarms.all.count == 1 && gate.alarms.all[0].contains("clock"), "\(gate.alarms.all)")
        gate.clock.step(seconds: -86_400)
        #expect(try await send("a", gate).status == 202)
        gate.clock.step(seconds: 86_400)
        _ = try await send("c", gate)
        await gate.settle()
        #expect(gate.alarms.all.count == 2)
    }

    @Test func `time that really passes is no jump, asleep or slewed`() async throws {
        let gate = try await gate()
        gate.clock.advance(seconds: 30 * 86_400)
        #expect(try await send("a", gate).status == 202)
        // 500 ppm over a day, and a correction within the bound.
        gate.clock.advance(seconds: 86_400)
        gate.clock.step(seconds: 43)
        #expect(try await send("b", gate).status == 202)
        gate.clock.step(seconds: 59)
        #expect(try await send("c", gate).status == 202)
    }

    @Test func `across a restart the boot tells, and across a boot only a long silence does`() async throws {
        let limits = EngineLimits()
        let clockGuard = ClockGuard(limits: limits)
        let wall = Instant.utc("2026-11-21T12:00:00Z")
        let last = ClockReading(wall: wall, uptime: 500_000, boot: "one")
        func judge(_ seconds: Int64, uptime: Int64, boot: String?) -> EngineFailure? {
            let reading = ClockReading(wall: wall.advanced(bySeconds: seconds), uptime: uptime, boot: boot)
            do throws(EngineFailure) {
                _ = try clockGuard.time(reading, after: wall, recordedAt: last)
                return nil
            } catch {
                return error
            }
        }
        #expect(judge(3600, uptime: 500_000 + 3_600_000, boot: "one") == nil)
        #expect(judge(3600, uptime: 501_000, boot: "one") == .clockJumped(milliseconds: 3_599_000))
        // Booted since: nothing to compare with but the silence.
        #expect(judge(3600, uptime: 1_000, boot: "two") == nil)
        // Within a boot the time since boot cannot go back: one of the two readings is not true.
        #expect(judge(3600, uptime: 499_999, boot: "one") == .uptimeWentBack(milliseconds: 1))
        #expect(judge(0, uptime: 500_000, boot: "one") == nil)
        #expect(judge(3600, uptime: 501_000, boot: nil) == nil)
        #expect(judge(8 * 86_400, uptime: 1_000, boot: "two") == .clockJumped(milliseconds: 8 * 86_400_000))
        #expect(judge(-3, uptime: 503_000, boot: "one") == .clockWentBack(milliseconds: 3_000))
        #expect(judge(-1, uptime: 503_000, boot: "one") == nil)
        // Nothing is recorded at a time that no text has.
        #expect(throws: EngineFailure.self) {
            try clockGuard.time(
                ClockReading(wall: Instant(milliseconds: .max), uptime: 1, boot: "one"), after: nil,
                recordedAt: nil)
        }
    }

    /// Two seconds back; forward a minute, and a thousandth of the time that has passed; over a boot, a week.
    @Test(
        arguments: [
            (-2_000, 0, nil), (-2_001, 0, .clockWentBack(milliseconds: 2_001)), (60_000, 0, nil),
            (60_001, 0, .clockJumped(milliseconds: 60_001)), (3_663_600, 3_600_000, nil),
            (3_663_601, 3_600_000, .clockJumped(milliseconds: 63_601)), (3_660_000, 3_599_999, nil),
        ] as [(Int64, Int64, EngineFailure?)])
    func `within a boot the clock is believed to the millisecond of its bounds`(
        _ wall: Int64, _ elapsed: Int64, _ failure: EngineFailure?
    ) {
        #expect(judge(wall, elapsed: elapsed, boot: "one") == failure)
    }

    @Test(arguments: [nil, "two"])
    func `over a boot the clock is believed to the millisecond of its bounds`(_ boot: String?) {
        let week = EngineLimits().clockGapMillisecondsMax
        #expect(judge(week, elapsed: 0, boot: boot) == nil)
        #expect(judge(week + 1, elapsed: 0, boot: boot) == .clockJumped(milliseconds: week + 1))
        #expect(judge(-2_000, elapsed: 0, boot: boot) == nil)
        #expect(judge(-2_001, elapsed: 0, boot: boot) == .clockWentBack(milliseconds: 2_001))
    }

    private func judge(_ wall: Int64, elapsed: Int64, boot: String?) -> EngineFailure? {
        let newest = Instant.utc("2026-11-21T12:00:00Z")
        do throws(EngineFailure) {
            let time = try ClockGuard(limits: EngineLimits()).time(
                ClockReading(
                    wall: newest.advanced(byMilliseconds: wall), uptime: 500_000 + elapsed, boot: boot),
                after: newest, recordedAt: ClockReading(wall: newest, uptime: 500_000, boot: "one"))
            #expect(time == newest.advanced(byMilliseconds: max(wall, 0)))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a time since boot that went back is refused, told once, and accepted by an operator only`()
        async throws
    {
        let gate = try await gate()
        gate.clock.rewindUptime(milliseconds: 5)
        for id in ["a", "b"] {
            let refused = try await send(id, gate)
            #expect(refused.status == 503 && refused["type"] == "urn:sendgate:problem:clock_went_back")
            #expect(refused["detail"]?.contains("since boot is 5 ms less") == true, "\(refused)")
        }
        await gate.settle()
        #expect(gate.alarms.all.count == 1, "\(gate.alarms.all)")
        let accepted = try ClockGuard(limits: EngineLimits()).accept(
            gate.clock.reading(), by: 1000, in: gate.store)
        guard case .recorded = accepted else {
            Issue.record("\(accepted)")
            return
        }
        #expect(try await send("a", gate).status == 202)
    }

    @Test func `an operator accepts a clock that went wrong, and no time that cannot be written`()
        async throws
    {
        let gate = try await gate()
        let entryCount = try gate.entries().count
        for wall in [Instant(milliseconds: -1), Instant(milliseconds: Instant.storable.upperBound + 1)] {
            #expect(throws: EngineFailure.self) {
                try ClockGuard(limits: EngineLimits()).accept(
                    ClockReading(wall: wall, uptime: 1, boot: "first"), by: 1000, in: gate.store)
            }
        }
        #expect(try gate.entries().count == entryCount)
        #expect(try await send("a", gate).status == 202)
    }

    @Test
    func `what an engine opens with is recorded before anything else, once, as soon as the clock is right`()
        async throws
    {
        let gate = try GatewayHarness(opening: { batch, now in
            try batch.record(StopEntry(policy: batch.policy.digest), at: now)
        })
        func kinds() throws -> [EntryKind] {
            try gate.store.read { try $0.entries(from: 0, limit: 99) }.map {
                try TrailEntry(reading: $0.bytes).kind
            }
        }
        gate.clock.set(Instant(milliseconds: -1))
        #expect(try await send("a", gate).status == 503)
        #expect(try await ready(gate).status == 503)
        #expect(try kinds().isEmpty)
        gate.clock.set(.utc("2026-11-21T12:00:00Z"))
        try await gate.register("u_1")
        let found = try kinds()
        #expect(found.first == .stop && found.filter { $0 == .stop }.count == 1, "\(found)")
    }

    @Test func `what the clocks showed is kept beside the newest entry`() async throws {
        let gate = try await gate()
        gate.clock.advance(seconds: 10)
        #expect(try await send("a", gate).status == 202)
        #expect(try gate.store.read { try $0.newestEntryClock() } == gate.clock.reading())
        // A refusal to go on leaves it as it was.
        let kept = gate.clock.reading()
        gate.clock.step(seconds: 7_200)
        _ = try await send("b", gate)
        #expect(try gate.store.read { try $0.newestEntryClock() } == kept)
    }

    @Test(arguments: [86_400, -86_400] as [Int64])
    func `an operator accepts a stepped clock with an entry, and the trail still verifies`(seconds: Int64)
        async throws
    {
        let gate = try await gate()
        let clockGuard = ClockGuard(limits: EngineLimits())
        func accept() throws -> ClockGuard.Acceptance {
            try clockGuard.accept(gate.clock.reading(), by: 1000, in: gate.store)
        }
        // Nothing is wrong: nothing is written.
        #expect(try accept() == .unnecessary)
        let newest = try #require(try gate.store.read { try $0.newestEntryTime() })
        gate.clock.step(seconds: seconds)
        #expect(try await send("a", gate).status == 503)
        let index = try gate.store.read { try $0.entryCount() }
        #expect(
            try accept()
                == .recorded(index: index, from: newest, to: newest.advanced(bySeconds: seconds)))
        #expect(try await send("a", gate).status != 503)
        #expect(try accept() == .unnecessary)

        let entries = try gate.store.read { try $0.entries(from: 0, limit: 99) }
        let entry = try TrailEntry(reading: entries[Int(index)].bytes)
        #expect(EntrySchema.version1.violation(in: entry) == nil)
        #expect(entry.members["uid"] == 1000 && entry.members["previous"] == .integer(newest.milliseconds))
    }

    @Test func `ready means that a send would be committed`() async throws {
        let gate = try await gate()
        #expect(try await ready(gate).status == 200)
        gate.clock.step(seconds: -10)
        #expect(try await send("a", gate).status == 503)
        let behind = try await ready(gate)
        #expect(behind.status == 503 && behind.detail?.contains("clock") == true, "\(behind)")
        // Right again, and no send came since: the probe finds out.
        gate.clock.step(seconds: 10)
        #expect(try await ready(gate).status == 200)
        #expect(try await send("a", gate).status == 202)
    }

    @Test func `after a silence readiness tries a commit, and not at every question`() async throws {
        let gate = try await gate()
        gate.clock.advance(seconds: 61)
        gate.clock.step(seconds: -70)
        // Nothing was refused yet; the next send would be.
        #expect(try await ready(gate).status == 503)
        gate.clock.step(seconds: 70)
        #expect(try await ready(gate).status == 200)
        let batches = gate.engine.load.batchCount
        for _ in 0..<20 { #expect(try await ready(gate).status == 200) }
        #expect(gate.engine.load.batchCount == batches)
    }

    @Test func `a store that cannot write makes the gateway unready although it reads`() async throws {
        let gate = try await gate(keeping: .files())
        gate.files.close()
        #expect(try await send("a", gate).status == 503)
        let ready = try await ready(gate)
        #expect(ready.status == 503 && ready.detail?.contains("closed") == true, "\(ready)")
    }
}
