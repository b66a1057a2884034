package import GateVocabulary

/// The one clock of the gateway. Layers below never ask for the time.
package protocol Clock: Sendable {
    /// Wall-clock time. May step; ``ClockGuard`` says which steps are followed.
    func now() -> Instant
    /// The wall clock beside one that does not step.
    func reading() -> ClockReading
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

/// Where new ids come from.
package protocol IdentifierDrawing {
    /// Sixteen bytes nobody can guess. Throws when the system's random source fails.
    func randomBytes16() throws -> (high: UInt64, low: UInt64)
}

/// The same for many threads.
package protocol IdentifierSource: IdentifierDrawing, Sendable {}

extension IdentifierDrawing {
    /// A version 4 UUID (RFC 9562 section 5.4).
    package func newSendID() throws -> SendID {
        let (high, low) = try versionFour()
        return SendID(high: high, low: low)
    }

    /// A version 4 UUID: APNs wants one as `apns-id`.
    package func newMessageID() throws -> MessageID {
        let (high, low) = try versionFour()
        return MessageID(high: high, low: low)
    }

    package func newKeyID() throws -> KeyID {
        let (high, low) = try randomBytes16()
        return KeyID(high: high, low: low)
    }

    package func newSubjectID() throws -> SubjectID {
        let (high, low) = try randomBytes16()
        return SubjectID(high: high, low: low)
    }

    private func versionFour() throws -> (UInt64, UInt64) {
        let (high, low) = try randomBytes16()
        return (high & ~0xF000 | 0x4000, low & ~(0xC000_0000_0000_0000) | 0x8000_0000_0000_0000)
    }
}
