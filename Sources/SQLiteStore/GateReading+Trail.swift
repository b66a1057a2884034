import AuditTrail
import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto

extension GateReading {
    private static let entryColumns = "number, time, bytes, leaf"
    private static let entriesFrom = StatementText(
        "entry", "SELECT \(entryColumns) FROM entry WHERE number >= ? ORDER BY number LIMIT ?")
    private static let setting = StatementText(
        Schema.setting.name, "SELECT name, \(Schema.setting.isAltered), value FROM setting WHERE name = ?")

    final func entryCount() throws -> UInt64 { try currentTail().entryCount }
    final func publishedSize() throws -> UInt64 { try currentTail().publishedSize }
    final func newestEntryTime() throws -> Instant? { try currentTail().newestEntryTime }
    final func newestEntryClock() throws -> ClockReading? { try currentTail().newestEntryClock }

    final func entries(from index: UInt64, limit: Int) throws -> [StoredEntry] {
        // SQLite's integers end at 2⁶³−1, and so does the trail.
        guard let number = Int64(exactly: index) else { return [] }
        return try gate.every(Self.entriesFrom) {
            $0.add(number)
            $0.add(Int64(max(limit, 0)))
        } read: { row in
            let entry = StoredEntry(
                index: UInt64(try row.count()), time: try row.instant(), bytes: row.byteArray(),
                leaf: row.byteArray())
            // Whoever reads other bytes would answer, or publish, what was never recorded.
            guard TreeHash.leaf(entry.bytes).bytes == entry.leaf else {
                throw StoreError.damaged(table: "entry", "its bytes are not those that its leaf hash is of")
            }
            return entry
        }
    }

    final func entry(_ index: UInt64) throws -> StoredEntry? {
        guard let entry = try entries(from: index, limit: 1).first, entry.index == index else { return nil }
        return entry
    }

    final func setting(_ name: String) throws -> String? {
        let value = try gate.first(Self.setting, { $0.add(name) }) { row in
            _ = row.text()
            guard !row.flag() else { throw StoreError.damaged(table: Schema.setting.name, RowSums.wrongCode) }
            return row.text()
        }
        if value == nil { try damages.refuseMiss(in: Schema.setting.name) }
        return value
    }
}
