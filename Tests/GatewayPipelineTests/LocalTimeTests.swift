import GateVocabulary
import GatewayPipeline
import Testing

/// Quiet hours are wall-clock times in a zone; offsets move under them.
@Suite struct LocalTimeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var zone: String
        var start: Int
        var end: Int
        var now: String
        /// `nil` for outside.
        var endsAt: String?
        var testDescription: String { name }
    }

    static let rows = [
        Row(
            name: "an evening in Berlin", zone: "Europe/Berlin", start: 21 * 60, end: 8 * 60,
            now: "2026-03-02T21:01:00Z", endsAt: "2026-03-03T07:00:00Z"),
        Row(
            name: "an afternoon in Berlin", zone: "Europe/Berlin", start: 21 * 60, end: 8 * 60,
            now: "2026-03-02T13:00:00Z", endsAt: nil),
        Row(
            name: "the first minute counts", zone: "America/New_York", start: 21 * 60, end: 8 * 60,
            now: "2026-01-16T02:00:00Z", endsAt: "2026-01-16T13:00:00Z"),
        Row(
            name: "the last minute does not", zone: "America/New_York", start: 21 * 60, end: 8 * 60,
            now: "2026-01-16T13:00:00Z", endsAt: nil),
        Row(
            name: "a nap that does not cross midnight", zone: "Europe/Oslo", start: 13 * 60, end: 15 * 60,
            now: "2026-07-01T12:30:00Z", endsAt: "2026-07-01T13:00:00Z"),
        Row(
            name: "the night the clock goes forward", zone: "Europe/Berlin", start: 22 * 60, end: 8 * 60,
            now: "2026-03-28T23:00:00Z", endsAt: "2026-03-29T06:00:00Z"),
        Row(
            name: "the night the clock goes back", zone: "Europe/Berlin", start: 22 * 60, end: 8 * 60,
            now: "2026-10-24T22:00:00Z", endsAt: "2026-10-25T07:00:00Z"),
        // 02:30 does not exist on 2026-03-29 in Berlin: the clock jumps from 02:00 to 03:00 at 01:00Z.
        Row(
            name: "an end inside the gap means the gap's end", zone: "Europe/Berlin", start: 22 * 60,
            end: 2 * 60 + 30, now: "2026-03-28T23:30:00Z", endsAt: "2026-03-29T01:00:00Z"),
        // 02:30 happens twice on 2026-10-25 in Berlin, first at 00:30Z.
        Row(
            name: "an end inside the overlap means its first", zone: "Europe/Berlin", start: 22 * 60,
            end: 2 * 60 + 30, now: "2026-10-24T23:30:00Z", endsAt: "2026-10-25T00:30:00Z"),
        Row(
            name: "a zone fourteen hours ahead", zone: "Pacific/Kiritimati", start: 21 * 60, end: 8 * 60,
            now: "2026-06-01T10:00:00Z", endsAt: "2026-06-01T18:00:00Z"),
        Row(
            name: "a zone with a quarter of an hour", zone: "Asia/Kathmandu", start: 21 * 60, end: 8 * 60,
            now: "2026-06-01T16:00:00Z", endsAt: "2026-06-02T02:15:00Z"),
    ]

    @Test(arguments: rows)
    func `quiet hours end when the local clock says so`(row: Row) throws {
        let now = try #require(Instant(rfc3339: row.now))
        let fact = LocalTime.quietHours(
            QuietHours(startMinute: row.start, endMinute: row.end), at: now, zones: [row.zone])
        if let text = row.endsAt {
            let end = try #require(Instant(rfc3339: text))
            #expect(fact == .inside(endsAt: end))
        } else {
            #expect(fact == .outside)
        }
    }

    @Test func `equal start and end mean no quiet hours`() throws {
        let now = try #require(Instant(rfc3339: "2026-03-02T21:01:00Z"))
        let hours = QuietHours(startMinute: 600, endMinute: 600)
        #expect(LocalTime.quietHours(hours, at: now, zones: ["Europe/Oslo"]) == .off)
        #expect(LocalTime.quietHours(nil, at: now, zones: ["Europe/Oslo"]) == .off)
    }

    @Test func `the device's zone counts before the account's`() throws {
        // 23:30 in New York is 13:30 of the next day in Tokyo.
        let now = try #require(Instant(rfc3339: "2026-01-16T04:30:00Z"))
        let hours = QuietHours(startMinute: 21 * 60, endMinute: 8 * 60)
        #expect(LocalTime.quietHours(hours, at: now, zones: ["Asia/Tokyo", "America/New_York"]) == .outside)
        let home = LocalTime.quietHours(hours, at: now, zones: [nil, "America/New_York"])
        #expect(home == .inside(endsAt: try #require(Instant(rfc3339: "2026-01-16T13:00:00Z"))))
    }

    @Test func `quiet hours without a known zone say so`() throws {
        let now = try #require(Instant(rfc3339: "2026-03-02T21:01:00Z"))
        let hours = QuietHours(startMinute: 600, endMinute: 700)
        #expect(LocalTime.quietHours(hours, at: now, zones: [nil, "Mars/Olympus"]) == .zoneMissing)
    }

    @Test func `inside means that a minute before the end is inside and the end is not`() throws {
        let hours = QuietHours(startMinute: 22 * 60, endMinute: 7 * 60)
        for zone in ["Europe/London", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca"] {
            var now = try #require(Instant(rfc3339: "2026-01-01T00:00:00Z"))
            for _ in 0..<(365 * 4) {
                if case .inside(let end) = LocalTime.quietHours(hours, at: now, zones: [zone]) {
                    #expect(end > now && end.milliseconds - now.milliseconds <= 11 * 3_600_000, "\(zone)")
                    let before = LocalTime.quietHours(
                        hours, at: end.advanced(bySeconds: -1), zones: [zone])
                    #expect(before == .inside(endsAt: end), "\(zone) at \(now.rfc3339)")
                    #expect(LocalTime.quietHours(hours, at: end, zones: [zone]) == .outside, "\(zone)")
                }
                now = now.advanced(bySeconds: 6 * 3600 + 60)
            }
        }
    }
}
