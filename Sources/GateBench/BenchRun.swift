import CanonicalJSON
import CommandTerminal
import Foundation
package import GateVocabulary
import ThreadMetering
import TrailDirectory

/// One run of `sendgate bench`: what this machine does, and how far that is from what it could do.
package struct BenchRun {
    private let recipientCount: Int
    private let keyCount: Int
    private let connections: Int
    private let rate: Double?
    private let measuredSeconds: Double
    private let setupSeconds: Double
    private let refusedPercent: Int
    private let countedSends: Int
    private let countsAllocations: Bool

    /// - Parameters:
    ///   - keyCount: Devices with a key, at most as many as recipients.
    ///   - connections: Requests under way in the closed loop.
    ///   - rate: Sends a second in the open loop; half of what the closed loop reached when `nil`.
    ///   - seconds: How long each measurement takes.
    ///   - setupSeconds: How long registering may take.
    ///   - countedSends: Sends of each kind over which instructions and allocations are counted.
    package init(
        recipientCount: Int, keyCount: Int, connections: Int, rate: Double?, seconds: Double,
        setupSeconds: Double, refusedPercent: Int, countedSends: Int, countsAllocations: Bool
    ) {
        self.recipientCount = recipientCount
        self.keyCount = keyCount
        self.connections = connections
        self.rate = rate
        measuredSeconds = seconds
        self.setupSeconds = setupSeconds
        self.refusedPercent = refusedPercent
        self.countedSends = countedSends
        self.countsAllocations = countsAllocations
    }

    /// - Parameters:
    ///   - policies: The folder of the bundle.
    ///   - directory: Where the gateway's folder is made, which is gone afterwards.
    package func run(policies: String, directory: String) async throws -> BenchReport {
        try await withGateway(policies: policies, directory: directory) {
            try await measure($0, policies: policies)
        }
    }

    /// Measures sends while keys are rotated, and nothing else.
    ///
    /// - Parameter purposes: Of ``RotationRun/purposes``, in this order.
    package func rotate(
        _ purposes: [KeyPurpose], policies: String, directory: String
    ) async throws -> RotationReport {
        try await withGateway(policies: policies, directory: directory) { gateway in
            _ = try gateway.register(recipientCount, seconds: setupSeconds)
            let enrolled = try await gateway.enrolKeys(keyCount)
            return try await RotationRun(
                gateway: gateway, phones: enrolled.phones, recipientCount: recipientCount,
                connections: connections, rate: rate, seconds: measuredSeconds,
                refusedPercent: refusedPercent
            ).run(purposes)
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
        let gateway = BenchGateway(folder: folder, counting: .instructions)
        defer {
            gateway.stop()
            try? FileManager.default.removeItem(atPath: folder)
        }
        try await gateway.start(policies: policies)
        return try await body(gateway)
    }

    // MARK: Measuring

    private func measure(_ gateway: BenchGateway, policies: String) async throws -> BenchReport {
        let registered = try gateway.register(recipientCount, seconds: setupSeconds)
        let enrolled = try await gateway.enrolKeys(keyCount)
        var rows: [BenchSends.Body: [BenchRow]] = [:]
        var samples: [BenchSends.Body: (entry: UInt64, message: JSONObject)] = [:]
        var costs = SendCosts()
        for body in [BenchSends.Body.open, .sealed] {
            let people = body == .sealed ? keyCount : recipientCount
            var sample = BenchSends(body, people: people, refusedPercent: 0, label: "sample-\(body)")
            let (entry, send) = try await gateway.sample(sample.request(0))
            try await gateway.drained(within: 10)
            guard let message = try gateway.handedOver(send) else {
                throw CommandFailure(
                    "a send of the kind `\(body)` did not go out, so there is nothing to compare with",
                    hint: "measure with the repository's own bundle: --policies Policies")
            }
            samples[body] = (entry, message)
            rows[body] = try await measure(gateway, body: body, people: people)
        }
        try await count(at: gateway, people: recipientCount, keys: keyCount, into: &costs)
        let peak = gateway.peakMemoryMebibytes()
        // Stopped, it has published everything, and the floor has the machine to itself.
        gateway.stop()
        if countsAllocations {
            try await countAllocations(in: gateway.folder, policies: policies, into: &costs)
        } else {
            costs.refused[.allocations] = .init("ask for them with --allocations")
        }
        let trail = try TrailDirectoryReader(openingAt: gateway.trail)
        var all: [BenchRow] = []
        for body in [BenchSends.Body.open, .sealed] {
            guard let sample = samples[body], let entry = try trail.entry(sample.entry),
                let delivery = try Self.deliveryEntry(after: sample.entry, of: sample.message, in: trail)
            else { throw CommandFailure("the gateway did not publish its trail") }
            let written = try SendRows(entry: entry, deliveryEntry: delivery, message: sample.message)
            for var row in rows[body] ?? [] {
                let folder = gateway.folder + "/floor"
                let specimen = try FloorSpecimen(
                    of: written, batch: max(1, Int(row.batch.rounded())), refusedPercent: refusedPercent,
                    in: folder)
                row.floorPerSecond = try BenchFloor(specimen, in: folder, people: recipientCount)
                    .sendsPerSecond(seconds: min(measuredSeconds, 3))
                all.append(row)
            }
        }
        return BenchReport(
            recipients: recipientCount, keys: keyCount,
            registrationsPerSecond: registered.perSecond,
            keyRegistrationsPerSecond: enrolled.perSecond, refusedPercent: refusedPercent, rows: all,
            costs: costs,
            sealing: try SealingFloor.measure(seconds: min(measuredSeconds, 2)), peakMemoryMebibytes: peak)
    }

    /// The entry of a hand-over follows that of the send, with few others in between.
    private static func deliveryEntry(
        after index: UInt64, of message: JSONObject, in trail: TrailDirectoryReader
    ) throws -> [UInt8]? {
        let id = message["message_id"]?.stringValue
        for number in index + 1..<index + 16 {
            guard let entry = try trail.entry(number) else { return nil }
            let object = try CanonicalJSON.read(entry)
            if object["kind"] == "delivery", object["message_id"]?.stringValue == id { return entry }
        }
        return nil
    }

    /// Probes make allocating slower, so it is counted in another gateway than the one that is timed.
    private func countAllocations(in folder: String, policies: String, into costs: inout SendCosts)
        async throws
    {
        let folder = folder + "/counted"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let gateway = BenchGateway(folder: folder, counting: .allocations)
        defer { gateway.stop() }
        try await gateway.start(policies: policies)
        let people = min(recipientCount, 500)
        _ = try gateway.register(people, seconds: setupSeconds)
        try await gateway.enrolKeys(min(keyCount, 32))
        try await count(at: gateway, people: people, keys: min(keyCount, 32), into: &costs)
    }

    /// Sends what is forwarded and what is refused, and has the gateway count what it does for each.
    private func count(
        at gateway: BenchGateway, people: Int, keys: Int, into costs: inout SendCosts
    ) async throws {
        guard let meter = gateway.meter else { return }
        let sendCount = countedSends
        let connections = connections
        let kinds: [(what: String, body: BenchSends.Body, people: Int, refusedPercent: Int)] = [
            ("open", .open, people, 0), ("sealed", .sealed, keys, 0), ("refused", .open, people, 100),
        ]
        for kind in kinds {
            var sends = BenchSends(
                kind.body, people: kind.people, refusedPercent: kind.refusedPercent,
                label: "count \(kind.what)")
            let load = Load(
                socket: gateway.socket, connections: connections, isStream: false, arrival: .closed(depth: 1),
                seconds: 60, countMax: sendCount)
            let counts = try await meter.count {
                let measured = try load.run { sends.request($0) }
                guard measured.count == sendCount else {
                    throw CommandFailure(
                        "only \(measured.count) of \(sendCount) sends were answered in a minute")
                }
                try await gateway.drained(within: 60)
            }
            switch counts {
            case .success(let counts): costs.add(counts, of: gateway.counted, kind.what, sendCount)
            case .failure(let refused):
                costs.refused[gateway.counted] = refused
                return
            }
        }
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
        var sends = BenchSends(body, people: people, refusedPercent: refusedPercent, label: what)
        let before = try await (gateway.metrics(), gateway.processorSeconds(), Self.ownSeconds())
        let measured = try load.run { sends.request($0) }
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
