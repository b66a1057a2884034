import Foundation
import Glibc
import Synchronization
import Testing

@testable import UnixHTTPClient

/// A server that does exactly what the test says, each connection on a thread of its own.
final class ScriptedServer: Sendable {
    /// One accepted connection. Blocking, with a deadline so that a test fails instead of hanging.
    final class Connection {
        private let descriptor: Int32
        private var received: [UInt8] = []

        fileprivate init(_ descriptor: Int32) {
            self.descriptor = descriptor
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(descriptor) }

        /// Reads until `text` has come; returns everything up to and with it, or `nil` at the end.
        func read(until text: String) -> String? {
            let wanted = Array(text.utf8)
            while true {
                if let end = (0...max(0, received.count - wanted.count)).first(where: {
                    received.count >= $0 + wanted.count && Array(received[$0..<($0 + wanted.count)]) == wanted
                }) {
                    let taken = received[..<(end + wanted.count)]
                    defer { received.removeFirst(end + wanted.count) }
                    return String(decoding: taken, as: UTF8.self)
                }
                var buffer = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count <= 0 { return nil }
                received.append(contentsOf: buffer[..<count])
            }
        }

        /// Reads one request without a body, or with the body `text`.
        func readRequest(body text: String = "") -> String? { read(until: "\r\n\r\n" + text) }

        func write(_ text: String) { _ = writes(text) }

        /// - Returns: Whether the client took it.
        func writes(_ text: String) -> Bool {
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count <= 0 { return false }
                bytes = bytes.dropFirst(count)
            }
            return true
        }

        func answer(_ body: String, status: Int = 200, headers: String = "") {
            write("HTTP/1.1 \(status) X\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
    }

    private let descriptor: Int32
    private let accepted = Atomic<Int>(0)

    var connectionCount: Int { accepted.load(ordering: .relaxed) }

    /// - Parameter script: Gets every connection and its number, from 0.
    init(_ path: String, _ script: @escaping @Sendable (Connection, Int) -> Void) throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        self.descriptor = descriptor
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0 && listen(descriptor, 64) == 0)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(descriptor, nil, nil)
                if connection < 0 { return }
                let number = accepted.add(1, ordering: .relaxed).oldValue
                Thread.detachNewThread { script(Connection(connection), number) }
            }
        }
    }

    func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit { close(descriptor) }
}

func withServer(
    _ script: @escaping @Sendable (ScriptedServer.Connection, Int) -> Void,
    _ body: (_ path: String, _ server: ScriptedServer) async throws -> Void
) async throws {
    var template = Array("/tmp/http-XXXXXX".utf8CString)
    let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let server = try ScriptedServer(directory + "/s.sock", script)
    defer { server.stop() }
    try await body(directory + "/s.sock", server)
}
