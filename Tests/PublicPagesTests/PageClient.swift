import Glibc
import PublicPages

/// What came back over a socket, taken apart by nothing of the product.
struct RawAnswer: Hashable {
    var status: Int
    var headers: [String: String]
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }

    init?(_ bytes: [UInt8]) {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        guard let first = lines.first?.split(separator: " "), first.count > 1, let status = Int(first[1])
        else { return nil }
        self.status = status
        headers = Dictionary(
            lines.dropFirst().map { line in
                let colon = line.firstIndex(of: ":") ?? line.endIndex
                return (
                    line[..<colon].lowercased(),
                    String(line[colon...].drop { $0 == ":" || $0 == " " })
                )
            }, uniquingKeysWith: { "\($0), \($1)" })
        body = Array(bytes[end.upperBound...])
    }
}

/// A client that says exactly what it is told to.
final class PageClient {
    private let descriptor: CInt

    struct Failure: Error { var call: String }

    init(_ address: PageAddress) throws {
        let isUnix = if case .unix = address { true } else { false }
        descriptor = socket(isUnix ? AF_UNIX : AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        // A bound that only a fault reaches.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result: CInt
        switch address {
        case .loopback(let port):
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            result = withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        case .systemd(let name): preconditionFailure("`\(name)` is a name, and no place to connect to")
        case .unix(let path):
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            result = withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        guard result == 0 else { throw Failure(call: "connect: \(errno)") }
    }

    deinit { close(descriptor) }

    /// - Returns: Whether all of it was taken.
    @discardableResult
    func write(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Everything until the other side ends.
    func readAll() -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &part, part.count, 0)
            guard count > 0 else { return all }
            all += part[..<count]
        }
    }

    static func ask(_ address: PageAddress, _ text: String) throws -> RawAnswer {
        let client = try PageClient(address)
        client.write(text)
        let bytes = client.readAll()
        guard let answer = RawAnswer(bytes) else {
            throw Failure(call: "no answer: \(String(decoding: bytes, as: UTF8.self))")
        }
        return answer
    }

    static func get(
        _ address: PageAddress, _ target: String, method: String = "GET", language: String? = nil
    ) throws -> RawAnswer {
        let more = language.map { "Accept-Language: \($0)\r\n" } ?? ""
        return try ask(address, "\(method) \(target) HTTP/1.1\r\nHost: a\r\n\(more)\r\n")
    }

    static func post(
        _ address: PageAddress, _ target: String, _ body: String,
        as type: String? = "application/x-www-form-urlencoded"
    ) throws -> RawAnswer {
        let more = type.map { "Content-Type: \($0)\r\n" } ?? ""
        return try ask(
            address,
            "POST \(target) HTTP/1.1\r\nHost: a\r\n\(more)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
}
