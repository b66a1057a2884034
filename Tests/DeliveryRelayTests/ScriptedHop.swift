import Foundation
import Glibc
import Synchronization
import Testing

/// A delivery layer that reads a request and then does as it is told.
final class ScriptedHop: Sendable {
    enum Act: Sendable {
        /// Writes these bytes and closes.
        case write(String)
        /// Writes these bytes, and reads the next request of the connection until the other side closes it.
        case writeEach(String)
        /// Says nothing until the other side gives up.
        case keepSilent
        /// Closes without having read what came.
        case closeUnread
    }

    let path: String
    private let folder: String
    private let descriptor: Int32
    private let isListening: Bool
    private let received = Received()

    /// Kept apart, so that the accepting thread does not keep the hop.
    private final class Received: Sendable {
        let texts = Mutex<[String]>([])
    }

    /// What came, one text for each request, and one for a connection without any; in their order.
    var requests: [String] { received.texts.withLock { $0 } }
    /// One element for each connection that the hop has closed.
    let closed: AsyncStream<Void>

    init(_ act: Act, listens: Bool = true) throws {
        var template = Array("/tmp/hop-XXXXXX".utf8CString)
        folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        path = folder + "/hop.sock"
        let (closed, closing) = AsyncStream.makeStream(of: Void.self)
        self.closed = closed
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        self.descriptor = descriptor
        isListening = listens
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        guard listens else { return }
        try #require(listen(descriptor, 64) == 0)
        Thread.detachNewThread { [received] in
            // Closed here and nowhere else: a number that is free again may be the next hop's.
            defer { close(descriptor) }
            while case let connection = accept(descriptor, nil, nil), connection >= 0 {
                var limit = timeval(tv_sec: 30, tv_usec: 0)
                setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
                Self.serve(connection, act, received)
                close(connection)
                closing.yield()
            }
        }
    }

    deinit {
        if isListening { shutdown(descriptor, Int32(SHUT_RDWR)) } else { close(descriptor) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func serve(_ connection: Int32, _ act: Act, _ received: Received) {
        var bytes: [UInt8] = []
        func read() -> Bool {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(connection, &buffer, buffer.count, 0)
            if count > 0 { bytes += buffer[..<count] }
            return count > 0
        }
        if case .closeUnread = act {
            // Something has come: closing now resets the connection.
            var one: UInt8 = 0
            _ = recv(connection, &one, 1, Int32(MSG_PEEK))
        } else {
            while !isWhole(bytes), read() {}
        }
        received.texts.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
        func write(_ text: String) -> Bool {
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count <= 0 { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
        switch act {
        case .write(let text): _ = write(text)
        case .writeEach(let text):
            while write(text) {
                bytes = []
                while !isWhole(bytes) {
                    guard read() else { return }
                }
                received.texts.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
            }
        case .keepSilent: while read() {}
        case .closeUnread: break
        }
    }

    /// Whether the head and as many bytes as it announces have come.
    private static func isWhole(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let head = text.range(of: "\r\n\r\n"),
            let line = text[..<head.lowerBound].split(separator: "\r\n").first(where: {
                $0.lowercased().hasPrefix("content-length:")
            }), let length = Int(line.split(separator: ":")[1].drop { $0 == " " })
        else { return false }
        return text[head.upperBound...].utf8.count >= length
    }
}
