import Foundation
import GateTestKit
import Synchronization
import Testing

extension EndToEnd {
    /// The gateway's own keys are rotated while sends go on: none fails, and nothing that was written becomes unreadable.
    @Suite struct RotationTests {
        /// Sends one after another until it is told to stop; counts the answers by status.
        private final class Traffic: Sendable {
            private struct State {
                var isStopping = false
                var answers: [Int: Int] = [:]
                var failure: String?
            }
            private let state = Mutex(State())
            private let ended = DispatchSemaphore(value: 0)

            init(_ gate: GateProcess, name: String) throws {
                let socket = gate.socket()
                let thread = Thread { [self] in
                    do {
                        let client = try RawConnection(socket)
                        var count = 0
                        while !state.withLock({ $0.isStopping }) {
                            count += 1
                            let send =
                                count % 2 == 0
                                ? Sample.login("\(name)-\(count)") : Sample.remittance("\(name)-\(count)")
                            let reply = try client.request("POST", "/v1/sends", send)
                            state.withLock { $0.answers[reply.status, default: 0] += 1 }
                        }
                    } catch {
                        state.withLock { $0.failure = "\(error)" }
                    }
                    ended.signal()
                }
                thread.start()
            }

            /// - Returns: How many were answered with each status.
            func stop() throws -> [Int: Int] {
                state.withLock { $0.isStopping = true }
                ended.wait()
                let (answers, failure) = state.withLock { ($0.answers, $0.failure) }
                if let failure { throw HarnessError(failure) }
                return answers
            }
        }

        private struct Key: Decodable {
            var id: String
            var purpose: String
            var state: String
        }

        private func keys(_ gate: GateProcess, in scratch: Scratch) throws -> [Key] {
            struct Keys: Decodable { var keys: [Key] }
            let listed = try sendgate(["keys", "list", "--socket", gate.socket(), "--json"], in: scratch)
            return try JSONDecoder().decode(Keys.self, from: Data(listed.output.utf8)).keys
        }

        @discardableResult
        private func sendgate(
            _ arguments: [String], ending: ChildProcess.Ending = .exit(0), in scratch: Scratch
        ) throws -> Finished {
            let finished = try Finished.run([Machine.sendgate] + arguments, in: scratch, within: 120)
            #expect(finished.ending == ending, "\(arguments): \(finished)")
            return finished
        }

        /// Both callers that may; the second is another than the first.
        private func destroy(_ key: String, _ gate: GateProcess, in scratch: Scratch) throws {
            try sendgate(
                ["keys", "destroy", key, "--socket", gate.socket(of: "keys-team")], in: scratch)
            try sendgate(
                ["keys", "destroy", key, "--socket", gate.socket(of: "keys-team")], ending: .exit(1),
                in: scratch)
            try sendgate(
                ["keys", "destroy", key, "--socket", gate.socket(of: "keys-witness")], in: scratch)
        }

        /// Two callers run the same command.
        private func rotateRoot(_ gate: GateProcess, in scratch: Scratch) throws {
            for (caller, said) in [("keys-team", "another caller must ask"), ("keys-witness", "is active")] {
                let ran = try sendgate(
                    ["keys", "rotate", "root", "--socket", gate.socket(of: caller)], in: scratch)
                #expect(ran.output.contains(said), "\(ran)")
            }
        }

        @Test func `every key is rotated under load and no send fails`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let before = try keys(gate, in: scratch)
            #expect(before.filter { $0.state == "active" }.count == 6)
            let traffic = try Traffic(gate, name: "first")
            for purpose in ["origin", "trail", "data", "link", "trail", "data"] {
                _ = try step("rotating \(purpose)") {
                    try sendgate(
                        ["keys", "rotate", purpose, "--again", "--socket", gate.socket(of: "keys-team")],
                        in: scratch)
                }
            }
            try rotateRoot(gate, in: scratch)
            for purpose in ["index", "policy"] {
                try sendgate(
                    ["keys", "rotate", purpose, "--socket", gate.socket()], ending: .exit(1), in: scratch)
            }
            let answers = try traffic.stop()
            // Refusals are decisions; nothing failed.
            #expect(Set(answers.keys).isSubset(of: [202, 403]), "\(answers)")
            #expect(answers[202, default: 0] > 50, "\(answers)")

            let after = try keys(gate, in: scratch)
            for key in before where ["origin", "trail", "data", "link", "root"].contains(key.purpose) {
                #expect(after.first { $0.id == key.id }?.state == "deactivated")
            }
            #expect(after.filter { $0.state == "active" }.count == 6)
            try sendgate(["keys", "lagging", "--socket", gate.socket()], in: scratch)
            // The old data keys are not needed, and their files are gone when two have said so.
            for key in after where ["data", "root"].contains(key.purpose) && key.state == "deactivated" {
                try destroy(key.id, gate, in: scratch)
                let files = try FileManager.default.contentsOfDirectory(atPath: "\(gate.folder)/keys")
                #expect(files.allSatisfy { !$0.hasPrefix(key.id) })
            }
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            // A restart follows the record: nothing but the newest data key is there to read with.
            try gate.start()
            #expect(try gate.connect().request("GET", "/v1/recipients/u_1", "").status == 200)
            #expect(try gate.connect().request("POST", "/v1/sends", Sample.login("after")).status == 202)
            #expect(try keys(gate, in: scratch).filter { $0.state == "active" }.count == 6)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try sendgate(["audit", "verify", gate.trail, "--key", "\(gate.trail)/trail.pub"], in: scratch)
            try sendgate(
                ["audit", "replay", gate.trail, "--key", "\(gate.trail)/trail.pub"], in: scratch)
        }

        @Test func `a gateway killed while rows are sealed anew goes on where it was`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            let client = try gate.connect()
            // Some thousand rows: more than one piece.
            for number in 0..<400 {
                let reply = try client.request(
                    "PUT", "/v1/recipients/u_\(number)",
                    #"{"region":"DE","region_source":"kyc","locale":"en","time_zone":"Europe/Berlin"}"#)
                #expect(reply.status == 200, "\(reply)")
            }
            for _ in 0..<5 {
                try sendgate(
                    ["keys", "rotate", "data", "--again", "--no-wait", "--socket", gate.socket()],
                    in: scratch)
                gate.kill()
                try gate.start()
                // Waits for the rest of the pass that was interrupted; begins no other.
                let count = try keys(gate, in: scratch).count
                try sendgate(["keys", "rotate", "data", "--socket", gate.socket()], in: scratch)
                #expect((count...count + 1).contains(try keys(gate, in: scratch).count))
            }
            try sendgate(["keys", "lagging", "--socket", gate.socket()], in: scratch)
            for number in [0, 199, 399] {
                #expect(
                    try gate.connect().request("GET", "/v1/recipients/u_\(number)", "").status == 200)
            }
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try sendgate(["store", "check", "--dev", gate.folder], in: scratch)
        }

        /// Each round is killed a little later than the one before. What is asked after it holds wherever it was.
        @Test(arguments: Soak.part(of: ["origin", "trail", "link", "data"], 2, "purposes of rotations"))
        func `a rotation of a stopped gateway that is killed anywhere is ended by the next`(purpose: String)
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            // Each round begins a rotation, or ends the one before.
            let rotate = ["keys", "rotate", purpose, "--again", "--dev", gate.folder]
            let begun = ContinuousClock.now
            try sendgate(rotate, in: scratch)
            let whole = begun.duration(to: .now) / .milliseconds(1)
            let folder = "\(gate.folder)/keys"
            var killedCount = 0
            for round in 1...8 {
                let killed = try Finished.run(
                    [
                        "/usr/bin/timeout", "--signal=KILL", "\(whole / 8_000 * Double(round))",
                        Machine.sendgate,
                    ] + rotate, in: scratch, within: 120)
                if killed.ending != .exit(0) { killedCount += 1 }
                // Nothing is half written: every file that counts as a key's can be read.
                try sendgate(["keys", "list", "--directory", folder], in: scratch)
            }
            #expect(killedCount > 0)
            try sendgate(rotate, in: scratch)
            let files = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(files.allSatisfy { $0.hasSuffix(".key") }, "\(files)")
            try gate.start()
            let keys = try keys(gate, in: scratch).filter { $0.purpose == purpose }
            #expect(keys.filter { $0.state == "active" }.count == 1, "\(keys)")
            // No key's file is lost, and none is there that the record does not have.
            #expect(
                files.filter { $0.hasPrefix("dev-\(purpose)-") }.sorted()
                    == keys.map { "\($0.id).key" }.sorted())
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            let entries = try TrailText(gate.trail)
            for key in keys {
                for event in ["add", "promote", "deactivate"] {
                    let count = entries.count(
                        ofAll: [#""kind":"gateway_key""#, #""key":"\#(key.id)""#, #""event":"\#(event)""#])
                    #expect(count <= 1, "\(key) \(event)")
                    if event == "promote", key.state == "active" { #expect(count == 1, "\(key)") }
                }
            }
            try sendgate(["audit", "verify", gate.trail, "--key", "\(gate.trail)/trail.pub"], in: scratch)
        }

        @Test func `whatever a kill left of a root key's rotation, the next start ends it`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let keys = "\(gate.folder)/keys"
            try sendgate(
                ["keys", "rotate", "root", "--socket", gate.socket(of: "keys-team")], in: scratch)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            let before = try FileManager.default.contentsOfDirectory(atPath: keys)
            let saved = scratch.path("before")
            try FileManager.default.copyItem(atPath: keys, toPath: saved)
            try gate.start()
            try sendgate(
                ["keys", "rotate", "root", "--socket", gate.socket(of: "keys-witness")], in: scratch)
            gate.kill()
            // Committed, and of three files one was written: as if the kill had been then.
            let fresh = try FileManager.default.contentsOfDirectory(atPath: keys).filter {
                !before.contains($0)
            }
            #expect(fresh.count == 3)
            for name in before where !FileManager.default.fileExists(atPath: "\(keys)/\(name)") {
                try FileManager.default.copyItem(atPath: "\(saved)/\(name)", toPath: "\(keys)/\(name)")
            }
            for name in fresh.dropFirst() { try FileManager.default.removeItem(atPath: "\(keys)/\(name)") }
            try gate.start()
            let after = try FileManager.default.contentsOfDirectory(atPath: keys)
            #expect(Set(fresh).isSubset(of: after) && after.count == before.count)
            #expect(try gate.connect().request("POST", "/v1/sends", Sample.login("after")).status == 202)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
        }

        @Test func `a key in use without a file stops the start and is named`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try sendgate(["keys", "rotate", "origin", "--socket", gate.socket()], in: scratch)
            let key = try #require(
                try keys(gate, in: scratch).first { $0.purpose == "origin" && $0.state == "active" }?.id)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try FileManager.default.removeItem(atPath: "\(gate.folder)/keys/\(key).key")
            #expect(try gate.startExpectingEnd() == .exit(1))
            #expect(gate.errors.contains(key), "\(gate.errors)")
        }
    }
}
