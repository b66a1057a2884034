package import GateVocabulary

/// When a step happens, and what the engine knows of it.
package struct Moment {
    /// The time of the step's facts, or why there is none.
    let time: Result<Instant, EngineFailure>
    /// What the clocks showed.
    let reading: ClockReading
    /// Why a body that this step ordered could not be sealed or signed, when it ran before.
    let sealingFailure: String?

    package init(
        time: Result<Instant, EngineFailure>, reading: ClockReading, sealingFailure: String? = nil
    ) {
        self.time = time
        self.reading = reading
        self.sealingFailure = sealingFailure
    }

    /// The moment of a step that follows those of a batch.
    package init(
        _ reading: ClockReading, after memory: GateMemory, sealingFailure: String?, limits: EngineLimits
    ) {
        let time: Result<Instant, EngineFailure>
        do throws(EngineFailure) {
            time = .success(
                try ClockGuard(limits: limits).time(
                    reading, after: memory.newestEntryTime(), recordedAt: memory.newestEntryClock()))
        } catch {
            time = .failure(error)
        }
        self.init(time: time, reading: reading, sealingFailure: sealingFailure)
    }
}

/// What the clocks showed at one moment.
package struct ClockReading: Sendable, Hashable {
    package var wall: Instant
    /// Milliseconds since the machine booted, sleep included (`CLOCK_BOOTTIME`, clock_gettime(2)).
    package var uptime: Int64
    /// Which boot that was (`/proc/sys/kernel/random/boot_id`, random(4)); `nil` when it is not known.
    package var boot: String?

    package init(wall: Instant, uptime: Int64, boot: String?) {
        self.wall = wall
        self.uptime = uptime
        self.boot = boot
    }

    /// Time that has really passed since an earlier reading; `nil` when the two are not of one boot. Negative when one of
    /// the two cannot be true: within a boot `CLOCK_BOOTTIME` never goes back.
    package func milliseconds(since earlier: ClockReading) -> Int64? {
        guard let boot, boot == earlier.boot else { return nil }
        return uptime - earlier.uptime
    }
}
