import ArgumentParser
import CanonicalJSON
import Foundation
import TrailDirectory

/// `sendgate bench`: what this machine does, and how far that is from what it could do.
struct Bench: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures sends against the floor of the same machine.",
        usage: "sendgate bench [--quick] [--recipients N] [--connections N] [--rate N] [--seconds S] …",
        discussion: """
            Starts a gateway of its own in a temporary folder, registers recipients, and sends: as fast as it is \
            answered (closed loop) and at a fixed rate (open loop, latency from the intended start), in single \
            requests and as a live stream, in open and in sealed bodies. The load runs on the same machine, so the \
            rates are those of both together; the floor is measured in the same run. User instructions are counted \
            where the machine has a counter for them, and allocations with --allocations. Needs a \
            release build to mean anything.
            """)

    static let example = "sendgate bench --quick"

    @Flag(help: "A few seconds in all: 500 recipients, one second for each measurement.")
    var quick = false

    @Option(help: "People to register, 1 to 1,000,000.")
    var recipients: Int?

    @Option(help: "Requests under way in the closed loop, 1 to 1,024.")
    var connections = 64

    @Option(help: "Sends a second in the open loop; half of what the closed loop reached when absent.")
    var rate: Double?

    @Option(help: "How long each measurement takes, 0.1 to 600.")
    var seconds: Double?

    @Option(help: "How many of a hundred sends are refused.")
    var refusedPercent = 10

    @Option(help: "Devices with a key, which get the sealed sends, 1 to 10,000.")
    var keys: Int?

    @Option(help: "How long registering may take, in seconds.")
    var setupSeconds = 900.0

    @Flag(help: "Count allocations too, in a gateway of their own: takes root, and up to a minute.")
    var allocations = false

    @Option(help: ArgumentHelp("The folder of the bundle.", valueName: "dir"))
    var policies: String?

    @Option(help: ArgumentHelp("Where the gateway's folder is made: the disk to measure.", valueName: "dir"))
    var directory: String?

    @OptionGroup var output: OutputOptions

    private var recipientCount: Int { recipients ?? (quick ? 500 : 10_000) }
    private var keyCount: Int { min(keys ?? (quick ? 32 : 256), recipientCount) }
    private var measuredSeconds: Double { seconds ?? (quick ? 1 : 5) }

    func validate() throws {
        func check(_ flag: String, _ value: Double, _ range: ClosedRange<Double>) throws {
            guard !range.contains(value) else { return }
            let (least, most) = (Self.spelled(range.lowerBound), Self.spelled(range.upperBound))
            throw ValidationError("`\(flag)` takes \(least) to \(most)")
        }
        try check("--recipients", Double(recipientCount), 1...1_000_000)
        try check("--connections", Double(connections), 1...1_024)
        try check("--seconds", measuredSeconds, 0.1...600)
        try check("--refused-percent", Double(refusedPercent), 0...100)
        try check("--keys", Double(keyCount), 1...10_000)
        try check("--setup-seconds", setupSeconds, 1...7_200)
        if let rate { try check("--rate", rate, 1...1_000_000) }
    }

    func run() async throws {
        let policies = try self.policies ?? DevelopmentGateway.repositoryPolicies()
        let parent = directory.map { URL(filePath: $0) } ?? FileManager.default.temporaryDirectory
        let folder = parent.appending(
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
        #if DEBUG
            Terminal.warning("this is a debug build, several times slower than `swift build -c release`")
        #endif
        try await gateway.start(policies: policies)
        let report = try await measure(gateway, policies: policies)
        if output.json { Terminal.print(report.json) } else { report.show() }
    }

    // MARK: Measuring

    private func measure(_ gateway: BenchGateway, policies: String) async throws -> BenchReport {
        let registered = try gateway.register(recipientCount, seconds: setupSeconds)
        try await gateway.enrolKeys(keyCount)
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
        if allocations {
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
            registrationsPerSecond: registered.perSecond, refusedPercent: refusedPercent, rows: all,
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
        let sendCount = quick ? 500 : 5_000
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
                let outcome = try load.run { sends.request($0) }
                guard outcome.count == sendCount else {
                    throw CommandFailure(
                        "only \(outcome.count) of \(sendCount) sends were answered in a minute")
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
        let perSecond = rate ?? max(1, (single.outcome.perSecond / 2).rounded())
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
        let outcome = try load.run { sends.request($0) }
        let after = (gateway.processorSeconds(), Self.ownSeconds())
        let drainSeconds = try await gateway.drained(within: 60)
        let metrics = try await gateway.metrics()
        func counted(_ name: String) -> Double { metrics[name, default: 0] - before.0[name, default: 0] }
        var shares = after.0.map { stage, seconds in
            (stage: stage, percent: Self.percent(seconds - before.1[stage, default: 0], outcome.seconds))
        }
        shares.sort { ($0.percent, $1.stage) > ($1.percent, $0.stage) }
        shares.append((stage: "the load itself", percent: Self.percent(after.1 - before.2, outcome.seconds)))
        var isOpenLoop = false
        if case .open = load.arrival { isOpenLoop = true }
        return BenchRow(
            what: what, outcome: outcome, drainSeconds: drainSeconds,
            batch: Double(outcome.count) / max(1, counted("sendgate_batches_total")),
            shares: shares, isOpenLoop: isOpenLoop)
    }

    /// As one would type it: no point behind a whole number.
    private static func spelled(_ value: Double) -> String {
        value == value.rounded() ? String(Int(value)) : String(value)
    }

    private static func percent(_ part: Double, _ whole: Double) -> Int {
        whole > 0 ? Int((100 * part / whole).rounded()) : 0
    }

    /// Processor seconds of this process.
    private static func ownSeconds() -> Double {
        Double(clock()) / Double(CLOCKS_PER_SEC)
    }
}
