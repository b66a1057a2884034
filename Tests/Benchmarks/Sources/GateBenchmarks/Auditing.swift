import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline

/// The drift audit over many people, without the pauses that keep it under its limit: how many people it can look at in a
/// second, and the memory that it takes.
enum Auditing {
    /// As many people in a piece as the gateway takes at most.
    private static let pieceCount = 64

    /// - Parameter policies: The folder of the bundle.
    static func findings(policies: String, in folder: String, peopleCount: Int) async throws -> [Finding] {
        let sends = try Sends(policies: policies, in: folder, peopleCount: peopleCount, everyDenied: 10)
        defer { sends.stop() }
        var findings: [Finding] = []
        // The first look records what it finds, the second finds the same and records nothing.
        for look in ["first", "again"] {
            let resident = residentKilobytes("VmRSS:")
            let clock = ContinuousClock()
            var run: DriftRun?
            let taken = try await clock.measure { run = try await audit(sends.engine) }
            guard let run, run.examinedCount == Int64(peopleCount) else {
                preconditionFailure("the audit did not come by all people")
            }
            let seconds = Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18
            let grown = residentKilobytes("VmHWM:") - resident
            findings.append(
                Finding(
                    what: "a drift audit of \(peopleCount) people, \(look)",
                    measured: "\(Int(Double(peopleCount) / seconds)) people a second",
                    floor: "\(run.recordedCount) entries, \(grown / 1024) MiB more than before at the peak"))
        }
        return findings
    }

    private static func audit(_ engine: Engine) async throws -> DriftRun? {
        let failure = await withCheckedContinuation { continuation in
            engine.beginDriftRun(intervalMilliseconds: 0, mayBeFirst: true) {
                continuation.resume(returning: $0)
            }
        }
        if let failure { throw failure }
        while true {
            let run = try await withCheckedThrowingContinuation { continuation in
                engine.advanceDriftRun(personCountMax: pieceCount) { continuation.resume(with: $0) }
            }
            guard let run, run.isUnderWay else { return run }
        }
    }

    private static func residentKilobytes(_ name: String) -> Int {
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = lines.split(separator: "\n").first { $0.hasPrefix(name) }
        guard let line, let count = Int(line.filter(\.isNumber)) else {
            preconditionFailure("/proc/self/status has no \(name)")
        }
        return count
    }
}

/// What the counting for `/metrics` adds to a send.
enum Counting {
    static func findings() throws -> [Finding] {
        let counters = GatewayCounters()
        let decided: [Observation] = [
            .decided(
                reason: .allowed, type: TypeAxes(category: .transactional, tier: .important), channel: .push,
                caller: CallerName("payments"))
        ]
        let ended: [Observation] = [
            .ended(
                .handedOver, channel: .push, category: .transactional, tier: .important, waitedMilliseconds: 7
            )
        ]
        return try [("a decided send", decided), ("a hand-over", ended)].map { name, observations in
            let nanoseconds = try Stopwatch.nanoseconds { _ in counters.count(observations) }
            return Finding(
                what: "counting \(name)", measured: "\(Int(nanoseconds.rounded(.up))) ns", floor: "")
        }
    }
}
