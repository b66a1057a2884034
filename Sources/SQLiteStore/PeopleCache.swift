import GateSteps
import GateVocabulary
import GatewayPipeline
import RecipientModel

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

/// The people of recent sends as the last commit left them, so that a send to one of them reads and opens no row of
/// theirs.
///
/// Coherent because there is one writer, which reads and changes it inside its transactions alone.
struct PeopleCache {
    var people: RecentValues<SubjectID, StoredPerson>
    /// The mapping. Fewer, because each holds a key in locked memory.
    var subjects: RecentValues<UserID, Subject>

    init(countMax: Int) {
        people = RecentValues(countMax: countMax)
        subjects = RecentValues(countMax: min(countMax, 8_192))
    }
}
