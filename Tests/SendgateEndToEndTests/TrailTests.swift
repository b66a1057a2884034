import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    @Suite struct TrailTests {
        /// A stopped gateway with some six hundred entries: more than two bundles of 256.
        private func populated(_ scratch: Scratch) throws -> GateProcess {
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let lines = (0..<600).map { Sample.login("t\($0)", to: $0 % 7 == 0 ? "u_nobody" : "u_1") }
            let reply = try gate.connect().request(
                "POST", "/v1/sends/stream", lines.joined(separator: "\n"), type: "application/x-ndjson")
            guard reply.status == 200 else { throw HarnessError("batch: \(reply)") }
            guard try gate.stop() == .exit(0) else { throw HarnessError("no orderly stop: \(gate.errors)") }
            return gate
        }

        @Test func `a trail copied away verifies, replays and is read by Go's transparency log`() throws {
            let scratch = try Scratch()
            let gate = try populated(scratch)
            try expectVerifies(gate, in: scratch)
            let copy = try gate.copyOfTrail("shown")
            let shown = try Finished.run(
                [Machine.sendgate, "audit", "show", copy, "300", "--json"], in: scratch, within: 60)
            #expect(shown.ending == .exit(0), "\(shown.errors)")
            #expect(shown.output.contains("\"index\":300"), "\(shown.output)")
            // The same bundle today would have decided the same.
            let with = try Finished.run(
                [Machine.sendgate, "audit", "replay", copy, "--with", Machine.policies], in: scratch,
                within: 120)
            #expect(with.ending == .exit(0), "\(with.output.suffix(2000))\(with.errors)")
        }

        @Test func `what is left of a pruned trail is proved by its tiles to Go, too`() throws {
            let scratch = try Scratch()
            let gate = try populated(scratch)
            let key = try #require(gate.ready?.trailKey)
            let copy = try gate.copyOfTrail("pruned")
            try FileManager.default.removeItem(atPath: "\(copy)/tile/entries/000")
            func go(_ arguments: String...) throws -> Finished {
                try Finished.run([Machine.verifyTiles, copy, key] + arguments, in: scratch, within: 60)
            }
            let pruned = try go("256")
            #expect(pruned.ending == .exit(0), "\(pruned.errors)")
            #expect(try go().ending == .exit(3) && go("255").ending == .exit(3))
            // Without a snapshot that says what is gone, a bundle is missing.
            let own = try Finished.run(
                [Machine.sendgate, "audit", "verify", copy, "--key", key], in: scratch, within: 60)
            #expect(own.ending == .exit(3) && own.errors.contains("tile/entries/000` is missing"))
        }

        @Test func `one flipped bit in any file is found, named, and found by Go too`() throws {
            let seed = Soak.seed("flipped bits")
            var random = SeededRandom(seed)
            let scratch = try Scratch()
            let gate = try populated(scratch)
            let key = try #require(gate.ready?.trailKey)
            let files = try Self.trailFiles(gate.trail)
            #expect(files.contains { $0.hasPrefix("tile/entries/") } && files.contains("checkpoint"))
            for file in files {
                let copy = try gate.copyOfTrail("flipped")
                defer { try? FileManager.default.removeItem(atPath: copy) }
                let url = URL(fileURLWithPath: "\(copy)/\(file)")
                var bytes = try Data(contentsOf: url)
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                chmod(url.path, 0o600)
                try bytes.write(to: url)

                let what = "seed \(seed), \(file), byte \(place)"
                let verified = try Finished.run(
                    [Machine.sendgate, "audit", "verify", copy, "--key", key, "--json"], in: scratch,
                    within: 60)
                #expect(verified.ending == .exit(3), "\(what): \(verified.output)\(verified.errors)")
                #expect(verified.output.contains("\"damaged\":true"), "\(what): \(verified.output)")
                #expect(verified.output.contains(file), "\(what) is not named: \(verified.output)")
                let go = try Finished.run([Machine.verifyTiles, copy, key], in: scratch, within: 60)
                #expect(go.ending == .exit(3), "\(what), to Go: \(go.output)")
            }
        }

        /// Everything the checkpoint stands for: what is not part of the tree, such as a partial tile that a full
        /// one replaced, is not in the list.
        private static func trailFiles(_ trail: String) throws -> [String] {
            let files = try FileTree.files(in: trail).filter { $0 == "checkpoint" || $0.hasPrefix("tile/") }
            let checkpoint = try String(contentsOfFile: "\(trail)/checkpoint", encoding: .utf8)
            guard let size = Int(checkpoint.split(separator: "\n")[1]) else { throw HarnessError("no size") }
            let widths = [size % 256, size / 256 % 256].map(String.init)
            return files.filter { path in
                guard let partial = path.range(of: ".p/") else { return true }
                return widths.contains(String(path[partial.upperBound...]))
            }.sorted()
        }

        @Test func `a trail cut short behind a checkpoint kept elsewhere is found`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            try gate.stop()
            let early = try gate.copyOfTrail("early")
            try gate.start()
            for number in 0..<5 { #expect(try gate.stillAnswers("more-\(number)")) }
            try gate.stop()
            let key = try #require(gate.ready?.trailKey)
            let late = try gate.copyOfTrail("late")
            func verify(_ trail: String, since: String) throws -> Finished {
                try Finished.run(
                    [
                        Machine.sendgate, "audit", "verify", trail, "--key", key, "--since",
                        "\(since)/checkpoint",
                    ],
                    in: scratch, within: 60)
            }
            let forward = try verify(late, since: early)
            #expect(forward.ending == .exit(0), "\(forward.errors)")
            // An operator who puts back yesterday's trail cannot pretend that today did not happen.
            let backward = try verify(early, since: late)
            #expect(backward.ending == .exit(3), "\(backward.output)\(backward.errors)")
        }
    }
}
