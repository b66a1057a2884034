import ArgumentParser
import CommandTerminal
import Foundation
import GateBench
import GateVocabulary

/// `sendgate bench`: what this machine does.
struct Bench: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures sends on this machine.",
        usage: "sendgate bench [--quick] [--recipients N] [--connections N] [--rate N] [--seconds S] …",
        discussion: """
            Starts a gateway of its own in a temporary folder, registers recipients, and sends: as fast as it is \
            answered (closed loop) and at a fixed rate (open loop, latency from the intended start), in single \
            requests and as a live stream, in open and in sealed bodies. The load runs on the same machine, so the \
            rates are those of both together. Needs a release build to mean anything.
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

    @Option(
        help: ArgumentHelp(
            "Rotate keys while sends go on, and measure only that: origin, trail, link, root, data or all.",
            valueName: "purpose"))
    var rotate: String?

    @Option(
        help: ArgumentHelp(
            "Send for so long at half of what the closed loop reached, or at --rate, and look at memory, descriptors and disk; ends with 3 where one of them grows without end. 0.05 to 1,440.",
            valueName: "minutes"))
    var soak: Double?

    @Option(help: ArgumentHelp("The folder of the bundle.", valueName: "dir"))
    var policies: String?

    @Option(help: ArgumentHelp("Where the gateway's folder is made: the disk to measure.", valueName: "dir"))
    var directory: String?

    @OptionGroup var output: OutputOptions

    private var recipientCount: Int { recipients ?? (quick ? 500 : 10_000) }
    private var keyCount: Int { min(keys ?? (quick ? 32 : 256), recipientCount) }
    private var measuredSeconds: Double { seconds ?? (quick ? 1 : 5) }

    private var rotatedPurposes: [KeyPurpose] {
        RotationRun.purposes.filter { rotate == "all" || rotate == $0.rawValue }
    }

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
        if let rotate, rotatedPurposes.isEmpty {
            throw ValidationError(
                "`--rotate` is `\(rotate)`, and takes origin, trail, link, root, data or all")
        }
        if let rate { try check("--rate", rate, 1...1_000_000) }
        if let soak { try check("--soak", soak, 0.05...1_440) }
        if soak != nil, rotate != nil {
            throw ValidationError("`--soak` and `--rotate` are runs of their own")
        }
    }

    func run() async throws {
        #if DEBUG
            Terminal.warning("this is a debug build, several times slower than `swift build -c release`")
        #endif
        let bench = BenchRun(
            recipientCount: recipientCount, keyCount: keyCount, connections: connections, rate: rate,
            seconds: measuredSeconds, setupSeconds: setupSeconds, refusedPercent: refusedPercent)
        let policies = try policies ?? DevelopmentGateway.repositoryPolicies()
        let directory = directory ?? FileManager.default.temporaryDirectory.path
        if rotate != nil {
            let report = try await bench.rotate(rotatedPurposes, policies: policies, directory: directory)
            if output.json { Terminal.print(report.json) } else { report.show() }
            guard report.isFlawless else { throw ExitStatus.foundDifference }
            return
        }
        if let soak {
            let report = try await bench.soak(seconds: soak * 60, policies: policies, directory: directory)
            if output.json { Terminal.print(report.json) } else { report.show() }
            guard report.findings?.isEmpty ?? true else { throw ExitStatus.foundDifference }
            return
        }
        let report = try await bench.run(policies: policies, directory: directory)
        if output.json { Terminal.print(report.json) } else { report.show() }
    }

    /// As one would type it: no point behind a whole number.
    private static func spelled(_ value: Double) -> String {
        value == value.rounded() ? String(Int(value)) : String(value)
    }
}
