import CanonicalJSON
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import RecipientModel
import Testing

@testable import SQLiteStore

/// Every column of every table of both databases, altered in a store that a gateway has filled, and every table with a row
/// too few or too many. The columns are the databases' own, so that a new one is altered too.
@Suite struct StoredColumnTests {
    private struct Table: CustomStringConvertible {
        var file: String
        var name: String
        var columns: [Column] = []
        var rowCount = 0

        /// The primary key's columns, separated by commas.
        var key: String { columns.filter(\.isKey).map(\.name).joined(separator: ", ") }
        var description: String { name }
    }

    private struct Column {
        var name: String
        var type: String
        var isKey: Bool
        var isUnique: Bool
    }

    /// What an attacker without a key does to a table.
    private enum Edit: CustomStringConvertible {
        case flip(Column), zero(Column), null(Column), swap(Column), delete, copy

        var description: String {
            switch self {
            case .flip(let column): "flip \(column.name)"
            case .zero(let column): "zero \(column.name)"
            case .null(let column): "null \(column.name)"
            case .swap(let column): "swap \(column.name)"
            case .delete: "delete a row"
            case .copy: "copy a row"
            }
        }

        func sql(in table: Table) -> String {
            let first = "(SELECT \(table.key) FROM \(table.name) ORDER BY \(table.key) LIMIT 1)"
            func set(_ column: Column, _ value: String) -> String {
                let name = column.name
                return """
                    UPDATE \(table.name) SET \(name) = \(value)
                    WHERE (\(table.key)) = \(first) AND \(name) IS NOT \(value)
                    """
            }
            switch self {
            case .flip(let column): return set(column, Self.flipped(column))
            case .zero(let column):
                let zeros = ["INTEGER": "0", "TEXT": "''", "BLOB": "zeroblob(length(\(column.name)))"]
                return set(column, zeros[column.type] ?? "x''")
            case .null(let column): return set(column, "NULL")
            case .swap(let column):
                // The first row, and the next that has something else there.
                let name = column.name
                return """
                    CREATE TEMP TABLE kept AS SELECT * FROM \(table.name) WHERE (\(table.key)) = \(first);
                    INSERT INTO kept SELECT * FROM \(table.name) WHERE \(name) IS NOT (SELECT \(name) FROM kept) LIMIT 1;
                    CREATE TEMP TABLE other AS SELECT * FROM kept;
                    DELETE FROM \(table.name) WHERE (\(table.key)) IN (SELECT \(table.key) FROM other);
                    UPDATE kept SET \(name) = (SELECT other.\(name) FROM other WHERE other.rowid <> kept.rowid)
                    WHERE (SELECT count(*) FROM other) = 2;
                    INSERT INTO \(table.name) SELECT * FROM kept;
                    DELETE FROM kept WHERE (SELECT count(*) FROM other) = 1
                    """
            case .delete: return "DELETE FROM \(table.name) WHERE (\(table.key)) = \(first)"
            case .copy:
                // Where there is no row, one that the gateway did not write.
                let values = table.columns.map { column in
                    guard table.rowCount > 0 else {
                        return column.type == "INTEGER" ? "1" : column.type == "TEXT" ? "'a'" : "zeroblob(16)"
                    }
                    guard column.isKey || column.isUnique else { return column.name }
                    return column.type == "INTEGER"
                        ? "(SELECT max(\(column.name)) + 1 FROM \(table.name))" : Self.flipped(column)
                }
                let rows = table.rowCount > 0 ? " FROM \(table.name) ORDER BY \(table.key) LIMIT 1" : ""
                return "INSERT INTO \(table.name) SELECT \(values.joined(separator: ", "))\(rows)"
            }
        }

        /// The column with one bit, or one byte, changed.
        private static func flipped(_ column: Column) -> String {
            let name = column.name
            switch column.type {
            case "INTEGER": return "ifnull((\(name) | 1) - (\(name) & 1), 1)"
            case "TEXT":
                return
                    "ifnull(CASE substr(\(name), 1, 1) WHEN 'a' THEN 'b' ELSE 'a' END || substr(\(name), 2), 'a')"
            default:
                let middle = "length(\(name)) / 2"
                return """
                    ifnull(CAST(substr(\(name), 1, \(middle))
                    || CASE substr(\(name), \(middle) + 1, 1) WHEN x'00' THEN x'01' ELSE x'00' END
                    || substr(\(name), \(middle) + 2) AS BLOB), x'00')
                    """
            }
        }
    }

    /// - Returns: Whether anything is otherwise than it was.
    private static func tamper(
        _ folder: String, of base: GatewayHarness, _ table: Table, _ edit: Edit
    ) throws -> Bool {
        try tamper("\(folder)/\(table.file)", of: base) { connection in
            let before = try connection.pragma("SELECT total_changes()")
            do {
                try connection.script(edit.sql(in: table))
            } catch  where error is StoreConflict || "\(error)".contains("datatype mismatch") {
                // A key that is there already, a value that must be one, or a row number that is none.
                try connection.script("DROP TABLE IF EXISTS temp.kept; DROP TABLE IF EXISTS temp.other")
                return false
            }
            guard case .swap = edit else { return try connection.pragma("SELECT total_changes()") != before }
            return try connection.pragma("SELECT count(*) FROM temp.kept") == "2"
        }
    }

    private static func tamper<Value>(
        _ path: String, of base: GatewayHarness, _ body: (Connection) throws -> Value
    ) throws -> Value {
        let connection = try Connection.tampering(path, index: base.keys.index)
        defer { connection.close() }
        return try connection.exclusively {
            try connection.script(StoreTampering.begin)
            try connection.begin(writing: true)
            let result = Result { try body(connection) }
            if case .success = result { try connection.commit() } else { connection.rollBack() }
            try connection.script(StoreTampering.end)
            return try result.get()
        }
    }

    private static func tables(of base: GatewayHarness) throws -> [Table] {
        try ["gate.db", "subjects.db"].flatMap { file in
            try tamper("\(base.folder)/\(file)", of: base) { connection in
                let names = StatementText(
                    "schema", "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
                let columns = StatementText(
                    "schema",
                    """
                    SELECT c.name, c.type, c.pk > 0, c.name IN (SELECT i.name FROM pragma_index_list(?1) l,
                        pragma_index_info(l.name) i WHERE l."unique" = 1) FROM pragma_table_xinfo(?1) c ORDER BY c.cid
                    """)
                return try connection.every(names) { Table(file: file, name: $0.text()) }.map { table in
                    var table = table
                    table.columns = try connection.every(columns, { $0.add(table.name) }) {
                        Column(name: $0.text(), type: $0.text(), isKey: $0.flag(), isUnique: $0.flag())
                    }
                    table.rowCount = Int(try connection.pragma("SELECT count(*) FROM \(table.name)")) ?? 0
                    return table
                }
            }
        }
    }

    /// A stopped gateway with something in every table, and two people with everything a person can have.
    private func filled() async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: .files())
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
        for id in ["r-1", "r-2"] {
            let answer = try await gate.call(
                "replies", "POST", "/v1/replies",
                [
                    "id": .string(id), "channel": "email", "from": "a@example.org", "text": "HELP",
                    "received_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(answer.status == 200, "\(answer.json)")
        }
        // Some are handed over, so that there are events of sends.
        for delivery in try await gate.claim().prefix(3) {
            try await gate.gateway.report(delivery.message, .accepted(status: 200), retryAt: nil)
        }
        // Of one the send is known no longer.
        let person = try gate.store.read { try $0.subject(of: UserID("u_1"))?.id }
        try gate.store.write {
            try $0.appendEvent(
                EventRecord(
                    caller: CallerName("payments"), send: SendID(high: 1, low: 1), subject: person,
                    event: .handedOver, destination: nil, at: gate.clock.now(), reason: nil))
        }
        // And some are under way from memory.
        await gate.gateway.setHopUsable(true)
        for user in ["u_1", "u_2"] {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance("o-\(user)", to: user))
            try #require(sent.status == 202, "\(sent.json)")
        }
        gate.files.close()
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

    private func copy(of folder: String) throws -> String {
        let path = NSTemporaryDirectory() + "sendgate-column-\(UUID().uuidString)"
        try FileManager.default.copyItem(atPath: folder, toPath: path)
        return path
    }

    private static func open(_ folder: String, as base: GatewayHarness) throws -> SQLiteStore {
        try SQLiteStore(
            directory: folder,
            cipher: RowCipher(current: .init(id: "test", key: AES256GCMKey(base.keys.data))),
            indexKey: HMACKey(base.keys.index))
    }

    /// What is said of a store: what opening it was refused for, or what was found damaged.
    private static func findings(_ folder: String, as base: GatewayHarness) throws -> [String] {
        do {
            let store = try open(folder, as: base)
            defer { store.close() }
            return store.damagedRows.map(\.description)
        } catch let error as StoreOpeningError {
            return ["\(error)"]
        } catch let error as StoreError where error.damage != nil {
            return ["\(error)"]
        }
    }

    private static func edits(of table: Table) -> [Edit] {
        guard table.rowCount > 0 else { return [.copy] }
        return table.columns.flatMap { [.flip($0), .zero($0), .null($0), .swap($0)] } + [.delete, .copy]
    }

    @Test func `whatever is altered, taken out or put in is named by its table when the store opens`()
        async throws
    {
        let base = try await filled()
        let tables = try Self.tables(of: base)
        // Marks of erasures last from a commit to the next start only, and nothing is damaged yet.
        #expect(Set(tables.filter { $0.rowCount == 0 }.map(\.name)) == ["damage", "erasure"])
        #expect(try Self.findings(base.folder, as: base).isEmpty)
        var editCount = 0
        for table in tables {
            for edit in Self.edits(of: table) {
                let path = try copy(of: base.folder)
                defer { try? FileManager.default.removeItem(atPath: path) }
                guard try Self.tamper(path, of: base, table, edit) else { continue }
                editCount += 1
                let found = try Self.findings(path, as: base)
                #expect(found.contains { $0.contains("`\(table.name)`") }, "\(table.name): \(edit): \(found)")
                // It stays named until an operator accepts it, unless it was put right.
                // What was offered waits in the outbox from the next start on, as damage.
                let names = table.name == "offered" ? ["`offered`", "`outbox`"] : ["`\(table.name)`"]
                let again = try Self.findings(path, as: base)
                #expect(
                    again.contains { line in names.contains { line.contains($0) } }
                        || found.contains { $0.contains("put right") || $0.contains("it counts") },
                    "\(table.name): \(edit): first \(found), then \(again)")
            }
        }
        let columnCount = tables.reduce(0) { $0 + ($1.rowCount > 0 ? $1.columns.count : 0) }
        #expect(editCount > 2 * columnCount, "only \(editCount) edits of \(columnCount) columns")
    }

    @Test func `one pass while the store is open names what is altered, taken out or put in`() async throws {
        let base = try await filled()
        for table in try Self.tables(of: base) {
            let edits: [Edit] =
                table.rowCount == 0 ? [.copy] : [.delete, .copy] + table.columns.map { .flip($0) }
            for edit in edits.prefix(4) {
                let path = try copy(of: base.folder)
                defer { try? FileManager.default.removeItem(atPath: path) }
                let store = try Self.open(path, as: base)
                defer { store.close() }
                guard try Self.tamper(path, of: base, table, edit) else { continue }
                // In slices, and whatever else is written in between is no damage.
                var isWhole = false
                var number = 0
                while !isWhole {
                    isWhole = try store.checkRows(countMax: 7)
                    number += 1
                    do {
                        try store.write { try $0.setSetting("other", to: "\(number)") }
                    } catch let error as StoreError where error.damage?.table == table.name {
                        // Nothing is written without the row that has the sums.
                        #expect(["sequences"].contains(table.name), "\(error)")
                    }
                }
                let found = store.damagedRows
                #expect(
                    found.contains { $0.table == table.name }, "\(table.name): \(edit): \(found)")
                #expect(
                    found.allSatisfy { $0.table == table.name || $0.table.hasPrefix("outbox") },
                    "\(table.name): \(edit): \(found)")
            }
        }
    }

    @Test func `what is put right leaves no difference`() async throws {
        let base = try await filled()
        let sound = try GatewayHarness(after: base, keeping: .folder(copy(of: base.folder)))
        let expected = try await replies(of: sound)
        #expect(expected.allSatisfy { $0.status < 500 }, "\(expected)")
        #expect(sound.store.damagedRows.isEmpty, "\(sound.store.damagedRows)")
        var repairedCount = 0
        for table in try Self.tables(of: base) {
            let edits: [Edit]
            switch table.name {
            case "device_key", "push_token", "address_code", "outbox_counters":
                edits = Self.edits(of: table)
            case "send":
                edits = table.columns.filter { ["id_hash", "caller"].contains($0.name) }.map { .flip($0) }
            case "outbox": edits = table.columns.filter { $0.name == "rank" }.map { .flip($0) }
            default: continue
            }
            for edit in edits {
                let path = try copy(of: base.folder)
                guard try Self.tamper(path, of: base, table, edit) else {
                    try FileManager.default.removeItem(atPath: path)
                    continue
                }
                repairedCount += 1
                let gate = try GatewayHarness(after: base, keeping: .folder(path))
                let found = try await replies(of: gate)
                #expect(gate.store.damagedRows.contains { $0.table == table.name }, "\(table.name): \(edit)")
                for (was, now) in zip(expected, found) {
                    #expect(
                        was.status == now.status && was.text == now.text,
                        "\(table.name): \(edit): \(now.route) was \(was.status) \(was.text), is \(now.status) \(now.text)"
                    )
                }
            }
        }
        #expect(repairedCount > 20, "\(repairedCount)")
    }
}
