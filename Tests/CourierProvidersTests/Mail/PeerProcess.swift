import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Glibc
import Synchronization

/// A program of `peers`, in the Python environment that `make peers` makes. It ends with the test that holds it.
final class PeerProcess {
    private static let root = String(#filePath.components(separatedBy: "/Tests/CourierProvidersTests/")[0])
    /// What `make peers` makes.
    static let environment = ProcessInfo.processInfo.environment["SENDGATE_PEERS"] ?? "\(root)/.build/peers"

    static func path(_ name: String) -> String { "\(root)/Tests/CourierProvidersTests/peers/\(name)" }

    static func page(_ name: String) -> String { "\(root)/Sources/sendgate/Sendgate.docc/\(name).md" }

    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var unread: [UInt8] = []

    init(_ name: String, _ arguments: [String]) throws {
        process.executableURL = URL(filePath: "/usr/bin/setpriv")
        process.arguments =
            ["--pdeathsig", "KILL", "--", Self.environment + "/bin/python", Self.path(name)] + arguments
        process.standardOutput = output
        process.standardInput = input
        try process.run()
    }

    deinit { kill(process.processIdentifier, SIGKILL) }

    /// Blocks until the program has written a line.
    func readLine(within seconds: Double = 20) throws -> String {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            let descriptor = output.fileHandleForReading.fileDescriptor
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = (deadline - .now).components
            guard poll(&entry, 1, Int32(clamping: max(0, left.seconds * 1000 + 1))) > 0 else {
                throw PeerError("the peer said nothing within \(seconds) s")
            }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { throw PeerError("the peer ended") }
            unread += buffer[..<count]
        }
    }

    func readJSON() throws -> JSONObject {
        let limits = JSONLimits(byteCountMax: 1 << 20)
        guard case .object(let object) = try CanonicalJSON.read(Array(try readLine().utf8), limits: limits)
        else {
            throw PeerError("the peer wrote no JSON object")
        }
        return object
    }

    /// Passes over what else it tells.
    func next(_ member: String) throws -> JSONValue {
        while true {
            if let value = try readJSON()[member] { return value }
        }
    }

    func write(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    func closeInput() throws { try input.fileHandleForWriting.close() }
}

extension JSONObject {
    func text(_ name: String) throws -> String {
        guard case .string(let text)? = self[name] else { throw PeerError("no text `\(name)` in \(self)") }
        return text
    }

    func object(_ name: String) throws -> JSONObject {
        guard case .object(let object)? = self[name] else {
            throw PeerError("no object `\(name)` in \(self)")
        }
        return object
    }
}

struct PeerError: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// A folder that goes with the test.
final class TestFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "courier-\(UUID().uuidString)").path(
            percentEncoded: false)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// A file that only its owner reads.
    func secret(_ name: String, _ text: String) throws -> CredentialFile {
        let path = file(name)
        try? FileManager.default.removeItem(atPath: path)
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o400])
        else { throw PeerError("cannot write \(path)") }
        return CredentialFile(path: path)
    }
}

/// Certificates that openssl makes once for all tests: see `peers/certificates.sh`.
enum TestCertificates {
    static let folder: Result<TestFolder, any Error> = Result {
        let folder = try TestFolder()
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [PeerProcess.path("certificates.sh"), folder.path]
        process.standardError = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw PeerError("certificates.sh failed") }
        return folder
    }
}

/// Clocks of a test: the wall clock stands, and the gateway's patience ends when the test says so.
enum TestClock {
    static let now = Instant(rfc3339: "2026-11-29T12:00:00Z")!
    static let patient = ProviderClock(now: { now }, isOver: { _ in false })

    /// Every deadline is over from when it is asked for once more than `count` times.
    static func over(after count: Int) -> ProviderClock {
        let asked = Mutex(0)
        return ProviderClock(
            now: { now },
            isOver: { _ in
                asked.withLock { asked in
                    asked += 1
                    return asked > count
                }
            })
    }

    static func order(
        _ channel: Channel = .email, number: UInt64 = 1, to: String = "ola@example.org",
        subject: String = "Payment received",
        text: String = "You have it.", html: String? = nil, handOverBy: HandOverDeadline? = nil
    ) -> DeliveryOrder {
        var body: JSONObject = ["text": .string(text)]
        if channel == .email { body["subject"] = .string(subject) }
        body["html"] = html.map(JSONValue.string)
        return DeliveryOrder(
            message: MessageID(high: 1, low: number), send: SendID(high: 2, low: number),
            destination: DestinationID("e_1"),
            channel: channel, platform: nil, provider: nil, app: nil, token: to,
            headers: channel == .email
                ? [
                    "list-unsubscribe": "<https://pay.example/u/\(number)>",
                    "list-unsubscribe-post": "List-Unsubscribe=One-Click",
                ] : [:],
            body: .object(body), expiresAt: now.advanced(bySeconds: 3600), handOverBy: handOverBy)
    }
}
