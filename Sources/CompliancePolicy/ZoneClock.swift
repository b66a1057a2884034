package import GateVocabulary

/// What the clocks of a place read at a moment. It holds no zone data; its maker does.
package struct ZoneClock: Sendable {
    private let name: String
    private let offsetSeconds: @Sendable (Instant) -> Int64

    /// - Parameters:
    ///   - name: Of the zone, as IANA has it.
    ///   - offsetSeconds: East of Greenwich, at a moment.
    package init(_ name: String, offsetSeconds: @escaping @Sendable (Instant) -> Int64) {
        self.name = name
        self.offsetSeconds = offsetSeconds
    }

    package static let utc = ZoneClock("UTC") { _ in 0 }

    /// A date and a time to the minute, and the name of the zone.
    package struct Reading: Hashable {
        package var year: Int64
        package var month: Int
        package var day: Int
        package var hour: Int
        package var minute: Int
        package var zone: String
    }

    /// Rounded down to the minute.
    package func reading(_ moment: Instant) -> Reading {
        let offset = offsetSeconds(moment)
        let local = moment.seconds + offset
        let secondOfDay = (local % 86_400 + 86_400) % 86_400
        let (year, month, day) = Instant.civil(days: (local - secondOfDay) / 86_400)
        return Reading(
            year: year, month: Int(month), day: Int(day), hour: Int(secondOfDay / 3600),
            minute: Int(secondOfDay / 60 % 60),
            zone: isReadTwice(moment, offset) ? "\(name), UTC\(Self.words(offset))" : name)
    }

    /// In autumn an hour of clock time comes twice; which of the two is meant is said with it.
    private func isReadTwice(_ moment: Instant, _ offset: Int64) -> Bool {
        // Clocks are set by two hours at most (Antarctica/Troll).
        [Int64(-10_800), 10_800].contains { distance in
            let other = offsetSeconds(moment.advanced(bySeconds: distance))
            return other != offset
                && offsetSeconds(moment.advanced(bySeconds: offset - other)) == other
        }
    }

    /// `+1`, `-3:30`.
    private static func words(_ offset: Int64) -> String {
        let minutes = offset.magnitude / 60
        let fraction = minutes % 60 == 0 ? "" : minutes % 60 < 10 ? ":0\(minutes % 60)" : ":\(minutes % 60)"
        return "\(offset < 0 ? "-" : "+")\(minutes / 60)\(fraction)"
    }
}
