import CanonicalJSON
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import Testing

@testable import GateFloor
@testable import sendgate

/// The floor that `make bench-floor` compares the gateway with writes what the store writes.
@Suite struct FloorTests {
    private static let rows: Result<SendRows, any Error> = Result {
        let entry: JSONObject = [
            "facts": ["text": .string(String(repeating: "f", count: 900))],
            "deliveries": .array([["facts": ["text": .string(String(repeating: "d", count: 300))]]]),
            "text": .string(String(repeating: "e", count: 500)),
        ]
        return try SendRows(
            entry: CanonicalJSON.write(entry), deliveryEntry: [UInt8](repeating: 0x20, count: 320),
            headers: CanonicalJSON.write(["a": "b"] as JSONObject),
            body: CanonicalJSON.write(["text": .string(String(repeating: "b", count: 400))] as JSONObject))
    }

    private func specimen(batch: Int, in folder: TemporaryFolder) throws -> FloorSpecimen {
        try FloorSpecimen(of: Self.rows.get(), batch: batch, refusedPercent: 10, in: folder.path("specimen"))
    }

    private func size(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }

    @Test(arguments: [1, 16, 100])
    func `the floor writes as much as the store for the same batches`(batch: Int) throws {
        let folder = try TemporaryFolder()
        let specimen = try specimen(batch: batch, in: folder)
        let floor = try BenchFloor(specimen, in: folder.path("floor"), people: 1)
        let log = folder.path("floor") + "/gate.db-wal"
        try floor.transaction()
        let before = try size(log)
        for _ in 0..<4 { try floor.transaction() }
        let written = (try size(log) - before) / 4
        // Pages split here and there, and everything else is the same.
        #expect(
            abs(written - specimen.logByteCount) <= specimen.logByteCount / 4 + 2 * 4_120,
            "\(written), \(specimen.logByteCount)")
        #expect(written / batch > 3_000 / batch)
        let database = try RawDatabase(path: folder.path("floor") + "/gate.db", isReadOnly: true)
        func count(_ table: String) throws -> RawValue? {
            try database.rows("SELECT count(*) FROM \(table)").first?.first
        }
        // Before the first there was one batch, of which nothing had ended.
        #expect(try count("send") == .integer(Int64(6 * batch)))
        #expect(try count("event") == .integer(Int64(5 * (batch - batch / 10))))
        let offered = specimen.contents.first { $0.table == "offered" }?.rows.count ?? -1
        #expect(try count("offered") == .integer(Int64(offered)))
        #expect(try database.texts("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `the floor has the gateway's tables and writes all that a send changes`() async throws {
        let folder = try TemporaryFolder()
        let specimen = try specimen(batch: 4, in: folder)
        let floor = try BenchFloor(specimen, in: folder.path("floor"), people: 10)
        let gateway = try await GatewayFixture(in: folder.root)
        try await gateway.registerSomebody()
        let path = gateway.wiring.configuration.stateDirectory + "/gate.db"
        #expect(try shape(folder.path("floor") + "/gate.db") == shape(path))
        withExtendedLifetime(floor) {}

        let database = try RawDatabase(path: path, isReadOnly: true)
        func counts() throws -> [String: RawValue?] {
            let names = try database.texts("SELECT name FROM sqlite_schema WHERE type = 'table'")
            return Dictionary(
                uniqueKeysWithValues: try names.map {
                    ($0, try database.rows("SELECT count(*) FROM \($0)").first?.first)
                })
        }
        await gateway.wiring.gateway.setHopUsable(true)
        // Once it is known that nothing waits, messages go from memory.
        _ = try await gateway.wiring.gateway.claim(lane: .general, limit: 8)
        let before = try counts()
        let reply = try await gateway.send(
            "s1", "statement.available",
            ["statement_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a01", "period": "October 2026"])
        #expect(reply.status == 202, "\(reply.object)")
        let delivery = try #require(try await gateway.wiring.gateway.claim(lane: .general, limit: 8).first)
        try await gateway.wiring.gateway.report(
            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        let after = try counts()
        let changed = Set(after.filter { before[$0.key] != $0.value }.keys)
        // `word` has each name once.
        #expect(changed.subtracting(["word"]).isSubset(of: specimen.tableChanges.map(\.table)), "\(changed)")
        #expect(changed.isSuperset(of: ["send", "entry", "event"]), "\(changed)")
        try await gateway.stop()
    }

    /// Columns and indexes of a database.
    private func shape(_ path: String) throws -> [String] {
        let database = try RawDatabase(path: path, isReadOnly: true)
        let tables = try database.texts(
            """
            SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk
            FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' ORDER BY 1
            """)
        let indexes = try database.texts(
            """
            SELECT m.name || ' ' || i.name || ' ' || i."unique" || ' ' || i.partial || ' ' || c.seqno || ' '
                || ifnull(c.name, '-')
            FROM sqlite_schema m, pragma_index_list(m.name) i, pragma_index_info(i.name) c
            WHERE m.type = 'table' ORDER BY 1
            """)
        #expect(tables.count > 60 && indexes.count > 20)
        return tables + indexes
    }
}
