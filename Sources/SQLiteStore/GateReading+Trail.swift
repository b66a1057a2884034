import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    // From the row on that has the first that is wanted, if any has.
    private static let entriesFrom = StatementText(
        "entry",
        """
        SELECT number, count, bytes FROM entry
        WHERE number >= ifnull((SELECT max(number) FROM entry WHERE number <= ?), 0) ORDER BY number
        """)
    private static let setting = StatementText(
        Schema.setting.name, "SELECT value FROM setting WHERE name = ?")

    final func entryCount() throws -> UInt64 { try currentSequences().entryCount }
    final func publishedSize() throws -> UInt64 { try currentSequences().publishedSize }
    final func newestEntryTime() throws -> Instant? { try currentSequences().newestEntryTime }
    final func newestEntryClock() throws -> ClockReading? { try currentSequences().newestEntryClock }

    final func entries(from index: UInt64, limit: Int) throws -> [StoredEntry] {
        // SQLite's integers end at 2⁶³−1, and so does the trail.
        guard let number = Int64(exactly: index), limit > 0 else { return [] }
        var entries: [StoredEntry] = []
        try gate.scan(Self.entriesFrom, { $0.add(number) }) { row in
            let first = try row.count()
            let count = try row.count()
            guard first + count > number else { return true }
            for entry in try EntrySegment.entries(row.byteArray(), from: UInt64(first), count: Int(count))
            where entry.index >= index && entries.count < limit {
                entries.append(entry)
            }
            return entries.count < limit
        }
        return entries
    }

    final func entry(_ index: UInt64) throws -> StoredEntry? {
        guard let entry = try entries(from: index, limit: 1).first, entry.index == index else { return nil }
        return entry
    }

    private static let settingNames = StatementText(
        Schema.setting.name, "SELECT name FROM setting WHERE name >= ? AND name < ? ORDER BY name LIMIT ?")

    final func settingNames(in range: Range<String>, limit: Int) throws -> [String] {
        var names: [String] = []
        try gate.scan(Self.settingNames) {
            $0.add(range.lowerBound)
            $0.add(range.upperBound)
            $0.add(Int64(max(limit, 0)))
        } read: { row in
            names.append(row.text())
            return true
        }
        return names
    }

    final func setting(_ name: String) throws -> String? {
        try gate.first(Self.setting, { $0.add(name) }) { $0.text() }
    }
}
