import Foundation
import Testing

extension EndToEnd {
    /// `sendgate-courier` as a process of its own.
    @Suite struct CourierProcessTests {
        /// `sendgate-courier serve --dev` in `scratch`.
        private final class Courier {
            let folder: String
            let child: ChildProcess

            init(
                in scratch: Scratch, folder: String = "courier", errors: String = "courier.stderr",
                descriptorCountMax: Int? = nil
            ) throws {
                self.folder = scratch.path(folder)
                child = try ChildProcess(
                    [Machine.courier, "serve", "--dev", self.folder, "--json"],
                    errorPath: scratch.path(errors), descriptorCountMax: descriptorCountMax)
            }

            var socket: String { "\(folder)/courier.sock" }

            func waitUntilReady() throws {
                let line = try child.readLine(within: 30)
                guard line.contains(#""ready":true"#) else { throw HarnessError("not ready: \(line)") }
            }

            func ask(_ target: String) throws -> Reply {
                try RawConnection("\(folder)/operations.sock").request("GET", target)
            }

            /// What would have gone to providers.
            func onward() throws -> [Substring] {
                try String(contentsOfFile: "\(folder)/onward.ndjson", encoding: .utf8).split(separator: "\n")
            }
        }

        @Test
        func `what the gateway decided goes through the courier, and Prometheus's checker takes its page`()
            throws
        {
            let scratch = try Scratch()
            let courier = try Courier(in: scratch)
            try courier.waitUntilReady()
            let gate = GateProcess(in: scratch, ["--hop", "unix:\(courier.socket)"])
            try gate.start()
            try gate.registerSomebody()
            let connection = try gate.connect()
            var sends: [String] = []
            for number in 0..<20 {
                let reply = try connection.request("POST", "/v1/sends", Sample.login("c-\(number)"))
                #expect(reply.status == 202, "\(reply)")
                sends.append(String(try #require(reply.text.firstMatch(of: /"send_id":"([0-9a-f-]+)"/)?.1)))
            }
            try gate.waitUntilGone(sends)
            let onward = try courier.onward()
            #expect(
                Set(onward.compactMap { $0.firstMatch(of: /"send_id":"([0-9a-f-]+)"/)?.1 }.map(String.init))
                    == Set(sends))
            #expect(onward.count == sends.count)

            let page = try courier.ask("/metrics").text
            let checked = try Finished.run(
                [
                    "/bin/sh", "-c", "exec \"$0\" check metrics < \"$1\"", Machine.promtool,
                    try scratch.write("metrics", page),
                ], in: scratch, within: 60)
            #expect(checked.ending == .exit(0), "\(checked.output)\(checked.errors)")
            #expect(checked.output.isEmpty && checked.errors.isEmpty, "\(checked.output)\(checked.errors)")
            #expect(page.contains(#"outcome="accepted"} 20"#))

            #expect(try gate.stop() == .exit(0))
            courier.child.signal(SIGTERM)
            #expect(try courier.child.waitForEnd(within: 30) == .exit(0), "\(courier.child.errors)")
            #expect(!FileManager.default.fileExists(atPath: courier.socket))
        }

        @Test func `a courier that may not open as many descriptors as it may need says so at the start`()
            throws
        {
            let scratch = try Scratch()
            let courier = try Courier(in: scratch, descriptorCountMax: 1_000)
            #expect(try courier.child.waitForEnd(within: 30) == .exit(1))
            let errors = courier.child.errors
            #expect(
                errors.contains(
                    "sendgate-courier: error: the process may open 1000 descriptors and needs 1313\n"),
                "\(errors)")
            #expect(errors.contains("`LimitNOFILE=1313`"))
        }

        @Test func `SIGHUP leaves the courier running, and a second one on its socket does not start`() throws
        {
            let scratch = try Scratch()
            let courier = try Courier(in: scratch)
            try courier.waitUntilReady()
            let second = try Courier(in: scratch, errors: "second.stderr")
            #expect(try second.child.waitForEnd(within: 30) == .exit(1))
            #expect(second.child.errors.contains("sendgate-courier: error: another process has the journal"))
            courier.child.signal(SIGHUP)
            #expect(try courier.ask("/healthz").status == 200)
            #expect(try courier.ask("/readyz").status == 200)
            courier.child.signal(SIGTERM)
            #expect(try courier.child.waitForEnd(within: 30) == .exit(0), "\(courier.child.errors)")
        }
    }
}
