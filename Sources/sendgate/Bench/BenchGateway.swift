import CanonicalJSON
import Crypto
import Foundation
import SealedFormat
import SealedPush
import UnixHTTPClient
import WireProtocol

/// A gateway of its own for a measurement: a child process in a folder of its own, with people in it.
final class BenchGateway {
    let folder: String
    private var process: Process?
    /// Where it is asked what it counts of itself.
    private(set) var meter: MeterClient?
    private var meterDescriptor: Int32 = -1

    /// The app every device of the measurement has installed.
    static let app = "no.getdrop.app"
    static let device = "phone"

    /// What its ``meter`` counts.
    let counted: ThreadCounters.Event

    init(folder: String, counting counted: ThreadCounters.Event) {
        self.folder = folder
        self.counted = counted
    }

    var socket: String { folder + "/gate/gate.sock" }
    var trail: String { folder + "/gate/trail" }
    private var onward: String { folder + "/gate/onward.ndjson" }

    static func user(_ number: Int) -> String { "u_\(number)" }

    // MARK: The process

    /// - Parameter policies: The folder of the bundle. The gateway has a copy of it in which nobody reaches the limit of a tier
    ///   or that over everything: a measurement sends one person more in a second than anybody gets in a day, and what is
    ///   above a limit is gathered and not forwarded. What was forwarded is read and counted as ever.
    func start(policies: String) async throws {
        let copy = folder + "/policies"
        try FileManager.default.copyItem(atPath: policies, toPath: copy)
        let limits = try String(contentsOfFile: copy + "/limits.yaml", encoding: .utf8)
        // What a category and a type of their own allow is below, and stays.
        let end = limits.firstRange(of: "\ncategories:")?.lowerBound ?? limits.endIndex
        let raised = limits[..<end].replacing(/\bcount: *[0-9]+/, with: "count: 1000000")
        try (raised + limits[end...]).write(
            toFile: copy + "/limits.yaml", atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [
            "serve", "--dev", folder + "/gate", "--policies", copy, "--log-level", "error",
            "--meter", counted.rawValue,
        ]
        let log = folder + "/gateway.log"
        let descriptor = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure("cannot write `\(log)`") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        process.standardOutput = handle
        process.standardError = handle
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { throw LoadConnection.Failure.system(errno) }
        meterDescriptor = ends[0]
        meter = MeterClient(line: MeterLine(ends[0]))
        process.standardInput = FileHandle(fileDescriptor: ends[1], closeOnDealloc: false)
        defer { close(ends[1]) }
        try process.run()
        self.process = process
        let deadline = Date().addingTimeInterval(30)
        while Date() < deadline, process.isRunning {
            if let connection = try? await UnixHTTPConnection.connect(.init(path: socket)) {
                await connection.close()
                return
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        let words = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        throw CommandFailure("the gateway did not come up", hint: String(words.suffix(800)))
    }

    /// Lets it finish and publish what it has; after ten seconds without that, ends it.
    func stop() {
        guard let process else { return }
        self.process = nil
        process.terminate()
        let deadline = Date().addingTimeInterval(20)
        while process.isRunning, Date() < deadline { usleep(20_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        meter = nil
        close(meterDescriptor)
    }

    // MARK: People

    /// Registers `count` people with one device each, as fast as the gateway takes them.
    func register(_ count: Int, seconds: Double) throws -> Load.Outcome {
        let person = Array(
            #"{"region":"DE","region_source":"kyc","locale":"en","age":"adult","time_zone":"Europe/Berlin","privacy":"full"}"#
                .utf8)
        var progress = Progress("registering \(count) recipients")
        defer { progress.end() }
        let load = Load(
            socket: socket, connections: 8, isStream: false, arrival: .closed(depth: 32), seconds: seconds,
            countMax: count)
        let people = try load.run { number in
            LoadRequest(head: LoadRequest.head("PUT", "/v1/recipients/\(Self.user(number))"), body: person)
        } watch: {
            progress.show(UInt64($0), of: UInt64(2 * count))
        }
        let devices = try load.run { number in
            let body =
                #"{"platform":"ios","app":"\#(Self.app)","token":"bench-token-of-\#(number)","region":"DE","time_zone":"Europe/Berlin","os_permission":"granted","critical_alerts":false}"#
            return LoadRequest(
                head: LoadRequest.head("PUT", "/v1/recipients/\(Self.user(number))/devices/\(Self.device)"),
                body: Array(body.utf8))
        } watch: {
            progress.show(UInt64(count + $0), of: UInt64(2 * count))
        }
        for outcome in [people, devices] {
            if let (status, refused) = outcome.countByStatus.first(where: { $0.key != 200 && $0.key != 201 })
            {
                throw CommandFailure("\(refused) registrations were answered with \(status)")
            }
            guard outcome.count == count else {
                throw CommandFailure(
                    "only \(outcome.count) of \(count) recipients were registered in \(Int(seconds)) s",
                    hint: "ask for fewer with --recipients, or give more time with --setup-seconds")
            }
        }
        return devices
    }

    /// Gives the devices of the first `count` people a key each and proves possession of it.
    func enrolKeys(_ count: Int) async throws {
        let origin = try await originKey()
        var progress = Progress("enrolling \(count) device keys")
        defer { progress.end() }
        let connection = try await UnixHTTPConnection.connect(.init(path: socket))
        defer { Task { await connection.close() } }
        for number in 0..<count {
            let key = P256.KeyAgreement.PrivateKey()
            let path = "/v1/recipients/\(Self.user(number))/devices/\(Self.device)/keys"
            let added = try await ask(
                connection, path,
                [
                    "suite": "P256_SHA256_AES256GCM",
                    "public_key": .string(Base64URL.encode(key.publicKey.x963Representation)),
                ])
            guard let keyID = added["key_id"]?.stringValue, let challenge = added["challenge"]?.objectValue
            else { throw CommandFailure("the gateway gave no challenge for a new device key") }
            let opener = try SealedPushOpener(
                app: Self.app, device: Self.device, keys: [DeviceKey(keyID: keyID, privateKey: key)],
                origins: [origin], seen: InMemorySeenMessages())
            let proof = try opener.proof(
                forChallenge: Self.envelopeText(challenge), now: UInt64(Date().timeIntervalSince1970))
            _ = try await ask(connection, "\(path)/\(keyID)/confirm", ["proof": .string(proof)])
            progress.show(UInt64(number + 1), of: UInt64(count))
        }
    }

    private func originKey() async throws -> OriginKey {
        let keys = try await get("/v1/keys")
        guard case .object(let object) = try CanonicalJSON.read(keys),
            let text = object["keys"]?.arrayValue?.first(where: { $0["purpose"] == "origin" })?["public_key"]?
                .stringValue, let bytes = Base64URL.decode(text)
        else { throw CommandFailure("the gateway shows no origin key") }
        let id = SHA256.hash(data: bytes).prefix(8).map { String(format: "%02x", $0) }.joined()
        return try OriginKey(keyID: id, publicKey: bytes)
    }

    /// The envelope's one spelling; an answer carries it as an object.
    private static func envelopeText(_ object: JSONObject) -> String {
        func text(_ key: String) -> String { object[key]?.stringValue ?? "" }
        return
            #"{"v":1,"s":"\#(text("s"))","kid":"\#(text("kid"))","mid":"\#(text("mid"))","exp":\#(object["exp"]?.integerValue ?? 0),"ct":"\#(text("ct"))"}"#
    }

    // MARK: Asking

    private func ask(_ connection: UnixHTTPConnection, _ target: String, _ body: JSONObject) async throws
        -> JSONObject
    {
        let reply = try await connection.request(
            "POST", target, headers: [("Content-Type", "application/json")], body: CanonicalJSON.write(body),
            timeoutMilliseconds: 30_000)
        guard reply.status < 300, case .object(let object)? = try? CanonicalJSON.read(reply.body) else {
            throw CommandFailure(
                "the gateway answered \(reply.status) to POST \(target): \(String(decoding: reply.body, as: UTF8.self))"
            )
        }
        return object
    }

    private func get(_ target: String) async throws -> [UInt8] {
        let connection = try await UnixHTTPConnection.connect(.init(path: socket))
        defer { Task { await connection.close() } }
        return try await connection.request("GET", target, timeoutMilliseconds: 30_000).body
    }

    /// What the gateway counts, by name.
    func metrics() async throws -> [String: Double] {
        Status.samples(String(decoding: try await get("/metrics"), as: UTF8.self)).compactMapValues(
            Double.init)
    }

    /// Waits until everything promised was handed over, so that one measurement does not pay for another.
    ///
    /// - Returns: How many seconds that took, to some milliseconds.
    @discardableResult
    func drained(within seconds: Double) async throws -> Double {
        let begin = Load.now()
        while Double(Load.now() - begin) < seconds * 1e9 {
            if try await metrics()["sendgate_outbox_rows"] == 0 { return Double(Load.now() - begin) / 1e9 }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw CommandFailure("what was sent was not handed over within \(Int(seconds)) s")
    }

    /// Sends once more, and gives what it left behind: the index of its entry, and its message as handed over.
    func sample(_ request: LoadRequest) async throws -> (entry: UInt64, send: String) {
        let connection = try await UnixHTTPConnection.connect(.init(path: socket))
        defer { Task { await connection.close() } }
        let reply = try await connection.request(
            "POST", "/v1/sends", headers: [("Content-Type", "application/json")], body: request.body,
            timeoutMilliseconds: 30_000)
        guard case .object(let object)? = try? CanonicalJSON.read(reply.body),
            let index = object["trail"]?.objectValue?["index"]?.integerValue,
            let send = object["send_id"]?.stringValue
        else {
            throw CommandFailure(
                "a send was answered with \(reply.status): \(String(decoding: reply.body, as: UTF8.self))")
        }
        return (UInt64(index), send)
    }

    /// The message of a send, as the next hop was given it; `nil` when none went out.
    func handedOver(_ send: String) throws -> JSONObject? {
        guard let file = FileHandle(forReadingAtPath: onward) else { return nil }
        defer { try? file.close() }
        // Asked for right after it was sent: it is among the newest.
        let size = try file.seekToEnd()
        try file.seek(toOffset: size > 1 << 20 ? size - 1 << 20 : 0)
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        guard let line = text.split(separator: "\n").last(where: { $0.contains(send) }),
            case .object(let object)? = try? CanonicalJSON.read(Array(line.utf8))
        else { return nil }
        return object
    }

    // MARK: What it costs

    /// Processor seconds used so far, by thread name; threads of a pool together.
    func processorSeconds() -> [String: Double] {
        guard let process else { return [:] }
        let tasks = "/proc/\(process.processIdentifier)/task"
        let tick = Double(sysconf(Int32(_SC_CLK_TCK)))
        var seconds: [String: Double] = [:]
        for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            guard let stat = try? String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8),
                let start = stat.firstIndex(of: "("), let end = stat.lastIndex(of: ")")
            else { continue }
            let fields = stat[end...].split(separator: " ")
            // proc(5): utime and stime are fields 14 and 15, the eleventh and twelfth behind the name.
            guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else {
                continue
            }
            let stage = GatewayStage.named(String(stat[stat.index(after: start)..<end]))
            seconds[stage, default: 0] += (user + system) / tick
        }
        return seconds
    }

    /// The most memory it ever held, in MiB.
    func peakMemoryMebibytes() -> Int? {
        guard let process,
            let status = try? String(
                contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let kilobytes = Int(line.filter(\.isNumber))
        else { return nil }
        return kilobytes / 1024
    }
}
