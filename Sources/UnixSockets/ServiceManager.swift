import Glibc

/// What a service tells the manager that started it, such as systemd (sd_notify(3)): datagrams of assignments on a Unix socket.
///
/// Without a manager every notice goes nowhere. A datagram is sent or dropped at once; it never blocks.
package struct ServiceManager: Hashable, Sendable {
    package enum Notice: Hashable, Sendable {
        /// Clients are answered; also the end of a reload.
        case ready
        /// The configuration is being read again; `ready` follows.
        case reloading
        case stopping
        /// The service still does its work.
        case watchdog
        /// One line for `systemctl status`.
        case status(String)
        /// The start, reload or stop under way may take so much longer from now on.
        case needsTime(milliseconds: Int64)
    }

    /// How often the manager expects ``Notice/watchdog`` at least; `nil` when it does not watch.
    package let watchdogMilliseconds: Int64?
    /// A path, or an abstract name with `@` in place of the first byte; `nil` without a manager.
    private let socket: String?

    package static let none = ServiceManager()

    private init() { (watchdogMilliseconds, socket) = (nil, nil) }

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    ///
    /// - Parameter environment: The process's own; an argument so that tests need not change it.
    package init(environment: [String: String], processID: Int32) throws(EndpointError) {
        guard let socket = environment["NOTIFY_SOCKET"], !socket.isEmpty else {
            self = .none
            return
        }
        guard socket.hasPrefix("/") || socket.hasPrefix("@"),
            (2...SocketFile.pathByteCountMax).contains(socket.utf8.count)
        else { throw .notifySocketMalformed("NOTIFY_SOCKET is `\(socket)`") }
        self.socket = socket
        // A child inherits its parent's environment, which is why the protocol carries the pid.
        guard let text = environment["WATCHDOG_USEC"],
            environment["WATCHDOG_PID"].map({ $0 == "\(processID)" }) ?? true
        else {
            watchdogMilliseconds = nil
            return
        }
        guard let microseconds = Int64(text), (1_000...Self.watchdogMicrosecondsMax).contains(microseconds)
        else { throw .notifySocketMalformed("WATCHDOG_USEC is `\(text)`") }
        watchdogMilliseconds = microseconds / 1_000
    }

    /// A day. What is watched less often is not watched.
    private static let watchdogMicrosecondsMax: Int64 = 86_400_000_000
    /// Of a status, in bytes; a longer one is cut.
    private static let statusByteCountMax = 512

    /// Sends all of it as one datagram, so that the manager takes it as one moment.
    ///
    /// - Returns: The error number where the datagram did not arrive; `nil` also without a manager.
    @discardableResult
    package func notify(_ notices: Notice...) -> Int32? {
        guard let socket else { return nil }
        let text = notices.map(Self.text).joined(separator: "\n")
        let descriptor = Glibc.socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        let sent = Self.withAddress(of: socket) { address, length in
            SystemCall.retrying {
                // No process is ended because the manager has gone.
                Int32(
                    sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), address, length))
            }
        }
        return sent == -1 ? errno : nil
    }

    private static func text(_ notice: Notice) -> String {
        switch notice {
        case .ready: "READY=1"
        // The manager tells this reload from an earlier one by the moment.
        case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds())"
        case .stopping: "STOPPING=1"
        case .watchdog: "WATCHDOG=1"
        case .status(let line): "STATUS=\(oneLine(line))"
        case .needsTime(let milliseconds): "EXTEND_TIMEOUT_USEC=\(milliseconds * 1_000)"
        }
    }

    /// A line break would begin an assignment of its own.
    private static func oneLine(_ text: String) -> String {
        let bytes = text.utf8.map { $0 < 0x20 ? UInt8(ascii: " ") : $0 }
        guard bytes.count > statusByteCountMax else { return String(decoding: bytes, as: UTF8.self) }
        // Not in the middle of a character: the manager drops a status that is no UTF-8.
        var end = statusByteCountMax
        while bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }

    private static func monotonicMicroseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    private static func withAddress(
        of name: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        // An abstract name is as long as the address says, zero bytes included; a path ends with one.
        let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + bytes.count + (bytes[0] == 0 ? 0 : 1)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
        }
    }
}
