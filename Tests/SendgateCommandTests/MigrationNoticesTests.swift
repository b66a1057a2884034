import CommandTerminal
import Foundation
import Logging
import Synchronization
import Testing
import UnixSockets

@testable import SQLiteStore
@testable import sendgate

/// Who waits for a start that brings a state directory up to date is told how far it is.
@Suite struct MigrationNoticesTests {
    private final class Written: Sendable {
        private let bytes = Mutex<[UInt8]>([])
        var lines: [String] {
            bytes.withLock { String(decoding: $0, as: UTF8.self) }.split(separator: "\n").map(String.init)
        }
        func add(_ more: [UInt8]) { bytes.withLock { $0 += more } }
    }

    /// The socket of a service manager.
    private final class Manager {
        let path: String
        private let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_NONBLOCK, 0)

        init(in folder: TemporaryFolder) throws {
            path = folder.path("notify")
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            try #require(bytes.count < 107)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            let bound = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(bound == 0)
        }

        deinit { close(descriptor) }

        /// What was sent so far.
        func received() -> [String] {
            var all: [String] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { return all }
                all.append(String(decoding: buffer[..<count], as: UTF8.self))
            }
        }
    }

    @Test func `each step is told when it begins, and then once a second, with the time that it needs`()
        throws
    {
        let folder = try TemporaryFolder()
        let manager = try Manager(in: folder)
        let written = Written()
        let logger = Logger(label: "test") { _ in LineLogHandler(.logfmt, write: written.add) }
        var moment = ContinuousClock.now
        let notices = MigrationNotices(
            logger: logger,
            notices: ServiceNotices(
                try ServiceManager(environment: ["NOTIFY_SOCKET": manager.path], processID: getpid()),
                logger: logger), now: { moment })
        func tell(_ work: MigrationProgress.Work, _ done: Int64, after milliseconds: Int64) {
            moment += .milliseconds(milliseconds)
            notices.tell(
                MigrationProgress(
                    file: "gate.db", version: 4, work: work, done: done, total: work == .script ? 0 : 200))
        }
        tell(.checking, 10, after: 0)
        tell(.checking, 20, after: 999)
        tell(.checking, 150, after: 1)
        tell(.script, 0, after: 1)
        tell(.script, 0, after: 1_000)
        tell(.rows, 0, after: 1)
        for done in 1...9 { tell(.rows, Int64(done) * 20, after: 300) }
        tell(.rows, 200, after: 300)
        let texts = [
            "checking `gate.db` before it is brought to version 4, 5 % of 200 pages",
            "checking `gate.db` before it is brought to version 4, 75 % of 200 pages",
            "bringing `gate.db` to version 4", "bringing `gate.db` to version 4",
            "bringing `gate.db` to version 4, 0 % of 200 rows",
            "bringing `gate.db` to version 4, 40 % of 200 rows",
            "bringing `gate.db` to version 4, 80 % of 200 rows",
        ]
        #expect(written.lines.count == texts.count)
        for (line, text) in zip(written.lines, texts) {
            #expect(line.contains("level=notice") && line.contains(text), "\(line)")
        }
        #expect(manager.received() == texts.map { "STATUS=\($0)\nEXTEND_TIMEOUT_USEC=60000000" })
    }
}
