import BundleModel
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
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

    struct Departure: Sendable, CustomTestStringConvertible {
        var name: String
        var time: SendTime
        var zone: String?
        var now: String
        var goesAt: String
        var testDescription: String { name }
    }

    static let departures = [
        Departure(
            name: "five minutes later", time: .after(minutes: 5), zone: nil, now: "2026-11-21T12:00:00Z",
            goesAt: "2026-11-21T12:05:00Z"),
        Departure(
            name: "eight in the morning, before", time: .daily(minute: 480), zone: "Europe/Oslo",
            now: "2026-11-21T06:59:00Z", goesAt: "2026-11-21T07:00:00Z"),
        Departure(
            name: "eight in the morning, in that minute", time: .daily(minute: 480), zone: "Europe/Oslo",
            now: "2026-11-21T07:00:30Z", goesAt: "2026-11-21T07:00:30Z"),
        Departure(
            name: "eight in the morning, after", time: .daily(minute: 480), zone: "Europe/Oslo",
            now: "2026-11-21T07:01:00Z", goesAt: "2026-11-22T07:00:00Z"),
        Departure(
            name: "eight in the morning after the clock went forward", time: .daily(minute: 480),
            zone: "Europe/Oslo", now: "2026-03-28T12:00:00Z", goesAt: "2026-03-29T06:00:00Z"),
        // 2026-11-21 is a Saturday.
        Departure(
            name: "Sunday evening", time: .weekly(day: 6, minute: 19 * 60), zone: "Europe/Oslo",
            now: "2026-11-21T12:00:00Z", goesAt: "2026-11-22T18:00:00Z"),
        Departure(
            name: "Sunday evening, just missed", time: .weekly(day: 6, minute: 19 * 60), zone: "Europe/Oslo",
            now: "2026-11-22T18:01:00Z", goesAt: "2026-11-29T18:00:00Z"),
        Departure(
            name: "a Sunday that has begun in Auckland only", time: .weekly(day: 6, minute: 60),
            zone: "Pacific/Auckland", now: "2026-11-21T11:30:00Z", goesAt: "2026-11-21T12:00:00Z"),
        // 14:07 is this recipient's minute.
        Departure(
            name: "between two and five, before", time: .between(first: 840, last: 1020), zone: "Europe/Oslo",
            now: "2026-11-21T12:59:59Z", goesAt: "2026-11-21T13:07:00Z"),
        Departure(
            name: "between two and five, before one's minute", time: .between(first: 840, last: 1020),
            zone: "Europe/Oslo", now: "2026-11-21T13:00:00Z", goesAt: "2026-11-21T13:00:00Z"),
        Departure(
            name: "between two and five, after one's minute", time: .between(first: 840, last: 1020),
            zone: "Europe/Oslo", now: "2026-11-21T15:59:59Z", goesAt: "2026-11-21T15:59:59Z"),
        Departure(
            name: "between two and five, when it is five", time: .between(first: 840, last: 1020),
            zone: "Europe/Oslo", now: "2026-11-21T16:00:00Z", goesAt: "2026-11-22T13:07:00Z"),
        Departure(
            name: "without a zone, and without one it may be in", time: .daily(minute: 480), zone: nil,
            now: "2026-11-21T12:00:00Z", goesAt: "2026-11-21T12:00:00Z"),
    ]

    @Test(arguments: departures)
    func `a type with a time of its own`(_ row: Departure) {
        let moment = LocalTime.sendTime(row.time, at: .utc(row.now), zones: [row.zone], spread: 7)
        #expect(moment == .utc(row.goesAt), "\(moment.rfc3339)")
    }

    // MARK: Without a zone

    private static let places = [
        ["America/New_York", "America/Los_Angeles", "Pacific/Honolulu"],
        ["Europe/Oslo", "Europe/Lisbon", "Europe/Helsinki", "Atlantic/Azores"], ["Asia/Tokyo"],
        ["Europe/Moscow", "Asia/Kamchatka", "Europe/Kaliningrad"],
    ]

    @Test(arguments: [UInt64(31), 32, 33])
    func `without a zone it is quiet while it is in one where they may be, and over when it is in none`(
        seed: UInt64
    ) {
        var numbers = SeededNumbers(seed: seed)
        var (quiet, loud) = (0, 0)
        for _ in 0..<2_000 {
            let zones = Self.places[Int(numbers.next() % 4)]
            let start = Int(numbers.next() % 1440)
            let length = 60 + Int(numbers.next() % 700)
            let hours = QuietHours(startMinute: start, endMinute: (start + length) % 1440)
            let now = Instant.utc("2026-03-01T00:00:00Z").advanced(
                bySeconds: Int64(numbers.next() % 31_536_000))
            func inside(_ moment: Instant) -> [Instant] {
                zones.compactMap {
                    LocalTime.quietHours(hours, at: moment, zones: [$0]).endsAt
                }
            }
            let fact = LocalTime.quietHours(hours, at: now, zones: [nil, nil], possible: zones)
            if let end = fact.endsAt {
                #expect(!inside(now).isEmpty && end > now, "\(now.rfc3339)")
                #expect(fact == .insideSomewhere(endsAt: end))
                // Windows that are nowhere over at once are judged in the first zone.
                #expect(inside(end).isEmpty || inside(now).contains(end), "\(now.rfc3339) \(hours)")
                quiet += 1
            } else {
                loud += 1
                #expect(fact == .zoneMissing)
                #expect(inside(now).isEmpty || inside(now).count < zones.count, "\(now.rfc3339)")
            }
        }
        #expect(quiet > 500 && loud > 200, "\(quiet) \(loud)")
    }

    @Test(arguments: [UInt64(41), 42, 43])
    func `without a zone a type with a time of its own goes inside its window wherever they may be`(
        seed: UInt64
    ) {
        var numbers = SeededNumbers(seed: seed)
        for _ in 0..<1_000 {
            // Four hours apart at most, so that each window has a time in common.
            let zones = Self.places[1 + Int(numbers.next() % 2)]
            let first = 9 * 60 + Int(numbers.next() % 300)
            let last = first + 300
            let now = Instant.utc("2026-03-01T00:00:00Z").advanced(
                bySeconds: Int64(numbers.next() % 31_536_000))
            let time = SendTime.between(first: first, last: last)
            let moment = LocalTime.sendTime(
                time, at: now, zones: [nil], possible: zones, spread: numbers.next())
            #expect(moment >= now && moment <= now.advanced(bySeconds: 2 * 86_400))
            for zone in zones {
                // What is inside its window goes at once.
                let there = LocalTime.sendTime(time, at: moment, zones: [zone], spread: 0)
                #expect(there == moment, "\(zone) \(moment.rfc3339)")
            }
        }
        // A time of day has come everywhere, and nowhere at night.
        let zones = Self.places[1]
        let morning = LocalTime.sendTime(
            .daily(minute: 480), at: .utc("2026-11-21T07:30:00Z"), zones: [nil], possible: zones, spread: 3)
        #expect(morning == .utc("2026-11-21T09:00:00Z"), "\(morning.rfc3339)")
        let sunday = LocalTime.sendTime(
            .weekly(day: 6, minute: 19 * 60), at: .utc("2026-11-21T07:30:00Z"), zones: [nil],
            possible: zones, spread: 3)
        #expect(sunday == .utc("2026-11-22T20:00:00Z"), "\(sunday.rfc3339)")
    }

    @Test(arguments: [
        "Factory", "localtime", "posixrules", "leapseconds", "posix/Europe/Oslo", "right/Europe/Oslo",
        "GMT+0100",
        "GMT-5", "gmt+01:00", "FACTORY", "tzdata", "zone1970", "Europe", "Europe/Nowhere", "",
    ])
    func `what is no place's time is no zone`(_ name: String) {
        #expect(!LocalTime.isKnown(zone: name))
    }

    @Test(arguments: [
        "Europe/Oslo", "Asia/Calcutta", "America/Argentina/Buenos_Aires", "UTC", "Etc/UTC", "Etc/GMT+5",
        "GMT", "GMT0",
        "GMT+0",
    ])
    func `a place's time is a zone, and so is a stated distance from UTC`(_ name: String) {
        #expect(LocalTime.isKnown(zone: name))
    }

    @Test func `every country of the bundle has zones that this machine knows`() throws {
        let policy = try Repository.policy()
        // No person lives on Bouvet, or on Heard and McDonald.
        let empty = ["BV", "HM"].compactMap { RegionCode($0) }
        for code in policy.bundle.regions.regions.keys where !empty.contains(code) {
            let zones = CountryZones.zones(of: code.country)
            #expect(!zones.isEmpty && zones.allSatisfy(LocalTime.isKnown(zone:)), "\(code): \(zones)")
        }
    }

    @Test func `a time inside a window is one's own, and inside it`() {
        let now = Instant.utc("2026-11-21T00:00:00Z")
        var moments: Set<Int64> = []
        for spread in UInt64(0)..<500 {
            let time = SendTime.between(first: 14 * 60, last: 17 * 60)
            let moment = LocalTime.sendTime(time, at: now, zones: ["Europe/Oslo"], spread: spread)
            #expect(moment == LocalTime.sendTime(time, at: now, zones: ["Europe/Oslo"], spread: spread))
            #expect(moment >= .utc("2026-11-21T13:00:00Z") && moment < .utc("2026-11-21T16:00:00Z"))
            moments.insert(moment.milliseconds)
        }
        #expect(moments.count == 180)
    }

    private func hours() throws -> SendingHours {
        try #require(try Repository.policy().bundle.channels.smsHours)
    }

    @Test(arguments: [
        // 08:00 in Honolulu and on Pago Pago is 18:00Z and 19:00Z; Guam opens at 22:00Z; San Juan closes at 01:00Z.
        ("2026-11-21T18:00:00Z", "2026-11-21T22:00:00Z"), ("2026-11-21T22:00:00Z", nil),
        ("2026-11-22T00:59:00Z", nil), ("2026-11-22T01:00:00Z", "2026-11-22T22:00:00Z"),
    ])
    func `a text to the United States waits for the hour that is allowed in every zone`(
        _ now: String, _ end: String?
    ) throws {
        let joined = LocalTime.joining(try hours(), to: .off, at: .utc(now))
        #expect(joined == (end.map { .inside(endsAt: .utc($0)) } ?? .outside))
    }

    @Test func `the law's hours and one's own hold together`() throws {
        let night = QuietHoursFact.inside(endsAt: .utc("2026-11-22T23:30:00Z"))
        let hours = try hours()
        #expect(LocalTime.joining(hours, to: night, at: .utc("2026-11-22T02:00:00Z")) == night)
        #expect(
            LocalTime.joining(hours, to: .outside, at: .utc("2026-11-22T02:00:00Z"))
                == .inside(endsAt: .utc("2026-11-22T22:00:00Z")))
        #expect(LocalTime.joining(hours, to: night, at: .utc("2026-11-22T23:00:00Z")) == night)
    }
}
