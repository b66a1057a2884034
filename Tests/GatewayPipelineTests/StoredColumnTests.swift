import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

@testable import SQLiteStore

/// Every column of every table of both databases, damaged in one row of a store that a gateway has filled. The columns
/// are the databases' own, so that a new one is damaged too.
@Suite struct StoredColumnTests {
    private struct Column: CustomStringConvertible {
        var file: String
        var table: String
        var name: String
        var type: String
        var key: [String]
        var rowCount: Int
        /// Part of the table's key or of an index: a row that is looked for by it is then not found.
        var isLookedFor = false

        var description: String { "\(table).\(name)" }
    }

    /// What a row is made to hold.
    private enum Value {
        case emptied, zeroed, random, overlong

        func sql(for column: Column, seed: UInt64) -> String {
            var numbers = SeededNumbers(seed: seed)
            switch (self, column.type) {
            case (.emptied, "INTEGER"): return "NULL"
            case (.emptied, "TEXT"): return "''"
            case (.emptied, _): return "x''"
            case (.zeroed, "INTEGER"): return "0"
            case (.zeroed, "TEXT"): return "'0'"
            case (.zeroed, _): return "zeroblob(length(\(column.name)))"
            case (.random, "INTEGER"): return "\(Int64(bitPattern: numbers.next()))"
            case (.random, "TEXT"): return "'r\(numbers.next())'"
            case (.random, _):
                let bytes = (0..<16).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
                return "x'\(Hexadecimal.encode(bytes))'"
            case (.overlong, "INTEGER"): return "\(Int64.max)"
            case (.overlong, "TEXT"): return "hex(zeroblob(50000))"
            case (.overlong, _): return "zeroblob(100000)"
            }
        }
    }

    private static func tamper<Result>(_ path: String, _ body: (Connection) throws -> Result) throws -> Result
    {
        let connection = try Connection(
            path: path, file: "tampered", role: .writer(byteCountMax: nil), cacheByteCount: 1 << 20,
            busyTimeoutMilliseconds: 1_000)
        defer { connection.close() }
        return try connection.exclusively { try body(connection) }
    }

    private static func columns(of folder: String) throws -> [Column] {
        try ["gate.db", "subjects.db"].flatMap { file in
            try tamper("\(folder)/\(file)") { connection in
                let all = StatementText(
                    "schema",
                    """
                    SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c
                    WHERE m.type = 'table' ORDER BY 1, c.cid
                    """)
                let keys = StatementText(
                    "schema",
                    "SELECT c.name FROM pragma_table_info(?) c WHERE c.pk > 0 ORDER BY c.pk")
                return try connection.every(all) {
                    Column(
                        file: file, table: $0.text(), name: $0.text(), type: $0.text(), key: [], rowCount: 0)
                }.map { column in
                    var column = column
                    column.key = try connection.every(keys, { $0.add(column.table) }, read: { $0.text() })
                    let indexed = StatementText(
                        "schema",
                        "SELECT i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE i.name IS NOT NULL"
                    )
                    let names = try connection.every(
                        indexed, { $0.add(column.table) }, read: { $0.text() })
                    column.isLookedFor = (names + column.key).contains(column.name)
                    column.rowCount =
                        Int(try connection.pragma("SELECT count(*) FROM \(column.table)")) ?? 0
                    return column
                }
            }
        }
    }

    /// A stopped gateway with something in every table, and two people with everything a person can have.
    private func filled() async throws -> GatewayHarness {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try await gate.consent(user)
            _ = try await gate.addKey(user)
            let address = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/addresses/e_1",
                ["kind": "email", "value": "a@example.org", "verified_at": .string(gate.clock.now().rfc3339)])
            try #require(address.status < 300, "\(address.json)")
            let preference = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/preferences/transactional",
                ["state": "user_on", "source": "in_app_settings", "channel": "push"])
            try #require(preference.status == 200, "\(preference.json)")
            for id in ["a", "b"] {
                let sent = try await gate.call(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("\(id)-\(user)", to: user))
                try #require(sent.status == 202, "\(sent.json)")
            }
            let promo = try await gate.promo("p-\(user)", to: user)
            try #require(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
            var breach = try await gate.example(
                "privacy.breach_notice", "n-\(user)", to: user, as: "security")
            breach["channel"] = "push"
            try #require(try await gate.call("security", "POST", "/v1/sends", breach).status < 500)
            try #require(
                try await gate.call("payments", "POST", "/v1/sends", processing("t-\(user)", user)).status
                    == 202)
        }
        // Some are handed over, so that there are events of sends.
        for delivery in try await gate.claim().prefix(3) {
            try await gate.gateway.report(delivery.message, .accepted(status: 200), retryAt: nil)
        }
        gate.store.close()
        return gate
    }

    private func processing(_ id: String, _ user: String) -> JSONObject {
        [
            "id": .string(id), "type": "alert.payment_processing", "recipient": ["user": .string(user)],
            "params": [
                "alertId": "11111111-5c1b-4e52-9a1f-3f6f3d1f7a10",
                "paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ],
        ]
    }

    private struct Reply {
        var route: String
        var status: Int
        /// What a caller reads in a success, without what is new in each: ids, indexes and leaf hashes.
        var text: String
    }

    /// Everything that reads or changes what is stored of both people.
    private func replies(of gate: GatewayHarness) async throws -> [Reply] {
        var replies: [Reply] = []
        func ask(_ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
        {
            let reply = try await gate.call(caller, method, target, body)
            var json = reply.json
            if method != "GET" {
                json = JSONObject(
                    ["outcome", "reason", "detail", "replayed"].compactMap { name in
                        json[name].map { (name, $0) }
                    })
            }
            replies.append(
                Reply(
                    route: "\(method) \(target)", status: reply.status,
                    text: String(decoding: CanonicalJSON.write(json), as: UTF8.self)))
        }
        for user in ["u_1", "u_2"] {
            for what in ["", "/consents", "/preferences", "/decisions"] {
                try await ask("help", "GET", "/v1/recipients/\(user)\(what)")
            }
            for id in ["a", "b"] {
                try await ask(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("\(id)-\(user)", to: user))
            }
            try await ask("payments", "POST", "/v1/sends", processing("again-\(user)", user))
        }
        for caller in ["payments", "marketing", "security"] {
            try await ask(caller, "GET", "/v1/events?after=0")
        }
        _ = try? await gate.claim()
        for user in ["u_1", "u_2"] {
            try await ask("marketing", "POST", "/v1/sends", gate.promo("new-\(user)", to: user))
            try await ask("payments", "POST", "/v1/sends", GatewayHarness.remittance("new-\(user)", to: user))
            try await ask(
                "product", "POST", "/v1/recipients/\(user)/consents/c1/withdraw")
            try await ask(
                "product", "PUT", "/v1/recipients/\(user)/preferences/marketing",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"])
            try await ask("product", "DELETE", "/v1/recipients/\(user)/addresses/e_1")
            try await ask("product", "DELETE", "/v1/recipients/\(user)/devices/d_1")
            try await ask("product", "DELETE", "/v1/recipients/\(user)")
        }
        _ = try gate.store.write { try $0.prune(before: gate.clock.now()) }
        return replies
    }

    @Test func `damage in any column is told by table and row, and answers nothing that is not so`()
        async throws
    {
        let base = try await filled()
        let columns = try Self.columns(of: base.folder)
        let tables = Set(columns.map(\.table))
        // Marks of erasures last from a commit to the next start only.
        #expect(Set(columns.filter { $0.rowCount == 0 }.map(\.table)) == ["erasure"])
        func copy() throws -> String {
            let path = NSTemporaryDirectory() + "sendgate-column-\(UUID().uuidString)"
            try FileManager.default.copyItem(atPath: base.folder, toPath: path)
            return path
        }
        let sound = try GatewayHarness(after: base, in: copy())
        let expected = try await replies(of: sound)
        #expect(expected.allSatisfy { $0.status < 500 }, "\(expected)")
        #expect(sound.store.damagedRows.isEmpty, "\(sound.store.damagedRows)")

        var seed: UInt64 = 0x5EED_0012
        for (position, column) in columns.enumerated() where column.rowCount > 0 {
            for value in position.isMultiple(of: 2) ? [Value.emptied, .random] : [.zeroed, .overlong] {
                seed += 1
                let path = try copy()
                let key = column.key.joined(separator: ", ")
                let place = """
                    (\(key)) = (SELECT \(key) FROM \(column.table) ORDER BY \(key)
                    LIMIT 1 OFFSET \(seed % UInt64(column.rowCount)))
                    """
                let update =
                    "UPDATE \(column.table) SET \(column.name) = \(value.sql(for: column, seed: seed)) WHERE \(place)"
                let wasPut: Void? = try? Self.tamper("\(path)/\(column.file)") { try $0.script(update) }
                guard wasPut != nil else {
                    // The column's own constraints refuse it.
                    try FileManager.default.removeItem(atPath: path)
                    continue
                }
                try await expectHonesty(at: path, after: base, column, update, expected, tables)
            }
        }
    }

    private func expectHonesty(
        at path: String, after base: GatewayHarness, _ column: Column, _ update: String, _ expected: [Reply],
        _ tables: Set<String>
    ) async throws {
        let gate: GatewayHarness
        do {
            gate = try GatewayHarness(after: base, in: path)
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            let isOfStore = error is StoreOpeningError || (error as? StoreError)?.damage != nil
            let isNamed = tables.contains { "\(error)".contains("`\($0)` row ") }
            #expect(isOfStore && isNamed, "\(update): \(error)")
            return
        }
        let found = try await replies(of: gate)
        let damaged = gate.store.damagedRows
        for damage in damaged {
            #expect(tables.contains(damage.table) && damage.row != nil, "\(update): \(damage)")
        }
        // A row that is not found is no different from one that never was; and these stand in clear beside a seal that
        // is not bound to them.
        let isUnbound = ["event.at", "event.destination", "outbox_tally.byte_count"].contains("\(column)")
        guard damaged.isEmpty, !column.isLookedFor, !isUnbound else { return }
        // Nothing is told, so nothing may be otherwise.
        for (was, now) in zip(expected, found) {
            #expect(
                was.status == now.status && was.text == now.text,
                "\(update): \(now.route) was \(was.status) \(was.text), is \(now.status) \(now.text)")
        }
    }
}
