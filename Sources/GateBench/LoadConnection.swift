import Foundation

/// One connection of the load: non-blocking, with bytes going out and answers coming in order.
///
/// The connection speaks just enough HTTP/1.1 for a benchmark, because what it costs is taken from the same two cores as
/// the gateway: a few microseconds a request, where a whole client library would cost more than the gate itself.
/// The other side is the gateway that is measured; an answer that is not expected ends the measurement.
struct LoadConnection {
    /// What one response said.
    struct Response {
        var status: Int
        /// Nanoseconds of the monotonic clock at which its request should have started.
        var startedAt: UInt64
    }

    enum Failure: Error, CustomStringConvertible {
        case closed
        case malformed
        case system(Int32)

        var description: String {
            switch self {
            case .closed: "the gateway closed a connection of the benchmark"
            case .malformed: "the gateway gave an answer the benchmark cannot read"
            case .system(let number): "a socket of the benchmark failed: \(String(cString: strerror(number)))"
            }
        }
    }

    let descriptor: Int32
    private let isStream: Bool
    private var outgoing: [UInt8] = []
    private var sentCount = 0
    private var incoming: [UInt8] = []
    /// Where bytes land first. As large as the gateway's own reads.
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var readOffset = 0
    /// Of a stream: the head was read, and bytes left of the chunk under way.
    private var isHeadRead = false
    private var chunkLeft = 0
    private var line: [UInt8] = []
    /// When the requests under way started, oldest first.
    private var starts: [UInt64] = []
    private var firstStart = 0

    var inFlight: Int { starts.count - firstStart }
    var hasOutgoing: Bool { sentCount < outgoing.count }

    /// - Parameter isStream: Opens `POST /v1/sends/stream` as a live stream; bodies are then its lines.
    init(path: String, isStream: Bool) throws {
        self.isStream = isStream
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure.system(errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            close(descriptor)
            throw Failure.system(ENAMETOOLONG)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else {
            let number = errno
            close(descriptor)
            throw Failure.system(number)
        }
        if isStream {
            outgoing += Array(
                "POST /v1/sends/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nSendgate-Stream: live\r\n\r\n"
                    .utf8)
        }
    }

    func shut() { close(descriptor) }

    /// Queues one request; ``flush()`` sends it.
    mutating func add(_ request: LoadRequest, startedAt: UInt64) {
        if isStream {
            outgoing += Array("\(String(request.body.count + 1, radix: 16))\r\n".utf8)
            outgoing += request.body
            outgoing += Array("\n\r\n".utf8)
        } else {
            outgoing += request.head
            outgoing += Array("Content-Length: \(request.body.count)\r\n\r\n".utf8)
            outgoing += request.body
        }
        starts.append(startedAt)
    }

    mutating func flush() throws {
        while hasOutgoing {
            let count = outgoing.withUnsafeBytes {
                send(
                    descriptor, $0.baseAddress! + sentCount, outgoing.count - sentCount,
                    Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EAGAIN { return }
                throw Failure.system(errno)
            }
            sentCount += count
        }
        outgoing.removeAll(keepingCapacity: true)
        sentCount = 0
    }

    /// Reads what is there and gives every complete answer to `take`.
    mutating func receive(_ take: (Response) -> Void) throws {
        // One full buffer at a time; poll(2) says when there is more.
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress!, $0.count, 0) }
        let number = errno
        if count == 0 { throw Failure.closed }
        if count < 0 {
            if number == EAGAIN || number == EINTR { return }
            throw Failure.system(number)
        }
        incoming += buffer[..<count]
        if isStream { try readStream(take) } else { try readAnswers(take) }
        if readOffset == incoming.count {
            incoming.removeAll(keepingCapacity: true)
            readOffset = 0
        } else if readOffset > 1 << 20 {
            incoming.removeFirst(readOffset)
            readOffset = 0
        }
        if firstStart > 4_096 {
            starts.removeFirst(firstStart)
            firstStart = 0
        }
    }

    private mutating func finish(status: Int, _ take: (Response) -> Void) throws {
        guard inFlight > 0 else { throw Failure.malformed }
        take(Response(status: status, startedAt: starts[firstStart]))
        firstStart += 1
    }

    // MARK: Answers one by one

    private mutating func readAnswers(_ take: (Response) -> Void) throws {
        while let head = try readHead() {
            guard let length = head.length else { throw Failure.malformed }
            guard incoming.count - head.end >= length else { return }
            readOffset = head.end + length
            try finish(status: head.status, take)
        }
    }

    /// The head at ``readOffset``, once it is complete.
    private func readHead() throws -> (status: Int, length: Int?, end: Int)? {
        guard let end = Bytes.find("\r\n\r\n", in: incoming, from: readOffset) else { return nil }
        let head = incoming[readOffset..<end]
        guard head.count > 12, let status = Bytes.decimal(head.dropFirst(9).prefix(3)) else {
            throw Failure.malformed
        }
        // The gateway spells its own headers one way.
        let length = Bytes.find("Content-Length: ", in: incoming, from: readOffset).flatMap {
            $0 < end ? Bytes.decimal(incoming[($0 + 16)..<end].prefix { $0 != UInt8(ascii: "\r") }) : nil
        }
        return (status, length, end + 4)
    }

    // MARK: Answers as lines

    private mutating func readStream(_ take: (Response) -> Void) throws {
        if !isHeadRead {
            guard let head = try readHead() else { return }
            guard head.status == 200 else { throw Failure.malformed }
            isHeadRead = true
            readOffset = head.end
        }
        while true {
            if chunkLeft == 0 {
                guard let end = Bytes.find("\r\n", in: incoming, from: readOffset) else { return }
                let text = String(decoding: incoming[readOffset..<end], as: UTF8.self)
                guard let size = Int(text, radix: 16), size > 0 else { throw Failure.closed }
                readOffset = end + 2
                chunkLeft = size + 2
            }
            // The two bytes behind a chunk's data are its line end.
            let taken = min(chunkLeft, incoming.count - readOffset)
            if taken == 0 { return }
            for byte in incoming[readOffset..<(readOffset + min(taken, max(chunkLeft - 2, 0)))] {
                guard byte == UInt8(ascii: "\n") else {
                    line.append(byte)
                    continue
                }
                guard let at = Bytes.find("\"status\":", in: line, from: 0),
                    let status = Bytes.decimal(line[(at + 9)...].prefix(3))
                else { throw Failure.malformed }
                line.removeAll(keepingCapacity: true)
                try finish(status: status, take)
            }
            readOffset += taken
            chunkLeft -= taken
        }
    }
}

/// One request: the head without its length and last line, and the body.
struct LoadRequest {
    var head: [UInt8]
    var body: [UInt8]

    static let sendHead = head("POST", "/v1/sends")

    static func head(_ method: String, _ target: String) -> [UInt8] {
        Array("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".utf8)
    }
}

/// Looking for text in bytes.
enum Bytes {
    /// Where `text` starts, at or after `offset`.
    static func find(_ text: StaticString, in bytes: [UInt8], from offset: Int) -> Int? {
        bytes.withUnsafeBytes { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let length = text.utf8CodeUnitCount
            var position = offset
            // glibc's `memmem` is a GNU extension and not visible here; `memchr` is as fast for texts this short.
            while position + length <= buffer.count,
                let found = memchr(
                    base + position, Int32(text.utf8Start[0]), buffer.count - position - length + 1)
            {
                position = UnsafeRawPointer(found) - base
                if memcmp(base + position, text.utf8Start, length) == 0 { return position }
                position += 1
            }
            return nil
        }
    }

    static func decimal(_ digits: some Collection<UInt8>) -> Int? {
        guard !digits.isEmpty, digits.count < 10 else { return nil }
        var number = 0
        for digit in digits {
            guard digit >= 48, digit <= 57 else { return nil }
            number = number * 10 + Int(digit - 48)
        }
        return number
    }
}
