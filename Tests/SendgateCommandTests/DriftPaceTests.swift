import Testing

@testable import sendgate

/// How fast a drift audit examines persons.
@Suite struct DriftPaceTests {
    @Test func `no limit is exceeded, and no piece is longer than a send may wait`() {
        for limit in 1...10_000 {
            let pace = DriftPace(personsPerSecond: limit)
            let (seconds, attoseconds) = pace.pause.components
            // A pause of whole microseconds: persons × 1,000,000 ≤ limit × microseconds, without a fraction.
            let microseconds = Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
            let isWithin = pace.personCountPerPiece * 1_000_000 <= limit * microseconds
            #expect(isWithin, "\(limit): \(pace)")
            #expect((1...100).contains(pace.personCountPerPiece), "\(limit): \(pace)")
            // A limit that is nowhere near reached would make a weekly run of ten million people too long.
            let isUsed = pace.personCountPerPiece * 1_000_000 * 100 >= limit * microseconds * 99
            #expect(isUsed, "\(limit): \(pace)")
        }
    }

    @Test func `the default is ten pieces of fifty a second, and the greatest a hundred of a hundred`() {
        #expect(DriftSchedule().pace.personCountPerPiece == 50)
        #expect(DriftSchedule().pace.pause == .milliseconds(100))
        #expect(DriftPace(personsPerSecond: 10_000).personCountPerPiece == 100)
        #expect(DriftPace(personsPerSecond: 10_000).pause == .milliseconds(10))
    }
}
