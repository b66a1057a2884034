import GateRecords
import GateVocabulary
import OpenSSLCrypto

/// The people of recent batches as the last commit left them, so that a send to one of them loads nothing of theirs.
///
/// True because the store has one writer, the engine, which alone reads and changes this. A person whom a batch writes to is
/// changed here at once; a batch that is not committed takes its changes back (``GateMemory/abandon()``).
package final class RecentPeople {
    private var people: RecentValues<SubjectID, KnownPerson>
    /// The mappings. Each holds a key in locked memory, and that memory bounds them.
    private var users: RecentValues<UserID, Subject>

    /// - Parameter countMax: The largest number of people that are kept, about 2 KiB each and 7 KiB more for one with
    ///   ``KnownForwards/keptCountMax`` forwards; 0 keeps none.
    package init(countMax: Int) {
        people = RecentValues(countMax: countMax)
        users = RecentValues(countMax: min(countMax, Self.mappingCountMax(in: SecretMemory.protection)))
    }

    /// How many mappings leave a quarter of the locked memory to other secrets. Without locked memory there is no such bound.
    static func mappingCountMax(in protection: SecretMemory.Protection) -> Int {
        switch protection {
        case .none: .max
        case .locked(let byteCount), .unlocked(let byteCount): byteCount / 4 * 3 / Subject.secretByteCount
        }
    }

    func person(_ subject: SubjectID) -> KnownPerson? { people[subject] }

    func subject(of user: UserID) -> Subject? { users[user] }

    func keep(_ person: KnownPerson) { people[person.id] = person }

    func keep(_ subject: Subject, of user: UserID) { users[user] = subject }

    /// Forgets erased people, and every mapping, because those are kept by user.
    func forget(_ erased: Set<SubjectID>) {
        for subject in erased { people[subject] = nil }
        users.removeAll()
    }

    /// Forgets what was forwarded to anybody, where the store has dropped some of it.
    func forgetForwards() { people.forEach { $0.forwards = nil } }
}

/// A cache of the most recently used values, bounded in number.
///
/// Two generations: a value that is looked up moves to the younger one, and when that is full the older one is
/// dropped. So between half of the bound and all of it is kept, and no order of use has to be maintained.
package struct RecentValues<Key: Hashable, Value> {
    private let countMax: Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]

    /// - Parameter countMax: 0 turns the cache off.
    package init(countMax: Int) { self.countMax = countMax }

    package subscript(_ key: Key) -> Value? {
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

    package func forEach(_ body: (Value) -> Void) {
        young.values.forEach(body)
        old.values.forEach(body)
    }

    package mutating func removeAll() {
        young.removeAll()
        old.removeAll()
    }
}
