import Foundation
import Glibc

/// The real binary, serving.
final class GateProcess {
    let folder: String
    private let arguments: [String]
    private let scratch: Scratch
    private var child: ChildProcess?
    private var launchCount = 0
    /// What it said when it was ready: policy, sockets, trail and trail key.
    private(set) var ready: ReadyLine?

    struct ReadyLine: Decodable {
        struct Socket: Decodable {
            var path: String?
            var caller: String?
        }
        var ready: Bool
        var policy: String
        var sockets: [Socket]
        var trail: String
        var trailKey: String
    }

    /// `sendgate serve --dev` in `scratch`.
    ///
    /// - Parameters:
    ///   - folder: Inside `scratch` when relative.
    ///   - arguments: Besides `--dev`, `--policies` and `--json`.
    init(
        in scratch: Scratch, folder: String = "gate", policies: String = Machine.policies,
        _ arguments: [String] = []
    ) {
        self.scratch = scratch
        self.folder = scratch.path(folder)
        self.arguments = ["serve", "--dev", self.folder, "--policies", policies, "--json"] + arguments
    }

    /// `sendgate serve --config`.
    init(in scratch: Scratch, configuration: String) {
        self.scratch = scratch
        folder = scratch.folder
        arguments = ["serve", "--config", configuration, "--json"]
    }

    deinit { child?.kill() }

    var trail: String { ready?.trail ?? "\(folder)/trail" }
    /// What it has said since it was last started.
    var errors: String { child?.errors ?? "" }
    var processID: pid_t { child?.id ?? -1 }
    var isRunning: Bool { child?.isRunning ?? false }

    func socket(of caller: String? = nil) -> String { "\(folder)/\(caller ?? "gate").sock" }

    /// Starts it and returns when it listens.
    ///
    /// - Parameter wrapper: Runs the binary: its path and arguments are appended.
    func start(
        wrapper: [String] = [], environment: [String: String] = [:], descriptorCountMax: Int? = nil
    ) throws {
        try launch(wrapper: wrapper, environment: environment, descriptorCountMax: descriptorCountMax)
        try waitUntilReady()
    }

    /// Starts what cannot start, and waits for its end.
    func startExpectingEnd(wrapper: [String] = []) throws -> ChildProcess.Ending {
        try launch(wrapper: wrapper)
        return try waitForEnd()
    }

    /// Starts it and does not wait.
    func launch(
        wrapper: [String] = [], environment: [String: String] = [:], descriptorCountMax: Int? = nil
    ) throws {
        precondition(child == nil || child?.isRunning == false, "the gateway runs already")
        launchCount += 1
        child = try ChildProcess(
            wrapper + [Machine.sendgate] + arguments, environment: environment,
            errorPath: scratch.path("gate.stderr.\(launchCount)"), descriptorCountMax: descriptorCountMax)
    }

    func waitUntilReady(within seconds: Double = 60) throws {
        guard let child else { throw HarnessError("the gateway was not started") }
        let line = try child.readLine(within: seconds)
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let ready = try decoder.decode(ReadyLine.self, from: Data(line.utf8))
        guard ready.ready else { throw HarnessError("not ready: \(line)") }
        self.ready = ready
    }

    func signal(_ number: Int32) { child?.signal(number) }

    /// `kill -9`.
    func kill() { child?.kill() }

    /// Waits for its own end.
    func waitForEnd(within seconds: Double = 60) throws -> ChildProcess.Ending {
        guard let child else { throw HarnessError("the gateway was not started") }
        return try child.waitForEnd(within: seconds)
    }

    /// SIGTERM, as a service manager sends it.
    @discardableResult
    func stop() throws -> ChildProcess.Ending {
        signal(SIGTERM)
        return try waitForEnd()
    }

    func connect(as caller: String? = nil) throws -> RawConnection { try RawConnection(socket(of: caller)) }

    /// A copy of the trail, as an auditor would take it away.
    func copyOfTrail(_ name: String) throws -> String {
        let copy = scratch.path(name)
        try FileManager.default.copyItem(atPath: trail, toPath: copy)
        return copy
    }
}

/// The delivery layer of `peers/delivery_layer.py`, which can be taken down and brought up.
final class DeliveryLayer {
    let socket: String
    let record: String
    private let scratch: Scratch
    private let arguments: [String]
    private var child: ChildProcess?

    init(in scratch: Scratch, faultSeed: UInt64? = nil) {
        self.scratch = scratch
        socket = scratch.path("delivery.sock")
        record = scratch.path("delivered.ndjson")
        arguments = faultSeed.map { ["--faults", "\($0)"] } ?? []
    }

    /// What `serve --hop` takes.
    var hop: [String] { ["--hop", "unix:\(socket)"] }

    func up() throws {
        let child = try ChildProcess(
            [Machine.python, Machine.peer("delivery_layer.py"), socket, record] + arguments,
            errorPath: scratch.path("delivery.stderr"))
        _ = try child.readLine(within: 30)
        self.child = child
    }

    func down() {
        child?.kill()
        child = nil
    }

    /// Waits until so many different messages were accepted.
    func waitForMessages(_ count: Int, within seconds: Int = 60) throws {
        let reply = try RawConnection(socket, timeoutSeconds: seconds + 10)
            .request("GET", "/accepted?messages=\(count)&within=\(seconds)")
        guard reply.status == 200 else {
            throw HarnessError("\(reply.text) of \(count) messages arrived within \(seconds) s")
        }
    }
}

/// Producers of `peers/flood.py` that ask until they are answered.
final class Flood {
    let journal: String
    private let child: ChildProcess

    /// Returns when people are registered and the asking has begun.
    init(_ gate: GateProcess, in scratch: Scratch, seed: UInt64, producers: Int = 6) throws {
        journal = scratch.path("journal-\(seed).ndjson")
        child = try ChildProcess(
            [
                Machine.python, Machine.peer("flood.py"), gate.folder, journal, "--seed", "\(seed)",
                "--producers",
                "\(producers)",
            ], errorPath: scratch.path("flood.stderr"))
        guard try child.readLine(within: 60) == "ready" else {
            throw HarnessError("no flood: \(child.errors)")
        }
    }

    /// Asks what is open until it is answered.
    ///
    /// - Returns: How many messages the answers promised.
    func finish() throws -> Int {
        try child.write(line: "finish")
        guard let promised = Int(try child.readLine(within: 60)) else { throw HarnessError("no count") }
        let ending = try child.waitForEnd(within: 10)
        guard ending == .exit(0) else {
            throw HarnessError("the flood ended with \(ending): \(child.errors)")
        }
        return promised
    }
}
