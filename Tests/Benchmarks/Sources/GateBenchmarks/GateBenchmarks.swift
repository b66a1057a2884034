import Dispatch
import Foundation
import Synchronization

/// Runs everything and prints one line each: what, measured, floor, promise, verdict, separated by tabs.
///
///     swift run -c release GateBenchmarks POLICIES [PEOPLE]
///     swift run -c release GateBenchmarks POLICIES sends KIND COUNT [PEOPLE]
///     swift run -c release GateBenchmarks POLICIES drift COUNT
///     swift run -c release GateBenchmarks POLICIES floor SENDGATE [ARGUMENT …]
///
/// `PEOPLE` is how many are registered: the larger number, one million unless given, and with `sends` 1,000. Ends with 3 when a promise was missed.
/// `floor` runs SENDGATE, a release build, as `sendgate bench` with the arguments given: `make bench-floor`.
/// Not part of `swift test`: a machine that does other work, too, misses promises that hold.
@main
struct GateBenchmarks {
    /// Waits on a thread of its own rather than being `async`: an asynchronous `main` ends the first thread, which
    /// callgrind does not survive.
    static func main() throws {
        let ended = DispatchSemaphore(value: 0)
        let outcome = Mutex<Result<Void, any Error>>(.success(()))
        Task.detached {
            do { try await run() } catch { outcome.withLock { $0 = .failure(error) } }
            ended.signal()
        }
        ended.wait()
        try outcome.withLock { $0 }.get()
    }

    private static func run() async throws {
        let arguments = CommandLine.arguments
        if (5...6).contains(arguments.count), arguments[2] == "sends",
            let kind = Sends.Kind(rawValue: arguments[3]),
            let count = Int(arguments[4]), (1...1_000_000).contains(count),
            let peopleCount = arguments.count < 6 ? 1_000 : Int(arguments[5]),
            (1...1_000_000).contains(peopleCount)
        {
            return try await inFolder { folder in
                let sends = try Sends(policies: arguments[1], in: folder, peopleCount: peopleCount)
                try await sends.send(count, kind)
                sends.stop()
                // Never freed: which thread would free it, and all it keeps, is chance.
                _ = Unmanaged.passRetained(sends)
            }
        }
        if arguments.count == 4, arguments[2] == "drift", let count = Int(arguments[3]),
            (1_000...1_000_000).contains(count)
        {
            return try await inFolder { folder in
                let findings = try await Auditing.findings(
                    policies: arguments[1], in: folder, peopleCount: count)
                for finding in findings { finding.show() }
            }
        }
        if arguments.count >= 4, arguments[2] == "floor" {
            let isKept = try await inFolder { folder in
                let findings = try await Floor.findings(
                    policies: arguments[1], program: arguments[3], more: Array(arguments.dropFirst(4)),
                    in: folder)
                for finding in findings { finding.show() }
                return findings.allSatisfy { $0.isKept != false }
            }
            if !isKept { exit(3) }
            return
        }
        guard (2...3).contains(arguments.count),
            let many = arguments.count < 3 ? 1_000_000 : Int(arguments[2]),
            (10_000...10_000_000).contains(many)
        else {
            print("usage: GateBenchmarks POLICIES [PEOPLE], with 10000 to 10000000 people")
            print("       GateBenchmarks POLICIES sends open|refused|sealed COUNT [PEOPLE], 1000000 at most")
            print("       GateBenchmarks POLICIES drift COUNT, with 1000 to 1000000 people")
            print("       GateBenchmarks POLICIES floor SENDGATE [ARGUMENT …]")
            exit(64)
        }
        #if DEBUG
            FileHandle.standardError.write(Data("this is a debug build; add -c release\n".utf8))
        #endif
        let isKept = try await inFolder { folder in
            var isKept = true
            func show(_ findings: [Finding]) {
                for finding in findings {
                    finding.show()
                    if finding.isKept == false { isKept = false }
                }
            }
            try show(Decisions(policies: arguments[1]).findings())
            try show(BundleLoading.findings(of: arguments[1], in: folder))
            try show(Sealing().findings())
            try show([Verification.finding()])
            try await show(Sends.findings(policies: arguments[1], in: folder))
            try show(Counting.findings())
            try show([Lookups.finding(in: folder, people: (few: 10_000, many: many))])
            return isKept
        }
        if !isKept { exit(3) }
    }

    /// Runs `body` with a folder of its own.
    private static func inFolder<Result: Sendable>(
        _ body: @Sendable (_ folder: String) async throws -> Result
    ) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "sendgate-benchmarks-\(ProcessInfo.processInfo.processIdentifier)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try await body(folder)
    }
}
