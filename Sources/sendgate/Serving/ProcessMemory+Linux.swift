import Foundation
import OpenSSLCrypto

/// Keeps what is in memory, keys and what people are told, out of files that outlive the process.
enum ProcessMemory {
    /// No core dump, no attaching by another process of the same user, no memory in a backtrace. For the whole process;
    /// call it first thing.
    static func keepOutOfFiles() {
        // A process that asks for less is never refused (prctl(2), setrlimit(2)), and either call is enough against a dump.
        _ = SecretMemory.forbidDumps()
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        if !backtraceIsHarmless(ProcessInfo.processInfo.environment["SWIFT_BACKTRACE"] ?? "") {
            for number in crashSignals { signal(number, SIG_DFL) }
        }
    }

    /// What the Swift runtime catches to run its backtracer.
    private static let crashSignals = [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGQUIT]

    /// Whether the Swift runtime's backtracer, as `SWIFT_BACKTRACE` sets it, shows code and no memory: no registers,
    /// which it prints with the bytes they point to, and no prompt, where memory can be asked for.
    static func backtraceIsHarmless(_ settings: String) -> Bool {
        var chosen: [Substring: Substring] = [:]
        for setting in settings.split(separator: ",") {
            let parts = setting.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { return false }
            chosen[parts[0]] = parts[1]
        }
        if let isEnabled = chosen["enable"], ["no", "off", "false"].contains(isEnabled) { return true }
        return chosen["registers"] == "none" && chosen["preset"] == nil
            && ["no", "off", "false"].contains(chosen["interactive"] ?? "")
    }
}
