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

/// A damaged page stops what touches it, and nothing else.
@Suite struct DamageTests {
    private static let firstPerson = "SELECT sealed FROM person WHERE number = 1"

    /// People on several pages: u_1 on the first, and u_2 on the last.
    private func gate(
        sending ids: [String] = [], _ limits: SQLiteStoreLimits = .uncached
    ) async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: .files(limits))
        for user in ["u_1"] + (0..<12).map({ "u_between_\($0)" }) + ["u_2"] {
            try await gate.register(user)
        }
        for (id, user) in zip(ids, ["u_1", "u_2"]) {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: user))
            try #require(sent.status == 202, "\(sent.json)")
        }
        return gate
    }

    @Test func `a due message on a damaged page is set aside and those behind it go`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        try gate.damagePage(of: "SELECT sealed FROM outbox WHERE number = 1")
        #expect(try await gate.claim().count == 1)
        await gate.settle()
        #expect(gate.store.damages.map(\.table) == ["outbox"])
        #expect(gate.alarms.all.contains { $0.contains("of `gate.db`") && $0.contains("3600 s") })
        // It does not come up again every minute, and it does every hour.
        for (seconds, alarmCount) in [(Int64(120), 0), (3_600, 1)] {
            gate.clock.advance(seconds: seconds)
            let before = gate.alarms.all.count
            #expect(try await gate.claim().isEmpty)
            await gate.settle()
            #expect(gate.alarms.all.count == before + alarmCount)
        }
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 2)
    }

    @Test(arguments: ["send", "erase"])
    func `what a damaged page is in the way of fails alone in its batch`(_ command: String) async throws {
        let gate = try await gate()
        try gate.damagePage(of: Self.firstPerson)
        let replies = try await gate.inOneBatch([
            { try await $0.remit("before", to: "u_2") },
            { gate in
                command == "send"
                    ? try await gate.remit("bad", to: "u_1")
                    : try await gate.call("product", "DELETE", "/v1/recipients/u_1")
            }, { try await $0.remit("after", to: "u_2") },
        ])
        #expect(replies[0]?.status == 202 && replies[2]?.status == 202, "\(replies)")
        #expect(replies[1]?.status == 503, "\(replies[1]?.json ?? [:])")
    }

    /// A person who is kept in memory is written without being read, at the end of a commit that others share.
    @Test func `a damaged page that only the commit of a batch meets refuses its own operation alone`()
        async throws
    {
        var limits = SQLiteStoreLimits.uncached
        limits.personNumberCountMax = 100
        let gate = try await gate(limits)
        try gate.damagePage(of: Self.firstPerson)
        let replies = try await gate.inOneBatch(
            [
                { try await $0.remit("before", to: "u_2") },
                {
                    try await $0.call(
                        "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
                        ["state": "user_off", "source": "in_app_settings", "channel": "push"])
                }, { try await $0.remit("after", to: "u_2") },
            ], batches: nil)
        #expect(replies[0]?.status == 202 && replies[2]?.status == 202, "\(replies)")
        #expect(replies[1]?.status == 503, "\(replies[1]?.json ?? [:])")
        #expect(gate.store.damages.map(\.table) == ["person"], "\(gate.store.damages)")
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
        try gate.damagePage(of: Self.firstPerson)
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

    @Test func `what the hop has does not go again where that cannot be recorded`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        let deliveries = try await gate.claim()
        try #require(deliveries.count == 2)
        func report(_ result: HopResult, retryAt: Instant?) async -> [Bool] {
            let recorded = Mutex<[MessageID: Bool]>([:])
            await withCheckedContinuation { continuation in
                let results = deliveries.map { delivery in
                    ReportedResult(
                        message: delivery.message, outcome: .tried(result, retryAt: retryAt)
                    ) { failure in recorded.withLock { $0[delivery.message] = failure == nil } }
                }
                gate.engine.submit(
                    ReportOperation(results: results, inFlight: gate.engine.inFlight) {
                        continuation.resume()
                    })
            }
            return deliveries.compactMap { delivery in recorded.withLock { $0[delivery.message] } }
        }
        func rows() throws -> [OutboxRecord?] {
            try gate.store.read { store in try deliveries.map { try store.outboxHead($0.message) } }
        }
        try gate.damageRootPage(of: "event_by_send")
        #expect(await report(.accepted(status: 200, byProvider: false), retryAt: nil) == [false, false])
        // A later process finds none of them due.
        #expect(try rows().allSatisfy { $0.map { $0.notBefore == $0.expiresAt } == true })
        let due = try gate.store.read {
            try $0.dueOutbox(at: gate.clock.now(), limit: 9, lane: .general, excluding: [])
        }
        #expect(due.isEmpty)
        // The page is put right: the same byte is changed back.
        try gate.damageRootPage(of: "event_by_send")
        #expect(await report(.accepted(status: 200, byProvider: false), retryAt: nil) == [true, true])
        #expect(try rows().allSatisfy { $0 == nil })
    }

    @Test func `an entry on a damaged page answers nothing, and the operator is told its page`() async throws
    {
        let gate = try await gate(sending: ["a"])
        let status = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("a", to: "u_1"))
        let send = try #require(status["send_id"])
        let id = try #require(SendID(uuidText: send))
        let index = try #require(try gate.store.read { try $0.send(id)?.entryIndex })
        try gate.damagePage(of: "SELECT bytes FROM entry WHERE number = \(index)")
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
        #expect(gate.store.damages.map(\.table) == ["entry"])
        #expect(gate.store.damages.first?.what.contains("of `gate.db` is not as it was written") == true)
    }

    @Test func `a damaged page of people refuses sends to them only`() async throws {
        let gate = try await gate()
        for user in ["u_1", "u_2"] { try await gate.consent(user) }
        try gate.damagePage(of: Self.firstPerson)
        let refused = try await gate.remit("a", to: "u_1")
        #expect(refused.status == 503, "\(refused.json)")
        // A caller is told that it is not theirs to mend, and the operator which page it is.
        #expect(refused["detail"]?.contains("`sendgate status`") == true, "\(refused.json)")
        #expect(refused["detail"]?.contains("person") == false, "\(refused.json)")
        #expect(try await gate.remit("b", to: "u_2").status == 202)
        #expect(gate.store.damages.map(\.table) == ["person"])
        // One page is no reason to call the whole gateway unready.
        #expect(try await gate.call("nobody", "GET", "/readyz").status == 200)
    }

    @Test func `a damaged page of a ledger refuses what adds to it and shows it, and no send`() async throws {
        let gate = try await gate()
        try await gate.consent("u_1")
        try gate.damagePage(of: "SELECT sealed FROM ledger WHERE person = 1")
        #expect(try await gate.consent("u_1", id: "c2").status == 503)
        #expect(try await gate.call("auditor", "GET", "/v1/recipients/u_1/consents").status == 503)
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p", to: "u_1"))
        #expect(sent.status == 202, "\(sent.json)")
        #expect(Set(gate.store.damages.map(\.table)) == ["ledger"])
    }

    @Test func `a send that leads to another send's entry answers nothing`() async throws {
        let gate = try await gate(sending: ["a", "b"])
        let connection = gate.files.writer.connection
        try connection.exclusively {
            try connection.script(
                "UPDATE send SET entry_index = (SELECT entry_index FROM send WHERE number = 2) WHERE number = 1"
            )
        }
        let again = try await gate.remit("a", to: "u_1")
        #expect(again.status == 503, "\(again.json)")
        #expect(gate.store.damages.map(\.table) == ["send"])
    }
}
