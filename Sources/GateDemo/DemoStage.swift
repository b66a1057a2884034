import CanonicalJSON
import CommandTerminal
import Foundation
import UnixHTTPClient

/// The processes of the demo, each started from this very binary, and the folder they share.
final class DemoStage {
    let folder: String
    let policies: String
    /// `nil` where nothing is shown behind the gateway's socket.
    let tools: DemoTools?
    private var gateway: Process?
    private var delivery: Process?
    private var courier: Process?
    private(set) var provider: DemoProvider?

    init(folder: String, policies: String, tools: DemoTools?) throws {
        self.folder = folder
        self.policies = policies
        self.tools = tools
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    /// The gateway's own folder: state, trail, keys and sockets.
    var gate: String { folder + "/gate" }
    var trail: String { gate + "/trail" }
    /// What the delivery layer was given, one line each.
    private var received: String { folder + "/delivered.ndjson" }

    // MARK: Processes

    func startGateway() async throws {
        let hop = courier == nil ? "\(folder)/delivery.sock" : courierFolder + "/courier.sock"
        gateway = try await start(
            ["serve", "--dev", gate, "--policies", policies, "--hop", "unix:\(hop)"],
            log: "gateway.log", until: gate + "/gate.sock", isUp: Self.isReady)
    }

    func stopGateway() {
        gateway?.terminate()
        gateway?.waitUntilExit()
        gateway = nil
    }

    private var courierFolder: String { folder + "/courier" }

    /// Starts a stand-in for Apple, and the courier with a credential for it. The gateway's next start hands over to the courier.
    func startCourier(for app: String, _ tools: DemoTools) async throws -> DemoProvider {
        let provider = try DemoProvider(tools, folder: folder + "/apple")
        self.provider = provider
        try FileManager.default.createDirectory(
            atPath: courierFolder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let configuration = """
            apps:
              \(app):
                apns:
                  key_id: KEYIDKEYID
                  team_id: TEAMIDTEAM
                  key: \(provider.folder)/apns.p8
                  environment: production
                  topics: [\(app)]
                  trust: \(provider.folder)/ca.pem
                  endpoint: localhost:\(provider.port)

            """
        try configuration.write(
            toFile: courierFolder + "/courier.yaml", atomically: false, encoding: .utf8)
        courier = try await start(
            ["serve", "--dev", courierFolder], of: tools.courier, log: "courier.log",
            until: courierFolder + "/courier.sock", isUp: { _ in true })
        return provider
    }

    func startDelivery() async throws {
        delivery = try await start(
            ["demo", "delivery", "--socket", folder + "/delivery.sock", "--record", received],
            log: "delivery.log", until: folder + "/delivery.sock", isUp: { _ in true })
    }

    /// The power cut: no signal handler runs, nothing is flushed.
    func killGateway() {
        guard let gateway else { return }
        kill(gateway.processIdentifier, SIGKILL)
        gateway.waitUntilExit()
        self.gateway = nil
    }

    func stopDelivery() {
        delivery?.terminate()
        delivery?.waitUntilExit()
        delivery = nil
    }

    func strike() {
        for process in [gateway, delivery, courier].compactMap(\.self) where process.isRunning {
            process.terminate()
            process.waitUntilExit()
        }
        provider?.stop()
    }

    /// Runs one command of this binary to its end.
    func command(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = Self.executable
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }

    private static let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()

    /// A gateway answers from its first moment on, and 503 while it proves its bundle.
    private static func isReady(_ connection: UnixHTTPConnection) async -> Bool {
        (try? await connection.request("GET", "/readyz", timeoutMilliseconds: 10_000))?.status == 200
    }

    /// - Parameters:
    ///   - socket: The one that the process opens.
    ///   - isUp: Whether the process that accepted a connection does its work.
    private func start(
        _ arguments: [String], of executable: String? = nil, log: String, until socket: String,
        isUp: (UnixHTTPConnection) async -> Bool
    ) async throws -> Process {
        let process = Process()
        process.executableURL = executable.map { URL(filePath: $0) } ?? Self.executable
        process.arguments = arguments
        let path = folder + "/" + log
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure("cannot write `\(path)`") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        process.standardOutput = handle
        process.standardError = handle
        process.standardInput = FileHandle.nullDevice
        try process.run()
        // A socket that answers is the sign; the bound is for a process that never gets there.
        let deadline = Date().addingTimeInterval(60)
        while Date() < deadline {
            if let connection = try? await UnixHTTPConnection.connect(
                UnixHTTPClientConfiguration(path: socket))
            {
                let isUp = await isUp(connection)
                await connection.close()
                if isUp { return process }
            }
            guard process.isRunning else { break }
            try await Task.sleep(for: .milliseconds(20))
        }
        let words = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        throw CommandFailure(
            "`\(executable ?? "sendgate") \(arguments.joined(separator: " "))` did not come up",
            hint: String(words.suffix(800)))
    }

    // MARK: Talking

    struct Response: Sendable {
        var status: Int
        var json: JSONObject
        subscript(_ key: String) -> String { json[key]?.stringValue ?? "" }
    }

    func call(
        _ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil
    ) async throws -> Response {
        try await Self.call(socket: "\(gate)/\(caller).sock", method, target, body)
    }

    static func call(
        socket: String, _ method: String, _ target: String, _ body: JSONObject?
    ) async throws -> Response {
        let connection = try await UnixHTTPConnection.connect(UnixHTTPClientConfiguration(path: socket))
        defer { Task { await connection.close() } }
        let response = try await connection.request(
            method, target, headers: body == nil ? [] : [("content-type", "application/json")],
            body: body.map { CanonicalJSON.write(.object($0)) } ?? [], timeoutMilliseconds: 10_000)
        guard case .object(let json)? = try? CanonicalJSON.read(response.body) else {
            return Response(status: response.status, json: [:])
        }
        return Response(status: response.status, json: json)
    }

    /// Messages that the delivery layer was given; with the courier, those for which it has no provider.
    func deliveries() -> [JSONObject] {
        let path = courier == nil ? received : courierFolder + "/onward.ndjson"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            guard case .object(let object)? = try? CanonicalJSON.read(Array(line.utf8)) else { return nil }
            return object
        }
    }

    /// Waits until the delivery layer has a message of this send; `nil` when none comes within ten seconds.
    func delivery(of send: String) async throws -> JSONObject? {
        let deadline = Date().addingTimeInterval(10)
        while Date() < deadline {
            if let found = deliveries().last(where: { $0["send_id"]?.stringValue == send }) { return found }
            try await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }
}
