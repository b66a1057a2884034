import Foundation
import GateTestKit
import Testing

/// A stranger's fuzzer, which knows nothing but the reference.
struct Fuzzer {
    /// How many requests of each operation were answered 2xx.
    var accepted: [String: Int]

    /// - Parameters:
    ///   - caller: Whose socket is fuzzed; the one where everything is allowed when `nil`.
    ///   - options: Of `schemathesis run`.
    ///   - uncovered: Operations that are asked at random alone, not also once for each edge that the reference gives a value.
    init(
        _ gate: GateProcess, as caller: String? = nil, _ options: [String] = [], uncovered: [String] = [],
        in scratch: Scratch
    ) throws {
        let bridge = try ChildProcess(
            [Machine.python, Machine.peer("tcp_bridge.py"), gate.socket(of: caller)],
            errorPath: scratch.path("bridge.stderr"))
        let port = try bridge.readLine(within: 30)
        let accepted = scratch.path("accepted.json")
        let seed = Soak.seed("fuzzer as \(caller ?? "dev")")
        var configuration = try String(contentsOfFile: Machine.peer("schemathesis.toml"), encoding: .utf8)
        if !uncovered.isEmpty {
            let names = uncovered.map { "\"\($0)\"" }.joined(separator: ", ")
            configuration += "\n[[operations]]\ninclude-name = [\(names)]\nphases.coverage.enabled = false\n"
        }
        let finished = try Finished.run(
            [
                Machine.schemathesis, "--config-file",
                try scratch.write("schemathesis.toml", configuration), "run",
                "http://127.0.0.1:\(port)/openapi.json", "--seed", "\(seed)",
            ] + options,
            environment: [
                "HOME": scratch.folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1",
                "PYTHONPATH": Machine.peer(""), "SCHEMATHESIS_HOOKS": "fuzz_hooks",
                "SENDGATE_SOCKET": gate.socket(), "SENDGATE_FUZZED": gate.socket(of: caller),
                "SENDGATE_ACCEPTED": accepted, "SENDGATE_SEED": "\(seed)",
            ], in: scratch, within: Soak.isWhole ? 2_400 : 240)
        #expect(
            finished.ending == .exit(0), "\(finished.output.suffix(20_000))\n\(finished.errors.suffix(2000))")
        #expect(finished.output.contains("Tested: 50"), "\(finished.output.suffix(2000))")
        #expect(gate.isRunning, "\(gate.errors)")
        self.accepted = try JSONDecoder().decode(
            [String: Int].self, from: Data(contentsOf: URL(fileURLWithPath: accepted)))
    }

    /// The operations that are asked, as `accepted` names them: all of the reference but the way to itself.
    static func operations(_ gate: GateProcess) throws -> [String] {
        let document = try gate.connect().request("GET", "/openapi.json")
        let read = try JSONSerialization.jsonObject(with: Data(document.body)) as? [String: Any]
        let paths = try #require(read?["paths"] as? [String: [String: Any]])
        return paths.flatMap { path, methods in methods.keys.map { "\($0.uppercased()) \(path)" } }
            .filter { $0 != "GET /openapi.json" }.sorted()
    }

    /// What every caller may ask.
    static let open: Set<String> = ["GET /healthz", "GET /readyz", "GET /v1/types", "GET /v1/types/{type}"]
    /// What the grant `send` opens, and nothing else does.
    static let sending: Set<String> = [
        "POST /v1/sends", "POST /v1/sends/stream", "POST /v1/sends/explain", "POST /v1/sends/acknowledge",
        "GET /v1/sends/{send_id}", "POST /v1/sends/{send_id}/cancel", "GET /v1/events",
    ]
    static let reading: Set<String> = [
        "GET /v1/recipients/{user}", "GET /v1/recipients/{user}/consents",
        "GET /v1/recipients/{user}/preferences", "GET /v1/recipients/{user}/decisions",
    ]
    /// What changes people, and is accepted whenever it is asked rightly.
    static let writing: Set<String> = [
        "PUT /v1/recipients/{user}", "DELETE /v1/recipients/{user}",
        "PUT /v1/recipients/{user}/devices/{device}", "PUT /v1/recipients/{user}/addresses/{address}",
        "POST /v1/recipients/{user}/consents", "POST /v1/recipients/{user}/consents/{consent}/withdraw",
        "PUT /v1/recipients/{user}/preferences", "PUT /v1/recipients/{user}/preferences/{scope}",
        "POST /v1/receipts", "POST /v1/replies",
        "POST /v1/recipients/{user}/devices/{device}/keys",
        "PUT /v1/recipients/{user}/devices/{device}/subscriptions",
    ]
}

@Suite struct ContractTests {
    @Test func `a stranger's fuzzer finds nothing that the reference does not say`() throws {
        let scratch = try Scratch()
        let gate = GateProcess(in: scratch, folder: "gate")
        try gate.start()
        let caseCount = Soak.count(60, short: 10)
        // Every day the edges of others; sends are most of what is asked.
        let operations = try Fuzzer.operations(gate)
        #expect(operations.count == 50)
        let covered = Soak.part(of: operations, 16, "operations with their edges") + ["POST /v1/sends"]
        let fuzzer = try Fuzzer(
            gate, ["--max-examples", "\(caseCount)"],
            uncovered: operations.filter { !covered.contains($0) }, in: scratch)
        // What it asked was not all refused: a fuzzer that only ever gets 4xx has seen nothing.
        let reached = Fuzzer.open.union(Fuzzer.sending).union(Fuzzer.reading).union(Fuzzer.writing)
            .subtracting(["POST /v1/sends/acknowledge"])
        // Some are accepted only after others: of the few examples of a short run none of a receipt may meet its send.
        let missed = reached.subtracting(fuzzer.accepted.keys)
        #expect(missed.count <= Soak.count(0, short: 3), "\(missed) of \(fuzzer.accepted)")
        #expect(fuzzer.accepted["POST /v1/sends"] ?? 0 >= caseCount, "\(fuzzer.accepted)")
        #expect(fuzzer.accepted.values.reduce(0, +) >= caseCount * 13, "\(fuzzer.accepted)")
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

/// The same, through the sockets of callers that may do little.
@Suite struct GrantFuzzTests {
    /// Callers with all they may do, and with what they must have been let do.
    static let callers: [(name: String, allowed: Set<String>, reached: Set<String>)] = [
        (
            // A stream of nothing is answered with nothing, whatever the caller may do.
            "marketing", Fuzzer.open.union(Fuzzer.sending).union(["POST /v1/import"]),
            Fuzzer.open.union(["POST /v1/sends/stream", "POST /v1/sends/explain", "GET /v1/events"])
        ),
        (
            "payments", Fuzzer.open.union(Fuzzer.sending).union(["POST /v1/import"]),
            Fuzzer.open.union([
                "POST /v1/sends", "POST /v1/sends/stream", "POST /v1/sends/explain", "GET /v1/events",
            ])
        ),
        (
            "auditor",
            Fuzzer.open.union(Fuzzer.reading).union([
                "GET /v1/keys", "GET /v1/keys/lagging", "GET /metrics", "GET /v1/trail/checkpoint",
                "GET /v1/drift", "GET /v1/drift/findings",
                "GET /v1/trail/tile/{tile}",
                // With facts of its own it is free, and a stream of nothing is answered with nothing.
                "POST /v1/sends/explain", "POST /v1/sends/stream", "POST /v1/import",
                "GET /v1/sends/{send_id}",
            ]), Fuzzer.open.union(Fuzzer.reading).union(["GET /v1/keys", "GET /v1/trail/checkpoint"])
        ),
    ]

    @Test(arguments: Soak.part(of: callers, 1, "fuzzed callers"))
    func `a fuzzer with few grants is let do what they name, and nothing else`(
        name: String, allowed: Set<String>, reached: Set<String>
    ) throws {
        let scratch = try Scratch()
        let gate = GateProcess(in: scratch)
        try gate.start()
        let fuzzer = try Fuzzer(
            gate, as: name,
            ["--phases", "examples,fuzzing", "--max-examples", "\(Soak.count(60, short: 10))"],
            in: scratch)
        #expect(Set(fuzzer.accepted.keys).subtracting(allowed).isEmpty, "\(fuzzer.accepted)")
        let missed = reached.subtracting(fuzzer.accepted.keys)
        #expect(missed.count <= Soak.count(0, short: 1), "\(missed) of \(fuzzer.accepted)")
        #expect(fuzzer.accepted.values.reduce(0, +) >= 30, "\(fuzzer.accepted)")
        #expect(try gate.stop() == .exit(0))
        // Nor did any of them change a person without being told so.
        let entries = try TrailText(gate.trail)
        for kind in [
            "recipient", "device", "address", "permission_prompt", "device_key", "consent", "preference",
            "erasure",
            "receipt", "policy",
        ] {
            #expect(entries.count(kind: kind, caller: name) == 0, "\(kind)")
        }
        if reached.contains("POST /v1/sends") { #expect(entries.count(kind: "send", caller: name) > 5) }
    }
}
