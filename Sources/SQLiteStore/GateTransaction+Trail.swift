import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insertEntry = StatementText(
        "entry", "INSERT INTO entry (number, count, time, bytes) VALUES (?, ?, ?, ?)")
    private static let deleteEntries = StatementText("entry", "DELETE FROM entry WHERE number < ?")
    private static let putSetting = StatementText(
        "setting", "INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
    private static let removeSetting = StatementText("setting", "DELETE FROM setting WHERE name = ?")

    /// Entries of one full bundle of the trail's directory (C2SP tlog-tiles).
    static let bundleEntryCount: UInt64 = 256

    /// - Throws: `StoreError.unavailable` when the entry is not the next one: the trail has no gap, and no place twice.
    func append(_ entry: StoredEntry) throws {
        guard entry.index == sequences.entryCount else {
            throw StoreError.unavailable(
                "entry \(entry.index) is not the next of the trail, which is \(sequences.entryCount)")
        }
        segment.append(entry)
        if (entry.index + 1).isMultiple(of: EntrySegment.countMax) { try writeSegment() }
        sequences.entryCount += 1
        // Times rise by the engine's word; where they do not, an operator has accepted the clock.
        if let newest = sequences.newestEntryTime, entry.time < newest { try addTimeStep() }
        sequences.newestEntryTime = entry.time
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

    /// Where the bundle begins of the newest entry that a tree of this size has.
    private static func newestBundle(ofSize size: UInt64) -> UInt64 {
        (max(size, 1) - 1) / bundleEntryCount * bundleEntryCount
    }

    /// Deletes the entries whose full bundle the published tree holds durably, except the bundle of the newest published entry: it may
    /// still be filling, and so be written again, and the next start holds the trail's directory against that entry.
    func setPublishedSize(_ size: UInt64) throws {
        guard size >= sequences.publishedSize, size <= sequences.entryCount else {
            throw UnfitWrite(
                table: "sequences",
                message:
                    "published size \(size) is not between \(sequences.publishedSize) and \(sequences.entryCount)"
            )
        }
        try writeSegment()
        let keptFrom = Self.newestBundle(ofSize: size)
        if keptFrom > Self.newestBundle(ofSize: sequences.publishedSize) {
            // Their bytes may stay in free pages: the same bytes are in the published tree, which an erasure does not change
            // either. A page that had other rows before was overwritten when these were deleted. Rows of `offered` are overwritten:
            // the data key that opens them outlives an erasure.
            try gate.changeKeepingFreedPages(Self.deleteEntries) { $0.add(Int64(bitPattern: keptFrom)) }
        }
        sequences.publishedSize = size
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
