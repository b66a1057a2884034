import Foundation
import Glibc
import Testing

extension EndToEnd {
    @Suite struct DurabilityTests {
        /// One line of `strace -f -y`.
        private struct Call {
            var thread: Substring
            var text: Substring
            var isEnd: Bool

            init(_ line: Substring) {
                let parts = line.split(separator: " ", maxSplits: 1)
                thread = parts.first ?? ""
                text = parts.dropFirst().first?.drop { $0 == " " } ?? ""
                isEnd = !text.hasSuffix("<unfinished ...>")
            }
        }

        @Test func `an answer is written only after its transaction is on the disk`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            let trace = scratch.path("trace")
            // A tracer that may not attach ends at once, and this test with it: it is never skipped.
            try gate.start(wrapper: [
                "/usr/bin/strace", "-f", "-y", "-s", "32", "-o", trace, "-e",
                "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync",
                "--",
            ])
            try gate.registerSomebody()
            let client = try gate.connect()
            let count = 20
            for number in 0..<count {
                #expect(try client.request("POST", "/v1/sends", Sample.login("s-\(number)")).status == 202)
            }
            #expect(try gate.stop() == .exit(0))

            let text = try String(contentsOfFile: trace, encoding: .utf8)
            // Per request: the bytes of the log are written, then synced, then the answer begins. A sync counts
            // when it has returned, an answer when it is begun, and a call interrupted in the trace is put together.
            var unfinished: [Substring: Substring] = [:]
            var (isRead, isWritten, isSynced, complete) = (false, false, false, 0)
            for line in text.split(separator: "\n") {
                let call = Call(line)
                var whole = call.text
                if whole.hasPrefix("<... ") {
                    guard let begun = unfinished.removeValue(forKey: call.thread) else { continue }
                    whole = begun + whole
                } else if !call.isEnd {
                    unfinished[call.thread] = call.text
                }
                let isOnLog = whole.contains("/gate.db-wal>")
                if call.isEnd, whole.contains("\"POST /v1/sends HTTP/1.1") {
                    (isRead, isWritten, isSynced) = (true, false, false)
                } else if call.isEnd, isOnLog, whole.hasPrefix("pwrite") {
                    (isWritten, isSynced) = (true, false)
                } else if call.isEnd, isOnLog, whole.hasPrefix("fdatasync(") || whole.hasPrefix("fsync(") {
                    isSynced = isWritten && whole.hasSuffix("= 0")
                } else if !call.text.hasPrefix("<... "), whole.contains("\"HTTP/1.1 202") {
                    #expect(isRead && isWritten && isSynced, "answered before the sync: \(line)")
                    complete += 1
                    isRead = false
                }
            }
            #expect(
                complete == count,
                "\(complete) answers in the trace of \(text.utf8.count) bytes: \(gate.errors)")
        }

        @Test(.enabled(if: Machine.isRoot, "needs a disk of its own"))
        func `a full disk is 503 until there is room, and nothing acknowledged is lost`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let disk = try scratch.mountSmallDisk("disk", byteCount: 96 << 20)
            let gate = GateProcess(in: scratch, folder: "disk/gate", layer.hop)
            try gate.start()
            try gate.registerSomebody()
            let flood = try Flood(gate, in: scratch, seed: seedOfThisRun("full disk"), producers: 3)

            let ballast = try Ballast("\(disk)/ballast")
            try ballast.fill()
            var (asked, taken) = (0, 0)
            func probe() throws -> Reply {
                asked += 1
                let reply = try gate.connect().request("POST", "/v1/sends", Sample.login("probe-\(asked)"))
                if reply.status == 202 { taken += 1 }
                return reply
            }
            let full = try until(30) {
                let reply = try probe()
                return reply.status == 503 ? reply : nil
            }
            #expect(full.headers["retry-after"] != nil, "\(full)")
            // It is up, it says why, and it reads.
            #expect(gate.isRunning, "\(gate.errors)")
            #expect(try gate.connect().request("GET", "/healthz").status == 200)
            #expect(try gate.connect().request("GET", "/v1/types").status == 200)
            let unready = try gate.connect().request("GET", "/readyz")
            #expect(unready.status == 503 && unready.text.contains("disk"), "\(unready)")

            ballast.remove()
            _ = try until(30) {
                let reply = try probe()
                return reply.status == 202 ? reply : nil
            }
            let promised = try flood.finish()
            try layer.waitForMessages(promised)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            let evidence = try Evidence.check(
                gate, journal: flood.journal, record: layer.record, foreign: taken, in: scratch)
            #expect(evidence.isSound, "\(evidence)")
            try expectVerifies(gate, in: scratch)

            // And a disk nobody may write to stops the start, with its reason.
            try Scratch.remount(disk, readOnly: true)
            #expect(try gate.startExpectingEnd() == .exit(1))
            #expect(gate.errors.contains("ead-only file system"), "\(gate.errors)")
            try Scratch.remount(disk, readOnly: false)
            try gate.start()
            #expect(try gate.stillAnswers("writable-again"))
        }

        /// Asks until there is an answer to it.
        private func until<Answer>(_ seconds: Double, _ ask: () throws -> Answer?) throws -> Answer {
            let deadline = Deadline(seconds: seconds)
            while true {
                if let answer = try ask() { return answer }
                guard !deadline.isPast else { throw HarnessError("no such answer within \(seconds) s") }
            }
        }
    }
}

/// A file that takes all the room there is.
private final class Ballast {
    private let path: String
    private var descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw HarnessError("cannot make `\(path)`") }
    }

    deinit { remove() }

    func fill() throws {
        for size in [1 << 20, 4096, 1] {
            let bytes = [UInt8](repeating: 0, count: size)
            while write(descriptor, bytes, size) > 0 {}
        }
        guard errno == ENOSPC else { throw HarnessError("not full: \(String(cString: strerror(errno)))") }
    }

    /// Gives the room back and lets go of the disk.
    func remove() {
        guard descriptor >= 0 else { return }
        unlink(path)
        close(descriptor)
        descriptor = -1
    }
}
