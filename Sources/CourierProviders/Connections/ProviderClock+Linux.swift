import CourierModel
import GateVocabulary
import Glibc

extension ProviderClock {
    /// Milliseconds since the machine booted, sleep included. No step of the wall clock moves it.
    package static func uptimeMilliseconds() -> Int64 { milliseconds(CLOCK_BOOTTIME) }

    /// The machine's own clocks.
    package static let system: ProviderClock = {
        let boot = bootID()
        return ProviderClock(
            now: { Instant(milliseconds: milliseconds(CLOCK_REALTIME)) },
            isOver: { $0.isOver(bootID: boot, uptimeMilliseconds: uptimeMilliseconds()) })
    }()

    /// Which boot this is (random(4)); empty where the kernel does not say, so that every deadline is over.
    package static func bootID() -> String {
        guard let file = fopen("/proc/sys/kernel/random/boot_id", "re") else { return "" }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, CInt(line.count), file) != nil else { return "" }
        return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init), as: UTF8.self)
    }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else {
            preconditionFailure("the kernel has no clock \(clock)")
        }
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
