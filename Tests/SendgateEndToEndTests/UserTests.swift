import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// Who may speak as whom. Other users can be had by root only.
    @Suite struct UserTests {
        @Test func `a dev socket serves the users it allows and counts the others`() throws {
            try Machine.requireRoot("to become other users")
            let scratch = try Scratch(isShared: true)
            let gate = GateProcess(in: scratch, ["--dev-allow-uid", "4242"])
            try gate.start()
            try gate.registerSomebody()
            let socket = gate.socket(of: "security")
            let send = ["--json", Sample.login("from-another-user")]
            let allowed = try Production.curl(
                socket, as: Production.asUser(4242), "/v1/sends", send, in: scratch)
            #expect(allowed.status == 202, "\(allowed)")
            // A caller's socket gives a caller's grants, whatever user is allowed on it.
            let reading = try Production.curl(
                gate.socket(of: "marketing"), as: Production.asUser(4242), "/v1/recipients/u_1", in: scratch)
            #expect(reading.status == 403 && reading.body.contains("grant_missing"), "\(reading)")
            // The socket where everything is allowed is not theirs.
            let everything = try Production.curl(
                gate.socket(), as: Production.asUser(4242), "/v1/types", in: scratch)
            #expect(everything.status == 0, "\(everything)")
            for _ in 0..<3 {
                let unknown = try Production.curl(
                    socket, as: Production.asUser(4343), "/v1/sends", send, in: scratch)
                #expect(unknown.status == 401 && unknown.body.contains("unknown_peer"), "\(unknown)")
            }
            // A user that cannot be named in this user namespace is no caller.
            let nobody = try Production.curl(
                socket, as: Production.asUser(65534), "/v1/types", in: scratch)
            #expect(nobody.status == 401, "\(nobody)")
            try gate.stop()
            let entries = try TrailText(gate.trail)
            // The first of a minute at once, the others of it before the stop.
            #expect(entries.count(of: #""kind":"unknown_peer""#) == 3)
            #expect(entries.count(of: #""uid":4343"#) == 2)
            // The kernel's word is in the entry of the send that was allowed.
            #expect(entries.count(of: #""uid":4242"#) == 1)
        }

        @Test func `users and groups of a configuration are its callers and root is nobody`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let gate = GateProcess(in: scratch, configuration: try production.write(production.template))
            try gate.start()
            let producer = try Production.curl(
                production.socket, as: Production.asProducer, "/v1/types/transaction.failed", in: scratch)
            #expect(producer.status == 200 && producer.body.contains(#""permitted":true"#), "\(producer)")
            let send = try Production.curl(
                production.socket, as: Production.asProducer, "/v1/sends",
                ["--json", Sample.remittance("p1")],
                in: scratch)
            #expect(send.status == 403 && send.body.contains("unknown_recipient"), "\(send)")
            let root = try Production.curl(production.socket, as: [], "/v1/types", in: scratch)
            #expect(root.status == 401, "\(root)")
            // Nor by a caller's group, which root can take at will.
            let put = ["--request", "PUT", "--json", Sample.recipient]
            for groups in [["--regid=4300", "--clear-groups"], ["--regid=0", "--groups=4300"]] {
                let asRoot = ["/usr/bin/setpriv", "--reuid=0"] + groups + ["--"]
                let member = try Production.curl(
                    production.socket, as: asRoot, "/v1/recipients/u_1", put, in: scratch)
                #expect(member.status == 401, "\(member)")
            }
            // By its group, a user is the app's backend.
            let backend = try Production.curl(
                production.socket, as: Production.asUser(4244, group: 4300), "/v1/recipients/u_1", put,
                in: scratch)
            #expect(backend.status == 200, "\(backend)")
            // Probes are open to every user.
            #expect(try Production.curl(production.socket, as: [], "/healthz", in: scratch).status == 200)
            #expect(try gate.stop() == .exit(0))
        }

        /// A user of the handbook's example.
        private static func user(_ user: UInt32, group: UInt32? = nil, in groups: [UInt32] = []) -> [String] {
            let groups =
                groups.isEmpty
                ? "--clear-groups" : "--groups=\(groups.map { "\($0)" }.joined(separator: ","))"
            return ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(group ?? user)", groups, "--"]
        }

        /// The page's configuration and its commands as they stand, below a folder of the test's own and with keys that are there.
        @Test func `the handbook's configuration serves the users that it names, and shuts out the others`()
            throws
        {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch)
            let page = try String(
                contentsOfFile: "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Configuration.md",
                encoding: .utf8)
            func block(_ language: String) throws -> String {
                let parts = page.components(separatedBy: "```\(language)\n")
                try #require(parts.count == 2, "the page has one block of \(language)")
                return try #require(parts[1].components(separatedBy: "```").first)
            }
            func placed(_ text: String) -> String {
                text.replacing("/etc/sendgate/policies", with: scratch.path("signed"))
                    .replacing("/etc/sendgate", with: scratch.path("etc"))
                    .replacing("/var/lib", with: scratch.path("lib")).replacing(
                        "/run", with: scratch.path("run")
                    )
                    .replacing("\"127.0.0.1:8080\"", with: scratch.path("pages/pages.sock"))
            }
            // What a machine has before: the directories that others make, and the keys.
            let gateway = Self.user(1000, in: [1000, 1010, 1004])
            let prepared = try Finished.run(
                [
                    "/bin/sh", "-ec",
                    """
                    cd \(scratch.folder)
                    mkdir -m 0755 lib run run/credentials run/credentials/sendgate.service
                    install -d -m 0711 -o 1000 -g 1000 etc pages
                    \(placed(try block("sh")))
                    \(gateway.joined(separator: " ")) \(Machine.sendgate) keys init --directory etc/keys >/dev/null
                    mv etc/keys/root-*.key run/credentials/sendgate.service/root
                    """,
                ], in: scratch, within: 60)
            try #require(prepared.ending == .exit(0), "\(prepared)")
            let example = placed(try block("yaml"))
            let lines = try #require(production.template.components(separatedBy: "policy_signing:\n").last)
            let signing = try #require(example.firstRange(of: #/policy_signing:\n(  .*\n)+/#))
            let configuration = try scratch.write(
                "gate.yaml", example.replacingCharacters(in: signing, with: "policy_signing:\n" + lines),
                mode: 0o644)

            let gate = GateProcess(in: scratch, configuration: configuration)
            let security = scratch.path("security.sock")
            try gate.start(
                wrapper: [Machine.python, Machine.peer("activate.py"), "security=\(security)", "--"] + gateway
            )
            let (callers, marketing) = (
                scratch.path("run/sendgate/callers/gate.sock"),
                scratch.path("run/sendgate/marketing/gate.sock")
            )
            func status(_ socket: String, _ user: [String], _ target: String, _ more: [String] = []) throws
                -> Int
            {
                try Production.curl(socket, as: user, target, more, in: scratch).status
            }
            // Given producers in the group of the socket, when one sends, then it is decided and recorded.
            let send = try Production.curl(
                callers, as: Self.user(1001, in: [1010]), "/v1/sends", ["--json", Sample.remittance("p1")],
                in: scratch)
            #expect(send.status == 403 && send.body.contains("unknown_recipient"), "\(send)")
            #expect(try status(callers, Self.user(1007, in: [1010]), "/metrics") == 200)
            #expect(try status(marketing, Self.user(1004), "/v1/types/promo.offer") == 200)
            #expect(try status(marketing, Self.user(1005, group: 1004), "/v1/types/promo.offer") == 200)
            #expect(try status(security, Self.user(1006), "/v1/types/security.new_login") == 200)
            let auditor = Self.user(1008, group: 1011, in: [1010])
            #expect(try status(callers, auditor, "/metrics") == 200)
            #expect(try status(callers, auditor, "/v1/sends", ["--json", Sample.remittance("a1")]) == 403)
            // Whoever is not in the group of a socket does not reach it, and in it is still nobody without a binding.
            for stranger in [Self.user(1999), Self.user(1004)] {
                #expect(try status(callers, stranger, "/healthz") == 0)
            }
            #expect(try status(marketing, Self.user(1001, in: [1010]), "/healthz") == 0)
            #expect(try status(callers, Self.user(1999, in: [1010]), "/v1/types") == 401)
            #expect(
                try status(callers, ["/usr/bin/setpriv", "--regid=1011", "--groups=1010", "--"], "/v1/types")
                    == 401)
            #expect(try gate.stop() == .exit(0))

            // The auditor reads every file of the trail and nothing of the state; a producer reads neither.
            let (trail, state) = (scratch.path("lib/sendgate/trail"), scratch.path("lib/sendgate/state"))
            func reads(_ user: [String], _ folder: String) throws -> Bool {
                let found = try Finished.run(
                    user + ["/usr/bin/find", folder, "-type", "f", "!", "-readable"], in: scratch, within: 60)
                return found.ending == .exit(0) && found.output.isEmpty
            }
            #expect(
                try reads(auditor, trail) && FileManager.default.fileExists(atPath: "\(trail)/checkpoint"))
            #expect(try !reads(auditor, state))
            for other in [Self.user(1001, in: [1010]), Self.user(1999)] {
                #expect(try !reads(other, trail) && !reads(other, state))
            }
            let verified = try Finished.run(
                auditor + [Machine.sendgate, "audit", "verify", trail, "--key", "\(trail)/trail.pub"],
                in: scratch, within: 60)
            #expect(verified.ending == .exit(0), "\(verified)")
        }

        @Test func `a socket handed over by a service manager is served and left alone`() throws {
            let scratch = try Scratch(isShared: true)
            let production = try Production(in: scratch, listener: "  - systemd: gate")
            let socket = scratch.path("activated.sock")
            let gate = GateProcess(in: scratch, configuration: try production.write(production.template))
            let activate = [Machine.python, Machine.peer("activate.py"), "gate=\(socket)", "--"]
            try gate.start(wrapper: activate)
            let reply = try Production.curl(socket, as: Production.asProducer, "/v1/types", in: scratch)
            #expect(reply.status == 200, "\(reply)")
            #expect(try gate.stop() == .exit(0))
            // The socket is the service manager's, who may start us again on it.
            #expect(FileManager.default.fileExists(atPath: socket))
            // A socket that was not asked for is a mistake in the unit, not something to ignore.
            let two = [
                Machine.python, Machine.peer("activate.py"), "gate=\(socket)",
                "more=\(scratch.path("more.sock"))",
                "--",
            ]
            #expect(try gate.startExpectingEnd(wrapper: two) == .exit(1))
            #expect(gate.errors.contains("`more`"), "\(gate.errors)")
        }
    }
}
