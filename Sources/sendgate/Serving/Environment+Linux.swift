import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto

/// The machine's wall clock.
struct SystemClock: GatewayPipeline.Clock {
    func now() -> Instant { Instant(milliseconds: Self.milliseconds(CLOCK_REALTIME)) }

    func reading() -> ClockReading {
        ClockReading(wall: now(), uptime: Self.milliseconds(CLOCK_BOOTTIME), boot: Self.boot)
    }

    private static let boot: String? = {
        let id = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return id?.trimmingCharacters(in: .whitespacesAndNewlines)
    }()

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else {
            preconditionFailure("this machine has no clock \(clock)")
        }
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// OpenSSL's random generator, seeded by the kernel.
struct SystemIdentifiers: IdentifierSource {
    func randomBytes16() throws -> (high: UInt64, low: UInt64) { try SecureRandom.number() }
    func randomBytes16(count: Int) throws -> [(high: UInt64, low: UInt64)] {
        try SecureRandom.numbers(count)
    }
}

/// Room on the disk a directory lies on.
enum DiskSpace {
    /// Bytes an unprivileged process may still write.
    static func freeByteCount(at path: String) throws -> Int64 {
        var space = statvfs()
        while statvfs(path, &space) != 0 {
            guard errno == EINTR else {
                throw StoreError.unavailable(
                    "the free space of `\(path)` is not known: \(String(cString: strerror(errno)))")
            }
        }
        let (bytes, overflow) = UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize))
        return overflow ? Int64.max : Int64(clamping: bytes)
    }
}
