package import GateVocabulary

/// Whether the wall clock can be believed, judged by the newest entry and by the time since boot.
///
/// Entry times never decrease, so when the clock has gone back nothing can be recorded until it has caught up. A
/// clock that jumps forward and is corrected later has the same effect once one entry has the later time; so a jump
/// is refused before that entry is written. `CLOCK_BOOTTIME` does not follow such steps, and goes on while the
/// machine sleeps.
package struct ClockGuard: Sendable {
    package var limits: EngineLimits

    package init(limits: EngineLimits) { self.limits = limits }

    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - newest: Time of the newest entry; `nil` for an empty trail, which believes any clock.
    ///   - last: The clocks when that entry was recorded; `nil` when that is not known.
    /// - Returns: The time to record, never before the newest entry.
    /// - Throws: ``EngineFailure/clockWentBack(milliseconds:)``, ``EngineFailure/clockJumped(milliseconds:)`` or
    ///   ``EngineFailure/uptimeWentBack(milliseconds:)``.
    package func time(
        _ reading: ClockReading, after newest: Instant?, recordedAt last: ClockReading?
    ) throws(EngineFailure) -> Instant {
        let wall = reading.wall.milliseconds
        guard Instant.storable.contains(wall) else {
            throw .unavailable("the clock shows no time between the years 1970 and 9999")
        }
        guard let newest else { return reading.wall }
        let back = newest.milliseconds - wall
        guard back <= limits.clockStepBackMillisecondsMax else { throw .clockWentBack(milliseconds: back) }
        if let last, let elapsed = reading.milliseconds(since: last) {
            guard elapsed >= 0 else { throw .uptimeWentBack(milliseconds: -elapsed) }
            let ahead = wall - last.wall.milliseconds - elapsed
            // A clock that is being slewed runs up to 500 ppm fast (adjtimex(2)); twice that is left to it.
            guard ahead <= limits.clockStepForwardMillisecondsMax + elapsed / 1000 else {
                throw .clockJumped(milliseconds: ahead)
            }
        } else {
            // Booted since, or another machine: only a silence that is too long says something.
            guard -back <= limits.clockGapMillisecondsMax else { throw .clockJumped(milliseconds: -back) }
        }
        return max(reading.wall, newest)
    }
}
