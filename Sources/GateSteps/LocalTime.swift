package import BundleModel
package import CompliancePolicy
import Foundation
package import GateVocabulary
package import GateRecords

/// Wall-clock arithmetic in IANA zones. The only place that knows time-zone data; what it resolves is a
/// fact, recorded with the data's version, so that replay never needs a zone again.
package struct LocalTime: Sendable {
    /// Version of the zone data in use, e.g. `2025b`.
    package static let dataVersion = TimeZone.timeZoneDataVersion

    /// Whether `name` is a zone of the tz database that this machine knows, and so a clock that people live by, or a stated
    /// distance from UTC.
    package static func isKnown(zone name: String) -> Bool {
        !isNoCivilTime(name) && TimeZone(identifier: name) != nil
    }

    /// Whether a name is of a file or a rule of the tz database that is no place's time, or no name of the database at all:
    ///
    /// - `Factory`, the time of a machine that was never set up (tz, `factory`), and `localtime`, that of the machine itself;
    /// - `posixrules`, what POSIX strings without rules mean, the tables beside the zones, and `right/…` and `posix/…`, a
    ///   second copy of each zone, with leap seconds or without (`zic.8`);
    /// - `GMT+0100`, which Foundation makes a zone of.
    private static func isNoCivilTime(_ name: String) -> Bool {
        switch name.prefix(while: { $0 != "/" }).lowercased() {
        case "factory", "localtime", "posixrules", "posix", "right", "systemv", "leapseconds", "leap-seconds",
            "tzdata", "iso3166", "zone", "zone1970", "zonenow":
            return true
        case let name where name.hasPrefix("gmt+") || name.hasPrefix("gmt-"):
            return name.dropFirst(4) != "0"
        default: return false
        }
    }

    /// The clock of the first known zone; that of UTC when none is.
    package static func clock(zones: [String?]) -> ZoneClock {
        guard let zone = known(zones).first else { return .utc }
        return ZoneClock(zone.identifier) { offsetSeconds(zone, at: $0) }
    }

    private static let minutesPerDay: Int64 = 1440

    /// Resolves quiet hours at one moment.
    ///
    /// - Parameters:
    ///   - hours: `nil`, or equal start and end, means off.
    ///   - zones: The device's, then the account's; the first that is known counts. Asked where there are quiet hours.
    ///   - possible: The zones they may be in, asked where none is known. It is quiet while it is in one of them; where
    ///     it always is in one, the first stands for all.
    /// - Returns: When inside, the moment the local clock first reads the end time. Across a gap (spring)
    ///   that is the first moment after it; across an overlap (autumn), the first of the two.
    package static func quietHours(
        _ hours: QuietHours?, at now: Instant, zones: @autoclosure () -> [String?],
        possible: @autoclosure () -> [String] = []
    ) -> QuietHoursFact {
        guard let hours, hours.startMinute != hours.endMinute else { return .off }
        if let zone = known(zones()).first {
            return windowEnd(of: hours, at: now, in: zone).map(QuietHoursFact.inside) ?? .outside
        }
        let possible = known(possible())
        func lastEnd(from moment: Instant) -> Instant? {
            possible.compactMap { windowEnd(of: hours, at: moment, in: $0) }.max()
        }
        guard var moment = lastEnd(from: now) else { return .zoneMissing }
        while let next = lastEnd(from: moment), moment < now.advanced(bySeconds: 86_400) { moment = next }
        if lastEnd(from: moment) == nil { return .insideSomewhere(endsAt: moment) }
        return possible.first.flatMap { windowEnd(of: hours, at: now, in: $0) }
            .map(QuietHoursFact.insideSomewhere) ?? .zoneMissing
    }

    /// - Returns: `nil` outside of the window.
    private static func windowEnd(of hours: QuietHours, at now: Instant, in zone: TimeZone) -> Instant? {
        let minute = localMinute(at: now, in: zone)
        let start = Int64(hours.startMinute)
        let end = Int64(hours.endMinute)
        let isInside = start < end ? minute >= start && minute < end : minute >= start || minute < end
        return isInside ? nextMoment(localMinute: end, after: now, in: zone) : nil
    }

    private static func known(_ zones: [String?]) -> [TimeZone] {
        zones.compactMap { $0.flatMap(TimeZone.init(identifier:)) }
    }

    /// Joins the hours in which a law lets a channel be used with the recipient's own quiet hours.
    ///
    /// - Parameter own: What the recipient set, resolved already.
    /// - Returns: Inside until every zone of the law allows sending and the recipient's own window is over.
    package static func joining(
        _ hours: SendingHours, to own: QuietHoursFact, at now: Instant
    ) -> QuietHoursFact {
        let zones = hours.zones.compactMap(TimeZone.init(identifier:))
        guard let opening = opening(of: hours, in: zones, from: now), opening > now else {
            return own == .off ? .outside : own
        }
        if let end = own.endsAt { return .inside(endsAt: max(end, opening)) }
        return .inside(endsAt: opening)
    }

    /// The first moment, `now` included, at which the hours hold in every zone; `nil` without a zone.
    private static func opening(of hours: SendingHours, in zones: [TimeZone], from now: Instant) -> Instant? {
        func isOpen(_ moment: Instant) -> Bool {
            zones.allSatisfy { zone in
                let minute = localMinute(at: moment, in: zone)
                return minute >= Int64(hours.earliest) && minute < Int64(hours.latest)
            }
        }
        guard !zones.isEmpty else { return nil }
        if isOpen(now) { return now }
        // The window opens at the moment the last zone does. Zones that never share an hour would close for good, so the
        // search ends after two days and the send waits that long.
        var moment = now
        let end = now.advanced(bySeconds: 2 * 86_400)
        while moment < end {
            moment =
                zones.map { nextMoment(localMinute: Int64(hours.earliest), after: moment, in: $0) }.min()
                ?? end
            if isOpen(moment) { return moment }
        }
        return end
    }

    /// When a type with a time of its own goes out, if it is asked for now.
    ///
    /// Inside a window that is now, whether one's own minute of it is past or to come.
    ///
    /// - Parameters:
    ///   - zones: The destination's, then the account's.
    ///   - possible: The zones they may be in, asked where none is known. It goes when its time has come in all of them.
    ///   - spread: Any number that is always the same for one recipient; it places them inside a window.
    package static func sendTime(
        _ time: SendTime, at now: Instant, zones: [String?], possible: @autoclosure () -> [String] = [],
        spread: UInt64
    ) -> Instant {
        if case .after(let minutes) = time { return now.advanced(bySeconds: Int64(minutes) * 60) }
        if let zone = known(zones).first { return sendTime(time, at: now, in: zone, spread: spread) }
        let possible = known(possible())
        if let moment = sendTime(time, at: now, inAll: possible, spread: spread) { return moment }
        // A window that is open in all of them at no time: then in one of them, and by day in all.
        let moments = possible.map { sendTime(time, at: now, in: $0, spread: spread) }
        return moments.first { moment in
            possible.allSatisfy { day.contains(Int(localMinute(at: moment, in: $0))) }
        } ?? moments.first ?? now
    }

    /// From eight in the morning until nine in the evening (47 CFR 64.1200(c)(1) has the same hours).
    private static let day = 8 * 60..<21 * 60
    /// How long a time of day is in time where the zone is not known, unless the day is longer.
    private static let minutesLate = 4 * 60

    private static func sendTime(
        _ time: SendTime, at now: Instant, in zone: TimeZone, spread: UInt64
    ) -> Instant {
        func next(_ minute: Int) -> Instant {
            localMinute(at: now, in: zone) == Int64(minute)
                ? now : nextMoment(localMinute: Int64(minute), after: now, in: zone)
        }
        switch time {
        case .after: return now
        case .daily(let minute): return next(minute)
        case .between(let first, let last):
            let minute = localMinute(at: now, in: zone)
            if minute >= Int64(first), minute < Int64(last) { return now }
            return next(first + Int(spread % UInt64(last - first)))
        case .weekly(let day, let minute):
            var moment = next(minute)
            while weekday(of: moment, in: zone) != day {
                moment = nextMoment(localMinute: Int64(minute), after: moment, in: zone)
            }
            return moment
        }
    }

    /// The first moment at which a time of day has come in every zone, and is over in none.
    ///
    /// - Returns: `nil` where there is none within the week to come.
    private static func sendTime(
        _ time: SendTime, at now: Instant, inAll zones: [TimeZone], spread: UInt64
    ) -> Instant? {
        let minutes: Range<Int>
        var weekday: Int?
        switch time {
        case .after: return nil
        case .between(let first, let last): minutes = first..<last
        case .daily(let minute), .weekly(_, let minute):
            minutes = minute..<min(max(minute + minutesLate, day.upperBound), Int(minutesPerDay))
        }
        if case .weekly(let day, _) = time { weekday = day }
        func isTime(_ moment: Instant) -> Bool {
            zones.allSatisfy { zone in
                minutes.contains(Int(localMinute(at: moment, in: zone)))
                    && (weekday == nil || weekday == self.weekday(of: moment, in: zone))
            }
        }
        guard !zones.isEmpty else { return nil }
        let isBetween = if case .between = time { true } else { false }
        let opensNow = zones.contains { localMinute(at: now, in: $0) == Int64(minutes.lowerBound) }
        if isTime(now), isBetween || opensNow { return now }
        var moment = now
        while moment < now.advanced(bySeconds: 8 * 86_400) {
            let openings = zones.map {
                nextMoment(localMinute: Int64(minutes.lowerBound), after: moment, in: $0)
            }
            moment = openings.min() ?? now
            guard isTime(moment) else { continue }
            guard case .between = time else { return moment }
            let rest = zones.map { minutes.upperBound - Int(localMinute(at: moment, in: $0)) }.min() ?? 1
            return moment.advanced(bySeconds: Int64(spread % UInt64(rest)) * 60)
        }
        return nil
    }

    /// Monday is 0, Sunday 6.
    private static func weekday(of instant: Instant, in zone: TimeZone) -> Int {
        let local = instant.seconds + offsetSeconds(zone, at: instant)
        let days = (local - ((local % 86_400) + 86_400) % 86_400) / 86_400
        // 1970-01-01 was a Thursday.
        return Int(((days + 3) % 7 + 7) % 7)
    }

    /// Seconds east of Greenwich in the first known of `zones`; `nil` when none is.
    package static func offsetSeconds(at now: Instant, zones: [String?]) -> Int? {
        known(zones).first.map { Int(offsetSeconds($0, at: now)) }
    }

    private static func offsetSeconds(_ zone: TimeZone, at instant: Instant) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds))))
    }

    private static func localMinute(at instant: Instant, in zone: TimeZone) -> Int64 {
        let local = instant.seconds + offsetSeconds(zone, at: instant)
        let minute = (local % 86_400) / 60
        return minute < 0 ? minute + minutesPerDay : minute
    }

    /// The first moment after `now` at which the local clock reads `localMinute`, or has passed it in a gap.
    private static func nextMoment(localMinute: Int64, after now: Instant, in zone: TimeZone) -> Instant {
        let offsetNow = offsetSeconds(zone, at: now)
        let localNow = now.seconds + offsetNow
        let midnight = localNow - ((localNow % 86_400) + 86_400) % 86_400
        var wanted = midnight + localMinute * 60
        if wanted <= localNow { wanted += 86_400 }
        // The offset at the wanted moment may differ from today's. Try both; the earlier moment that
        // really reads the wanted time wins, and in a gap none does: then the gap's end is meant.
        let guess = Instant(seconds: wanted - offsetNow)
        let offsetThen = offsetSeconds(zone, at: guess)
        let other = Instant(seconds: wanted - offsetThen)
        let candidates = [guess, other].filter {
            $0 > now && $0.seconds + offsetSeconds(zone, at: $0) == wanted
        }
        if let exact = candidates.min() { return exact }
        return firstTransition(between: min(guess, other), and: max(guess, other), in: zone)
    }

    private static func firstTransition(
        between low: Instant, and high: Instant, in zone: TimeZone
    ) -> Instant {
        let before = Date(timeIntervalSince1970: Double(low.seconds) - 1)
        guard let transition = zone.nextDaylightSavingTimeTransition(after: before) else { return high }
        let moment = Instant(seconds: Int64(transition.timeIntervalSince1970))
        return moment <= high ? moment : high
    }
}
