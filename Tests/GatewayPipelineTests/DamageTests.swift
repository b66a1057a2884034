import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline
@testable import SQLiteStore

/// Damage of one row is one person's or one message's matter.
@Suite struct DamageTests {
    /// Changes the files past everything that protects them, beside the open store.
    private func tamper(_ gate: GatewayHarness, _ sql: String) throws {
        let connection = try Connection.tampering(gate.folder + "/gate.db", index: gate.keys.index)
        try connection.exclusively {
            try connection.script(StoreTampering.begin)
            try connection.script(sql)
            try connection.script(StoreTampering.end)
        }
    }

    private func gate(sending ids: [String] = []) async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: .files(SQLiteStoreLimits(cachedPersonCountMax: 0)))
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        for (id, user) in zip(ids, ["u_1", "u_2"]) {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: user))
            try #require(sent.status == 202, "\(sent.json)")
        }
        return gate
    }

    @Test func `a due message of one zero byte is put aside and those behind it go`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        try tamper(gate, "UPDATE outbox SET sealed = x'00' WHERE number = 1")
        #expect(try await gate.claim().count == 1)
        await gate.settle()
        #expect(gate.store.damagedRows.map(\.table) == ["outbox"])
        #expect(gate.alarms.all.contains { $0.contains("`outbox` row") && $0.contains("3600 s") })
        // It does not come up again every minute.
        gate.clock.advance(seconds: 120)
        let alarmCount = gate.alarms.all.count
        #expect(try await gate.claim().isEmpty)
        await gate.settle()
        #expect(gate.alarms.all.count == alarmCount)
    }

    @Test func `a send to a person whose row is damaged fails alone in its batch`() async throws {
        let gate = try await gate()
        try tamper(gate, "UPDATE person SET sealed = x'00' WHERE number = 1")
        let replies = try await gate.inOneBatch([
            { try await $0.remit("before", to: "u_2") }, { try await $0.remit("bad", to: "u_1") },
            { try await $0.remit("after", to: "u_2") },
        ])
        #expect(replies[0]?.status == 202 && replies[2]?.status == 202)
        #expect(replies[1].map { $0.status >= 500 } == true, "\(replies[1]?.json ?? [:])")
    }

    @Test(
        arguments: ["DELETE FROM person", "UPDATE person SET sealed = x'00'"],
        ["cancel", "erase", "register"])
    func `whatever a damaged person's row is in the way of fails alone in its batch`(
        _ edit: String, _ command: String
    ) async throws {
        let gate = try await gate(sending: ["a", "b"])
        try tamper(gate, edit + " WHERE number = 1")
        while try !gate.store.checkRows(countMax: 1_000) {}
        let send = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))["send_id"]
        let replies = try await gate.inOneBatch([
            { try await $0.remit("before", to: "u_2") },
            { gate in
                switch command {
                case "cancel":
                    return try await gate.call("payments", "POST", "/v1/sends/\(send ?? "")/cancel")
                case "erase": return try await gate.call("product", "DELETE", "/v1/recipients/u_1")
                default:
                    return try await gate.call(
                        "product", "PUT", "/v1/recipients/u_new",
                        ["region": "DE", "region_source": "kyc", "age": "adult"])
                }
            }, { try await $0.remit("after", to: "u_2") },
        ])
        #expect(replies[0]?.status == 202 && replies[2]?.status == 202, "\(replies)")
        // Of a damaged person, what waits can be cancelled and everything forgotten; a missing one has to be accepted
        // as gone first.
        let isDone = command != "register" && edit.hasPrefix("UPDATE")
        #expect(replies[1]?.status == (isDone ? 200 : 503), "\(replies[1]?.json ?? [:])")
    }

    @Test func `a message that cannot be read until it expires ends with an entry and an event`() async throws
    {
        let gate = try await gate(sending: ["a"])
        try tamper(gate, "UPDATE outbox SET sealed = x'00'")
        for _ in 0..<40 {
            gate.clock.advance(seconds: 3_601)
            #expect(try await gate.claim().isEmpty)
        }
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        let events = try await gate.call("payments", "GET", "/v1/events?after=0")
        let event = events.json["events"]?.arrayValue?.first { $0["event"] == "withdrawn" }
        #expect(event?["reason"] == "damaged", "\(events.json)")
        let kinds = try gate.store.read { try $0.entries(from: 0, limit: 99) }.map {
            try CanonicalJSON.read($0.bytes)
        }
        #expect(kinds.contains { $0["kind"] == "unsent" && $0["cause"] == "damaged" })
    }

    @Test func `who withdraws, cancels or is forgotten is not held up by a message that cannot be read`()
        async throws
    {
        let gate = try await gate(sending: ["a", "b"])
        try tamper(gate, "UPDATE outbox SET sealed = x'00'")
        let off = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/transactional",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        #expect(off.status == 200, "\(off.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 1)
        let send = try #require(
            try await gate.call("payments", "GET", "/v1/events?after=0").json["events"]?.arrayValue?.first)
        #expect(send["event"] == "withdrawn" && send["reason"] == "damaged")
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_2")
        #expect(erased.status == 200, "\(erased.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
    }

    /// What a caller does about a person, by whom, on which path and with what.
    private static let acts: [(caller: String, method: String, path: String, body: JSONObject?)] = [
        ("product", "POST", "/consents/c1/withdraw", nil),
        (
            "product", "PUT", "/preferences/transactional",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"]
        ),
        (
            "product", "PUT", "",
            ["region": "DE", "region_source": "kyc", "age": "minor", "time_zone": "Europe/Berlin"]
        ),
        (
            "product", "PUT", "/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": "aa00", "time_zone": "Europe/Berlin",
                "os_permission": "denied", "critical_alerts": true,
            ]
        ), ("product", "DELETE", "/devices/d_1", nil), ("product", "DELETE", "", nil),
    ]

    @Test(arguments: acts)
    func `no act about a person is held up by a message that cannot be read, and none of it goes`(
        _ act: (caller: String, method: String, path: String, body: JSONObject?)
    ) async throws {
        let gate = try await gate()
        try #require(try await gate.consent("u_1").status == 200)
        try #require(try await gate.remit("a").status == 202)
        try tamper(gate, "UPDATE outbox SET sealed = x'00'")
        let reply = try await gate.call(act.caller, act.method, "/v1/recipients/u_1" + act.path, act.body)
        #expect(reply.status == 200, "\(reply.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 0)
        let event = try await gate.call("payments", "GET", "/v1/events?after=0").json["events"]?.arrayValue?
            .first
        if act.path != "" || act.method != "DELETE" { #expect(event?["event"] == "withdrawn", "\(act)") }
    }

    @Test func `what is gathered beside a message that cannot be read is summarised without it`() async throws
    {
        let gate = try GatewayHarness(
            caps: """
                categories: {}
                types:
                  transaction.remittance_sent:
                    - {count: 1, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                """, keeping: .files(SQLiteStoreLimits(cachedPersonCountMax: 0)))
        try await gate.register("u_1")
        for number in 0..<4 { try #require(try await gate.remit("r\(number)").status == 202) }
        #expect(try await gate.claim().count == 1)
        try tamper(gate, "UPDATE outbox SET sealed = x'00' WHERE number = (SELECT max(number) FROM outbox)")
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
        #expect(try gate.entries("redecision").count { $0["cause"] == "summarised" } == 2)
    }

    @Test func `of results that are recorded together one that cannot be keeps back no other`() async throws {
        let gate = try await gate()
        for (id, user) in [("first", "u_2"), ("bad", "u_1"), ("good", "u_2")] {
            try #require(try await gate.remit(id, to: user).status == 202)
        }
        let deliveries = try await gate.claim()
        try #require(deliveries.count == 3)
        let bad = try #require(deliveries.first { $0.token == apnsToken("token-of-u_1-d_1") })
        let good = deliveries.filter { $0.message != bad.message }
        // Their person changes while it is under way, and cannot be read when the hop turns it away.
        try await gate.register("u_1", zone: "Europe/Oslo", device: nil)
        try tamper(gate, "UPDATE person SET sealed = x'00' WHERE number = 1")
        let retryAt = gate.clock.now().advanced(bySeconds: 1)
        let recorded = Mutex<[MessageID: Bool]>([:])
        await withCheckedContinuation { continuation in
            let results = deliveries.map { delivery in
                ReportedResult(
                    message: delivery.message, outcome: .tried(.notWritten("refused"), retryAt: retryAt)
                ) { failure in recorded.withLock { $0[delivery.message] = failure == nil } }
            }
            gate.engine.submit(
                ReportOperation(results: results, inFlight: gate.engine.inFlight) { continuation.resume() })
        }
        #expect(
            recorded.withLock { $0 } == [
                good[0].message: true, good[1].message: true, bad.message: false,
            ])
        for message in good.map(\.message) {
            let row = try #require(try gate.store.read { try $0.outbox(message) })
            #expect(row.notBefore == retryAt && row.attemptedAt == nil)
        }
    }

    @Test func `who cannot be read any more can still be forgotten`() async throws {
        let gate = try await gate()
        try tamper(gate, "UPDATE person SET sealed = x'00' WHERE number = 1")
        #expect(try await gate.call("product", "GET", "/v1/recipients/u_1").status == 503)
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        #expect(try await gate.call("product", "GET", "/v1/recipients/u_1").status == 404)
    }

    @Test(arguments: [
        "x''", "x'00'", "CAST(bytes || x'20' AS BLOB)", "(SELECT bytes FROM entry ORDER BY number LIMIT 1)",
    ])
    func `an entry with other bytes answers nothing and is told by table and row`(bytes: String) async throws
    {
        let gate = try await gate(sending: ["a", "b"])
        let status = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        let send = try #require(status["send_id"])
        let id = try #require(SendID(uuidText: send))
        let index = try #require(try gate.store.read { try $0.send(id)?.entryIndex })
        try tamper(gate, "UPDATE entry SET bytes = \(bytes) WHERE number = \(index)")
        let again = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        let looked = try await gate.call("payments", "GET", "/v1/sends/\(send)")
        let decisions = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
        for reply in [again, looked, decisions] {
            #expect(reply.status == 503, "\(reply.json)")
            let detail = try #require(reply["detail"])
            #expect(
                !detail.contains("entry") && !detail.contains("damaged(") && detail.contains("status"),
                "\(detail)")
        }
        #expect(gate.store.damagedRows.map(\.table) == ["entry"])
        #expect(gate.store.damagedRows.map(\.row) == ["\(index)"])
        #expect(try await gate.call("auditor", "GET", "/v1/recipients/u_2/decisions").status == 200)
    }

    @Test func `what a message told that cannot be read may be told again, as the trail says`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        func send(_ id: String) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "payments", "POST", "/v1/sends",
                try await gate.example("transfer.sent", id, to: "u_1", as: "payments"))
        }
        #expect(try await send("a").status == 202)
        #expect(try await send("b")["reason"] == "repeated")
        try tamper(gate, "UPDATE outbox SET sealed = x'00'")
        // Its 24 hours are over.
        gate.clock.advance(seconds: 90_000)
        #expect(try await gate.claim().isEmpty)
        #expect(try await send("c").status == 202)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        let (_, differences) = try EvidenceFoldTests.fold(entries, gate.policy)
        #expect(differences.isEmpty, "\(differences)")
    }

    @Test func `events go on past a send that cannot be read`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        for delivery in try await gate.claim() {
            try await gate.gateway.report(delivery.message, .accepted(status: 202), retryAt: nil)
        }
        try tamper(gate, "UPDATE send SET sealed = x'00' WHERE number = 1")
        let events = try await gate.call("payments", "GET", "/v1/events?after=0")
        #expect(events.status == 200 && events.json["events"]?.arrayValue?.count == 2, "\(events.json)")
    }

    @Test func `a send that leads to another send's entry answers nothing`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        try tamper(
            gate,
            "UPDATE send SET entry_index = (SELECT entry_index FROM send WHERE number = 2) WHERE number = 1")
        let again = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        #expect(again.status == 503, "\(again.json)")
        #expect(gate.store.damagedRows.map(\.table) == ["send"])
    }

    @Test func `a damaged row of a person refuses sends to that person only, by its name`() async throws {
        let gate = try await gate()
        for user in ["u_1", "u_2"] { try await gate.consent(user) }
        try tamper(gate, "UPDATE person SET sealed = x'0000' WHERE number = 1")
        let refused = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        #expect(refused.status == 503, "\(refused.json)")
        // A caller is told that it is not theirs to mend, and the operator which row it is.
        #expect(refused["detail"]?.contains("`sendgate status`") == true, "\(refused.json)")
        #expect(refused["detail"]?.contains("person") == false, "\(refused.json)")
        let other = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("b", to: "u_2"))
        #expect(other.status == 202, "\(other.json)")
        #expect(gate.store.damagedRows.map(\.table) == ["person"])
        #expect(gate.store.damagedRows.first?.row == "1", "\(gate.store.damagedRows)")
        // One person's row is no reason to call the whole gateway unready.
        #expect(try await gate.call("nobody", "GET", "/readyz").status == 200)
    }

    @Test func `a damaged ledger refuses what adds to it and shows it, and no send`() async throws {
        let gate = try await gate()
        try await gate.consent("u_1")
        try tamper(gate, "UPDATE ledger SET sealed = x'0000' WHERE person = 1")
        #expect(try await gate.consent("u_1", id: "c2").status == 503)
        #expect(try await gate.call("auditor", "GET", "/v1/recipients/u_1/consents").status == 503)
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p", to: "u_1"))
        #expect(sent.status == 202, "\(sent.json)")
        #expect(Set(gate.store.damagedRows.map(\.table)) == ["ledger"])
    }
}
