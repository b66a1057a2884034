import GateSteps
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords

/// A cache of the most recently used values, bounded in number.
///
/// Two generations: a value that is looked up moves to the younger one, and when that is full the older one is
/// dropped. So between half of the bound and all of it is kept, and no order of use has to be maintained.
struct RecentValues<Key: Hashable, Value> {
    private let countMax: Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]

    /// - Parameter countMax: 0 turns the cache off.
    init(countMax: Int) { self.countMax = countMax }

    subscript(_ key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            guard let value = old.removeValue(forKey: key) else { return nil }
            self[key] = value
            return value
        }
        set {
            old[key] = nil
            guard let newValue else {
                young[key] = nil
                return
            }
            guard countMax > 0 else { return }
            if young.count >= (countMax + 1) / 2, young[key] == nil {
                old = young
                young.removeAll(keepingCapacity: true)
            }
            young[key] = newValue
        }
    }

    mutating func removeAll() {
        young.removeAll()
        old.removeAll()
    }
}

/// A person as they are in `gate.db`. A class, so that looking one up copies none of the state.
final class StoredPerson {
    let number: Int64
    let state: RecipientState

    init(number: Int64, state: RecipientState) {
        self.number = number
        self.state = state
    }
}

/// All forwards to one person since a moment, newest first, as the last commit left them. An object, so that a commit adds to
/// it where it is kept.
final class RecentForwards {
    /// More than the 100 an hour that is the highest cap of the repository's bundle. 56 bytes each, 7 KiB in all.
    static let countMax = 128

    private var since: Instant
    private var records: [ForwardRecord]

    /// - Parameter records: All since then. Of more than are kept, the newest are.
    init(since: Instant, records: [ForwardRecord]) {
        guard records.count > Self.countMax else {
            (self.since, self.records) = (since, records)
            return
        }
        self.since = Self.moment(after: records[Self.countMax])
        self.records = Array(records.prefix(Self.countMax))
    }

    /// From when on nothing is missing where a record is.
    private static func moment(after record: ForwardRecord) -> Instant {
        Instant(milliseconds: record.at.milliseconds + 1)
    }

    /// `nil` where some may be missing.
    func all(since moment: Instant) -> [ForwardRecord]? {
        guard since <= moment else { return nil }
        guard let oldest = records.last, oldest.at < moment else { return records }
        return Array(records.prefix { $0.at >= moment })
    }

    /// Adds the forward of a send that was received after every other, as its number says; its moment is an earlier one where
    /// the clock went back. In the place of the oldest, past the bound.
    func add(_ record: ForwardRecord) {
        if records.count == Self.countMax { since = Self.moment(after: records.removeLast()) }
        guard since <= record.at else { return }
        records.insert(record, at: records.firstIndex { $0.at <= record.at } ?? records.endIndex)
    }
}

/// The people of recent sends as the last commit left them, so that a send to one of them reads and opens no row of
/// theirs.
///
/// Coherent because there is one writer, which reads and changes it inside its transactions alone.
struct PeopleCache {
    var people: RecentValues<SubjectID, StoredPerson>
    /// What caps count. A person who is new has none; a commit adds the sends that count when they are received, and forgets the
    /// list of a person whose forwards it changes in any other way.
    var forwards: RecentValues<SubjectID, RecentForwards>
    /// The mappings. Each holds a key in locked memory, and that memory bounds them.
    var subjects: RecentValues<UserID, Subject>

    /// How many mappings leave a quarter of the locked memory to other secrets. Without locked memory there is no such bound.
    static func mappingCountMax(in protection: SecretMemory.Protection) -> Int {
        switch protection {
        case .none: .max
        case .locked(let byteCount), .unlocked(let byteCount): byteCount / 4 * 3 / Subject.secretByteCount
        }
    }

    init(countMax: Int) {
        people = RecentValues(countMax: countMax)
        forwards = RecentValues(countMax: countMax)
        subjects = RecentValues(countMax: min(countMax, Self.mappingCountMax(in: SecretMemory.protection)))
    }
}
