import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateRecords
import GateVocabulary
import SQLiteStore
import SendPlanning
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// A producer that lost an answer asks again.
@Suite struct RepeatTests {
    /// Sends `p0` to `p256`: enough for a full bundle, which the store lets go of once it is published.
    ///
    /// - Returns: The body of `p0`, and its answer.
    private func publishBundle(
        of gate: GatewayHarness
    ) async throws -> (promo: JSONObject, first: GatewayHarness.Reply) {
        let promo = try await gate.promo("p0", to: "u_1")
        let first = try await gate.call("marketing", "POST", "/v1/sends", promo)
        for number in 1...256 {
            var other = promo
            other["id"] = .string("p\(number)")
            _ = try await gate.call("marketing", "POST", "/v1/sends", other)
        }
        try gate.publishAll()
        return (promo, first)
    }

    /// From here on each read of the published tree signals the first and waits for the second.
    private func holdDisk(of gate: GatewayHarness) -> (reading: DispatchSemaphore, release: DispatchSemaphore)
    {
        let (reading, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        gate.library.willRead.withLock {
            $0 = {
                reading.signal()
                release.wait()
            }
        }
        return (reading, release)
    }

    @Test func `a repeat of a published send is answered without holding up anybody else's`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (promo, first) = try await publishBundle(of: gate)
        let (reading, release) = holdDisk(of: gate)
        // Both threads that are everybody's stand before the disk.
        async let again = gate.call("marketing", "POST", "/v1/sends", promo)
        async let status = gate.call(
            "marketing", "GET", "/v1/sends/\(try #require(first["send_id"]))")
        await Task.detached { for _ in 0..<2 { reading.wait() } }.value
        // The writer takes another send meanwhile.
        let alert = try await gate.example("security.new_login", "s1", to: "u_1", as: "security")
        let sent = try await gate.call("security", "POST", "/v1/sends", alert)
        #expect(sent.status == 202, "\(sent.json)")
        gate.library.willRead.withLock { $0 = nil }
        for _ in 0..<2 { release.signal() }
        let answer = try await again
        #expect(answer.json["replayed"] == true && answer["send_id"] == first["send_id"])
        #expect(answer.json["trail"] == first.json["trail"])
        #expect(try await status["send_id"] == first["send_id"])
    }

    @Test func `a security repeat does not wait for anybody's look-ups`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let alert = try await gate.example("security.new_login", "s1", to: "u_1", as: "security")
        let first = try await gate.call("security", "POST", "/v1/sends", alert)
        let (promo, _) = try await publishBundle(of: gate)
        let (reading, release) = holdDisk(of: gate)
        // A flood of repeats: two at the disk, the others behind them.
        let flood = Task {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<64 {
                    var other = promo
                    other["id"] = .string("p\(number)")
                    group.addTask { [other] in
                        try await gate.call("marketing", "POST", "/v1/sends", other).json["replayed"] == true
                    }
                }
                return try await group.reduce(true) { $0 && $1 }
            }
        }
        await Task.detached { for _ in 0..<2 { reading.wait() } }.value
        gate.library.willRead.withLock { $0 = nil }
        let again = try await gate.call("security", "POST", "/v1/sends", alert)
        #expect(again.json["replayed"] == true && again["send_id"] == first["send_id"])
        for _ in 0..<64 { release.signal() }
        #expect(try await flood.value)
    }

    @Test func `a repeat that nobody has room to look up is refused and not left without an answer`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (promo, first) = try await publishBundle(of: gate)
        let (reading, release) = holdDisk(of: gate)
        let path = "/v1/sends/\(try #require(first["send_id"]))"
        let refused = Alarms()
        // Two stand before the disk, and then the room for one caller fills up.
        let flood = Task {
            await withDiscardingTaskGroup { group in
                for number in 0...ReaderThreads.waitingCountPerCallerMax + 2 {
                    if number == 2 { await Task.detached { for _ in 0..<2 { reading.wait() } }.value }
                    group.addTask {
                        let status = await gate.ask("marketing", "GET", path).status
                        if status != 200 { refused.add("\(status)") }
                    }
                }
            }
        }
        while refused.all.isEmpty { await Task.yield() }
        let again = try await gate.call("marketing", "POST", "/v1/sends", promo)
        #expect(again.status == 429, "\(again.json)")
        gate.library.willRead.withLock { $0 = nil }
        for _ in 0..<2 { release.signal() }
        await flood.value
        #expect(refused.all == ["429"])
        #expect(try await gate.call("marketing", "POST", "/v1/sends", promo).json["replayed"] == true)
    }

    @Test func `the entry of another send answers nobody's repeat`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var sends: [(record: SendRecord, entry: [UInt8])] = []
        for name in ["a", "b"] {
            let text = try #require(try await gate.remit(name)["send_id"])
            let id = try #require(SendID(uuidText: text))
            let record = try #require(try gate.store.read { try $0.send(id) })
            sends.append(
                (record, try #require(try gate.store.read { try $0.entry(record.entryIndex) }).bytes))
        }
        for (record, entry) in sends { #expect(try record.entry(in: entry).send == record.id) }
        for (one, other) in [(0, 1), (1, 0)] {
            let error = #expect(throws: StoreError.self) {
                try sends[one].record.entry(in: sends[other].entry)
            }
            #expect(error?.damage?.table == "send" && error?.damage?.row == sends[one].record.id.hexadecimal)
        }
    }

    @Test func `a refusal is repeated word for word; only a new id is decided anew`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let promo = try await gate.promo("p1", to: "u_1")
        let first = try await gate.call("marketing", "POST", "/v1/sends", promo)
        try #require(first.status == 403)
        #expect(first["hint"]?.contains("new id") == true)
        try await gate.consent("u_1")
        var again = try await gate.call("marketing", "POST", "/v1/sends", promo)
        #expect(again.json["replayed"] == true)
        again.json["replayed"] = nil
        #expect(again.status == 403 && again.json == first.json)
        let fresh = try await gate.promo("p2", to: "u_1")
        let sent = try await gate.call("marketing", "POST", "/v1/sends", fresh)
        try #require(sent.status == 202)
        #expect(try await gate.call("marketing", "POST", "/v1/sends", fresh)["hint"] == nil)
    }

    @Test func `both answers carry a detail, null when the reason says it all`() async throws {
        let gate = try GatewayHarness()
        let unknown = try await gate.call(
            "marketing", "POST", "/v1/sends", gate.promo("p1", to: "nobody"))
        #expect(unknown.status == 403 && unknown.json["detail"] == .null, "\(unknown.json)")
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p2", to: "u_1"))
        #expect(sent.status == 202 && sent.json["detail"] == .null, "\(sent.json)")
    }

    @Test func `params that do not fit are listed with their pointers and without their values`() async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var send = GatewayHarness.remittance("r1", to: "u_1")
        send["params"] = [
            "amount": ["minor": "lots", "currency": "NOK"], "transaction_id": "Zaphod",
            "recipient_name": "Ahmad Karimi",
        ]
        let first = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(first.status == 403 && first["reason"] == "invalid_params", "\(first.json)")
        let violations = try #require(first.json["violations"]?.arrayValue).compactMap(\.objectValue)
        #expect(
            violations.compactMap { $0["pointer"]?.stringValue } == [
                "/params/amount/minor", "/params/transaction_id",
            ])
        let text = String(decoding: CanonicalJSON.write(.object(first.json)), as: UTF8.self)
        #expect(!text.contains("Zaphod") && !text.contains("lots"))
        let again = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(again.json["replayed"] == true && again.json["violations"] == first.json["violations"])
    }

    /// A remittance whose type or params are misspelled, by what is wrong with it.
    private static func misspelled(_ id: String, _ reason: String) -> JSONObject {
        var send = GatewayHarness.remittance(id, to: "u_1")
        switch reason {
        case "unknown_type": send["type"] = "transaction.remitance_sent"
        default:
            send["params"] = [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient": "Ahmad Karimi",
                "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ]
        }
        return send
    }

    private static let ofShape = ["unknown_type", "invalid_params"]

    @Test(arguments: ofShape)
    func `a refusal for the request's own shape is recorded and leaves the id to corrected content`(
        _ reason: String
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let wrong = Self.misspelled("r1", reason)
        let first = try await gate.call("payments", "POST", "/v1/sends", wrong)
        #expect(first.status == 403 && first["reason"] == reason, "\(first.json)")
        #expect(first["hint"]?.contains("this id is free") == true, "\(first.json)")
        // The same content has the same answer, and one entry.
        let again = try await gate.call("payments", "POST", "/v1/sends", wrong)
        #expect(again.status == 403 && again.json["replayed"] == true)
        #expect(again["send_id"] == first["send_id"] && again.json["trail"] == first.json["trail"])
        // Other content that is wrong is a refusal of its own.
        var other = wrong
        other["ttl_seconds"] = 61
        let another = try await gate.call("payments", "POST", "/v1/sends", other)
        #expect(another.status == 403 && another["reason"] == reason && another.json["replayed"] == nil)
        #expect(another["send_id"] != first["send_id"])

        let right = GatewayHarness.remittance("r1", to: "u_1")
        let sent = try await gate.call("payments", "POST", "/v1/sends", right)
        #expect(sent.status == 202 && sent.json["replayed"] == nil, "\(sent.json)")
        // From here on the id is bound, and each content still has the answer it had.
        #expect(try await gate.call("payments", "POST", "/v1/sends", right).json["replayed"] == true)
        for (content, answer) in [(wrong, first), (other, another)] {
            let late = try await gate.call("payments", "POST", "/v1/sends", content)
            #expect(late.status == 403 && late.json["replayed"] == true, "\(late.json)")
            #expect(late["send_id"] == answer["send_id"])
            #expect(late["hint"]?.hasSuffix(SendAnswer.takenIDHint) == true, "\(late.json)")
        }
        var third = right
        third["ttl_seconds"] = 62
        #expect(try await gate.call("payments", "POST", "/v1/sends", third).status == 409)
        third = wrong
        third["ttl_seconds"] = 62
        #expect(try await gate.call("payments", "POST", "/v1/sends", third).status == 409)
        for answer in [first, another, sent] {
            let status = try await gate.call(
                "payments", "GET", "/v1/sends/\(try #require(answer["send_id"]))")
            #expect(status.status == 200 && status["reason"] == answer["reason"], "\(status.json)")
        }
        #expect(try gate.entries("send").count == 3)
    }

    @Test(arguments: ofShape)
    func `in one batch, and after a restart, a refusal for its shape binds as much and no more`(
        _ reason: String
    ) async throws {
        var environment = EngineEnvironment()
        environment.isDrained = false
        let gate = try GatewayHarness(environment: environment, keeping: .files())
        try await gate.register("u_1")
        let (wrong, right) = (Self.misspelled("r1", reason), GatewayHarness.remittance("r1", to: "u_1"))
        let replies = try await gate.inOneBatch(
            [wrong, wrong, right, wrong, right].map { send in
                { try await $0.call("payments", "POST", "/v1/sends", send) }
            })
        #expect(replies.map { $0?.status } == [403, 403, 202, 403, 202])
        #expect(replies.map { $0?.json["replayed"] == true } == [false, true, false, true, true])
        gate.engine.drain()
        gate.files.close()
        let next = try GatewayHarness(after: gate, keeping: .folder(gate.folder))
        for (send, status, place) in [(wrong, 403, 0), (right, 202, 2)] {
            let again = try await next.call("payments", "POST", "/v1/sends", send)
            #expect(again.status == status && again.json["replayed"] == true, "\(again.json)")
            #expect(again["send_id"] == replies[place]?["send_id"])
        }
        #expect(try next.entries("send").count == 2)
    }

    @Test func `every other refusal keeps its id`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        #expect(Set(Reason.allCases.filter { !$0.bindsID }.map(\.rawValue)) == Set(Self.ofShape))
        // Who may not send the type, and would do it wrongly: the type is not that caller's to correct.
        let refused: [(caller: String, send: JSONObject, reason: String)] = [
            ("marketing", GatewayHarness.remittance("a", to: "u_1"), "caller_not_permitted"),
            ("payments", GatewayHarness.remittance("a", to: "nobody"), "unknown_recipient"),
            ("marketing", try await gate.promo("b", to: "u_1"), "no_gdpr_consent"),
        ]
        for (caller, send, reason) in refused {
            let first = try await gate.call(caller, "POST", "/v1/sends", send)
            #expect(first.status == 403 && first["reason"] == reason, "\(first.json)")
            #expect(first["hint"]?.contains("this id keeps this answer") == true)
            var other = send
            other["ttl_seconds"] = 61
            #expect(try await gate.call(caller, "POST", "/v1/sends", other).status == 409)
        }
    }

    @Test func `a type that is switched off says what to do, whatever its params are`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let reply = try await gate.call(
            "product", "POST", "/v1/sends",
            [
                "id": "a1", "type": "alert.rdc_account_status", "recipient": ["user": "u_1"],
                "params": ["no": "such"],
            ])
        #expect(reply.status == 403 && reply["reason"] == "type_disabled", "\(reply.json)")
        let hint = gate.policy.type(TypeID("alert.rdc_account_status"))?.disabledHint
        // A hint that is a sentence goes on without its full stop.
        let words = try #require(hint).hasSuffix(".") ? String(hint!.dropLast()) : hint!
        #expect(reply["hint"]?.hasPrefix("\(words); this id keeps this answer") == true, "\(reply.json)")
        #expect(reply.json["violations"] == nil)
    }

    @Test func `a packed body is refused before it is read`() async throws {
        let gate = try GatewayHarness()
        let reply = try await gate.call(
            "marketing", "POST", "/v1/sends", ["id": "p1"], headers: [("content-encoding", "gzip")])
        #expect(reply.status == 415, "\(reply.json)")
        let plain = try await gate.call(
            "marketing", "POST", "/v1/sends", ["id": "p1"], headers: [("content-encoding", "identity")])
        #expect(plain.status == 422)
    }
}
