import CanonicalJSON
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

@testable import SQLiteStore

/// What the gateway answers after an attacker without its keys has edited its databases, in columns that rows are looked up
/// by: never that something is not there which was.
@Suite struct AlteredStoreTests {
    /// When it is noticed.
    enum Moment: CaseIterable {
        case restart
        case pass
    }

    private func edit(_ folder: String, _ file: String, of gate: GatewayHarness, _ sql: String) throws {
        let connection = try Connection.tampering("\(folder)/\(file)", index: gate.keys.index)
        defer { connection.close() }
        try connection.exclusively {
            try connection.script(StoreTampering.begin)
            try connection.script(sql)
            try connection.script(StoreTampering.end)
        }
    }

    /// The gateway over edited files: started on them, or as it runs on after a pass over its rows.
    private func edited(
        _ gate: GatewayHarness, _ moment: Moment, _ sql: String, in file: String = "gate.db"
    ) throws -> GatewayHarness {
        switch moment {
        case .pass:
            try edit(gate.folder, file, of: gate, sql)
            while try !gate.store.checkRows(countMax: 50) {}
            return gate
        case .restart:
            gate.store.close()
            let path = NSTemporaryDirectory() + "sendgate-altered-\(UUID().uuidString)"
            try FileManager.default.copyItem(atPath: gate.folder, toPath: path)
            try edit(path, file, of: gate, sql)
            return try GatewayHarness(after: gate, in: path)
        }
    }

    private func gate() async throws -> GatewayHarness {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        return gate
    }

    private func send(_ id: String, to user: String, minor: Int64 = 500_000, _ gate: GatewayHarness)
        async throws -> GatewayHarness.Reply
    {
        var body = GatewayHarness.remittance(id, to: user)
        body["params"] = [
            "amount": ["minor": .integer(minor), "currency": "NOK"], "recipient_name": "Ahmad Karimi",
            "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
        ]
        return try await gate.call("payments", "POST", "/v1/sends", body)
    }

    private func expectNamed(_ table: String, _ gate: GatewayHarness) {
        #expect(gate.store.damagedRows.contains { $0.table == table }, "\(gate.store.damagedRows)")
    }

    @Test(arguments: Moment.allCases, ["key = zeroblob(16)", "person = person + 7"])
    func `a key is revoked by its id, whatever became of the table that finds it`(
        moment: Moment, change: String
    ) async throws {
        let before = try await gate()
        let (_, key) = try await before.addKey("u_1")
        let gate = try edited(before, moment, "UPDATE device_key SET \(change)")
        let reply = try await gate.call("keys-team", "POST", "/v1/keys/\(key)/revoke", ["cause": "lost"])
        #expect(reply.status == 200 && reply["state"] == "deactivated", "\(reply.json)")
        expectNamed("device_key", gate)
    }

    @Test(
        arguments: Moment.allCases,
        ["SET code = zeroblob(32) WHERE person = 1", "SET person = person + 7"])
    func `a token stays one person's`(moment: Moment, change: String) async throws {
        let gate = try edited(try await gate(), moment, "UPDATE push_token \(change)")
        let taken = try await gate.call(
            "product", "PUT", "/v1/recipients/u_2/devices/d_2",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-u_1-d_1")),
                "region": "DE",
                "time_zone": "Europe/Berlin", "os_permission": "granted",
            ])
        #expect(taken.status == 200, "\(taken.json)")
        let first = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(first.json["devices"]?.arrayValue?.map { $0["active"] } == [false], "\(first.json)")
        expectNamed("push_token", gate)
    }

    @Test(arguments: Moment.allCases, ["id_hash = zeroblob(16)", "caller = caller + 1"])
    func `an id keeps its one content`(moment: Moment, change: String) async throws {
        let before = try await gate()
        let first = try await send("a", to: "u_1", before)
        #expect(first.status == 202, "\(first.json)")
        let gate = try edited(before, moment, "UPDATE send SET \(change) WHERE number = 1")
        let other = try await send("a", to: "u_1", minor: 1, gate)
        #expect(other.status == 409, "\(other.json)")
        let again = try await send("a", to: "u_1", gate)
        #expect(again["send_id"] == first["send_id"] && again["send_id"] != nil, "\(again.json)")
        expectNamed("send", gate)
    }

    @Test(arguments: Moment.allCases)
    func `a send that was refused for its shape is found again by its content`(moment: Moment) async throws {
        let before = try await gate()
        var body = GatewayHarness.remittance("a", to: "u_1")
        body["type"] = "transaction.remitance_sent"
        let first = try await before.call("payments", "POST", "/v1/sends", body)
        #expect(first["reason"] == "unknown_type", "\(first.json)")
        let gate = try edited(before, moment, "UPDATE send SET id_hash = zeroblob(16) WHERE number = 1")
        let again = try await gate.call("payments", "POST", "/v1/sends", body)
        #expect(again["send_id"] == first["send_id"] && again["send_id"] != nil, "\(again.json)")
        #expect(try await send("a", to: "u_1", gate).status == 202)
        expectNamed("send", gate)
    }

    @Test(arguments: Moment.allCases)
    func `a send that is missing is named and stops nobody's, until an operator accepts it and after`(
        moment: Moment
    )
        async throws
    {
        let before = try await gate()
        #expect(try await send("a", to: "u_1", before).status == 202)
        #expect(try await send("b", to: "u_1", before).status == 202)
        let gate = try edited(before, moment, "DELETE FROM send WHERE number = 1")
        #expect(try await send("new", to: "u_1", gate).status == 202)
        #expect(try await send("b", to: "u_1", gate)["replayed"] == nil)
        #expect(try await send("b", to: "u_1", gate).status < 300)
        expectNamed("send", gate)
        #expect(try gate.store.acceptDamage().map(\.table) == ["send"])
        #expect(try await send("c", to: "u_1", gate).status == 202)
        #expect(try gate.store.acceptDamage().isEmpty)
    }

    @Test(
        arguments: Moment.allCases,
        ["UPDATE subject SET user = zeroblob(32) WHERE number = 1", "DELETE FROM subject WHERE number = 1"])
    func `nobody is registered anew without their no`(moment: Moment, sql: String) async throws {
        let before = try await gate()
        let off = try await before.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        #expect(off.status == 200)
        let gate = try edited(before, moment, sql, in: "subjects.db")
        let body: JSONObject = [
            "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
            "age": "adult", "privacy": "generic", "push_enabled": true,
        ]
        // A person who is remembered is known still: with the pseudonym they had, and with their no.
        let isKnown = moment == .pass
        #expect(
            try await gate.call("product", "PUT", "/v1/recipients/u_1", body).status == (isKnown ? 200 : 503))
        #expect(try await send("a", to: "u_1", gate).status == (isKnown ? 202 : 503))
        let read = try await gate.call("auditor", "GET", "/v1/recipients/u_1")
        #expect(read.status == 503, "\(read.json)")
        #expect(try await send("b", to: "u_2", gate).status == 202)
        expectNamed("subject", gate)
        _ = try gate.store.acceptDamage()
        #expect(try await gate.call("product", "PUT", "/v1/recipients/u_1", body).status == 200)
        // What is accepted is damaged still, and said so.
        expectNamed("subject", gate)
    }

    @Test(arguments: Moment.allCases)
    func `events behind a hundred damaged ones are told`(moment: Moment) async throws {
        let before = try await gate()
        try before.store.write { transaction in
            for number in 0..<150 {
                try transaction.appendEvent(
                    EventRecord(
                        caller: CallerName("payments"), send: SendID(high: 1, low: UInt64(number)),
                        subject: nil, event: .failed, destination: Tag(high: 2, low: 2),
                        at: before.clock.now(), reason: nil))
            }
        }
        let gate = try edited(
            before, moment,
            """
            UPDATE event SET event = 99 WHERE cursor <= 140;
            UPDATE event SET destination = zeroblob(16) WHERE cursor = 141;
            UPDATE event SET at = 0 WHERE cursor = 142;
            """)
        let events = try await gate.call("payments", "GET", "/v1/events?after=0")
        #expect(events.json["events"]?.arrayValue?.count == 8, "\(events.json)")
        expectNamed("event", gate)
    }

    @Test(
        arguments: Moment.allCases,
        ["byte_count = 1 << 50", "row_count = 1 << 50", "rank = 0", "caller = 99"])
    func `a wrong tally stops no send`(moment: Moment, change: String) async throws {
        let before = try await gate()
        #expect(try await send("a", to: "u_1", before).status == 202)
        let gate = try edited(before, moment, "UPDATE outbox_counters SET \(change)")
        #expect(try await send("b", to: "u_1", gate).status == 202)
        #expect(try await gate.claim().count == 2)
        expectNamed("outbox_counters", gate)
    }

    @Test(arguments: Moment.allCases)
    func `a message of no rank goes all the same, and one of nobody does not end as erased`(moment: Moment)
        async throws
    {
        let before = try await gate()
        for id in ["a", "b"] { #expect(try await send(id, to: "u_1", before).status == 202) }
        let gate = try edited(
            before, moment,
            """
            UPDATE outbox SET rank = 99 WHERE number = 1;
            UPDATE outbox SET subject = zeroblob(16) WHERE number = 2;
            """)
        #expect(try await gate.claim().count == 1)
        let rows = gate.store.damagedRows.filter { $0.table == "outbox" }.compactMap(\.row)
        #expect(Set(["1", "2"]).isSubset(of: rows), "\(gate.store.damagedRows)")
        let events = try await gate.call("payments", "GET", "/v1/events?after=0")
        #expect(!"\(events.json)".contains("erased"), "\(events.json)")
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == 2)
    }

    @Test(arguments: [
        ("UPDATE key_check SET id = 'other'", "key_check"), ("DELETE FROM key_check", "key_check"),
        ("UPDATE key_check SET seal_count = 0", "key_check"),
        ("UPDATE setting SET name = 'x' WHERE name = (SELECT min(name) FROM setting)", "setting"),
        ("DELETE FROM setting WHERE name = (SELECT min(name) FROM setting)", "setting"),
        ("UPDATE sequences SET send_number = 0", "sequences"), ("DROP INDEX send_by_hash", "send_by_hash"),
    ])
    func `a name that is gone is no fresh start`(sql: String, name: String) async throws {
        let before = try await gate()
        #expect(try await send("a", to: "u_1", before).status == 202)
        do {
            let gate = try edited(before, .restart, sql)
            Issue.record("it started: \(gate.store.damagedRows)")
        } catch {
            #expect("\(error)".contains(name) && "\(error)".contains("damaged"), "\(error)")
        }
    }
}
