import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// What a gateway refuses to start with, and what it gets over.
    @Suite struct StartTests {
        @Test func `a second gateway on the same state directory is refused and the first goes on`() throws {
            let scratch = try Scratch()
            let first = GateProcess(in: scratch)
            try first.start()
            try first.registerSomebody()
            let second = try Finished.run(
                [Machine.sendgate, "serve", "--dev", first.folder, "--policies", Machine.policies],
                in: scratch,
                within: 60)
            #expect(second.ending == .exit(1))
            #expect(second.errors.contains("sendgate: error:") && second.errors.contains("sendgate: hint:"))
            #expect(second.errors.contains("a gateway runs here already"), "\(second.errors)")
            #expect(second.errors.contains("in use by process \(first.processID)"), "\(second.errors)")
            #expect(try first.stillAnswers("still-here"))
        }

        /// The first to notice would be the port of the pages, whose error is a number of the kernel's.
        @Test func `a second start says that a gateway runs, before it takes a port`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let path = try production.write(
                production.template + "public_listen: \(scratch.path("pages.sock"))\n")
            let first = GateProcess(in: scratch, configuration: path)
            try first.start()
            let second = try Finished.run(
                [Machine.sendgate, "serve", "--config", path], in: scratch, within: 60)
            #expect(second.ending == .exit(1))
            #expect(second.errors.contains("a gateway runs here already"), "\(second.errors)")
            #expect(second.errors.contains("process \(first.processID)"), "\(second.errors)")
            #expect(try first.stop() == .exit(0))
        }

        /// The new program here is the old one: what counts is that a start finds the proof.
        @Test func `a proof that is kept beside a running gateway is found by the next start`() throws {
            let scratch = try Scratch()
            let policies = scratch.path("policies")
            try FileManager.default.copyItem(atPath: Machine.policies, toPath: policies)
            let gate = GateProcess(in: scratch, policies: policies, ["--log-level", "info"])
            try gate.start()
            #expect(gate.errors.contains("the bundle is proved"), "\(gate.errors)")
            // The next version of the bundle, reviewed and not in force yet.
            let page = "\(policies)/types/promo.offer.yaml"
            let good = try String(contentsOfFile: page, encoding: .utf8)
            let changed = good.replacing("hours: 12", with: "hours: 11")
            try #require(changed != good)
            try changed.write(toFile: page, atomically: true, encoding: .utf8)
            let proved = try Finished.run(
                [Machine.sendgate, "policy", "prove", policies, "--keep", "\(gate.folder)/state"],
                in: scratch, within: 120)
            #expect(proved.ending == .exit(0), "\(proved)")
            #expect(proved.output.contains("kept in") && proved.output.contains("build "), "\(proved)")
            #expect(try gate.stop() == .exit(0))
            try gate.start()
            #expect(!gate.errors.contains("the bundle is proved"), "\(gate.errors)")
            #expect(try gate.stop() == .exit(0))
        }

        @Test func `a socket that a killed gateway left is replaced, one that answers is not`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            gate.kill()
            #expect(FileManager.default.fileExists(atPath: gate.socket(of: "marketing")))
            try gate.start()
            #expect(try gate.connect(as: "marketing").request("GET", "/healthz").status == 200)
            try gate.stop()

            // Another service has taken the path.
            let foreign = try ListeningSocket(gate.socket(of: "marketing"))
            let refused = try gate.startExpectingEnd()
            #expect(refused == .exit(1))
            #expect(gate.errors.contains("marketing.sock"), "\(gate.errors)")
            #expect(try foreign.isThere())
            foreign.remove()

            // And a file that is no socket is never removed.
            try Data("precious".utf8).write(to: URL(fileURLWithPath: gate.socket(of: "marketing")))
            #expect(try gate.startExpectingEnd() == .exit(1))
            let kept = try String(contentsOfFile: gate.socket(of: "marketing"), encoding: .utf8)
            #expect(kept == "precious")
        }

        /// A name, what is changed in a good configuration, and what the message must say.
        static let badConfigurations: [(name: String, from: String, to: String, says: [String])] = [
            ("a typo", "listeners:", "lisseners:", ["config.yaml:9", "`listeners`"]),
            ("a typo inside", "unix:", "unixx:", ["config.yaml:7", "`unix`"]),
            ("a setting twice", "state:", "trail: /elsewhere\nstate:", ["config.yaml:3"]),
            ("a mode that is none", "mode: \"0666\"", "mode: \"0888\"", ["config.yaml:12", "`0888`"]),
            ("root as a caller", "users: [PRODUCER]", "users: [0]", ["uid 0"]),
            ("root's group as a caller", "groups: [4300]", "groups: [0]", ["config.yaml", "gid 0"]),
            ("everybody as a caller", "users: [PRODUCER]", "users: [65534]", ["65534"]),
            (
                "one user as two callers", "callers:",
                "callers:\n  marketing:\n    users: [PRODUCER]", ["marketing", "payments"]
            ),
            ("a caller nobody can be", "users: [PRODUCER]", "users: []", ["payments"]),
            (
                "a bound listener for nobody", "mode: \"0666\"", "mode: \"0666\"\n    caller: payments",
                ["payments"]
            ),
            ("an abstract socket", "path: ", "path: \"@\"\n  - path: ", ["@"]),
            (
                "a user that is not there", "users: [PRODUCER]", "users: [nosuchuser]",
                ["config.yaml", "nosuchuser"]
            ),
            ("throwaway keys", "keys: KEYS", "keys: DEVKEYS", ["dev"]),
            ("no keys", "keys: KEYS", "keys: /nonexistent", ["/nonexistent"]),
            ("no hop", "users: [LAYER]", "users: []", ["hop.users"]),
            ("the unsigned starter", "POLICIES", Machine.policies, ["compliance.sig", "the starter bundle"]),
            ("a role without a key", "  legal:", "  leagal:", ["`legal`", "policy_signing.legal"]),
        ]

        @Test func `a configuration that cannot be right is refused with its place and what to do`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let dev = GateProcess(in: scratch, folder: "dev")
            try dev.start()
            try dev.stop()
            for (name, from, to, says) in Self.badConfigurations {
                let text = production.template.replacing(from, with: to)
                #expect(text != production.template, "\(name): the template has no `\(from)`")
                let path = try production.write(text.replacing("DEVKEYS", with: "\(dev.folder)/keys"))
                let finished = try step(name) {
                    try Finished.run([Machine.sendgate, "serve", "--config", path], in: scratch, within: 20)
                }
                #expect(finished.ending == .exit(1), "\(name): \(finished)")
                #expect(finished.errors.contains("sendgate: error: "), "\(name): \(finished.errors)")
                for word in says { #expect(finished.errors.contains(word), "\(name): \(finished.errors)") }
            }
            // The template itself is good.
            let gate = GateProcess(in: scratch, configuration: try production.write(production.template))
            try gate.start()
            #expect(try gate.stop() == .exit(0))
        }

        @Test func `a unit without its credential does not start, and says what is missing`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let path = try production.write("root_key: root\n" + production.template)
            func start(_ environment: [String: String]) throws -> String {
                let finished = try Finished.run(
                    [Machine.sendgate, "serve", "--config", path], environment: environment, in: scratch,
                    within: 20)
                #expect(finished.ending == .exit(1), "\(finished)")
                #expect(!FileManager.default.fileExists(atPath: scratch.path("state/gate.db")))
                return finished.errors
            }
            // No line `LoadCredential=` at all, another one, and a folder that is not there.
            let none = try start([:])
            #expect(
                none.contains("config.yaml:1:1: ") && none.contains("`LoadCredential=root:/path`"), "\(none)")
            let credentials = scratch.path("credentials")
            try FileManager.default.createDirectory(
                atPath: credentials, withIntermediateDirectories: false)
            for folder in [credentials, scratch.path("nowhere")] {
                let other = try start(["CREDENTIALS_DIRECTORY": folder])
                #expect(other.contains("`\(folder)/root`"), "\(other)")
            }
        }

        @Test func `a start says in its log what the pages lack, and one that lacks nothing does not`() throws
        {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let pages = scratch.path("pages.sock")
            let listen = "public_listen: \(pages)\n"
            let settings = "https://example.com/settings"
            let starts: [(more: String, warning: String?)] = [
                ("", "`public_listen` is not set"), (listen, "`preferences_url` is not"),
                ("\(listen)preferences_url: \(settings)\n", nil),
            ]
            // Each start adds to one log.
            var lineCount = 0
            for (more, warning) in starts {
                let configuration = try production.write(production.template + more)
                let gate = GateProcess(in: scratch, configuration: configuration)
                try gate.start()
                #expect(gate.ready?.pages == (more.isEmpty ? nil : pages))
                if !more.isEmpty {
                    let page = try Production.curl(pages, as: [], "/u/x", in: scratch)
                    #expect(page.status == 404 && page.body.contains(settings) == (warning == nil), "\(page)")
                }
                #expect(try gate.stop() == .exit(0))
                let lines = gate.errors.split(separator: "\n")
                let said = lines.dropFirst(lineCount).filter { $0.contains("public_listen") }
                lineCount = lines.count
                #expect(said.count == (warning == nil ? 0 : 1), "\(gate.errors)")
                if let warning {
                    #expect(said.first?.contains(" level=warning msg=") == true, "\(gate.errors)")
                    #expect(said.first?.contains(warning) == true, "\(gate.errors)")
                }
                #expect(!FileManager.default.fileExists(atPath: pages))
            }
        }

        @Test func `a bundle that does not parse on SIGHUP leaves the old one in force`() throws {
            let scratch = try Scratch()
            let policies = scratch.path("policies")
            try FileManager.default.copyItem(atPath: Machine.policies, toPath: policies)
            let gate = GateProcess(in: scratch, policies: policies)
            try gate.start()
            try gate.registerSomebody()
            let old = try #require(gate.ready?.policy)
            func inForce() throws -> String? { try gate.connect().request("GET", "/v1/types")["policy"] }

            let page = "\(policies)/types/promo.offer.yaml"
            let good = try String(contentsOfFile: page, encoding: .utf8)
            try "\(good)catgory: marketing\n".write(toFile: page, atomically: true, encoding: .utf8)
            gate.signal(SIGHUP)
            let refused = try Self.answer(of: gate, "/readyz") { $0.text.contains("promo.offer.yaml") }
            #expect(refused.status == 200, "a refused bundle does not stop the gateway: \(refused)")
            #expect(try inForce() == old)
            #expect(try gate.stillAnswers("under-the-old"))

            // Repaired and changed, it comes into force.
            let changed = good.replacing("hours: 12", with: "hours: 11")
            try #require(changed != good)
            try changed.write(toFile: page, atomically: true, encoding: .utf8)
            gate.signal(SIGHUP)
            _ = try Self.answer(of: gate, "/v1/types") { $0["policy"] != old }
            #expect(try gate.stillAnswers("under-the-new"))
            #expect(try gate.stop() == .exit(0))
            // Both are archived: the trail replays across the change.
            try expectVerifies(gate, in: scratch)
            let entries = try TrailText(gate.trail)
            #expect(entries.count(of: #""kind":"policy_refused""#) == 1)
            #expect(entries.count(of: #""kind":"policy","#) == 1)
        }

        /// Every page reads well and has no flaw; only that a switch of the social category would no longer count.
        @Test func `a bundle that only the proof refutes neither replaces one on SIGHUP nor starts`()
            throws
        {
            let scratch = try Scratch()
            let policies = scratch.path("policies")
            try FileManager.default.copyItem(atPath: Machine.policies, toPath: policies)
            let gate = GateProcess(in: scratch, policies: policies)
            try gate.start()
            try gate.registerSomebody()
            let old = try #require(gate.ready?.policy)

            let page = "\(policies)/categories.yaml"
            let good = try String(contentsOfFile: page, encoding: .utf8)
            let rest = "\n  because: >-\n    A push inside the app"
            let changed = good.replacing(
                "switch_off: anyone\(rest)", with: "switch_off: step_up\(rest)")
            try #require(changed != good)
            try changed.write(toFile: page, atomically: true, encoding: .utf8)
            let says = "breaks the statute that nothing goes out past a switch its recipient turned off"
            gate.signal(SIGHUP)
            _ = try Self.answer(of: gate, "/readyz") { $0.text.contains(says) }
            #expect(try gate.connect().request("GET", "/v1/types")["policy"] == old)
            #expect(try gate.stillAnswers("under-the-old"))
            #expect(try gate.stop() == .exit(0))

            // The proof that was kept is of the other one.
            #expect(try gate.startExpectingEnd() == .exit(1))
            #expect(gate.errors.contains(says), "\(gate.errors)")
            let proved = try Finished.run(
                [Machine.sendgate, "policy", "prove", policies], in: scratch, within: 60)
            #expect(proved.ending == .exit(3), "\(proved)")
            #expect(proved.errors.contains(says), "\(proved.errors)")
        }

        @Test func `a policy key in the gateway's key directory stops a start`() throws {
            let scratch = try Scratch()
            let production = try Production(in: scratch)
            let theirs = scratch.path("keys-of-legal")
            let name = try #require(
                try FileManager.default.contentsOfDirectory(atPath: theirs).first {
                    $0.hasPrefix("policy-")
                })
            try FileManager.default.copyItem(
                atPath: "\(theirs)/\(name)", toPath: "\(scratch.path("keys"))/\(name)")
            let gate = GateProcess(
                in: scratch, configuration: try production.write(production.template))
            #expect(try gate.startExpectingEnd() == .exit(1))
            #expect(gate.errors.contains(name.dropLast(".key".count)), "\(gate.errors)")
            #expect(gate.errors.contains("policy key"), "\(gate.errors)")
        }

        /// Asks until the answer is what was waited for.
        private static func answer(
            of gate: GateProcess, _ target: String, when isThere: (Reply) -> Bool
        ) throws -> Reply {
            let deadline = Deadline(seconds: 30)
            var reply = try gate.connect().request("GET", target)
            while !isThere(reply) {
                guard !deadline.isPast else { throw HarnessError("\(target) still says \(reply)") }
                reply = try gate.connect().request("GET", target)
            }
            return reply
        }
    }
}

/// A production configuration with everything it needs, of which tests change one thing.
struct Production {
    /// Runs a command as the user that is `payments`.
    static let asProducer = asUser(producerID)
    static let producerID: UInt32 = 4242

    static func asUser(_ user: UInt32, group: UInt32? = nil) -> [String] {
        ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(group ?? user)", "--clear-groups", "--"]
    }

    let template: String
    let socket: String
    private let scratch: Scratch
    private let keys: String
    private let layerSocket: String
    /// A copy of the repository's, signed by every role.
    private let policies: String

    init(in scratch: Scratch, listener: String? = nil) throws {
        try Machine.requireRoot("to become other users")
        self.scratch = scratch
        keys = scratch.path("keys")
        layerSocket = scratch.path("delivery.sock")
        socket = scratch.path("run/gate.sock")
        policies = scratch.path("signed")
        try FileManager.default.copyItem(atPath: Machine.policies, toPath: policies)
        let approval = try Self.approval.get()
        for (path, file) in approval.files {
            mkdir(scratch.path((path as NSString).deletingLastPathComponent), 0o700)
            try scratch.write(path, file.text, mode: file.mode)
        }
        let made = try Finished.run(
            [Machine.sendgate, "keys", "init", "--directory", keys], in: scratch, within: 60)
        guard made.ending == .exit(0) else { throw HarnessError("no keys: \(made.errors)") }
        template = """
            state: STATE
            trail: TRAIL
            policies: POLICIES
            keys: KEYS
            origin: gate.example/test
            hop:
              unix: LAYERSOCKET
              users: [LAYER]
            listeners:
            \(listener ?? "  - path: SOCKET\n    directory_mode: \"0711\"\n    mode: \"0666\"")
            callers:
              payments:
                users: [PRODUCER]
              product:
                groups: [4300]
            unsubscribe_url: https://example.com/u/
            policy_signing:
            \(approval.pins)

            """
    }

    /// The repository's bundle as every role signed it, with the keys.
    private struct Approval {
        /// The lines of a configuration that pin the keys.
        var pins: String
        /// The signatures and the keys, by their paths in a test's folder.
        var files: [String: (text: String, mode: mode_t)]
    }

    /// Made once: the command proves the bundle before each signature.
    private static let approval = Result {
        let scratch = try Scratch()
        let policies = scratch.path("signed")
        try FileManager.default.copyItem(atPath: Machine.policies, toPath: policies)
        let pins = try sign(policies, in: scratch)
        let paths = try FileTree.files(in: scratch.folder).filter {
            $0.hasPrefix("keys-of-") || $0.hasSuffix(".sig")
        }
        var approval = Approval(pins: pins, files: [:])
        for path in paths {
            var status = stat()
            try #require(stat(scratch.path(path), &status) == 0)
            let text = try String(contentsOfFile: scratch.path(path), encoding: .utf8)
            approval.files[path] = (text, status.st_mode & 0o777)
        }
        return approval
    }

    /// Has each role sign a bundle with a key of its own.
    ///
    /// - Returns: The lines that pin the keys.
    private static func sign(_ policies: String, in scratch: Scratch) throws -> String {
        struct Signed: Decodable { var signedBy: String }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try ["compliance", "security", "legal"].map { role in
            let keys = scratch.path("keys-of-\(role)")
            let made = try Finished.run(
                [Machine.sendgate, "keys", "init", "--only", "policy", "--directory", keys], in: scratch,
                within: 60)
            let key = try FileManager.default.contentsOfDirectory(atPath: keys).first {
                $0.hasPrefix("policy-")
            }
            guard made.ending == .exit(0), let key else { throw HarnessError("no keys: \(made.errors)") }
            let signed = try Finished.run(
                [
                    Machine.sendgate, "policy", "sign", policies, "--role", role, "--key", "\(keys)/\(key)",
                    "--json",
                ], in: scratch, within: 120)
            guard signed.ending == .exit(0) else { throw HarnessError("not signed: \(signed.errors)") }
            let name = try decoder.decode(Signed.self, from: Data(signed.output.utf8)).signedBy
            return "  \(role): [\"\(name)\"]"
        }.joined(separator: "\n")
    }

    /// - Returns: The path of the file.
    func write(_ text: String) throws -> String {
        var text = text
        for (word, value) in [
            ("STATE", scratch.path("state")), ("TRAIL", scratch.path("trail")),
            ("POLICIES", policies),
            ("KEYS", keys), ("LAYERSOCKET", layerSocket), ("LAYER", "\(geteuid())"), ("SOCKET", socket),
            ("PRODUCER", "\(Self.producerID)"),
        ] {
            text = text.replacing(word, with: value)
        }
        return try scratch.write("config.yaml", text)
    }

    /// What curl gets as a user.
    static func curl(
        _ socket: String, as user: [String], _ target: String, _ more: [String] = [], in scratch: Scratch
    ) throws -> (status: Int, body: String) {
        let finished = try Finished.run(
            user + [
                "/usr/bin/curl", "--silent", "--max-time", "30", "--unix-socket", socket, "--write-out",
                "\n%{http_code}", "http://localhost\(target)",
            ] + more, in: scratch, within: 60)
        let lines = finished.output.split(separator: "\n", omittingEmptySubsequences: false)
        guard let status = lines.last.flatMap({ Int($0) }) else {
            throw HarnessError("curl said nothing: \(finished.ending) \(finished.errors)")
        }
        return (status, lines.dropLast().joined(separator: "\n"))
    }
}

/// The entries of a trail as texts, for tests that look for one.
struct TrailText {
    private let entries: [String]

    init(_ trail: String) throws {
        let folder = "\(trail)/tile/entries"
        var newest: [String: (width: Int, data: [UInt8])] = [:]
        for name in try FileTree.files(in: folder) {
            let parts = name.components(separatedBy: ".p/")
            let width = try #require(parts.count > 1 ? Int(parts[1]) : 256)
            // Smaller partial bundles may still lie beside larger ones.
            guard width > newest[parts[0]]?.width ?? 0 else { continue }
            newest[parts[0]] = (width, Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)"))))
        }
        entries = newest.sorted { $0.key < $1.key }.flatMap { Self.entries(of: $0.value.data) }
    }

    /// A bundle holds two bytes of length, highest first, before each entry (C2SP tlog-tiles).
    private static func entries(of bundle: [UInt8]) -> [String] {
        var entries: [String] = []
        var rest = bundle[...]
        while rest.count > 2 {
            let length = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
            entries.append(String(decoding: rest.prefix(length), as: UTF8.self))
            rest = rest.dropFirst(length)
        }
        return entries
    }

    /// Entries in which every one of the texts stands.
    func count(ofAll texts: [String]) -> Int {
        entries.count { entry in texts.allSatisfy { entry.contains($0) } }
    }

    func count(of part: String) -> Int {
        entries.reduce(0) { $0 + $1.components(separatedBy: part).count - 1 }
    }

    func count(kind: String, caller: String) -> Int {
        entries.count {
            $0.contains(#""kind":"\#(kind)""#) && $0.contains(#""caller":"\#(caller)""#)
        }
    }
}

/// Another service on a path.
final class ListeningSocket {
    private let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        unlink(path)
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, listen(descriptor, 8) == 0 else {
            throw HarnessError("cannot listen on `\(path)`")
        }
    }

    deinit { close(descriptor) }

    /// Whether connecting still leads here.
    func isThere() throws -> Bool {
        let connection = try RawConnection(path)
        defer { connection.close() }
        return try Deadline(seconds: 5).wait(for: descriptor, POLLIN)
    }

    func remove() { unlink(path) }
}
