import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// What of the process's memory can leave it.
    @Suite struct MemoryTests {
        @Test func `a gateway leaves no core dump and no memory in a backtrace, and locks its keys`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            // What an operator may have set for other programs.
            try gate.start(environment: ["SWIFT_BACKTRACE": "enable=yes,color=no,registers=all"])
            func kernel(_ file: String, _ line: String) throws -> [Substring] {
                let text = try String(contentsOfFile: "/proc/\(gate.processID)/\(file)", encoding: .utf8)
                let found = text.split(separator: "\n").first { $0.hasPrefix(line) }
                return try #require(found).dropFirst(line.count).split { " \t".contains($0) }
            }
            #expect(try kernel("limits", "Max core file size").prefix(2) == ["0", "0"])
            let locked = try #require(Int(try kernel("status", "VmLck:")[0]))
            // A smaller limit than the smallest piece cannot be had everywhere; then it is told.
            #expect(locked >= 32 || gate.errors.contains("refused to lock"), "\(locked) kB")
            gate.signal(SIGABRT)
            _ = try gate.waitForEnd()
            #expect(!gate.errors.contains("Registers") && !gate.errors.contains("Crash"), "\(gate.errors)")
        }

        /// What `search_keys.py` found of one key.
        private struct Places: Decodable {
            var id: String
            var locked: Int
            var undumped: Int
            var elsewhere: Int
        }

        private struct Search: Decodable {
            var keys: [Places]
        }

        private static func search(_ gate: GateProcess, in scratch: Scratch) throws -> [Places] {
            let found = try Finished.run(
                [
                    Machine.python, Machine.peer("search_keys.py"), "\(gate.processID)",
                    "\(gate.folder)/keys",
                ], in: scratch, within: 120)
            guard found.ending == .exit(0) else { throw HarnessError("no search: \(found.errors)") }
            return try JSONDecoder().decode(Search.self, from: Data(found.output.utf8)).keys
        }

        @Test func `a running gateway has its secret keys in the protected pages and nowhere else`() throws {
            try Machine.requireRoot("to read the memory of another process")
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let isLocked = !gate.errors.contains("refused to lock")
            // Signs an open push, and seals a challenge to the base point of P-256, which is a public key as good as another.
            #expect(try gate.connect().request("POST", "/v1/sends", Sample.login("open")).status == 202)
            let point =
                "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
            let challenge = try gate.connect().request(
                "POST", "/v1/recipients/u_1/devices/d_1/keys",
                #"{"suite":"P256_SHA256_AES256GCM","public_key":"\#(point)"}"#)
            #expect(challenge.status == 201, "\(challenge)")
            func check(atLeast keyCount: Int) throws {
                let keys = try Self.search(gate, in: scratch)
                #expect(keys.count >= keyCount, "\(keys)")
                for key in keys {
                    #expect(key.elsewhere == 0, "\(key)")
                    // Found at all: the search looks for the right bytes.
                    #expect((isLocked ? key.locked : key.undumped) >= 1, "\(key)")
                    #expect(!isLocked || key.undumped == 0, "\(key)")
                }
            }
            try check(atLeast: 6)
            // Keys that the gateway makes while it runs, and that replace others.
            for purpose in ["origin", "trail", "data", "link"] {
                let rotated = try Finished.run(
                    [
                        Machine.sendgate, "keys", "rotate", purpose, "--socket",
                        gate.socket(of: "keys-team"),
                    ], in: scratch, within: 60)
                #expect(rotated.ending == .exit(0), "\(rotated)")
            }
            #expect(try gate.connect().request("POST", "/v1/sends", Sample.login("after")).status == 202)
            try check(atLeast: 10)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
        }
    }
}
