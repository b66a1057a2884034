import Foundation
import Testing

extension EndToEnd {
    /// The handbook's clients in Python, Node and Go, which a team copies and keeps.
    @Suite struct KeptClientTests {
        private let scratch: Scratch

        /// Takes the clients from the page, as a reader does.
        init() throws {
            scratch = try Scratch()
            let page = try HandbookPage("FirstSend")
            for file in ["sendgate_client.py", "sendgate_client.mjs", "sendgate_client.go"] {
                try scratch.write(file, page.program(file))
            }
        }

        @Test func `the three clients meet every failure in the same way`() throws {
            let finished = try Finished.run(
                [Machine.python, Machine.peer("check_clients.py"), scratch.folder],
                environment: Machine.commands, in: scratch, within: 240)
            #expect(finished.ending == .exit(0), "\(finished.output)\(finished.errors)")
            // Ten promises of each of the three, and one of Python alone.
            #expect(finished.output.split(separator: "\n").count == 31, "\(finished.output)")
        }

        @Test func `three kills amid 1,200 sends of the three clients leave one decision for each id`() throws
        {
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let clients = try ChildProcess(
                [
                    Machine.python, Machine.peer("check_clients.py"), scratch.folder,
                    gate.socket(of: "payments"), gate.trail,
                ], environment: Machine.commands, errorPath: scratch.path("clients.stderr"))
            #expect(try clients.readLine(within: 120) == "under way")
            for _ in 1...3 {
                gate.kill()
                try gate.launch()
                try gate.waitUntilReady()
            }
            #expect(try clients.readLine(within: 120) == "done")
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            try clients.write(line: "the gateway has ended")
            #expect(try clients.waitForEnd(within: 60) == .exit(0), "\(clients.errors)")
            try expectVerifies(gate, in: scratch)
        }
    }
}
