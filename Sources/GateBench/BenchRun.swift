import CommandTerminal
import Foundation
package import GateVocabulary

/// One run of `sendgate bench`: what this machine does.
package struct BenchRun {
    private let recipientCount: Int
    private let keyCount: Int
    private let connections: Int
    private let rate: Double?
    private let measuredSeconds: Double
    private let setupSeconds: Double
    private let refusedPercent: Int

    /// - Parameters:
    ///   - keyCount: Devices with a key, at most as many as recipients.
    ///   - connections: Requests under way in the closed loop.
    ///   - rate: Sends a second in the open loop; half of what the closed loop reached when `nil`.
    ///   - seconds: How long each measurement takes.
    ///   - setupSeconds: How long registering may take.
    package init(
        recipientCount: Int, keyCount: Int, connections: Int, rate: Double?, seconds: Double,
        setupSeconds: Double, refusedPercent: Int
    ) {
        self.recipientCount = recipientCount
        self.keyCount = keyCount
        self.connections = connections
        self.rate = rate
        measuredSeconds = seconds
        self.setupSeconds = setupSeconds
        self.refusedPercent = refusedPercent
    }

    /// - Parameters:
    ///   - policies: The folder of the bundle.
    ///   - directory: Where the gateway's folder is made, which is gone afterwards.
    package func run(policies: String, directory: String) async throws -> BenchReport {
        try await withGateway(policies: policies, directory: directory) {
            try await measure($0)
        }
    }

    /// Measures sends while keys are rotated, and nothing else.
    ///
    /// - Parameter purposes: Of ``RotationRun/purposes``, in this order.
    package func rotate(
        _ purposes: [KeyPurpose], policies: String, directory: String
    ) async throws -> RotationReport {
        try await withGateway(policies: policies, directory: directory) { gateway in
            _ = try await gateway.register(recipientCount, seconds: setupSeconds)
            let enrolled = try await gateway.enrolKeys(keyCount)
            return try await RotationRun(
                gateway: gateway, phones: enrolled.phones, recipientCount: recipientCount,
                connections: connections, rate: rate, seconds: measuredSeconds,
                refusedPercent: refusedPercent
            ).run(purposes)
        }
    }

    /// Sends for so many seconds at one rate, and looks at what the gateway holds.
    package func soak(seconds: Double, policies: String, directory: String) async throws -> SoakReport {
        try await withGateway(policies: policies, directory: directory) { gateway in
            _ = try await gateway.register(recipientCount, seconds: setupSeconds)
            _ = try await gateway.enrolKeys(keyCount)
            return try await SoakRun(
                gateway: gateway, recipientCount: recipientCount, keyCount: keyCount,
                connections: connections,
                rate: rate, measuredSeconds: measuredSeconds, seconds: seconds, refusedPercent: refusedPercent
            ).run()
        }
    }

    private func withGateway<Report>(
        policies: String, directory: String, _ body: (BenchGateway) async throws -> Report
    ) async throws -> Report {
        let folder = URL(filePath: directory).appending(
            path: "sendgate-bench-\(ProcessInfo.processInfo.processIdentifier)"
        ).path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandFailure("cannot make `\(folder)`", hint: "name a folder of yours with --directory")
        }
        let gateway = BenchGateway(folder: folder)
        defer {
            gateway.stop()
            try? FileManager.default.removeItem(atPath: folder)
        }
        try await gateway.start(policies: policies)
        return try await body(gateway)
    }

    // MARK: Measuring

    private func measure(_ gateway: BenchGateway) async throws -> BenchReport {
        let registered = try await gateway.register(recipientCount, seconds: setupSeconds)
        let enrolled = try await gateway.enrolKeys(keyCount)
        let rows =
            try await measure(gateway, body: .open, people: recipientCount)
            + measure(gateway, body: .sealed, people: keyCount)
        return BenchReport(
            recipients: recipientCount, keys: keyCount,
            registrationsPerSecond: registered.perSecond,
            keyRegistrationsPerSecond: enrolled.perSecond, refusedPercent: refusedPercent, rows: rows,
            peakMemoryMebibytes: gateway.peakMemoryMebibytes())
    }

    private func measure(
        _ gateway: BenchGateway, body: BenchSends.Body, people: Int
    ) async throws -> [BenchRow] {
        let streams = min(4, connections)
        let single = try await measure(
            gateway, "\(body), single, \(connections) connections", body, people,
            Load(
                socket: gateway.socket, connections: connections, isStream: false, arrival: .closed(depth: 1),
                seconds: measuredSeconds))
        let streamed = try await measure(
            gateway, "\(body), stream, \(streams) of \(connections / streams) lines", body, people,
            Load(
                socket: gateway.socket, connections: streams, isStream: true,
                arrival: .closed(depth: connections / streams), seconds: measuredSeconds))
        let perSecond = rate ?? max(1, (single.measured.perSecond / 2).rounded())
        let paced = try await measure(
            gateway, "\(body), single, \(Int(perSecond))/s offered", body, people,
            Load(
                socket: gateway.socket, connections: connections, isStream: false,
                arrival: .open(perSecond: perSecond), seconds: measuredSeconds))
        return [single, streamed, paced]
    }

    private func measure(
        _ gateway: BenchGateway, _ what: String, _ body: BenchSends.Body, _ people: Int, _ load: Load
    ) async throws -> BenchRow {
        var progress = Progress(what)
        defer { progress.end() }
        progress.show(0, of: 1)
        // The label is the whole name: no id of one measurement is met again in another.
        let sends = BenchSends(body, people: people, refusedPercent: refusedPercent, label: what)
        let before = try await (gateway.metrics(), gateway.processorSeconds(), Self.ownSeconds())
        let measured = try await load.run { sends.request($0) }
        let after = (gateway.processorSeconds(), Self.ownSeconds())
        let drainSeconds = try await gateway.drained(within: 60)
        let metrics = try await gateway.metrics()
        func counted(_ name: String) -> Double { metrics[name, default: 0] - before.0[name, default: 0] }
        var shares = after.0.map { stage, seconds in
            (stage: stage, percent: Self.percent(seconds - before.1[stage, default: 0], measured.seconds))
        }
        shares.sort { ($0.percent, $1.stage) > ($1.percent, $0.stage) }
        shares.append((stage: "the load itself", percent: Self.percent(after.1 - before.2, measured.seconds)))
        var isOpenLoop = false
        if case .open = load.arrival { isOpenLoop = true }
        return BenchRow(
            what: what, measured: measured, drainSeconds: drainSeconds,
            batch: Double(measured.count) / max(1, counted("sendgate_batches_total")),
            shares: shares, isOpenLoop: isOpenLoop)
    }

    private static func percent(_ part: Double, _ whole: Double) -> Int {
        whole > 0 ? Int((100 * part / whole).rounded()) : 0
    }

    /// Processor seconds of this process.
    private static func ownSeconds() -> Double {
        Double(clock()) / Double(CLOCKS_PER_SEC)
    }
}
