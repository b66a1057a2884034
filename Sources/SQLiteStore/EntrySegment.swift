import GateRecords
import GateSteps
import GateVocabulary

/// Consecutive entries of the trail that lie in one row of `entry`:
///
///     bytes = (i64 time ‖ u32 length ‖ entry) …     integers big-endian
struct EntrySegment: ~Copyable {
    /// A row ends where a multiple of this does, so that none has entries of two bundles of 256, and that one entry is read
    /// without many others.
    static let countMax: UInt64 = 64
    private static let headByteCount = 8 + 4
    /// What an entry takes, nearly always: that of a send to one destination has 1,500 to 1,800 bytes. Too little is a copy of all
    /// entries of a commit.
    private static let expectedByteCount = 1_900

    /// Index of the first.
    private(set) var first: UInt64 = 0
    private(set) var count: Int64 = 0
    private(set) var bytes: RowWriter
    private(set) var newestTime: Instant?

    /// - Parameter expectedCount: The expected number of entries, to reserve memory for.
    init(expectedCount: Int) {
        bytes = RowWriter(capacity: min(expectedCount, Int(Self.countMax)) * Self.expectedByteCount)
    }

    mutating func append(_ entry: StoredEntry) {
        if count == 0 { first = entry.index }
        count += 1
        newestTime = entry.time
        bytes.put(entry.time)
        bytes.put(entry.bytes)
    }

    mutating func removeAll() {
        (count, newestTime) = (0, nil)
        bytes.removeAll()
    }

    /// - Throws: `StoreError.damaged` where the bytes are not exactly so many entries.
    static func entries(_ bytes: [UInt8], from first: UInt64, count: Int) throws -> [StoredEntry] {
        func damaged() -> StoreError { .damaged(table: "entry", "its bytes are not \(count) entries") }
        var entries: [StoredEntry] = []
        var rest = bytes[...]
        while entries.count < count {
            guard rest.count >= headByteCount else { throw damaged() }
            let (milliseconds, byteCount) = rest.withUnsafeBytes {
                (
                    Int64(bigEndian: $0.loadUnaligned(as: Int64.self)),
                    Int(
                        UInt32(
                            bigEndian: $0.loadUnaligned(fromByteOffset: headByteCount - 4, as: UInt32.self)))
                )
            }
            rest = rest.dropFirst(headByteCount)
            guard rest.count >= byteCount, Instant.storable.contains(milliseconds) else { throw damaged() }
            entries.append(
                StoredEntry(
                    index: first + UInt64(entries.count), time: Instant(milliseconds: milliseconds),
                    bytes: Array(rest.prefix(byteCount))))
            rest = rest.dropFirst(byteCount)
        }
        guard rest.isEmpty else { throw damaged() }
        return entries
    }
}
