import Foundation
import Testing

extension EndToEnd {
    /// `sendgate-courier` as a process of its own.
    @Suite struct CourierProcessTests {
        @Test
        func `what the gateway decided goes through the courier, and Prometheus's checker takes its page`()
            throws
        {
            let scratch = try Scratch()
            let courier = try CourierProcess(in: scratch)
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
            let courier = try CourierProcess(in: scratch, descriptorCountMax: 1_000)
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
            let courier = try CourierProcess(in: scratch)
            try courier.waitUntilReady()
            let second = try CourierProcess(in: scratch, errors: "second.stderr")
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
