import GateVocabulary
import Synchronization

/// Counts occurrences that may be too frequent for an entry each. There is one entry per key and minute, and the
/// counts in a key's entries add up to the number of occurrences.
///
/// A count is dropped when its entry is durable, and not before: an entry that could not be committed returns its
/// count. Occurrences since a key's last entry are recorded at the key's next occurrence after its minute, or by the
/// sweep that ``takeDue(at:)`` is for. A crash loses the counts since the last entry, at most a minute of them.
final class OccurrenceMeter<Key: Hashable & Sendable>: Sendable {
    /// Occurrences of one key that belong into one entry.
    struct Count: Sendable, Hashable {
        var key: Key
        var count: Int
    }

    static var intervalMilliseconds: Int64 { 60_000 }

    private struct Counter {
        /// Uptime at which the last entry was begun; `nil` before the first.
        var recordedAt: Int64?
        var pending = 0
        /// In entries whose commit is not known yet.
        var underWay = 0
    }
    private let counters = Mutex<[Key: Counter]>([:])
    private let keyCountMax: Int
    private let overflow: Key

    /// - Parameters:
    ///   - keyCountMax: Keys counted apart.
    ///   - overflow: Counts for every further one.
    init(keyCountMax: Int, overflow: Key) {
        self.keyCountMax = keyCountMax
        self.overflow = overflow
    }

    /// Counts one occurrence.
    ///
    /// - Parameter uptime: Milliseconds since boot: a wall clock that is set must neither double nor lose a minute.
    /// - Returns: What to record now; `nil` while the key's minute has its entry.
    func record(_ key: Key, at uptime: Int64) -> Count? {
        counters.withLock { counters in
            let isKnown = counters[key] != nil || counters.count < keyCountMax
            let key = isKnown ? key : overflow
            counters[key, default: Counter()].pending += 1
            return Self.take(key, of: &counters, at: uptime)
        }
    }

    /// Every count whose minute is over; forgets keys without a count.
    ///
    /// - Parameter isLast: Takes every count, whatever its minute, because counting ends.
    func takeDue(at uptime: Int64, isLast: Bool = false) -> [Count] {
        counters.withLock { counters in
            let due = Array(counters.keys).compactMap { key in
                Self.take(key, of: &counters, at: uptime, isLast: isLast)
            }
            counters = counters.filter {
                $0.value.underWay > 0 || $0.value.pending > 0 || !Self.isOver($0.value, at: uptime)
            }
            return due
        }
    }

    /// The entry is durable.
    func committed(_ count: Count) {
        counters.withLock { $0[count.key]?.underWay -= count.count }
    }

    /// The entry was not committed, so its count is recorded by a later one.
    func refused(_ count: Count) {
        counters.withLock { counters in
            counters[count.key]?.underWay -= count.count
            counters[count.key]?.pending += count.count
        }
    }

    private static func take(
        _ key: Key, of counters: inout [Key: Counter], at uptime: Int64, isLast: Bool = false
    ) -> Count? {
        guard var counter = counters[key], counter.pending > 0, isLast || isOver(counter, at: uptime) else {
            return nil
        }
        defer { counters[key] = counter }
        counter.recordedAt = uptime
        counter.underWay += counter.pending
        let count = Count(key: key, count: counter.pending)
        counter.pending = 0
        return count
    }

    private static func isOver(_ counter: Counter, at uptime: Int64) -> Bool {
        guard let recordedAt = counter.recordedAt else { return true }
        return uptime - recordedAt >= intervalMilliseconds
    }
}
