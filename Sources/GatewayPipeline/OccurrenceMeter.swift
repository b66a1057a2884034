import GateVocabulary
import Synchronization

/// Counts what may happen too often to be an entry each: one entry per key and minute, and the counts of a key's
/// entries add up to how often it happened.
///
/// A count leaves here when its entry is durable, and not before: an entry that could not be committed gives its count
/// back. What happened since a key's last entry is recorded at the key's next occurrence after its minute, or by the
/// sweep that ``takeDue(at:)`` is for. A crash loses what was counted since, at most a minute of it.
final class OccurrenceMeter<Key: Hashable & Sendable>: Sendable {
    /// Occurrences of one key that belong into one entry.
    struct Count: Sendable, Hashable {
        var key: Key
        var count: Int
    }

    static var intervalMilliseconds: Int64 { 60_000 }

    private struct Tally {
        /// Uptime at which the last entry was begun; `nil` before the first.
        var recordedAt: Int64?
        var pending = 0
        /// In entries whose commit is not known yet.
        var underWay = 0
    }
    private let tallies = Mutex<[Key: Tally]>([:])
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
        tallies.withLock { tallies in
            let isKnown = tallies[key] != nil || tallies.count < keyCountMax
            let key = isKnown ? key : overflow
            tallies[key, default: Tally()].pending += 1
            return Self.take(key, of: &tallies, at: uptime)
        }
    }

    /// Everything whose minute is over and that has been counted since; forgets keys with nothing left to say.
    ///
    /// - Parameter isLast: Takes what is counted whatever its minute, because nobody will count on.
    func takeDue(at uptime: Int64, isLast: Bool = false) -> [Count] {
        tallies.withLock { tallies in
            let due = Array(tallies.keys).compactMap { key in
                Self.take(key, of: &tallies, at: uptime, isLast: isLast)
            }
            tallies = tallies.filter {
                $0.value.underWay > 0 || $0.value.pending > 0 || !Self.isOver($0.value, at: uptime)
            }
            return due
        }
    }

    /// The entry is durable.
    func committed(_ count: Count) {
        tallies.withLock { $0[count.key]?.underWay -= count.count }
    }

    /// The entry was not committed: what it would have said is still to be said.
    func refused(_ count: Count) {
        tallies.withLock { tallies in
            tallies[count.key]?.underWay -= count.count
            tallies[count.key]?.pending += count.count
        }
    }

    private static func take(
        _ key: Key, of tallies: inout [Key: Tally], at uptime: Int64, isLast: Bool = false
    ) -> Count? {
        guard var tally = tallies[key], tally.pending > 0, isLast || isOver(tally, at: uptime) else {
            return nil
        }
        defer { tallies[key] = tally }
        tally.recordedAt = uptime
        tally.underWay += tally.pending
        let count = Count(key: key, count: tally.pending)
        tally.pending = 0
        return count
    }

    private static func isOver(_ tally: Tally, at uptime: Int64) -> Bool {
        guard let recordedAt = tally.recordedAt else { return true }
        return uptime - recordedAt >= intervalMilliseconds
    }
}
