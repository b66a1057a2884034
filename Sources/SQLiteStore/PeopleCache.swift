import GateSteps
import GateVocabulary
import GatewayPipeline
import RecipientModel

/// The newest of what was looked up, a bounded number of it.
///
/// Two generations: what is asked for moves to the younger one, and when that is full the older one is forgotten. So
/// between half and all of the bound is kept, and nothing is moved about to know which was used last.
struct RecentValues<Key: Hashable, Value> {
    private let countMax: Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]

    /// - Parameter countMax: 0 keeps nothing.
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

/// A person as they are in `gate.db`.
struct StoredPerson {
    let number: Int64
    var state: RecipientState
}

/// People as the last commit left them, so that a send to somebody who had one lately reads and opens no row of theirs.
///
/// Coherent because there is one writer, which reads and changes it inside its transactions alone.
struct PeopleCache {
    var people: RecentValues<SubjectID, StoredPerson>
    /// Who is who. Fewer, because each holds a key in locked memory.
    var subjects: RecentValues<UserID, Subject>

    init(countMax: Int) {
        people = RecentValues(countMax: countMax)
        subjects = RecentValues(countMax: min(countMax, 8_192))
    }
}
