package import CompliancePolicy
import Foundation
package import GateVocabulary

/// Wall-clock arithmetic in IANA zones. The only place that knows time-zone data; what it resolves is a
/// fact, recorded with the data's version, so that replay never needs a zone again.
package struct LocalTime: Sendable {
    /// Version of the zone data in use, e.g. `2025b`.
    package static var dataVersion: String { TimeZone.timeZoneDataVersion }

    /// Whether `name` is a zone this machine knows.
    package static func isKnown(zone name: String) -> Bool { TimeZone(identifier: name) != nil }

    private static let minutesPerDay: Int64 = 1440

    /// Resolves quiet hours at one moment.
    ///
    /// - Parameters:
    ///   - hours: `nil`, or equal start and end, means off.
    ///   - zones: The device's, then the account's; the first that is known counts.
    /// - Returns: When inside, the moment the local clock first reads the end time. Across a gap (spring)
    ///   that is the first moment after it; across an overlap (autumn), the first of the two.
    package static func quietHours(
        _ hours: QuietHours?, at now: Instant, zones: [String?]
    ) -> QuietHoursFact {
        guard let hours, hours.startMinute != hours.endMinute else { return .off }
        guard let zone = zones.lazy.compactMap({ $0.flatMap(TimeZone.init(identifier:)) }).first else {
            return .zoneMissing
        }
        let minute = localMinute(at: now, in: zone)
        let start = Int64(hours.startMinute)
        let end = Int64(hours.endMinute)
        let isInside = start < end ? minute >= start && minute < end : minute >= start || minute < end
        guard isInside else { return .outside }
        return .inside(endsAt: nextMoment(localMinute: end, after: now, in: zone))
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
        if case .inside(let end) = own { return .inside(endsAt: max(end, opening)) }
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
        // It opens at the moment the last zone does. Zones that never share an hour would close for good, so the
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
    ///   - zones: The destination's, then the account's; without a known zone there is no time of day to wait for.
    ///   - spread: Any number that is always the same for one recipient; it places them inside a window.
    package static func sendTime(
        _ time: SendTime, at now: Instant, zones: [String?], spread: UInt64
    ) -> Instant {
        if case .after(let minutes) = time { return now.advanced(bySeconds: Int64(minutes) * 60) }
        guard let zone = zones.lazy.compactMap({ $0.flatMap(TimeZone.init(identifier:)) }).first else {
            return now
        }
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

    /// Monday is 0, Sunday 6.
    private static func weekday(of instant: Instant, in zone: TimeZone) -> Int {
        let local = instant.seconds + offsetSeconds(zone, at: instant)
        let days = (local - ((local % 86_400) + 86_400) % 86_400) / 86_400
        // 1970-01-01 was a Thursday.
        return Int(((days + 3) % 7 + 7) % 7)
    }

    /// Seconds east of Greenwich in the first known of `zones`; `nil` when none is.
    package static func offsetSeconds(at now: Instant, zones: [String?]) -> Int? {
        zones.lazy.compactMap { $0.flatMap(TimeZone.init(identifier:)) }.first.map {
            Int(offsetSeconds($0, at: now))
        }
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
