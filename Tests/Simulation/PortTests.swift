import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import InMemoryStore
import Synchronization
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// The engine over a store in memory: what steps leave that fail, or that come again.
@Suite struct PortTests {
    private static let parts = Result { try SimulatedGateway.Parts() }

    private func gate() throws -> SimulatedGateway {
        let policy = try Repository.policy()
        let store = InMemoryStore()
        try store.write { try $0.archiveNotices(of: policy) }
        let gate = try SimulatedGateway(
            over: store, environment: SimulatedEnvironment(seed: 4), policy: policy, parts: Self.parts.get())
        gate.setHopUsable(true)
        return gate
    }

    private func register(_ user: String, at gate: SimulatedGateway) throws {
        let recipient = gate.call(
            "product", "PUT", "/v1/recipients/\(user)",
            [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult", "privacy": "generic", "push_enabled": true,
            ])
        let device = gate.call(
            "product", "PUT", "/v1/recipients/\(user)/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-\(user)")),
                "os_permission": "granted", "critical_alerts": false,
            ])
        try #require(recipient.status == 200 && device.status == 200)
    }

    private func example(
        _ type: String, _ id: String, to user: String, as caller: String, at gate: SimulatedGateway
    ) throws -> JSONObject {
        let answer = gate.call(caller, "GET", "/v1/types/\(type)")
        var body = try #require(answer.json["example"]?.objectValue)
        body["id"] = .string(id)
        body["recipient"] = ["user": .string(user)]
        return body
    }

    /// Does something in steps, and may fail after some of them.
    private struct Steps: EngineOperation {
        let body: @Sendable (Batch) throws -> Void
        var caller: CallerName? { nil }
        var lane: EngineLane { .general }
        func perform(in batch: Batch) throws -> Completion {
            try body(batch)
            return { _ in }
        }
        func refuse(_ failure: EngineFailure) {}
    }

    @Test func `an operation that fails after some of its steps leaves nothing, and its neighbours go on`()
        throws
    {
        let gate = try gate()
        try register("u_1", at: gate)
        let body = try example("transaction.remittance_sent", "s1", to: "u_1", as: "payments", at: gate)
        gate.engine.submit(
            Steps { batch in
                try batch.step { $0.memory.setSetting("half", to: "done") }
                throw EngineFailure.overloaded
            })
        #expect(gate.call("payments", "POST", "/v1/sends", body).status == 202)
        #expect(try gate.store.read { try $0.setting("half") } == nil)
    }

    @Test func `a send counts once, however often it is forwarded and in however many batches`() throws {
        let store = InMemoryStore()
        let (subject, send) = (SubjectID(high: 1, low: 1), SendID(high: 1, low: 2))
        let type = TypeID("transfer.received")
        func count(_ memory: GateMemory, at seconds: Int64) throws {
            memory.countForward(
                of: subject, type: type, category: .transactional, at: Instant(seconds: seconds), send: send)
        }
        try store.write { memory in
            try memory.put(RecipientState(subject))
            memory.insertSend(
                SendRecord(
                    id: send, caller: CallerName("payments"), idHash: [1], contentMAC: [2], subject: subject,
                    type: type, category: .transactional, channel: .push, receivedAt: Instant(seconds: 10),
                    entryIndex: 0, requestID: "r", destinationNames: [:]))
            try count(memory, at: 10)
        }
        try store.write { memory in
            try count(memory, at: 20)
            let known = try memory.forwards(of: subject, since: Instant(seconds: 0), limit: 9)
            #expect(known.map(\.at) == [Instant(seconds: 10)])
        }
    }

    @Test func `who is forgotten and comes back in one batch is somebody new`() throws {
        let gate = try gate()
        let user = UserID("u_9")
        let seen = Mutex<[SubjectID]>([])
        @Sendable func register(_ step: StepContext) throws {
            #expect(try step.memory.subject(of: user) == nil)
            let subject = try step.memory.makeSubject(for: user).id
            try step.memory.put(RecipientState(subject))
            seen.withLock { $0.append(subject) }
        }
        gate.engine.submit(
            Steps { batch in
                seen.withLock { $0 = [] }
                try batch.step(register)
                let first = seen.withLock { $0.last! }
                try batch.step { $0.memory.eraseSubject(first) }
                try batch.step(register)
            })
        _ = gate.call("payments", "GET", "/v1/types")
        let subjects = seen.withLock { $0 }
        #expect(Set(subjects).count == 2 && subjects.count == 2)
        try gate.store.finishErasures()
        #expect(try gate.store.read { try $0.subject(of: user)?.id } == subjects.last)
    }
}
