package import GateVocabulary

extension Instant {
    /// A moment a test wrote; a spelling that is wrong stops the test run where it stands.
    package static func utc(_ text: String) -> Instant {
        guard let instant = Instant(rfc3339: text) else { preconditionFailure("`\(text)` is no moment") }
        return instant
    }
}

extension RegionObservation {
    package static func of(
        _ code: String, _ source: RegionSource = .kyc, at: String = "2026-03-01T00:00:00Z"
    ) -> RegionObservation {
        guard let region = RegionCode(code) else { preconditionFailure("`\(code)` is no region") }
        return RegionObservation(code: region, source: source, observedAt: .utc(at))
    }
}

extension Facts {
    /// Everything is known and in favour: an adult in Norway with one device that can open a seal, who said
    /// yes to whatever is asked for.
    package static func ready(at now: Instant = .utc("2026-03-02T12:00:00Z")) -> Facts {
        var facts = Facts()
        facts.now = now
        facts.due = now
        facts.expiry = now.advanced(bySeconds: 86_400)
        facts.params = .valid
        facts.fallback = .notFallback
        facts.repetition = .first
        facts.recipient = .registered
        facts.age = .adult
        facts.accountRegion = .of("NO")
        facts.deviceRegions = [.of("NO", .device)]
        facts.privacy = .generic
        facts.consent = ConsentFact(state: .given, method: .inAppToggle)
        facts.purposeConsent = ConsentFact(state: .given, method: .inAppToggle)
        facts.ownRequest = ConsentFact(state: .neverAsked)
        facts.withheld = false
        facts.pushEnabled = true
        facts.accountPreference = .default
        facts.destinationPreference = .default
        facts.accountTypePreference = .default
        facts.destinationTypePreference = .default
        facts.quietHours = .off
        facts.destination = .active
        facts.platform = .ios
        facts.osPermission = .granted
        facts.criticalAlerts = true
        facts.deviceKey = .usable
        facts.sizes = PayloadSizes(sealed: 1_480, generic: 212, full: 402)
        facts.typeCount = 0
        facts.categoryCount = 0
        facts.everythingCount = 0
        return facts
    }

    package static var ready: Facts { ready() }

    /// The same with one thing different.
    package func with(_ change: (inout Facts) -> Void) -> Facts {
        var copy = self
        change(&copy)
        return copy
    }

    /// A recipient in Paris who wants quiet from 22:00 to 08:00 local time.
    package static func paris(at text: String) -> Facts {
        let now = Instant.utc(text)
        var facts = Facts.ready(at: now)
        facts.accountRegion = .of("FR")
        facts.deviceRegions = [.of("FR", .device, at: text)]
        facts.quietHours = .inside(from: 22 * 60, to: 8 * 60, at: now, offsetMinutes: parisOffset(now))
        return facts
    }

    /// Minutes Paris is ahead of UTC: 60, and 120 from the last Sunday of March to the last of October,
    /// changing at 01:00 UTC (Directive 2000/84/EC).
    private static func parisOffset(_ now: Instant) -> Int64 {
        let day = now.milliseconds / 86_400_000
        let year = Instant.civil(days: day).year
        func lastSunday(_ month: Int64) -> Int64 {
            let last = Instant.days(year: year, month: month, day: 31)
            // 1970-01-01 was a Thursday, so day 3 was the first Sunday.
            return last - (last - 3) % 7
        }
        let start = lastSunday(3) * 86_400_000 + 3_600_000
        let end = lastSunday(10) * 86_400_000 + 3_600_000
        return now.milliseconds >= start && now.milliseconds < end ? 120 : 60
    }
}

extension QuietHoursFact {
    /// What a window in minutes of the local day is at a moment. Daylight saving that changes inside the
    /// window is left to the code that owns time zones.
    package static func inside(
        from start: Int64, to end: Int64, at now: Instant, offsetMinutes: Int64
    ) -> QuietHoursFact {
        let local = now.milliseconds + offsetMinutes * 60_000
        let midnight = local - local % 86_400_000
        let minute = (local - midnight) / 60_000
        let isInside = start < end ? minute >= start && minute < end : minute >= start || minute < end
        guard isInside else { return .outside }
        let endsToday = minute < end
        let endLocal = midnight + end * 60_000 + (endsToday ? 0 : 86_400_000)
        return .inside(endsAt: Instant(milliseconds: endLocal - offsetMinutes * 60_000))
    }
}
