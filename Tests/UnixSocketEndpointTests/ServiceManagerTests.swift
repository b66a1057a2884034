import Foundation
import Glibc
import Testing
import UnixSockets

/// The protocol of sd_notify(3), spoken to a socket of the test's.
@Suite struct ServiceManagerTests {
    /// The manager's end.
    private final class Datagrams {
        let descriptor: Int32

        /// - Parameter name: A path, or an abstract name with `@` in place of the first byte.
        init(_ name: String) throws {
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            var bytes = Array(name.utf8)
            if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            let length = socklen_t(2 + bytes.count + (bytes[0] == 0 ? 0 : 1))
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
            }
            try #require(bound == 0)
            var limit = timeval(tv_sec: 10, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(descriptor) }

        func next() -> String {
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
    }

    private static func manager(_ more: [String: String]) throws -> ServiceManager {
        try ServiceManager(environment: more, processID: 42)
    }

    @Test func `notices of one moment arrive as one datagram, at a path and at an abstract name`() throws {
        let path = "/tmp/sendgate-notify-\(UUID().uuidString.prefix(8))"
        defer { unlink(path) }
        for name in [path, "@sendgate-\(UUID().uuidString)"] {
            let manager = try Self.manager(["NOTIFY_SOCKET": name])
            let end = try Datagrams(name)
            #expect(manager.notify(.ready, .status("ready")) == nil)
            #expect(end.next() == "READY=1\nSTATUS=ready")
            #expect(manager.notify(.watchdog) == nil)
            #expect(end.next() == "WATCHDOG=1")
            #expect(manager.notify(.status("proving 43 %"), .needsTime(milliseconds: 30_000)) == nil)
            #expect(end.next() == "STATUS=proving 43 %\nEXTEND_TIMEOUT_USEC=30000000")
            #expect(manager.notify(.stopping) == nil)
            #expect(end.next() == "STOPPING=1")
            var before = timespec()
            clock_gettime(CLOCK_MONOTONIC, &before)
            #expect(manager.notify(.reloading) == nil)
            let parts = end.next().split(separator: "\n")
            let moment = try #require(parts.last?.split(separator: "=").last.flatMap { Int64($0) })
            #expect(parts.first == "RELOADING=1" && parts.count == 2)
            #expect(
                moment >= Int64(before.tv_sec) * 1_000_000 && moment < Int64(before.tv_sec + 60) * 1_000_000)
        }
    }

    @Test func `a status is one line, however long it is`() throws {
        let name = "@sendgate-\(UUID().uuidString)"
        let manager = try Self.manager(["NOTIFY_SOCKET": name])
        let end = try Datagrams(name)
        manager.notify(.status("one\nREADY=1\ttwo"))
        #expect(end.next() == "STATUS=one READY=1 two")
        // Not cut in the middle of a character.
        manager.notify(.status(String(repeating: "a", count: 511) + "øø"))
        #expect(end.next() == "STATUS=" + String(repeating: "a", count: 511))
    }

    @Test func `without a manager nothing is sent, and one that has gone is an error number`() throws {
        #expect(try Self.manager([:]) == .none)
        #expect(try Self.manager(["NOTIFY_SOCKET": ""]).notify(.ready) == nil)
        #expect(try Self.manager(["NOTIFY_SOCKET": "/nonexistent/notify"]).notify(.ready) == ENOENT)
    }

    @Test func `the watchdog counts for the process that it names`() throws {
        let socket = ["NOTIFY_SOCKET": "/run/notify"]
        func milliseconds(_ more: [String: String]) throws -> Int64? {
            try Self.manager(socket.merging(more) { $1 }).watchdogMilliseconds
        }
        #expect(try milliseconds([:]) == nil)
        #expect(try milliseconds(["WATCHDOG_USEC": "30000000"]) == 30_000)
        #expect(try milliseconds(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"]) == 30_000)
        #expect(try milliseconds(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "41"]) == nil)
    }

    @Test(arguments: [
        ["NOTIFY_SOCKET": "notify"], ["NOTIFY_SOCKET": "vsock:2:1234"], ["NOTIFY_SOCKET": "/"],
        ["NOTIFY_SOCKET": "/" + String(repeating: "a", count: 107)],
        ["NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "soon"],
        ["NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "0"],
        ["NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "99999999999999"],
    ])
    func `what makes no sense is refused at the start`(environment: [String: String]) {
        #expect(throws: EndpointError.self) { try Self.manager(environment) }
    }
}
