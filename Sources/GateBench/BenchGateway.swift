import CanonicalJSON
import CommandTerminal
import Crypto
import Foundation
import SealedFormat
import SealedPush
import Synchronization
import UnixHTTPClient
import WireProtocol

/// A gateway of its own for a measurement: a child process in a folder of its own, with people in it.
final class BenchGateway {
    let folder: String
    private var process: Process?

    /// The app every device of the measurement has installed.
    static let app = "no.getdrop.app"
    static let device = "phone"

    init(folder: String) { self.folder = folder }

    var socket: String { folder + "/gate/gate.sock" }
    private var onward: String { folder + "/gate/onward.ndjson" }
    /// Of the bundle's callers, each with that caller's grants.
    var callerSockets: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder + "/gate")
                .filter { $0.hasSuffix(".sock") && $0 != "gate.sock" }.sorted()
                .map { "\(folder)/gate/\($0)" }
        }
    }

    static func user(_ number: Int) -> String { "u_\(number)" }

    // MARK: The process

    /// - Parameter policies: The folder of the bundle. The gateway has a copy of it in which no person reaches the limit of a
    ///   tier or that over everything: a measurement sends one person more in a second than a person gets in a day, and what is
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
        ]
        let log = folder + "/gateway.log"
        let descriptor = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure("cannot write `\(log)`") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        process.standardOutput = handle
        process.standardError = handle
        process.standardInput = FileHandle.nullDevice
        try process.run()
        self.process = process
        // The proof of its bundle is background work, and takes a minute beside a busy machine's.
        let deadline = Date().addingTimeInterval(300)
        while Date() < deadline, process.isRunning {
            if let connection = try? await UnixHTTPConnection.connect(.init(path: socket)) {
                // A gateway answers from its first moment on, and 503 while it proves its bundle.
                let answer = try? await connection.request("GET", "/readyz", timeoutMilliseconds: 10_000)
                await connection.close()
                if answer?.status == 200 { return }
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
    }

    // MARK: People

    /// Registers `count` people with one device each, as fast as the gateway takes them.
    func register(_ count: Int, seconds: Double) async throws -> Load.Measurement {
        let person = Array(
            #"{"region":"DE","region_source":"kyc","locale":"en","age":"adult","time_zone":"Europe/Berlin","privacy":"full"}"#
                .utf8)
        let progress = Mutex(Progress("registering \(count) recipients"))
        defer { progress.withLock { $0.end() } }
        let load = Load(
            socket: socket, connections: 8, isStream: false, arrival: .closed(depth: 32), seconds: seconds,
            countMax: count)
        let people = try await load.run { number in
            LoadRequest(method: "PUT", target: "/v1/recipients/\(Self.user(number))", body: person)
        } watch: {
            let done = UInt64($0)
            progress.withLock { $0.show(done, of: UInt64(2 * count)) }
        }
        let devices = try await load.run { number in
            let body =
                #"{"platform":"ios","app":"\#(Self.app)","token":"\#(Self.token(of: number))","region":"DE","time_zone":"Europe/Berlin","os_permission":"granted","critical_alerts":false}"#
            return LoadRequest(
                method: "PUT", target: "/v1/recipients/\(Self.user(number))/devices/\(Self.device)",
                body: Array(body.utf8))
        } watch: {
            let done = UInt64(count + $0)
            progress.withLock { $0.show(done, of: UInt64(2 * count)) }
        }
        for measured in [people, devices] {
            if let (status, refused) = measured.countByStatus.first(where: { $0.key != 200 && $0.key != 201 })
            {
                throw CommandFailure("\(refused) registrations were answered with \(status)")
            }
            guard measured.count == count else {
                throw CommandFailure(
                    "only \(measured.count) of \(count) recipients were registered in \(Int(seconds)) s",
                    hint: "ask for fewer with --recipients, or give more time with --setup-seconds")
            }
        }
        return devices
    }

    /// Device keys that were registered, and how fast.
    struct Enrolment {
        /// In the order of the people.
        var phones: [BenchPhone]
        var seconds: Double
        /// Keys registered and proved a second, with the phone's own part.
        var perSecond: Double { seconds > 0 ? Double(phones.count) / seconds : 0 }
    }

    /// Connections over which keys are registered at the same time.
    private static let enrollingConnectionCount = 16

    /// Gives the devices of the first `count` people a key each and proves possession of it.
    @discardableResult
    func enrolKeys(_ count: Int) async throws -> Enrolment {
        let origins = try await originKeys()
        var progress = Progress("enrolling \(count) device keys")
        defer { progress.end() }
        progress.show(0, of: 1)
        let (socket, width) = (socket, min(Self.enrollingConnectionCount, count))
        let begin = Load.now()
        var phones = try await withThrowingTaskGroup(of: [BenchPhone].self) { group in
            for first in 0..<width {
                group.addTask {
                    let connection = try await UnixHTTPConnection.connect(.init(path: socket))
                    defer { Task { await connection.close() } }
                    var phones: [BenchPhone] = []
                    for number in stride(from: first, to: count, by: width) {
                        phones.append(try await Self.enrol(number, over: connection, trusting: origins))
                    }
                    return phones
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let seconds = Double(Load.now() - begin) / 1e9
        phones.sort { $0.number < $1.number }
        return Enrolment(phones: phones, seconds: seconds)
    }

    private static func enrol(
        _ number: Int, over connection: UnixHTTPConnection, trusting origins: [OriginKey]
    ) async throws -> BenchPhone {
        let key = P256.KeyAgreement.PrivateKey()
        let path = "/v1/recipients/\(user(number))/devices/\(device)/keys"
        let added = try await ask(
            connection, path,
            [
                "suite": "P256_SHA256_AES256GCM",
                "public_key": .string(Base64URL.encode(key.publicKey.x963Representation)),
            ])
        guard let keyID = added["key_id"]?.stringValue, let challenge = added["challenge"]?.objectValue
        else { throw CommandFailure("the gateway gave no challenge for a new device key") }
        let phone = BenchPhone(number: number, key: try DeviceKey(keyID: keyID, privateKey: key))
        let proof = try phone.opener(trusting: origins).proof(
            forChallenge: envelopeText(challenge), now: BenchPhone.now)
        _ = try await ask(connection, "\(path)/\(keyID)/confirm", ["proof": .string(proof)])
        return phone
    }

    /// Every origin key that the gateway shows, also those it no longer signs with.
    func originKeys() async throws -> [OriginKey] {
        guard case .object(let object) = try CanonicalJSON.read(try await get("/v1/keys"), limits: .document)
        else { throw CommandFailure("the gateway shows no keys") }
        let keys = try (object["keys"]?.arrayValue ?? []).compactMap { key -> OriginKey? in
            guard key["purpose"]?.stringValue == "origin",
                let bytes = key["public_key"]?.stringValue.flatMap({ Base64URL.decode($0) })
            else { return nil }
            let id = SHA256.hash(data: bytes).prefix(8)
            return try OriginKey(keyID: IdentifierText.hexadecimal(Array(id)), publicKey: bytes)
        }
        guard !keys.isEmpty else { throw CommandFailure("the gateway shows no origin key") }
        return keys
    }

    /// The envelope's one spelling; an answer carries it as an object.
    private static func envelopeText(_ object: JSONObject) -> String {
        func text(_ key: String) -> String { object[key]?.stringValue ?? "" }
        return
            #"{"v":1,"s":"\#(text("s"))","kid":"\#(text("kid"))","mid":"\#(text("mid"))","exp":\#(object["exp"]?.integerValue ?? 0),"ct":"\#(text("ct"))"}"#
    }

    // MARK: Asking

    private static func ask(_ connection: UnixHTTPConnection, _ target: String, _ body: JSONObject)
        async throws
        -> JSONObject
    {
        let response = try await connection.request(
            "POST", target, headers: [("Content-Type", "application/json")], body: CanonicalJSON.write(body),
            timeoutMilliseconds: 30_000)
        guard response.status < 300, case .object(let object)? = try? CanonicalJSON.read(response.body) else {
            throw CommandFailure(
                "the gateway answered \(response.status) to POST \(target): \(String(decoding: response.body, as: UTF8.self))"
            )
        }
        return object
    }

    /// Asks over a connection of its own.
    ///
    /// - Parameter socket: The one where everything is allowed when `nil`.
    func post(
        _ target: String, _ body: JSONObject, to socket: String? = nil
    ) async throws -> (status: Int, object: JSONObject) {
        let connection = try await UnixHTTPConnection.connect(.init(path: socket ?? self.socket))
        defer { Task { await connection.close() } }
        let response = try await connection.request(
            "POST", target, headers: [("Content-Type", "application/json")], body: CanonicalJSON.write(body),
            timeoutMilliseconds: 30_000)
        guard case .object(let object) = try CanonicalJSON.read(response.body) else {
            return (response.status, [:])
        }
        return (response.status, object)
    }

    func get(_ target: String) async throws -> [UInt8] {
        let connection = try await UnixHTTPConnection.connect(.init(path: socket))
        defer { Task { await connection.close() } }
        return try await connection.request("GET", target, timeoutMilliseconds: 30_000).body
    }

    /// What the gateway counts, by name.
    func metrics() async throws -> [String: Double] {
        var values: [String: Double] = [:]
        for line in String(decoding: try await get("/metrics"), as: UTF8.self).split(separator: "\n") {
            guard !line.hasPrefix("#"), let space = line.lastIndex(of: " ") else { continue }
            values[String(line[..<space])] = Double(line[line.index(after: space)...])
        }
        return values
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

    /// How many bytes the next hop was given so far.
    func handedOverByteCount() throws -> UInt64 {
        guard let file = FileHandle(forReadingAtPath: onward) else { return 0 }
        defer { try? file.close() }
        return try file.seekToEnd()
    }

    /// A device's push token has the number of its person, which is how a message is told whose it is,
    /// in hexadecimal, as a token of Apple's is.
    private static func token(of number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: max(0, 16 - digits.utf8.count)) + digits
    }

    /// A sealed message as the next hop was given it.
    struct HandedOverEnvelope {
        /// The number of the recipient.
        var person: Int
        var send: String
        var envelope: String
    }

    /// The sealed messages that the next hop was given after its first `offset` bytes.
    func envelopes(after offset: UInt64) throws -> [HandedOverEnvelope] {
        guard let file = FileHandle(forReadingAtPath: onward) else { return [] }
        defer { try? file.close() }
        try file.seek(toOffset: offset)
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        return try text.split(separator: "\n").compactMap { line in
            let object = try CanonicalJSON.read(Array(line.utf8)).objectValue
            guard let envelope = object?["body"]?["sendgate"]?.stringValue,
                let token = object?["token"]?.stringValue,
                let person = Int(token, radix: 16),
                let send = object?["send_id"]?.stringValue
            else { return nil }
            return HandedOverEnvelope(person: person, send: send, envelope: envelope)
        }
    }

    /// Empties the file of what was handed over once it is longer; the gateway appends to it.
    func discardHandedOver(above byteCount: UInt64) throws {
        guard try handedOverByteCount() > byteCount else { return }
        guard truncate(onward, 0) == 0 else { throw CommandFailure("cannot empty `\(onward)`") }
    }

    // MARK: What it costs

    /// What proc(5) tells of the process: its `status`, and how many files it has open.
    func processState() throws -> (status: String, descriptorCount: Int) {
        guard let process, process.isRunning else { throw CommandFailure("the gateway ended") }
        let folder = "/proc/\(process.processIdentifier)"
        return (
            try String(contentsOfFile: folder + "/status", encoding: .utf8),
            try FileManager.default.contentsOfDirectory(atPath: folder + "/fd").count
        )
    }

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
            let stage = Self.stage(ofThread: stat[stat.index(after: start)..<end])
            seconds[stage, default: 0] += (user + system) / tick
        }
        return seconds
    }

    /// Which part of the gateway a thread works for.
    ///
    /// - Parameter name: As the kernel has it.
    private static func stage(ofThread name: Substring) -> String {
        switch name.prefix(while: { $0 != "-" }) {
        case "engine": "engine"
        case "publisher": "publisher"
        case "sealer": "sealing"
        case "reader": "reading"
        case "NIO": "sockets"
        default: "other threads"
        }
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
