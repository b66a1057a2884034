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
            // By its group, a user is the app's backend.
            let put = ["--request", "PUT", "--json", Sample.recipient]
            let backend = try Production.curl(
                production.socket, as: Production.asUser(4244, group: 4300), "/v1/recipients/u_1", put,
                in: scratch)
            #expect(backend.status == 200, "\(backend)")
            // Probes are open to every user.
            #expect(try Production.curl(production.socket, as: [], "/healthz", in: scratch).status == 200)
            #expect(try gate.stop() == .exit(0))
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
