import CanonicalJSON
import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords
import Synchronization
import Testing
import WireProtocol

/// A producer's `traceparent`: on its way to the hop, and in the log.
@Suite struct TraceTests {
    private static let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])

        var environment: EngineEnvironment {
            var environment = EngineEnvironment()
            environment.traces = TraceLog(isDebugging: false, uptimeMilliseconds: { 0 }) { message, members in
                let words = members.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
                self.all.withLock { $0.append("\(message) \(words.joined(separator: " "))") }
            }
            return environment
        }
    }

    private func remit(
        _ id: String, _ gate: GatewayHarness, trace: String? = text
    ) async throws -> GatewayHarness.Reply {
        try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: "u_1"),
            headers: trace.map { [("traceparent", $0)] } ?? [])
    }

    @Test func `a message has the trace of its request, and a wrong one breaks nothing`() async throws {
        let lines = Lines()
        let gate = try GatewayHarness(environment: lines.environment)
        try await gate.register("u_1")
        for (id, trace) in [("a", Self.text), ("b", nil), ("c", "nonsense")] as [(String, String?)] {
            let reply = try await remit(id, gate, trace: trace)
            #expect(reply.status == 202, "\(reply.json)")
            let messages = try await gate.claim()
            #expect(messages.map(\.traceParent?.text) == [trace == Self.text ? trace : nil])
            guard trace == Self.text else { continue }
            let send = try #require(reply["send_id"])
            #expect(
                lines.all.withLock { $0 } == [
                    "decided caller=payments channel=push outcome=forward reason=generic_only send_id=\(send) traceparent=\(Self.text)"
                ])
        }
        #expect(lines.all.withLock { $0.count } == 1)
        // Nothing of it is evidence.
        #expect(try gate.entries().allSatisfy { !"\($0)".contains("4bf92f35") })
    }

    @Test func `every line of a stream has the stream's trace`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let answer = await gate.ask(
            "payments", "POST", "/v1/sends/stream", GatewayHarness.remittance("a", to: "u_1"),
            headers: [("traceparent", Self.text)], kind: .streamLine)
        #expect(answer.status == 202)
        #expect(try await gate.claim().map(\.traceParent?.text) == [Self.text])
    }

    @Test(arguments: [StateKeeping.memory, .files()])
    func `a message that waits has its trace when its time comes`(_ keeping: StateKeeping) async throws {
        // 23:00 in Berlin.
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z", keeping: keeping)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        #expect(try await remit("a", gate)["outcome"] == "defer")
        gate.clock.advance(seconds: 9 * 3600)
        // The first claim composes what was deferred, the next hands it over.
        var messages = try await gate.claim()
        if messages.isEmpty { messages = try await gate.claim() }
        #expect(messages.map(\.traceParent?.text) == [Self.text])
    }

    @Test func `a refused peer is told of once, and nothing about people is`()
        async throws
    {
        let told = Mutex<[OperatorNotice]>([])
        var environment = EngineEnvironment()
        environment.tell = { notice in told.withLock { $0.append(notice) } }
        let gate = try GatewayHarness(environment: environment)
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        for _ in 0..<5 { _ = try await gate.call("nobody", "GET", "/v1/types") }
        // Behind the entry, in the same lane.
        #expect(try await remit("a", gate).status == 202)
        await gate.settle()
        let kinds = told.withLock { told in
            told.map { if case .recorded(let kind, _) = $0 { kind.text } else { "\($0)" } }
        }
        #expect(kinds == ["unknown_peer"])
    }

    @Test func `that sends are refused for want of room is said once, and that it is over`() async throws {
        let lag = Mutex<Int64>(0)
        let told = Mutex<[String]>([])
        var environment = EngineEnvironment()
        environment.publishLagMilliseconds = { lag.withLock { $0 } }
        environment.tell = { notice in told.withLock { $0.append("\(notice)") } }
        let gate = try GatewayHarness(environment: environment)
        try await gate.register("u_1")
        lag.withLock { $0 = 3_600_000 }
        for id in ["a", "b", "c"] {
            #expect(try await remit(id, gate).status == 503)
            // Recorded all the same, and no sign that sends are.
            try await gate.register("u_2")
        }
        lag.withLock { $0 = 0 }
        for id in ["a", "b"] { #expect(try await remit(id, gate).status == 202) }
        await gate.settle()
        let lines = told.withLock { $0 }
        #expect(lines.count == 2 && lines[0].contains("behind") && lines[1].contains("again"), "\(lines)")
    }
}
