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
        /// Where the pages behind unsubscribe links are.
        var pages: String?
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

    /// - Parameter options: Of `peers/delivery_layer.py`, besides the faults.
    init(in scratch: Scratch, faultSeed: UInt64? = nil, _ options: [String] = []) {
        self.scratch = scratch
        socket = scratch.path("delivery.sock")
        record = scratch.path("delivered.ndjson")
        arguments = options + (faultSeed.map { ["--faults", "\($0)"] } ?? [])
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
    ///
    /// - Parameter options: Of `peers/flood.py`, besides the ones named here.
    init(
        _ gate: GateProcess, in scratch: Scratch, seed: UInt64, producers: Int = 6, _ options: [String] = []
    ) throws {
        journal = scratch.path("journal-\(seed).ndjson")
        child = try ChildProcess(
            [
                Machine.python, Machine.peer("flood.py"), gate.folder, journal, "--seed", "\(seed)",
                "--producers", "\(producers)",
            ] + options, errorPath: scratch.path("flood.stderr"))
        guard try child.readLine(within: 60) == "ready" else {
            throw HarnessError("no flood: \(child.errors)")
        }
    }

    /// Asks what is open until it is answered, and returns when nothing waits that was to go at once.
    func finish() throws {
        try child.write(line: "finish")
        guard try child.readLine(within: 120) == "done" else { throw HarnessError("the flood is not done") }
        let ending = try child.waitForEnd(within: 10)
        guard ending == .exit(0) else {
            throw HarnessError("the flood ended with \(ending): \(child.errors)")
        }
    }
}

extension GateProcess {
    /// Waits until nothing of these sends waits any more.
    func waitUntilGone(_ sends: [String], within seconds: Double = 60) throws {
        struct Status: Decodable { var waiting: [String] }
        let deadline = Deadline(seconds: seconds)
        for send in sends {
            while true {
                let reply = try connect().request("GET", "/v1/sends/\(send)")
                if try JSONDecoder().decode(Status.self, from: Data(reply.body)).waiting.isEmpty { break }
                guard !deadline.isPast else { throw HarnessError("the send \(send) still waits: \(reply)") }
            }
        }
    }
}
