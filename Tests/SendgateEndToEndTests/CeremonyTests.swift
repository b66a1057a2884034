import Foundation
import Testing

extension EndToEnd {
    /// The pages about keys, followed word by word: every command of theirs is run as it stands.
    @Suite struct CeremonyTests {
        /// The indented commands under a heading of `Keys/README.md`, in order.
        private static func commands(under heading: String) throws -> [String] {
            let page = try String(contentsOfFile: "\(Machine.repository)/Keys/README.md", encoding: .utf8)
            let section = try #require(page.components(separatedBy: "\n## ").first { $0.hasPrefix(heading) })
            var commands: [String] = []
            for line in section.split(separator: "\n", omittingEmptySubsequences: false) {
                guard line.hasPrefix("    "), !line.trimmingCharacters(in: .whitespaces).isEmpty else {
                    continue
                }
                let text = line.trimmingCharacters(in: .whitespaces)
                if let last = commands.last, last.hasSuffix("\\") {
                    commands[commands.count - 1] = last.dropLast() + text
                } else if ["sendgate ", "mv ", "mkdir ", "cp ", "chmod "].contains(where: text.hasPrefix) {
                    commands.append(text)
                }
            }
            return commands
        }

        /// Runs the commands in one shell, where the page's places are those of the test.
        private static func run(
            _ commands: [String], places: [(String, String)], in scratch: Scratch
        ) throws -> Finished {
            let script = commands.map { command in
                places.reduce(command) { $0.replacing($1.0, with: $1.1) }
            }.joined(separator: "\n")
            #expect(!script.contains("/media") && !script.contains("/run/"), "\(script)")
            return try Finished.run(
                ["/bin/sh", "-euc", "sendgate() { \(Machine.sendgate) \"$@\"; }\n" + script], in: scratch,
                within: 60)
        }

        @Test func `the ceremony of the keys leaves what it says, and nothing of it is open to others`()
            throws
        {
            let scratch = try Scratch()
            let commands = try Self.commands(under: "The ceremony")
            #expect(commands.count >= 6, "\(commands)")
            try scratch.write("keyring.yaml", "keys: []\n")
            mkdir(scratch.path("vault"), 0o700)
            let finished = try Self.run(
                commands,
                places: [
                    ("/media/vault", scratch.path("vault")), ("/media/roles", scratch.path("roles")),
                    ("/media/root", scratch.path("root")),
                    ("Keys/keyring.yaml", scratch.path("keyring.yaml")),
                ], in: scratch)
            #expect(finished.ending == .exit(0), "\(finished.output)\(finished.errors)")
            // What is left is what a gateway is given: no root, no policy, no authority key.
            let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path("vault/keys"))
                .sorted()
            #expect(left.map { $0.prefix { $0 != "-" } } == ["data", "index", "link", "origin", "trail"])
            let keyring = try String(contentsOfFile: scratch.path("keyring.yaml"), encoding: .utf8)
            let purposes = keyring.split(separator: "\n").filter { $0.hasPrefix("    purpose: ") }
            #expect(purposes.count == 9 && purposes.count { $0.hasSuffix("policy") } == 3, "\(keyring)")
            let roles = ["compliance", "security", "legal"].map { "roles/\($0)" }
            for folder in ["vault/keys", "root"] + roles {
                for file in try FileManager.default.contentsOfDirectory(atPath: scratch.path(folder)) {
                    let attributes = try FileManager.default.attributesOfItem(
                        atPath: scratch.path("\(folder)/\(file)"))
                    #expect(attributes[.posixPermissions] as? Int == 0o400, "\(folder)/\(file)")
                }
            }
        }

        @Test func `the authority's ceremony and a rotation after it, and the authority alone is pinned`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            let places = { (origin: String) in
                [
                    ("/media/authority", scratch.path("authority")), ("/media/stick", scratch.path("stick")),
                    ("/run/sendgate/keys-team.sock", gate.socket(of: "keys-team")),
                    ("/run/sendgate/keys-witness.sock", gate.socket(of: "keys-witness")),
                    ("gate.example.com/prod", origin), ("/var/lib/sendgate/trail", gate.trail),
                ]
            }
            try FileManager.default.createDirectory(
                atPath: scratch.path("stick"), withIntermediateDirectories: true)
            let making = try Self.commands(under: "The authority")
            let rotating = try Self.commands(under: "Rotating what the authority lists")
            #expect(making.count >= 5 && rotating.count >= 6, "\(making) \(rotating)")

            // The key first: a gateway pins it before it starts.
            let made = try Self.run([making[0]], places: places(""), in: scratch)
            #expect(made.ending == .exit(0), "\(made)")
            let pinned = try String(contentsOfFile: scratch.path("authority/authority.pub"), encoding: .utf8)
            #expect(made.output == pinned)
            mkdir(gate.folder, 0o700)
            try pinned.write(toFile: "\(gate.folder)/authority.pub", atomically: true, encoding: .utf8)
            try gate.start()
            try gate.registerSomebody()
            let origin = try String(contentsOfFile: "\(gate.folder)/origin", encoding: .utf8)

            let signed = try Self.run(Array(making[1...]), places: places(origin), in: scratch)
            #expect(signed.ending == .exit(0), "\(signed.output)\(signed.errors)")
            let first = try Data(contentsOf: URL(fileURLWithPath: scratch.path("stick/keyset-1")))
            #expect(try gate.connect().request("GET", "/v1/keyset").text.utf8.elementsEqual(first))

            let rotated = try Self.run(rotating, places: places(origin), in: scratch)
            #expect(rotated.ending == .exit(0), "\(rotated.output)\(rotated.errors)")
            #expect(try gate.connect().request("POST", "/v1/sends", Sample.login("after")).status == 202)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            // An auditor who was given the authority's key before any of this.
            let verify = [
                Machine.sendgate, "audit", "verify", gate.trail, "--authority",
                pinned.trimmingCharacters(in: .newlines),
            ]
            let verified = try Finished.run(
                verify + ["--since-keyset", scratch.path("stick/keyset-1")], in: scratch, within: 60)
            #expect(verified.ending == .exit(0), "\(verified.output)\(verified.errors)")
            #expect(verified.output.contains("keyset version 2"), "\(verified.output)")
            // The list from before the rotation does not have the trail key that signs now.
            let before = try Finished.run(
                verify + ["--keyset", scratch.path("stick/keyset-1")], in: scratch, within: 60)
            #expect(before.ending == .exit(3), "\(before.output)\(before.errors)")
            // Nor is the old list taken by who knows the new one.
            let back = try Finished.run(
                verify + [
                    "--keyset", scratch.path("stick/keyset-1"), "--since-keyset",
                    scratch.path("stick/keyset-2"),
                ], in: scratch, within: 60)
            #expect(back.ending == .exit(3) && back.errors.contains("only rise"), "\(back)")
        }

        /// An attacker has copied the trail's key from the gateway, and can write in the trail.
        @Test func `a stolen trail key blesses nothing`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            func sendgate(_ arguments: String...) throws -> Finished {
                try Finished.run([Machine.sendgate] + arguments, in: scratch, within: 60)
            }
            let authority = scratch.path("authority")
            #expect(
                try sendgate("keys", "authority", "init", "--directory", authority, "--name", "example.com/a")
                    .ending == .exit(0))
            mkdir(gate.folder, 0o700)
            try FileManager.default.copyItem(
                atPath: "\(authority)/authority.pub", toPath: "\(gate.folder)/authority.pub")
            try gate.start()
            try gate.registerSomebody()
            let origin = try String(contentsOfFile: "\(gate.folder)/origin", encoding: .utf8)
            let keys = try sendgate("keys", "list", "--socket", gate.socket(), "--json")
            try scratch.write("keys.json", keys.output)
            // The thief's own authority, under the same name, signs what the thief likes.
            #expect(
                try sendgate(
                    "keys", "authority", "init", "--directory", scratch.path("thief"), "--name",
                    "example.com/a"
                ).ending == .exit(0))
            let forged = scratch.path("forged")
            #expect(
                try sendgate(
                    "keys", "authority", "sign", "--directory", scratch.path("thief"), "--gateway", origin,
                    "--keys", scratch.path("keys.json"), "--first", "--out", forged
                ).ending == .exit(0))
            for caller in ["keys-team", "keys-witness"] {
                let put = try sendgate(
                    "keys", "keyset", "install", forged, "--socket", gate.socket(of: caller))
                #expect(
                    put.ending == .exit(1) && put.errors.contains("not signed by the authority"), "\(put)")
            }
            #expect(try gate.connect().request("GET", "/v1/keyset").status == 404)
            #expect(try gate.stop() == .exit(0))
            // Put beside the checkpoint by hand, it convinces no auditor who pins the authority.
            try FileManager.default.copyItem(atPath: forged, toPath: "\(gate.trail)/keyset")
            let verified = try sendgate(
                "audit", "verify", gate.trail, "--authority", "\(authority)/authority.pub")
            #expect(verified.ending == .exit(3) && verified.errors.contains("not signed"), "\(verified)")
            // A list of keys with one changed is not signed at all.
            let changed = keys.output.replacing("\"public_key\":\"", with: "\"public_key\":\"00")
            try scratch.write("changed.json", changed)
            let refused = try sendgate(
                "keys", "authority", "sign", "--directory", authority, "--gateway", origin,
                "--keys", scratch.path("changed.json"), "--first", "--out", scratch.path("never"))
            #expect(refused.ending == .exit(1) && refused.errors.contains("not the id of its public key"))
            #expect(!FileManager.default.fileExists(atPath: scratch.path("never")))
        }
    }
}
