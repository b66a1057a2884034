import Foundation
import Glibc

/// One connection to a Unix socket, byte for byte: what a hostile or broken client would do.
final class RawConnection {
    private var descriptor: Int32
    private var unread: [UInt8] = []

    /// - Parameter timeoutSeconds: For every single read and write.
    init(_ path: String, timeoutSeconds: Int = 30) throws {
        descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw HarnessError("no socket: \(String(cString: strerror(errno)))") }
        var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw HarnessError("`\(path)` is too long for a socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            let reason = String(cString: strerror(errno))
            Glibc.close(descriptor)
            descriptor = -1
            throw HarnessError("cannot connect to `\(path)`: \(reason)")
        }
    }

    deinit { close() }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    /// - Returns: How many bytes the other side took before it closed or took no more in time.
    @discardableResult
    func write(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(descriptor, $0.baseAddress! + written, $0.count - written, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        return written
    }

    @discardableResult
    func write(_ text: String) -> Int { write(Array(text.utf8)) }

    /// - Returns: `nil` at the end of the stream.
    private func readSome() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { return Array(buffer[..<count]) }
            if count == 0 { return nil }
            if errno == EINTR { continue }
            if errno == ECONNRESET { return nil }
            throw HarnessError("no bytes in time: \(String(cString: strerror(errno)))")
        }
    }

    /// Reads up to and with `end`.
    private func read(through end: [UInt8]) throws -> [UInt8] {
        var searched = 0
        while true {
            if unread.count >= end.count {
                for start in searched...(unread.count - end.count) where unread[start...].starts(with: end) {
                    let found = Array(unread[..<(start + end.count)])
                    unread.removeSubrange(..<(start + end.count))
                    return found
                }
                searched = unread.count - end.count + 1
            }
            guard let more = try readSome() else {
                throw HarnessError("closed after `\(String(decoding: unread.prefix(200), as: UTF8.self))`")
            }
            unread += more
        }
    }

    private func read(count: Int) throws -> [UInt8] {
        while unread.count < count {
            guard let more = try readSome() else { throw HarnessError("closed inside a body") }
            unread += more
        }
        let bytes = Array(unread[..<count])
        unread.removeSubrange(..<count)
        return bytes
    }

    /// Whether the other side closes without another byte.
    func isClosed() throws -> Bool { unread.isEmpty ? try readSome() == nil : false }

    /// Waits, without reading, until the other side has closed both ways.
    func waitUntilHungUp(within seconds: Double) throws -> Bool {
        try Deadline(seconds: seconds).wait(for: descriptor, 0)
    }

    /// Raises this process's soft limit of descriptors.
    static func allowDescriptors(_ count: Int) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < rlim_t(count) else { return }
        limit.rlim_cur = rlim_t(count)
        guard limit.rlim_max >= rlim_t(count),
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        else {
            throw HarnessError(
                "\(count) descriptors are needed, \(limit.rlim_max) are allowed: raise `ulimit -Hn`")
        }
    }

    /// Status and headers of the next answer.
    func readHead() throws -> Reply {
        let head = String(decoding: try read(through: Array("\r\n\r\n".utf8)), as: UTF8.self)
        var lines = head.split(separator: "\r\n").map(String.init)
        let words = lines.removeFirst().split(separator: " ")
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else {
            throw HarnessError("not an answer: \(head)")
        }
        var headers: [String: String] = [:]
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] =
                parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        }
        return Reply(status: status, headers: headers, body: [])
    }

    /// The next answer on this connection.
    func readReply() throws -> Reply {
        var reply = try readHead()
        if reply.headers["transfer-encoding"] == "chunked" {
            while let chunk = try readChunk() { reply.body += chunk }
        } else if let length = reply.headers["content-length"].flatMap({ Int($0) }) {
            reply.body = try read(count: length)
        }
        return reply
    }

    /// - Returns: `nil` for the last, empty chunk.
    func readChunk() throws -> [UInt8]? {
        let line = String(decoding: try read(through: Array("\r\n".utf8)), as: UTF8.self)
        guard let count = Int(line.trimmingCharacters(in: .newlines), radix: 16) else {
            throw HarnessError("not a chunk: \(line)")
        }
        let chunk = try read(count: count)
        _ = try read(through: Array("\r\n".utf8))
        return count == 0 ? nil : chunk
    }

    /// Writes a request and reads its answer.
    func request(
        _ method: String, _ target: String, _ body: String? = nil, type: String = "application/json"
    ) throws -> Reply {
        try request(method, target, bytes: body.map { Array($0.utf8) }, type: type)
    }

    func request(
        _ method: String, _ target: String, bytes: [UInt8]?, type: String = "application/json"
    ) throws -> Reply {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
        if let bytes { head += "Content-Type: \(type)\r\nContent-Length: \(bytes.count)\r\n" }
        write(Array("\(head)\r\n".utf8) + (bytes ?? []))
        return try readReply()
    }
}

/// One answer.
struct Reply: CustomStringConvertible {
    var status: Int
    var headers: [String: String]
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    var description: String { "\(status) \(text.prefix(600))" }

    private var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }

    /// A text in the JSON body.
    subscript(_ key: String) -> String? { object[key] as? String }

    /// The name of the problem, for an answer that is one.
    var problem: String? {
        guard let type = self["type"], type.hasPrefix("urn:sendgate:problem:") else { return nil }
        return String(type.dropFirst("urn:sendgate:problem:".count))
    }
}
