import CompliancePolicy
package import GateSteps
import GateVocabulary
import GateRecords
import Synchronization

/// How many recipients there are, and how many of them would get what a category sends, by the gates that decide sends.
package struct OptInCounts: Sendable {
    private var persons: UInt64 = 0
    private var reachable = [UInt64](repeating: 0, count: Channel.allCases.count)
    private var optedIn = CountTable(of: .optedInPersons)

    package init() {}

    package mutating func add(_ person: RecipientSnapshot, facts loading: FactsLoading) {
        persons += 1
        for (place, channel) in Channel.allCases.enumerated()
        where !person.destinations(on: channel).isEmpty {
            reachable[place] += 1
            for (row, category) in Category.allCases.enumerated() {
                let effect = PreferenceEffect(
                    scope: category.rawValue, channel: channel, destination: nil, person: person,
                    facts: loading)
                if effect.isOn { optedIn.add(row, place) }
            }
        }
    }

    package func write(to page: inout some SamplePage) {
        page.add(.persons, [], persons)
        for (place, channel) in Channel.allCases.enumerated() {
            page.add(.reachablePersons, [channel.rawValue], reachable[place])
        }
        page.add(optedIn, as: .optedInPersons, withZeros: true)
    }
}

/// How many recipients there are, and how many of them would get what a category sends. Counted by going over all of
/// them, a bounded number at a time, beside everything else, again and again.
///
/// A count is of the moments at which each person was looked at, not of one moment; its age is shown. With ten
/// million people and 500 in a second a pass takes five and a half hours.
package final class PersonCount: Sendable {
    /// People looked at in a second.
    package static let countPerSecond = 500

    private struct Pass {
        var counts = OptInCounts()
        /// The person whom the pass looked at last; `nil` before the first.
        var newest: SubjectID?
        var whole: (counts: OptInCounts, at: Instant)?
    }
    private let pass = Mutex(Pass())
    private let store: any GateStore
    private let policy: PolicyInForce
    private let clock: any Clock

    package init(store: any GateStore, policy: PolicyInForce, clock: any Clock) {
        self.store = store
        self.policy = policy
        self.clock = clock
    }

    /// Looks at the next people, at most `countMax`. Blocks its thread; not to be called by two at once.
    ///
    /// - Returns: Whether a pass over all of them has ended.
    /// - Throws: What the store does; the pass goes on with the same people.
    package func advance(countMax: Int = countPerSecond) throws -> Bool {
        var (counts, newest) = pass.withLock { ($0.counts, $0.newest) }
        let (policy, now) = (policy.current, clock.now())
        let isOver = try store.read { store in
            let people = try store.people(after: newest, limit: countMax)
            let loading = FactsLoading(policy: policy, now: now)
            for subject in people {
                newest = subject
                do {
                    guard let known = try store.subject(subject),
                        let person = try RecipientSnapshot.load(known, from: store)
                    else { continue }
                    counts.add(person, facts: loading)
                } catch let error as StoreError where error.damage != nil {
                    // A person whose row cannot be read is in the store's own list of damage, and no part of a rate.
                    continue
                }
            }
            return people.isEmpty
        }
        pass.withLock { pass in
            pass.counts = isOver ? OptInCounts() : counts
            pass.newest = isOver ? nil : newest
            if isOver { pass.whole = (counts, now) }
        }
        return isOver
    }

    /// Writes the newest whole count; nothing before there is one.
    package func write(to page: inout Exposition) {
        guard let (counts, at) = pass.withLock({ $0.whole }) else { return }
        counts.write(to: &page)
        page.add(
            .personsCountAge, [],
            .milliseconds(max(0, clock.now().milliseconds - at.milliseconds)))
    }
}
