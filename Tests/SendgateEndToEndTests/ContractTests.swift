import Foundation
import Testing

@Suite struct ContractTests {
    @Test func `a stranger's fuzzer finds nothing that the reference does not say`() throws {
        let scratch = try Scratch()
        let gate = GateProcess(in: scratch, folder: "gate")
        try gate.start()
        let bridge = try ChildProcess(
            [Machine.python, Machine.peer("tcp_bridge.py"), gate.socket()],
            errorPath: scratch.path("bridge.stderr"))
        let port = try bridge.readLine(within: 30)
        let finished = try Finished.run(
            [
                Machine.schemathesis, "--config-file", Machine.peer("schemathesis.toml"), "run",
                "http://127.0.0.1:\(port)/openapi.json", "--seed", "20261121",
            ],
            environment: [
                "HOME": scratch.folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1",
                "PYTHONPATH": Machine.peer(""), "SCHEMATHESIS_HOOKS": "fuzz_hooks",
                "SENDGATE_SOCKET": gate.socket(),
            ], in: scratch, within: 240)
        #expect(
            finished.ending == .exit(0), "\(finished.output.suffix(20_000))\n\(finished.errors.suffix(2000))")
        // Every route was asked, and what it could ask was not all refused.
        #expect(finished.output.contains("Tested: 37"), "\(finished.output.suffix(2000))")
        #expect(gate.isRunning, "\(gate.errors)")
        #expect(try gate.stop() == .exit(0))
    }

    @Test func `the reference is a valid OpenAPI document to a validator of somebody else's`() throws {
        let scratch = try Scratch()
        let gate = GateProcess(in: scratch)
        try gate.start()
        let document = try gate.connect().request("GET", "/openapi.json")
        #expect(document.status == 200)
        try scratch.write("openapi.json", document.text)
        let finished = try Finished.run(
            [Machine.python, "-m", "openapi_spec_validator", scratch.path("openapi.json")], in: scratch,
            within: 60)
        #expect(finished.ending == .exit(0), "\(finished.output)\(finished.errors)")
    }
}
