import GateVocabulary
import Testing

@Suite struct InstantTextTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("2026-11-21T05:00:00Z", 1_795_237_200_000),
        ("2026-11-21T06:00:00+01:00", 1_795_237_200_000),
        ("2026-11-20T23:30:00-05:30", 1_795_237_200_000),
        ("2026-11-21T05:00:00-00:00", 1_795_237_200_000),
        ("2026-11-21T05:00:00.5Z", 1_795_237_200_500),
        ("2026-11-21T05:00:00.123456789Z", 1_795_237_200_123),
        ("2026-11-21T05:00:00.999999Z", 1_795_237_200_999),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("2100-02-28T23:59:59Z", 4_107_542_399_000),
        ("1972-02-29T12:00:00+14:00", 68_162_400_000),
    ])
    func `a time with its zone is one moment`(_ text: String, _ milliseconds: Int64) {
        #expect(Instant(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T05:00Z", "2026-11-21T05:00:00", "2026-11-21 05:00:00Z",
        "2026-11-21t05:00:00Z",
        "2026-11-21T05:00:00z", "2026-11-21T05:00:60Z", "2016-12-31T23:59:60Z", "2026-11-21T24:00:00Z",
        "2026-11-21T05:60:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z", "+2026-11-21T05:00:00Z", "2026-11-21T05:00:00.Z",
        "2026-11-21T05:00:00.1234567890Z",
        "2026-11-21T05:00:00,5Z", "2026-11-21T05:00:00+0100", "2026-11-21T05:00:00+01",
        "2026-11-21T05:00:00+24:00",
        "2026-11-21T05:00:00+01:60", "2026-11-21T05:00:00Z ", " 2026-11-21T05:00:00Z",
        "2026-11-21T05:00:00ZZ",
        "2026-11-21T05:00:00+01:00Z", "２026-11-21T05:00:00Z", "2026-11-21T05:00:00−01:00",
        "2026-W47-6T05:00:00Z",
        "2026-11-21T05:00:00\u{0}Z", "-026-11-21T05:00:00Z", "2026-11-21T+5:00:00Z",
    ])
    func `any other spelling of a time is refused`(_ text: String) {
        #expect(Instant(rfc3339: text) == nil)
    }

    @Test func `what is printed is read back, milliseconds only where there are any`() {
        #expect(Instant(milliseconds: 1_795_237_200_000).rfc3339 == "2026-11-21T05:00:00Z")
        #expect(Instant(milliseconds: 1_795_237_200_040).rfc3339 == "2026-11-21T05:00:00.040Z")
        var random = SmallRandom(state: 1)
        for _ in 0..<20_000 {
            let instant = Instant(milliseconds: Int64(random.next(upTo: 253_402_300_800_000)))
            #expect(Instant(rfc3339: instant.rfc3339) == instant)
        }
    }

    @Test func `every day from 1970 to 2400 has its own date, in order`() {
        // 400 years are the calendar's whole period, so this is every leap rule there is.
        var previous = (year: Int64(1969), month: Int64(12), day: Int64(31))
        for days in Int64(0)...157_054 {
            let date = Instant.civil(days: days)
            #expect(Instant.days(year: date.year, month: date.month, day: date.day) == days)
            let isNextDay =
                date.year == previous.year && date.month == previous.month && date.day == previous.day + 1
            let isNewMonth = date.day == 1 && previous.day >= 28
            #expect(isNextDay || isNewMonth, "\(days)")
            previous = date
        }
        #expect(previous == (2400, 1, 1))
    }

    @Test(arguments: [
        (-1, "1969-12-31T23:59:59.999Z"), (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+010000-01-01T00:00:00Z"), (Int64.max, "+292278994-08-17T07:12:55.807Z"),
        (Int64.min, "-292275055-05-16T16:47:04.192Z"),
    ])
    func `a moment no four digits can say is still printed, for it may come from a stranger's arithmetic`(
        _ milliseconds: Int64, _ text: String
    ) {
        #expect(Instant(milliseconds: milliseconds).rfc3339 == text)
    }
}
