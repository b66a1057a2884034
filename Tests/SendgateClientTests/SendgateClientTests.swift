import CanonicalJSON
import FoundationEssentials
import Glibc
import Testing
import UnixSocketEndpoint

@testable import SendgateClient

@Suite struct SendgateClientTests {
    /// As patient as the default, without its waits.
    private let quick = RetryPolicy(attemptsMax: 4, firstWaitMilliseconds: 1, waitMillisecondsMax: 5)

    private func client(_ path: String, _ retry: RetryPolicy? = nil) -> SendgateClient {
        SendgateClient(socketPath: path, timeoutMilliseconds: 60_000, retry: retry ?? quick)
    }

    private let remittance = Send(
        id: "rem-1", type: "transaction.remittance_sent", recipient: "u_42",
        params: ["amount": .money(minor: 500_000, currency: "NOK"), "recipient_name": "Ahmad Karimi"])

    @Test func `a send is asked for in the gateway's words and its decision comes back typed`() async throws {
        try await withGate { path, gate in
            let client = client(path)
            var send = remittance
            send.device = "d_1"
            send.critical = true
            send.ttlSeconds = 3_600
            send.collapseKey = "c"
            send.deepLink = "drop://x"
            send.locale = "nb"
            send.fallbackFor = "00000000-0000-4000-8000-000000000009"
            let answer = try await client.send(send)
            #expect(answer.isPromised)
            #expect(answer.id == "rem-1")
            #expect(answer.outcome == .forward)
            #expect(answer.reason == "allowed")
            #expect(!answer.isReplayed)
            #expect(answer.trail.index == 1)
            #expect(
                answer.deliveries == [
                    SendAnswer.Delivery(
                        destination: "d_1", outcome: .forward, reason: "allowed", detail: nil, messageID: nil,
                        keyID: "00112233445566778899aabbccddeeff", notBefore: nil, notes: [])
                ])
            #expect(
                gate.bodies == [
                    [
                        "id": "rem-1", "type": "transaction.remittance_sent", "channel": "push",
                        "recipient": ["user": "u_42", "device": "d_1"],
                        "params": [
                            "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                        ],
                        "critical": true, "ttl_seconds": 3_600, "collapse_key": "c", "deep_link": "drop://x",
                        "locale": "nb", "fallback_for": "00000000-0000-4000-8000-000000000009",
                    ]
                ])
            await client.close()
        }
    }

    @Test func `a refusal is a decision, not an error`() async throws {
        try await withGate { path, _ in
            let answer = try await client(path).send(
                Send(id: "offer-1", type: "marketing.offer", recipient: "u_42"))
            #expect(!answer.isPromised)
            #expect(answer.outcome == .reject)
            #expect(answer.reason == "no_gdpr_consent")
            #expect(answer.whoCanFix == "recipient")
        }
    }

    @Test func `what of the params does not fit is told with its place`() async throws {
        try await withGate { path, _ in
            let client = client(path)
            let answer = try await client.send(
                Send(id: "offer-1", type: "marketing.misspelled", recipient: "u_42"))
            #expect(answer.violations == ["/params/headline: expected a text"])
            #expect(try await client.send(remittance).violations == [])
            await client.close()
        }
    }

    @Test func `what is still owed after a send is shown, and nothing where nothing is`() async throws {
        try await withGate { path, _ in
            let client = client(path)
            let breach = try await client.send(
                Send(id: "breach-1", type: "privacy.breach_notice", recipient: "u_42"))
            #expect(breach.isPromised && breach.owed == ["email", "letter"])
            #expect(try await client.send(remittance).owed == [])
            await client.close()
        }
    }

    @Test func `a copy in shadow says what its own sender did, and its answer promises nothing`() async throws
    {
        try await withGate { path, gate in
            var send = Send(id: "c-1", type: "social.comment", recipient: "u_1")
            send.sent = true
            let answer = try await client(path).send(send)
            #expect(answer.isShadow && answer.outcome == .forward && !answer.isPromised)
            #expect(gate.bodies.first?["sent"] == true)
            #expect(try await client(path).send(remittance).isShadow == false)
        }
    }

    @Test func `a lost answer is asked for again and nothing is sent twice`() async throws {
        try await withGate(mishaps: [.losesAnswer, .losesAnswer]) { path, gate in
            let answer = try await client(path).send(remittance)
            #expect(answer.isPromised)
            #expect(answer.isReplayed)
            #expect(gate.requestCount == 3)
            #expect(gate.takenCount == 1)
        }
    }

    @Test func `answers that are lost for good leave the question open, and say so`() async throws {
        try await withGate(mishaps: [.losesAnswer, .losesAnswer, .losesAnswer, .losesAnswer]) { path, gate in
            let error = await #expect(throws: SendgateError.self) { try await client(path).send(remittance) }
            guard case .unanswered = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(gate.requestCount == 4)
        }
    }

    @Test func `busy after a lost answer still leaves the question open`() async throws {
        let retry = RetryPolicy(attemptsMax: 2, firstWaitMilliseconds: 1, waitMillisecondsMax: 5)
        try await withGate(mishaps: [.losesAnswer, .isBusy(retryAfterSeconds: 0)]) { path, _ in
            let error = await #expect(throws: SendgateError.self) {
                try await client(path, retry).send(remittance)
            }
            guard case .unanswered = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func `a busy gateway is tried again, within reason`() async throws {
        try await withGate(mishaps: [.isBusy(retryAfterSeconds: 0), .isBusy(retryAfterSeconds: 0)]) {
            path, gate in
            let answer = try await client(path).send(remittance)
            #expect(answer.isPromised)
            #expect(gate.requestCount == 3)
        }
        try await withGate(mishaps: [.isBusy(retryAfterSeconds: 600)]) { path, gate in
            // Ten minutes is for the producer to wait, not for this call.
            let error = await #expect(throws: SendgateError.self) { try await client(path).send(remittance) }
            guard case .busy(let problem) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(problem.retryAfterSeconds == 600)
            #expect(gate.requestCount == 1)
        }
    }

    @Test func `what will not change is not tried again`() async throws {
        try await withGate { path, gate in
            let error = await #expect(throws: SendgateError.self) {
                try await client(path).send(Send(id: "x", type: "conflict", recipient: "u"))
            }
            guard case .refused(let problem) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(problem.status == 409)
            #expect(problem.type == "urn:sendgate:problem:id_conflict")
            #expect(gate.requestCount == 1)
        }
    }

    @Test func `a gateway that is not there is unreachable, and nothing was sent`() async throws {
        let error = await #expect(throws: SendgateError.self) {
            try await client("/tmp/no-such-directory/gate.sock").send(remittance)
        }
        guard case .unreachable = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a gateway of another user is not trusted with a send`() async throws {
        try await withGate { path, gate in
            let client = SendgateClient(socketPath: path, gatewayUserIDs: [getuid() + 1], retry: quick)
            await #expect(throws: SendgateError.gatewayNotTrusted(userID: getuid())) {
                try await client.send(remittance)
            }
            let results = await client.sendAll([remittance])
            #expect(results == [.failure(.gatewayNotTrusted(userID: getuid()))])
            #expect(gate.requestCount == 0)
        }
    }

    @Test func `a gateway that restarts between two sends is found again`() async throws {
        var template = Array("/tmp/client-XXXXXX".utf8CString)
        let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/gate.sock"
        let gate = FakeGate()
        let client = client(path)
        for round in 1...3 {
            let endpoint = try makeEndpoint(path, gate)
            try await endpoint.start()
            var send = remittance
            send.id = "rem-\(round)"
            #expect(try await client.send(send).isPromised)
            await endpoint.shutDown()
        }
        #expect(gate.takenCount == 3)
    }

    @Test func `many sends share one connection`() async throws {
        try await withGate { path, gate in
            let client = client(path)
            let taken = try await withThrowingTaskGroup(of: Bool.self) { tasks in
                for index in 0..<200 {
                    tasks.addTask {
                        let send = Send(id: "s-\(index)", type: "t", recipient: "u")
                        return try await client.send(send).id == "s-\(index)"
                    }
                }
                return try await tasks.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(taken == 200)
            #expect(gate.takenCount == 200)
        }
    }

    @Test(arguments: [
        SendValue.integer(9_007_199_254_740_992), .integer(-9_007_199_254_740_992),
        .string(String(repeating: "x", count: 70_000)),
    ])
    func `a send the gateway cannot read is refused here`(value: SendValue) async throws {
        try await withGate { path, gate in
            await #expect(throws: SendgateError.self) {
                try await client(path).send(Send(id: "x", type: "t", recipient: "u", params: ["p": value]))
            }
            #expect(gate.requestCount == 0)
        }
    }

    @Test func `nesting has an end`() {
        var value = SendValue.null
        for _ in 0..<20 { value = .array([value]) }
        #expect(throws: SendgateError.self) { try value.json(depth: 0) }
    }

    // MARK: Many

    @Test func `many sends over one stream come back in their order`() async throws {
        try await withGate { path, gate in
            let sends = (0..<1_000).map {
                Send(id: "s-\($0)", type: $0 % 10 == 0 ? "marketing.offer" : "t", recipient: "u")
            }
            var reported: [Int] = []
            let results = await client(path).sendAll(sends) { index, _ in reported.append(index) }
            #expect(results.count == 1_000)
            for (index, result) in results.enumerated() {
                let answer = try result.get()
                #expect(answer.id == "s-\(index)")
                #expect(answer.isPromised == (index % 10 != 0))
            }
            #expect(reported == Array(0..<1_000))
            #expect(gate.takenCount == 1_000)
        }
    }

    @Test func `a stream that breaks is taken up again and nothing is sent twice`() async throws {
        try await withGate(mishaps: [.losesAnswer]) { path, gate in
            let sends = (0..<300).map { Send(id: "s-\($0)", type: "t", recipient: "u") }
            let results = await client(path).sendAll(sends)
            for (index, result) in results.enumerated() {
                let answer = try result.get()
                #expect(answer.id == "s-\(index)")
            }
            #expect(gate.takenCount == 300)
        }
    }

    @Test func `lines a busy gateway did not take are sent again`() async throws {
        try await withGate(mishaps: [.isBusy(retryAfterSeconds: 0), .isBusy(retryAfterSeconds: 0)]) {
            path, gate in
            let sends = (0..<5).map { Send(id: "s-\($0)", type: "t", recipient: "u") }
            let results = await client(path).sendAll(sends)
            for (index, result) in results.enumerated() {
                let answer = try result.get()
                #expect(answer.id == "s-\(index)")
            }
            #expect(gate.requestCount == 7)
            #expect(gate.takenCount == 5)
        }
    }

    @Test func `one bad send among many costs only itself`() async throws {
        try await withGate { path, _ in
            let results = await client(path).sendAll([
                remittance,
                Send(id: "big", type: "t", recipient: "u", params: ["n": .integer(Int64.max)]),
                Send(id: "c", type: "conflict", recipient: "u"),
                Send(id: "last", type: "t", recipient: "u"),
            ])
            let first = try results[0].get()
            #expect(first.isPromised)
            #expect(throws: SendgateError.self) { try results[1].get() }
            #expect(throws: SendgateError.self) { try results[2].get() }
            #expect(try results[3].get().id == "last")
        }
    }

    @Test func `nothing to send is nothing sent`() async throws {
        #expect(await client("/tmp/no-such-directory/gate.sock").sendAll([]).isEmpty)
    }

    @Test func `a gateway that is not there fails every send of a stream`() async throws {
        let results = await client("/tmp/no-such-directory/gate.sock").sendAll([remittance, remittance])
        #expect(results.count == 2)
        for result in results {
            guard case .failure(.unreachable) = result else {
                Issue.record("\(result)")
                continue
            }
        }
    }

    // MARK: Waiting

    @Test func `waits double, spread, and end`() {
        let retry = RetryPolicy(attemptsMax: 6, firstWaitMilliseconds: 100, waitMillisecondsMax: 500)
        #expect(
            (1...6).map { retry.wait(after: $0, retryAfterSeconds: nil, fraction: 1) } == [
                100, 200, 400, 500, 500, nil,
            ])
        #expect(retry.wait(after: 1, retryAfterSeconds: nil, fraction: 0) == 50)
        #expect(retry.wait(after: 1, retryAfterSeconds: 0, fraction: 0) == 50)
        #expect(retry.wait(after: 1, retryAfterSeconds: 1, fraction: 0) == nil)
        #expect(RetryPolicy.never.wait(after: 1, retryAfterSeconds: nil, fraction: 0) == nil)
        let patient = RetryPolicy(attemptsMax: 100, firstWaitMilliseconds: 50, waitMillisecondsMax: 60_000)
        #expect(patient.wait(after: 99, retryAfterSeconds: nil, fraction: 1) == 60_000)
        #expect(patient.wait(after: 1, retryAfterSeconds: 30, fraction: 0) == 30_000)
    }
}
