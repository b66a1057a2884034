import Foundation
import GateTestKit
import Glibc
import Testing

extension EndToEnd {
    @Suite struct DurabilityTests {
        @Test func `an answer is written only after its entry is on the disk`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            let trace = scratch.path("trace")
            // A tracer that may not attach ends at once, and this test with it: it is never skipped.
            try gate.start(wrapper: [
                "/usr/bin/strace", "-f", "-y", "-s", "8192", "-o", trace, "-e",
                "trace=write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync,renameat,renameat2", "--",
            ])
            try gate.registerSomebody()
            let client = try gate.connect()
            let sends = try (0..<20).map { number in
                let reply = try client.request("POST", "/v1/sends", Sample.login("s-\(number)"))
                return try #require(reply["send_id"], "\(reply)")
            }
            #expect(try gate.stop() == .exit(0))
            let calls = try SystemCall.read(trace)
            #expect(calls.count > 100, "strace said \(calls.count) calls: \(gate.errors)")
            for send in sends {
                // Half of the id is enough: an entry may go on in the next page in the middle of it.
                let halves = [send.prefix(18), send.suffix(18)]
                func isAbout(_ call: SystemCall) -> Bool { halves.contains { call.text.contains($0) } }
                let written = calls.filter { $0.isOnLog && $0.text.hasPrefix("pwrite") && isAbout($0) }
                let entry = try #require(written.first, "the entry of \(send) is in no write to the log")
                let answer = try #require(
                    calls.first { !$0.isOnLog && $0.text.contains("HTTP/1.1 202") && isAbout($0) },
                    "no answer to \(send) in the trace")
                let isSynced = calls.contains {
                    $0.isSync && $0.isOnLog && $0.begin > entry.end && $0.end < answer.begin
                }
                #expect(
                    isSynced,
                    "answered at line \(answer.begin), written at \(entry.end) and not synced between")
            }
            try expectSyncedBeforeNamed(calls)
        }

        /// Each file of the trail is written under a name that is not read, synced, and then renamed.
        private func expectSyncedBeforeNamed(_ calls: [SystemCall]) throws {
            let written = /write\(\d+<(.*\/\.writing\/\d+)>/
            let synced = /f(?:data)?sync\(\d+<(.*\/\.writing\/\d+)>/
            let renamed = /renameat2?\(\d+<(.*?)>, "(\.writing\/\d+)"/
            var unsynced: Set<Substring> = []
            var count = 0
            for call in calls {
                if let path = call.text.prefixMatch(of: written)?.1 {
                    unsynced.insert(path)
                } else if call.isSync, let path = call.text.prefixMatch(of: synced)?.1 {
                    unsynced.remove(path)
                } else if let (_, folder, name) = call.text.prefixMatch(of: renamed)?.output {
                    count += 1
                    #expect(!unsynced.contains("\(folder)/\(name)"), "\(call.text)")
                }
            }
            #expect(count > 2, "only \(count) files of the trail got a name")
        }

        /// One call of `strace -f -y`, put together where another thread interrupted it.
        private struct SystemCall {
            /// Arguments and result.
            var text: String
            /// The lines where it was entered and where it had returned.
            var begin: Int
            var end: Int

            var isOnLog: Bool { text.contains("/gate.db-wal>") }
            var isSync: Bool {
                (text.hasPrefix("fdatasync(") || text.hasPrefix("fsync(")) && text.hasSuffix("= 0")
            }

            static func read(_ path: String) throws -> [SystemCall] {
                let interrupted = " <unfinished ...>"
                var calls: [SystemCall] = []
                var open: [Substring: SystemCall] = [:]
                let text = try String(contentsOfFile: path, encoding: .utf8)
                for (number, line) in text.split(separator: "\n").enumerated() {
                    let parts = line.split(separator: " ", maxSplits: 1)
                    guard parts.count == 2 else { continue }
                    let said = String(parts[1].drop { $0 == " " })
                    if said.hasSuffix(interrupted) {
                        open[parts[0]] = SystemCall(
                            text: String(said.dropLast(interrupted.count)), begin: number, end: .max)
                    } else if said.hasPrefix("<... "), var call = open.removeValue(forKey: parts[0]) {
                        call.text += said
                        call.end = number
                        calls.append(call)
                    } else {
                        calls.append(SystemCall(text: said, begin: number, end: number))
                    }
                }
                return calls
            }
        }
    }
}

extension EndToEnd {
    @Suite struct LostDurabilityTests {
        /// The databases' log, and the directory that names the trail's checkpoint.
        @Test(arguments: ["state/gate.db-wal", "trail"])
        func `a synchronization that fails ends the process, and what was acknowledged is there afterwards`(
            _ path: String
        ) throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            // Everything is made here, so that the next start synchronizes little before it listens.
            try gate.start()
            try gate.registerSomebody()
            #expect(try gate.stop() == .exit(0))

            let trace = scratch.path("trace")
            // From the sixth on in each thread; the answer of the kernel is what a failing disk gives.
            try gate.start(wrapper: [
                "/usr/bin/strace", "-f", "-o", trace, "-P", "\(gate.folder)/\(path)", "-e",
                "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=6+", "--",
            ])
            var acknowledged: [String] = []
            let deadline = Deadline(seconds: 60)
            while gate.isRunning, !deadline.isPast {
                let id = "s-\(acknowledged.count)"
                // The last of them is not answered; then no process is there to ask.
                guard let reply = try? gate.connect().request("POST", "/v1/sends", Sample.login(id)) else {
                    continue
                }
                try #require(reply.status == 202, "\(reply)")
                acknowledged.append(id)
            }
            #expect(try gate.waitForEnd(within: 10) == .exit(70))
            #expect(gate.errors.contains("stopping at once"), "\(gate.errors)")
            #expect(!acknowledged.isEmpty)
            let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n")
            #expect(
                calls.count { $0.contains("(INJECTED)") } == 1, "a failed synchronization was tried again")

            try gate.start()
            let client = try gate.connect()
            for id in acknowledged {
                let reply = try client.request("POST", "/v1/sends", Sample.login(id))
                #expect(reply.status == 202 && reply.text.contains(#""replayed":true"#), "\(id): \(reply)")
            }
            #expect(try gate.stop() == .exit(0))
            try expectVerifies(gate, in: scratch)
        }

        @Test func `a folder whose new names may not be on the disk is not served from`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            let ending = try gate.startExpectingEnd(wrapper: [
                "/usr/bin/strace", "-f", "-o", scratch.path("trace"), "-P", "\(gate.folder)/state", "-e",
                "trace=fsync", "-e", "inject=fsync:error=EIO", "--",
            ])
            #expect(ending != .exit(0))
            #expect(gate.errors.contains("cannot synchronize"), "\(gate.errors)")
            try gate.start()
            #expect(try gate.stop() == .exit(0))
        }
    }
}

extension Alone {
    @Suite struct FullDiskTests {
        @Test func `a full disk is 503 until there is room, and nothing acknowledged is lost`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            try Machine.requireRoot("to have a disk of its own")
            let disk = try scratch.mountSmallDisk("disk", byteCount: 96 << 20)
            let gate = GateProcess(in: scratch, folder: "disk/gate", layer.hop)
            try gate.start()
            try gate.registerSomebody()
            let flood = try Flood(gate, in: scratch, seed: Soak.seed("full disk"), producers: 3)

            let ballast = try Ballast("\(disk)/ballast")
            try ballast.fill()
            var asked = 0
            var taken: [String] = []
            func probe() throws -> Reply {
                asked += 1
                let reply = try gate.connect().request("POST", "/v1/sends", Sample.login("probe-\(asked)"))
                if reply.status == 202 { taken.append(try #require(reply["send_id"])) }
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
            try flood.finish()
            try gate.waitUntilGone(taken)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            let evidence = try Evidence.check(
                gate, journal: flood.journal, record: layer.record, foreign: taken.count, in: scratch)
            #expect(evidence.isSound, "\(evidence)")
            try expectVerifies(gate, in: scratch)

            // And a disk that cannot be written to stops the start, with its reason.
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
