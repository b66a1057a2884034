import CanonicalJSON
import CourierModel
import CourierProviders
import Courier
import Foundation
import GateVocabulary
import Logging
import Synchronization
import UnixSockets

/// A provider that answers as the test says.
final class ScriptedProvider: DeliveryProvider {
    private let seen = Mutex<[MessageID]>([])
    private let answer: @Sendable (DeliveryOrder) async -> DeliveryOutcome

    init(_ answer: @escaping @Sendable (DeliveryOrder) async -> DeliveryOutcome) { self.answer = answer }

    convenience init(_ outcome: DeliveryOutcome = .accepted(providerID: "p-1")) { self.init { _ in outcome } }

    var orders: [MessageID] { seen.withLock { $0 } }

    func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        seen.withLock { $0.append(order.message) }
        return await answer(order)
    }

    var descriptorCountMax: Int { 1 }
    func check() async -> [ProviderFinding] { [] }
    func run() async throws {}
    func reloadCredentials() async throws {}
}

/// Something that happens once, and who waits for it.
final class Latch: Sendable {
    private let state = Mutex<
        (isOpen: Bool, waiting: [UInt64: CheckedContinuation<Void, Never>], next: UInt64)
    >(
        (false, [:], 0))

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.values.map { $0 }
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns at once when the task is cancelled.
    func wait() async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiting[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
        }
    }
}

/// A clock that a test moves.
final class TestClock: Sendable {
    private let milliseconds = Mutex<Int64>(1_000_000)

    func advance(byMilliseconds step: Int64) { milliseconds.withLock { $0 += step } }

    var clock: ProviderClock {
        let read: @Sendable () -> Int64 = { self.milliseconds.withLock { $0 } }
        return ProviderClock(
            now: { Instant(milliseconds: read()) },
            isOver: { $0.isOver(bootID: "boot", uptimeMilliseconds: read()) }, uptimeMilliseconds: read)
    }
}

/// What was logged.
final class LogLines: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }

    var logger: Logger {
        Logger(label: "test") { _ in Handler(lines: self) }
    }

    private struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let words = (event.metadata ?? [:]).map { "\($0.key)=\($0.value)" }.sorted().joined(
                separator: " ")
            lines.state.withLock { $0.append("\(event.level) \(event.message) \(words)") }
        }
    }
}

extension DeliveryOrder {
    static func push(_ number: Int, app: String = "main", platform: Platform = .ios) -> DeliveryOrder {
        let digits = String(number, radix: 16)
        let id = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
        return DeliveryOrder(
            message: MessageID(uuidText: id)!, send: SendID(uuidText: id)!,
            destination: DestinationID("phone"), channel: .push, platform: platform, provider: nil, app: app,
            token: "secret-token", headers: ["apns-topic": app], body: ["aps": ["alert": "A"]],
            expiresAt: Instant(milliseconds: 4_000_000_000_000), handOverBy: nil)
    }
}

/// A client that writes what no HTTP library would.
/// Its calls block, so each has a thread of its own and not one that runs tasks.
final class RawClient: Sendable {
    private let descriptor: Int32

    struct Failure: Error {}

    init(unix path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        let descriptor = descriptor
        guard SystemCall.withAddress(of: path, { connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            throw Failure()
        }
        setTimeout()
    }

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let descriptor = descriptor
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw Failure()
        }
        setTimeout()
    }

    /// A test that waits for an answer that never comes fails, and does not hang.
    private func setTimeout() {
        var time = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func write(_ text: String) {
        var left = Array(text.utf8)[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes {
                send(descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            left = left.dropFirst(count)
        }
    }

    /// Everything until the server closes.
    func readAll() async -> String { await Self.onThread { self.read() } }

    static func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    private func read() -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
    }

    /// One request on a connection of its own, and the whole answer.
    static func ask(
        unix path: String, _ method: String, _ target: String, body: String = ""
    ) async throws -> String {
        let client = try RawClient(unix: path)
        let head = "\(method) \(target) HTTP/1.1\r\nhost: c\r\nconnection: close\r\n"
        return await onThread {
            client.write(head + "content-length: \(body.utf8.count)\r\n\r\n" + body)
            return client.read()
        }
    }
}

extension String {
    /// Of an HTTP answer.
    var status: Int? { Int(split(separator: " ").dropFirst().first ?? "") }
    var answerBody: String { firstRange(of: "\r\n\r\n").map { String(self[$0.upperBound...]) } ?? "" }
}
