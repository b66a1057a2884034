import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing

/// Every number that time is compared with, from both sides: what is stored and what the clock shows becomes the facts
/// that a reading by hand expects.
@Suite struct BoundaryTests {
    private static let seed: UInt64 = 20_261_122

    /// Zones with and without summer time, by whole, half and quarter hours, and one that skips by half an hour.
    private static let zones = [
        "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu",
        "Pacific/Chatham", "Pacific/Kiritimati", "Africa/Casablanca", "America/Sao_Paulo", "Etc/UTC",
    ]

    /// Quiet hours by looking at the clock on the wall minute by minute; knows no arithmetic of days.
    private static func byTheClock(
        _ start: Int, _ end: Int, at now: Instant, in zone: TimeZone
    ) -> QuietHoursFact {
        func wall(_ seconds: Int64) -> Int64 {
            seconds + Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
        }
        if start == end { return .off }
        let minute = Int(wall(now.seconds) % 86_400 / 60)
        // The minutes of the window, one by one, round the clock.
        var isInside = false
        var each = start
        while each != end {
            if each == minute { isInside = true }
            each = (each + 1) % 1440
        }
        if !isInside { return .outside }
        var seconds = now.seconds - now.seconds % 60
        while true {
            let before = wall(seconds)
            seconds += 60
            let after = wall(seconds)
            // The hands pass the end on their way, or a jump carries them over it; a jump back passes nothing.
            var reading = before + 60
            while reading <= after {
                if Int(reading % 86_400 / 60) == end { return .inside(endsAt: Instant(seconds: seconds)) }
                reading += 60
            }
        }
    }

    @Test func `quiet hours are those of a clock on the wall, over midnight and through summer time`() throws
    {
        var numbers = SeededNumbers(seed: Self.seed)
        var (inside, outside, off, wrapped) = (0, 0, 0, 0)
        // Midnight and the minutes beside it, the hours at which clocks are changed, and any other.
        let minutes = [0, 1, 59, 60, 119, 120, 121, 150, 179, 180, 181, 1319, 1320, 1438, 1439]
        let changes = [
            "2026-03-08T00:00:00Z", "2026-03-29T00:00:00Z", "2026-04-04T12:00:00Z", "2026-10-25T00:00:00Z",
        ]
        for _ in 0..<1_500 {
            func any<Value>(_ values: [Value]) -> Value { values[Int(numbers.next() % UInt64(values.count))] }
            func minute() -> Int { numbers.next() % 2 == 0 ? any(minutes) : Int(numbers.next() % 1440) }
            let name = any(Self.zones)
            let zone = try #require(TimeZone(identifier: name))
            let (start, other) = (minute(), minute())
            let end = numbers.next() % 16 == 0 ? start : other
            let begin = numbers.next() % 2 == 0 ? Instant.utc(any(changes)) : .utc("2026-01-01T00:00:00Z")
            var now = begin.advanced(bySeconds: Int64(numbers.next() % (36 * 3600)))
            if numbers.next() % 2 == 0 {
                // Right at one end of the window, or a second before or after.
                let wall =
                    now.seconds
                    + Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(now.seconds))))
                let edge = Int64(any([start, end])) * 60 + Int64(numbers.next() % 3) - 1
                now = now.advanced(bySeconds: edge - wall % 86_400)
            }
            let found = LocalTime.quietHours(
                QuietHours(startMinute: start, endMinute: end), at: now, zones: [name])
            let expected = Self.byTheClock(start, end, at: now, in: zone)
            #expect(found == expected, "\(start) to \(end) at \(now.rfc3339) in \(name), seed \(Self.seed)")
            switch expected {
            case .inside:
                inside += 1
                wrapped += start > end ? 1 : 0
            case .outside: outside += 1
            default: off += 1
            }
        }
        #expect(
            inside > 300 && outside > 300 && off > 50 && wrapped > 100,
            "\(inside) \(outside) \(off) \(wrapped)")
    }

    private func entries(_ gate: GatewayHarness, _ kind: String) throws -> [JSONValue] {
        try gate.store.read { try $0.entries(from: 0, limit: 1_000) }
            .map { try CanonicalJSON.read($0.bytes) }.filter { $0["kind"]?.stringValue == kind }
    }

    @Test(arguments: [(59, 0), (60, 0), (61, 1)] as [(Int64, Int)])
    func `what was decided more than sixty seconds ago is decided again`(
        seconds: Int64, count: Int
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        #expect(sent["outcome"] == "forward")
        gate.clock.advance(seconds: seconds)
        #expect(try await gate.claim().count == 1)
        let again = try entries(gate, "redecision")
        #expect(again.count == count)
        #expect(again.allSatisfy { $0["cause"] == "old" && $0["decision"]?["outcome"] == "forward" })
    }

    @Test func `the cap is reached by the one that fills it, and has room again after its window`()
        async throws
    {
        let gate = try GatewayHarness(
            caps: """
                categories:
                  marketing:
                    - {count: 3, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                types: {}
                """)
        try await gate.register("u_1")
        try await gate.consent("u_1")
        func outcome(_ id: String) async throws -> String? {
            let reply = try await gate.call("marketing", "POST", "/v1/sends", gate.promo(id, to: "u_1"))
            return reply["outcome"] == "forward" ? "forward" : reply["reason"]
        }
        // One below the cap, the one that reaches it, and the one after it.
        for (id, expected) in [("a", "forward"), ("b", "forward"), ("c", "forward"), ("d", "frequency_cap")] {
            #expect(try await outcome(id) == expected, "\(id)")
        }
        gate.clock.advance(seconds: 3_599)
        #expect(try await outcome("e") == "frequency_cap")
        gate.clock.advance(seconds: 1)
        // As old as the window is long, it still counts.
        #expect(try await outcome("f") == "frequency_cap")
        gate.clock.advance(seconds: 1)
        for (id, expected) in [("g", "forward"), ("h", "forward"), ("i", "forward"), ("j", "frequency_cap")] {
            #expect(try await outcome(id) == expected, "\(id)")
        }
    }

    @Test(arguments: [(9, nil), (10, "expired"), (11, "expired")] as [(Int64, String?)])
    func `a consent counts up to the moment at which it ends`(seconds: Int64, detail: String?) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let now = gate.clock.now()
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let given = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c", "purpose": "marketing", "channel": "push", "event_time": .string(now.rfc3339),
                "expires_at": .string(now.advanced(bySeconds: 10).rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(given.status == 200, "\(given.json)")
        gate.clock.advance(seconds: seconds)
        let reply = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("a", to: "u_1"))
        #expect(reply["outcome"] == (detail == nil ? "forward" : "reject"), "\(reply.json)")
        #expect(reply["detail"] == detail)
    }

    /// Twelve is noon in London on the day the harness begins.
    @Test(arguments: [
        ("12:00", "12:01", "defer"), ("12:01", "12:00", "forward"), ("11:59", "12:00", "forward"),
        ("12:00", "12:00", "forward"), ("11:59", "12:01", "defer"), ("12:00", "11:59", "defer"),
        ("00:00", "12:00", "forward"), ("23:59", "12:01", "defer"), ("12:01", "00:00", "forward"),
    ])
    func `quiet hours begin with their first minute and end before their last`(
        start: String, end: String, outcome: String
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register(
            "u_1", zone: "Europe/London", quiet: ["start": .string(start), "end": .string(end)])
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        #expect(reply["outcome"] == outcome, "\(reply.json)")
    }
}
