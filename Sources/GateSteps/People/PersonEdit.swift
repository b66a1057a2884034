import CompliancePolicy
import GateRecords
import GateVocabulary

/// A working copy of one person: a step asks and changes it, and ``StepContext/write(_:)`` writes it once.
///
/// Pure over the person, the bundle and the moment. An auditor's replay makes the same edits from what the trail tells
/// (``OwedEntries``).
struct PersonEdit {
    let policy: CompiledPolicy
    /// When the request was received.
    let now: Instant
    /// The person before the first change.
    let before: RecipientWithLedger
    /// The state that is stored. It is that of ``before``, unless an older one was put back in its place.
    let stored: RecipientState
    /// The state after the changes so far.
    private(set) var state: RecipientState
    /// The ledger with the records that were appended, oldest first.
    private(set) var consents: [ConsentRecord]
    /// The changes in their order, each with the caller in whose name it is recorded.
    private(set) var changes: [(change: PersonChange, caller: CallerName)] = []

    /// An edit of anything. What counts of the consents is what the ledger says, whatever the stored state does.
    init(_ person: RecipientWithLedger, policy: CompiledPolicy, at now: Instant) {
        var state = person.person.state
        state.count(asIn: person.consents)
        let snapshot = RecipientSnapshot(subject: person.subject, record: person.person.record, state: state)
        self.init(
            RecipientWithLedger(person: snapshot, consents: person.consents), stored: person.person.state,
            policy: policy, at: now)
    }

    /// An edit of anything but consents, for which the ledger is not loaded. A record of consent must not be appended: it would be
    /// chained to nothing.
    init(besidesConsentsOf person: RecipientSnapshot, policy: CompiledPolicy, at now: Instant) {
        self.init(
            RecipientWithLedger(person: person, consents: []), stored: person.state, policy: policy, at: now)
    }

    private init(
        _ before: RecipientWithLedger, stored: RecipientState, policy: CompiledPolicy, at now: Instant
    ) {
        (self.policy, self.now, self.before, self.stored) = (policy, now, before, stored)
        (state, consents) = (before.person.state, before.consents)
    }

    var subject: Subject { before.subject }

    /// The person after the changes so far.
    var person: RecipientSnapshot {
        RecipientSnapshot(subject: subject, record: state.record ?? before.person.record, state: state)
    }

    mutating func append(_ record: ConsentRecord) {
        let placed = state.apply(record, after: consents)
        consents.append(placed)
        changes.append((.consent(placed), record.source))
    }

    mutating func append(_ choice: PreferenceRecord) { append(.preference(choice), by: choice.caller) }

    /// - Parameter change: Any but a record of the ledger of consents.
    mutating func append(_ change: PersonChange, by caller: CallerName) {
        state.apply(change)
        changes.append((change, caller))
    }

    // MARK: Asking

    /// What counts now in the scope of a record.
    func fact(inScopeOf record: ConsentRecord) -> ConsentFact {
        state.consentsInForce.fact(
            purpose: record.purpose, channel: record.channel, address: record.address)
    }

    /// The consents to a purpose that count on a channel, one for each address, oldest first.
    func given(_ purpose: Purpose, on channel: Channel) -> [ConsentRecord] {
        state.consentsInForce.given(purpose, on: channel).map { consents[Int($0.position) - 1] }
    }

    /// The newest choice at each place of a channel where one was ever made.
    func choices(of scope: String, on channel: Channel) -> [PreferenceRecord] {
        state.preferences.filter { $0.scope == scope && $0.channel == channel }
    }

    /// Whether the edit changed a consent in force or a choice.
    var changesConsentsOrChoices: Bool {
        ConsentsAndChoices(state) != ConsentsAndChoices(before.person.state)
    }

    /// The parts of a state that tell whether an edit had an effect.
    private struct ConsentsAndChoices: Equatable {
        /// Of each scope where something was said, the position of the record that gives; `nil` where the answer is no.
        private let consents: [ConsentsInForce.Scope: Int64?]
        private let choices: Set<Choice>

        private struct Choice: Hashable {
            var scope: String
            var channel: Channel
            var destination: Tag?
            var state: PreferenceState
        }

        init(_ state: RecipientState) {
            consents = state.consentsInForce.byScope.mapValues { $0.state == .given ? $0.position : nil }
            choices = Set(
                state.preferences.filter { $0.state != .default }.map {
                    Choice(
                        scope: $0.scope, channel: $0.channel, destination: $0.destination, state: $0.state)
                })
        }
    }
}

extension StepContext {
    func beginEdit(of person: RecipientWithLedger, at now: Instant) -> PersonEdit {
        PersonEdit(person, policy: policy, at: now)
    }

    /// `nil` for a person who is not registered.
    func beginEdit(of user: UserID, at now: Instant) throws -> PersonEdit? {
        try RecipientWithLedger.load(user, from: memory).map { beginEdit(of: $0, at: now) }
    }

    /// `nil` for a person who is not registered any more.
    func beginEdit(of subject: SubjectID, at now: Instant) throws -> PersonEdit? {
        guard let subject = try memory.subject(subject) else { return nil }
        return try RecipientWithLedger.load(subject, from: memory).map { beginEdit(of: $0, at: now) }
    }

    /// Writes the person whom an edit has changed, once, and an entry for each of its changes, in their order.
    ///
    /// - Returns: The first entry; `nil` where nothing was changed.
    @discardableResult
    func write(_ edit: PersonEdit) throws -> EntryReference? {
        guard !edit.changes.isEmpty else { return nil }
        let subject = edit.subject.id
        let isCurrent = try memory.state(of: subject) == edit.stored
        precondition(isCurrent, "a stale edit: the person was changed since it began")
        var first: EntryReference?
        var choiceCount = edit.before.person.state.choiceCount
        for (change, caller) in edit.changes {
            switch change {
            case .consent(var record):
                // The index of its entry is the ledger's way back to the trail.
                record.entryIndex = upcomingIndex(ofChangeOf: subject)
                memory.append(record)
            case .preference(let choice):
                choiceCount += 1
                memory.append(choice, at: choiceCount)
            default: break
            }
            let entry = try recordEntry(of: change, of: subject, by: caller, at: edit.now)
            first = first ?? entry
        }
        try memory.put(edit.state)
        return first
    }
}
