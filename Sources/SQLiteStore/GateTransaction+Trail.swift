import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insertEntry = StatementText(
        "entry", "INSERT INTO entry (number, count, time, bytes) VALUES (?, ?, ?, ?)")
    private static let deleteEntries = StatementText("entry", "DELETE FROM entry WHERE number < ?")
    private static let putSetting = StatementText(
        "setting", "INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        damage: .overwritten)
    private static let removeSetting = StatementText("setting", "DELETE FROM setting WHERE name = ?")

    /// Entries of one full bundle of the trail's directory (C2SP tlog-tiles).
    static let bundleEntryCount: UInt64 = 256

    func append(_ entry: StoredEntry) throws {
        segment.append(entry)
        if (entry.index + 1).isMultiple(of: EntrySegment.countMax) { try writeSegment() }
        tail.entryCount += 1
        // Times rise by the engine's word; where they do not, an operator has accepted the clock.
        if let newest = tail.newestEntryTime, entry.time < newest { try addTimeStep() }
        tail.newestEntryTime = entry.time
    }

    /// Writes the entries since the last row of them.
    func writeSegment() throws {
        guard let last = segment.newestTime else { return }
        try segment.bytes.withUnsafeBytes { bytes in
            _ = try gate.change(Self.insertEntry) {
                $0.add(Int64(bitPattern: segment.first))
                $0.add(segment.count)
                $0.add(last)
                $0.add(uncopied: bytes)
            }
        }
        segment.removeAll()
    }

    /// Lets go of the entries whose full bundle the tree now holds durably; those of the bundle that is still
    /// filling stay, because that file will be written again.
    func setPublishedSize(_ size: UInt64) throws {
        guard size >= tail.publishedSize, size <= tail.entryCount else {
            throw StoreConflict(
                table: "tail",
                message: "published size \(size) is not between \(tail.publishedSize) and \(tail.entryCount)")
        }
        try writeSegment()
        let keptFrom = size / Self.bundleEntryCount * Self.bundleEntryCount
        if keptFrom > tail.publishedSize / Self.bundleEntryCount * Self.bundleEntryCount {
            try gate.change(Self.deleteEntries) { $0.add(Int64(bitPattern: keptFrom)) }
        }
        tail.publishedSize = size
    }

    func setSetting(_ name: String, to value: String?) throws {
        guard let value else {
            try gate.change(Self.removeSetting) { $0.add(name) }
            return
        }
        try gate.change(Self.putSetting) {
            $0.add(name)
            $0.add(value)
        }
    }
}
