import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// What each command on a key leaves when it, or the gateway that does it, is killed.
    @Suite struct KeyKillTests {
        /// The way of one origin key, each command with what it then says, the first time or again.
        private static let way = [
            (verb: "promote", state: "active"), ("suspend", "suspended"), ("resume", "active"),
            ("revoke", "compromised"),
        ]

        private struct Key: Decodable, Hashable {
            var id: String
            var purpose: String
            var state: String
        }

        private func keys(_ gate: GateProcess, in scratch: Scratch) throws -> [Key] {
            struct Keys: Decodable { var keys: [Key] }
            let listed = try run(["keys", "list", "--socket", gate.socket(), "--json"], in: scratch)
            #expect(listed.ending == .exit(0), "\(listed)")
            return try JSONDecoder().decode(Keys.self, from: Data(listed.output.utf8)).keys
        }

        private func run(
            _ arguments: [String], killedAt call: String? = nil, on paths: [String] = [], in scratch: Scratch
        ) throws -> Finished {
            var wrapper: [String] = []
            if let call {
                let name = call.split(separator: ":").first ?? ""
                wrapper =
                    ["/usr/bin/strace", "-f", "-o", "/dev/null"] + paths.flatMap { ["-P", $0] } + [
                        "-e", "trace=\(name)", "-e", "inject=\(call)", "--",
                    ]
            }
            return try Finished.run(wrapper + [Machine.sendgate] + arguments, in: scratch, within: 60)
        }

        private func stopped(in scratch: Scratch) throws -> GateProcess {
            let gate = GateProcess(in: scratch)
            try gate.start()
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            return gate
        }

        /// Runs a command again that was killed: it does what is left to do, or says that it is done.
        ///
        /// - Returns: The key that it names.
        @discardableResult
        private func again(_ arguments: [String], saying state: String, in scratch: Scratch) throws -> String
        {
            let ran = try run(arguments, in: scratch)
            let said = ran.output + ran.errors
            let isDone = ran.ending == .exit(1) && said.contains("cannot be done in the present state")
            #expect(ran.ending == .exit(0) || isDone, "\(arguments): \(ran)")
            #expect(said.contains(isDone ? "`\(state)`" : "is \(state)"), "\(arguments): \(ran)")
            return String(try #require(said.firstMatch(of: /dev-[a-z]+-[0-9a-f]{16}/)?.output))
        }

        /// Takes one origin key its whole way, each command killed once.
        private func takeTheWay(
            _ gate: GateProcess, asking: [String], in scratch: Scratch, killed: ([String]) throws -> Void
        ) throws -> String {
            let add = ["keys", "add", "origin"] + asking
            try killed(add)
            let key = try again(add, saying: "pre_activation", in: scratch)
            for (verb, state) in Self.way {
                let command =
                    ["keys", verb, key] + (verb == "revoke" ? ["--cause", "compromised"] : []) + asking
                try killed(command)
                let ran = try run(["keys", "list", "--directory", "\(gate.folder)/keys"], in: scratch)
                #expect(ran.ending == .exit(0) && ran.output.contains(key), "after \(verb): \(ran)")
                try expectDone(command, key, state, in: scratch)
            }
            return key
        }

        private func expectDone(
            _ command: [String], _ key: String, _ state: String, in scratch: Scratch
        ) throws {
            let ran = try run(command, in: scratch)
            let isDone =
                ran.ending == .exit(1) && ran.errors.contains("a key that is `\(state)` cannot be")
            #expect(
                isDone || (ran.ending == .exit(0) && ran.output.contains("\(key) is \(state)")),
                "\(command): \(ran)")
        }

        /// That every key of the record has its file and no other file is there, and that the trail has each event of these
        /// keys once. The gateway is stopped before and after.
        private func expectWhole(
            _ gate: GateProcess, events: [String: [String]], in scratch: Scratch
        ) throws -> [Key] {
            try gate.start()
            let keys = try keys(gate, in: scratch)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: "\(gate.folder)/keys").sorted()
                    == keys.filter { $0.state != "destroyed" }.map { "\($0.id).key" }.sorted())
            for purpose in ["root", "origin", "trail", "data", "index", "link"] {
                let count = keys.count { $0.purpose == purpose && $0.state == "active" }
                let isRevoked = events.contains { $0.key.contains(purpose) && $0.value.contains("revoke") }
                #expect(count == (isRevoked ? 0 : 1), "\(purpose): \(keys)")
            }
            let entries = try TrailText(gate.trail)
            for (key, events) in events {
                for event in ["add", "promote", "suspend", "resume", "deactivate", "revoke", "destroy"] {
                    // In an entry of its own, or in the entry of the start that found its file.
                    let count =
                        entries.count(
                            ofAll: [
                                #""kind":"gateway_key""#, #""event":"\#(event)""#, #""key":"\#(key)""#,
                            ]) + entries.count(of: #""event":"\#(event)","key":"\#(key)""#)
                    #expect(count == (events.contains(event) ? 1 : 0), "\(event) of \(key)")
                }
            }
            let verified = try run(
                ["audit", "verify", gate.trail, "--key", "\(gate.trail)/trail.pub"], in: scratch)
            #expect(verified.ending == .exit(0), "\(verified)")
            return keys
        }

        private func firstOrigin(_ gate: GateProcess) throws -> String {
            let file = try FileManager.default.contentsOfDirectory(atPath: "\(gate.folder)/keys")
                .first { $0.hasPrefix("dev-origin-") }
            return String(try #require(file).dropLast(4))
        }

        /// The engine's fourth synchronization is of the start, the fifth of the command's own commit: it is not done when it is
        /// repeated, or it is. The commands of the way are killed at the one and the other in turn, and the next day the other way
        /// round.
        @Test(arguments: Soak.part(of: [[4, 5], [5, 4]], 1, "commits of commands"))
        func `a command on a stopped gateway that is killed at a commit is ended by the next`(commits: [Int])
            throws
        {
            let scratch = try Scratch()
            let gate = try stopped(in: scratch)
            let first = try firstOrigin(gate)
            var turn = 0
            let key = try takeTheWay(gate, asking: ["--dev", gate.folder], in: scratch) { command in
                let commit = commits[turn % commits.count]
                turn += 1
                let ran = try run(command, killedAt: "fdatasync:signal=KILL:when=\(commit)", in: scratch)
                #expect(ran.ending == .signal(SIGKILL), "\(command): \(ran)")
            }
            let keys = try expectWhole(
                gate,
                events: [
                    key: ["add", "promote", "suspend", "resume", "revoke"], first: ["add", "deactivate"],
                ], in: scratch)
            #expect(keys.first { $0.id == key }?.state == "compromised")
        }

        @Test func `a gateway that is killed while a command is under way has done it wholly or not at all`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            let first = try firstOrigin(gate)
            let seed = Soak.seed("key commands")
            var random = SeededRandom(seed)
            let begun = ContinuousClock.now
            _ = try keys(gate, in: scratch)
            let whole = UInt32(begun.duration(to: .now) / .microseconds(1))
            let key = try takeTheWay(gate, asking: ["--socket", gate.socket()], in: scratch) { command in
                let child = try ChildProcess(
                    [Machine.sendgate] + command, errorPath: scratch.path("killed.stderr"))
                // The moment is what is random.
                usleep(UInt32.random(in: whole / 2..<whole, using: &random))
                gate.kill()
                _ = try child.waitForEnd(within: 60)
                try step("a start of seed \(seed)") { try gate.start() }
            }
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            _ = try expectWhole(
                gate,
                events: [
                    key: ["add", "promote", "suspend", "resume", "revoke"], first: ["add", "deactivate"],
                ], in: scratch)
        }

        /// Each call on the new file, and what it leaves: nothing, an unfinished file, a file of two names.
        @Test func `a key file is there whole or not at all, wherever its making is killed`() throws {
            let scratch = try Scratch()
            let gate = try stopped(in: scratch)
            let folder = "\(gate.folder)/keys"
            var events: [String: [String]] = [:]
            for (purpose, call, paths) in [
                ("origin", "link:signal=KILL:when=1", []), ("trail", "unlink:signal=KILL:when=1", []),
                ("link", "fsync:signal=KILL:when=1", [folder]),
            ] as [(String, String, [String])] {
                let add = ["keys", "add", purpose, "--dev", gate.folder]
                let ran = try run(add, killedAt: call, on: paths, in: scratch)
                #expect(ran.ending == .signal(SIGKILL), "\(call): \(ran)")
                #expect(
                    try FileManager.default.contentsOfDirectory(atPath: folder).contains {
                        $0.hasSuffix(".part")
                    }, "\(call)")
                events[try again(add, saying: "pre_activation", in: scratch)] = ["add"]
            }
            _ = try expectWhole(gate, events: events, in: scratch)
        }

        /// The third link of a gateway's ceremony is of its third key; a policy key has one.
        @Test func `keys init that is killed leaves no secret once it is run again`() throws {
            let scratch = try Scratch()
            let policy = scratch.path("policy")
            let makePolicy = ["keys", "init", "--only", "policy", "--directory", policy]
            let killed = try run(makePolicy, killedAt: "link:signal=KILL:when=1", in: scratch)
            #expect(killed.ending == .signal(SIGKILL), "\(killed)")
            let part = try #require(FileManager.default.contentsOfDirectory(atPath: policy).first)
            #expect(part.hasSuffix(".key.part"))
            // A hard link still shows the file's bytes after its name is gone.
            try FileManager.default.linkItem(atPath: "\(policy)/\(part)", toPath: scratch.path("seed"))
            let again = try run(makePolicy, in: scratch)
            #expect(again.ending == .exit(0), "\(again)")
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: policy).allSatisfy {
                    $0.hasSuffix(".key")
                })
            let seed = try Data(contentsOf: URL(fileURLWithPath: scratch.path("seed")))
            #expect(!seed.isEmpty && seed.allSatisfy { $0 == 0 })

            let gateway = scratch.path("gateway")
            let makeAll = ["keys", "init", "--directory", gateway]
            let half = try run(makeAll, killedAt: "link:signal=KILL:when=3", in: scratch)
            #expect(half.ending == .signal(SIGKILL), "\(half)")
            let refused = try run(makeAll, in: scratch)
            #expect(refused.ending == .exit(1) && refused.errors.contains("killed half-way"), "\(refused)")
            let listed = try run(["keys", "list", "--directory", gateway], in: scratch)
            #expect(listed.ending == .exit(1) && listed.errors.contains("there is no"), "\(listed)")
            try FileManager.default.removeItem(atPath: gateway)
            let whole = try run(makeAll, in: scratch)
            #expect(whole.ending == .exit(0), "\(whole)")
        }

        /// The first link of the authority's ceremony is of its key, the second of its public half; that of a signature is of
        /// the keyset.
        @Test func `the authority's commands leave whole files, wherever they are killed`() throws {
            let scratch = try Scratch()
            let gate = try stopped(in: scratch)
            let folder = scratch.path("authority")
            let make = ["keys", "authority", "init", "--directory", folder, "--name", "example.com/a"]
            let first = try run(make, killedAt: "link:signal=KILL:when=1", in: scratch)
            #expect(first.ending == .signal(SIGKILL), "\(first)")
            let second = try run(make, killedAt: "link:signal=KILL:when=2", in: scratch)
            #expect(second.ending == .signal(SIGKILL), "\(second)")
            let left = try FileManager.default.contentsOfDirectory(atPath: folder)
            // One whole key; nothing of the one before, and no public half.
            #expect(left.count { $0.hasPrefix("authority-") } == 1, "\(left)")
            #expect(left.count { $0.hasSuffix(".key") } == 1, "\(left)")
            #expect(!left.contains("authority.pub"), "\(left)")
            let refused = try run(make, in: scratch)
            #expect(refused.ending == .exit(1) && refused.errors.contains("killed half-way"), "\(refused)")
            try FileManager.default.removeItem(atPath: folder)
            let made = try run(make, in: scratch)
            #expect(made.ending == .exit(0), "\(made)")

            try gate.start()
            let keys = try run(["keys", "list", "--socket", gate.socket(), "--json"], in: scratch)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try scratch.write("keys.json", keys.output)
            let origin = try String(contentsOfFile: "\(gate.folder)/origin", encoding: .utf8)
            let keyset = scratch.path("keyset")
            let sign = [
                "keys", "authority", "sign", "--directory", folder, "--gateway", origin, "--keys",
                scratch.path("keys.json"), "--first", "--out", keyset,
            ]
            let killed = try run(sign, killedAt: "link:signal=KILL:when=1", in: scratch)
            #expect(killed.ending == .signal(SIGKILL), "\(killed)")
            #expect(!FileManager.default.fileExists(atPath: keyset))
            let signed = try run(sign, in: scratch)
            #expect(signed.ending == .exit(0), "\(signed)")
            let shown = try run(
                ["keys", "keyset", "show", keyset, "--authority", "\(folder)/authority.pub"], in: scratch)
            #expect(shown.ending == .exit(0), "\(shown)")
        }

        /// The fourth and fifth synchronizations, as for the commands on a key.
        @Test(arguments: [4, 5])
        func `a keyset whose installation is killed is in force once, after the next`(commit: Int) throws {
            let scratch = try Scratch()
            let folder = scratch.path("authority")
            let made = try run(
                ["keys", "authority", "init", "--directory", folder, "--name", "example.com/a"], in: scratch)
            #expect(made.ending == .exit(0), "\(made)")
            let gate = GateProcess(in: scratch)
            mkdir(gate.folder, 0o700)
            try FileManager.default.copyItem(
                atPath: "\(folder)/authority.pub", toPath: "\(gate.folder)/authority.pub")
            try gate.start()
            let keys = try run(["keys", "list", "--socket", gate.socket(), "--json"], in: scratch)
            try scratch.write("keys.json", keys.output)
            let origin = try String(contentsOfFile: "\(gate.folder)/origin", encoding: .utf8)
            let keyset = scratch.path("keyset")
            let signed = try run(
                [
                    "keys", "authority", "sign", "--directory", folder, "--gateway", origin, "--keys",
                    scratch.path("keys.json"), "--first", "--out", keyset,
                ], in: scratch)
            #expect(signed.ending == .exit(0), "\(signed)")
            let proposed = try run(
                ["keys", "keyset", "install", keyset, "--socket", gate.socket(of: "keys-team")], in: scratch)
            #expect(proposed.ending == .exit(0) && proposed.output.contains("is proposed"), "\(proposed)")
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            let install = ["keys", "keyset", "install", keyset, "--dev", gate.folder]
            let killed = try run(
                install, killedAt: "fdatasync:signal=KILL:when=\(commit)", in: scratch)
            #expect(killed.ending == .signal(SIGKILL), "\(killed)")
            let again = try run(install, in: scratch)
            #expect(again.ending == .exit(0) && again.output.contains("is in force"), "\(again)")
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: "\(gate.trail)/keyset"))
                    == Data(contentsOf: URL(fileURLWithPath: keyset)))
            let entries = try TrailText(gate.trail)
            for event in ["propose", "adopt"] {
                #expect(
                    entries.count(ofAll: [#""kind":"keyset""#, #""event":"\#(event)""#]) == 1, "\(event)")
            }
            let verified = try run(
                ["audit", "verify", gate.trail, "--key", "\(gate.trail)/trail.pub"], in: scratch)
            #expect(verified.ending == .exit(0), "\(verified)")
        }

        /// Each call on the file of a key whose destruction is committed.
        @Test func `a key whose destruction is killed is gone at the next command, its file with it`() throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            var events: [String: [String]] = [:]
            var doomed: [(key: String, call: String)] = []
            for (purpose, call) in [
                ("origin", "rename"), ("trail", "chmod"), ("data", "write"), ("link", "fsync"),
                ("root", "unlink"),
            ] {
                let ran = try run(
                    ["keys", "add", purpose, "--socket", gate.socket(of: "keys-team")], in: scratch)
                let key = String(try #require(ran.output.split(separator: " ").first))
                doomed.append((key, call))
                events[key] = ["add", "destroy"]
                let proposed = try run(
                    ["keys", "destroy", key, "--socket", gate.socket(of: "keys-team")], in: scratch)
                #expect(proposed.ending == .exit(0), "\(proposed)")
            }
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            for (key, call) in doomed {
                let file = "\(gate.folder)/keys/\(key).key"
                // The second caller is the one that a stopped gateway of a first hour has.
                let destroy = ["keys", "destroy", key, "--dev", gate.folder]
                let ran = try run(
                    destroy, killedAt: "\(call):signal=KILL:when=1", on: [file, file + ".doomed"], in: scratch
                )
                #expect(ran.ending == .signal(SIGKILL), "\(call): \(ran)")
                try expectDone(destroy, key, "destroyed", in: scratch)
                #expect(
                    try FileManager.default.contentsOfDirectory(atPath: "\(gate.folder)/keys").allSatisfy {
                        !$0.hasPrefix(key)
                    }, "\(call)")
            }
            _ = try expectWhole(gate, events: events, in: scratch)
        }
    }
}
