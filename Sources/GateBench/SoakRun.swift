import CommandTerminal
import Foundation
import Histogram
import Synchronization

/// Sends to a gateway for a long time at a rate that it keeps up with, and looks at what it holds.
struct SoakRun {
    let gateway: BenchGateway
    let recipientCount: Int
    let keyCount: Int
    let connections: Int
    let rate: Double?
    /// How long the rate is measured where none is asked for.
    let measuredSeconds: Double
    let seconds: Double
    let refusedPercent: Int

    /// One send in so many is sealed.
    private static let sealedShare = 4
    /// Looks at the gateway, besides those at begin and end.
    private static let lookCount = 120.0
    /// What was handed over is thrown away at each look that finds more: a hop keeps nothing, and its disk is not what is measured.
    private static let onwardByteCountMax: UInt64 = 64 << 20

    func run() async throws -> SoakReport {
        var perSecond = rate ?? 0
        if rate == nil {
            let closed = Load(
                socket: gateway.socket, connections: connections, isStream: false, arrival: .closed(depth: 1),
                seconds: measuredSeconds)
            let request = requests("soak at most")
            perSecond = max(1, (try await closed.run(request).perSecond / 2).rounded())
            try await gateway.drained(within: 60)
        }
        let load = Load(
            socket: gateway.socket, connections: connections, isStream: false,
            arrival: .open(perSecond: perSecond), seconds: seconds)
        let progress = Mutex(Progress("\(Int(perSecond)) sends a second for \(Int(seconds)) s"))
        defer { progress.withLock { $0.end() } }
        let total = UInt64(perSecond * seconds)
        let answered = Atomic(0)
        let begin = Load.now()
        let request = requests("soak")
        async let measured = load.run(request) { count in
            answered.store(count, ordering: .relaxed)
            progress.withLock { $0.show(min(UInt64(count), total), of: total) }
        }
        var samples = [try await look(begin, 0)]
        let pause = Duration.seconds(max(0.5, seconds / Self.lookCount))
        while Double(Load.now() - begin) / 1e9 + 0.5 < seconds {
            try await Task.sleep(for: pause)
            samples.append(try await look(begin, answered.load(ordering: .relaxed)))
        }
        let result = try await measured
        try await gateway.drained(within: 60)
        samples.append(try await look(begin, result.count))
        func percentile(_ percent: Double) -> Int { Int(result.latency.valueAtPercentile(percent)) }
        return SoakReport(
            offeredPerSecond: perSecond, countByStatus: result.countByStatus, p50Microseconds: percentile(50),
            p99Microseconds: percentile(99), p999Microseconds: percentile(99.9), samples: samples)
    }

    private func requests(_ label: String) -> @Sendable (Int) -> LoadRequest {
        let open = BenchSends(.open, people: recipientCount, refusedPercent: refusedPercent, label: label)
        let sealed = BenchSends(
            .sealed, people: keyCount, refusedPercent: refusedPercent, label: label)
        return { ($0.isMultiple(of: Self.sealedShare) ? sealed : open).request($0) }
    }

    private func look(_ begin: UInt64, _ sendCount: Int) async throws -> SoakReport.Sample {
        try gateway.discardHandedOver(above: Self.onwardByteCountMax)
        let held = try gateway.held()
        let waiting = try await gateway.metrics()["sendgate_outbox_rows"] ?? 0
        return SoakReport.Sample(
            seconds: Int((Load.now() - begin) / 1_000_000_000), sendCount: sendCount,
            memoryMebibytes: held.memoryMebibytes, descriptorCount: held.descriptorCount,
            threadCount: held.threadCount, databaseByteCount: held.databaseByteCount,
            logByteCount: held.logByteCount, trailByteCount: held.trailByteCount, waitingCount: Int(waiting))
    }
}

extension BenchGateway {
    /// What the process and its folders hold now.
    struct Held {
        var memoryMebibytes: Int
        var descriptorCount: Int
        var threadCount: Int
        var databaseByteCount: Int64
        var logByteCount: Int64
        var trailByteCount: Int64
    }

    func held() throws -> Held {
        let (status, descriptorCount) = try processState()
        func number(_ name: String) throws -> Int {
            guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") }),
                let number = Int(line.filter(\.isNumber))
            else { throw CommandFailure("the kernel does not tell `\(name)` of the gateway") }
            return number
        }
        let state = Self.byteCounts(in: folder + "/gate/state")
        return Held(
            memoryMebibytes: try number("VmRSS") / 1024, descriptorCount: descriptorCount,
            threadCount: try number("Threads"),
            databaseByteCount: state.filter { $0.name.hasSuffix(".db") }.reduce(0) { $0 + $1.byteCount },
            logByteCount: state.filter { $0.name.hasSuffix("-wal") }.reduce(0) { $0 + $1.byteCount },
            trailByteCount: Self.byteCounts(in: folder + "/gate/trail").reduce(0) { $0 + $1.byteCount })
    }

    /// A file that goes away meanwhile counts nothing.
    private static func byteCounts(in folder: String) -> [(name: String, byteCount: Int64)] {
        let files = FileManager.default.enumerator(
            at: URL(filePath: folder), includingPropertiesForKeys: [.fileSizeKey, .isRegularFileKey])
        return (files?.compactMap { $0 as? URL } ?? []).compactMap { file in
            guard let values = try? file.resourceValues(forKeys: [.fileSizeKey, .isRegularFileKey]),
                values.isRegularFile == true, let byteCount = values.fileSize
            else { return nil }
            return (file.lastPathComponent, Int64(byteCount))
        }
    }
}
