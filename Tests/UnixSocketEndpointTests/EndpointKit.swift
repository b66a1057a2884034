import Foundation
import GateVocabulary
import GatewayPipeline
import Glibc
import Logging
import NIOCore
import Synchronization
import Testing
import WireProtocol

@testable import UnixSocketEndpoint
import UnixSockets

/// Answers with a closure; the problem documents are one line of JSON each.
struct ScriptedHandler: RequestHandler {
    var answer: @Sendable (WireRequest, Peer, @escaping @Sendable (Answer) -> Void) -> Void

    func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        answer(request, peer, reply)
    }

    /// Who may use the reserved share.
    var isReserved: @Sendable (Peer) -> Bool = { _ in false }
    func mayUseReserve(_ peer: Peer) -> Bool { isReserved(peer) }

    /// Answers at once with the request's own body.
    static let echo = ScriptedHandler { request, _, reply in
        reply(
            Answer(
                status: 200, headers: [("X-Saw", "\(request.method) \(request.target)")], body: request.body))
    }
}

/// Keeps every request until the test answers it.
final class HoldingHandler: RequestHandler {
    struct Held: Sendable {
        var request: WireRequest
        var peer: Peer
        var reply: @Sendable (Answer) -> Void

        func echo() { reply(Answer(status: 200, body: request.body)) }
        func answer(_ text: String) { reply(Answer(status: 200, body: Array(text.utf8))) }
    }

    private let arrivals: AsyncStream<Held>
    private let arrive: AsyncStream<Held>.Continuation
    private let total = Atomic<Int>(0)

    private let reserved: @Sendable (Peer) -> Bool

    init(reserved: @escaping @Sendable (Peer) -> Bool = { _ in false }) {
        (arrivals, arrive) = AsyncStream.makeStream(of: Held.self)
        self.reserved = reserved
    }

    func mayUseReserve(_ peer: Peer) -> Bool { reserved(peer) }

    var count: Int { total.load(ordering: .relaxed) }

    func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        total.add(1, ordering: .relaxed)
        arrive.yield(Held(request: request, peer: peer, reply: reply))
    }

    /// Waits for the next `count` requests.
    func next(_ count: Int = 1) async -> [Held] {
        var held: [Held] = []
        for await one in arrivals {
            held.append(one)
            if held.count == count { break }
        }
        return held
    }
}

extension EndpointLimits {
    /// Small enough for a test's descriptors.
    static var test: EndpointLimits {
        var limits = EndpointLimits()
        limits.connections = SharedBound(total: 200, perUser: 180, reserved: 20)
        limits.lingerMilliseconds = 300
        limits.drainMilliseconds = 5_000
        return limits
    }
}

/// A clock that stands still until the test moves it, so that no time-out is met because a machine is slow.
final class SteppedClock: Sendable {
    /// Added to the kernel's clock once it goes by itself.
    private enum Pace {
        case stands(at: NIODeadline)
        case runs(ahead: TimeAmount)
    }

    private let pace = Mutex(Pace.stands(at: .now()))
    private let readingCount = Atomic<Int>(0)

    var clock: EndpointClock {
        EndpointClock {
            self.readingCount.add(1, ordering: .relaxed)
            return self.pace.withLock { pace in
                switch pace {
                case .stands(let time): time
                case .runs(let ahead): .now() + ahead
                }
            }
        }
    }

    func advance(milliseconds: Int64) {
        pace.withLock { pace in
            switch pace {
            case .stands(let time): pace = .stands(at: time + .milliseconds(milliseconds))
            case .runs(let ahead): pace = .runs(ahead: ahead + .milliseconds(milliseconds))
            }
        }
    }

    /// Returns when every loop of an endpoint on which nothing else happens has looked at its deadlines.
    func isSeen(by endpoint: UnixSocketEndpoint) async {
        let seen = readingCount.load(ordering: .relaxed) + 4 * endpoint.eventLoops.count
        await eventually { readingCount.load(ordering: .relaxed) >= seen }
    }

    /// From now on it goes by itself.
    func letGo() {
        pace.withLock { pace in
            if case .stands(let time) = pace { pace = .runs(ahead: time - .now()) }
        }
    }
}

extension UnixSocketEndpoint {
    /// Returns when the endpoint has read so many bytes in all, and every deadline that follows from them is set.
    func hasRead(byteCount: Int, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually({ metrics()[.bytesRead] >= UInt64(byteCount) }, sourceLocation: sourceLocation)
        await turn()
    }

    /// Returns when so many connections are open, and their first deadline is set.
    ///
    /// A connection is counted before it is registered with its loop and becomes active, which takes a few hops
    /// between loops. Sixteen turns are more than those.
    func hasAccepted(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually({ metrics().connectionsOpen >= count }, sourceLocation: sourceLocation)
        for _ in 0..<16 { await turn() }
    }

    /// Lets every event loop end the turn it is in.
    private func turn() async {
        for loop in eventLoops { try? await loop.submit {}.get() }
    }
}

/// A directory of the test's own, removed afterwards.
func withDirectory(_ body: (String) async throws -> Void) async throws {
    var template = Array("/tmp/gate-XXXXXX".utf8CString)
    let path = try #require(mkdtemp(&template).map { String(cString: $0) })
    // What a socket's directory is when nothing else is configured.
    chmod(path, 0o750)
    do {
        try await body(path)
        removeTree(path)
    } catch {
        removeTree(path)
        throw error
    }
}

private func removeTree(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

/// An endpoint with one listener, stopped afterwards.
///
/// - Parameter clock: For tests of time-outs; the kernel's when `nil`.
func withEndpoint(
    _ handler: any RequestHandler = ScriptedHandler.echo, limits: EndpointLimits = .test,
    clock: SteppedClock? = nil,
    _ body: (_ path: String, _ endpoint: UnixSocketEndpoint) async throws -> Void
) async throws {
    try await withDirectory { directory in
        let path = directory + "/gate.sock"
        let endpoint = try UnixSocketEndpoint(
            listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: limits,
            clock: clock?.clock ?? .system, handler: handler, logger: .quiet)
        try await endpoint.start()
        do {
            try await body(path, endpoint)
        } catch {
            clock?.letGo()
            await endpoint.shutDown()
            throw error
        }
        // A stop has time-outs too.
        clock?.letGo()
        await endpoint.shutDown()
        let metrics = endpoint.metrics()
        #expect(metrics.connectionsOpen == 0)
        #expect(metrics.bufferedByteCount == 0, "every body's room is given back")
    }
}

extension Logger {
    static var quiet: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}

/// Lets everything else run until `condition` holds; a minute is for machines that do ten things at once.
func eventually(_ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) async {
    let start = ContinuousClock.now
    while !condition() {
        if ContinuousClock.now - start > .seconds(60) {
            Issue.record("what was waited for did not happen", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}

struct RawError: Error, CustomStringConvertible {
    var description: String
}

/// One response as the bytes say it.
struct RawResponse: Equatable {
    var status: Int
    var headers: [String: String]
    var body: String
    /// Ended with its last chunk, its counted length, or the connection; `false` when cut off.
    var isComplete = true

    var lines: [String] { body.split(separator: "\n").map(String.init) }
}

/// A client that writes and reads exactly what the test says. Blocking, with a deadline so that a test
/// fails instead of hanging.
final class RawClient {
    private(set) var descriptor: Int32
    private var received: [UInt8] = []
    private(set) var isAtEnd = false

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        let descriptor = descriptor
        let result = SystemCall.withAddress(of: path) { connect(descriptor, $0, $1) }
        guard result == 0 else { throw RawError(description: "connect: \(SystemCall.message(errno))") }
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    deinit { close() }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw RawError(description: "send: \(SystemCall.message(errno))") }
            sent += count
        }
    }

    /// Sends until the socket takes no more; returns how many bytes went.
    func sendUntilBlocked(_ bytes: [UInt8], limit: Int) -> Int {
        var sent = 0
        while sent < limit {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress!, bytes.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count <= 0 { break }
            sent += count
        }
        return sent
    }

    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Waits on a thread of its own, so that the tests' tasks go on.
    ///
    /// - Returns: `false` at the end of the stream.
    @discardableResult func receive() async throws -> Bool {
        if isAtEnd { return false }
        let descriptor = descriptor
        let result = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var buffer = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &buffer, buffer.count, 0)
                let number = errno
                continuation.resume(returning: (bytes: Array(buffer.prefix(max(0, count))), count, number))
            }
        }
        if result.1 < 0 && result.2 != ECONNRESET {
            throw RawError(description: "recv: \(SystemCall.message(result.2))")
        }
        if result.1 <= 0 {
            isAtEnd = true
            return false
        }
        received.append(contentsOf: result.bytes)
        return true
    }

    /// Everything until the server closes.
    func receiveToEnd() async throws -> String {
        while try await receive() {}
        defer { received = [] }
        return String(decoding: received, as: UTF8.self)
    }

    private func receiveLine() async throws -> String {
        while true {
            if let feed = received.firstIndex(of: 10) {
                var line = received[..<feed]
                if line.last == 13 { line.removeLast() }
                received.removeFirst(feed + 1)
                return String(decoding: line, as: UTF8.self)
            }
            guard try await receive() else {
                throw RawError(description: "the connection ended inside a line")
            }
        }
    }

    private func receiveBytes(_ count: Int) async throws -> [UInt8] {
        while received.count < count {
            guard try await receive() else {
                throw RawError(description: "the connection ended inside a body")
            }
        }
        defer { received.removeFirst(count) }
        return Array(received[..<count])
    }

    func receiveHead() async throws -> RawResponse {
        let words = try await receiveLine().split(separator: " ")
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else {
            throw RawError(description: "no status line: \(words)")
        }
        var headers: [String: String] = [:]
        while true {
            let line = try await receiveLine()
            if line.isEmpty { break }
            let colon = try #require(line.firstIndex(of: ":"))
            headers[line[..<colon].lowercased()] = String(line[line.index(colon, offsetBy: 2)...])
        }
        return RawResponse(status: status, headers: headers, body: "")
    }

    func receiveChunk() async throws -> String? {
        let size = try #require(Int(try await receiveLine(), radix: 16))
        let bytes = try await receiveBytes(size)
        _ = try await receiveLine()
        return size == 0 ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// - Parameter toHead: The answer to HEAD has no body whatever its headers say.
    func receiveResponse(toHead: Bool = false) async throws -> RawResponse {
        var response = try await receiveHead()
        if toHead || response.status == 204 || response.status == 304 || response.status == 100 {
            return response
        }
        if let text = response.headers["content-length"] {
            let length = try #require(Int(text))
            response.body = String(decoding: try await receiveBytes(length), as: UTF8.self)
        } else if response.headers["transfer-encoding"] == "chunked" {
            do {
                while let chunk = try await receiveChunk() { response.body += chunk }
            } catch is RawError {
                response.isComplete = false
            }
        } else {
            response.body = try await receiveToEnd()
        }
        return response
    }
}

func post(_ target: String = "/v1/sends", _ body: String, headers: String = "") -> String {
    "POST \(target) HTTP/1.1\r\nHost: gate\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}

func get(_ target: String = "/healthz", headers: String = "") -> String {
    "GET \(target) HTTP/1.1\r\nHost: gate\r\n\(headers)\r\n"
}

func chunk(_ text: String) -> String { "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n" }

let liveHead =
    "POST /v1/sends/stream HTTP/1.1\r\nHost: gate\r\nSendgate-Stream: live\r\nTransfer-Encoding: chunked\r\n\r\n"
